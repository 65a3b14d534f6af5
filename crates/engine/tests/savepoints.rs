//! Savepoints: what DDL did after one goes with it, in memory and through a crash; and what
//! they cost.

mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;

use fixture::*;
use thermocline_device::SimulatedDevice;
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{
    Change, Database, Isolation, RunOptions, SequenceDef, TableDef, Transaction, block_on,
};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

fn begin(db: &Arc<Database>) -> Transaction {
    // What a transaction read of a table that it drops is another story.
    db.begin(Isolation::ReadCommitted, false)
}

fn run(db: &Arc<Database>, txn: &mut Transaction, change: Change) {
    block_on(db.ddl(txn, &RunOptions::new(), change)).expect("the definition changes");
}

/// The tuple of a row in which added columns hold its id.
fn wide(table: &thermocline_engine::Table, id: i64, value: &str) -> Vec<u8> {
    let mut values = vec![ValueRef::BigInt(id), ValueRef::Text(value)];
    values.resize(table.def.columns.len(), ValueRef::Integer(id as i32));
    let mut bytes = Vec::new();
    table.encode_tuple(&values, &mut bytes);
    bytes
}

/// Writes a row, whether it is there or not.
fn put(db: &Arc<Database>, txn: &mut Transaction, id: i64, value: &str) {
    let t = seen_by(txn);
    let bytes = wide(&t, id, value);
    in_txn(txn, db, |access| match find(access, &t, id)? {
        Some(row) => access.update(&t, row, &bytes).map(drop),
        None => access.insert(&t, &bytes).map(drop),
    })
    .expect("writes");
}

fn remove(db: &Arc<Database>, txn: &mut Transaction, id: i64) {
    let t = seen_by(txn);
    in_txn(txn, db, |access| delete_in(access, &t, id)).expect("deletes");
}

/// All rows as the transaction sees them, by key.
fn seen(db: &Arc<Database>, txn: &mut Transaction) -> BTreeMap<i64, String> {
    let t = seen_by(txn);
    let mut rows = BTreeMap::new();
    for id in 0..60 {
        let value = in_txn(txn, db, |access| get_in(access, &t, id)).expect("reads");
        rows.extend(value.map(|value| (id, value)));
    }
    rows
}

/// What a transaction does after its savepoint.
const AFTER: [&str; 9] = [
    "add a column",
    "truncate",
    "create an index",
    "drop an index",
    "rename",
    "drop and create",
    "create another",
    "drop",
    "a sequence",
];

fn define(db: &Arc<Database>, txn: &mut Transaction, what: &str, kind: IndexKind) {
    let oid = seen_by(txn).oid;
    match what {
        "add a column" => {
            let mut def = seen_by(txn).def.clone();
            let name = format!("added{}", def.columns.len());
            let mut new = column(&name, DataType::Integer, false);
            new.missing = Value::Integer(7);
            def.columns.push(new);
            run(db, txn, Change::AlterTable(def));
        }
        "truncate" => {
            let change = Change::Truncate {
                tables: vec![oid],
                restart_identity: false,
            };
            run(db, txn, change);
        }
        "create an index" => {
            let mut index = value_index(db, kind, false);
            index.name = format!("i{}", index.oid);
            run(db, txn, Change::CreateIndex { table: oid, index });
        }
        "drop an index" => {
            let def = seen_by(txn).def.clone();
            if let Some(index) = def.indexes.get(1) {
                let index = index.oid;
                run(db, txn, Change::DropIndex { table: oid, index });
            }
        }
        "rename" => {
            // To and fro: the rows go on under the name that is looked for.
            for name in ["other", "t"] {
                let catalog = txn.catalog();
                let mut def: TableDef = catalog.table(oid).expect("is there").def.clone();
                def.name = name.into();
                run(db, txn, Change::AlterTable(def));
            }
        }
        "drop and create" => {
            run(db, txn, Change::DropTable(oid));
            run(db, txn, Change::CreateTable(table_def(db, "t", kind)));
        }
        "create another" => {
            let def = table_def(db, &format!("t{}", db.allocate_oid()), kind);
            run(db, txn, Change::CreateTable(def));
        }
        "drop" => run(db, txn, Change::DropTable(oid)),
        "a sequence" => run(db, txn, Change::CreateSequence(sequence(db))),
        other => panic!("{other}"),
    }
}

