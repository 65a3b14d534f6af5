#!/usr/bin/env bash
# Scans of a column table beside those of a table of rows, and beside DuckDB: TPC-H's queries 1 and 6,
# and a few of one column, over a table like lineitem that one SQL text fills on both. Prints the least
# of REPEATS times, in milliseconds; DuckDB has THREADS threads, the server as many as the machine has cores.
# Answers are compared.
#
#   ROWS=2000000 LIMIT=2GB scripts/column-scans.sh
# Needs psql, and Python (PYTHON) with `duckdb`. Two million rows take about three minutes.

source "$(dirname "$0")/server.sh"
ROWS=${ROWS:-2000000}
LIMIT=${LIMIT:-2GB}
REPEATS=${REPEATS:-7}
THREADS=${THREADS:-2}
PYTHON=${PYTHON:-python3}
command -v psql > /dev/null || skip "no psql"
"$PYTHON" -c 'import duckdb' 2> /dev/null || skip "no duckdb for $PYTHON"

start_server "$WORK/data" "$LIMIT"
wait_for_answer
URL="$URL" "$PYTHON" - "$ROWS" "$REPEATS" "$THREADS" << 'PYTHON'
import os, re, subprocess, sys, time
import duckdb

rows, repeats, threads = (int(text) for text in sys.argv[1:])
columns = """l_orderkey bigint, l_partkey int, l_suppkey int, l_linenumber int, l_quantity numeric(15,2),
    l_extendedprice numeric(15,2), l_discount numeric(15,2), l_tax numeric(15,2), l_returnflag text,
    l_linestatus text, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct text,
    l_shipmode text, l_comment text"""
values = """n / 4, n * 7919 % 200003, n * 6271 % 10007, n % 4 + 1, n * 31 % 50 + 1,
    (n * 31 % 50 + 1) * (90000 + n * 7907 % 100003) / 100.0, (n * 17 % 11) / 100.0, (n * 13 % 9) / 100.0,
    CASE n * 53 % 4 WHEN 0 THEN 'A' WHEN 1 THEN 'R' ELSE 'N' END, CASE n * 29 % 2 WHEN 0 THEN 'O' ELSE 'F' END,
    DATE '1992-01-02' + (n * 6151 % 2526)::int, DATE '1992-01-31' + (n * 5573 % 2466)::int,
    DATE '1992-01-03' + (n * 6151 % 2554)::int,
    CASE n * 3 % 4 WHEN 0 THEN 'DELIVER IN PERSON' WHEN 1 THEN 'COLLECT COD' WHEN 2 THEN 'NONE' ELSE 'TAKE BACK RETURN' END,
    CASE n * 5 % 7 WHEN 0 THEN 'AIR' WHEN 1 THEN 'RAIL' WHEN 2 THEN 'SHIP' WHEN 3 THEN 'TRUCK' WHEN 4 THEN 'MAIL'
        WHEN 5 THEN 'FOB' ELSE 'REG AIR' END,
    'furiously quick deposits ' || (n * 7 % 100019)"""
queries = {
    "Q1": """SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
        sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
        count(*) FROM t WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90 day'
        GROUP BY l_returnflag, l_linestatus ORDER BY 1, 2""",
    "Q6": """SELECT sum(l_extendedprice * l_discount) FROM t WHERE l_shipdate >= DATE '1994-01-01'
        AND l_shipdate < DATE '1994-01-01' + INTERVAL '1 year' AND l_discount BETWEEN 0.05 AND 0.07
        AND l_quantity < 24""",
    "a range of the order key": "SELECT count(*), sum(l_tax) FROM t WHERE l_orderkey BETWEEN 1000 AND 2000",
    "two of seven texts": "SELECT count(*), sum(l_quantity) FROM t WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_partkey < 2000",
    "count(*)": "SELECT count(*) FROM t",
    "max of a text": "SELECT max(l_comment) FROM t",
}

def psql(text):
    told = subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", os.environ["URL"]], input=text,
                          capture_output=True, text=True)
    if told.returncode:
        sys.exit(told.stderr)
    return told.stdout

def numbers(text):
    return [re.sub(r"\.?0+$", "", word) if "." in word else word for word in text.split()]

duck = duckdb.connect()
duck.execute(f"SET threads = {threads}")
duck.execute(f"CREATE TABLE t ({columns.replace('numeric', 'decimal')})")
duck.execute(f"INSERT INTO t SELECT {values.replace('n / 4', 'n // 4')} FROM range({rows}) r(n)")
for method in ["memory", "columns"]:
    began = time.time()
    psql(f"CREATE TABLE {method} ({columns}) USING {method};")
    for first in range(0, rows, 100_000):
        last = min(first + 100_000, rows) - 1
        psql(f"INSERT INTO {method} SELECT {values} FROM generate_series({first}::bigint, {last}) n;")
    psql(f"VACUUM {method};")
    print(f"{method}: filled in {time.time() - began:.0f} s", flush=True)
sizes = "SELECT relname, block_bytes / 1048576 FROM thermocline_tables WHERE relname IN ('memory', 'columns')"
print(psql(sizes).strip().replace("|", ": on the device, MB: "))

print(f"{'ms':<26}{'rows':>9}{'columns':>9}{'DuckDB':>9}")
for name, query in queries.items():
    least, answers = [], []
    for table in ["memory", "columns"]:
        asked = query.replace("FROM t", f"FROM {table}")
        asked = "\\timing on\n" + f"{asked};\n" * repeats
        told = psql(asked)
        times = [float(found) for found in re.findall(r"Time: ([0-9.]+) ms", told)]
        least.append(min(times))
        answers.append(numbers(re.split(r"Time: .*\n", told)[0].replace("|", " ")))
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        found = duck.execute(query).fetchall()
        times.append((time.perf_counter() - began) * 1000)
    least.append(min(times))
    answers.append(numbers(" ".join(str(value) for row in found for value in row)))
    same = answers[0] == answers[1] == answers[2]
    print(f"{name:<26}" + "".join(f"{ms:9.1f}" for ms in least) + ("" if same else f"   answers differ: {answers}"), flush=True)
    if not same:
        sys.exit(1)
PYTHON
finish
