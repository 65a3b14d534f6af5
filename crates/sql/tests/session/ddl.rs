//! Definitions as sessions make them: types, defaults, constraints, options.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;
use thermocline_engine::{IndexKind, Table};
use thermocline_values::types::DataType;

use crate::fixture::Server;

fn table(server: &Server, name: &str) -> Arc<Table> {
    let catalog = server.engine.database().catalog();
    let table = catalog.table_by_name("public", name);
    Arc::clone(table.unwrap_or_else(|| panic!("no table {name}")))
}

#[test]
fn types_defaults_and_constraints() {
    let server = Server::new();
    let mut client = server.connect();
    assert_eq!(
        client.tag(
            "create table t (a int primary key, b smallint not null, c bigint default 5, \
             d decimal(4,4), e float(3), f double precision, g varchar(16), \
             h character varying, i char, j char(9) check (j <> ''), k bytea, l date, \
             m timestamp default current_timestamp, n timestamp with time zone, o uuid, \
             p bool null default null, q text unique, \
             constraint positive check (b > 0), unique (b, c), check (c > b)) \
             using heap with (fillfactor = 100)"
        ),
        "CREATE TABLE"
    );
    let table = table(&server, "t");
    let types: Vec<DataType> = table
        .columns
        .iter()
        .map(|column| column.data_type)
        .collect();
    assert_eq!(
        types,
        [
            DataType::Integer,
            DataType::SmallInt,
            DataType::BigInt,
            DataType::Numeric {
                precision: 4,
                scale: 4
            },
            DataType::Real,
            DataType::Double,
            DataType::Varchar(16),
            DataType::Varchar(0),
            DataType::Char(1),
            DataType::Char(9),
            DataType::Bytea,
            DataType::Date,
            DataType::Timestamp,
            DataType::TimestampTz,
            DataType::Uuid,
            DataType::Boolean,
            DataType::Text,
        ]
    );
    let not_null: Vec<bool> = table.columns[..3].iter().map(|c| c.not_null).collect();
    assert_eq!(not_null, [true, true, false]);
    assert_eq!(table.columns[2].default.as_deref(), Some("5"));
    assert_eq!(table.columns[15].default, None);
    let indexes: Vec<(&str, &[usize], bool)> = table
        .indexes
        .iter()
        .map(|index| (index.name.as_str(), &index.columns[..], index.primary))
        .collect();
    assert_eq!(
        indexes,
        [
            ("t_pkey", &[0][..], true),
            ("t_q_key", &[16], false),
            ("t_b_c_key", &[1, 2], false)
        ]
    );
    let checks: Vec<&str> = table.checks.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(checks, ["t_j_check", "positive", "t_check"]);
    assert_eq!(table.partition_key, [0]);
}

#[test]
fn options_choose_how_rows_are_kept() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create table a (x int, y int, primary key (x, y)) \
         with (partition_key = x, evictable = off)",
    );
    client.tag("create table b (x int primary key) with (primary_key = hash)");
    client.tag("create table c (x int, y int) with (partition_key = (y, x))");
    client.tag("create table d (x int) with (partition_key = 'x')");
    let a = table(&server, "a");
    assert_eq!((&a.partition_key[..], a.evictable), (&[0][..], false));
    assert_eq!(table(&server, "b").indexes[0].kind, IndexKind::Hash);
    assert_eq!(table(&server, "c").partition_key, [1, 0]);
    assert_eq!(table(&server, "d").partition_key, [0]);
    for (sql, sqlstate) in [
        ("create table e (x int) with (partition_key = z)", "42703 "),
        ("create table e (x int) with (nonsense = 1)", "22023 "),
        ("create table e (x int) using lsm", "0A000 "),
        ("create table e (x int) using nonsense", "42704 "),
    ] {
        assert!(client.error(sql).starts_with(sqlstate), "{sql}");
    }
}

