//! The handshakes that threads make without a common lock, tried in many interleavings: the very
//! files of the engine, over atomics and locks whose every step a scheduler decides on. A lost
//! wake-up is a deadlock here, and a stale look is a wrong value.
//!
//! Built without the harness for tests, so that the files' own tests, which know no scheduler, are
//! not in it. What is between threads under a partition's lock, or any other, needs no such trial.

#[path = "../src/memory/changes_share.rs"]
#[allow(dead_code, unused_imports)]
mod changes_share;
#[path = "../src/ground/event.rs"]
#[allow(dead_code)]
mod event;
#[path = "../src/transaction/snapshots.rs"]
#[allow(dead_code)]
mod snapshots;

mod ground {
    pub(crate) use crate::event;

    pub mod txn_id {
        pub type Timestamp = u64;
    }

    /// In place of the engine's.
    pub mod sync {
        pub use shuttle::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
        pub use shuttle::thread::yield_now;

        #[derive(Debug, Default)]
        pub struct Mutex<T>(shuttle::sync::Mutex<T>);

        impl<T> Mutex<T> {
            pub fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
                self.0.lock().expect("nobody panics with it")
            }
        }
    }
}

use std::sync::Arc;

use changes_share::ChangesShare;
use event::Event;
use ground::sync::{AtomicU64, Mutex, Ordering};
use shuttle::future::block_on;
use shuttle::thread;
use snapshots::Snapshots;

/// Interleavings of each model.
const TRIALS: usize = 2000;

/// A row in one partition: what it is, and what it was before which commits.
#[derive(Default)]
struct Row {
    now: u64,
    before: Vec<(u64, u64)>,
}

#[derive(Default)]
struct Database {
    snapshots: Snapshots,
    partitions: [Mutex<Row>; 2],
}

impl Database {
    /// Writes the commit's timestamp into both rows.
    fn commit(&self) {
        let mut rows = self.partitions.each_ref().map(Mutex::lock);
        let (timestamp, is_wanted) = self.snapshots.commit_timestamp();
        for row in &mut rows {
            if is_wanted {
                let now = row.now;
                row.before.push((timestamp, now));
            }
            row.now = timestamp;
        }
    }

    /// Both rows as they were when the snapshot opened, or `None`: it was ended.
    fn read(&self, snapshot: u64) -> Option<[u64; 2]> {
        let mut read = [0; 2];
        for (read, row) in read.iter_mut().zip(&self.partitions) {
            let row = row.lock();
            if !self.snapshots.is_kept(snapshot) {
                return None;
            }
            let later = row
                .before
                .iter()
                .find(|(timestamp, _)| *timestamp > snapshot);
            *read = later.map_or(row.now, |(_, before)| *before);
        }
        Some(read)
    }

    /// Drops what no snapshot needs.
    fn collect(&self) {
        let horizon = self.snapshots.horizon();
        for row in &self.partitions {
            row.lock()
                .before
                .retain(|(timestamp, _)| *timestamp > horizon);
        }
    }
}

fn a_snapshot_sees_the_commits_before_it_and_no_other() {
    shuttle::check_random(
        || {
            let db = Arc::new(Database::default());
            let writer = db.clone();
            let writer = thread::spawn(move || (0..3).for_each(|_| writer.commit()));
            let keeper = db.clone();
            let keeper = thread::spawn(move || {
                keeper.collect();
                keeper.snapshots.end_oldest_snapshot();
                keeper.collect();
            });
            let readers = [0; 2].map(|_| {
                let db = db.clone();
                thread::spawn(move || {
                    let snapshot = db.snapshots.open_snapshot();
                    if let Some(read) = db.read(snapshot) {
                        assert_eq!(read, [snapshot; 2]);
                    }
                    db.snapshots.close_snapshot(snapshot);
                })
            });
            for thread in readers.into_iter().chain([writer, keeper]) {
                thread.join().expect("it ends");
            }
            assert_eq!(db.snapshots.open_snapshots(), 0);
        },
        TRIALS,
    );
}

fn no_snapshot_opens_beside_a_commit_that_keeps_nothing() {
    shuttle::check_random(
        || {
            let snapshots = Arc::new(Snapshots::default());
            let under_way = Arc::new(AtomicU64::new(0));
            let commits = [0; 2].map(|_| {
                let (snapshots, under_way) = (snapshots.clone(), under_way.clone());
                thread::spawn(move || {
                    if let Some(_unseen) = snapshots.begin_unseen() {
                        under_way.fetch_add(1, Ordering::SeqCst);
                        thread::yield_now();
                        under_way.fetch_sub(1, Ordering::SeqCst);
                    }
                })
            });
            let reader = thread::spawn(move || {
                let snapshot = snapshots.open_snapshot();
                for _ in 0..3 {
                    assert_eq!(under_way.load(Ordering::SeqCst), 0);
                }
                snapshots.close_snapshot(snapshot);
            });
            for thread in commits.into_iter().chain([reader]) {
                thread.join().expect("it ends");
            }
        },
        TRIALS,
    );
}

fn an_event_that_happens_is_not_missed() {
    shuttle::check_random(
        || {
            let event = Arc::new(Event::default());
            let done = Arc::new(AtomicU64::new(0));
            let waiters = [0; 2].map(|_| {
                let (event, done) = (event.clone(), done.clone());
                thread::spawn(move || {
                    loop {
                        let listener = event.listen();
                        if done.load(Ordering::SeqCst) == 2 {
                            break;
                        }
                        block_on(listener);
                    }
                })
            });
            for _ in 0..2 {
                done.fetch_add(1, Ordering::SeqCst);
                event.notify();
            }
            waiters
                .into_iter()
                .for_each(|waiter| waiter.join().expect("it ends"));
        },
        TRIALS,
    );
}

fn who_waits_for_a_share_has_what_others_give_back() {
    shuttle::check_random(
        || {
            let share = Arc::new(ChangesShare::default());
            let transactions = [0; 3].map(|_| {
                let share = share.clone();
                thread::spawn(move || {
                    let taken = |share: &ChangesShare| share.try_take(800, 0, 1000);
                    while !taken(&share) {
                        let _waits = share.wait();
                        let freed = share.freed.listen();
                        if taken(&share) {
                            break;
                        }
                        block_on(freed);
                    }
                    assert!(share.held() <= 1000);
                    share.give(800);
                })
            });
            for transaction in transactions {
                transaction.join().expect("it ends");
            }
            assert_eq!(share.held(), 0);
        },
        TRIALS,
    );
}

/// A model, by the name of what it shows.
type Model = (&'static str, fn());

fn main() {
    let models: [Model; 4] = [
        (
            "a snapshot sees the commits before it and no other",
            a_snapshot_sees_the_commits_before_it_and_no_other,
        ),
        (
            "no snapshot opens beside a commit that keeps nothing",
            no_snapshot_opens_beside_a_commit_that_keeps_nothing,
        ),
        (
            "an event that happens is not missed",
            an_event_that_happens_is_not_missed,
        ),
        (
            "who waits for a share has what others give back",
            who_waits_for_a_share_has_what_others_give_back,
        ),
    ];
    for (name, model) in models {
        model();
        println!("model: {name}: {TRIALS} interleavings");
    }
}
