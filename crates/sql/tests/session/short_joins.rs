//! Joins of few rows on the short path: their answers are those of the analytical path, whatever is
//! NULL, evicted, changed meanwhile or missing on one side.

use std::cell::RefCell;
use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use crate::fixture::{Connection, Server};

/// Each table with its columns; all are numbers but the last, and may be NULL but for the key.
const TABLES: [(&str, [&str; 4]); 3] = [
    ("a", ["id", "x", "y", "t"]),
    ("b", ["id", "aid", "z", "t"]),
    ("c", ["k", "n", "v", "t"]),
];

fn filled(client: &mut Connection) {
    for sql in [
        "create table a (id int primary key, x int, y bigint, t text)",
        "create table b (id bigint primary key, aid int, z smallint, t varchar(20))",
        "create table c (k int, n int, v bigint, t text, primary key (k, n)) with (partition_key = 'k')",
        "create index on a (x)",
        "create index on b (aid)",
        "create index on c (v, n)",
        "insert into a select n, nullif(n % 9, 4), nullif(n % 7, 3), 't' || n % 5 from generate_series(1, 60) n",
        "insert into b select n, nullif(n % 70, 5), nullif(n % 6, 2), 't' || n % 4 from generate_series(1, 150) n",
        "insert into c select n / 4, n % 4, nullif(n % 11, 7), 't' || n % 6 from generate_series(1, 200) n",
    ] {
        client.tag(sql);
    }
}

/// One table of a join: which, how it is joined and by what, and what is asked of it besides.
#[derive(Clone, Debug)]
struct Joined {
    table: usize,
    kind: &'static str,
    own: usize,
    of: usize,
    theirs: usize,
    on: Option<String>,
}

#[derive(Clone, Debug)]
struct Asked {
    first: usize,
    by: String,
    joined: Vec<Joined>,
    filter: Option<String>,
    rows_of: Option<RowsOf>,
    shown: &'static str,
    end: &'static str,
    written: bool,
}

/// A query within that is asked for rows: of which table, by what, and how.
#[derive(Clone, Debug)]
struct RowsOf {
    table: usize,
    own: usize,
    of: usize,
    theirs: usize,
    form: usize,
    more: Option<String>,
}

fn rows_of() -> impl Strategy<Value = RowsOf> {
    let more = proptest::option::of(condition());
    (0usize..3, 0usize..3, 0usize..4, 0usize..3, 0usize..4, more).prop_map(
        |(table, own, of, theirs, form, more)| RowsOf {
            table,
            own,
            of,
            theirs,
            form,
            more,
        },
    )
}

/// A condition on a row, `@` being a relation.
fn condition() -> impl Strategy<Value = String> {
    (0usize..6, 0usize..3, 0i32..12).prop_map(|(form, column, number)| {
        let column = format!("@{column}");
        match form {
            0 => format!("{column} > {number}"),
            1 => format!("{column} is null"),
            2 => format!("{column} is not null"),
            3 => format!("({column} = {number} or {column} is null)"),
            4 => format!("coalesce({column}, 0) % 3 <> 1"),
            _ => format!("{column} in ({number}, 2, 5)"),
        }
    })
}

fn asked() -> impl Strategy<Value = Asked> {
    let joined = (
        0usize..3,
        select(vec!["join", "join", "left join"]),
        0usize..3,
        0usize..4,
        0usize..3,
        proptest::option::of(condition()),
    );
    let joined = joined.prop_map(|(table, kind, own, of, theirs, on)| Joined {
        table,
        kind,
        own,
        of,
        theirs,
        on,
    });
    let by = (0usize..6, 0i32..40).prop_map(|(form, number)| match form {
        0 | 1 => format!("@0 = {number}"),
        2 => format!("@0 between {number} and {}", number + 6),
        3 => format!("@0 in ({number}, 3, 17)"),
        // A query within may bound them.
        4 => "@0 is not null".to_owned(),
        _ => format!("@0 > {number} and @0 < {}", number + 4),
    });
    let end = select(vec!["", "", "limit 5", "limit 3 offset 2"]);
    let shown = select(vec!["rows", "rows", "rows", "counts", "groups", "distinct"]);
    (
        0usize..3,
        by,
        prop::collection::vec(joined, 0..4),
        proptest::option::of(condition()),
        proptest::option::of(rows_of()),
        shown,
        end,
        any::<bool>(),
    )
        .prop_map(
            |(first, by, joined, filter, rows_of, shown, end, written)| Asked {
                first,
                by,
                joined,
                filter,
                rows_of,
                shown,
                end,
                written,
            },
        )
}

