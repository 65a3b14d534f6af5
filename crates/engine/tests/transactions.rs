//! Statements and transactions as the layers above use them: visibility,
//! conflicts, locks, definitions.

mod fixture;

use std::ops::{Bound, ControlFlow};
use std::thread;
use std::time::Duration;

use fixture::*;
use thermocline_engine::catalog::{IndexDef, IndexKind};
use thermocline_engine::{
    Change, Direction, Error, Isolation, RunOptions, Scope, Transaction, TryGet, block_on,
};
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

/// The tests of this file share one process, and simulated devices lie in
/// memory: none of them is about the limit.
const LIMIT: u64 = 64 << 30;

#[test]
fn what_is_inserted_is_found_changed_and_deleted() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        let (_device, db) = simulated(LIMIT);
        let t = make_table(&db, "t", kind);
        for id in 0..1000 {
            insert(&db, &t, id, &format!("value {id}")).expect("inserts");
        }
        assert_eq!(
            get(&db, &t, 77).expect("reads").as_deref(),
            Some("value 77")
        );
        assert!(set(&db, &t, 77, "another, longer than it was before").expect("updates"));
        assert_eq!(
            get(&db, &t, 77).expect("reads").as_deref(),
            Some("another, longer than it was before")
        );
        assert!(delete(&db, &t, 78).expect("deletes"));
        assert!(!delete(&db, &t, 78).expect("is gone"));
        assert_eq!(get(&db, &t, 78).expect("reads"), None);
        let rows = all(&db, &t);
        assert_eq!(rows.len(), 999);
        assert_eq!(db.row_estimate(&t), 999);
        db.close().expect("closes");
    }
}

#[test]
fn a_duplicate_key_is_refused_and_nothing_of_its_statement_stays() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    let (two, one) = (tuple(&t, 2, "two"), tuple(&t, 1, "again"));
    let error = block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
        access.insert(&t, &two)?;
        access.insert(&t, &one)
    }))
    .expect_err("the key is taken");
    assert_eq!(error.sqlstate(), "23505");
    assert_eq!(error.detail(), Some("Key (id)=(1) already exists."));
    assert_eq!(get(&db, &t, 2).expect("reads"), None);
    assert_eq!(get(&db, &t, 1).expect("reads").as_deref(), Some("one"));
    insert(&db, &t, 2, "two").expect("the key is free");
}

#[test]
fn a_range_comes_in_key_order_over_all_partitions() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::BTree);
    for id in (0..500).rev() {
        insert(&db, &t, id, "x").expect("inserts");
    }
    let (low, high) = (key(&t, 100), key(&t, 110));
    for (direction, expected) in [
        (Direction::Ascending, (100..110).collect::<Vec<i64>>()),
        (Direction::Descending, (100..110).rev().collect()),
    ] {
        let mut ids = Vec::new();
        block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
            ids.clear();
            access.range(
                &t,
                0,
                Bound::Included(&low),
                Bound::Excluded(&high),
                direction,
                &mut |_, tuple| {
                    if let thermocline_values::value::ValueRef::BigInt(id) = t.value(tuple, 0) {
                        ids.push(id);
                    }
                    Ok(ControlFlow::Continue(()))
                },
            )
        }))
        .expect("the range reads");
        assert_eq!(ids, expected);
    }
}

#[test]
fn a_transaction_sees_its_own_changes_and_others_see_them_at_commit() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::BTree);
    insert(&db, &t, 1, "one").expect("inserts");
    insert(&db, &t, 2, "two").expect("inserts");
    let mut txn = db.begin(Isolation::Serializable, false);
    let three = tuple(&t, 3, "three");
    in_txn(&mut txn, &db, |access| {
        assert!(set_in(access, &t, 1, "ONE")?);
        assert!(delete_in(access, &t, 2)?);
        access.insert(&t, &three)?;
        Ok(())
    })
    .expect("the statement runs");
    in_txn(&mut txn, &db, |access| {
        assert_eq!(get_in(access, &t, 1)?.as_deref(), Some("ONE"));
        assert_eq!(get_in(access, &t, 2)?, None);
        assert_eq!(get_in(access, &t, 3)?.as_deref(), Some("three"));
        Ok(())
    })
    .expect("the statement runs");
    let own = scan_all(&txn.snapshot().expect("a snapshot"), &db, &t);
    assert_eq!(own.into_values().collect::<Vec<_>>(), ["ONE", "three"]);
    assert_eq!(
        all(&db, &t).into_values().collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert_eq!(get(&db, &t, 3).expect("reads"), None);
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    assert_eq!(
        all(&db, &t).into_values().collect::<Vec<_>>(),
        ["ONE", "three"]
    );
}

