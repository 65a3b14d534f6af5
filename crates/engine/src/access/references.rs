//! Foreign keys: whether a row is there that is referred to, and whether any refers to a key.
//!
//! What counts is what is stored now and what the transaction itself has changed, whatever its
//! snapshot sees. An evicted row that a B+tree leads to is not read for it: the tree knows
//! its keys.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use thermocline_storage::key::prefix_successor;

use super::{Access, Image, Obstacle};
use crate::catalog::{Catalog, IndexKind, Table};
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::ground::scope::Scope;
use crate::rows::index::Index;
use crate::transaction::expected::{
    Due, Expectation, Expectations, Expected, Referring, RemovedKey,
};

/// What is looked at in one run, which holds the partitions.
const VERIFIED_AT_ONCE: usize = 500;
/// Why a commit fails that cannot tell whether all is there that it refers to.
const REMOVED: &str = "a concurrent delete of rows that are referred to";

/// Entries of an index that are looked at before more are taken from it.
const BATCH: usize = 64;

impl Access<'_> {
    /// Expects the row that `tuple`, stored as `row`, refers to by one of its table's foreign
    /// keys: the row of `parent` with `key` in the index referred to.
    ///
    /// # Errors
    /// 23503 if there is none, without a transaction; with one, when the statement ends.
    pub fn expect_parent(
        &mut self,
        (table, row, tuple): (&Table, RowId, &[u8]),
        foreign_key: usize,
        (parent, key): (&Table, &[u8]),
    ) -> Result<()> {
        self.check(parent)?;
        let def = &table.def.foreign_keys[foreign_key];
        // Who is a transaction of its own puts nothing off.
        let mut due = Due::Statement;
        if let Some(txn) = self.txn.as_deref_mut() {
            due = txn.expected.due(def);
            txn.expected.count_removals(parent);
        }
        let seen = due == Due::Statement && self.has_key(parent, &def.referenced, key)?;
        if self.evicted() {
            // The run will be taken back.
            return Ok(());
        }
        if self.txn.is_none() {
            return match seen {
                true => Ok(()),
                false => Err(table.reference_violation(foreign_key, parent, tuple)),
            };
        }
        let mut reference = Vec::with_capacity(key.len());
        table.reference_of(foreign_key, tuple, &mut reference);
        self.expect(Expectation {
            what: Expected::Parent {
                table: table.def.oid,
                storage: table.def.storage,
                row,
                reference: reference.into(),
                constraint: def.oid,
                key: key.into(),
            },
            due,
            seen,
            put_off: due == Due::Commit,
        })
    }

    fn expect(&mut self, expectation: Expectation) -> Result<()> {
        self.keep(expectation.bytes())?;
        if let Some(txn) = self.txn.as_deref_mut() {
            txn.expected.push(expectation);
        }
        Ok(())
    }

    /// Whether `table` has a row with the key that `tuple` has in its unique index over these
    /// columns.
    pub fn has_key_of(&mut self, table: &Table, columns: &[usize], tuple: &[u8]) -> Result<bool> {
        let Some(position) = table.def.unique_over(columns) else {
            return Ok(false);
        };
        let mut key = Vec::with_capacity(32);
        table.index_key_of(position, tuple, &mut key);
        self.has_key(table, columns, &key)
    }

    /// Notes a key of a table that is referred to which goes with this change.
    pub(super) fn note_removed_key(
        &mut self,
        position: usize,
        table: &Table,
        old: &Image,
        new: Option<&[u8]>,
    ) -> Result<()> {
        if self.recorded.is_some() {
            // Nobody referred to it when the command ran.
            return Ok(());
        }
        let old: Arc<[u8]> = match old {
            Image::Gone | Image::Evicted => return Ok(()),
            Image::Hot(pointer) => match self.hot_bytes(position, table, *pointer) {
                Some(tuple) => tuple.into(),
                None => return Ok(()),
            },
            Image::Beside(tuple) => tuple.clone(),
        };
        if new.is_some_and(|new| !table.unique_keys_differ(&old, new)) {
            return Ok(());
        }
        if self.txn.is_none() {
            return Err(Error::Internal(
                "a key that is referred to goes without a transaction".into(),
            ));
        }
        self.keep(2 * size_of::<RemovedKey>() + old.len() + new.map_or(0, <[u8]>::len))?;
        let removed = RemovedKey {
            table: table.def.oid,
            old,
            new: new.map(Into::into),
        };
        if let Some(txn) = self.txn.as_deref_mut() {
            txn.expected.push_removed(removed);
        }
        Ok(())
    }

    /// Looks at what has to hold when a statement ends, as far as it comes in one run.
    ///
    /// # Errors
    /// 23503.
    pub(crate) fn verify_expected(&mut self, catalog: &Catalog) -> Result<()> {
        let Some(txn) = self.txn.as_deref_mut() else {
            return Ok(());
        };
        let mut expected = std::mem::take(&mut txn.expected);
        let mut result = Ok(());
        let due = expected.own_entries_mut().iter_mut();
        let due = due.filter(|entry| !entry.seen && entry.due == Due::Statement);
        for entry in due.take(VERIFIED_AT_ONCE) {
            result = self.verify(catalog, &entry.what);
            if result.is_err() {
                break;
            }
            entry.seen = !self.evicted();
        }
        if let Some(txn) = self.txn.as_deref_mut() {
            txn.expected = expected;
        }
        result
    }

    /// Looks again at what a transaction expects whose changes have been applied. False: others
    /// have taken keys away meanwhile, and the partitions that they were in are not held.
    ///
    /// # Errors
    /// 23503, and 40001 where it cannot be told.
    pub(crate) fn verify_at_commit(
        &mut self,
        catalog: &Catalog,
        expected: &Expectations,
    ) -> Result<bool> {
        if expected.is_in_doubt() {
            return Err(Error::Serialization(REMOVED));
        }
        for entry in expected.entries() {
            let Some(partitions) = partitions_of(catalog, expected, entry) else {
                continue;
            };
            let is_held = match &partitions {
                Scope::All => self.holds_all(),
                Scope::One(one) => self.holds(*one),
                Scope::Many(many) => many.iter().all(|one| self.holds(*one)),
            };
            if !is_held {
                return Ok(false);
            }
            if entry.seen && !has_referrals(catalog, expected, &entry.what) {
                continue;
            }
            if entry.seen && is_rewritten(catalog, &entry.what) {
                return Err(Error::Serialization(REMOVED));
            }
            self.verify(catalog, &entry.what)?;
        }
        Ok(true)
    }

    /// Whether an expectation holds now. The definitions are those of the transaction.
    pub(crate) fn verify(&mut self, catalog: &Catalog, expected: &Expected) -> Result<()> {
        match expected {
            Expected::Parent {
                table,
                storage,
                row,
                reference,
                constraint,
                key,
            } => {
                // Who is not there any more refers to nothing.
                let Some((table, number)) = referring(catalog, *table, *constraint) else {
                    return Ok(());
                };
                let def = &table.def.foreign_keys[number];
                let Some(parent) = catalog.table(def.table).cloned() else {
                    return Ok(());
                };
                if table.def.storage != *storage || self.has_key(&parent, &def.referenced, key)? {
                    return Ok(());
                }
                let Some(tuple) = self.now(&table, *row)? else {
                    return Ok(());
                };
                let mut now = Vec::with_capacity(reference.len());
                table.reference_of(number, &tuple, &mut now);
                match now[..] == reference[..] && !self.evicted() {
                    true => Err(table.reference_violation(number, &parent, &tuple)),
                    false => Ok(()),
                }
            }
            Expected::NoChild {
                parent,
                old,
                table,
                constraint,
                referring: by,
            } => {
                let Some((table, number)) = referring(catalog, *table, *constraint) else {
                    return Ok(());
                };
                let Some(parent) = catalog.table(*parent).cloned() else {
                    return Ok(());
                };
                let def = &table.def.foreign_keys[number];
                if self.has_key_of(&parent, &def.referenced, old)? || !self.has_child(&table, by)? {
                    return Ok(());
                }
                Err(table.still_referenced(number, &parent, old))
            }
        }
    }

    /// The guards that rows with this key in an index may be behind.
    fn homes(&self, table: &Table, index: usize, key: &[u8], whole: bool) -> Result<Vec<usize>> {
        let partition = whole.then(|| table.partition_of_index_key(index, key));
        match partition.flatten() {
            Some(partition) => Ok(vec![self.guards.position(partition)?]),
            None => Ok((0..self.guards.len()).collect()),
        }
    }

    /// Whether `table` has a row with a key in its unique index over these columns.
    pub fn has_key(&mut self, table: &Table, columns: &[usize], key: &[u8]) -> Result<bool> {
        let Some(index) = table.def.unique_over(columns) else {
            return Ok(false);
        };
        let mut rows = Vec::new();
        for position in self.homes(table, index, key, true)? {
            rows.clear();
            self.candidates(position, table, index, key, &mut rows)?;
            for row in &rows {
                if self
                    .is_there(position, table, index, *row, (key, true))?
                    .is_some()
                {
                    return Ok(true);
                }
            }
            if self.is_moved_to(position, table, index, (key, true)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a row has the key by which referring rows are found. Nobody keeps others from
    /// dropping the index meanwhile.
    fn has_child(&mut self, table: &Table, by: &Referring) -> Result<bool> {
        let Some(index) = position_of(table, by.index) else {
            return Err(Error::Serialization("a concurrent change of an index"));
        };
        let sought = (&by.key[..], by.whole);
        let mut rows = Vec::new();
        for position in self.homes(table, index, &by.key, by.whole)? {
            let mut resume: Option<(Vec<u8>, u32)> = None;
            loop {
                rows.clear();
                let last = match by.whole {
                    true => {
                        self.candidates(position, table, index, &by.key, &mut rows)?;
                        None
                    }
                    false => self.next_children(position, table, index, &by.key, resume, &mut rows),
                };
                for row in &rows {
                    let found = self.is_there(position, table, index, *row, sought)?;
                    if let Some(row) = found {
                        self.wait_for_changer(position, table, row)?;
                        return Ok(true);
                    }
                }
                match last {
                    Some(last) if rows.len() == BATCH => resume = Some(last),
                    _ => break,
                }
            }
            if self.is_moved_to(position, table, index, sought) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next rows whose keys in a B+tree begin with `prefix`, and the last entry.
    fn next_children(
        &self,
        position: usize,
        table: &Table,
        index: usize,
        prefix: &[u8],
        resume: Option<(Vec<u8>, u32)>,
        rows: &mut Vec<u32>,
    ) -> Option<(Vec<u8>, u32)> {
        let Ok(Index::BTree(tree)) = self.table_at(position, table)?.index(table, index) else {
            return None;
        };
        let mut end = prefix.to_vec();
        let upper = match prefix_successor(&mut end) {
            true => Bound::Excluded(&end[..]),
            false => Bound::Unbounded,
        };
        let mut last = None;
        let mut take = |key: &[u8], row: u32| {
            rows.push(row);
            if rows.len() < BATCH {
                return ControlFlow::Continue(());
            }
            last = Some((key.to_vec(), row));
            ControlFlow::Break(())
        };
        let resume = resume.as_ref().map(|(key, row)| (key.as_slice(), *row));
        let _ = tree.scan_from(Bound::Included(prefix), upper, true, resume, &mut take);
        last
    }

    /// The row, if it has the key in an index, or one that begins so, for this transaction.
    fn is_there(
        &mut self,
        position: usize,
        table: &Table,
        index: usize,
        row: u32,
        (key, whole): (&[u8], bool),
    ) -> Result<Option<RowId>> {
        let id = RowId::new(self.guards.at(position).id, row);
        let Some(rows) = self.table_at(position, table) else {
            return Ok(None);
        };
        let word = rows.directory().get(row);
        let is_tree = table.def.indexes[index].kind == IndexKind::BTree;
        let is_own = self.is_overlaid(table, id);
        if is_tree && word.is_cold() && !word.is_aside() && !word.is_uncommitted() && !is_own {
            return Ok(Some(id));
        }
        let image = self.image_now(position, table, id)?;
        let has = match whole {
            true => self.image_has_key(position, table, index, &image, key),
            false => self.begins_with(position, table, index, &image, key),
        };
        Ok(has.then_some(id))
    }

    fn is_overlaid(&self, table: &Table, row: RowId) -> bool {
        let txn = self.txn.as_deref();
        txn.is_some_and(|txn| txn.overlay.contains_key(&(table.def.storage, row)))
    }

    /// What a row is now, for this transaction and whatever its snapshot sees.
    fn image_now(&mut self, position: usize, table: &Table, row: RowId) -> Result<Image> {
        let stored = (table.def.storage, row.row());
        let overlaid = self.txn.as_deref();
        let overlaid = overlaid.and_then(|txn| txn.overlay.get(&(stored.0, row)));
        if let Some(overlaid) = overlaid {
            return Ok(match &overlaid.new {
                Some(new) => Image::Beside(new.clone()),
                None => Image::Gone,
            });
        }
        let Some(rows) = self.table_at(position, table) else {
            return Ok(Image::Gone);
        };
        let word = rows.directory().get(row.row());
        if word.is_uncommitted() && !self.owns(position, stored) {
            return Ok(Image::Gone);
        }
        self.resolve_current(position, table, row, word)
    }

    fn now(&mut self, table: &Table, row: RowId) -> Result<Option<Vec<u8>>> {
        let position = self.guards.position(row.partition())?;
        Ok(match self.image_now(position, table, row)? {
            Image::Gone | Image::Evicted => None,
            Image::Hot(pointer) => {
                let tuple = self.hot_bytes(position, table, pointer);
                tuple.map(<[u8]>::to_vec)
            }
            Image::Beside(tuple) => Some(tuple.to_vec()),
        })
    }

    fn begins_with(
        &mut self,
        position: usize,
        table: &Table,
        index: usize,
        image: &Image,
        prefix: &[u8],
    ) -> bool {
        let tuple = match image {
            Image::Gone | Image::Evicted => None,
            Image::Hot(pointer) => self.hot_bytes(position, table, *pointer),
            Image::Beside(tuple) => Some(&tuple[..]),
        };
        let mut key = Vec::with_capacity(prefix.len() + 16);
        if let Some(tuple) = tuple {
            table.index_key_of(index, tuple, &mut key);
        }
        tuple.is_some() && key.starts_with(prefix)
    }

    /// Whether the transaction has given a row in this partition the key, to which the index does
    /// not lead yet.
    fn is_moved_to(
        &self,
        position: usize,
        table: &Table,
        index: usize,
        (key, whole): (&[u8], bool),
    ) -> bool {
        let Some(txn) = self.txn.as_deref() else {
            return false;
        };
        let partition = self.guards.at(position).id;
        let mut other = Vec::new();
        txn.overlay.iter().any(|((storage, row), overlaid)| {
            let is_here = *storage == table.def.storage && row.partition() == partition;
            let (true, true, Some(new)) = (is_here, overlaid.moved, &overlaid.new) else {
                return false;
            };
            other.clear();
            table.index_key_of(index, new, &mut other);
            match whole {
                true => other == key,
                false => other.starts_with(key),
            }
        })
    }

    /// Who refers to the key may be about to go.
    fn wait_for_changer(&mut self, position: usize, table: &Table, row: RowId) -> Result<()> {
        let stored = (table.def.storage, row.row());
        let own = self.txn.as_deref().map(|txn| txn.id).or(self.owner);
        let state = self.guards.at(position);
        match state.locks.get(&stored) {
            Some(holder) if Some(*holder) != own => {
                let holder = *holder;
                Err(self.blocked(Obstacle::Held(holder)))
            }
            _ => Ok(()),
        }
    }
}

/// The partitions that a commit holds besides for what it expects. None: all.
pub(crate) fn expected_partitions(catalog: &Catalog, expected: &Expectations) -> Option<Vec<u16>> {
    let mut partitions = Vec::new();
    for entry in expected.entries() {
        match partitions_of(catalog, expected, entry) {
            None => {}
            Some(Scope::All) => return None,
            Some(Scope::One(one)) => partitions.push(one),
            Some(Scope::Many(many)) => partitions.extend(many),
        }
    }
    Some(partitions)
}

/// The partitions in which an expectation is looked at again; None: it need not be.
fn partitions_of(catalog: &Catalog, expected: &Expectations, entry: &Expectation) -> Option<Scope> {
    match &entry.what {
        Expected::Parent {
            table,
            row,
            constraint,
            key,
            ..
        } => {
            let (table, number) = referring(catalog, *table, *constraint)?;
            let def = &table.def.foreign_keys[number];
            let parent = catalog.table(def.table)?;
            if entry.seen && !expected.has_moved(&parent.removals) {
                return None;
            }
            let index = parent.def.unique_over(&def.referenced)?;
            Some(match parent.partition_of_index_key(index, key) {
                Some(home) => Scope::Many(vec![home, row.partition()]),
                None => Scope::All,
            })
        }
        Expected::NoChild {
            parent,
            old,
            table,
            constraint,
            referring: by,
        } => {
            let (table, number) = referring(catalog, *table, *constraint)?;
            let parent = catalog.table(*parent)?;
            let Some(index) = position_of(&table, by.index) else {
                return Some(Scope::All);
            };
            let referred = parent
                .def
                .unique_over(&table.def.foreign_keys[number].referenced)?;
            let mut key = Vec::with_capacity(32);
            parent.index_key_of(referred, old, &mut key);
            let children = by
                .whole
                .then(|| table.partition_of_index_key(index, &by.key));
            let homes = [
                children.flatten(),
                parent.partition_of_index_key(referred, &key),
            ];
            Some(match homes {
                [Some(children), Some(home)] => Scope::Many(vec![children, home]),
                _ => Scope::All,
            })
        }
    }
}

fn position_of(table: &Table, index: u32) -> Option<usize> {
    table.def.indexes.iter().position(|def| def.oid == index)
}

/// Whether rows may refer to a key that went, which nobody referred to. The partitions in which
/// they would be are held.
fn has_referrals(catalog: &Catalog, expected: &Expectations, what: &Expected) -> bool {
    match what {
        Expected::Parent { .. } => true,
        Expected::NoChild { table, .. } => {
            let table = catalog.table(*table);
            table.is_some_and(|table| expected.has_moved(&table.referrals))
        }
    }
}

/// Whether a row that refers to another is not to be found again by its number.
fn is_rewritten(catalog: &Catalog, expected: &Expected) -> bool {
    match expected {
        Expected::Parent { table, storage, .. } => {
            let table = catalog.table(*table);
            table.is_some_and(|table| table.def.storage != *storage)
        }
        Expected::NoChild { .. } => false,
    }
}

/// A foreign key by its number.
fn referring(catalog: &Catalog, table: u32, constraint: u32) -> Option<(Arc<Table>, usize)> {
    let table = catalog.table(table)?;
    let mut keys = table.def.foreign_keys.iter();
    let number = keys.position(|key| key.oid == constraint)?;
    Some((table.clone(), number))
}