fn column(tables: &[usize], relation: usize, column: usize) -> String {
    format!("r{relation}.{}", TABLES[tables[relation]].1[column])
}

/// The condition's columns, of a relation.
fn of(tables: &[usize], relation: usize, condition: &str) -> String {
    (0..3).fold(condition.to_owned(), |text, number| {
        text.replace(&format!("@{number}"), &column(tables, relation, number))
    })
}

/// The tables of a query, what stands in FROM, and the condition.
fn parts(asked: &Asked) -> (Vec<usize>, String, String) {
    let mut tables = vec![asked.first];
    tables.extend(asked.joined.iter().map(|joined| joined.table));
    let mut from = format!("{} r0", TABLES[asked.first].0);
    let mut filter = of(&tables, 0, &asked.by);
    for (before, joined) in asked.joined.iter().enumerate() {
        let relation = before + 1;
        let mut on = format!(
            "{} = {}",
            column(&tables, relation, joined.own),
            column(&tables, joined.of % relation, joined.theirs)
        );
        if let Some(more) = &joined.on {
            let _ = write!(on, " and {}", of(&tables, relation, more));
        }
        let name = TABLES[joined.table].0;
        // Old programs write joins as a list.
        let is_list = asked.written && asked.joined.iter().all(|joined| joined.kind == "join");
        match is_list {
            true => {
                let _ = write!(from, ", {name} r{relation}");
                let _ = write!(filter, " and {on}");
            }
            false => {
                let _ = write!(from, " {} {name} r{relation} on {on}", joined.kind);
            }
        }
    }
    let last = tables.len() - 1;
    if let Some(more) = &asked.filter {
        let _ = write!(filter, " and {}", of(&tables, last, more));
    }
    if let Some(rows) = &asked.rows_of {
        let theirs = column(&tables, rows.of % tables.len(), rows.theirs);
        let (name, columns) = TABLES[rows.table];
        let own = format!("s.{}", columns[rows.own]);
        let more = rows.more.iter().map(|more| {
            let named = |text: String, number: usize| {
                text.replace(&format!("@{number}"), &format!("s.{}", columns[number]))
            };
            format!(" and {}", (0..3).fold(more.clone(), named))
        });
        let more: String = more.collect();
        let asked = match rows.form {
            0 | 1 => format!("exists (select from {name} s where {own} = {theirs}{more})"),
            2 => format!("not exists (select 1 from {name} s where {own} = {theirs}{more})"),
            _ => format!("{theirs} in (select {own} from {name} s where true{more})"),
        };
        let _ = write!(filter, " and {asked}");
    }
    (tables, from, filter)
}

fn sql(asked: &Asked) -> String {
    let (tables, from, filter) = parts(asked);
    let all: Vec<String> = (0..tables.len())
        .flat_map(|relation| (0..4).map(move |number| (relation, number)))
        .map(|(relation, number)| column(&tables, relation, number))
        .collect();
    let order: Vec<String> = (1..=all.len()).map(|place| place.to_string()).collect();
    match asked.shown {
        "rows" => format!(
            "select {} from {from} where {filter} order by {} {}",
            all.join(", "),
            order.join(", "),
            asked.end
        ),
        "distinct" => format!(
            "select distinct {}, {} from {from} where {filter} order by 1, 2 {}",
            all[2],
            all[all.len() - 3],
            asked.end
        ),
        "counts" => format!(
            "select count(*), count({}), sum({}), max({}) from {from} where {filter}",
            all[all.len() - 2],
            all[1],
            all[all.len() - 1]
        ),
        _ => format!(
            "select {}, count(*), min({}) from {from} where {filter} group by 1 having count(*) > 1 order by 1 {}",
            all[all.len() - 3],
            all[2],
            asked.end
        ),
    }
}

const CHANGES: [&str; 8] = [
    "update a set x = nullif((x + 1) % 9, 6) where id % 5 = 2",
    "update b set aid = aid + 1 where id between 30 and 60",
    "delete from c where k = 12",
    "insert into c values (12, 0, 3, 'new'), (12, 9, null, null) on conflict do nothing",
    "delete from a where id = 17",
    "insert into a values (17, 3, 4, 'back') on conflict do nothing",
    "call thermocline.evict('b', 100000000)",
    "call thermocline.evict('a', 100000000)",
];

