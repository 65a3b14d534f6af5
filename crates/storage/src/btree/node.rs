//! A node of the B+tree: sorted (key, row) pairs with their common prefix
//! kept once.
//!
//! Front of the data: the prefix, then the suffixes in order without gaps. Back,
//! growing down: a slot for each entry: row, in inner nodes the child, and where
//! suffixes differ in length the suffix's end. Suffixes all of one length (the
//! usual case: integers) need no ends. A node takes memory as it fills,
//! up to [`NODE_BYTES`], and beyond only for keys so long that fewer than
//! [`SPLIT_ENTRIES_MIN`] of them fit.

use std::cmp::Ordering;

/// Bytes of a full node's data.
pub(super) const NODE_BYTES: usize = 1024;
/// A node with fewer entries grows instead of being split.
pub(super) const SPLIT_ENTRIES_MIN: usize = 4;
pub(super) const NO_NODE: u32 = u32::MAX;
/// Greater than every row: `rank(key, ROW_AFTER_ALL)` is behind all of a key.
pub(super) const ROW_AFTER_ALL: u64 = 1 << 32;
const VARIABLE: u16 = u16::MAX;
const NODE_BYTES_FIRST: usize = 64;

pub(super) struct Node {
    pub data: Box<[u8]>,
    pub prev: u32,
    pub next: u32,
    /// In an inner node the child for what is below all separators.
    pub first_child: u32,
    pub count: u16,
    pub prefix_len: u16,
    /// The length of each suffix, or VARIABLE.
    pub stride: u16,
    pub suffix_bytes: u16,
    /// 0 for leaves.
    pub level: u8,
}

/// An entry taken out of its node: where its key is in a buffer beside.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub key_start: u32,
    pub key_len: u32,
    pub row: u32,
    pub child: u32,
}

/// Entries taken out of nodes, to be laid out anew.
#[derive(Default)]
pub(super) struct Entries {
    pub keys: Vec<u8>,
    pub list: Vec<Entry>,
}

impl Entries {
    pub fn key(&self, index: usize) -> &[u8] {
        let entry = &self.list[index];
        &self.keys[entry.key_start as usize..][..entry.key_len as usize]
    }

    pub fn insert(&mut self, index: usize, key: &[u8], row: u32, child: u32) {
        let entry = Entry {
            key_start: self.keys.len() as u32,
            key_len: key.len() as u32,
            row,
            child,
        };
        self.keys.extend_from_slice(key);
        self.list.insert(index, entry);
    }

    pub fn clear(&mut self) {
        self.keys.clear();
        self.list.clear();
    }

    /// Length of the prefix that all of `first..end` share.
    fn common_prefix(&self, first: usize, end: usize) -> usize {
        let (low, high) = (self.key(first), self.key(end - 1));
        low.iter().zip(high).take_while(|(a, b)| a == b).count()
    }

    fn common_len(&self, first: usize, end: usize) -> Option<usize> {
        let len = self.list[first].key_len;
        let same = self.list[first..end].iter().all(|e| e.key_len == len);
        same.then_some(len as usize)
    }

    /// Data bytes that a node of `first..end` takes.
    pub fn node_bytes(&self, first: usize, end: usize, level: u8) -> usize {
        if first == end {
            return 0;
        }
        let prefix_len = self.common_prefix(first, end);
        let keys: usize = self.list[first..end]
            .iter()
            .map(|e| e.key_len as usize)
            .sum();
        let suffixes = keys - prefix_len * (end - first);
        let variable = self.common_len(first, end).is_none();
        prefix_len + suffixes + (end - first) * slot_bytes(level, variable)
    }
}

fn slot_bytes(level: u8, variable: bool) -> usize {
    4 + if level > 0 { 4 } else { 0 } + if variable { 2 } else { 0 }
}

impl Node {
    pub fn empty(level: u8) -> Self {
        Self {
            data: Box::default(),
            prev: NO_NODE,
            next: NO_NODE,
            first_child: NO_NODE,
            count: 0,
            prefix_len: 0,
            stride: VARIABLE,
            suffix_bytes: 0,
            level,
        }
    }

    pub fn len(&self) -> usize {
        self.count as usize
    }

    pub fn slot_bytes(&self) -> usize {
        slot_bytes(self.level, self.stride == VARIABLE)
    }

    /// Data bytes in use.
    pub fn used_bytes(&self) -> usize {
        self.front_bytes() + self.len() * self.slot_bytes()
    }

    pub fn front_bytes(&self) -> usize {
        self.prefix_len as usize + self.suffix_bytes as usize
    }

