#!/usr/bin/env bash
# How long a start takes after kill -9, from the start of the process to the first
# answered query (a row by its key), for growing amounts of data. Updates run before the
# kill, so that there is a log to replay.
#
# Takes about four minutes and 10 GB of disk with the defaults:
#   SIZES_MB="256 1024 4096" LIMIT_MB=256 UPDATE_SECONDS=5 scripts/restart-time.sh
# Prints a markdown table. Exit code 0: each start was answered with the right row.

source "$(dirname "$0")/server.sh"
SIZES_MB=${SIZES_MB:-256 1024 4096}
LIMIT=${LIMIT_MB:-256}MB
UPDATE_SECONDS=${UPDATE_SECONDS:-5}
ROW_BYTES=1000
TABLE="| data | rows | first answer after kill -9 | first answer after a clean stop |
|---|---|---|---|"

for size in $SIZES_MB; do
    DATA=$WORK/data-$size
    rows=$((size * 1024 * 1024 / ROW_BYTES))
    "$THERMOCLINE" bench ycsb -D "$DATA" --rows "$rows" --row-bytes $ROW_BYTES \
        --memory-limit "$LIMIT" --load-only
    start_server "$DATA" "$LIMIT"
    wait_for_answer
    "$THERMOCLINE" bench ycsb --url "$URL" --rows "$rows" --row-bytes $ROW_BYTES --reads 0 \
        --warmup 0 --seconds "$UPDATE_SECONDS" --synchronous-commit > "$WORK/updates"
    kill_server
    times=
    for stop in kill_server stop_server; do
        start_server "$DATA" "$LIMIT"
        wait_for_answer "SELECT payload FROM usertable WHERE id = $((rows / 2))"
        times="$times| $ANSWERED_MS ms "
        bytes=$(ask "SELECT length(payload) FROM usertable WHERE id = $((rows / 2))")
        [ "$bytes" = $ROW_BYTES ] || violation "$size MB: row $((rows / 2)) has \"$bytes\" bytes"
        count=$(ask "SELECT count(*) FROM usertable")
        [ "$count" = "$rows" ] || violation "$size MB: $count rows instead of $rows"
        # The second turn starts after a clean stop of the first.
        [ $stop = stop_server ] || stop_server
    done
    stop_server
    TABLE="$TABLE
| $size MB | $rows $times|"
    [ -z "$REMOVE_WORK" ] || rm -rf "$DATA"
done
say "$TABLE"
finish
