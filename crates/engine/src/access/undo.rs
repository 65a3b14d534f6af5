//! Taking back a run's changes, or making them final.
//!
//! A run keeps an undo list with the images before its changes. Aborted, the
//! list is carried out backwards; committed, the images become before-images
//! for open snapshots, if there are any, and are forgotten otherwise.

use std::sync::Arc;

use thermocline_storage::log::Lsn;
use thermocline_storage::row_directory::{ColdAddress, ColdWord, Word};

use super::{Access, Scratch};
use crate::catalog::{Catalog, Table};
use crate::format::record::{RecordKind, commit_head, only_deletes, pieces, record_head};
use crate::ground::byte_parts::{ByteParts, Place};
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::ground::txn_id::{Timestamp, TxnId};
use crate::rows::row_state::Past;
use crate::rows::versions::{StoredRow, Version};
use crate::transaction::Overlaid;

/// One change and what it takes to undo it.
pub(crate) enum UndoStep {
    Insert {
        position: usize,
        table: u32,
        storage: u32,
        row: u32,
    },
    Replace {
        position: usize,
        table: u32,
        storage: u32,
        row: u32,
        before: Before,
        past: Past,
    },
    /// The row was cold, and what it was is not known.
    Overwrite {
        position: usize,
        storage: u32,
        row: u32,
        word: ColdWord,
    },
    Delete {
        position: usize,
        table: u32,
        storage: u32,
        row: u32,
        before: Before,
        word: Word,
    },
    /// As a delete, and what the row was is not known, but its only key.
    DeleteUnread {
        position: usize,
        table: u32,
        storage: u32,
        row: u32,
        word: ColdWord,
        key: Place,
    },
    Overlay {
        key: (u32, RowId),
        previous: Option<Overlaid>,
        /// It is noted for a savepoint, too.
        noted: bool,
        /// What the transaction counts for it.
        bytes: usize,
    },
}

/// The image before a change.
pub(crate) enum Before {
    /// Copied, with others.
    Copied(Place),
    /// By itself: it is large, or lies beside the table anyway.
    Whole(Arc<[u8]>),
}

/// What a step takes beside its image, in a list that doubles as it grows.
pub(super) const STEP_BYTES: usize = 2 * (size_of::<UndoStep>() + size_of::<u64>());
/// Images of so many bytes are kept by themselves, so that a version need not copy them.
const WHOLE_BYTES_MIN: usize = 4 << 10;

/// The undo list of a run.
#[derive(Default)]
pub(crate) struct Undo {
    steps: Vec<UndoStep>,
    images: ByteParts,
    /// The blocks whose copies of tuples die with the commit, once a copy.
    dead_copies: Vec<u32>,
    /// Whether each `Replace` changed an index key, in order.
    moved: Vec<bool>,
}

impl Undo {
    pub fn push(&mut self, step: UndoStep) {
        self.steps.push(step);
    }

    /// Keeps a copy of an image.
    #[inline]
    pub fn keep(&mut self, image: &[u8]) -> Before {
        match image.len() < WHOLE_BYTES_MIN {
            true => Before::Copied(self.images.keep(image)),
            false => Before::Whole(image.into()),
        }
    }

    /// Keeps an image that lies beside the table.
    pub fn keep_beside(&mut self, image: &Arc<[u8]>) -> Before {
        match image.len() < WHOLE_BYTES_MIN {
            true => Before::Copied(self.images.keep(image)),
            false => Before::Whole(image.clone()),
        }
    }

    /// Keeps a key.
    pub fn keep_key(&mut self, key: &[u8]) -> Place {
        self.images.keep(key)
    }

    pub fn kept<'a>(&'a self, before: &'a Before) -> &'a [u8] {
        match before {
            Before::Copied(place) => self.images.kept(*place),
            Before::Whole(image) => image,
        }
    }

    /// An image for whoever wants to see it after the commit.
    fn version(&self, before: Before) -> Arc<[u8]> {
        match before {
            Before::Copied(place) => self.images.kept(place).into(),
            Before::Whole(image) => image,
        }
    }

    pub fn dead_copy(&mut self, block: u32) {
        self.dead_copies.push(block);
    }

    pub fn note_moved(&mut self, moved: bool) {
        self.moved.push(moved);
    }

    /// Storage and number of the inserted rows, in order.
    pub fn inserted(&self) -> impl Iterator<Item = (u32, u32)> {
        self.steps.iter().filter_map(|step| match step {
            UndoStep::Insert { storage, row, .. } => Some((*storage, *row)),
            _ => None,
        })
    }

