//! Before-images for open snapshots have a share of memory. Beyond it the oldest snapshot ends:
//! whoever reads by it gets 72000, and whoever changes rows notices nothing.

mod fixture;

use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::{IndexKind, Table};
use thermocline_engine::steps::Steps;
use thermocline_engine::{Config, Database, Isolation, RunOptions, Transaction, block_on};

const SHARE: u64 = 1 << 20;
const ROWS: i64 = 500;

fn opened() -> (Arc<Database>, Arc<Table>) {
    let device: Arc<dyn Device> = Arc::new(SimulatedDevice::new());
    let mut config = Config::new(device).memory_limit(64 << 30).partitions(4);
    config.background = false;
    config.versions_bytes_max = Some(SHARE);
    let db = Database::open(config).expect("opens");
    let t = make_table(&db, "t", IndexKind::BTree);
    for id in 0..ROWS {
        insert_lazily(&db, &t, id, "as it was").expect("inserts");
    }
    (db, t)
}

/// Changes rows until before-images have passed their share several times, with the evictor
/// at work, and says what they took at most.
fn update_much(db: &Arc<Database>, t: &Arc<Table>) -> u64 {
    let steps = Steps::new(db);
    let mut most = 0;
    for round in 0..20 {
        let value = format!("{round}: {}", "changed ".repeat(40));
        for id in 100..ROWS {
            // Never refused, whoever reads what was there before.
            assert!(set(db, t, id, &value).expect("updates"));
        }
        steps.evict().expect("evicts");
        most = most.max(db.memory_report().versions);
    }
    most
}

fn begun(db: &Arc<Database>, t: &Table, isolation: Isolation) -> Transaction {
    let mut txn = db.begin(isolation, false);
    assert!(
        in_txn(&mut txn, db, |access| get_in(access, t, 1))
            .expect("reads")
            .is_some()
    );
    txn
}

fn sqlstate<R>(result: Result<R, thermocline_engine::Error>) -> &'static str {
    match result {
        Ok(_) => "00000",
        Err(error) => error.sqlstate(),
    }
}

#[test]
fn the_oldest_snapshot_ends_and_all_who_read_by_it_are_told() {
    let (db, t) = opened();
    let mut repeatable = begun(&db, &t, Isolation::RepeatableRead);
    let mut serializable = begun(&db, &t, Isolation::Serializable);
    in_txn(&mut serializable, &db, |access| {
        set_in(access, &t, 2, "mine")
    })
    .expect("updates");
    let mut validated = begun(&db, &t, Isolation::Serializable);
    in_txn(&mut validated, &db, |access| set_in(access, &t, 3, "mine")).expect("updates");
    let only_read = begun(&db, &t, Isolation::Serializable);
    let mut committed = begun(&db, &t, Isolation::ReadCommitted);
    let analytical = db.snapshot();
    let beside = repeatable.snapshot().expect("shares the snapshot");

    let most = update_much(&db, &t);
    // What one round makes may come to the share before the evictor looks.
    assert!(most < 2 * SHARE, "before-images took {most} bytes");
    assert!(db.counters().snapshots_ended > 0);

    let read = |txn: &mut Transaction| sqlstate(in_txn(txn, &db, |a| get_in(a, &t, 1)));
    assert_eq!(read(&mut repeatable), "72000");
    assert_eq!(read(&mut repeatable), "72000", "and again");
    assert_eq!(read(&mut serializable), "72000");
    assert_eq!(sqlstate(repeatable.snapshot()), "72000");
    assert_eq!(
        sqlstate(block_on(db.commit(validated, &RunOptions::new()))),
        "72000"
    );
    assert_eq!(
        sqlstate(block_on(db.commit(only_read, &RunOptions::new()))),
        "00000"
    );
    assert_eq!(
        read(&mut committed),
        "00000",
        "it holds no snapshot between statements"
    );
    for snapshot in [&analytical, &beside] {
        let mut scan = snapshot.scan(&t, 0);
        assert_eq!(sqlstate(block_on(scan.next_chunk(&mut |_, _| {}))), "72000");
    }
    drop((repeatable, serializable, analytical, beside, committed));
    assert_eq!(db.memory_report().snapshots, 0);
    // What they had changed is as if they had not been.
    assert_eq!(
        get(&db, &t, 2).expect("reads").as_deref(),
        Some("as it was")
    );
    assert_eq!(
        get(&db, &t, 3).expect("reads").as_deref(),
        Some("as it was")
    );
    Steps::new(&db).collect_versions();
    assert_eq!(db.memory_report().versions, 0);
}

#[test]
fn a_later_snapshot_goes_on_while_the_oldest_ends() {
    let (db, t) = opened();
    let mut old = begun(&db, &t, Isolation::RepeatableRead);
    set(&db, &t, 0, "between").expect("updates");
    let most_of_the_share = "x".repeat(SHARE as usize * 9 / 10);
    set(&db, &t, 1, &most_of_the_share).expect("updates");
    set(&db, &t, 1, "short").expect("updates");
    let mut new = begun(&db, &t, Isolation::RepeatableRead);
    for id in 10..400 {
        set(&db, &t, id, &"y".repeat(400)).expect("updates");
    }
    Steps::new(&db).evict().expect("evicts");
    let seen = |txn: &mut Transaction, id| in_txn(txn, &db, |access| get_in(access, &t, id));
    assert_eq!(sqlstate(seen(&mut old, 0)), "72000");
    assert_eq!(
        seen(&mut new, 0).expect("reads").as_deref(),
        Some("between")
    );
    assert_eq!(
        seen(&mut new, 10).expect("reads").as_deref(),
        Some("as it was")
    );
    assert_eq!(db.counters().snapshots_ended, 1);
}

#[test]
fn a_savepoint_is_rolled_back_to_after_the_snapshot_has_ended() {
    let (db, t) = opened();
    let mut txn = begun(&db, &t, Isolation::RepeatableRead);
    let mine = tuple(&t, 9000, "before the savepoint");
    in_txn(&mut txn, &db, |access| access.insert(&t, &mine).map(|_| ())).expect("inserts");
    let savepoint = txn.savepoint(0).expect("has room");
    let later = tuple(&t, 9001, "after it");
    in_txn(&mut txn, &db, |access| {
        access.insert(&t, &later).map(|_| ())
    })
    .expect("inserts");
    update_much(&db, &t);
    block_on(txn.rollback_to(&savepoint)).expect("its own rows need no snapshot");
    assert_eq!(
        sqlstate(in_txn(&mut txn, &db, |a| get_in(a, &t, 1))),
        "72000"
    );
    drop(txn);
    assert_eq!(get(&db, &t, 9000).expect("reads"), None);
    assert_eq!(get(&db, &t, 9001).expect("reads"), None);
    assert_eq!(all(&db, &t).len(), ROWS as usize);
}
