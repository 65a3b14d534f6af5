#!/usr/bin/env bash
# Instructions of one read and one update of a row in memory (100 bytes, by the primary
# key, a hash index or a B+tree, one-shot, commit asynchronous), counted by valgrind:
# repeatable on noisy machines, so that changes can be held against each other.
#
# Needs valgrind. Takes about six minutes:
#   OPERATIONS=20000 scripts/instructions.sh
# Prints a markdown table.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
OPERATIONS=${OPERATIONS:-20000}
command -v valgrind > /dev/null || { echo "SKIPPED: valgrind is not installed"; exit 0; }
cargo build --release -p thermocline-bench --example hot_path
PROGRAM=${CARGO_TARGET_DIR:-target}/release/examples/hot_path
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# count OPERATION TIMES KEY: instructions of the client's thread; the fewest of three runs,
# since a thread that waits for another may spin.
count() {
    for _ in 1 2 3; do
        rm -f "$WORK"/out*
        timeout 120 valgrind --tool=callgrind --separate-threads=yes --callgrind-out-file="$WORK/out" \
            "$PROGRAM" "$1" "$2" "$3" > /dev/null 2> "$WORK/err" \
            || { tail -n 5 "$WORK/err" >&2; exit 1; }
        # Memory is zeroed when the database opens, sometimes more and sometimes less of it.
        callgrind_annotate --threshold=100 "$WORK/out-01" | awk '
            { count = $1; gsub(",", "", count) }
            /PROGRAM TOTALS/ { total = count }
            /__memset/ && !/=>/ { zeroing += count }
            END { printf "%d\n", total - zeroing }'
    done | sort -n | head -n 1
}

echo "| operation | hash | btree |"
echo "|---|---|---|"
for operation in read update; do
    line="| $operation"
    for key in hash btree; do
        few=$(count "$operation" "$OPERATIONS" "$key")
        many=$(count "$operation" $((OPERATIONS * 3)) "$key")
        line+=" | $(((many - few) / (OPERATIONS * 2)))"
    done
    echo "$line |"
done
