"""Hostile sessions, at random from a seed, against one server in a memory cgroup: each connects,
makes some moves, mostly without reading or tidying up, and goes away in one way or another.
Beside them one client reads by key, and one keeps a ledger of what it was told is committed."""

import argparse
import collections
import multiprocessing
import os
import random
import shutil
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from run import MB, Group, behave, sample, start  # noqa: E402
from wire import Client, Gone, Refused, message, text  # noqa: E402

SYNC = message(b"S", b"")
# What a statement may not be answered with, whatever it is.
FORBIDDEN = ("XX000", "XX001", "XX002")
MOVES = []


def move(weight):
    def add(function):
        MOVES.extend([function] * weight)
        return function

    return add


@move(8)
def read(client, rng):
    return client.try_(f"select * from hostile where id = {rng.randrange(5000)}")


@move(6)
def write(client, rng):
    size = rng.choice([10, 100, 1000, 20_000, 300_000])
    row = rng.randrange(5000)
    return client.try_(f"insert into hostile values ({row}, {rng.randrange(100)}, '{'x' * size}') on conflict (id) do update set pad = excluded.pad, k = hostile.k + 1")


@move(3)
def delete(client, rng):
    first = rng.randrange(5000)
    return client.try_(f"delete from hostile where id between {first} and {first + rng.randrange(200)}")


@move(2)
def many_values(client, rng):
    count = rng.choice([100, 5000, 60_000])
    first = rng.randrange(5000)
    values = ",".join(f"({100_000 + first + at},1,'v')" for at in range(count))
    return client.try_(f"insert into hostile values {values} on conflict do nothing")


@move(2)
def long_list(client, rng):
    return client.try_(f"select count(*) from hostile where id in ({','.join(map(str, range(rng.choice([1000, 50_000]))))})")


@move(2)
def half_message(client, rng):
    client.send(b"Q" + struct.pack("!i", rng.choice([1, 60]) << 20) + b"select " * rng.randrange(20_000))
    time.sleep(rng.random() * 2)
    raise Gone()


@move(2)
def prepared(client, rng):
    answers = [client.prepare(f"s{rng.randrange(500)}", f"select * from hostile where id = $1 and k > {at}") for at in range(rng.randrange(100))]
    return next((answer for answer in answers if answer and answer != "42P05"), None)


@move(3)
def cursor(client, rng):
    hold = rng.choice(["", "with hold"])
    scroll = rng.choice(["", "scroll"])
    order = rng.choice(["", "order by pad", "order by k, id"])
    name = f"c{rng.randrange(1 << 30)}"
    if not hold:
        client.try_("begin")
    return client.try_(f"declare {name} {scroll} cursor {hold} for select * from hostile {order}") or client.try_(f"fetch {rng.choice([1, 10, 1000])} from {name}")


@move(2)
def portals(client, rng):
    client.try_("begin")
    client.prepare("", "select * from hostile")
    for at in range(rng.randrange(200)):
        client.send(client.bind(f"p{at}", "", []) + client.execute(f"p{at}", 1))
    client.send(SYNC)
    return getattr(client.until_ready()[1], "sqlstate", None)


@move(2)
def savepoints(client, rng):
    client.try_("begin")
    for at in range(rng.randrange(2000)):
        error = client.try_(f"savepoint s{at}") or (at % 10 == 0 and client.try_(f"update hostile set k = k + 1 where id = {rng.randrange(5000)}")) or None
        if error:
            return error
    return client.try_(rng.choice(["commit", "rollback"]))


@move(2)
def long_snapshot(client, rng):
    client.try_("begin isolation level repeatable read")
    error = client.try_("select count(*) from hostile")
    time.sleep(rng.random() * 8)
    return error or client.try_("select count(*) from hostile") or client.try_("commit")


@move(2)
def unread(client, rng):
    client.send(message(b"Q", text("select * from hostile a, hostile b" if rng.random() < 0.3 else "select * from hostile")))
    time.sleep(rng.random() * 4)
    raise Gone()


