//! Keys of an index, as a scan or a count is asked for them.

use std::ops::Bound;

use crate::catalog::{IndexKind, Table};
use crate::transaction::reads::ReadWhat;

/// An interval of keys.
pub type KeyInterval = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Keys of an index.
#[derive(Debug)]
pub struct IndexKeys {
    /// Its place in the table's definition.
    pub(super) index: usize,
    pub(super) wanted: Wanted,
    /// A point has one row at most.
    pub(super) unique: bool,
    /// The partition of each point's rows, where a key tells it.
    partitions: Vec<u16>,
}

/// None lies within another, and all are in their order.
#[derive(Debug)]
pub(super) enum Wanted {
    /// The beginnings of keys.
    Points(Vec<Box<[u8]>>),
    Intervals(Vec<KeyInterval>),
}

impl IndexKeys {
    /// The keys that have these values in the index's first columns: `points` are what
    /// [`Table::encode_index_key`] makes of as many values each. A hash index has whole keys only.
    #[must_use]
    pub fn points(table: &Table, index: usize, mut points: Vec<Box<[u8]>>, columns: usize) -> Self {
        let def = &table.def.indexes[index];
        let whole = columns == def.columns.len();
        assert!(
            whole || def.kind == IndexKind::BTree,
            "a hash index is asked for whole keys"
        );
        points.sort_unstable();
        points.dedup();
        let partition = |point: &[u8]| table.partition_of_index_key(index, point);
        let of_whole = points.iter().map(AsRef::as_ref).take_while(|_| whole);
        Self {
            index,
            partitions: of_whole.map_while(partition).collect(),
            wanted: Wanted::Points(points),
            unique: whole && def.unique,
        }
    }

    /// The keys of a B+tree within intervals, of which none may meet another.
    #[must_use]
    pub fn intervals(table: &Table, index: usize, mut intervals: Vec<KeyInterval>) -> Self {
        assert!(
            table.def.indexes[index].kind == IndexKind::BTree,
            "a hash index has no intervals"
        );
        let lowest = |interval: &KeyInterval| match &interval.0 {
            Bound::Unbounded => None,
            Bound::Included(key) | Bound::Excluded(key) => Some(key.clone()),
        };
        intervals.sort_by_cached_key(lowest);
        Self {
            index,
            wanted: Wanted::Intervals(intervals),
            unique: false,
            partitions: Vec::new(),
        }
    }

    /// The index's place in the table's definition.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }

    /// How many points or intervals they are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.wanted {
            Wanted::Points(points) => points.len(),
            Wanted::Intervals(intervals) => intervals.len(),
        }
    }

    /// Whether no key is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a transaction that has looked for them has read, and in which partition if it is one.
    pub(crate) fn reads(&self, table: &Table) -> Vec<(Option<u16>, ReadWhat)> {
        let def = &table.def.indexes[self.index];
        let of = def.oid;
        match &self.wanted {
            Wanted::Intervals(intervals) => {
                let read = |(lower, upper): &KeyInterval| {
                    let lower = lower.as_ref().map(Vec::as_slice);
                    ReadWhat::keys(of, lower, upper.as_ref().map(Vec::as_slice))
                };
                intervals
                    .iter()
                    .map(|interval| (None, read(interval)))
                    .collect()
            }
            Wanted::Points(points) => {
                let read = |point: &[u8]| match def.kind {
                    IndexKind::Hash => ReadWhat::key(of, point),
                    IndexKind::BTree => ReadWhat::beginning_with(of, point),
                };
                let partition = |place: usize| self.partitions.get(place).copied();
                let points = points.iter().enumerate();
                points
                    .map(|(place, point)| (partition(place), read(point)))
                    .collect()
            }
        }
    }

    /// Which of them a key is within.
    pub(super) fn place_of(&self, key: &[u8]) -> Option<usize> {
        match &self.wanted {
            Wanted::Points(points) => {
                let place = points.partition_point(|point| **point <= *key);
                let place = place.checked_sub(1)?;
                key.starts_with(&points[place]).then_some(place)
            }
            Wanted::Intervals(intervals) => {
                let begins = |interval: &KeyInterval| match &interval.0 {
                    Bound::Unbounded => true,
                    Bound::Included(low) => **low <= *key,
                    Bound::Excluded(low) => **low < *key,
                };
                let place = intervals.partition_point(begins).checked_sub(1)?;
                let ends = match &intervals[place].1 {
                    Bound::Unbounded => true,
                    Bound::Included(high) => *key <= **high,
                    Bound::Excluded(high) => *key < **high,
                };
                ends.then_some(place)
            }
        }
    }

    /// Whether rows of this point can be in a partition.
    pub(super) fn may_be_in(&self, place: usize, partition: u16) -> bool {
        let of = self.partitions.get(place);
        of.is_none_or(|of| *of == partition)
    }

    /// How often indexes of so many partitions are asked for them.
    #[must_use]
    pub fn probes(&self, partitions: u16) -> u64 {
        let each = match self.partitions.is_empty() {
            true => u64::from(partitions),
            false => 1,
        };
        each * self.len() as u64
    }
}
