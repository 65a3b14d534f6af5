#!/usr/bin/env bash
# kill -9 amid definitions, sequences and rows of up to a megabyte, in a memory cgroup of the
# limit and a tenth. Several clients, each with a table and a sequence of its own, insert rows,
# add columns in transactions that commit, roll back, go back to a savepoint or are cut off, make
# and drop indexes, and ask for numbers; beside them somebody asks for checkpoints. After each kill the
# server must open in the same cgroup with every acknowledged row and column, without any column
# that was rolled back, and give no number that was told before; the time to its first answer is
# noted. In the end a check of the directory finds nothing.
#
# Needs root (for the cgroup) and psql; says so and does nothing else without them. A round takes
# about five seconds; SHORT=1 is three rounds at one limit, for CI:
#   LIMITS_MB="128 256" ROUNDS=10 CLIENTS=4 scripts/kill9-mixed.sh
# Exit code 0: all held.

source "$(dirname "$0")/server.sh"
source "$(dirname "$0")/memory-group.sh"
if [ -n "${SHORT:-}" ]; then
    LIMITS_MB=${LIMITS_MB:-128}
    ROUNDS=${ROUNDS:-3}
fi
LIMITS_MB=${LIMITS_MB:-128 256}
ROUNDS=${ROUNDS:-10}
CLIENTS=${CLIENTS:-4}
# Columns that a table gets for good in all rounds together, at most.
COLUMNS_MAX=200

[ "$(id -u)" = 0 ] || skip "memory cgroups need root"
command -v psql > /dev/null || skip "psql is not installed"

client_psql() { psql -X -q -At -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$PORT" -U postgres "$@" postgres; }

# statements CLIENT ROUND: what a client sends. Each line that it gets to see is an
# acknowledgement: "i table id length", "c table column", "n sequence number".
statements() {
    awk -v k="$1" -v round="$2" -v each="$((COLUMNS_MAX / ROUNDS))" 'BEGIN {
        srand(k * 1000 + round)
        split("40 2000 20000 70000 300000 1000000", lengths, " ")
        columns = 0
        for (n = 0; n < 3000; n++) {
            id = round * 100000 + n
            what = int(rand() * 20)
            if (what < 7) {
                length_ = lengths[1 + int(rand() * rand() * 6)]
                printf "INSERT INTO m%d (id, v) VALUES (%d, repeat(lpad(%d::text, 10, \047#\047), %d));\n\\echo i m%d %d %d\n", k, id, id, length_ / 10, k, id, length_
            } else if (what < 14) {
                printf "SELECT \047n q%d \047 || nextval(\047q%d\047);\n", k, k
            } else if (what == 14 && columns < each) {
                columns++
                printf "BEGIN; ALTER TABLE m%d ADD COLUMN c%d int DEFAULT %d; INSERT INTO m%d (id, v, c%d) VALUES (%d, repeat(\047y\047, 100), 7); COMMIT;\n\\echo c m%d c%d\n\\echo i m%d %d 100\n", k, id, n, k, id, id, k, id, k, id
            } else if (what == 15) {
                printf "BEGIN; ALTER TABLE m%d ADD COLUMN r%d int DEFAULT 1; INSERT INTO m%d (id, v, r%d) VALUES (%d, repeat(\047z\047, 5000), 2); SELECT \047n q%d \047 || nextval(\047q%d\047); ROLLBACK;\n", k, id, k, id, -id, k, k
            } else if (what == 16) {
                printf "BEGIN; SAVEPOINT a; ALTER TABLE m%d ADD COLUMN r%d text DEFAULT \047none\047; INSERT INTO m%d (id, v) VALUES (%d, \047w\047); ROLLBACK TO a; INSERT INTO m%d (id, v) VALUES (%d, \047four\047); COMMIT;\n\\echo i m%d %d 4\n", k, id, k, -id, k, id, k, id
            } else if (what == 17) {
                printf "CREATE INDEX x%d_%d ON m%d (n);\nDROP INDEX x%d_%d;\n", k, id, k, k, id
            } else if (what == 18) {
                printf "BEGIN; CREATE INDEX x%d_%d ON m%d (n); INSERT INTO m%d (id, v) VALUES (%d, \047u\047); ROLLBACK;\n", k, id, k, k, -id
            } else {
                printf "UPDATE m%d SET n = %d WHERE id = %d;\n", k, n, round * 100000 + int(rand() * n)
            }
        }
    }'
}

