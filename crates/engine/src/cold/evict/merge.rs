//! Merge (002 §3): the delta of a column table goes into its main. That is an eviction of all rows in
//! memory, in the order of their numbers and in groups as large as they may be: what was
//! changed meanwhile stays in the delta, and the place that a changed row had in the main is a hole.
//!
//! In the background a delta is merged when it has a group's worth of rows, and by whoever asks for it
//! ([`Parts::merge_delta`]) whatever it has.

use std::sync::Arc;

use thermocline_storage::columns::GROUP_ROWS_MAX;

use super::{Evicted, Evictor, TURN_BYTES, Taken};
use crate::catalog::Table;
use crate::cold::block_writer::group_bytes;
use crate::ground::error::Result;
use crate::ground::wait::give_way;
use crate::parts::Parts;
use crate::transaction::RunOptions;

/// Words of the directory that are passed in one turn under the lock.
const TURN_WORDS: u32 = 4096;

impl Evictor {
    /// Merges a row group of the next partition, if one of its column tables has so large a delta.
    /// Whether it did.
    pub(super) fn merge_if_due(&mut self, parts: &Parts) -> Result<bool> {
        self.merge_of_next(parts, group_bytes(parts), GROUP_ROWS_MAX)
    }

    /// Merges up to a row group of the next partition, however little there is. Whether there was any.
    pub(crate) fn merge_next(&mut self, parts: &Parts) -> Result<bool> {
        self.merge_of_next(parts, 1, 1)
    }

    fn merge_of_next(&mut self, parts: &Parts, bytes: u64, rows: usize) -> Result<bool> {
        self.merges = (self.merges + 1) % parts.all_partitions().len();
        let partition = self.merges;
        let Some(table) = with_delta(parts, partition, bytes, rows) else {
            return Ok(false);
        };
        Ok(self.merge(parts, partition, &table)?.tuples > 0)
    }

    /// Merges up to a row group of a table's delta in a partition.
    pub(crate) fn merge(
        &mut self,
        parts: &Parts,
        partition: usize,
        table: &Table,
    ) -> Result<Evicted> {
        let mut evicted = Evicted::default();
        self.begin_block(parts, table);
        let mut next = 0;
        let mut is_full = false;
        while !is_full {
            let mut state = parts.all_partitions()[partition].lock_any();
            let Some(rows) = state.tables.rows_mut(table.def.storage) else {
                return Ok(evicted);
            };
            let end = rows.directory().appended();
            if next >= end {
                break;
            }
            let stop = end.min(next.saturating_add(TURN_WORDS));
            let mut copied = 0;
            while next < stop && copied < TURN_BYTES && !is_full {
                let row = next;
                next += 1;
                let Some(hot) = rows.directory().get(row).as_hot() else {
                    continue;
                };
                match self.take(parts, rows, table, row, hot, &mut evicted) {
                    Taken::Left => self.left.note(rows, row),
                    Taken::Copied(bytes) => copied += bytes,
                    Taken::Busy => {}
                    Taken::Full => is_full = true,
                }
            }
        }
        self.leave(parts, partition, table, evicted)
    }
}

/// A column table of a partition whose delta has so many bytes, or rows.
fn with_delta(parts: &Parts, partition: usize, bytes: u64, count: usize) -> Option<Arc<Table>> {
    let with_delta: Vec<u32> = {
        let state = parts.all_partitions()[partition].lock_any();
        let all = state.tables.all_rows();
        let large = all.filter(|(_, rows)| {
            let heap = rows.heap();
            heap.tuples() >= count || heap.live_bytes() as u64 >= bytes
        });
        large.map(|(storage, _)| storage).collect()
    };
    if with_delta.is_empty() {
        return None;
    }
    let storages = parts.storages().read();
    let mut tables = with_delta
        .iter()
        .filter_map(|storage| storages.get(storage));
    tables
        .find(|table| table.is_columns() && table.def.evictable)
        .cloned()
}

impl Parts {
    /// Merges all that a column table has in its delta now; how many rows. Others go on meanwhile.
    ///
    /// # Errors
    /// The device's; 57014 where it is cancelled. What was merged by then stays merged.
    pub async fn merge_delta(&self, options: &RunOptions, table: &Table) -> Result<u64> {
        self.all_there(options).await?;
        let mut evictor = Evictor::new(self.policy().block_bytes);
        let mut merged = 0;
        for partition in 0..self.all_partitions().len() {
            // Not for ever, where rows come as fast as they are merged.
            let mut left = self.delta_rows(partition, table);
            while left > 0 {
                options.cancel.check()?;
                give_way().await;
                let evicted = evictor.merge(self, partition, table)?;
                merged += evicted.tuples;
                left = match evicted.tuples {
                    0 => 0,
                    tuples => left.saturating_sub(tuples),
                };
            }
        }
        Ok(merged)
    }

    fn delta_rows(&self, partition: usize, table: &Table) -> u64 {
        let state = self.all_partitions()[partition].lock_any();
        let rows = state.tables.rows(table.def.storage);
        rows.map_or(0, |rows| rows.live() - rows.cold())
    }
}
