"""What is tried. Each attack gets the port and the limit in bytes, runs for some seconds and
may be refused, but must not take the server or memory beyond the limit. What it returns is
shown beside its row: mostly the SQLSTATEs it was answered with."""

import collections
import socket
import struct
import threading
import time

from wire import Client, Gone, Refused, message, text

ATTACKS = {}
SYNC = message(b"S", b"")


def attack(function):
    ATTACKS[function.__name__.replace("_", "-")] = function
    return function


def answers(tries):
    """How often which answer came."""
    counts = collections.Counter("ok" if one is None else one for one in tries)
    return " ".join(f"{what}×{count}" for what, count in sorted(counts.items()))


def together(functions):
    """Runs them at once; what each was answered."""
    results = [None] * len(functions)

    def run(at, function):
        try:
            results[at] = function()
        except Refused as refused:
            results[at] = refused.sqlstate
        except (Gone, OSError):
            results[at] = "gone"

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=90)
    return results


def fill(port, table, rows, width, more=""):
    client = Client(port, timeout=300)
    client.ask(f"create table {table} (id bigint primary key, k int, pad text{more})")
    step = max(1, min(10000, (4 << 20) // width))
    for first in range(0, rows, step):
        last = min(first + step, rows) - 1
        client.ask(f"insert into {table} select g, g % 100, repeat(chr(97 + g % 26), {width}) from generate_series({first}, {last}) g")
    return client


@attack
def half_messages(port, limit):
    sockets = []
    results = []
    for _ in range(60):
        try:
            client = Client(port)
            client.socket.settimeout(3)
            client.send(b"Q" + struct.pack("!i", 60 << 20) + b"select 1 " * 1000)
            sockets.append(client)
        except (OSError, Refused, Gone) as error:
            results.append(getattr(error, "sqlstate", "gone"))

    def push(client):
        sent = 0
        piece = b" " * (1 << 16)
        end = time.time() + 15
        while sent < 30 << 20 and time.time() < end:
            try:
                sent += client.socket.send(piece)
            except TimeoutError:
                return "held back"
        return "taken"

    return answers(results + together([lambda client=client: push(client) for client in sockets]))


@attack
def cursors(port, limit):
    client = fill(port, "big", 100_000, 1000)
    client.ask("begin")
    return answers([client.try_(f"declare c{at} cursor for select * from big") or client.try_(f"fetch 1 from c{at}") for at in range(30)])


@attack
def cursors_scroll_sorted(port, limit):
    client = fill(port, "big", 100_000, 1000)
    client.ask("begin")
    results = []
    for at in range(20):
        results.append(client.try_(f"declare c{at} scroll cursor with hold for select * from big order by pad, id") or client.try_(f"fetch 1 from c{at}"))
        if results[-1]:
            client.try_("rollback")
            client.try_("begin")
    return answers(results)


@attack
def portals_10000(port, limit):
    client = fill(port, "big", 20_000, 1000)
    client.ask("begin")
    client.prepare("s", "select * from big")
    for at in range(10_000):
        client.send(client.bind(f"p{at}", "s", []) + client.execute(f"p{at}", 1))
        if at % 500 == 499:
            client.send(SYNC)
            if client.until_ready()[1]:
                client.try_("rollback")
                client.try_("begin")
    client.send(SYNC)
    return answers([getattr(client.until_ready()[1], "sqlstate", None)])


@attack
def cursors_beside_queries(port, limit):
    client = fill(port, "big", 100_000, 1000)
    sessions = [Client(port) for _ in range(3)]
    results = []
    for session in sessions:
        session.ask("begin")
        for at in range(20):
            results.append(session.try_(f"declare c{at} cursor for select * from big") or session.try_(f"fetch 1 from c{at}"))
    began = time.time()
    other = client.try_("select k, count(*) from big group by 1")
    took = time.time() - began
    rows = len(sessions[0].ask("fetch 200 from c0"))
    return f"{answers(results)}, a query beside them {answers([other])} in {took:.1f} s, {rows} rows more"


@attack
def held_cursors(port, limit):
    client = fill(port, "big", 100_000, 1000)
    results = [client.try_(f"declare c{at} cursor with hold for select * from big order by pad, id") for at in range(4)]
    rows = [len(client.ask(f"fetch 100 from c{at}")) for at in range(4) if not results[at]]
    return f"{answers(results)}, rows {rows}"


@attack
def returning_in_portals(port, limit):
    client = fill(port, "big", 30_000, 1000)
    results = []
    client.ask("begin")
    client.prepare("s", "update big set k = k + 1 where id >= $1 and id < $1::bigint + 3000 returning *")
    for at in range(10):
        client.send(client.bind(f"p{at}", "s", [str(at * 3000).encode()]) + client.execute(f"p{at}", 1) + message(b"H", b""))
    client.send(SYNC)
    rows, error = client.until_ready()
    results.append(getattr(error, "sqlstate", None))
    return f"{answers(results)}, rows {len(rows)}, " + answers([client.try_("commit")])


@attack
def unread_ranges(port, limit):
    fill(port, "big", 50_000, 1000)
    clients = [Client(port) for _ in range(30)]
    for client in clients:
        client.send(message(b"Q", text("select * from big where id between 100 and 15000")))
    time.sleep(8)
    results = []
    for client in clients:
        rows, error = client.until_ready()
        results.append(f"{len(rows)} rows" if error is None else error.sqlstate)
    return answers(results)


@attack
def sorts_and_groups(port, limit):
    fill(port, "big", 3 * limit // 1000, 1000)
    queries = ["select count(*) from (select pad, id from big order by pad, id desc offset 1) s", "select count(*) from (select pad, id, count(*) from big group by 1, 2) s"]

    def run(at):
        return Client(port, timeout=80).try_(queries[at % 2])

    return answers(together([lambda at=at: run(at) for at in range(4)]))


@attack
def repeated_texts(port, limit):
    fill(port, "big", 1000, 100)
    results = []
    clients = [Client(port) for _ in range(67)]
    for client in clients:
        for at in range(100):
            wanted = " or ".join(f"k = {at + number}" for number in range(60))
            for _ in range(2):
                results.append(client.try_(f"select pad from big where id = {at} and ({wanted})"))
    return answers(results)


@attack
def old_snapshot(port, limit):
    fill(port, "big", 50_000, 1000)
    idle = Client(port)
    idle.ask("begin isolation level repeatable read")
    idle.ask("select count(*) from big")

    def update(worker):
        client = Client(port)
        end = time.time() + 15
        done = 0
        while time.time() < end:
            client.ask(f"update big set pad = repeat('z', 1000) where id between {(done * 100 + worker * 7) % 50_000} and {(done * 100 + worker * 7) % 50_000 + 99}")
            done += 1

    results = together([lambda worker=worker: update(worker) for worker in range(4)])
    return "updates " + answers(results) + ", the old one " + answers([idle.try_("select count(*) from big")])


@attack
def unread_results(port, limit):
    fill(port, "big", 100_000, 1000)
    clients = [Client(port) for _ in range(4)]
    for client in clients:
        client.send(message(b"Q", text("select * from big")))
    time.sleep(8)
    for client in clients:
        client.close()


@attack
def unread_copies(port, limit):
    fill(port, "big", 100_000, 1000)
    clients = [Client(port) for _ in range(8)]
    for client in clients:
        client.send(message(b"Q", text("copy big to stdout")))
    time.sleep(8)


@attack
def prepared_statements(port, limit):
    fill(port, "big", 1000, 100)
    results = []
    clients = []
    for _ in range(67):
        try:
            clients.append(Client(port))
        except (Refused, Gone, OSError) as error:
            results.append(getattr(error, "sqlstate", "gone"))
            continue
        for at in range(100):
            results.append(clients[-1].prepare(f"s{at}", f"select id, k, pad from big where id = $1 and k <> {at}"))
    for client in clients:
        client.send(client.bind("", "s7", [b"7"]) + client.execute("") + SYNC)
        results.append(getattr(client.until_ready()[1], "sqlstate", None))
    return answers(results)


@attack
def insert_of_8_mb(port, limit):
    client = fill(port, "big", 10, 10)
    values = ",".join(f"({at + 100}, 1, 'x')" for at in range(480_000))
    return answers([client.try_(f"insert into big values {values[: 8 << 20].rsplit('),', 1)[0]})")])


@attack
def in_of_100000(port, limit):
    client = fill(port, "big", 10_000, 10)
    literals = ",".join(str(at) for at in range(100_000))
    return answers([client.try_(f"select count(*) from big where {column} in ({literals})") for column in ("id", "k")])


@attack
def parameters_65535(port, limit):
    client = fill(port, "big", 10_000, 10)
    marks = ",".join(f"${at + 1}" for at in range(65_535))
    results = [client.prepare("many", f"select count(*) from big where k::text in ({marks})")]
    client.send(client.bind("", "many", [b"x" * 100] * 65_535) + client.execute("") + SYNC)
    results.append(getattr(client.until_ready()[1], "sqlstate", None))
    return answers(results)


@attack
def literal_of_30_mb(port, limit):
    client = Client(port)
    return answers([client.try_(f"select length('{'x' * (30 << 20)}')")])


@attack
def parameters_of_30_mb(port, limit):
    client = Client(port)
    results = [client.prepare("p", "select " + "||".join(f"$1::text" for _ in range(1)) + ", length($2::text)")]

    def send():
        other = Client(port)
        other.prepare("p", "select length($1::text)")
        other.send(other.bind("", "p", [b"y" * (30 << 20)]) + other.execute("") + SYNC)
        return getattr(other.until_ready()[1], "sqlstate", None)

    return answers(results + together([send] * 8))


@attack
def savepoints(port, limit):
    client = fill(port, "big", 30_000, 100)
    client.ask("begin")
    results = []
    for at in range(22_592):
        if client.try_(f"savepoint s{at}") or client.try_(f"update big set k = k + 1 where id = {at}"):
            results.append(client.try_("select 1"))
            break
    results.append(client.try_("commit"))
    return answers(results)


@attack
def delete_all(port, limit):
    client = fill(port, "big", 336_000, 60)
    return answers([client.try_("delete from big")])


@attack
def update_all(port, limit):
    client = fill(port, "big", 336_000, 200)
    return answers([client.try_("update big set pad = pad || 'x'")])


@attack
def analytical_100(port, limit):
    fill(port, "big", 100_000, 200)
    queries = ["select pad, id, count(*) from big group by 1, 2 order by 3 desc, 1 limit 5", "select count(distinct pad || id::text) from big"]

    def run(at):
        return Client(port, timeout=80).try_(queries[at % 2])

    return answers(together([lambda at=at: run(at) for at in range(90)]))


@attack
def rows_of_100_kb(port, limit):
    client = fill(port, "big", 2000, 100_000)
    results = [client.try_("select count(distinct pad || id::text) from big"), client.try_("update big set pad = pad || 'x'")]
    other = Client(port)
    other.send(message(b"Q", text("select * from big order by pad")))
    time.sleep(5)
    return answers(results)


@attack
def alter_all(port, limit):
    """Rows written anew, short ones and long ones, of several times the limit."""
    client = fill(port, "big", 3 * limit // 1000, 850)
    results = [client.try_("alter table big alter k type bigint"), client.try_("alter table big alter k type text using repeat(k::text, 100)")]
    results += [client.try_("alter table big drop column k"), client.try_("alter table big add column n serial"), client.try_("select count(distinct n) from big")]
    client = fill(port, "long", 2 * limit // 1_000_000, 900_000)
    return answers(results + [client.try_("alter table long alter pad type text using pad || pad || 'x'"), client.try_("alter table long alter pad type text using pad || 'x'")])


@attack
def rows_of_900_kb(port, limit):
    client = fill(port, "big", 3 * limit // 1_000_000, 900_000)
    return answers([client.try_("select sum(length(pad)) from big")])


@attack
def wide_index(port, limit):
    client = fill(port, "big", 3 * limit // 1000, 850)
    return answers([client.try_("create index on big ((pad), id)"), client.try_("create index on big (pad)"), client.try_("create index on big (pad, k)")])


@attack
def idle_connections(port, limit):
    clients, results = [], []
    for _ in range(3200):
        try:
            clients.append(Client(port, timeout=10))
            results.append(None)
        except (Refused, Gone, OSError) as error:
            results.append(getattr(error, "sqlstate", "gone"))
    time.sleep(1)
    return answers(results)


@attack
def silent_sockets(port, limit):
    sockets = []
    for _ in range(1000):
        try:
            sockets.append(socket.create_connection(("127.0.0.1", port), timeout=2))
        except OSError:
            break
    time.sleep(2)
    return answers([Client(port).try_("select 1")])


@attack
def overlays_of_200(port, limit):
    fill(port, "big", 100_000, 500)

    def run(at):
        client = Client(port)
        client.ask("begin")
        refused = client.try_(f"update big set pad = pad || 'x' where id between {at * 500} and {at * 500 + 499}")
        time.sleep(4)
        return client.try_("commit") or refused

    return answers(together([lambda at=at: run(at) for at in range(90)]))


@attack
def copy_with_five_indexes(port, limit):
    client = Client(port, timeout=300)
    client.ask("create table wide (id bigint primary key, a text, b text, c text, d text)")
    for column in "abcd":
        client.ask(f"create index on wide ({column})")
    client.send(message(b"Q", text("copy wide from stdin")))
    for first in range(0, 400_000, 500):
        lines = "".join(f"{at}\ta{at * 7919 % 1000003}\tb{at * 104729 % 1000003}\tc{at}\td{at % 1000}\n" for at in range(first, first + 500))
        client.send(message(b"d", lines.encode()))
    client.send(message(b"c", b""))
    return answers([getattr(client.until_ready()[1], "sqlstate", None)])


@attack
def copy_line_without_end(port, limit):
    client = fill(port, "big", 10, 10)
    client.send(message(b"Q", text("copy big from stdin")))
    for _ in range(100):
        client.send(message(b"d", b"7\t7\t" if _ == 0 else b"x" * (1 << 20)))
    client.send(message(b"c", b""))
    return answers([getattr(client.until_ready()[1], "sqlstate", None)])


@attack
def tables_3000(port, limit):
    client = Client(port, timeout=300)
    return answers([client.try_(f"create table t{at} (id bigint primary key, a int, b text)") for at in range(3000)])


@attack
def values_that_grow(port, limit):
    client = fill(port, "big", 1000, 10)
    return answers(
        [
            client.try_(sql)
            for sql in (
                "select rpad(a.pad, 2147483647) from big a join big b on a.k = b.k",
                "select repeat(pad, 100000000) from big",
                "select lpad(pad, 1000000000) from big",
                "select lpad(pad, -5) from big",
                "select replace(repeat('a', 100000), 'a', repeat('b', 100000)) from big",
                "select string_agg(repeat(pad, 100000), ',') from big",
                "select array_agg(repeat(pad, 100000)) from big",
                "select length(string_agg(a.pad || b.pad || c.pad, '')) from big a, big b, big c",
                "select repeat('x', 500000000) || repeat('y', 600000000)",
                "select format('%1000000000s', 'x')",
            )
        ]
    )


@attack
def pipelined_without_end(port, limit):
    client = Client(port, timeout=5)
    piece = (message(b"P", b"\0select 1\0\0\0") + client.bind("", "", []) + client.execute("")) * 500
    end = time.time() + 10
    try:
        while time.time() < end:
            client.send(piece)
    except OSError:
        return "held back"
    return "taken"


@attack
def names_of_10_mb(port, limit):
    client = Client(port)
    name = "n" * (10 << 20)
    return answers([client.prepare(name, "select 1"), client.try_(f"set application_name = '{name}'"), client.try_(f'select 1 as "{name}"'), client.try_(f"savepoint {name}")])


@attack
def series_without_end(port, limit):
    clients = [Client(port) for _ in range(6)]
    for client in clients:
        client.send(message(b"Q", text("select g, repeat('x', 1000) from generate_series(1, 100000000000) g")))
    other = Client(port)
    other.send(message(b"Q", text("select * from generate_series(1, 100000000) g order by 1 desc")))
    time.sleep(8)


@attack
def cross_join(port, limit):
    fill(port, "big", 50_000, 100)
    clients = [Client(port) for _ in range(4)]
    for client in clients:
        client.send(message(b"Q", text("select a.pad, b.pad from big a, big b order by a.id + b.id, 1")))
    time.sleep(10)


@attack
def connection_storm(port, limit):
    def run():
        for _ in range(400):
            Client(port).close()

    return answers(together([run] * 8))


@attack
def serializable_reads(port, limit):
    fill(port, "big", 100_000, 100)

    def run(at):
        client = Client(port)
        client.ask("begin isolation level serializable")
        for key in range(at, 20_000, 3):
            client.ask(f"select k from big where id = {key}")
        return client.try_("commit")

    return answers(together([lambda at=at: run(at) for at in range(8)]))


# Values that grow in expressions: of a constant, of a row by key, over a join.
GROWING = [
    "rpad({0}, 2147483647)", "lpad({0}, 2147483647, 'é')", "lpad({0}, -5)", "rpad({0}, 200000000)", "repeat({0}, 1000000000)",
    "repeat(repeat(repeat({0}, 30000), 30000), 30000)", "replace(repeat({0}, 100000), {0}, repeat('b', 100000))",
    "repeat({0}, 100000000) || repeat({0}, 100000000)", "concat(repeat({0}, 100000000), repeat({0}, 100000000))",
    "concat_ws(repeat({0}, 1000000), repeat({0}, 100000000), {0})", "regexp_replace(repeat('a', 100000), 'a', repeat('b', 100000), 'g')",
    "translate(repeat({0}, 50000000), 'x', 'é')", "upper(repeat('ŉ', 50000000))", "array_repeat({0}, 2000000000)",
    "array_to_string(string_to_array(repeat('a,', 100000), ','), repeat('b', 100000))",
]


@attack
def growing_values(port, limit):
    client = fill(port, "big", 2_000, 10)
    client.ask("create table other (id bigint primary key); insert into other select id from big")
    results = []
    for expression in GROWING:
        results.append(client.try_("select " + expression.format("'x'")))
        results.append(client.try_("select " + expression.format("pad") + " from big where id = 7"))
        results.append(client.try_("select " + expression.format("big.pad") + " from big join other using (id)"))
    return answers(results)


@attack
def growing_aggregates(port, limit):
    client = fill(port, "big", 2_000, 10)
    return answers([client.try_(sql) for sql in [
        "select string_agg(repeat(pad, 100000), ',') from big", "select array_agg(repeat(pad, 100000)) from big",
        "select repeat(pad, 200000) from big order by 1", "select distinct repeat(pad, 100000 + k) from big",
        "with recursive r as (select 'x'::text as s from big where id = 1 union all select s || s from r) select length(s) from r",
        "insert into big values (100000, 1, repeat('x', 900000000))", "update big set pad = repeat(pad, 100000000)",
    ]])


@attack
def deep_statements(port, limit):
    results = []
    for size in (100, 900, 100_000, 1_000_000):
        client = Client(port)
        for sql in ["select 1" + "+1" * size, "select " + "(" * size + "1" + ")" * size, "select " + "array[" * size + "1" + "]" * size,
                    "select " + "not " * size + "true", "select true" + " and 1 = 1" * size, "select 1" + " union all select 1" * size,
                    "select " + "(select " * size + "1" + ")" * size, "select " + "cast(" * size, "select " + "case " * size]:
            results.append(client.try_(sql))
    return answers(results)
