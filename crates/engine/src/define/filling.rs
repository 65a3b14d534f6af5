//! Filling new storage with many rows at a time. Nobody sees it before its transaction commits,
//! and it goes as a whole when that does not. So nothing of a row has to be undone, marked or locked.
//!
//! Rows are gathered by the partition that they go to. Each partition gets its own in the order of
//! their primary key, some hundred under one lock. They are one record of the log, provisional
//! as those of any transaction's statement, so a restart knows nothing of this.
//!
//! Their index entries are gathered for longer, as far as there is memory. The indexes are built
//! beside the storage, and come to it when they are whole. What a checkpoint saves before that has
//! rows and no indexes, and a restart builds those that are missing.

use std::sync::Arc;

use crate::access::check_size;
use crate::catalog::{IndexDef, IndexKind, Table};
use crate::define::entries::{Entries, Strings};
use crate::define::index_build::{Progress, duplicated};
use crate::format::record::{ChangeWriter, RecordKind, pieces, record_head};
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::ground::wait::give_way;
use crate::memory::account::Charge;
use crate::parts::Parts;
use crate::parts::changes::{has_room, nothing, try_charge};
use crate::rows::index::{Index, IndexSlot, Unique};
use crate::run::interactive::Transaction;
use crate::transaction::RunOptions;

/// So many bytes are gathered without asking, ...
const FREE_BYTES: usize = 128 << 10;
/// ... and more by such steps.
const STEP_BYTES: u64 = 1 << 20;
/// The share of the memory limit that gathered rows may have, ...
const ROWS_DIVISOR: u64 = 64;
/// ... but no more than this for each partition: processors have it at hand.
const PARTITION_BYTES: usize = 256 << 10;
/// The share that gathered entries may have.
const ENTRIES_DIVISOR: u64 = 16;
/// What an entry takes beside its key: itself, and its place in the order.
const ENTRY_BYTES: usize = 32;
/// Rows that are put in their place under one lock, and bytes of them, unless one has more.
const ROWS_AT_ONCE: usize = 500;
const BYTES_AT_ONCE: usize = 256 << 10;

/// Rows that one partition gets, and their primary keys, where that index has an order.
#[derive(Default)]
struct Gathered {
    tuples: Strings,
    keys: Strings,
}

/// An index of one partition while it is built.
struct Building {
    index: Index,
    /// Entries whose keys must be one row's, ...
    unique: Entries,
    /// ... and others.
    others: Entries,
}

/// A key that another row has, or may have.
struct Suspect {
    row: RowId,
    index: usize,
    /// What the row's key is, if it is not sure.
    key: Option<Vec<u8>>,
}

/// New storage while it is filled.
pub(super) struct Filling<'a> {
    parts: &'a Parts,
    options: &'a RunOptions,
    table: &'a Arc<Table>,
    /// The index of the primary key, if it has an order.
    first: Option<usize>,
    /// Which indexes have columns that may be NULL.
    nullable: Vec<bool>,
    rows: Vec<Gathered>,
    row_bytes: usize,
    /// By partition, and there by index.
    indexes: Vec<Vec<Building>>,
    entry_bytes: usize,
    progress: Progress,
    charge: Charge,
    key: Vec<u8>,
    changes: ChangeWriter,
    suspects: Vec<Suspect>,
}

impl<'a> Filling<'a> {
    /// Storage without rows, which will have about so many.
    pub fn new(
        parts: &'a Parts,
        options: &'a RunOptions,
        table: &'a Arc<Table>,
        rows: u64,
    ) -> Self {
        let defs = &table.def.indexes;
        let may_be_null = |column: &usize| !table.def.columns[*column].not_null;
        let has_order = |def: &IndexDef| def.primary && def.kind == IndexKind::BTree;
        let building = |def: &IndexDef| Building {
            index: Index::new(def.kind),
            unique: Entries::default(),
            others: Entries::default(),
        };
        let partitions = 0..parts.partitions();
        Filling {
            parts,
            options,
            table,
            first: defs.iter().position(has_order),
            nullable: defs
                .iter()
                .map(|def| def.columns.iter().any(may_be_null))
                .collect(),
            rows: partitions.clone().map(|_| Gathered::default()).collect(),
            row_bytes: 0,
            indexes: partitions
                .map(|_| defs.iter().map(building).collect())
                .collect(),
            entry_bytes: 0,
            progress: Progress::of(rows),
            charge: nothing(parts, options.account.as_ref()),
            key: Vec::new(),
            changes: ChangeWriter::default(),
            suspects: Vec::new(),
        }
    }

