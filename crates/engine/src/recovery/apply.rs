//! What a record of the log does to the rows of some partitions, in the log's
//! order: the one place where it is applied, by one thread or by several.
//!
//! A replayer has partitions of its own, in which nobody else works but the
//! evictor, in its short turns. What concerns all partitions, definitions above
//! all, is `replay`'s.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;
use thermocline_device::{Mutation, block_on};
use thermocline_storage::row_directory::Word;
use thermocline_storage::temperature;

use crate::access::Scratch;
use crate::catalog::Table;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::evict::{Evictor, cold_copy};
use crate::fetch::plan;
use crate::memory::Pressure;
use crate::partition::TablePartition;
use crate::record::{RowChange, changes};
use crate::row_id::RowId;
use crate::transaction::TxnId;

/// Rows of a transaction without a commit that are removed at a time.
const REMOVED_AT_ONCE: u32 = 8192;
/// Changes applied between two looks at the memory, …
const CHANGES_PER_LOOK: u32 = 256;
/// … and bytes of them.
const BYTES_PER_LOOK: usize = 512 << 10;

/// What is to be done of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Row changes, committed.
    Commit,
    /// Row changes of a transaction that has not committed yet.
    Provisional,
    /// The transaction's rows count from here on. No body.
    Visible,
    /// The transaction's rows go. No body.
    Abort,
    /// A procedure is called again.
    Command,
}

/// A record, or the part of it that is of one replayer's partitions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub action: Action,
    /// The record's end.
    pub lsn: u64,
    pub transaction: TxnId,
    pub body: &'a [u8],
}

/// What replayers share.
pub(super) struct Shared<'a> {
    pub db: &'a Arc<Database>,
    /// Up to where the image of each partition has the log.
    pub cuts: &'a [u64],
    /// Up to where the checkpoint's catalog has the log.
    pub catalog_lsn: u64,
    /// How often definitions have changed; only while nothing is being applied.
    pub definitions: AtomicU64,
    evictor: Mutex<Evictor>,
}

impl<'a> Shared<'a> {
    pub fn new(db: &'a Arc<Database>, cuts: &'a [u64], catalog_lsn: u64) -> Self {
        Shared {
            db,
            cuts,
            catalog_lsn,
            definitions: AtomicU64::new(1),
            evictor: Mutex::new(Evictor::new(db.policy.block_bytes)),
        }
    }

    /// Evicts while memory is short.
    fn make_room(&self) -> Result<()> {
        self.db.memory.read_resident();
        if self.db.memory.pressure() == Pressure::None {
            return Ok(());
        }
        let mut evictor = self.evictor.lock();
        self.db.memory.read_resident();
        while evictor.step(self.db)? {
            self.db.memory.read_resident();
        }
        Ok(())
    }
}

/// Applies what the log says of every `stride`-th partition from `first` on.
pub(super) struct Replayer<'a> {
    shared: &'a Shared<'a>,
    first: usize,
    stride: usize,
    /// The tables by their storage, and which definitions these are.
    tables: HashMap<u32, Arc<Table>>,
    definitions: u64,
    scratch: Box<Scratch>,
    key: Vec<u8>,
    /// Since the last look at the memory.
    changes: u32,
    bytes: usize,
}

impl<'a> Replayer<'a> {
    pub fn new(shared: &'a Shared<'a>, first: usize, stride: usize) -> Self {
        Replayer {
            shared,
            first,
            stride,
            tables: HashMap::new(),
            definitions: 0,
            scratch: Box::default(),
            key: Vec::new(),
            changes: 0,
            bytes: 0,
        }
    }

    /// Applies a piece of a record. Row changes and commands are of this
    /// replayer's partitions, and newer than their images.
    pub fn apply(&mut self, piece: &Piece<'_>) -> Result<()> {
        let definitions = self.shared.definitions.load(Ordering::Acquire);
        if self.definitions != definitions {
            self.tables = self.shared.db.storages();
            self.definitions = definitions;
        }
        match piece.action {
            Action::Commit | Action::Provisional => self.apply_changes(piece),
            Action::Visible => {
                self.make_visible(piece);
                Ok(())
            }
            Action::Abort => self.partitions_behind(piece.lsn).try_for_each(|id| {
                let db = self.shared.db;
                db.remove_rows_of(id as u16, piece.transaction)
            }),
            Action::Command => {
                let db = self.shared.db;
                db.replay_command(piece.body, piece.lsn, &mut self.scratch)?;
                self.look(piece.body.len())
            }
        }
    }

