//! The threads that keep a database in order: the one that takes the memory
//! readings, the evictor, the checkpointer, the keeper (compaction, old versions)
//! and, for a while after a start, the warmer.
//! Each only calls steps, so that a simulator can call them instead.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use thermocline_device::{StopsOnPanic, block_on};

use crate::cold::compaction::Compactor;
use crate::cold::cooling;
use crate::cold::evict::Evictor;
use crate::database::Database;
use crate::ground::error::{Error, Result};
use crate::ground::pulse::Pace;
use crate::memory::Pressure;
use crate::parts::checkpoint_state::Purpose;

/// How often the resident size is read.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
/// A change of it that means that something goes on.
const STIR_BYTES: u64 = 64 << 10;
/// How often the keeper looks around.
const KEEP_INTERVAL: Duration = Duration::from_millis(100);
/// A heap of which more than this share is free slots is made denser, ...
const SPARSE_SHARE: f64 = 0.3;
/// ... moving about so many bytes of tuples in a turn under the lock, ...
const RETURN_TURN_BYTES: usize = 64 << 10;
/// ... for so long a look.
const RETURN_PAGES_FOR: Duration = Duration::from_millis(30);
/// How often the allocator gives back what it holds, while memory is short, ...
const RETURN_FREE_INTERVAL: Duration = Duration::from_millis(20);
/// ... and all threads what they keep for themselves.
const RETURN_MEMORY_INTERVAL: Duration = Duration::from_secs(1);
/// How often the program's code is taken out of memory then, ...
const FORGET_CODE_INTERVAL: Duration = Duration::from_secs(10);
/// ... and how long after the last statement that ran much of it.
const CODE_IDLE: Duration = Duration::from_secs(2);
/// An operator is told so often at most that more is resident than the limit.
const EXCESS_TOLD_INTERVAL: Duration = Duration::from_secs(10);
/// How often directories and indexes are counted: each time the keeper looks where there
/// are few tables, ...
const FEW_TABLES: usize = 100;
/// ... otherwise so often.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);
/// Huge pages that memory gets a look at most: 500 MB a second.
const JOINED_A_LOOK: usize = 25;
/// How often the checkpointer looks around.
const LOOK_FOR_CHECKPOINT: Duration = Duration::from_millis(100);
/// How often the checkpointer, and the evictor and the keeper, do so while nobody does anything.
const REST_OF_CHECKPOINTS: Duration = Duration::from_millis(500);
const REST: Duration = Duration::from_secs(1);
/// After an error (a full disk) a background task rests this long.
const REST_AFTER_ERROR: Duration = Duration::from_millis(500);

impl Database {
    pub(crate) fn start_threads(self: &Arc<Self>) -> Result<()> {
        let failed = |e| Error::io(e, "starting a thread");
        let mut threads = vec![self.log().spawn().map_err(failed)?];
        let db = self.clone();
        let reader = thread::Builder::new()
            .name("memory".into())
            .spawn(move || db.read_memory_until_stopped())
            .map_err(failed)?;
        threads.push(reader);
        let db = self.clone();
        let evictor = thread::Builder::new()
            .name("evictor".into())
            .spawn(move || db.evict_until_stopped())
            .map_err(failed)?;
        threads.push(evictor);
        let db = self.clone();
        let checkpointer = thread::Builder::new()
            .name("checkpointer".into())
            .spawn(move || db.checkpoint_until_stopped())
            .map_err(failed)?;
        threads.push(checkpointer);
        let db = self.clone();
        let keeper = thread::Builder::new()
            .name("keeper".into())
            .spawn(move || db.keep_until_stopped())
            .map_err(failed)?;
        threads.push(keeper);
        if self.wants_warming() {
            let db = self.clone();
            let warmer = thread::Builder::new()
                .name("warmer".into())
                .spawn(move || {
                    let _stops = StopsOnPanic::while_in("the warmer");
                    db.bring_back_the_warm();
                })
                .map_err(failed)?;
            threads.push(warmer);
        }
        self.keep_threads(threads);
        Ok(())
    }

    /// Takes the readings, whatever the evictor waits for: it may be a busy device, and
    /// statements would go by what memory was before.
    fn read_memory_until_stopped(&self) {
        let _stops = StopsOnPanic::while_in("the reading of memory");
        // A reading that comes late is one of what memory was before it grew.
        thermocline_device::go_before_other_threads();
        let mut pace = Pace::new();
        let mut before = 0;
        let mut returned = Duration::ZERO;
        let mut told: Option<Duration> = None;
        while !self.is_stopping() {
            let resident = self.memory().read_resident();
            if resident > self.memory().limit() {
                let now = self.clock().now();
                if told.is_none_or(|told| now.saturating_sub(told) >= EXCESS_TOLD_INTERVAL)
                    && let Some(excess) = self.memory().excess()
                {
                    told = Some(now);
                    self.report(&excess);
                }
            }
            let timed = self.tick().has_listeners();
            if timed {
                self.tick().notify();
            }
            let wanted =
                self.memory().pressure() != Pressure::None || self.memory().freed.has_listeners();
            self.memory().forget_code_beyond_room();
            if wanted {
                let now = self.clock().now();
                if self.memory().is_tight() || now.saturating_sub(returned) >= RETURN_FREE_INTERVAL
                {
                    returned = now;
                    thermocline_device::return_memory();
                }
                self.poke_evictor();
            }
            let stirs = resident.abs_diff(before) >= STIR_BYTES;
            before = resident;
            pace.wait(self.pulse(), timed || wanted || stirs, LOOK_INTERVAL);
        }
    }

