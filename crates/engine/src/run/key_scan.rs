//! The rows of a table, as a snapshot sees them, that have some keys in an index.
//!
//! An index leads to rows by their keys of now. A row whose key a later commit has changed, or that
//! is gone, is found among the before-images; one that the snapshot's own transaction has changed
//! among its changes. Between two turns others have the partition, so a row may leave the part of
//! the index that is still to be read, or come into it: each row is given once all the same.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use hashbrown::HashSet;
use thermocline_storage::block_store::BlockPin;
use thermocline_storage::hash_index::HashIndex;
use thermocline_storage::key_hash::key_hash;
use thermocline_storage::row_directory::ColdAddress;

use super::index_keys::{IndexKeys, Wanted};
use super::snapshot::{Held, Snapshot};
use crate::access::retrieval::{keep_read, note_asked_for};
use crate::catalog::{IndexKind, Table};
use crate::ground::error::Result;
use crate::ground::row_id::RowId;
use crate::ground::wait::give_way;
use crate::rows::fetch::{PlannedRead, Span, plan};
use crate::rows::index::Index;
use crate::rows::partition::PartitionState;
use crate::rows::versions::Seen;

/// The first rows of a scan are used, as those of a short statement are, and may become hot. The others
/// are read as by a scan of all: where they are they stay.
const USES_MAX: usize = 64;
/// What is kept of them for that, in bytes.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// Entries of an index looked at in one turn, or keys that are looked for in vain.
const TURN_ENTRIES: usize = 1024;
/// Entries after which whoever waits for the partition gets it, and after which a turn may end: their
/// rows may be long.
const ENTRIES_UNDER_LOCK: usize = 8;

/// How far an index has been read.
#[derive(Debug, Default)]
struct Place {
    /// Which of the keys is next.
    next: usize,
    /// The last entry of it that was read.
    after: Option<(Vec<u8>, u32)>,
    /// Of a hash index: the rows of that key as they were when it was looked for, the next one last.
    rows: Option<Vec<u32>>,
}

impl Place {
    /// Whether an entry has been passed.
    fn is_past(&self, place: usize, key: &[u8], row: u32) -> bool {
        match &self.after {
            _ if place != self.next => place < self.next,
            Some((last, last_row)) => (key, row) <= (last.as_slice(), *last_row),
            None => false,
        }
    }

    /// Calls `each` with the next entries, `most` of them.
    fn walk(
        &mut self,
        index: &Index,
        keys: &IndexKeys,
        partition: u16,
        most: usize,
        each: &mut dyn FnMut(usize, &[u8], u32),
    ) {
        let mut left = most;
        let mut successor = Vec::new();
        while left > 0 && self.next < keys.len() {
            let place = self.next;
            if !keys.may_be_in(place, partition) {
                self.next += 1;
                continue;
            }
            // A key that is not there is looked for, too.
            left -= 1;
            let (low, high) = match (&keys.wanted, index) {
                (Wanted::Points(points), Index::Hash(hash)) => {
                    left += usize::from(self.rows.is_some());
                    self.walk_hash(hash, &points[place], &mut left, each);
                    continue;
                }
                (Wanted::Points(points), Index::BTree(_)) => {
                    successor.clear();
                    successor.extend_from_slice(&points[place]);
                    let high = match thermocline_storage::key::prefix_successor(&mut successor) {
                        true => Bound::Excluded(successor.as_slice()),
                        false => Bound::Unbounded,
                    };
                    (Bound::Included(&*points[place]), high)
                }
                (Wanted::Intervals(intervals), _) => {
                    let (low, high) = &intervals[place];
                    (
                        low.as_ref().map(Vec::as_slice),
                        high.as_ref().map(Vec::as_slice),
                    )
                }
            };
            let Index::BTree(tree) = index else {
                self.next = keys.len();
                return;
            };
            let mut last = None;
            let resume = self.after.as_ref().map(|(key, row)| (key.as_slice(), *row));
            let flow = tree.scan_from(low, high, true, resume, |key, row| {
                each(place, key, row);
                left = left.saturating_sub(1);
                if left > 0 {
                    return ControlFlow::Continue(());
                }
                last = Some((key.to_vec(), row));
                ControlFlow::Break(())
            });
            self.after = last;
            if flow.is_continue() {
                self.next += 1;
            }
        }
    }
}

