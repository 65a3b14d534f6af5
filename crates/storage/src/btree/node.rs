//! A node of the B+tree: sorted (key, row) pairs with their common prefix
//! kept once.
//!
//! Front of the data: the prefix if [`PREFIX_INLINE`] cannot hold it, then the
//! suffixes in order without gaps. Back, growing down: a slot for each entry:
//! row, in inner nodes the child, and where suffixes differ in length the
//! suffix's end. Suffixes all of one length (the usual case: integers) need no
//! ends. A leaf keeps its rows as what they are above a base, in as few bytes as
//! that takes: rows that come with ascending keys mostly ascend too, and take
//! one byte. In a leaf that is left full they are what they are above a line. A node takes memory as it fills, up to [`NODE_BYTES`], and beyond
//! only for keys so long that fewer than [`SPLIT_ENTRIES_MIN`] of them fit.

use std::cmp::Ordering;
use std::ops::Range;

use super::layout::{
    Entries, Entry, PREFIX_INLINE, ROW_BYTES, RowForm, VARIABLE, along, bounds_of, bytes_for,
    bytes_of_prefix, highest_in, room_for, slot_bytes,
};

/// Bytes of a full node's data.
pub(super) const NODE_BYTES: usize = 1024;
/// A node with fewer entries grows instead of being split.
pub(super) const SPLIT_ENTRIES_MIN: usize = 4;
pub(super) const NO_NODE: u32 = u32::MAX;
/// Greater than every row: `rank(key, ROW_AFTER_ALL)` is behind all of a key.
pub(super) const ROW_AFTER_ALL: u64 = 1 << 32;

pub(super) struct Node {
    pub data: Box<[u8]>,
    pub prev: u32,
    pub next: u32,
    /// In an inner node the child for what is below all separators; in a leaf
    /// what its slots' rows count from.
    origin: u32,
    count: u16,
    pub prefix_len: u16,
    /// The length of each suffix, or VARIABLE.
    stride: u16,
    suffix_bytes: u16,
    /// 0 for leaves.
    pub level: u8,
    /// Bytes of a row in a slot.
    row_bytes: u8,
    slot_bytes: u8,
    /// Of the line that the rows of a full leaf are above ([`RowForm`]).
    row_step: u8,
    short_prefix: [u8; PREFIX_INLINE],
}

/// The rows of a node.
pub(super) struct Rows<'a> {
    data: &'a [u8],
    slot_bytes: usize,
    row_bytes: usize,
    base: u32,
    step: u8,
}

impl Rows<'_> {
    #[inline]
    pub fn at(&self, index: usize) -> u32 {
        let slot = self.data.len() - (index + 1) * self.slot_bytes;
        // A word that ends with the row: there may be none that begins with it.
        let word_at = (slot + self.row_bytes).wrapping_sub(4);
        let row = match self.data.get(word_at..).and_then(|b| b.first_chunk::<4>()) {
            Some(word) => u32::from_le_bytes(*word) >> (32 - 8 * self.row_bytes),
            None => {
                let bytes = self.data[slot..slot + self.row_bytes].iter().rev();
                bytes.fold(0, |row, &byte| row << 8 | u32::from(byte))
            }
        };
        let line = self.base.wrapping_add(along(index, self.step));
        line.wrapping_add(row)
    }
}

impl Node {
    pub fn empty(level: u8) -> Self {
        Self {
            data: Box::default(),
            prev: NO_NODE,
            next: NO_NODE,
            origin: NO_NODE,
            count: 0,
            prefix_len: 0,
            stride: VARIABLE,
            suffix_bytes: 0,
            level,
            row_bytes: ROW_BYTES,
            slot_bytes: slot_bytes(level, ROW_BYTES, true) as u8,
            row_step: 0,
            short_prefix: [0; PREFIX_INLINE],
        }
    }

    pub fn len(&self) -> usize {
        self.count as usize
    }

