#!/usr/bin/env bash
# Short statements through the wire: pgbench's reads, a join by keys and its TPC-B, by one client and by many,
# alone and beside a session that repeats an analytical query. Ours and PostgreSQL in turns, on
# the same disk with the same durability; with the processor time that the server takes for a
# transaction.
#
# Needs root (for the cgroups that count processor time), pgbench and psql; PostgreSQL's turn
# needs its server, too. Takes about ten minutes with the defaults:
#   SCALE=10 SECONDS_EACH=10 ROUNDS=3 CLIENTS="1 8 32" scripts/short-statements.sh
# MODE    pgbench's: prepared (the default); extended: Parse each time; simple: values in the text
# OTHER   another thermocline, to compare with in the same turns (default: none)
# Exit code 0: all ran. The figures are medians of the rounds.

source "$(dirname "$0")/server.sh"
source "$ROOT/scripts/postgresql.sh"
SCALE=${SCALE:-10}
SECONDS_EACH=${SECONDS_EACH:-10}
ROUNDS=${ROUNDS:-3}
CLIENTS=${CLIENTS:-1 8 32}
LIMIT=${LIMIT:-1GB}
KINDS=${KINDS:-reads joins tpcb}
MODE=${MODE:-prepared}
BESIDE="SELECT aid % 7, count(*), sum(abalance) FROM pgbench_accounts GROUP BY 1"

[ "$(id -u)" = 0 ] || skip "cgroups need root"
for needed in pgbench psql; do
    command -v "$needed" > /dev/null || skip "$needed is not installed"
done
find_postgresql || true

declare -A PORTS GROUPS_OF TPS US RUNS
SIDES=()

begin() {
    pgbench -h 127.0.0.1 -p "$2" -U postgres -i -s "$SCALE" -q postgres > "$WORK/init-$1" 2>&1 \
        || { violation "$1: pgbench -i failed"; tail -n 5 "$WORK/init-$1"; finish; }
    SIDES+=("$1")
    PORTS[$1]=$2
    GROUPS_OF[$1]=$3
}

cat > "$WORK/joins.sql" << 'EOF'
\set aid random(1, 100000 * :scale)
SELECT a.aid, a.abalance, b.bbalance FROM pgbench_accounts a JOIN pgbench_branches b ON b.bid = a.bid WHERE a.aid = :aid;
EOF

# measure SIDE KIND CLIENTS BESIDE: adds to TPS and US.
measure() {
    local side=$1 kind=$2 clients=$3 beside=$4 hog= options=() out=$WORK/out
    [ "$kind" = reads ] && options=(-S)
    [ "$kind" = joins ] && options=(-f "$WORK/joins.sql" -s "$SCALE")
    if [ "$beside" = yes ]; then
        # Until it is told to stop.
        : > "$WORK/hog"
        : > "$WORK/hog-runs"
        (while [ -e "$WORK/hog" ]; do
            psql -h 127.0.0.1 -p "${PORTS[$side]}" -U postgres -qAt -c "$BESIDE" postgres > /dev/null || break
            echo >> "$WORK/hog-runs"
        done) &
        hog=$!
        sleep 1
    fi
    local before after tps count
    before=$(cat "${GROUPS_OF[$side]}/cpuacct.usage")
    pgbench -h 127.0.0.1 -p "${PORTS[$side]}" -U postgres -n -c "$clients" -j 2 -T "$SECONDS_EACH" \
        -M "$MODE" --max-tries=100 "${options[@]}" postgres > "$out" 2>&1 \
        || violation "$side $kind: $(tail -n 1 "$out")"
    after=$(cat "${GROUPS_OF[$side]}/cpuacct.usage")
    if [ -n "$hog" ]; then
        RUNS[$side,$kind]+=" $(wc -l < "$WORK/hog-runs")"
        rm -f "$WORK/hog"
        wait "$hog" || true
    fi
    tps=$(sed -n 's/^tps = \([0-9]*\).*/\1/p' "$out")
    count=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' "$out")
    TPS[$side,$kind,$clients,$beside]+=" ${tps:-0}"
    US[$side,$kind,$clients,$beside]+=" $(((after - before) / 1000 / (count > 0 ? count : 1)))"
}

counted thermocline
start_server "$WORK/data" "$LIMIT" "$GROUP"
wait_for_answer
begin thermocline "$PORT" "$GROUP"
if [ -n "${OTHER:-}" ]; then
    counted other
    OTHER_PORT=$((PORT + 7))
    (
        echo "$BASHPID" > "$GROUP/cgroup.procs"
        exec "$OTHER" serve -D "$WORK/other" -p "$OTHER_PORT" --memory-limit "$LIMIT" >> "$WORK/other.log" 2>&1
    ) &
    OTHER_PID=$!
    AT_END+=("kill -9 $OTHER_PID 2> /dev/null; wait $OTHER_PID")
    "$THERMOCLINE" bench query --url "postgres://postgres@127.0.0.1:$OTHER_PORT/postgres" --wait 60 "SELECT 1" > /dev/null
    begin other "$OTHER_PORT" "$GROUP"
fi
if [ -n "$PG_BIN" ]; then
    counted postgresql
    PG_GROUP=$GROUP
    start_postgresql 512MB
    begin postgresql "$PG_PORT" "$GROUP"
else
    say "PostgreSQL's server is not installed: no comparison"
fi

for ((round = 0; round < ROUNDS; round++)); do
    for kind in $KINDS; do
        for clients in $CLIENTS; do
            for side in "${SIDES[@]}"; do measure "$side" "$kind" "$clients" no; done
        done
        for side in "${SIDES[@]}"; do measure "$side" "$kind" 8 yes; done
    done
done

say "$MODE, scale $SCALE, $ROUNDS rounds of $SECONDS_EACH s; $(date -u +%F), $(nproc) cores, commit $(git -C "$ROOT" rev-parse --short HEAD)"
say "| | clients | $(for side in "${SIDES[@]}"; do printf '%s, tps | µs each | ' "$side"; done)"
say "|---|---:|$(for side in "${SIDES[@]}"; do printf -- '---:|---:|'; done)"
row() {
    local line="| $4 | $2 |" side
    for side in "${SIDES[@]}"; do
        line+=" $(median "${TPS[$side,$1,$2,$3]}") | $(median "${US[$side,$1,$2,$3]}") |"
    done
    say "$line"
}
for kind in $KINDS; do
    for clients in $CLIENTS; do row "$kind" "$clients" no "$kind"; done
    row "$kind" 8 yes "$kind beside an analytical session"
done
for kind in $KINDS; do
    line="analytical statements beside $kind in $SECONDS_EACH s:"
    for side in "${SIDES[@]}"; do line+=" $side $(median "${RUNS[$side,$kind]}")"; done
    say "$line"
done
stop_server
finish
