//! Replacing or deleting the row that has a key, whatever it was.
//!
//! What an update or a delete needs of the old tuple is its key, for the indexes, and its
//! image, for snapshots. A B+tree has the keys of evicted rows, and the hash of an integer keeps
//! all of it ([`thermocline_storage::key_hash`]). Where the only index is such a one and no
//! snapshot is open, nothing of the old tuple is needed: an evicted row is replaced or deleted
//! without a read, and its record becomes a hole.
//!
//! A snapshot that opens before the commit is found out by it ([`Access::unseen`]). The run
//! is taken back then, the tuples are fetched, and the next run changes them as any update
//! or delete does.

use thermocline_device::{Mutation, PanicPoint, panic_at};
use thermocline_storage::key_hash::{WHOLE_BITS, is_whole, key_hash};
use thermocline_storage::row_directory::{ColdAddress, ColdWord, Word};

use super::undo::UndoStep;
use super::write::{check_size, logged_bytes};
use super::{Access, Image};
use crate::catalog::Table;
use crate::format::record::push_removed;
use crate::ground::counters::Counters;
use crate::ground::error::Result;
use crate::ground::row_id::RowId;
use crate::rows::index::Index;

/// The only index, where a table has one.
const ONLY: usize = 0;

/// A row of which it is certain that it has a key.
enum Known {
    Hot(u32, Word),
    Evicted(u32, ColdWord),
}

