//! Generated columns: every way in which a row gets values has them computed, and DDL keeps what
//! they are computed by.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::Server;

#[test]
fn every_way_into_a_table_has_them_computed() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b int generated always as (a * 2) stored, c text, d text generated always as (c || '!') stored)");
    client.tag("insert into t values (1, default, 'x'), (2, default, null)");
    client.tag("insert into t (c, a) select 'y' || i, i from generate_series(3, 4) i");
    client.tag("insert into t (a, c) select a + 10, c from t where a = 1");
    let all = "select * from t order by a";
    let rows = [
        "1|2|x|x!",
        "2|4|NULL|NULL",
        "3|6|y3|y3!",
        "4|8|y4|y4!",
        "11|22|x|x!",
    ];
    assert_eq!(client.rows(all), rows);
    // By key, all of a row, a key that changes, without a key, by a query, by a cursor.
    client.tag("update t set c = 'by key' where a = 1");
    client.tag("update t set a = 20, c = 'moved' where a = 2");
    client.tag("update t set c = c || '+' where a in (3, 4)");
    client.tag("update t set c = upper(o.c) from (select * from t) o where o.a = t.a and t.a > 4");
    let rows = [
        "1|2|by key|by key!",
        "3|6|y3+|y3+!",
        "4|8|y4+|y4+!",
        "11|22|X|X!",
        "20|40|MOVED|MOVED!",
    ];
    assert_eq!(client.rows(all), rows);
    client.tag("begin; declare k cursor for select * from t where a = 3 for update; fetch k; update t set c = 'current' where current of k; commit");
    client.tag("merge into t using (values (4, 'merged'), (5, 'new')) v (a, c) on t.a = v.a when matched then update set c = v.c when not matched then insert values (v.a, default, v.c)");
    assert_eq!(
        client.rows("select * from t where a between 3 and 5 order by a"),
        [
            "3|6|current|current!",
            "4|8|merged|merged!",
            "5|10|new|new!"
        ]
    );
    // What only they are told to be is nothing.
    client.tag("update t set b = default, d = default where a = 5");
    assert_eq!(client.rows("select b, d from t where a = 5"), ["10|new!"]);
    // Returned as they are by then.
    assert_eq!(
        client.rows("update t set c = 'told' where a = 5 returning b, d"),
        ["10|told!"]
    );
    assert_eq!(
        client.rows("insert into t (a, c) values (6, 'six') returning *"),
        ["6|12|six|six!"]
    );
    for sql in [
        "insert into t values (7, 7)",
        "insert into t values (7, default), (8, 8)",
        "insert into t (a, b) overriding system value values (7, 7)",
        "insert into t (a, b) overriding user value values (7, 7)",
        "insert into t select 7, 7",
        "update t set b = 1",
        "update t set (c, d) = ('x', 'y')",
        "insert into t (a) values (1) on conflict (a) do update set b = 3",
        "merge into t using (values (1)) v (a) on t.a = v.a when matched then update set b = 3",
        "merge into t using (values (7)) v (a) on t.a = v.a when not matched then insert (a, b) values (7, 7)",
    ] {
        assert!(client.error(sql).starts_with("428C9"), "{sql}");
    }
}

