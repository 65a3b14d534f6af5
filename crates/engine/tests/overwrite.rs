//! Replacing and deleting rows by their keys: evicted ones are not read where that can be
//! done without, and whoever needs what they were still gets it.

mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fixture::*;
use proptest::prelude::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::{IndexDef, IndexKind};
use thermocline_engine::{
    Change, Config, Database, Error, Result, RunOptions, Snapshot, Table, block_on,
};

const LIMIT: u64 = 64 << 30;

fn overwrite(db: &Database, table: &Table, id: i64, value: &str) -> Result<bool> {
    let (key, tuple) = (key(table, id), tuple(table, id, value));
    block_on(db.one_shot(&RunOptions::new(), scope(table, id), |access| {
        Ok(access.overwrite(table, 0, &key, &tuple)?.is_some())
    }))
}

fn delete_by_key(db: &Database, table: &Table, id: i64) -> Result<bool> {
    let key = key(table, id);
    block_on(db.one_shot(&RunOptions::new(), scope(table, id), |access| {
        access.delete_by_key(table, 0, &key)
    }))
}

/// A database in which nothing is brought back that nobody asks for.
fn open_cold(device: &SimulatedDevice) -> Arc<Database> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let mut config = Config::new(device).memory_limit(LIMIT).partitions(4);
    config.background = false;
    Database::open(config).expect("the database opens")
}

/// A database with these rows, all of them evicted: it has just been opened.
fn evicted(kind: IndexKind, ids: impl Iterator<Item = i64>) -> (SimulatedDevice, Arc<Database>) {
    let (device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", kind);
    for id in ids {
        insert_lazily(&db, &t, id, &format!("old {id}")).expect("inserts");
    }
    db.close().expect("closes");
    let db = open_cold(&device);
    (device, db)
}

/// Evicted tuples that were read, and replaced without that.
fn counts(db: &Database) -> (u64, u64) {
    let counters = db.counters();
    (counters.misses, counters.overwrites)
}

#[test]
fn evicted_rows_are_replaced_unread() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        replace_unread(kind);
    }
}

fn replace_unread(kind: IndexKind) {
    let (device, db) = evicted(kind, 0..3000);
    let t = table(&db, "t");
    for id in 0..1000 {
        assert!(overwrite(&db, &t, id, &format!("new {id}")).expect("overwrites"));
        assert!(!overwrite(&db, &t, id + 3000, "x").expect("finds nothing"));
    }
    assert_eq!(counts(&db), (0, 1000));
    let check = |db: &Arc<Database>| {
        let rows = all(db, &table(db, "t"));
        assert_eq!(rows.len(), 3000);
        for (id, value) in rows {
            let age = if id < 1000 { "new" } else { "old" };
            assert_eq!(value, format!("{age} {id}"));
        }
    };
    check(&db);
    // What is in memory is replaced there.
    assert!(overwrite(&db, &t, 5, "new 5").expect("overwrites"));
    assert_eq!(counts(&db).1, 1000);
    drop(db);
    let db = open(&device, LIMIT);
    check(&db);
    assert!(db.verify().expect("can be verified").problems.is_empty());
}

#[test]
fn evicted_rows_are_deleted_unread() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        let (device, db) = evicted(kind, 0..3000);
        let t = table(&db, "t");
        for id in 0..1000 {
            assert!(delete_by_key(&db, &t, id).expect("deletes"));
            assert!(!delete_by_key(&db, &t, id).expect("finds nothing"));
        }
        assert_eq!(counts(&db), (0, 1000));
        // Their keys are free again, and a row in memory goes as well.
        insert_lazily(&db, &t, 5, "again").expect("inserts");
        insert_lazily(&db, &t, 6, "again").expect("inserts");
        assert!(delete_by_key(&db, &t, 6).expect("deletes"));
        assert_eq!(counts(&db), (0, 1000));
        let check = |db: &Arc<Database>| {
            let rows = all(db, &table(db, "t"));
            assert_eq!(rows.len(), 2001);
            for (id, value) in rows {
                let expected = if id == 5 {
                    "again".into()
                } else {
                    format!("old {id}")
                };
                assert_eq!(value, expected);
            }
        };
        check(&db);
        drop(db);
        let db = open(&device, LIMIT);
        check(&db);
        assert!(db.verify().expect("can be verified").problems.is_empty());
    }
}

