#!/usr/bin/env bash
# How long a start takes after kill -9 under updates, from the start of the process to the
# first answered query (a row by its key), for growing amounts of data; and how fast the hot
# set is back in memory: the share of reads (Zipf 1.0) that find their row there, second by
# second.
#
# Beside it, with the same rows, killed in the same way: PostgreSQL 15 (its crash recovery
# replays the log since its last checkpoint; then its cache is cold) and Redis, which reads
# all data before it answers, from its append-only file and from its snapshot. Redis keeps
# all rows in memory: a size that has no room there is left out for it.
#
# Takes about six minutes and 12 GB of disk with the defaults:
#   SIZES_MB="256 1024 4096" SYSTEMS="thermocline postgresql redis" LIMIT_MB=256 \
#   UPDATE_SECONDS=5 WARM_SECONDS="1 2 5 10" scripts/restart-time.sh
# Prints markdown tables. Exit code 0: each start was answered with the right row.

source "$(dirname "$0")/server.sh"
source "$ROOT/scripts/postgresql.sh"
SIZES_MB=${SIZES_MB:-256 1024 4096}
SYSTEMS=${SYSTEMS:-thermocline postgresql redis}
LIMIT_MB=${LIMIT_MB:-256}
LIMIT=${LIMIT_MB}MB
UPDATE_SECONDS=${UPDATE_SECONDS:-5}
WARM_SECONDS=${WARM_SECONDS:-1 2 5 10}
REDIS_PORT=${REDIS_PORT:-55435}
ROW_BYTES=1000
TABLE="| data | rows | Thermocline, after kill -9 | after a clean stop | PostgreSQL, after kill -9 | Redis, append-only file | Redis, snapshot |
|---|---:|---:|---:|---:|---:|---:|"
WARM_TABLE="| data | system | reads from memory and reads a second after $(sed 's/ / s | /g' <<< "$WARM_SECONDS") s |
|---|---|$(sed 's/[0-9]* */---:|/g' <<< "$WARM_SECONDS")"

wants() { grep -qw "$1" <<< "$SYSTEMS"; }

update() {
    "$THERMOCLINE" bench ycsb --url "$1" --rows "$rows" --row-bytes $ROW_BYTES --zipf 1.0 --reads 0 \
        --warmup 0 --seconds "$UPDATE_SECONDS" --synchronous-commit > "$WORK/updates" 2>&1
}

check_row() {
    [ "$2" = "$ROW_BYTES" ] || violation "$1, $size MB: row $((rows / 2)) has \"$2\" bytes"
}

# Other keys each time: those of the run before are in memory already.
read_hot_set() {
    "$THERMOCLINE" bench ycsb --rows "$rows" --row-bytes $ROW_BYTES --zipf 1.0 --reads 1 \
        --warmup 0 --seed $RANDOM "$@" > /dev/null 2>&1
}

# watch_hot_set NAME URL QUERY: the share of reads that found their row in memory (of
# PostgreSQL: in its buffers), and reads a second, in the second before each of WARM_SECONDS.
# QUERY counts the reads that did not.
watch_hot_set() {
    local second=0 wanted before misses json=$WORK/warm.json line="| $size MB | $1 |"
    for wanted in $WARM_SECONDS; do
        if [ $((wanted - 1)) -gt $second ]; then
            read_hot_set --url "$2" --seconds $((wanted - 1 - second))
        fi
        before=$("$THERMOCLINE" bench query --url "$2" "$3")
        read_hot_set --url "$2" --seconds 1 --json "$json"
        misses=$(($("$THERMOCLINE" bench query --url "$2" "$3") - before))
        second=$wanted
        line="$line $(awk -v misses="$misses" -v ops="$(sed -n 's/.*"ops_per_s": *\([0-9.]*\).*/\1/p' "$json" | head -n 1)" \
            'BEGIN { printf "%.1f %%, %d", (ops > misses ? 100 * (1 - misses / ops) : 0), ops }') |"
    done
    WARM_TABLE="$WARM_TABLE
$line"
}

thermocline() {
    local data=$WORK/data-$size times= stop
    "$THERMOCLINE" bench ycsb -D "$data" --rows "$rows" --row-bytes $ROW_BYTES \
        --memory-limit "$LIMIT" --load-only > "$WORK/load" 2>&1
    start_server "$data" "$LIMIT"
    wait_for_answer
    update "$URL"
    kill_server
    for stop in kill_server stop_server; do
        start_server "$data" "$LIMIT"
        wait_for_answer "SELECT payload FROM usertable WHERE id = $((rows / 2))"
        times="$times $ANSWERED_MS ms |"
        [ $stop = stop_server ] || watch_hot_set thermocline "$URL" \
            "SELECT value FROM thermocline_counters WHERE name = 'misses'"
        check_row thermocline "$(ask "SELECT length(payload) FROM usertable WHERE id = $((rows / 2))")"
        local count
        count=$(ask "SELECT count(*) FROM usertable")
        [ "$count" = "$rows" ] || violation "$size MB: $count rows instead of $rows"
        stop_server
    done
    ROW="$ROW$times"
    [ -z "$REMOVE_WORK" ] || rm -rf "$data"
}