    /// The rows that were overwritten or deleted unread, and where their tuples are.
    pub fn unseen(&self) -> impl Iterator<Item = (usize, u32, ColdAddress)> {
        self.steps.iter().filter_map(|step| match step {
            UndoStep::Overwrite {
                position,
                row,
                word,
                ..
            }
            | UndoStep::DeleteUnread {
                position,
                row,
                word,
                ..
            } => Some((*position, *row, word.address())),
            _ => None,
        })
    }

    /// Whether there are changes that are neither final nor undone, and have left tuples aside.
    fn leaves_anything_aside(&self) -> bool {
        let is_aside = |step: &UndoStep| match step {
            UndoStep::Replace { past, .. } => matches!(past, Past::Aside(_)),
            _ => false,
        };
        self.steps.iter().any(is_aside)
    }

    fn clear(&mut self) {
        self.steps.clear();
        self.images.clear();
        self.dead_copies.clear();
        self.moved.clear();
    }
}

impl Scratch {
    /// Empties it for the next run; what grew large is given back.
    fn recycle(&mut self) {
        // A part of a bulk statement is up to 256 KiB, in a vector that doubles.
        const KEPT_BYTES_MAX: usize = 512 * 1024;
        debug_assert!(
            !self.undo.leaves_anything_aside(),
            "a run ended neither for good nor for nothing"
        );
        if self.undo.images.is_above(KEPT_BYTES_MAX)
            || self.changes.parts.is_above(KEPT_BYTES_MAX)
            || self.undo.steps.capacity() > 4096
            || self.missing.capacity() > 4096
        {
            *self = Scratch::default();
            return;
        }
        self.undo.clear();
        self.changes.parts.clear();
        self.kinds.clear();
        self.missing.clear();
    }
}

/// Versions that a commit drops in each of its partitions at most.
const COLLECTED_A_COMMIT: usize = 256;

/// The definitions by which a run has changed rows.
struct Tables {
    table: Option<Arc<Table>>,
    catalog: Arc<Catalog>,
}

impl Tables {
    fn get(&self, oid: u32, storage: u32) -> Option<&Table> {
        let own = self.table.as_deref().into_iter();
        let mut tables = own.chain(self.catalog.table(oid).map(|table| &**table));
        tables.find(|table| table.def.storage == storage)
    }
}