    /// Its partitions whose images do not have the record that ends at `lsn`.
    fn partitions_behind(&self, lsn: u64) -> impl Iterator<Item = usize> + use<'a> {
        let cuts = self.shared.cuts;
        let own = (self.first..cuts.len()).step_by(self.stride);
        own.filter(move |id| lsn > cuts[*id])
    }

    /// Looks at the memory now and then.
    fn look(&mut self, bytes: usize) -> Result<()> {
        self.changes += 1;
        self.bytes += bytes;
        if self.changes < CHANGES_PER_LOOK && self.bytes < BYTES_PER_LOOK {
            return Ok(());
        }
        (self.changes, self.bytes) = (0, 0);
        self.shared.make_room()
    }

    fn apply_changes(&mut self, piece: &Piece<'_>) -> Result<()> {
        for change in changes(piece.body) {
            let change = change?;
            let bytes = match &change {
                RowChange::Put { tuple, .. } => tuple.len(),
                RowChange::Delete { .. } => 0,
            };
            self.apply_change(piece, &change)?;
            self.look(bytes)?;
        }
        Ok(())
    }

    fn apply_change(&mut self, piece: &Piece<'_>, change: &RowChange<'_>) -> Result<()> {
        let db = self.shared.db;
        let (storage, row) = (change.storage(), change.row());
        let Some(table) = self.tables.get(&storage) else {
            // Dropped later in the log, or never committed.
            return Ok(());
        };
        let partition = &db.partitions[usize::from(row.partition())];
        let mut state = partition.lock();
        let owner = state.owner_of((storage, row.row()));
        if owner.is_some_and(|owner| owner != piece.transaction) {
            // Rows that did not commit go without a record of it, after a
            // crash and in a rollback; others then get their numbers.
            drop(state);
            db.remove_row(table, row)?;
            state = partition.lock();
        }
        if piece.lsn <= self.shared.catalog_lsn && !state.tables.contains_key(&storage) {
            // The catalog is of later, and has indexes of which this record and
            // those that follow say nothing: they are built at the end.
            let rows = TablePartition::new(&state.arena, &[]);
            state.tables.insert(storage, Box::new(rows));
        }
        let rows = state.table_mut(table);
        match change {
            RowChange::Put { tuple, removed, .. } => {
                let provisional = piece.action == Action::Provisional;
                let existed = db.replay_put(table, rows, row.row(), tuple, provisional)?;
                for (oid, key) in removed.iter() {
                    if !Mutation::RemovedKeysIgnored.is_made() {
                        remove_key(rows, oid, key, row.row());
                    }
                }
                for (position, def) in table.def.indexes.iter().enumerate() {
                    if existed && !removed.iter().any(|(oid, _)| oid == def.oid) {
                        continue;
                    }
                    if let Some(slot) = rows.indexes.iter_mut().find(|s| s.oid == def.oid) {
                        self.key.clear();
                        table.index_key_of(position, tuple, &mut self.key);
                        slot.index.insert(&self.key, row.row())?;
                    }
                }
                // A draft's rows need no mark: they go with its storage.
                if provisional && !existed {
                    state.note_uncommitted((storage, row.row()), piece.transaction, 0);
                }
            }
            RowChange::Delete { removed, .. } => {
                db.forget_tuple(rows, row.row());
                for (oid, key) in removed.iter() {
                    remove_key(rows, oid, key, row.row());
                }
                rows.live = rows.live.saturating_sub(1);
                state.forget_uncommitted((storage, row.row()));
            }
        }
        Ok(())
    }

    fn make_visible(&self, piece: &Piece<'_>) {
        for id in self.partitions_behind(piece.lsn) {
            let mut state = self.shared.db.partitions[id].lock();
            for (first, last) in state.uncommitted_of(piece.transaction) {
                state.uncommitted.remove(&first);
                let Some(rows) = state.tables.get_mut(&first.0) else {
                    continue;
                };
                for row in first.1..=last {
                    let word = rows.directory.get(row);
                    if word.is_uncommitted() {
                        rows.directory.set(row, word.with_uncommitted(false));
                    }
                }
            }
        }
    }
}

