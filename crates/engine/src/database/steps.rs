//! The seam for a simulator: the whole database in one thread, from one seed.
//!
//! With [`Config::simulator`](crate::Config::simulator) set there are no threads:
//! statements are futures that the simulator polls, and what the threads would do
//! it does by [`Steps`], in whatever order. Inside a long step, where no lock is
//! held, the engine says so by [`Simulator::pause`], and the simulator may poll
//! statements and take other steps there, as other threads would.
//!
//! Nothing of it is on the way of a statement.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use thermocline_device::block_on;
use thermocline_storage::log::Step;

use crate::access::Access;
use crate::cold::compaction::Compactor;
use crate::cold::evict::Evictor;
use crate::database::Database;
use crate::ground::error::Result;
pub use crate::ground::moment::{Moment, Origin, Simulator};

/// The background tasks of a database, a step at a time.
///
/// A step may be taken inside of another at a [`Moment`]; one that is under way
/// already does nothing there, as there is one thread for each.
pub struct Steps {
    db: Arc<Database>,
    evictor: Mutex<Evictor>,
    compactor: Mutex<Compactor>,
    taken_bytes: AtomicU64,
}

impl Steps {
    /// The steps of a database that was opened without threads.
    pub fn new(db: &Arc<Database>) -> Self {
        Steps {
            db: db.clone(),
            evictor: Mutex::new(Evictor::new(db.policy().block_bytes)),
            compactor: Mutex::new(Compactor::new(db.policy().block_bytes)),
            taken_bytes: AtomicU64::new(0),
        }
    }

    /// Leaves about this many bytes below the line where eviction begins for
    /// tuples, as if something else had taken the rest.
    pub fn leave_memory(&self, bytes: u64) {
        let taken = self.db.memory().soft().saturating_sub(bytes);
        let before = self.taken_bytes.swap(taken, Ordering::Relaxed);
        self.db.memory().expect(taken);
        self.db.memory().no_longer_expect(before);
        self.db.memory().read_resident();
        self.db.memory().freed.notify();
    }

    /// The log's writer takes a step: a group is written and synced.
    pub fn flush_log(&self) -> Step {
        self.db.log().step()
    }

    /// The evictor takes a step, if memory is short. Whether it freed anything.
    pub fn evict(&self) -> Result<bool> {
        let Some(mut evictor) = self.evictor.try_lock() else {
            return Ok(false);
        };
        let evicted = evictor.step(&self.db);
        if !self.db.memory().is_full() {
            // What was freed elsewhere counts too.
            self.db.memory().freed.notify();
        }
        evicted
    }

    /// A column table's delta in the next partition is merged, up to a row group of it, however
    /// little it has. Whether there was any.
    pub fn merge(&self) -> Result<bool> {
        let Some(mut evictor) = self.evictor.try_lock() else {
            return Ok(false);
        };
        evictor.merge_next(&self.db)
    }

    /// After a start: a partition is brought, or a part of one. Whether there was anything to
    /// do. Reads must not stall.
    pub fn load(&self) -> bool {
        self.db.start().step()
    }

    /// Whether a partition is being brought. Who waits for it can go on some day.
    pub fn is_loading(&self) -> bool {
        self.db.start().is_busy()
    }

    /// Whether all partitions are there.
    pub fn has_all_partitions(&self) -> bool {
        self.db.arrivals().are_complete()
    }

    /// Compaction takes a step. Whether it did anything.
    pub fn compact(&self) -> Result<bool> {
        if !self.has_all_partitions() {
            return Ok(false);
        }
        match self.compactor.try_lock() {
            Some(mut compactor) => compactor.step(&self.db),
            None => Ok(false),
        }
    }

    /// Before-images that nobody needs are given up.
    pub fn collect_versions(&self) {
        self.db.collect_versions();
    }

    /// Rollbacks that met a device error are tried again. Reads must not stall.
    pub fn finish_rollbacks(&self) {
        block_on(self.db.finish_rollbacks());
    }

    /// What was warm at the last checkpoint comes back, as far as there is room.
    pub fn warm_up(&self) {
        if self.db.wants_warming() && self.has_all_partitions() {
            self.db.bring_back_the_warm();
        }
    }

    /// Time passed: those who wait with a limit look at the clock.
    pub fn tick(&self) {
        self.db.tick().notify();
    }

    /// The end of the log; it grows with each commit.
    pub fn log_end(&self) -> u64 {
        self.db.log().appended_lsn()
    }

    /// The number of the last commit.
    pub fn last_commit(&self) -> u64 {
        self.db.transactions().now()
    }
}

impl Access<'_> {
    /// The number of the last commit that this run sees; `None`: all of them.
    #[doc(hidden)]
    pub fn sees_up_to(&self) -> Option<u64> {
        self.snapshot
    }
}
