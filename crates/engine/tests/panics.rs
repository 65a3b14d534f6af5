//! A panic in the code of a statement, under the locks of its partitions: what it has changed
//! is taken back, the locks are free, and the log has nothing of it. (A panic amid the engine's
//! own change of a row stops the process: `crates/thermocline/tests/panics.rs`.)

mod fixture;

use std::panic::{AssertUnwindSafe, catch_unwind};

use fixture::*;
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{Isolation, RunOptions, Scope, block_on};

const LIMIT: u64 = 64 << 30;

#[test]
fn a_statement_of_its_own_leaves_nothing_behind() {
    let (device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::BTree);
    create_index(&db, value_index(&db, IndexKind::Hash, false));
    let t = table(&db, &t.name);
    insert(&db, &t, 1, "one").expect("inserts");
    let new = tuple(&t, 2, "two");
    let changed = tuple(&t, 1, "changed");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        block_on(db.one_shot(&RunOptions::new(), Scope::All, |access| {
            access.insert(&t, &new)?;
            access.overwrite(&t, 0, &key(&t, 1), &changed)?;
            assert!(new.is_empty(), "a mistake in an expression");
            Ok(())
        }))
    }));
    assert!(panicked.is_err());
    assert_eq!(get(&db, &t, 1).expect("reads").as_deref(), Some("one"));
    assert_eq!(get(&db, &t, 2).expect("reads"), None);
    assert!(ids_of(&db, &t, "changed").is_empty() && ids_of(&db, &t, "two").is_empty());
    insert(&db, &t, 2, "another").expect("the key and the locks are free");
    assert_eq!(db.row_estimate(&t), 2);
    db.close().expect("closes");
    drop(db);
    let db = open(&device, LIMIT);
    let t = table(&db, "t");
    assert_eq!(get(&db, &t, 2).expect("reads").as_deref(), Some("another"));
    assert_eq!(all(&db, &t).len(), 2);
}

#[test]
fn a_transaction_goes_on_or_is_rolled_back_after_it() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    let (first, second) = (tuple(&t, 2, "two"), tuple(&t, 3, "three"));
    let options = RunOptions::new();
    for commits in [false, true] {
        let mut txn = db.begin(Isolation::ReadCommitted, false);
        let kept = db.in_transaction(&mut txn, &options, Scope::All, |access| {
            access.insert(&t, &first)
        });
        block_on(kept).expect("inserts");
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            block_on(db.in_transaction(&mut txn, &options, Scope::All, |access| {
                access.insert(&t, &second)?;
                access.delete_by_key(&t, 0, &key(&t, 1))?;
                assert!(second.is_empty(), "a mistake in an expression");
                Ok(())
            }))
        }));
        assert!(panicked.is_err());
        match commits {
            true => block_on(db.commit(txn, &options)).expect("commits"),
            false => drop(txn),
        }
        assert_eq!(get(&db, &t, 1).expect("reads").as_deref(), Some("one"));
        assert_eq!(get(&db, &t, 2).expect("reads").is_some(), commits);
        assert_eq!(get(&db, &t, 3).expect("reads"), None);
        assert!(set(&db, &t, 1, "one").expect("nobody has the row"));
    }
    db.close().expect("closes");
}

#[test]
fn who_only_reads_leaves_the_partition_to_others() {
    let (_device, db) = simulated(LIMIT);
    let t = make_table(&db, "t", IndexKind::Hash);
    insert(&db, &t, 1, "one").expect("inserts");
    let options = RunOptions::new();
    let sought = key(&t, 1);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        db.try_get(&options, &t, 0, &sought, |bytes| {
            assert!(bytes.is_empty(), "a mistake while a row is written");
        })
    }));
    assert!(panicked.is_err());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let snapshot = db.snapshot();
        for partition in 0..db.partitions() {
            let mut scan = snapshot.scan(&t, partition);
            let mut each = |_, bytes: &[u8]| assert!(bytes.is_empty(), "a mistake in a condition");
            while block_on(scan.next_chunk(&mut each)).expect("reads") {}
        }
    }));
    assert!(panicked.is_err());
    assert!(set(&db, &t, 1, "changed").expect("updates"));
    db.close().expect("closes");
}
