//! Bringing partitions: each has its image read, its share of the log's tail applied, and is
//! settled; then it is there. Partitions know nothing of each other, so that any thread may
//! bring any, in any order, and the result is the same, byte for byte.
//!
//! While the log is being read, images are; what the log says waits in memory meanwhile, up to
//! a share of the limit. Beyond that whoever reads helps to bring what takes it. What somebody
//! waits for comes first ([`crate::rows::arrivals`]).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use thermocline_device::{Mutation, StopPoint, stop_at};

use super::apply::Replayer;
use super::events::{Definitions, Events};
use super::images::{Restored, restore_partition};
use super::pieces::Batch;
use super::progress::Progress;
use super::settle::Ending;
use super::tail::Tail;
use crate::catalog::storages::TablesByStorage;
use crate::cold::evict::Evictor;
use crate::format::manifest::{Manifest, PartitionFiles};
use crate::ground::error::{Error, Result};
use crate::ground::listener::RecoveryPart;
use crate::ground::start::Bring;
use crate::parts::Parts;
use crate::procedure::Procedures;
use crate::rows::arrivals::Loader;
use crate::rows::partition::PartitionState;

/// The share of the memory limit that waiting pieces of the log may take, as a divisor, ...
const QUEUED_SHARE: u64 = 8;
/// ... but no less than so many bytes.
const QUEUED_MIN: u64 = 4 << 20;
/// How long a thread waits at a time for others.
const A_WHILE: Duration = Duration::from_millis(5);

/// How far a partition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing is there.
    Nothing,
    /// Its image is, and perhaps some of its share of the log.
    Image,
    /// It is there, or never will be.
    Over,
}

/// What a thread is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hand {
    /// Any partition, the wanted first.
    Any,
    /// Those that are waited for, and no others: nobody waits until a thread has brought what
    /// it has in hand.
    Express,
}

/// What a thread does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Reads a partition's image.
    Image,
    /// Applies what the log has said so far.
    Queued,
    /// All that is left.
    All,
}

/// A partition while it comes.
#[derive(Default)]
struct Coming {
    /// Its share of the log, as far as it waits.
    queue: Mutex<Vec<Batch>>,
    /// From its image on. Whoever has work in the partition takes it.
    replayer: Mutex<Option<Box<Replayer>>>,
}

/// Who does what.
struct Plan {
    stages: Vec<Stage>,
    /// Somebody is at work there.
    busy: Vec<bool>,
    /// All of the log is read.
    is_read: bool,
    /// Partitions that are not there.
    left: usize,
    /// The first thing that failed.
    failed: Option<Error>,
}

impl Plan {
    fn is_free(&self, partition: u16) -> bool {
        let place = usize::from(partition);
        !self.busy[place] && self.stages[place] != Stage::Over
    }

    fn has_free(&self) -> bool {
        (0..self.stages.len() as u16).any(|partition| self.is_free(partition))
    }

    fn first_at(&self, stage: Stage) -> Option<u16> {
        let mut free = (0..self.stages.len() as u16).filter(|partition| self.is_free(*partition));
        free.find(|partition| self.stages[usize::from(*partition)] == stage)
    }

    /// Whether what failed refuses the start.
    fn is_refused(&self, is_whole: bool) -> bool {
        self.failed.is_some() && (!self.is_read || is_whole)
    }
}

/// What is under way between opening a database and the arrival of its last partition.
pub(crate) struct Loading {
    images: Vec<PartitionFiles>,
    pub(super) tail: Tail,
    coming: Vec<Coming>,
    /// The checkpoint's blocks, by partition.
    blocks: Vec<Vec<u32>>,
    plan: Mutex<Plan>,
    changed: Condvar,
    first: Arc<Definitions>,
    ending: Mutex<Option<Arc<Ending>>>,
    /// Bytes of pieces that wait.
    queued: AtomicU64,
    queued_max: u64,
    pub(super) spent: Spent,
    progress: Progress,
    begun: Duration,
}

/// What was done, and how long it took all threads together; the log is read by one.
#[derive(Default)]
pub(super) struct Spent {
    pub rows: AtomicU64,
    pub reading_us: AtomicU64,
    pub images_us: AtomicU64,
    pub log_us: AtomicU64,
    pub settling_us: AtomicU64,
}

