//! Columns that go, get another type, or come with a value of each row.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::Server;

#[test]
fn a_dropped_column_is_gone_for_rows_of_before_and_after() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create table t (a int primary key, b text default 'x', c int unique, d int, \
         check (d < 100), check (a > 0), unique (b, c))",
    );
    client.tag("create index on t (c)");
    client.tag("comment on column t.c is 'goes'");
    client.tag("create role r");
    client.tag("grant select (c) on t to r");
    client.tag("insert into t values (1, 'one', 11, 10), (2, 'two', 22, 20)");
    client.tag("alter table t drop column c");
    client.tag("insert into t values (3, 'three', 30)");
    client.tag("insert into t (d, a) values (40, 4)");
    let rows = ["1|one|10", "2|two|20", "3|three|30", "4|x|40"];
    assert_eq!(client.rows("select * from t order by a"), rows);
    assert_eq!(client.rows("select t.* from t where a = 2"), ["2|two|20"]);
    assert_eq!(client.rows("select t from t where a = 2"), ["(2,two,20)"]);
    assert_eq!(
        client.rows("select x, z from t as t(x, y, z) where x = 1"),
        ["1|10"]
    );
    assert_eq!(
        client.rows("select count(*), max(d) from t natural join (values (3)) v(a)"),
        ["1|30"]
    );
    assert_eq!(
        client.rows("update t set b = 'zwei' where a = 2 returning *"),
        ["2|zwei|20"]
    );
    let sql = "insert into t values (2, 'deux', 21) \
               on conflict (a) do update set b = excluded.b, d = excluded.d returning *";
    assert_eq!(client.rows(sql), ["2|deux|21"]);
    assert_eq!(
        client.query("copy (select * from t where a = 1) to stdout")[1..2],
        ["d 1\tone\t10\n"]
    );
    // What was over it went with it; what was not is there.
    assert_eq!(
        client.rows("select conname from pg_constraint where conrelid = 't'::regclass order by 1"),
        ["t_a_check", "t_d_check", "t_pkey"]
    );
    assert_eq!(
        client.rows("select count(*) from pg_index where indrelid = 't'::regclass"),
        ["1"]
    );
    assert_eq!(
        client.rows(
            "select attname, attnum, atttypid, attisdropped from pg_attribute \
             where attrelid = 't'::regclass and attnum in (3, 4) order by 2"
        ),
        ["........pg.dropped.3........|3|0|t", "d|4|23|f"]
    );
    assert_eq!(
        client.rows("select col_description('t'::regclass, 3)"),
        ["NULL"]
    );
    // And it can come back as something else.
    client.tag("alter table t add column c text default 'new'");
    assert_eq!(client.rows("select * from t where a = 1"), ["1|one|10|new"]);
    assert_eq!(
        client.rows("select has_column_privilege('r', 't', 'c', 'select')"),
        ["f"]
    );
    for (sql, error) in [
        ("select \"........pg.dropped.3........\" from t", "42703 "),
        (
            "update t set \"........pg.dropped.3........\" = 1",
            "42703 ",
        ),
        (
            "insert into t (\"........pg.dropped.3........\") values (1)",
            "42703 ",
        ),
        (
            "comment on column t.\"........pg.dropped.3........\" is 'x'",
            "42703 ",
        ),
        (
            "insert into t values (5, 'five', 50, 'new', 5)",
            "42601 INSERT has more expressions",
        ),
        (
            "alter table t drop column nope",
            "42703 column \"nope\" of relation \"t\" does not exist",
        ),
        (
            "insert into t values (0, 'none', 0)",
            "23514 new row for relation \"t\" violates",
        ),
    ] {
        let shown = client.error(sql);
        assert!(shown.starts_with(error), "{sql}: {shown}");
    }
    assert_eq!(
        client.query("alter table t drop column if exists nope"),
        [
            "N 00000 column \"nope\" of relation \"t\" does not exist, skipping",
            "C ALTER TABLE"
        ]
    );
}

