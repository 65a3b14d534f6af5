#!/usr/bin/env bash
# Rows of 100 bytes to a megabyte, mixed, many times what memory holds, in a memory cgroup of
# the limit and a tenth: no statement may fail, the server must not be killed by the kernel,
# and after each kill -9 it opens in the same cgroup with all that was acknowledged.
#
# Needs root (for the cgroup) and psql; says so and does nothing else without them. About three
# minutes with the defaults:
#   LIMITS_MB="128 256" ROUNDS=2 TIMES=8 CLIENTS=4 scripts/large-rows.sh
# Exit code 0: all held.

source "$(dirname "$0")/server.sh"
LIMITS_MB=${LIMITS_MB:-128 256}
ROUNDS=${ROUNDS:-2}
TIMES=${TIMES:-8}
CLIENTS=${CLIENTS:-4}

[ "$(id -u)" = 0 ] || skip "memory cgroups need root"
command -v psql > /dev/null || skip "psql is not installed"

# make_group BYTES: a memory cgroup, version 1 or 2; sets GROUP.
make_group() {
    if [ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
        GROUP=/sys/fs/cgroup/memory/thermocline-large-$$
        mkdir "$GROUP" || skip "memory cgroups can't be made here"
        echo "$1" > "$GROUP/memory.limit_in_bytes"
        echo "$1" > "$GROUP/memory.memsw.limit_in_bytes" 2> /dev/null || true
    elif grep -qw memory /sys/fs/cgroup/cgroup.subtree_control 2> /dev/null; then
        GROUP=/sys/fs/cgroup/thermocline-large-$$
        mkdir "$GROUP" || skip "memory cgroups can't be made here"
        echo "$1" > "$GROUP/memory.max"
        echo 0 > "$GROUP/memory.swap.max" 2> /dev/null || true
    else
        skip "there is no memory cgroup"
    fi
}

remove_group() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do rmdir "$GROUP" 2> /dev/null && return; sleep 0.2; done
}

check_alive() {
    local killed
    killed=$(sed -n 's/^oom_kill //p' "$GROUP/memory.oom_control" 2> /dev/null \
        || sed -n 's/^oom_kill //p' "$GROUP/memory.events")
    [ "${killed:-0}" = 0 ] || violation "$1: the kernel killed it"
    is_running || violation "$1: the server is gone: $(tail -n 2 "$WORK/server.log")"
    local peak
    peak=$(sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$SERVER_PID/status" || echo 0)
    say "$1: at most $((${peak:-0} / 1024)) MB of memory"
    [ $((${peak:-0} / 1024)) -le "$LIMIT_MB" ] || violation "$1: the memory limit was passed"
}

# A client's statements from number $1 on, every $2-th, $3 of them: a fourth of 0.1 to 2 kB, a fourth of 20 kB, half of
# 0.1 to 1 MB, some of them changed and deleted again. What was acknowledged goes to standard output.
statements() {
    awk -v from="$1" -v step="$2" -v count="$3" 'BEGIN {
        for (i = 0; i < count; i++) {
            id = from + i * step
            kind = i % 4
            times = kind == 0 ? 3 + id % 60 : kind == 1 ? 600 : 3000 + (id * 7919) % 29300
            printf "INSERT INTO t VALUES (%d, repeat(lpad(%d::text, 32, \047#\047), %d));\n\\echo i %d %d\n", id, id, times, id, times
            if (i % 16 == 11) {
                printf "UPDATE t SET v = repeat(lpad(%d::text, 32, \047#\047), %d) WHERE id = %d;\n\\echo i %d %d\n", id, times + 100, id, id, times + 100
            }
            if (i % 16 == 15) {
                printf "DELETE FROM t WHERE id = %d;\n\\echo d %d 0\n", id, id
            }
        }
    }'
}

for LIMIT_MB in $LIMITS_MB; do
    say "-- rows of up to a megabyte, memory limit $LIMIT_MB MB"
    make_group $((LIMIT_MB * 1024 * 1024 * 11 / 10))
    DATA=$WORK/data-$LIMIT_MB
    start_server "$DATA" "${LIMIT_MB}MB" "$GROUP"
    wait_for_answer
    ask "CREATE TABLE t (id bigint PRIMARY KEY, v text NOT NULL)" > /dev/null
    # On the average a row has 280 kB.
    COUNT=$((LIMIT_MB * TIMES * 1024 / 280 / ROUNDS / CLIENTS))
    : > "$WORK/acknowledged"
    cuts=0
    for round in $(seq "$ROUNDS"); do
        pids=
        for client in $(seq "$CLIENTS"); do
            from=$((round * 10000000 + client))
            statements $from "$CLIENTS" "$COUNT" > "$WORK/sql-$client"
            psql -X -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$PORT" -U postgres -f "$WORK/sql-$client" \
                postgres > "$WORK/out-$client" 2> "$WORK/error-$client" &
            pids="$pids $!"
        done
        # Every other round is cut off while statements run.
        if [ $((round % 2)) = 0 ]; then sleep 2; else wait $pids || true; fi
        check_alive "round $round"
        kill_server
        wait $pids 2> /dev/null || true
        for client in $(seq "$CLIENTS"); do
            cat "$WORK/out-$client" >> "$WORK/acknowledged"
            if grep ERROR "$WORK/error-$client"; then violation "round $round: a statement failed"; fi
        done
        start_server "$DATA" "${LIMIT_MB}MB" "$GROUP"
        wait_for_answer
        say "round $round: opened in $ANSWERED_MS ms, $(wc -l < "$WORK/acknowledged") acknowledged"
        # What was acknowledged last of each row is there. A client that was cut off may have had
        # one statement more done than acknowledged.
        # By their keys: a query over all rows is another trial.
        awk '{ last[$2] = $1 == "i" ? $3 * 32 : 0 } END { for (id in last) if (last[id]) print id "|" last[id] }' \
            "$WORK/acknowledged" | sort > "$WORK/expected"
        awk '{ all[$2] } END { for (id in all) printf "SELECT id, length(v) FROM t WHERE id = %d;\n", id }' "$WORK/acknowledged" \
            | psql -X -q -At -h 127.0.0.1 -p "$PORT" -U postgres postgres 2>&1 | sort > "$WORK/found" || true
        different=$(comm -3 "$WORK/expected" "$WORK/found" | tr -d '\t' | cut -d'|' -f1 | sort -u | wc -l)
        [ $((round % 2)) = 1 ] || cuts=$((cuts + 1))
        [ "$different" -le $((CLIENTS * cuts)) ] || violation "round $round: $different rows are not as acknowledged"
        # Contents, of two hundred of them.
        shuf -n 200 "$WORK/expected" | awk -F'|' '{ printf "SELECT id FROM t WHERE id = %d AND v <> repeat(lpad(%d::text, 32, \047#\047), length(v) / 32);\n", $1, $1 }' > "$WORK/sample"
        wrong=$(psql -X -q -At -h 127.0.0.1 -p "$PORT" -U postgres -f "$WORK/sample" postgres 2>&1) || true
        [ -z "$wrong" ] || violation "round $round: rows with other contents: $wrong"
        check_alive "round $round, opened again"
    done
    kill_server
    remove_group
done

finish
