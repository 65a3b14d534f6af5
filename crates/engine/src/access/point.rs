//! The row with a key in a unique index: the path of most short statements.
//!
//! One walk from the index through the directory to the tuple, without a list
//! of rows between. It is taken when nothing but the latest committed state can
//! matter; what interactive transactions see beside it goes the general way, by
//! [`Access::find`]. Batches ask for the cache lines of all their keys before
//! they look at the first.

use thermocline_storage::temperature;

use super::{Access, fingerprint_index};
use crate::catalog::{Table, key_hash};
use crate::error::Result;
use crate::evict::fingerprint_of;
use crate::partition::Index;
use crate::row_id::RowId;

/// How the short walk ended.
enum Walk {
    Found(u32),
    /// No candidate has the key.
    Absent,
    /// Not here: by the general way.
    Elsewhere,
}

impl Access<'_> {
    /// The visible row with this full key in `index`, which is unique, and its
    /// tuple; None if there is none, or if it is evicted.
    pub fn get(
        &mut self,
        table: &Table,
        index: usize,
        key: &[u8],
    ) -> Result<Option<(RowId, &[u8])>> {
        if self.txn.is_none() && self.snapshot.is_none() {
            self.check(table)?;
            let position = match table.partition_of_index_key(index, key) {
                Some(partition) => Some(self.guards.position(partition)?),
                None => (self.guards.len() == 1).then_some(0),
            };
            if let Some(position) = position {
                match self.walk(position, table, index, key) {
                    Walk::Found(row) => {
                        let state = self.guards.at(position);
                        let row = RowId::new(state.id, row);
                        let found = state.tables.get(&table.def.storage).and_then(|rows| {
                            let hot = rows.directory.get(row.row()).as_hot()?;
                            Some((row, rows.heap.payload(hot.pointer())))
                        });
                        return Ok(found);
                    }
                    Walk::Absent => return Ok(None),
                    Walk::Elsewhere => {}
                }
            }
        }
        let mut rows = std::mem::take(&mut self.scratch.found);
        rows.clear();
        let found = self.find(table, index, key, &mut rows);
        let first = rows.first().copied();
        self.scratch.found = rows;
        found?;
        let Some(row) = first else {
            return Ok(None);
        };
        Ok(self.tuple(table, row)?.map(|tuple| (row, tuple)))
    }

    /// Goes from the index to a hot tuple with this key, and counts the use.
    fn walk(&mut self, position: usize, table: &Table, index: usize, key: &[u8]) -> Walk {
        let first_run = self.first_run;
        let actual = &mut self.scratch.keys.0;
        let state = self.guards.at_mut(position);
        let Some(rows) = state.tables.get_mut(&table.def.storage) else {
            return Walk::Absent;
        };
        let Ok(Index::Hash(hash_index)) = rows.index(table, index) else {
            return Walk::Elsewhere;
        };
        let hash = key_hash(key);
        let fingerprinted = fingerprint_index(table) == Some(index);
        let mut found = None;
        for row in hash_index.candidates(hash) {
            let word = rows.directory.get(row);
            if let Some(hot) = word.as_hot() {
                actual.clear();
                table.index_key_of(index, rows.heap.payload(hot.pointer()), actual);
                // An uncommitted row may stand beside the one that it replaces.
                if actual == key && !word.is_uncommitted() {
                    found = Some((row, word));
                    break;
                }
            } else if let Some(cold) = word.as_cold()
                && (!fingerprinted || cold.may_be(fingerprint_of(hash)))
            {
                return Walk::Elsewhere;
            }
        }
        let Some((row, word)) = found else {
            return Walk::Absent;
        };
        if first_run {
            state.uses += 1;
            let warmth = word.temperature();
            if warmth < temperature::MAX {
                rows.directory
                    .set_unsaved(row, word.with_temperature(warmth + 1));
            }
        }
        Walk::Found(row)
    }

    /// Asks for the cache lines that looking up these keys in the only locked
    /// partition will touch.
    pub(crate) fn prefetch<'k>(
        &mut self,
        table: &Table,
        index: usize,
        keys: impl Iterator<Item = &'k [u8]>,
    ) {
        let state = self.guards.at(0);
        let Some(rows) = state.tables.get(&table.def.storage) else {
            return;
        };
        let Ok(Index::Hash(hash_index)) = rows.index(table, index) else {
            return;
        };
        let (hashes, candidates) = (&mut self.scratch.hashes, &mut self.scratch.rows);
        hashes.clear();
        hashes.extend(keys.map(key_hash));
        for &hash in hashes.iter() {
            hash_index.prefetch(hash);
        }
        candidates.clear();
        candidates.extend(
            hashes
                .iter()
                .filter_map(|&hash| hash_index.candidates(hash).next()),
        );
        for &row in candidates.iter() {
            rows.directory.prefetch(row);
        }
        for &row in candidates.iter() {
            if let Some(hot) = rows.directory.get(row).as_hot() {
                rows.heap.prefetch(hot.pointer());
            }
        }
    }
}