    /// Takes a row. It may be called where a scan gives it out.
    pub fn take(&mut self, tuple: &[u8]) -> Result<()> {
        check_size(tuple)?;
        let table = self.table;
        self.key.clear();
        let by_key = self.first.and_then(|first| {
            table.index_key_of(first, tuple, &mut self.key);
            table.partition_of_index_key(first, &self.key)
        });
        let partition = by_key
            .or_else(|| table.partition_of_tuple(tuple))
            .unwrap_or_else(|| self.parts.spread());
        let gathered = &mut self.rows[usize::from(partition)];
        gathered.tuples.push(tuple);
        if self.first.is_some() {
            gathered.keys.push(&self.key);
        }
        self.row_bytes += tuple.len() + self.key.len() + ENTRY_BYTES;
        Ok(())
    }

    /// Whether no more should be taken before [`Self::place`].
    pub fn is_full(&mut self) -> bool {
        self.row_bytes > self.row_bytes_max() || !self.may_hold()
    }

    fn row_bytes_max(&self) -> usize {
        let share = (self.parts.memory().limit() / ROWS_DIVISOR) as usize;
        share.min(PARTITION_BYTES * self.rows.len()).max(FREE_BYTES)
    }

    /// Whether there is memory for what is gathered.
    fn may_hold(&mut self) -> bool {
        let held = self.row_bytes + self.entry_bytes;
        // Lists double as they grow.
        let charged = 2 * held as u64;
        held <= FREE_BYTES
            || charged <= self.charge.bytes()
            || try_charge(
                self.parts,
                &mut self.charge,
                [charged + STEP_BYTES, charged],
            )
    }

    /// Puts all rows that were taken in their places.
    ///
    /// # Errors
    /// 23505; 53100 and 53200 where there is no room, 57014 while it waits for some.
    pub async fn place(&mut self, txn: &mut Transaction) -> Result<()> {
        // All have about as many. Of rows that are not even a few have all, each time others.
        let kept = 2 * self.row_bytes_max() / self.rows.len();
        for partition in 0..self.parts.partitions() {
            let mut rows = std::mem::take(&mut self.rows[usize::from(partition)]);
            let order = match self.first {
                Some(_) => rows.keys.order(),
                None => (0..rows.tuples.len()).collect(),
            };
            let mut left = &order[..];
            while !left.is_empty() {
                let (some, bytes) = part_of(&rows.tuples, left);
                left = &left[some.len()..];
                self.place_some(txn, partition, &rows, (some, bytes))
                    .await?;
            }
            rows.tuples.clear(kept);
            rows.keys.clear(kept);
            self.rows[usize::from(partition)] = rows;
        }
        self.row_bytes = 0;
        let share = self.parts.memory().limit() / ENTRIES_DIVISOR;
        if self.entry_bytes as u64 > share || !self.may_hold() {
            self.build(txn).await?;
        }
        Ok(())
    }

    /// Places what is left, and gives the storage its indexes.
    ///
    /// # Errors
    /// As [`Self::place`].
    pub async fn finish(mut self, txn: &mut Transaction) -> Result<()> {
        self.place(txn).await?;
        self.build(txn).await?;
        for (partition, built) in self.parts.all_partitions().iter().zip(self.indexes) {
            let slots = built.into_iter().zip(&self.table.def.indexes);
            let slots = slots.map(|(built, def)| IndexSlot {
                oid: def.oid,
                index: built.index,
            });
            let mut state = partition.lock();
            if let Some(rows) = state.tables.rows_mut(self.table.def.storage) {
                *rows.indexes_mut() = slots.collect();
            }
        }
        Ok(())
    }

    /// Puts some rows of a partition in their places.
    async fn place_some(
        &mut self,
        txn: &mut Transaction,
        partition: u16,
        gathered: &Gathered,
        (order, bytes): (&[u32], usize),
    ) -> Result<()> {
        let (parts, options) = (self.parts, self.options);
        parts.admit(options).await?;
        let room = match has_room(parts, bytes as u64) {
            true => None,
            false => Some(parts.room_to_change(options, bytes as u64).await?),
        };
        parts.check_growth()?;
        parts.memory().check_floor("a new row")?;
        let state = txn.state_mut()?;
        let counted = (partition, self.table.def.storage);
        *state.inserted.entry(counted).or_default() += order.len() as u64;
        state.logged = true;
        let head = record_head(RecordKind::Provisional, state.id.0);
        let numbers = self.put((partition, &head), gathered, order)?;
        drop(room);
        for (at, row) in order.iter().zip(numbers) {
            self.note_entries(partition, row, gathered, *at);
        }
        self.progress.done += order.len() as u64;
        give_way().await;
        Ok(())
    }

    /// Puts rows into the heap and the log, under the partition's lock. The numbers that they got.
    fn put(
        &mut self,
        (partition, head): (u16, &[u8]),
        gathered: &Gathered,
        order: &[u32],
    ) -> Result<Vec<u32>> {
        let (parts, storage) = (self.parts, self.table.def.storage);
        self.changes.parts.clear();
        let mut numbers = Vec::with_capacity(order.len());
        let mut state = parts.all_partitions()[usize::from(partition)].lock();
        let rows = state.table_without_indexes(self.table);
        for at in order {
            let tuple = gathered.tuples.get(*at);
            let row = rows.take_number()?;
            rows.insert(row, tuple, false)?;
            self.changes
                .put(storage, RowId::new(partition, row), tuple, &[]);
            numbers.push(row);
        }
        match self.changes.parts.whole() {
            Some(changes) => parts.append_log(&[head, changes])?,
            None => parts.append_log(&pieces(head, &self.changes.parts, &[]))?,
        };
        Ok(numbers)
    }

