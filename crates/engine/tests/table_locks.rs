//! Locks of tables: who waits for whom, how a wait ends, and what DDL may be beside what.

mod fixture;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use fixture::*;
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{
    Access, Cancel, Change, Database, Error, Isolation, LockMode, Result, RunOptions, Scope, Table,
    TableLock, Transaction, block_on,
};

/// No other test shares this process's memory limit.
const LIMIT: u64 = 64 << 30;

fn begin(db: &Arc<Database>) -> Transaction {
    db.begin(Isolation::ReadCommitted, false)
}

fn in_txn<R>(
    txn: &mut Transaction,
    db: &Database,
    body: impl FnMut(&mut Access<'_>) -> Result<R>,
) -> Result<R> {
    block_on(db.in_transaction(txn, &RunOptions::new(), Scope::All, body))
}

fn lock(db: &Database, txn: &mut Transaction, t: &Table, mode: LockMode) {
    block_on(db.lock_table(txn, &RunOptions::new(), t, mode, true)).expect("locks");
}

fn try_lock(db: &Database, txn: &mut Transaction, t: &Table, mode: LockMode) -> Result<()> {
    block_on(db.lock_table(txn, &RunOptions::new(), t, mode, false))
}

fn truncate(t: &Table) -> Change {
    Change::Truncate {
        tables: vec![t.def.oid],
        restart_identity: false,
    }
}

/// Whether a future waits; it is looked at once.
fn waits<R>(future: Pin<&mut impl Future<Output = R>>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    matches!(future.poll(&mut context), Poll::Pending)
}

fn in_a_moment(milliseconds: u64) -> RunOptions {
    RunOptions {
        lock_timeout: Some(Duration::from_millis(milliseconds)),
        ..RunOptions::new()
    }
}

#[test]
fn statements_take_locks_as_in_postgresql() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    let locks_of = |txn: &Transaction| -> Vec<LockMode> {
        let all = db.table_locks().into_iter();
        let own = all.filter(|lock| lock.transaction == txn.id());
        own.map(|lock| {
            assert!(lock.granted && lock.table == t.def.oid);
            lock.mode
        })
        .collect()
    };
    let mut txn = begin(&db);
    in_txn(&mut txn, &db, |access| get_in(access, &t, 1)).expect("reads");
    assert_eq!(locks_of(&txn), [LockMode::AccessShare]);
    in_txn(&mut txn, &db, |access| {
        let row = find(access, &t, 1)?.expect("it is there");
        access.lock(&t, row)
    })
    .expect("locks");
    assert_eq!(locks_of(&txn), [LockMode::AccessShare, LockMode::RowShare]);
    in_txn(&mut txn, &db, |access| set_in(access, &t, 1, "two")).expect("sets");
    assert_eq!(locks_of(&txn).last(), Some(&LockMode::RowExclusive));
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    assert_eq!(db.table_locks(), []);

    for (change, mode) in [
        (truncate(&t), LockMode::AccessExclusive),
        (Change::AlterTable(t.def.clone()), LockMode::AccessExclusive),
        (Change::DropTable(t.def.oid), LockMode::AccessExclusive),
        (
            Change::CreateIndex {
                table: t.def.oid,
                index: value_index(&db, IndexKind::BTree, false),
            },
            LockMode::Share,
        ),
    ] {
        let mut txn = begin(&db);
        block_on(db.ddl(&mut txn, &RunOptions::new(), change)).expect("defines");
        assert_eq!(locks_of(&txn), [mode]);
    }
    assert_eq!(db.table_locks(), []);
}

/// All pairs of modes, of transactions and of statements without one.
#[test]
fn modes_that_conflict_wait_and_others_do_not() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    for held in LockMode::ALL {
        let mut holder = begin(&db);
        lock(&db, &mut holder, &t, held);
        for wanted in LockMode::ALL {
            let mut other = begin(&db);
            let taken = try_lock(&db, &mut other, &t, wanted);
            match held.conflicts_with(wanted) {
                true => {
                    let error = taken.expect_err("it is held");
                    assert_eq!(error.sqlstate(), "55P03");
                    assert_eq!(error.to_string(), "could not obtain lock on relation \"t\"");
                }
                false => taken.expect("it is free"),
            }
        }
        let options = in_a_moment(20);
        let read = db.one_shot(&options, Scope::All, |access| get_in(access, &t, 1));
        let refused = held.conflicts_with(LockMode::AccessShare);
        assert_eq!(block_on(read).is_err(), refused, "{held:?}");
        let set = db.one_shot(&options, Scope::All, |access| set_in(access, &t, 1, "new"));
        let refused = held.conflicts_with(LockMode::RowExclusive);
        let told = block_on(set);
        assert_eq!(told.is_err(), refused, "{held:?}");
        if let Err(error) = told {
            assert_eq!(error.sqlstate(), "55P03");
        }
    }
}

