#!/usr/bin/env bash
# Random hostile sessions against one server in a memory cgroup of the limit and a tenth: large
# and small messages, cursors that are never read, prepared statements, savepoints, long
# snapshots, unread results, definitions, rubbish, and clients that vanish. The server must live
# and keep its limit, nobody may be answered with an internal error, and what was acknowledged
# must be there.
#
#   scripts/hostile-sessions.sh                                   # an hour at 128 MB
#   MINUTES=1 LIMIT_MB=256 SESSIONS=6 SEED=7 scripts/hostile-sessions.sh
#   TRACE=/tmp/moves scripts/hostile-sessions.sh                  # and what each session did
#   MOVES=portals,analytical scripts/hostile-sessions.sh          # only these
#   P99_MS=50 scripts/hostile-sessions.sh                         # judges the other client's latency, too
#
# Needs root (for the cgroup) and Python 3.

source "$(dirname "$0")/server.sh"
command -v python3 > /dev/null || skip "Python 3 is not installed"
[ "$(id -u)" = 0 ] || skip "memory cgroups need root"
[ -w /sys/fs/cgroup/memory ] || [ -w /sys/fs/cgroup/cgroup.subtree_control ] || skip "no memory cgroups here"
python3 "$ROOT/scripts/limit-attacks/hostile.py" --program "$THERMOCLINE" --work "$WORK" --port "$PORT" \
    --limit-mb "${LIMIT_MB:-128}" --minutes "${MINUTES:-60}" --sessions "${SESSIONS:-12}" \
    --p99-ms "${P99_MS:-0}" ${SEED:+--seed "$SEED"} ${TRACE:+--trace "$TRACE"} ${MOVES:+--moves "$MOVES"} --server-arguments="${SERVER_ARGUMENTS:-}"
