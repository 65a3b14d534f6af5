//! Building an index over rows that are there, within the memory limit.
//!
//! An index stays in memory, so the finished one has to fit beside the floor of hot rows
//! ([`crate::memory::floor`]). What it will take is told from what its first keys took, and looked at
//! again as it grows: one that has no place is refused (53200) before it takes what others
//! need, and what was built goes. While memory is full the build waits for rows to leave, as
//! every statement does. No partition is held for longer than a turn of the scan.

use std::sync::Arc;

use crate::catalog::Table;
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::parts::Parts;
use crate::rows::index::{Index, IndexSlot};
use crate::run::interactive::Transaction;
use crate::transaction::RunOptions;

/// From so many keys on it is told what all will take.
const KEYS_TO_TELL_BY: u64 = 1000;

/// How far the building of an index has come.
pub(super) struct Progress {
    rows: u64,
    pub(super) done: u64,
    /// Bytes of the parts that are whole.
    bytes: u64,
}

impl Progress {
    /// Of an index over so many rows.
    pub(super) fn of(rows: u64) -> Self {
        Progress {
            rows,
            done: 0,
            bytes: 0,
        }
    }

    /// What the whole index will take, when the part that is being built has so many bytes.
    pub(super) fn expected_bytes(&self, part: usize) -> u64 {
        let built = self.bytes + part as u64;
        if self.done < KEYS_TO_TELL_BY {
            return built;
        }
        let all = u128::from(built) * u128::from(self.rows) / u128::from(self.done);
        built.max(u64::try_from(all).unwrap_or(u64::MAX))
    }
}

impl Parts {
    /// Builds an index of `table` over its rows, which nobody can change
    /// meanwhile, and puts it into the partitions.
    pub(crate) async fn build_index(
        &self,
        txn: &mut Transaction,
        options: &RunOptions,
        old: &Arc<Table>,
        table: &Arc<Table>,
        position: usize,
    ) -> Result<()> {
        let def = &table.def.indexes[position];
        let local = table.is_local(position);
        let snapshot = txn.snapshot_of_now()?;
        let mut built: Vec<Index> = Vec::new();
        let mut progress = Progress::of(self.row_estimate(old));
        for partition in 0..self.partitions() {
            let mut index = Index::new(def.kind);
            let mut scan = snapshot.scan(old, partition);
            let mut failed: Option<Error> = None;
            let mut key = Vec::new();
            loop {
                let mut suspects: Vec<(u32, Vec<u8>)> = Vec::new();
                let more = scan
                    .next_chunk(&mut |row, tuple| {
                        progress.done += 1;
                        if failed.is_some() {
                            return;
                        }
                        key.clear();
                        table.index_key_of(position, tuple, &mut key);
                        if def.unique && !table.never_conflicts(position, tuple) {
                            let elsewhere = !local
                                && built.iter().any(|other| {
                                    matches!(other, Index::BTree(t) if t.get_first(&key).is_some())
                                });
                            let here = match &index {
                                Index::BTree(tree) => tree.get_first(&key).is_some(),
                                Index::Hash(hash) => {
                                    let hash_of = thermocline_storage::key_hash::key_hash(&key);
                                    suspects.extend(
                                        hash.candidates(hash_of).map(|other| (other, key.clone())),
                                    );
                                    false
                                }
                            };
                            if elsewhere || here {
                                failed = Some(self.cannot_be_unique(table, position, tuple));
                                return;
                            }
                        }
                        if table.has_entry(position, &key)
                            && let Err(error) = index.insert(&key, row.row())
                        {
                            failed = Some(error);
                        }
                    })
                    .await?;
                for (other, key) in suspects {
                    let row = RowId::new(partition, other);
                    let found = self.has_key(txn, (old, row), (table, position), &key);
                    if let Some(tuple) = found.await? {
                        return Err(self.cannot_be_unique(table, position, &tuple));
                    }
                }
                if let Some(error) = failed {
                    return Err(error);
                }
                self.memory()
                    .check_index(progress.expected_bytes(index.bytes()))?;
                self.interruptible(options, self.wait_for_room()).await??;
                if !more {
                    break;
                }
            }
            progress.bytes += index.bytes() as u64;
            built.push(index);
        }
        self.index_as_committed(txn, table, position, &mut built)
            .await?;
        for (partition, index) in self.all_partitions().iter().zip(built) {
            let mut state = partition.lock();
            // It has no entries for what rows were before: who reads through it by an older
            // snapshot looks at them beside it.
            state.versions.detach(old.def.storage);
            let rows = state.table_mut(old);
            rows.indexes_mut().push(IndexSlot {
                oid: def.oid,
                index,
            });
        }
        Ok(())
    }