impl Place {
    fn walk_hash(
        &mut self,
        index: &HashIndex,
        point: &[u8],
        left: &mut usize,
        each: &mut dyn FnMut(usize, &[u8], u32),
    ) {
        let rows = self.rows.get_or_insert_with(|| {
            let mut rows: Vec<u32> = index.candidates(key_hash(point)).collect();
            // It may lead to a row twice.
            rows.sort_unstable_by(|a, b| b.cmp(a));
            rows.dedup();
            rows
        });
        let mut last = None;
        while *left > 0
            && let Some(row) = rows.pop()
        {
            *left -= 1;
            each(self.next, point, row);
            last = Some(row);
        }
        if rows.is_empty() {
            (self.next, self.after, self.rows) = (self.next + 1, None, None);
        } else if let Some(row) = last {
            self.after = Some((point.to_vec(), row));
        }
    }
}

impl Snapshot {
    /// How many entries an index has for these keys by now at most, or some number above `most`.
    ///
    /// # Errors
    /// As a scan's: 72000 where the snapshot is too old, or the table's definition is another by now.
    pub async fn count_keys(&self, table: &Arc<Table>, keys: &IndexKeys, most: u64) -> Result<u64> {
        if keys.unique {
            return Ok(keys.len() as u64);
        }
        let mut count = 0;
        for partition in 0..self.database().partitions() {
            self.wait_for(partition).await?;
            let mut place = Place::default();
            while count <= most && place.next < keys.len() {
                give_way().await;
                let mut state = self.database().all_partitions()[partition as usize].lock();
                state.excuse_panics();
                self.check(table)?;
                let Some(rows) = state.tables.rows(table.def.storage) else {
                    break;
                };
                let index = rows.index(table, keys.index)?;
                place.walk(index, keys, partition, TURN_ENTRIES, &mut |_, _, _| {
                    count += 1
                });
            }
        }
        Ok(count)
    }

    /// The rows of a table in one partition that have one of these keys, in no order.
    #[must_use]
    pub fn scan_keys(&self, table: &Arc<Table>, partition: u16, keys: &Arc<IndexKeys>) -> KeyScan {
        KeyScan {
            snapshot: self.clone(),
            table: Arc::clone(table),
            partition,
            keys: Arc::clone(keys),
            place: Place::default(),
            has_begun: false,
            versions_seen: 0,
            beside: HashSet::new(),
            pending: Vec::new(),
            uses_left: USES_MAX,
        }
    }
}

/// See [`Snapshot::scan_keys`].
#[derive(Debug)]
pub struct KeyScan {
    snapshot: Snapshot,
    table: Arc<Table>,
    partition: u16,
    keys: Arc<IndexKeys>,
    place: Place,
    has_begun: bool,
    /// Before-images of the partition up to here have been looked at.
    versions_seen: u64,
    /// Rows that were given though the index may lead to them, too.
    beside: HashSet<u32>,
    /// What was found beside the table and has not been given.
    pending: Vec<(RowId, Arc<[u8]>)>,
    /// Rows that are still taken for used.
    uses_left: usize,
}

/// What a turn has found and not given.
struct Found {
    /// Evicted rows, and which of the keys led to them.
    cold: Vec<(RowId, ColdAddress, usize)>,
    /// Entries of the index: which of the keys, and the row.
    entries: Vec<(usize, u32)>,
    /// The keys of entries of a B+tree, and where each ends.
    keys: Vec<u8>,
    ends: Vec<usize>,
    /// Hot rows that were used.
    used: Vec<RowId>,
}

impl Found {
    /// The key that an entry was found by.
    fn key<'f>(&'f self, at: usize, wanted: &'f IndexKeys) -> &'f [u8] {
        match (self.ends.get(at), &wanted.wanted) {
            (Some(end), _) => {
                let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
                &self.keys[begin..*end]
            }
            (None, Wanted::Points(points)) => &points[self.entries[at].0],
            (None, Wanted::Intervals(_)) => &[],
        }
    }
}

/// A row that is there is used once more.
fn used(state: &mut PartitionState, table: &Table, row: RowId) {
    let by = state.uses + 1;
    let Some(rows) = state.tables.rows_mut(table.def.storage) else {
        return;
    };
    let word = rows.directory().get(row.row());
    if word.is_cold() {
        let comes_back = word.temperature() > 0 && !word.is_in_columns();
        state.returns += u32::from(comes_back);
        note_asked_for(table, rows, row);
    }
    if word.is_hot() || word.is_cold() {
        rows.used(row.row(), word, by);
        state.uses = by;
    }
}

