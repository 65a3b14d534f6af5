//! Before-images, kept only while an open snapshot can see them (design
//! point 2). They lie beside the tuples, in the partition, so that a tuple
//! pays nothing for them while no snapshot is open.
//!
//! The list is in commit order. It serves three readers:
//!
//! * a snapshot that wants the image of a row as it was;
//! * an index scan of a snapshot that looks for rows which have left the index;
//! * the validation of a transaction that wants to know what changed since its snapshot.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hashbrown::HashMap;

use crate::ground::txn_id::Timestamp;

/// A row of the partition: its storage and its number.
pub type StoredRow = (u32, u32);

/// One commit's effect on one row.
#[derive(Debug)]
pub struct Version {
    /// When the change was committed.
    pub committed: Timestamp,
    /// The table's storage and the row.
    pub row: StoredRow,
    /// The tuple before the change; None: there was no row.
    pub before: Option<Arc<[u8]>>,
    /// Indexes no longer lead from the old image's keys to the row.
    pub detached: bool,
    /// The row is gone; its number may be used again when no snapshot sees
    /// this version any more.
    pub frees_row: bool,
}

/// The before-images of a partition.
#[derive(Debug, Default)]
pub struct Versions {
    list: VecDeque<Version>,
    /// The sequence number of the list's front.
    first: u64,
    by_row: HashMap<StoredRow, Sequences>,
    detached: usize,
    bytes: usize,
    /// What all partitions hold, and of these bytes what it knows of.
    held: Arc<HeldBytes>,
    told: usize,
    /// Rows that transactions inserted, as ranges: absent for older snapshots.
    inserted: VecDeque<InsertedRange>,
    /// The same by storage and first row; no two overlap.
    inserted_at: BTreeMap<StoredRow, InsertedRange>,
}

/// The before-images of all partitions, in bytes. A partition tells what has changed when
/// it comes to [`TELL_BYTES`].
#[derive(Debug, Default)]
pub struct HeldBytes(AtomicI64);

impl HeldBytes {
    /// The bytes, less or more by what the partitions have not told.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed).max(0) as u64
    }
}

const TELL_BYTES: usize = 4 << 10;
/// What a range of inserted rows takes, in the list and in the tree.
const INSERTED_BYTES: usize = 3 * size_of::<InsertedRange>();

/// The versions of one row, by their sequence numbers. Most rows have one, which needs no
/// list; the rows that everybody changes have very many.
#[derive(Debug)]
enum Sequences {
    One(u64),
    Many(VecDeque<u64>),
}

impl Sequences {
    fn push(&mut self, sequence: u64) {
        match self {
            Sequences::One(first) => *self = Sequences::Many([*first, sequence].into()),
            Sequences::Many(list) => list.push_back(sequence),
        }
    }

    /// Takes out the oldest; whether it was the last.
    fn pop(&mut self) -> bool {
        match self {
            Sequences::One(_) => true,
            Sequences::Many(list) => {
                list.pop_front();
                list.is_empty()
            }
        }
    }

    fn newest(&self) -> Option<u64> {
        match self {
            Sequences::One(only) => Some(*only),
            Sequences::Many(list) => list.back().copied(),
        }
    }

    /// The oldest that is not `before`.
    fn first_not(&self, before: impl Fn(u64) -> bool) -> Option<u64> {
        match self {
            Sequences::One(only) => (!before(*only)).then_some(*only),
            Sequences::Many(list) => list.get(list.partition_point(|s| before(*s))).copied(),
        }
    }
}

/// Consecutive rows that were inserted by one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InsertedRange {
    /// When the insert was committed.
    pub committed: Timestamp,
    /// The table's storage.
    pub storage: u32,
    /// First row.
    pub first: u32,
    /// Last row.
    pub last: u32,
}

/// What a snapshot sees of a row.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen<'a> {
    /// The row as it is now.
    Current,
    /// An older image.
    Before(&'a Arc<[u8]>),
    /// No row.
    Absent,
}