    /// Has an index lead to the rows that the transaction changed by the keys that they have
    /// without it, as all indexes do until its commit moves them.
    async fn index_as_committed(
        &self,
        txn: &mut Transaction,
        table: &Arc<Table>,
        position: usize,
        built: &mut [Index],
    ) -> Result<()> {
        let storage = table.def.storage;
        let changed = txn.state_mut()?.overlay.keys();
        let changed: Vec<_> = changed.filter(|key| key.0 == storage).copied().collect();
        let mut key = Vec::new();
        for at in changed {
            let committed = self.read_row(table, at.1).await?;
            let index = &mut built[usize::from(at.1.partition())];
            let Some(overlaid) = txn.state_mut()?.overlay.get_mut(&at) else {
                continue;
            };
            if let Some(new) = &overlaid.new {
                overlaid.moved = true;
                key.clear();
                table.index_key_of(position, new, &mut key);
                index.remove(&key, at.1.row());
            }
            if let Some(tuple) = committed {
                key.clear();
                table.index_key_of(position, &tuple, &mut key);
                if table.has_entry(position, &key) {
                    index.insert(&key, at.1.row())?;
                }
            }
        }
        Ok(())
    }

    /// The tuple of a row, as its transaction has it, if its key in an index is this one: a hash
    /// index only knows the fingerprint.
    pub(super) async fn has_key(
        &self,
        txn: &mut Transaction,
        (old, row): (&Arc<Table>, RowId),
        (table, position): (&Table, usize),
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let overlaid = txn.state_mut()?.overlay.get(&(old.def.storage, row));
        let tuple = match overlaid {
            Some(overlaid) => overlaid.new.as_deref().map(<[u8]>::to_vec),
            None => self.read_row(old, row).await?,
        };
        Ok(tuple.filter(|tuple| {
            let mut stored = Vec::new();
            table.index_key_of(position, tuple, &mut stored);
            stored == key
        }))
    }

    pub(super) async fn read_row(&self, table: &Arc<Table>, row: RowId) -> Result<Option<Vec<u8>>> {
        self.one_shot_unchecked(row.partition(), |access| {
            Ok(access.current(table, row)?.map(<[u8]>::to_vec))
        })
        .await
    }

    fn cannot_be_unique(&self, table: &Table, index: usize, tuple: &[u8]) -> Error {
        duplicated(table.unique_violation(index, tuple))
    }
}

/// The error for a key that two rows of a table have that are there already.
pub(crate) fn duplicated(error: Error) -> Error {
    match error {
        Error::UniqueViolation {
            schema,
            table,
            constraint,
            detail,
            ..
        } => Error::UniqueViolation {
            schema,
            table,
            constraint,
            detail: detail.replace("already exists", "is duplicated"),
            building: true,
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_index_will_take_is_told_from_its_first_keys() {
        let mut progress = Progress {
            rows: 1_000_000,
            done: 10,
            bytes: 0,
        };
        assert_eq!(progress.expected_bytes(4096), 4096, "too few to tell");
        progress.done = 10_000;
        progress.bytes = 1 << 20;
        assert_eq!(progress.expected_bytes(1 << 20), 200 << 20);
        progress.done = 2_000_000;
        assert_eq!(
            progress.expected_bytes(1 << 20),
            2 << 20,
            "not less than it has"
        );
    }
}
