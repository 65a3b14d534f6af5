//! UPDATE and DELETE of rows that a query finds: other tables, subqueries, and what others change
//! meanwhile.

use std::thread;
use std::time::Duration;

use crate::fixture::{Connection, Server};

/// Four accounts and what is paid to three of them, to one of them twice.
fn prepared(server: &Server) -> Connection {
    prepared_by(server, "primary key")
}

/// The same, with the accounts found by their primary key, or without one.
fn prepared_by(server: &Server, key: &str) -> Connection {
    let mut client = server.connect();
    client.tag(&format!(
        "create table t (id int {key}, v int, s text);
         insert into t values (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c'), (4, 40, 'd');
         create table o (id int primary key, t int, v int, n numeric);
         insert into o values (1, 1, 100, 1.5), (2, 2, 200, 2.5), (3, 2, 200, 2.5), (4, 9, 1, 1)"
    ));
    client
}

fn all(client: &mut Connection) -> Vec<String> {
    client.rows("select id, v, s from t order by id")
}

#[test]
fn values_come_from_other_tables() {
    let server = Server::new();
    let mut client = prepared(&server);
    for (change, tag, rows) in [
        (
            "update t set v = o.v from o where o.t = t.id",
            "UPDATE 2",
            ["1|100|a", "2|200|b", "3|30|c", "4|40|d"],
        ),
        (
            "update t as x set v = x.v + p.v, s = 'z' from o p where p.t = x.id and p.id = 1",
            "UPDATE 1",
            ["1|110|z", "2|20|b", "3|30|c", "4|40|d"],
        ),
        (
            "update t set v = w.n from (select t, sum(n) as n from o group by t) w \
             where w.t = t.id",
            "UPDATE 2",
            ["1|2|a", "2|5|b", "3|30|c", "4|40|d"],
        ),
        (
            "update t set v = (select count(*) from o where o.t = t.id)",
            "UPDATE 4",
            ["1|1|a", "2|2|b", "3|0|c", "4|0|d"],
        ),
        (
            "update t set (v, s) = (select max(o.v), 'm' from o where o.t = t.id) where id < 3",
            "UPDATE 2",
            ["1|100|m", "2|200|m", "3|30|c", "4|40|d"],
        ),
        (
            "update t set v = 0 where id in (select t from o) and not exists \
             (select from o where o.t = t.id and o.n > 2)",
            "UPDATE 1",
            ["1|0|a", "2|20|b", "3|30|c", "4|40|d"],
        ),
        (
            "update t set v = u.v from t u where u.id = t.id + 1",
            "UPDATE 3",
            ["1|20|a", "2|30|b", "3|40|c", "4|40|d"],
        ),
        (
            "update t set v = default, s = o.id from o where o.t = t.id and o.id <> 3",
            "UPDATE 2",
            ["1|NULL|1", "2|NULL|2", "3|30|c", "4|40|d"],
        ),
        (
            "update t set id = t.id + 10 from o where o.id = t.id and t.id = 4",
            "UPDATE 1",
            ["1|10|a", "2|20|b", "3|30|c", "14|40|d"],
        ),
        (
            "update t set v = 1 from o where false",
            "UPDATE 0",
            ["1|10|a", "2|20|b", "3|30|c", "4|40|d"],
        ),
    ] {
        client.tag("begin");
        assert_eq!(client.tag(change), tag, "{change}");
        assert_eq!(all(&mut client), rows, "{change}");
        client.tag("rollback");
    }
    assert_eq!(all(&mut client), ["1|10|a", "2|20|b", "3|30|c", "4|40|d"]);
    assert_eq!(
        client.tag("update t set v = o.v from o where o.t = t.id"),
        "UPDATE 2"
    );
    assert_eq!(all(&mut client)[..2], ["1|100|a", "2|200|b"]);
}

#[test]
fn rows_are_deleted_by_other_tables() {
    let server = Server::new();
    let mut client = prepared(&server);
    for (change, tag, left) in [
        (
            "delete from t using o where o.t = t.id",
            "DELETE 2",
            &["3", "4"][..],
        ),
        (
            "delete from t as x using o p, o q where p.t = x.id and q.id = p.id + 1",
            "DELETE 2",
            &["3", "4"],
        ),
        (
            "delete from t where id not in (select t from o)",
            "DELETE 2",
            &["1", "2"],
        ),
        (
            "delete from t where v > (select avg(v) from t)",
            "DELETE 2",
            &["1", "2"],
        ),
        (
            "delete from t using t u where u.v > t.v",
            "DELETE 3",
            &["4"],
        ),
    ] {
        client.tag("begin");
        assert_eq!(client.tag(change), tag, "{change}");
        assert_eq!(
            client.rows("select id from t order by id"),
            left,
            "{change}"
        );
        client.tag("rollback");
    }
    for (change, rows) in [
        (
            "delete from t where id in (select t from o) returning t.*, v * 2",
            ["1|10|a|20", "2|20|b|40"],
        ),
        (
            "update t set v = (select max(v) from o) returning id, v as new",
            ["3|200", "4|200"],
        ),
        (
            "update t set v = o.id from o where o.id = t.id returning t.id, t.v",
            ["3|3", "4|4"],
        ),
    ] {
        let mut given = client.rows(change);
        given.sort();
        assert_eq!(given, rows, "{change}");
    }
}

#[test]
fn with_stands_before_changes_too() {
    let server = Server::new();
    let mut client = prepared(&server);
    for (change, tag, rows) in [
        (
            "with w as (select t, sum(n) as n from o group by t) \
             update t set v = w.n from w where w.t = t.id",
            "UPDATE 2",
            &["1|2|a", "2|5|b", "3|30|c", "4|40|d"][..],
        ),
        (
            "with w (i) as (values (1), (3)), x as (select i + 1 as j from w) \
             delete from t where id in (select j from x)",
            "DELETE 2",
            &["1|10|a", "3|30|c"],
        ),
        (
            "with w as (select 7 as a, 'w' as b) insert into t (id, s) select * from w",
            "INSERT 0 1",
            &["1|10|a", "2|20|b", "3|30|c", "4|40|d", "7|NULL|w"],
        ),
        (
            "with w as (select 7 as a), o as (select 2) insert into t \
             with x as (select a + 1 as b from w) select b, b, 'x' from x",
            "INSERT 0 1",
            &["1|10|a", "2|20|b", "3|30|c", "4|40|d", "8|8|x"],
        ),
        (
            "with w as (select 9 as a) insert into t values ((select a from w), 1, '2')",
            "INSERT 0 1",
            &["1|10|a", "2|20|b", "3|30|c", "4|40|d", "9|1|2"],
        ),
        (
            "with recursive n (i) as (select 5 union all select i + 1 from n where i < 7) \
             insert into t (id) select i from n returning id",
            "INSERT 0 3",
            &[
                "1|10|a",
                "2|20|b",
                "3|30|c",
                "4|40|d",
                "5|NULL|NULL",
                "6|NULL|NULL",
                "7|NULL|NULL",
            ],
        ),
    ] {
        client.tag("begin");
        assert_eq!(client.tag(change), tag, "{change}");
        assert_eq!(all(&mut client), rows, "{change}");
        client.tag("rollback");
    }
    client
        .parse(
            "u",
            "with w as (select $1::int as a) update t set v = a + $2 from w where id = $3",
            &[],
        )
        .unwrap();
    client
        .bind("", "u", &[Some("5"), Some("6"), Some("1")])
        .unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["C UPDATE 1"]);
    client.sync().unwrap();
    assert_eq!(all(&mut client)[0], "1|11|a");
    for (sql, expected) in [
        (
            "with w as (select 1) update t set v = w.nothing from w",
            "42703",
        ),
        ("with w as (select nothing) delete from t", "42703"),
        (
            "with w as (delete from o returning *) select * from w, o",
            "0A000",
        ),
        (
            "with w as (delete from t returning *) update t set v = 1 from w",
            "0A000",
        ),
        (
            "declare c cursor for with w as (select 1) delete from t",
            "42601",
        ),
    ] {
        let error = client.error(sql);
        assert!(error.starts_with(expected), "{sql}: {error}");
    }
    assert_eq!(client.rows("select count(*) from t, o"), ["16"]);
}