    fn evict_until_stopped(&self) {
        let _stops = StopsOnPanic::while_in("the evictor");
        let mut evictor = Evictor::new(self.policy().block_bytes);
        while !self.is_stopping() {
            match evictor.step(self) {
                Ok(true) => continue,
                Ok(false) => {
                    // What was freed elsewhere counts too.
                    if self.memory().freed.has_listeners() && !self.memory().is_full() {
                        self.memory().freed.notify();
                    }
                    self.wait_for_poke(match self.pulse().rests() {
                        true => REST,
                        false => cooling::LOOK_INTERVAL,
                    });
                }
                Err(error) => {
                    self.report(&format!("eviction: {error}"));
                    self.memory().freed.notify();
                    thread::sleep(REST_AFTER_ERROR);
                }
            }
        }
        self.memory().freed.notify();
        self.tick().notify();
    }

    fn checkpoint_until_stopped(&self) {
        let _stops = StopsOnPanic::while_in("the checkpointer");
        let mut last = self.clock().now();
        loop {
            let poked = self.checkpoint_state().wait(match self.pulse().rests() {
                true => REST_OF_CHECKPOINTS,
                false => LOOK_FOR_CHECKPOINT,
            });
            if self.is_stopping() {
                return;
            }
            let timed = self.has_logged()
                && self.clock().now().saturating_sub(last) > self.settings().checkpoint_interval;
            if !(poked || timed || self.checkpoint_is_due()) || !self.arrivals().are_complete() {
                continue;
            }
            match self.run_checkpoint(Purpose::Upkeep) {
                Ok(()) => last = self.clock().now(),
                Err(error) => {
                    self.report(&format!("checkpoint: {error}"));
                    thread::sleep(REST_AFTER_ERROR);
                }
            }
        }
    }

    fn keep_until_stopped(&self) {
        let _stops = StopsOnPanic::while_in("the keeper");
        let mut compactor = Compactor::new(self.policy().block_bytes);
        let (mut returned, mut forgotten, mut counted) = (None, None, None);
        let mut code_used = Duration::ZERO;
        let mut worked = false;
        while !self.is_stopping() {
            // A stop unparks it.
            thread::park_timeout(match self.pulse().rests() && !worked {
                true => REST,
                false => KEEP_INTERVAL,
            });
            let now = self.clock().now();
            let is_due = |last: &mut Option<Duration>, interval| {
                let due = last.is_none_or(|at| now.saturating_sub(at) >= interval);
                if due {
                    *last = Some(now);
                }
                due
            };
            let few = self.storages().read().len() <= FEW_TABLES;
            if few || is_due(&mut counted, COUNT_INTERVAL) {
                self.count_metadata();
            }
            let code = self.memory().runs_code();
            if code == Some(true) {
                code_used = now;
            }
            if !self.memory().has_room() {
                if is_due(&mut returned, RETURN_MEMORY_INTERVAL) {
                    thermocline_device::ask_for_memory();
                }
                let forget = match code {
                    None => is_due(&mut forgotten, FORGET_CODE_INTERVAL),
                    Some(_) => now.saturating_sub(code_used) >= CODE_IDLE,
                };
                if forget {
                    self.memory().forget_code();
                }
            }
            worked = self.keep(&mut compactor).unwrap_or_else(|error| {
                self.report(&format!("compaction: {error}"));
                self.stop_if_blocks_failed();
                thread::sleep(REST_AFTER_ERROR);
                true
            });
        }
    }

    /// Counts what directories and indexes take, and warns the operator before rows are
    /// refused for it.
    fn count_metadata(&self) {
        let bytes = self.metadata_bytes();
        if let Some(warning) = self.memory().note_metadata(self.clock().now(), bytes) {
            self.report(&warning);
        }
    }

    /// Whether there was something to compact, and may be more.
    fn keep(&self, compactor: &mut Compactor) -> Result<bool> {
        self.archive_in_turn();
        self.collect_versions();
        block_on(self.finish_rollbacks());
        self.return_pages();
        self.arena().join_pages(JOINED_A_LOOK);
        if !self.arrivals().are_complete() {
            // What is alive in a block is not known yet.
            return Ok(false);
        }
        // A few steps a look: compaction takes its share of the device, not all.
        for _ in 0..2 {
            if self.is_stopping() || !compactor.step(self)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives the pages back that deleted rows have left sparse, in turns that hold
    /// a partition for a fraction of a millisecond. The evictor does so too, but
    /// only while memory is short.
    fn return_pages(&self) {
        let until = self.clock().now() + RETURN_PAGES_FOR;
        for partition in self.all_partitions() {
            let storages: Vec<u32> = partition.lock_any().tables.storages().collect();
            for storage in storages {
                loop {
                    if self.clock().now() >= until {
                        return;
                    }
                    let mut state = partition.lock_any();
                    let Some(rows) = state.tables.rows_mut(storage) else {
                        break;
                    };
                    if rows.compact_heap(RETURN_TURN_BYTES, SPARSE_SHARE) == 0 {
                        break;
                    }
                }
            }
        }
    }
}
