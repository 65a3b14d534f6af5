#!/usr/bin/env bash
# Damaged copies of all that is read from a device, for longer than the tests do it: manifest,
# images, blocks of records and of columns, the Block Table, the log and its records, the catalog.
# Each is changed in a few places, has its checksums made right again, and is read: that must be
# an error in words, or no harm, without a panic or memory out of proportion.
#
#   SECONDS_EACH=600 scripts/fuzz.sh
#
# What fails says its FUZZ_SEED, from which FUZZ_SEED=… goes on.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export FUZZ_SECONDS=${SECONDS_EACH:-60}
export FUZZ_SEED=${FUZZ_SEED:-$(date +%s%N)}
for crate in storage engine; do
    cargo test --release -p "thermocline-$crate" --lib damaged_tests:: -- \
        --test-threads=1 --nocapture | grep -E "damaged copies|FUZZ_SEED|test result"
done
