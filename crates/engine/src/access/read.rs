//! Finding rows: by key, by range in key order over all partitions of the
//! scope, and all of them.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use thermocline_storage::key_hash::key_hash;

use super::{Access, Direction, Image, Use, in_bounds};
use crate::catalog::{IndexKind, Table};
use crate::ground::error::Result;
use crate::ground::row_id::RowId;
use crate::rows::index::Index;
use crate::rows::versions::Seen;
use crate::transaction::reads::ReadWhat;

/// Called with the rows of a scan, until it breaks.
pub type EachRow<'c> = &'c mut dyn FnMut(RowId, &[u8]) -> Result<ControlFlow<()>>;

/// Called with a row, its key and its image.
type EachBeside<'c> = &'c mut dyn FnMut(RowId, &[u8], &Arc<[u8]>);

/// Entries taken from a partition's index at a time when several partitions
/// are merged.
const MERGE_BATCH: usize = 64;

impl Access<'_> {
    /// Appends the visible rows whose full key in `index` is `key`.
    pub fn find(
        &mut self,
        table: &Table,
        index: usize,
        key: &[u8],
        rows: &mut Vec<RowId>,
    ) -> Result<()> {
        self.check(table)?;
        match table.partition_of_index_key(index, key) {
            Some(partition) => {
                let position = self.guards.position(partition)?;
                let of = table.def.indexes[index].oid;
                self.note_read(table, partition, || ReadWhat::key(of, key));
                self.find_in(position, table, index, key, rows)
            }
            None => {
                let of = table.def.indexes[index].oid;
                for partition in self.read_partitions() {
                    self.note_read(table, partition, || ReadWhat::key(of, key));
                }
                for position in 0..self.guards.len() {
                    self.find_in(position, table, index, key, rows)?;
                }
                Ok(())
            }
        }
    }

    fn find_in(
        &mut self,
        position: usize,
        table: &Table,
        index: usize,
        key: &[u8],
        found: &mut Vec<RowId>,
    ) -> Result<()> {
        let partition = self.guards.at(position).id;
        let before = found.len();
        let mut rows = std::mem::take(&mut self.scratch.rows);
        rows.clear();
        self.candidates(position, table, index, key, &mut rows)?;
        for &row in &rows {
            let row = RowId::new(partition, row);
            let image = self.resolve(position, table, row, Use::First)?;
            if self.image_has_key(position, table, index, &image, key) {
                found.push(row);
            }
        }
        self.scratch.rows = rows;
        self.add_detached(
            position,
            table,
            index,
            Bound::Included(key),
            Bound::Included(key),
            &mut |row, _, _| {
                if !found[before..].contains(&row) {
                    found.push(row);
                }
            },
        );
        Ok(())
    }

    /// Row numbers that may have the key: exact for a B+tree; for a hash index
    /// those whose fingerprints agree, where they are of its keys.
    pub(super) fn candidates(
        &self,
        position: usize,
        table: &Table,
        index: usize,
        key: &[u8],
        rows: &mut Vec<u32>,
    ) -> Result<()> {
        let Some(here) = self.table_at(position, table) else {
            return Ok(());
        };
        match here.index(table, index)? {
            Index::Hash(hash_index) => {
                let hash = key_hash(key);
                for row in hash_index.candidates(hash) {
                    let cold = here.directory().get(row).as_cold();
                    if cold.is_none_or(|cold| table.may_be_key_of(index, hash, cold)) {
                        rows.push(row);
                    }
                }
            }
            Index::BTree(btree) => rows.extend(btree.rows_equal(key)),
        }
        Ok(())
    }

    pub(super) fn image_has_key(
        &mut self,
        position: usize,
        table: &Table,
        index: usize,
        image: &Image,
        key: &[u8],
    ) -> bool {
        let mut actual = std::mem::take(&mut self.scratch.keys.0);
        actual.clear();
        let same = match image {
            Image::Gone | Image::Evicted => false,
            Image::Hot(pointer) => match self.hot_bytes(position, table, *pointer) {
                Some(tuple) => {
                    table.index_key_of(index, tuple, &mut actual);
                    actual == key
                }
                None => false,
            },
            Image::Beside(tuple) => {
                table.index_key_of(index, tuple, &mut actual);
                actual == key
            }
        };
        self.scratch.keys.0 = actual;
        same
    }

    /// Calls `each` for visible images that the index does not lead to: rows
    /// that this transaction moved, and rows that left the index after the
    /// snapshot.
    fn add_detached(
        &self,
        position: usize,
        table: &Table,
        index: usize,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        each: EachBeside<'_>,
    ) {
        let state = self.guards.at(position);
        let storage = table.def.storage;
        let mut key = Vec::new();
        if let Some(txn) = self.txn.as_deref() {
            for ((overlaid_storage, row), overlaid) in &txn.overlay {
                if *overlaid_storage == storage
                    && row.partition() == state.id
                    && overlaid.moved
                    && let Some(new) = &overlaid.new
                {
                    key.clear();
                    table.index_key_of(index, new, &mut key);
                    if in_bounds(&key, lower, upper) {
                        each(*row, &key, new);
                    }
                }
            }
        }
        let Some(snapshot) = self.snapshot else {
            return;
        };
        if !state.versions.any_detached() {
            return;
        }
        for version in state.versions.since(snapshot) {
            if version.row.0 != storage || !version.detached {
                continue;
            }
            let row = RowId::new(state.id, version.row.1);
            if self
                .txn
                .as_deref()
                .is_some_and(|t| t.overlay.contains_key(&(storage, row)))
            {
                continue;
            }
            if let Seen::Before(image) = state.versions.seen(version.row, snapshot) {
                key.clear();
                table.index_key_of(index, image, &mut key);
                if in_bounds(&key, lower, upper) {
                    each(row, &key, image);
                }
            }
        }
    }

    /// Calls `each` with the visible rows whose key in `index` (a B+tree) lies
    /// between the bounds, in key order over all partitions of the scope,
    /// until it breaks.
    pub fn range(
        &mut self,
        table: &Table,
        index: usize,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        each: EachRow<'_>,
    ) -> Result<()> {
        self.range_in(None, table, index, (lower, upper), direction, each)
    }

    /// Whether the scope is more than one partition.
    #[must_use]
    pub fn holds_several(&self) -> bool {
        self.guards.len() > 1
    }

    /// As [`Access::range`], of one partition if that is known to have all of the interval.
    pub fn range_in(
        &mut self,
        only: Option<u16>,
        table: &Table,
        index: usize,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        each: EachRow<'_>,
    ) -> Result<()> {
        self.check(table)?;
        debug_assert!(table.def.indexes[index].kind == IndexKind::BTree);
        let mut streams = Vec::new();
        for position in 0..self.guards.len() {
            if only.is_some_and(|partition| self.guards.at(position).id != partition) {
                continue;
            }
            let mut stream = Stream::new(position, lower, upper, direction);
            stream.fill(self, table, index)?;
            // Most partitions have nothing in a small interval.
            if stream.head().is_some() || !stream.exhausted {
                streams.push(stream);
            }
        }
        let mut last: Option<(Vec<u8>, RowId)> = None;
        loop {
            let mut best: Option<usize> = None;
            for (number, stream) in streams.iter().enumerate() {
                let Some(head) = stream.head() else {
                    continue;
                };
                let better = match best.and_then(|b: usize| streams[b].head()) {
                    None => true,
                    Some(other) => match direction {
                        Direction::Ascending => head.key < other.key,
                        Direction::Descending => head.key > other.key,
                    },
                };
                if better {
                    best = Some(number);
                }
            }
            let Some(best) = best else {
                break;
            };
            let position = streams[best].position;
            let entry = streams[best].take();
            // Before the next comparison: what lies beside the table may come later than
            // what the index still has.
            streams[best].fill(self, table, index)?;
            let Some(entry) = entry else { continue };
            if entry.image.is_none() && streams[best].beside_rows.contains(&entry.row) {
                continue;
            }
            let flow = self.range_row(position, table, index, &entry, each)?;
            last = Some((entry.key, entry.row));
            if flow.is_break() || self.prepass_full() {
                break;
            }
        }
        // What was read: up to the last row seen, or the whole interval.
        let broke = streams.iter().any(|s| s.head().is_some() || !s.exhausted);
        let seen = last.filter(|_| broke).map(|(key, _)| key);
        let of = table.def.indexes[index].oid;
        let (lower, upper) = match (&seen, direction) {
            (None, _) => (lower, upper),
            (Some(key), Direction::Ascending) => (lower, Bound::Included(&key[..])),
            (Some(key), Direction::Descending) => (Bound::Included(&key[..]), upper),
        };
        let note = || ReadWhat::keys(of, lower, upper);
        match only {
            Some(partition) => self.note_read(table, partition, note),
            None => {
                for partition in self.read_partitions() {
                    self.note_read(table, partition, note);
                }
            }
        }
        Ok(())
    }

    fn range_row(
        &mut self,
        position: usize,
        table: &Table,
        index: usize,
        entry: &Entry,
        each: EachRow<'_>,
    ) -> Result<ControlFlow<()>> {
        if let Some(image) = &entry.image {
            return each(entry.row, image);
        }
        match self.resolve(position, table, entry.row, Use::First)? {
            Image::Gone | Image::Evicted => Ok(ControlFlow::Continue(())),
            Image::Hot(pointer) => match self.hot_bytes(position, table, pointer) {
                Some(tuple) => each(entry.row, tuple),
                None => Ok(ControlFlow::Continue(())),
            },
            image @ Image::Beside(_) => {
                // An image beside the table may have another key than the
                // entry that led here; it is then found through that.
                if !self.image_has_key(position, table, index, &image, &entry.key) {
                    return Ok(ControlFlow::Continue(()));
                }
                match image {
                    Image::Beside(tuple) => each(entry.row, &tuple),
                    _ => Ok(ControlFlow::Continue(())),
                }
            }
        }
    }

    /// Calls `each` with every visible row of the scope's partitions, until it
    /// breaks. For small tables; large ones are read with a snapshot scan.
    pub fn scan(&mut self, table: &Table, each: EachRow<'_>) -> Result<()> {
        self.check(table)?;
        for position in 0..self.guards.len() {
            let partition = self.guards.at(position).id;
            self.note_read(table, partition, || ReadWhat::Table);
            let end = self
                .table_at(position, table)
                .map_or(0, |t| t.directory().appended());
            for row in 0..end {
                if self.prepass_full() {
                    return Ok(());
                }
                let row = RowId::new(partition, row);
                let flow = match self.resolve(position, table, row, Use::First)? {
                    Image::Gone | Image::Evicted => continue,
                    Image::Hot(pointer) => match self.hot_bytes(position, table, pointer) {
                        Some(tuple) => each(row, tuple)?,
                        None => continue,
                    },
                    Image::Beside(tuple) => each(row, &tuple)?,
                };
                if flow.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

struct Entry {
    key: Vec<u8>,
    row: RowId,
    /// Set when the entry does not come from the index.
    image: Option<Arc<[u8]>>,
}

/// The entries of one partition in key order, a batch at a time, with the
/// images that the index does not lead to mixed in.
struct Stream<'b> {
    position: usize,
    lower: Bound<&'b [u8]>,
    upper: Bound<&'b [u8]>,
    direction: Direction,
    /// In reverse order: the next entry is the last.
    batch: Vec<Entry>,
    /// The last entry that was read from the index.
    resume: Option<(Vec<u8>, u32)>,
    exhausted: bool,
    /// Entries from beside the table, in reverse order.
    beside: Option<Vec<Entry>>,
    /// The rows of these, so that none is given twice.
    beside_rows: Vec<RowId>,
}

impl<'b> Stream<'b> {
    fn new(
        position: usize,
        lower: Bound<&'b [u8]>,
        upper: Bound<&'b [u8]>,
        direction: Direction,
    ) -> Self {
        Stream {
            position,
            lower,
            upper,
            direction,
            batch: Vec::new(),
            resume: None,
            exhausted: false,
            beside: None,
            beside_rows: Vec::new(),
        }
    }

    fn head(&self) -> Option<&Entry> {
        let beside = self.beside.as_ref().and_then(|b| b.last());
        match (self.batch.last(), beside) {
            (Some(a), Some(b)) => {
                let beside_first = match self.direction {
                    Direction::Ascending => b.key < a.key,
                    Direction::Descending => b.key > a.key,
                };
                Some(if beside_first { b } else { a })
            }
            (a, b) => a.or(b),
        }
    }

    fn take(&mut self) -> Option<Entry> {
        let from_beside = match (self.batch.last(), self.head()) {
            (_, None) => return None,
            (None, Some(_)) => true,
            (Some(a), Some(head)) => !std::ptr::eq(a, head),
        };
        if from_beside {
            self.beside.as_mut()?.pop()
        } else {
            self.batch.pop()
        }
    }

    /// Reads the next batch from the index, when the last one is used up.
    fn fill(&mut self, access: &Access<'_>, table: &Table, index: usize) -> Result<()> {
        if self.beside.is_none() {
            let mut beside: Vec<Entry> = Vec::new();
            access.add_detached(
                self.position,
                table,
                index,
                self.lower,
                self.upper,
                &mut |row, key, image| {
                    if !beside.iter().any(|e| e.row == row) {
                        beside.push(Entry {
                            key: key.to_vec(),
                            row,
                            image: Some(image.clone()),
                        });
                    }
                },
            );
            beside.sort_by(|a, b| match self.direction {
                Direction::Ascending => b.key.cmp(&a.key),
                Direction::Descending => a.key.cmp(&b.key),
            });
            self.beside_rows = beside.iter().map(|e| e.row).collect();
            self.beside = Some(beside);
        }
        if self.exhausted || !self.batch.is_empty() {
            return Ok(());
        }
        let Some(here) = access.table_at(self.position, table) else {
            self.exhausted = true;
            return Ok(());
        };
        let Index::BTree(btree) = here.index(table, index)? else {
            self.exhausted = true;
            return Ok(());
        };
        let partition = access.guards.at(self.position).id;
        let batch = &mut self.batch;
        let mut take = |key: &[u8], row: u32| {
            batch.push(Entry {
                key: key.to_vec(),
                row: RowId::new(partition, row),
                image: None,
            });
            if batch.len() == MERGE_BATCH {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let ascending = self.direction == Direction::Ascending;
        let _ = btree.scan_from(
            self.lower,
            self.upper,
            ascending,
            self.resume
                .as_ref()
                .map(|(key, row)| (key.as_slice(), *row)),
            &mut take,
        );
        self.exhausted = self.batch.len() < MERGE_BATCH;
        if let Some(last) = self.batch.last() {
            self.resume = Some((last.key.clone(), last.row.row()));
        }
        self.batch.reverse();
        Ok(())
    }
}
