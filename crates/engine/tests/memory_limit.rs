//! `memory_limit` changed while writers run, and memory given back after deletes.
//! The limit is the process's, so this test has a process of its own.

mod fixture;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fixture::*;
use thermocline_device::{Device, FileDevice, IoEngine};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{Config, Database};

const MIB: u64 = 1 << 20;

/// Waits until the process is this small; how long that took.
fn below(bytes: u64) -> Result<Duration, u64> {
    let begun = Instant::now();
    loop {
        let resident = thermocline_device::resident_bytes().expect("the kernel says");
        if resident <= bytes {
            return Ok(begun.elapsed());
        }
        if begun.elapsed() > Duration::from_secs(10) {
            return Err(resident);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn text(id: i64) -> String {
    format!("{id}:{}", "y".repeat(1000))
}

#[test]
fn the_process_follows_a_limit_that_is_halved_and_shrinks_after_deletes() {
    let directory = tempfile::tempdir().expect("a directory");
    let device = FileDevice::open(directory.path(), IoEngine::Auto).expect("a device");
    let device: Arc<dyn Device> = Arc::new(device);
    let config = Config::new(device).partitions(4).memory_limit(256 * MIB);
    let db = Database::open(config).expect("opens");
    let t = make_table(&db, "t", IndexKind::Hash);
    let loaded = 190_000i64;
    for id in 0..loaded {
        insert_lazily(&db, &t, id, &text(id)).expect("inserts");
    }
    let resident = thermocline_device::resident_bytes().expect("the kernel says");
    assert!(resident > 180 * MIB, "only {} MiB are used", resident / MIB);

    // Halved under two writers: they may wait, they must not fail.
    let stop = AtomicBool::new(false);
    let written = AtomicU64::new(0);
    let fell = std::thread::scope(|scope| {
        for writer in 0..2 {
            let (db, t, stop, written) = (&db, &t, &stop, &written);
            scope.spawn(move || {
                let mut id = loaded + writer;
                while !stop.load(Ordering::Relaxed) {
                    insert_lazily(db, t, id, &text(id)).expect("a writer waits, it does not fail");
                    assert!(set(db, t, id % loaded, &text(id % loaded)).expect("updates"));
                    id += 2;
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_millis(200));
        db.set_memory_limit(128 * MIB);
        let fell = below(128 * MIB);
        // It stays there, and the writers go on, be the disk as busy as it may.
        let before = written.load(Ordering::Relaxed);
        let begun = Instant::now();
        let mut highest = 0;
        let watched = |time: Duration| {
            let stuck = written.load(Ordering::Relaxed) == before;
            time >= Duration::from_secs(if stuck { 30 } else { 2 })
        };
        while !watched(begun.elapsed()) {
            let resident = thermocline_device::resident_bytes().expect("the kernel says");
            highest = highest.max(resident);
            std::thread::sleep(Duration::from_millis(2));
        }
        stop.store(true, Ordering::Relaxed);
        assert!(
            written.load(Ordering::Relaxed) > before,
            "the writers are stuck"
        );
        assert!(highest <= 128 * MIB, "{} MiB after the fall", highest / MIB);
        fell
    });
    match fell {
        Ok(took) => println!("below the halved limit after {took:?}"),
        Err(resident) => panic!("still {} MiB after 10 s", resident / MIB),
    }
    let report = db.memory_report();
    assert_eq!(report.limit, 128 * MIB);
    // One to six bytes, and an entry of a hash index that is at most half empty.
    assert!((8..=40).contains(&report.per_cold_tuple), "{report:?}");
    for id in (0..loaded).step_by(997) {
        assert_eq!(get(&db, &t, id).expect("reads"), Some(text(id)));
    }

    // Room again, memory filled, nine rows of ten deleted.
    db.set_memory_limit(1024 * MIB);
    let many = make_table(&db, "many", IndexKind::Hash);
    let empty = thermocline_device::resident_bytes().expect("the kernel says");
    for id in 0..150_000 {
        insert_lazily(&db, &many, id, &text(id)).expect("inserts");
    }
    let full = thermocline_device::resident_bytes().expect("the kernel says");
    assert!(
        full > empty + 120 * MIB,
        "{} MiB more",
        (full - empty) / MIB
    );
    for id in (0..150_000).filter(|id| id % 10 != 0) {
        delete_lazily(&db, &many, id);
    }
    // A tenth of the tuples, and the directory and index of all of them.
    let wanted = empty + (full - empty) * 3 / 10;
    match below(wanted) {
        Ok(took) => println!(
            "{} of {} MiB given back after {took:?}",
            (full - wanted) / MIB,
            (full - empty) / MIB
        ),
        Err(resident) => panic!(
            "{} MiB when empty, {} when full, still {} after 10 s",
            empty / MIB,
            full / MIB,
            resident / MIB
        ),
    }
    for id in 0..2000 {
        let expected = (id % 10 == 0).then(|| text(id));
        assert_eq!(get(&db, &many, id).expect("reads"), expected, "row {id}");
    }
    db.close().expect("closes");
}

fn delete_lazily(db: &Database, table: &thermocline_engine::Table, id: i64) {
    use thermocline_engine::{RunOptions, block_on};
    let options = RunOptions::default();
    let deleted = block_on(db.one_shot(&options, scope(table, id), |access| {
        delete_in(access, table, id)
    }));
    assert!(deleted.expect("deletes"), "row {id} was there");
}