#[test]
fn a_delete_that_is_taken_back_leaves_the_evicted_row() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        let (_device, db) = evicted(kind, 0..10);
        let t = table(&db, "t");
        let bytes = key(&t, 3);
        let error = block_on(db.one_shot(&RunOptions::new(), scope(&t, 3), |access| {
            assert!(access.delete_by_key(&t, 0, &bytes)?);
            assert!(access.get(&t, 0, &bytes)?.is_none());
            Err::<(), _>(Error::TooLarge("on purpose".into()))
        }));
        assert!(matches!(error, Err(Error::TooLarge(_))), "{error:?}");
        assert_eq!(counts(&db), (0, 1));
        assert_eq!(get(&db, &t, 3).expect("reads").as_deref(), Some("old 3"));
        assert!(db.verify().expect("can be verified").problems.is_empty());
    }
}

#[test]
fn a_snapshot_that_opens_before_the_commit_sees_what_was_deleted() {
    let (_device, db) = evicted(IndexKind::Hash, 0..10);
    let t = table(&db, "t");
    let bytes = key(&t, 3);
    let mut snapshot: Option<Snapshot> = None;
    let deleted = block_on(db.one_shot(&RunOptions::new(), scope(&t, 3), |access| {
        let deleted = access.delete_by_key(&t, 0, &bytes)?;
        snapshot.get_or_insert_with(|| db.snapshot());
        Ok(deleted)
    }));
    assert!(deleted.expect("deletes"));
    assert_eq!(counts(&db), (1, 1), "unread at first, and then read");
    let snapshot = snapshot.expect("is open");
    assert_eq!(scan_all(&snapshot, &db, &t)[&3], "old 3");
    assert_eq!(get(&db, &t, 3).expect("reads"), None);
    drop(snapshot);
    assert!(db.verify().expect("can be verified").problems.is_empty());
}

#[test]
fn a_plan_for_a_table_that_was_changed_is_stale_whether_the_row_is_there_or_not() {
    let (_device, db) = evicted(IndexKind::Hash, 0..10);
    let old = table(&db, "t");
    let change = Change::Truncate {
        tables: vec![old.oid],
        restart_identity: false,
    };
    ddl(&db, change).expect("truncates");
    for id in [3, 30] {
        let error = delete_by_key(&db, &old, id).expect_err("is stale");
        assert!(matches!(error, Error::StalePlan), "{error}");
        let error = overwrite(&db, &old, id, "new").expect_err("is stale");
        assert!(matches!(error, Error::StalePlan), "{error}");
    }
}

#[test]
fn a_statement_that_fails_leaves_the_evicted_row() {
    let (_device, db) = evicted(IndexKind::Hash, 0..10);
    let t = table(&db, "t");
    let (bytes, tuple) = (key(&t, 3), tuple(&t, 3, "new"));
    let error = block_on(db.one_shot(&RunOptions::new(), scope(&t, 3), |access| {
        access.overwrite(&t, 0, &bytes, &tuple)?;
        Err::<(), _>(Error::TooLarge("on purpose".into()))
    }));
    assert!(matches!(error, Err(Error::TooLarge(_))), "{error:?}");
    assert_eq!(counts(&db), (0, 1));
    assert_eq!(get(&db, &t, 3).expect("reads").as_deref(), Some("old 3"));
    assert!(db.verify().expect("can be verified").problems.is_empty());
}

#[test]
fn an_open_snapshot_sees_what_the_row_was() {
    let (_device, db) = evicted(IndexKind::Hash, 0..10);
    let t = table(&db, "t");
    let snapshot = db.snapshot();
    assert!(overwrite(&db, &t, 3, "new").expect("overwrites"));
    assert_eq!(counts(&db), (1, 0));
    assert_eq!(scan_all(&snapshot, &db, &t)[&3], "old 3");
    assert_eq!(get(&db, &t, 3).expect("reads").as_deref(), Some("new"));
}

#[test]
fn a_snapshot_that_opens_before_the_commit_sees_what_the_row_was() {
    let (_device, db) = evicted(IndexKind::Hash, 0..10);
    let t = table(&db, "t");
    let (bytes, new) = (key(&t, 3), tuple(&t, 3, "new"));
    let mut snapshot: Option<Snapshot> = None;
    let replaced = block_on(db.one_shot(&RunOptions::new(), scope(&t, 3), |access| {
        let row = access.overwrite(&t, 0, &bytes, &new)?;
        snapshot.get_or_insert_with(|| db.snapshot());
        Ok(row.is_some())
    }));
    assert!(replaced.expect("overwrites"));
    assert_eq!(counts(&db), (1, 1), "unread at first, and then read");
    let snapshot = snapshot.expect("is open");
    assert_eq!(scan_all(&snapshot, &db, &t)[&3], "old 3");
    assert_eq!(get(&db, &t, 3).expect("reads").as_deref(), Some("new"));
    drop(snapshot);
    assert!(db.verify().expect("can be verified").problems.is_empty());
}