fn sequence(db: &Database) -> SequenceDef {
    let oid = db.allocate_oid();
    SequenceDef {
        oid,
        schema: "public".into(),
        name: format!("s{oid}"),
        data_type: DataType::BigInt,
        start: 1,
        increment: 1,
        min: 1,
        max: i64::MAX,
        cache: 1,
        cycle: false,
        owned_by: None,
        restarted_by: 0,
    }
}

/// Each definition after a savepoint, over a table that was there, that the transaction had
/// made, and that it had changed before. Taken back, and again, and committed, over a crash.
#[test]
fn definitions_after_a_savepoint_are_taken_back() {
    let befores: [&[&str]; 6] = [
        &[],
        &["drop and create"],
        &["add a column"],
        &["create an index"],
        &["truncate", "create an index"],
        &["drop an index", "add a column"],
    ];
    let mut number = 0;
    for before in befores {
        for after in AFTER {
            number += 1;
            let kind = [IndexKind::Hash, IndexKind::BTree][number % 2];
            let case = format!("{before:?}, {after}, {kind:?}");
            let device = SimulatedDevice::new();
            let db = open_alone(&device);
            make_table(&db, "t", kind);
            create_index(&db, value_index(&db, kind, false));
            let t = table(&db, "t");
            for id in 0..20 {
                insert(&db, &t, id, "old").expect("inserts");
            }
            let mut txn = begin(&db);
            put(&db, &mut txn, 3, "first");
            for what in before {
                define(&db, &mut txn, what, kind);
            }
            for id in 15..30 {
                put(&db, &mut txn, id, "before");
            }
            let catalog = txn.catalog();
            let expected = seen(&db, &mut txn);
            let savepoint = txn.savepoint(0).expect("has room");
            for round in 0..2 {
                put(&db, &mut txn, 31, "inserted");
                put(&db, &mut txn, 16, "changed");
                remove(&db, &mut txn, 17);
                define(&db, &mut txn, after, kind);
                if after != "drop" {
                    for id in 10..40 {
                        put(&db, &mut txn, id, "after");
                    }
                    let inner = txn.savepoint(0).expect("has room");
                    put(&db, &mut txn, 41, "inner");
                    remove(&db, &mut txn, 18);
                    define(&db, &mut txn, "create an index", kind);
                    put(&db, &mut txn, 42, "inner");
                    if round == 0 {
                        block_on(txn.rollback_to(&inner)).expect("goes back");
                        put(&db, &mut txn, 43, "between");
                    }
                }
                if number % 3 == 0 {
                    block_on(db.checkpoint()).expect("checkpoints");
                }
                block_on(txn.rollback_to(&savepoint)).expect("goes back");
                assert_eq!(seen(&db, &mut txn), expected, "{case}, round {round}");
                let same = txn.catalog();
                let oids = |c: &thermocline_engine::Catalog| {
                    let tables = c.tables.values();
                    tables
                        .map(|t| (t.name.clone(), t.def.clone()))
                        .collect::<Vec<_>>()
                };
                assert_eq!(oids(&same), oids(&catalog), "{case}");
                assert_eq!(same.sequences.len(), 0, "{case}");
            }
            put(&db, &mut txn, 50, "last");
            let mut expected = expected;
            expected.insert(50, "last".into());
            block_on(db.commit(txn, &RunOptions::new())).expect("commits");
            for life in 0..2 {
                let db = if life == 0 {
                    db.clone()
                } else {
                    open_alone(&device)
                };
                assert_eq!(all(&db, &table(&db, "t")), expected, "{case}, life {life}");
                let problems = db.verify().expect("verifies").problems;
                assert_eq!(problems, Vec::<String>::new(), "{case}, life {life}");
                device.crash(number as u64);
            }
        }
    }
}

