//! The log's tail: each record applied to the partitions whose images are older,
//! and the rows of transactions that did not commit removed again.

use std::ops::RangeInclusive;
use std::sync::Arc;

use thermocline_device::{Mutation, StopPoint, stop_at};
use thermocline_storage::log::LogTail;
use thermocline_storage::row_directory::Word;
use thermocline_storage::temperature;

use super::commands::Commands;
use super::log_broken;
use crate::catalog::{CatalogImage, Table, TableDef};
use crate::database::Database;
use crate::error::{Error, Result};
use crate::evict::{Evictor, cold_copy};
use crate::fetch::plan;
use crate::partition::TablePartition;
use crate::record::{RecordKind, RowChange, changes, parse_commit_body, parse_record};
use crate::row_id::RowId;
use crate::transaction::TxnId;
use thermocline_device::block_on;

/// Rows of a transaction without a commit that are removed at a time.
const REMOVED_AT_ONCE: u32 = 8192;
/// Records applied between two looks at the memory.
const RECORDS_PER_LOOK: u64 = 256;

impl Database {
    /// Applies the log's tail. Records applied.
    pub(super) fn replay(
        self: &Arc<Self>,
        mut tail: LogTail,
        cuts: &[u64],
        catalog_lsn: u64,
    ) -> Result<u64> {
        let mut evictor = Evictor::new(self.policy.block_bytes);
        let mut records = 0;
        let mut last_transaction = 0;
        let mut commands = Commands::default();
        while let Some(record) = tail.next().map_err(log_broken)? {
            let lsn = record.end;
            let (kind, txn, body) = parse_record(record.payload)?;
            last_transaction = last_transaction.max(txn);
            match kind {
                RecordKind::Commit => {
                    let (row_changes, catalog) = parse_commit_body(body)?;
                    self.replay_changes(row_changes, (lsn, catalog_lsn), cuts, TxnId(txn), None)?;
                    if txn != 0 {
                        self.replay_visible(TxnId(txn), lsn, cuts);
                    }
                    if !catalog.is_empty() && lsn > catalog_lsn {
                        let image: CatalogImage = serde_json::from_slice(catalog)
                            .map_err(|e| Error::Corrupt(format!("catalog in the log: {e}")))?;
                        self.adopt_catalog(&image);
                        commands.indexes_complete = false;
                    }
                }
                RecordKind::Provisional => {
                    self.replay_changes(
                        body,
                        (lsn, catalog_lsn),
                        cuts,
                        TxnId(txn),
                        Some(TxnId(txn)),
                    )?;
                }
                RecordKind::Abort => self.replay_abort(TxnId(txn), lsn, cuts)?,
                RecordKind::Draft => {
                    let def: TableDef = serde_json::from_slice(body)
                        .map_err(|e| Error::Corrupt(format!("table in the log: {e}")))?;
                    if lsn > catalog_lsn {
                        self.adopt_draft(def);
                    }
                }
                RecordKind::Sequence => self.replay_sequence(body)?,
                RecordKind::Command => self.replay_command(body, lsn, cuts, &mut commands)?,
            }
            records += 1;
            stop_at(StopPoint::RecoveryReplay);
            if records % RECORDS_PER_LOOK == 0 {
                self.memory.read_resident();
                while evictor.step(self)? {
                    self.memory.read_resident();
                }
            }
        }
        self.transactions.start_after(last_transaction);
        Ok(records)
    }

