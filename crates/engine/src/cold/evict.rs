//! Eviction: cold tuples leave memory in blocks (004 §3.2).
//!
//! The policy says which tuples of a table in a partition are to leave
//! ([`crate::policy::identification`]). What it gives out is copied into a block in short turns under the partition's lock. The block is written
//! without the lock. Then the directory words are swung, but only of tuples
//! that nobody has changed meanwhile. A clean tuple, one that came from a block
//! and was not changed, leaves without a write.
//!
//! The log keeps what the device has not synced: a block need not be durable
//! before its tuples leave memory, only before the next checkpoint.

mod clean;
mod merge;

use std::sync::Arc;

use thermocline_device::Mutation;
use thermocline_storage::row_directory::{ColdAddress, HotWord};
use thermocline_storage::temperature;

use crate::catalog::Table;
use crate::cold::block_writer::{BlockWriter, group_bytes};
use crate::cold::cooling::Cooling;
use crate::ground::counters::Counters;
use crate::ground::error::{Error, Result};
use crate::ground::moment::Moment;
use crate::memory::Pressure;
use crate::parts::Parts;
use crate::parts::reserve::SpaceUse;
use crate::policy::identification::Turn;
use crate::rows::partition::PartitionState;
use crate::rows::row_state::{Copying, LeftPage, TablePartition};

/// Words that a hand passes in one turn under the lock. Here as in the other turns: a
/// thread runs a statement in a microsecond or two, so that a turn of a hundred stops them
/// all, one of ten few of them.
const TURN_WORDS: u32 = 512;
/// Tuples whose words are swung in one turn.
const TURN_TUPLES: usize = 128;
/// A heap of which more than this share is free slots is made denser: so many bytes
/// are moved in one turn under the lock, in so many turns at a time.
const FREE_SHARE: f64 = 0.01;
const TIDY_TURN_BYTES: usize = 32 << 10;
const TIDY_TURNS: usize = 32;
/// Bytes that are copied in one turn under the lock.
const TURN_BYTES: usize = 32 << 10;

/// Rounds over all tuples after which the warmest has become cool.
pub(crate) const ROUNDS_TO_COOL: usize = temperature::MAX as usize + 2;

/// A tuple copied into a block that is not written yet.
struct Picked {
    row: u32,
    slot: u16,
    extent: u8,
    fingerprint: u8,
}

/// What becomes of the tuples that a block was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    /// They leave memory.
    Evicted,
    /// They stay, clean (a checkpoint).
    Kept,
}

/// What became of a tuple that was to leave.
enum Taken {
    /// It left: its copy is still right.
    Left,
    /// It is in the block, with so many bytes.
    Copied(usize),
    /// Somebody else is copying it.
    Busy,
    /// The block has no room for it.
    Full,
}

/// What one step did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Evicted {
    pub tuples: u64,
    pub bytes: u64,
}

/// The evictor's place and its buffer, made once: it never allocates more to
/// make progress.
pub(crate) struct Evictor {
    writer: BlockWriter,
    picked: Vec<Picked>,
    /// The number of this copying, like no other's.
    copying: Copying,
    key: Vec<u8>,
    partition: usize,
    turn: u64,
    /// The partition that was last looked at for a delta to merge.
    merges: usize,
    /// Bytes of the last block.
    written_bytes: u64,
    cooling: Cooling,
    left: LeftPage,
}

impl Evictor {
    /// One that makes room in memory.
    pub fn new(block_bytes: u32) -> Self {
        Self::of(block_bytes, SpaceUse::Growth)
    }

    /// One that cleans for a checkpoint.
    pub fn for_checkpoint(block_bytes: u32) -> Self {
        Self::of(block_bytes, SpaceUse::MakingRoom)
    }

    fn of(block_bytes: u32, space_use: SpaceUse) -> Self {
        Evictor {
            writer: BlockWriter::new(block_bytes, space_use),
            picked: Vec::new(),
            copying: Copying::default(),
            key: Vec::new(),
            partition: 0,
            turn: 0,
            merges: 0,
            written_bytes: 0,
            cooling: Cooling::default(),
            left: LeftPage::default(),
        }
    }