#[test]
fn values_may_hold_subqueries() {
    let server = Server::new();
    let mut client = prepared(&server);
    client
        .tag("create table c (id int primary key, d date, n numeric(6, 2), v varchar(3), j jsonb)");
    assert_eq!(
        client.rows(
            "insert into c values (1, '2024-01-02', (select sum(n) from o), 'abc', '{}'), \
             ((select max(id) from t), (select date '2024-02-03'), '1.005', null, null) returning *"
        ),
        ["1|2024-01-02|7.50|abc|{}", "4|2024-02-03|1.01|NULL|NULL"]
    );
    client
        .parse(
            "i",
            "insert into c (id, v) values ($1, (select $2 || s from t where id = $1))",
            &[],
        )
        .unwrap();
    client.bind("", "i", &[Some("2"), Some("x")]).unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["C INSERT 0 1"]);
    client.sync().unwrap();
    assert_eq!(client.rows("select v from c where id = 2"), ["xb"]);
    for (sql, expected) in [
        ("insert into c (id, v) values ((select 7), 'abcd')", "22001"),
        (
            "insert into c (id, d) values ((select 7), '2024-13-01')",
            "22008",
        ),
        ("insert into c (id) values ((select 'x'))", "42804"),
        ("insert into c (id) values ((select 1, 2))", "42601"),
        ("insert into c (id, n) values ((select 7))", "42601"),
    ] {
        let error = client.error(sql);
        assert!(error.starts_with(expected), "{sql}: {error}");
    }
}

