//! DDL over evicted rows: what their words say of a key is of the index that the table was
//! made with, and no look-up through another one passes a row over for it.

mod fixture;

use std::sync::Arc;

use fixture::*;
use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::catalog::{IndexDef, IndexKind, TableDef};
use thermocline_engine::check::check;
use thermocline_engine::{Change, Database, RunOptions, Scope, Table, block_on};
use thermocline_values::value::ValueRef;

const ROWS: i64 = 300;

/// The database again, with every row evicted.
fn reopened(device: &SimulatedDevice, db: Arc<Database>) -> Arc<Database> {
    db.close().expect("closes");
    drop(db);
    open_alone(device)
}

fn index(db: &Database, name: &str, column: usize, kind: IndexKind) -> IndexDef {
    IndexDef {
        oid: db.allocate_oid(),
        name: name.into(),
        columns: vec![column],
        unique: column == 0,
        primary: column == 0,
        constraint: column == 0,
        kind,
        include: Vec::new(),
        nulls_equal: false,
        order: Vec::new(),
    }
}

/// A table (id, value) as `define` has it, with rows that are evicted.
fn evicted(define: impl FnOnce(&Database, &mut TableDef)) -> (SimulatedDevice, Arc<Database>) {
    let device = SimulatedDevice::new();
    let db = open_alone(&device);
    let mut def = table_def(&db, "t", IndexKind::Hash);
    def.indexes.clear();
    define(&db, &mut def);
    ddl(&db, Change::CreateTable(def)).expect("the table is made");
    put(&db, 0..ROWS);
    let db = reopened(&device, db);
    (device, db)
}

fn put(db: &Arc<Database>, ids: std::ops::Range<i64>) {
    let t = table(db, "t");
    for id in ids {
        let scope = match scope(&t, id) {
            Scope::All => Scope::One(db.spread()),
            one => one,
        };
        let bytes = tuple(&t, id, &value(id));
        let options = RunOptions::default();
        let run = db.one_shot(&options, scope, |access| access.insert(&t, &bytes));
        block_on(run).expect("inserts");
    }
}

fn value(id: i64) -> String {
    format!("value {id}")
}

fn drop_index(db: &Arc<Database>, name: &str) {
    let t = table(db, "t");
    let index = t.indexes.iter().find(|index| index.name == name);
    let change = Change::DropIndex {
        table: t.oid,
        index: index.expect("it is there").oid,
    };
    ddl(db, change).expect("the index goes");
}

/// How many rows a look-up through this index finds.
fn found(db: &Database, t: &Table, name: &str, key: ValueRef<'_>) -> usize {
    let position = t.indexes.iter().position(|index| index.name == name);
    let position = position.expect("the index is there");
    let mut encoded = Vec::new();
    t.encode_index_key(position, &[key], &mut encoded);
    let mut rows = Vec::new();
    block_on(db.one_shot(&RunOptions::default(), Scope::All, |access| {
        rows.clear();
        access.find(t, position, &encoded, &mut rows)
    }))
    .expect("finds");
    rows.len()
}

/// Each row is found by each index, now and with all of them evicted anew.
fn each_is_found(device: &SimulatedDevice, mut db: Arc<Database>, ids: i64) {
    for _ in 0..2 {
        let t = table(&db, "t");
        for name in t.indexes.iter().map(|index| &index.name) {
            for id in 0..ids {
                let key = value(id);
                let key = match name.as_str() {
                    "t_value" => ValueRef::Text(&key),
                    _ => ValueRef::BigInt(id),
                };
                assert_eq!(found(&db, &t, name, key), 1, "row {id} by {name}");
            }
        }
        let problems = db.verify().expect("verifies").problems;
        assert_eq!(problems, Vec::<String>::new());
        db = reopened(device, db);
    }
    db.close().expect("closes");
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let checked = check(&device, &mut |_| {});
    assert_eq!(checked.expect("checks").findings, 0);
}

#[test]
fn a_hash_index_made_later_finds_evicted_rows() {
    let (device, db) = evicted(|_, def| def.partition_key.clear());
    create_index(&db, index(&db, "t_value", 1, IndexKind::Hash));
    put(&db, ROWS..ROWS + 50);
    each_is_found(&device, db, ROWS + 50);
}

