//! Types that users make.

use std::sync::Arc;
use std::thread;

use thermocline_device::SimulatedDevice;

use crate::fixture::Server;

#[test]
fn an_enum_is_read_ordered_and_changed() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create type mood as enum ('sad', 'ok', 'happy')");
    client.tag(
        "create table t (id int primary key, m mood default 'ok', all_of mood[], \
         check (m <> 'happy' or id < 100))",
    );
    client.tag("create index on t (m)");
    client.tag(
        "insert into t values (1, 'happy', '{sad,happy}'), (2, 'sad', null), (3, null, '{}'), \
         (4, default, null)",
    );
    let ordered = "select id, m from t order by m desc nulls last, id";
    assert_eq!(client.rows(ordered), ["1|happy", "4|ok", "2|sad", "3|NULL"]);
    assert_eq!(
        client.rows("select id from t where m > 'sad' order by id"),
        ["1", "4"]
    );
    assert_eq!(
        client.rows(
            "select m, count(*), min(m), array_agg(id) from t where id < 3 group by m order by m"
        ),
        ["sad|1|sad|{2}", "happy|1|happy|{1}"]
    );
    assert_eq!(
        client.rows(
            "select pg_typeof(m), pg_typeof(all_of), m::text || '!', enum_range(m), all_of[2] \
             from t where id = 1"
        ),
        ["mood|mood[]|happy!|{sad,ok,happy}|happy"]
    );
    assert_eq!(
        client.rows(
            "select data_type, udt_schema, udt_name from information_schema.columns \
             where table_name = 't' and ordinal_position > 1"
        ),
        ["USER-DEFINED|public|mood", "ARRAY|public|_mood"]
    );
    let error = client.error("insert into t values (5, 'angry')");
    assert!(
        error.contains("22P02") && error.contains("enum mood: \"angry\""),
        "{error}"
    );
    assert!(
        client
            .error("insert into t values (100, 'happy')")
            .contains("23514")
    );
    assert!(
        client
            .error("select 'sad'::mood = 'sad'::text")
            .contains("42883")
    );

    client.tag("alter type mood add value 'angry' before 'sad'");
    client.tag("alter type mood add value 'soso' after 'sad'");
    client.tag("alter type mood add value 'great'");
    client.tag("alter type mood rename value 'soso' to 'meh'");
    client.tag("insert into t values (5, 'angry'), (6, 'meh'), (7, 'great')");
    assert_eq!(
        client.rows("select m from t where m < 'great' order by m"),
        ["angry", "sad", "meh", "ok", "happy"]
    );
    assert_eq!(
        client.rows("select enumlabel, enumsortorder from pg_enum order by enumsortorder"),
        ["angry|1", "sad|2", "meh|3", "ok|4", "happy|5", "great|6"]
    );
    client.tag("alter type mood rename to feeling");
    assert_eq!(
        client.rows("select 'meh'::feeling, m from t where id = 6"),
        ["meh|meh"]
    );
    assert!(client.error("select 'meh'::mood").contains("42704"));
}

#[test]
fn what_is_of_a_type_keeps_it_or_goes_with_it() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create type e as enum ('a', 'b')");
    client.tag(
        "create table t (id int, x e, y e[], z text default 'a'::e, check (z <> 'b'::e::text))",
    );
    client.tag("create view v as select id, 'a'::e as w from t");
    client.tag("create table plain (id int)");
    client.tag("insert into t values (1, 'a', '{b}', 'x')");
    let error = client.error("drop type e");
    assert!(
        error.contains("2BP01") && error.contains("column x of table t"),
        "{error}"
    );
    // What is kept as text would mean something else.
    assert!(client.error("alter type e rename to f").contains("0A000"));
    client.tag("alter table t alter z drop default, drop constraint t_z_check");
    client.tag("alter type e rename to f");
    assert_eq!(client.rows("select * from v"), ["1|a"]);
    assert!(client.error("create table f (a int)").contains("42710"));
    assert!(
        client
            .error("create type plain as enum ()")
            .contains("42710")
    );
    client.tag("drop type f cascade");
    assert_eq!(client.rows("select * from t"), ["1|x"]);
    assert!(client.error("select * from v").contains("42P01"));
    client.tag("create table f (a int)");

    client.tag("create schema s");
    client.tag("create type s.e as enum ('a')");
    client.tag("create table u (id int, x s.e)");
    assert!(client.error("drop schema s").contains("2BP01"));
    client.tag("drop schema s cascade");
    client.tag("insert into u values (1)");
    assert_eq!(client.rows("select * from u"), ["1"]);
}

