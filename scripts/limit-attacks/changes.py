"""Attacks by changes that a query finds the rows of, by notifications, and by what is temporary."""

import time

from attacks import answers, attack, fill, together
from wire import Client, Gone, Refused


@attack
def changes_by_query(port, limit):
    """A query hands over new values of all rows: more than fits at once."""
    client = fill(port, "big", limit // 1000, 1000)
    client.ask("create table other (id bigint primary key, n int)")
    client.ask("insert into other select id, k from big")
    return answers(
        client.try_(change)
        for change in (
            "update big set pad = repeat(chr(97 + o.n % 26), 1000) from other o where o.id = big.id",
            "update big set pad = (select repeat('y', 1000 + o.n) from other o where o.id = big.id)",
            f"update big set pad = repeat('x', {limit // 20}) from other o where o.id = big.id and o.id < 100",
            "delete from big using other o where o.id = big.id",
        )
    )


@attack
def changes_by_query_at_once(port, limit):
    fill(port, "big", limit // 2000, 1000)

    def change(at):
        own = Client(port, timeout=80)
        return own.try_(f"update big set pad = o.pad || '{at}' from big o where o.id = big.id + 1")

    return answers(together([lambda at=at: change(at) for at in range(16)]))


@attack
def insert_from_query(port, limit):
    client = fill(port, "big", limit // 500, 1000)
    client.ask("create table copied (id bigint primary key, pad text, more text)")
    return answers(
        client.try_(change)
        for change in (
            "insert into copied select a.id, a.pad, b.pad from big a join big b using (id)",
            "insert into copied select a.id * 1000 + b.k, a.pad, repeat('x', 5000) from big a, big b where b.id < 100",
            "create table again as select a.id, a.pad || b.pad as pad from big a join big b using (id)",
        )
    )


@attack
def notifications_unread(port, limit):
    """One that listens never reads, or stays in its transaction; others notify without end."""
    listeners = [Client(port) for _ in range(8)]
    for at, listener in enumerate(listeners):
        listener.ask("listen c")
        if at % 2:
            listener.ask("begin")
            listener.ask("select 1")

    def notify(worker):
        client = Client(port)
        end = time.time() + 10
        told = []
        while time.time() < end:
            told.append(client.try_(f"select count(pg_notify('c', repeat('x', 7900) || g::text || '{worker}')) from generate_series(1, 200) g"))
        return told

    results = together([lambda at=at: notify(at) for at in range(4)])
    answered = [one for told in results for one in (told if isinstance(told, list) else [told])]
    return answers(answered)


@attack
def notifications_in_one_transaction(port, limit):
    client = Client(port, timeout=90)
    client.ask("begin")
    told = []
    for at in range(400):
        told.append(client.try_(f"select count(pg_notify('c{at}', repeat('x', 7900) || g::text)) from generate_series(1, 1000) g"))
        if told[-1]:
            break
    return answers(told)


@attack
def channels_of_a_million(port, limit):
    def listen(worker):
        client = Client(port, timeout=90)
        told = []
        for at in range(0, 125_000, 1000):
            told.append(client.try_(";".join(f"listen c{worker}_{one}_{'n' * 40}" for one in range(at, at + 1000))))
        return told

    results = together([lambda at=at: listen(at) for at in range(8)])
    return answers(one for told in results for one in (told if isinstance(told, list) else [told]))


@attack
def temporary_tables(port, limit):
    """Sessions that make temporary tables, fill them, and end or not."""

    def make(worker):
        told = []
        for turn in range(4):
            client = Client(port, timeout=90)
            for at in range(30):
                told.append(client.try_(f"create temp table t{at} (id int primary key, pad text)"))
                told.append(client.try_(f"insert into t{at} select g, repeat('x', 1000) from generate_series(1, 500) g"))
            if turn % 2:
                client.close()
            else:
                told.append(client.try_("discard temp"))
        return told

    results = together([lambda at=at: make(at) for at in range(8)])
    return answers(one for told in results for one in (told if isinstance(told, list) else [told]))


@attack
def wide_values_of_types(port, limit):
    """Values of jsonb and arrays: built, stored, compared, changed."""
    client = Client(port, timeout=90)
    client.ask("create table docs (id int primary key, j jsonb, a int[])")
    size = limit // 200
    return answers(
        client.try_(statement)
        for statement in (
            f"insert into docs select g, jsonb_build_object('k', repeat('x', 1000), 'g', g), array_fill(g, array[250]) from generate_series(1, {limit // 2000}) g",
            f"update docs set a = array_fill(7, array[{size}]) where id < 20",
            "select count(distinct j) from docs",
            "select jsonb_agg(j) from docs",
            "select array_agg(a) from docs",
            "select count(*) from docs a, docs b where a.j = b.j",
            f"select length(array_fill(7, array[{limit // 8}])::text)",
            "update docs set j = j || jsonb_build_object('more', j)",
        )
    )


@attack
def inner_statements(port, limit):
    """Rows of statements within a statement: more than fits at once."""
    client = fill(port, "big", limit // 1000, 1000)
    client.ask("create table narrow (id bigint primary key, k int)")
    client.ask("insert into narrow select id, k from big")
    fill(port, "wide", limit // 4_000_000, 900_000)
    return answers(
        client.try_(statement)
        for statement in (
            "with g as (select * from wide for update) select count(*) from g",
            "with g as (select * from wide where id >= 0 order by id for update skip locked) select count(*) from g",
            "select * from wide join narrow using (id) for update of narrow",
            "with g as (select * from big for update) select count(*) from g",
            "select count(*) from narrow where id in (select id from big for update)",
            "with g as (delete from big returning *) select count(*) from g",
            "with g as (update narrow set k = 1 returning *) select count(*) from g",
            "select b.*, n.k from big b join narrow n using (id) for update",
            "with g as (insert into big select id + 100000000, k, pad || pad from big returning *) select count(*) from g",
        )
    )
