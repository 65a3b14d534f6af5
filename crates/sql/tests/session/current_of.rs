//! UPDATE and DELETE WHERE CURRENT OF a cursor. Answers are those of PostgreSQL 15 where a test
//! does not say otherwise, but it may refuse a cursor with an order.

use crate::fixture::{Connection, Server};

fn with_rows(server: &Server) -> Connection {
    let mut client = server.connect();
    client.tag("create table keyless (a int, b text)");
    client.tag("create table keyed (a int primary key, b text)");
    for table in ["keyless", "keyed"] {
        client.tag(&format!(
            "insert into {table} values (1, 'one'), (2, 'two'), (3, 'three')"
        ));
    }
    client
}

#[test]
fn the_row_that_was_fetched_last_is_changed() {
    let server = Server::new();
    let mut client = with_rows(&server);
    for table in ["keyless", "keyed"] {
        for lock in ["", " for update"] {
            for query in [
                format!("select * from {table} where a > 0 order by a"),
                format!("select b, a from {table} where a in (1, 2, 3) order by a"),
                format!("select a + 1 as x from {table} order by a"),
            ] {
                client.tag("begin");
                client.tag(&format!("declare c cursor for {query}{lock}"));
                client.rows("fetch 2 from c");
                assert_eq!(
                    client.rows(&format!(
                        "update {table} set b = b || '!' where current of c returning a"
                    )),
                    ["2"],
                    "{query}{lock}"
                );
                // It still stands there.
                assert_eq!(
                    client.tag(&format!("update {table} set b = 'x' where current of c")),
                    "UPDATE 1"
                );
                client.tag("move c");
                assert_eq!(
                    client.tag(&format!("delete from {table} where current of c")),
                    "DELETE 1"
                );
                assert_eq!(
                    client.tag(&format!("delete from {table} where current of c")),
                    "DELETE 0"
                );
                assert_eq!(
                    client.rows(&format!("select * from {table} order by a")),
                    ["1|one", "2|x"]
                );
                client.tag("rollback");
            }
        }
    }
}

#[test]
fn a_key_may_be_looked_up() {
    let server = Server::new();
    let mut client = with_rows(&server);
    client.tag("begin");
    client.tag("declare c cursor for select b from keyed where a = 2 for update");
    assert_eq!(client.rows("fetch c"), ["two"]);
    client.tag("update keyed set b = 'zwei' where current of c");
    client.tag("update keyed set a = 20 where current of c");
    // PostgreSQL follows the row to its new key.
    assert_eq!(
        client.error("update keyed set b = 'twenty' where current of c"),
        "24000 cursor \"c\" is not positioned on a row"
    );
    client.tag("rollback");
    assert_eq!(client.rows("select b from keyed where a = 2"), ["two"]);
}

#[test]
fn a_cursor_may_stand_nowhere() {
    let server = Server::new();
    let mut client = with_rows(&server);
    let mut other = server.connect();
    let refused = |client: &mut Connection, before: &[&str], change: &str, expected: &str| {
        client.tag("begin");
        for statement in before {
            client.query(statement);
        }
        assert_eq!(client.error(change), expected, "{before:?}");
        client.tag("rollback");
    };
    let change = "update keyed set b = 'x' where current of c";
    refused(
        &mut client,
        &[],
        change,
        "34000 cursor \"c\" does not exist",
    );
    let nowhere = "24000 cursor \"c\" is not positioned on a row";
    let declare = "declare c cursor for select * from keyed";
    refused(&mut client, &[declare], change, nowhere);
    refused(&mut client, &[declare, "fetch all from c"], change, nowhere);
    refused(&mut client, &[declare, "move 7 in c"], change, nowhere);
    let simple = "24000 cursor \"c\" is not a simply updatable scan of table \"keyed\"";
    for query in [
        "select * from keyless",
        "select count(*) from keyed",
        "select distinct b from keyed",
        "select * from keyed a join keyed b using (a)",
        "select a from keyed union all select a from keyed",
        "select 1",
    ] {
        let declare = format!("declare c cursor for {query}");
        refused(&mut client, &[&declare, "fetch c"], change, simple);
    }
    refused(
        &mut client,
        &[
            "declare c cursor for select * from keyless for update",
            "fetch c",
        ],
        change,
        "24000 cursor \"c\" does not have a FOR UPDATE/SHARE reference to table \"keyed\"",
    );
    client.tag("begin");
    client.tag("declare c cursor with hold for select * from keyed order by a");
    client.rows("fetch c");
    client.tag("commit");
    client.tag("begin");
    assert_eq!(
        client.error(change),
        "24000 cursor \"c\" is held from a previous transaction"
    );
    client.tag("rollback");
    assert_eq!(client.rows("fetch c"), ["2|two"]);
    client.tag("close c");

    // Under READ COMMITTED another row may get the number of one that is gone; PostgreSQL takes
    // the row's place in its file.
    client.tag("begin isolation level read committed");
    client.tag(declare);
    client.rows("fetch c");
    assert!(client.error(change).starts_with("0A000 "));
    client.tag("rollback");
    client.tag("begin isolation level read committed");
    client.tag("declare c cursor for select * from keyed where a > 1 for update");
    client.rows("fetch c");
    other.tag("set lock_timeout = '20ms'");
    assert!(
        other
            .error("delete from keyed where a = 2")
            .starts_with("55P03 ")
    );
    client.tag("update keyed set b = 'mine' where current of c");
    client.tag("commit");
    assert_eq!(client.rows("select b from keyed where a = 2"), ["mine"]);
}

