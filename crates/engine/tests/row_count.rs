//! A snapshot counts as many rows as it gives out, whatever others, and its own transaction, do meanwhile.

mod fixture;

use std::sync::Arc;
use std::time::Duration;

use fixture::*;
use proptest::prelude::*;
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{Database, Isolation, RunOptions, Snapshot, Transaction, block_on};

const IDS: i64 = 40;

/// What one of three transactions, or a statement alone, does to a row.
#[derive(Debug, Clone, Copy)]
enum Step {
    Alone { id: i64, deletes: bool },
    Within { of: usize, id: i64, deletes: bool },
    Savepoint { of: usize },
    BackTo { of: usize },
    End { of: usize, commits: bool },
    Hold,
    LetGo,
    Leave,
}

fn step() -> impl Strategy<Value = Step> {
    let (of, id) = (0..3usize, 0..IDS);
    prop_oneof![
        6 => (id.clone(), any::<bool>()).prop_map(|(id, deletes)| Step::Alone { id, deletes }),
        12 => (of.clone(), id, any::<bool>())
            .prop_map(|(of, id, deletes)| Step::Within { of, id, deletes }),
        1 => of.clone().prop_map(|of| Step::Savepoint { of }),
        1 => of.clone().prop_map(|of| Step::BackTo { of }),
        3 => (of, any::<bool>()).prop_map(|(of, commits)| Step::End { of, commits }),
        2 => Just(Step::Hold),
        1 => Just(Step::LetGo),
        1 => Just(Step::Leave),
    ]
}

/// Writes a row or deletes it; what another transaction holds is left alone.
fn change(db: &Arc<Database>, txn: &mut Transaction, (id, deletes): (i64, bool)) -> bool {
    let t = seen_by(txn);
    let options = RunOptions {
        lock_timeout: Some(Duration::from_millis(1)),
        ..RunOptions::new()
    };
    let done = block_on(db.in_transaction(txn, &options, scope(&t, id), |access| {
        match (find(access, &t, id)?, deletes) {
            (Some(row), true) => access.delete(&t, row).map(drop),
            (Some(row), false) => access.update(&t, row, &tuple(&t, id, "new")).map(drop),
            (None, true) => Ok(()),
            (None, false) => access.insert(&t, &tuple(&t, id, "first")).map(drop),
        }
    }));
    done.is_ok()
}

fn walk(steps: &[Step], isolation: Isolation) {
    let (_, db) = simulated(64 << 20);
    let t = make_table(&db, "t", IndexKind::Hash);
    for id in 0..IDS / 2 {
        insert(&db, &t, id, "first").expect("inserts");
    }
    let begin = || db.begin(isolation, false);
    let mut open: Vec<_> = (0..3).map(|_| (begin(), Vec::new())).collect();
    let mut held: Vec<Snapshot> = Vec::new();
    for step in steps {
        match *step {
            Step::Alone { id, deletes } => {
                let mut alone = begin();
                match change(&db, &mut alone, (id, deletes)) {
                    true => drop(block_on(db.commit(alone, &RunOptions::new()))),
                    false => block_on(db.rollback(alone)),
                }
            }
            Step::Within { of, id, deletes } => {
                if !change(&db, &mut open[of].0, (id, deletes)) {
                    let failed = std::mem::replace(&mut open[of], (begin(), Vec::new()));
                    block_on(db.rollback(failed.0));
                }
            }
            Step::Savepoint { of } => {
                let (txn, savepoints) = &mut open[of];
                savepoints.push(txn.savepoint(0).expect("has room"));
            }
            Step::BackTo { of } => {
                let (txn, savepoints) = &mut open[of];
                if let Some(savepoint) = savepoints.last() {
                    block_on(txn.rollback_to(savepoint)).expect("goes back");
                }
            }
            Step::End { of, commits } => {
                let (txn, _) = std::mem::replace(&mut open[of], (begin(), Vec::new()));
                match commits {
                    true => drop(block_on(db.commit(txn, &RunOptions::new()))),
                    false => block_on(db.rollback(txn)),
                }
            }
            Step::Hold => held.push(db.snapshot()),
            Step::LetGo => held.truncate(held.len().saturating_sub(1)),
            Step::Leave => drop(block_on(db.evict(&RunOptions::new(), &t, u64::MAX))),
        }
        // The rows of all snapshots, each beside its count.
        for snapshot in &held {
            scan_all(snapshot, &db, &t);
        }
        for (txn, _) in &mut open {
            if let Ok(snapshot) = txn.snapshot() {
                scan_all(&snapshot, &db, &t);
            }
        }
        all(&db, &t);
    }
    for (txn, _) in open {
        block_on(db.rollback(txn));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_counted_is_what_a_scan_gives(
        steps in prop::collection::vec(step(), 1..80),
        repeatable in any::<bool>(),
    ) {
        let isolation = match repeatable {
            true => Isolation::RepeatableRead,
            false => Isolation::ReadCommitted,
        };
        walk(&steps, isolation);
    }
}