#[test]
fn parameters_are_the_querys_too() {
    let server = Server::new();
    let mut client = prepared(&server);
    let sql =
        "update t set v = $2, s = o.n + $1 from o where o.t = t.id and o.v = $3 returning t.id";
    client.parse("u", sql, &[]).unwrap();
    assert_eq!(
        client.describe("u").unwrap(),
        ["t 1700 23 23", "T id:23"],
        "{sql}"
    );
    client
        .bind("", "u", &[Some("0.25"), Some("7"), Some("100")])
        .unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["D 1", "C UPDATE 1"]);
    client
        .bind("", "u", &[Some("1"), Some("8"), Some("200")])
        .unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["D 2", "C UPDATE 1"]);
    client.sync().unwrap();
    assert_eq!(
        all(&mut client),
        ["1|7|1.75", "2|8|3.5", "3|30|c", "4|40|d"]
    );
    client
        .parse(
            "d",
            "delete from t where v = $1 and id in (select t from o where v > $2)",
            &[],
        )
        .unwrap();
    client.bind("", "d", &[Some("8"), Some("5")]).unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["C DELETE 1"]);
    client.sync().unwrap();
    client.tag("prepare p (int) as update t set v = (select sum(v) from o where id <= $1)");
    assert_eq!(client.tag("execute p (2)"), "UPDATE 3");
    assert_eq!(client.rows("select distinct v from t"), ["300"]);
}

#[test]
fn what_cannot_be_is_told_as_postgresql_tells_it() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag("create view w as select * from o");
    for (sql, expected) in [
        ("update t set v = nothing.v from o", "42P01"),
        ("update t set v = o.nothing from o", "42703"),
        ("update t set nothing = o.v from o", "42703"),
        ("update t set s = v from o where o.t = t.id", "42702"),
        ("update t set v = o.n = 1 from o", "42804"),
        ("update t set v = (select o.v from o)", "21000"),
        ("update t set v = (select o.v, o.n from o)", "42601"),
        ("update t set (v, s) = (select o.v from o)", "42601"),
        ("update t set (v, s) = (select 1, 'a', 2)", "42601"),
        ("update t set (v, s) = (select * from o)", "42601"),
        ("update t set v = o.v / 0 from o", "22012"),
        (
            "update t set id = o.v from o where t.id > 2 and o.id = 2",
            "23505",
        ),
        ("update t set v = 1 from t", "42712"),
        ("delete from t using nothing", "42P01"),
        ("delete from t where sum(v) > (select 1)", "42803"),
    ] {
        let error = client.error(sql);
        assert!(error.starts_with(expected), "{sql}: {error}");
        assert_eq!(
            all(&mut client),
            ["1|10|a", "2|20|b", "3|30|c", "4|40|d"],
            "{sql}"
        );
    }
    assert_eq!(
        client.tag("update t set v = w.v from w where w.t = t.id"),
        "UPDATE 2"
    );
}

#[test]
fn only_who_may_read_the_other_table_may_use_it() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag("create role reader; grant select, update, delete on t to reader");
    let mut reader = server.connect();
    reader.tag("set role reader");
    for sql in [
        "update t set v = o.v from o where o.t = t.id",
        "delete from t where id in (select t from o)",
    ] {
        assert!(reader.error(sql).starts_with("42501"), "{sql}");
    }
    client.tag("grant select on o to reader; revoke update on t from reader");
    assert!(
        reader
            .error("update t set v = o.v from o where o.t = t.id")
            .starts_with("42501")
    );
    assert_eq!(
        reader.tag("delete from t where id in (select t from o)"),
        "DELETE 2"
    );
}

