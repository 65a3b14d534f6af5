//! What a serializable transaction has read, as rows and as intervals of keys: at its commit
//! that must still be so.
//!
//! Notes are added at the end as they come, and put in order now and then: those that touch
//! become one. Where they take more memory than they may, neighbours are joined with all
//! that lies between them, and that is counted: a transaction may then be refused for what it
//! has not read.

use std::ops::{Bound, Range};

/// Stands for all partitions.
pub(crate) const EVERYWHERE: u16 = u16::MAX;
/// Notes that are not in order yet, at most so many or half of those that are.
const LOOSE_MAX: usize = 4096;
/// The last notes, among which a new one is looked for.
const LATEST: usize = 8;
/// What an allocation takes beside its bytes.
const ALLOCATION_BYTES: usize = 16;

/// Something read that must still be so at commit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReadEntry {
    pub storage: u32,
    /// Or [`EVERYWHERE`].
    pub partition: u16,
    /// The table's object id.
    pub table: u32,
    pub what: ReadWhat,
}

/// See [`ReadEntry`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadWhat {
    /// All rows.
    Table,
    /// These.
    Rows { first: u32, last: u32 },
    /// All rows with keys of this index from `lower` on and before `end`.
    Keys {
        index: u32,
        lower: Box<[u8]>,
        /// None: to the last.
        end: Option<Box<[u8]>>,
    },
}

/// The first key after this one.
fn after(key: &[u8]) -> Box<[u8]> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next.into()
}

impl ReadWhat {
    /// The rows with this key.
    pub fn key(index: u32, key: &[u8]) -> Self {
        ReadWhat::Keys {
            index,
            lower: key.into(),
            end: Some(after(key)),
        }
    }

    /// The rows with keys between bounds.
    pub fn keys(index: u32, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Self {
        ReadWhat::Keys {
            index,
            lower: match lower {
                Bound::Included(key) => key.into(),
                Bound::Excluded(key) => after(key),
                Bound::Unbounded => [].into(),
            },
            end: match upper {
                Bound::Included(key) => Some(after(key)),
                Bound::Excluded(key) => Some(key.into()),
                Bound::Unbounded => None,
            },
        }
    }

    /// The rows whose keys begin so.
    pub fn beginning_with(index: u32, beginning: &[u8]) -> Self {
        // The next one that does not: the last byte that can grow does.
        let grows = beginning.iter().rposition(|byte| *byte < u8::MAX);
        let end = grows.map(|at| {
            let mut end = beginning[..=at].to_vec();
            end[at] += 1;
            end.into()
        });
        ReadWhat::Keys {
            index,
            lower: beginning.into(),
            end,
        }
    }

    /// The one key that an interval has, if it has one.
    pub fn only_key<'k>(lower: &'k [u8], end: Option<&[u8]>) -> Option<&'k [u8]> {
        let end = end?;
        (end.len() == lower.len() + 1 && end.starts_with(lower) && end.ends_with(&[0]))
            .then_some(lower)
    }

    fn bytes(&self) -> usize {
        let key = |key: &[u8]| key.len() + ALLOCATION_BYTES;
        let keys = match self {
            ReadWhat::Keys { lower, end, .. } => key(lower) + end.as_deref().map_or(0, key),
            _ => 0,
        };
        size_of::<ReadEntry>() + keys
    }
}

impl ReadEntry {
    /// All of one group may be joined.
    fn group(&self) -> (u32, u16, u8, u32) {
        let (kind, index) = match &self.what {
            ReadWhat::Table => (0, 0),
            ReadWhat::Rows { .. } => (1, 0),
            ReadWhat::Keys { index, .. } => (2, *index),
        };
        (self.storage, self.partition, kind, index)
    }

    fn begin(&self) -> (u32, &[u8]) {
        match &self.what {
            ReadWhat::Table => (0, &[]),
            ReadWhat::Rows { first, .. } => (*first, &[]),
            ReadWhat::Keys { lower, .. } => (0, lower),
        }
    }

    /// Whether the next one of the group, in order, has no gap before it.
    fn touches(&self, next: &ReadEntry) -> bool {
        match (&self.what, &next.what) {
            (ReadWhat::Rows { last, .. }, ReadWhat::Rows { first, .. }) => {
                *first <= last.saturating_add(1)
            }
            (ReadWhat::Keys { end, .. }, ReadWhat::Keys { lower, .. }) => {
                end.as_ref().is_none_or(|end| lower <= end)
            }
            _ => true,
        }
    }

