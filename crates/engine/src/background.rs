//! The threads that keep a database in order: the evictor (which also takes
//! the memory readings), the keeper (checkpoints, compaction, old versions) and,
//! for a while after a start, the warmer.
//! Each only calls steps, so that a simulator can call them instead.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::compaction::Compactor;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::evict::Evictor;

/// How often the resident size is read.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
/// How often the keeper looks around.
const KEEP_INTERVAL: Duration = Duration::from_millis(100);
/// After an error (a full disk) a background task rests this long.
const REST_AFTER_ERROR: Duration = Duration::from_millis(500);

impl Database {
    pub(crate) fn start_threads(self: &Arc<Self>) -> Result<()> {
        let failed = |e| Error::io(e, "starting a thread");
        let mut threads = vec![self.log.spawn().map_err(failed)?];
        let db = self.clone();
        let evictor = thread::Builder::new()
            .name("evictor".into())
            .spawn(move || db.evict_until_stopped())
            .map_err(failed)?;
        threads.push(evictor);
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
                .spawn(move || db.warm_up())
                .map_err(failed)?;
            threads.push(warmer);
        }
        *self.threads.lock() = threads;
        Ok(())
    }

    fn evict_until_stopped(&self) {
        let mut evictor = Evictor::new(self.policy.block_bytes);
        while !self.stopping.load(Ordering::Relaxed) {
            self.memory.read_resident();
            if self.tick.has_listeners() {
                self.tick.notify();
            }
            match evictor.step(self) {
                Ok(true) => continue,
                Ok(false) => {
                    // What was freed elsewhere counts too.
                    if self.memory.freed.has_listeners() && !self.memory.is_full() {
                        self.memory.freed.notify();
                    }
                    self.wait_for_poke(LOOK_INTERVAL);
                }
                Err(error) => {
                    self.report(&format!("eviction: {error}"));
                    self.memory.freed.notify();
                    thread::sleep(REST_AFTER_ERROR);
                }
            }
        }
        self.memory.freed.notify();
        self.tick.notify();
    }

    fn wait_for_poke(&self, at_most: Duration) {
        let (poked, signal) = &self.evictor_signal;
        let mut poked = poked.lock();
        if !*poked {
            signal.wait_for(&mut poked, at_most);
        }
        *poked = false;
    }

    fn keep_until_stopped(&self) {
        let mut compactor = Compactor::new(self.policy.block_bytes);
        let mut last_checkpoint = self.clock.now();
        while !self.stopping.load(Ordering::Relaxed) {
            let poked = self.checkpoint.wait(KEEP_INTERVAL);
            if self.stopping.load(Ordering::Relaxed) {
                break;
            }
            let result = self.keep(&mut compactor, poked, &mut last_checkpoint);
            if let Err(error) = result {
                self.report(&format!("keeping: {error}"));
                thread::sleep(REST_AFTER_ERROR);
            }
        }
    }

    fn keep(
        &self,
        compactor: &mut Compactor,
        poked: bool,
        last_checkpoint: &mut Duration,
    ) -> Result<()> {
        let now = self.clock.now();
        let changed =
            self.log.appended_lsn() > self.checkpoint.last_lsn.load(Ordering::Relaxed) + 4096;
        let timed =
            changed && now.saturating_sub(*last_checkpoint) > self.config.checkpoint_interval;
        if poked || timed || self.checkpoint_is_due() {
            self.run_checkpoint()?;
            *last_checkpoint = self.clock.now();
        }
        self.collect_versions();
        // A few steps a look: compaction takes its share of the device, not all.
        for _ in 0..4 {
            if !compactor.step(self)? {
                break;
            }
        }
        Ok(())
    }

    /// Drops before-images that no snapshot needs, in partitions that have not
    /// been written since.
    pub(crate) fn collect_versions(&self) {
        let oldest = self.transactions.oldest_snapshot();
        for partition in &self.partitions {
            let mut state = partition.state.lock();
            if !state.versions.is_empty() {
                state.collect_versions(oldest);
            }
        }
    }
}
