//! A primary key for a table that is much larger than memory. Its rows are read from the device and
//! leave memory again while they are laid out anew. The limit is the process's, so this test has a
//! process of its own.

mod fixture;

use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, FileDevice, IoEngine};
use thermocline_engine::catalog::{IndexDef, IndexKind, TableDef};
use thermocline_engine::{Change, Config, Database, RunOptions, Scope, block_on};
use thermocline_values::types::DataType;

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 64 * MIB;
const ROWS: i64 = 50_000;

fn value(id: i64) -> String {
    format!("{id}:{}", "v".repeat(2000))
}

#[test]
fn rows_beyond_memory_get_their_key_within_the_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    let device = FileDevice::open(directory.path(), IoEngine::Auto).expect("a device");
    let device: Arc<dyn Device> = Arc::new(device);
    let config = Config::new(device).partitions(4).memory_limit(LIMIT);
    let db = Database::open(config).expect("opens");
    let columns = vec![
        column("id", DataType::BigInt, true),
        column("value", DataType::Text, false),
    ];
    let def = TableDef::new(db.allocate_oid(), "t", columns);
    ddl(&db, Change::CreateTable(def)).expect("makes the table");
    let t = table(&db, "t");
    let options = RunOptions::default();
    for first in (0..ROWS).step_by(100) {
        // No two rows have the same: the number of rows is no multiple of the factor.
        let ids = (first..first + 100).map(|row| row * 7919 % ROWS);
        let rows: Vec<Vec<u8>> = ids.map(|id| tuple(&t, id, &value(id))).collect();
        let insert = db.one_shot(&options, Scope::One(db.spread()), |access| {
            rows.iter()
                .try_for_each(|row| access.insert(&t, row).map(drop))
        });
        block_on(insert).expect("inserts");
    }
    let before = db.counters();
    let index = IndexDef {
        name: "t_pkey".into(),
        columns: vec![0],
        primary: true,
        constraint: true,
        ..value_index(&db, IndexKind::BTree, true)
    };
    let change = Change::CreateIndex {
        table: t.def.oid,
        index,
    };
    ddl(&db, change).expect("adds the key");
    let evicted = db.counters().evictions - before.evictions;
    assert!(evicted > 20_000, "{evicted} rows have left memory");
    let report = db.memory_report();
    assert!(report.resident_max <= LIMIT, "{report:?}");
    let t = table(&db, "t");
    assert_eq!(db.row_estimate(&t), ROWS as u64);
    for id in (0..ROWS).step_by(97) {
        assert_eq!(
            get(&db, &t, id).expect("reads"),
            Some(value(id)),
            "row {id}"
        );
    }
    assert_eq!(get(&db, &t, ROWS).expect("reads"), None);
    db.close().expect("closes");
}