impl Loading {
    /// Brings the partitions of a checkpoint, whose catalog is in force by now.
    pub(super) fn new(
        db: &Parts,
        procedures: Procedures,
        manifest: &Manifest,
        begun: Duration,
        is_whole: bool,
    ) -> Self {
        let partitions = manifest.partitions.len();
        let mut blocks = vec![Vec::new(); partitions];
        db.blocks().each_block(|block| {
            if let Some(of) = blocks.get_mut(usize::from(block.partition)) {
                of.push(block.id);
            }
        });
        Loading {
            tail: Tail {
                catalog_lsn: manifest.catalog_lsn,
                events: Events::default(),
                procedures,
                evictor: Mutex::new(Evictor::new(db.policy().block_bytes)),
                is_whole,
            },
            images: manifest.partitions.clone(),
            coming: (0..partitions).map(|_| Coming::default()).collect(),
            blocks,
            plan: Mutex::new(Plan {
                stages: vec![Stage::Nothing; partitions],
                busy: vec![false; partitions],
                is_read: false,
                left: partitions,
                failed: None,
            }),
            changed: Condvar::new(),
            first: Definitions::of_now(db),
            ending: Mutex::new(None),
            queued: AtomicU64::new(0),
            queued_max: (db.memory().limit() / QUEUED_SHARE).max(QUEUED_MIN),
            spent: Spent::default(),
            progress: Progress::new(db.settings(), RecoveryPart::Partitions),
            begun,
        }
    }

    /// Whether the image of a partition has the record that ends at `lsn`.
    pub(super) fn has(&self, partition: u16, lsn: u64) -> Result<bool> {
        let image = self.images.get(usize::from(partition));
        let cut = image
            .map(|image| image.cut)
            .ok_or_else(|| Error::Corrupt(format!("the log names partition {partition}")))?;
        if Mutation::LsnsNarrow.is_made() {
            return Ok(lsn as u32 <= cut as u32);
        }
        Ok(lsn <= cut)
    }

    /// How many partitions there are.
    pub(super) fn partitions(&self) -> usize {
        self.images.len()
    }

    /// What went wrong first, if anything did.
    pub(super) fn failure(&self) -> Option<Error> {
        self.plan.lock().failed.clone()
    }

    /// Counts bytes that are about to wait. Whether too many do.
    pub(super) fn count_queued(&self, bytes: u64) -> bool {
        self.queued.fetch_add(bytes, Ordering::Relaxed) + bytes > self.queued_max
    }

    /// Has pieces wait for their partition.
    pub(super) fn queue(&self, partition: u16, batch: Batch) {
        self.coming[usize::from(partition)].queue.lock().push(batch);
    }

    /// Brings partitions until half of what waited is applied: too much waits.
    pub(super) fn relieve(&self, db: &Parts) -> Result<()> {
        while self.queued.load(Ordering::Relaxed) > self.queued_max / 2 {
            if let Some(failed) = self.failure() {
                return Err(failed);
            }
            if !self.step(db) {
                let mut plan = self.plan.lock();
                self.changed.wait_for(&mut plan, A_WHILE);
            }
        }
        Ok(())
    }

    /// All of the log is read: from here on a partition can be there.
    pub(super) fn log_is_read(&self, ending: Ending) {
        *self.ending.lock() = Some(Arc::new(ending));
        self.plan.lock().is_read = true;
        self.changed.notify_all();
    }

    /// A thread's life: works until nothing is left for it.
    pub(super) fn work(&self, db: &Parts, hand: Hand) {
        loop {
            if self.step_by(db, hand) {
                continue;
            }
            let mut plan = self.plan.lock();
            let is_over = match hand {
                // The rest is others'.
                Hand::Any => plan.is_read,
                Hand::Express => plan.is_read && !plan.has_free(),
            };
            if is_over || plan.is_refused(self.tail.is_whole) || self.is_to_stop(db) {
                return;
            }
            self.changed.wait_for(&mut plan, A_WHILE);
        }
    }

    fn is_to_stop(&self, db: &Parts) -> bool {
        db.is_stopping()
    }

    /// Does one piece of work, if there is one that nobody does.
    pub(super) fn step(&self, db: &Parts) -> bool {
        self.step_by(db, Hand::Any)
    }

    fn step_by(&self, db: &Parts, hand: Hand) -> bool {
        let next = match self.is_to_stop(db) {
            true => None,
            false => self.next(db, hand),
        };
        let Some((partition, work)) = next else {
            return false;
        };
        let _loader = Loader::enter();
        let done = catch_unwind(AssertUnwindSafe(|| self.run(db, partition, work)));
        let done = done.unwrap_or_else(|_| {
            let what = format!("bringing partition {partition} panicked");
            Err(Error::Internal(what))
        });
        self.end(db, partition, work, done);
        true
    }

