//! CREATE TABLE AS and SELECT INTO: types, rows, tags, and that they are one transaction.

use crate::fixture::{Connection, Server};

fn prepared(server: &Server) -> Connection {
    let mut client = server.connect();
    client.tag(
        "create table t (id int primary key, a varchar(5), n numeric(10, 2), at date);
         insert into t values (1, 'x', 1.5, '2020-01-01'), (2, 'y', 2.5, null), (3, 'x', 4, null);
         create view v as select id, a from t where id > 1",
    );
    client
}

/// The types of a table's columns.
fn types(client: &mut Connection, table: &str) -> Vec<String> {
    client.rows(&format!(
        "select attname || ' ' || format_type(atttypid, atttypmod) from pg_attribute
         where attrelid = '{table}'::regclass order by attnum"
    ))
}

#[test]
fn a_table_has_a_querys_columns_and_rows() {
    let server = Server::new();
    let mut client = prepared(&server);
    assert_eq!(client.tag("create table c as select * from t"), "SELECT 3");
    assert_eq!(
        types(&mut client, "c"),
        [
            "id integer",
            "a character varying(5)",
            "n numeric(10,2)",
            "at date"
        ]
    );
    assert_eq!(
        client.rows("select * from c order by id"),
        ["1|x|1.50|2020-01-01", "2|y|2.50|NULL", "3|x|4.00|NULL"]
    );
    let made =
        "create table s.g (name) as select a, sum(n), count(*), 'lit' as lit from t group by a";
    client.tag("create schema s");
    assert_eq!(client.tag(made), "SELECT 2");
    assert_eq!(
        types(&mut client, "s.g"),
        ["name text", "sum numeric", "count bigint", "lit text"]
            .map(|column| column.replace("name text", "name character varying(5)"))
    );
    assert_eq!(
        client.rows("select * from s.g order by 1"),
        ["x|5.50|2|lit", "y|2.50|1|lit"]
    );
    assert_eq!(
        client.tag("create table e as select id from t with no data"),
        "CREATE TABLE AS"
    );
    assert_eq!(client.rows("select count(*) from e"), ["0"]);
    assert_eq!(
        client.tag("create table d as table v with data"),
        "SELECT 2"
    );
    assert_eq!(
        client.tag("create table w as values (1, 'a'), (2, 'b')"),
        "SELECT 2"
    );
    assert_eq!(client.rows("select column2 from w order by 1"), ["a", "b"]);
    assert_eq!(
        client.tag("create unlogged table r as with recursive r (i) as (select 1 union all select i + 1 from r where i < 5000) select i from r"),
        "SELECT 5000"
    );
    assert_eq!(client.rows("select sum(i) from r"), ["12502500"]);
    assert_eq!(
        client.tag("create table if not exists c as select 1"),
        "CREATE TABLE AS"
    );
    assert_eq!(client.rows("select count(*) from c"), ["3"]);
    assert_eq!(
        client.tag("select id, 'into' as \"into\" into i from t where id < 3"),
        "SELECT 2"
    );
    assert_eq!(
        client.rows("select * from i order by 1"),
        ["1|into", "2|into"]
    );
    assert_eq!(
        client.tag("select id into table j from t union select 9 order by 1"),
        "SELECT 4"
    );
    assert_eq!(client.rows("select max(id) from j"), ["9"]);
}

#[test]
fn a_table_of_a_query_is_one_transaction() {
    let server = Server::new();
    let mut client = prepared(&server);
    for (statement, error) in [
        (
            "create table t as select 1",
            "42P07 relation \"t\" already exists",
        ),
        (
            "create table v as select 1",
            "42P07 relation \"v\" already exists",
        ),
        (
            "create table x (a, b) as select 1",
            "42601 too many column names were specified",
        ),
        (
            "create table x as select 1 as a, 2 as a",
            "42701 column \"a\" specified more than once",
        ),
        (
            "create table x as select id, oid::regclass from t, pg_class",
            "0A000 column \"oid\" of type regclass is not supported",
        ),
        (
            "create table x as select 1 / (id - 2) from t",
            "22012 division by zero",
        ),
        (
            "create table x as select $1::int",
            "42P02 there is no parameter $1",
        ),
        (
            "create table nowhere.x as select 1",
            "3F000 schema \"nowhere\" does not exist",
        ),
    ] {
        let told = client.error(statement);
        assert_eq!(told.split(" [").next(), Some(error), "{statement}");
    }
    for inside in [
        "prepare p as select 1 as a into x",
        "explain select 1 as a into x",
        "declare c cursor for select 1 as a into x",
        "copy (select 1 as a into x) to stdout",
        "select * from (select 1 as a into x) s",
        "with s as (select 1 as a into x) select * from s",
        "create view w as select 1 as a into x",
        "insert into t select 1 as id into x",
    ] {
        let told = client.error(inside);
        assert!(["0A000", "42601"].contains(&&told[..5]), "{inside}: {told}");
    }
    assert_eq!(
        client.error("create table x as select nothing from t"),
        "42703 column \"nothing\" does not exist [position 26]"
    );
    assert_eq!(
        client.error("select 1 as a into x from nothing"),
        "42P01 relation \"nothing\" does not exist [position 27]"
    );
    assert_eq!(
        client.rows("select count(*) from pg_class where relname = 'x'"),
        ["0"]
    );
    client.tag("begin; create table x as select id from t; insert into x values (4)");
    assert_eq!(client.rows("select count(*) from x"), ["4"]);
    client.tag("savepoint a; select id into y from x; rollback to a");
    assert!(client.error("select * from y").starts_with("42P01"));
    client.tag("rollback");
    assert!(client.error("select * from x").starts_with("42P01"));
    client.tag("begin; create table x as select id from t; commit");
    assert_eq!(client.rows("select count(*) from x"), ["3"]);
    client.tag("create role alice; grant create on schema public to alice");
    assert_eq!(client.tag("set role alice"), "SET");
    assert!(
        client
            .error("create table mine as select * from t")
            .starts_with("42501")
    );
    assert_eq!(
        client.tag("create table mine as select 1 as one"),
        "SELECT 1"
    );
    client.tag("reset role; set default_transaction_read_only = on");
    assert!(
        client
            .error("create table z as select 1")
            .starts_with("25006")
    );
}

#[test]
fn a_table_takes_the_rows_of_a_prepared_statement() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b text); insert into t values (1, 'x'), (2, 'y'), (3, 'z')");
    client.tag("prepare p(int, text) as select a, b || $2 as named from t where a >= $1");
    assert_eq!(
        client.tag("create table made as execute p(1 + 1, '!')"),
        "SELECT 2"
    );
    assert_eq!(
        client.rows("select a, named from made order by a"),
        ["2|y!", "3|z!"]
    );
    assert_eq!(
        client.tag("create temp table none (n) as execute p(1, '') with no data"),
        "CREATE TABLE AS"
    );
    assert_eq!(client.rows("select n, named from none"), [""; 0]);
    for (sql, sqlstate) in [
        ("create table other as execute p(1)", "42601"),
        ("create table other as execute q", "26000"),
        ("create table other as execute p('x', 'y')", "22P02"),
    ] {
        let error = client.error(sql);
        assert!(error.starts_with(sqlstate), "{sql}: {error}");
    }
}
