//! A full device, one whose syncs fail, one that does not answer: what statements get, that
//! memory stays below its limit, and that it heals where it can.
//! One test after the other: the memory limit is the process's.

mod fixture;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fixture::faulty::faulty;
use fixture::*;
use thermocline_device::{Device, FileDevice, IoEngine, SimulatedDevice, resident_bytes};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{Config, Database, Error, RunOptions, Table, block_on};

const LIMIT: u64 = 96 << 20;
const PATIENCE: Duration = Duration::from_secs(30);

fn text(id: i64) -> String {
    format!("{id}:{}", "y".repeat(1000))
}

fn open_on(device: Arc<dyn Device>, limit: u64) -> Arc<Database> {
    let mut config = Config::new(device).memory_limit(limit).partitions(4);
    config.log_segment_bytes = 1 << 20;
    Database::open(config).expect("opens")
}

type Insert = fn(&Database, &Table, i64, &str) -> thermocline_engine::Result<()>;

/// Inserts until the database refuses; what it said, and the first row that is not there.
fn insert_until_refused(insert: Insert, db: &Database, t: &Table, from: i64) -> (Error, i64) {
    let begin = Instant::now();
    let mut id = from;
    loop {
        match insert(db, t, id, &text(id)) {
            Ok(()) => id += 1,
            Err(error) => return (error, id),
        }
        assert!(begin.elapsed() < PATIENCE, "nothing is refused");
    }
}

fn insert_until_taken(db: &Database, t: &Table, id: i64) {
    until_healed(|| insert(db, t, id, &text(id)));
}