#[test]
fn a_row_that_a_transaction_holds_is_waited_for() {
    let (device, db) = evicted(IndexKind::Hash, 0..10);
    // Time passes only where there are threads.
    db.close().expect("closes");
    let db = open(&device, LIMIT);
    let t = table(&db, "t");
    let mut txn = db.begin(thermocline_engine::Isolation::ReadCommitted, false);
    assert!(in_txn(&mut txn, &db, |access| set_in(access, &t, 3, "held")).expect("updates"));
    let (bytes, new) = (key(&t, 3), tuple(&t, 3, "new"));
    let options = RunOptions {
        lock_timeout: Some(Duration::from_millis(20)),
        ..RunOptions::new()
    };
    let waited = block_on(db.one_shot(&options, scope(&t, 3), |access| {
        access.overwrite(&t, 0, &bytes, &new).map(|_| ())
    }));
    assert!(matches!(waited, Err(Error::LockTimeout)), "{waited:?}");
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    assert_eq!(get(&db, &t, 3).expect("reads").as_deref(), Some("held"));
}

#[test]
fn keys_beyond_32_bits_and_tables_with_more_indexes_are_read_first() {
    let ids = [-1, i64::MIN, i64::MAX, 1 << 32];
    let (_device, db) = evicted(IndexKind::Hash, ids.into_iter());
    let t = table(&db, "t");
    for id in ids {
        assert!(overwrite(&db, &t, id, "new").expect("overwrites"));
        assert_eq!(get(&db, &t, id).expect("reads").as_deref(), Some("new"));
    }
    assert_eq!(counts(&db), (4, 0));

    let (device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, "old").expect("inserts");
    let index = IndexDef {
        oid: db.allocate_oid(),
        name: "t_value".into(),
        columns: vec![1],
        unique: false,
        primary: false,
        constraint: false,
        kind: IndexKind::BTree,
        include: Vec::new(),
        nulls_equal: false,
        order: Vec::new(),
    };
    ddl(
        &db,
        Change::CreateIndex {
            table: t.oid,
            index,
        },
    )
    .expect("the index is made");
    db.close().expect("closes");
    let db = open_cold(&device);
    let t = table(&db, "t");
    assert!(overwrite(&db, &t, 1, "new").expect("overwrites"));
    assert_eq!(counts(&db), (1, 0));
    assert!(db.verify().expect("can be verified").problems.is_empty());
}

#[derive(Clone, Debug)]
enum Op {
    Insert(i64),
    Overwrite(i64),
    Delete(i64),
    DeleteByKey(i64),
    Reopen,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    // Of few keys, of many, and of some that are no 32-bit integers.
    let id = prop_oneof![
        0i64..40,
        0i64..5000,
        (0i64..20).prop_map(|id| (id - 10) << 31)
    ];
    let op = prop_oneof![
        6 => id.clone().prop_map(Op::Insert),
        8 => id.clone().prop_map(Op::Overwrite),
        1 => id.clone().prop_map(Op::Delete),
        2 => id.prop_map(Op::DeleteByKey),
        1 => Just(Op::Reopen),
    ];
    prop::collection::vec(op, 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn it_is_as_a_map_whatever_is_evicted(ops in ops(), btree in any::<bool>()) {
        let (device, mut db) = simulated(LIMIT);
        let kind = if btree { IndexKind::BTree } else { IndexKind::Hash };
        let mut t = make_table(&db, "t", kind);
        let mut model = BTreeMap::new();
        for (number, op) in ops.into_iter().enumerate() {
            let value = format!("value {number}");
            match op {
                Op::Insert(id) => {
                    let inserted = insert_lazily(&db, &t, id, &value).is_ok();
                    prop_assert_eq!(inserted, !model.contains_key(&id));
                    model.entry(id).or_insert(value);
                }
                Op::Overwrite(id) => {
                    let there = overwrite(&db, &t, id, &value).expect("overwrites");
                    prop_assert_eq!(there, model.contains_key(&id));
                    model.entry(id).and_modify(|old| *old = value);
                }
                Op::Delete(id) => {
                    let there = delete(&db, &t, id).expect("deletes");
                    prop_assert_eq!(there, model.remove(&id).is_some());
                }
                Op::DeleteByKey(id) => {
                    let there = delete_by_key(&db, &t, id).expect("deletes");
                    prop_assert_eq!(there, model.remove(&id).is_some());
                }
                Op::Reopen => {
                    db.close().expect("closes");
                    db = open_cold(&device);
                    t = table(&db, "t");
                }
            }
        }
        prop_assert_eq!(all(&db, &t), model);
        assert!(db.verify().expect("can be verified").problems.is_empty());
        db.close().expect("closes");
    }
}
