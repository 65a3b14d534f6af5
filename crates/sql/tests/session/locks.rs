//! Locks of tables: LOCK TABLE, what statements and DDL take, and how waits for them end.

use std::thread;
use std::time::{Duration, Instant};

use crate::fixture::Server;

fn server() -> Server {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (a int primary key, b int)");
    client.tag("create table u (a int primary key, b int)");
    client.tag("insert into t values (1, 10), (2, 20)");
    client.tag("insert into u values (1, 10)");
    server
}

#[test]
fn lock_table_is_for_transactions_and_for_tables() {
    let server = server();
    let mut client = server.connect();
    assert_eq!(
        client.error("lock table t"),
        "25P01 LOCK TABLE can only be used in transaction blocks"
    );
    for (sql, error) in [
        ("lock nothing", "42P01 relation \"nothing\" does not exist"),
        (
            "lock t in odd mode",
            "42601 syntax error at or near \"odd\" [position 11]",
        ),
        ("lock t_pkey", "42809 cannot lock relation \"t_pkey\""),
    ] {
        client.tag("begin");
        assert_eq!(client.error(sql), error);
        client.tag("rollback");
    }
    client.tag("begin");
    assert_eq!(
        client.tag("lock table t, only u in row share mode"),
        "LOCK TABLE"
    );
    client.tag("lock t in share mode nowait");
    client.tag("commit");
}

#[test]
fn a_lock_keeps_out_what_conflicts_with_it() {
    let server = server();
    let (mut holder, mut other) = (server.connect(), server.connect());
    let statements = [
        "select * from t where a = 1",
        "select * from t where a = 1 for update",
        "update t set b = 0 where a = 1",
        "create index on t (b)",
        "alter table t add c int",
        "truncate t",
    ];
    for (mode, passes) in [
        ("access share", 4),
        ("row share", 4),
        ("row exclusive", 3),
        ("share", 2),
        ("exclusive", 1),
        ("access exclusive", 0),
    ] {
        holder.tag("begin");
        holder.tag(&format!("lock table t in {mode} mode"));
        for (place, sql) in statements.iter().enumerate() {
            // Rows stay as they are under SHARE, and an index may be made.
            let passes = place < passes || mode == "share" && sql.starts_with("create index");
            other.tag("begin");
            other.tag("set local lock_timeout = '50ms'");
            match passes {
                true => _ = other.query(sql),
                false => assert_eq!(
                    other.error(sql),
                    "55P03 canceling statement due to lock timeout",
                    "{mode}: {sql}"
                ),
            }
            other.tag("rollback");
        }
        other.tag("begin");
        let nowait = "lock t in access exclusive mode nowait";
        assert_eq!(
            other.error(nowait),
            "55P03 could not obtain lock on relation \"t\""
        );
        other.tag("rollback");
        holder.tag("rollback");
    }
    // Without a transaction, too.
    holder.tag("begin");
    holder.tag("lock t");
    other.tag("set lock_timeout = '50ms'");
    for sql in [
        "select * from t where a = 1",
        "select sum(b) from t",
        "table t",
    ] {
        assert!(other.error(sql).starts_with("55P03 "), "{sql}");
    }
    holder.tag("rollback");
    assert_eq!(other.rows("select sum(b) from t"), ["30"]);
}

