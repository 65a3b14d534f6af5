//! Warming up after a restart: the tuples that were hot come back in the
//! background, the warmest first, while the database serves.
//!
//! A restart brings every tuple up cold, with the temperature that the last
//! checkpoint kept in its word. The directories are swept a few times, each
//! time for cooler tuples. What is found is read in the order of its blocks and
//! becomes hot, as long as there is room that nobody else wants. While
//! statements wait for tuples of their own, the device is theirs half the time.

use std::sync::atomic::Ordering;

use thermocline_storage::temperature::{EVICT, MAX};

use crate::database::Database;
use crate::database::warm_up::WarmUpReport;
use crate::ground::counters::Counters;
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::policy::Merge;
use crate::rows::fetch::{PlannedRead, batch_of, plan};
use crate::rows::row_state::TablePartition;
use thermocline_device::block_on;

/// The coolest tuples that each sweep brings in.
const SWEEPS: [u8; 4] = [MAX / 2 + 1, EVICT + 1, 1, 0];
/// Words that are looked at in one turn under the partition's lock.
const TURN_WORDS: u32 = 16 << 10;
/// What is read at once: about so many bytes, in at most so many reads.
const READ_AT_ONCE_BYTES: usize = 2 << 20;
const READ_AT_ONCE: usize = 128;

impl Database {
    /// How far the warming up has come.
    pub fn warm_up_report(&self) -> WarmUpReport {
        WarmUpReport {
            swept: self.warm_up().swept.load(Ordering::Relaxed),
            sweeps: (SWEEPS.len() * self.all_partitions().len()) as u64,
            is_under_way: self.warm_up().is_under_way.load(Ordering::Relaxed),
        }
    }

    /// Whether there may be anything to warm up.
    pub(crate) fn wants_warming(&self) -> bool {
        self.start().report().rows > 0 || !self.arrivals().are_complete()
    }

    /// The warming thread's life.
    pub(crate) fn bring_back_the_warm(&self) {
        self.warm_up().is_under_way.store(true, Ordering::Relaxed);
        // What comes first for statements is not warmed meanwhile: the device is the images'.
        if self.wait_for_partitions().is_ok() && self.start().report().rows > 0 {
            if let Err(error) = self.bring_back_loaded() {
                self.report(&format!("loading columns again: {error}"));
            }
            self.sweep_all();
        }
        self.warm_up().is_under_way.store(false, Ordering::Relaxed);
    }

    fn sweep_all(&self) {
        for coolest in SWEEPS {
            for partition in 0..self.partitions() {
                match self.warm_partition(partition, coolest) {
                    Ok(true) => {
                        self.warm_up().swept.fetch_add(1, Ordering::Relaxed);
                    }
                    // No room, or the end.
                    Ok(false) => return,
                    Err(error) => {
                        self.report(&format!("warming up: {error}"));
                        return;
                    }
                }
            }
        }
    }

    /// Brings in tuples of a partition that are no cooler than `coolest`.
    /// Whether there is room for more.
    fn warm_partition(&self, partition: u16, coolest: u8) -> Result<bool> {
        let storages: Vec<u32> = {
            let state = self.all_partitions()[usize::from(partition)].lock();
            state.tables.storages().collect()
        };
        for storage in storages {
            let mut first = 0;
            loop {
                let (reads, pin, more) = {
                    let state = self.all_partitions()[usize::from(partition)].lock();
                    let rows = state.tables.rows(storage);
                    let warms = |rows: &&TablePartition| rows.policy().merge != Merge::UpdateOnly;
                    let Some(rows) = rows.filter(warms) else {
                        break;
                    };
                    let end = rows.directory().appended();
                    let last = end.min(first + TURN_WORDS);
                    let wanted = (first..last).filter_map(|row| {
                        let word = rows.directory().get(row);
                        let cold = word.as_cold().filter(|_| word.temperature() >= coolest)?;
                        // What is in columns stays there: its chunks are kept when they are read.
                        let address = cold.address();
                        (!address.is_in_columns()).then(|| (RowId::new(partition, row), address))
                    });
                    first = last;
                    let (reads, pin) = plan(self.blocks(), wanted)?;
                    (reads, pin, last < end)
                };
                if !self.bring_in(storage, reads)? {
                    return Ok(false);
                }
                drop(pin);
                if !more {
                    break;
                }
            }
        }
        Ok(true)
    }

    fn bring_in(&self, storage: u32, mut reads: Vec<PlannedRead>) -> Result<bool> {
        reads.sort_unstable_by_key(|read| (read.address.block, read.address.slot));
        let mut rest = &reads[..];
        while !rest.is_empty() {
            let (reads, others) = rest.split_at(batch_of(rest, READ_AT_ONCE_BYTES, READ_AT_ONCE));
            rest = others;
            if self.is_stopping() || !self.memory().has_room() {
                return Ok(false);
            }
            let begun = self.clock().now();
            let misses = self.count().misses.load(Ordering::Relaxed);
            let mut number = 0;
            let read = block_on(self.fetcher().read_in_order(reads, &mut |read, tuple| {
                number += u64::from(self.make_hot(storage, read, tuple));
            }));
            match read {
                // The rest can be warmed; who needs the damaged row is told so.
                Err(error @ Error::Corrupt(_)) => self.report(&format!("warming up: {error}")),
                other => other?,
            }
            Counters::add(&self.count().warmed, number);
            if self.count().misses.load(Ordering::Relaxed) != misses {
                self.clock().sleep(self.clock().now().saturating_sub(begun));
            }
        }
        Ok(true)
    }

    /// Makes a tuple hot, if it is still where it was read.
    fn make_hot(&self, storage: u32, read: &PlannedRead, tuple: &[u8]) -> bool {
        let row = read.row;
        let partition = &self.all_partitions()[usize::from(row.partition())];
        let mut state = partition.lock();
        let Some(rows) = state.tables.rows_mut(storage) else {
            return false;
        };
        let now = rows.directory().get(row.row()).as_cold();
        let cold = now.filter(|cold| cold.address() == read.address);
        cold.is_some_and(|cold| rows.come_back(row.row(), cold, tuple).is_some())
    }
}