/// What another transaction does before it commits, while a change waits for it.
fn beside(
    key: &str,
    isolation: &str,
    other_does: &str,
    change: &str,
) -> (Result<String, String>, Vec<String>) {
    let server = Server::new();
    let mut client = prepared_by(&server, key);
    let mut other = server.connect();
    other.tag("begin isolation level read committed");
    other.tag(other_does);
    let mut changing = server.connect();
    changing.tag(&format!(
        "set default_transaction_isolation = '{isolation}'"
    ));
    let change = change.to_owned();
    let waiting = thread::spawn(move || {
        let answers = changing.query(&change);
        let told = |kind: &str| {
            answers
                .iter()
                .find_map(|answer| answer.strip_prefix(kind).map(str::to_owned))
        };
        told("C ").ok_or_else(|| told("E ").unwrap_or_default())
    });
    thread::sleep(Duration::from_millis(200));
    other.tag("commit");
    (waiting.join().unwrap(), all(&mut client))
}

#[test]
fn read_committed_changes_rows_as_they_are_then() {
    let change = "update t set v = t.v + o.v from o where o.t = t.id";
    for key in KEYS {
        for (other_does, tag, rows) in [
            // The new value is what is added to.
            (
                "update t set v = 11 where id = 1",
                "UPDATE 2",
                &["1|111|a", "2|220|b", "3|30|c", "4|40|d"][..],
            ),
            (
                "delete from t where id = 2",
                "UPDATE 1",
                &["1|110|a", "3|30|c", "4|40|d"],
            ),
            // Another row has its place, perhaps.
            (
                "delete from t where id = 2; insert into t values (5, 50, 'e')",
                "UPDATE 1",
                &["1|110|a", "3|30|c", "4|40|d", "5|50|e"],
            ),
            // What was found is not what the condition means any more.
            (
                "update t set id = 7 where id = 1",
                "UPDATE 1",
                &["2|220|b", "3|30|c", "4|40|d", "7|10|a"],
            ),
        ] {
            let (told, left) = beside(key, "read committed", other_does, change);
            assert_eq!(told.as_deref(), Ok(tag), "{key}: {other_does}");
            assert_eq!(left, rows, "{key}: {other_does}");
        }
        let (told, left) = beside(
            key,
            "read committed",
            "update t set v = 5 where id = 1",
            "delete from t where v >= 10 and id in (select t from o)",
        );
        assert_eq!(told.as_deref(), Ok("DELETE 1"), "{key}");
        assert_eq!(left, ["1|5|a", "3|30|c", "4|40|d"], "{key}");
    }
}

/// Rows are found by their primary key, or by their numbers.
const KEYS: [&str; 2] = ["primary key", ""];

#[test]
fn one_snapshot_is_not_changed_over() {
    for (isolation, key) in [
        ("repeatable read", KEYS[0]),
        ("serializable", KEYS[0]),
        ("repeatable read", KEYS[1]),
        ("serializable", KEYS[1]),
    ] {
        let (told, left) = beside(
            key,
            isolation,
            "update t set v = 11 where id = 1",
            "update t set v = t.v + o.v from o where o.t = t.id",
        );
        let error = told.unwrap_err();
        assert!(error.starts_with("40001"), "{isolation}, {key}: {error}");
        assert_eq!(
            left,
            ["1|11|a", "2|20|b", "3|30|c", "4|40|d"],
            "{isolation}, {key}"
        );
    }
}

#[test]
fn rows_without_a_key_are_found_by_their_numbers() {
    let server = Server::new();
    let mut client = prepared_by(&server, "");
    client.tag("alter table t add column gone int");
    client.tag("alter table t drop column gone");
    client.tag("insert into t values (4, 40, 'd'), (4, 40, 'd')");
    let mut back = client.rows(
        "update t set v = t.v + o.v from o where o.t = t.id and o.id < 3 returning t.*, o.n, row(t.*)",
    );
    back.sort();
    assert_eq!(back, ["1|110|a|1.5|(1,110,a)", "2|220|b|2.5|(2,220,b)"]);
    assert_eq!(
        client.tag("update t set s = (select max(n) from o where o.t <= t.id) where id > 2"),
        "UPDATE 4"
    );
    assert_eq!(
        all(&mut client),
        [
            "1|110|a", "2|220|b", "3|30|2.5", "4|40|2.5", "4|40|2.5", "4|40|2.5"
        ]
    );
    client.tag("begin");
    client.tag("insert into t values (9, 90, 'x')");
    assert_eq!(
        client.tag("delete from t where id in (select t from o) or id >= (select 4)"),
        "DELETE 6"
    );
    assert_eq!(all(&mut client), ["3|30|2.5"]);
    client.tag("rollback");
    assert_eq!(client.rows("select count(*) from t"), ["6"]);
    assert_eq!(
        client.tag("delete from t using o where o.v > t.v"),
        "DELETE 5"
    );
    assert_eq!(all(&mut client), ["2|220|b"]);
    let whole = "delete from t where exists (select from o p (a, b) where t is null)";
    assert_eq!(client.tag(whole), "DELETE 0");
    let explained = client
        .rows("explain delete from t using o where o.t = t.id")
        .join("\n");
    assert!(explained.contains("Delete on t"), "{explained}");
}