# check_found CASE: everything acknowledged is there, and nothing that was rolled back.
check_found() {
    local k wrong told next
    for k in $(seq "$CLIENTS"); do
        sed -n "s/^i m$k \([0-9]*\) \([0-9]*\)$/\1|\2/p" "$WORK/acknowledged" | sort > "$WORK/expected"
        # By their keys: what a query over all large rows takes is another trial.
        awk -F'|' -v k="$k" '{ printf "SELECT id, length(v) FROM m%d WHERE id = %d;\n", k, $1 }' "$WORK/expected" \
            | client_psql 2>&1 | sort > "$WORK/found" || true
        wrong=$(comm -23 "$WORK/expected" "$WORK/found" | wc -l)
        [ "$wrong" = 0 ] || violation "$1: $wrong acknowledged rows of m$k are not as they were: $(comm -23 "$WORK/expected" "$WORK/found" | head -n 3 | tr '\n' ' ')"
        wrong=$(client_psql -c "SELECT count(*) FROM m$k WHERE id < 0" 2>&1)
        [ "$wrong" = 0 ] || violation "$1: rows of m$k that were rolled back: $wrong"
        client_psql -c "SELECT column_name FROM information_schema.columns WHERE table_name = 'm$k'" \
            | sort > "$WORK/columns"
        sed -n "s/^c m$k //p" "$WORK/acknowledged" | sort > "$WORK/expected"
        wrong=$(comm -23 "$WORK/expected" "$WORK/columns" | tr '\n' ' ')
        [ -z "$wrong" ] || violation "$1: columns of m$k are missing: $wrong"
        wrong=$(grep '^r' "$WORK/columns" | tr '\n' ' ' || true)
        [ -z "$wrong" ] || violation "$1: columns of m$k were rolled back: $wrong"
        told=$(sed -n "s/^n q$k //p" "$WORK/acknowledged" | sort -n | tail -n 1)
        next=$(client_psql -c "SELECT nextval('q$k')")
        [ "$next" -gt "${told:-0}" ] || violation "$1: number $next of q$k comes after $told"
        echo "n q$k $next" >> "$WORK/acknowledged"
    done
    wrong=$(grep '^n ' "$WORK/acknowledged" | sort | uniq -d | head -n 3 | tr '\n' ' ')
    [ -z "$wrong" ] || violation "$1: numbers came twice: $wrong"
}

for LIMIT_MB in $LIMITS_MB; do
    GROUP_BYTES=$((LIMIT_MB * 1024 * 1024 * 11 / 10))
    make_group "mixed-$LIMIT_MB"
    DATA=$WORK/data-$LIMIT_MB
    : > "$WORK/acknowledged"
    ANSWERS=
    start_server "$DATA" "${LIMIT_MB}MB" "$GROUP"
    wait_for_answer
    for k in $(seq "$CLIENTS"); do
        ask "CREATE TABLE m$k (id bigint PRIMARY KEY, n int, v text NOT NULL)" > /dev/null
        ask "CREATE SEQUENCE q$k" > /dev/null
    done
    for number in $(seq "$ROUNDS"); do
        pids=
        for k in $(seq "$CLIENTS"); do
            statements "$k" "$number" > "$WORK/sql-$k"
            client_psql -f "$WORK/sql-$k" > "$WORK/out-$k" 2> "$WORK/error-$k" &
            pids="$pids $!"
        done
        (while ask CHECKPOINT; do sleep "$(random_ms 50 600)"; done) > /dev/null 2>&1 &
        pids="$pids $!"
        sleep "$(random_ms 500 4000)"
        is_running || violation "$LIMIT_MB MB, round $number: the server ended by itself: $(tail -n 2 "$WORK/server.log")"
        kill_server
        wait $pids 2> /dev/null || true
        for k in $(seq "$CLIENTS"); do
            # The last line may be cut off.
            grep -E '^(i m[0-9]+ [0-9]+ [0-9]+|c m[0-9]+ c[0-9]+|n q[0-9]+ [0-9]+)$' "$WORK/out-$k" >> "$WORK/acknowledged" || true
            if grep "ERROR: " "$WORK/error-$k" > "$WORK/errors"; then
                violation "$LIMIT_MB MB, round $number: $(head -n 1 "$WORK/errors")"
            fi
        done
        start_server "$DATA" "${LIMIT_MB}MB" "$GROUP"
        wait_for_answer
        ANSWERS="$ANSWERS $ANSWERED_MS"
        check_found "$LIMIT_MB MB, round $number"
    done
    stop_server
    "$THERMOCLINE" check "$DATA" > "$WORK/check" 2>&1 || violation "$LIMIT_MB MB: $(tail -n 3 "$WORK/check")"
    show_group "$LIMIT_MB MB" "$GROUP"
    sorted=$(tr ' ' '\n' <<< "$ANSWERS" | sed '/^$/d' | sort -n)
    say "$LIMIT_MB MB: $ROUNDS kills, acknowledged $(grep -c '^i' "$WORK/acknowledged") rows," \
        "$(grep -c '^c' "$WORK/acknowledged" || true) columns, $(grep -c '^n' "$WORK/acknowledged") numbers;" \
        "first answer ms: median $(sed -n "$((($(wc -l <<< "$sorted") + 1) / 2))p" <<< "$sorted"), at most $(tail -n 1 <<< "$sorted")"
done
finish
