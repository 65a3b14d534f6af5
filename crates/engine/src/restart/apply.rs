//! What the log's tail does to the rows of one partition, in the log's order: the one place
//! where it is applied.
//!
//! Nobody else works in the partition but the evictor, in its short turns. What concerns all
//! partitions, definitions above all, comes as events (`events`), between the pieces of the
//! partition's own.

use std::ops::RangeInclusive;
use std::sync::Arc;

use thermocline_device::{Mutation, StopPoint, block_on, stop_at};

use super::events::{Definitions, Event};
use super::pieces::{Action, Piece};
use super::tail::Tail;
use crate::access::Scratch;
use crate::catalog::Table;
use crate::format::record::{RowChange, changes};
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::ground::txn_id::TxnId;
use crate::parts::Parts;
use crate::rows::fetch::plan;
use crate::rows::kind::Kind;
use crate::rows::row_state::{Replayed, TablePartition};

/// Rows of a transaction without a commit that are removed at a time.
const REMOVED_AT_ONCE: u32 = 8192;
/// Changes applied between two looks at the memory, …
const CHANGES_PER_LOOK: u32 = 256;
/// … and bytes of them.
const BYTES_PER_LOOK: usize = 512 << 10;

/// Applies what the log says of a partition.
pub(super) struct Replayer {
    pub partition: u16,
    /// Up to where the partition's image has the log.
    cut: u64,
    /// In force where it has come to in the log.
    pub definitions: Arc<Definitions>,
    /// The next of the events.
    event: usize,
    /// Whether the partition has all indexes that the definitions name.
    pub indexes_complete: bool,
    pub scratch: Box<Scratch>,
    key: Vec<u8>,
    /// Since the last look at the memory.
    changes: u32,
    bytes: usize,
}

impl Replayer {
    pub fn new(partition: u16, cut: u64, definitions: Arc<Definitions>) -> Self {
        Replayer {
            partition,
            cut,
            definitions,
            event: 0,
            indexes_complete: false,
            scratch: Box::default(),
            key: Vec::new(),
            changes: 0,
            bytes: 0,
        }
    }

    /// Applies a piece of a record that the partition's image does not have, and what
    /// happened to all partitions before it.
    pub fn apply(&mut self, db: &Parts, tail: &Tail, piece: &Piece<'_>) -> Result<()> {
        self.apply_events(db, tail, piece.lsn)?;
        match piece.action {
            Action::Commit | Action::Provisional => {
                for change in changes(piece.body) {
                    let change = change?;
                    let bytes = match &change {
                        RowChange::Put { tuple, .. } => tuple.len(),
                        RowChange::Delete { .. } | RowChange::Named { .. } => 0,
                    };
                    self.apply_change(db, tail, piece, &change)?;
                    self.look(db, tail, bytes)?;
                }
            }
            Action::Command => {
                if !self.indexes_complete {
                    self.complete_indexes(db)?;
                }
                self.replay_command(db, tail, piece.body, piece.lsn)?;
                self.look(db, tail, piece.body.len())?;
            }
        }
        stop_at(StopPoint::RecoveryReplay);
        Ok(())
    }

    /// Applies what happened to all partitions before this place of the log.
    pub fn apply_events(&mut self, db: &Parts, tail: &Tail, before: u64) -> Result<()> {
        while let Some((lsn, event)) = tail.events.before(self.event, before) {
            self.event += 1;
            match event {
                Event::Define(definitions) => {
                    self.definitions = definitions;
                    self.indexes_complete = false;
                }
                // The image is of later.
                _ if lsn <= self.cut => {}
                Event::Visible(transaction) => self.make_visible(db, transaction),
                Event::Abort(transaction) => self.remove_rows_of(db, transaction)?,
            }
        }
        Ok(())
    }

    /// Looks at the memory now and then.
    fn look(&mut self, db: &Parts, tail: &Tail, bytes: usize) -> Result<()> {
        self.changes += 1;
        self.bytes += bytes;
        if self.changes < CHANGES_PER_LOOK && self.bytes < BYTES_PER_LOOK {
            return Ok(());
        }
        (self.changes, self.bytes) = (0, 0);
        tail.make_room(db)
    }

