//! Changing rows: in place in a one-shot transaction, beside the table in an
//! interactive one (inserts are in place in both, marked uncommitted in the
//! latter).

use std::sync::atomic::Ordering;

use thermocline_device::{PanicPoint, panic_at};

use super::undo::{Before, STEP_BYTES, UndoStep};
use super::{Access, Image, Obstacle, Use};
use crate::catalog::Table;
use crate::catalog::table_lock::LockMode;
use crate::format::record::{CHANGE_HEAD_BYTES, push_removed};
use crate::ground::byte_parts::Place;
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::ground::txn_id::TxnId;
use crate::rows::row_state::TablePartition;
use crate::transaction::{Isolation, Overlaid};

/// The largest tuple, in bytes: it must fit in a block.
pub const TUPLE_BYTES_MAX: usize = (1 << 20) - 8192;

impl Access<'_> {
    /// Inserts a tuple of the newest layout.
    pub fn insert(&mut self, table: &Table, tuple: &[u8]) -> Result<RowId> {
        panic_at(PanicPoint::Statement);
        self.change(|access| access.insert_row(table, tuple))
    }

    fn insert_row(&mut self, table: &Table, tuple: &[u8]) -> Result<RowId> {
        self.begin_write(table)?;
        check_size(tuple)?;
        if self.parts.memory().floor.refuses() && self.recorded.is_none() {
            self.parts.memory().check_floor("a new row")?;
        }
        let position = match table.partition_of_tuple(tuple) {
            Some(partition) => self.guards.position(partition)?,
            None if self.guards.len() == 1 => 0,
            None => self.parts.spread() as usize % self.guards.len(),
        };
        self.check_unique(position, table, tuple, None)?;
        self.take(logged_bytes(tuple.len()), tuple.len())?;
        // The rows of a draft's storage go with it; there are savepoints to go back to, too.
        let owner = self.txn.as_deref().and_then(|txn| {
            let is_marked = txn.level > 0 || !txn.sees_draft_of(table.def.storage);
            is_marked.then_some((txn.id, txn.level))
        });
        let numbers = self.numbers();
        let mut keys = std::mem::take(&mut self.scratch.key);
        let state = self.guards.at_mut(position);
        let partition = state.id;
        let rows = state.table_mut(table);
        let result = (|| {
            let row = match &mut self.recorded {
                None => rows.take_number()?,
                Some(recorded) => recorded.take(table.def.storage, rows)?,
            };
            if let Err(error) = rows.insert(row, tuple, owner.is_some()) {
                rows.give_number(row, numbers);
                return Err(error);
            }
            self.scratch.undo.push(UndoStep::Insert {
                position,
                table: table.def.oid,
                storage: table.def.storage,
                row,
            });
            // With its step: an undo counts it off again, also if an index refuses its key.
            if let Some(txn) = self.txn.as_deref_mut() {
                *txn.inserted
                    .entry((partition, table.def.storage))
                    .or_default() += 1;
            }
            panic_at(PanicPoint::Change);
            rows.index_tuple(table, tuple, row, &mut keys)?;
            Ok(row)
        })();
        self.scratch.key = keys;
        let row = result?;
        if let Some((owner, level)) = owner {
            state.note_uncommitted((table.def.storage, row), owner, level);
        }
        let row = RowId::new(partition, row);
        self.scratch.changes.put(table.def.storage, row, tuple, &[]);
        Ok(row)
    }

    /// Replaces a row's tuple. A row whose partition key changes moves; returns where the row
    /// is.
    pub fn update(&mut self, table: &Table, row: RowId, tuple: &[u8]) -> Result<RowId> {
        panic_at(PanicPoint::Statement);
        self.change(|access| access.update_row(table, row, tuple))
    }

    fn update_row(&mut self, table: &Table, row: RowId, tuple: &[u8]) -> Result<RowId> {
        self.begin_write(table)?;
        check_size(tuple)?;
        let position = self.guards.position(row.partition())?;
        let own = self.lock_row(position, table, row)?;
        let old = match self.resolve(position, table, row, Use::Again)? {
            Image::Gone | Image::Evicted => return Ok(row),
            image => image,
        };
        let keys_differ = self.keys_differ(position, table, &old, tuple);
        if keys_differ && table.is_referenced() {
            self.note_removed_key(position, table, &old, Some(tuple))?;
        }
        if (keys_differ || !table.is_partitioned_by_index())
            && let Some(partition) = table.partition_of_tuple(tuple)
            && partition != row.partition()
        {
            self.remove(position, table, row, own, &old)?;
            return self.insert_row(table, tuple);
        }
        if keys_differ {
            self.check_unique(position, table, tuple, Some(row))?;
        }
        if own {
            self.replace_in_place(position, table, row, &old, tuple, keys_differ)?;
        } else {
            let old_bytes = self.image_bytes(position, table, &old);
            self.overlay(table, row, Some(tuple), old_bytes, keys_differ)?;
        }
        Ok(row)
    }

    /// Deletes a row.
    pub fn delete(&mut self, table: &Table, row: RowId) -> Result<()> {
        panic_at(PanicPoint::Statement);
        self.change(|access| access.delete_row(table, row))
    }

    fn delete_row(&mut self, table: &Table, row: RowId) -> Result<()> {
        self.begin_write(table)?;
        let position = self.guards.position(row.partition())?;
        let own = self.lock_row(position, table, row)?;
        let old = match self.resolve(position, table, row, Use::Again)? {
            Image::Gone | Image::Evicted => return Ok(()),
            image => image,
        };
        if table.is_referenced() {
            self.note_removed_key(position, table, &old, None)?;
        }
        self.remove(position, table, row, own, &old)
    }

    fn remove(
        &mut self,
        position: usize,
        table: &Table,
        row: RowId,
        own: bool,
        old: &Image,
    ) -> Result<()> {
        if own {
            self.delete_in_place(position, table, row, old)
        } else {
            let old_bytes = self.image_bytes(position, table, old);
            self.overlay(table, row, None, old_bytes, false)
        }
    }

    /// Applies one row of a committing transaction's overlay.
    pub(super) fn apply_row(
        &mut self,
        table: &Table,
        owner: TxnId,
        row: RowId,
        overlaid: &Overlaid,
    ) -> Result<()> {
        let position = self.guards.position(row.partition())?;
        let state = self.guards.at(position);
        let stored = (table.def.storage, row.row());
        let holder = state.locks.get(&stored).copied();
        if holder != Some(owner) {
            let name = &table.def.name;
            return Err(Error::Internal(format!(
                "row {row} of {name}, which transaction {owner:?} has changed, is locked by {holder:?}"
            )));
        }
        let Some(rows) = state.tables.rows(stored.0) else {
            return Err(Error::Internal("a locked row has no table".into()));
        };
        let word = rows.directory().get(row.row());
        let old = self.resolve_current(position, table, row, word)?;
        match (&old, &overlaid.new) {
            (Image::Gone, _) => Err(Error::Internal("a locked row is gone".into())),
            (Image::Evicted, _) => Ok(()),
            (_, None) => self.delete_in_place(position, table, row, &old),
            (_, Some(new)) => {
                let keys_differ = self.keys_differ(position, table, &old, new);
                self.replace_in_place(position, table, row, &old, new, keys_differ)
            }
        }
    }

    /// Refuses an applied row whose new key another row has. After all are applied:
    /// a row may take the key that another one of its transaction leaves.
    pub(super) fn check_applied(
        &mut self,
        table: &Table,
        row: RowId,
        overlaid: &Overlaid,
    ) -> Result<()> {
        match &overlaid.new {
            Some(new) if overlaid.moved => {
                let position = self.guards.position(row.partition())?;
                self.check_unique(position, table, new, Some(row))
            }
            _ => Ok(()),
        }
    }

    /// Removes an uncommitted row.
    pub(super) fn remove_row(&mut self, table: &Table, row: RowId) -> Result<()> {
        let position = self.guards.position(row.partition())?;
        let Some(rows) = self.table_at(position, table) else {
            return Ok(());
        };
        let word = rows.directory().get(row.row());
        match self.resolve_current(position, table, row, word)? {
            Image::Gone | Image::Evicted => Ok(()),
            old => self.delete_in_place(position, table, row, &old),
        }
    }

    pub(super) fn begin_write(&mut self, table: &Table) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        if self.txn.is_none() && !table.def.foreign_keys.is_empty() {
            table.referrals.fetch_add(1, Ordering::SeqCst);
        }
        self.enter(table, LockMode::RowExclusive)
    }

    /// Makes sure that this transaction may change the row. Whether it may do
    /// so in place: in a one-shot, or because it inserted the row itself, has no savepoint
    /// to go back to with the row as it is, and has dropped no index: the log's reader has
    /// that still, and would not learn which key the row leaves there.
    pub(super) fn lock_row(&mut self, position: usize, table: &Table, row: RowId) -> Result<bool> {
        let stored = (table.def.storage, row.row());
        let state = self.guards.at(position);
        let Some(rows) = state.tables.rows(stored.0) else {
            return Ok(true);
        };
        let word = rows.directory().get(row.row());
        let holder = word
            .is_aside()
            .then(|| state.locks.get(&stored).copied())
            .flatten();
        let Some(txn) = self.txn.as_deref() else {
            return match holder {
                Some(holder) => Err(self.blocked(Obstacle::Held(holder))),
                None => Ok(true),
            };
        };
        let id = txn.id;
        if txn.level == 0 && txn.sees_draft_of(stored.0) {
            return Ok(true);
        }
        if word.is_uncommitted() {
            // A rollback goes by a definition that has the dropped ones, too.
            let dropped = self.defined_by.is_none() && txn.has_dropped_index_of(stored.0);
            let beside = |level| level < txn.level || dropped;
            match state.inserted_by(stored) {
                Some(range) if range.owner == id && beside(range.level) => {}
                Some(range) if range.owner == id => return Ok(true),
                Some(range) => {
                    let owner = range.owner;
                    return Err(self.blocked(Obstacle::Held(owner)));
                }
                None => return Err(Error::Internal("an uncommitted row has no owner".into())),
            }
        }
        match holder {
            Some(holder) if holder == id => return Ok(false),
            Some(holder) => return Err(self.blocked(Obstacle::Held(holder))),
            None => {}
        }
        if txn.isolation != Isolation::ReadCommitted
            && !word.is_uncommitted()
            && let Some(snapshot) = self.snapshot
            && state.versions.changed_since(stored, snapshot)
        {
            return Err(self.blocked(Obstacle::Stale));
        }
        self.keep(LOCK_BYTES)?;
        let state = self.guards.at_mut(position);
        state.locks.insert(stored, id);
        if let Some(rows) = state.tables.rows_mut(stored.0) {
            rows.set_locked(row.row(), true);
        }
        let partition = row.partition();
        if let Some(txn) = self.txn.as_deref_mut() {
            txn.locked.push((partition, stored));
        }
        Ok(false)
    }

    /// Whether any index has another key for `new` than for `old`.
    fn keys_differ(&mut self, position: usize, table: &Table, old: &Image, new: &[u8]) -> bool {
        let mut key = std::mem::take(&mut self.scratch.key);
        let old = match old {
            Image::Hot(pointer) => self.hot_bytes(position, table, *pointer),
            Image::Beside(bytes) => Some(&bytes[..]),
            Image::Gone | Image::Evicted => None,
        };
        let differ = old.is_none_or(|old| {
            (0..table.def.indexes.len()).any(|index| {
                if table.has_same_key_columns(index, old, new) {
                    return false;
                }
                key.clear();
                table.index_key_of(index, new, &mut key);
                !table.has_index_key(index, old, &key)
            })
        });
        self.scratch.key = key;
        differ
    }

    /// Refuses a tuple whose key in a unique index another row has.
    fn check_unique(
        &mut self,
        home: usize,
        table: &Table,
        tuple: &[u8],
        itself: Option<RowId>,
    ) -> Result<()> {
        for index in 0..table.def.indexes.len() {
            if !table.def.indexes[index].unique || table.never_conflicts(index, tuple) {
                continue;
            }
            let mut key = Vec::with_capacity(32);
            table.index_key_of(index, tuple, &mut key);
            if table.is_local(index) {
                self.check_unique_in(home, table, index, &key, tuple, itself)?;
            } else {
                for position in 0..self.guards.len() {
                    self.check_unique_in(position, table, index, &key, tuple, itself)?;
                }
            }
        }
        Ok(())
    }

    fn check_unique_in(
        &mut self,
        position: usize,
        table: &Table,
        index: usize,
        key: &[u8],
        tuple: &[u8],
        itself: Option<RowId>,
    ) -> Result<()> {
        let partition = self.guards.at(position).id;
        let mut rows = Vec::new();
        self.candidates(position, table, index, key, &mut rows)?;
        for row in rows {
            let row = RowId::new(partition, row);
            if Some(row) == itself {
                continue;
            }
            let stored = (table.def.storage, row.row());
            let state = self.guards.at(position);
            let Some(rows) = state.tables.rows(stored.0) else {
                continue;
            };
            // What counts is what is stored now, not what a snapshot sees.
            let word = rows.directory().get(row.row());
            if word.is_uncommitted() && self.recorded.is_some() {
                // Rolled back by then, or the run would have waited.
                continue;
            }
            let overlaid = self
                .txn
                .as_deref()
                .and_then(|t| t.overlay.get(&(stored.0, row)))
                .map(|o| o.new.clone());
            let image = match overlaid {
                Some(Some(new)) => Image::Beside(new),
                Some(None) => continue,
                None => self.resolve_current(position, table, row, word)?,
            };
            if !self.image_has_key(position, table, index, &image, key) {
                continue;
            }
            let state = self.guards.at(position);
            let me = self.txn.as_deref().map(|t| t.id);
            let holder = if word.is_uncommitted() {
                state.owner_of(stored)
            } else if word.is_aside() {
                state.locks.get(&stored).copied()
            } else {
                None
            };
            if let Some(holder) = holder
                && Some(holder) != me
            {
                return Err(self.blocked(Obstacle::Held(holder)));
            }
            return Err(table.unique_violation(index, tuple));
        }
        // A row of this transaction may have moved to the key.
        if let Some(txn) = self.txn.as_deref() {
            let mut other = Vec::new();
            for ((storage, row), overlaid) in &txn.overlay {
                if *storage == table.def.storage
                    && Some(*row) != itself
                    && overlaid.moved
                    && let Some(new) = &overlaid.new
                {
                    other.clear();
                    table.index_key_of(index, new, &mut other);
                    if other == key {
                        return Err(table.unique_violation(index, tuple));
                    }
                }
            }
        }
        Ok(())
    }

    /// `keys_differ`: some index has another key for the new tuple.
    pub(super) fn replace_in_place(
        &mut self,
        position: usize,
        table: &Table,
        row: RowId,
        old: &Image,
        tuple: &[u8],
        keys_differ: bool,
    ) -> Result<()> {
        if keys_differ && table.is_referenced() {
            table.removals.fetch_add(1, Ordering::SeqCst);
        }
        let mut rows = self.guards.at_mut(position).table_mut(table);
        let copied = copied_bytes(rows, old);
        // One of another length is elsewhere, and the old one stays aside until the commit.
        let brought = match copied == tuple.len() {
            true => 0,
            false => tuple.len(),
        };
        if self
            .taken
            .count(logged_bytes(tuple.len()) + copied, brought)
        {
            self.ask()?;
            rows = self.guards.at_mut(position).table_mut(table);
        }
        let mut keys = std::mem::take(&mut self.scratch.keys);
        let mut removed = std::mem::take(&mut self.scratch.removed);
        removed.clear();
        let word = rows.directory().get(row.row());
        let result = (|| {
            let before = match old {
                Image::Hot(pointer) => self.scratch.undo.keep(rows.heap().payload(*pointer)),
                Image::Beside(bytes) => self.scratch.undo.keep_beside(bytes),
                Image::Gone | Image::Evicted => return Ok(()),
            };
            debug_assert!(matches!(old, Image::Hot(_)) == word.is_hot());
            let moved = keys_differ && {
                let old_bytes = self.scratch.undo.kept(&before);
                note_removed(table, old_bytes, tuple, &mut keys, &mut removed);
                rows.reindex_tuple(table, old_bytes, tuple, row.row(), &mut keys)?
            };
            let changed = match rows.change(row.row(), word, tuple, 0) {
                Ok(changed) => changed,
                Err(error) => {
                    if moved {
                        let old_bytes = self.scratch.undo.kept(&before);
                        rows.reindex_tuple(table, tuple, old_bytes, row.row(), &mut keys)?;
                    }
                    return Err(error);
                }
            };
            self.scratch.undo.push(UndoStep::Replace {
                position,
                table: table.def.oid,
                storage: table.def.storage,
                row: row.row(),
                before,
                past: changed.past,
            });
            if let Some(address) = changed.hole {
                self.scratch.undo.dead_copy(address.block);
            }
            self.scratch.undo.note_moved(moved);
            Ok(())
        })();
        if result.is_ok() {
            self.scratch
                .changes
                .put(table.def.storage, row, tuple, &removed);
        }
        self.scratch.keys = keys;
        self.scratch.removed = removed;
        result
    }

    fn delete_in_place(
        &mut self,
        position: usize,
        table: &Table,
        row: RowId,
        old: &Image,
    ) -> Result<()> {
        if table.is_referenced() {
            table.removals.fetch_add(1, Ordering::SeqCst);
        }
        let mut rows = self.guards.at_mut(position).table_mut(table);
        let copied = copied_bytes(rows, old);
        if self.taken.count(logged_bytes(0) + copied, 0) {
            self.ask()?;
            rows = self.guards.at_mut(position).table_mut(table);
        }
        let mut key = std::mem::take(&mut self.scratch.key);
        let mut removed = std::mem::take(&mut self.scratch.removed);
        removed.clear();
        let word = rows.directory().get(row.row());
        let before = match old {
            Image::Hot(pointer) => self.scratch.undo.keep(rows.heap().payload(*pointer)),
            Image::Beside(bytes) => self.scratch.undo.keep_beside(bytes),
            Image::Gone | Image::Evicted => Before::Copied(Place::default()),
        };
        {
            let bytes = self.scratch.undo.kept(&before);
            for (index, def) in table.def.indexes.iter().enumerate() {
                key.clear();
                table.index_key_of(index, bytes, &mut key);
                push_removed(&mut removed, def.oid, &key);
            }
            rows.unindex_tuple(table, bytes, row.row(), &mut key);
        }
        if let Some(address) = rows.die(row.row(), word) {
            self.scratch.undo.dead_copy(address.block);
        }
        self.scratch.undo.push(UndoStep::Delete {
            position,
            table: table.def.oid,
            storage: table.def.storage,
            row: row.row(),
            before,
            word,
        });
        self.scratch
            .changes
            .delete(table.def.storage, row, &removed);
        self.scratch.key = key;
        self.scratch.removed = removed;
        Ok(())
    }

    /// Keeps an update or delete beside the table until the commit.
    fn overlay(
        &mut self,
        table: &Table,
        row: RowId,
        new: Option<&[u8]>,
        old_bytes: usize,
        moved: bool,
    ) -> Result<()> {
        // The old image is kept by the commit until it is sure, the new one goes to the log,
        // which has it twice.
        let images = old_bytes + 3 * new.map_or(0, <[u8]>::len);
        let bytes = CHANGE_BYTES + images;
        self.take(STEP_BYTES, 0)?;
        self.keep(bytes)?;
        let Some(txn) = self.txn.as_deref_mut() else {
            return Err(Error::Internal("an overlay needs a transaction".into()));
        };
        let key = (table.def.storage, row);
        let previous = txn.overlay.get(&key).cloned();
        let noted = txn.note_overlaid(key, previous.as_ref());
        let moved = moved || previous.as_ref().is_some_and(|p| p.moved);
        txn.overlay.insert(
            key,
            Overlaid {
                table: table.def.oid,
                new: new.map(Into::into),
                moved,
                level: txn.level,
            },
        );
        self.scratch.undo.push(UndoStep::Overlay {
            key,
            previous,
            noted,
            bytes,
        });
        Ok(())
    }
}

