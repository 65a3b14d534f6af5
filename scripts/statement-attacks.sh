#!/usr/bin/env bash
# The long forms of the tests that nothing in a statement takes the server: statements of growing
# size up to 64 MB, every function with extreme values, statements made at random. No death, no
# panic, no hang; what was asked before a failure is printed, with the seed.
#
#   scripts/statement-attacks.sh                       # an hour each for functions and random statements
#   SECONDS_EACH=600 SEED=7 scripts/statement-attacks.sh
#   BYTES=1048576 SHAPE=union scripts/statement-attacks.sh   # one shape, up to a megabyte
#
# Needs the Rust toolchain, nothing else.

set -euo pipefail
cd "$(dirname "$0")/.."
export THERMOCLINE_SECONDS="${SECONDS_EACH:-3600}" THERMOCLINE_STATEMENT_BYTES="${BYTES:-67108864}"
[ -z "${SEED:-}" ] || export THERMOCLINE_SEED="$SEED"
[ -z "${SHAPE:-}" ] || export THERMOCLINE_SHAPE="$SHAPE"
cargo test -p thermocline-sql --release --test statement_size -- --nocapture
[ -n "${SHAPE:-}" ] || cargo test -p thermocline-sql --release --test extremes -- --nocapture --test-threads 1