#[test]
fn a_column_of_the_key_goes_with_the_key() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int, c text, primary key (a, b))");
    client.tag("insert into t select i, i % 3, 'c' || i from generate_series(1, 1000) i");
    client.tag("alter table t drop column a");
    assert_eq!(
        client.rows("select count(*), count(distinct c), sum(b) from t"),
        ["1000|1000|1000"]
    );
    client.tag("insert into t values (1, 'c1')");
    assert_eq!(client.rows("select count(*) from t where c = 'c1'"), ["2"]);
    // Partitions that a table was made with are kept.
    client.tag("create table chosen (a int, b int) with (partition_key = (b, a))");
    assert!(
        client
            .error("alter table chosen drop column a")
            .starts_with("42P16 cannot drop column \"a\" because it is part of the partition key")
    );
    // Also the last column goes, and rows stay.
    client.tag("alter table t drop column b, drop column c");
    assert_eq!(client.rows("select count(*) from t"), ["1001"]);
    client.tag("insert into t default values");
    assert_eq!(client.rows("select count(*) from t"), ["1002"]);
}

#[test]
fn views_keep_the_columns_that_they_read() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b int, c int, d int)");
    client.tag("insert into t values (1, 2, 3, 4)");
    client
        .tag("create view v as select x.a, (select max(y.d) from t y where y.a = x.a) m from t x");
    client.tag("create view w as select m from v");
    client.tag("create view whole as select count(t) from t");
    client.tag("create view starred as select * from t");
    for column in ["a", "b", "c", "d"] {
        let error = client.error(&format!("alter table t drop column {column}"));
        assert!(error.starts_with("2BP01 cannot drop column"), "{error}");
    }
    client.tag("drop view whole, starred");
    assert!(
        client
            .error("alter table t alter column d type bigint")
            .starts_with("0A000 cannot alter type of a column used by a view or rule")
    );
    // The columns around it do not move for the views.
    client.tag("alter table t drop column b");
    client.tag("alter table t alter column c type text");
    assert_eq!(client.rows("select * from v"), ["1|4"]);
    client.tag("create view later as select * from t");
    assert_eq!(client.rows("select * from later"), ["1|3|4"]);
    assert_eq!(
        client.query("alter table t drop column d cascade"),
        [
            "N 00000 drop cascades to 3 other objects [detail drop cascades to view v\n\
             drop cascades to view w\ndrop cascades to view later]",
            "C ALTER TABLE"
        ]
    );
    assert_eq!(client.rows("select * from t"), ["1|3"]);
    assert!(client.error("select * from w").starts_with("42P01 "));
}

#[test]
fn types_change_with_the_values() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create table t (a int primary key, b text default '7', c numeric(6, 2), \
         d varchar(4), check (c > 0), unique (d))",
    );
    client
        .tag("insert into t select i, i::text, i + 0.75, 'd' || i from generate_series(1, 500) i");
    for (sql, error) in [
        (
            "alter table t alter b type int",
            "42804 column \"b\" cannot be cast automatically to type integer",
        ),
        (
            "alter table t alter b type int using c > 1",
            "42804 result of USING clause for column \"b\" cannot be cast automatically to type",
        ),
        (
            "alter table t alter b type int using (b || 'x')::int",
            "22P02 ",
        ),
        ("alter table t alter d type varchar(2)", "22001 "),
        (
            "alter table t alter a type text using 'same'",
            "23505 could not create unique index \"t_pkey\"",
        ),
        (
            "alter table t alter c type int using 0",
            "23514 check constraint \"t_c_check\" of relation \"t\" is violated by some row",
        ),
        (
            "alter table t alter a type int using null",
            "23502 column \"a\" of relation \"t\" ",
        ),
        (
            "alter table t alter e type int",
            "42703 column \"e\" of relation \"t\" does not exist",
        ),
        (
            "alter table t alter a type int, alter a type text",
            "0A000 cannot alter type of column",
        ),
        (
            "alter table t alter a type serial",
            "42704 type \"serial\" does not exist",
        ),
    ] {
        let shown = client.error(sql);
        assert!(shown.starts_with(error), "{sql}: {shown}");
    }
    assert_eq!(
        client.rows("select sum(a), sum(c), count(distinct b) from t"),
        ["125250|125625.00|500"]
    );
    // Each new value is of the row as it was.
    client.tag(
        "alter table t alter b drop default, alter a type bigint using c::bigint, \
         alter c type numeric using a, alter b type int using b::int, alter b set default 9",
    );
    assert_eq!(client.rows("select * from t where a = 3"), ["3|2|2|d2"]);
    client.tag("insert into t (a, c) values (1000, 5)");
    assert_eq!(
        client.rows("select * from t where a = 1000"),
        ["1000|9|5|NULL"]
    );
    client.tag("create table numbered (id serial, x int)");
    assert!(
        client
            .error("alter table numbered alter id type date using '2020-01-01'::date + id")
            .starts_with("42804 default for column \"id\" cannot be cast automatically")
    );
    client.tag("alter table numbered alter id drop default, alter id type date using null");
    client.tag("create table u (f1 int, f2 text, f3 text)");
    client.tag("insert into u values (1, 'one', 'uno')");
    client.tag(
        "alter table u alter f1 type text using f2 || ' and ' || f3, \
         alter f2 type bigint using f1 * 10, drop column f3",
    );
    assert_eq!(client.rows("select * from u"), ["one and uno|10"]);
    // Without writing rows anew: what fits still fits.
    client.tag("alter table t alter d type varchar(9)");
    client.tag("insert into t values (1001, 1, 1, 'longer')");
    assert_eq!(client.rows("select a from t where d = 'd2'"), ["3"]);
    assert!(
        client
            .error("insert into t values (1002, 1, 1, 'd2')")
            .starts_with("23505 ")
    );
}