#[test]
fn what_is_wrong_with_a_table() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int)");
    for (sql, error) in [
        (
            "create table t (a int)",
            "42P07 relation \"t\" already exists",
        ),
        (
            "create table u (a int, a text)",
            "42701 column \"a\" specified more than once",
        ),
        (
            "create table u (a int primary key, b int primary key)",
            "42P16 multiple primary keys for table \"u\" are not allowed",
        ),
        (
            "create table u (a int, primary key (b))",
            "42703 column \"b\" named in key does not exist",
        ),
        (
            "create table u (a nosuch)",
            "42704 type \"nosuch\" does not exist",
        ),
        (
            "create table no.u (a int)",
            "3F000 schema \"no\" does not exist",
        ),
        (
            "create table u (a int references t (a))",
            "42830 there is no unique constraint matching given keys for referenced table \"t\"",
        ),
        (
            "create table u (a int check (b > 0))",
            "42703 column \"b\" does not exist",
        ),
        (
            "create table u (a int default 'x')",
            "22P02 invalid input syntax for type integer: \"x\"",
        ),
        ("drop table u", "42P01 table \"u\" does not exist"),
        (
            "create table pg_catalog.u (a int)",
            "42501 permission denied for schema pg_catalog",
        ),
    ] {
        let shown = client.error(sql);
        assert!(shown.starts_with(error), "{sql}: {shown}");
    }
    assert_eq!(
        client.query("create table if not exists t (b int)"),
        [
            "N 42P07 relation \"t\" already exists, skipping",
            "C CREATE TABLE"
        ]
    );
    assert_eq!(
        client.query("drop table if exists x, t cascade"),
        [
            "N 00000 table \"x\" does not exist, skipping",
            "C DROP TABLE"
        ]
    );
    assert_eq!(
        client.query("drop view if exists v cascade"),
        ["N 00000 view \"v\" does not exist, skipping", "C DROP VIEW"]
    );
    assert!(server.engine.database().catalog().tables.is_empty());
}

#[test]
fn serial_and_identity_columns() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create table t (a serial primary key, b int generated by default as identity \
         (start with 100 increment by 10), c bigint generated always as identity, d text)",
    );
    client.tag("insert into t (d) values ('x'), ('y')");
    assert_eq!(
        client.rows("select a, b, c from t order by a"),
        ["1|100|1", "2|110|2"]
    );
    assert_eq!(client.rows("select currval('t_a_seq')"), ["2"]);
    assert!(
        client
            .error("insert into t (c) values (5)")
            .starts_with("428C9 ")
    );
    assert_eq!(client.rows("select nextval('t_a_seq')"), ["3"]);
    assert!(client.error("drop sequence t_a_seq").starts_with("2BP01 "));
    client.tag("truncate t restart identity");
    client.tag("insert into t (d) values ('z')");
    assert_eq!(client.rows("select a, b from t"), ["1|100"]);
    client.tag("drop table t");
    assert!(server.engine.database().catalog().sequences.is_empty());
}

#[test]
fn sequences() {
    let server = Server::new();
    let mut client = server.connect();
    assert_eq!(
        client.tag("create sequence s start 5 increment by 2"),
        "CREATE SEQUENCE"
    );
    assert_eq!(client.rows("select nextval('s')"), ["5"]);
    assert_eq!(client.rows("select nextval('s'), currval('s')"), ["7|7"]);
    assert_eq!(client.rows("select setval('s', 100)"), ["100"]);
    assert_eq!(client.rows("select nextval('public.s')"), ["102"]);
    assert_eq!(
        client.tag("alter sequence s restart with 1 increment by 1"),
        "ALTER SEQUENCE"
    );
    assert_eq!(client.rows("select nextval('s')"), ["1"]);
    client.tag("alter sequence s rename to r");
    assert!(client.error("select nextval('s')").starts_with("42P01 "));
    assert_eq!(client.rows("select nextval('r')"), ["2"]);
    assert_eq!(client.tag("drop sequence r"), "DROP SEQUENCE");
    assert!(
        client
            .error("create sequence s increment 0")
            .starts_with("22023 INCREMENT")
    );
}

#[test]
fn indexes() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int, c text)");
    client.tag("insert into t values (1, 1, 'x'), (2, 1, 'y')");
    assert_eq!(client.tag("create index on t (a, b)"), "CREATE INDEX");
    client.tag("create index on t (a, b)");
    client.tag("create unique index u on t using btree (a desc)");
    client.tag("create index h on t using hash (c)");
    let names: Vec<String> = table(&server, "t")
        .indexes
        .iter()
        .map(|index| index.name.clone())
        .collect();
    assert_eq!(names, ["t_a_b_idx", "t_a_b_idx1", "u", "h"]);
    for (sql, error) in [
        ("create unique index on t (b)", "23505 "),
        ("create index u on t (b)", "42P07 "),
        ("create index on t (random())", "42P17 "),
        ("create index on t (z)", "42703 "),
    ] {
        let shown = client.error(sql);
        assert!(shown.starts_with(error), "{sql}: {shown}");
    }
    assert_eq!(client.tag("drop index h"), "DROP INDEX");
    assert_eq!(client.tag("alter index u rename to v"), "ALTER INDEX");
    assert_eq!(
        client.error("drop index u"),
        "42704 index \"u\" does not exist"
    );
    assert_eq!(client.rows("select b from t where a = 2"), ["1"]);
}

