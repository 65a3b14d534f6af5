//! Interleavings that the simulator found to go wrong, each as a short story.

mod fixture;

use std::future::Future;
use std::ops::{Bound, ControlFlow};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use fixture::*;
use thermocline_device::{Device, Operation, SimulatedDevice};
use thermocline_engine::catalog::{IndexDef, IndexKind};
use thermocline_engine::steps::{Moment, Simulator, Steps};
use thermocline_engine::{
    Access, Change, Config, Database, Direction, Error, Isolation, Policy, Result, RunOptions,
    Scope, Table, block_on,
};

/// No other test shares this process's memory limit.
const LIMIT: u64 = 64 << 30;

fn index(db: &Database, name: &str, unique: bool) -> IndexDef {
    IndexDef {
        oid: db.allocate_oid(),
        name: name.into(),
        columns: vec![1],
        unique,
        primary: false,
        constraint: false,
        kind: IndexKind::BTree,
        include: Vec::new(),
        nulls_equal: false,
        order: Vec::new(),
    }
}

fn with_index(db: &Arc<Database>, t: &Table, name: &str, unique: bool) -> Arc<Table> {
    let index = index(db, name, unique);
    let table = t.def.oid;
    ddl(db, Change::CreateIndex { table, index }).expect("makes the index");
    fixture::table(db, "t")
}

/// A row that its own transaction inserted, and deleted after a savepoint, became a
/// before-image at the commit: older snapshots saw a row that never was.
#[test]
fn a_row_that_was_never_committed_is_in_no_snapshot() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    let mut writer = db.begin(Isolation::ReadCommitted, false);
    in_txn(&mut writer, &db, |access| {
        access.insert(&t, &tuple(&t, 1, "never")).map(|_| ())
    })
    .expect("inserts");
    writer.savepoint(0).expect("has room");
    in_txn(&mut writer, &db, |access| delete_in(access, &t, 1)).expect("deletes");
    in_txn(&mut writer, &db, |access| {
        access.insert(&t, &tuple(&t, 2, "two")).map(|_| ())
    })
    .expect("inserts");
    let mut reader = db.begin(Isolation::RepeatableRead, false);
    let read = |access: &mut Access<'_>| get_in(access, &t, 1);
    assert_eq!(in_txn(&mut reader, &db, read).expect("reads"), None);
    block_on(db.commit(writer, &RunOptions::new())).expect("commits");
    assert_eq!(in_txn(&mut reader, &db, read).expect("reads"), None);
    assert_eq!(all(&db, &t).len(), 1);
}

/// A table that was emptied keeps no versions, so that nothing told of the change. Its reader
/// has given its lock back.
#[test]
fn who_read_a_table_that_was_emptied_does_not_commit() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    let other = make_table(&db, "other", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    let mut txn = db.begin(Isolation::Serializable, false);
    let savepoint = txn.savepoint(0).expect("has room");
    in_txn(&mut txn, &db, |access| get_in(access, &t, 1)).expect("reads");
    block_on(txn.rollback_to(&savepoint)).expect("goes back");
    let tables = vec![t.def.oid];
    let change = Change::Truncate {
        tables,
        restart_identity: false,
    };
    ddl(&db, change).expect("truncates");
    in_txn(&mut txn, &db, |access| {
        access.insert(&other, &tuple(&other, 1, "seen")).map(|_| ())
    })
    .expect("inserts");
    let told = block_on(db.commit(txn, &RunOptions::new()));
    assert_eq!(told.expect_err("it read what is gone").sqlstate(), "40001");
}

/// Rows were checked one by one as they were applied: the first one of a swap met the
/// second one's old key.
#[test]
fn rows_of_one_transaction_may_exchange_their_unique_keys() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    let t = with_index(&db, &t, "t_value", true);
    for id in 0..8 {
        insert_all(&db, &t, id, &format!("{id}"));
    }
    for (one, two) in [(0, 1), (3, 2), (4, 7)] {
        let mut txn = db.begin(Isolation::Serializable, false);
        for (id, value) in [
            (two, "free".into()),
            (one, format!("{two}")),
            (two, format!("{one}")),
        ] {
            in_txn(&mut txn, &db, |access| set_in(access, &t, id, &value)).expect("sets");
        }
        block_on(db.commit(txn, &RunOptions::new())).expect("no two have the same in the end");
        let rows = all(&db, &t);
        assert_eq!(rows[&one], format!("{two}"));
        assert_eq!(rows[&two], format!("{one}"));
    }
}

