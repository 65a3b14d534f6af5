//! Replacing the row that has a key, whatever it was.
//!
//! What an update needs of the old tuple is its key, for the indexes, and its image, for
//! snapshots. Where there is one index, which knows the keys of evicted rows (a B+tree
//! has them; the hash of an integer keeps all of it, [`thermocline_storage::key_hash`]),
//! and no snapshot is open, nothing of it is needed: an evicted row is replaced without a
//! read, and its record becomes a hole.
//!
//! A snapshot that opens before the commit is found out by it ([`Access::overwritten`]);
//! the run is taken back then, the tuples are fetched, and the next run replaces them as
//! any update does.

use thermocline_device::Mutation;
use thermocline_storage::key_hash::{WHOLE_BITS, fingerprint_of, is_whole, key_hash};
use thermocline_storage::row_directory::{ColdAddress, ColdWord, Word};
use thermocline_storage::temperature;

use super::Access;
use super::undo::UndoStep;
use super::write::check_size;
use crate::catalog::Table;
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::partition::Index;
use crate::row_id::RowId;

/// The only index, where a table has one.
const ONLY: usize = 0;

impl Access<'_> {
    /// Replaces the tuple of the visible row that has this full key in `index`, which is
    /// unique; None if there is none, or if it is evicted and has to be read first. As
    /// [`Access::get`] and [`Access::update`], but an evicted row is not read if that can be
    /// avoided ([`Table::knows_keys`]).
    pub fn overwrite(
        &mut self,
        table: &Table,
        index: usize,
        key: &[u8],
        tuple: &[u8],
    ) -> Result<Option<RowId>> {
        self.begin_write(table)?;
        let latest = self.txn.is_none() && self.fetched.is_empty();
        if latest
            && table.knows_keys()
            && index == ONLY
            && (!self.db.transactions.has_snapshots() || Mutation::OverwrittenUnseen.is_made())
            && let Some(row) = self.overwrite_evicted(table, key, tuple)?
        {
            return Ok(Some(row));
        }
        let Some((row, _)) = self.get(table, index, key)? else {
            return Ok(None);
        };
        self.update(table, row, tuple)?;
        Ok(Some(row))
    }

    /// Replaces the evicted row that has this key, if the index tells it for certain.
    fn overwrite_evicted(
        &mut self,
        table: &Table,
        key: &[u8],
        tuple: &[u8],
    ) -> Result<Option<RowId>> {
        if !table.has_index_key(ONLY, tuple, key) || table.key_has_null(ONLY, tuple) {
            // The key changes, and the row may have to move; or it is nobody's alone.
            return Ok(None);
        }
        let partition = match table.partition_of_index_key(ONLY, key) {
            None => table.partition_of_tuple(tuple),
            partition => partition,
        };
        let Some(partition) = partition else {
            return Ok(None);
        };
        let position = self.guards.position(partition)?;
        let Some((row, cold)) = self.known_evicted(position, table, key)? else {
            return Ok(None);
        };
        check_size(tuple)?;
        let id = RowId::new(partition, row);
        self.lock_row(position, table, id)?;
        let first_run = self.first_run;
        let state = self.guards.at_mut(position);
        let rows = state.table_mut(table);
        let Some(pointer) = rows.heap.insert(row, 0, tuple) else {
            return Err(Error::OutOfMemory("the arena is exhausted".into()));
        };
        let word = cold.word();
        let used = word.temperature() + u8::from(first_run);
        let warmth = used.clamp(temperature::WRITTEN, temperature::MAX);
        let hot = Word::hot(pointer)
            .with_aside(word.is_aside())
            .with_temperature(warmth);
        rows.directory.set(row, hot);
        rows.cold -= 1;
        rows.became_hot(row);
        state.uses += u64::from(first_run);
        let undo = &mut self.scratch.undo;
        undo.push(UndoStep::Overwrite {
            position,
            storage: table.def.storage,
            row,
            word: cold,
        });
        undo.dead_copy(cold.address().block);
        self.scratch.changes.put(table.def.storage, id, tuple, &[]);
        Counters::add(&self.db.counters.overwrites, 1);
        Ok(Some(id))
    }

    /// The evicted row of which it is certain that it has this key, if no other row has
    /// to be looked at.
    fn known_evicted(
        &self,
        position: usize,
        table: &Table,
        key: &[u8],
    ) -> Result<Option<(u32, ColdWord)>> {
        let Some(rows) = self.table_at(position, table) else {
            return Ok(None);
        };
        let evicted = |row| {
            let word = rows.directory.get(row);
            word.as_cold().filter(|_| !word.is_uncommitted())
        };
        let mut known = None;
        match rows.index(table, ONLY)? {
            Index::BTree(btree) => {
                for row in btree.rows_equal(key) {
                    match evicted(row) {
                        Some(cold) if known.is_none() => known = Some((row, cold)),
                        _ => return Ok(None),
                    }
                }
            }
            Index::Hash(index) => {
                let hash = key_hash(key);
                let mut candidates = index.candidates(hash);
                while let Some(row) = candidates.next() {
                    match evicted(row) {
                        Some(cold) if !cold.may_be(fingerprint_of(hash)) => {}
                        Some(cold) if is_whole(hash) && candidates.known_bits() >= WHOLE_BITS => {
                            known = Some((row, cold));
                        }
                        _ => return Ok(None),
                    }
                }
            }
        }
        Ok(known)
    }

    /// The rows that were overwritten in this run without being read.
    pub(crate) fn overwritten(&self) -> impl Iterator<Item = (RowId, ColdAddress)> {
        let steps = self.scratch.undo.overwritten();
        steps.map(|(position, row, address)| {
            let partition = self.guards.at(position).id;
            (RowId::new(partition, row), address)
        })
    }
}