#[test]
fn a_rolled_back_transaction_leaves_nothing() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    let mut txn = db.begin(Isolation::Serializable, false);
    let two = tuple(&t, 2, "two");
    in_txn(&mut txn, &db, |access| {
        set_in(access, &t, 1, "ONE")?;
        access.insert(&t, &two).map(|_| ())
    })
    .expect("the statement runs");
    drop(txn);
    assert_eq!(all(&db, &t).into_values().collect::<Vec<_>>(), ["one"]);
    insert(&db, &t, 2, "2").expect("the key is free again");
    set(&db, &t, 1, "1").expect("the row is not locked any more");
}

#[test]
fn a_savepoint_takes_back_what_came_after_it() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::BTree);
    let mut txn = db.begin(Isolation::Serializable, false);
    let (one, two) = (tuple(&t, 1, "one"), tuple(&t, 2, "two"));
    in_txn(&mut txn, &db, |access| access.insert(&t, &one)).expect("inserts");
    let savepoint = txn.savepoint(0).expect("has room");
    in_txn(&mut txn, &db, |access| access.insert(&t, &two)).expect("inserts");
    block_on(txn.rollback_to(&savepoint)).expect("rolls back");
    in_txn(&mut txn, &db, |access| access.insert(&t, &two)).expect("inserts again");
    block_on(txn.rollback_to(&savepoint)).expect("rolls back again");
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    assert_eq!(all(&db, &t).into_values().collect::<Vec<_>>(), ["one"]);
}

#[test]
fn a_savepoint_takes_back_changes_of_rows_inserted_before_it() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::BTree);
    let mut txn = db.begin(Isolation::Serializable, false);
    for (id, name) in [(1, "one"), (2, "two"), (3, "three")] {
        let tuple = tuple(&t, id, name);
        in_txn(&mut txn, &db, |access| access.insert(&t, &tuple)).expect("inserts");
    }
    let seen = |txn: &mut Transaction, id| {
        in_txn(txn, &db, |access| get_in(access, &t, id)).expect("reads")
    };
    let savepoint = txn.savepoint(0).expect("has room");
    in_txn(&mut txn, &db, |access| set_in(access, &t, 1, "ONE")).expect("updates");
    in_txn(&mut txn, &db, |access| set_in(access, &t, 1, "ONE again")).expect("updates");
    in_txn(&mut txn, &db, |access| delete_in(access, &t, 2)).expect("deletes");
    assert_eq!(seen(&mut txn, 1).as_deref(), Some("ONE again"));
    assert_eq!(seen(&mut txn, 2), None);
    block_on(txn.rollback_to(&savepoint)).expect("rolls back");
    assert_eq!(seen(&mut txn, 1).as_deref(), Some("one"));
    assert_eq!(seen(&mut txn, 2).as_deref(), Some("two"));
    // What is changed after it and not taken back is committed.
    in_txn(&mut txn, &db, |access| set_in(access, &t, 2, "TWO")).expect("updates");
    in_txn(&mut txn, &db, |access| delete_in(access, &t, 3)).expect("deletes");
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    assert_eq!(
        all(&db, &t).into_values().collect::<Vec<_>>(),
        ["one", "TWO"]
    );
    set(&db, &t, 1, "1").expect("the row is not locked any more");
    insert(&db, &t, 3, "3").expect("the key is free again");
    // A transaction that ends without a commit leaves nothing.
    let mut txn = db.begin(Isolation::ReadCommitted, false);
    let four = tuple(&t, 4, "four");
    in_txn(&mut txn, &db, |access| access.insert(&t, &four)).expect("inserts");
    txn.savepoint(0).expect("has room");
    in_txn(&mut txn, &db, |access| set_in(access, &t, 4, "FOUR")).expect("updates");
    drop(txn);
    assert_eq!(
        all(&db, &t).into_values().collect::<Vec<_>>(),
        ["1", "TWO", "3"]
    );
    insert(&db, &t, 4, "4").expect("the key is free again");
}

