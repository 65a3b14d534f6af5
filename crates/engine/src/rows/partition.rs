//! A partition: a disjoint part of the rows behind one lock, executed serially
//! by whoever holds it.
//!
//! Here are the partition's parts and the few operations that change a row and
//! its indexes together. Who may see or change what is decided above, in
//! `access`; what leaves memory, in `evict`.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::thread;

use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard};
use thermocline_device::{Device, stop_after_panic};
use thermocline_storage::arena::Arena;
use thermocline_storage::heap::CommonPages;
use thermocline_storage::log::Lsn;

use crate::catalog::Table;
use crate::ground::error::{Error, Result};
use crate::ground::txn_id::{Timestamp, TxnId};
use crate::policy::book::PolicyBook;
use crate::rows::arrivals::{Arrivals, Loader};
use crate::rows::index::{Index, IndexSlot, position_of};
use crate::rows::kind::{Kind, Tables};
use crate::rows::row_state::TablePartition;
use crate::rows::versions::{StoredRow, Versions};

/// A partition; no two share a cache line.
#[repr(align(64))]
pub(crate) struct Partition {
    state: Mutex<PartitionState>,
    arrivals: Arc<Arrivals>,
}

/// How often a lock that is taken is looked at before the thread sleeps, at first
/// without and then with a way past for others: its holder may wait for this core.
/// Few turns under a partition's lock take longer, and to be woken takes 50 µs and more.
const LOOKS: u32 = 128;
const YIELDS: u32 = 64;

impl Partition {
    pub fn new(state: PartitionState, arrivals: Arc<Arrivals>) -> Self {
        Self {
            state: Mutex::new(state),
            arrivals,
        }
    }

    /// The partition, for this thread alone. It is there: who may come before that waits for it
    /// first ([`crate::rows::arrivals`]).
    #[inline]
    pub fn lock(&self) -> PartitionGuard<'_> {
        let state = self.lock_any();
        match state.is_there {
            true => state,
            false => self.lock_when_there(state),
        }
    }

    #[cold]
    fn lock_when_there<'a>(&'a self, state: PartitionGuard<'a>) -> PartitionGuard<'a> {
        if Loader::is_here() {
            return state;
        }
        let id = state.id;
        drop(state);
        self.arrivals.wait_for(id);
        self.lock_any()
    }

    /// The partition, if it is there.
    #[inline]
    pub fn lock_if_there(&self) -> Option<PartitionGuard<'_>> {
        Some(self.lock_any()).filter(|state| state.is_there)
    }

    /// The partition, as far as it is there: for upkeep in short turns.
    #[inline]
    pub fn lock_any(&self) -> PartitionGuard<'_> {
        let state = match self.state.try_lock() {
            Some(state) => state,
            None => self.lock_taken(),
        };
        PartitionGuard {
            state,
            excused: thread::panicking(),
        }
    }

    #[cold]
    fn lock_taken(&self) -> MutexGuard<'_, PartitionState> {
        for look in 0..LOOKS + YIELDS {
            if look < LOOKS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
            if let Some(state) = self.state.try_lock() {
                return state;
            }
        }
        self.state.lock()
    }
}

/// A partition while this thread has it for itself. A panic meanwhile stops the process, since
/// others would go on with what is half done, unless nothing is: whoever only reads says so
/// before, and a run of a statement when it has undone its changes.
pub(crate) struct PartitionGuard<'a> {
    state: MutexGuard<'a, PartitionState>,
    /// Nothing is half done if this thread panics, or it did before.
    excused: bool,
}

impl PartitionGuard<'_> {
    #[inline]
    pub fn excuse_panics(&mut self) {
        self.excused = true;
    }

    /// Lets go of the partition, and has it again when those had it who wait for it now. What
    /// was seen in it may have changed.
    #[inline]
    pub fn let_others(&mut self) {
        MutexGuard::bump(&mut self.state);
    }
}

impl Deref for PartitionGuard<'_> {
    type Target = PartitionState;

    #[inline]
    fn deref(&self) -> &PartitionState {
        &self.state
    }
}