    fn replay_changes(
        &self,
        body: &[u8],
        (lsn, catalog_lsn): (u64, u64),
        cuts: &[u64],
        writer: TxnId,
        provisional: Option<TxnId>,
    ) -> Result<()> {
        for change in changes(body) {
            let change = change?;
            let (storage, row) = match &change {
                RowChange::Put { storage, row, .. } | RowChange::Delete { storage, row, .. } => {
                    (*storage, *row)
                }
            };
            let cut = *cuts.get(row.partition() as usize).ok_or_else(|| {
                Error::Corrupt(format!("the log names partition {}", row.partition()))
            })?;
            if lsn <= cut {
                continue;
            }
            let Some(table) = self.storages.read().get(&storage).cloned() else {
                // Dropped later in the log, or never committed.
                continue;
            };
            let partition = &self.partitions[row.partition() as usize];
            let owner = partition.state.lock().owner_of((storage, row.row()));
            if owner.is_some_and(|owner| owner != writer) {
                // Rows that did not commit go without a record of it, after a
                // crash and in a rollback; others then get their numbers.
                self.remove_row(&table, row)?;
            }
            let mut state = partition.state.lock();
            if lsn <= catalog_lsn && !state.tables.contains_key(&storage) {
                // The catalog is of later, and has indexes of which this record and
                // those that follow say nothing: they are built at the end.
                let rows = TablePartition::new(&state.arena, &[]);
                state.tables.insert(storage, Box::new(rows));
            }
            match change {
                RowChange::Put { tuple, removed, .. } => {
                    let rows = state.table_mut(&table);
                    let existed = self.replay_put(&table, rows, row.row(), tuple, provisional)?;
                    for (oid, key) in removed.iter() {
                        if !Mutation::RemovedKeysIgnored.is_made() {
                            remove_key(rows, oid, key, row.row());
                        }
                    }
                    let mut key = Vec::new();
                    for (position, def) in table.def.indexes.iter().enumerate() {
                        if existed && !removed.iter().any(|(oid, _)| oid == def.oid) {
                            continue;
                        }
                        if let Some(slot) = rows.indexes.iter_mut().find(|s| s.oid == def.oid) {
                            key.clear();
                            table.index_key_of(position, tuple, &mut key);
                            slot.index.insert(&key, row.row())?;
                        }
                    }
                    // A draft's rows need no mark: they go with its storage.
                    if let Some(owner) = provisional
                        && !existed
                    {
                        state.note_uncommitted((storage, row.row()), owner);
                    }
                }
                RowChange::Delete { removed, .. } => {
                    let rows = state.table_mut(&table);
                    self.forget_tuple(rows, row.row());
                    for (oid, key) in removed.iter() {
                        remove_key(rows, oid, key, row.row());
                    }
                    rows.live = rows.live.saturating_sub(1);
                    state.forget_uncommitted((storage, row.row()));
                }
            }
        }
        Ok(())
    }

    /// Whether the row was there.
    fn replay_put(
        &self,
        table: &Table,
        rows: &mut TablePartition,
        row: u32,
        tuple: &[u8],
        provisional: Option<TxnId>,
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
            provisional.is_some()
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
        let warmth = word.temperature().max(temperature::WRITTEN);
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

    fn replay_visible(&self, txn: TxnId, lsn: u64, cuts: &[u64]) {
        for (partition, cut) in self.partitions.iter().zip(cuts) {
            if lsn <= *cut {
                continue;
            }
            let mut state = partition.state.lock();
            for (first, last) in state.uncommitted_of(txn) {
                state.uncommitted.remove(&first);
                if let Some(rows) = state.tables.get_mut(&first.0) {
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

    fn replay_abort(&self, txn: TxnId, lsn: u64, cuts: &[u64]) -> Result<()> {
        for (id, cut) in cuts.iter().enumerate() {
            if lsn > *cut {
                self.remove_rows_of(id as u16, txn)?;
            }
        }
        Ok(())
    }

    /// Removes the rows of a transaction that did not commit. The directory's
    /// free list is made at the end of recovery, so row numbers are not
    /// released here.
    pub(super) fn remove_rows_of(&self, partition: u16, txn: TxnId) -> Result<()> {
        let ranges = self.partitions[partition as usize]
            .state
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
            let mut state = self.partitions[partition as usize].state.lock();
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
        block_on(self.fetcher.read_in_order(&reads, &mut |row, tuple| {
            self.take_out(table, row, Some(tuple));
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
        let mut state = self.partitions[id.partition() as usize].state.lock();
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