    /// Takes in the next one of the group, and what lies between.
    fn join(&mut self, next: ReadEntry) {
        match (&mut self.what, next.what) {
            (ReadWhat::Rows { last, .. }, ReadWhat::Rows { last: other, .. }) => {
                *last = other.max(*last);
            }
            (ReadWhat::Keys { end, .. }, ReadWhat::Keys { end: other, .. }) => {
                let further = match (end.as_ref(), &other) {
                    (None, _) => false,
                    (Some(_), None) => true,
                    (Some(end), Some(other)) => other > end,
                };
                if further {
                    *end = other;
                }
            }
            _ => {}
        }
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    entries: Vec<ReadEntry>,
    /// So many of them are in order.
    ordered: usize,
    bytes: usize,
    /// How often they were put in order.
    orders: u64,
}

/// How far notes had come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadMark {
    entries: usize,
    orders: u64,
}

impl Reads {
    pub fn iter(&self) -> impl Iterator<Item = &ReadEntry> {
        self.entries.iter()
    }

    /// Notes a read.
    pub fn note(&mut self, entry: ReadEntry) {
        let known = self.entries.iter().rev().take(LATEST).any(|other| {
            let whole = other.what == ReadWhat::Table && other.storage == entry.storage;
            whole && [EVERYWHERE, entry.partition].contains(&other.partition) || *other == entry
        });
        if !known {
            self.bytes += entry.what.bytes();
            self.entries.push(entry);
        }
    }

    /// Where it is now.
    pub fn mark(&self) -> ReadMark {
        ReadMark {
            entries: self.entries.len(),
            orders: self.orders,
        }
    }

    /// Forgets what was noted since, unless it is not to be told apart any more.
    pub fn forget_since(&mut self, mark: ReadMark) {
        if mark.orders == self.orders {
            let forgotten = self.entries.drain(mark.entries..);
            let bytes: usize = forgotten.map(|entry| entry.what.bytes()).sum();
            self.bytes -= bytes;
        }
    }

    /// Forgets what was read of some storages.
    pub fn forget_storages(&mut self, gone: &[u32]) {
        self.order();
        self.entries.retain(|read| !gone.contains(&read.storage));
        self.count();
    }

    /// Between runs: orders what has gathered, if it is much. Whether reads were joined that
    /// do not touch, since all would take more than so many bytes.
    pub fn tidy(&mut self, bytes_max: usize) -> bool {
        let loose = self.entries.len() - self.ordered;
        if loose <= LOOSE_MAX.max(self.ordered / 2) && self.bytes <= bytes_max {
            return false;
        }
        self.order();
        let mut joined = false;
        while self.bytes > bytes_max / 2 && self.join_neighbours() {
            joined = true;
        }
        joined
    }

    /// Puts the notes in order; those that touch become one.
    pub fn order(&mut self) {
        if self.ordered == self.entries.len() {
            return;
        }
        self.orders += 1;
        self.entries
            .sort_by(|a, b| (a.group(), a.begin()).cmp(&(b.group(), b.begin())));
        self.gather(|_, last, next| last.touches(next));
        // A table that was read as a whole in a partition, or everywhere.
        let whole: Vec<(u32, u16)> = self
            .entries
            .iter()
            .filter(|entry| entry.what == ReadWhat::Table)
            .map(|entry| (entry.storage, entry.partition))
            .collect();
        self.entries.retain(|entry| {
            let here = (entry.storage, entry.partition);
            let is_whole = |place| whole.binary_search(&place).is_ok();
            let whole_here = entry.what != ReadWhat::Table && is_whole(here);
            let elsewhere = entry.partition != EVERYWHERE;
            !(whole_here || elsewhere && is_whole((entry.storage, EVERYWHERE)))
        });
        self.count();
    }

    /// Joins each second entry to the one before it. Whether there was one.
    fn join_neighbours(&mut self) -> bool {
        let before = self.entries.len();
        let mut joined = usize::MAX;
        self.gather(|place, _, _| std::mem::replace(&mut joined, place) != place);
        self.count();
        self.entries.len() < before
    }

