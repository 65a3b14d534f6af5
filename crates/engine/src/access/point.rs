//! The row with a key in a unique index: the path of most short statements.
//!
//! One walk from the index through the directory to the tuple, without a list
//! of rows between. It is taken when nothing but the latest committed state can
//! matter; what interactive transactions see beside it goes the general way, by
//! [`Access::find`]. Batches ask for the cache lines of all their keys before
//! they look at the first. [`Parts::get`] is a whole statement that is nothing
//! but such a look-up.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thermocline_storage::arena::TuplePtr;
use thermocline_storage::key_hash::key_hash;
use thermocline_storage::row_directory::{ColdWord, Word};

use super::{Access, retrieval};
use crate::catalog::Table;
use crate::catalog::table_lock::LockMode;
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::ground::scope::Scope;
use crate::memory::fetched::Fetched;
use crate::parts::Parts;
use crate::rows::fetch::{Missing, address_key};
use crate::rows::index::Index;
use crate::rows::row_state::TablePartition;
use crate::transaction::RunOptions;

/// How the short walk ended.
enum Walk {
    Found(u32, Word),
    /// No candidate has the key.
    Absent,
    /// Not here: by the general way.
    Elsewhere,
}

/// A full key that is looked up in a unique index.
struct Sought<'a> {
    table: &'a Table,
    index: usize,
    key: &'a [u8],
    /// Of a hash index: what evicted candidates have to agree with.
    hash: Option<u64>,
}

impl Sought<'_> {
    /// Whether a candidate has the key: also an entry of a B+tree may be that of the key
    /// which a change has taken from its row.
    #[inline(always)]
    fn is_key_of(&self, tuple: &[u8]) -> bool {
        self.table.has_index_key(self.index, tuple, self.key)
    }

    /// Whether an evicted candidate may have the key.
    #[inline(always)]
    fn may_be_key_of(&self, cold: ColdWord) -> bool {
        self.hash
            .is_none_or(|hash| self.table.may_be_key_of(self.index, hash, cold))
    }

    /// From the index to a hot tuple with the key.
    #[inline(always)]
    fn walk(&self, rows: &TablePartition, candidates: impl Iterator<Item = u32>) -> Walk {
        for row in candidates {
            let word = rows.directory().get(row);
            if let Some(hot) = word.as_hot() {
                // All of it at once, before the first line is waited for.
                rows.heap().prefetch(hot.pointer());
                let tuple = rows.heap().payload(hot.pointer());
                // An uncommitted row may stand beside the one that it replaces.
                if self.is_key_of(tuple) && !word.is_uncommitted() {
                    return Walk::Found(row, word);
                }
            } else if let Some(cold) = word.as_cold()
                && self.may_be_key_of(cold)
            {
                return Walk::Elsewhere;
            }
        }
        Walk::Absent
    }

    /// The committed row with the key, hot or fetched; what is cold and may be it is noted
    /// as missing.
    #[inline(always)]
    fn look(
        &self,
        partition: u16,
        rows: &TablePartition,
        candidates: impl Iterator<Item = u32>,
        fetched: [&Fetched; 2],
        missing: &mut Vec<Missing>,
    ) -> (Found, Used) {
        let mut found = Found::Nothing;
        let mut used = [None; USED_MAX];
        let mut used_count = 0;
        for row in candidates {
            let word = rows.directory().get(row);
            // It may stand beside the one that it replaces.
            if word.is_uncommitted() {
                continue;
            }
            if let Some(hot) = word.as_hot() {
                rows.heap().prefetch(hot.pointer());
                if !self.is_key_of(rows.heap().payload(hot.pointer())) {
                    continue;
                }
                found = Found::Hot(row, hot.pointer());
            } else if let Some(cold) = word.as_cold()
                && self.may_be_key_of(cold)
            {
                let address = cold.address();
                let key = address_key(address);
                match fetched.into_iter().find_map(|fetched| fetched.get(&key)) {
                    Some(tuple) if self.is_key_of(tuple) => {
                        found = Found::Fetched(row, tuple.clone());
                    }
                    Some(_) => continue,
                    None => {
                        let row = RowId::new(partition, row);
                        missing.push(Missing {
                            row,
                            address,
                            whole: rows.policy().reads_whole(),
                        });
                    }
                }
            } else {
                continue;
            }
            if used_count < USED_MAX {
                used[used_count] = Some((row, word));
                used_count += 1;
            }
            if matches!(found, Found::Hot(..)) {
                break;
            }
        }
        (found, used)
    }
}