    /// Notes what a row has in the indexes.
    fn note_entries(&mut self, partition: u16, row: u32, gathered: &Gathered, at: u32) {
        let table = self.table;
        let tuple = gathered.tuples.get(at);
        for (index, building) in self.indexes[usize::from(partition)].iter_mut().enumerate() {
            let key = match self.first == Some(index) {
                true => gathered.keys.get(at),
                false => {
                    self.key.clear();
                    table.index_key_of(index, tuple, &mut self.key);
                    &self.key
                }
            };
            if !table.has_entry(index, key) {
                continue;
            }
            let has_null = self.nullable[index] && table.never_conflicts(index, tuple);
            match table.def.indexes[index].unique && !has_null {
                true => building.unique.push(key, row),
                false => building.others.push(key, row),
            }
            self.entry_bytes += key.len() + ENTRY_BYTES;
        }
    }

    /// Adds the gathered entries to their indexes, which are nobody else's yet.
    async fn build(&mut self, txn: &mut Transaction) -> Result<()> {
        for partition in 0..self.parts.partitions() {
            for index in 0..self.table.def.indexes.len() {
                self.build_one(partition, index)?;
                self.look_at_suspects(txn).await?;
                let all = self.indexes.iter().flatten();
                let bytes: usize = all.map(|building| building.index.bytes()).sum();
                self.parts
                    .memory()
                    .check_index(self.progress.expected_bytes(bytes))?;
                self.parts
                    .interruptible(self.options, self.parts.wait_for_room())
                    .await??;
            }
        }
        self.entry_bytes = 0;
        Ok(())
    }

    fn build_one(&mut self, partition: u16, index: usize) -> Result<()> {
        let place = usize::from(partition);
        let building = &mut self.indexes[place][index];
        let (unique, others) = (
            std::mem::take(&mut building.unique),
            std::mem::take(&mut building.others),
        );
        others.add_to(&mut building.index)?;
        let is_local = self.table.is_local(index);
        let mut own = std::mem::replace(&mut building.index, Index::new(IndexKind::BTree));
        let elsewhere = |key: &[u8]| {
            let others = self.indexes.iter().map(|built| &built[index].index);
            let mut trees = others.filter_map(|other| match other {
                Index::BTree(tree) => Some(tree),
                Index::Hash(_) => None,
            });
            !is_local && trees.any(|tree| tree.get_first(key).is_some())
        };
        let mut suspects = Vec::new();
        let added = unique.add_to_unique(&mut own, |key, row, unique| {
            let suspect = |row, key| Suspect {
                row: RowId::new(partition, row),
                index,
                key,
            };
            match unique {
                Unique::Yes if !elsewhere(key) => {}
                Unique::Yes | Unique::No => suspects.push(suspect(row, None)),
                Unique::Perhaps(rows) => {
                    let perhaps = rows.into_iter().map(|row| suspect(row, Some(key.to_vec())));
                    suspects.extend(perhaps);
                }
            }
        });
        self.indexes[place][index].index = own;
        self.suspects = suspects;
        added
    }

    /// Reads the rows whose keys others have, or may have: the error tells the key.
    async fn look_at_suspects(&mut self, txn: &mut Transaction) -> Result<()> {
        for suspect in std::mem::take(&mut self.suspects) {
            let (row, index) = (suspect.row, suspect.index);
            let tuple = match suspect.key {
                None => self.parts.read_row(self.table, row).await?,
                Some(key) => {
                    let (of, within) = ((self.table, row), (&**self.table, index));
                    match self.parts.has_key(txn, of, within, &key).await? {
                        Some(tuple) => Some(tuple),
                        None => continue,
                    }
                }
            };
            let tuple = tuple.ok_or_else(|| Error::Internal(format!("row {row} is not there")))?;
            return Err(duplicated(self.table.unique_violation(index, &tuple)));
        }
        Ok(())
    }
}

/// The rows that come under the next lock, and their bytes.
fn part_of<'o>(tuples: &Strings, order: &'o [u32]) -> (&'o [u32], usize) {
    let mut bytes = 0;
    let most = order.len().min(ROWS_AT_ONCE);
    for (at, tuple) in order[..most].iter().enumerate() {
        let tuple = tuples.get(*tuple).len();
        if at > 0 && bytes + tuple > BYTES_AT_ONCE {
            return (&order[..at], bytes);
        }
        bytes += tuple;
    }
    (&order[..most], bytes)
}