/// At the commit a new key was looked for only in the partitions that the transaction had
/// written: a row elsewhere with the same key was not met.
#[test]
fn a_unique_key_taken_meanwhile_in_another_partition_is_met_at_the_commit() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    let t = with_index(&db, &t, "t_value", true);
    for taken in 10..26 {
        insert_all(&db, &t, 1, "mine");
        let mut txn = db.begin(Isolation::ReadCommitted, false);
        in_txn(&mut txn, &db, |access| set_in(access, &t, 1, "wanted")).expect("sets");
        insert_all(&db, &t, taken, "wanted");
        let told = block_on(db.commit(txn, &RunOptions::new()));
        assert_eq!(told.expect_err("taken").sqlstate(), "23505", "{taken}");
        for id in [1, taken] {
            in_all(&db, |access| delete_in(access, &t, id)).expect("deletes");
        }
    }
}

/// A new index leads to what rows are now: an older snapshot that used it missed those
/// whose key had changed.
#[test]
fn an_old_snapshot_finds_its_rows_through_a_new_index() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, "m").expect("inserts");
    let mut old = db.begin(Isolation::RepeatableRead, false);
    in_txn(&mut old, &db, |access| get_in(access, &t, 1)).expect("reads");
    set(&db, &t, 1, "z").expect("sets");
    let t = with_index(&db, &t, "t_value", false);
    let key = |value: &str| {
        let mut key = Vec::new();
        let value = [thermocline_values::value::ValueRef::Text(value)];
        t.encode_index_key(1, &value, &mut key);
        key
    };
    let found = in_txn(&mut old, &db, |access| {
        let mut found = Vec::new();
        let (from, to) = (key("a"), key("p"));
        let bounds = (Bound::Included(&from[..]), Bound::Included(&to[..]));
        access.range(
            &t,
            1,
            bounds.0,
            bounds.1,
            Direction::Ascending,
            &mut |_, tuple| {
                found.push(text_of(&t, tuple));
                Ok(ControlFlow::Continue(()))
            },
        )?;
        Ok(found)
    });
    assert_eq!(found.expect("reads"), ["m"]);
}