#[test]
fn write_skew_is_refused_under_serializable_and_only_there() {
    for (isolation, refused) in [
        (Isolation::Serializable, true),
        (Isolation::RepeatableRead, false),
    ] {
        let (_device, db) = simulated(LIMIT);
        let t = make_table(&db, "t", IndexKind::BTree);
        insert(&db, &t, 1, "on call").expect("inserts");
        insert(&db, &t, 2, "on call").expect("inserts");
        let mut first = db.begin(isolation, false);
        let mut second = db.begin(isolation, false);
        for (txn, read, write) in [(&mut first, 2, 1), (&mut second, 1, 2)] {
            in_txn(txn, &db, |access| {
                assert_eq!(get_in(access, &t, read)?.as_deref(), Some("on call"));
                set_in(access, &t, write, "off")
            })
            .expect("the statement runs");
        }
        block_on(db.commit(first, &RunOptions::new())).expect("the first commits");
        let second = block_on(db.commit(second, &RunOptions::new()));
        assert_eq!(second.is_err(), refused);
        if let Err(error) = second {
            assert_eq!(error.sqlstate(), "40001");
        }
    }
}

#[test]
fn a_phantom_is_refused_under_serializable() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::BTree);
    insert(&db, &t, 1, "one").expect("inserts");
    let mut txn = db.begin(Isolation::Serializable, false);
    let (low, high) = (key(&t, 0), key(&t, 100));
    let mut count = 0;
    in_txn(&mut txn, &db, |access| {
        count = 0;
        access.range(
            &t,
            0,
            Bound::Included(&low),
            Bound::Excluded(&high),
            Direction::Ascending,
            &mut |_, _| {
                count += 1;
                Ok(ControlFlow::Continue(()))
            },
        )
    })
    .expect("reads");
    assert_eq!(count, 1);
    insert(&db, &t, 50, "phantom").expect("inserts");
    in_txn(&mut txn, &db, |access| set_in(access, &t, 1, "changed")).expect("updates");
    let error = block_on(db.commit(txn, &RunOptions::new())).expect_err("a phantom");
    assert_eq!(error.sqlstate(), "40001");

    // A row outside the range that was read does not matter.
    let mut txn = db.begin(Isolation::Serializable, false);
    in_txn(&mut txn, &db, |access| get_in(access, &t, 1)).expect("reads");
    insert(&db, &t, 2000, "elsewhere").expect("inserts");
    in_txn(&mut txn, &db, |access| set_in(access, &t, 1, "changed")).expect("updates");
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
}

#[test]
fn a_serializable_write_to_a_changed_row_goes_on_if_nothing_read_has_changed() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    insert(&db, &t, 2, "two").expect("inserts");
    let mut txn = db.begin(Isolation::Serializable, false);
    in_txn(&mut txn, &db, |access| set_in(access, &t, 1, "ONE")).expect("updates");
    set(&db, &t, 2, "changed by another").expect("updates");
    in_txn(&mut txn, &db, |access| set_in(access, &t, 2, "TWO")).expect("the snapshot moves on");
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    assert_eq!(
        all(&db, &t).into_values().collect::<Vec<_>>(),
        ["ONE", "TWO"]
    );
    assert_eq!(db.counters().refreshes, 1);

    let mut txn = db.begin(Isolation::RepeatableRead, false);
    in_txn(&mut txn, &db, |access| get_in(access, &t, 1)).expect("reads");
    set(&db, &t, 2, "changed again").expect("updates");
    let error = in_txn(&mut txn, &db, |access| set_in(access, &t, 2, "mine"))
        .expect_err("a snapshot stays where it is under repeatable read");
    assert_eq!(error.sqlstate(), "40001");
}

#[test]
fn a_snapshot_does_not_move() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::BTree);
    for id in 0..100 {
        insert(&db, &t, id, "old").expect("inserts");
    }
    let snapshot = db.snapshot();
    for id in 0..50 {
        set(&db, &t, id, "new").expect("updates");
    }
    for id in 50..60 {
        delete(&db, &t, id).expect("deletes");
    }
    for id in 100..120 {
        insert(&db, &t, id, "later").expect("inserts");
    }
    let seen = scan_all(&snapshot, &db, &t);
    assert_eq!(seen.len(), 100);
    assert!(seen.values().all(|value| value == "old"));
    drop(snapshot);
    let now = all(&db, &t);
    assert_eq!(now.len(), 110);
    set(&db, &t, 0, "last").expect("updates");
    assert_eq!(db.memory_report().snapshots, 0);
}