#[test]
fn a_strong_lock_gets_its_turn_and_those_behind_it_theirs() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    let options = RunOptions::new();
    let (mut reader, mut definer, mut late) = (begin(&db), begin(&db), begin(&db));
    in_txn(&mut reader, &db, |access| get_in(access, &t, 1)).expect("reads");
    let ids = [reader.id(), definer.id(), late.id()];
    let mode = LockMode::AccessExclusive;
    {
        let mut exclusive = pin!(db.lock_table(&mut definer, &options, &t, mode, true));
        assert!(waits(exclusive.as_mut()));
        // Who reads already reads on; who comes later waits, also without a transaction.
        in_txn(&mut reader, &db, |access| get_in(access, &t, 1)).expect("reads");
        let session = RunOptions {
            session: 77,
            ..RunOptions::new()
        };
        let mut beside = pin!(db.one_shot(&session, Scope::All, |access| get_in(access, &t, 1)));
        assert!(waits(beside.as_mut()));
        {
            let body = |access: &mut Access<'_>| get_in(access, &t, 1);
            let mut behind = pin!(db.in_transaction(&mut late, &options, Scope::All, body));
            assert!(waits(behind.as_mut()));
            let lock = |transaction, mode, granted| TableLock {
                transaction,
                table: t.def.oid,
                mode,
                granted,
            };
            let shown = db.table_locks();
            assert!(shown.contains(&lock(ids[0], LockMode::AccessShare, true)));
            assert!(shown.contains(&lock(ids[1], mode, false)));
            assert!(shown.contains(&lock(ids[2], LockMode::AccessShare, false)));
            let waiting = db.lock_waits();
            let of = |id| {
                waiting
                    .iter()
                    .find(|wait| wait.transaction == id)
                    .expect("waits")
            };
            assert_eq!(of(ids[1]).holders, [ids[0]]);
            assert_eq!(of(ids[2]).holders, [ids[1]]);
            let alone = waiting
                .iter()
                .find(|wait| wait.session == 77)
                .expect("waits");
            assert_eq!(alone.holders, [ids[1]]);
            assert_eq!(alone.table, Some((t.def.oid, LockMode::AccessShare)));
            block_on(db.commit(reader, &options)).expect("commits");
            assert!(!waits(exclusive.as_mut()), "its turn");
            assert!(waits(behind.as_mut()) && waits(beside.as_mut()));
        }
        // One who is dropped leaves the line.
        assert_eq!(db.table_locks().len(), 2);
        drop(late);
    }
    block_on(db.rollback(definer));
    assert_eq!((db.table_locks(), db.lock_waits()), (vec![], vec![]));
    get(&db, &t, 1).expect("nobody holds it");
}

#[test]
fn a_circle_of_tables_and_rows_is_a_deadlock() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    let other = make_table(&db, "other", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    let options = RunOptions::new();
    // A row and a table.
    let (mut one, mut two) = (begin(&db), begin(&db));
    in_txn(&mut one, &db, |access| set_in(access, &t, 1, "two")).expect("sets");
    lock(&db, &mut two, &other, LockMode::Share);
    {
        let body = |access: &mut Access<'_>| set_in(access, &t, 1, "three");
        let mut second = pin!(db.in_transaction(&mut two, &options, Scope::All, body));
        assert!(waits(second.as_mut()));
        let new = tuple(&other, 1, "new");
        let told = in_txn(&mut one, &db, |access| access.insert(&other, &new));
        assert!(matches!(told, Err(Error::Deadlock)));
        block_on(db.rollback(one));
        assert!(block_on(second).expect("goes on"));
    }
    block_on(db.rollback(two));
    // DDL, and a lock that both have and want more of.
    let (mut one, mut two) = (begin(&db), begin(&db));
    lock(&db, &mut one, &t, LockMode::AccessShare);
    lock(&db, &mut two, &t, LockMode::AccessShare);
    {
        let mut drops = pin!(db.ddl(&mut one, &options, Change::DropTable(t.def.oid)));
        assert!(waits(drops.as_mut()));
        let told = block_on(db.lock_table(&mut two, &options, &t, LockMode::Exclusive, true));
        told.expect("the drop waits for it anyway");
        let told = block_on(db.ddl(&mut two, &options, Change::DropTable(other.def.oid)));
        told.expect("nobody has that one");
    }
}