#[test]
fn joins_on_the_short_path_answer_as_the_analytical_path() {
    let server = Server::new();
    let mut client = server.connect();
    filled(&mut client);
    let mut other = server.connect();
    other.tag("set thermocline.path = analytical");
    let state = RefCell::new((client, other, 0, 0));
    let kinds = ["Left", "Semi", "Anti"].map(|name| (name, false));
    let kinds = RefCell::new(kinds);
    let mut runner = TestRunner::new(Config {
        cases: 120,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    });
    let steps = (asked(), select(&CHANGES[..]), 0u8..4, any::<bool>());
    let ran = runner.run(&steps, |(asked, change, when, in_block)| {
        let (client, other, short, all) = &mut *state.borrow_mut();
        if when == 0 {
            other.tag(change);
        }
        let query = sql(&asked);
        if in_block {
            client.tag("begin");
        }
        let given = client.query(&query);
        let plan = client.rows(&format!("explain {query}")).join("\n");
        if in_block {
            client.tag("commit");
        }
        assert_eq!(given, other.query(&query), "{query}\n{plan}");
        *all += 1;
        *short += u32::from(plan.contains("Nested Loop"));
        for (name, met) in kinds.borrow_mut().iter_mut() {
            *met |= plan.contains(*name);
        }
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
    let (_, _, short, all) = state.into_inner();
    assert!(kinds.into_inner().iter().all(|(_, met)| *met));
    assert!(short * 8 > all, "only {short} of {all} on the short path");
}

/// A query within that has one row at most for each row outside is a join, and may come first: all
/// rows outside were read.
#[test]
fn a_query_within_that_has_one_row_at_most_may_come_first() {
    let server = Server::new();
    let mut client = server.connect();
    filled(&mut client);
    let plan =
        |client: &mut Connection, sql: &str| client.rows(&format!("explain {sql}")).join("\n");
    let led = [
        "select b.id from b where aid in (select id from a where x = 3)",
        "select count(*) from b where exists (select from a where a.id = b.aid and a.x = 3)",
        "select b.id from b where exists (select from c where c.k = b.aid and c.n = 2 and c.v = 3)",
        "delete from b where aid in (select id from a where x = 3)",
    ];
    for sql in led {
        let plan = plan(&mut client, sql);
        assert!(
            plan.contains("Path: short") && !plan.contains("Semi"),
            "{sql}\n{plan}"
        );
        let leads = plan.find("x = 3").or(plan.find("v = 3"));
        assert!(leads < plan.find("b_aid_idx"), "{sql}\n{plan}");
    }
    // Several rows for one are no join: each row outside comes once.
    let several = [
        "select id from a where id in (select aid from b where id in (1, 2, 71))",
        "select id from a where id < 4 and exists (select from b where b.id in (5, 6, 7))",
        "select id from a where id < 4 and exists (select from c where c.k = a.id)",
    ];
    for sql in several {
        let given = client.rows(&format!("{sql} order by 1"));
        assert!(
            given.windows(2).all(|pair| pair[0] != pair[1]),
            "{sql}: {given:?}"
        );
        assert!(!given.is_empty(), "{sql}");
    }
}

#[test]
fn a_plan_shows_the_loops_and_why_there_are_none() {
    let server = Server::new();
    let mut client = server.connect();
    filled(&mut client);
    let mut plan = |sql: &str| client.rows(&format!("explain {sql}")).join("\n");
    assert_eq!(
        plan(
            "select a.t, b.t, c.v from a left join b on b.aid = a.id and b.z > a.x join c on c.k = a.x where a.id = 7 and (b.id is null or b.z = c.n) order by c.v desc limit 3"
        ),
        "\
Limit
  ->  Sort
        Sort Key: c.v DESC
        ->  Nested Loop Left Join
              Filter: ((id IS NULL) OR ((z)::integer = c.n))
              ->  Nested Loop
                    ->  Index Scan using a_pkey on a
                          Index Cond: (id = 7)
                    ->  Index Scan using c_pkey on c
                          Index Cond: (k = a.x)
              ->  Index Scan using b_aid_idx on b
                    Index Cond: (aid = a.id)
                    Filter: ((z)::integer > a.x)
Path: short (an index leads to the rows of each table; all partitions)"
    );
    // The order of an index, of which few rows are wanted.
    let plan_of_first =
        plan("select b.id, a.t from b join a on a.id = b.aid order by b.id desc limit 4");
    assert!(
        plan_of_first.contains("Index Scan Backward using b_pkey on b")
            && !plan_of_first.contains("Sort"),
        "{plan_of_first}"
    );
    for (sql, why) in [
        (
            "select 1 from a join b on b.z = a.x where a.id = 3",
            "a join that no index bounds",
        ),
        (
            "select 1 from a join b on b.aid = a.id",
            "table \"a\" is large",
        ),
        (
            "select 1 from a full join b on b.aid = a.id where a.id = 3",
            "an outer join of joins",
        ),
        (
            "select random() from a join b on b.aid = a.id where a.id = 3",
            "a join with a volatile function",
        ),
        (
            "select a from a join b on b.aid = a.id where a.id = 3",
            "a whole row",
        ),
    ] {
        let plan = plan(sql);
        assert!(
            plan.contains("analytical") && plan.contains(why),
            "{sql}\n{plan}"
        );
    }
}

#[test]
fn a_prepared_join_follows_its_parameters_and_the_catalog() {
    let server = Server::new();
    let mut client = server.connect();
    filled(&mut client);
    client.tag(
        "prepare p as select a.id, b.id from a join b on b.aid = a.id where a.id = $1 order by 2",
    );
    let rows = |client: &mut Connection, id: &str| client.rows(&format!("execute p({id})"));
    assert_eq!(rows(&mut client, "3"), ["3|3", "3|73", "3|143"]);
    assert_eq!(rows(&mut client, "null"), [""; 0]);
    assert_eq!(rows(&mut client, "5"), [""; 0]);
    let explained = client
        .rows("explain (analyze, costs off) execute p(3)")
        .join("\n");
    assert!(
        explained.contains("Index Cond: (aid = a.id)") && explained.contains("Rows: 3"),
        "{explained}"
    );
    assert!(
        client
            .error("explain execute p")
            .contains("wrong number of parameters")
    );
    assert!(client.error("explain execute q(1)").contains("26000"));
    client.tag("drop index b_aid_idx");
    assert_eq!(rows(&mut client, "3"), ["3|3", "3|73", "3|143"]);
    client.tag("create index on b (aid)");
    client.tag("alter table b add column more int default 8");
    assert_eq!(rows(&mut client, "9"), ["9|9", "9|79", "9|149"]);
    client.tag("drop table b");
    assert!(client.error("execute p(3)").contains("42P01"));
}

#[test]
fn a_join_of_many_rows_goes_on_elsewhere() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table one (id int primary key, many int)");
    client.tag("create table two (id int primary key, one int, note text)");
    client.tag("create index on two (one)");
    client.tag("insert into one select n, n % 3 from generate_series(1, 3000) n");
    client.tag(
        "insert into two select n, n % 3000, repeat('x', 300) from generate_series(1, 60000) n",
    );
    let sql = "select count(*), sum(length(note)) from one join two on two.one = one.id where one.id between 1 and 2999";
    let plan = client.rows(&format!("explain {sql}")).join("\n");
    assert!(plan.contains("Nested Loop"), "{plan}");
    for _ in 0..3 {
        assert_eq!(client.rows(sql), ["59980|17994000"]);
    }
    let explained = client.rows(&format!("explain analyze {sql}")).join("\n");
    assert!(explained.contains("Rows: 1"), "{explained}");
    assert!(explained.contains("Path taken: analytical"), "{explained}");
    // So does one that looks often and finds nothing.
    let list = |numbers: std::ops::Range<i32>| {
        let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
        numbers.join(", ")
    };
    let looks = format!(
        "select count(*) from one join two on two.id in ({}) where one.id in ({})",
        list(100_000..102_000),
        list(1..200)
    );
    assert_eq!(client.rows(&looks), ["0"]);
    let explained = client.rows(&format!("explain analyze {looks}")).join("\n");
    let left = explained.contains("Path taken: analytical");
    assert!(left && explained.contains("Nested Loop"), "{explained}");
    let explained = client
        .rows("explain analyze select 1 from one join two on two.id = one.id where one.id = 5");
    assert!(!explained.join(" ").contains("Path taken"), "{explained:?}");
    let rows = client.rows("select one.id, two.id from one join two on two.one = one.id where one.id > 0 and one.id < 4000");
    assert_eq!(rows.len(), 59_980);
}

#[test]
fn what_a_join_has_read_conflicts_with_changes_of_it_alone() {
    let server = Server::new();
    let mut client = server.connect();
    filled(&mut client);
    let mut other = server.connect();
    let read = "select a.id, b.id from a join b on b.aid = a.id where a.id = 3 order by 2";
    let mut with = |change: &str| {
        client.tag("begin isolation level serializable");
        assert_eq!(client.rows(read).len(), 3);
        other.tag(change);
        client.tag("update c set t = 'seen' where k = 1 and n = 1");
        let ended = client.query("commit").join(" ");
        if !ended.contains("COMMIT") {
            assert!(ended.contains("40001"), "{ended}");
        }
        other.tag("update b set aid = id % 70 where id in (80, 143)");
        other.tag("delete from b where id = 900");
        ended.contains("COMMIT")
    };
    assert!(!with("update b set t = 'other' where id = 73"));
    assert!(!with("update a set x = 1 where id = 3"));
    // One that would have been found.
    assert!(!with("update b set aid = 4 where id = 143"));
    assert!(!with("insert into b values (900, 3)"));
    assert!(with("update b set t = 'other' where id = 74"));
    assert!(with("update a set x = 1 where id = 4"));
    assert!(with("update b set aid = 9 where id = 80"));
}

#[test]
fn rights_are_asked_for_all_tables_of_a_join() {
    let server = Server::new();
    let mut client = server.connect();
    filled(&mut client);
    client.tag("create role reader");
    client.tag("grant select on a to reader");
    client.tag("grant select (id, aid) on b to reader");
    client.tag("set role reader");
    assert_eq!(
        client
            .rows("select b.id from a join b on b.aid = a.id where a.id = 3")
            .len(),
        3
    );
    for sql in [
        "select b.t from a join b on b.aid = a.id where a.id = 3",
        "select b.id from a join b on b.aid = a.id and b.z > 0 where a.id = 3",
        "select a.id from a join c on c.k = a.id where a.id = 3",
    ] {
        assert!(client.error(sql).contains("42501"), "{sql}");
    }
}

/// A change of the rows of the first table that the others find, or rows made of all.
fn change_of(asked: &Asked, form: usize) -> String {
    let mut asked = asked.clone();
    asked.written = true;
    for joined in &mut asked.joined {
        joined.kind = "join";
    }
    let (tables, from, filter) = parts(&asked);
    let (first, others) = from.split_once(", ").unwrap_or((&from, ""));
    let last = TABLES[tables[0]].1[3];
    match (form, others) {
        (0, _) => format!(
            "insert into made select {}, {}, r0.t from {from} where {filter} returning *",
            column(&tables, 0, 0),
            column(&tables, tables.len() - 1, 1)
        ),
        (1, "") => format!("delete from {first} where {filter} returning r0.*"),
        (1, _) => format!("delete from {first} using {others} where {filter} returning r0.*"),
        (_, "") => format!("update {first} set {last} = 'new' where {filter} returning r0.*"),
        (_, _) => {
            format!("update {first} set {last} = 'new' from {others} where {filter} returning r0.*")
        }
    }
}

#[test]
fn changes_whose_rows_a_join_finds_are_those_of_the_analytical_path() {
    let server = Server::new();
    let mut client = server.connect();
    filled(&mut client);
    client.tag("create table made (one bigint, two bigint, t text)");
    let mut other = server.connect();
    other.tag("set thermocline.path = analytical");
    let state = RefCell::new((client, other, 0, 0));
    let mut runner = TestRunner::new(Config {
        cases: 80,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    });
    let steps = (
        asked(),
        0usize..3,
        select(vec!["", " isolation level read committed"]),
    );
    let ran = runner.run(&steps, |(asked, form, level)| {
        let (client, other, short, all) = &mut *state.borrow_mut();
        let change = change_of(&asked, form);
        let plan = client.rows(&format!("explain {change}")).join("\n");
        let answers = [client, other].map(|client| {
            client.tag(&format!("begin{level}"));
            let mut answer = client.query(&change);
            answer.sort();
            client.tag("rollback");
            answer
        });
        assert_eq!(answers[0], answers[1], "{change}\n{plan}");
        *all += 1;
        *short += u32::from(plan.contains("Nested Loop"));
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
    let (_, _, short, all) = state.into_inner();
    assert!(short * 8 > all, "only {short} of {all} on the short path");
}