#[test]
fn a_locked_row_is_waited_for_and_a_circle_is_a_deadlock() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    insert(&db, &t, 2, "two").expect("inserts");
    let mut first = db.begin(Isolation::ReadCommitted, false);
    in_txn(&mut first, &db, |access| set_in(access, &t, 1, "first")).expect("locks");

    let mut impatient = RunOptions::new();
    impatient.lock_timeout = Some(Duration::from_millis(30));
    let error = block_on(db.one_shot(&impatient, Scope::All, |access| {
        set_in(access, &t, 1, "impatient")
    }))
    .expect_err("the row is locked");
    assert_eq!(error.sqlstate(), "55P03");

    let (db2, t2) = (db.clone(), t.clone());
    let second = thread::spawn(move || {
        let mut second = db2.begin(Isolation::ReadCommitted, false);
        in_txn(&mut second, &db2, |access| set_in(access, &t2, 2, "second"))?;
        let crossed = in_txn(&mut second, &db2, |access| set_in(access, &t2, 1, "second"));
        match crossed {
            Ok(_) => block_on(db2.commit(second, &RunOptions::new())),
            Err(error) => Err(error),
        }
    });
    thread::sleep(Duration::from_millis(50));
    let crossed = in_txn(&mut first, &db, |access| set_in(access, &t, 2, "first"));
    let first = match crossed {
        Ok(_) => block_on(db.commit(first, &RunOptions::new())),
        Err(error) => {
            drop(first);
            Err(error)
        }
    };
    let second = second.join().expect("the thread ends");
    let deadlocks = [&first, &second]
        .iter()
        .filter(|r| matches!(r, Err(Error::Deadlock)))
        .count();
    assert_eq!(deadlocks, 1, "{first:?} {second:?}");
    let winner = if first.is_ok() { "first" } else { "second" };
    assert!(all(&db, &t).values().all(|value| value == winner));
}

#[test]
fn a_definition_is_seen_at_commit_and_gone_after_a_rollback() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::BTree);
    for id in 0..10 {
        insert(&db, &t, id, "x").expect("inserts");
    }
    let mut txn = db.begin(Isolation::Serializable, false);
    let truncate = Change::Truncate {
        tables: vec![t.def.oid],
        restart_identity: false,
    };
    block_on(db.ddl(&mut txn, &RunOptions::new(), truncate.clone())).expect("truncates");
    let draft = txn.catalog().table(t.def.oid).expect("it is there").clone();
    let new = tuple(&draft, 99, "new");
    in_txn(&mut txn, &db, |access| access.insert(&draft, &new)).expect("inserts");
    drop(txn);
    assert_eq!(all(&db, &t).len(), 10);

    let mut txn = db.begin(Isolation::Serializable, false);
    block_on(db.ddl(&mut txn, &RunOptions::new(), truncate)).expect("truncates");
    let draft = txn.catalog().table(t.def.oid).expect("it is there").clone();
    in_txn(&mut txn, &db, |access| access.insert(&draft, &new)).expect("inserts");
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    assert!(matches!(get(&db, &t, 1), Err(Error::StalePlan)));
    let t = table(&db, "t");
    assert_eq!(all(&db, &t).into_keys().collect::<Vec<_>>(), [99]);
}

#[test]
fn an_index_is_built_over_what_is_there() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..100 {
        insert(&db, &t, id, &format!("{:02}", id / 2)).expect("inserts");
    }
    let index = |unique| IndexDef {
        oid: db.allocate_oid(),
        name: format!("t_value_{unique}"),
        columns: vec![1],
        unique,
        primary: false,
        constraint: false,
        kind: IndexKind::BTree,
        include: Vec::new(),
        nulls_equal: false,
        order: Vec::new(),
    };
    let create = |unique| Change::CreateIndex {
        table: t.def.oid,
        index: index(unique),
    };
    let error = ddl(&db, create(true)).expect_err("there are duplicates");
    assert_eq!(error.sqlstate(), "23505");
    ddl(&db, create(false)).expect("is built");
    let t = table(&db, "t");
    insert(&db, &t, 1000, "33").expect("inserts");
    let mut key = Vec::new();
    t.encode_index_key(
        1,
        &[thermocline_values::value::ValueRef::Text("33")],
        &mut key,
    );
    let mut rows = Vec::new();
    block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
        rows.clear();
        access.find(&t, 1, &key, &mut rows)
    }))
    .expect("finds");
    assert_eq!(rows.len(), 3);
}

#[test]
fn a_primary_key_added_later_lays_the_rows_out_by_it() {
    let (_device, db) = simulated(LIMIT);
    let mut def = make_table(&db, "other", IndexKind::Hash).def.clone();
    def.oid = db.allocate_oid();
    def.name = "spread".into();
    def.partition_key.clear();
    let pkey = IndexDef {
        oid: db.allocate_oid(),
        name: "spread_pkey".into(),
        ..def.indexes.remove(0)
    };
    ddl(&db, Change::CreateTable(def)).expect("is made");
    let t = table(&db, "spread");
    for id in 0..100 {
        let bytes = tuple(&t, id, "x");
        let partition = db.spread();
        block_on(
            db.one_shot(&RunOptions::new(), Scope::One(partition), |access| {
                access.insert(&t, &bytes)
            }),
        )
        .expect("inserts");
    }
    ddl(
        &db,
        Change::CreateIndex {
            table: t.def.oid,
            index: pkey,
        },
    )
    .expect("is built");
    let t = table(&db, "spread");
    assert_eq!(t.def.partition_key, [0]);
    assert_eq!(all(&db, &t).len(), 100);
    for id in 0..100 {
        assert_eq!(get(&db, &t, id).expect("reads").as_deref(), Some("x"));
    }
}

