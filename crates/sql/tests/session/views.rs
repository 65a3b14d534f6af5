//! Views: what they give, what hangs on them, who may read them, and that they stay.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::{Connection, Server};

/// The SQLSTATE and message of a statement that must fail.
fn told(client: &mut Connection, sql: &str) -> String {
    let error = client.error(sql);
    let end = error.find(" [").unwrap_or(error.len());
    error[..end].to_owned()
}

/// A table of three rows, a view over it and one over that.
fn prepared(server: &Server) -> Connection {
    let mut client = server.connect();
    client.tag(
        "create table t (id int primary key, a text, n numeric(10, 2));
         insert into t values (1, 'x', 1.5), (2, 'y', 2.5), (3, 'x', 4);
         create view v as select id, a, n from t where id > 1;
         create view w (name, total) as select a, sum(n) from v group by a",
    );
    client
}

#[test]
fn a_view_is_read_wherever_a_table_is() {
    let server = Server::new();
    let mut client = prepared(&server);
    for (query, rows) in [
        ("select * from v order by id", &["2|y|2.50", "3|x|4.00"][..]),
        ("select v.a from public.v v where id = 3", &["x"]),
        ("select public.v.a from public.v where id = 3", &["x"]),
        ("select * from w order by name", &["x|4.00", "y|2.50"]),
        (
            "select t.id, w.total from t join w on w.name = t.a order by 1",
            &["1|4.00", "2|2.50", "3|4.00"],
        ),
        (
            "with w as (select * from w) select name from w where total > 3",
            &["x"],
        ),
        (
            "select count(*) from t where a in (select name from w)",
            &["3"],
        ),
        (
            "select (select max(total) from w), exists (select from v where id = 1)",
            &["4.00|f"],
        ),
        ("select x.p from v as x (o, p) order by x.o", &["y", "x"]),
        ("select v from v where id = 2", &["(2,y,2.50)"]),
        (
            "select id from v union select 7 order by 1",
            &["2", "3", "7"],
        ),
        ("select * from w limit 0", &[]),
    ] {
        assert_eq!(client.rows(query), rows, "{query}");
    }
    client.tag("create table copy (id int, a text, n numeric); insert into copy select * from v");
    assert_eq!(client.rows("select count(*) from copy"), ["2"]);
    let copied = client.query("copy (select id from v order by id) to stdout");
    assert!(
        copied
            .iter()
            .any(|answer| answer.ends_with("2\\n") || answer.contains('2'))
    );
    for other in [
        "create view c as values (1, 'a'), (2, 'b')",
        "create view l as select 'lit', array[1, 2] as arr, interval '1 day' as i, now() as at",
        "create view s as select relname from pg_class where relname = 'pg_class'",
        "create view r as with recursive n (i) as (select 1 union all select i + 1 from n where i < 3) select i from n",
    ] {
        assert_eq!(client.tag(other), "CREATE VIEW", "{other}");
    }
    assert_eq!(client.rows("select column2 from c order by 1"), ["a", "b"]);
    assert_eq!(
        client.rows("select \"?column?\", arr, i from l"),
        ["lit|{1,2}|1 day"]
    );
    assert_eq!(client.rows("select * from s"), ["pg_class"]);
    assert_eq!(client.rows("select sum(i) from r"), ["6"]);
}

#[test]
fn other_names_change_nothing_about_a_view() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag(
        "alter table t rename to old; create table t (id int, a text, n numeric(10, 2));
         insert into t values (9, 'wrong', 9); alter table old rename column a to b;
         alter table old rename column n to a; alter table old add column more int default 5;
         create view star as select * from old; alter table old add column last int",
    );
    assert_eq!(
        client.rows("select * from v order by id"),
        ["2|y|2.50", "3|x|4.00"]
    );
    assert_eq!(
        client.rows("select * from w order by name"),
        ["x|4.00", "y|2.50"]
    );
    assert_eq!(
        client.rows("select * from star where id = 1"),
        ["1|x|1.50|5"]
    );
    // Whatever the reader's search path says.
    client.tag("create schema other; create table other.t (id int, a text, n numeric(10, 2))");
    client.tag("set search_path to other");
    assert_eq!(
        client.rows("select * from public.w order by name"),
        ["x|4.00", "y|2.50"]
    );
    client.tag("reset search_path");
    // The text says what is meant now.
    let text = client.rows("select pg_get_viewdef('v'::regclass)");
    assert_eq!(
        text,
        [" select id, a, n from (SELECT id, b AS a, a AS n, more, last FROM old) t where id > 1;"
            .replace(", more, last", "")]
    );
    let inner = text[0].trim().trim_end_matches(';').to_owned();
    assert_eq!(
        client.rows(&format!("{inner} order by id")),
        ["2|y|2.50", "3|x|4.00"]
    );
    // A view's own names.
    client.tag("alter view v rename column a to alpha; alter view v rename to vv");
    assert_eq!(client.rows("select alpha from vv order by id"), ["y", "x"]);
    assert_eq!(
        client.rows("select * from w order by name"),
        ["x|4.00", "y|2.50"]
    );
    assert_eq!(
        told(&mut client, "select * from v"),
        "42P01 relation \"v\" does not exist"
    );
    assert_eq!(client.tag("alter view vv set schema other"), "ALTER VIEW");
    assert_eq!(
        client.rows("select id from other.vv order by id"),
        ["2", "3"]
    );
    assert_eq!(
        client.rows("select * from w order by name"),
        ["x|4.00", "y|2.50"]
    );
    assert_eq!(client.tag("alter table w rename to ww"), "ALTER TABLE");
    assert_eq!(client.rows("select count(*) from ww"), ["2"]);
    assert_eq!(
        client.tag("alter view if exists w rename to x"),
        "ALTER VIEW"
    );
}

