#!/usr/bin/env bash
# Loading and indexing: COPY of CSV, INSERT of many rows a statement, CREATE INDEX, ADD PRIMARY KEY
# and pgbench's own load. Ours and PostgreSQL in turns, on the same disk with the same durability;
# with the processor time that the server takes.
#
# Needs root (for the cgroups that count processor time), pgbench and psql; PostgreSQL's turn
# needs its server, too. Takes about five minutes with the defaults:
#   ROWS=2000000 ROUNDS=3 SCALE=20 LIMIT=2GB scripts/bulk-load.sh
# Exit code 0: all ran. The figures are medians of the rounds.

source "$(dirname "$0")/server.sh"
source "$ROOT/scripts/postgresql.sh"
ROWS=${ROWS:-2000000}
ROUNDS=${ROUNDS:-3}
SCALE=${SCALE:-20}
LIMIT=${LIMIT:-2GB}
INSERTED=200000

[ "$(id -u)" = 0 ] || skip "cgroups need root"
for needed in pgbench psql; do
    command -v "$needed" > /dev/null || skip "$needed is not installed"
done
find_postgresql || true

# Rows like those of pgbench_accounts, about 100 bytes each.
awk -v rows="$ROWS" 'BEGIN {
    srand(1); filler = sprintf("%84s", ""); gsub(/ /, "x", filler)
    for (id = 1; id <= rows; id++)
        printf "%d,%d,%d,%s\n", id, id % 20, int(rand() * 10000) - 5000, filler
}' > "$WORK/rows.csv"
awk -F, -v rows="$INSERTED" 'NR > rows { exit }
    { printf "%s(%s,%s,%s,\x27%s\x27)%s\n", NR % 1000 == 1 ? "INSERT INTO loaded VALUES " : "", $1, $2, $3, $4,
      NR % 1000 ? "," : ";" }' "$WORK/rows.csv" > "$WORK/inserts.sql"

declare -A PORTS GROUPS_OF SECONDS_OF CPU_OF
SIDES=()

# timed SIDE STEP COMMAND...: adds to SECONDS_OF and CPU_OF.
timed() {
    local side=$1 step=$2 from before
    shift 2
    before=$(cat "${GROUPS_OF[$side]}/cpuacct.usage")
    from=$(now_ms)
    "$@" > "$WORK/out" 2>&1 || violation "$side, $step: $(tail -n 1 "$WORK/out")"
    SECONDS_OF[$side,$step]+=" $(($(now_ms) - from))"
    CPU_OF[$side,$step]+=" $((($(cat "${GROUPS_OF[$side]}/cpuacct.usage") - before) / 1000000))"
}

on() { psql -h 127.0.0.1 -p "${PORTS[$1]}" -U postgres -qAt -v ON_ERROR_STOP=1 postgres "${@:2}"; }

STEPS="copy key int_index text_index insert pgbench"
declare -A SHOWN=(
    [copy]="COPY of CSV, $ROWS rows"
    [key]="ADD PRIMARY KEY"
    [int_index]="CREATE INDEX, integers"
    [text_index]="CREATE INDEX, texts of 84 bytes"
    [insert]="INSERT, 1000 rows a statement, $INSERTED rows"
    [pgbench]="pgbench -i -s $SCALE"
)

turn() {
    local side=$1 columns="id int NOT NULL, kind int, price int, filler char(84)"
    on "$side" -c "DROP TABLE IF EXISTS loaded" -c "CREATE TABLE loaded ($columns)"
    timed "$side" copy on "$side" -c "\\copy loaded from '$WORK/rows.csv' csv"
    timed "$side" key on "$side" -c "ALTER TABLE loaded ADD PRIMARY KEY (id)"
    timed "$side" int_index on "$side" -c "CREATE INDEX ON loaded (price)"
    timed "$side" text_index on "$side" -c "CREATE INDEX ON loaded (filler, id)"
    on "$side" -c "DROP TABLE loaded" -c "CREATE TABLE loaded ($columns, PRIMARY KEY (id))"
    timed "$side" insert on "$side" -f "$WORK/inserts.sql"
    on "$side" -c "DROP TABLE loaded"
    timed "$side" pgbench pgbench -h 127.0.0.1 -p "${PORTS[$side]}" -U postgres -i -s "$SCALE" -q postgres
}

counted thermocline
SIDES+=(thermocline)
PORTS[thermocline]=$PORT
GROUPS_OF[thermocline]=$GROUP
start_server "$WORK/data" "$LIMIT" "$GROUP"
wait_for_answer
if [ -n "$PG_BIN" ]; then
    counted postgresql
    SIDES+=(postgresql)
    PORTS[postgresql]=$PG_PORT
    GROUPS_OF[postgresql]=$GROUP
    PG_GROUP=$GROUP
    start_postgresql 512MB -c maintenance_work_mem=256MB -c max_wal_size=4GB
else
    say "PostgreSQL's server is not installed: no comparison"
fi

for ((round = 0; round < ROUNDS; round++)); do
    for side in "${SIDES[@]}"; do turn "$side"; done
done

say "$ROUNDS rounds; $(date -u +%F), $(nproc) cores, commit $(git -C "$ROOT" rev-parse --short HEAD)"
say "| | $(for side in "${SIDES[@]}"; do printf '%s, ms | processor, ms | ' "$side"; done)"
say "|---|$(for side in "${SIDES[@]}"; do printf -- '---:|---:|'; done)"
for step in $STEPS; do
    line="| ${SHOWN[$step]} |"
    for side in "${SIDES[@]}"; do
        line+=" $(median "${SECONDS_OF[$side,$step]}") | $(median "${CPU_OF[$side,$step]}") |"
    done
    say "$line"
done
stop_server
finish
