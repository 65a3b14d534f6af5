#!/usr/bin/env bash
# What the server does when its disk is full, stops answering, or fails.
#
#   full:    writers get 53100 and are told why, readers go on, a checkpoint fails and is
#            tried again, a kill -9 on the full disk loses nothing, and all heals by itself
#            when there is space; memory stays below its limit
#   room:    on a full disk, after a kill -9 too, DELETE, TRUNCATE, DROP and CHECKPOINT are taken,
#            their space comes back, and writes go on
#   stalled: the file system is frozen: a view and the log say so while it lasts, memory
#            does not grow, statement_timeout works, and all goes on when it thaws
#   failing: writes end with I/O errors: the database takes no more writes, says so and what
#            to do, ends with an error, and after a restart all acknowledged is there
#
# Needs root and loop devices (a small ext4 for each part); says so and does nothing else
# without them. Takes about two minutes:
#   PARTS="full room stalled failing" IMAGE_MB=2000 LIMIT_MB=256 scripts/disk-faults.sh
# Exit code 0: all held.

source "$(dirname "$0")/server.sh"
PARTS=${PARTS:-full room stalled failing}
IMAGE_MB=${IMAGE_MB:-2000}
LIMIT_MB=${LIMIT_MB:-256}
MOUNT=$WORK/disk
DATA=$MOUNT/data

[ "$(id -u)" = 0 ] || skip "mounting needs root"
for tool in losetup mkfs.ext4 fsfreeze psql; do
    command -v $tool > /dev/null || skip "$tool is not installed"
done
losetup -f > /dev/null 2>&1 || skip "there are no loop devices here"

# mount_disk IMAGE: an empty ext4 in it, mounted.
mount_disk() {
    mkfs.ext4 -q -F -m 0 "$1"
    mkdir -p "$MOUNT"
    mount -o loop "$1" "$MOUNT" || skip "a loop device can't be mounted here"
    AT_END+=("umount -l '$MOUNT' 2> /dev/null")
}

unmount_disk() { umount "$MOUNT"; }

start() {
    start_server "$DATA" "${LIMIT_MB}MB"
    wait_for_answer "${1:-SELECT 1}"
    "$THERMOCLINE" bench rss --pid "$SERVER_PID" --limit "${LIMIT_MB}MB" > "$WORK/rss" 2>&1 &
    RSS_PID=$!
}

check_memory() {
    wait "$RSS_PID" || violation "$1: the memory limit was passed: $(tail -n 1 "$WORK/rss")"
    say "$1: $(tail -n 1 "$WORK/rss")"
}