impl KeyScan {
    /// Calls `each` with the next rows (some hundreds, or what a small part of the memory limit holds);
    /// false at the end. `each` may run under the partition's lock: it must be short and must not call
    /// the database.
    ///
    /// # Errors
    /// As a scan's.
    pub async fn next_rows(&mut self, each: &mut impl FnMut(RowId, &[u8])) -> Result<bool> {
        self.snapshot.database().pulse().beat();
        give_way().await;
        self.snapshot.wait_for(self.partition).await?;
        if self.give_pending(each) {
            return Ok(true);
        }
        let mut led = Vec::new();
        let cold = self.turn(each, &mut led)?;
        if let Some((reads, pin)) = cold {
            let is_hash = self.is_hash();
            let keys = &self.keys;
            let table = &self.table;
            let mut key = Vec::new();
            let (mut kept, mut kept_bytes) = (Vec::new(), 0);
            let uses_left = &mut self.uses_left;
            let each = &mut |read: &PlannedRead, tuple: &[u8]| {
                // What a hash index leads to may have another key, which was not looked for or leads
                // to it, too.
                if is_hash {
                    key.clear();
                    table.index_key_of(keys.index, tuple, &mut key);
                    let place = keys.place_of(&key);
                    if place.is_none_or(|place| led.binary_search(&(read.row, place)).is_err()) {
                        return;
                    }
                }
                if *uses_left > 0 && kept_bytes < KEPT_BYTES_MAX && !read.address.is_in_columns() {
                    *uses_left -= 1;
                    kept_bytes += tuple.len();
                    kept.push((read.row, read.address, tuple.to_vec()));
                }
                each(read.row, tuple);
            };
            let db = self.snapshot.database();
            db.fetcher().read_in_order(&reads, each).await?;
            if !kept.is_empty() {
                let mut state = db.all_partitions()[self.partition as usize].lock();
                if self.snapshot.check(table).is_ok() {
                    for (row, address, tuple) in &kept {
                        used(&mut state, table, *row);
                        keep_read(db, &mut state, table, (*row, *address), tuple);
                    }
                }
            }
            drop(pin);
        }
        Ok(self.place.next < self.keys.len() || !self.pending.is_empty())
    }

    /// Gives of what was found beside the table as much as a turn may; whether there was any.
    fn give_pending(&mut self, each: &mut impl FnMut(RowId, &[u8])) -> bool {
        let (most, mut bytes) = (self.snapshot.chunk_bytes(), 0);
        while bytes < most
            && let Some((row, image)) = self.pending.pop()
        {
            bytes += image.len() as u64;
            each(row, &image);
        }
        bytes > 0
    }

    fn is_hash(&self) -> bool {
        self.table.def.indexes[self.keys.index].kind == IndexKind::Hash
    }

    /// `led` gets the evicted rows that a hash index led to, each with its key, in order.
    fn turn(
        &mut self,
        each: &mut impl FnMut(RowId, &[u8]),
        led: &mut Vec<(RowId, usize)>,
    ) -> Result<Option<(Vec<PlannedRead>, BlockPin)>> {
        let snapshot = self.snapshot.clone();
        let db = snapshot.database();
        let most = snapshot.chunk_bytes();
        let (mut hot_bytes, mut looked_at) = (0, 0);
        let mut cold_span = Span::default();
        let mut found = Found {
            cold: Vec::new(),
            entries: Vec::new(),
            keys: Vec::new(),
            ends: Vec::new(),
            used: Vec::new(),
        };
        let mut state = db.all_partitions()[self.partition as usize].lock();
        state.excuse_panics();
        snapshot.check(&self.table)?;
        loop {
            self.find_beside(&state, snapshot.held());
            if !self.entries(&state, &mut found)? {
                break;
            }
            looked_at += found.entries.len().max(ENTRIES_UNDER_LOCK);
            hot_bytes += self.give(&state, &mut found, each, &mut cold_span);
            let is_full = hot_bytes + cold_span.bytes >= most || looked_at >= TURN_ENTRIES;
            if is_full || self.place.next >= self.keys.len() {
                break;
            }
            // Where evicted tuples lie is known as long as the lock is held.
            if found.cold.is_empty() {
                state.let_others();
                snapshot.check(&self.table)?;
            }
        }
        if self.is_hash() {
            led.extend(found.cold.iter().map(|(row, _, place)| (*row, *place)));
            led.sort_unstable();
        }
        found
            .cold
            .sort_unstable_by_key(|(row, address, _)| (address.block, address.slot, row.row()));
        found.cold.dedup_by_key(|(row, ..)| *row);
        let cold = found.cold.iter().map(|(row, address, _)| (*row, *address));
        let planned = (!found.cold.is_empty()).then(|| plan(db.blocks(), cold));
        let planned = planned.transpose()?;
        drop(state);
        if !found.used.is_empty() {
            let mut state = db.all_partitions()[self.partition as usize].lock();
            for row in found.used {
                used(&mut state, &self.table, row);
            }
        }
        Ok(planned)
    }