    fn slot_bytes(&self) -> usize {
        usize::from(self.slot_bytes)
    }

    fn set_slots(&mut self, stride: u16, rows: RowForm) {
        (self.stride, self.row_bytes, self.row_step) = (stride, rows.bytes, rows.step);
        self.slot_bytes = slot_bytes(self.level, rows.bytes, stride == VARIABLE) as u8;
    }

    /// An inner node's child for what is below all separators.
    pub fn first_child(&self) -> u32 {
        debug_assert!(self.level > 0, "leaves have no children");
        self.origin
    }

    pub fn set_first_child(&mut self, child: u32) {
        debug_assert!(self.level > 0, "leaves have no children");
        self.origin = child;
    }

    /// Data bytes in use.
    pub fn used_bytes(&self) -> usize {
        self.front_bytes() + self.len() * self.slot_bytes()
    }

    fn front_bytes(&self) -> usize {
        self.suffixes_at() + self.suffix_bytes as usize
    }

    /// Where the suffixes begin.
    #[inline]
    fn suffixes_at(&self) -> usize {
        bytes_of_prefix(self.prefix_len as usize)
    }

    #[inline]
    pub fn prefix(&self) -> &[u8] {
        let len = self.prefix_len as usize;
        match len <= PREFIX_INLINE {
            true => &self.short_prefix[..len],
            false => &self.data[..len],
        }
    }

    /// The place for a prefix as long as `prefix_len` says.
    fn prefix_mut(&mut self) -> &mut [u8] {
        let len = self.prefix_len as usize;
        match len <= PREFIX_INLINE {
            true => &mut self.short_prefix[..len],
            false => &mut self.data[..len],
        }
    }

    #[inline]
    fn slot_start(&self, index: usize) -> usize {
        self.data.len() - (index + 1) * self.slot_bytes()
    }

    /// What the rows of slots count from.
    #[inline]
    fn row_base(&self) -> u32 {
        if self.level > 0 { 0 } else { self.origin }
    }

    /// What the row of a slot counts from.
    #[inline]
    fn line_at(&self, index: usize) -> u32 {
        self.row_base().wrapping_add(along(index, self.row_step))
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
        self.rows().at(index)
    }