#[test]
fn what_a_view_replaces_keeps_its_columns() {
    let server = Server::new();
    let mut client = prepared(&server);
    for (query, error) in [
        ("select id from t", "42P16 cannot drop columns from view"),
        (
            "select id, a as b, n from t",
            "42P16 cannot change name of view column \"a\" to \"b\"",
        ),
        (
            "select id, 1 as a, n from t",
            "42P16 cannot change data type of view column \"a\" from text to integer",
        ),
        (
            "select 1, w.name, 1::numeric(10, 2) from w",
            "42P16 cannot change name of view column \"id\" to \"?column?\"",
        ),
        (
            "select 1 as id, w.name as a, 1::numeric(10, 2) as n from w",
            "42P17 infinite recursion detected in rules for relation \"v\"",
        ),
    ] {
        let replace = format!("create or replace view v as {query}");
        assert_eq!(told(&mut client, &replace), error, "{query}");
    }
    assert_eq!(
        told(&mut client, "create view v as select 1"),
        "42P07 relation \"v\" already exists"
    );
    assert_eq!(
        told(&mut client, "create or replace view t as select 1"),
        "42809 \"t\" is not a view"
    );
    assert_eq!(
        told(&mut client, "create table v (a int)"),
        "42P07 relation \"v\" already exists"
    );
    assert_eq!(
        told(&mut client, "create sequence v"),
        "42P07 relation \"v\" already exists"
    );
    client.tag("create or replace view v as select id, a, n, id * 2 as double from t");
    assert_eq!(
        client.rows("select double from v order by 1"),
        ["2", "4", "6"]
    );
    // Those that read it go on, and do not see what it has got.
    assert_eq!(
        client.rows("select * from w order by name"),
        ["x|5.50", "y|2.50"]
    );
}

#[test]
fn a_prepared_statement_goes_by_the_view_as_it_is() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag("prepare p as select id from v order by id");
    assert_eq!(client.rows("execute p"), ["2", "3"]);
    client.tag("create or replace view v as select id, a, n from t");
    assert_eq!(client.rows("execute p"), ["1", "2", "3"]);
    client.tag("alter table t rename to u");
    assert_eq!(client.rows("execute p"), ["1", "2", "3"]);
    client.tag("drop view v cascade");
    assert_eq!(
        told(&mut client, "execute p"),
        "42P01 relation \"v\" does not exist"
    );
}

