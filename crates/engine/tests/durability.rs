//! Crashes and restarts: what was acknowledged is there, and nothing else.

mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;

use fixture::*;
use thermocline_device::SimulatedDevice;
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{
    Change, Database, Error, Isolation, RunOptions, Scope, Transaction, block_on,
};

const LIMIT: u64 = 64 << 30;

fn value(id: i64, round: u32) -> String {
    format!("{id}:{round}:{}", "x".repeat((id % 700) as usize))
}

/// Crashes the device under a database that is left as it is.
fn crash(device: &SimulatedDevice, db: Arc<Database>, seed: u64) {
    device.crash(seed);
    // Its threads find a dead device, and it is never used again.
    let _ = db.close();
}

#[test]
fn after_a_crash_all_acknowledged_commits_are_there_and_no_others() {
    for seed in 0..12 {
        let (device, db) = simulated(LIMIT);
        let t = make_table(
            &db,
            "t",
            if seed % 2 == 0 {
                IndexKind::Hash
            } else {
                IndexKind::BTree
            },
        );
        let mut expected = BTreeMap::new();
        for id in 0..300 {
            insert(&db, &t, id, &value(id, 0)).expect("inserts");
            expected.insert(id, value(id, 0));
        }
        if seed % 3 > 0 {
            block_on(db.checkpoint()).expect("checkpoints");
        }
        for id in (0..300).step_by(3) {
            set(&db, &t, id, &value(id, 1)).expect("updates");
            expected.insert(id, value(id, 1));
        }
        for id in (0..300).step_by(7) {
            delete(&db, &t, id).expect("deletes");
            expected.remove(&id);
        }
        if seed % 3 > 1 {
            block_on(db.checkpoint()).expect("checkpoints");
            insert(&db, &t, 1000, "last").expect("inserts");
            expected.insert(1000, "last".into());
        }
        // A transaction that is open when it happens.
        let mut txn = db.begin(Isolation::Serializable, false);
        let open_row = tuple(&t, 5000, "not committed");
        in_txn(&mut txn, &db, |access| {
            set_in(access, &t, 1, "not committed")?;
            access.insert(&t, &open_row).map(|_| ())
        })
        .expect("the statement runs");
        std::mem::forget(txn);
        crash(&device, db, seed);

        let db = open(&device, LIMIT);
        let t = table(&db, "t");
        assert_eq!(all(&db, &t), expected, "seed {seed}");
        for (id, value) in &expected {
            assert_eq!(get(&db, &t, *id).expect("reads").as_ref(), Some(value));
        }
        assert_eq!(get(&db, &t, 5000).expect("reads"), None);
        assert_eq!(db.row_estimate(&t), expected.len() as u64);
        insert(&db, &t, 5000, "the key is free").expect("inserts");
        db.close().expect("closes");
        // And once more, from the clean stop.
        let db = open(&device, LIMIT);
        assert_eq!(
            db.recovery_report().records,
            0,
            "a clean stop leaves nothing to replay"
        );
        assert_eq!(all(&db, &table(&db, "t")).len(), expected.len() + 1);
        db.close().expect("closes");
    }
}

#[test]
fn a_large_transaction_is_there_whole_or_not_at_all() {
    for (commits, checkpoint) in [(true, false), (true, true), (false, false), (false, true)] {
        let (device, db) = simulated(LIMIT);
        let t = make_table(&db, "t", IndexKind::Hash);
        insert(&db, &t, -1, "before").expect("inserts");
        let mut txn = db.begin(Isolation::ReadCommitted, false);
        for chunk in 0..20i64 {
            let tuples: Vec<_> = (0..100)
                .map(|i| tuple(&t, chunk * 100 + i, &value(i, 0)))
                .collect();
            in_txn(&mut txn, &db, |access| {
                for tuple in &tuples {
                    access.insert(&t, tuple)?;
                }
                Ok(())
            })
            .expect("inserts");
            if checkpoint && chunk == 10 {
                block_on(db.checkpoint()).expect("checkpoints");
            }
        }
        if commits {
            block_on(db.commit(txn, &RunOptions::new())).expect("commits");
        } else {
            std::mem::forget(txn);
            insert(&db, &t, -2, "after").expect("inserts");
        }
        crash(&device, db, 1);
        let db = open(&device, LIMIT);
        let t = table(&db, "t");
        let rows = all(&db, &t).len();
        assert_eq!(
            rows,
            if commits { 2001 } else { 2 },
            "{commits} {checkpoint}"
        );
        for id in 0..10 {
            if !commits {
                insert(&db, &t, id, "again").expect("the keys are free");
            }
        }
        db.close().expect("closes");
    }
}

