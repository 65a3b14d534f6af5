#!/usr/bin/env bash
# What a growing database costs when its memory does not grow: YCSB in process with data
# of 1, 2, 4, 8 and 16 times the memory limit (1 KB rows, Zipf 1.0, 90 % reads); and, with
# data that fit, what partitions and threads cost.
#
# Takes about twelve minutes with the defaults:
#   FACTORS="1 2 4 8 16" LIMIT_MB=256 WARMUP=20 SECONDS_MEASURED=30 THREADS=2 \
#   PARTITIONS="1 4 16 64" PARTITION_THREADS="1 2" scripts/ycsb-sizes.sh
# Prints markdown tables; the JSON reports stay in OUT, when it is set.
# Exit code 0: the process stayed below its limit in all of them.

source "$(dirname "$0")/server.sh"
FACTORS=${FACTORS-1 2 4 8 16}
PARTITIONS=${PARTITIONS-1 4 16 64}
PARTITION_THREADS=${PARTITION_THREADS:-1 2}
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
# rounded KEY FORMAT [FACTOR]: a field of the last report.
rounded() { awk -v v="$(field "$1" "$REPORT")" -v f="$2" -v by="${3:-1}" 'BEGIN { if (v == "-" || v == "") printf "-"; else printf f, v * by }'; }

# ycsb NAME DATA_MB DIRECTORY [OPTION...]: a run; its report is REPORT.
ycsb() {
    REPORT=$OUT/ycsb-$1.json
    "$THERMOCLINE" bench ycsb -D "$3" --rows $(($2 * 1024 * 1024 / ROW_BYTES)) --row-bytes "$ROW_BYTES" \
        --zipf "$ZIPF" --reads "$READS" --memory-limit "${LIMIT_MB}MB" \
        --warmup "${WARMUP:-20}" --seconds "${SECONDS_MEASURED:-30}" --json "$REPORT" "${@:4}"
    local rss
    rss=$(field rss_max_bytes "$REPORT")
    if [ "$rss" = - ]; then
        violation "$1: memory was not measured"
    elif [ "$rss" -gt $((LIMIT_MB * 1024 * 1024)) ]; then
        violation "$1: $rss bytes resident, limit $LIMIT_MB MB"
    fi
}

SIZES="| data / limit | ops/s | processor µs/op | p50 µs | p99 µs | p99.9 µs | not in memory | RSS max MB | read B/op | written B/op |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
for factor in $FACTORS; do
    ycsb "$factor" $((factor * LIMIT_MB)) "$WORK/data-$factor" --threads "${THREADS:-2}"
    SIZES="$SIZES
| $factor | $(rounded ops_per_s %.0f) | $(rounded cpu_us_per_op %.2f) | $(rounded p50_us %.1f) | $(rounded p99_us %.0f) | $(rounded p999_us %.0f) | $(rounded miss_share '%.1f %%' 100) | $(rounded rss_max_bytes %.0f 9.5367e-7) | $(rounded read_bytes_per_op %.0f) | $(rounded written_bytes_per_op %.0f) |"
    [ -z "$REMOVE_WORK" ] || rm -rf "$WORK/data-$factor"
done
[ -z "$FACTORS" ] || say "$SIZES"

FITS="| partitions | threads | ops/s | processor µs/op | p99 µs | p99.9 µs |
|---:|---:|---:|---:|---:|---:|"
for partitions in $PARTITIONS; do
    for threads in $PARTITION_THREADS; do
        ycsb "$partitions-$threads" $((LIMIT_MB / 2)) "$WORK/fits-$partitions" \
            --partitions "$partitions" --threads "$threads" --in-flight "$threads"
        FITS="$FITS
| $partitions | $threads | $(rounded ops_per_s %.0f) | $(rounded cpu_us_per_op %.2f) | $(rounded p99_us %.1f) | $(rounded p999_us %.0f) |"
    done
    [ -z "$REMOVE_WORK" ] || rm -rf "$WORK/fits-$partitions"
done
[ -z "$PARTITIONS" ] || say "$FITS"
finish
