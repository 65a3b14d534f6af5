# Starting, killing and asking servers; sourced by the other scripts.
#
# THERMOCLINE   the program (default: target/release, built if it is not there)
# WORK          where data goes (default: a new directory under /var/tmp, removed at
#               the end unless KEEP=1); put it on the disk that is to be tried
# PORT          the server's port (default 55433)
#
# Only processes that were started here are ever signalled.

set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PORT=${PORT:-55433}
URL="postgres://postgres@127.0.0.1:$PORT/postgres"
SERVER_PID=
VIOLATIONS=0

say() { printf '%s\n' "$*"; }
skip() { say "SKIPPED: $*"; exit 0; }
violation() { say "VIOLATION: $*"; VIOLATIONS=$((VIOLATIONS + 1)); }

if [ -z "${THERMOCLINE:-}" ]; then
    THERMOCLINE=${CARGO_TARGET_DIR:-$ROOT/target}/release/thermocline
    [ -x "$THERMOCLINE" ] || (cd "$ROOT" && cargo build --release --bin thermocline)
fi
[ -x "$THERMOCLINE" ] || { say "no program at $THERMOCLINE"; exit 2; }

if [ -z "${WORK:-}" ]; then
    WORK=$(mktemp -d /var/tmp/thermocline-trial.XXXXXX)
    REMOVE_WORK=$([ "${KEEP:-0}" = 1 ] || echo yes)
else
    mkdir -p "$WORK"
    REMOVE_WORK=
fi
chmod 755 "$WORK"

# What is left running is killed, and the data removed, however the script ends.
AT_END=()
at_end() {
    local number
    [ -z "$SERVER_PID" ] || kill -9 "$SERVER_PID" 2>/dev/null || true
    for ((number = ${#AT_END[@]} - 1; number >= 0; number--)); do
        eval "${AT_END[number]}" || true
    done
    [ -z "$REMOVE_WORK" ] || rm -rf "$WORK"
}
trap at_end EXIT
trap 'exit 130' INT TERM

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# start_server DIRECTORY MEMORY_LIMIT [CGROUP]: starts, and sets SERVER_PID and STARTED_MS.
start_server() {
    STARTED_MS=$(now_ms)
    (
        [ -z "${3:-}" ] || echo "$BASHPID" > "$3/cgroup.procs"
        exec "$THERMOCLINE" serve -D "$1" -p "$PORT" --memory-limit "$2" >> "$WORK/server.log" 2>&1
    ) &
    SERVER_PID=$!
}

# ask SQL [SECONDS]: the result, one row a line; waits so long for the first answer.
ask() { "$THERMOCLINE" bench query --url "$URL" --wait "${2:-0}" "$1"; }

# wait_for_answer [SQL]: sets ANSWERED_MS, the time from the start to the first answer.
wait_for_answer() {
    ask "${1:-SELECT 1}" 600 > /dev/null || {
        say "the server does not answer; its last lines:"
        tail -n 20 "$WORK/server.log"
        exit 1
    }
    ANSWERED_MS=$(($(now_ms) - STARTED_MS))
}

is_running() { [ -n "$SERVER_PID" ] && kill -0 "$SERVER_PID" 2> /dev/null; }

# stop_server: a clean stop; a violation if it does not end with 0.
stop_server() {
    kill -INT "$SERVER_PID"
    wait "$SERVER_PID" || violation "the server's clean stop ended with $?"
    SERVER_PID=
}

# kill_server: kill -9.
kill_server() {
    kill -9 "$SERVER_PID" 2> /dev/null || violation "the server was gone before it was killed"
    wait "$SERVER_PID" 2> /dev/null || true
    SERVER_PID=
}

# random_ms FROM TO: seconds for sleep.
random_ms() { awk -v r="$RANDOM" -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", (a + (b - a) * r / 32767) / 1000 }'; }

# counted NAME: sets GROUP to a cgroup whose processor time is counted; needs root.
CPUACCT=/sys/fs/cgroup/cpuacct
counted() {
    [ -d "$CPUACCT" ] || skip "there is no cpuacct controller (cgroup v1) at $CPUACCT"
    GROUP=$CPUACCT/thermocline-$$-$1
    mkdir "$GROUP"
    AT_END+=("rmdir '$GROUP'")
}

# median "V1 V2 ...": the middle one, the lower of two.
median() { tr ' ' '\n' <<< "$1" | sed '/^$/d' | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# finish: the exit code says whether all held.
finish() {
    if [ "$VIOLATIONS" -gt 0 ]; then
        say "$VIOLATIONS violations"
        exit 1
    fi
    say "all held"
}
