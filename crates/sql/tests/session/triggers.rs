//! Triggers between sessions, over a crash, and where they are hostile. What one session sees of
//! them is in the server's tests, where PostgreSQL's answers are (`sql/triggers.sql`).

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::{Connection, Server};

/// A table with a trigger that notes each row in another table.
fn noted(client: &mut Connection) {
    client.tag("create table t (id int primary key, v int)");
    client.tag("create table noted (id int, v int)");
    client.tag(
        "create function note() returns trigger language plpgsql as \
         $$ begin insert into noted values (new.id, new.v); return null; end $$",
    );
    client.tag(
        "create trigger note after insert or update on t for each row execute function note()",
    );
}

#[test]
fn a_trigger_is_there_after_a_crash_and_one_that_was_rolled_back_is_not() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    noted(&mut client);
    client.tag(
        "create function no() returns trigger language plpgsql as $$ begin return null; end $$",
    );
    client.tag("begin");
    client.tag("create trigger a before insert on t for each row execute function no()");
    assert_eq!(client.tag("insert into t values (7, 7)"), "INSERT 0 0");
    client.tag("rollback");
    assert_eq!(client.tag("insert into t values (1, 1)"), "INSERT 0 1");
    drop(client);
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("insert into t values (2, 2)");
    client.tag("alter table t disable trigger note");
    client.tag("insert into t values (3, 3)");
    assert_eq!(client.rows("select id from noted order by id"), ["1", "2"]);
    server.is_sound();
}

#[test]
fn a_trigger_that_changes_its_own_table_for_ever_ends_with_an_error() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int)");
    for (timing, given) in [("before", "new"), ("after", "null")] {
        client.tag(&format!(
            "create or replace function more() returns trigger language plpgsql as \
             $$ begin insert into t values (new.id + 1); return {given}; end $$"
        ));
        client.tag(&format!(
            "create or replace trigger more {timing} insert on t for each row execute function more()"
        ));
        let error = client.error("insert into t values (1)");
        assert!(error.starts_with("54001"), "{error}");
        assert_eq!(client.rows("select count(*) from t"), ["0"]);
    }
}

#[test]
fn a_trigger_that_takes_too_long_is_ended() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int)");
    client.tag("create function f() returns trigger language plpgsql as $$ begin loop null; end loop; end $$");
    client.tag("create trigger f before insert on t for each row execute function f()");
    client.tag("set statement_timeout = 100");
    let error = client.error("insert into t values (1)");
    assert!(error.starts_with("57014"), "{error}");
    client.tag("alter table t disable trigger all");
    assert_eq!(client.tag("insert into t values (1)"), "INSERT 0 1");
}

#[test]
fn what_was_prepared_before_a_trigger_fires_it() {
    let server = Server::new();
    let (mut one, mut other) = (server.connect(), server.connect());
    noted(&mut one);
    one.tag("drop trigger note on t");
    other.tag("prepare p as insert into t values ($1, $1)");
    other.tag("execute p(1)");
    one.tag("create trigger note after insert on t for each row execute function note()");
    other.tag("execute p(2)");
    one.tag("drop trigger note on t");
    other.tag("execute p(3)");
    assert_eq!(one.rows("select id from noted"), ["2"]);
}

#[test]
fn a_trigger_in_use_is_not_dropped_meanwhile() {
    let server = Server::new();
    let (mut one, mut other) = (server.connect(), server.connect());
    noted(&mut one);
    one.tag("begin");
    one.tag("insert into t values (1, 1)");
    other.tag("set lock_timeout = 20");
    for definition in [
        "drop trigger note on t",
        "alter trigger note on t rename to b",
        "alter table t disable trigger note",
        "create trigger b before insert on t for each row execute function note()",
    ] {
        let error = other.error(definition);
        assert!(error.starts_with("55P03"), "{definition}: {error}");
    }
    one.tag("commit");
    // A trigger needs its function.
    let error = other.error("drop function note()");
    assert!(error.starts_with("2BP01"), "{error}");
    other.tag("drop trigger note on t");
    other.tag("drop function note()");
    one.tag("insert into t values (2, 2)");
    assert_eq!(one.rows("select id from noted"), ["1"]);
}

#[test]
fn a_trigger_does_not_define_its_own_table_anew() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key)");
    client.tag(
        "create function f() returns trigger language plpgsql as \
         $$ begin execute 'alter table t add column c' || new.id || ' int'; return new; end $$",
    );
    client.tag("create trigger f before insert on t for each row execute function f()");
    let error = client.error("insert into t values (1), (2)");
    assert!(error.starts_with("55006"), "{error}");
    assert_eq!(client.rows("select * from t"), Vec::<String>::new());
}

#[test]
fn rows_that_are_noted_for_later_are_charged() {
    let server = Server::new();
    let mut client = server.connect();
    noted(&mut client);
    client.tag("alter table t disable trigger note");
    client.tag("insert into t select i, i from generate_series(1, 3000) i");
    client.tag("alter table t enable trigger note");
    assert_eq!(client.tag("update t set v = v + 1"), "UPDATE 3000");
    let sums = "select count(*), sum(v) from noted";
    assert_eq!(client.rows(sums), ["3000|4504500"]);
    // Where one fails all of it is taken back, and what was noted is forgotten.
    client.tag(
        "create or replace function note() returns trigger language plpgsql as \
         $$ begin if new.id = 2999 then raise exception 'no'; end if; return null; end $$",
    );
    let error = client.error("update t set v = 0");
    assert!(error.starts_with("P0001 no"), "{error}");
    assert_eq!(client.tag("update t set v = 0 where id < 10"), "UPDATE 9");
    assert_eq!(client.rows("select count(*) from t where v = 0"), ["9"]);
}

#[test]
fn two_sessions_change_a_row_with_triggers_one_after_the_other() {
    for level in ["read committed", "repeatable read", "serializable"] {
        let server = Server::new();
        let (mut one, mut other) = (server.connect(), server.connect());
        noted(&mut one);
        one.tag("insert into t values (1, 1)");
        one.tag(&format!("begin isolation level {level}"));
        other.tag(&format!("begin isolation level {level}"));
        other.tag("select 1 from t");
        one.tag("update t set v = v + 10 where id = 1");
        one.tag("commit");
        match level {
            "read committed" => {
                other.tag("update t set v = v + 100 where v = 11");
                other.tag("commit");
                assert_eq!(
                    other.rows("select v from noted order by v"),
                    ["1", "11", "111"]
                );
            }
            _ => {
                let error = other.error("update t set v = v + 100 where id = 1");
                assert!(error.starts_with("40001"), "{error}");
                other.tag("rollback");
            }
        }
    }
}
