//! Retrieval and merge, as a run sees them: an evicted tuple that it comes to is noted, and read
//! when the run has been taken back, or read while the partition is held (000 §4.1). One that
//! was read becomes hot, alone or with all of its block, or is used beside the table (000 §4.2,
//! 004 §3.4). By the policy of the table.

use std::iter::once;
use std::sync::Arc;

use thermocline_storage::arena::TuplePtr;
use thermocline_storage::block::{Record, each_record};
use thermocline_storage::row_directory::{ColdAddress, ColdWord, Word};
use thermocline_storage::temperature;

use super::{Access, Image};
use crate::catalog::Table;
use crate::ground::error::Result;
use crate::ground::row_id::RowId;
use crate::memory::fetched::Fetched;
use crate::parts::Parts;
use crate::policy::{ColdAccess, Merge, MergeUnit, Retrieval, Whole};
use crate::rows::fetch::{Missing, address_key, plan, plan_under_lock, read_bytes};
use crate::rows::partition::PartitionState;
use crate::rows::row_state::TablePartition;

/// A run reads so many bytes while it holds its partitions, and no more than lets it be a small one
/// ([`crate::memory::fetched`]), but one read. What comes to more is noted, and read as by
/// abort-and-restart.
const NOW_BYTES_MAX: u64 = 4 << 20;

/// Counts that an evicted row is asked for, where the policy goes by that.
#[inline]
pub(crate) fn note_asked_for(table: &Table, rows: &TablePartition, row: RowId) {
    if let Merge::Top(_) = rows.policy().merge {
        let all = rows.live() * u64::from(table.partitions());
        table.asked_for.note(row, all);
    }
}

/// Whether a row that was read becomes hot, where that is said of each row.
fn is_admitted(parts: &Parts, table: &Table, merge: Merge, row: RowId, cold: ColdWord) -> bool {
    let memory = parts.memory();
    let warmth = cold.word().temperature();
    !memory.is_tight()
        && match merge {
            Merge::Warm => {
                temperature::is_admitted(warmth, memory.has_room(), memory.is_learning())
            }
            Merge::Always => true,
            Merge::UpdateOnly => false,
            Merge::Top(share) => table.asked_for.is_top(row, share),
        }
}

/// Makes a tuple hot that was read outside of a run, if the table's policy wants it and says so of each
/// row. The block that it was read from must be pinned.
pub(crate) fn keep_read(
    parts: &Parts,
    state: &mut PartitionState,
    table: &Table,
    (row, address): (RowId, ColdAddress),
    tuple: &[u8],
) {
    let Some(rows) = state.tables.rows_mut(table.def.storage) else {
        return;
    };
    let word = rows.directory().get(row.row());
    let Some(cold) = word.as_cold().filter(|cold| cold.address() == address) else {
        return;
    };
    let policy = *rows.policy();
    if address.is_in_columns() || policy.merge_unit == MergeUnit::Block {
        return;
    }
    let is_hot = is_admitted(parts, table, policy.merge, row, cold)
        && rows.come_back(row.row(), cold, tuple).is_some();
    match is_hot {
        true => {
            rows.count().merged += 1;
            parts.count().merged();
        }
        false => rows.count().not_merged += 1,
    }
}