    /// Evicts from the next partition if memory is short, and merges a delta if it is not. Whether
    /// there is more to do.
    pub fn step(&mut self, parts: &Parts) -> Result<bool> {
        self.cooling.look(parts);
        parts.end_old_snapshots();
        let columns = &parts.fetcher().groups.cache;
        if let Some(room) = parts.memory().columns_room(columns.bytes()) {
            columns.set_room(room);
        }
        let Pressure::Evict(_) = parts.memory().pressure() else {
            parts.memory().set_drained(false);
            parts.memory().set_device_refuses(false);
            return self.merge_if_due(parts);
        };
        let mut freed = Evicted::default();
        // So many rounds that the warmest tuple has become cool.
        for _ in 0..parts.all_partitions().len() * ROUNDS_TO_COOL {
            // Others allocate meanwhile, and statements go by the last reading.
            parts.memory().read_resident();
            self.partition = (self.partition + 1) % parts.all_partitions().len();
            if let Some(table) = self.choose(parts, self.partition) {
                freed = self.evict(parts, self.partition, &table)?;
                if freed.tuples > 0 {
                    break;
                }
            }
        }
        parts.memory().set_drained(freed.tuples == 0);
        parts.memory().freed.notify();
        Ok(freed.tuples > 0)
    }

    /// Evicts up to a block of cold tuples of a table, from the partitions in turn.
    pub fn evict_next(&mut self, parts: &Parts, table: &Table) -> Result<Evicted> {
        self.partition = (self.partition + 1) % parts.all_partitions().len();
        let freed = self.evict(parts, self.partition, table)?;
        parts.memory().freed.notify();
        Ok(freed)
    }

    /// The table to evict from: each in proportion to the memory that it has.
    fn choose(&mut self, parts: &Parts, partition: usize) -> Option<Arc<Table>> {
        self.turn = self.turn.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let storages = parts.tables_by_storage();
        let state = parts.all_partitions()[partition].lock_any();
        let evictable = |storage: &u32, rows: &TablePartition| {
            let table = storages.get(storage)?;
            let leaves = rows.policy().leaves_by_itself();
            (leaves && table.def.evictable && rows.heap().tuples() > 0)
                .then(|| (table, rows.heap().allocated_bytes() as u64))
        };
        let total: u64 = state
            .tables
            .all_rows()
            .filter_map(|(storage, rows)| evictable(&storage, rows))
            .map(|t| t.1)
            .sum();
        if total == 0 {
            return None;
        }
        let mut at = ((u128::from(self.turn) * u128::from(total)) >> 64) as u64;
        for (table, bytes) in state
            .tables
            .all_rows()
            .filter_map(|(storage, rows)| evictable(&storage, rows))
        {
            if at < bytes {
                return Some(table.clone());
            }
            at -= bytes;
        }
        None
    }

    /// Evicts up to a block of cold tuples of a table in a partition.
    pub(crate) fn evict(
        &mut self,
        parts: &Parts,
        partition: usize,
        table: &Table,
    ) -> Result<Evicted> {
        let mut evicted = Evicted::default();
        self.begin_block(parts, table);
        let mut passed = 0u64;
        let (goal, limit) = {
            let mut state = parts.all_partitions()[partition].lock_any();
            let Some(rows) = state.tables.rows_mut(table.def.storage) else {
                return Ok(evicted);
            };
            // A block, but not so much of a small table that its warm part goes.
            // Columns are encoded together: the more rows, the better.
            let goal = match table.is_columns() {
                true => group_bytes(parts),
                false => (rows.heap().live_bytes() as u64 / 4).max(16 << 10),
            };
            let rows_all = u64::from(rows.directory().appended());
            (goal, rows_all * rows.rounds_to_leave())
        };
        loop {
            let mut state = parts.all_partitions()[partition].lock_any();
            let full = self.sweep(parts, &mut state, table, &mut evicted, &mut passed);
            drop(state);
            let collected = evicted.bytes + self.writer.record_bytes() as u64;
            if full || passed >= limit || collected >= goal {
                // Of a table that is gone there is nothing to pass.
                self.cooling.passed(parts, passed.min(limit), collected);
                break;
            }
        }
        self.leave(parts, partition, table, evicted)
    }

