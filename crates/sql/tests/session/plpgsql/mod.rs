//! PL/pgSQL. What statements answer is what PostgreSQL 15 has answered to them.

mod do_blocks;
mod elements;
mod functions;
mod more;

use crate::fixture::{Connection, Server};

/// A statement and its answers.
type Case = (&'static str, &'static [&'static str]);

/// Asserts that each statement is answered like this, without the descriptions of rows.
fn are_answered(client: &mut Connection, cases: &[Case]) {
    let mut wrong = String::new();
    for (sql, expected) in cases {
        let mut answers = client.query(sql);
        answers.retain(|answer| !answer.starts_with("T ") && !answer.starts_with("C SELECT"));
        for answer in &mut answers {
            if let Some(from) = answer.find(" [position") {
                let to = answer[from..]
                    .find(']')
                    .map_or(answer.len(), |at| from + at + 1);
                answer.replace_range(from..to, "");
            }
        }
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
    are_answered(&mut client, elements::CASES);
}

#[test]
fn functions_answer_as_in_postgresql() {
    let server = Server::new();
    let mut client = server.connect();
    are_answered(&mut client, functions::CASES);
}

#[test]
fn bodies_of_all_kinds_answer_as_in_postgresql() {
    let server = Server::new();
    let mut client = server.connect();
    are_answered(&mut client, more::CASES);
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
        "begin loop begin perform pg_sleep(60); exception when query_canceled then null; end; end loop; end",
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
        "begin commit and chain; end",
        "begin savepoint a; end",
        "begin copy t to stdout; end",
        "declare a int[]; begin a[1:2] := a; end",
    ] {
        let error = client.error(&format!("do $$ {body} $$"));
        assert!(error.starts_with("0A000 "), "{body}: {error}");
    }
}

#[test]
fn calls_have_limits() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, v int)");
    client.tag("insert into t values (1, 1), (2, 2)");
    client.tag(
        "create function again(n int) returns int language plpgsql as
             $$ begin return again(n + 1); end $$;
         create function many() returns setof text language plpgsql as
             $$ begin loop return next repeat('x', 1000000); end loop; end $$;
         create function one(a int) returns int language plpgsql as
             $$ begin insert into t values (a + 100, 0); return a; end $$",
    );
    let error = client.error("select again(1)");
    assert!(error.starts_with("54001 "), "{error}");
    let error = client.error("select count(*) from many()");
    assert!(error.starts_with("53200 "), "{error}");
    for refused in [
        "explain analyze select one(1)",
        "explain analyze select id from t where one(id) > 1",
        "alter table t add column w int default one(1)",
        "alter table t add check (one(id) > 0)",
        "create table u (a int, b int generated always as (one(a)) stored)",
        "create index on t (one(id))",
    ] {
        let error = client.error(refused);
        assert!(error.starts_with("0A000 "), "{refused}: {error}");
    }
    let error = client.error("select again(id) from t");
    assert!(error.starts_with("54001 "), "{error}");
    // None of them was made.
    assert_eq!(client.rows("select max(id) from t"), ["2"]);
}

