//! Whether what a serializable transaction has read is still so.
//!
//! Under the locks of the partitions that it has read from, all that was committed after its
//! snapshot is held against its [`Reads`](crate::transaction::reads::Reads): changed rows by their numbers, and by the keys that
//! they had before and have now. A row that has left memory since is not read for that: the
//! index tells whether it has one of the keys.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hashbrown::HashSet;
use thermocline_storage::key_hash::key_hash;

use crate::access::Guards;
use crate::catalog::Table;
use crate::ground::counters::Counters;
use crate::ground::error::{Error, Result};
use crate::ground::scope::Scope;
use crate::ground::txn_id::Timestamp;
use crate::parts::Parts;
use crate::rows::index::Index;
use crate::rows::partition::PartitionState;
use crate::rows::row_state::TablePartition;
use crate::rows::versions::Seen;
use crate::transaction::reads::{
    EVERYWHERE, ReadEntry, ReadWhat, about, covers_key, covers_rows, keys_of, rows_of,
};
use crate::transaction::{Isolation, RunOptions, TxnState};

/// What serializable transactions note of their reads may take one part in so many of what a
/// transaction may, and not more than the other.
const READS_SHARE: usize = 8;
const READS_BYTES_MAX: usize = 8 << 20;

fn conflict() -> Error {
    Error::Serialization("read/write dependencies among transactions")
}

impl Parts {
    /// What one transaction's notes of its reads may take.
    pub(crate) fn reads_limit(&self) -> usize {
        let share = self.memory().transaction_limit() / READS_SHARE;
        let limit = share.min(READS_BYTES_MAX);
        self.settings().reads_bytes_max.unwrap_or(limit)
    }

    /// Keeps a transaction's notes of its reads in their share of memory.
    pub(crate) fn tidy_reads(&self, txn: &mut TxnState) {
        if txn.reads.tidy(self.reads_limit()) {
            Counters::add(&self.count().reads_joined, 1);
        }
    }

    /// The partitions that a transaction has read from, as a scope with these.
    pub(crate) fn read_scope(&self, txn: &TxnState, mut partitions: Vec<u16>) -> Scope {
        partitions.extend(txn.reads.iter().map(|read| read.partition));
        match partitions.contains(&EVERYWHERE) {
            true => Scope::All,
            false => Scope::Many(partitions),
        }
    }

    /// Checks that nothing that the transaction read was changed by others after `snapshot`.
    /// Its reads are in order.
    pub(crate) fn validate(
        &self,
        guards: &mut Guards<'_>,
        txn: &TxnState,
        snapshot: Timestamp,
    ) -> Result<()> {
        // What was changed since is not known any more.
        self.transactions().check_snapshot(snapshot)?;
        // Whatever the transaction has made of its tables itself: what others made of them
        // counts.
        let committed = self.catalog();
        let draft = txn.draft.as_ref().map(|draft| draft.catalog(&committed));
        for entries in txn.reads.by_storage() {
            let (table, storage) = (entries[0].table, entries[0].storage);
            // One that was emptied or dropped since has no versions to tell of it.
            let current = committed
                .table(table)
                .filter(|table| table.def.storage == storage)
                .ok_or_else(conflict)?;
            let drafted = draft.as_ref().and_then(|draft| draft.table(table));
            let drafted = drafted.filter(|table| table.def.storage == storage);
            let definitions: Vec<&Arc<Table>> =
                [Some(current), drafted].into_iter().flatten().collect();
            for state in guards.iter_mut() {
                if state.versions.is_empty() {
                    continue;
                }
                let read = ReadHere {
                    storage,
                    definitions: &definitions,
                    entries: about(entries, state.id),
                };
                if read.is_changed(state, snapshot) {
                    return Err(conflict());
                }
            }
        }
        Ok(())
    }

    /// Moves the snapshot of a serializable transaction forward, if nothing
    /// that it has read has changed: the transaction is then as if it had
    /// begun later, and may write what others have written since.
    pub(crate) async fn refresh(&self, options: &RunOptions, txn: &mut TxnState) -> Result<()> {
        let Some(old) = txn.snapshot else {
            return Ok(());
        };
        let changed = || Error::Serialization("concurrent update");
        if txn.isolation != Isolation::Serializable || txn.read_only {
            // Nobody notes what it reads.
            return Err(changed());
        }
        txn.reads.order();
        let overlaid = txn.overlay.keys().map(|key| key.1.partition());
        let scope = self.read_scope(txn, overlaid.collect());
        self.there(options, &scope).await?;
        let mut guards = self.lock(&scope)?;
        self.validate(&mut guards, txn, old)
            .map_err(|error| match error {
                Error::Serialization(_) => changed(),
                other => other,
            })?;
        txn.snapshot = Some(self.transactions().open_snapshot());
        self.transactions().close_snapshot(old);
        self.count().refreshes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// What was read of a storage in one partition.
struct ReadHere<'a> {
    storage: u32,
    /// Each index that was read by is in one of them.
    definitions: &'a [&'a Arc<Table>],
    entries: [&'a [ReadEntry]; 2],
}

/// The intervals of an index that were read, and where it is defined.
struct KeysRead<'a> {
    table: &'a Table,
    position: usize,
    intervals: [&'a [ReadEntry]; 2],
}

impl KeysRead<'_> {
    fn covers(&self, tuple: &[u8], key: &mut Vec<u8>) -> bool {
        key.clear();
        self.table.index_key_of(self.position, tuple, key);
        self.intervals.iter().any(|keys| covers_key(keys, key))
    }