    /// Has what was copied leave memory, beside what has left as it was; what has left by then.
    fn leave(
        &mut self,
        parts: &Parts,
        partition: usize,
        table: &Table,
        mut evicted: Evicted,
    ) -> Result<Evicted> {
        if self.writer.record_count() > 0 {
            let written = self.write_block(parts, partition, table, Leaving::Evicted)?;
            evicted.tuples += written.tuples;
            evicted.bytes += written.bytes;
        }
        self.tidy(parts, partition, table);
        Counters::add(&parts.count().evictions, evicted.tuples);
        Ok(evicted)
    }

    /// One turn. Whether the block is full.
    fn sweep(
        &mut self,
        parts: &Parts,
        state: &mut PartitionState,
        table: &Table,
        evicted: &mut Evicted,
        passed: &mut u64,
    ) -> bool {
        // A table may be dropped between two turns: it must not come back here.
        let Some(rows) = state.tables.rows_mut(table.def.storage) else {
            *passed = u64::MAX;
            return false;
        };
        let mut turn = Turn::new(TURN_WORDS, *passed);
        let mut copied = 0;
        let mut is_full = false;
        while copied < TURN_BYTES
            && let Some((row, hot)) = rows.next_to_leave(self.cooling.rounds(), &mut turn)
        {
            match self.take(parts, rows, table, row, hot, evicted) {
                Taken::Left => self.left.note(rows, row),
                // If it changes before the block is written it stays.
                Taken::Copied(bytes) => copied += bytes,
                Taken::Busy => rows.stays(row),
                Taken::Full => {
                    rows.is_next(row);
                    is_full = true;
                    break;
                }
            }
        }
        *passed = turn.passed();
        is_full
    }

    /// Evicts a hot tuple that has a copy, or copies it into the block.
    fn take(
        &mut self,
        parts: &Parts,
        rows: &mut TablePartition,
        table: &Table,
        row: u32,
        hot: HotWord,
        evicted: &mut Evicted,
    ) -> Taken {
        if let Some(address) = rows.copy_of(hot) {
            let tuple = rows.heap().payload(hot.pointer());
            evicted.bytes += tuple.len() as u64;
            evicted.tuples += 1;
            let fingerprint = table.fingerprint(tuple, &mut self.key);
            rows.leave_clean(row, hot, address, fingerprint);
            Counters::add(&parts.count().clean_evictions, 1);
            return Taken::Left;
        }
        if !rows.is_dirty(hot) {
            return Taken::Busy;
        }
        if !self.copy(rows, table, row, hot) {
            return Taken::Full;
        }
        Taken::Copied(rows.heap().payload(hot.pointer()).len())
    }

    fn begin_block(&mut self, parts: &Parts, table: &Table) {
        self.writer.begin(parts, table);
        self.picked.clear();
        self.copying = Copying::begin();
    }

    /// Copies a dirty tuple into the block. False: the block is full.
    fn copy(&mut self, rows: &mut TablePartition, table: &Table, row: u32, hot: HotWord) -> bool {
        let tuple = rows.heap().payload(hot.pointer());
        let Some((slot, extent)) = self.writer.try_push(row, tuple) else {
            return false;
        };
        let fingerprint = table.fingerprint(tuple, &mut self.key);
        rows.copy(row, hot, self.copying, slot);
        self.picked.push(Picked {
            row,
            slot,
            extent,
            fingerprint,
        });
        true
    }