#[test]
fn a_conflict_computes_them_of_the_row_that_it_makes() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b int, c int, s int generated always as (b + c) stored, unique (s))");
    for block in [["", ""], ["begin;", "; commit"]] {
        let [before, after] = block;
        let run = |sql: &str| format!("{before} {sql} {after}");
        client.tag("truncate t; insert into t values (1, 10, 5), (2, 20, 5)");
        // One column of it, and the row as it was to be inserted.
        client.tag(&run(
            "insert into t values (1, 11, 100) on conflict (a) do update set b = excluded.b",
        ));
        assert_eq!(client.rows("select * from t where a = 1"), ["1|11|5|16"]);
        client.tag(&run("insert into t values (1, 12, 7) on conflict (a) do update set b = excluded.b, c = excluded.c"));
        assert_eq!(client.rows("select * from t where a = 1"), ["1|12|7|19"]);
        client.tag(&run(
            "insert into t values (1, 12, 8) on conflict (a) do update set c = excluded.s",
        ));
        assert_eq!(client.rows("select * from t where a = 1"), ["1|12|20|32"]);
        // A conflict in what is computed.
        client.tag(&run(
            "insert into t values (9, 24, 1) on conflict (s) do update set c = t.c + 1",
        ));
        assert_eq!(client.rows("select * from t where a = 2"), ["2|20|6|26"]);
        client.tag("update t set c = 5 where a = 2");
        let error = client
            .error("insert into t values (1, 20, 5) on conflict (a) do update set b = 20, c = 5");
        assert!(error.starts_with("23505"), "{error}");
        client.tag("rollback");
    }
    // In place of a row that has left memory, too.
    client.tag("create table h (k int primary key, v text, n int generated always as (length(v)) stored) with (primary_key = hash)");
    client.tag("insert into h select i, repeat('x', i) from generate_series(1, 100) i");
    client.tag("call thermocline.evict('h', 100000000)");
    client.tag("insert into h values (50, 'abc') on conflict (k) do update set v = excluded.v");
    client.tag("update h set v = 'abcd' where k = 51");
    client.tag("delete from h where k = 52");
    assert_eq!(
        client.rows("select * from h where k between 50 and 53 and length(v) < 10 order by k"),
        ["50|abc|3", "51|abcd|4"]
    );
    assert_eq!(
        client.rows("select count(*) from h where n is distinct from length(v)"),
        ["0"]
    );
}

#[test]
fn copy_leaves_them_out_and_computes_them() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int generated always as (a * 2) stored, c text)");
    let answers = client.copy("copy t from stdin", &["1\tx\n2\t\\N\n"]);
    assert_eq!(answers, ["G 7", "C COPY 2"]);
    assert_eq!(
        client.rows("select * from t order by a"),
        ["1|2|x", "2|4|NULL"]
    );
    for (sql, sqlstate) in [
        ("copy t (a, b) from stdin", "42P10"),
        ("copy t (b) to stdout", "42P10"),
        ("copy t from stdin where b > 3", "42P10"),
        ("copy t from stdin where t is null", "42P10"),
    ] {
        assert!(client.error(sql).starts_with(sqlstate), "{sql}");
    }
}

#[test]
fn they_keep_their_meaning_through_ddl_and_a_crash() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b int not null default 3)");
    client.tag("insert into t select i, i * 10 from generate_series(1, 5) i");
    client.tag("alter table t add column c int generated always as (a + b) stored");
    assert_eq!(
        client.rows("select c from t order by a"),
        ["11", "22", "33", "44", "55"]
    );
    client.tag("alter table t rename b to \"Of b\"");
    client.tag("create index on t (c); create view v as select a, c from t");
    client.tag("insert into t values (6)");
    client.tag("insert into v (a) values (7)");
    client.tag("call thermocline.evict('t', 100000000)");
    let one = "select * from t where c in (9, 10, 33) order by a";
    assert_eq!(client.rows(one), ["3|30|33", "6|3|9", "7|3|10"]);
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(client.rows(one), ["3|30|33", "6|3|9", "7|3|10"]);
    client.tag("update t set \"Of b\" = 0 where a = 3");
    assert_eq!(client.rows("select * from t where a = 3"), ["3|0|3"]);
    let error = client.error("alter table t drop \"Of b\"");
    assert!(error.starts_with("2BP01"), "{error}");
    let error = client.error("alter table t alter a type bigint");
    assert!(error.starts_with("0A000"), "{error}");
    client.tag("drop view v; alter table t alter c type numeric(10, 1)");
    client.tag("update t set \"Of b\" = 1 where a = 3");
    assert_eq!(client.rows("select * from t where a = 3"), ["3|1|4.0"]);
    client.tag("create table l (like t including generated including indexes)");
    client.tag("insert into l values (1, 2)");
    assert_eq!(client.rows("select * from l"), ["1|2|3.0"]);
    client.tag("alter table t alter c drop expression; update t set c = 100, a = 30 where a = 3");
    assert_eq!(client.rows("select * from t where a = 30"), ["30|1|100.0"]);
    client.tag("alter table l drop \"Of b\" cascade");
    assert_eq!(client.rows("select * from l"), ["1"]);
}