#[test]
fn calls_for_each_row_have_their_limits() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, v text)");
    client.tag("insert into t select i, repeat('x', 100) from generate_series(1, 30000) i");
    client.tag(
        "create function longer(t text) returns text language plpgsql as $$ begin return t || t; end $$;
         create function slow(i int) returns int language plpgsql as
             $$ begin perform pg_sleep(0.05); return i; end $$;
         create function put(i int) returns int language plpgsql as
             $$ begin insert into t values (i + 1000000, 'put'); return i; end $$",
    );
    // More than a session has in memory.
    let rows = client.rows("select id, longer(longer(v)) from t order by id");
    assert_eq!((rows.len(), rows[29_999].len()), (30_000, 6 + 400));
    // Those that LIMIT leaves out are not called for.
    assert_eq!(
        client
            .rows("select slow(id) from t order by id limit 2")
            .len(),
        2
    );
    assert_eq!(
        client.rows("select id from t where id < 4 and slow(id) > 0 order by id limit 1 offset 1"),
        ["2"]
    );
    assert_eq!(
        client.rows("select count(*) from (select id from t where slow(id) > 0 limit 2) few"),
        ["2"]
    );
    // Each sleep of a body is its own.
    let begin = std::time::Instant::now();
    client.tag("do $$ begin for i in 1..10 loop perform pg_sleep(0.02); end loop; end $$");
    client.rows("select slow(1), slow(2)");
    assert!(begin.elapsed().as_millis() >= 300);
    client.tag("set statement_timeout = '300ms'");
    for long in [
        "select slow(id) from t",
        "select slow(1), slow(2), slow(3), slow(4), slow(5), slow(6), slow(7), slow(8)",
        "select id from t where slow(id) < 0",
    ] {
        let error = client.error(long);
        assert!(error.starts_with("57014 "), "{long}: {error}");
    }
    client.tag("reset statement_timeout");
    // All of it or nothing.
    let error = client.error("select put(id), 1 / (id - 500) from t where id <= 1000 order by id");
    assert!(error.starts_with("22012 "), "{error}");
    assert_eq!(client.rows("select max(id) from t"), ["30000"]);
    assert_eq!(
        client.rows("select put(id) from t where id > 29998 order by id"),
        ["29999", "30000"]
    );
    assert_eq!(
        client.rows("select count(*) from t where id > 1000000"),
        ["2"]
    );
    let path = |client: &mut Connection, of: &str| client.rows(&format!("explain {of}")).join("\n");
    let by_key = path(&mut client, "select longer(v) from t where id = 1");
    assert!(
        by_key.starts_with("Calls for Each Row\n  ->  Index Scan"),
        "{by_key}"
    );
    let all = path(
        &mut client,
        "select longer(v) from t where length(longer(v)) > 3",
    );
    assert!(all.contains("calls functions for its rows"), "{all}");
}

/// What a call changes changes no row of the statement that it is a part of.
#[test]
fn calls_that_change_what_is_read_end() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, v int)");
    client.tag("insert into t values (1, 1), (2, 2)");
    client.tag(
        "create function bump(a int) returns int language plpgsql as
             $$ begin update t set v = v + 1 where id = a; return (select v from t where id = a); end $$;
         create function more(a int) returns int language plpgsql as
             $$ begin insert into t values (1000 + (select max(id) from t), 0); return a; end $$",
    );
    assert_eq!(
        client.rows("select bump(id), v from t where id = 1"),
        ["2|1"]
    );
    assert_eq!(
        client.rows("select bump(v), v from t where id = 1"),
        ["3|2"]
    );
    assert_eq!(
        client.rows("select v, bump(id + v - v) from t order by id"),
        ["2|3", "3|4"]
    );
    assert_eq!(client.rows("select v from t order by id"), ["3", "4"]);
    // The row is never what it was when the function was called.
    client.tag(
        "create function seen(a int, v int) returns int language plpgsql as
             $$ begin update t set v = t.v + 1 where id = a; return v; end $$",
    );
    let error = client.error("update t set v = seen(id, v) where id = 1");
    assert!(error.starts_with("27000 "), "{error}");
    assert_eq!(client.rows("select v from t order by id"), ["3", "4"]);
    assert_eq!(
        client.rows("select more(id) from t order by id"),
        ["1", "2"]
    );
    client.tag("begin");
    assert_eq!(
        client
            .rows("select more(id) from t where id < 3 order by id for update")
            .len(),
        2
    );
    client.tag("commit");
    client.tag("update t set v = more(id) where id < 3");
    client.tag("insert into t select more(id) + 500000, 1 from t where id < 3");
    client.tag("delete from t where more(id) = 1");
    assert_eq!(client.rows("select count(*) from t where id < 1000"), ["1"]);
}