    /// Writes the block and swings the words of the tuples that are still as
    /// they were copied; the others' copies are holes from the start.
    fn write_block(
        &mut self,
        parts: &Parts,
        partition: usize,
        table: &Table,
        leaving: Leaving,
    ) -> Result<Evicted> {
        parts.pause(Moment::BlockCopied);
        let written = self.write(parts, partition, table);
        parts.pause(Moment::BlockWritten);
        let mut done = Evicted::default();
        let mut bytes = written.as_ref().map_or(0, |_| self.written_bytes);
        while !self.picked.is_empty() {
            let mut state = parts.all_partitions()[partition].lock_any();
            let Some(rows) = state.tables.rows_mut(table.def.storage) else {
                // The table was dropped meanwhile.
                if let Ok(block) = written {
                    parts.give_up_block(block);
                }
                self.picked.clear();
                return Ok(Evicted::default());
            };
            rows.count().bytes_written += std::mem::take(&mut bytes);
            let turn = self.picked.len().saturating_sub(TURN_TUPLES);
            for picked in self.picked.drain(turn..) {
                swing(
                    parts,
                    rows,
                    &picked,
                    self.copying,
                    &written,
                    leaving,
                    &mut done,
                );
                if leaving == Leaving::Evicted {
                    self.left.note(rows, picked.row);
                }
            }
        }
        self.writer.begin(parts, table);
        written.map(|_| done)
    }

    /// Writes the block. Only this tells whether the device takes any: clean tuples
    /// leave without it.
    fn write(&mut self, parts: &Parts, partition: usize, table: &Table) -> Result<u32> {
        let written = self.writer.write(parts, partition, table);
        match &written {
            Ok((_, bytes)) => {
                self.written_bytes = *bytes;
                Counters::add(&parts.count().blocks_evicted, 1);
            }
            Err(_) => parts.stop_if_blocks_failed(),
        }
        let full = matches!(written, Err(Error::DiskFull(_)));
        parts
            .memory()
            .set_device_refuses(full || parts.blocks().has_failed());
        written.map(|(id, _)| id)
    }

    /// Empties sparse pages, so that what was evicted really leaves memory.
    fn tidy(&self, parts: &Parts, partition: usize, table: &Table) {
        for _ in 0..TIDY_TURNS {
            let mut state = parts.all_partitions()[partition].lock_any();
            let rows = state.tables.rows_mut(table.def.storage);
            if rows.is_none_or(|rows| rows.compact_heap(TIDY_TURN_BYTES, FREE_SHARE) == 0) {
                break;
            }
        }
    }
}

/// Makes the copy in a block the tuple's, if the tuple is still as it was copied.
fn swing(
    parts: &Parts,
    rows: &mut TablePartition,
    picked: &Picked,
    copying: Copying,
    written: &Result<u32>,
    leaving: Leaving,
    done: &mut Evicted,
) {
    // The tuple may have moved within the heap; its mark went with it.
    let hot = rows.directory().get(picked.row).as_hot();
    let unchanged = hot.filter(|hot| {
        rows.is_as_copied(*hot, copying, picked.slot) || Mutation::EvictedThoughChanged.is_made()
    });
    match (written, unchanged) {
        (Ok(block), Some(hot)) => {
            let address = ColdAddress {
                block: *block,
                slot: picked.slot,
                extent: picked.extent,
            };
            done.tuples += 1;
            done.bytes += rows.heap().payload(hot.pointer()).len() as u64;
            match leaving {
                Leaving::Evicted => {
                    rows.leave_copied(picked.row, hot, address, picked.fingerprint);
                }
                Leaving::Kept => rows.stay_clean(picked.row, hot, address),
            }
        }
        (Ok(block), None) => {
            parts.blocks().sub_live(*block, 1);
        }
        (Err(_), Some(hot)) => rows.not_copied(picked.row, hot),
        (Err(_), None) => {}
    }
    if leaving == Leaving::Evicted && rows.directory().get(picked.row).is_hot() {
        rows.stays(picked.row);
    }
}

#[cfg(test)]
impl Evictor {
    /// Copies dirty tuples into a block that is not written yet.
    pub fn begin(&mut self, parts: &Parts, partition: usize, table: &Table) {
        self.begin_block(parts, table);
        let mut state = parts.all_partitions()[partition].lock_any();
        let (mut evicted, mut passed) = (Evicted::default(), 0);
        self.sweep(parts, &mut state, table, &mut evicted, &mut passed);
    }

    /// Writes the block that was begun, and evicts its tuples.
    pub fn end(&mut self, parts: &Parts, partition: usize, table: &Table) -> Result<Evicted> {
        if self.writer.record_count() == 0 {
            return Ok(Evicted::default());
        }
        self.write_block(parts, partition, table, Leaving::Evicted)
    }
}

#[cfg(test)]
pub(crate) mod tests;