#[test]
fn a_hash_index_that_comes_to_be_the_first_finds_evicted_rows() {
    let (device, db) = evicted(|db, def| {
        def.indexes = vec![
            index(db, "t_pkey", 0, IndexKind::BTree),
            index(db, "t_value", 1, IndexKind::Hash),
        ];
    });
    drop_index(&db, "t_pkey");
    put(&db, ROWS..ROWS + 50);
    each_is_found(&device, db, ROWS + 50);
}

#[test]
fn an_index_that_is_made_again_finds_evicted_rows() {
    // With a new object id, as SET NOT NULL does, and with the same.
    for same in [false, true] {
        let (device, db) = evicted(|db, def| {
            def.partition_key.clear();
            def.indexes = vec![
                index(db, "t_value", 1, IndexKind::Hash),
                index(db, "t_id", 0, IndexKind::Hash),
            ];
        });
        let mut again = table(&db, "t").indexes[0].clone();
        drop_index(&db, "t_value");
        put(&db, ROWS..ROWS + 50);
        let db = reopened(&device, db);
        if !same {
            again.oid = db.allocate_oid();
        }
        create_index(&db, again);
        put(&db, ROWS + 50..ROWS + 80);
        each_is_found(&device, db, ROWS + 80);
    }
}

#[test]
fn a_primary_key_made_in_place_is_unique_over_evicted_rows() {
    let (device, db) = evicted(|_, _| {});
    create_index(&db, index(&db, "t_pkey", 0, IndexKind::Hash));
    let t = table(&db, "t");
    for id in 0..ROWS {
        let twice = insert_lazily(&db, &t, id, "twice").expect_err("it is there");
        assert_eq!(twice.sqlstate(), "23505", "row {id}");
    }
    let db = reopened(&device, db);
    let t = table(&db, "t");
    for id in 0..ROWS {
        let (key, new) = (key(&t, id), tuple(&t, id, &value(id)));
        let options = RunOptions::default();
        let overwritten = block_on(db.one_shot(&options, scope(&t, id), |access| {
            Ok(access.overwrite(&t, 0, &key, &new)?.is_some())
        }));
        assert!(overwritten.expect("overwrites"), "row {id}");
    }
    // Keys that are nobody's, whatever the words of the others say.
    for id in ROWS..20_000 {
        assert_eq!(get(&db, &t, id).expect("reads"), None);
    }
    assert_eq!(all(&db, &t).len() as i64, ROWS);
    each_is_found(&device, db, ROWS);
}

#[test]
fn a_new_storage_has_the_fingerprints_of_its_first_index() {
    let (device, db) = evicted(|db, def| {
        def.indexes = vec![index(db, "t_pkey", 0, IndexKind::Hash)];
    });
    let made = table(&db, "t");
    assert_eq!(made.fingerprinted, Some(made.indexes[0].oid));
    assert!(made.knows_keys());
    // What changes nothing of it leaves them.
    let mut def = made.def.clone();
    def.checks.clear();
    def.indexes[0].name = "t_key".into();
    ddl(&db, Change::AlterTable(def)).expect("alters");
    assert!(table(&db, "t").knows_keys());

    drop_index(&db, "t_key");
    create_index(&db, index(&db, "t_pkey", 0, IndexKind::Hash));
    let again = table(&db, "t");
    assert_eq!((again.fingerprinted, again.knows_keys()), (None, false));
    let truncate = Change::Truncate {
        tables: vec![again.oid],
        restart_identity: false,
    };
    ddl(&db, truncate).expect("truncates");
    let emptied = table(&db, "t");
    assert_eq!(emptied.fingerprinted, Some(emptied.indexes[0].oid));
    put(&db, 0..ROWS);
    let db = reopened(&device, db);
    assert!(table(&db, "t").knows_keys());
    each_is_found(&device, db, ROWS);
}

#[test]
fn a_catalog_that_does_not_say_is_not_taken_to() {
    let (_device, db) = evicted(|db, def| {
        def.indexes = vec![index(db, "t_pkey", 0, IndexKind::Hash)];
    });
    let def = table(&db, "t").def.clone();
    let mut json = serde_json::to_value(&def).expect("is JSON");
    let again = serde_json::from_value::<TableDef>(json.clone()).expect("is a table");
    assert_eq!(again, def);
    let said = json
        .as_object_mut()
        .expect("an object")
        .remove("fingerprinted");
    assert!(said.is_some_and(|oid| oid.is_u64()));
    let older = serde_json::from_value::<TableDef>(json).expect("is a table");
    assert_eq!(older.fingerprinted, None);
    assert!(!Table::new(older, 4).knows_keys());
    assert!(Table::new(def, 4).knows_keys());
}
