//! Advisory locks: exclusive and shared, of sessions and of transactions, as in PostgreSQL.

use std::thread;
use std::time::Duration;

use crate::fixture::{Connection, Server};

/// Waits until so many locks are waited for.
fn until_waiting(client: &mut Connection, count: u32) {
    let waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted";
    while client.rows(waits) != [count.to_string()] {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn locks_of_a_session_count_and_conflict() {
    let server = Server::new();
    let (mut one, mut two) = (server.connect(), server.connect());
    assert_eq!(one.rows("select pg_advisory_lock(7)"), [""]);
    assert_eq!(one.rows("select pg_try_advisory_lock(7)"), ["t"]);
    assert_eq!(two.rows("select pg_try_advisory_lock(7)"), ["f"]);
    assert_eq!(two.rows("select pg_try_advisory_lock_shared(7)"), ["f"]);
    // Two numbers are other keys than one.
    assert_eq!(two.rows("select pg_try_advisory_lock(0, 7)"), ["t"]);
    assert_eq!(one.rows("select pg_advisory_unlock(7)"), ["t"]);
    assert_eq!(two.rows("select pg_try_advisory_lock(7)"), ["f"]);
    assert_eq!(one.rows("select pg_advisory_unlock(7)"), ["t"]);
    assert_eq!(two.rows("select pg_try_advisory_lock(7)"), ["t"]);
    let answers = one.query("select pg_advisory_unlock(7)");
    assert!(answers.contains(&"D f".to_owned()), "{answers:?}");
    let warning = "you don't own a lock of type ExclusiveLock";
    assert!(
        answers.iter().any(|line| line.contains(warning)),
        "{answers:?}"
    );
    let shown = "select classid, objid, objsubid, mode, granted from pg_locks \
                 where locktype = 'advisory' order by 1, 2, 3";
    one.rows("select pg_advisory_lock_shared(-1)");
    assert_eq!(
        one.rows(shown),
        [
            "0|7|1|ExclusiveLock|t",
            "0|7|2|ExclusiveLock|t",
            "4294967295|4294967295|1|ShareLock|t"
        ]
    );
    assert_eq!(two.rows("select pg_try_advisory_lock_shared(-1)"), ["t"]);
    assert_eq!(two.rows("select pg_try_advisory_lock(-1)"), ["f"]);
    // A session that ends gives back all; so does DISCARD ALL.
    drop(two);
    one.tag("discard all");
    assert_eq!(one.rows(shown), [""; 0]);
}

#[test]
fn locks_of_a_transaction_go_with_it() {
    let server = Server::new();
    let (mut one, mut two) = (server.connect(), server.connect());
    let tries = "select pg_try_advisory_lock(1)";
    for (begin, end) in [("begin", "commit"), ("begin", "rollback")] {
        one.tag(begin);
        one.rows("select pg_advisory_xact_lock(1)");
        assert_eq!(one.rows("select pg_advisory_unlock(1)"), ["f"]);
        one.rows("select pg_advisory_unlock_all()");
        assert_eq!(two.rows(tries), ["f"]);
        one.tag(end);
        assert_eq!(two.rows(tries), ["t"]);
        two.rows("select pg_advisory_unlock_all()");
    }
    // A statement of its own is a transaction, also one that fails.
    assert_eq!(one.rows("select pg_try_advisory_xact_lock(1)"), ["t"]);
    assert_eq!(two.rows(tries), ["t"]);
    two.rows("select pg_advisory_unlock_all()");
    one.error("select pg_advisory_xact_lock(1), 1 / (random() * 0)::int");
    one.tag("begin");
    one.rows("select pg_advisory_xact_lock(1)");
    one.error("select nothing");
    one.tag("rollback");
    assert_eq!(two.rows(tries), ["t"]);
    // Of a session they stay.
    one.tag("begin");
    one.rows("select pg_advisory_lock(2)");
    one.tag("rollback");
    assert_eq!(two.rows("select pg_try_advisory_lock(2)"), ["f"]);
}

#[test]
fn who_waits_is_let_in_or_told() {
    let server = Server::new();
    let (mut one, mut two) = (server.connect(), server.connect());
    one.rows("select pg_advisory_lock(1)");
    let waits = thread::spawn(move || {
        two.rows("select pg_advisory_lock(1)");
        // Taken once, however often the statement ran.
        assert_eq!(two.rows("select pg_advisory_unlock(1)"), ["t"]);
        assert!(
            two.query("select pg_advisory_unlock(1)")
                .contains(&"D f".to_owned())
        );
        two
    });
    until_waiting(&mut one, 1);
    let who = "select wait_event from pg_stat_activity where wait_event_type = 'Lock'";
    assert_eq!(one.rows(who), ["advisory"]);
    one.rows("select pg_advisory_unlock(1)");
    let mut two = waits.join().expect("ends");
    one.rows("select pg_advisory_lock(1)");
    two.tag("set lock_timeout = 50");
    assert!(two.error("select pg_advisory_lock(1)").starts_with("55P03"));
    two.tag("set lock_timeout = 0");
    two.tag("set statement_timeout = 50");
    assert!(two.error("select pg_advisory_lock(1)").starts_with("57014"));
    two.tag("set statement_timeout = 0");
    let several = two.error("select pg_advisory_lock(5), pg_advisory_lock(1)");
    assert!(several.starts_with("0A000"), "{several}");
    // Two that wait for each other.
    two.rows("select pg_advisory_unlock_all()");
    two.rows("select pg_advisory_lock(2)");
    let waits = thread::spawn(move || two.rows("select pg_advisory_lock(1)"));
    until_waiting(&mut one, 1);
    assert!(one.error("select pg_advisory_lock(2)").starts_with("40P01"));
    one.rows("select pg_advisory_unlock_all()");
    waits.join().expect("ends");
}

#[test]
fn bodies_take_locks_and_a_session_has_not_too_many() {
    let server = Server::new();
    let (mut one, mut two) = (server.connect(), server.connect());
    one.tag("do $$ begin for i in 1..3 loop perform pg_advisory_lock(i); end loop; end $$");
    assert_eq!(two.rows("select pg_try_advisory_lock(3)"), ["f"]);
    assert_eq!(one.rows("select pg_advisory_unlock(3)"), ["t"]);
    assert_eq!(two.rows("select pg_try_advisory_lock(3)"), ["t"]);
    let many =
        "do $$ begin for i in 1..20000 loop perform pg_advisory_lock(9, i); end loop; end $$";
    assert!(one.error(many).starts_with("53200"));
    assert_eq!(two.rows("select pg_try_advisory_lock(9, 5)"), ["f"]);
    one.rows("select pg_advisory_unlock_all()");
    assert_eq!(two.rows("select pg_try_advisory_lock(9, 5)"), ["t"]);
}
