//! The simple protocol: texts of one and of several statements.

use crate::fixture::Server;

#[test]
fn one_statement() {
    let server = Server::new();
    let mut client = server.connect();
    assert_eq!(
        client.query("select 1 as one, 'x' as text"),
        ["T one:23 text:25", "D 1|x", "C SELECT 1"]
    );
    assert_eq!(client.status(), 'I');
}

#[test]
fn nothing_is_answered_with_empty_query() {
    let server = Server::new();
    let mut client = server.connect();
    for nothing in ["", ";", "-- ping", " /* x */ ; "] {
        assert_eq!(client.query(nothing), ["I"], "{nothing:?}");
    }
}

#[test]
fn several_statements_are_one_transaction() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key)");
    assert_eq!(
        client.query(
            "insert into t values (1); insert into t values (2), (3); select count(*) from t"
        ),
        [
            "C INSERT 0 1",
            "C INSERT 0 2",
            "T count:20",
            "D 3",
            "C SELECT 1"
        ]
    );
    let answers = client.query("insert into t values (4); insert into t values (1); select 5");
    assert_eq!(answers[0], "C INSERT 0 1");
    assert!(answers[1].starts_with("E 23505 "), "{answers:?}");
    assert_eq!(answers.len(), 2, "nothing runs after an error: {answers:?}");
    assert_eq!(client.rows("select count(*) from t"), ["3"]);
    assert_eq!(client.status(), 'I');
}

#[test]
fn each_statement_of_a_text_is_its_own() {
    let server = Server::new();
    let mut client = server.connect();
    // Each is analysed by its place in the text, wherever its query stands.
    let text = "select 1;; explain select 2; ; begin; declare c cursor for select 3; fetch all c; \
                prepare p as select 4; execute p; copy (select 5) to stdout; commit; \
                select count(*) from pg_class where relname = 'pg_class'; explain analyze select 6; \
                copy (select relname from pg_class where relname = 'pg_type') to stdout";
    let answers = client.query(text);
    assert!(
        !answers.iter().any(|answer| answer.starts_with("E ")),
        "{answers:?}"
    );
    let rows = answers
        .iter()
        .filter_map(|answer| answer.strip_prefix("D "));
    let rows: Vec<&str> = rows.filter(|row| row.parse::<i32>().is_ok()).collect();
    assert_eq!(rows, ["1", "3", "4", "1"], "{answers:?}");
    let copied = answers.iter().filter(|answer| answer.starts_with('d'));
    let copied: Vec<&String> = copied.collect();
    assert_eq!(copied.len(), 2, "{answers:?}");
    assert!(
        copied[0].contains('5') && copied[1].contains("pg_type"),
        "{answers:?}"
    );
}

#[test]
fn begin_inside_a_text_makes_its_transaction_a_real_one() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key)");
    assert_eq!(
        client.query("insert into t values (1); begin; insert into t values (2)"),
        ["C INSERT 0 1", "C BEGIN", "C INSERT 0 1"]
    );
    assert_eq!(client.status(), 'T');
    client.tag("rollback");
    assert_eq!(client.rows("select count(*) from t"), ["0"]);
    client.query("begin; insert into t values (1); commit; insert into t values (2)");
    assert_eq!(client.status(), 'I');
    assert_eq!(client.rows("select a from t order by a"), ["1", "2"]);
}

#[test]
fn errors_carry_their_position() {
    let server = Server::new();
    let mut client = server.connect();
    assert_eq!(
        client.error("selec 1"),
        "42601 syntax error at or near \"selec\" [position 1]"
    );
    let error = client.error("select * from nothing");
    assert!(
        error.starts_with("42P01 relation \"nothing\" does not exist"),
        "{error}"
    );
    assert!(
        client
            .error("select 1 / 0")
            .starts_with("22012 division by zero")
    );
}

#[test]
fn a_repeated_text_is_bound_anew_when_the_catalog_changes() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key)");
    client.tag("insert into t values (1)");
    for _ in 0..4 {
        assert_eq!(client.rows("select * from t where a = 1"), ["1"]);
    }
    client.tag("alter table t add column b text default 'x'");
    assert_eq!(client.rows("select * from t where a = 1"), ["1|x"]);
    client.tag("drop table t");
    client.tag("create table t (a int primary key)");
    assert_eq!(client.rows("select * from t where a = 1").len(), 0);
}

#[test]
fn a_large_result_goes_out_in_pieces() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, filler text)");
    let filler = "x".repeat(1000);
    for chunk in 0..4 {
        let rows: Vec<String> = (0..100)
            .map(|row| format!("({}, '{filler}')", chunk * 100 + row))
            .collect();
        client.tag(&format!("insert into t values {}", rows.join(",")));
    }
    let before = client.flushes();
    let rows = client.rows("select * from t where a >= 0 and a < 400");
    assert_eq!(rows.len(), 400);
    assert!(
        client.flushes() > before + 3,
        "{} flushes",
        client.flushes()
    );
}
