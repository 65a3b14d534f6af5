//! What a checkpoint does before its cut: dirty tuples are written to blocks and
//! stay in memory, clean.

use thermocline_storage::row_directory::{PAGE_WORDS, RowDirectory};

use super::{Evictor, Leaving, TURN_BYTES};
use crate::catalog::Table;
use crate::cold::pace::Pace;
use crate::ground::counters::Counters;
use crate::ground::error::{Error, Result};
use crate::parts::Parts;
use crate::rows::row_state::TablePartition;

/// Pages of the directory that are looked through in one turn.
const TURN_PAGES: usize = 8;

impl Evictor {
    /// Writes dirty tuples of a table in a partition to blocks and leaves them
    /// in memory, clean: what a checkpoint does before its cut. They are in pages
    /// of the directory that changed, and nowhere else.
    pub fn clean(
        &mut self,
        parts: &Parts,
        partition: usize,
        table: &Table,
        mut pace: Option<&mut Pace>,
    ) -> Result<()> {
        let mut page = 0;
        let mut at_end = false;
        while !at_end {
            self.begin_block(parts, table);
            let mut full = false;
            while !full && !at_end {
                parts.held(partition, |state| {
                    let Some(rows) = state.tables.rows_mut(table.def.storage) else {
                        at_end = true;
                        return;
                    };
                    // As it is now: the table may have been widened since the last turn.
                    let reader = parts.storages().read().get(&table.def.storage).cloned();
                    let table = reader.as_deref().unwrap_or(table);
                    let mut copied = 0;
                    for _ in 0..TURN_PAGES {
                        let Some(next) = rows.changed().next(page) else {
                            at_end = true;
                            return;
                        };
                        page = next;
                        let Some(bytes) = self.copy_page(rows, table, page) else {
                            full = true;
                            return;
                        };
                        page += 1;
                        copied += bytes;
                        if copied >= TURN_BYTES {
                            return;
                        }
                    }
                });
            }
            if full && self.writer.record_count() == 0 {
                return Err(Error::Internal("a tuple is larger than a block".into()));
            }
            if self.writer.record_count() > 0 {
                self.write_block(parts, partition, table, Leaving::Kept)?;
                Counters::add(&parts.count().blocks_checkpointed, 1);
                if let Some(pace) = &mut pace {
                    pace.spend(parts, self.written_bytes);
                }
            }
        }
        Ok(())
    }

    /// Copies the dirty tuples of a page of the directory into the block; their
    /// bytes. None: the block is full, and the page is to be gone through again.
    fn copy_page(
        &mut self,
        rows: &mut TablePartition,
        table: &Table,
        page: usize,
    ) -> Option<usize> {
        for word in rows.directory().page(page).into_iter().flatten() {
            if let Some(hot) = word.as_hot() {
                rows.heap().prefetch(hot.pointer());
            }
        }
        let mut copied = 0;
        let first = RowDirectory::first_row(page);
        for row in first..first.saturating_add(PAGE_WORDS as u32) {
            if let Some(hot) = rows.directory().get(row).as_hot()
                && rows.is_dirty(hot)
            {
                if !self.copy(rows, table, row, hot) {
                    return None;
                }
                copied += rows.heap().payload(hot.pointer()).len();
            }
        }
        Some(copied)
    }
}
