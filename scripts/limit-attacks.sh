#!/usr/bin/env bash
# Attacks on `memory_limit`: each runs against a fresh server in a memory cgroup of the limit
# and a tenth. The server must live, its resident memory (sampled every 10 ms) must stay below
# the limit, and a well-behaved client must be served meanwhile.
#
#   scripts/limit-attacks.sh                          # every attack at 128 and 256 MB
#   LIMITS_MB="64 128" ATTACKS="half-messages cursors" scripts/limit-attacks.sh
#   scripts/limit-attacks.sh --list                   # what there is
#
# Needs root (for the cgroups) and Python 3, nothing else. A table in Markdown comes out; exit code 0: all held.

source "$(dirname "$0")/server.sh"
command -v python3 > /dev/null || skip "Python 3 is not installed"
if [ "${1:-}" = --list ]; then
    exec python3 "$ROOT/scripts/limit-attacks/run.py" --list
fi
[ "$(id -u)" = 0 ] || skip "memory cgroups need root"
# shellcheck disable=SC2086
python3 "$ROOT/scripts/limit-attacks/run.py" --program "$THERMOCLINE" --work "$WORK" --port "$PORT" \
    --limits-mb ${LIMITS_MB:-128 256} --attacks ${ATTACKS:-all} --server-arguments="${SERVER_ARGUMENTS:-}"
