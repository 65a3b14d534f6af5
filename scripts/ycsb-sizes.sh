#!/usr/bin/env bash
# What a growing database costs when its memory does not grow: YCSB in process with data
# of 1, 2, 4 and 8 times the memory limit (1 KB rows, Zipf 1.0, 90 % reads).
#
# Takes about five minutes with the defaults:
#   FACTORS="1 2 4 8" LIMIT_MB=256 WARMUP=20 SECONDS_MEASURED=30 THREADS=2 scripts/ycsb-sizes.sh
# Prints a markdown table; the JSON reports stay in OUT, when it is set.
# Exit code 0: the process stayed below its limit in all of them.

source "$(dirname "$0")/server.sh"
FACTORS=${FACTORS:-1 2 4 8}
LIMIT_MB=${LIMIT_MB:-256}
ROW_BYTES=${ROW_BYTES:-1024}
ZIPF=${ZIPF:-1.0}
READS=${READS:-0.9}
OUT=${OUT:-$WORK}
mkdir -p "$OUT"

# field KEY FILE: a top-level number of a report; "null" becomes a dash.
field() {
    local value
    value=$(sed -n "s/^  \"$1\": \(.*[^,]\),\{0,1\}$/\1/p" "$2")
    [ "$value" = null ] && echo - || echo "$value"
}
rounded() { awk -v v="$1" -v f="$2" 'BEGIN { if (v == "-") print v; else printf f "\n", v }'; }

TABLE="| data / limit | ops/s | p50 µs | p99 µs | p99.9 µs | not in memory | RSS max MB | read B/op | written B/op |
|---|---|---|---|---|---|---|---|---|"
for factor in $FACTORS; do
    report=$OUT/ycsb-$factor.json
    "$THERMOCLINE" bench ycsb -D "$WORK/data-$factor" \
        --rows $((factor * LIMIT_MB * 1024 * 1024 / ROW_BYTES)) --row-bytes "$ROW_BYTES" \
        --zipf "$ZIPF" --reads "$READS" --threads "${THREADS:-2}" --memory-limit "${LIMIT_MB}MB" \
        --warmup "${WARMUP:-20}" --seconds "${SECONDS_MEASURED:-30}" --json "$report"
    rss=$(field rss_max_bytes "$report")
    if [ "$rss" = - ]; then
        violation "$factor times: memory was not measured"
    elif [ "$rss" -gt $((LIMIT_MB * 1024 * 1024)) ]; then
        violation "$factor times: $rss bytes resident, limit $LIMIT_MB MB"
    fi
    miss=$(field miss_share "$report")
    [ "$miss" = - ] || miss=$(awk -v m="$miss" 'BEGIN { printf "%.1f %%", m * 100 }')
    row="| $factor"
    for value in "$(rounded "$(field ops_per_s "$report")" %.0f)" \
        "$(rounded "$(field p50_us "$report")" %.1f)" \
        "$(rounded "$(field p99_us "$report")" %.0f)" \
        "$(rounded "$(field p999_us "$report")" %.0f)" \
        "$miss" \
        "$(rounded "$([ "$rss" = - ] && echo - || echo $((rss / 1048576)))" %d)" \
        "$(rounded "$(field read_bytes_per_op "$report")" %.0f)" \
        "$(rounded "$(field written_bytes_per_op "$report")" %.0f)"; do
        row="$row | $value"
    done
    TABLE="$TABLE
$row |"
    [ -z "$REMOVE_WORK" ] || rm -rf "$WORK/data-$factor"
done
say "$TABLE"
finish
