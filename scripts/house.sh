#!/usr/bin/env bash
# The structure of the engine in figures. What must hold is held by crates/thermocline/tests/tidy.rs:
# rooms, circles, closed fields, the length of functions, the files of a policy.
#
#   scripts/house.sh
#
# Prints a markdown table.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
SRC=crates/engine/src

# open_fields FILE STRUCT: fields that others can write.
open_fields() {
    awk -v begin="struct $2 \\\\{" '$0 ~ begin { on = 1; next } on && /^}/ { exit } on && /^ +pub/ { n++ } END { print n + 0 }' "$1"
}

# policy_files WORD: files of the product that know a policy of identification.
policy_files() {
    grep -rl --include='*.rs' "$1" $SRC | grep -cv tests.rs
}

echo "| | |"
echo "|---|---|"
echo "| open fields of Database | $(open_fields $SRC/database/mod.rs Database) |"
echo "| open fields of Parts | $(open_fields $SRC/parts/mod.rs Parts) |"
echo "| open fields of a table's rows | $(open_fields $SRC/rows/row_state.rs TablePartition) |"
echo "| files with impl Database | $(grep -rlE '^impl.* Database( |$)' $SRC | wc -l) |"
echo "| writes of a row's word outside row_state | $(grep -rnE 'directory(\(\)|_mut\(\))?\.(set|set_unsaved|restore|release)\(' $SRC | grep -cv row_state || true) |"
echo "| files that know S3-FIFO | $(policy_files S3Fifo) |"
echo "| lines of engine, storage and values | $(find $SRC crates/storage/src crates/values/src -name '*.rs' -exec cat {} + | wc -l) |"