    /// Whether the index leads from a key that was read to one of these rows.
    fn leads_to(&self, rows: &TablePartition, changed: &HashSet<u32>) -> bool {
        let Ok(index) = rows.index(self.table, self.position) else {
            return true;
        };
        let intervals = self.intervals.iter().copied().flatten();
        for interval in intervals {
            let ReadWhat::Keys { lower, end, .. } = &interval.what else {
                continue;
            };
            let leads = match index {
                Index::Hash(hash) => match ReadWhat::only_key(lower, end.as_deref()) {
                    Some(key) => hash
                        .candidates(key_hash(key))
                        .any(|row| changed.contains(&row)),
                    // Joined: what lies between has no order here.
                    None => true,
                },
                Index::BTree(tree) => {
                    let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
                    let mut found = false;
                    let mut look = |_: &[u8], row: u32| {
                        found = changed.contains(&row);
                        match found {
                            true => ControlFlow::Break(()),
                            false => ControlFlow::Continue(()),
                        }
                    };
                    let lower = Bound::Included(&lower[..]);
                    let _ = tree.scan_from(lower, upper, true, None, &mut look);
                    found
                }
            };
            if leads {
                return true;
            }
        }
        false
    }
}

impl<'a> ReadHere<'a> {
    /// The indexes that were read by; None: one of them is gone.
    fn keys(&self) -> Option<Vec<KeysRead<'a>>> {
        let mut indexes: Vec<u32> = Vec::new();
        for entry in self.entries.iter().copied().flatten() {
            if let ReadWhat::Keys { index, .. } = &entry.what
                && indexes.last() != Some(index)
            {
                indexes.push(*index);
            }
        }
        indexes.sort_unstable();
        indexes.dedup();
        let read = |index: u32| {
            let mut definitions = self.definitions.iter();
            let (table, position) = definitions.find_map(|table| {
                let position = table.def.indexes.iter().position(|def| def.oid == index)?;
                Some((&***table, position))
            })?;
            Some(KeysRead {
                table,
                position,
                intervals: self.entries.map(|entries| keys_of(entries, index)),
            })
        };
        indexes.into_iter().map(read).collect()
    }

    /// Whether anything of it was changed after `snapshot`.
    fn is_changed(&self, state: &PartitionState, snapshot: Timestamp) -> bool {
        let here = |storage: u32| storage == self.storage;
        let versions = || {
            let all = state.versions.since(snapshot);
            all.filter(move |version| here(version.row.0))
        };
        let inserted = || {
            let all = state.versions.inserted_since(snapshot);
            all.filter(move |range| here(range.storage))
        };
        if versions().next().is_none() && inserted().next().is_none() {
            return false;
        }
        let mut entries = self.entries.iter().copied().flatten();
        let Some(first) = entries.next() else {
            return false;
        };
        if first.what == ReadWhat::Table || entries.any(|entry| entry.what == ReadWhat::Table) {
            return true;
        }
        let rows = self.entries.map(rows_of);
        let are_read = |rows_changed| rows.iter().any(|rows| covers_rows(rows, rows_changed));
        if versions().any(|version| are_read((version.row.1, version.row.1)))
            || inserted().any(|range| are_read((range.first, range.last)))
        {
            return true;
        }
        let Some(keys) = self.keys() else {
            return true;
        };
        if keys.is_empty() {
            return false;
        }
        let mut key = Vec::new();
        let mut covered = |tuple: &[u8]| keys.iter().any(|keys| keys.covers(tuple, &mut key));
        let mut cold = HashSet::new();
        // What a row became by a commit: the next image, or the row as it is.
        let mut became =
            |row: u32, committed| match state.versions.seen((self.storage, row), committed) {
                Seen::Before(after) => covered(after),
                Seen::Absent => false,
                Seen::Current => {
                    let Some(rows) = state.tables.rows(self.storage) else {
                        return true;
                    };
                    let word = rows.directory().get(row);
                    match word.as_hot() {
                        Some(hot) => covered(rows.heap().payload(hot.pointer())),
                        None => {
                            if word.is_cold() {
                                cold.insert(row);
                            }
                            false
                        }
                    }
                }
            };
        let came = versions().any(|version| {
            let new_keys = version.before.is_none() || version.detached;
            new_keys && became(version.row.1, version.committed)
        }) || inserted().any(|range| {
            let mut rows = range.first..=range.last;
            rows.any(|row| became(row, range.committed))
        });
        if came {
            return true;
        }
        let mut covered = |tuple: &[u8]| keys.iter().any(|keys| keys.covers(tuple, &mut key));
        if versions().any(|version| version.before.as_ref().is_some_and(|old| covered(old))) {
            return true;
        }
        let Some(rows) = state.tables.rows(self.storage) else {
            return false;
        };
        !cold.is_empty() && keys.iter().any(|keys| keys.leads_to(rows, &cold))
    }
}
