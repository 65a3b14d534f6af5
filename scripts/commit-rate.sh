#!/usr/bin/env bash
# How many commits a second reach the disk (synchronous_commit=on) with 1, 8 and 64 clients,
# beside PostgreSQL 15 with fsync and synchronous_commit on, on the same file system, in
# turns; medians of REPEATS runs. Two transactions: an update of one row by its key, and an
# insert of one row; prepared statements, driven by pgbench, so that both have one client.
#
# Takes about four minutes; needs pgbench and PostgreSQL's server (without it: our figures).
#   CLIENTS="1 8 64" REPEATS=3 SECONDS_EACH=5 SCALE=10 LIMIT_MB=1024 scripts/commit-rate.sh
# Prints a markdown table. Exit code 0: all rows that were acknowledged are there.

source "$(dirname "$0")/server.sh"
CLIENTS=${CLIENTS:-1 8 64}
REPEATS=${REPEATS:-3}
SECONDS_EACH=${SECONDS_EACH:-5}
SCALE=${SCALE:-10}
LIMIT_MB=${LIMIT_MB:-1024}
source "$ROOT/scripts/postgresql.sh"

command -v pgbench > /dev/null || skip "pgbench is not installed"

cat > "$WORK/update.sql" <<SQL
\\set id random(1, 100000 * $SCALE)
\\set delta random(-5000, 5000)
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :id;
SQL
cat > "$WORK/insert.sql" <<SQL
\\set delta random(-5000, 5000)
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :client_id, :delta, CURRENT_TIMESTAMP);
SQL

INSERTED_thermocline=0
INSERTED_postgresql=0

# run NAME PORT SCRIPT CLIENTS: sets TPS.
run() {
    local out=$WORK/pgbench-out threads=$(($4 < 2 ? $4 : 2)) done_count
    pgbench -h 127.0.0.1 -p "$2" -U postgres -n -M prepared -c "$4" -j "$threads" -T "$SECONDS_EACH" \
        --max-tries=100 -f "$WORK/$3.sql" postgres > "$out" 2>&1 || violation "$1: pgbench failed: $(tail -n 2 "$out")"
    TPS=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$out")
    if [ "$3" = insert ]; then
        done_count=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' "$out")
        declare -g "INSERTED_$1=$(($(eval echo "\$INSERTED_$1") + done_count))"
    fi
}


initialise() {
    pgbench -h 127.0.0.1 -p "$1" -U postgres -i -s "$SCALE" -q postgres > "$WORK/init" 2>&1 \
        || { violation "pgbench -i failed: $(tail -n 2 "$WORK/init")"; finish; }
}

start_server "$WORK/data" "${LIMIT_MB}MB"
wait_for_answer
initialise "$PORT"
if find_postgresql; then
    start_postgresql "$((LIMIT_MB / 4))MB"
    initialise "$PG_PORT"
else
    say "PostgreSQL's server is not installed: no comparison"
fi

TABLE="| transaction | clients | Thermocline, commits/s | PostgreSQL | ratio |
|---|---:|---:|---:|---:|"
for script in update insert; do
    for clients in $CLIENTS; do
        ours= theirs=
        for _ in $(seq "$REPEATS"); do
            run thermocline "$PORT" $script "$clients"
            ours="$ours $TPS"
            if [ -n "$PG_BIN" ]; then
                run postgresql "$PG_PORT" $script "$clients"
                theirs="$theirs $TPS"
            fi
        done
        ours=$(median "$ours")
        theirs=$(median "$theirs")
        row=$(awk -v s=$script -v c="$clients" -v a="$ours" -v b="${theirs:-0}" 'BEGIN {
            printf "| %s | %d | %.0f | %s | %s |", s, c, a, (b > 0 ? sprintf("%.0f", b) : "-"), (b > 0 ? sprintf("%.2f", a / b) : "-") }')
        say "$row"
        TABLE="$TABLE
$row"
    done
done

kill_server
start_server "$WORK/data" "${LIMIT_MB}MB"
wait_for_answer "SELECT 1"
found=$(ask "SELECT count(*) FROM pgbench_history")
# pgbench counts what was answered before its time was over.
[ "$found" -ge "$INSERTED_thermocline" ] || violation "$INSERTED_thermocline inserts acknowledged, $found there after kill -9"
say "after kill -9: $found rows of history, $INSERTED_thermocline were acknowledged"
stop_server
say "$TABLE"
finish
