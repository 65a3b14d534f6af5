#!/usr/bin/env bash
# PostgreSQL's own isolation specifications (src/test/isolation of its source package), run
# unchanged against a server of ours, each on a fresh one.
#
#   scripts/isolation-specs.sh SOURCES [SPEC…]
#
# SOURCES       the unpacked source package of PostgreSQL 15; Debian's, with deb-src switched
#               on: apt-get source --download-only postgresql-15. Nothing is copied from it.
# OUT           where outputs and differences go (default: a directory under $WORK)
# ISOLATIONTESTER   the tester (default: that of Debian's postgresql-server-dev-15 or
#               postgresql-15)
# STEP_SECONDS  how long a step may take (default 20)
# and those of server.sh (THERMOCLINE, WORK, PORT).
#
# PostgreSQL's default level is READ COMMITTED, and its expected outputs go by that; ours is
# set to it for the connections here. The verdicts:
#
#   same       the output is one of the expected ones
#   needs      a statement is refused that this database does not have; the first such is named
#   elsewhere  as many transactions are told to run again (40001, 40P01) as in PostgreSQL, and all
#              else is the same, but it is another one of them, or at another step
#   stricter   more are told so than in PostgreSQL
#   differs    anything else
set -euo pipefail

[ $# -ge 1 ] || { sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//'; exit 2; }
SOURCES=$(cd "$1" && pwd)/src/test/isolation
shift
[ -d "$SOURCES/specs" ] || { echo "no specifications in $SOURCES"; exit 2; }
. "$(dirname "$0")/server.sh"

TESTER=${ISOLATIONTESTER:-$(pg_config --libdir 2> /dev/null || true)/postgresql/15/lib/pgxs/src/test/isolation/isolationtester}
[ -x "$TESTER" ] || TESTER=/usr/lib/postgresql/15/lib/pgxs/src/test/isolation/isolationtester
[ -x "$TESTER" ] || skip "no isolationtester; it is in postgresql-server-dev-15"
OUT=${OUT:-$WORK/isolation}
mkdir -p "$OUT"
export PGISOLATIONTIMEOUT=${STEP_SECONDS:-20}
export PGOPTIONS='-c default_transaction_isolation=read\ committed'
export PGAPPNAME=isolation
CONNECTION="host=127.0.0.1 port=$PORT user=postgres dbname=postgres"

if [ $# -gt 0 ]; then
    specs=("$@")
else
    mapfile -t specs < <(cd "$SOURCES/specs" && ls -- *.spec | sed 's/\.spec$//')
fi

AGAIN='ERROR:  (could not serialize access|deadlock detected)'

# retries FILE: how many transactions are told to run again.
retries() { grep -c -E "$AGAIN" "$1" || true; }

# without_retries FILE: the rest of it.
without_retries() { grep -v -E "$AGAIN" "$1" || true; }

# is_elsewhere EXPECTED OUTPUT: whether all else is the same; a statement that is let through
# and whose transaction is told so later has its rows.
is_elsewhere() {
    ! diff -w -U 0 <(without_retries "$1") <(without_retries "$2") | tail -n +3 |
        grep -q -E '^-|^\+.*(step |ERROR|failed)'
}

# verdict NAME: prints the verdict and why.
verdict() {
    local output=$OUT/$1.out expected difference best= nearest= missing more
    for expected in "$SOURCES/expected/$1".out "$SOURCES/expected/$1"_[0-9].out; do
        [ -e "$expected" ] || continue
        difference=$(diff -w -U 0 "$expected" "$output" || true)
        [ -n "$difference" ] || { printf 'same\t\n'; return; }
        if [ -z "$best" ] || [ "${#difference}" -lt "${#best}" ]; then best=$difference nearest=$expected; fi
    done
    [ -n "$nearest" ] || { printf 'differs\tno expected output\n'; return; }
    printf '%s\n' "$best" > "$OUT/$1.diff"
    missing=$(grep -E '^\+.*(ERROR|failed)' "$OUT/$1.diff" | grep -m 1 -E \
        'not supported|syntax error|does not exist|unrecognized|cannot be bound' || true)
    more=$(($(retries "$output") - $(retries "$nearest")))
    if [ -n "$missing" ]; then
        printf 'needs\t%s\n' "$(printf '%s' "$missing" | sed 's/^+//; s/^.*ERROR:  //; s/^.*failed: //' | cut -c 1-90)"
    elif [ "$more" -eq 0 ] && is_elsewhere "$nearest" "$output"; then
        printf 'elsewhere\t%s told to run again\n' "$(retries "$output")"
    elif [ "$more" -gt 0 ]; then
        printf 'stricter\t%s more told to run again\n' "$more"
    else
        printf 'differs\t%s\n' "$(grep -m 1 -E '^[+-]([^+-]|$)' "$OUT/$1.diff" | cut -c 1-90)"
    fi
}

declare -A count=()
printf '%-32s %-10s %s\n' specification verdict why
for spec in "${specs[@]}"; do
    rm -rf "$WORK/data"
    start_server "$WORK/data" 256MB
    until psql -Atqc 'select 1' "$CONNECTION" > /dev/null 2>&1; do
        is_running || { say "the server ended:"; tail -n 20 "$WORK/server.log"; exit 1; }
        sleep 0.05
    done
    timeout "${SPEC_SECONDS:-180}" "$TESTER" "$CONNECTION" < "$SOURCES/specs/$spec.spec" \
        > "$OUT/$spec.out" 2>&1 || true
    is_running || violation "$spec: the server ended"
    kill_server
    IFS=$'\t' read -r result why < <(verdict "$spec") || true
    count[$result]=$((${count[$result]:-0} + 1))
    printf '%-32s %-10s %s\n' "$spec" "$result" "$why"
done
say
for result in same elsewhere stricter needs differs; do
    printf '%-10s %s\n' "$result" "${count[$result]:-0}"
done
exit $((VIOLATIONS > 0))