impl Access<'_> {
    /// Has the run be undone by this definition, which it goes by, and not the catalog's: the
    /// rows may have columns that nobody else's have.
    pub(crate) fn go_by(&mut self, table: &Arc<Table>) {
        self.defined_by = Some(table.clone());
    }

    /// Whether the run has changed anything in place that must be logged.
    pub(crate) fn has_changes(&self) -> bool {
        !self.scratch.changes.parts.is_empty() || !self.scratch.kinds.is_empty()
    }

    /// Whether its changes only take rows away.
    pub(crate) fn only_deletes(&self) -> bool {
        self.scratch.kinds.is_empty() && only_deletes(&self.scratch.changes.parts)
    }

    /// Gives the scratch vectors back for the next run.
    pub(crate) fn into_scratch(mut self) -> Box<Scratch> {
        self.scratch.recycle();
        self.scratch
    }

    /// Takes everything back that this run has changed.
    pub(crate) fn undo(&mut self) {
        let tables = Tables {
            table: self.defined_by.take(),
            catalog: self.applied.take().unwrap_or_else(|| self.catalog()),
        };
        let mut undo = std::mem::take(&mut self.scratch.undo);
        let steps = std::mem::take(&mut undo.steps);
        for step in steps.into_iter().rev() {
            self.undo_step(&tables, &undo, step);
        }
        undo.clear();
        self.scratch.undo = undo;
        self.scratch.changes.parts.clear();
        self.undo_kinds();
    }

    fn undo_step(&mut self, tables: &Tables, undo: &Undo, step: UndoStep) {
        let mut key = std::mem::take(&mut self.scratch.key);
        let mut keys = std::mem::take(&mut self.scratch.keys);
        match step {
            UndoStep::Insert {
                position,
                table,
                storage,
                row,
            } => {
                let table = tables.get(table, storage);
                self.undo_insert(table, position, (storage, row), &mut key);
            }
            UndoStep::Replace {
                position,
                table,
                storage,
                row,
                before,
                past,
            } => {
                let state = self.guards.at_mut(position);
                if let (Some(table), Some(rows)) =
                    (tables.get(table, storage), state.tables.rows_mut(storage))
                    && let Some(hot) = rows.directory().get(row).as_hot()
                {
                    let new = rows.heap().payload(hot.pointer()).to_vec();
                    let old = undo.kept(&before);
                    // Going back to keys that were there cannot fail.
                    let _ = rows.reindex_tuple(table, &new, old, row, &mut keys);
                    rows.undo_change(row, hot, past, old);
                }
            }
            UndoStep::Overwrite {
                position,
                storage,
                row,
                word,
            } => {
                let state = self.guards.at_mut(position);
                if let Some(rows) = state.tables.rows_mut(storage)
                    && let Some(hot) = rows.directory().get(row).as_hot()
                {
                    rows.undo_change(row, hot, Past::Cold(word), &[]);
                }
            }
            UndoStep::Delete {
                position,
                table,
                storage,
                row,
                before,
                word,
            } => {
                let state = self.guards.at_mut(position);
                if let (Some(table), Some(rows)) =
                    (tables.get(table, storage), state.tables.rows_mut(storage))
                {
                    rows.undo_die(row, word);
                    let _ = rows.index_tuple(table, undo.kept(&before), row, &mut key);
                }
            }
            UndoStep::DeleteUnread {
                position,
                table,
                storage,
                row,
                word,
                key,
            } => {
                let state = self.guards.at_mut(position);
                if let (Some(table), Some(rows)) =
                    (tables.get(table, storage), state.tables.rows_mut(storage))
                {
                    rows.undo_die(row, word.word());
                    let _ = rows.index_key(table, 0, undo.images.kept(key), row);
                }
            }
            UndoStep::Overlay {
                key,
                previous,
                noted,
                bytes,
            } => {
                if let Some(txn) = self.txn.as_deref_mut() {
                    txn.bytes -= bytes;
                    if noted {
                        txn.journal.pop();
                    }
                    txn.restore_overlaid(key, previous);
                }
            }
        }
        self.scratch.key = key;
        self.scratch.keys = keys;
    }

    fn undo_insert(
        &mut self,
        table: Option<&Table>,
        position: usize,
        (storage, row): StoredRow,
        key: &mut Vec<u8>,
    ) {
        let numbers = self.numbers();
        let state = self.guards.at_mut(position);
        let partition = state.id;
        if let (Some(table), Some(rows)) = (table, state.tables.rows_mut(storage))
            && let Some(hot) = rows.directory().get(row).as_hot()
        {
            let tuple = rows.heap().payload(hot.pointer()).to_vec();
            rows.unindex_tuple(table, &tuple, row, key);
            rows.undo_insert(row, hot.word(), numbers);
            state.forget_uncommitted((storage, row));
        }
        if let Some(txn) = self.txn.as_deref_mut()
            && let Some(count) = txn.inserted.get_mut(&(partition, storage))
        {
            *count -= 1;
        }
    }

    /// The catalog in force for this transaction. It cannot change while a
    /// partition is held.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        match self.txn.as_deref().and_then(|t| t.draft.as_ref()) {
            Some(draft) => draft.catalog(&self.parts.catalog()),
            None => self.parts.catalog(),
        }
    }

    /// Makes a one-shot transaction's changes final: logs them, keeps
    /// before-images for open snapshots. Returns the end of its log record.
    pub(crate) fn commit_one_shot(&mut self, synchronous: bool) -> Result<Lsn> {
        self.prepare_kinds()?;
        let changes = &self.scratch.changes.parts;
        let lsn = match &self.command {
            Some(command) if self.may_log_command() => self.append_command(command)?,
            _ => self
                .parts
                .append_changes(&commit_head(0, changes), changes, &[], || {
                    only_deletes(changes)
                })?,
        };
        self.tell_kinds(lsn);
        let (timestamp, snapshots_open) = self.parts.transactions().commit_timestamp();
        self.finish_steps(timestamp, snapshots_open);
        if synchronous {
            for state in self.guards.iter_mut() {
                state.last_commit = lsn;
            }
        }
        Ok(lsn)
    }

    /// Ends a statement of an interactive transaction: what it inserted or
    /// changed in place is logged provisionally.
    pub(crate) fn finish_statement(&mut self) -> Result<()> {
        let Some(txn) = self.txn.as_deref_mut() else {
            return Ok(());
        };
        let changes = &self.scratch.changes.parts;
        if !changes.is_empty() {
            let head = record_head(RecordKind::Provisional, txn.id.0);
            match changes.whole() {
                Some(changes) => self.parts.append_log(&[&head, changes])?,
                None => self.parts.append_log(&pieces(&head, changes, &[]))?,
            };
            txn.logged = true;
        }
        // Nobody else sees uncommitted rows, so there are no before-images to
        // keep; deleted ones go at once.
        self.finish_steps(0, false);
        Ok(())
    }

    fn finish_steps(&mut self, timestamp: Timestamp, snapshots_open: bool) {
        let numbers = self.numbers();
        let mut undo = std::mem::take(&mut self.scratch.undo);
        let (mut steps, mut moved) = (
            std::mem::take(&mut undo.steps),
            std::mem::take(&mut undo.moved),
        );
        let mut moves = moved.drain(..);
        let version = |row, before| Version {
            committed: timestamp,
            row,
            before,
            detached: false,
            frees_row: false,
        };
        for step in steps.drain(..) {
            match step {
                UndoStep::Insert {
                    position,
                    storage,
                    row,
                    ..
                } if snapshots_open => {
                    let version = version((storage, row), None);
                    self.guards.at_mut(position).versions.push(version);
                }
                UndoStep::Replace {
                    position,
                    storage,
                    row,
                    before,
                    past,
                    ..
                } => {
                    let moved = moves.next().unwrap_or(true);
                    if let Past::Aside(_) = past
                        && let Some(rows) = self.guards.at_mut(position).tables.rows_mut(storage)
                    {
                        rows.free_aside(past);
                    }
                    if snapshots_open {
                        self.guards.at_mut(position).versions.push(Version {
                            detached: moved,
                            ..version((storage, row), Some(undo.version(before)))
                        });
                    }
                }
                UndoStep::Delete {
                    position,
                    storage,
                    row,
                    before,
                    word,
                    ..
                } => {
                    // A row that was never committed is no snapshot's.
                    let kept = snapshots_open && !word.is_uncommitted();
                    let version = kept.then(|| Version {
                        detached: true,
                        frees_row: true,
                        ..version((storage, row), Some(undo.version(before)))
                    });
                    let state = self.guards.at_mut(position);
                    if let Some(rows) = state.tables.rows_mut(storage) {
                        rows.bury(row, word, kept, numbers);
                    }
                    if word.is_uncommitted() {
                        state.forget_uncommitted((storage, row));
                    }
                    version
                        .into_iter()
                        .for_each(|version| state.versions.push(version));
                }
                // No snapshot is open that would want what it was.
                UndoStep::DeleteUnread {
                    position,
                    storage,
                    row,
                    word,
                    ..
                } => {
                    let state = self.guards.at_mut(position);
                    if let Some(rows) = state.tables.rows_mut(storage) {
                        rows.bury(row, word.word(), false, numbers);
                    }
                }
                UndoStep::Insert { .. } | UndoStep::Overwrite { .. } | UndoStep::Overlay { .. } => {
                }
            }
        }
        drop(moves);
        (undo.steps, undo.moved) = (steps, moved);
        for block in undo.dead_copies.drain(..) {
            self.parts.blocks().sub_live(block, 1);
        }
        undo.clear();
        self.scratch.undo = undo;
        self.collect_versions();
    }

    /// Drops some versions that no snapshot needs, in the partitions of this run.
    fn collect_versions(&mut self) {
        let mut horizon = None;
        for state in self.guards.iter_mut() {
            if !state.versions.is_empty() {
                let horizon = *horizon.get_or_insert_with(|| self.parts.transactions().horizon());
                // The rest is the keeper's.
                state.collect_versions(horizon, COLLECTED_A_COMMIT);
            }
        }
    }
}