#[test]
fn a_row_number_that_did_not_commit_may_be_another_rows() {
    let (device, mut db) = simulated(LIMIT);
    let mut t = make_table(&db, "t", IndexKind::Hash);
    let mut expected = BTreeMap::new();
    // No checkpoint comes between: each start replays all that was before.
    for round in 0..4i64 {
        for id in round * 100..round * 100 + 20 {
            let bytes = tuple(&t, id, "committed");
            let mut txn = db.begin(Isolation::Serializable, false);
            in_txn(&mut txn, &db, |access| {
                access.insert(&t, &bytes).map(|_| ())
            })
            .expect("inserts");
            block_on(db.commit(txn, &RunOptions::new())).expect("commits");
            expected.insert(id, "committed".into());
        }
        // Some are rolled back, and some are open when it happens.
        for id in 1000..1040 {
            let bytes = tuple(&t, id, "not committed");
            let mut txn = db.begin(Isolation::Serializable, false);
            in_txn(&mut txn, &db, |access| {
                access.insert(&t, &bytes).map(|_| ())
            })
            .expect("inserts");
            if id % 2 == 0 {
                block_on(db.rollback(txn));
            } else {
                std::mem::forget(txn);
            }
        }
        // Makes all of that durable.
        insert(&db, &t, round * 100 + 50, "one statement").expect("inserts");
        expected.insert(round * 100 + 50, "one statement".into());
        crash(&device, db, round as u64);
        db = open(&device, LIMIT);
        t = table(&db, "t");
        assert_eq!(all(&db, &t), expected, "round {round}");
        for id in expected.keys() {
            assert!(get(&db, &t, *id).expect("reads").is_some(), "row {id}");
        }
        assert_eq!(get(&db, &t, 1001).expect("reads"), None);
        assert_eq!(db.row_estimate(&t), expected.len() as u64);
    }
    db.close().expect("closes");
}

