#!/usr/bin/env bash
# An analytical query beside pgbench that just fits: what the query brings into memory (code,
# the allocator's free memory) must leave again, and the rows that made room must come back.
# Throughput from 5 s after the query's end on must be SHARE percent of what it was before.
#
# For each limit in LIMITS_MB, in a memory cgroup of the limit and a tenth:
#   LIMITS_MB="128 256 512" SCALE=60 CLIENTS=8 scripts/analytical-cliff.sh
# Needs root (for the cgroups) and pgbench. About two minutes for each limit.
# Exit code 0: nothing was killed, no limit was passed, and throughput came back.

source "$(dirname "$0")/server.sh"
source "$ROOT/scripts/memory-group.sh"
LIMITS_MB=${LIMITS_MB:-128 256 512}
SCALE=${SCALE:-60}
CLIENTS=${CLIENTS:-8}
WARM_SECONDS=${WARM_SECONDS:-30}
BEFORE_SECONDS=10
REST_SECONDS=5
AFTER_SECONDS=${AFTER_SECONDS:-20}
SHARE=${SHARE:-95}
QUERY=${QUERY:-select aid % 7, count(*) from pgbench_accounts group by 1}

[ "$(id -u)" = 0 ] || skip "memory cgroups need root"
command -v pgbench > /dev/null || skip "pgbench is not installed"

# memory: what thermocline_memory says, in one line, in megabytes.
memory() {
    ask "SELECT * FROM thermocline_memory" 2> /dev/null | tr '|' ' ' \
        | awk '{ v = $NF; n = $1; if (n ~ /^(resident|arena|metadata|floor)$/) printf "%s %.1f  ", n, v / 1048576 }'
}

# mean FROM TO: transactions a second by pgbench's progress, between two moments in Unix seconds.
mean() {
    sed -n 's/^progress: \([0-9.]*\) s, \([0-9.]*\) tps.*/\1 \2/p' "$WORK/progress" \
        | awk -v a="$1" -v b="$2" '$1 > a + 1 && $1 <= b { s += $2; n++ } END { printf "%.0f", n ? s / n : 0 }'
}

for limit in $LIMITS_MB; do
    GROUP_BYTES=$((limit * 1024 * 1024 * 11 / 10))
    make_group "cliff-$limit"
    start_server "$WORK/data-$limit" "${limit}MB" "$GROUP"
    "$THERMOCLINE" bench rss --pid "$SERVER_PID" --limit "${limit}MB" > "$WORK/rss" 2>&1 &
    rss=$!
    wait_for_answer
    pgbench -h 127.0.0.1 -p "$PORT" -U postgres -i -s "$SCALE" -q postgres > "$WORK/init" 2>&1 \
        || { violation "$limit MB: pgbench -i failed"; tail -n 5 "$WORK/init"; }
    total=$((WARM_SECONDS + BEFORE_SECONDS + 40 + REST_SECONDS + AFTER_SECONDS))
    pgbench -h 127.0.0.1 -p "$PORT" -U postgres -n -M prepared -c "$CLIENTS" -j 2 -T "$total" -P 1 \
        --progress-timestamp --max-tries=100 postgres > "$WORK/out" 2> "$WORK/progress" &
    load=$!
    sleep $((WARM_SECONDS + BEFORE_SECONDS))
    begin=$(date +%s.%N)
    say "$limit MB before: $(memory)"
    ask "$QUERY" > "$WORK/answer" || violation "$limit MB: the query failed: $(tail -n 1 "$WORK/answer")"
    end=$(date +%s.%N)
    sleep "$REST_SECONDS"
    say "$limit MB after:  $(memory)"
    sleep "$AFTER_SECONDS"
    kill -INT "$load" 2> /dev/null || true
    wait "$load" 2> /dev/null || true
    before=$(mean "$(echo "$begin - $BEFORE_SECONDS" | bc)" "$begin")
    after=$(mean "$(echo "$end + $REST_SECONDS" | bc)" "$(echo "$end + $REST_SECONDS + $AFTER_SECONDS" | bc)")
    say "$limit MB: $before tps before, $after from $REST_SECONDS s after a query of $(echo "$end - $begin" | bc) s"
    [ $((after * 100)) -ge $((before * SHARE)) ] \
        || violation "$limit MB: throughput did not come back: $after of $before tps"
    is_running || { violation "$limit MB: the server is gone"; finish; }
    stop_server
    wait "$rss" || violation "$limit MB: the limit was passed"
    cat "$WORK/rss"
    show_group "$limit MB" "$GROUP"
    rm -rf "$WORK/data-$limit"
done
finish