#[test]
fn a_new_column_reads_its_default_in_old_tuples() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    let mut def = t.def.clone();
    let mut added = column("extra", DataType::Integer, false);
    added.added_in = 1;
    added.missing = Value::Integer(7);
    def.columns.push(added);
    ddl(&db, Change::AlterTable(def)).expect("alters");
    let t = table(&db, "t");
    let seen = block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
        let row = find(access, &t, 1)?.expect("the row is there");
        let tuple = access.tuple(&t, row)?.expect("it is hot").to_vec();
        Ok(t.value(&tuple, 2).to_owned())
    }))
    .expect("reads");
    assert_eq!(seen, Value::Integer(7));
}

#[test]
fn a_read_by_key_sees_what_is_committed_and_only_that() {
    for kind in [IndexKind::Hash, IndexKind::BTree] {
        reads_by_key_see_what_is_committed(kind);
    }
}

fn reads_by_key_see_what_is_committed(kind: IndexKind) {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", kind);
    insert(&db, &t, 1, "old").expect("inserts");
    let read = |id: i64| {
        let seen = |tuple: &[u8]| text_of(&t, tuple);
        let options = RunOptions::new();
        let tried = db.try_get(&options, &t, 0, &key(&t, id), seen);
        let found = block_on(db.get(&options, &t, 0, &key(&t, id), seen)).expect("reads");
        assert_eq!(tried.expect("reads"), TryGet::Done(found.clone()));
        found
    };
    let mut txn = db.begin(Isolation::Serializable, false);
    in_txn(&mut txn, &db, |access| {
        set_in(access, &t, 1, "new")?;
        access.insert(&t, &tuple(&t, 2, "two")).map(|_| ())
    })
    .expect("writes");
    assert_eq!(read(1).as_deref(), Some("old"));
    assert_eq!(read(2), None);
    block_on(db.commit(txn, &RunOptions::new())).expect("commits");
    assert_eq!(read(1).as_deref(), Some("new"));
    assert_eq!(read(2).as_deref(), Some("two"));
    assert!(delete(&db, &t, 1).expect("deletes"));
    assert_eq!(read(1), None);
    ddl(
        &db,
        Change::Truncate {
            tables: vec![t.def.oid],
            restart_identity: false,
        },
    )
    .expect("truncates");
    let stale = db.try_get(&RunOptions::new(), &t, 0, &key(&t, 2), |_| ());
    assert_eq!(stale.expect_err("bound before").sqlstate(), "0A000");
    db.close().expect("closes");
}

/// A commit let go only of the rows that it changed: SELECT FOR UPDATE and COMMIT, or a
/// change that a savepoint took back, left a lock whose holder was gone, and the next
/// writer ran in circles.
#[test]
fn a_commit_lets_go_of_rows_that_it_locked_and_did_not_change() {
    let (_, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..8 {
        insert(&db, &t, id, "first").expect("inserts");
    }
    for isolation in [
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Serializable,
    ] {
        let mut txn = db.begin(isolation, false);
        in_txn(&mut txn, &db, |access| {
            let row = find(access, &t, 1)?.expect("the row is there");
            access.lock(&t, row)
        })
        .expect("locks");
        block_on(db.commit(txn, &RunOptions::new())).expect("commits");

        let mut txn = db.begin(isolation, false);
        let savepoint = txn.savepoint(0).expect("has room");
        for id in 2..7 {
            in_txn(&mut txn, &db, |access| set_in(access, &t, id, "no")).expect("sets");
        }
        block_on(txn.rollback_to(&savepoint)).expect("goes back");
        in_txn(&mut txn, &db, |access| set_in(access, &t, 0, "yes")).expect("sets");
        block_on(db.commit(txn, &RunOptions::new())).expect("commits");

        let mut options = RunOptions::new();
        options.lock_timeout = Some(std::time::Duration::from_millis(200));
        for id in 0..8 {
            let written = block_on(db.one_shot(&options, scope(&t, id), |access| {
                set_in(access, &t, id, "after")
            }));
            assert!(written.expect("nobody holds it"), "row {id}");
        }
    }
}