#[test]
fn definitions_survive_and_open_ones_do_not() {
    let (device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..50 {
        insert(&db, &t, id, "x").expect("inserts");
    }
    ddl(
        &db,
        Change::Truncate {
            tables: vec![t.def.oid],
            restart_identity: false,
        },
    )
    .expect("truncates");
    let t = table(&db, "t");
    insert(&db, &t, 7, "seven").expect("inserts");
    let mut txn = db.begin(Isolation::Serializable, false);
    let change = Change::Truncate {
        tables: vec![t.def.oid],
        restart_identity: false,
    };
    block_on(db.ddl(&mut txn, &RunOptions::new(), change)).expect("truncates");
    let draft = txn.catalog().table(t.def.oid).expect("is there").clone();
    let row = tuple(&draft, 8, "eight");
    in_txn(&mut txn, &db, |access| access.insert(&draft, &row)).expect("inserts");
    block_on(db.checkpoint()).expect("checkpoints");
    std::mem::forget(txn);
    crash(&device, db, 3);
    let db = open(&device, LIMIT);
    let t = table(&db, "t");
    assert_eq!(all(&db, &t).into_keys().collect::<Vec<_>>(), [7]);
    db.close().expect("closes");
}

/// A checkpoint while a transaction is open that has built an index; the images have it,
/// and the catalog has not.
fn with_an_open_index(kind: IndexKind) -> (SimulatedDevice, Arc<Database>, Transaction) {
    let device = SimulatedDevice::new();
    let db = open_alone(&device);
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..200 {
        insert(&db, &t, id, &value(id, 0)).expect("inserts");
    }
    make_table(&db, "other", IndexKind::Hash);
    let mut txn = db.begin(Isolation::Serializable, false);
    let create = Change::CreateIndex {
        table: t.def.oid,
        index: value_index(&db, kind, kind == IndexKind::BTree),
    };
    block_on(db.ddl(&mut txn, &RunOptions::new(), create)).expect("builds it");
    block_on(db.checkpoint()).expect("checkpoints");
    (device, db, txn)
}

/// The log's tail was applied by the definition before the commit, so that what the
/// transaction changed after the checkpoint was missing from its index.
#[test]
fn an_index_of_a_transaction_that_a_checkpoint_met_has_all_its_rows() {
    for kind in [IndexKind::BTree, IndexKind::Hash] {
        let (device, db, mut txn) = with_an_open_index(kind);
        let draft = seen_by(&txn);
        in_txn(&mut txn, &db, |access| {
            access.insert(&draft, &tuple(&draft, 1000, "new"))?;
            set_in(access, &draft, 3, "changed")?;
            // So many that in some partitions no page of the index is written again.
            let mut gone = (0..200).filter(|id| *id != 3);
            gone.try_for_each(|id| delete_in(access, &draft, id).map(drop))
        })
        .expect("writes");
        block_on(db.commit(txn, &RunOptions::new())).expect("commits");
        device.crash(5);
        drop(db);

        // What the start has built is what the next checkpoint saves.
        for round in 0..3 {
            let db = open_alone(&device);
            let t = table(&db, "t");
            assert_eq!(all(&db, &t).len(), 2, "{kind:?}, start {round}");
            for (id, value) in all(&db, &t) {
                assert_eq!(ids_of(&db, &t, &value), [id], "{kind:?}, start {round}");
            }
            for gone in [0, 3, 199] {
                let ids = ids_of(&db, &t, &value(gone, 0));
                assert!(ids.is_empty(), "{kind:?}, row {gone}: {ids:?}");
            }
            if kind == IndexKind::BTree {
                for taken in ["new", "changed"] {
                    let bytes = tuple(&t, 2000, taken);
                    let inserted =
                        block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
                            access.insert(&t, &bytes).map(drop)
                        }));
                    let error = inserted.expect_err("the value is taken");
                    assert!(matches!(error, Error::UniqueViolation { .. }), "{error}");
                }
            }
            let verified = db.verify().expect("verifies");
            assert!(verified.is_sound(), "{:?}", verified.problems);
            block_on(db.checkpoint()).expect("checkpoints");
            device.crash(round);
            drop(db);
        }
    }
}

#[test]
fn an_index_of_a_transaction_that_did_not_commit_leaves_nothing() {
    for rolls_back in [true, false] {
        let (device, db, mut txn) = with_an_open_index(IndexKind::BTree);
        let draft = seen_by(&txn);
        in_txn(&mut txn, &db, |access| {
            access.insert(&draft, &tuple(&draft, 1000, "new")).map(drop)
        })
        .expect("inserts");
        if rolls_back {
            block_on(db.rollback(txn));
            let t = table(&db, "t");
            insert(&db, &t, 1001, &value(3, 0)).expect("nothing is unique but the id");
        } else {
            // Makes what it has logged durable.
            insert(&db, &table(&db, "other"), 1, "x").expect("inserts");
            std::mem::forget(txn);
        }
        device.crash(9);
        drop(db);

        for round in 0..2 {
            let db = open_alone(&device);
            let t = table(&db, "t");
            assert_eq!(t.def.indexes.len(), 1);
            assert_eq!(all(&db, &t).len(), 200 + usize::from(rolls_back));
            if round == 0 {
                block_on(db.checkpoint()).expect("checkpoints");
                device.crash(2);
                drop(db);
                continue;
            }
            create_index(&db, value_index(&db, IndexKind::Hash, false));
            let t = table(&db, "t");
            let ids = ids_of(&db, &t, &value(3, 0));
            assert_eq!(ids.len(), 1 + usize::from(rolls_back), "{ids:?}");
            assert!(ids_of(&db, &t, "new").is_empty());
            db.close().expect("closes");
        }
    }
}
