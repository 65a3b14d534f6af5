# Memory cgroups of GROUP_BYTES, version 1 or 2; sourced by other scripts, after server.sh.
# Needs root.

# make_group NAME: a memory cgroup of GROUP_BYTES, version 1 or 2; sets GROUP.
make_group() {
    if [ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
        GROUP=/sys/fs/cgroup/memory/thermocline-trial-$$-$1
        mkdir "$GROUP" || skip "memory cgroups can't be made here"
        echo "$GROUP_BYTES" > "$GROUP/memory.limit_in_bytes"
        echo "$GROUP_BYTES" > "$GROUP/memory.memsw.limit_in_bytes" 2> /dev/null || true
    elif grep -qw memory /sys/fs/cgroup/cgroup.subtree_control 2> /dev/null; then
        GROUP=/sys/fs/cgroup/thermocline-trial-$$-$1
        mkdir "$GROUP" || skip "memory cgroups can't be made here"
        echo "$GROUP_BYTES" > "$GROUP/memory.max"
        echo 0 > "$GROUP/memory.swap.max" 2> /dev/null || true
    else
        skip "there is no memory cgroup"
    fi
    AT_END+=("for i in 1 2 3 4 5 6 7 8 9 10; do rmdir '$GROUP' 2> /dev/null && break; sleep 0.2; done")
}

# show_group NAME GROUP: what the kernel says of it; a kill is a violation.
show_group() {
    local killed
    if [ -e "$2/memory.failcnt" ]; then
        killed=$(sed -n 's/^oom_kill //p' "$2/memory.oom_control")
        say "$1: cgroup limit $GROUP_BYTES, peak $(cat "$2/memory.max_usage_in_bytes")," \
            "failcnt $(cat "$2/memory.failcnt") (page cache given back counts), oom_kill ${killed:-unknown}"
    else
        killed=$(sed -n 's/^oom_kill //p' "$2/memory.events")
        say "$1: cgroup limit $GROUP_BYTES, $(tr '\n' ' ' < "$2/memory.events")"
    fi
    [ "${killed:-0}" = 0 ] || violation "$1: the kernel killed $killed processes of the group"
}
