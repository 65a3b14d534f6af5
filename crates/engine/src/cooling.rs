//! When tuples become cooler, and when it is learned which are warm: the
//! engine's part of [`thermocline_storage::temperature`].
//!
//! A degree is taken from every tuple, hot and cold, when the evictor's hands
//! have passed all tables once and found little. Each hand takes it from the
//! tuples that it passes in its next round.

use std::time::Duration;

use thermocline_storage::row_directory::Word;
use thermocline_storage::temperature::{HotSet, MAX, Shift};

use crate::database::Database;
use crate::row_state::TablePartition;

/// Hands that found less than this share of what is in memory, in one round
/// over all tables, found too little.
const FOUND_ENOUGH: f64 = 0.1;
/// How often uses are looked at.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Words that are cooled in one turn under a partition's lock.
const TURN_WORDS: u32 = 64 << 10;

/// The evictor's view of all hands.
#[derive(Default)]
pub(crate) struct Cooling {
    /// Degrees that everything has to have cooled by.
    degrees: u32,
    /// Words passed and bytes found since the last round was over.
    passed: u64,
    found: u64,
    /// The coolest hot tuple met in this round.
    coolest: u8,
    /// Words of all tables, and bytes in memory, when the last round was over.
    words: u64,
    bytes: u64,
    hot_set: HotSet,
    looked: Duration,
}

impl Cooling {
    /// A hand begins a new round over its table: what to take from each tuple.
    pub fn begin_round(&self, rows: &mut TablePartition) {
        let behind = self.degrees.wrapping_sub(rows.cooled);
        rows.cooling = behind.min(u32::from(MAX)) as u8;
        rows.cooled = self.degrees;
    }

    /// A hand has met a hot tuple. Whether it may leave.
    #[inline]
    pub fn meets(&mut self, warmth: u8) -> bool {
        self.hot_set.met(warmth);
        warmth <= self.hot_set.evictable()
    }

    /// A hand has met a hot tuple that stays.
    #[inline]
    pub fn stays(&mut self, warmth: u8) {
        self.coolest = self.coolest.min(warmth);
    }

    /// A hand has passed some words and found some bytes to evict.
    pub fn passed(&mut self, db: &Database, words: u64, found: u64) {
        self.passed += words;
        self.found += found;
        if self.passed < self.words {
            return;
        }
        if (self.found as f64) < self.bytes as f64 * FOUND_ENOUGH {
            // As many degrees as it takes: rounds that find nothing cost time.
            let needed = match self.found {
                0 => self.coolest.saturating_sub(self.hot_set.evictable()).max(1),
                _ => 1,
            };
            self.degrees = self.degrees.wrapping_add(u32::from(needed));
        }
        (self.passed, self.found, self.coolest) = (0, 0, MAX);
        (self.words, self.bytes) = (0, 0);
        let mut hot = 0;
        for partition in &db.partitions {
            let state = partition.lock_any();
            for rows in state.tables.values() {
                self.words += u64::from(rows.directory().appended());
                self.bytes += rows.heap().live_bytes() as u64;
                hot += rows.heap().tuples() as u64;
            }
        }
        self.hot_set.round_over(hot);
    }

    /// Looks at how tuples were used since the last time; forgets what was hot
    /// if the hot set has begun to move.
    pub fn look(&mut self, db: &Database) {
        let now = db.clock.now();
        if now.saturating_sub(self.looked) < LOOK_INTERVAL {
            return;
        }
        self.looked = now;
        let (mut uses, mut returns, mut hot) = (0, 0, 0);
        for partition in &db.partitions {
            let mut state = partition.lock_any();
            uses += std::mem::take(&mut state.uses);
            returns += u64::from(std::mem::take(&mut state.returns));
            hot += state
                .tables
                .values()
                .map(|rows| rows.heap().tuples() as u64)
                .sum::<u64>();
        }
        let full = !db.memory.has_room();
        let shift = self.hot_set.observe(uses, returns, hot, full);
        db.memory.set_learning(self.hot_set.is_learning());
        if shift == Shift::Begun {
            cool_all(db);
        }
    }
}

/// Makes every hot tuple one that may leave; those still in use warm up again
/// before a hand comes by.
fn cool_all(db: &Database) {
    for partition in &db.partitions {
        let storages: Vec<u32> = partition.lock_any().tables.keys().copied().collect();
        for storage in storages {
            let mut first = 0;
            loop {
                let mut state = partition.lock_any();
                let Some(rows) = state.tables.get_mut(&storage) else {
                    break;
                };
                let end = rows.directory().appended();
                let last = end.min(first + TURN_WORDS);
                for row in first..last {
                    let word = rows.directory().get(row);
                    if word.is_hot() && word.temperature() > 0 {
                        rows.cool(row, word, 0);
                    }
                }
                if last == end {
                    break;
                }
                first = last;
            }
        }
    }
}

/// The temperature of a tuple that cools by `degrees`.
#[inline]
pub(crate) fn cooler(word: Word, degrees: u8) -> u8 {
    word.temperature().saturating_sub(degrees)
}