impl Access<'_> {
    /// Replaces the tuple of the visible row that has this full key in `index`, which is
    /// unique. None if there is none, or if it is evicted and has to be read first. As
    /// [`Access::get`] and [`Access::update`], but an evicted row is not read if that can be
    /// avoided ([`Table::knows_keys`]).
    pub fn overwrite(
        &mut self,
        table: &Table,
        index: usize,
        key: &[u8],
        tuple: &[u8],
    ) -> Result<Option<RowId>> {
        panic_at(PanicPoint::Statement);
        if self.may_leave_unread(table, index)
            && let Some(row) = self.change(|access| access.overwrite_known(table, key, tuple))?
        {
            return Ok(Some(row));
        }
        let Some((row, _)) = self.get(table, index, key)? else {
            return Ok(None);
        };
        self.update(table, row, tuple)?;
        Ok(Some(row))
    }

    /// Deletes the visible row that has this full key in `index`, which is unique; false if
    /// there is none, or if it is evicted and has to be read first. As [`Access::get`] and
    /// [`Access::delete`], but an evicted row is not read if that can be avoided.
    pub fn delete_by_key(&mut self, table: &Table, index: usize, key: &[u8]) -> Result<bool> {
        panic_at(PanicPoint::Statement);
        self.check(table)?;
        if self.may_leave_unread(table, index)
            && let Some(position) = self.position_of_key(table, key)?
            && let Some(known) = self.known(position, table, key)?
        {
            self.change(|access| access.delete_known(position, table, key, known))?;
            return Ok(true);
        }
        let Some((row, _)) = self.get(table, index, key)? else {
            return Ok(false);
        };
        self.delete(table, row)?;
        Ok(true)
    }

    /// Whether an evicted row need not be read to be changed: its key is known, and the
    /// latest committed state is all that matters.
    fn may_leave_unread(&self, table: &Table, index: usize) -> bool {
        let latest = self.txn.is_none() && self.fetched.is_empty();
        latest
            && table.knows_keys()
            && !table.is_referenced()
            && index == ONLY
            && (!self.parts.transactions().has_snapshots() || Mutation::OverwrittenUnseen.is_made())
    }

    fn position_of_key(&self, table: &Table, key: &[u8]) -> Result<Option<usize>> {
        if self.guards.len() == 1 {
            return Ok(Some(0));
        }
        let partition = table.partition_of_index_key(ONLY, key);
        partition.map(|p| self.guards.position(p)).transpose()
    }

    /// Replaces the row that has this key, if it is in memory or the index tells for
    /// certain which it is.
    fn overwrite_known(
        &mut self,
        table: &Table,
        key: &[u8],
        tuple: &[u8],
    ) -> Result<Option<RowId>> {
        self.check(table)?;
        let position = if self.guards.len() == 1 {
            0
        } else {
            match table.partition_of_tuple(tuple) {
                Some(partition) => self.guards.position(partition)?,
                None => return Ok(None),
            }
        };
        let Some(known) = self.known(position, table, key)? else {
            return Ok(None);
        };
        let keeps_key = table.has_index_key(ONLY, tuple, key);
        let (row, cold) = match known {
            Known::Hot(row, word) => {
                let (first_run, by) = (self.first_run, self.number);
                let state = self.guards.at_mut(position);
                if first_run {
                    state.uses += 1;
                    state.table_mut(table).used(row, word, by);
                }
                let id = RowId::new(state.id, row);
                match word.as_hot() {
                    // Nothing is left to be found out about it.
                    Some(hot) if keeps_key && table.is_partitioned_by_index() => {
                        self.begin_write(table)?;
                        check_size(tuple)?;
                        self.lock_row(position, table, id)?;
                        let old = Image::Hot(hot.pointer());
                        self.replace_in_place(position, table, id, &old, tuple, false)?;
                    }
                    _ => self.update(table, id, tuple).map(|_| ())?,
                }
                return Ok(Some(id));
            }
            Known::Evicted(row, cold) => (row, cold),
        };
        if !keeps_key || table.never_conflicts(ONLY, tuple) {
            // The key changes, and the row may have to move; or it is nobody's alone.
            return Ok(None);
        }
        self.begin_write(table)?;
        check_size(tuple)?;
        let id = RowId::new(self.guards.at(position).id, row);
        self.lock_row(position, table, id)?;
        self.take(logged_bytes(tuple.len()), tuple.len())?;
        let first_run = self.first_run;
        let state = self.guards.at_mut(position);
        let rows = state.table_mut(table);
        // A use like any other: a cold tuple that is written once need not stay.
        let changed = rows.change(row, cold.word(), tuple, u8::from(first_run))?;
        state.uses += u64::from(first_run);
        let undo = &mut self.scratch.undo;
        undo.push(UndoStep::Overwrite {
            position,
            storage: table.def.storage,
            row,
            word: cold,
        });
        if let Some(address) = changed.hole {
            undo.dead_copy(address.block);
        }
        self.scratch.changes.put(table.def.storage, id, tuple, &[]);
        Counters::add(&self.parts.count().overwrites, 1);
        Ok(Some(id))
    }

    /// Deletes a row of which it is certain that it has this key.
    fn delete_known(
        &mut self,
        position: usize,
        table: &Table,
        key: &[u8],
        known: Known,
    ) -> Result<()> {
        let partition = self.guards.at(position).id;
        let (row, cold) = match known {
            Known::Hot(row, _) => return self.delete(table, RowId::new(partition, row)),
            Known::Evicted(row, cold) => (row, cold),
        };
        self.begin_write(table)?;
        let id = RowId::new(partition, row);
        self.lock_row(position, table, id)?;
        self.take(logged_bytes(key.len()) + key.len(), 0)?;
        let rows = self.guards.at_mut(position).table_mut(table);
        rows.unindex_key(table, ONLY, key, row);
        let hole = rows.die(row, cold.word());
        let undo = &mut self.scratch.undo;
        let key_kept = undo.keep_key(key);
        undo.push(UndoStep::DeleteUnread {
            position,
            table: table.def.oid,
            storage: table.def.storage,
            row,
            word: cold,
            key: key_kept,
        });
        if let Some(address) = hole {
            undo.dead_copy(address.block);
        }
        let removed = &mut self.scratch.removed;
        removed.clear();
        push_removed(removed, table.def.indexes[ONLY].oid, key);
        self.scratch.changes.delete(table.def.storage, id, removed);
        Counters::add(&self.parts.count().overwrites, 1);
        Ok(())
    }

    /// The row that has this key for certain, if no evicted one has to be read to tell. Of
    /// a table that knows its keys: the fingerprints are of the only index.
    fn known(&self, position: usize, table: &Table, key: &[u8]) -> Result<Option<Known>> {
        let Some(rows) = self.table_at(position, table) else {
            return Ok(None);
        };
        let is_hot = |word: Word| {
            word.as_hot().is_some_and(|hot| {
                // All of it is wanted: it is kept for an undo, and replaced.
                rows.heap().prefetch(hot.pointer());
                table.has_index_key(ONLY, rows.heap().payload(hot.pointer()), key)
            })
        };
        let mut known = None;
        match rows.index(table, ONLY)? {
            Index::BTree(btree) => {
                for row in btree.rows_equal(key) {
                    let word = rows.directory().get(row);
                    match word.as_cold() {
                        _ if word.is_uncommitted() || known.is_some() => return Ok(None),
                        Some(cold) => known = Some(Known::Evicted(row, cold)),
                        None if is_hot(word) => known = Some(Known::Hot(row, word)),
                        None => return Ok(None),
                    }
                }
            }
            Index::Hash(index) => {
                let hash = key_hash(key);
                let mut candidates = index.candidates(hash);
                while let Some(row) = candidates.next() {
                    let word = rows.directory().get(row);
                    match word.as_cold() {
                        _ if word.is_uncommitted() => return Ok(None),
                        Some(cold) if !table.may_be_key_of(ONLY, hash, cold) => {}
                        Some(cold) if is_whole(hash) && candidates.known_bits() >= WHOLE_BITS => {
                            known = Some(Known::Evicted(row, cold));
                        }
                        None if is_hot(word) => return Ok(Some(Known::Hot(row, word))),
                        _ => return Ok(None),
                    }
                }
            }
        }
        Ok(known)
    }

    /// The rows that were overwritten or deleted in this run without being read.
    pub(crate) fn unseen(&self) -> impl Iterator<Item = (RowId, ColdAddress)> {
        let steps = self.scratch.undo.unseen();
        steps.map(|(position, row, address)| {
            let partition = self.guards.at(position).id;
            (RowId::new(partition, row), address)
        })
    }
}