#[test]
fn altering_a_table_with_rows() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b int)");
    client.tag("insert into t values (1, 10), (2, null)");
    assert_eq!(
        client.tag("alter table t add column c text not null default 'x'"),
        "ALTER TABLE"
    );
    client.tag("alter table only t add constraint t_key primary key (a)");
    assert_eq!(
        client.rows("select a, b, c from t order by a"),
        ["1|10|x", "2|NULL|x"]
    );
    assert_eq!(table(&server, "t").partition_key, [0]);
    for (sql, error) in [
        (
            "alter table t alter column b set not null",
            "23502 column \"b\" of relation \"t\" contains null values",
        ),
        (
            "alter table t add check (b < 10)",
            "23514 check constraint \"t_b_check\" of relation \"t\" is violated by some row",
        ),
        (
            "alter table t add column d int not null",
            "23502 column \"d\" of relation \"t\" contains null values",
        ),
        (
            "alter table t add column c int",
            "42701 column \"c\" of relation \"t\" already exists",
        ),
        (
            "alter table t alter column a drop not null",
            "42P16 column \"a\" is in a primary key",
        ),
        (
            "alter table t add primary key (b)",
            "42P16 multiple primary keys",
        ),
        (
            "alter table t drop constraint none",
            "42704 constraint \"none\" of relation \"t\" does not exist",
        ),
        (
            "alter table none add column d int",
            "42P01 relation \"none\" does not exist",
        ),
        (
            "alter table t add foreign key (a) references t (b)",
            "42830 there is no unique constraint matching given keys for referenced table \"t\"",
        ),
        (
            "drop index t_key",
            "2BP01 cannot drop index t_key because constraint t_key on table t requires it",
        ),
    ] {
        let shown = client.error(sql);
        assert!(shown.starts_with(error), "{sql}: {shown}");
    }
}

#[test]
fn altering_columns_and_constraints() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b int, c text default 'x')");
    client.tag("insert into t values (1, 10), (2, 20)");
    client.tag("create index on t (b)");
    client.tag("alter table t alter column b set not null");
    assert_eq!(client.rows("select a from t where b = 20"), ["2"]);
    assert!(
        client
            .error("insert into t values (3, null)")
            .starts_with("23502 ")
    );
    client.tag("alter table t alter column b drop not null");
    assert_eq!(client.rows("select a from t where b = 20"), ["2"]);
    client.tag("alter table t add constraint big check (b >= 10)");
    let small = "insert into t values (3, 5)";
    assert!(client.error(small).starts_with("23514 "));
    client.tag("alter table t rename column b to \"B b\"");
    assert!(client.error(small).starts_with("23514 "));
    client.tag("alter table t drop constraint big");
    client.tag(small);
    client.tag("alter table t alter column c set default 'y'");
    client.tag("alter table t rename to u");
    client.tag("insert into u (a) values (4)");
    assert_eq!(client.rows("select c from u where a = 4"), ["y"]);
    assert!(client.error("select * from t").starts_with("42P01 "));
}

#[test]
fn schemas() {
    let server = Server::new();
    let mut client = server.connect();
    assert_eq!(client.tag("create schema app"), "CREATE SCHEMA");
    client.tag("create table app.t (a serial primary key)");
    client.tag("insert into app.t default values");
    assert!(client.error("select * from t").starts_with("42P01 "));
    client.tag("set search_path = app, public");
    assert_eq!(client.rows("select a from t"), ["1"]);
    assert!(client.error("create schema app").starts_with("42P06 "));
    assert!(client.error("drop schema app").starts_with("2BP01 "));
    assert_eq!(client.tag("drop schema app cascade"), "DROP SCHEMA");
    assert!(client.error("drop schema app").starts_with("3F000 "));
    assert_eq!(
        client.query("drop schema if exists app"),
        [
            "N 00000 schema \"app\" does not exist, skipping",
            "C DROP SCHEMA"
        ]
    );
}