@move(3)
def analytical(client, rng):
    return client.try_(
        rng.choice(
            [
                "select k, count(*), max(pad) from hostile group by k",
                "select count(distinct pad) from hostile",
                "select pad, k from hostile order by pad, k limit 10",
                "select a.k, count(*) from hostile a join hostile b on a.k = b.k group by 1",
                "select string_agg(pad, '') from hostile",
                "select array_agg(pad) from hostile",
                "select max(length(rpad(pad, 2000000))) from hostile",
                "update hostile set k = k + 1",
            ]
        )
    )


@move(2)
def copy_in(client, rng):
    client.send(message(b"Q", text("copy hostile from stdin")))
    tag, _ = client.read_message()
    if tag != b"G":
        client.until_ready()
        return None
    base = rng.randrange(1 << 40)
    for at in range(rng.randrange(200)):
        client.send(message(b"d", b"".join(b"%d\t1\t%s\n" % (base + at * 100 + row, b"c" * 500) for row in range(100))))
    if rng.random() < 0.3:
        raise Gone()
    client.send(message(rng.choice([b"c", b"f"]), b"") if rng.random() < 0.5 else message(b"f", b"no\0"))
    return getattr(client.until_ready()[1], "sqlstate", None)


@move(2)
def define(client, rng):
    name = f"h{rng.randrange(20)}"
    return client.try_(
        rng.choice(
            [
                f"create table if not exists {name} (id int primary key, v text)",
                f"insert into {name} select g, 'v' from generate_series(1, 1000) g on conflict do nothing",
                f"create index on {name} (v)",
                f"alter table {name} add column c{rng.randrange(9)} int default 1",
                f"truncate {name}",
                f"drop table if exists {name}",
                "begin",
                "rollback",
                "checkpoint",
            ]
        )
    )


@move(2)
def parameters(client, rng):
    count, size = rng.choice([(10, 1000), (60_000, 4), (4, 4 << 20)])
    error = client.prepare("", f"select count(*) from hostile where pad in ({','.join(f'${at + 1}' for at in range(count))})")
    if error:
        return error
    client.send(client.bind("", "", [b"v" * size] * count) + client.execute("") + SYNC)
    return getattr(client.until_ready()[1], "sqlstate", None)


@move(1)
def rubbish(client, rng):
    client.send(bytes(rng.randrange(256) for _ in range(rng.randrange(200))))
    raise Gone()


def hostile(port, seed, until, answers, server, trace):
    """One session after the other, until the end."""
    rng = random.Random(seed)
    counts = collections.Counter()

    def say(what):
        if trace:
            print(f"{time.time() % 10000:.3f} {seed} {what}", file=trace, flush=True)

    while time.time() < until and server.poll() is None:
        client = None
        try:
            client = Client(port, timeout=30)
            client.try_("set statement_timeout = '20s'")
            for _ in range(rng.randrange(1, 20)):
                chosen = rng.choice(MOVES)
                say(chosen.__name__)
                answer = chosen(client, rng)
                say(f"{chosen.__name__}: {answer}")
                counts["ok" if answer is None else answer] += 1
                if answer in FORBIDDEN:
                    counts[f"{answer} by {chosen.__name__}"] += 1
                if time.time() > until:
                    break
        except Refused as refused:
            counts[refused.sqlstate] += 1
        except (OSError, Gone, struct.error):
            counts["gone"] += 1
        finally:
            if client:
                client.close()
    answers.put(counts)


