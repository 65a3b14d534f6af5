//! Several times more data than memory on a real device. The limit is the
//! process's, so this test has a process of its own.

mod fixture;

use std::process::Command;
use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, FileDevice, IoEngine};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{Config, Database, Isolation, RunOptions, Scope, Table, TryGet, block_on};

/// Set for the run with an ordered primary key.
const ORDERED: &str = "BEYOND_MEMORY_ORDERED";

#[test]
fn data_beyond_the_limit_is_written_read_changed_and_recovered() {
    if std::env::var_os(ORDERED).is_some() {
        return goes_beyond_the_limit(IndexKind::BTree);
    }
    goes_beyond_the_limit(IndexKind::Hash);
    // The limit is the process's: the second database needs one of its own.
    let status = Command::new(std::env::current_exe().expect("this program"))
        .env(ORDERED, "1")
        .status()
        .expect("runs");
    assert!(status.success(), "with an ordered primary key");
}

/// A statement gets a quarter of the limit for what it has fetched; others go on.
fn refuses_too_many_at_once(db: &Arc<Database>, t: &Table, rows: i64) {
    let sum = |ids: std::ops::Range<i64>| {
        block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
            ids.clone().try_fold(0, |found, id| {
                get_in(access, t, id).map(|row| found + usize::from(row.is_some()))
            })
        }))
    };
    let refused = sum(0..60_000).expect_err("60 MB under a limit of 96");
    assert_eq!(refused.sqlstate(), "53200", "{refused}");
    assert_eq!(sum(rows - 15_000..rows).expect("15 MB"), 15_000);
    let keys: Vec<Vec<u8>> = (0..60_000).map(|id| key(t, id)).collect();
    let mut found = 0;
    block_on(db.get_many(&RunOptions::new(), t, 0, &keys, |_, _| found += 1)).expect("in parts");
    assert_eq!(found, keys.len());
}