#[test]
fn ddl_follows_its_transaction() {
    let server = Server::new();
    let mut client = server.connect();
    let mut other = server.connect();
    client.tag("begin");
    client.tag("create table t (a int primary key)");
    client.tag("insert into t values (1)");
    assert_eq!(client.rows("select a from t"), ["1"]);
    assert!(other.error("select a from t").starts_with("42P01 "));
    client.tag("rollback");
    assert!(client.error("select a from t").starts_with("42P01 "));
    client.tag("begin");
    client.tag("create table t (a int primary key)");
    client.tag("insert into t values (2)");
    client.tag("commit");
    assert_eq!(other.rows("select a from t"), ["2"]);
    // What failed leaves nothing: the sequence was made first.
    other.error("create table u (a serial, b int check (z > 0))");
    assert!(server.engine.database().catalog().sequences.is_empty());
    client.tag("begin");
    client.tag("savepoint s");
    client.tag("create table u (a int)");
    client.tag("rollback to s");
    client.tag("create table u (b int)");
    client.tag("insert into u values (3)");
    assert_eq!(client.rows("select b from u"), ["3"]);
    client.tag("rollback");
}

#[test]
fn pgbench_makes_its_tables() {
    let server = Server::new();
    let mut client = server.connect();
    for sql in [
        "drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers",
        "create table pgbench_history(tid int,bid int,aid    int,delta int,mtime timestamp,filler char(22))",
        "create table pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84)) with (fillfactor=100)",
        "create table pgbench_accounts(aid    int not null,bid int,abalance int,filler char(84)) with (fillfactor=100)",
        "create table pgbench_branches(bid int not null,bbalance int,filler char(88)) with (fillfactor=100)",
        "begin",
        "truncate table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers",
        "insert into pgbench_branches(bid,bbalance) values(1,0)",
        "insert into pgbench_tellers(tid,bid,tbalance) values (1,1,0)",
    ] {
        client.tag(sql);
    }
    let rows: String = (1..=2000).map(|aid| format!("{aid}\t1\t0\t\n")).collect();
    assert_eq!(
        client.copy(
            "copy pgbench_accounts from stdin with (freeze on)",
            &[&rows]
        ),
        ["G 11", "C COPY 2000"]
    );
    for sql in [
        "commit",
        "vacuum analyze pgbench_branches",
        "alter table pgbench_branches add primary key (bid)",
        "alter table pgbench_tellers add primary key (tid)",
        "alter table pgbench_accounts add primary key (aid)",
        "BEGIN;",
    ] {
        client.tag(sql);
    }
    assert_eq!(table(&server, "pgbench_accounts").partition_key, [0]);
    assert_eq!(
        client.tag("UPDATE pgbench_accounts SET abalance = abalance + -1111 WHERE aid = 1999;"),
        "UPDATE 1"
    );
    assert_eq!(
        client.rows("SELECT abalance FROM pgbench_accounts WHERE aid = 1999;"),
        ["-1111"]
    );
    client.tag("UPDATE pgbench_tellers SET tbalance = tbalance + -1111 WHERE tid = 1;");
    client.tag("UPDATE pgbench_branches SET bbalance = bbalance + -1111 WHERE bid = 1;");
    client.tag(
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
         VALUES (1, 1, 1999, -1111, CURRENT_TIMESTAMP);",
    );
    assert_eq!(client.tag("END;"), "COMMIT");
    assert_eq!(
        client.rows("select count(*) from pgbench_accounts"),
        ["2000"]
    );
}

#[test]
fn truncate_begins_again_at_once_and_only_if_it_is_committed() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create table t (id serial primary key, v int); insert into t (v) values (1), (2)");
    // What is put in behind it, in the same transaction, got the numbers that followed; those
    // after the commit began again, and met it.
    client.tag("begin; truncate t restart identity; insert into t (v) values (3), (4)");
    assert_eq!(
        client.rows("select id, v from t order by 1"),
        ["1|3", "2|4"]
    );
    client.tag("savepoint x; truncate t restart identity; insert into t (v) values (5)");
    assert_eq!(client.rows("select id, v from t"), ["1|5"]);
    client.tag("rollback to x; insert into t (v) values (6); commit");
    assert_eq!(
        client.rows("select id, v from t order by 1"),
        ["1|3", "2|4", "3|6"]
    );
    client.tag("insert into t (v) values (7)");
    client.tag("begin; truncate t restart identity; insert into t (v) values (8); rollback");
    client.tag("insert into t (v) values (9)");
    assert_eq!(
        client.rows("select id, v from t where id > 3 order by 1"),
        ["4|7", "5|9"]
    );
    client.tag("begin; alter sequence t_id_seq restart with 50; insert into t (v) values (10)");
    assert_eq!(client.rows("select max(id) from t"), ["50"]);
    client.tag("rollback; insert into t (v) values (11)");
    assert_eq!(client.rows("select max(id) from t"), ["6"]);
    client.tag("alter sequence t_id_seq restart with 70; insert into t (v) values (12)");
    assert_eq!(client.rows("select max(id) from t"), ["70"]);
    client.tag("begin; truncate t restart identity; insert into t (v) values (1), (2); commit");
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("insert into t (v) values (3)");
    assert_eq!(client.rows("select count(*), max(v) from t"), ["3|3"]);
    client.tag("begin; truncate t restart identity; insert into t (v) values (1)");
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("insert into t (v) values (4)");
    assert_eq!(client.rows("select count(*), max(v) from t"), ["4|4"]);
}

