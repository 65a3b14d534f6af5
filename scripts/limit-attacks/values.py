"""Attacks by large values that expressions make of small rows, and by what takes long for each row."""

from attacks import answers, attack, fill, together
from wire import Client

# Each makes of a row of a kilobyte some hundred of them, or works on it as long as on so many.
LENGTHS = (
    "select max(length(rpad(pad, 2000000))) from big",
    "select count(*) from big where length(rpad(pad, 2000000)) < 5",
    "select count(*) from big where length(md5(repeat(pad, 2000))) = 5",
    "select sum(length(regexp_replace(repeat(pad, 100), 'x', 'yy', 'g'))) from big",
    "select count(*) from big where repeat(pad, 100) like '%x%x%x%x%x%y'",
    "select count(*) from big where repeat(pad, 10) ~ '(x+x+)+y'",
    "select max(upper(pad) || repeat(pad, 40) || lower(pad) || repeat(pad, 40)) from big",
)


def each(port, statements, seconds):
    """All of them, three sessions at a time, with a limit of time for each."""

    def run(part):
        client = Client(port, timeout=120)
        client.ask(f"set statement_timeout = '{seconds}s'")
        return "+".join(str(client.try_(statement)) for statement in part)

    return answers(together([lambda at=at: run(statements[at::3]) for at in range(3)]))


@attack
def dear_rows_few(port, limit):
    """Of a table that is small: the statements are short ones."""
    fill(port, "big", 5000, 1000)
    return each(port, LENGTHS, 4)


@attack
def dear_rows_many(port, limit):
    fill(port, "big", limit // 2000, 1000)
    return each(port, LENGTHS, 4)


@attack
def dear_changes(port, limit):
    fill(port, "big", 5000, 1000)
    return each(
        port,
        (
            "update big set k = length(rpad(pad, 2000000))",
            "delete from big where length(rpad(pad, 2000000)) < 5",
            "update big set k = k + 1 where length(md5(repeat(pad, 2000))) = 32",
            "insert into big select id + 1000000, length(rpad(pad, 2000000)), pad from big",
            "select count(*) from big where length(rpad(pad, 2000000)) > 5 limit 1",
            "select id from big where length(rpad(pad, 2000000)) > 5 order by k limit 10 for update",
        ),
        4,
    )


@attack
def large_values_kept(port, limit):
    """By sorts, groups, joins, windows and aggregates."""
    fill(port, "big", limit // 4000, 1000)
    return each(
        port,
        (
            "select id from big order by rpad(pad, 100000) limit 1",
            "select id, k from big order by repeat(pad, 50), k offset 10 limit 10",
            "select count(distinct rpad(pad, 20000)) from big",
            "select rpad(pad, 50000), count(*) from big group by 1 limit 1",
            "select a.id from big a join big b on rpad(a.pad, 20000) = rpad(b.pad, 20000) limit 1",
            "select sum(k) over (order by rpad(pad, 200000)) from big limit 1",
            "select array_agg(jsonb_build_object('x', repeat(pad, 100))) is null from big",
            "select k, jsonb_agg(jsonb_build_object(pad, repeat(pad, 10))) is null from big group by k limit 1",
            "select array_agg(array_fill(k, array[10000])) is null from big",
            "select max(array_fill(pad, array[1000])) is null from big",
            "select string_agg(repeat(pad, 100), ',') is null from big",
            "select json_agg(b) is null from big b",
            "select distinct on (k) repeat(pad, 300) from big",
            "select rpad(pad, 100000) from big except select rpad(pad, 100001) from big",
            "with recursive r(n, t) as (select 1, 'x' union all select n + 1, t || t from r where n < 40) select max(length(t)) from r",
        ),
        10,
    )
