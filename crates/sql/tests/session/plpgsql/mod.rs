//! PL/pgSQL. What statements answer is what PostgreSQL 15 has answered to them.

mod do_blocks;

use crate::fixture::{Connection, Server};

/// A statement and its answers.
type Case = (&'static str, &'static [&'static str]);

/// Asserts that each statement is answered like this, without the descriptions of rows.
fn are_answered(client: &mut Connection, cases: &[Case]) {
    let mut wrong = String::new();
    for (sql, expected) in cases {
        let mut answers = client.query(sql);
        answers.retain(|answer| !answer.starts_with("T ") && !answer.starts_with("C SELECT"));
        if answers != *expected {
            wrong += &format!("{sql}\n    wanted {expected:?}\n    got    {answers:?}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn do_blocks_answer_as_in_postgresql() {
    let server = Server::new();
    let mut client = server.connect();
    are_answered(&mut client, do_blocks::CASES);
}

#[test]
fn nobody_takes_the_server() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, v text)");
    client.tag("set statement_timeout = '200ms'");
    for body in [
        "begin loop null; end loop; end",
        "begin while true loop end loop; end",
        "declare n int; begin loop select count(*) into n from t; end loop; end",
        "begin loop begin perform 1/0; exception when others then null; end; end loop; end",
        "begin for i in 1..2000000000 loop null; end loop; end",
        "begin perform pg_sleep(60); end",
    ] {
        let error = client.error(&format!("do $$ {body} $$"));
        assert!(error.starts_with("57014 "), "{body}: {error}");
    }
    client.tag("reset statement_timeout");
    let grows = "declare s text := 'x'; begin loop s := s || s; end loop; end";
    let error = client.error(&format!("do $$ {grows} $$"));
    assert!(
        error.starts_with("53200 ") || error.starts_with("54000 "),
        "{error}"
    );
    let talks = "begin loop raise notice 'x'; end loop; end";
    let error = client.error(&format!("do $$ {talks} $$"));
    assert!(error.starts_with("54000 "), "{error}");
    assert_eq!(client.rows("select 1"), ["1"]);
}

#[test]
fn a_block_is_all_or_nothing() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key)");
    let error = client.error("do $$ begin insert into t values (1); end $$; select 1 / 0");
    assert!(error.starts_with("22012 "), "{error}");
    assert_eq!(client.rows("select count(*) from t"), ["0"]);
    // A handler takes back its own block only.
    client.tag(
        "do $$ begin insert into t values (1);
           begin insert into t values (2); insert into t values (1);
           exception when unique_violation then insert into t values (3); end;
         end $$",
    );
    assert_eq!(client.rows("select id from t order by id"), ["1", "3"]);
    client.tag("begin");
    client.tag("savepoint a");
    client.error("do $$ begin insert into t values (9); perform 1 / 0; end $$");
    assert_eq!(client.status(), 'E');
    client.tag("rollback to a");
    client.tag("do $$ begin insert into t values (10); end $$");
    client.tag("commit");
    assert_eq!(client.rows("select max(id) from t"), ["10"]);
    let error = client.error("do language sql 'select 1'");
    assert!(error.starts_with("0A000 "), "{error}");
    // What is not there says so.
    for body in [
        "begin commit; end",
        "begin savepoint a; end",
        "begin copy t to stdout; end",
        "declare a int[]; begin a[1] := 2; end",
    ] {
        let error = client.error(&format!("do $$ {body} $$"));
        assert!(error.starts_with("0A000 "), "{body}: {error}");
    }
}
