#!/usr/bin/env bash
# TPC-H and TPC-DS through the wire, beside PostgreSQL: each query's answer is compared with
# PostgreSQL's and with DuckDB's, and its time (median of RUNS, in turns) with PostgreSQL's.
#
#   scripts/tpc.sh                         # both at scale 0.1
#   SUITES=tpch SCALE=1 QUERIES="1 6 9" scripts/tpc.sh
#
# Both have the primary keys and no other index; PostgreSQL has PG_BUFFERS as shared_buffers,
# and its tables are analysed. Needs PostgreSQL 15 and Python with `pip install duckdb==1.1.3 'psycopg[binary]'`,
# whose extensions generate the data. Tables in Markdown come out; exit code 0: no answer differs.

source "$(dirname "$0")/server.sh"
source "$ROOT/scripts/postgresql.sh"
find_postgresql || skip "PostgreSQL's server is not installed"
python3 -c 'import duckdb, psycopg' 2> /dev/null || skip "the Python modules duckdb and psycopg are not installed"
MEMORY=${MEMORY:-4GB}
for suite in ${SUITES:-tpch tpcds}; do
    say "## $suite, scale ${SCALE:-0.1}"
    rm -rf "$WORK/ours" "$WORK/postgresql/data"
    start_server "$WORK/ours" "$MEMORY"
    wait_for_answer
    start_postgresql "${PG_BUFFERS:-1GB}"
    python3 "$ROOT/scripts/tpc/run.py" --suite "$suite" --scale "${SCALE:-0.1}" --runs "${RUNS:-3}" --ours "$URL" \
        --postgresql "$PG_URL" --work "$WORK" --queries "${QUERIES:-}" || violation "$suite: an answer differs"
    stop_postgresql
    stop_server
done
finish
