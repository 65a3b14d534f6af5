#!/usr/bin/env bash
# What `compression = lz4` saves on the device, and what it costs the processor: the same rows
# with and without it, many times the memory limit, read by key through a client.
#
#   ROWS=4000000 LIMIT_MB=128 SECONDS_EACH=20 ROUNDS=3 CLIENTS=16 scripts/compression.sh
#
# A row is an order with names, places and a remark of some words (about 330 bytes). Needs root (for
# the processor time of a cgroup) and pgbench. Prints a table in Markdown; medians of the rounds, in turns.
# Takes about ten minutes and 2.5 GB.

source "$(dirname "$0")/server.sh"
ROWS=${ROWS:-4000000}
LIMIT_MB=${LIMIT_MB:-128}
SECONDS_EACH=${SECONDS_EACH:-20}
ROUNDS=${ROUNDS:-3}
CLIENTS=${CLIENTS:-16}
[ "$(id -u)" = 0 ] || skip "cgroups need root"
command -v pgbench > /dev/null || skip "pgbench is not installed"

counted server
start_server "$WORK/data" "${LIMIT_MB}MB" "$GROUP"
wait_for_answer
cpu_us() { echo $(($(cat "$GROUP/cpuacct.usage") / 1000)); }
read_bytes() { awk '$1 == "read_bytes:" { print $2 }' "/proc/$SERVER_PID/io"; }

WORDS="'{carefully,final,deposits,sleep,quickly,among,the,furious,requests,ironic,pending,packages,above,regular,accounts,bold,express,theodolites,special,unusual,even,silent,foxes,blithely}'::text[]"
CITIES="'{Berlin,Lisbon,Nairobi,Osaka,Quito,Tallinn,Toronto,Wellington}'::text[]"
word() { echo "($WORDS)[1 + ((id * 2654435761 / $1) % 24)::int]"; }
REMARK=$(for divisor in 1 31 977 3571 12553 45007 99991 350003 1000003 5000011 20000003 90000049; do printf '%s || %s || ' "$(word "$divisor")" "' '"; done)

for compression in none lz4; do
    began=$(now_ms) cpu=$(cpu_us)
    ask "CREATE TABLE orders_$compression (id bigint PRIMARY KEY, customer text, street text, city text, status text, ordered timestamptz, total numeric, remark text) WITH (compression = $compression)" > /dev/null
    for ((from = 1; from <= ROWS; from += 100000)); do
        ask "INSERT INTO orders_$compression SELECT id, 'Customer#' || lpad((id * 7919 % 150000)::text, 9, '0'), (id % 250) || ' ' || $(word 7) || ' street, floor ' || id % 12, ($CITIES)[1 + (id * 31 % 8)::int], CASE id % 5 WHEN 0 THEN 'in preparation' ELSE 'delivered' END, timestamptz '2020-01-01' + id * interval '40 s', (id * 104729 % 1000000)::numeric / 100, $REMARK 'order ' || id FROM generate_series($from::bigint, least($((from + 99999)), $ROWS)) id" > /dev/null
    done
    ask "CHECKPOINT" > /dev/null
    eval "LOADED_$compression=$(($(now_ms) - began)) LOAD_CPU_$compression=$(($(cpu_us) - cpu))"
done

# bytes TABLE: of its blocks on the device.
bytes() { ask "SELECT sum(bytes_written) FROM thermocline_policies WHERE relname = 'orders_$1'" | tail -n 1; }

say "| | \`none\` | \`lz4\` |"
say "|---|---:|---:|"
say "| bytes of blocks written by the load, MB | $(($(bytes none) / 1000000)) | $(($(bytes lz4) / 1000000)) |"
say "| load of $ROWS rows, s | $((LOADED_none / 1000)) | $((LOADED_lz4 / 1000)) |"
say "| its processor time, s | $((LOAD_CPU_none / 1000000)) | $((LOAD_CPU_lz4 / 1000000)) |"

for law in uniform zipf; do
    for compression in none lz4; do
        case $law in
            uniform) echo "\\set id random(1, $ROWS)" ;;
            zipf) echo "\\set id random_zipfian(1, $ROWS, 1.05)" ;;
        esac > "$WORK/$law-$compression.sql"
        echo "SELECT * FROM orders_$compression WHERE id = :id" >> "$WORK/$law-$compression.sql"
    done
    declare -A TPS=() CPU=() READ=()
    for ((round = 1; round <= ROUNDS; round++)); do
        for compression in none lz4; do
            run=(pgbench -h 127.0.0.1 -p "$PORT" -U postgres -n -M prepared -c "$CLIENTS" -j 2 -f "$WORK/$law-$compression.sql")
            "${run[@]}" -T 5 postgres > /dev/null 2>&1
            cpu=$(cpu_us) read=$(read_bytes)
            "${run[@]}" -T "$SECONDS_EACH" postgres > "$WORK/pgbench.out" 2>&1 || violation "$law, $compression: $(tail -n 1 "$WORK/pgbench.out")"
            cpu=$(($(cpu_us) - cpu)) read=$(($(read_bytes) - read))
            done_=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' "$WORK/pgbench.out")
            TPS[$compression]+=" $((done_ / SECONDS_EACH))"
            CPU[$compression]+=" $((cpu / done_))"
            READ[$compression]+=" $((read / done_))"
        done
    done
    say "| $law: reads a second | $(median "${TPS[none]}") | $(median "${TPS[lz4]}") |"
    say "| $law: processor time a read, µs | $(median "${CPU[none]}") | $(median "${CPU[lz4]}") |"
    say "| $law: bytes of the device a read | $(median "${READ[none]}") | $(median "${READ[lz4]}") |"
done
stop_server
"$THERMOCLINE" check -D "$WORK/data" > "$WORK/check.out" 2>&1 || violation "check: $(tail -n 1 "$WORK/check.out")"
finish