    /// Joins entries of a group to the last one that is kept, told by its place, where `joins`
    /// says so.
    fn gather(&mut self, mut joins: impl FnMut(usize, &ReadEntry, &ReadEntry) -> bool) {
        let mut kept: Vec<ReadEntry> = Vec::with_capacity(self.entries.len());
        for entry in std::mem::take(&mut self.entries) {
            let place = kept.len();
            match kept.last_mut() {
                Some(last) if last.group() == entry.group() && joins(place, last, &entry) => {
                    last.join(entry);
                }
                _ => kept.push(entry),
            }
        }
        self.entries = kept;
    }

    fn count(&mut self) {
        self.ordered = self.entries.len();
        self.bytes = self.entries.iter().map(|entry| entry.what.bytes()).sum();
    }

    /// The tables that were read, each with its entries. What is noted has to be in order.
    pub fn by_storage(&self) -> impl Iterator<Item = &[ReadEntry]> {
        self.entries.chunk_by(|a, b| a.storage == b.storage)
    }
}

/// The entries of a storage that are about a partition: its own, and those about all.
pub(crate) fn about(entries: &[ReadEntry], partition: u16) -> [&[ReadEntry]; 2] {
    let of = |partition: u16| -> Range<usize> {
        let first = entries.partition_point(|entry| entry.partition < partition);
        let end = entries.partition_point(|entry| entry.partition <= partition);
        first..end
    };
    [&entries[of(partition)], &entries[of(EVERYWHERE)]]
}

/// Intervals of one kind, in order and apart from each other.
pub(crate) fn rows_of(entries: &[ReadEntry]) -> &[ReadEntry] {
    kind(entries, |what| match what {
        ReadWhat::Table => 0,
        ReadWhat::Rows { .. } => 1,
        ReadWhat::Keys { .. } => 2,
    })
}

/// Those of an index.
pub(crate) fn keys_of(entries: &[ReadEntry], of: u32) -> &[ReadEntry] {
    kind(entries, |what| match what {
        ReadWhat::Keys { index, .. } => match index.cmp(&of) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => 1,
            std::cmp::Ordering::Greater => 2,
        },
        _ => 0,
    })
}

fn kind(entries: &[ReadEntry], of: impl Fn(&ReadWhat) -> u8) -> &[ReadEntry] {
    let first = entries.partition_point(|entry| of(&entry.what) < 1);
    let end = entries.partition_point(|entry| of(&entry.what) <= 1);
    &entries[first..end]
}

/// Whether rows from `first` to `last` are in one of these.
pub(crate) fn covers_rows(rows: &[ReadEntry], (from, to): (u32, u32)) -> bool {
    let begins_before =
        |entry: &ReadEntry| matches!(entry.what, ReadWhat::Rows { first, .. } if first <= to);
    let next = rows.partition_point(begins_before);
    rows[..next]
        .last()
        .is_some_and(|entry| matches!(entry.what, ReadWhat::Rows { last, .. } if last >= from))
}

