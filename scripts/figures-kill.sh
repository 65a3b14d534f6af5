#!/usr/bin/env bash
# Shows that `bench figures` goes on after kill -9: kills it at random moments, lets it end, and
# looks that no result was made twice, that none is missing, that nothing is left behind, and
# that drawing again gives the same page. A minute with the figures that are there by default.
#
#   scripts/figures-kill.sh PROGRAM… -- [NAME…]     e.g. target/release/thermocline bench
#
# ROUNDS   how often it is killed (default: 20)

set -euo pipefail

program=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    program+=("$1")
    shift
done
[ $# -eq 0 ] || shift
[ ${#program[@]} -gt 0 ] || { echo "say which program, e.g. target/release/thermocline bench"; exit 2; }
[ $# -gt 0 ] || set -- 004.10 004.11b
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mkdir "$out/data"

runs() {
    find "$out/figures/runs" -name '*.json' -exec sha256sum {} + 2> /dev/null | sort || true
}

begin() {
    exec "${program[@]}" figures "$@" --quick --out "$out/figures" --dir "$out/data"
}

# What was there and is not any more as it was.
lost() { comm -23 <(echo "$kept") <(runs); }

kept=
for round in $(seq 1 "${ROUNDS:-20}"); do
    (begin "$@") > /dev/null 2>&1 &
    child=$!
    sleep "0.$((RANDOM % 900 + 100))"
    kill -9 $child 2> /dev/null || true
    wait $child 2> /dev/null || true
    sleep 0.1
    if [ -n "$(lost)" ]; then
        echo "round $round: a result was made twice"
        exit 1
    fi
    kept=$(runs)
done
echo "killed ${ROUNDS:-20} times, $(echo "$kept" | grep -c json || true) results were there"
(begin "$@") > "$out/first" 2> "$out/stderr" || [ $? = 3 ]
if [ -n "$(lost)" ]; then
    echo "the last round made a result anew"
    exit 1
fi
cp "$out/figures/figures.md" "$out/first.md"
(begin "$@") > "$out/second" 2> "$out/stderr" || [ $? = 3 ]
cmp "$out/first.md" "$out/figures/figures.md"
cmp "$out/first" "$out/second"
[ ! -s "$out/stderr" ] || { echo "something was run again:"; cat "$out/stderr"; exit 1; }
[ -z "$(ls -A "$out/data")" ] || { echo "something is left:"; ls "$out/data"; exit 1; }
echo "$(runs | wc -l) results, none made twice, nothing left, the same page again"