#[test]
fn a_call_is_a_part_of_its_statement() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key)");
    client.tag(
        "create function put(a int) returns int language plpgsql as
             $$ begin insert into t values (a); return a; end $$",
    );
    let error = client.error("select put(1), 1 / (put(2) - 2)");
    assert!(error.starts_with("22012 "), "{error}");
    assert_eq!(client.rows("select count(*) from t"), ["0"]);
    client.tag("begin");
    client.tag("select put(1)");
    client.tag("savepoint a");
    client.error("select put(1)");
    client.tag("rollback to a");
    client.tag("commit");
    assert_eq!(client.rows("select id from t"), ["1"]);
    client.tag("begin read only");
    let error = client.error("select put(5)");
    assert!(error.starts_with("25006 "), "{error}");
    client.tag("rollback");
    // Through the extended protocol, with parameters and a description.
    client
        .parse("s", "select put($1) as given, $2::text", &[])
        .unwrap();
    assert_eq!(
        client.describe("s").unwrap(),
        ["t 23 25", "T given:23 text:25"]
    );
    client.bind("", "s", &[Some("7"), Some("x")]).unwrap();
    assert_eq!(client.execute("", 0).unwrap(), ["D 7|x", "C SELECT 1"]);
    client.sync().unwrap();
    client.bind("", "s", &[Some("7"), Some("x")]).unwrap();
    assert_eq!(client.execute("", 0).unwrap_err().sqlstate, "23505");
    client.sync().unwrap();
    assert_eq!(client.rows("select count(*) from t where id = 7"), ["1"]);
    // A function that was made anew is another one, for prepared statements, too.
    client.tag("prepare p as select put(1000)");
    client.tag(
        "create or replace function put(a int) returns int language plpgsql as
             $$ begin return -a; end $$",
    );
    assert_eq!(client.rows("execute p"), ["-1000"]);
    client.tag("drop table t");
    client.tag("create table t (id text)");
    client.tag(
        "create or replace function put(a int) returns int language plpgsql as
             $$ begin insert into t values ('n' || a); return 0; end $$",
    );
    assert_eq!(client.rows("execute p"), ["0"]);
    assert_eq!(client.rows("select id from t"), ["n1000"]);
}

#[test]
fn functions_are_there_after_a_restart_and_have_rights() {
    let device = std::sync::Arc::new(thermocline_device::SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag(
        "create function twice(a int, out b int) language plpgsql stable as
             $$ begin b := a * 2; end $$",
    );
    let definition = client.rows("select pg_get_functiondef('twice'::regproc)");
    drop(client);
    drop(server);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(client.rows("select twice(4)"), ["8"]);
    assert_eq!(
        client.rows("select pg_get_functiondef('twice'::regproc)"),
        definition
    );
    client.tag("create role other");
    client.tag("revoke execute on function twice(int) from public");
    client.tag("set role other");
    let error = client.error("select twice(4)");
    assert!(error.starts_with("42501 "), "{error}");
    client.tag("reset role");
    client.tag("grant execute on function twice(int) to other");
    client.tag("set role other");
    assert_eq!(client.rows("select twice(4)"), ["8"]);
}

/// While a call runs, another session changes the table of the statement around it. That is
/// planned anew, and the call is not made again.
#[test]
fn a_call_is_made_once_whatever_others_define_meanwhile() {
    let server = Server::new();
    let mut client = server.connect();
    let mut other = server.connect();
    for statement in [
        "create table log (n serial primary key, m text)",
        "create table t (a int, b int)",
        "create table gate (a int primary key)",
        "insert into gate values (1)",
        "create function waits() returns int language plpgsql as $$ begin \
         insert into log (m) values ('made'); update gate set a = 2; \
         return (select count(*) from log); end $$",
    ] {
        client.tag(statement);
    }
    client.tag("set default_transaction_isolation = 'read committed'");
    let mut third = server.connect();
    third.tag("begin");
    third.tag("update gate set a = 1");
    let calls = std::thread::spawn(move || {
        let tag = client.tag("insert into t values (1, waits())");
        (client, tag)
    });
    while other.rows("select count(*) from pg_locks where not granted") != ["1"] {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    other.tag("alter table t add column c int default 3");
    third.tag("rollback");
    let (mut client, tag) = calls.join().expect("ends");
    assert_eq!(tag, "INSERT 0 1");
    assert_eq!(client.rows("select * from t"), ["1|1|3"]);
    assert_eq!(client.rows("select m from log"), ["made"]);
}

#[test]
fn a_row_of_a_table_has_no_columns_of_its_indexes() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int, b text)");
    client.tag("create index on t (lower(b)) where a > 1");
    client.tag("insert into t values (5, 'X')");
    let body = "do $$ declare r t%rowtype; s record; begin \
                select * into r from t; s := r; raise notice '% %', r, s; \
                r.b := 'y'; insert into t values (r.a + 1, r.b); end $$";
    let told = client.query(body);
    assert!(told[0].contains("(5,X) (5,X)"), "{told:?}");
    assert_eq!(client.rows("select * from t order by 1"), ["5|X", "6|y"]);
}