#[test]
fn types_are_transactional_and_durable() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    for sql in [
        "begin",
        "create type e as enum ('b', 'd')",
        "create table t (x e primary key)",
        "savepoint s",
        "alter type e add value 'a' before 'b'",
        "insert into t values ('a')",
        "rollback to s",
        "alter type e add value 'c' before 'd'",
        "insert into t values ('d'), ('c'), ('b')",
    ] {
        client.query(sql);
    }
    assert_eq!(client.rows("select * from t order by x"), ["b", "c", "d"]);
    assert!(server.connect().error("select 'b'::e").contains("42704"));
    client.tag("commit");
    client.query("begin");
    client.query("drop table t");
    client.query("drop type e");
    client.query("rollback");
    assert_eq!(
        client.rows("select * from t where x < 'd' order by x"),
        ["b", "c"]
    );
    client.tag("checkpoint");
    client.tag("alter type e add value 'a' before 'b'");
    client.tag("insert into t values ('a')");
    client.tag("create type row_of as (x e, n int)");
    client.tag("create table u (r row_of)");
    client.tag("insert into u values (('d', 1))");
    client.tag("alter type row_of add attribute more text");
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(
        client.rows("select * from t order by x"),
        ["a", "b", "c", "d"]
    );
    assert_eq!(client.rows("select * from t where x = 'a'"), ["a"]);
    assert!(client.error("insert into t values ('a')").contains("23505"));
    assert_eq!(client.rows("select r, (r).x from u"), ["(d,1,)|d"]);
    let report = server.engine.database().verify().expect("verifies");
    assert_eq!(report.problems, Vec::<String>::new());
}

/// Who makes something of a type keeps it from being dropped, whoever is first.
#[test]
fn a_type_is_not_dropped_beneath_a_table_that_is_being_made() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create type e as enum ('a')");
    client.tag("begin");
    client.tag("create table t (x e)");
    let mut other = server.connect();
    let dropping = thread::spawn(move || other.error("drop type e"));
    while client.rows("select count(*) from pg_locks where not granted") == ["0"] {
        thread::yield_now();
    }
    client.tag("commit");
    let error = dropping.join().expect("an answer");
    assert!(error.contains("2BP01"), "{error}");

    client.tag("drop table t");
    client.tag("begin");
    client.tag("drop type e");
    let mut other = server.connect();
    let making = thread::spawn(move || other.error("create table t (x e)"));
    while client.rows("select count(*) from pg_locks where not granted") == ["0"] {
        thread::yield_now();
    }
    client.tag("commit");
    let error = making.join().expect("an answer");
    assert!(error.contains("42704"), "{error}");
}

/// Two databases of one process each have their own.
#[test]
fn types_of_two_databases_do_not_meet() {
    let (one, two) = (Server::new(), Server::new());
    let (mut one, mut two) = (one.connect(), two.connect());
    one.tag("create type e as enum ('a', 'b')");
    two.tag("create type e as enum ('b', 'a')");
    for client in [&mut one, &mut two] {
        client.tag("create table t (x e)");
        client.tag("insert into t values ('a'), ('b')");
    }
    assert_eq!(one.rows("select * from t order by x"), ["a", "b"]);
    assert_eq!(two.rows("select * from t order by x"), ["b", "a"]);
    one.tag("drop type e cascade");
    assert_eq!(two.rows("select * from t order by x"), ["b", "a"]);
}

