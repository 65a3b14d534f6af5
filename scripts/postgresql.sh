# Starting PostgreSQL beside ours; sourced after server.sh by the scripts that compare.
#
# PG_BINDIR     where its programs are (default: Debian's place for 15, then the path)
# PG_PORT       its port (default 55434)
# PG_GROUP      a cgroup that it is to run in (default: none)

PG_PORT=${PG_PORT:-55434}
PG_BIN=
PG_PID=
PG_URL="postgres://postgres@127.0.0.1:$PG_PORT/postgres"

# find_postgresql: sets PG_BIN; false if its server is not installed.
find_postgresql() {
    local candidate
    for candidate in "${PG_BINDIR:-}" /usr/lib/postgresql/15/bin "$(dirname "$(command -v postgres || echo /none)")"; do
        [ -x "$candidate/initdb" ] && [ -x "$candidate/postgres" ] && { PG_BIN=$candidate; return 0; }
    done
    return 1
}

# pg_as_user COMMAND...: as a user that is not root, which PostgreSQL refuses.
pg_as_user() {
    if [ "$(id -u)" = 0 ]; then
        id postgres > /dev/null 2>&1 && PG_USER=postgres || PG_USER=nobody
        runuser -u "$PG_USER" -- "$@"
    else
        "$@"
    fi
}

# start_postgresql SHARED_BUFFERS [OPTION...]: starts it in $WORK/postgresql, made when it
# is not there; sets PG_STARTED_MS and, once it answers, PG_PID.
start_postgresql() {
    local pg=$WORK/postgresql buffers=$1
    shift
    if [ ! -d "$pg/data" ]; then
        mkdir -p "$pg"
        chmod 777 "$pg"
        pg_as_user "$PG_BIN/initdb" -D "$pg/data" -A trust -U postgres > "$WORK/initdb" 2>&1
    fi
    PG_STARTED_MS=$(now_ms)
    (
        [ -z "${PG_GROUP:-}" ] || echo "$BASHPID" > "$PG_GROUP/cgroup.procs"
        pg_as_user "$PG_BIN/postgres" -D "$pg/data" -p "$PG_PORT" -k "$pg" -c listen_addresses=127.0.0.1 \
            -c fsync=on -c synchronous_commit=on -c shared_buffers="$buffers" "$@" >> "$WORK/postgresql.log" 2>&1
    ) &
    "$THERMOCLINE" bench query --url "$PG_URL" --wait 600 "${PG_FIRST_QUERY:-SELECT 1}" > /dev/null
    PG_ANSWERED_MS=$(($(now_ms) - PG_STARTED_MS))
    PG_PID=$(head -n 1 "$pg/data/postmaster.pid")
    AT_END+=("kill -INT $PG_PID 2> /dev/null && sleep 2")
}

# stop_postgresql: a clean stop.
stop_postgresql() {
    kill -INT "$PG_PID"
    while kill -0 "$PG_PID" 2> /dev/null; do sleep 0.05; done
    PG_PID=
}

# kill_postgresql: kill -9 of the postmaster; its children find out and end.
kill_postgresql() {
    local children
    children=$(ps -o pid= --ppid "$PG_PID")
    # All at once, as a machine that fails would.
    kill -9 "$PG_PID" $children 2> /dev/null || true
    while kill -0 "$PG_PID" 2> /dev/null; do sleep 0.05; done
    PG_PID=
}