#[test]
fn ddl_that_waits_ends_with_its_timeouts_and_holds_up_no_other() {
    let server = server();
    let (mut reader, mut definer, mut other) =
        (server.connect(), server.connect(), server.connect());
    reader.tag("begin");
    reader.rows("select * from t");
    definer.tag("set lock_timeout = '100ms'");
    for sql in [
        "drop table t",
        "truncate t",
        "alter table t add c int",
        "drop index t_b",
    ] {
        if sql.contains("index") {
            definer.tag("create index t_b on t (b)");
        }
        let begun = Instant::now();
        assert_eq!(
            definer.error(sql),
            "55P03 canceling statement due to lock timeout"
        );
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
    definer.tag("set lock_timeout = 0");
    definer.tag("set statement_timeout = '100ms'");
    assert_eq!(
        definer.error("truncate t"),
        "57014 canceling statement due to statement timeout"
    );
    definer.tag("set statement_timeout = 0");
    let waiting = thread::spawn(move || definer.tag("truncate t"));
    thread::sleep(Duration::from_millis(100));
    other.tag("set lock_timeout = '5s'");
    other.tag("create table v (a int)");
    other.tag("alter table u add c int");
    other.tag("begin");
    other.tag("create table w (a int)");
    reader.tag("create table x (a int)");
    reader.tag("commit");
    assert_eq!(waiting.join().expect("ends"), "TRUNCATE TABLE");
    other.tag("commit");
    assert_eq!(other.rows("select count(*) from t"), ["0"]);
    for made in ["v", "w", "x"] {
        assert_eq!(other.rows(&format!("select count(*) from {made}")), ["0"]);
    }
}

#[test]
fn a_circle_is_a_deadlock_and_the_other_goes_on() {
    let server = server();
    let (mut one, mut two) = (server.connect(), server.connect());
    one.tag("begin");
    one.tag("lock t in share mode");
    two.tag("begin");
    two.tag("update u set b = 1 where a = 1");
    let waiting = thread::spawn(move || {
        let tag = one.query("update u set b = 2 where a = 1");
        (one, tag)
    });
    thread::sleep(Duration::from_millis(100));
    assert_eq!(
        two.error("insert into t values (3, 3)"),
        "40P01 deadlock detected"
    );
    two.tag("rollback");
    let (mut one, told) = waiting.join().expect("ends");
    assert_eq!(told, ["C UPDATE 1"]);
    one.tag("commit");
}

#[test]
fn what_one_has_read_may_be_emptied_and_dropped() {
    let server = server();
    let mut client = server.connect();
    for sql in ["truncate t", "drop table t"] {
        client.tag("begin isolation level serializable");
        client.rows("select * from t");
        client.rows("select sum(b) from t where b > 5");
        client.tag(sql);
        assert_eq!(client.tag("commit"), "COMMIT");
    }
    client.error("select * from t");
}

#[test]
fn transactions_that_define_different_things_do_not_meet() {
    let server = server();
    let (mut one, mut two) = (server.connect(), server.connect());
    two.tag("set lock_timeout = '5s'");
    one.tag("begin");
    one.tag("create table made_by_one (a int primary key)");
    one.tag("alter table t add c int default 7");
    two.tag("begin");
    two.tag("create table made_by_two (a serial primary key)");
    two.tag("create index on u (b)");
    two.tag("alter table u rename b to renamed");
    two.tag("create role somebody");
    two.tag("commit");
    // Each sees its own, and what is committed.
    one.tag("insert into made_by_one values (1)");
    one.tag("insert into made_by_two default values");
    assert_eq!(one.rows("select renamed from u"), ["10"]);
    assert_eq!(one.rows("select c from t where a = 1"), ["7"]);
    two.error("select * from made_by_one");
    one.tag("create role another");
    one.tag("commit");
    assert_eq!(two.rows("select c from t where a = 1"), ["7"]);
    assert_eq!(two.rows("select a from made_by_one"), ["1"]);
    assert_eq!(two.rows("select a from made_by_two"), ["1"]);
    assert_eq!(two.rows("select renamed from u"), ["10"]);
    let roles = "select rolname from pg_roles where rolname in ('somebody', 'another') order by 1";
    assert_eq!(two.rows(roles), ["another", "somebody"]);
}

#[test]
fn of_two_that_make_the_same_the_second_learns_of_the_first() {
    let server = server();
    let (mut one, mut two) = (server.connect(), server.connect());
    for (first, second, told) in [
        (
            "create table n (a int)",
            "create table n (b int)",
            "42P07 relation \"n\" already exists",
        ),
        (
            "create schema s",
            "create schema s",
            "42P06 schema \"s\" already exists",
        ),
        (
            "drop schema s",
            "create table s.n (a int)",
            "3F000 schema \"s\" does not exist",
        ),
        (
            "create index i on t (b)",
            "create index i on u (b)",
            "42P07 relation \"i\" already exists",
        ),
    ] {
        one.tag("begin");
        one.tag(first);
        let waiting = thread::spawn(move || {
            let told = two.error(second);
            (two, told)
        });
        thread::sleep(Duration::from_millis(100));
        one.tag("commit");
        let answer = waiting.join().expect("ends");
        assert_eq!(answer.1, told, "{first}; {second}");
        two = answer.0;
    }
    // Two indexes of one table: each is made.
    one.tag("begin");
    one.tag("create index on t (b)");
    let waiting = thread::spawn(move || two.tag("create index on t (b)"));
    thread::sleep(Duration::from_millis(100));
    one.tag("commit");
    assert_eq!(waiting.join().expect("ends"), "CREATE INDEX");
    let indexes = "select count(*) from pg_indexes where tablename = 't'";
    assert_eq!(one.rows(indexes), ["4"]);
}

#[test]
fn a_role_without_rights_gets_no_place_in_the_line() {
    let server = server();
    let (mut owner, mut other) = (server.connect(), server.connect());
    owner.tag("create role guest");
    owner.tag("grant select on t to guest");
    owner.tag("begin");
    owner.rows("select * from t");
    other.tag("set role guest");
    other.tag("set lock_timeout = '5s'");
    let begun = Instant::now();
    for sql in [
        "drop table t",
        "truncate t",
        "alter table t add c int",
        "create index on t (b)",
    ] {
        assert!(other.error(sql).starts_with("42501 "), "{sql}");
    }
    other.tag("begin");
    other.tag("lock t in access share mode");
    assert_eq!(
        other.error("lock t in share mode"),
        "42501 permission denied for table t"
    );
    other.tag("rollback");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn rows_that_others_have_locked_are_skipped_or_refused() {
    let server = Server::new();
    let (mut holder, mut other) = (server.connect(), server.connect());
    holder.tag(
        "create table jobs (id int primary key, state text);
         insert into jobs select i, 'new' from generate_series(1, 20) i",
    );
    for isolation in ["read committed", "repeatable read", "serializable"] {
        holder.tag(&format!("begin isolation level {isolation}"));
        other.tag(&format!("begin isolation level {isolation}"));
        let next = "select id from jobs where id > 0 order by id limit 2 for update skip locked";
        assert_eq!(holder.rows(next), ["1", "2"], "{isolation}");
        assert_eq!(other.rows(next), ["3", "4"], "{isolation}");
        holder.tag("update jobs set state = 'x' where id between 5 and 12");
        // Own locks are no others'.
        assert_eq!(other.rows(next), ["3", "4"], "{isolation}");
        assert_eq!(
            other
                .rows("select id from jobs where id > 4 order by id limit 1 for share skip locked"),
            ["13"],
            "{isolation}"
        );
        assert_eq!(
            other.rows("select id from jobs where id in (1, 5, 12) for update skip locked"),
            [""; 0],
            "{isolation}"
        );
        other.tag("savepoint s");
        assert_eq!(
            other.error("select id from jobs where id = 5 for update nowait"),
            "55P03 could not obtain lock on row in relation \"jobs\"",
            "{isolation}"
        );
        other.tag("rollback to s");
        assert_eq!(
            other.rows("select id from jobs where id = 14 for update nowait"),
            ["14"],
            "{isolation}"
        );
        holder.tag("rollback");
        other.tag("rollback");
    }
    // A statement alone takes what is free, too.
    holder.tag("begin; select * from jobs where id = 1 for update");
    assert_eq!(
        other.rows("select id from jobs where id > 0 order by id limit 1 for update skip locked"),
        ["2"]
    );
    holder.tag("rollback");
}

#[test]
fn who_has_a_table_alone_adds_indexes_while_others_wait_to_add_theirs() {
    let server = server();
    let (mut holder, mut other) = (server.connect(), server.connect());
    for index in ["create index on t (b)", "create index on t ((a + b))"] {
        holder.tag("begin");
        holder.tag("lock table t in access exclusive mode");
        let waiting = thread::spawn(move || {
            let made = other.tag("create index on t (b, a)");
            (other, made)
        });
        thread::sleep(Duration::from_millis(100));
        assert_eq!(holder.tag(index), "CREATE INDEX");
        assert_eq!(holder.tag("commit"), "COMMIT");
        let (back, made) = waiting.join().expect("the other is answered");
        assert_eq!(made, "CREATE INDEX");
        other = back;
    }
}