#[test]
fn rows_of_a_composite_type_are_kept_and_changed() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create type pair as (a int, b varchar(5))");
    client.tag("create type nest as (p pair, all_of pair[], n numeric(6, 2))");
    client.tag("create table t (id int primary key, x pair, y pair[], z nest)");
    client.tag(
        "insert into t values (1, (1, 'one'), array[(2, 'two')::pair], \
         row(row(5, 'five'), '{\"(6,six)\"}', 1.5)), (2, '(7,\"a, b\")', '{}', null)",
    );
    let all = "select * from t order by id";
    let rows = [
        "1|(1,one)|{\"(2,two)\"}|(\"(5,five)\",\"{\"\"(6,six)\"\"}\",1.50)",
        "2|(7,\"a, b\")|{}|NULL",
    ];
    assert_eq!(client.rows(all), rows);
    assert_eq!(
        client.rows("select (x).a, (z).p.b, (z).all_of[1].a, (y[1]).b from t where id = 1"),
        ["1|five|6|two"]
    );
    assert_eq!(
        client.rows("select (x).* from t order by x desc"),
        ["7|a, b", "1|one"]
    );
    assert_eq!(
        client.rows("select id from t where x = '(1,one)'::pair"),
        ["1"]
    );
    assert_eq!(
        client.rows("select to_jsonb(z), pg_typeof(y) from t where id = 1"),
        ["{\"n\": 1.50, \"p\": {\"a\": 5, \"b\": \"five\"}, \
          \"all_of\": [{\"a\": 6, \"b\": \"six\"}]}|pair[]"]
    );
    for (sql, sqlstate) in [
        ("insert into t values (3, row(1))", "42846"),
        ("insert into t values (3, row('a', 'b'))", "22P02"),
        ("insert into t values (3, '(1,longer)')", "22001"),
        ("insert into t values (3, '(1')", "22P02"),
        ("create index on t (x)", "0A000"),
        ("select (x).c from t", "42703"),
    ] {
        let error = client.error(sql);
        assert!(error.starts_with(sqlstate), "{sql}: {error}");
    }
    // Columns come and go; rows that are there have NULL, or nothing, there.
    client.tag("alter type pair add attribute c date, drop attribute a");
    client.tag("alter type pair rename attribute b to text");
    assert_eq!(
        client.rows("select x, (y[1]).c, (x).text from t where id = 1"),
        ["(one,)|NULL|one"]
    );
    client.tag("update t set x = row('neu', '2024-01-02') where (x).text = 'one'");
    assert_eq!(
        client.rows("select x, z from t where id = 1"),
        ["(neu,2024-01-02)|(\"(five,)\",\"{\"\"(six,)\"\"}\",1.50)"]
    );
    assert!(
        client
            .error("alter type pair alter attribute c type text")
            .contains("0A000")
    );
    assert!(
        client
            .error("alter type pair add attribute z nest")
            .contains("42P16")
    );
    assert!(client.error("drop type pair").contains("2BP01"));
    client.tag("drop type pair cascade");
    assert_eq!(client.rows(all), ["1|(1.50)", "2|NULL"]);
}

#[test]
fn rows_are_made_of_json() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create type pair as (a int, b char(3))");
    client.tag("create table t (id int, doc jsonb)");
    client.tag("insert into t values (1, '[{\"a\": 1, \"b\": \"x\"}, {\"a\": 2}]')");
    assert_eq!(
        client.rows("select id, x.a, x.b from t, jsonb_populate_recordset(null::pair, doc) x"),
        ["1|1|x  ", "1|2|NULL"]
    );
    assert_eq!(
        client.rows("select id, x.* from t, jsonb_to_recordset(doc) as x(b text, a bigint)"),
        ["1|x|1", "1|NULL|2"]
    );
    assert_eq!(
        client.rows(
            "select * from json_to_record('{\"a\": [1, 2], \"p\": {\"a\": 3}}') \
             as x(a int[], p pair, q text)"
        ),
        ["{1,2}|(3,)|NULL"]
    );
    assert_eq!(
        client.rows("select * from json_populate_record(null::t, '{\"id\": 5}')"),
        ["5|NULL"]
    );
    assert!(
        client
            .error("select * from json_to_record('{\"a\": \"long\"}') as x(a varchar(3))")
            .contains("22001")
    );
    assert!(
        client
            .error("select jsonb_to_record('{}')")
            .contains("0A000")
    );
}