    pub fn prefix(&self) -> &[u8] {
        &self.data[..self.prefix_len as usize]
    }

    #[inline]
    fn slot_start(&self, index: usize) -> usize {
        self.data.len() - (index + 1) * self.slot_bytes()
    }

    #[inline]
    fn read_u32(&self, at: usize) -> u32 {
        let bytes = self.data[at..].first_chunk::<4>();
        u32::from_le_bytes(*bytes.expect("a slot lies inside of its node"))
    }

    #[inline]
    fn read_u16(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes([self.data[at], self.data[at + 1]]))
    }

    #[inline]
    pub fn row(&self, index: usize) -> u32 {
        self.read_u32(self.slot_start(index))
    }

    /// The child right of separator `index - 1`; 0 is the first.
    #[inline]
    pub fn child(&self, index: usize) -> u32 {
        match index.checked_sub(1) {
            None => self.first_child,
            Some(entry) => self.read_u32(self.slot_start(entry) + 4),
        }
    }

    #[inline]
    pub fn end_of(&self, index: usize) -> usize {
        let start = self.slot_start(index);
        self.read_u16(start + if self.level > 0 { 8 } else { 4 })
    }

    /// Where suffix `index` begins, from the prefix's end.
    #[inline]
    fn suffix_start(&self, index: usize) -> usize {
        match (self.stride, index) {
            (_, 0) => 0,
            (VARIABLE, _) => self.end_of(index - 1),
            (stride, _) => stride as usize * index,
        }
    }

    #[inline]
    pub fn suffix(&self, index: usize) -> &[u8] {
        let base = self.prefix_len as usize;
        &self.data[base + self.suffix_start(index)..base + self.suffix_start(index + 1)]
    }

    /// How many entries are below (key, row).
    #[inline]
    pub fn rank(&self, key: &[u8], row: u64) -> usize {
        let prefix = self.prefix();
        let Some(rest) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { self.len() };
        };
        if (1..=8).contains(&self.stride) && rest.len() == self.stride as usize {
            return self.rank_short(head(rest), row);
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            let below = match self.suffix(middle).cmp(rest) {
                Ordering::Less => true,
                Ordering::Equal => u64::from(self.row(middle)) < row,
                Ordering::Greater => false,
            };
            if below {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// `rank` where suffixes are integers of one length: compares words, and
    /// narrows without a branch to mispredict.
    fn rank_short(&self, wanted: u64, row: u64) -> usize {
        let stride = self.stride as usize;
        let base = self.prefix_len as usize;
        let slot_bytes = self.slot_bytes();
        let below = |index: usize| {
            let at = base + index * stride;
            let found = match self.data.get(at..at + 8).and_then(|b| b.first_chunk::<8>()) {
                Some(word) => u64::from_be_bytes(*word) >> (64 - 8 * stride),
                None => head(&self.data[at..at + stride]),
            };
            if found != wanted {
                return found < wanted;
            }
            let slot = self.data.len() - (index + 1) * slot_bytes;
            u64::from(self.read_u32(slot)) < row
        };
        let mut low = 0;
        let mut size = self.len();
        while size > 1 {
            let half = size / 2;
            low = if below(low + half - 1) {
                low + half
            } else {
                low
            };
            size -= half;
        }
        low + usize::from(size == 1 && below(low))
    }

    /// Whether entry `index` has this key.
    pub fn has_key(&self, index: usize, key: &[u8]) -> bool {
        key.strip_prefix(self.prefix()) == Some(self.suffix(index))
    }

    /// Inserts where the layout allows it as it is; false if it does not.
    pub fn insert_in_place(&mut self, index: usize, key: &[u8], row: u32, child: u32) -> bool {
        let (prefix_len, count) = (self.prefix_len as usize, self.len());
        let Some(suffix) = key.strip_prefix(self.prefix()) else {
            return false;
        };
        let (len, slot_bytes) = (suffix.len(), self.slot_bytes());
        if count == 0 || (self.stride != VARIABLE && self.stride as usize != len) {
            return false;
        }
        if self.used_bytes() + len + slot_bytes > self.data.len() {
            return false;
        }
        let start = self.suffix_start(index);
        let front = prefix_len + start..prefix_len + self.suffix_bytes as usize;
        self.data.copy_within(front, prefix_len + start + len);
        self.data[prefix_len + start..][..len].copy_from_slice(suffix);
        let size = self.data.len();
        let slots = size - count * slot_bytes;
        self.data
            .copy_within(slots..size - index * slot_bytes, slots - slot_bytes);
        self.count += 1;
        self.suffix_bytes += len as u16;
        self.write_slot(index, row, child, start + len);
        if self.stride == VARIABLE {
            self.shift_ends(index + 1, len as u16);
        }
        true
    }

    /// Removes an entry; the prefix stays as it is.
    pub fn remove(&mut self, index: usize) {
        let (prefix_len, count) = (self.prefix_len as usize, self.len());
        let (start, end) = (self.suffix_start(index), self.suffix_start(index + 1));
        let slot_bytes = self.slot_bytes();
        let front = prefix_len + end..prefix_len + self.suffix_bytes as usize;
        self.data.copy_within(front, prefix_len + start);
        let size = self.data.len();
        let slots = size - count * slot_bytes;
        let back = slots..size - (index + 1) * slot_bytes;
        self.data.copy_within(back, slots + slot_bytes);
        self.count -= 1;
        let len = (end - start) as u16;
        self.suffix_bytes -= len;
        if self.stride == VARIABLE {
            self.shift_ends(index, len.wrapping_neg());
        }
    }

    fn shift_ends(&mut self, first: usize, by: u16) {
        for index in first..self.len() {
            let at = self.slot_start(index) + self.slot_bytes() - 2;
            let end = (self.read_u16(at) as u16).wrapping_add(by);
            self.data[at..at + 2].copy_from_slice(&end.to_le_bytes());
        }
    }

    fn write_slot(&mut self, index: usize, row: u32, child: u32, end: usize) {
        let mut at = self.slot_start(index);
        self.data[at..at + 4].copy_from_slice(&row.to_le_bytes());
        at += 4;
        if self.level > 0 {
            self.data[at..at + 4].copy_from_slice(&child.to_le_bytes());
            at += 4;
        }
        if self.stride == VARIABLE {
            self.data[at..at + 2].copy_from_slice(&(end as u16).to_le_bytes());
        }
    }

    /// Appends this node's entries to `entries`.
    pub fn take_apart(&self, entries: &mut Entries) {
        for index in 0..self.len() {
            let key_start = entries.keys.len();
            entries.keys.extend_from_slice(self.prefix());
            entries.keys.extend_from_slice(self.suffix(index));
            entries.list.push(Entry {
                key_start: key_start as u32,
                key_len: (entries.keys.len() - key_start) as u32,
                row: self.row(index),
                child: if self.level > 0 {
                    self.child(index + 1)
                } else {
                    NO_NODE
                },
            });
        }
    }

    /// Lays out `first..end` of `entries` in this node, replacing what it held;
    /// neighbours and first child stay.
    pub fn lay_out(&mut self, entries: &Entries, first: usize, end: usize) {
        let bytes = entries.node_bytes(first, end, self.level);
        let room = match bytes {
            0 => 0,
            _ => bytes.next_power_of_two().max(NODE_BYTES_FIRST),
        };
        if self.data.len() != room {
            self.data = vec![0; room].into_boxed_slice();
        }
        (self.count, self.prefix_len, self.suffix_bytes) = (0, 0, 0);
        self.stride = VARIABLE;
        if first == end {
            return;
        }
        let prefix_len = entries.common_prefix(first, end);
        if let Some(len) = entries.common_len(first, end) {
            self.stride = (len - prefix_len) as u16;
        }
        self.data[..prefix_len].copy_from_slice(&entries.key(first)[..prefix_len]);
        self.prefix_len = prefix_len as u16;
        self.count = (end - first) as u16;
        let mut at = prefix_len;
        for (index, entry) in entries.list[first..end].iter().enumerate() {
            let suffix = &entries.key(first + index)[prefix_len..];
            self.data[at..at + suffix.len()].copy_from_slice(suffix);
            at += suffix.len();
            self.write_slot(index, entry.row, entry.child, at - prefix_len);
        }
        self.suffix_bytes = (at - prefix_len) as u16;
    }

    /// Whether lengths and offsets agree, so that no access leads outside.
    pub fn is_sound(&self) -> bool {
        if self.used_bytes() > self.data.len() {
            return false;
        }
        let suffix_bytes = self.suffix_bytes as usize;
        if self.stride != VARIABLE {
            return self.stride as usize * self.len() == suffix_bytes;
        }
        let mut end = 0;
        (0..self.len()).all(|index| {
            let before = std::mem::replace(&mut end, self.end_of(index));
            before <= end
        }) && end == suffix_bytes
    }
}

/// The first eight bytes or fewer as a number that sorts like them.
#[inline]
fn head(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |word, &byte| word << 8 | u64::from(byte))
}