impl DerefMut for PartitionGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut PartitionState {
        &mut self.state
    }
}

impl Drop for PartitionGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if thread::panicking() && !self.excused {
            stop_after_panic("the middle of a change to rows");
        }
    }
}

/// What the partition's lock protects. What every look-up needs comes first and lies in
/// the lock's own cache line, which goes from core to core with it.
#[repr(C)]
pub(crate) struct PartitionState {
    /// Uses of tuples since the evictor last looked; of these, misses on tuples
    /// that were not quite cold.
    pub uses: u64,
    pub returns: u32,
    /// Whether all rows are there: not yet while a start goes on.
    pub is_there: bool,
    /// The last synchronous commit that wrote here: what is read here must not
    /// be released before that is durable.
    pub last_commit: Lsn,
    /// The rows of each storage, whatever kind they are of.
    pub tables: Tables,
    pub id: u16,
    /// Where the first tuples of each table lie.
    pub pages: CommonPages,
    /// What tables made here go by, as far as they do not say.
    pub policies: Arc<PolicyBook>,
    /// Before-images for open snapshots.
    pub versions: Versions,
    /// Rows that an interactive transaction has locked.
    pub locks: HashMap<StoredRow, TxnId>,
    /// Rows inserted by interactive transactions that are not committed yet:
    /// ranges of row numbers, by (storage, first row).
    pub uncommitted: BTreeMap<StoredRow, UncommittedRange>,
}

// The lock's byte is before the state, padded to a word.
const _: () = assert!(8 + offset_of!(PartitionState, tables) + size_of::<Tables>() <= 64);

/// Consecutive rows that one transaction inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UncommittedRange {
    pub last: u32,
    /// How many savepoints the transaction had made before.
    pub level: u32,
    pub owner: TxnId,
}

impl TablePartition {
    /// Bytes of directory and indexes.
    pub fn metadata_bytes(&self) -> usize {
        self.state_bytes()
            + self
                .indexes()
                .iter()
                .map(|i| i.index.bytes())
                .sum::<usize>()
    }

    /// The index at `position` of the table's definition; it must be the one
    /// that the definition means.
    pub fn index(&self, table: &Table, position: usize) -> Result<&Index> {
        let def = &table.def.indexes[position];
        match self.indexes().get(position) {
            Some(slot) if slot.oid == def.oid => Ok(&slot.index),
            _ => match self.indexes().iter().find(|slot| slot.oid == def.oid) {
                Some(slot) => Ok(&slot.index),
                None => Err(Error::Internal(format!(
                    "index {} is not in its partition",
                    def.name
                ))),
            },
        }
    }

    /// Adds `row` to one index.
    pub fn index_key(
        &mut self,
        table: &Table,
        position: usize,
        key: &[u8],
        row: u32,
    ) -> Result<()> {
        let oid = table.def.indexes[position].oid;
        match self.indexes_mut().iter_mut().find(|slot| slot.oid == oid) {
            Some(slot) if table.has_entry(position, key) => slot.index.insert(key, row),
            _ => Ok(()),
        }
    }

    /// Takes `row` out of one index.
    pub fn unindex_key(&mut self, table: &Table, position: usize, key: &[u8], row: u32) {
        let oid = table.def.indexes[position].oid;
        if let Some(slot) = self.indexes_mut().iter_mut().find(|slot| slot.oid == oid) {
            slot.index.remove(key, row);
        }
    }

    /// Adds `row` to all indexes under the keys of `tuple`. If one refuses its key, those
    /// before it have theirs: [`Self::unindex_tuple`] takes out what is there.
    pub fn index_tuple(
        &mut self,
        table: &Table,
        tuple: &[u8],
        row: u32,
        key: &mut Vec<u8>,
    ) -> Result<()> {
        for slot in self.indexes_mut() {
            let Some(position) = position_of(table, slot.oid) else {
                continue;
            };
            key.clear();
            table.index_key_of(position, tuple, key);
            if table.has_entry(position, key) {
                slot.index.insert(key, row)?;
            }
        }
        Ok(())
    }