#[test]
fn each_wait_ends_with_time_cancel_and_its_client() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    let mut reader = begin(&db);
    in_txn(&mut reader, &db, |access| get_in(access, &t, 1)).expect("reads");
    let ddl = |options: &RunOptions| {
        let mut txn = begin(&db);
        block_on(db.ddl(&mut txn, options, truncate(&t))).expect_err("it is read")
    };
    let begun = Instant::now();
    assert_eq!(ddl(&in_a_moment(30)).sqlstate(), "55P03");
    let timed = RunOptions {
        deadline: Some(db.now() + Duration::from_millis(30)),
        ..RunOptions::new()
    };
    let error = ddl(&timed);
    assert_eq!(error.sqlstate(), "57014");
    assert!(error.to_string().contains("statement timeout"));
    let cancel = Cancel::new();
    let cancelled = RunOptions {
        cancel: cancel.clone(),
        ..RunOptions::new()
    };
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            cancel.cancel();
        });
        ddl(&cancelled)
    });
    assert!(matches!(error, Error::Cancelled));
    assert!(begun.elapsed() < Duration::from_secs(20));
    // The client goes.
    let options = RunOptions::new();
    {
        let mut txn = begin(&db);
        let mut waiting = pin!(db.ddl(&mut txn, &options, truncate(&t)));
        assert!(waits(waiting.as_mut()));
    }
    // Nobody is left in the line, and other definitions go on beside one who waits.
    get(&db, &t, 1).expect("the line is empty");
    block_on(db.commit(reader, &options)).expect("commits");
    fixture::ddl(&db, truncate(&t)).expect("nobody reads");
}

#[test]
fn who_waits_for_a_table_holds_up_no_definitions_of_others() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    let options = RunOptions::new();
    let (mut reader, mut waiting) = (begin(&db), begin(&db));
    in_txn(&mut reader, &db, |access| get_in(access, &t, 1)).expect("reads");
    let mode = LockMode::AccessExclusive;
    let mut exclusive = pin!(db.lock_table(&mut waiting, &options, &t, mode, true));
    assert!(waits(exclusive.as_mut()));
    let other = make_table(&db, "other", IndexKind::Hash);
    fixture::ddl(&db, Change::DropTable(other.def.oid)).expect("drops");
    block_on(db.commit(reader, &options)).expect("commits");
    block_on(exclusive).expect("its turn");
}

#[test]
fn a_rollback_to_a_savepoint_gives_back_what_was_locked_since() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    let other = make_table(&db, "other", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    let mut txn = begin(&db);
    in_txn(&mut txn, &db, |access| get_in(access, &t, 1)).expect("reads");
    let savepoint = txn.savepoint(0).expect("has room");
    lock(&db, &mut txn, &t, LockMode::AccessExclusive);
    lock(&db, &mut txn, &other, LockMode::Share);
    in_txn(&mut txn, &db, |access| set_in(access, &t, 1, "two")).expect("sets");
    block_on(txn.rollback_to(&savepoint)).expect("goes back");
    let held: Vec<(u32, LockMode)> = db
        .table_locks()
        .iter()
        .map(|lock| (lock.table, lock.mode))
        .collect();
    assert_eq!(held, [(t.def.oid, LockMode::AccessShare)]);
    insert(&db, &other, 1, "one").expect("it is free");
    // Definitions of it, too.
    let savepoint = txn.savepoint(0).expect("has room");
    block_on(db.ddl(&mut txn, &RunOptions::new(), truncate(&t))).expect("truncates");
    block_on(txn.rollback_to(&savepoint)).expect("goes back");
    assert_eq!(get(&db, &t, 1).expect("reads"), Some("one".into()));
    assert_eq!(db.table_locks().len(), 1);
}

/// What a snapshot sees of a table that was emptied since is nowhere.
#[test]
fn an_old_snapshot_does_not_take_a_truncated_table_for_an_empty_one() {
    for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
        for read_only in [false, true] {
            let (_device, db) = simulated(LIMIT);
            let t = make_table(&db, "t", IndexKind::Hash);
            let other = make_table(&db, "other", IndexKind::Hash);
            insert(&db, &t, 1, "one").expect("inserts");
            let mut txn = db.begin(isolation, read_only);
            in_txn(&mut txn, &db, |access| get_in(access, &other, 1)).expect("reads");
            ddl(&db, truncate(&t)).expect("truncates");
            let t = table(&db, "t");
            let read = in_txn(&mut txn, &db, |access| get_in(access, &t, 1));
            let scan = block_on(txn.enter(&RunOptions::new(), std::slice::from_ref(&t)));
            for told in [read.map(|row| assert_eq!(row, None)), scan] {
                // One that has read nothing that changed is as if it had begun later.
                match isolation == Isolation::Serializable && !read_only {
                    true => told.expect("it moves on"),
                    false => assert_eq!(told.expect_err("it is gone").sqlstate(), "40001"),
                }
            }
        }
    }
}
