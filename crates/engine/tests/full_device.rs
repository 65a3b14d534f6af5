//! A device that is full to the last byte: rows can be deleted and tables dropped, a checkpoint
//! gives their space back, and what was refused before is taken again; after a crash, too.

mod fixture;

use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, OpenMode, SimulatedDevice};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{Change, Config, Database, Isolation, RunOptions, block_on};

const SEGMENT_BYTES: u64 = 1 << 20;
const RESERVE_BYTES: u64 = 4 << 20;

fn open_it(device: &SimulatedDevice) -> Arc<Database> {
    open_with(device, RESERVE_BYTES)
}

fn open_with(device: &SimulatedDevice, reserve_bytes: u64) -> Arc<Database> {
    let mut config = Config::new(Arc::new(device.clone()))
        .memory_limit(64 << 30)
        .partitions(2);
    config.background = false;
    config.log_segment_bytes = SEGMENT_BYTES;
    config.disk_reserve_bytes = reserve_bytes;
    Database::open(config).expect("opens")
}

fn text(id: i64) -> String {
    format!("{id}:{}", "z".repeat(1000))
}

/// Leaves so many bytes on the device.
fn leave(device: &SimulatedDevice, bytes: u64) {
    device.set_capacity_bytes(None);
    device.set_capacity_bytes(Some(1 << 40));
    let used = (1 << 40) - device.free_bytes().expect("says");
    device.set_capacity_bytes(Some(used + bytes));
}

/// Inserts, each durable, until it is refused: the first row that is not there.
fn fill(db: &Arc<Database>, name: &str, from: i64) -> i64 {
    let t = table(db, name);
    let mut id = from;
    loop {
        match insert(db, &t, id, &text(id)) {
            Ok(()) => id += 1,
            Err(error) => {
                assert_eq!(error.sqlstate(), "53100", "{error}");
                return id;
            }
        }
        assert!(id < from + 100_000, "nothing is refused");
    }
}

/// Two tables with rows on the device and in the log, and no room for more.
fn full() -> (SimulatedDevice, Arc<Database>, i64) {
    let device = SimulatedDevice::new();
    let db = open_it(&device);
    for name in ["kept", "going"] {
        let t = make_table(&db, name, IndexKind::Hash);
        for id in 0..1500 {
            insert_lazily(&db, &t, id, &text(id)).expect("inserts");
        }
    }
    block_on(db.checkpoint()).expect("checkpoints");
    leave(&device, 1 << 20);
    let end = fill(&db, "kept", 1500);
    leave(&device, 0);
    assert_eq!(fill(&db, "kept", end), end, "nothing more is taken");
    (device, db, end)
}

/// Inserts work again, and all that was acknowledged is there, after a crash as well.
fn goes_on(device: &SimulatedDevice, db: Arc<Database>, end: i64, going: usize) {
    block_on(db.checkpoint()).expect("a checkpoint has room");
    // The blocks of the checkpoint before are free after the next.
    block_on(db.checkpoint()).expect("a checkpoint has room");
    let t = table(&db, "kept");
    for id in end..end + 200 {
        insert(&db, &t, id, &text(id)).expect("inserts go on");
    }
    drop((t, db));
    device.crash(5);
    let db = open_it(device);
    let rows = all(&db, &table(&db, "kept"));
    assert_eq!(rows.len() as i64, end + 200);
    assert!(rows.iter().all(|(id, value)| *value == text(*id)));
    if db.catalog().table_by_name("public", "going").is_some() {
        assert_eq!(all(&db, &table(&db, "going")).len(), going);
    } else {
        assert_eq!(going, 0);
    }
}

#[test]
fn a_table_that_is_dropped_makes_room() {
    let (device, db, end) = full();
    let oid = table(&db, "going").def.oid;
    ddl(&db, Change::DropTable(oid)).expect("drops");
    goes_on(&device, db, end, 0);
}

#[test]
fn a_table_that_is_truncated_makes_room() {
    let (device, db, end) = full();
    let oid = table(&db, "going").def.oid;
    let change = Change::Truncate {
        tables: vec![oid],
        restart_identity: false,
    };
    ddl(&db, change).expect("truncates");
    goes_on(&device, db, end, 0);
}

#[test]
fn rows_that_are_deleted_make_room() {
    let (device, db, end) = full();
    let t = table(&db, "going");
    for first in (0..1400).step_by(200) {
        let mut txn = db.begin(Isolation::Serializable, false);
        for id in first..first + 200 {
            let deleted = in_txn(&mut txn, &db, |access| delete_in(access, &t, id));
            assert!(deleted.expect("deletes"));
        }
        block_on(db.commit(txn, &RunOptions::new())).expect("commits");
        delete(&db, &t, 1499 - first / 200).expect("deletes alone");
        // As the background does when it is told.
        block_on(db.checkpoint()).expect("a checkpoint has room");
    }
    goes_on(&device, db, end, 93);
}