    fn next(&self, db: &Parts, hand: Hand) -> Option<(u16, Work)> {
        let mut plan = self.plan.lock();
        if plan.is_refused(self.tail.is_whole) {
            return None;
        }
        let next = match (plan.is_read, hand) {
            (true, _) => {
                let wanted = db.arrivals().first_wanted(|wanted| plan.is_free(wanted));
                let next = wanted.or_else(|| match hand {
                    Hand::Any => plan
                        .first_at(Stage::Image)
                        .or_else(|| plan.first_at(Stage::Nothing)),
                    Hand::Express => None,
                });
                (next?, Work::All)
            }
            (false, Hand::Express) => return None,
            (false, Hand::Any) => {
                let is_full = self.queued.load(Ordering::Relaxed) > self.queued_max / 2;
                let queued = is_full.then(|| self.fullest(|p| plan.is_free(p)));
                match queued.flatten() {
                    Some(partition) => match plan.stages[usize::from(partition)] {
                        Stage::Nothing => (partition, Work::Image),
                        _ => (partition, Work::Queued),
                    },
                    None => (plan.first_at(Stage::Nothing)?, Work::Image),
                }
            }
        };
        plan.busy[usize::from(next.0)] = true;
        Some(next)
    }

    /// The partition for which most waits.
    fn fullest(&self, is_free: impl Fn(u16) -> bool) -> Option<u16> {
        let waiting = |partition: &u16| {
            let queue = self.coming[usize::from(*partition)].queue.lock();
            queue.iter().map(Batch::memory_bytes).sum::<u64>()
        };
        let free = (0..self.coming.len() as u16).filter(|partition| is_free(*partition));
        let fullest = free.map(|p| (waiting(&p), p)).max();
        fullest.filter(|(bytes, _)| *bytes > 0).map(|(_, p)| p)
    }

    fn run(&self, db: &Parts, partition: u16, work: Work) -> Result<()> {
        let coming = &self.coming[usize::from(partition)];
        let taken = coming.replayer.lock().take();
        let mut replayer = match taken {
            Some(replayer) => replayer,
            None => self.restore(db, partition)?,
        };
        if work != Work::Image {
            self.apply(db, &mut replayer)?;
        }
        if work == Work::All {
            replayer.apply_events(db, &self.tail, u64::MAX)?;
            let ending = self.ending.lock().clone();
            let ending = ending.ok_or_else(|| Error::Internal("the log is not read".into()))?;
            timed(db, &self.spent.settling_us, || replayer.settle(db, &ending))?;
            // Nothing of it is needed any more.
            return Ok(());
        }
        *coming.replayer.lock() = Some(replayer);
        Ok(())
    }

    /// Puts a partition's image in place.
    fn restore(&self, db: &Parts, partition: u16) -> Result<Box<Replayer>> {
        let place = usize::from(partition);
        let image = &self.images[place];
        let mut state = db.empty_partition(partition);
        state.is_there = false;
        let mut restored = Restored::default();
        timed(db, &self.spent.images_us, || {
            restore_partition(&**db.device(), &mut state, image, &mut restored)
        })?;
        drop_unnamed_indexes(&mut state, &self.first.tables);
        for block in &self.blocks[place] {
            let live = restored.lives.get(block).copied().unwrap_or(0);
            let records = db.blocks().info(*block).map_or(0, |info| info.records);
            if live > records || !db.blocks().set_live(*block, live) {
                return Err(Error::Corrupt(format!(
                    "block {block} has more live tuples than records"
                )));
            }
        }
        self.spent.rows.fetch_add(restored.rows, Ordering::Relaxed);
        *db.all_partitions()[place].lock_any() = state;
        stop_at(StopPoint::RecoveryImages);
        let first = self.first.clone();
        Ok(Box::new(Replayer::new(partition, image.cut, first)))
    }

    /// Applies what waits for a partition.
    fn apply(&self, db: &Parts, replayer: &mut Replayer) -> Result<()> {
        let coming = &self.coming[usize::from(replayer.partition)];
        let queue = std::mem::take(&mut *coming.queue.lock());
        timed(db, &self.spent.log_us, || {
            for batch in queue {
                for piece in batch.pieces() {
                    if self.is_to_stop(db) {
                        return Err(Error::ShuttingDown);
                    }
                    replayer.apply(db, &self.tail, &piece)?;
                }
                self.queued
                    .fetch_sub(batch.memory_bytes(), Ordering::Relaxed);
            }
            Ok(())
        })
    }