#[test]
fn what_a_view_reads_stays_or_goes_with_it() {
    let server = Server::new();
    let mut client = prepared(&server);
    let refused = client.query("drop table t");
    assert!(
        refused[0].starts_with("E 2BP01 cannot drop table t because other"),
        "{refused:?}"
    );
    for refused in [
        "drop view v",
        "drop view v restrict",
        "drop table t restrict",
    ] {
        assert!(
            told(&mut client, refused).starts_with("2BP01 cannot drop"),
            "{refused}"
        );
    }
    client.tag(
        "create schema s; create table s.t (a int); create view public.over as select * from s.t",
    );
    assert!(
        client
            .error("drop schema s")
            .starts_with("2BP01 cannot drop")
    );
    client.tag("drop schema s cascade");
    assert_eq!(
        told(&mut client, "table over"),
        "42P01 relation \"over\" does not exist"
    );
    assert_eq!(
        told(&mut client, "drop table v"),
        "42809 \"v\" is not a table"
    );
    assert_eq!(
        told(&mut client, "drop view t"),
        "42809 \"t\" is not a view"
    );
    assert_eq!(
        told(&mut client, "drop view z"),
        "42P01 view \"z\" does not exist"
    );
    assert_eq!(client.tag("drop view if exists z"), "DROP VIEW");
    // All that is named goes, in any order.
    client.tag("begin; drop view v, w");
    assert_eq!(
        told(&mut client, "table v"),
        "42P01 relation \"v\" does not exist"
    );
    client.tag("rollback");
    assert_eq!(
        client.rows("select * from w order by name"),
        ["x|4.00", "y|2.50"]
    );
    client.tag("begin; drop table t cascade; rollback; begin; create view z as select 1 as one");
    assert_eq!(client.rows("table z"), ["1"]);
    client.tag(
        "savepoint a; drop view z; rollback to a; create or replace view z as select 2 as one",
    );
    assert_eq!(client.rows("table z"), ["2"]);
    client.tag("rollback");
    assert_eq!(
        told(&mut client, "table z"),
        "42P01 relation \"z\" does not exist"
    );
    client.tag("drop table t cascade");
    assert_eq!(
        told(&mut client, "table w"),
        "42P01 relation \"w\" does not exist"
    );
}

#[test]
fn a_view_is_read_by_its_owners_rights() {
    let server = Server::new();
    let mut client = prepared(&server);
    client.tag(
        "create role alice; create role bob; grant create on schema public to alice;
         grant select (id) on t to alice; grant select on v to bob",
    );
    client.tag("set role bob");
    assert_eq!(client.rows("select count(*) from v"), ["2"]);
    assert_eq!(
        told(&mut client, "select * from t"),
        "42501 permission denied for table t"
    );
    assert_eq!(
        told(&mut client, "select * from w"),
        "42501 permission denied for view w"
    );
    assert_eq!(
        told(&mut client, "drop view v"),
        "42501 must be owner of view v"
    );
    assert_eq!(
        told(
            &mut client,
            "create or replace view v as select id, a, n from t"
        ),
        "42501 must be owner of view v"
    );
    assert_eq!(
        told(&mut client, "create view mine as select 1"),
        "42501 permission denied for schema public"
    );
    client
        .tag("set role alice; create view ids as select id, a from t; grant select on ids to bob");
    client.tag("reset role; set role bob");
    // All columns that the view names, as in PostgreSQL.
    for sql in [
        "select id from ids order by id",
        "select a from ids",
        "select count(*) from (select id from ids limit 1) s",
    ] {
        assert_eq!(
            told(&mut client, sql),
            "42501 permission denied for table t",
            "{sql}"
        );
    }
    client.tag("reset role; grant select (a) on t to alice; set role bob");
    assert_eq!(
        client.rows("select id from ids order by id"),
        ["1", "2", "3"]
    );
    client.tag("reset role; revoke select (id) on t from alice; set role bob");
    assert_eq!(
        told(&mut client, "select a from ids"),
        "42501 permission denied for table t"
    );
    client.tag("reset role; alter view ids owner to postgres; set role bob");
    assert_eq!(client.rows("select count(a) from ids"), ["3"]);
    client.tag("reset role");
    assert!(told(&mut client, "drop role bob").starts_with("2BP01"));
    assert_eq!(
        told(&mut client, "grant select (id) on v to bob").get(..5),
        Some("0A000")
    );
    assert_eq!(client.rows("select has_table_privilege('bob', 'v', 'select'), has_table_privilege('bob', 'w', 'select')"), ["t|f"]);
}

#[test]
fn a_view_takes_no_changes() {
    let server = Server::new();
    let mut client = prepared(&server);
    assert_eq!(
        told(&mut client, "insert into w values ('a', 1)"),
        "55000 cannot insert into view \"w\""
    );
    assert_eq!(
        told(&mut client, "update w set total = 1"),
        "55000 cannot update view \"w\""
    );
    assert_eq!(
        told(&mut client, "delete from w"),
        "55000 cannot delete from view \"w\""
    );
    assert_eq!(
        told(&mut client, "select * from v for update").get(..5),
        Some("0A000")
    );
    assert_eq!(
        told(&mut client, "truncate v"),
        "42809 \"v\" is not a table"
    );
    assert_eq!(
        told(&mut client, "copy v to stdout"),
        "42809 cannot copy from view \"v\""
    );
    assert_eq!(
        told(&mut client, "copy v from stdin"),
        "42809 cannot copy to view \"v\""
    );
    for (query, sqlstate) in [
        ("create recursive view x as select 1", "42601"),
        (
            "create view x as select id + 1 as id from t with local check option",
            "0A000",
        ),
        ("create view x with (security_barrier) as select 1", "0A000"),
        ("create view x as select 't'::regclass", "0A000"),
        ("create view x as select 'today'::date", "0A000"),
        ("create view x as select id from t for share", "0A000"),
        ("create view x as select $1::int", "42P02"),
        ("create view x as select", "42P16"),
        ("create view x as select row(1, 2)", "42P16"),
        ("create view x as select 1 as a, 2 as a", "42701"),
        ("create view x (a, b) as select 1", "42601"),
        ("create view x as select * from nowhere", "42P01"),
        ("create view nowhere.x as select 1", "3F000"),
        ("create view x as selec 1", "42601"),
        ("create view x as delete from t", "42601"),
    ] {
        let error = told(&mut client, query);
        assert_eq!(error.get(..5), Some(sqlstate), "{query}: {error}");
    }
}