    /// Takes `row` out of all indexes.
    pub fn unindex_tuple(&mut self, table: &Table, tuple: &[u8], row: u32, key: &mut Vec<u8>) {
        for slot in self.indexes_mut() {
            let Some(position) = position_of(table, slot.oid) else {
                continue;
            };
            key.clear();
            table.index_key_of(position, tuple, key);
            slot.index.remove(key, row);
        }
    }

    /// Moves `row` in those indexes whose key differs between the images. Whether any
    /// did. If one refuses its key, none has changed: nobody could take it back later.
    pub fn reindex_tuple(
        &mut self,
        table: &Table,
        old: &[u8],
        new: &[u8],
        row: u32,
        keys: &mut (Vec<u8>, Vec<u8>),
    ) -> Result<bool> {
        let mut moved = false;
        for at in 0..self.indexes().len() {
            match self.indexes_mut()[at].reindex(table, old, new, row, keys) {
                Ok(here) => moved |= here,
                Err(refused) => {
                    for slot in &mut self.indexes_mut()[..at] {
                        // It had the old key until now, and takes it again.
                        let _ = slot.reindex(table, new, old, row, keys);
                    }
                    return Err(refused);
                }
            }
        }
        Ok(moved)
    }
}

impl PartitionState {
    pub fn new(id: u16, arena: Arc<Arena>, policies: Arc<PolicyBook>) -> Self {
        PartitionState {
            id,
            pages: CommonPages::new(arena),
            policies,
            tables: Tables::default(),
            versions: Versions::default(),
            locks: HashMap::new(),
            uncommitted: BTreeMap::new(),
            last_commit: Lsn::default(),
            uses: 0,
            returns: 0,
            is_there: true,
        }
    }

    /// The rows of `table` here, made when first written.
    pub fn table_mut(&mut self, table: &Table) -> &mut TablePartition {
        let (pages, policies) = (&self.pages, &self.policies);
        self.tables.rows_or_make(table.def.storage, || {
            let indexes = IndexSlot::of(&table.def.indexes);
            TablePartition::new(
                pages,
                indexes,
                table.policy_over(&policies.of(table.def.tablespace)),
            )
        })
    }

    /// The rows of `table` here, made when first written: of storage that is filled, and gets its
    /// indexes when it has its rows.
    pub fn table_without_indexes(&mut self, table: &Table) -> &mut TablePartition {
        let (pages, policies) = (&self.pages, &self.policies);
        self.tables.rows_or_make(table.def.storage, || {
            let policy = table.policy_over(&policies.of(table.def.tablespace));
            TablePartition::new(pages, Vec::new(), policy)
        })
    }

    /// Opens what `table` has here, if it is of a kind that keeps something of its own on the
    /// device, and was not opened yet.
    ///
    /// # Errors
    /// The device's.
    pub fn open_kind(&mut self, table: &Table, device: &Arc<dyn Device>) -> Result<()> {
        if !self.tables.has(table.def.storage)
            && let Some(kind) = Kind::open(table, self.id, device)?
        {
            self.tables.put(table.def.storage, kind);
        }
        Ok(())
    }

    /// The rows of `table` here, whatever kind they are of, made when first written.
    ///
    /// # Errors
    /// The device's.
    pub fn kind_of(&mut self, table: &Table, device: &Arc<dyn Device>) -> Result<&mut Kind> {
        let storage = table.def.storage;
        self.open_kind(table, device)?;
        if !self.tables.has(storage) {
            self.table_mut(table);
        }
        let gone = || Error::Internal(format!("storage {storage} is not there"));
        self.tables.kind_mut(storage).ok_or_else(gone)
    }

    /// Who inserted this uncommitted row.
    pub fn owner_of(&self, row: StoredRow) -> Option<TxnId> {
        self.inserted_by(row).map(|range| range.owner)
    }

    /// Who inserted this uncommitted row, and when.
    pub fn inserted_by(&self, row: StoredRow) -> Option<&UncommittedRange> {
        let (first, range) = self.uncommitted.range(..=row).next_back()?;
        (first.0 == row.0 && row.1 <= range.last).then_some(range)
    }

