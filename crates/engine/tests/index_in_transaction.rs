//! An index that a transaction builds over rows that it has changed, and changes again.

mod fixture;

use std::sync::Arc;

use fixture::*;
use thermocline_device::SimulatedDevice;
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{Change, Database, Isolation, Result, RunOptions, Transaction, block_on};

const KINDS: [IndexKind; 2] = [IndexKind::BTree, IndexKind::Hash];

/// Rows 0 to 19, whose values are "a0" and so on; all of them evicted or none.
fn rows(evicted: bool) -> (SimulatedDevice, Arc<Database>) {
    let device = SimulatedDevice::new();
    let mut db = open_alone(&device);
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..20 {
        insert(&db, &t, id, &format!("a{id}")).expect("inserts");
    }
    if evicted {
        db.close().expect("closes");
        drop(db);
        db = open_alone(&device);
    }
    (device, db)
}

fn index(db: &Arc<Database>, txn: &mut Transaction, kind: IndexKind, unique: bool) -> Result<()> {
    let index = value_index(db, kind, unique);
    let table = seen_by(txn).oid;
    let change = Change::CreateIndex { table, index };
    block_on(db.ddl(txn, &RunOptions::new(), change))
}

fn set_to(db: &Arc<Database>, txn: &mut Transaction, id: i64, value: &str) {
    let t = seen_by(txn);
    let set = in_txn(txn, db, |access| set_in(access, &t, id, value));
    assert!(set.expect("updates"), "row {id}");
}

/// Each row by its value, and nobody by what it had before.
fn agree(db: &Arc<Database>) {
    let t = table(db, "t");
    let rows = all(db, &t);
    let mut values: Vec<String> = (0..20).map(|id| format!("a{id}")).collect();
    values.extend(["u", "v", "w", "x", "y", "z"].map(String::from));
    for value in values {
        let having = rows.iter().filter(|(_, v)| **v == value);
        let having: Vec<i64> = having.map(|(id, _)| *id).collect();
        assert_eq!(ids_of(db, &t, &value), having, "{value}");
    }
    let problems = db.verify().expect("verifies").problems;
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn it_leads_to_each_row_once_before_and_after_the_commit() {
    for (kind, evicted) in KINDS.into_iter().flat_map(|k| [(k, false), (k, true)]) {
        let (device, db) = rows(evicted);
        let mut txn = db.begin(Isolation::Serializable, false);
        set_to(&db, &mut txn, 3, "x");
        set_to(&db, &mut txn, 4, "y");
        set_to(&db, &mut txn, 7, "u");
        let t = seen_by(&txn);
        in_txn(&mut txn, &db, |access| {
            delete_in(access, &t, 5)?;
            access.insert(&t, &tuple(&t, 100, "z")).map(drop)
        })
        .expect("writes");
        index(&db, &mut txn, kind, false).expect("builds it");
        let t = seen_by(&txn);
        let check = |txn: &mut Transaction, value: &str, ids: &[i64]| {
            let found = in_txn(txn, &db, |access| ids_of_in(access, &t, value));
            assert_eq!(found.expect("finds"), ids, "{kind:?}: {value}");
        };
        for (value, ids) in [("x", &[3][..]), ("y", &[4]), ("z", &[100]), ("a6", &[6])] {
            check(&mut txn, value, ids);
        }
        for gone in ["a3", "a4", "a5"] {
            check(&mut txn, gone, &[]);
        }
        set_to(&db, &mut txn, 3, "w");
        set_to(&db, &mut txn, 6, "v");
        set_to(&db, &mut txn, 7, "a7");
        for (value, ids) in [("w", &[3][..]), ("x", &[]), ("v", &[6]), ("a7", &[7])] {
            check(&mut txn, value, ids);
        }
        block_on(db.commit(txn, &RunOptions::new())).expect("commits");
        agree(&db);
        device.crash(1);
        drop(db);
        let db = open_alone(&device);
        agree(&db);
        block_on(db.checkpoint()).expect("checkpoints");
        device.crash(2);
        drop(db);
        agree(&open_alone(&device));
    }
}

#[test]
fn a_unique_one_goes_by_what_the_transaction_has_made_of_the_rows() {
    // A hash index that is unique has to have the partition key in it.
    let kind = IndexKind::BTree;
    for evicted in [false, true] {
        let (_device, db) = rows(evicted);
        let mut txn = db.begin(Isolation::Serializable, false);
        set_to(&db, &mut txn, 1, "a2");
        let refused = index(&db, &mut txn, kind, true).expect_err("two have it");
        assert_eq!(refused.sqlstate(), "23505");
        block_on(db.rollback(txn));

        let mut txn = db.begin(Isolation::Serializable, false);
        set_to(&db, &mut txn, 1, "a2");
        set_to(&db, &mut txn, 2, "a1");
        index(&db, &mut txn, kind, true).expect("nobody has one twice");
        let t = seen_by(&txn);
        let twice = in_txn(&mut txn, &db, |access| {
            access.insert(&t, &tuple(&t, 100, "a1")).map(drop)
        });
        assert_eq!(twice.expect_err("row 2 has it").sqlstate(), "23505");
        set_to(&db, &mut txn, 2, "x");
        in_txn(&mut txn, &db, |access| {
            access.insert(&t, &tuple(&t, 100, "a1")).map(drop)
        })
        .expect("row 2 has it no longer");
        block_on(db.commit(txn, &RunOptions::new())).expect("commits");
        agree(&db);
    }
}

#[test]
fn a_unique_one_does_not_mind_rows_that_the_transaction_has_deleted() {
    let (_device, db) = rows(false);
    let t = table(&db, "t");
    insert(&db, &t, 30, "a1").expect("inserts");
    let mut txn = db.begin(Isolation::Serializable, false);
    let gone = in_txn(&mut txn, &db, |access| delete_in(access, &t, 1));
    assert!(gone.expect("deletes"));
    index(&db, &mut txn, IndexKind::BTree, true).expect("one of them is left");
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    agree(&db);
    let t = table(&db, "t");
    let twice = in_txn(
        &mut db.begin(Isolation::Serializable, false),
        &db,
        |access| access.insert(&t, &tuple(&t, 31, "a1")).map(drop),
    );
    assert_eq!(twice.expect_err("row 30 has it").sqlstate(), "23505");
}

#[test]
fn one_that_is_rolled_back_leaves_nothing() {
    for kind in KINDS {
        let (_device, db) = rows(false);
        let mut txn = db.begin(Isolation::Serializable, false);
        set_to(&db, &mut txn, 3, "x");
        index(&db, &mut txn, kind, false).expect("builds it");
        set_to(&db, &mut txn, 4, "y");
        block_on(db.rollback(txn));
        let mut txn = db.begin(Isolation::Serializable, false);
        index(&db, &mut txn, kind, false).expect("builds it");
        block_on(db.commit(txn, &RunOptions::new())).expect("commits");
        agree(&db);
    }
}
