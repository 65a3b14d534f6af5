//! A key that an index refuses: the statement, or the commit, leaves all indexes as they
//! were, also those that had taken their keys before.

mod fixture;

use std::sync::Arc;

use fixture::*;
use thermocline_device::SimulatedDevice;
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{Access, Database, Isolation, Result, RunOptions, Scope, Table, block_on};

/// (id primary key, value), and after the primary key an index of values, which refuses
/// long ones. With the row (1, 'x').
fn with_index_of_values(kind: IndexKind) -> (Arc<Database>, Arc<Table>) {
    // What is verified must not be in the middle of a checkpoint.
    let db = open_alone(&SimulatedDevice::new());
    make_table(&db, "t", kind);
    create_index(&db, value_index(&db, IndexKind::BTree, false));
    let t = table(&db, "t");
    insert(&db, &t, 1, "x").expect("inserts");
    (db, t)
}

fn too_long() -> String {
    "y".repeat(3000)
}

/// Gives row 1 another id and a value that is too long for its index.
fn change_row_1(access: &mut Access<'_>, t: &Table, id: i64) -> Result<()> {
    let row = find(access, t, 1)?.expect("row 1 is there");
    access
        .update(t, row, &tuple(t, id, &too_long()))
        .map(|_| ())
}

fn is_as_it_was(db: &Arc<Database>, t: &Arc<Table>) {
    assert_eq!(get(db, t, 1).expect("reads").as_deref(), Some("x"));
    let again = insert(db, t, 1, "z").expect_err("it is there");
    assert_eq!(again.sqlstate(), "23505");
    assert_eq!(all(db, t).len(), 1);
    assert_eq!(
        db.verify().expect("verifies").problems,
        Vec::<String>::new()
    );
}

#[test]
fn an_update_that_is_refused_leaves_its_row_under_its_keys() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        let (db, t) = with_index_of_values(kind);
        // Of its own partition, and of others.
        for id in 2..20 {
            let refused = block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
                change_row_1(access, &t, id)
            }));
            let error = refused.expect_err("the value is too long");
            assert_eq!(error.sqlstate(), "54000");
            assert_eq!(get(&db, &t, id).expect("reads"), None);
        }
        is_as_it_was(&db, &t);
    }
}

#[test]
fn a_commit_that_is_refused_leaves_its_rows_under_their_keys() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        let (db, t) = with_index_of_values(kind);
        for id in 2..20 {
            let mut txn = db.begin(Isolation::Serializable, false);
            let changed = in_txn(&mut txn, &db, |access| change_row_1(access, &t, id));
            let ended = changed.and_then(|()| block_on(db.commit(txn, &RunOptions::new())));
            assert_eq!(
                ended.expect_err("the value is too long").sqlstate(),
                "54000"
            );
            assert_eq!(get(&db, &t, id).expect("reads"), None);
        }
        is_as_it_was(&db, &t);
    }
}

#[test]
fn an_insert_that_is_refused_leaves_nothing() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        let (db, t) = with_index_of_values(kind);
        let refused = insert(&db, &t, 2, &too_long()).expect_err("the value is too long");
        assert_eq!(refused.sqlstate(), "54000");
        assert_eq!(get(&db, &t, 2).expect("reads"), None);
        is_as_it_was(&db, &t);

        // In a transaction that goes on, as after a savepoint.
        let mut txn = db.begin(Isolation::Serializable, false);
        let mut put = |value: &str| {
            let bytes = tuple(&t, 2, value);
            in_txn(&mut txn, &db, |access| {
                access.insert(&t, &bytes).map(|_| ())
            })
        };
        for _ in 0..2 {
            assert_eq!(put(&too_long()).expect_err("too long").sqlstate(), "54000");
        }
        put("z").expect("inserts");
        let mut delete = || in_txn(&mut txn, &db, |access| delete_in(access, &t, 2));
        assert!(delete().expect("deletes"));
        for _ in 0..2 {
            let bytes = tuple(&t, 2, &too_long());
            let put = in_txn(&mut txn, &db, |access| {
                access.insert(&t, &bytes).map(|_| ())
            });
            assert_eq!(put.expect_err("too long").sqlstate(), "54000");
        }
        block_on(db.commit(txn, &RunOptions::new())).expect("commits");
        is_as_it_was(&db, &t);
    }
}
