//! How many rows of a table a snapshot sees, without going over them.
//!
//! A partition knows how many rows are there. A snapshot may see others: not those that somebody has
//! inserted and not committed, those that changed after it as they were, and those that its own
//! transaction changed as they are now. Only these are looked at.

use std::sync::Arc;

use super::snapshot::{Held, Snapshot};
use crate::catalog::Table;
use crate::ground::error::Result;
use crate::ground::row_id::RowId;
use crate::rows::partition::PartitionState;
use crate::rows::row_state::TablePartition;
use crate::rows::versions::Seen;

/// Rows that are looked at under the partition's lock, at most.
const LOOKS_MAX: usize = 4096;

impl Snapshot {
    /// How many rows of a table it sees in one partition. `None`: so many rows have changed that a
    /// scan should count them.
    ///
    /// # Errors
    /// As a scan's: 72000 where the snapshot is too old, or the table's definition is another by now.
    pub async fn count(&self, table: &Arc<Table>, partition: u16) -> Result<Option<u64>> {
        self.wait_for(partition).await?;
        let mut state = self.database().all_partitions()[partition as usize].lock();
        state.excuse_panics();
        self.check(table)?;
        let storage = table.def.storage;
        Ok(match state.tables.rows(storage) {
            Some(rows) => self.held().count(&state, rows, (storage, partition)),
            None => Some(0),
        })
    }
}

impl Held {
    fn count(
        &self,
        state: &PartitionState,
        rows: &TablePartition,
        (storage, partition): (u32, u16),
    ) -> Option<u64> {
        let of_storage = (storage, 0)..=(storage, u32::MAX);
        let uncommitted = state.uncommitted.range(of_storage);
        let others = uncommitted.filter(|(_, range)| !self.is_of(range.owner));
        let others = others.map(|(first, range)| u64::from(range.last - first.1) + 1);
        let mut count = rows.live().checked_sub(others.sum())?;
        for number in self.otherwise(state, (storage, partition))? {
            let word = rows.directory().get(number);
            let is_there = word.is_hot() || word.is_cold();
            let is_counted =
                is_there && (!word.is_uncommitted() || self.has_inserted(state, (storage, number)));
            let is_seen = match self.beside(state, storage, RowId::new(partition, number)) {
                Seen::Current => is_counted,
                Seen::Before(_) => true,
                Seen::Absent => false,
            };
            count = (count + u64::from(is_seen)).checked_sub(u64::from(is_counted))?;
        }
        Some(count)
    }

    /// The rows of a partition that may be something else to the snapshot than they are in the table,
    /// each once.
    fn otherwise(
        &self,
        state: &PartitionState,
        (storage, partition): (u32, u16),
    ) -> Option<Vec<u32>> {
        let mut rows = state
            .versions
            .rows_since(storage, self.timestamp(), LOOKS_MAX)?;
        if let Some(own) = self.own_changes() {
            if own.len() > LOOKS_MAX {
                return None;
            }
            let own = own
                .keys()
                .filter(|(of, row)| *of == storage && row.partition() == partition);
            rows.extend(own.map(|(_, row)| row.row()));
        }
        rows.sort_unstable();
        rows.dedup();
        Some(rows)
    }
}
