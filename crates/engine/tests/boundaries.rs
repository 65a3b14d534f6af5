//! What only grows begins right before a boundary of its number, and passes it: places in the
//! log and in files, ids of blocks, addresses, transactions, checkpoints, object ids, storages.
//! (docs/internals/boundaries.md has the list.)

mod fixture;

use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::check::check;
use thermocline_engine::steps::{Moment, Origin, Simulator, Steps};
use thermocline_engine::{
    Change, Config, Database, Error, Isolation, Result, RunOptions, block_on,
};
use thermocline_storage::row_directory::limit_block_numbers;

struct BeginsAt(Origin);

impl Simulator for BeginsAt {
    fn pause(&self, _: Moment) {}

    fn origin(&self) -> Origin {
        self.0
    }
}

fn open_at(device: &SimulatedDevice, origin: Origin) -> Arc<Database> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device).memory_limit(64 << 20).partitions(1);
    config.background = false;
    config.log_segment_bytes = 64 << 10;
    config.simulator = Some(Arc::new(BeginsAt(origin)));
    Database::open(config).expect("the database opens")
}

/// A definition; nobody waits for the log.
fn define(db: &Arc<Database>, change: Change) -> Result<()> {
    let options = RunOptions::default();
    let mut txn = db.begin(Isolation::Serializable, false);
    if let Err(error) = block_on(db.ddl(&mut txn, &options, change)) {
        block_on(db.rollback(txn));
        return Err(error);
    }
    block_on(db.commit(txn, &options))
}

/// Everything is evicted that can be.
fn evict_all(steps: &Steps) {
    steps.leave_memory(0);
    while steps.evict().expect("evicts") {}
}

#[test]
fn a_database_passes_all_boundaries_at_once() {
    let origin = Origin {
        lsn: (1 << 32) - (192 << 10),
        block_sector: (1 << 20) - 3,
        block: (1 << 16) - 3,
        arena_bytes: (1 << 35) - (4 << 20),
        transaction: (1 << 32) - 20,
        checkpoint: 99_999_998,
        oid: (1 << 31) - 2,
        storage: (1 << 31) - 1,
    };
    limit_block_numbers(Some(2));
    let device = SimulatedDevice::new();
    let value = |id: i64| format!("{id} {}", "v".repeat(3000));
    for start in 0..4 {
        let db = open_at(&device, origin);
        if start == 0 {
            let def = table_def(&db, "t", IndexKind::BTree);
            define(&db, Change::CreateTable(def)).expect("the table is made");
        }
        let t = table(&db, "t");
        let rows = all(&db, &t);
        assert_eq!(rows.len() as i64, start * 100, "start {start}");
        assert!(rows.iter().all(|(id, found)| *found == value(*id)));
        for id in start * 100..(start + 1) * 100 {
            insert_lazily(&db, &t, id, &value(id)).expect("inserts");
        }
        let steps = Steps::new(&db);
        evict_all(&steps);
        block_on(db.checkpoint()).expect("checkpoints");
        assert_eq!(all(&db, &t).len() as i64, (start + 1) * 100);
        let problems = db.verify().expect("verifies").problems;
        assert_eq!(problems, Vec::<String>::new());
        if start == 3 {
            assert!(steps.log_end() > 1 << 32);
            assert!(device_length(&device, "blocks") > 1 << 32);
        }
        drop((steps, db));
        device.crash(start as u64);
        let shared: Arc<dyn Device> = Arc::new(device.clone());
        assert_eq!(check(&shared, &mut |_| {}).expect("checks").findings, 0);
    }
    limit_block_numbers(None);
}

fn device_length(device: &SimulatedDevice, file: &str) -> u64 {
    let file = device.open(file, thermocline_device::OpenMode::Existing);
    file.and_then(|file| file.len()).expect("the file is there")
}

#[test]
fn object_ids_begin_anew_after_the_last_and_skip_what_is_there() {
    let origin = Origin {
        oid: u32::MAX - 1,
        ..Origin::default()
    };
    let device = SimulatedDevice::new();
    let db = open_at(&device, origin);
    for name in ["t", "u", "v"] {
        let def = table_def(&db, name, IndexKind::Hash);
        define(&db, Change::CreateTable(def)).expect("the table is made");
    }
    let catalog = db.catalog();
    let mut oids: Vec<u32> = catalog.tables.keys().copied().collect();
    let indexes = catalog.tables.values().flat_map(|t| &t.def.indexes);
    oids.extend(indexes.map(|index| index.oid));
    oids.sort_unstable();
    assert_eq!(oids, [16384, 16385, 16386, 16387, u32::MAX - 1, u32::MAX]);
    Steps::new(&db).flush_log();
    drop(db);
    // Anew after a start, and past those that are there.
    let db = open_at(&device, origin);
    let next: Vec<u32> = (0..4).map(|_| db.allocate_oid()).collect();
    assert!(next.iter().all(|oid| !oids.contains(oid)), "{next:?}");
}

#[test]
fn storages_end_with_an_error_and_none_comes_again() {
    let origin = Origin {
        storage: u32::MAX - 2,
        ..Origin::default()
    };
    let device = SimulatedDevice::new();
    let db = open_at(&device, origin);
    let def = table_def(&db, "t", IndexKind::Hash);
    let oid = def.oid;
    define(&db, Change::CreateTable(def)).expect("the table is made");
    let t = table(&db, "t");
    insert_lazily(&db, &t, 1, "one").expect("inserts");
    let empty = || {
        let change = Change::Truncate {
            tables: vec![oid],
            restart_identity: false,
        };
        define(&db, change)
    };
    empty().expect("the last storage but one");
    let error = empty().expect_err("no storage is left");
    assert_eq!(error.sqlstate(), "54000", "{error}");
    assert!(matches!(error, Error::Catalog { .. }));
    // All else goes on.
    let t = table(&db, "t");
    insert_lazily(&db, &t, 2, "two").expect("inserts");
    assert_eq!(all(&db, &t).len(), 1);
}
