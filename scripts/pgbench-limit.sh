#!/usr/bin/env bash
# pgbench over data several times larger than memory, in a memory cgroup of the limit and
# a tenth: the server must not be killed, must stay below its limit, and the books must
# balance afterwards. Then PostgreSQL, in a cgroup of the same size, on the same disk, with
# the same durability (fsync and synchronous_commit on), in turns with it.
#
# Needs root (for the cgroups) and pgbench; PostgreSQL's turn needs its server, too.
# Takes about six minutes with the defaults:
#   SCALE=50 SECONDS_EACH=60 LIMIT_MB=256 CLIENTS=8 scripts/pgbench-limit.sh
# Exit code 0: nothing was killed, no limit was passed, all sums agree.

source "$(dirname "$0")/server.sh"
source "$ROOT/scripts/postgresql.sh"
source "$ROOT/scripts/memory-group.sh"
SCALE=${SCALE:-50}
SECONDS_EACH=${SECONDS_EACH:-60}
LIMIT_MB=${LIMIT_MB:-256}
CLIENTS=${CLIENTS:-8}
GROUP_BYTES=$((LIMIT_MB * 1024 * 1024 * 11 / 10))

[ "$(id -u)" = 0 ] || skip "memory cgroups need root"
command -v pgbench > /dev/null || skip "pgbench is not installed"
find_postgresql || true

# run_pgbench NAME PORT MODE: sets TPS.
run_pgbench() {
    local out=$WORK/pgbench-$1-$3
    if ! pgbench -h 127.0.0.1 -p "$2" -U postgres -n -c "$CLIENTS" -j 2 -T "$SECONDS_EACH" \
        -M "$3" --max-tries=100 postgres > "$out" 2>&1; then
        violation "$1 -M $3: pgbench failed"
        tail -n 5 "$out"
    fi
    TPS=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$out")
    local failed
    failed=$(sed -n 's/^number of failed transactions: \([0-9]*\).*/\1/p' "$out")
    [ "${failed:-0}" = 0 ] || violation "$1 -M $3: $failed transactions failed"
    say "$1 -M $3: ${TPS:-no} tps, $(grep -E '^latency average|^total number of retries|^number of transactions retried' "$out" | tr '\n' ';')"
}

# check_sums NAME URL: four sums that must be one.
check_sums() {
    local sums
    sums=$(for query in "sum(abalance) FROM pgbench_accounts" "sum(tbalance) FROM pgbench_tellers" \
        "sum(bbalance) FROM pgbench_branches" "sum(delta) FROM pgbench_history"; do
        "$THERMOCLINE" bench query --url "$2" "SELECT $query"
    done | tr '\n' ' ')
    say "$1: sums of accounts, tellers, branches, history: $sums"
    [ "$(echo "$sums" | tr ' ' '\n' | sed '/^$/d' | sort -u | wc -l)" = 1 ] \
        && [ "$(echo "$sums" | wc -w)" = 4 ] || violation "$1: the books do not balance"
}

initialise() {
    local begin
    begin=$(now_ms)
    pgbench -h 127.0.0.1 -p "$2" -U postgres -i -s "$SCALE" -q postgres > "$WORK/init-$1" 2>&1 || {
        violation "$1: pgbench -i failed"
        tail -n 5 "$WORK/init-$1"
        finish
    }
    say "$1: pgbench -i -s $SCALE took $(($(now_ms) - begin)) ms"
}

make_group thermocline
TC_GROUP=$GROUP
start_server "$WORK/data" "${LIMIT_MB}MB" "$TC_GROUP"
"$THERMOCLINE" bench rss --pid "$SERVER_PID" --limit "${LIMIT_MB}MB" > "$WORK/rss" 2>&1 &
RSS_PID=$!
wait_for_answer
initialise thermocline "$PORT"
if [ -n "$PG_BIN" ]; then
    make_group postgresql
    PG_GROUP=$GROUP
    start_postgresql 64MB
    initialise postgresql "$PG_PORT"
else
    say "PostgreSQL's server is not installed: no comparison"
fi

for mode in prepared simple; do
    run_pgbench thermocline "$PORT" "$mode"
    ours=$TPS
    is_running || { violation "the server is gone"; finish; }
    if [ -n "$PG_BIN" ]; then
        run_pgbench postgresql "$PG_PORT" "$mode"
        awk -v a="${ours:-0}" -v b="${TPS:-0}" -v m="$mode" \
            'BEGIN { if (a > 0 && b > 0) printf "ratio -M %s: %.2f\n", m, a / b }'
    fi
done

check_sums thermocline "$URL"
stop_server
wait "$RSS_PID" || violation "thermocline passed its memory limit"
cat "$WORK/rss"
show_group thermocline "$TC_GROUP"
if [ -n "$PG_BIN" ]; then
    check_sums postgresql "$PG_URL"
    show_group postgresql "$PG_GROUP"
fi
finish