impl Versions {
    /// Whether there are none: the common case, checked before all else.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.inserted.is_empty()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Records a committed change. Commits come in order.
    pub fn push(&mut self, version: Version) {
        assert!(
            self.list
                .back()
                .is_none_or(|last| last.committed <= version.committed),
            "versions are recorded in commit order"
        );
        let sequence = self.first + self.list.len() as u64;
        self.bytes += Self::size(&version);
        self.detached += usize::from(version.detached);
        self.by_row
            .entry(version.row)
            .and_modify(|sequences| sequences.push(sequence))
            .or_insert(Sequences::One(sequence));
        self.list.push_back(version);
        self.tell();
    }

    /// Charges what is held here to `held` from now on.
    pub fn charged_to(held: Arc<HeldBytes>) -> Self {
        Versions {
            held,
            ..Versions::default()
        }
    }

    /// Tells how many bytes are held, if it is much more or less than was told.
    fn tell(&mut self) {
        if self.bytes.abs_diff(self.told) >= TELL_BYTES || self.is_empty() {
            let change = self.bytes as i64 - self.told as i64;
            self.held.0.fetch_add(change, Ordering::Relaxed);
            self.told = self.bytes;
        }
    }

    /// Records that a commit inserted consecutive rows.
    pub fn push_inserted(&mut self, range: InsertedRange) {
        self.bytes += INSERTED_BYTES;
        self.inserted.push_back(range);
        self.inserted_at.insert((range.storage, range.first), range);
        self.tell();
    }

    /// Ranges of rows inserted after `snapshot`.
    pub fn inserted_since(&self, snapshot: Timestamp) -> impl Iterator<Item = &InsertedRange> {
        let newest_first = self.inserted.iter().rev();
        newest_first.take_while(move |range| range.committed > snapshot)
    }

    /// Whether ranges of inserted rows overlap. They must not: where a range begins within
    /// another, the other's later rows are not found.
    pub fn overlap(&self) -> bool {
        let ranges = self.inserted_at.values();
        let mut pairs = ranges.clone().zip(ranges.skip(1));
        self.inserted.len() != self.inserted_at.len()
            || pairs.any(|(a, b)| a.storage == b.storage && a.last >= b.first)
    }

    fn inserted_after(&self, row: StoredRow, snapshot: Timestamp) -> bool {
        let before = self.inserted_at.range(..=row).next_back();
        before.is_some_and(|((storage, _), range)| {
            *storage == row.0 && row.1 <= range.last && range.committed > snapshot
        })
    }

    /// What a version takes: its place in a list that doubles as it grows, the image as the
    /// allocator rounds it, and its place among the versions by row.
    fn size(version: &Version) -> usize {
        let image = |before: &Arc<[u8]>| 16 + before.len() + before.len() / 8;
        size_of::<Version>() * 3 / 2 + 64 + version.before.as_ref().map_or(0, image)
    }