impl Database {
    /// Whether the row was there.
    fn replay_put(
        &self,
        table: &Table,
        rows: &mut TablePartition,
        row: u32,
        tuple: &[u8],
        provisional: bool,
    ) -> Result<bool> {
        if !table.layouts.validate(tuple) {
            return Err(Error::Corrupt(format!(
                "the log holds a tuple that is none of table {}",
                table.def.name
            )));
        }
        let word = rows.directory.get(row);
        let existed = word.is_hot() || word.is_cold();
        let uncommitted = if existed {
            word.is_uncommitted()
        } else {
            provisional
        };
        let pointer = match word.as_hot() {
            Some(hot) => {
                if let Some(address) = cold_copy(rows.heap.cold(hot.pointer())) {
                    self.blocks.sub_live(address.block, 1);
                }
                rows.heap.replace(hot.pointer(), tuple)
            }
            None => {
                if let Some(cold) = word.as_cold() {
                    self.blocks.sub_live(cold.address().block, 1);
                    rows.cold -= 1;
                }
                rows.heap.insert(row, 0, tuple)
            }
        };
        let pointer = pointer.ok_or_else(|| Error::OutOfMemory("the arena is exhausted".into()))?;
        rows.heap.set_cold(pointer, 0);
        let warmth = temperature::of_changed(word.temperature(), word.is_cold());
        rows.directory.restore(
            row,
            Word::hot(pointer)
                .with_uncommitted(uncommitted)
                .with_temperature(warmth),
        );
        rows.became_hot(row);
        if !existed {
            rows.live += 1;
        }
        Ok(existed)
    }

    fn forget_tuple(&self, rows: &mut TablePartition, row: u32) {
        let word = rows.directory.get(row);
        if let Some(hot) = word.as_hot() {
            if let Some(address) = cold_copy(rows.heap.cold(hot.pointer())) {
                self.blocks.sub_live(address.block, 1);
            }
            rows.heap.free(hot.pointer());
        } else if let Some(cold) = word.as_cold() {
            self.blocks.sub_live(cold.address().block, 1);
            rows.cold -= 1;
        }
        rows.directory.restore(row, Word(0));
    }

    /// Removes the rows of a transaction that did not commit. The directory's
    /// free list is made at the end of recovery, so row numbers are not
    /// released here.
    pub(super) fn remove_rows_of(&self, partition: u16, txn: TxnId) -> Result<()> {
        let ranges = self.partitions[partition as usize]
            .lock()
            .uncommitted_of(txn);
        for (first, last) in ranges {
            let Some(table) = self.storages.read().get(&first.0).cloned() else {
                continue;
            };
            let mut from = first.1;
            loop {
                let to = last.min(from.saturating_add(REMOVED_AT_ONCE - 1));
                self.remove_evicted(partition, &table, from..=to)?;
                for row in from..=to {
                    self.remove_row(&table, RowId::new(partition, row))?;
                }
                if to == last {
                    break;
                }
                from = to + 1;
            }
        }
        Ok(())
    }

    /// Removes those of the rows that are evicted. Their keys are wanted for the
    /// indexes, so they are read, in the order in which they lie on the device:
    /// one by one a COPY that was cut off would hold up the start for long.
    fn remove_evicted(
        &self,
        partition: u16,
        table: &Table,
        rows: RangeInclusive<u32>,
    ) -> Result<()> {
        let (mut reads, pin) = {
            let mut state = self.partitions[partition as usize].lock();
            let directory = &state.table_mut(table).directory;
            plan(
                &self.blocks,
                rows.filter_map(|row| {
                    let address = directory.get(row).as_cold()?.address();
                    Some((RowId::new(partition, row), address))
                }),
            )?
        };
        reads.sort_unstable_by_key(|read| (read.address.block, read.address.slot));
        block_on(self.fetcher.read_in_order(&reads, &mut |read, tuple| {
            self.take_out(table, read.row, Some(tuple));
        }))?;
        drop(pin);
        Ok(())
    }

    pub(super) fn remove_row(&self, table: &Table, id: RowId) -> Result<()> {
        let tuple = block_on(self.one_shot_unchecked(id.partition(), |access| {
            Ok(access.current(table, id)?.map(<[u8]>::to_vec))
        }))?;
        self.take_out(table, id, tuple.as_deref());
        Ok(())
    }

    /// Takes a row out of indexes, directory and heap. None: it was gone.
    fn take_out(&self, table: &Table, id: RowId, tuple: Option<&[u8]>) {
        let mut state = self.partitions[id.partition() as usize].lock();
        let rows = state.table_mut(table);
        if let Some(tuple) = tuple {
            rows.unindex_tuple(table, tuple, id.row(), &mut Vec::new());
            rows.live = rows.live.saturating_sub(1);
        }
        self.forget_tuple(rows, id.row());
        state.forget_uncommitted((table.def.storage, id.row()));
    }
}

fn remove_key(rows: &mut TablePartition, oid: u32, key: &[u8], row: u32) {
    if let Some(slot) = rows.indexes.iter_mut().find(|s| s.oid == oid) {
        slot.index.remove(key, row);
    }
}
