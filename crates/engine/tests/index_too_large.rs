//! An index that does not fit beside the floor of hot rows is refused while it is built. The
//! limit is the process's, so this test has a process of its own.

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
fn an_index_that_does_not_fit_is_refused_before_it_takes_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = opened(&directory);
    let t = make_table(&db, "t", IndexKind::Hash);
    let value = |id: i64| format!("{:0>20}{}", id * 7919 % 1_000_003, "v".repeat(830));
    let rows = 150_000;
    for first in (0..rows).step_by(100) {
        insert_some(&db, &t, first..first + 100, &value).expect("inserts");
    }
    let mut index = value_index(&db, IndexKind::BTree, false);
    let change = Change::CreateIndex {
        table: t.oid,
        index: index.clone(),
    };
    refused(&ddl(&db, change).expect_err("it takes twice the limit"));
    let report = db.memory_report();
    assert!(report.resident_max <= LIMIT, "{report:?}");
    // Nothing of it stays, and a small one has its place.
    assert!(report.indexes < 4 * MIB, "{report:?}");
    index.columns = vec![0];
    create_index(&db, index);
    let t = table(&db, "t");
    assert_eq!(get(&db, &t, 77).expect("reads"), Some(value(77)));
    db.close().expect("closes");
}