#[test]
fn a_new_type_keeps_what_was_rounded_to_the_old_one() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int generated always as (a / 4.0) stored)");
    client.tag("insert into t values (7), (9); alter table t alter b type numeric");
    client.tag("insert into t values (11); update t set a = 13 where a = 9");
    assert_eq!(
        client.rows("select * from t order by a"),
        ["7|2", "11|3", "13|3"]
    );
    let error = client.error("alter table t alter b type jsonb");
    assert!(error.starts_with("42804"), "{error}");
    let error = client.error("alter table t alter b type text using 'x'");
    assert!(error.starts_with("42611"), "{error}");
}

#[test]
fn all_kinds_of_tables_have_them() {
    let server = Server::new();
    let mut client = server.connect();
    for (kind, options) in [
        ("table", "using columns"),
        ("temp table", ""),
        ("table", "with (partition_key = b)"),
    ] {
        client.tag(&format!(
            "create {kind} t (a int, b bigint generated always as (a::bigint * a) stored, \
             c text[] generated always as (array['n', a::text]) stored, primary key (a, b)) {options}"
        ));
        client.tag("insert into t select i from generate_series(1, 500) i");
        if kind == "table" {
            client.tag("call thermocline.evict('t', 100000000)");
        }
        client.tag("update t set a = a + 1000 where b between 100 and 400");
        client.tag("update t set a = 7000 where a = 7 and b = 49");
        assert_eq!(
            client.rows(
                "select count(*), sum(a), max(c) from t where b = a::bigint * a and c[2] = a::text"
            ),
            ["500|143243|{n,99}"]
        );
        assert_eq!(client.rows("select a from t where b = 1020100"), ["1010"]);
        client.tag("drop table t");
    }
}

#[test]
fn references_of_and_to_them_hold() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table p (x int, y int generated always as (x * 2) stored primary key)");
    client.tag("create table q (a int primary key, b int references p on update cascade, c int generated always as (b + 1) stored)");
    client.tag("insert into p values (1), (2), (3); insert into q values (1, 2), (2, 4)");
    assert!(
        client
            .error("insert into q values (3, 5)")
            .starts_with("23503")
    );
    // A key that goes because what it is computed by changes.
    client.tag("update p set x = 10 where x = 1");
    assert_eq!(
        client.rows("select * from q order by a"),
        ["1|20|21", "2|4|5"]
    );
    client.tag("create table r (a int, b int generated always as (a * 2) stored references p)");
    client.tag("insert into r values (2), (null)");
    assert!(
        client
            .error("insert into r values (5)")
            .starts_with("23503")
    );
    assert!(
        client
            .error("update r set a = 5 where a = 2")
            .starts_with("23503")
    );
    assert!(
        client
            .error("update p set x = 50 where x = 2")
            .starts_with("23503")
    );
    for action in [
        "update cascade",
        "update set null",
        "delete set null",
        "delete set default",
    ] {
        let sql = format!(
            "create table s (a int, b int generated always as (a) stored references p on {action})"
        );
        assert!(client.error(&sql).starts_with("42601"), "{sql}");
    }
}

