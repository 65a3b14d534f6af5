//! Which declared partition a key belongs to, and which may have keys of an interval.
//!
//! Keys are compared as the bytes of [`KeyShape`]: a bound of fewer columns, or one that ends in
//! MINVALUE or MAXVALUE, is a prefix or what follows it.

use std::collections::HashMap;
use std::ops::Bound;

use thermocline_storage::key::{KeyShape, prefix_successor};
use thermocline_values::value::{Value, ValueRef};

use super::definitions::{IndexDef, IndexKind, TableDef};
use super::partition_hash::partition_hash;
use super::partitioning::{PartitionBound, PartitionStrategy, PartitionedBy, RangeEnd};

/// Which partitions there are, to look keys up. Positions are those in
/// [`PartitionedBy::partitions`].
#[derive(Debug)]
pub struct PartitionMap {
    shape: KeyShape,
    kind: Kind,
    default: Option<usize>,
}

#[derive(Debug)]
enum Kind {
    /// In the order of their first keys.
    Range(Vec<KeyInterval>),
    List(HashMap<Vec<u8>, usize>),
    /// Modulus, remainder and position.
    Hash(Vec<(u64, u64, usize)>),
}

/// The keys of a partition by range: bytes of the first, and of what follows the last; none: there is
/// no end.
#[derive(Debug)]
struct KeyInterval {
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    position: usize,
}

impl KeyInterval {
    fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    fn meets(&self, other: &Self) -> bool {
        let before =
            |one: &Self, end: &Option<Vec<u8>>| end.as_ref().is_none_or(|to| one.from < *to);
        before(self, &other.to) && before(other, &self.to)
    }
}

/// What makes a new bound impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundConflict {
    /// The partition at this position has some of the keys.
    Overlaps(usize),
    /// There is a default partition, at this position.
    SecondDefault(usize),
    /// No key is in the range.
    Empty,
    /// The modulus is no factor of this larger one, or multiple of this smaller one, of the partition at the position.
    Modulus(u32, usize),
}

impl PartitionMap {
    /// Of a table's partitions. The shape is that of its key.
    pub(super) fn of(by: &PartitionedBy, shape: &KeyShape) -> Self {
        let bounds = by.partitions.iter().map(|partition| &partition.bound);
        let all = bounds.enumerate();
        let default = all
            .clone()
            .find(|(_, bound)| **bound == PartitionBound::Default);
        let kind = match by.strategy {
            PartitionStrategy::Range => {
                let mut intervals: Vec<KeyInterval> = all
                    .filter_map(|(at, bound)| interval(shape, bound, at))
                    .collect();
                intervals.sort_by(|one, other| one.from.cmp(&other.from));
                Kind::Range(intervals)
            }
            PartitionStrategy::List => Kind::List(
                all.flat_map(|(at, bound)| {
                    keys_of_list(shape, bound)
                        .into_iter()
                        .map(move |key| (key, at))
                })
                .collect(),
            ),
            PartitionStrategy::Hash => Kind::Hash(
                all.filter_map(|(at, bound)| match bound {
                    PartitionBound::Hash { modulus, remainder } => {
                        Some((u64::from(*modulus), u64::from(*remainder), at))
                    }
                    _ => None,
                })
                .collect(),
            ),
        };
        Self {
            default: default.map(|(at, _)| at),
            kind,
            shape: shape.clone(),
        }
    }

