//! How the columns of column tables are used: what statements asked of each (002 §2.2), what scans decoded
//! of it, and what the device had to give. Counted since the database was opened, and kept nowhere.
//!
//! A column has eight words. A statement adds to them once, a scan once for each chunk, a read of single
//! rows once for each group. Nothing is counted row by row.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;
use thermocline_storage::columns::Directory;

use crate::catalog::storages::Storages;

/// What became of a column since the database was opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ColumnUse {
    /// Statements that read the column, and had no condition on it.
    pub projections: u64,
    /// Statements that had a condition on it.
    pub conditions: u64,
    /// Chunks of it that scans went through.
    pub chunks: u64,
    /// Values that scans decoded there.
    pub chunk_values: u64,
    /// Bytes of those chunks, as they are encoded.
    pub chunk_bytes: u64,
    /// Values that were read one by one, for single rows.
    pub single_values: u64,
    /// Chunks and pages of it that were read from the device.
    pub device_reads: u64,
    /// Their bytes.
    pub device_bytes: u64,
}

#[derive(Default)]
struct Counters {
    projections: AtomicU64,
    conditions: AtomicU64,
    chunks: AtomicU64,
    chunk_values: AtomicU64,
    chunk_bytes: AtomicU64,
    single_values: AtomicU64,
    device_reads: AtomicU64,
    device_bytes: AtomicU64,
}

impl Counters {
    fn now(&self) -> ColumnUse {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ColumnUse {
            projections: of(&self.projections),
            conditions: of(&self.conditions),
            chunks: of(&self.chunks),
            chunk_values: of(&self.chunk_values),
            chunk_bytes: of(&self.chunk_bytes),
            single_values: of(&self.single_values),
            device_reads: of(&self.device_reads),
            device_bytes: of(&self.device_bytes),
        }
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// The counters of a storage's columns, by their places.
#[derive(Clone, Default)]
pub(crate) struct TableUse(Arc<[Arc<Counters>]>);

impl TableUse {
    /// Counts a statement that reads these columns, and has conditions on those.
    pub fn count_statement(&self, projected: &[usize], conditions: &[usize]) {
        // What is no column of the table, as the row's number, is not counted.
        let of = |column: &usize| self.0.get(*column);
        for counters in conditions.iter().filter_map(of) {
            add(&counters.conditions, 1);
        }
        for counters in projected.iter().filter_map(of) {
            add(&counters.projections, 1);
        }
    }

    /// Counts the chunks of these columns in a group that a scan goes through.
    pub fn count_chunks(&self, directory: &Directory, columns: &[usize]) {
        for column in columns {
            let chunk = directory.chunk(directory.chunk_of(*column));
            let chunk = chunk.filter(|_| directory.zone(*column).is_some());
            if let (Some(counters), Some(chunk)) = (self.0.get(*column), chunk) {
                add(&counters.chunks, 1);
                add(&counters.chunk_bytes, chunk.bytes.into());
            }
        }
    }

    /// Counts so many values that a scan decodes of each of these columns of a group.
    pub fn count_values(&self, directory: &Directory, columns: &[usize], values: usize) {
        let is_there = |column: &&usize| directory.zone(**column).is_some();
        for column in columns.iter().filter(is_there) {
            if let Some(counters) = self.0.get(*column) {
                add(&counters.chunk_values, values as u64);
            }
        }
    }

    /// Counts rows of a group that are read one by one: each column gives a value.
    pub fn count_single(&self, directory: &Directory, rows: usize) {
        for counters in self.0.iter().take(directory.columns()) {
            add(&counters.single_values, rows as u64);
        }
    }

    /// Counts a read of so many bytes of a column from the device.
    pub fn count_device(&self, column: Option<usize>, bytes: usize) {
        if let Some(counters) = column.and_then(|column| self.0.get(column)) {
            add(&counters.device_reads, 1);
            add(&counters.device_bytes, bytes as u64);
        }
    }

    /// What became of a column.
    pub fn of(&self, column: usize) -> ColumnUse {
        self.0
            .get(column)
            .map(|counters| counters.now())
            .unwrap_or_default()
    }
}

/// The counters of all storages.
#[derive(Default)]
pub(crate) struct ColumnUses(Mutex<HashMap<u32, TableUse>>);

impl ColumnUses {
    /// The counters of a storage with so many columns. Columns that come later have their own.
    pub fn of(&self, storage: u32, columns: usize, storages: &Storages) -> TableUse {
        let mut uses = self.0.lock();
        if let Some(there) = uses.get(&storage).filter(|there| there.0.len() >= columns) {
            return there.clone();
        }
        if !uses.contains_key(&storage) {
            // Of tables that are gone nothing stays.
            let known = storages.read();
            uses.retain(|storage, _| known.contains_key(storage));
        }
        let there = uses.entry(storage).or_default();
        let mut counters = there.0.to_vec();
        counters.resize_with(columns, Arc::default);
        there.0 = counters.into();
        there.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_comes_later_leaves_the_counts_of_the_others_as_they_are() {
        let (uses, storages) = (ColumnUses::default(), Storages::default());
        let before = uses.of(7, 2, &storages);
        before.count_statement(&[0, 5], &[1]);
        before.count_device(Some(1), 4096);
        before.count_device(None, 4096);
        let after = uses.of(7, 3, &storages);
        after.count_statement(&[0, 2], &[]);
        let counts = |column| {
            let of = uses.of(7, 1, &storages).of(column);
            (
                of.projections,
                of.conditions,
                of.device_reads,
                of.device_bytes,
            )
        };
        assert_eq!(counts(0), (2, 0, 0, 0));
        assert_eq!(counts(1), (0, 1, 1, 4096));
        assert_eq!(counts(2), (1, 0, 0, 0));
        before.count_statement(&[0], &[]);
        assert_eq!(counts(0).0, 3, "a scan that began before counts on");
    }

    #[test]
    fn of_storages_that_are_gone_nothing_stays() {
        let (uses, storages) = (ColumnUses::default(), Storages::default());
        uses.of(7, 1, &storages).count_statement(&[0], &[]);
        uses.of(8, 1, &storages);
        assert_eq!(uses.0.lock().len(), 1);
        assert_eq!(uses.of(7, 1, &storages).of(0), ColumnUse::default());
    }
}
