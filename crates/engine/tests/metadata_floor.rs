//! What cannot leave memory has an end: rows whose places and index entries would take what
//! hot rows keep are refused. The limit is the process's, so this test has a process of its own.

mod fixture;

use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, FileDevice, IoEngine};
use thermocline_engine::catalog::{IndexKind, Table};
use thermocline_engine::{Change, Config, Database, Error, RunOptions, Scope, block_on};

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 64 * MIB;

fn opened(directory: &tempfile::TempDir) -> Arc<Database> {
    let device = FileDevice::open(directory.path(), IoEngine::Auto).expect("a device");
    let device: Arc<dyn Device> = Arc::new(device);
    Database::open(Config::new(device).partitions(4).memory_limit(LIMIT)).expect("opens")
}

/// Inserts rows of one partition at once.
fn insert_some(
    db: &Database,
    t: &Table,
    ids: std::ops::Range<i64>,
    value: &dyn Fn(i64) -> String,
) -> Result<(), Error> {
    let rows: Vec<Vec<u8>> = ids.map(|id| tuple(t, id, &value(id))).collect();
    block_on(db.one_shot(&RunOptions::default(), Scope::All, |access| {
        rows.iter()
            .try_for_each(|row| access.insert(t, row).map(|_| ()))
    }))
}

fn refused(error: &Error) {
    assert_eq!(error.sqlstate(), "53200", "{error}");
    assert!(
        error.to_string().contains("memory_limit is 64 MB"),
        "{error}"
    );
    assert!(
        !error.hint().expect("what to do").contains("plit"),
        "{error}"
    );
}

#[test]
fn rows_are_refused_before_hot_rows_lose_their_floor() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = opened(&directory);
    make_table(&db, "t", IndexKind::Hash);
    create_index(&db, value_index(&db, IndexKind::BTree, false));
    let t = table(&db, "t");
    let value = |id: i64| format!("{:0>20}{}", id * 7919 % 1_000_003, "v".repeat(60));
    let mut inserted = 0;
    let error = loop {
        match insert_some(&db, &t, inserted..inserted + 100, &value) {
            Ok(()) => inserted += 100,
            Err(error) => break error,
        }
        assert!(inserted < 3_000_000, "{:?}", db.memory_report());
    };
    refused(&error);
    let report = db.memory_report();
    assert!(report.resident_max <= LIMIT, "{report:?}");
    assert!(report.metadata + report.floor <= LIMIT, "{report:?}");
    assert!(report.arena >= report.floor / 2, "{report:?}");
    // A refusal may come a moment before what the operator is told of it.
    let mut warnings = db.take_problems();
    let told = |warnings: &[String], what: &str| warnings.iter().any(|w| w.contains(what));
    let begun = std::time::Instant::now();
    while !told(&warnings, " are refused") && begun.elapsed().as_secs() < 30 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        warnings.extend(db.take_problems());
    }
    assert!(
        told(&warnings, "will be refused") && told(&warnings, " are refused"),
        "{warnings:?}"
    );

    // Nothing else is refused than what would grow.
    for id in [0, 1, inserted / 2, inserted - 1] {
        assert_eq!(get(&db, &t, id).expect("reads"), Some(value(id)));
        assert!(set(&db, &t, id, "another").expect("updates"));
    }
    assert!(delete(&db, &t, 1).expect("deletes"));
    let index = value_index(&db, IndexKind::BTree, false);
    let change = Change::CreateIndex {
        table: t.oid,
        index,
    };
    refused(&ddl(&db, change).expect_err("no place for an index"));
    let def = table_def(&db, "u", IndexKind::Hash);
    refused(&ddl(&db, Change::CreateTable(def)).expect_err("no place for a table"));

    db.set_memory_limit(2 * LIMIT);
    let begun = std::time::Instant::now();
    while insert(&db, &t, inserted, "there is room").is_err() {
        assert!(begun.elapsed().as_secs() < 30, "the limit was raised");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    db.close().expect("closes");
}