    /// The partition of a row whose key columns have these values, of the columns' types.
    #[must_use]
    pub fn find(&self, key: &[ValueRef<'_>]) -> Option<usize> {
        if let Kind::Hash(all) = &self.kind {
            let hash = partition_hash(&self.shape, key);
            let mut all = all.iter();
            return all
                .find(|(modulus, remainder, _)| hash % modulus == *remainder)
                .map(|(.., position)| *position);
        }
        let is_range = matches!(self.kind, Kind::Range(_));
        if is_range && key.iter().any(|value| matches!(value, ValueRef::Null)) {
            return self.default;
        }
        let mut bytes = Vec::with_capacity(32);
        self.shape.encode(key, &mut bytes);
        self.find_bytes(&bytes)
    }

    /// Whether keys are told by their hashes: then they are looked for by values, not as bytes.
    #[must_use]
    pub fn is_by_hash(&self) -> bool {
        matches!(self.kind, Kind::Hash(_))
    }

    /// The partition that has a value in its list.
    #[must_use]
    pub fn find_listed(&self, value: &Value) -> Option<usize> {
        let Kind::List(values) = &self.kind else {
            return None;
        };
        let mut bytes = Vec::with_capacity(16);
        self.shape.encode(&[value.as_ref()], &mut bytes);
        values.get(&bytes).copied()
    }

    /// The partition of a whole key's bytes; none by HASH.
    #[must_use]
    pub fn find_bytes(&self, key: &[u8]) -> Option<usize> {
        let found = match &self.kind {
            Kind::Range(intervals) => {
                let behind = intervals.partition_point(|of| of.from.as_slice() <= key);
                let last = behind.checked_sub(1).map(|at| &intervals[at]);
                let has = |of: &&KeyInterval| of.to.as_ref().is_none_or(|to| key < to.as_slice());
                last.filter(has).map(|of| of.position)
            }
            Kind::List(values) => values.get(key).copied(),
            // Its hash is one of values.
            Kind::Hash(_) => None,
        };
        found.or(self.default)
    }

    /// Adds the partitions that may have keys between these.
    pub fn between(&self, lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>, found: &mut Vec<usize>) {
        let begins = |key: &[u8]| match lower {
            Bound::Included(lower) => key >= lower.as_slice(),
            Bound::Excluded(lower) => key > lower.as_slice(),
            Bound::Unbounded => true,
        };
        let ends = |key: &[u8]| match upper {
            Bound::Included(upper) => key <= upper.as_slice(),
            Bound::Excluded(upper) => key < upper.as_slice(),
            Bound::Unbounded => true,
        };
        match &self.kind {
            Kind::Range(intervals) => {
                // The last key of an interval is before its end.
                let reaches = |to: &Option<Vec<u8>>| {
                    to.as_ref().is_none_or(|to| match lower {
                        Bound::Included(lower) | Bound::Excluded(lower) => lower < to,
                        Bound::Unbounded => true,
                    })
                };
                let meet = intervals.iter();
                let meet = meet.filter(|of| ends(&of.from) && reaches(&of.to));
                found.extend(meet.map(|of| of.position));
                if covers(intervals, lower, upper) {
                    return;
                }
            }
            Kind::List(values) => {
                let within = values.iter().filter(|(key, _)| begins(key) && ends(key));
                found.extend(within.map(|(_, position)| *position));
            }
            Kind::Hash(all) => found.extend(all.iter().map(|(.., position)| *position)),
        }
        found.extend(self.default);
    }

    /// What is in the way of a partition with this bound more.
    #[must_use]
    pub fn conflict(&self, by: &PartitionedBy, bound: &PartitionBound) -> Option<BoundConflict> {
        if *bound == PartitionBound::Default {
            return self.default.map(BoundConflict::SecondDefault);
        }
        match (&self.kind, bound) {
            (Kind::Range(intervals), PartitionBound::Range { .. }) => {
                let new = interval(&self.shape, bound, 0)?;
                if new.is_empty() {
                    return Some(BoundConflict::Empty);
                }
                let other = intervals.iter().find(|other| other.meets(&new));
                other.map(|other| BoundConflict::Overlaps(other.position))
            }
            (Kind::List(values), PartitionBound::List(_)) => {
                let keys = keys_of_list(&self.shape, bound);
                let taken = keys.iter().find_map(|key| values.get(key));
                taken.map(|position| BoundConflict::Overlaps(*position))
            }
            (Kind::Hash(_), PartitionBound::Hash { modulus, remainder }) => {
                hash_conflict(by, *modulus, *remainder)
            }
            _ => None,
        }
    }
}

/// What stands for the key of a partitioned table: one of the same columns with one index, over the
/// key. So what is said of the key is looked for as what is said of an index.
pub(super) fn key_definition(def: &TableDef, by: &PartitionedBy) -> TableDef {
    let index = IndexDef {
        oid: 0,
        name: String::new(),
        columns: by.columns.clone(),
        unique: false,
        primary: false,
        constraint: false,
        kind: IndexKind::BTree,
        include: Vec::new(),
        nulls_equal: false,
        order: Vec::new(),
    };
    TableDef {
        indexes: vec![index],
        partition_key: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        triggers: Vec::new(),
        partitioned: None,
        ..def.clone()
    }
}

/// Whether all keys between these are in one of the intervals, which are in order.
fn covers(intervals: &[KeyInterval], lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>) -> bool {
    let mut from: &[u8] = match lower {
        Bound::Included(lower) | Bound::Excluded(lower) => lower,
        Bound::Unbounded => &[],
    };
    let ends_before = |to: &[u8]| match upper {
        Bound::Included(upper) => upper.as_slice() < to,
        Bound::Excluded(upper) => upper.as_slice() <= to,
        Bound::Unbounded => false,
    };
    for interval in intervals {
        let is_next = interval.from.as_slice() <= from;
        match &interval.to {
            _ if !is_next => return false,
            None => return true,
            Some(to) if ends_before(to) => return true,
            Some(to) => from = from.max(to),
        }
    }
    false
}

/// The keys of a range; none of another bound.
fn interval(shape: &KeyShape, bound: &PartitionBound, position: usize) -> Option<KeyInterval> {
    let PartitionBound::Range { from, to } = bound else {
        return None;
    };
    Some(KeyInterval {
        // What begins behind all keys has none.
        from: end_of(shape, from).unwrap_or_else(|| vec![u8::MAX]),
        to: end_of(shape, to),
        position,
    })
}

/// The bytes that the keys from an end on are not below; `None`: behind all keys.
fn end_of(shape: &KeyShape, end: &[RangeEnd]) -> Option<Vec<u8>> {
    let values = end.iter().map_while(|column| match column {
        RangeEnd::Value(value) => Some(value.as_ref()),
        RangeEnd::Least | RangeEnd::Greatest => None,
    });
    let values: Vec<ValueRef<'_>> = values.collect();
    let mut bytes = Vec::with_capacity(32);
    shape.encode(&values, &mut bytes);
    match end.get(values.len()) {
        Some(RangeEnd::Greatest) => prefix_successor(&mut bytes).then_some(bytes),
        _ => Some(bytes),
    }
}

fn keys_of_list(shape: &KeyShape, bound: &PartitionBound) -> Vec<Vec<u8>> {
    let PartitionBound::List(values) = bound else {
        return Vec::new();
    };
    let key = |value: &Value| {
        let mut bytes = Vec::with_capacity(16);
        shape.encode(&[value.as_ref()], &mut bytes);
        bytes
    };
    values.iter().map(key).collect()
}

fn hash_conflict(by: &PartitionedBy, modulus: u32, remainder: u32) -> Option<BoundConflict> {
    for (position, partition) in by.partitions.iter().enumerate() {
        let PartitionBound::Hash {
            modulus: other,
            remainder: left,
        } = partition.bound
        else {
            continue;
        };
        if !modulus.is_multiple_of(other) && !other.is_multiple_of(modulus) {
            return Some(BoundConflict::Modulus(other, position));
        }
        let smaller = modulus.min(other);
        if remainder % smaller == left % smaller {
            return Some(BoundConflict::Overlaps(position));
        }
    }
    None
}

#[cfg(test)]
mod tests;
