//! What is left to do in a partition after the log: nothing of open transactions stays, free
//! row numbers are known again, indexes that a crash cut off are made.

use std::sync::Arc;

use hashbrown::HashMap;
use thermocline_device::{Mutation, StopPoint, block_on, stop_at};

use super::apply::Replayer;
use super::events::Definitions;
use crate::catalog::Table;
use crate::ground::error::Result;
use crate::ground::row_id::RowId;
use crate::parts::Parts;
use crate::rows::fetch::{PlannedRead, plan};
use crate::rows::index::{Index, IndexSlot};

/// Row numbers passed in one turn under the lock.
const TURN_ROWS: u32 = 2048;

/// What holds at the end of the log.
pub(super) struct Ending {
    pub definitions: Arc<Definitions>,
    /// The catalog's tables by their storage; other storages go.
    pub wanted: HashMap<u32, Arc<Table>>,
}

impl Ending {
    pub fn new(definitions: Arc<Definitions>) -> Self {
        let tables = definitions.catalog.tables.values();
        Ending {
            wanted: tables
                .map(|table| (table.def.storage, table.clone()))
                .collect(),
            definitions,
        }
    }
}

impl Replayer {
    /// Settles the partition. All of the log is applied.
    pub fn settle(&mut self, db: &Parts, ending: &Ending) -> Result<()> {
        stop_at(StopPoint::RecoverySettle);
        self.definitions = ending.definitions.clone();
        let place = usize::from(self.partition);
        let mut owners: Vec<_> = {
            let state = db.all_partitions()[place].lock();
            state
                .uncommitted
                .values()
                .map(|range| range.owner)
                .collect()
        };
        owners.dedup();
        for owner in owners {
            if !Mutation::UncommittedKept.is_made() {
                self.remove_rows_of(db, owner)?;
            }
        }
        {
            let mut state = db.all_partitions()[place].lock();
            let present: Vec<u32> = state.tables.storages().collect();
            for storage in present {
                if !ending.wanted.contains_key(&storage) {
                    db.drop_storage(&mut state, storage);
                }
            }
            for table in ending.wanted.values() {
                state.open_kind(table, db.device())?;
            }
            for kind in state.tables.kinds_mut() {
                kind.log_is_applied()?;
            }
            for (storage, rows) in state.tables.all_rows_mut() {
                if let Some(table) = ending.wanted.get(&storage) {
                    rows.indexes_mut()
                        .retain(|slot| table.def.indexes.iter().any(|i| i.oid == slot.oid));
                    rows.follow(db.policy_of(table));
                }
            }
        }
        for table in ending.wanted.values() {
            for position in 0..table.def.indexes.len() {
                db.build_missing_index(table, position, self.partition)?;
            }
        }
        Ok(())
    }
}

impl Parts {
    /// Builds a partition's part of an index that was committed after the last checkpoint. In
    /// the middle of the log it leads to rows that are committed further on, too.
    pub(super) fn build_missing_index(
        &self,
        table: &Table,
        position: usize,
        partition: u16,
    ) -> Result<()> {
        let def = &table.def.indexes[position];
        let is_missing = {
            let state = self.all_partitions()[usize::from(partition)].lock();
            let rows = state.tables.rows(table.def.storage);
            rows.is_some_and(|rows| !rows.indexes().iter().any(|slot| slot.oid == def.oid))
        };
        if !is_missing {
            return Ok(());
        }
        let mut index = Index::new(def.kind);
        let mut key = Vec::new();
        let mut failed = None;
        self.each_row(table, partition, &mut |row, tuple| {
            key.clear();
            table.index_key_of(position, tuple, &mut key);
            if table.has_entry(position, &key)
                && let Err(error) = index.insert(&key, row)
            {
                failed = Some(error);
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        self.forget_image(usize::from(partition));
        let mut state = self.all_partitions()[usize::from(partition)].lock();
        let rows = state.table_mut(table);
        let at = position.min(rows.indexes().len());
        let oid = def.oid;
        rows.indexes_mut().insert(at, IndexSlot { oid, index });
        Ok(())
    }

    /// Hands out all rows of a table in a partition that is not there yet: nobody changes them
    /// meanwhile, but for the evictor. Those that are not committed, too.
    fn each_row(
        &self,
        table: &Table,
        partition: u16,
        each: &mut impl FnMut(u32, &[u8]),
    ) -> Result<()> {
        let mut next = 0;
        loop {
            let mut cold = Vec::new();
            let (mut reads, pin) = {
                let state = self.all_partitions()[usize::from(partition)].lock();
                let Some(rows) = state.tables.rows(table.def.storage) else {
                    return Ok(());
                };
                let end = rows.directory().appended();
                if next >= end {
                    return Ok(());
                }
                let stop = end.min(next.saturating_add(TURN_ROWS));
                for row in next..stop {
                    let word = rows.directory().get(row);
                    if let Some(hot) = word.as_hot() {
                        each(row, rows.heap().payload(hot.pointer()));
                    } else if let Some(word) = word.as_cold() {
                        cold.push((RowId::new(partition, row), word.address()));
                    }
                }
                next = stop;
                plan(self.blocks(), cold.into_iter())?
            };
            reads.sort_unstable_by_key(|read| (read.address.block, read.address.slot));
            let each = &mut |read: &PlannedRead, tuple: &[u8]| each(read.row.row(), tuple);
            block_on(self.fetcher().read_in_order(&reads, each))?;
            drop(pin);
        }
    }
}