#[test]
fn what_is_not_there_is_named() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b int, constraint c check (b > 0))");
    for (statement, expected) in [
        ("alter table t add constraint c unique (b)", "42710"),
        ("alter table t alter x set statistics 0", "42703"),
        ("alter table t alter x set storage plain", "42703"),
        ("analyze t (x)", "42703"),
        ("vacuum analyze t (a, x)", "42703"),
        ("reindex table x", "42P01"),
        ("reindex index x", "42P01"),
        ("create table x () with (oids = true)", "0A000"),
        ("create table x (a int) with (fillfactor = 2)", "22023"),
        ("set custom.\"bad-name\" = 1", "42602"),
        ("select to_regrole('a.b')", "42602"),
        ("copy (insert into t values (1, 1)) to stdout", "0A000"),
        ("copy t to stdout with (header match)", "0A000"),
        (
            "copy (merge into t using t s on t.a = s.a when matched then delete) to stdout",
            "0A000 MERGE",
        ),
        ("select 1; vacuum", "25001"),
        ("begin; create index concurrently on t (b)", "25001"),
    ] {
        let error = client.error(statement);
        assert!(error.starts_with(expected), "{statement}: {error}");
    }
    client.tag("rollback");
    client.tag("set custom.good_name = 1");
    client.tag("vacuum");
    client.tag("create index concurrently on t (b)");
    client.tag("reindex table t; reindex index t_pkey");
}

#[test]
fn a_sequence_stays_while_a_default_needs_it() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag(
        "create sequence s; create sequence free;
         create table t (id serial, a int default nextval('s'), b int default nextval('free'::text));
         create table u (a bigint default nextval('s') + 1)",
    );
    let error = client.error("drop sequence s");
    assert!(error.starts_with("2BP01"), "{error}");
    // Which of that name is meant is looked for at each use only.
    client.tag("drop sequence free");
    client.tag("drop sequence s cascade");
    client.tag("insert into u default values");
    assert_eq!(client.rows("select * from u"), ["NULL"]);
    assert!(client.error("drop sequence t_id_seq").starts_with("2BP01"));
    client.tag("create table i (id int generated always as identity)");
    let error = client.error("alter sequence i_id_seq owned by none");
    assert!(
        error.starts_with("0A000 cannot change ownership"),
        "{error}"
    );
}

/// Others go on where the sequence was, whatever becomes of the transaction that has it begin again.
#[test]
fn a_restart_is_its_transactions_own_until_it_ends() {
    let server = Server::new();
    let [mut one, mut other] = [server.connect(), server.connect()];
    one.tag("create table t (id int generated by default as identity, v int)");
    one.tag("create sequence s owned by t.v");
    let next = "select nextval('s')";
    assert_eq!(one.rows(next), ["1"]);
    assert_eq!(one.rows(next), ["2"]);
    for restart in [
        "alter sequence s restart with 1",
        "truncate t restart identity",
    ] {
        let before: i64 = other.rows(next)[0].parse().expect("a number");
        one.tag("begin");
        one.tag(restart);
        assert_eq!(one.rows(next), ["1"]);
        assert_eq!(other.rows(next), [(before + 1).to_string()]);
        assert_eq!(one.rows(next), ["2"]);
        assert_eq!(one.rows("select last_value from s"), ["2"]);
        assert_eq!(
            other.rows("select last_value from s"),
            [(before + 1).to_string()]
        );
        one.tag("rollback");
        assert_eq!(one.rows(next), [(before + 2).to_string()]);
        one.tag("begin");
        one.tag(restart);
        assert_eq!(one.rows(next), ["1"]);
        assert_eq!(other.rows(next), [(before + 3).to_string()]);
        one.tag("commit");
        assert_eq!(other.rows(next), ["2"]);
    }
    // Who truncates it has the sequence to himself.
    one.tag("begin");
    one.tag("truncate t restart identity");
    other.tag("set lock_timeout = '50ms'");
    let refused = other.query("alter sequence s restart");
    assert!(refused[0].starts_with("E 55P03"), "{refused:?}");
    one.tag("rollback");
}
