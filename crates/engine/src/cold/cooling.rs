//! What policies are told of all tables: how tuples are used, and what the hands have found
//! ([`Rounds`]). Makes all tuples cool when the hot set has begun to move.

use std::time::Duration;

use thermocline_storage::temperature::Shift;

use crate::parts::Parts;
use crate::policy::identification::Rounds;
use crate::rows::row_state::TablePartition;

/// How often uses are looked at.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Words that are cooled in one turn under a partition's lock.
const TURN_WORDS: u32 = 64 << 10;

/// The evictor's view of all hands.
#[derive(Default)]
pub(crate) struct Cooling {
    rounds: Rounds,
    looked: Duration,
}

impl Cooling {
    /// What the policies of all tables have in common.
    #[inline]
    pub fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    /// The evictor has passed some words and found some bytes to evict.
    pub fn passed(&mut self, parts: &Parts, words: u64, found: u64) {
        if !self.rounds.passed(words, found) {
            return;
        }
        let (mut words, mut bytes, mut hot) = (0, 0, 0);
        for partition in parts.all_partitions() {
            let state = partition.lock_any();
            let passed = state.tables.all_rows();
            for (_, rows) in passed.filter(|(_, rows)| rows.policy().may_leave()) {
                words += u64::from(rows.directory().appended());
                bytes += rows.heap().live_bytes() as u64;
                hot += rows.heap().tuples() as u64;
            }
        }
        self.rounds.round_over(words, bytes, hot);
    }

    /// Looks at how tuples were used since the last time; forgets what was hot
    /// if the hot set has begun to move.
    pub fn look(&mut self, parts: &Parts) {
        let now = parts.clock().now();
        if now.saturating_sub(self.looked) < LOOK_INTERVAL {
            return;
        }
        self.looked = now;
        let (mut uses, mut returns, mut hot, mut any) = (0, 0, 0, false);
        for partition in parts.all_partitions() {
            let mut state = partition.lock_any();
            uses += std::mem::take(&mut state.uses);
            returns += u64::from(std::mem::take(&mut state.returns));
            let learning = state.tables.all_rows().filter(|(_, rows)| learns(rows));
            for (_, rows) in learning {
                any = true;
                hot += rows.heap().tuples() as u64;
            }
        }
        if !any {
            parts.memory().set_learning(false);
            return;
        }
        let full = !parts.memory().has_room();
        let shift = self.rounds.observe(uses, returns, hot, full);
        parts.memory().set_learning(self.rounds.is_learning());
        if shift == Shift::Begun {
            cool_all(parts);
        }
    }
}

/// Whether the policy of these rows goes by what is learned.
fn learns(rows: &TablePartition) -> bool {
    rows.policy().identification.learns()
}

/// Makes every hot tuple one that may leave; those still in use warm up again
/// before a hand comes by. Of tables whose policy goes by that.
fn cool_all(parts: &Parts) {
    for partition in parts.all_partitions() {
        let storages: Vec<u32> = partition.lock_any().tables.storages().collect();
        for storage in storages {
            let mut first = 0;
            loop {
                let mut state = partition.lock_any();
                let rows = state.tables.rows_mut(storage);
                let Some(rows) = rows.filter(|rows| learns(rows)) else {
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
