#!/usr/bin/env bash
# Kills the server with kill -9 and checks, after each restart, that nothing acknowledged is
# lost and nothing is there by half. Two clients take turns: a bank of transfers that keeps
# a journal of what was acknowledged (every balance is checked), and pgbench's TPC-B (four
# sums that must agree, and as many rows of history as transactions it logged). A table of
# ballast is changed beside them, all rows but an eighth in one statement.
#
# When: at random moments, and at each named stop-point of the program (in the middle of a
# block, of a log group, around the manifest's rename, in recovery, ...), where it kills
# itself. Then during start-ups, and in the middle of a COPY (all or nothing).
#
# Stop-points have to be compiled in: cargo build --release --bin thermocline --features
# stop-points. Without them, or without pgbench, the script says what it leaves out.
#
# A round takes about four seconds; the defaults are 204 rounds, a quarter of an hour.
#   ROUNDS=40 POINT_ROUNDS=8 POINTS="mid-block log-rotate" ACCOUNTS=2000 CLIENTS=8 \
#   LIMIT_MB=256 COPY_ROWS=2000000 scripts/kill9.sh
# SHORT=1 is for CI: two minutes, three random kills and one at each stop-point. At the end goes
# scripts/kill9-mixed.sh: definitions, sequences and large rows, in a memory cgroup.
# Exit code 0: all held. What kill -9 can't show is a power failure: the kernel's and the
# device's caches survive it. That is what the simulated device is for (cargo test).

source "$(dirname "$0")/server.sh"
if [ -n "${SHORT:-}" ]; then
    ROUNDS=${ROUNDS:-3}
    POINT_ROUNDS=${POINT_ROUNDS:-1}
    COPY_ROWS=${COPY_ROWS:-200000}
fi
MIXED_ROUNDS=${MIXED_ROUNDS:-$([ -n "${SHORT:-}" ] && echo 3 || echo 10)}
ROUNDS=${ROUNDS:-40}
POINT_ROUNDS=${POINT_ROUNDS:-8}
ACCOUNTS=${ACCOUNTS:-2000}
CLIENTS=${CLIENTS:-8}
LIMIT=${LIMIT_MB:-256}MB
COPY_ROWS=${COPY_ROWS:-2000000}
BALLAST_ROWS=${BALLAST_ROWS:-40000} # a multiple of 8
DATA=$WORK/data
JOURNAL=$WORK/journal
LOGGED=$WORK/pgbench-logged
touch "$JOURNAL"
mkdir -p "$LOGGED"

# Stop-point, what brings the program there, and the highest of the random turns at which
# it stops: name:n is its n-th time.
STOP_POINTS="
log-mid-group transactions 300
log-before-sync transactions 300
log-before-acknowledge transactions 300
log-rotate transactions 1
log-rotated transactions 1
log-truncate checkpoints 1
mid-block checkpoints 16
block-footer checkpoints 16
checkpoint-cut checkpoints 20
checkpoint-table checkpoints 2
manifest-before-rename checkpoints 2
manifest-after-rename checkpoints 2
checkpoint-before-truncate checkpoints 2
compaction-copied ballast 1
compaction-swing ballast 1
recovery-manifest start 1
recovery-images start 1
recovery-replay start 20
recovery-settle start 1
recovery-done start 1
recovery-partition start 1
"

random_below() { echo $(((RANDOM << 15 | RANDOM) % $1)); }

restart() {
    start_server "$DATA" "$LIMIT"
    wait_for_answer "${1:-SELECT count(*) FROM bank_account WHERE id = 0}"
}

has_pgbench() { command -v pgbench > /dev/null; }
if ! has_pgbench; then say "SKIPPED: pgbench is not installed; the bank alone"; fi

# --- the clients

# begin_client NUMBER: the bank or pgbench in turn, until the server goes.
begin_client() {
    CLIENT=bank
    if has_pgbench && [ $(($1 % 2)) = 1 ]; then CLIENT=pgbench; fi
    CLIENT_OUT=$WORK/client-out
    if [ $CLIENT = bank ]; then
        "$THERMOCLINE" bench bank --url "$URL" --journal "$JOURNAL" --accounts "$ACCOUNTS" \
            --clients "$CLIENTS" --seconds 120 --seed "$1" > "$CLIENT_OUT" 2>&1 &
    else
        (cd "$LOGGED" && exec pgbench -h 127.0.0.1 -p "$PORT" -U postgres -n -M prepared \
            -c "$CLIENTS" -j 2 -T 120 --max-tries=100 -l --log-prefix="round-$1" postgres) \
            > "$CLIENT_OUT" 2>&1 &
    fi
    CLIENT_PID=$!
}

# end_client NAME: once the server is gone. A refusal that is no lost connection is a violation.
end_client() {
    local code=0
    wait "$CLIENT_PID" || code=$?
    if [ $CLIENT = bank ] && [ $code != 0 ] && grep -q "transfer [0-9]*:" "$CLIENT_OUT"; then
        violation "$1: a client met an error: $(grep "transfer [0-9]*:" "$CLIENT_OUT" | head -n 1)"
    elif [ $CLIENT = pgbench ] && grep "ERROR: " "$CLIENT_OUT" | grep -qv "could not serialize\|deadlock"; then
        violation "$1: pgbench met an error: $(grep "ERROR: " "$CLIENT_OUT" | head -n 1)"
    fi
}

