#!/usr/bin/env bash
# Prints the parts of the pages in docs/reference that are printed from the code. The tests that
# print them compare them otherwise.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export THERMOCLINE_PRINT_PAGES=1
cargo test -q -p thermocline-query --test reference
cargo test -q -p thermocline-sql --lib reference_
cargo test -q -p thermocline --bin thermocline --test reference reference_
git diff --stat -- docs/reference