impl Access<'_> {
    /// The changes of this run, encoded for the log.
    pub(crate) fn changes(&self) -> &ByteParts {
        &self.scratch.changes.parts
    }

    /// Applies a transaction's updates and deletes in place, in this order.
    pub(crate) fn apply_overlay(
        &mut self,
        catalog: &Arc<Catalog>,
        owner: TxnId,
        order: &[(&(u32, RowId), &Overlaid)],
    ) -> Result<()> {
        self.applied = Some(catalog.clone());
        let table_of = |storage: u32, overlaid: &Overlaid| {
            catalog
                .table(overlaid.table)
                .filter(|table| table.def.storage == storage)
                .ok_or(Error::Serialization("a concurrent change of the table"))
        };
        for ((storage, row), overlaid) in order {
            self.apply_row(table_of(*storage, overlaid)?, owner, *row, overlaid)?;
        }
        for ((storage, row), overlaid) in order {
            self.check_applied(table_of(*storage, overlaid)?, *row, overlaid)?;
        }
        Ok(())
    }

    /// Removes rows, whoever inserted them, as an aborted transaction's: as many as one run
    /// should hold. Those that are left to be removed are evicted, or follow.
    pub(crate) fn remove_rows(&mut self, table: &Table, rows: &mut Vec<RowId>) -> Result<()> {
        let (mut seen, mut left) = (0, Vec::new());
        while let Some(row) = rows.get(seen).filter(|_| !self.is_large()) {
            let (row, missing) = (*row, self.missing().len());
            self.remove_row(table, row)?;
            if self.missing().len() > missing {
                left.push(row);
            }
            seen += 1;
        }
        rows.splice(..seen, left);
        Ok(())
    }

    /// Ends the steps of `apply_overlay` or `remove_rows`.
    pub(crate) fn finish_overlay(&mut self, timestamp: Timestamp, snapshots_open: bool) {
        self.finish_steps(timestamp, snapshots_open);
    }
}
