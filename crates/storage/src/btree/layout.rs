//! How entries are laid out in a node of the B+tree: what they have in common,
//! what that leaves of each, and how much data it takes.

/// In place of the length of all suffixes, where they differ.
pub(super) const VARIABLE: u16 = u16::MAX;
/// Bytes of a row in inner nodes and in pages.
pub(super) const ROW_BYTES: u8 = 4;
/// A prefix as short as this is kept in the node: beside 256 suffixes and rows
/// of a byte it would need data of the allocator's next size.
pub(super) const PREFIX_INLINE: usize = 8;
const NODE_BYTES_FIRST: usize = 64;

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

    /// How a node of `first..end` would be laid out, its rows by a line where they may and
    /// that takes less.
    pub fn layout(&self, first: usize, end: usize, level: u8, linear: bool) -> Layout {
        if first == end {
            return Layout::default();
        }
        let prefix_len = self.common_prefix(first, end);
        let len = self.list[first].key_len;
        let (mut keys, mut variable) = (0, false);
        for entry in &self.list[first..end] {
            keys += entry.key_len as usize;
            variable |= entry.key_len != len;
        }
        let rows = match level {
            0 => RowForm::of(self.list[first..end].iter().map(|entry| entry.row), linear),
            _ => RowForm::default(),
        };
        let suffixes = keys - prefix_len * (end - first);
        let slots = (end - first) * slot_bytes(level, rows.bytes, variable);
        Layout {
            prefix_len,
            stride: match variable {
                true => VARIABLE,
                false => (len as usize - prefix_len) as u16,
            },
            rows,
            bytes: bytes_of_prefix(prefix_len) + suffixes + slots,
        }
    }

    /// Data bytes that a node of `first..end` takes.
    pub fn node_bytes(&self, first: usize, end: usize, level: u8) -> usize {
        self.layout(first, end, level, false).bytes
    }
}

/// How entries are laid out in a node.
#[derive(Default)]
pub(super) struct Layout {
    pub prefix_len: usize,
    pub stride: u16,
    pub rows: RowForm,
    /// Of the data.
    pub bytes: usize,
}

impl Layout {
    /// Of `bytes` those for a leaf's entry with a key of this length.
    pub fn bytes_of_entry(&self, key_len: usize) -> usize {
        key_len - self.prefix_len + slot_bytes(0, self.rows.bytes, self.stride == VARIABLE)
    }
}

/// How the rows of a node are kept: each as what it is above a base and, in leaves that are
/// left full, above a line from the first to the last. Where several clients insert, the
/// rows of ascending keys lie some apart.
#[derive(Clone, Copy)]
pub(super) struct RowForm {
    /// The lowest and the highest row above the line.
    low: i64,
    high: i64,
    /// Of a row in a slot.
    pub bytes: u8,
    /// By how much the line ascends from row to row, times 32; 0: there is none.
    pub step: u8,
}

impl Default for RowForm {
    fn default() -> Self {
        Self {
            low: 0,
            high: i64::from(u32::MAX),
            bytes: ROW_BYTES,
            step: 0,
        }
    }
}

impl RowForm {
    /// The narrowest form of these rows, by a line only if they may be.
    pub fn of(
        rows: impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + Clone,
        linear: bool,
    ) -> Self {
        let level = Self::along(rows.clone(), 0);
        if level.bytes == 1 || !linear {
            return level;
        }
        let ends = (rows.clone().next(), rows.clone().next_back());
        let (Some(first), Some(last)) = ends else {
            return level;
        };
        let entries = (rows.len() - 1).max(1) as u64;
        let step = (u64::from(last.saturating_sub(first)) << STEP_SHIFT) / entries;
        let Ok(step) = u8::try_from(step) else {
            return level;
        };
        let line = Self::along(rows, step);
        if line.bytes < level.bytes {
            line
        } else {
            level
        }
    }

    fn along(rows: impl Iterator<Item = u32>, step: u8) -> Self {
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for (index, row) in rows.enumerate() {
            let above = i64::from(row) - i64::from(along(index, step));
            (low, high) = (low.min(above), high.max(above));
        }
        let spread = u32::try_from(high.saturating_sub(low).max(0)).unwrap_or(u32::MAX);
        let bytes = bytes_for(spread);
        Self {
            low,
            high,
            bytes,
            step,
        }
    }

    /// What the rows count from; `newest` is the one that came last.
    pub fn base(&self, newest: u32) -> u32 {
        match self.step {
            0 => row_base(self.low as u32, self.high as u32, self.bytes, newest),
            // It may be below the first row there is: sums wrap.
            _ => self.low as u32,
        }
    }
}

const STEP_SHIFT: u32 = 5;

/// How far the line has ascended at an entry.
#[inline(always)]
pub(super) fn along(index: usize, step: u8) -> u32 {
    (index as u32 * u32::from(step)) >> STEP_SHIFT
}

/// What a leaf's rows, `low` to `high`, count from. The room that `row_bytes`
/// leaves goes where `newest`, the row that came last, says that rows will come:
/// a leaf that had none there would be laid out again for each.
fn row_base(low: u32, high: u32, row_bytes: u8, newest: u32) -> u32 {
    if row_bytes == ROW_BYTES {
        return 0;
    }
    let spare = highest_in(row_bytes) - high.saturating_sub(low);
    // Some for the other side, where it does not cost a leaf full of ascending
    // rows its end.
    let least = if row_bytes == 1 { 0 } else { spare / 8 };
    let below = match newest {
        newest if newest >= high => least,
        newest if newest <= low => spare - least,
        _ => spare / 2,
    };
    low.saturating_sub(below)
}

/// The lowest and the highest row.
pub(super) fn bounds_of(rows: impl Iterator<Item = u32>) -> (u32, u32) {
    rows.fold((u32::MAX, 0), |(low, high), row| {
        (low.min(row), high.max(row))
    })
}

pub(super) fn slot_bytes(level: u8, row_bytes: u8, variable: bool) -> usize {
    usize::from(row_bytes) + if level > 0 { 4 } else { 0 } + if variable { 2 } else { 0 }
}

/// Bytes that a row so far above its leaf's base takes.
pub(super) fn bytes_for(row: u32) -> u8 {
    (row.checked_ilog2().unwrap_or(0) / 8 + 1) as u8
}

pub(super) fn highest_in(row_bytes: u8) -> u32 {
    u32::MAX >> (32 - 8 * u32::from(row_bytes))
}

/// Data bytes of a prefix.
#[inline]
pub(super) fn bytes_of_prefix(prefix_len: usize) -> usize {
    if prefix_len <= PREFIX_INLINE {
        0
    } else {
        prefix_len
    }
}

/// The data of a node that needs so many bytes: four sizes between a power of
/// two and the next, which are what the allocator has.
pub(super) fn room_for(bytes: usize) -> usize {
    if bytes <= NODE_BYTES_FIRST {
        return if bytes == 0 { 0 } else { NODE_BYTES_FIRST };
    }
    bytes.next_multiple_of(bytes.next_power_of_two() / 8)
}
