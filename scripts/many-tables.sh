#!/usr/bin/env bash
# Many small tables, as an application has with a schema for each of its customers. How long they
# take to make, to fill with a few rows, and to change; how long a start takes after kill -9; what
# they take of memory and disk. The same statements through psql, beside PostgreSQL.
#
# Needs psql; PostgreSQL's turn needs its server, too. Takes about a minute with the defaults:
#   TABLES=10000 ROWS=20 LIMIT=2GB scripts/many-tables.sh
# Exit code 0: all tables and rows were there after the kill.

source "$(dirname "$0")/server.sh"
source "$ROOT/scripts/postgresql.sh"
TABLES=${TABLES:-10000}
ROWS=${ROWS:-20}
LIMIT=${LIMIT:-2GB}
CHANGED=$((TABLES < 300 ? TABLES : 300))

command -v psql > /dev/null || skip "psql is not installed"
find_postgresql || true

for ((table = 1; table <= TABLES; table++)); do
    echo "CREATE TABLE t_$table (id int PRIMARY KEY, name text NOT NULL, note text, price int DEFAULT 0);"
done > "$WORK/make.sql"
for ((table = 1; table <= TABLES; table++)); do
    echo "INSERT INTO t_$table SELECT g, 'name ' || g, repeat('n', g * 9), g FROM generate_series(1, $ROWS) g;"
done > "$WORK/fill.sql"
for ((table = 1; table <= CHANGED; table++)); do
    echo "ALTER TABLE t_$table ADD COLUMN more int; CREATE INDEX ON t_$table (price); COMMENT ON TABLE t_$table IS 'changed';"
done > "$WORK/change.sql"

declare -A PORTS SHOWN
on() { psql -h 127.0.0.1 -p "${PORTS[$1]}" -U postgres -qAt -v ON_ERROR_STOP=1 postgres "${@:2}"; }

# timed SIDE STEP: the milliseconds of a file of statements.
timed() {
    local from
    from=$(now_ms)
    on "$1" -f "$WORK/$2.sql" > "$WORK/out" 2>&1 || violation "$1, $2: $(tail -n 1 "$WORK/out")"
    SHOWN[$1,$2]=$(($(now_ms) - from))
}

resident() { awk '/^VmRSS:/ { print $2 }' "/proc/$SERVER_PID/status"; }

all_there() {
    local tables rows
    tables=$(on "$1" -c "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE 't\_%'")
    rows=$(on "$1" -c "SELECT count(*) + sum(price) FROM t_$TABLES")
    [ "$tables $rows" = "$TABLES $((ROWS + ROWS * (ROWS + 1) / 2))" ] || violation "$1: $tables tables, $rows"
}

# turn SIDE: all but the start.
turn() {
    timed "$1" make
    timed "$1" fill
    timed "$1" change
}

PORTS[thermocline]=$PORT
start_server "$WORK/data" "$LIMIT"
wait_for_answer
before=$(resident)
turn thermocline
# PostgreSQL has it in the files' cache and, once more, in each session.
SHOWN[thermocline,memory]=$((($(resident) - before) / 1024))
SHOWN[postgresql,memory]=-
kill_server
SHOWN[thermocline,files]=$(du -sm "$WORK/data" | cut -f 1)
start_server "$WORK/data" "$LIMIT"
wait_for_answer
SHOWN[thermocline,start]=$ANSWERED_MS
all_there thermocline
stop_server
SIDES=(thermocline)
if [ -n "$PG_BIN" ]; then
    SIDES+=(postgresql)
    PORTS[postgresql]=$PG_PORT
    start_postgresql 512MB
    turn postgresql
    kill_postgresql
    SHOWN[postgresql,files]=$(du -sm "$WORK/postgresql/data" | cut -f 1)
    start_postgresql 512MB
    SHOWN[postgresql,start]=$PG_ANSWERED_MS
    all_there postgresql
    stop_postgresql
else
    say "PostgreSQL's server is not installed: no comparison"
fi

say "$TABLES tables of $ROWS rows; $(date -u +%F), $(nproc) cores, commit $(git -C "$ROOT" rev-parse --short HEAD)"
say "| | $(printf '%s | ' "${SIDES[@]}")"
say "|---|$(printf -- '---:|%.0s' "${SIDES[@]}")"
while read -r step what; do
    line="| $what |"
    for side in "${SIDES[@]}"; do line+=" ${SHOWN[$side,$step]} |"; done
    say "$line"
done <<< "make \`CREATE TABLE\`, all, ms
fill \`INSERT … SELECT\`, all, ms
change \`ALTER TABLE\`, \`CREATE INDEX\`, \`COMMENT\`, $CHANGED of each, ms
memory memory, MB
files files when it was killed, MB
start first answer after kill -9, ms"
finish