    /// Takes the next entries of the index. False: the table has no rows here.
    fn entries(&mut self, state: &PartitionState, found: &mut Found) -> Result<bool> {
        found.entries.clear();
        found.keys.clear();
        found.ends.clear();
        let Some(rows) = state.tables.rows(self.table.def.storage) else {
            self.place.next = self.keys.len();
            return Ok(false);
        };
        let index = rows.index(&self.table, self.keys.index)?;
        let of = self.partition;
        let is_hash = matches!(index, Index::Hash(_));
        self.place.walk(
            index,
            &self.keys,
            of,
            ENTRIES_UNDER_LOCK,
            &mut |place, key, row| {
                found.entries.push((place, row));
                if !is_hash {
                    found.keys.extend_from_slice(key);
                    found.ends.push(found.keys.len());
                }
            },
        );
        Ok(true)
    }

    /// Gives the rows of entries that are in memory, and notes the others. Returns the bytes given.
    fn give(
        &mut self,
        state: &PartitionState,
        found: &mut Found,
        each: &mut impl FnMut(RowId, &[u8]),
        cold_span: &mut Span,
    ) -> u64 {
        let held = self.snapshot.held();
        let storage = self.table.def.storage;
        let Some(rows) = state.tables.rows(storage) else {
            return 0;
        };
        let mut bytes = 0;
        let (mut cold_rows, mut used) = (Vec::new(), Vec::new());
        let is_hash = self.is_hash();
        let mut actual = Vec::new();
        let mut has_key = |tuple: &[u8], key: &[u8]| {
            actual.clear();
            self.table.index_key_of(self.keys.index, tuple, &mut actual);
            actual == key
        };
        for (at, (place, number)) in found.entries.iter().enumerate() {
            let (place, number) = (*place, *number);
            let key = found.key(at, &self.keys);
            let row = RowId::new(self.partition, number);
            if self.beside.contains(&number) || held.has_changed(storage, row) {
                continue;
            }
            match held.beside(state, storage, row) {
                Seen::Current => {}
                Seen::Absent => continue,
                Seen::Before(image) => {
                    if has_key(image, key) {
                        bytes += image.len() as u64;
                        each(row, image);
                    }
                    continue;
                }
            }
            let word = rows.directory().get(number);
            if word.is_uncommitted() && !held.has_inserted(state, (storage, number)) {
                continue;
            }
            if let Some(hot) = word.as_hot() {
                let tuple = rows.heap().payload(hot.pointer());
                if !is_hash || has_key(tuple, key) {
                    bytes += tuple.len() as u64;
                    each(row, tuple);
                    if self.uses_left > 0 {
                        self.uses_left -= 1;
                        used.push(row);
                    }
                }
            } else if let Some(cold) = word.as_cold() {
                let may_be = !is_hash
                    || self
                        .table
                        .may_be_key_of(self.keys.index, key_hash(key), cold);
                if may_be {
                    let address = cold.address();
                    cold_span.add(
                        address,
                        self.snapshot.database().block_bytes_of_long(address),
                    );
                    cold_rows.push((row, address, place));
                }
            }
        }
        found.cold.append(&mut cold_rows);
        found.used.append(&mut used);
        bytes
    }

    /// Finds the rows that the index does not lead to from the keys that the snapshot sees.
    fn find_beside(&mut self, state: &PartitionState, held: &Held) {
        let storage = self.table.def.storage;
        let mut key = Vec::new();
        if !self.has_begun {
            self.has_begun = true;
            let own = held.own_changes().into_iter().flatten();
            for ((of, row), new) in own {
                let Some(new) = new else { continue };
                if *of == storage && row.partition() == self.partition {
                    key.clear();
                    self.table.index_key_of(self.keys.index, new, &mut key);
                    if self.keys.place_of(&key).is_some() {
                        self.pending.push((*row, Arc::clone(new)));
                    }
                }
            }
        }
        let since = std::mem::replace(&mut self.versions_seen, state.versions.sequence());
        if !state.versions.any_detached() {
            return;
        }
        for version in state.versions.added_since(since, held.timestamp()) {
            let number = version.row.1;
            let row = RowId::new(self.partition, number);
            if version.row.0 != storage
                || !version.detached
                || self.beside.contains(&number)
                || held.has_changed(storage, row)
            {
                continue;
            }
            if let Seen::Before(image) = state.versions.seen(version.row, held.timestamp()) {
                key.clear();
                self.table.index_key_of(self.keys.index, image, &mut key);
                // The index has led to it if that place of it has been read.
                let place = self.keys.place_of(&key);
                if place.is_some_and(|place| !self.place.is_past(place, &key, number)) {
                    self.beside.insert(number);
                    self.pending.push((row, Arc::clone(image)));
                }
            }
        }
    }
}