def ledger(port, stop, told):
    """Commits numbers one after the other; the last that it was told is durable."""
    try:
        client = Client(port, timeout=120)
        number = 0
        while not stop.is_set():
            if client.try_(f"insert into ledger values ({number + 1})") is None:
                number += 1
                told.value = number
            time.sleep(0.01)
    except (OSError, Gone, Refused) as error:
        print(f"  the ledger: {error!r}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program")
    parser.add_argument("--work")
    parser.add_argument("--port", type=int)
    parser.add_argument("--limit-mb", type=int, default=128)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--sessions", type=int, default=12)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--server-arguments", default="")
    parser.add_argument("--trace", help="a file for what each session does")
    parser.add_argument("--moves", default="", help="only these, by their names and commas")
    parser.add_argument("--p99-ms", type=float, default=0.0, help="0: the latency is told and not judged")
    arguments = parser.parse_args()
    if arguments.moves:
        chosen = arguments.moves.split(",")
        MOVES[:] = [function for function in MOVES if function.__name__ in chosen]
    limit = arguments.limit_mb * MB
    directory = f"{arguments.work}/hostile"
    group = Group(f"thermocline-hostile-{os.getpid()}", limit * 11 // 10)
    server = start(arguments, limit, directory, group)
    client = Client(arguments.port)
    client.ask("create table hostile (id bigint primary key, k int, pad text)")
    client.ask("create index on hostile (k)")
    client.ask("insert into hostile select g, g % 100, repeat('p', 200) from generate_series(1, 5000) g")
    client.ask("create table ledger (n bigint primary key)")
    client.close()
    stop, most, told = multiprocessing.Event(), multiprocessing.Value("Q", 0), multiprocessing.Value("Q", 0)
    latencies, answers = multiprocessing.Manager().list(), multiprocessing.Queue()
    beside = [
        multiprocessing.Process(target=sample, args=(server.pid, stop, most, limit)),
        multiprocessing.Process(target=behave, args=(arguments.port, stop, latencies)),
        multiprocessing.Process(target=ledger, args=(arguments.port, stop, told)),
    ]
    for process in beside:
        process.start()
    print(f"seed {arguments.seed}, {arguments.sessions} sessions, {arguments.minutes} minutes at {arguments.limit_mb} MB", flush=True)
    until = time.time() + arguments.minutes * 60
    trace = open(arguments.trace, "w", encoding="ascii") if arguments.trace else None
    threads = [threading.Thread(target=hostile, args=(arguments.port, arguments.seed + at, until, answers, server, trace), daemon=True) for at in range(arguments.sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=max(0.0, until - time.time()) + 60)
    hung = sum(thread.is_alive() for thread in threads)
    alive = server.poll() is None
    stop.set()
    for process in beside:
        process.join(timeout=30)
        process.kill()
    counts = collections.Counter()
    while not answers.empty():
        counts.update(answers.get())
    wrong = []
    if alive:
        rows = len(Client(arguments.port, timeout=120).ask("select n from ledger"))
        if rows < told.value:
            wrong.append(f"{told.value} commits were told, {rows} are there")
        server.terminate()
        try:
            server.wait(timeout=60)
        except subprocess.TimeoutExpired:
            wrong.append("it does not stop")
            server.kill()
    else:
        wrong.append("the server is dead")
    server.wait()
    group.remove()
    seen = sorted(latencies)
    p99 = seen[len(seen) * 99 // 100] if seen else float("inf")
    if most.value > limit:
        wrong.append("memory went beyond the limit")
    if hung:
        wrong.append(f"{hung} sessions hang")
    if seen and seen[-1] == float("inf"):
        wrong.append("the client that behaves was sent away")
    if arguments.p99_ms and p99 > arguments.p99_ms:
        wrong.append(f"p99 is above {arguments.p99_ms} ms")
    wrong += [f"{count} × {answer}" for answer, count in counts.items() if " by " in answer]
    print(f"most resident {most.value / MB:.1f} MB; another client's p99 {p99:.1f} ms of {len(seen)} reads; ledger {told.value}")
    print("answers: " + " ".join(f"{answer}×{count}" for answer, count in counts.most_common()))
    print("held" if not wrong else "DID NOT HOLD: " + "; ".join(wrong))
    if not wrong:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