#[test]
fn new_columns_have_a_value_of_each_row() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (x int)");
    client.tag("insert into t select generate_series(1, 300)");
    client.tag("alter table t add column id serial, add column r float8 default random()");
    assert_eq!(
        client.rows("select count(distinct id), min(id), max(id), count(distinct r) from t"),
        ["300|1|300|300"]
    );
    client.tag("insert into t (x) values (301)");
    assert_eq!(client.rows("select id from t where x = 301"), ["301"]);
    client.tag("alter table t add column g bigint generated always as identity (start 10)");
    assert_eq!(client.rows("select min(g), max(g) from t"), ["10|310"]);
    client.tag("alter table t add primary key (id)");
    // The sequence goes with the column.
    client.tag("alter table t drop column g");
    assert_eq!(
        client.rows("select relname from pg_class where relkind = 'S'"),
        ["t_id_seq"]
    );
    assert!(
        client
            .error("alter table t add column n int not null")
            .starts_with("23502 column \"n\" of relation \"t\" contains null values")
    );
}

#[test]
fn changes_of_columns_are_transactional_and_durable() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b text, c int)");
    client.tag("insert into t select i, 'b' || i, i from generate_series(1, 200) i");
    for sql in [
        "begin",
        "alter table t drop column b",
        "insert into t values (201, 201)",
        "savepoint s",
        "alter table t alter column c type text",
        "update t set c = 'text' where a = 1",
        "rollback to s",
    ] {
        client.query(sql);
    }
    assert_eq!(client.rows("select sum(c) from t"), ["20301"]);
    client.tag("rollback");
    assert_eq!(client.rows("select * from t where a = 7"), ["7|b7|7"]);
    assert_eq!(client.rows("select count(*) from t"), ["200"]);
    client.tag("alter table t drop column b");
    client.tag("alter table t alter column c type text using 'c' || c");
    client.tag("insert into t values (201, 'after')");
    client.tag("checkpoint");
    client.tag("alter table t add column d int default 5");
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(
        client.rows("select * from t where a in (7, 201) order by a"),
        ["7|c7|5", "201|after|5"]
    );
    client.tag("insert into t values (202, 'more', 6)");
    assert_eq!(client.rows("select count(*), sum(d) from t"), ["202|1011"]);
    let report = server.engine.database().verify().expect("verifies");
    assert_eq!(report.problems, Vec::<String>::new());
}

/// Who waits for the definition goes by the new one, who holds the table is waited for.
#[test]
fn a_prepared_statement_follows_the_columns() {
    let server = Server::new();
    let mut client = server.connect();
    let mut other = server.connect();
    client.tag("create table t (a int primary key, b int, c int)");
    client.tag("insert into t values (1, 2, 3)");
    other.tag("prepare one as select c from t where a = $1");
    other.tag("prepare all_of as select * from t");
    assert_eq!(other.rows("execute one(1)"), ["3"]);
    client.tag("alter table t drop column b");
    assert_eq!(other.rows("execute one(1)"), ["3"]);
    assert!(
        other
            .error("execute all_of")
            .starts_with("0A000 cached plan must not change result type")
    );
    client.tag("alter table t drop column c");
    assert!(other.error("execute one(1)").starts_with("42703 "));
}