    fn apply_change(
        &mut self,
        db: &Parts,
        tail: &Tail,
        piece: &Piece<'_>,
        change: &RowChange<'_>,
    ) -> Result<()> {
        let storage = change.storage();
        let Some(table) = self.definitions.tables.get(&storage) else {
            // Dropped later in the log, or never committed.
            return Ok(());
        };
        let partition = &db.all_partitions()[usize::from(self.partition)];
        let mut state = partition.lock();
        let row = match change {
            RowChange::Put { row, .. } | RowChange::Delete { row, .. } => *row,
            RowChange::Named { number, .. } => {
                return state.kind_of(table, db.device())?.named(*number);
            }
        };
        let owner = state.owner_of((storage, row.row()));
        if owner.is_some_and(|owner| owner != piece.transaction) {
            // Rows that did not commit go without a record of it, after a
            // crash and in a rollback; others then get their numbers.
            drop(state);
            db.remove_row(table, row)?;
            state = partition.lock();
        }
        if piece.lsn <= tail.catalog_lsn && !state.tables.has(storage) {
            // The catalog is of later, and has indexes of which this record and
            // those that follow say nothing: they are built at the end.
            let rows = TablePartition::new(&state.pages, Vec::new(), state.policies.home().server);
            state.tables.put(storage, Kind::InPlace(rows));
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
                    if let Some(slot) = rows.indexes_mut().iter_mut().find(|s| s.oid == def.oid) {
                        self.key.clear();
                        table.index_key_of(position, tuple, &mut self.key);
                        if table.has_entry(position, &self.key) {
                            slot.index.insert(&self.key, row.row())?;
                        }
                    }
                }
                // A draft's rows need no mark: they go with its storage.
                if provisional && !existed {
                    state.note_uncommitted((storage, row.row()), piece.transaction, 0);
                }
            }
            RowChange::Delete { removed, .. } => {
                db.forget_row(rows, row.row());
                for (oid, key) in removed.iter() {
                    remove_key(rows, oid, key, row.row());
                }
                state.forget_uncommitted((storage, row.row()));
            }
            // It names no row, and is done by now.
            RowChange::Named { .. } => {}
        }
        Ok(())
    }

    fn make_visible(&self, db: &Parts, transaction: TxnId) {
        let mut state = db.all_partitions()[usize::from(self.partition)].lock();
        if state.uncommitted.is_empty() {
            return;
        }
        for (first, last) in state.uncommitted_of(transaction) {
            state.uncommitted.remove(&first);
            let Some(rows) = state.tables.rows_mut(first.0) else {
                continue;
            };
            for row in first.1..=last {
                rows.commit_insert(row);
            }
        }
    }

    /// Removes the rows of a transaction that did not commit. The directory's
    /// free list is made at the end of recovery, so row numbers are not
    /// released here.
    pub fn remove_rows_of(&self, db: &Parts, transaction: TxnId) -> Result<()> {
        let ranges = db.all_partitions()[usize::from(self.partition)]
            .lock()
            .uncommitted_of(transaction);
        for (first, last) in ranges {
            let Some(table) = self.definitions.tables.get(&first.0) else {
                continue;
            };
            let mut from = first.1;
            loop {
                let to = last.min(from.saturating_add(REMOVED_AT_ONCE - 1));
                db.remove_evicted(self.partition, table, from..=to)?;
                for row in from..=to {
                    db.remove_row(table, RowId::new(self.partition, row))?;
                }
                if to == last {
                    break;
                }
                from = to + 1;
            }
        }
        Ok(())
    }
}

impl Parts {
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
        match rows.replay(row, tuple, provisional)? {
            Replayed::Inserted => Ok(false),
            Replayed::Changed(hole) => {
                if let Some(address) = hole {
                    self.blocks().sub_live(address.block, 1);
                }
                Ok(true)
            }
        }
    }

    fn forget_row(&self, rows: &mut TablePartition, row: u32) {
        if let Some(address) = rows.forget(row) {
            self.blocks().sub_live(address.block, 1);
        }
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
            let mut state = self.all_partitions()[partition as usize].lock();
            let directory = state.table_mut(table).directory();
            plan(
                self.blocks(),
                rows.filter_map(|row| {
                    let address = directory.get(row).as_cold()?.address();
                    Some((RowId::new(partition, row), address))
                }),
            )?
        };
        reads.sort_unstable_by_key(|read| (read.address.block, read.address.slot));
        block_on(self.fetcher().read_in_order(&reads, &mut |read, tuple| {
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
        let mut state = self.all_partitions()[id.partition() as usize].lock();
        let rows = state.table_mut(table);
        if let Some(tuple) = tuple {
            rows.unindex_tuple(table, tuple, id.row(), &mut Vec::new());
        }
        self.forget_row(rows, id.row());
        state.forget_uncommitted((table.def.storage, id.row()));
    }
}

fn remove_key(rows: &mut TablePartition, oid: u32, key: &[u8], row: u32) {
    if let Some(slot) = rows.indexes_mut().iter_mut().find(|s| s.oid == oid) {
        slot.index.remove(key, row);
    }
}
