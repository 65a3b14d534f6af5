#!/usr/bin/env bash
# How often a transaction has to be repeated: sysbench's oltp_read_write over one small table, at
# each isolation level, here and in PostgreSQL 15, in turns. Refusals are 40001 and 40P01, as sysbench
# counts them ("ignored errors"); it repeats the transaction.
#
#   ROWS=1000 THREADS="2 8" SECONDS_EACH=20 ROUNDS=3 scripts/aborts.sh
#
# Needs sysbench and PostgreSQL 15. A table in Markdown comes out, medians of the rounds. Exit code 0:
# at no level more refusals for a commit than PostgreSQL has, but for a tenth.

source "$(dirname "$0")/server.sh"
source "$ROOT/scripts/postgresql.sh"
command -v sysbench > /dev/null || skip "sysbench is not installed"
find_postgresql || skip "PostgreSQL is not installed"
ROWS=${ROWS:-1000}
THREADS=${THREADS:-2 8}
SECONDS_EACH=${SECONDS_EACH:-20}
ROUNDS=${ROUNDS:-3}
LEVELS=("read committed" "repeatable read" "serializable")

# oltp PORT LEVEL THREADS COMMAND: sysbench against a server.
oltp() {
    PGOPTIONS="-c default_transaction_isolation=${2// /\\ }" sysbench oltp_read_write --db-driver=pgsql \
        --pgsql-host=127.0.0.1 --pgsql-port="$1" --pgsql-user=postgres --pgsql-db=postgres \
        --pgsql-password=none --tables=1 --table-size="$ROWS" --threads="$3" --time="$SECONDS_EACH" \
        --rand-type="${RAND_TYPE:-special}" "$4"
}

# measure PORT LEVEL THREADS: commits a second, and refusals for a commit.
measure() {
    oltp "$1" "$2" "$3" run | awk '/transactions:/ { commits = $2; gsub(/[(]/, "", $3); rate = $3 }
        /ignored errors:/ { refused = $3 } END { printf "%.0f %.4f\n", rate, refused / commits }'
}

start_server "$WORK/data" 1GB
wait_for_answer
start_postgresql 512MB
for port in "$PORT" "$PG_PORT"; do oltp "$port" "read committed" 1 prepare > "$WORK/prepare"; done

printf '| level | threads | refusals a commit, here | PostgreSQL | commits a second, here | PostgreSQL |\n'
printf '|---|---:|---:|---:|---:|---:|\n'
for level in "${LEVELS[@]}"; do
    for threads in $THREADS; do
        : > "$WORK/here"
        : > "$WORK/there"
        for ((round = 0; round < ROUNDS; round++)); do
            measure "$PORT" "$level" "$threads" >> "$WORK/here"
            measure "$PG_PORT" "$level" "$threads" >> "$WORK/there"
        done
        here=$(median "$(awk '{ print $2 }' "$WORK/here")")
        there=$(median "$(awk '{ print $2 }' "$WORK/there")")
        printf '| %s | %s | %s | %s | %s | %s |\n' "$level" "$threads" "$here" "$there" \
            "$(median "$(awk '{ print $1 }' "$WORK/here")")" "$(median "$(awk '{ print $1 }' "$WORK/there")")"
        if awk -v a="$here" -v b="$there" 'BEGIN { exit !(a > b * 1.1 + 0.002) }'; then
            violation "$level, $threads threads: $here refusals a commit, PostgreSQL $there"
        fi
    done
done
stop_server
finish