/// What a changed row takes beside its images: its place in the overlay, in the journal, and in
/// the commit its place in the order, its undo step and what the log has beside it. Tables and lists double as they grow.
const CHANGE_BYTES: usize = 2 * (size_of::<(u32, RowId)>() + size_of::<Overlaid>())
    + 16
    + 2 * size_of::<(u64, u64)>()
    + 2 * size_of::<((u32, RowId), Option<Overlaid>)>()
    + logged_bytes(0);
/// What a locked row takes: the transaction's list and the partition's table double.
const LOCK_BYTES: usize = 96;

/// What an undo has to copy of an image.
#[inline]
fn copied_bytes(rows: &TablePartition, old: &Image) -> usize {
    match old {
        Image::Hot(pointer) => rows.heap().payload(*pointer).len(),
        _ => 0,
    }
}

/// What a change takes beside the tables, without the image before it: its step, and twice what
/// the log has of it.
pub(super) const fn logged_bytes(tuple: usize) -> usize {
    STEP_BYTES + 2 * (CHANGE_HEAD_BYTES + tuple)
}

pub(crate) fn check_size(tuple: &[u8]) -> Result<()> {
    if tuple.len() <= TUPLE_BYTES_MAX {
        return Ok(());
    }
    Err(Error::TooLarge(format!(
        "row is too big: size {}, maximum size {TUPLE_BYTES_MAX}",
        tuple.len()
    )))
}

/// Appends the index keys that `old` has and `new` has not.
fn note_removed(
    table: &Table,
    old: &[u8],
    new: &[u8],
    keys: &mut (Vec<u8>, Vec<u8>),
    removed: &mut Vec<u8>,
) {
    for (index, def) in table.def.indexes.iter().enumerate() {
        keys.0.clear();
        keys.1.clear();
        table.index_key_of(index, old, &mut keys.0);
        table.index_key_of(index, new, &mut keys.1);
        if keys.0 != keys.1 {
            push_removed(removed, def.oid, &keys.0);
        }
    }
}