/// What a look-up has come to.
enum Found {
    Nothing,
    Hot(u32, TuplePtr),
    /// Cold, and read from the device for this statement.
    Fetched(u32, Arc<[u8]>),
}

/// Candidates of one key whose uses are counted; more than one is an accident.
const USED_MAX: usize = 4;
type Used = [Option<(u32, Word)>; USED_MAX];

/// What [`Parts::try_get`] came to.
#[derive(Debug, PartialEq, Eq)]
pub enum TryGet<R> {
    /// The row, as `each` saw it; None: there is none.
    Done(Option<R>),
    /// The tuple is evicted, or something has to be waited for.
    Wait,
}

impl Parts {
    /// Reads the row that has this full key in `index`, which is unique: calls
    /// `each` with its tuple, at least once if there is one, and gives back what
    /// its last call returned. `each` runs under the partition's lock: it must be
    /// short and must not call the database.
    pub async fn get<R>(
        &self,
        options: &RunOptions,
        table: &Table,
        index: usize,
        key: &[u8],
        mut each: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        if let TryGet::Done(found) = self.try_get(options, table, index, key, &mut each)? {
            return Ok(found);
        }
        let scope = match table.partition_of_index_key(index, key) {
            Some(partition) => Scope::One(partition),
            None => Scope::All,
        };
        self.one_shot(options, scope, |access| {
            let found = access.get(table, index, key)?;
            Ok(found.map(|(_, tuple)| each(tuple)))
        })
        .await
    }