#[test]
fn only_what_the_row_alone_gives_computes_them() {
    let server = Server::new();
    let mut client = server.connect();
    for (column, sqlstate) in [
        (
            "b double precision generated always as (random()) stored",
            "42P17",
        ),
        ("b timestamptz generated always as (now()) stored", "42P17"),
        ("b text generated always as (current_user) stored", "42P17"),
        ("b text generated always as (z::text) stored", "42P17"),
        ("b text generated always as (z || 'x') stored", "42P17"),
        ("b date generated always as (z::date) stored", "42P17"),
        // The cast to the column's type, too.
        ("b timestamptz generated always as (d) stored", "42P17"),
        ("b date generated always as (t::date) stored", "42P17"),
        ("b text generated always as (concat(t, a)) stored", "42P17"),
        (
            "b text generated always as (to_char(a, '99')) stored",
            "42P17",
        ),
        (
            "b text generated always as (array[a]::text) stored",
            "42P17",
        ),
        (
            "b bool generated always as (z > date '2020-01-01') stored",
            "42P17",
        ),
        (
            "b bool generated always as (nullif(z, date '2020-01-01') is null) stored",
            "42P17",
        ),
        ("b int generated always as (b + 1) stored", "42P17"),
        (
            "b int generated always as (a + 1) stored, c int generated always as (b + 1) stored",
            "42P17",
        ),
        ("b int generated always as (num_nulls(g)) stored", "42P17"),
        ("b bool generated always as (xmin <> 37) stored", "42P10"),
        ("b bool generated always as (g.xmin <> 37) stored", "42P10"),
        ("b int generated always as (g.nothing + 1) stored", "42703"),
        ("b int generated always as (nothing + 1) stored", "42703"),
        ("b int generated always as (avg(a)) stored", "42803"),
        ("b int generated always as ((select a)) stored", "0A000"),
        (
            "b int generated always as (generate_series(1, a)) stored",
            "0A000",
        ),
        (
            "b int generated always as (row_number() over ()) stored",
            "42P20",
        ),
        ("b int generated always as (t) stored", "42804"),
        ("b int default 5 generated always as (a) stored", "42601"),
        ("b int generated always as (a) stored default 5", "42601"),
        ("b serial generated always as (a) stored", "42601"),
        (
            "b int generated always as identity generated always as (a) stored",
            "42601",
        ),
        (
            "b int generated always as (a) stored generated always as (a) stored",
            "42601",
        ),
        ("b int generated by default as (a) stored", "42601"),
        ("b int generated always as (a)", "0A000"),
    ] {
        let sql = format!("create table g (a int, t text, d date, z timestamptz, {column})");
        let error = client.error(&sql);
        assert!(error.starts_with(sqlstate), "{sql}: {error}");
    }
    for column in [
        "b text generated always as (a::text || 'x') stored",
        "b text generated always as (a || ' sec') stored",
        "b int generated always as (extract(year from t2)) stored",
        "b int generated always as (t::int) stored",
        "b jsonb generated always as (t::jsonb) stored",
        "b text generated always as (lower(t)) stored",
        "b bool generated always as (t like 'x%') stored",
        "b text generated always as (j ->> 'x') stored",
        "b int generated always as (55) stored",
        "b int generated always as (null) stored",
    ] {
        let table = "a int, t text, d date, t2 timestamp, j jsonb";
        client.tag(&format!("create table g ({table}, {column}); drop table g"));
    }
}

#[test]
fn the_catalogs_say_what_they_are_computed_by() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int generated always as (a * 2) stored, c int default 4)");
    assert_eq!(
        client.rows("select attname, attgenerated, atthasdef from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum"),
        ["a||f", "b|s|t", "c||t"]
    );
    assert_eq!(
        client.rows("select column_name, column_default, is_generated, generation_expression from information_schema.columns where table_name = 't' order by 1"),
        ["a|NULL|NEVER|NULL", "b|NULL|ALWAYS|(a * 2)", "c|4|NEVER|NULL"]
    );
    assert_eq!(
        client.rows("select table_name, column_name, dependent_column from information_schema.column_column_usage"),
        ["t|a|b"]
    );
    for (sql, sqlstate) in [
        ("alter table t alter b set default 3", "42601"),
        ("alter table t alter b drop default", "42601"),
        ("alter table t alter c drop expression", "55000"),
        ("alter table t alter x drop expression", "42703"),
        (
            "alter table t add d int generated always as (b * 2) stored",
            "42P17",
        ),
        (
            "alter table t add d int generated always as (d * 2) stored",
            "42P17",
        ),
    ] {
        assert!(client.error(sql).starts_with(sqlstate), "{sql}");
    }
    client.tag("alter table t alter c drop expression if exists");
}

#[test]
fn a_table_with_another_name_has_the_same_checks_and_generated_columns() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int check (t.a > 0), b int generated always as (public.t.a + t.a) stored)");
    client.tag("alter table t add check (t.a < 10); alter table t rename to u");
    client.tag("insert into u values (3)");
    assert_eq!(client.rows("select * from u"), ["3|6"]);
    assert!(
        client
            .error("insert into u values (0)")
            .starts_with("23514")
    );
    assert!(
        client
            .error("insert into u values (10)")
            .starts_with("23514")
    );
    let error = client.error("create table w (a int, b int generated always as (u.a) stored)");
    assert!(error.starts_with("42P01"), "{error}");
}