acknowledged() {
    local bank logged=0
    bank=$(grep -c '^+' "$JOURNAL" || true)
    # Only what was committed: a transaction that was given up says "failed".
    if has_pgbench; then logged=$(cat "$LOGGED"/round-* 2> /dev/null | grep -vc failed || true); fi
    echo $((bank + logged))
}

# --- what must hold

PGBENCH_KILLS=0

check_pgbench() {
    local answer logged
    answer=$(ask "SELECT (SELECT sum(abalance) FROM pgbench_accounts),
        (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches),
        (SELECT coalesce(sum(delta), 0) FROM pgbench_history), (SELECT count(*) FROM pgbench_history)")
    logged=$(cat "$LOGGED"/round-* 2> /dev/null | grep -vc failed || true)
    # What was committed and not yet acknowledged when the server went is there, too.
    awk -F'|' -v logged="$logged" -v unanswered="$((PGBENCH_KILLS * CLIENTS))" \
        '{ exit !($1 == $2 && $2 == $3 && $3 == $4 && $5 >= logged && $5 <= logged + unanswered) }' \
        <<< "$answer" || violation "$1: pgbench: sums and history $answer; logged $logged"
}

# The statements change the ballast by turns: the k-th (from 0) all rows but those with id
# modulo 8 = k modulo 8. So a block loses its rows a class at a time, and is compacted; and
# the counts tell how many statements there were, and whether any is there by half.
check_ballast() {
    local answer
    answer=$(ask "SELECT id % 8 AS class, count(*), sum(length(payload)), min(changes), max(changes)
        FROM ballast GROUP BY 1 ORDER BY 1")
    awk -F'|' -v each="$((BALLAST_ROWS / 8))" '
        { wrong += $1 != NR - 1 || $2 != each || $3 != each * 1000 || $4 != $5; changes[$1] = $5; all += $5 }
        END {
            statements = all / 7
            for (class = 0; class < 8; class++)
                wrong += changes[class] != statements - int((statements - class + 7) / 8)
            exit NR != 8 || wrong > 0
        }' <<< "$answer" || violation "$1: ballast: $(tr '\n' ' ' <<< "$answer")"
}

change_ballast() {
    local statements
    statements=$(ask "SELECT (sum(changes) / ($BALLAST_ROWS / 8 * 7))::bigint FROM ballast") || return 1
    ask "UPDATE ballast SET changes = changes + 1 WHERE id % 8 <> $((statements % 8))"
}

check_all() {
    "$THERMOCLINE" bench bank-check --url "$URL" --journal "$JOURNAL" > "$WORK/books" \
        || violation "$1: $(tail -n 3 "$WORK/books")"
    if has_pgbench; then check_pgbench "$1"; fi
    check_ballast "$1"
}

# --- rounds

TABLE="| stopped | rounds | hits | acknowledged | violations | first answer ms, median | max |
|---|---:|---:|---:|---:|---:|---:|"

begin_row() {
    ROW_ACKNOWLEDGED=$(acknowledged)
    ROW_VIOLATIONS=$VIOLATIONS
    ROW_HITS=0
    ROW_ANSWERS=
}

# end_row NAME ROUNDS
end_row() {
    local sorted median
    sorted=$(tr ' ' '\n' <<< "$ROW_ANSWERS" | sed '/^$/d' | sort -n)
    median=$(sed -n "$((($(wc -l <<< "$sorted") + 1) / 2))p" <<< "$sorted")
    local row="| $1 | $2 | $ROW_HITS | $(($(acknowledged) - ROW_ACKNOWLEDGED)) |"
    row="$row $((VIOLATIONS - ROW_VIOLATIONS)) | $median | $(tail -n 1 <<< "$sorted") |"
    say "$row"
    TABLE="$TABLE
$row"
}

# keep_asking WHAT: in the background until the server is gone.
keep_asking() {
    case $1 in
        transactions | start) return ;;
        checkpoints)
            (while ask CHECKPOINT; do sleep 0.2; done) > /dev/null 2>&1 &
            ;;
        ballast)
            (while change_ballast && ask CHECKPOINT; do sleep 0.1; done) > /dev/null 2>&1 &
            ;;
    esac
    ASKING_PID=$!
}

# await_stop SECONDS: whether the server stops itself; killed at the end if not.
await_stop() {
    local look code=0
    # The shell's own word of a killed child is no news here.
    {
        for ((look = 0; look < $1 * 20; look++)); do
            is_running || break
            sleep 0.05
        done
    } 2> /dev/null
    if is_running; then
        kill_server
        return 1
    fi
    wait "$SERVER_PID" 2> /dev/null || code=$?
    SERVER_PID=
    # 137 is SIGKILL: anything else is an end of its own.
    [ $code = 137 ] || violation "the server ended by itself with $code: $(tail -n 2 "$WORK/server.log")"
}