#[test]
fn catalogs_show_views() {
    let server = Server::new();
    let mut client = prepared(&server);
    for (query, rows) in [
        (
            "select relkind, relnatts from pg_class where relname = 'w'",
            &["v|2"][..],
        ),
        (
            "select attname, format_type(atttypid, atttypmod) from pg_attribute
             where attrelid = 'v'::regclass order by attnum",
            &["id|integer", "a|text", "n|numeric(10,2)"],
        ),
        (
            "select schemaname, viewowner, definition from pg_views where viewname = 'v'",
            &["public|postgres| select id, a, n from t where id > 1;"],
        ),
        (
            "select table_type from information_schema.tables where table_name = 'v'",
            &["VIEW"],
        ),
        (
            "select view_definition, is_updatable from information_schema.views where table_name = 'v'",
            &[" select id, a, n from t where id > 1;|YES"],
        ),
        (
            "select column_name, data_type from information_schema.columns where table_name = 'w' order by ordinal_position",
            &["name|text", "total|numeric"],
        ),
        (
            "select pg_get_viewdef('w')",
            &[" SELECT name, total FROM (select a, sum(n) from v group by a) v(name, total);"],
        ),
        (
            "select 'v'::regclass::text, to_regclass('nothing')",
            &["v|NULL"],
        ),
    ] {
        let found = client.rows(query);
        let found: Vec<String> = found
            .into_iter()
            .map(|row| row.replace("|~", "|NULL"))
            .collect();
        assert_eq!(found, rows, "{query}");
    }
}

#[test]
fn views_are_there_after_a_crash_and_after_a_stop() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = prepared(&server);
    client.tag("create view gone as select 1 as one; alter view v rename column a to b");
    client.tag("drop view gone; alter table t rename to u");
    let check = |server: &Server| {
        let mut client = server.connect();
        assert_eq!(client.rows("select b from v order by id"), ["y", "x"]);
        assert_eq!(
            client.rows("select * from w order by name"),
            ["x|4.00", "y|2.50"]
        );
        assert_eq!(
            told(&mut client, "table gone"),
            "42P01 relation \"gone\" does not exist"
        );
        assert!(told(&mut client, "drop table u").starts_with("2BP01"));
    };
    check(&server);
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    check(&server);
    drop(server);
    check(&Server::on(&device));
}

#[test]
fn views_over_views_end_before_the_stack_does() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create view v0 as select 1 as a");
    let mut last = 0;
    let refused = loop {
        let sql = format!("create view v{} as select a from v{last}", last + 1);
        let answers = client.query(&sql);
        if let Some(error) = answers.iter().find(|answer| answer.starts_with('E')) {
            break error.clone();
        }
        last += 1;
        assert!(last < 2000);
    };
    assert!(refused.starts_with("E 54001"), "{refused}");
    assert_eq!(client.rows(&format!("select a from v{}", last / 2)), ["1"]);
    assert_eq!(client.rows(&format!("select a from v{last}")), ["1"]);
    client.tag("drop view v0 cascade");
}

#[test]
fn a_recursive_view_reads_itself() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create recursive view nums (n) as values (1) union all select n + 1 from nums where n < 3",
    );
    assert_eq!(client.rows("select * from nums"), ["1", "2", "3"]);
    client.tag("create or replace temp recursive view \"My\" (n) as select 7");
    assert_eq!(client.rows("select * from \"My\""), ["7"]);
    let refused = client.error("create recursive view bad (n) as select x");
    assert!(
        refused.starts_with("42703 ") && refused.contains("[position 41]"),
        "{refused}"
    );
}