/// When a batch of an index's entries was used up, a row that lay beside the table was
/// given before the next batch was looked at.
#[test]
fn a_range_is_in_order_however_many_rows_there_are_beside_changed_ones() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    let t = with_index(&db, &t, "t_value", false);
    for id in 0..600 {
        insert_lazily(&db, &t, id, &format!("{id:04}")).expect("inserts");
    }
    let mut txn = db.begin(Isolation::ReadCommitted, false);
    for id in [0, 300, 599] {
        in_txn(&mut txn, &db, |access| set_in(access, &t, id, "9999")).expect("sets");
    }
    for direction in [Direction::Ascending, Direction::Descending] {
        let found = in_txn(&mut txn, &db, |access| {
            let mut found = Vec::new();
            let (from, to) = (Bound::Unbounded, Bound::Unbounded);
            access.range(&t, 1, from, to, direction, &mut |_, tuple| {
                found.push(text_of(&t, tuple));
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(found)
        });
        let mut found = found.expect("reads");
        if direction == Direction::Descending {
            found.reverse();
        }
        assert_eq!(found.len(), 600);
        assert!(found.is_sorted());
    }
}

fn in_all<R>(db: &Database, body: impl FnMut(&mut Access<'_>) -> Result<R>) -> Result<R> {
    block_on(db.one_shot(&RunOptions::default(), Scope::All, body))
}

fn insert_all(db: &Database, t: &Table, id: i64, value: &str) {
    let tuple = tuple(t, id, value);
    in_all(db, |access| access.insert(t, &tuple).map(|_| ())).expect("inserts");
}

/// What the test does at a moment of a checkpoint.
#[derive(Default)]
struct Meanwhile(OnceLock<Box<dyn Fn(Moment) + Send + Sync>>);

impl Simulator for Meanwhile {
    fn pause(&self, moment: Moment) {
        if let Some(act) = self.0.get() {
            act(moment);
        }
    }
}

fn stepwise(device: &SimulatedDevice, block_bytes: u32) -> (Arc<Database>, Arc<Meanwhile>) {
    let meanwhile = Arc::new(Meanwhile::default());
    let shared: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(shared).partitions(2);
    config.background = false;
    config.simulator = Some(meanwhile.clone());
    config.memory_limit = thermocline_engine::MEMORY_LIMIT_MIN;
    config.log_segment_bytes = 1 << 20;
    config.policy = Some(Policy {
        block_bytes,
        ..Policy::default()
    });
    (Database::open(config).expect("opens"), meanwhile)
}

/// A DDL whose commit does not wait for the log.
fn lazy_ddl(db: &Arc<Database>, change: Change) {
    let options = RunOptions::default();
    let mut txn = db.begin(Isolation::Serializable, false);
    block_on(db.ddl(&mut txn, &options, change)).expect("defines");
    block_on(db.commit(txn, &options)).expect("commits");
}

fn lazy_table(db: &Arc<Database>, kind: IndexKind) -> Arc<Table> {
    lazy_ddl(db, Change::CreateTable(table_def(db, "t", kind)));
    fixture::table(db, "t")
}

/// A checkpoint's catalog is younger than the cut of its first partition. A table that was
/// made, changed and indexed between the two was replayed with an index of which the
/// records before it knew nothing.
#[test]
fn a_table_made_and_indexed_during_a_checkpoint_comes_back_with_its_index() {
    let device = SimulatedDevice::new();
    let (db, meanwhile) = stepwise(&device, 8 << 10);
    let acting = Arc::downgrade(&db);
    let once = std::sync::atomic::AtomicBool::new(false);
    let act = move |moment| {
        let due = moment == Moment::PartitionWritten;
        if !due || once.swap(true, std::sync::atomic::Ordering::Relaxed) {
            return;
        }
        let db = acting.upgrade().expect("it is open");
        lazy_ddl(
            &db,
            Change::CreateTable(table_def(&db, "t", IndexKind::Hash)),
        );
        let t = fixture::table(&db, "t");
        for id in 0..20 {
            insert_lazily(&db, &t, id, "old").expect("inserts");
            in_all(&db, |access| set_in(access, &t, id, "new")).expect("sets");
        }
        let table = t.def.oid;
        let index = index(&db, "t_value", false);
        lazy_ddl(&db, Change::CreateIndex { table, index });
        let t = fixture::table(&db, "t");
        in_all(&db, |access| set_in(access, &t, 3, "newest")).expect("sets");
    };
    meanwhile.0.set(Box::new(act)).ok().expect("set once");
    block_on(db.checkpoint()).expect("a checkpoint");
    while Steps::new(&db).flush_log() == thermocline_storage::log::Step::Flushed {}
    drop(db);
    device.crash_losing_all();
    let (db, _) = stepwise(&device, 8 << 10);
    let verified = db.verify().expect("verifies");
    assert_eq!(verified.problems, Vec::<String>::new());
    let t = fixture::table(&db, "t");
    assert_eq!(all(&db, &t)[&3], "newest");
}

/// The evictor made an empty table in the place of one that was dropped under its hands.
#[test]
fn a_table_dropped_while_its_rows_are_evicted_stays_dropped() {
    let device = SimulatedDevice::new();
    let (db, meanwhile) = stepwise(&device, 8 << 10);
    let t = lazy_table(&db, IndexKind::Hash);
    for id in 0..200 {
        insert_lazily(&db, &t, id, &"v".repeat(300)).expect("inserts");
    }
    let acting = Arc::downgrade(&db);
    let oid = t.def.oid;
    let once = std::sync::atomic::AtomicBool::new(false);
    let act = move |moment| {
        let due = moment == Moment::BlockWritten;
        if due && !once.swap(true, std::sync::atomic::Ordering::Relaxed) {
            lazy_ddl(&acting.upgrade().expect("open"), Change::DropTable(oid));
        }
    };
    meanwhile.0.set(Box::new(act)).ok().expect("set once");
    let steps = Steps::new(&db);
    steps.leave_memory(0);
    for _ in 0..8 {
        steps.evict().expect("evicts");
    }
    block_on(db.checkpoint()).expect("a checkpoint");
    assert_eq!(
        db.verify().expect("verifies").problems,
        Vec::<String>::new()
    );
}

/// A row that was larger than the policy's blocks never left memory, and a checkpoint went
/// round it for ever.
#[test]
fn a_row_larger_than_a_block_gets_a_block_of_its_own() {
    let device = SimulatedDevice::new();
    let (db, _) = stepwise(&device, 4 << 10);
    let t = lazy_table(&db, IndexKind::Hash);
    for id in 0..40 {
        insert_lazily(&db, &t, id, &"v".repeat(100 + id as usize * 500)).expect("inserts");
    }
    let steps = Steps::new(&db);
    steps.leave_memory(0);
    while steps.evict().expect("evicts") {}
    steps.leave_memory(32 << 20);
    block_on(db.checkpoint()).expect("a checkpoint");
    let verified = db.verify().expect("verifies");
    assert_eq!(verified.problems, Vec::<String>::new());
    assert_eq!(verified.cold_rows, 40);
    for id in (0..40).step_by(2) {
        in_all(&db, |access| delete_in(access, &t, id)).expect("deletes");
    }
    while steps.compact().expect("compacts") {}
    block_on(db.checkpoint()).expect("a checkpoint");
    drop(db);
    device.crash_losing_all();
    let (db, _) = stepwise(&device, 4 << 10);
    let t = fixture::table(&db, "t");
    assert_eq!(all(&db, &t).len(), 20);
    let gone = in_all(&db, |access| get_in(access, &t, 2));
    assert!(matches!(gone, Ok(None) | Err(Error::StalePlan)));
}

/// A rollback that met a read error was over with its rows still there: who wanted their
/// keys waited for a transaction that had ended.
#[test]
fn a_rollback_that_cannot_read_its_rows_is_tried_again() {
    let device = SimulatedDevice::new();
    let (db, _) = stepwise(&device, 8 << 10);
    let t = lazy_table(&db, IndexKind::BTree);
    let lazy = RunOptions::default();
    let mut txn = db.begin(Isolation::Serializable, false);
    for id in 0..40 {
        let tuple = tuple(&t, id, &"v".repeat(900));
        let inserted = db.in_transaction(&mut txn, &lazy, Scope::All, |access| {
            access.insert(&t, &tuple).map(|_| ())
        });
        block_on(inserted).expect("inserts");
    }
    let steps = Steps::new(&db);
    steps.leave_memory(0);
    while steps.evict().expect("evicts") {}
    steps.leave_memory(32 << 20);
    device.fail_next(Operation::Read, std::io::ErrorKind::Other);
    block_on(db.rollback(txn));
    let told = db.take_problems();
    assert!(told.iter().any(|what| what.contains("blocks")), "{told:?}");

    let mut next = pin!(db.one_shot(&lazy, Scope::All, |access| {
        access.insert(&t, &tuple(&t, 7, "next")).map(|_| ())
    }));
    let mut context = Context::from_waker(Waker::noop());
    assert!(next.as_mut().poll(&mut context).is_pending());
    steps.finish_rollbacks();
    assert!(matches!(
        next.as_mut().poll(&mut context),
        Poll::Ready(Ok(()))
    ));
    assert_eq!(all(&db, &t).len(), 1);
    assert_eq!(
        db.verify().expect("verifies").problems,
        Vec::<String>::new()
    );
}

/// Names were looked for in the catalog only, not among the table's own.
#[test]
fn a_table_is_not_made_with_two_indexes_of_one_name() {
    let (_device, db) = simulated(LIMIT);
    for (second, refused) in [("t_pkey", true), ("t", true), ("t_value", false)] {
        let mut def = table_def(&db, "t", IndexKind::Hash);
        def.indexes.push(index(&db, second, false));
        match ddl(&db, Change::CreateTable(def)) {
            Ok(()) => assert!(!refused, "{second}"),
            Err(error) => assert!(refused && error.sqlstate() == "42P07", "{second}: {error}"),
        }
    }
    assert_eq!(fixture::table(&db, "t").def.indexes.len(), 2);
}
