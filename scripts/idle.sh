#!/usr/bin/env bash
# What a server costs that nobody asks anything: processor time and wake-ups of all its threads,
# empty and with rows that are larger than memory, from one second after the last work on.
#
#   LIMITS_MB="128 1024" SECONDS_IDLE=60 scripts/idle.sh
# Needs pgbench. Exit code 0: at most 0.1% of a core and 10 wake-ups a second.

source "$(dirname "$0")/server.sh"
LIMITS_MB=${LIMITS_MB:-128 1024}
SCALE=${SCALE:-20}
SECONDS_IDLE=${SECONDS_IDLE:-60}
PERCENT_MAX=${PERCENT_MAX:-0.1}
WAKE_UPS_MAX=${WAKE_UPS_MAX:-10}

command -v pgbench > /dev/null || skip "pgbench is not installed"

# spent: microseconds on a processor, and how often threads went to sleep, so far.
spent() {
    cat /proc/"$SERVER_PID"/task/*/schedstat | awk '{ ns += $1 } END { printf "%d ", ns / 1000 }'
    cat /proc/"$SERVER_PID"/task/*/status | awk '/^voluntary_ctxt/ { n += $2 } END { print n }'
}

# by_thread: the threads that were on a processor most.
by_thread() {
    local task
    for task in /proc/"$SERVER_PID"/task/*; do
        echo "$(cat "$task/comm") $(cut -d' ' -f1 "$task/schedstat")"
    done | awk '{ ns[$1] += $2 } END { for (n in ns) print n, ns[n] }' | sort
}

# measure NAME: over SECONDS_IDLE.
measure() {
    local before after
    sleep 1
    by_thread > "$WORK/before"
    before=$(spent)
    sleep "$SECONDS_IDLE"
    after=$(spent)
    by_thread > "$WORK/after"
    local most
    most=$(join "$WORK/before" "$WORK/after" | awk '{ print ($3 - $2) / 1000, $1 }' | sort -rn \
        | head -n 3 | awk -v s="$SECONDS_IDLE" '{ printf " %s %.0f", $2, $1 / s }')
    awk -v n="$1" -v b="$before" -v a="$after" -v s="$SECONDS_IDLE" -v most="$most" \
        -v p="$PERCENT_MAX" -v w="$WAKE_UPS_MAX" 'BEGIN {
        split(b, x); split(a, y)
        percent = (y[1] - x[1]) / s / 10000; wakes = (y[2] - x[2]) / s
        printf "%-28s %6.3f%% of a core, %5.1f wake-ups a second; µs a second:%s\n", n, percent, wakes, most
        exit percent > p || wakes > w }' || violation "$1 costs too much"
}

for limit in $LIMITS_MB; do
    start_server "$WORK/data-$limit" "${limit}MB"
    wait_for_answer
    measure "$limit MB, empty"
    pgbench -h 127.0.0.1 -p "$PORT" -U postgres -i -s "$SCALE" -q postgres > "$WORK/init" 2>&1 \
        || violation "pgbench -i failed"
    pgbench -h 127.0.0.1 -p "$PORT" -U postgres -n -M prepared -c 4 -T 10 --max-tries=100 postgres \
        > "$WORK/run" 2>&1 || violation "pgbench failed"
    ask "CHECKPOINT" > /dev/null
    # A session that is there and says nothing.
    (sleep $((SECONDS_IDLE + 5)) | psql -h 127.0.0.1 -p "$PORT" -U postgres postgres > /dev/null 2>&1) &
    measure "$limit MB, after pgbench -s $SCALE"
    wait $! || true
    stop_server
done
finish