#[test]
fn a_row_that_another_deletes_is_not_mistaken_for_the_one_in_its_place() {
    let server = Server::new();
    let mut client = with_rows(&server);
    let mut other = server.connect();
    for level in ["serializable", "repeatable read"] {
        for (table, query) in [
            ("keyless", "select a from keyless order by a"),
            ("keyed", "select a from keyed"),
            ("keyed", "select a from keyed where a in (1, 2, 3)"),
        ] {
            client.tag(&format!("begin isolation level {level}"));
            client.tag(&format!("declare c cursor for {query}"));
            let row = client.rows("fetch c").remove(0);
            // Its number is free then, and is given out again.
            other.tag(&format!("delete from {table} where a = {row}"));
            other.tag(&format!(
                "insert into {table} select n, 'new' from generate_series(10, 40) n"
            ));
            let change = format!("update {table} set b = 'changed' where current of c");
            let changed = client.query(&change);
            let committed = client.query("commit");
            let is_refused =
                |answers: &[String]| answers.iter().any(|answer| answer.contains("40001"));
            assert!(
                is_refused(&changed) || is_refused(&committed),
                "{level}, {query}: {changed:?}, {committed:?}"
            );
            client.query("rollback");
            let count = format!("select count(*) from {table} where b = 'changed'");
            assert_eq!(other.rows(&count), ["0"], "{level}, {query}");
            other.tag(&format!("delete from {table}"));
            other.tag(&format!(
                "insert into {table} values (1, 'one'), (2, 'two'), (3, 'three')"
            ));
        }
    }
}

#[test]
fn a_cursor_that_locks_goes_back_only_where_it_may() {
    let server = Server::new();
    let mut client = with_rows(&server);
    client.tag("begin");
    client.tag("declare c no scroll cursor for select a from keyless for update");
    client.rows("fetch 2 from c");
    assert_eq!(client.rows("select is_scrollable from pg_cursors"), ["f"]);
    assert!(
        client
            .error("fetch backward 1 from c")
            .starts_with("55000 ")
    );
    client.tag("rollback");
    client.tag("declare h no scroll cursor with hold for values (1), (2)");
    client.rows("fetch h");
    assert!(client.error("fetch prior from h").starts_with("55000 "));
    assert_eq!(client.rows("fetch h"), ["2"]);
}

#[test]
fn many_rows_are_stood_on_too() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table many (a int primary key, b text)");
    client.tag("insert into many select n, repeat('x', 100) from generate_series(1, 20000) n");
    client.tag("begin");
    client.tag("declare c no scroll cursor for select * from many where a > 0 order by a");
    assert_eq!(client.rows("fetch 15000 from c").len(), 15000);
    assert_eq!(
        client.rows("delete from many where current of c returning a"),
        ["15000"]
    );
    assert_eq!(client.tag("move 999 in c"), "MOVE 999");
    assert_eq!(client.rows("fetch c").len(), 1);
    assert_eq!(
        client.rows("update many set b = 'y' where current of c returning a"),
        ["16000"]
    );
    client.tag("commit");
}

#[test]
fn a_session_shows_its_cursors_and_statements() {
    let server = Server::new();
    let mut client = with_rows(&server);
    client.tag("prepare p(int, text) as select * from keyed where a = $1 or b = $2");
    client.tag("prepare q as select b from keyed where a = $1");
    assert_eq!(
        client.rows(
            "select name, statement, parameter_types, from_sql, prepare_time <= clock_timestamp() \
             from pg_prepared_statements order by name"
        ),
        [
            "p|prepare p(int, text) as select * from keyed where a = $1 or b = $2|\
             {integer,text}|t|t",
            "q|prepare q as select b from keyed where a = $1|{integer}|t|t",
        ]
    );
    client.tag("deallocate all");
    assert_eq!(
        client.rows("select count(*) from pg_prepared_statements"),
        ["0"]
    );
    client.tag("begin");
    client.tag("declare b binary cursor for select 1");
    client.tag("declare h no scroll cursor with hold for select * from keyed");
    assert_eq!(
        client.rows(
            "select name, statement, is_holdable, is_binary, is_scrollable, \
             creation_time <= clock_timestamp() from pg_cursors order by name"
        ),
        [
            "b|declare b binary cursor for select 1|f|t|t|t",
            "h|declare h no scroll cursor with hold for select * from keyed|t|f|f|t",
        ]
    );
    client.tag("commit");
    assert_eq!(client.rows("select name from pg_cursors"), ["h"]);
}