impl Access<'_> {
    /// The image that the directory word leads to.
    #[inline]
    pub(super) fn resolve_current(
        &mut self,
        position: usize,
        table: &Table,
        row: RowId,
        word: Word,
    ) -> Result<Image> {
        if let Some(hot) = word.as_hot() {
            return Ok(Image::Hot(hot.pointer()));
        }
        let Some(cold) = word.as_cold() else {
            return Ok(Image::Gone);
        };
        let address = cold.address();
        let came = match self.came(address) {
            Some(tuple) => Some(tuple),
            None => self.retrieve(position, table, row, address)?,
        };
        let Some(tuple) = came else {
            return Ok(Image::Evicted);
        };
        Ok(
            match self.merge_if_admitted(position, table, row, cold, &tuple) {
                Some(pointer) => Image::Hot(pointer),
                None => Image::Beside(tuple),
            },
        )
    }

    /// A tuple that was read for this statement.
    fn came(&self, address: ColdAddress) -> Option<Arc<[u8]>> {
        let key = address_key(address);
        let now = || self.now.as_ref()?.get(&key);
        let seen = || Some(&self.seen_last.as_ref().filter(|(of, _)| *of == key)?.1);
        self.fetched.get(&key).or_else(now).or_else(seen).cloned()
    }

    /// Reads an evicted tuple, or notes that it is missing.
    fn retrieve(
        &mut self,
        position: usize,
        table: &Table,
        row: RowId,
        address: ColdAddress,
    ) -> Result<Option<Arc<[u8]>>> {
        let Some(rows) = self.table_at(position, table) else {
            return Ok(None);
        };
        let policy = *rows.policy();
        let in_columns = address.is_in_columns();
        let missing = Missing {
            row,
            address,
            whole: match in_columns {
                true => Whole::No,
                false => policy.reads_whole(),
            },
        };
        if let Some(tuple) = self.take_in_place(position, table, missing)? {
            return Ok(Some(tuple));
        }
        let bytes = match missing.whole {
            Whole::No => read_bytes(address, policy.block_bytes.into()),
            Whole::Yes | Whole::Below(_) => u64::from(policy.block_bytes),
        };
        // A row in columns is of many reads: none while the partition is held.
        if policy.retrieval == Retrieval::Sync && !in_columns && self.may_read_now(bytes) {
            return self.read_now(position, table, missing).map(Some);
        }
        self.check_missing()?;
        self.missing_bytes += bytes;
        self.scratch.missing.push(missing);
        Ok(None)
    }

    /// Takes an evicted tuple from where it lies, by the byte, if the table's policy says so; None:
    /// it says otherwise, the tuple is in columns, its block is to become hot as a whole, or its
    /// file cannot be seen as memory. The partition is held, so the block stays.
    pub(super) fn take_in_place(
        &mut self,
        position: usize,
        table: &Table,
        missing: Missing,
    ) -> Result<Option<Arc<[u8]>>> {
        let by_byte = |rows: &TablePartition| rows.policy().access == ColdAccess::Byte;
        let is_by_byte = self.table_at(position, table).is_some_and(by_byte);
        if !is_by_byte || missing.address.is_in_columns() {
            return Ok(None);
        }
        let read = plan_under_lock(self.parts.blocks(), missing)?;
        if read.whole {
            return Ok(None);
        }
        let Some(tuple) = self.parts.fetcher().take_in_place(&read)? else {
            return Ok(None);
        };
        if let Some(rows) = self.rows_at(position, table) {
            rows.count().fetched += 1;
            rows.count().byte_reads += 1;
            rows.count().bytes_read += tuple.len() as u64;
        }
        self.parts.count().missed(1);
        self.seen_last = Some((address_key(missing.address), tuple.clone()));
        Ok(Some(tuple))
    }

    /// Whether a run that may read while it holds its partitions does so for so many bytes more:
    /// not when it will be taken back in any case.
    fn may_read_now(&self, bytes: u64) -> bool {
        let most = self.parts.memory().fetched_limit();
        let is_more =
            |now: &Fetched| now.counted() + bytes > NOW_BYTES_MAX || now.is_large_with(bytes, most);
        self.scratch.missing.is_empty()
            && self.recorded.is_none()
            && !self.now.as_deref().is_some_and(is_more)
    }

    /// Reads a tuple while the partition is held: its block cannot be given up meanwhile.
    fn read_now(&mut self, position: usize, table: &Table, missing: Missing) -> Result<Arc<[u8]>> {
        let (reads, pin) = plan(self.parts.blocks(), once(missing))?;
        let read = &reads[0];
        let fetcher = &self.parts.fetcher();
        let block = missing.address.block;
        let now = self.now.get_or_insert_default();
        let kept = now.block(block).or_else(|| self.fetched.block(block));
        let (came, bytes) = match kept {
            Some(came) => (came.clone(), 0),
            None => (fetcher.fetch_now(read)?, read.range().1 as u64),
        };
        drop(pin);
        let tuple = fetcher.tuple_of(read, &came)?;
        let share = &self.parts.memory().fetched;
        let held = tuple.len() as u64 + bytes;
        share.take(held);
        now.count(share, held);
        now.insert(address_key(missing.address), tuple.clone());
        if read.whole && bytes > 0 {
            now.keep_block(block, came, NOW_BYTES_MAX);
        }
        if let Some(rows) = self.rows_at(position, table) {
            rows.count().fetched += 1;
            rows.count().sync_reads += u64::from(bytes > 0);
            rows.count().bytes_read += bytes;
        }
        self.parts.count().missed(1);
        Ok(tuple)
    }

    /// Reads what a look-up by key has noted as missing since there were `noted`, if the policy
    /// has it read while the partition is held. Whether it did: the look-up is to be made again.
    pub(super) fn read_noted_now(
        &mut self,
        position: usize,
        table: &Table,
        noted: usize,
    ) -> Result<bool> {
        let by_policy = |rows: &TablePartition| rows.policy().retrieval == Retrieval::Sync;
        let is_sync = self.table_at(position, table).is_some_and(by_policy);
        if !is_sync || noted > 0 {
            return Ok(false);
        }
        let missing = std::mem::take(&mut self.scratch.missing);
        for missing in missing {
            let is_record = !missing.address.is_in_columns();
            match is_record && self.may_read_now(0) && self.came(missing.address).is_none() {
                true => drop(self.read_now(position, table, missing)?),
                false => self.scratch.missing.push(missing),
            }
        }
        Ok(self.scratch.missing.is_empty())
    }

    fn rows_at(&mut self, position: usize, table: &Table) -> Option<&mut TablePartition> {
        let state = self.guards.at_mut(position);
        state.tables.rows_mut(table.def.storage)
    }

    /// Makes a tuple hot that was read, if the table's policy wants it.
    pub(super) fn merge_if_admitted(
        &mut self,
        position: usize,
        table: &Table,
        row: RowId,
        cold: ColdWord,
        tuple: &[u8],
    ) -> Option<TuplePtr> {
        // What is in columns is kept in memory as columns.
        if cold.word().is_in_columns() {
            return None;
        }
        let blocks = self.parts.blocks();
        let block = cold.address().block;
        let state = self.guards.at_mut(position);
        let rows = state.tables.rows_mut(table.def.storage)?;
        let policy = *rows.policy();
        // Such a block is read as a whole, if it was like that when the read was planned.
        let empties = policy.empties(|| blocks.info(block).map_or(1.0, |info| info.live_share()));
        let admitted = match empties {
            true => !self.parts.memory().is_tight(),
            false => is_admitted(self.parts, table, policy.merge, row, cold),
        };
        let by_block = empties || policy.merge_unit == MergeUnit::Block;
        let pointer = match (admitted, by_block) {
            (false, _) => None,
            (true, false) => rows.come_back(row.row(), cold, tuple),
            (true, true) => rows.come_home(row.row(), cold, tuple, false),
        };
        match pointer {
            Some(_) => {
                rows.count().merged += 1;
                self.parts.count().merged();
            }
            None => rows.count().not_merged += 1,
        }
        if pointer.is_some() && by_block {
            blocks.sub_live(block, 1);
            self.merge_rest(position, table, row.partition(), block);
        }
        pointer
    }

    /// Makes hot what else lives in a block that was read as a whole, at the cold end of the
    /// policy's order (004 §3.4). Nothing lives in the block then, and compaction gives it up.
    fn merge_rest(&mut self, position: usize, table: &Table, partition: u16, block: u32) {
        let now = || self.now.as_ref()?.block(block);
        let Some(bytes) = self.fetched.block(block).or_else(now).cloned() else {
            return;
        };
        debug_assert_eq!(self.guards.at(position).id, partition);
        let (mut along, mut is_over) = (0, false);
        // The record that was asked for is right; of a block that is damaged elsewhere the rest
        // stays where it is, for who asks for it.
        let _ = each_record(&bytes, block, |record| {
            if !is_over {
                let comes = self.comes_along(position, table, block, &record);
                along += u32::from(comes == Some(true));
                is_over = comes.is_none();
            }
        });
        if along > 0 {
            self.parts.blocks().sub_live(block, along);
        }
    }

    /// Makes a record's row hot, if it lies there; whether it does. None: there is no room for more.
    fn comes_along(
        &mut self,
        position: usize,
        table: &Table,
        block: u32,
        record: &Record<'_>,
    ) -> Option<bool> {
        if self.parts.memory().is_tight() {
            return None;
        }
        let rows = self.rows_at(position, table)?;
        let cold = rows.directory().get(record.row).as_cold();
        let lies_there =
            |cold: &ColdWord| (cold.address().block, cold.address().slot) == (block, record.slot);
        let Some(cold) = cold.filter(lies_there) else {
            return Some(false);
        };
        rows.come_home(record.row, cold, record.payload, true)?;
        rows.count().came_along += 1;
        Some(true)
    }
}