postgresql() {
    start_postgresql "$((LIMIT_MB / 4))MB" -c max_wal_size=4GB
    # The first run loads the rows.
    update "$PG_URL" || violation "postgresql: the load failed: $(tail -n 1 "$WORK/updates")"
    "$THERMOCLINE" bench query --url "$PG_URL" "CHECKPOINT"
    update "$PG_URL" || violation "postgresql: the updates failed: $(tail -n 1 "$WORK/updates")"
    kill_postgresql
    PG_FIRST_QUERY="SELECT payload FROM usertable WHERE id = $((rows / 2))" \
        start_postgresql "$((LIMIT_MB / 4))MB" -c max_wal_size=4GB
    ROW="$ROW $PG_ANSWERED_MS ms |"
    watch_hot_set postgresql "$PG_URL" "SELECT heap_blks_read FROM pg_statio_user_tables WHERE relname = 'usertable'"
    check_row postgresql "$("$THERMOCLINE" bench query --url "$PG_URL" "SELECT length(payload) FROM usertable WHERE id = $((rows / 2))")"
    stop_postgresql
    rm -rf "$WORK/postgresql"
}

# start_redis OPTION...: sets REDIS_PID and REDIS_ANSWERED_MS, the time until it gives a row.
start_redis() {
    local begin reply
    begin=$(now_ms)
    redis-server --port "$REDIS_PORT" --bind 127.0.0.1 --dir "$WORK/redis" --save "" --daemonize no "$@" \
        >> "$WORK/redis.log" 2>&1 &
    REDIS_PID=$!
    AT_END+=("kill -9 $REDIS_PID 2> /dev/null")
    until reply=$(redis-cli -p "$REDIS_PORT" strlen "row:$((rows / 2))" 2> /dev/null) && [[ $reply =~ ^[0-9]+$ ]]; do
        kill -0 "$REDIS_PID" 2> /dev/null || { violation "redis ended: $(tail -n 1 "$WORK/redis.log")"; return; }
        sleep 0.005
    done
    REDIS_ANSWERED_MS=$(($(now_ms) - begin))
    REDIS_BYTES=$reply
}

end_redis() {
    kill -9 "$REDIS_PID" 2> /dev/null || true
    wait "$REDIS_PID" 2> /dev/null || true
}

redis() {
    if [ "$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1024))" -lt $((size * 3 / 2 + 512)) ]; then
        ROW="$ROW no room | no room |"
        return
    fi
    mkdir -p "$WORK/redis"
    start_redis --appendonly yes --appendfsync everysec
    awk -v rows="$rows" 'BEGIN { p = sprintf("%1000s", ""); gsub(/ /, "r", p)
        for (n = 0; n < rows; n++) { k = "row:" n; printf "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1000\r\n%s\r\n", length(k), k, p } }' \
        | redis-cli -p "$REDIS_PORT" --pipe > "$WORK/redis-load" 2>&1 || violation "redis: $(tail -n 1 "$WORK/redis-load")"
    sleep 2
    end_redis
    start_redis --appendonly yes --appendfsync everysec
    ROW="$ROW $REDIS_ANSWERED_MS ms |"
    check_row "redis, append-only file" "$REDIS_BYTES"
    redis-cli -p "$REDIS_PORT" save > /dev/null
    end_redis
    start_redis --appendonly no
    ROW="$ROW $REDIS_ANSWERED_MS ms |"
    check_row "redis, snapshot" "$REDIS_BYTES"
    end_redis
    rm -rf "$WORK/redis"
}

if wants postgresql && ! find_postgresql; then
    say "PostgreSQL's server is not installed: left out"
    SYSTEMS=${SYSTEMS//postgresql/}
fi
if wants redis && ! { command -v redis-server && command -v redis-cli; } > /dev/null; then
    say "Redis is not installed (apt-get install redis-server): left out"
    SYSTEMS=${SYSTEMS//redis/}
fi

for size in $SIZES_MB; do
    rows=$((size * 1024 * 1024 / ROW_BYTES))
    ROW="| $size MB | $rows |"
    if wants thermocline; then thermocline; else ROW="$ROW - | - |"; fi
    if wants postgresql; then postgresql; else ROW="$ROW - |"; fi
    if wants redis; then redis; else ROW="$ROW - | - |"; fi
    say "$ROW"
    TABLE="$TABLE
$ROW"
done
say "$TABLE"
say "$WARM_TABLE"
finish