    /// As [`Parts::get`], if that takes no waiting and the index is over the
    /// partition key: without a run, its scratch and its outcome.
    pub fn try_get<R>(
        &self,
        options: &RunOptions,
        table: &Table,
        index: usize,
        key: &[u8],
        each: impl FnOnce(&[u8]) -> R,
    ) -> Result<TryGet<R>> {
        self.check_open()?;
        options.cancel.check()?;
        let hash = key_hash(key);
        let partition = table.partition_of_index_hash(index, hash);
        let Some(partition) = partition.and_then(|p| self.all_partitions().get(usize::from(p)))
        else {
            return Ok(TryGet::Wait);
        };
        let Some(mut state) = partition.lock_if_there() else {
            return Ok(TryGet::Wait);
        };
        // A use of a tuple is all that changes.
        state.excuse_panics();
        let state = &mut *state;
        if table.retired.load(Ordering::Relaxed) {
            return Err(Error::StalePlan);
        }
        // A commit that is not durable yet may not be told of.
        let closed = table.gate.is_closed_to(LockMode::AccessShare);
        if closed || options.synchronous_commit && self.log().durable_lsn() < state.last_commit {
            return Ok(TryGet::Wait);
        }
        let Some(rows) = state.tables.rows_mut(table.def.storage) else {
            return Ok(TryGet::Done(None));
        };
        let mut sought = Sought {
            table,
            index,
            key,
            hash: None,
        };
        let walk = match rows.index(table, index) {
            Ok(Index::Hash(hash_index)) => {
                sought.hash = Some(hash);
                sought.walk(rows, hash_index.candidates(hash))
            }
            Ok(Index::BTree(tree)) => sought.walk(rows, tree.rows_equal(key)),
            Err(_) => Walk::Elsewhere,
        };
        match walk {
            Walk::Found(row, word) => {
                state.uses += 1;
                // Each such look-up is a transaction.
                rows.used(row, word, state.uses);
                let hot = word.as_hot();
                Ok(TryGet::Done(
                    hot.map(|hot| each(rows.heap().payload(hot.pointer()))),
                ))
            }
            Walk::Absent => Ok(TryGet::Done(None)),
            Walk::Elsewhere => Ok(TryGet::Wait),
        }
    }
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
            self.check_missing()?;
            let hash = key_hash(key);
            let position = match table.partition_of_index_hash(index, hash) {
                Some(partition) => Some(self.guards.position(partition)?),
                None => (self.guards.len() == 1).then_some(0),
            };
            let noted = self.scratch.missing.len();
            if let Some(position) = position
                && let Some(mut found) = self.seek(position, table, index, key, hash)
            {
                if let Some(there) = self.take_noted(position, table, noted, (index, key))? {
                    found = there;
                }
                if self.scratch.missing.len() > noted
                    && self.read_noted_now(position, table, noted)?
                {
                    // Its uses are counted.
                    let first_run = std::mem::replace(&mut self.first_run, false);
                    let again = self.seek(position, table, index, key, hash);
                    self.first_run = first_run;
                    found = again.unwrap_or(Found::Nothing);
                }
                return self.take_found(position, table, found);
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

    /// Looks for a key among the rows of a locked partition and counts the use. None:
    /// there is no such index.
    fn seek(
        &mut self,
        position: usize,
        table: &Table,
        index: usize,
        key: &[u8],
        hash: u64,
    ) -> Option<Found> {
        let state = self.guards.at_mut(position);
        let Some(rows) = state.tables.rows_mut(table.def.storage) else {
            return Some(Found::Nothing);
        };
        let mut sought = Sought {
            table,
            index,
            key,
            hash: None,
        };
        let now = self.now.as_deref().unwrap_or(self.fetched);
        let (fetched, missing) = ([self.fetched, now], &mut self.scratch.missing);
        let (found, used) = match rows.index(table, index).ok()? {
            Index::Hash(hash_index) => {
                sought.hash = Some(hash);
                let candidates = hash_index.candidates(hash);
                sought.look(state.id, rows, candidates, fetched, missing)
            }
            Index::BTree(tree) => {
                sought.look(state.id, rows, tree.rows_equal(key), fetched, missing)
            }
        };
        let by = self.number;
        if self.first_run {
            for (row, word) in used.into_iter().flatten() {
                state.uses += 1;
                if word.is_cold() {
                    let comes_back = word.temperature() > 0 && !word.is_in_columns();
                    state.returns += u32::from(comes_back);
                    retrieval::note_asked_for(table, rows, RowId::new(state.id, row));
                }
                rows.used(row, word, by);
            }
        }
        Some(found)
    }

    /// Takes what a look-up by key has noted as missing since there were `noted` from where it
    /// lies, if the table's policy has it so. The row with the key, if it was among them.
    fn take_noted(
        &mut self,
        position: usize,
        table: &Table,
        noted: usize,
        (index, key): (usize, &[u8]),
    ) -> Result<Option<Found>> {
        let mut found = None;
        let mut left = noted;
        for at in noted..self.scratch.missing.len() {
            let missing = self.scratch.missing[at];
            match self.take_in_place(position, table, missing)? {
                Some(tuple) if table.has_index_key(index, &tuple, key) => {
                    found = Some(Found::Fetched(missing.row.row(), tuple));
                }
                Some(_) => {}
                None => {
                    self.scratch.missing[left] = missing;
                    left += 1;
                }
            }
        }
        self.scratch.missing.truncate(left);
        Ok(found)
    }

    fn take_found(
        &mut self,
        position: usize,
        table: &Table,
        found: Found,
    ) -> Result<Option<(RowId, &[u8])>> {
        let partition = self.guards.at(position).id;
        let (row, pointer) = match found {
            Found::Nothing => return Ok(None),
            Found::Hot(row, pointer) => (RowId::new(partition, row), pointer),
            Found::Fetched(row, bytes) => {
                let row = RowId::new(partition, row);
                let Some(rows) = self.table_at(position, table) else {
                    return Ok(None);
                };
                let word = rows.directory().get(row.row());
                let merged = |cold| self.merge_if_admitted(position, table, row, cold, &bytes);
                match word.as_cold().and_then(merged) {
                    Some(pointer) => (row, pointer),
                    None => {
                        // Kept alive by the scratch until the next call.
                        self.scratch.key.clear();
                        self.scratch.key.extend_from_slice(&bytes);
                        return Ok(Some((row, &self.scratch.key)));
                    }
                }
            }
        };
        let tuple = self.hot_bytes(position, table, pointer);
        Ok(tuple.map(|tuple| (row, tuple)))
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
        let Some(rows) = state.tables.rows(table.def.storage) else {
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
            rows.directory().prefetch(row);
        }
        for &row in candidates.iter() {
            if let Some(hot) = rows.directory().get(row).as_hot() {
                rows.heap().prefetch(hot.pointer());
            }
        }
    }
}