    /// The rows, for one that reads many.
    #[inline]
    pub fn rows(&self) -> Rows<'_> {
        Rows {
            data: &self.data,
            slot_bytes: self.slot_bytes(),
            row_bytes: usize::from(self.row_bytes),
            base: self.row_base(),
            step: self.row_step,
        }
    }

    /// The child right of separator `index - 1`; 0 is the first.
    #[inline]
    pub fn child(&self, index: usize) -> u32 {
        match index.checked_sub(1) {
            None => self.origin,
            Some(entry) => self.read_u32(self.slot_start(entry) + 4),
        }
    }

    #[inline]
    fn end_of(&self, index: usize) -> usize {
        self.read_u16(self.data.len() - index * self.slot_bytes() - 2)
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

    #[inline(always)]
    pub fn suffix(&self, index: usize) -> &[u8] {
        let base = self.suffixes_at();
        &self.data[base + self.suffix_start(index)..base + self.suffix_start(index + 1)]
    }

    /// How many entries are below (key, row).
    #[inline]
    pub fn rank(&self, key: &[u8], row: u64) -> usize {
        let prefix = self.prefix();
        let Some(rest) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { self.len() };
        };
        if (1..=8).contains(&self.stride) {
            let stride = self.stride as usize;
            return match rest.len() {
                // What all suffixes begin with is below them.
                0 => 0,
                // The bounds of a range: below every suffix that begins with them.
                len if len < stride => self.rank_short(head(rest) << (8 * (stride - len)), 0),
                len if len == stride => self.rank_short(head(rest), row),
                // Behind the suffix that it begins with.
                _ => self.rank_short(head(&rest[..stride]), ROW_AFTER_ALL),
            };
        }
        let rows = self.rows();
        if self.stride == 0 && rest.is_empty() {
            // All of one key.
            return partition(self.len(), |index| u64::from(rows.at(index)) < row);
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            let below = match self.suffix(middle).cmp(rest) {
                Ordering::Less => true,
                Ordering::Equal => u64::from(rows.at(middle)) < row,
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

    /// `rank` where suffixes are integers of one length: compares words.
    fn rank_short(&self, wanted: u64, row: u64) -> usize {
        let stride = self.stride as usize;
        let (base, shift) = (self.suffixes_at(), 64 - 8 * stride);
        let data = &*self.data;
        let word = |index: usize| {
            let at = base + index * stride;
            match data.get(at..).and_then(|b| b.first_chunk::<8>()) {
                Some(word) => u64::from_be_bytes(*word) >> shift,
                None => head(&data[at..at + stride]),
            }
        };
        let (count, rows) = (self.len(), self.rows());
        // Keys that ascend come in behind all.
        if self.next == NO_NODE && count > 0 && word(count - 1) < wanted {
            return count;
        }
        let has_key_below = |index: usize, row: u64| {
            index < count && word(index) == wanted && u64::from(rows.at(index)) < row
        };
        // Words alone decide but for the rows of one key, and mostly there too:
        // a look-up asks for its first row, and an insert is its last.
        if row <= 1 {
            let low = partition(count, |index| word(index) < wanted);
            return low + usize::from(has_key_below(low, row));
        }
        let high = partition(count, |index| word(index) <= wanted);
        let is_rank =
            |rank: usize| rank == 0 || word(rank - 1) != wanted || has_key_below(rank - 1, row);
        if is_rank(high) {
            return high;
        }
        if is_rank(high - 1) {
            return high - 1;
        }
        partition(high - 1, |index| {
            word(index) < wanted || has_key_below(index, row)
        })
    }

    /// Whether entry `index` has this key.
    pub fn has_key(&self, index: usize, key: &[u8]) -> bool {
        key.strip_prefix(self.prefix()) == Some(self.suffix(index))
    }

    /// Inserts where the layout allows it as it is, in larger data if need be;
    /// false if it does not.
    pub fn insert_in_place(&mut self, index: usize, key: &[u8], row: u32, child: u32) -> bool {
        let count = self.len();
        let Some(suffix) = key.strip_prefix(self.prefix()) else {
            return false;
        };
        let (len, slot_bytes) = (suffix.len(), self.slot_bytes());
        if count == 0 || (self.stride != VARIABLE && self.stride as usize != len) {
            return false;
        }
        if self.level == 0 {
            let above = row.wrapping_sub(self.line_at(index));
            // Behind an entry in their midst the line would be another.
            let bent = self.row_step > 0 && index < count;
            if above > highest_in(self.row_bytes) || bent {
                return false;
            }
        }
        let bytes = self.used_bytes() + len + slot_bytes;
        if bytes > self.data.len() {
            if bytes > NODE_BYTES {
                return false;
            }
            self.grow(room_for(bytes));
        }
        let start = self.suffixes_at() + self.suffix_start(index);
        let front = start..self.front_bytes();
        self.data.copy_within(front, start + len);
        self.data[start..][..len].copy_from_slice(suffix);
        let size = self.data.len();
        let slots = size - count * slot_bytes;
        self.data
            .copy_within(slots..size - index * slot_bytes, slots - slot_bytes);
        self.count += 1;
        self.suffix_bytes += len as u16;
        self.write_slot(index, row, child, start + len - self.suffixes_at());
        if self.stride == VARIABLE {
            self.shift_ends(index + 1, len as u16);
        }
        true
    }

    fn grow(&mut self, room: usize) {
        let mut data = vec![0; room].into_boxed_slice();
        let (front, slots) = (self.front_bytes(), self.len() * self.slot_bytes());
        data[..front].copy_from_slice(&self.data[..front]);
        data[room - slots..].copy_from_slice(&self.data[self.data.len() - slots..]);
        self.data = data;
    }

    /// Removes an entry; the prefix stays as it is.
    pub fn remove(&mut self, index: usize) {
        if self.row_step > 0 && index + 1 < self.len() {
            let mut entries = Entries::default();
            self.take_apart(&mut entries);
            self.lay_out(&entries, 0..entries.list.len(), u32::MAX, false);
        }
        let (base, count) = (self.suffixes_at(), self.len());
        let (start, end) = (self.suffix_start(index), self.suffix_start(index + 1));
        let slot_bytes = self.slot_bytes();
        let front = base + end..self.front_bytes();
        self.data.copy_within(front, base + start);
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
        self.write_row(index, row);
        let mut at = self.slot_start(index) + usize::from(self.row_bytes);
        if self.level > 0 {
            self.data[at..at + 4].copy_from_slice(&child.to_le_bytes());
            at += 4;
        }
        if self.stride == VARIABLE {
            self.data[at..at + 2].copy_from_slice(&(end as u16).to_le_bytes());
        }
    }

    #[inline]
    fn write_row(&mut self, index: usize, row: u32) {
        let (at, row_bytes) = (self.slot_start(index), usize::from(self.row_bytes));
        let above = row.wrapping_sub(self.line_at(index)).to_le_bytes();
        self.data[at..at + row_bytes].copy_from_slice(&above[..row_bytes]);
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

    /// Lays out a part of `entries` in this node, replacing what it held;
    /// neighbours and first child stay. `newest` is the row that came last; rows may be kept
    /// by a line if `linear`.
    pub fn lay_out(&mut self, entries: &Entries, part: Range<usize>, newest: u32, linear: bool) {
        let Range { start: first, end } = part;
        let layout = entries.layout(first, end, self.level, linear);
        let room = room_for(layout.bytes);
        if self.data.len() != room {
            self.data = vec![0; room].into_boxed_slice();
        }
        (self.count, self.prefix_len, self.suffix_bytes) = (0, 0, 0);
        self.set_slots(VARIABLE, RowForm::default());
        if first == end {
            return;
        }
        let prefix_len = layout.prefix_len;
        self.prefix_len = prefix_len as u16;
        self.prefix_mut()
            .copy_from_slice(&entries.key(first)[..prefix_len]);
        self.set_slots(layout.stride, layout.rows);
        if self.level == 0 {
            self.origin = layout.rows.base(newest);
        }
        self.count = (end - first) as u16;
        let base = self.suffixes_at();
        let mut at = base;
        for (index, entry) in entries.list[first..end].iter().enumerate() {
            let suffix = &entries.key(first + index)[prefix_len..];
            self.data[at..at + suffix.len()].copy_from_slice(suffix);
            at += suffix.len();
            self.write_slot(index, entry.row, entry.child, at - base);
        }
        self.suffix_bytes = (at - base) as u16;
    }

    /// Whether a leaf would likely take no more than so many data bytes together
    /// with its right neighbour's entries. Neither is empty.
    pub fn joins_within(&self, right: &Node, bytes: usize) -> bool {
        let last = right.suffix(right.len() - 1);
        let low = self.prefix().iter().chain(self.suffix(0));
        let high = right.prefix().iter().chain(last);
        let shared = low.zip(high).take_while(|(a, b)| a == b).count();
        let count = self.len() + right.len();
        let keys: usize = [self, right]
            .iter()
            .map(|node| node.prefix_len as usize * node.len() + node.suffix_bytes as usize)
            .sum();
        let len = |node: &Node| node.prefix_len + node.stride;
        let variable =
            [self, right].iter().any(|node| node.stride == VARIABLE) || len(self) != len(right);
        // The outermost rows of most leaves are their first and last.
        let ends = [self, right].map(|node| [node.row(0), node.row(node.len() - 1)]);
        let (low, high) = bounds_of(ends.into_iter().flatten());
        let slots = count * slot_bytes(0, bytes_for(high - low), variable);
        bytes_of_prefix(shared) + keys - shared * count + slots <= bytes
    }

    /// Whether it might better be merged with a neighbour: it uses less than
    /// `bytes`, and half of what it has is free.
    pub fn is_underfull(&self, bytes: usize) -> bool {
        let used = self.used_bytes();
        self.count == 0 || (used < bytes && used * 2 < self.data.len())
    }

    /// The suffixes, one behind the other.
    pub fn suffixes(&self) -> &[u8] {
        &self.data[self.suffixes_at()..self.front_bytes()]
    }

    /// What follows the row in a slot.
    pub fn behind_row(&self, index: usize) -> &[u8] {
        let slot = self.slot_start(index);
        &self.data[slot + usize::from(self.row_bytes)..slot + self.slot_bytes()]
    }

    /// Count, prefix length, stride and suffix bytes, as in a page.
    pub fn shape(&self) -> [u16; 4] {
        [self.count, self.prefix_len, self.stride, self.suffix_bytes]
    }

    /// A node without data for a page of this shape, in which rows are whole.
    pub fn of_page(level: u8, first_child: u32, shape: [u16; 4]) -> Self {
        let mut node = Self::empty(level);
        node.origin = first_child;
        [node.count, node.prefix_len, _, node.suffix_bytes] = shape;
        node.set_slots(shape[2], RowForm::default());
        node
    }

    /// Bytes of this node's slots in a page.
    pub fn page_slot_bytes(&self) -> usize {
        self.len() * slot_bytes(self.level, ROW_BYTES, self.stride == VARIABLE)
    }

    /// Bytes of this node's entries in a page.
    pub fn page_bytes(&self) -> usize {
        self.prefix_len as usize + self.suffix_bytes as usize + self.page_slot_bytes()
    }

    /// Takes the entries of a page, which are as many and as long as this node
    /// without data says. False if lengths and offsets do not agree, so that an
    /// access could lead outside.
    pub fn take_page(&mut self, prefix: &[u8], suffixes: &[u8], slots: &[u8]) -> bool {
        let page_slots = slots.chunks_exact(self.slot_bytes());
        let whole = |slot: &[u8]| slot.first_chunk().map_or(0, |row| u32::from_le_bytes(*row));
        let rows = page_slots.clone().map(whole);
        if self.level == 0 && self.count > 0 {
            let form = RowForm::of(rows.clone().rev(), true);
            self.set_slots(self.stride, form);
            self.origin = form.base(u32::MAX);
        }
        self.data = vec![0; room_for(self.used_bytes())].into_boxed_slice();
        self.prefix_mut().copy_from_slice(prefix);
        let front = self.suffixes_at()..self.front_bytes();
        self.data[front].copy_from_slice(suffixes);
        // Slots grow down: the last comes first.
        for (index, (slot, row)) in (0..self.len()).rev().zip(page_slots.zip(rows)) {
            let end = self.slot_start(index) + self.slot_bytes();
            let behind = &slot[ROW_BYTES as usize..];
            self.data[end - behind.len()..end].copy_from_slice(behind);
            self.write_row(index, row);
        }
        self.is_sound()
    }

    /// Whether lengths and offsets agree, so that no access leads outside.
    fn is_sound(&self) -> bool {
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

/// The first of `0..size` that is not `below`, as all after it; narrows
/// without a branch to mispredict.
#[inline(always)]
fn partition(mut size: usize, below: impl Fn(usize) -> bool) -> usize {
    let mut low = 0;
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

/// The first eight bytes or fewer as a number that sorts like them.
#[inline]
fn head(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |word, &byte| word << 8 | u64::from(byte))
}