    /// Notes what became of a piece of work.
    fn end(&self, db: &Parts, partition: u16, work: Work, done: Result<()>) {
        let place = usize::from(partition);
        let mut plan = self.plan.lock();
        plan.busy[place] = false;
        let failed = match done {
            Ok(()) if work != Work::All => {
                plan.stages[place] = Stage::Image;
                None
            }
            Ok(()) => {
                plan.stages[place] = Stage::Over;
                plan.left -= 1;
                None
            }
            Err(error) => {
                plan.stages[place] = Stage::Over;
                plan.failed.get_or_insert_with(|| error.clone());
                Some(error)
            }
        };
        let (is_last, is_read, left) = (plan.left == 0, plan.is_read, plan.left);
        drop(plan);
        match failed {
            // Before that the start itself is refused.
            Some(error) if is_read && !self.tail.is_whole => self.lose(db, partition, error),
            Some(_) => {}
            None if work == Work::All => {
                if is_last {
                    self.complete(db);
                }
                db.all_partitions()[place].lock_any().is_there = true;
                db.arrivals().arrived(partition);
                if is_last {
                    db.start().all_are_there();
                } else {
                    stop_at(StopPoint::RecoveryPartition);
                }
                let all = self.partitions() as u64;
                self.progress.tell(all - left as u64, all);
            }
            None => {}
        }
        self.changed.notify_all();
    }

    /// A partition cannot be brought: who needs it is told so, and nothing is written any
    /// more, for no checkpoint can be made.
    fn lose(&self, db: &Parts, partition: u16, error: Error) {
        if !matches!(error, Error::ShuttingDown) {
            let why = format!("partition {partition} could not be read at the start: {error}");
            db.log().fail(&why);
            db.report(&why);
        }
        db.arrivals().lost(partition, error);
    }

    /// The last partition is about to be there.
    fn complete(&self, db: &Parts) {
        let Some(ending) = self.ending.lock().take() else {
            return;
        };
        let is_gone = |storage: u32| {
            ending.definitions.tables.contains_key(&storage)
                && !ending.wanted.contains_key(&storage)
        };
        db.storages().retain(|storage| !is_gone(storage));
        let ended = db.clock().now();
        let threads = db.recovery_threads() as u64;
        let shared = |us: &AtomicU64| us.load(Ordering::Relaxed) / threads;
        let log_us = self.spent.reading_us.load(Ordering::Relaxed) + shared(&self.spent.log_us);
        let (records, log_bytes) = {
            let mut report = db.start().report_mut();
            report.rows = self.spent.rows.load(Ordering::Relaxed);
            report.whole_milliseconds = ended.saturating_sub(self.begun).as_millis() as u64;
            report.image_milliseconds = shared(&self.spent.images_us) / 1000;
            report.log_milliseconds = log_us / 1000;
            report.settling_milliseconds = shared(&self.spent.settling_us) / 1000;
            (report.records, report.log_bytes)
        };
        db.measured_replay(records, log_bytes, Duration::from_micros(log_us));
        // What this thread's allocations have left would stay its own otherwise.
        thermocline_device::return_memory();
    }
}

/// Counts how long this takes.
fn timed<T>(db: &Parts, spent_us: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let begun = db.clock().now();
    let done = work();
    let took = db.clock().now().saturating_sub(begun);
    spent_us.fetch_add(took.as_micros() as u64, Ordering::Relaxed);
    done
}

/// Drops the indexes of an image that the checkpoint's definitions do not name. A transaction
/// that was open had built them. What the log's tail says of their tables is applied by these
/// definitions until the transaction commits, so they would lack what it changed. If it does,
/// they are built anew.
fn drop_unnamed_indexes(state: &mut PartitionState, tables: &TablesByStorage) {
    for (storage, rows) in state.tables.all_rows_mut() {
        let Some(table) = tables.get(&storage) else {
            continue;
        };
        rows.indexes_mut()
            .retain(|slot| table.def.indexes.iter().any(|def| def.oid == slot.oid));
    }
}

/// Loading for whoever has the parts and need not know more.
pub(super) struct Bringing {
    pub loading: Arc<Loading>,
    pub parts: Weak<Parts>,
}

impl Bring for Bringing {
    fn step(&self) -> bool {
        let parts = self.parts.upgrade();
        parts.is_some_and(|parts| self.loading.step(&parts))
    }

    fn is_busy(&self) -> bool {
        self.loading.plan.lock().busy.contains(&true)
    }
}