# round NAME NUMBER WHAT STOP_AT: one round; STOP_AT is empty for a random moment.
round() {
    local name=$1 number=$2 what=$3 stop_at=$4
    if [ "$what" != start ] && [ -n "$stop_at" ]; then
        stop_server
        export THERMOCLINE_STOP_AT=$stop_at
        restart
        unset THERMOCLINE_STOP_AT
    fi
    ASKING_PID=
    begin_client "$number"
    keep_asking "$what"
    if [ -z "$stop_at" ] || [ "$what" = start ]; then
        sleep "$(random_ms 300 2500)"
        is_running || violation "$name, round $number: the server ended by itself"
        kill_server
    elif await_stop "$([ "$what" = ballast ] && echo 15 || echo 4)"; then
        ROW_HITS=$((ROW_HITS + 1))
    fi
    end_client "$name, round $number"
    [ -z "$ASKING_PID" ] || wait "$ASKING_PID" || true
    if [ $CLIENT = pgbench ]; then PGBENCH_KILLS=$((PGBENCH_KILLS + 1)); fi
    if [ "$what" = start ]; then
        THERMOCLINE_STOP_AT=$stop_at start_server "$DATA" "$LIMIT"
        if await_stop 4; then ROW_HITS=$((ROW_HITS + 1)); fi
    fi
    restart
    ROW_ANSWERS="$ROW_ANSWERS $ANSWERED_MS"
    check_all "$name, round $number"
}

# --- the run

restart "SELECT 1"
HAS_POINTS=$(grep -q "built with stop-points" "$WORK/server.log" && echo yes || true)
"$THERMOCLINE" bench bank --url "$URL" --journal "$JOURNAL" --accounts "$ACCOUNTS" --clients 1 --seconds 1
if has_pgbench; then pgbench -h 127.0.0.1 -p "$PORT" -U postgres -i -s 1 -q postgres > "$WORK/init" 2>&1; fi
ask "CREATE TABLE ballast (id bigint PRIMARY KEY, changes bigint NOT NULL, payload text NOT NULL)" > /dev/null
"$THERMOCLINE" bench query --url "$URL" \
    "INSERT INTO ballast SELECT n, 0, repeat('b', 1000) FROM generate_series(1, $BALLAST_ROWS) AS g(n)" > /dev/null
check_all "before the first kill"

begin_row
for number in $(seq "$ROUNDS"); do
    round "random moment" "$number" "$(cut -d' ' -f$((number % 3 + 1)) <<< "transactions checkpoints ballast")" ""
    ROW_HITS=$((ROW_HITS + 1))
done
end_row "random moment" "$ROUNDS"

number=$ROUNDS
if [ -z "$HAS_POINTS" ]; then
    say "SKIPPED: this program has no stop-points (build it with --features stop-points)"
else
    while read -r point what turns; do
        [ -n "$point" ] || continue
        [ -z "${POINTS:-}" ] || grep -qw -- "$point" <<< "$POINTS" || continue
        begin_row
        for _ in $(seq "$POINT_ROUNDS"); do
            number=$((number + 1))
            round "$point" "$number" "$what" "$point:$((1 + $(random_below "$turns")))"
        done
        [ "$ROW_HITS" -gt 0 ] || violation "$point was never reached"
        end_row "$point" "$POINT_ROUNDS"
    done <<< "$STOP_POINTS"
fi

say "-- three kills during start-up"
begin_client 2
sleep 3
kill_server
end_client start-up
for attempt in 1 2 3; do
    start_server "$DATA" "$LIMIT"
    sleep "$(random_ms 0 "$((ANSWERED_MS + 20))")"
    kill_server
done
restart
check_all "killed start-up"

say "-- during a COPY of $COPY_ROWS rows"
ask "CREATE TABLE copied (id bigint PRIMARY KEY, payload text NOT NULL)" > /dev/null
"$THERMOCLINE" bench copy --url "$URL" --rows "$COPY_ROWS" > "$WORK/copied" 2>&1 &
COPY_PID=$!
sleep "$(random_ms 200 1500)"
kill_server
expected=0
# An acknowledgement that crossed the kill: then all rows must be there.
! wait "$COPY_PID" || expected=$COPY_ROWS
restart
count=$(ask "SELECT count(*) FROM copied")
say "COPY acknowledged: $expected rows; found: $count"
# Not acknowledged, but complete, is also right: the answer was lost, not the commit.
[ "$count" = "$expected" ] || [ "$count" = "$COPY_ROWS" ] || violation "a part of a COPY is there"
check_all "killed COPY"

stop_server
restart
check_all "clean stop"
cat "$WORK/books"
stop_server
say "$TABLE"
say "acknowledged in all: $(acknowledged)"

say "-- definitions, sequences and large rows"
THERMOCLINE=$THERMOCLINE PORT=$PORT WORK=$WORK/mixed ROUNDS=$MIXED_ROUNDS \
    "$(dirname "$0")/kill9-mixed.sh" || violation "kill9-mixed.sh"
finish