#[test]
fn what_takes_space_is_refused_and_its_rollback_is_not() {
    let (device, db, end) = full();
    let t = table(&db, "going");
    let t = &t;
    for id in 0..20 {
        assert_eq!(
            set(&db, t, id, &text(id)).expect_err("full").sqlstate(),
            "53100"
        );
    }
    let mut txn = db.begin(Isolation::Serializable, false);
    let row = tuple(t, 9_999, &text(9_999));
    let refused = in_txn(&mut txn, &db, |access| access.insert(t, &row).map(drop));
    assert_eq!(refused.expect_err("full").sqlstate(), "53100");
    block_on(db.rollback(txn));
    goes_on(&device, db, end, 1500);
}

#[test]
fn an_index_is_dropped_and_made_again_later() {
    let device = SimulatedDevice::new();
    let db = open_it(&device);
    let t = make_table(&db, "kept", IndexKind::Hash);
    for id in 0..3000 {
        insert_lazily(&db, &t, id, &text(id)).expect("inserts");
    }
    let change = Change::CreateIndex {
        table: t.def.oid,
        index: value_index(&db, IndexKind::BTree, false),
    };
    ddl(&db, change).expect("the index is made");
    drop(t);
    block_on(db.checkpoint()).expect("checkpoints");
    leave(&device, 1 << 20);
    let end = fill(&db, "kept", 3000);
    leave(&device, 0);
    let t = table(&db, "kept");
    let change = Change::DropIndex {
        table: t.def.oid,
        index: t.def.indexes[1].oid,
    };
    ddl(&db, change).expect("drops");
    assert_eq!(table(&db, "kept").def.indexes.len(), 1);
    goes_on(&device, db, end, 0);
}

#[test]
fn room_is_made_after_a_crash_of_a_full_device() {
    let (device, db, end) = full();
    drop(db);
    device.crash(9);
    let db = open_it(&device);
    let oid = table(&db, "going").def.oid;
    ddl(&db, Change::DropTable(oid)).expect("drops");
    goes_on(&device, db, end, 0);
}

#[test]
fn what_is_kept_stays_though_inserts_and_checkpoints_go_on() {
    let (device, db, mut end) = full();
    for _ in 0..30 {
        // It may find no room for all that was inserted, and then leaves what is there.
        let _ = block_on(db.checkpoint());
        end = fill(&db, "kept", end);
    }
    block_on(db.checkpoint()).expect("a checkpoint has room");
    let oid = table(&db, "going").def.oid;
    ddl(&db, Change::DropTable(oid)).expect("drops");
    goes_on(&device, db, end, 0);
}

#[test]
fn what_others_take_of_a_full_device_is_not_missed() {
    let (device, db, mut end) = full();
    for _ in 0..10 {
        let _ = block_on(db.checkpoint());
        // Another program writes until nothing is free.
        leave(&device, 0);
        end = fill(&db, "kept", end);
    }
    let t = table(&db, "going");
    for id in 0..100 {
        assert!(delete(&db, &t, id).expect("deletes"));
    }
    leave(&device, 0);
    let oid = t.def.oid;
    drop(t);
    ddl(&db, Change::DropTable(oid)).expect("drops");
    goes_on(&device, db, end, 0);
}

#[test]
fn the_reserve_is_as_large_as_the_setting_says() {
    let device = SimulatedDevice::new();
    let held = || {
        let file = device.open("reserve", OpenMode::Existing);
        file.map_or(0, |file| file.len().expect("says"))
    };
    for bytes in [RESERVE_BYTES, 2 * RESERVE_BYTES, RESERVE_BYTES / 2, 0] {
        let db = open_with(&device, bytes);
        assert_eq!(held(), bytes);
        db.close().expect("closes");
        assert_eq!(held(), bytes);
    }
}

#[test]
fn a_record_larger_than_the_reserve_is_refused_and_keeps_no_other_out() {
    for (rows, fits) in [(1000, true), (6000, false)] {
        let device = SimulatedDevice::new();
        let db = open_it(&device);
        let t = make_table(&db, "going", IndexKind::Hash);
        for id in 0..rows {
            insert_lazily(&db, &t, id, &text(id)).expect("inserts");
        }
        let change = Change::CreateIndex {
            table: t.def.oid,
            index: value_index(&db, IndexKind::BTree, false),
        };
        ddl(&db, change).expect("the index is made");
        drop(t);
        make_table(&db, "kept", IndexKind::Hash);
        block_on(db.checkpoint()).expect("checkpoints");
        leave(&device, 1 << 20);
        let end = fill(&db, "kept", 0);
        leave(&device, 0);
        let t = table(&db, "going");
        let mut txn = db.begin(Isolation::Serializable, false);
        for id in 0..rows - 1 {
            let deleted = in_txn(&mut txn, &db, |access| delete_in(access, &t, id));
            assert!(deleted.expect("deletes"));
        }
        let committed = block_on(db.commit(txn, &RunOptions::new()));
        let sqlstate = committed.err().map(|error| error.sqlstate());
        assert!(
            sqlstate.is_none() || sqlstate == Some("53100"),
            "{sqlstate:?}"
        );
        println!("{rows} rows, {fits}: {sqlstate:?}");
        assert!(delete(&db, &t, rows - 1).expect("one row is deleted"));
        let oid = t.def.oid;
        drop(t);
        ddl(&db, Change::DropTable(oid)).expect("drops");
        goes_on(&device, db, end, 0);
    }
}