/// Whether a key is in one of these.
pub(crate) fn covers_key(keys: &[ReadEntry], key: &[u8]) -> bool {
    let begins_before =
        |entry: &ReadEntry| matches!(&entry.what, ReadWhat::Keys { lower, .. } if **lower <= *key);
    let next = keys.partition_point(begins_before);
    keys[..next].last().is_some_and(|entry| match &entry.what {
        ReadWhat::Keys { end, .. } => end.as_ref().is_none_or(|end| *key < **end),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(partition: u16, what: ReadWhat) -> ReadEntry {
        ReadEntry {
            storage: 1,
            partition,
            table: 7,
            what,
        }
    }

    #[test]
    fn bounds_are_exact() {
        let keys = |lower, upper| [entry(0, ReadWhat::keys(3, lower, upper))];
        let (b, d) = (&b"b"[..], &b"d"[..]);
        let closed = keys(Bound::Included(b), Bound::Included(d));
        let open = keys(Bound::Excluded(b), Bound::Excluded(d));
        for (key, in_closed, in_open) in [
            (&b"a"[..], false, false),
            (b"b", true, false),
            (b"b\0", true, true),
            (b"c", true, true),
            (b"d", true, false),
            (b"d\0", false, false),
        ] {
            assert_eq!(covers_key(&closed, key), in_closed, "{key:?}");
            assert_eq!(covers_key(&open, key), in_open, "{key:?}");
        }
        assert!(covers_key(&keys(Bound::Unbounded, Bound::Unbounded), b""));
        let ReadWhat::Keys { lower, end, .. } = ReadWhat::key(3, b) else {
            unreachable!()
        };
        assert_eq!(ReadWhat::only_key(&lower, end.as_deref()), Some(b));
    }

    #[test]
    fn a_beginning_has_all_keys_that_begin_so() {
        let covers = |beginning: &[u8], key: &[u8]| {
            let read = entry(0, ReadWhat::beginning_with(3, beginning));
            covers_key(&[read], key)
        };
        for beginning in [&b"ab"[..], b"a\xff", b"\xff\xff", b""] {
            for more in [&b""[..], b"\0", b"\xff\xff\xff", b"x"] {
                assert!(covers(beginning, &[beginning, more].concat()));
            }
        }
        for (beginning, other) in [
            (&b"ab"[..], &b"ac"[..]),
            (b"ab", b"aa\xff"),
            (b"a\xff", b"b"),
            (b"a\xff", b"a\xfe\xff"),
            (b"\xff\xff", b"\xff\xfe"),
        ] {
            assert!(!covers(beginning, other), "{beginning:?} {other:?}");
        }
    }

    #[test]
    fn a_whole_table_takes_in_its_rows_and_keys() {
        let mut reads = Reads::default();
        reads.note(entry(2, ReadWhat::Rows { first: 1, last: 1 }));
        reads.note(entry(2, ReadWhat::key(3, b"k")));
        reads.note(entry(3, ReadWhat::key(3, b"k")));
        reads.note(entry(2, ReadWhat::Table));
        reads.note(entry(2, ReadWhat::key(3, b"l")));
        reads.order();
        assert_eq!(reads.entries.len(), 2);
        reads.note(entry(EVERYWHERE, ReadWhat::Table));
        reads.order();
        assert_eq!(reads.entries, [entry(EVERYWHERE, ReadWhat::Table)]);
    }

    #[test]
    fn what_a_run_has_noted_is_forgotten() {
        let mut reads = Reads::default();
        reads.note(entry(0, ReadWhat::key(3, b"k")));
        let (mark, bytes) = (reads.mark(), reads.bytes);
        reads.note(entry(0, ReadWhat::key(3, b"l")));
        reads.forget_since(mark);
        assert_eq!((reads.entries.len(), reads.bytes), (1, bytes));
        let mark = reads.mark();
        reads.note(entry(0, ReadWhat::key(3, b"l")));
        reads.order();
        reads.forget_since(mark);
        assert_eq!(reads.entries.len(), 2, "not to be told apart any more");
    }

    proptest! {
        /// In order they cover what was noted and nothing else; joined, at least that.
        #[test]
        fn what_is_covered_is_what_was_read(
            notes in prop::collection::vec((0u16..3, 0u32..4, 0u8..40, 0u8..4), 1..60),
            bytes_max in 200usize..6000,
        ) {
            let mut reads = Reads::default();
            for (partition, index, first, length) in &notes {
                let (first, last) = (*first, first + length);
                reads.note(entry(*partition, match index {
                    0 => ReadWhat::Rows { first: first.into(), last: last.into() },
                    index => ReadWhat::keys(
                        *index,
                        Bound::Included(&[first]),
                        Bound::Included(&[last]),
                    ),
                }));
            }
            let was_read = |partition, index, at: u8| notes.iter().any(|(p, i, first, length)| {
                (*p, *i) == (partition, index) && (*first..=first + length).contains(&at)
            });
            let is_covered = |reads: &Reads, partition, index, at: u8| {
                let [here, everywhere] = about(&reads.entries, partition);
                assert!(everywhere.is_empty());
                match index {
                    0 => covers_rows(rows_of(here), (at.into(), at.into())),
                    index => covers_key(keys_of(here, index), &[at]),
                }
            };
            reads.order();
            for (partition, index, at) in
                (0..3).flat_map(|p| (0..4).flat_map(move |i| (0..45).map(move |at| (p, i, at))))
            {
                prop_assert_eq!(
                    is_covered(&reads, partition, index, at),
                    was_read(partition, index, at)
                );
            }
            reads.tidy(bytes_max);
            for (partition, index, first, _) in &notes {
                prop_assert!(is_covered(&reads, *partition, *index, *first));
            }
        }
    }
}