    /// Notes that `owner` inserted `row`, after so many savepoints.
    pub fn note_uncommitted(&mut self, row: StoredRow, owner: TxnId, level: u32) {
        if let Some((first, range)) = self.uncommitted.range_mut(..row).next_back()
            && first.0 == row.0
            && range.owner == owner
            && range.level == level
            && range.last + 1 == row.1
        {
            range.last = row.1;
            return;
        }
        self.uncommitted.insert(
            row,
            UncommittedRange {
                last: row.1,
                level,
                owner,
            },
        );
    }

    /// Forgets that `row` is uncommitted; its range is split if need be.
    pub fn forget_uncommitted(&mut self, row: StoredRow) {
        let Some((&first, &range)) = self.uncommitted.range(..=row).next_back() else {
            return;
        };
        if first.0 != row.0 || row.1 > range.last {
            return;
        }
        self.uncommitted.remove(&first);
        if first.1 < row.1 {
            let head = UncommittedRange {
                last: row.1 - 1,
                ..range
            };
            self.uncommitted.insert(first, head);
        }
        if row.1 < range.last {
            self.uncommitted.insert((row.0, row.1 + 1), range);
        }
    }

    /// The ranges that `owner` inserted.
    pub fn uncommitted_of(&self, owner: TxnId) -> Vec<(StoredRow, u32)> {
        self.uncommitted
            .iter()
            .filter(|(_, range)| range.owner == owner)
            .map(|(first, range)| (*first, range.last))
            .collect()
    }

    /// The rows of a storage that `owner` inserted after savepoint `level`, and has not
    /// deleted.
    pub fn uncommitted_after(&self, owner: TxnId, storage: u32, level: u32) -> Vec<u32> {
        let of_storage = (storage, 0)..=(storage, u32::MAX);
        let ranges = self.uncommitted.range(of_storage);
        ranges
            .filter(|(_, range)| range.owner == owner && range.level > level)
            .flat_map(|(first, range)| first.1..=range.last)
            .collect()
    }

    /// Frees a row that a transaction had locked. If it had inserted the row and taken it back, the number may be
    /// another row's by now, and locked by somebody else.
    pub fn unlock_row(&mut self, row: StoredRow, owner: TxnId) {
        if self.locks.get(&row) != Some(&owner) {
            return;
        }
        self.locks.remove(&row);
        if let Some(rows) = self.tables.rows_mut(row.0) {
            rows.set_locked(row.1, false);
        }
    }

    /// Gives back what no snapshot at or after `horizon` needs, at most so many versions.
    /// Whether there are more.
    pub fn collect_versions(&mut self, horizon: Timestamp, at_most: usize) -> bool {
        if self.versions.is_empty() {
            return false;
        }
        let tables = &mut self.tables;
        self.versions.collect(horizon, at_most, |(storage, row)| {
            if let Some(table) = tables.rows_mut(storage) {
                table.free_number(row);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncommitted_rows_are_kept_as_ranges() {
        let arena = Arc::new(Arena::reserve(64 << 20).expect("address space"));
        let mut state = PartitionState::new(0, arena, Arc::default());
        for row in 10..20 {
            state.note_uncommitted((1, row), TxnId(7), 0);
        }
        state.note_uncommitted((1, 20), TxnId(8), 0);
        assert_eq!(state.uncommitted.len(), 2);
        assert_eq!(state.owner_of((1, 15)), Some(TxnId(7)));
        assert_eq!(state.owner_of((1, 20)), Some(TxnId(8)));
        assert_eq!(state.owner_of((2, 15)), None);
        state.forget_uncommitted((1, 15));
        assert_eq!(state.owner_of((1, 15)), None);
        assert_eq!(state.owner_of((1, 14)), Some(TxnId(7)));
        assert_eq!(
            state.uncommitted_of(TxnId(7)),
            [((1, 10), 14), ((1, 16), 19)]
        );
    }
}