# check_peak NAME: the most memory that the server had so far.
check_peak() {
    local peak
    peak=$(sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$SERVER_PID/status")
    say "$1: at most $((peak / 1024)) MB of memory so far"
    [ $((peak / 1024)) -lt "$LIMIT_MB" ] || violation "$1: the memory limit was passed"
}

# insert COUNT: rows of 1000 bytes in one statement; counts them when they are acknowledged.
ROWS=0
insert() {
    ask "INSERT INTO t SELECT n, repeat('p', 1000) FROM generate_series($ROWS, $((ROWS + $1 - 1))) AS g(n)" \
        > "$WORK/answer" 2>&1 || return 1
    ROWS=$((ROWS + $1))
}

# insert_until_refused SECONDS: whether a statement is refused in that time.
insert_until_refused() {
    local end=$(($(now_ms) + $1 * 1000))
    while [ "$(now_ms)" -lt "$end" ]; do
        insert 200 || return 0
    done
    return 1
}

insert_until_taken() {
    local begin=$(now_ms)
    while [ $(($(now_ms) - begin)) -lt $(($1 * 1000)) ]; do
        if insert 1; then
            say "writes go on after $(($(now_ms) - begin)) ms"
            return 0
        fi
        sleep 0.1
    done
    return 1
}

# check_rows NAME [MORE [full]]: on a full disk the query may be refused for want of memory.
check_rows() {
    local found
    found=$(ask "SELECT count(*), sum(length(payload)) FROM t" 2>&1) || true
    if [ "${3:-}" = full ] && grep -q "(53[12]00)" <<< "$found"; then
        say "$1, a query over all rows: $found"
        return
    fi
    # What was refused is not there; what crossed a kill may be.
    awk -F'|' -v rows="$ROWS" -v more="${2:-0}" '{ exit !($1 >= rows && $1 <= rows + more && $2 == $1 * 1000) }' \
        <<< "$found" || violation "$1: $ROWS rows acknowledged, found: $found"
    ROWS=${found%%|*}
}

check_reads() {
    local length
    for key in 0 $((ROWS / 2)) $((ROWS - 1)); do
        length=$(timeout 20 "$THERMOCLINE" bench query --url "$URL" "SELECT length(payload) FROM t WHERE id = $key" 2>&1) || true
        [ "$length" = 1000 ] || violation "$1: row $key: \"$length\""
    done
}

fill_disk() {
    local free
    free=$(df -B1 --output=avail "$MOUNT" | tail -n 1)
    fallocate -l $((free - $1 * 1024 * 1024)) "$MOUNT/filler"
}

# fill_disk_again: what a start may have given back goes, too.
fill_disk_again() { dd if=/dev/zero of="$MOUNT/filler-$RANDOM" bs=64k 2> /dev/null || true; }

create() { ask "CREATE TABLE t (id bigint PRIMARY KEY, payload text NOT NULL)" > /dev/null; }

full() {
    say "-- a full disk ($IMAGE_MB MB, memory limit $LIMIT_MB MB)"
    ROWS=0
    truncate -s "${IMAGE_MB}M" "$WORK/full.img"
    mount_disk "$WORK/full.img"
    start
    create
    # More than memory holds, so that there are cold rows to be read.
    local number
    for number in $(seq 30); do insert $((LIMIT_MB * 50)) || violation "before the disk is full: $(cat "$WORK/answer")"; done
    fill_disk 4
    local begin=$(now_ms)
    if insert_until_refused 120; then
        say "refused after $(($(now_ms) - begin)) ms and $ROWS rows: $(tail -n 1 "$WORK/answer")"
        grep -q 53100 "$WORK/answer" || violation "full: refused with $(cat "$WORK/answer")"
    else
        violation "full: nothing was refused"
    fi
    check_reads full
    check_peak "full, writes refused and rows read"
    check_rows full 0 full
    check_peak "full, a query over all rows"
    if ask CHECKPOINT > "$WORK/answer" 2>&1; then
        say "a checkpoint still had room"
    else
        grep -q 53100 "$WORK/answer" || violation "full: the checkpoint failed with $(cat "$WORK/answer")"
        say "checkpoint: $(tail -n 1 "$WORK/answer")"
    fi
    is_running || violation "full: the server is gone"
    kill_server
    wait "$RSS_PID" || true
    start "SELECT count(*) FROM t WHERE id = 0"
    check_peak "full, a start"
    say "a start on the full disk after kill -9: first answer after $ANSWERED_MS ms"
    check_rows "full, after kill -9" 200 full
    check_peak "full, after kill -9, a query over all rows"
    check_reads "full, after kill -9"
    rm "$MOUNT/filler"
    insert_until_taken 20 || violation "full: no healing: $(cat "$WORK/answer")"
    check_peak "full, writes go on"
    local tries
    for tries in 1 2 3 4 5; do ask CHECKPOINT > "$WORK/answer" 2>&1 && break; sleep 0.5; done
    [ ! -s "$WORK/answer" ] || grep -qv ERROR "$WORK/answer" || violation "full: no checkpoint after healing: $(cat "$WORK/answer")"
    check_rows "full, healed" 200
    check_peak "full, healed"
    stop_server
    wait "$RSS_PID" || true
    say "the server's log: $(grep -m 1 "no space" "$WORK/server.log" || violation "full: the log has no word of it")"
    unmount_disk
    rm "$WORK/full.img"
}

# make_room NAME SQL: a statement that makes room must not be refused.
make_room() {
    ask "$2" > "$WORK/answer" 2>&1 || violation "room: $1 was refused: $(cat "$WORK/answer")"
}

free_mb() { df -B1M --output=avail "$MOUNT" | tail -n 1 | tr -d ' '; }

room() {
    say "-- room is made on a full disk ($IMAGE_MB MB, memory limit $LIMIT_MB MB)"
    ROWS=0
    truncate -s "${IMAGE_MB}M" "$WORK/room.img"
    mount_disk "$WORK/room.img"
    # A checkpoint may have to write all rows in memory.
    export THERMOCLINE_DISK_RESERVE=$((LIMIT_MB + 96))MB
    start
    create
    local name number
    for name in dropped emptied thinned; do
        ask "CREATE TABLE $name (id bigint PRIMARY KEY, payload text NOT NULL)" > /dev/null
        for number in 0 1 2 3 4 5; do
            ask "INSERT INTO $name SELECT n, repeat('p', 1000) FROM generate_series($((number * 10000)), $((number * 10000 + 9999))) AS g(n)" > /dev/null
        done
    done
    ask "CREATE INDEX more ON thinned (payload, id)" > /dev/null || true
    make_room "a first checkpoint" CHECKPOINT
    insert 200 || violation "room: before the disk is full: $(cat "$WORK/answer")"
    fill_disk 4
    insert_until_refused 120 || violation "room: nothing was refused"
    fill_disk_again
    say "refused: $(tail -n 1 "$WORK/answer"); $(free_mb) MB are free"
    kill_server
    wait "$RSS_PID" || true
    start
    fill_disk_again
    insert_until_refused 120 || violation "room: nothing was refused after kill -9"
    # Where memory is full, too, there may be no room for so many changes at once.
    if ! ask "DELETE FROM thinned WHERE id < 5000" > "$WORK/answer" 2>&1; then
        grep -q "memory is full" "$WORK/answer" || violation "room: DELETE was refused: $(cat "$WORK/answer")"
        for number in $(seq 0 250 4750); do
            make_room "a DELETE of 250 rows" "DELETE FROM thinned WHERE id BETWEEN $number AND $((number + 249))"
        done
    fi
    make_room "a DELETE of one row" "DELETE FROM thinned WHERE id = 5000"
    make_room "DROP INDEX" "DROP INDEX more"
    make_room "TRUNCATE" "TRUNCATE emptied"
    make_room "DROP TABLE" "DROP TABLE dropped"
    make_room "CHECKPOINT" CHECKPOINT
    make_room "CHECKPOINT, again" CHECKPOINT
    say "$(free_mb) MB are free after that"
    [ "$(free_mb)" -ge 50 ] || violation "room: little came back: $(free_mb) MB"
    insert_until_taken 20 || violation "room: no writes after that: $(cat "$WORK/answer")"
    for number in 1 2 3 4 5; do insert 2000 || violation "room: writes do not go on: $(cat "$WORK/answer")"; done
    check_rows room 200
    [ "$(ask "SELECT count(*) FROM thinned")" = 54999 ] || violation "room: thinned has $(ask "SELECT count(*) FROM thinned") rows"
    [ "$(ask "SELECT count(*) FROM emptied")" = 0 ] || violation "room: emptied has rows"
    kill_server
    wait "$RSS_PID" || true
    start
    check_rows "room, after kill -9" 200
    stop_server
    wait "$RSS_PID" || true
    unset THERMOCLINE_DISK_RESERVE
    unmount_disk
    rm "$WORK/room.img"
}

stalled() {
    say "-- a disk that does not answer"
    ROWS=0
    truncate -s "${IMAGE_MB}M" "$WORK/stalled.img"
    mount_disk "$WORK/stalled.img"
    : > "$WORK/server.log"
    start
    create
    insert 200
    fsfreeze -f "$MOUNT"
    AT_END+=("fsfreeze -u '$MOUNT' 2> /dev/null")
    ask "INSERT INTO t VALUES (1000000, repeat('p', 1000))" > "$WORK/stalled-answer" 2>&1 &
    local insert_pid=$! begin code=0
    sleep 1
    begin=$(now_ms)
    # A read must not see a commit that is not durable: it waits, but not for ever.
    timeout 20 psql -X -v VERBOSITY=verbose -h 127.0.0.1 -p "$PORT" -U postgres -c "SET statement_timeout = 1000" \
        -c "SELECT payload FROM t WHERE id = 1000000" postgres > "$WORK/answer" 2>&1 || code=$?
    say "statement_timeout of 1 s: $(grep -m 1 ERROR "$WORK/answer") after $(($(now_ms) - begin)) ms"
    [ $code != 0 ] && grep -q 57014 "$WORK/answer" || violation "stalled: no timeout: $(cat "$WORK/answer")"
    sleep 6
    local view
    view=$(ask "SELECT outstanding, oldest_outstanding_ms FROM thermocline_devices")
    say "thermocline_devices: outstanding and the oldest, ms: $view"
    awk -F'|' '{ exit !($1 >= 1 && $2 >= 6000) }' <<< "$view" || violation "stalled: the view says $view"
    grep "does not answer" "$WORK/server.log" || violation "stalled: the log has no word of it"
    fsfreeze -u "$MOUNT"
    wait "$insert_pid" || violation "stalled: the waiting statement failed: $(cat "$WORK/stalled-answer")"
    ROWS=$((ROWS + 1))
    sleep 2
    grep "answers again" "$WORK/server.log" || violation "stalled: the log does not say that it is over"
    check_rows stalled
    stop_server
    check_memory stalled
    unmount_disk
    rm "$WORK/stalled.img"
}

failing() {
    say "-- a disk that fails"
    ROWS=0
    # The image has holes, and what it lies on fills up: writes into the holes fail, which
    # the file system above sees as I/O errors.
    mkdir -p "$WORK/below"
    mount -t tmpfs -o "size=$((IMAGE_MB / 8))M" tmpfs "$WORK/below"
    AT_END+=("umount -l '$WORK/below' 2> /dev/null")
    truncate -s "$((IMAGE_MB * 4))M" "$WORK/below/failing.img"
    mount_disk "$WORK/below/failing.img"
    : > "$WORK/server.log"
    start
    create
    insert 200
    dd if=/dev/zero of="$WORK/below/filler" bs=1M 2> /dev/null || true
    if insert_until_refused 120; then
        say "refused: $(tail -n 1 "$WORK/answer")"
        grep -q 58030 "$WORK/answer" || violation "failing: refused with $(cat "$WORK/answer")"
    else
        violation "failing: nothing was refused"
    fi
    insert 1 && violation "failing: a write was taken after that"
    sleep 2
    grep -m 1 "the log could not be made durable" "$WORK/server.log" || violation "failing: the log has no word of it"
    local code=0
    if is_running; then kill -INT "$SERVER_PID"; fi
    wait "$SERVER_PID" || code=$?
    SERVER_PID=
    [ $code != 0 ] || violation "failing: the server's end was said to be clean"
    say "the server's exit code: $code"
    check_memory failing
    umount "$MOUNT"
    rm "$WORK/below/filler"
    local image=$WORK/below/failing.img
    e2fsck -fy "$image" > "$WORK/e2fsck" 2>&1 || true
    mount -o loop "$image" "$MOUNT"
    start "SELECT count(*) FROM t WHERE id = 0"
    check_rows "failing, after a restart" 200
    insert_until_taken 20 || violation "failing: no writes after the restart: $(cat "$WORK/answer")"
    stop_server
    wait "$RSS_PID" || violation "failing: the memory limit was passed"
    unmount_disk
    umount "$WORK/below"
}

for part in $PARTS; do $part; done
finish