#[test]
fn a_view_of_one_table_is_changed_as_the_table_is() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create table t (id int primary key, a int default 7, b text, hidden text default 'h')",
    );
    client.tag("insert into t values (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three')");
    client.tag("create view v (name, number, twice) as select b, id, a * 2 from t where a > 10");
    client.tag("create table k (a int, b text)");
    client.tag("create view keyless as select b, a from k where a < 3");

    assert_eq!(
        client.rows("update v set name = name || twice where number >= 1 returning *"),
        ["two40|2|40", "three60|3|60"]
    );
    // What it does not show it does not change.
    assert_eq!(
        client.tag("update v set name = 'x' where number = 1"),
        "UPDATE 0"
    );
    assert_eq!(client.tag("delete from v where number = 1"), "DELETE 0");
    assert_eq!(
        client.rows("insert into v (number, name) values (4, 'four') returning name, number"),
        ["four|4"]
    );
    assert_eq!(client.rows("select * from t where id = 4"), ["4|7|four|h"]);
    assert_eq!(
        client.rows("select count(*) from v where number = 4"),
        ["0"]
    );
    assert_eq!(
        client
            .tag("update v as w set number = 20 from (values ('two40')) x (n) where w.name = x.n"),
        "UPDATE 1"
    );
    assert_eq!(client.rows("select id from t where b = 'two40'"), ["20"]);
    assert_eq!(
        client.rows("delete from v where number = 20 returning v"),
        ["(two40,20,40)"]
    );
    client.tag("insert into keyless select 'n' || n, n from generate_series(1, 3) n");
    assert_eq!(
        client.tag("delete from keyless using t where keyless.a = t.id"),
        "DELETE 1"
    );
    assert_eq!(client.rows("select * from k order by a"), ["2|n2", "3|n3"]);
}

#[test]
fn what_a_view_does_not_let_change() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, a int)");
    client.tag("create view v as select id, a + 1 as next from t");
    let views = [
        ("select distinct a from t", "DISTINCT"),
        ("select id from t group by id", "GROUP BY"),
        ("select count(*) from t", "aggregate functions"),
        ("select a from t limit 1", "LIMIT or OFFSET"),
        ("select a from t union select 1", "UNION"),
        ("select t.a from t, t as u", "a single table"),
        ("select 1 as a", "a single table"),
        ("select a, row_number() over () from t", "window functions"),
        ("with w as (select 1) select a from t", "WITH"),
    ];
    for (query, why) in views {
        client.tag(&format!("create or replace view refused as {query}"));
        let refused = client.error("delete from refused");
        assert!(
            refused.starts_with("55000 cannot delete from view \"refused\"")
                && refused.contains(why),
            "{query}: {refused}"
        );
        client.tag("drop view refused");
    }
    for (statement, refused) in [
        (
            "update v set next = 1",
            "0A000 cannot update column \"next\" of view \"v\"",
        ),
        (
            "insert into v (id, next) values (1, 2)",
            "0A000 cannot insert into column \"next\" of view \"v\"",
        ),
        (
            "insert into v values (1, 2)",
            "0A000 cannot insert into column \"next\" of view \"v\"",
        ),
        (
            "update v set a = 1",
            "42703 column \"a\" of relation \"v\" does not exist",
        ),
    ] {
        assert_eq!(told(&mut client, statement), refused, "{statement}");
    }
    client.tag("create view of_v as select id from v");
    assert!(client.error("delete from of_v").starts_with("0A000 "));
    assert!(
        client
            .error("insert into v (id) values (1) on conflict do nothing")
            .starts_with("0A000 ")
    );
}

#[test]
fn a_view_is_changed_by_its_owners_rights() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, a int, secret int default 5)");
    client.tag("insert into t values (1, 10), (2, 20)");
    client.tag("create view v as select id, a from t where secret = 5");
    client.tag("create role writer login");
    client.tag("grant update on v to writer");
    client.tag("set role writer");
    assert_eq!(client.tag("update v set a = 0"), "UPDATE 2");
    assert_eq!(
        client.error("update v set a = a + 1"),
        "42501 permission denied for view v"
    );
    assert_eq!(
        client.error("delete from v"),
        "42501 permission denied for view v"
    );
    assert_eq!(
        client.error("update t set a = 1"),
        "42501 permission denied for table t"
    );
    client.tag("reset role");
    client.tag("grant select, delete, insert on v to writer");
    client.tag("set role writer");
    assert_eq!(
        client.tag("update v set a = a + 1 where id = 1"),
        "UPDATE 1"
    );
    assert_eq!(client.tag("insert into v values (3, 3)"), "INSERT 0 1");
    assert_eq!(
        client.rows("delete from v where id in (select 2) returning a"),
        ["0"]
    );
    client.tag("reset role");
    assert_eq!(
        client.rows("select * from t order by id"),
        ["1|1|5", "3|3|5"]
    );
}