    /// What a snapshot taken at `snapshot` sees of `row`.
    pub fn seen(&self, row: StoredRow, snapshot: Timestamp) -> Seen<'_> {
        if self.inserted_after(row, snapshot) {
            return Seen::Absent;
        }
        let Some(sequences) = self.by_row.get(&row) else {
            return Seen::Current;
        };
        let at = |sequence: u64| &self.list[(sequence - self.first) as usize];
        match sequences.first_not(|sequence| at(sequence).committed <= snapshot) {
            None => Seen::Current,
            Some(sequence) => match &at(sequence).before {
                Some(before) => Seen::Before(before),
                None => Seen::Absent,
            },
        }
    }

    /// Whether `row` was changed after `snapshot`.
    pub fn changed_since(&self, row: StoredRow, snapshot: Timestamp) -> bool {
        self.inserted_after(row, snapshot)
            || self.by_row.get(&row).is_some_and(|sequences| {
                sequences
                    .newest()
                    .is_some_and(|s| self.list[(s - self.first) as usize].committed > snapshot)
            })
    }

    /// All changes after `snapshot`, newest first.
    pub fn since(&self, snapshot: Timestamp) -> impl Iterator<Item = &Version> {
        self.list
            .iter()
            .rev()
            .take_while(move |version| version.committed > snapshot)
    }

    /// How many versions there have been.
    pub fn sequence(&self) -> u64 {
        self.first + self.list.len() as u64
    }

    /// The changes after `snapshot` that were added when there had been `sequence` versions,
    /// newest first.
    pub fn added_since(
        &self,
        sequence: u64,
        snapshot: Timestamp,
    ) -> impl Iterator<Item = &Version> {
        let added = self.sequence().saturating_sub(sequence);
        self.since(snapshot)
            .take(usize::try_from(added).unwrap_or(usize::MAX))
    }

    /// Rows of a storage that were changed or inserted after `snapshot`, some of them more than once.
    /// `None`: there are more, or what others changed is more, than so many.
    pub fn rows_since(&self, storage: u32, snapshot: Timestamp, most: usize) -> Option<Vec<u32>> {
        let mut rows = Vec::new();
        let mut left = most;
        for range in self.inserted_since(snapshot) {
            let is_its = range.storage == storage;
            let count = if is_its {
                range.last - range.first + 1
            } else {
                1
            };
            left = left.checked_sub(count as usize)?;
            if is_its {
                rows.extend(range.first..=range.last);
            }
        }
        for version in self.since(snapshot) {
            left = left.checked_sub(1)?;
            if version.row.0 == storage {
                rows.push(version.row.1);
            }
        }
        Some(rows)
    }

    /// Whether any row left an index since; if not, a snapshot's index scan
    /// needs only what the index has.
    pub fn any_detached(&self) -> bool {
        self.detached > 0
    }

    /// Drops what no snapshot at or after `horizon` needs, at most so many versions. `freed`
    /// gets the rows whose numbers may be used again. Whether there is more to drop.
    pub fn collect(
        &mut self,
        horizon: Timestamp,
        at_most: usize,
        mut freed: impl FnMut(StoredRow),
    ) -> bool {
        let mut left = at_most;
        while let Some(range) = self
            .inserted
            .pop_front_if(|range| range.committed <= horizon)
        {
            self.inserted_at.remove(&(range.storage, range.first));
            self.bytes -= INSERTED_BYTES;
        }
        while let Some(version) = self.list.front() {
            if version.committed > horizon || left == 0 {
                break;
            }
            left -= 1;
            let Some(version) = self.list.pop_front() else {
                break;
            };
            self.bytes -= Self::size(&version);
            self.detached -= usize::from(version.detached);
            if self
                .by_row
                .get_mut(&version.row)
                .is_some_and(Sequences::pop)
            {
                self.by_row.remove(&version.row);
            }
            self.first += 1;
            if version.frees_row {
                freed(version.row);
            }
        }
        if self.list.capacity() > 1024 && self.list.len() < self.list.capacity() / 4 {
            self.list.shrink_to(self.list.len() * 2);
            self.by_row.shrink_to(self.list.len() * 2);
        }
        self.tell();
        left == 0 && self.list.front().is_some_and(|v| v.committed <= horizon)
    }

    /// An index was added: it leads to no image that is older than itself.
    pub fn detach(&mut self, storage: u32) {
        let older = self.list.iter_mut();
        for version in older.filter(|v| v.row.0 == storage && v.before.is_some()) {
            self.detached += usize::from(!version.detached);
            version.detached = true;
        }
    }

    /// Forgets the versions of a storage that was dropped.
    pub fn forget_storage(&mut self, storage: u32) {
        let kept: Vec<Version> = std::mem::take(&mut self.list)
            .into_iter()
            .filter(|v| v.row.0 != storage)
            .collect();
        let mut inserted = std::mem::take(&mut self.inserted);
        inserted.retain(|range| range.storage != storage);
        let (held, told) = (self.held.clone(), self.told);
        *self = Versions::charged_to(held);
        self.told = told;
        for version in kept {
            self.push(version);
        }
        for range in inserted {
            self.push_inserted(range);
        }
        self.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(committed: u64, row: u32, before: Option<&[u8]>) -> Version {
        Version {
            committed,
            row: (1, row),
            before: before.map(Into::into),
            detached: before.is_none(),
            frees_row: false,
        }
    }

    #[test]
    fn a_snapshot_sees_the_oldest_image_after_it() {
        let mut versions = Versions::default();
        versions.push(version(5, 7, None));
        versions.push(version(8, 7, Some(b"five")));
        versions.push(version(9, 7, Some(b"eight")));
        assert_eq!(versions.seen((1, 7), 4), Seen::Absent);
        assert_eq!(versions.seen((1, 7), 5), Seen::Before(&b"five"[..].into()));
        assert_eq!(versions.seen((1, 7), 8), Seen::Before(&b"eight"[..].into()));
        assert_eq!(versions.seen((1, 7), 9), Seen::Current);
        assert_eq!(versions.seen((1, 8), 0), Seen::Current);
        assert!(versions.changed_since((1, 7), 8));
        assert!(!versions.changed_since((1, 7), 9));
        assert_eq!(versions.since(7).count(), 2);
    }

    #[test]
    fn collecting_keeps_what_an_open_snapshot_needs() {
        let mut versions = Versions::default();
        versions.push(version(5, 7, None));
        let mut gone = version(8, 7, Some(b"five"));
        gone.frees_row = true;
        versions.push(gone);
        let mut freed = Vec::new();
        assert!(!versions.collect(5, 10, |row| freed.push(row)));
        assert_eq!(versions.seen((1, 7), 5), Seen::Before(&b"five"[..].into()));
        assert!(freed.is_empty());
        assert!(!versions.collect(8, 10, |row| freed.push(row)));
        assert_eq!(freed, [(1, 7)]);
        assert!(versions.is_empty());
        assert_eq!(versions.bytes(), 0);
    }

    #[test]
    fn much_is_collected_in_turns_and_the_total_follows() {
        let held = Arc::<HeldBytes>::default();
        let mut versions = Versions::charged_to(held.clone());
        let mut other = Versions::charged_to(held.clone());
        for at in 1..=3000 {
            versions.push(version(at, 7, Some(b"the row that everybody changes")));
            other.push(version(at, at as u32, Some(b"a row")));
        }
        assert!(held.get() as usize + 2 * TELL_BYTES >= versions.bytes() + other.bytes());
        assert!(versions.collect(2999, 2000, |_| {}));
        assert_eq!(
            versions.seen((1, 7), 2999),
            Seen::Before(&b"the row that everybody changes"[..].into())
        );
        assert!(!versions.collect(2999, 2000, |_| {}));
        assert_eq!(versions.since(0).count(), 1);
        versions.forget_storage(1);
        assert!(!other.collect(3000, usize::MAX, |_| {}));
        assert_eq!(held.get(), 0);
    }

    #[test]
    fn ranges_that_overlap_are_told() {
        let range = |storage, first, last| InsertedRange {
            committed: 5,
            storage,
            first,
            last,
        };
        let overlap = |ranges: &[InsertedRange]| {
            let mut versions = Versions::default();
            for range in ranges {
                versions.push_inserted(*range);
            }
            versions.overlap()
        };
        assert!(!overlap(&[range(1, 0, 2), range(1, 3, 3), range(2, 1, 9)]));
        assert!(overlap(&[range(1, 1, 1), range(1, 0, 2)]));
        assert!(overlap(&[range(1, 0, 2), range(1, 2, 4)]));
        assert!(overlap(&[range(1, 0, 0), range(1, 0, 2)]));
    }
}