/// After a savepoint was rolled back to, others may change the table that was held for it, and
/// the transaction can define anew.
#[test]
fn a_table_held_since_a_savepoint_is_let_go() {
    let device = SimulatedDevice::new();
    let db = open_alone(&device);
    let t = make_table(&db, "t", IndexKind::Hash);
    let mut txn = begin(&db);
    let savepoint = txn.savepoint(0).expect("has room");
    define(&db, &mut txn, "add a column", IndexKind::Hash);
    block_on(txn.rollback_to(&savepoint)).expect("goes back");
    insert(&db, &t, 1, "of another").expect("inserts");
    make_table(&db, "other", IndexKind::Hash);
    define(&db, &mut txn, "add a column", IndexKind::Hash);
    put(&db, &mut txn, 2, "wide");
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    assert_eq!(all(&db, &table(&db, "t")).len(), 2);
}

/// Each savepoint was a copy of all that the transaction had changed.
#[test]
fn many_savepoints_cost_little_and_come_to_an_end() {
    let (_device, db) = simulated(64 << 30);
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..2000 {
        insert_lazily(&db, &t, id, "old").expect("inserts");
    }
    let mut txn = begin(&db);
    for id in 0..2000 {
        in_txn(&mut txn, &db, |access| set_in(access, &t, id, "new")).expect("sets");
    }
    let mut points = Vec::new();
    for id in 0..20_000 {
        points.push(txn.savepoint(100).expect("has room"));
        in_txn(&mut txn, &db, |access| {
            set_in(access, &t, id % 2000, "newer")
        })
        .expect("sets");
    }
    for point in points.iter().rev().step_by(5000) {
        block_on(txn.rollback_to(point)).expect("goes back");
    }
    block_on(txn.rollback_to(&points[0])).expect("goes back");
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    assert!(all(&db, &t).values().all(|value| value == "new"));

    let (_device, db) = simulated(64 << 20);
    let mut txn = begin(&db);
    let refused = (0..10_000_000).find_map(|_| txn.savepoint(100).err());
    assert_eq!(refused.expect("memory has an end").sqlstate(), "53200");
}

/// A row that was inserted after a savepoint, and changed after another one, is locked and goes when the first is
/// rolled back to. Its number is another row's then, and so is that row's lock.
#[test]
fn who_ends_frees_no_lock_of_a_row_that_got_the_number_of_his() {
    let (_device, db) = simulated(64 << 30);
    let t = make_table(&db, "t", IndexKind::BTree);
    let mut first = begin(&db);
    put(&db, &mut first, 1, "to have begun");
    let before = first.savepoint(0).expect("a savepoint");
    put(&db, &mut first, 7, "inserted");
    let _after = first.savepoint(0).expect("another");
    put(&db, &mut first, 7, "changed, and locked");
    block_on(first.rollback_to(&before)).expect("goes back");
    // In the same partition, so that it has the number.
    insert(&db, &t, 7, "the number's next row").expect("inserts");
    let mut second = begin(&db);
    put(&db, &mut second, 7, "locked by the second");
    block_on(db.rollback(first));
    let mut third = begin(&db);
    let options = RunOptions {
        lock_timeout: Some(std::time::Duration::from_millis(20)),
        ..RunOptions::new()
    };
    let body = |access: &mut thermocline_engine::Access<'_>| set_in(access, &t, 7, "lost");
    let refused = block_on(db.in_transaction(&mut third, &options, scope(&t, 7), body));
    assert_eq!(refused.expect_err("it is locked").sqlstate(), "55P03");
    block_on(db.rollback(third));
    block_on(db.commit(second, &RunOptions::new())).expect("the second commits");
    let value = get(&db, &t, 7).expect("reads");
    assert_eq!(value.as_deref(), Some("locked by the second"));
}