/// Tries again while the device is taken for full: the evictor looks now and then.
fn until_healed<R>(mut attempt: impl FnMut() -> Result<R, Error>) -> R {
    let begin = Instant::now();
    loop {
        match attempt() {
            Ok(result) => return result,
            Err(error) => {
                assert_eq!(error.sqlstate(), "53100", "{error}");
                assert!(begin.elapsed() < PATIENCE, "it does not heal: {error}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

#[test]
fn a_faulty_device() {
    blocks_that_have_no_room();
    a_log_that_has_no_room();
    blocks_that_cannot_be_synced();
    a_log_that_cannot_be_synced();
    reads_that_get_no_answer();
}

/// The log has all the room it wants; what should leave memory has none.
fn blocks_that_have_no_room() {
    let directory = tempfile::tempdir().expect("a directory");
    let device = FileDevice::open(directory.path(), IoEngine::Auto).expect("a device");
    let (device, faults) = faulty(device);
    let mut config = Config::new(device).memory_limit(LIMIT).partitions(4);
    // One segment for everything, made before the device is full.
    config.log_segment_bytes = 512 << 20;
    config.checkpoint_log_bytes = 8 << 30;
    let db = Database::open(config).expect("opens");
    let t = make_table(&db, "t", IndexKind::Hash);
    let first = 40_000;
    for id in 0..first {
        insert_lazily(&db, &t, id, &text(id)).expect("inserts");
    }
    faults.full.store(true, Ordering::SeqCst);
    let (error, end) = insert_until_refused(insert_lazily, &db, &t, first);
    assert_eq!(error.sqlstate(), "53100", "{error}");
    assert!(error.hint().is_some());
    for id in (0..end).step_by(499) {
        assert_eq!(get(&db, &t, id).expect("reads go on"), Some(text(id)));
    }
    assert_eq!(get(&db, &t, end).expect("reads"), None, "it was undone");
    // Nor is there room for what is no row. Clean tuples that leave don't change that.
    for id in (0..end).step_by(997) {
        let _ = get(&db, &t, id).expect("reads go on");
        let error = block_on(db.make_room(LIMIT / 4)).expect_err("nothing can leave");
        assert_eq!(error.sqlstate(), "53100", "{error}");
    }
    assert!(!db.try_reserve_memory(LIMIT / 4));
    let refused = block_on(db.checkpoint()).expect_err("there is no room for it");
    assert_eq!(refused.sqlstate(), "53100", "{refused}");
    let resident = resident_bytes().expect("can be read");
    assert!(resident < LIMIT, "{resident}");
    assert!(
        db.take_problems().iter().any(|p| p.contains("no space")),
        "somebody can hear of it"
    );
    faults.full.store(false, Ordering::SeqCst);
    insert_until_taken(&db, &t, end);
    // One row may have had room before the evictor found that the device has.
    drop(until_healed(|| block_on(db.make_room(LIMIT / 4))));
    block_on(db.checkpoint()).expect("there is room again");
    assert_eq!(all(&db, &t).len() as i64, end + 1);
    db.close().expect("closes");
}

fn a_log_that_has_no_room() {
    let (device, faults) = faulty(SimulatedDevice::new());
    let db = open_on(device.clone(), 64 << 30);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 0, &text(0)).expect("inserts");
    faults.full.store(true, Ordering::SeqCst);
    // Each waits for the disk: what is only promised to it soon is lost with the process.
    let (error, end) = insert_until_refused(insert, &db, &t, 1);
    assert_eq!(error.sqlstate(), "53100", "{error}");
    assert_eq!(get(&db, &t, 0).expect("reads go on"), Some(text(0)));
    assert_eq!(get(&db, &t, end).expect("reads"), None);
    assert!(db.stopped_because().is_none(), "it is no failure");
    // It can be stopped and started while the device is full.
    let _ = db.close();
    drop(db);
    let db = open_on(device, 64 << 30);
    let t = table(&db, "t");
    assert_eq!(all(&db, &t).len() as i64, end);
    faults.full.store(false, Ordering::SeqCst);
    insert_until_taken(&db, &t, end);
    db.close().expect("closes");
}

/// Nothing is known of what was written: no write is taken any more.
fn stopped(db: &Arc<Database>, t: &Table, rows: i64) {
    let begin = Instant::now();
    while db.stopped_because().is_none() {
        assert!(begin.elapsed() < PATIENCE, "it goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
    let error = insert(db, t, rows, "more").expect_err("it has stopped");
    assert_eq!(error.sqlstate(), "58030", "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("restart")));
    assert!(db.close().is_err(), "no checkpoint is made of this");
}

fn with_fifty_rows(device: &Arc<dyn Device>) -> (Arc<Database>, Arc<Table>) {
    let db = open_on(device.clone(), 64 << 30);
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..50 {
        insert(&db, &t, id, &text(id)).expect("inserts");
    }
    (db, t)
}

fn blocks_that_cannot_be_synced() {
    let (device, faults) = faulty(SimulatedDevice::new());
    let (db, t) = with_fifty_rows(&device);
    *faults.failing_syncs.lock() = Some("blocks".into());
    let error = block_on(db.checkpoint()).expect_err("the sync fails");
    assert_eq!(error.sqlstate(), "58030", "{error}");
    // Nobody waits for rows that can't leave memory any more.
    let error = block_on(db.make_room(64 << 30)).expect_err("nothing can leave");
    assert_eq!(error.sqlstate(), "58030", "{error}");
    // The device says that it is well again: what is lost stays lost.
    *faults.failing_syncs.lock() = None;
    stopped(&db, &t, 50);
    drop(db);
    let db = open_on(device, 64 << 30);
    assert_eq!(all(&db, &table(&db, "t")).len(), 50);
    db.close().expect("closes");
}

fn a_log_that_cannot_be_synced() {
    let (device, faults) = faulty(SimulatedDevice::new());
    let (db, t) = with_fifty_rows(&device);
    *faults.failing_syncs.lock() = Some("log".into());
    let error = insert(&db, &t, 50, "more").expect_err("the sync fails");
    assert_eq!(error.sqlstate(), "58030", "{error}");
    *faults.failing_syncs.lock() = None;
    stopped(&db, &t, 51);
    drop(db);
    let db = open_on(device, 64 << 30);
    // The row whose sync failed may be there: it was neither promised nor taken back.
    let rows = all(&db, &table(&db, "t")).len();
    assert!((50..=51).contains(&rows), "{rows}");
    db.close().expect("closes");
}

fn reads_that_get_no_answer() {
    let (device, faults) = faulty(SimulatedDevice::new());
    let (db, _) = with_fifty_rows(&device);
    db.close().expect("closes");
    drop(db);
    // No warming: all rows are cold, and stay so.
    let mut config = Config::new(device).memory_limit(64 << 30).partitions(4);
    faults.stalled.store(true, Ordering::SeqCst);
    config.log_segment_bytes = 1 << 20;
    let db = Database::open(config).expect("opens");
    let t = table(&db, "t");
    let read = |deadline: Duration| {
        let options = RunOptions {
            deadline: Some(db.now() + deadline),
            ..RunOptions::new()
        };
        let key_scope = scope(&t, 7);
        block_on(db.one_shot(&options, key_scope, |access| get_in(access, &t, 7)))
    };
    let begin = Instant::now();
    for _ in 0..20 {
        let error = read(Duration::from_millis(20)).expect_err("nobody answers");
        assert_eq!(error.sqlstate(), "57014", "{error}");
    }
    assert!(begin.elapsed() < PATIENCE);
    // One read for all who want the tuple: waiting takes no memory.
    assert!(faults.held() <= 51, "{}", faults.held());
    faults.let_go();
    assert_eq!(read(PATIENCE).expect("reads"), Some(text(7)));
    db.close().expect("closes");
}