#[test]
fn many_rows_are_changed_at_once() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create table t (id int primary key, v int); create table o (id int primary key, v int);
         insert into t select i, 0 from generate_series(1, 3000) i;
         insert into o select i, i * 2 from generate_series(1, 3000, 2) i",
    );
    assert_eq!(
        client.tag("update t set v = o.v from o where o.id = t.id"),
        "UPDATE 1500"
    );
    assert_eq!(
        client.rows("select sum(v), count(*) from t"),
        ["4500000|3000"]
    );
    assert_eq!(
        client.tag("delete from t where not exists (select from o where o.id = t.id)"),
        "DELETE 1500"
    );
    assert_eq!(
        client.rows("explain update t set v = o.v from o where o.id = t.id")[0],
        "Update on t"
    );
}

/// A text, NULL or parameter without a type that a query yields is of the column's type, as in
/// PostgreSQL; behind DISTINCT or UNION it has become a text before.
#[test]
fn what_has_no_type_is_of_its_columns() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag("create table d (id int primary key, at date, n int, s varchar(3))");
    for (insert, inserted) in [
        (
            "insert into d select t.id, '2024-01-02', null, 'x' from t join o on o.id = t.id",
            4,
        ),
        (
            "insert into d select v, '2024-01-03', '8' from t group by v",
            4,
        ),
        (
            "insert into d (id, n) values ((select 102), '7'), (103, null)",
            2,
        ),
        (
            "prepare p as insert into d (id, at, n) \
             select t.id + 400, $1, $2 from t join o on o.id = t.id",
            0,
        ),
        ("execute p ('2024-05-05', 9)", 4),
    ] {
        let expected = match inserted {
            0 => "PREPARE".to_owned(),
            rows => format!("INSERT 0 {rows}"),
        };
        assert_eq!(client.tag(insert), expected, "{insert}");
    }
    for (insert, sqlstate) in [
        (
            "insert into d select distinct 1000, '2024-01-02', null::int from t",
            "42804",
        ),
        (
            "insert into d (id, at) select 100, null union all select 101, null",
            "42804",
        ),
        (
            "insert into d (id, at) select 110, null union select 111, null",
            "42804",
        ),
        (
            "insert into d (id, at) values ((select 104), null), (105)",
            "42601",
        ),
        (
            "insert into d (id, n) select t.id + 200, 'x' from t join o on o.id = t.id",
            "22P02",
        ),
        (
            "insert into d (id, s) select t.id + 300, 'four' from t join o on o.id = t.id",
            "22001",
        ),
    ] {
        let error = client.error(insert);
        assert!(error.starts_with(sqlstate), "{insert}: {error}");
    }
    assert_eq!(
        client.rows("select * from d where id in (1, 10, 102, 103, 401) order by id"),
        [
            "1|2024-01-02|NULL|x",
            "10|2024-01-03|8|NULL",
            "102|NULL|7|NULL",
            "103|NULL|NULL|NULL",
            "401|2024-05-05|9|NULL",
        ]
    );
    assert_eq!(client.rows("select count(*) from d"), ["14"]);
}

#[test]
fn what_is_returned_may_be_looked_for_in_a_query() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table a (id int primary key, v int); create table b (id int, w text)");
    client.tag("insert into b values (1, 'x'), (3, 'y'), (null, 'z')");
    for (statement, expected) in [
        (
            "insert into a values (1, 10), (2, 20) \
             returning id, id in (select id from b where w <> 'z'), v > all (select id from b)",
            &["1|t|NULL", "2|f|NULL"][..],
        ),
        (
            "update a set v = v + 1 where id = 2 \
             returning v, id not in (select id from b), id + 1 = any (select id from b)",
            &["21|NULL|t"],
        ),
        (
            "delete from a where id = 1 \
             returning id in (select id from b), exists (select from b where w = 'y')",
            &["t|t"],
        ),
    ] {
        assert_eq!(client.rows(statement), expected, "{statement}");
    }
}