fn goes_beyond_the_limit(kind: IndexKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let open = || {
        let device = FileDevice::open(directory.path(), IoEngine::Auto).expect("a device");
        let device: Arc<dyn Device> = Arc::new(device);
        let config = Config::new(device).partitions(4).memory_limit(96 << 20);
        Database::open(config).expect("opens")
    };
    let rows = 250_000i64;
    let text = |id: i64, round: u32| format!("{id}:{round}:{}", "y".repeat(1000));
    let db = open();
    let t = make_table(&db, "t", kind);
    for id in 0..rows {
        insert_lazily(&db, &t, id, &text(id, 0)).expect("inserts");
    }
    let counters = db.counters();
    assert!(counters.evictions > 50_000, "{counters:?}");
    for id in (0..rows).step_by(5003) {
        assert_eq!(
            get(&db, &t, id).expect("reads"),
            Some(text(id, 0)),
            "row {id}"
        );
        assert!(set(&db, &t, id, &text(id, 1)).expect("updates"));
    }
    assert!(db.counters().misses > 0);
    let missing: Vec<i64> = (0..100).map(|i| i * 2477 % rows).collect();
    let found = block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
        let mut found = 0;
        for id in &missing {
            found += usize::from(get_in(access, &t, *id)?.is_some());
        }
        Ok(found)
    }))
    .expect("reads");
    assert_eq!(found, missing.len());
    // One by one without a run, as far as that goes: each like a statement's.
    let mut waits = 0;
    for id in (0..rows + 10).step_by(1013) {
        let key = key(&t, id);
        let read = |tuple: &[u8]| text_of(&t, tuple);
        let tried = db.try_get(&RunOptions::new(), &t, 0, &key, read);
        let found = block_on(db.get(&RunOptions::new(), &t, 0, &key, read)).expect("reads");
        match tried.expect("reads") {
            TryGet::Done(there) => assert_eq!(there, found, "row {id}"),
            TryGet::Wait => waits += 1,
        }
        assert_eq!(found, get(&db, &t, id).expect("reads"), "row {id}");
    }
    assert!(waits > 0, "some are evicted");
    // Many at once: hot, evicted, twice, and not there.
    let wanted: Vec<i64> = (0..700).map(|i| i * 1009 % (rows + 60_000)).collect();
    let wanted: Vec<i64> = wanted.iter().chain(&wanted[..50]).copied().collect();
    let keys: Vec<Vec<u8>> = wanted.iter().map(|id| key(&t, *id)).collect();
    let mut got = vec![None; wanted.len()];
    block_on(
        db.get_many(&RunOptions::new(), &t, 0, &keys, |place, tuple| {
            assert!(got[place].is_none(), "given twice");
            got[place] = Some(text_of(&t, tuple));
        }),
    )
    .expect("reads");
    for (id, got) in wanted.iter().zip(&got) {
        assert_eq!(*got, get(&db, &t, *id).expect("reads"), "row {id}");
        assert_eq!(got.is_some(), *id < rows);
    }
    // A serializable transaction over evicted rows.
    let mut txn = db.begin(Isolation::Serializable, false);
    // A pre-pass skips what is evicted, so the count is of the last run only.
    let changed = in_txn(&mut txn, &db, |access| {
        let mut changed = 0;
        for id in 0..20 {
            changed += u32::from(set_in(access, &t, id * 11_000, "in a transaction")?);
        }
        Ok(changed)
    })
    .expect("updates");
    assert_eq!(changed, 20);
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    let count = |db: &Arc<Database>| {
        let t = table(db, "t");
        let snapshot = db.snapshot();
        let mut count = 0;
        for partition in 0..db.partitions() {
            let mut scan = snapshot.scan(&t, partition);
            let mut more = true;
            while more {
                let mut bytes = 0;
                let mut each = |_, tuple: &[u8]| {
                    count += 1;
                    bytes += tuple.len();
                };
                more = block_on(scan.next_chunk(&mut each)).expect("scans");
                assert!(bytes <= 100 << 10, "{bytes} at once under a limit of 96 MB");
            }
        }
        count
    };
    assert_eq!(count(&db), rows);
    block_on(db.checkpoint()).expect("checkpoints");
    for id in 0..2000 {
        set(&db, &t, id * 7, "after the checkpoint").expect("updates");
    }
    let report = db.memory_report();
    assert!(report.resident_max <= report.limit, "{report:?}");
    db.close().expect("closes");
    drop((db, t));
    let db = open();
    let t = table(&db, "t");
    // What was hot comes back by itself, as far as there is room.
    let begun = std::time::Instant::now();
    while db.counters().warmed < 10_000 {
        assert!(begun.elapsed().as_secs() < 60, "{:?}", db.counters());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(count(&db), rows);
    assert_eq!(
        get(&db, &t, 70).expect("reads").as_deref(),
        Some("after the checkpoint")
    );
    assert_eq!(
        get(&db, &t, rows - 1).expect("reads"),
        Some(text(rows - 1, 0))
    );
    assert_eq!(
        get(&db, &t, 11_000 * 19).expect("reads").as_deref(),
        Some("in a transaction")
    );
    refuses_too_many_at_once(&db, &t, rows);
    // A transaction larger than memory that never commits: most of its rows are
    // evicted when the database ends, and have to go at the next start.
    let mut txn = db.begin(Isolation::ReadCommitted, false);
    for first in (rows..rows + 120_000).step_by(1000) {
        in_txn(&mut txn, &db, |access| {
            (first..first + 1000)
                .try_for_each(|id| access.insert(&t, &tuple(&t, id, &text(id, 0))).map(|_| ()))
        })
        .expect("inserts");
    }
    std::mem::forget(txn);
    db.close().expect("closes");
    drop((db, t));
    let db = open();
    let t = table(&db, "t");
    assert_eq!(count(&db), rows);
    for id in (rows..rows + 120_000).step_by(10_007) {
        assert_eq!(get(&db, &t, id).expect("reads"), None, "row {id}");
        insert_lazily(&db, &t, id, "again").expect("its key is free");
    }
    db.close().expect("closes");
}
