//! A cache line of the hash index: up to ten entries of six bytes.
//!
//! An entry is a row id and what is kept of its hash: `tag` holds, from the top,
//! 8 bits that choose the home line within a group (`spread`). Then comes the *window*:
//! the hash bits that follow those implied by the group's number, ended by a 1
//! and zeros. Last come the row id's high bits. The row id's low 16 bits lie beside.
//! When a group splits, the window's first bit is used up and the window moves up
//! by one: an old entry knows fewer bits than a new one, and the 1 says how many.
//! Row ids beyond 2^16 take bits from the windows of their line.
//!
//! Unsafe: one call of a function that needs SSE2, which makes a look-up a sixth
//! faster (26 ns for 31 at a million entries) than what the compiler does alone. Also
//! the promise that a line of zeros is one.
#![allow(unsafe_code)]

use crate::chunk::Plain;

/// Entries in a line.
pub(super) const LINE_ENTRIES: usize = 10;
/// Bytes of a line in memory and in a snapshot.
pub(super) const LINE_BYTES: usize = 64;
/// Bits that windows and high bits of row ids share.
const FIELD_BITS: u32 = 24;
const FIELD_MASK: u32 = (1 << FIELD_BITS) - 1;
const ROW_SHIFT_MIN: u8 = 0;
const ROW_SHIFT_MAX: u8 = 16;

/// The bit of a spread in a line's small filters.
#[inline(always)]
pub(super) fn filter_bit(spread: u8) -> u8 {
    1 << (spread & 7)
}

/// What is kept of a hash: the spread and the window at some level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    pub spread: u8,
    /// 24 bits: hash bits from the top, a 1, zeros.
    pub field: u32,
}

/// Hash bits `level..` as a look-up compares them: spread above, window below.
#[inline(always)]
pub(super) fn probe_of(hash: u64, level: u32) -> u32 {
    (hash as u32) << FIELD_BITS | (hash << level >> (64 - FIELD_BITS)) as u32
}

impl Window {
    /// All that a new entry can know at `level`.
    #[inline]
    pub fn new(hash: u64, level: u32) -> Self {
        let field = probe_of(hash, level) & FIELD_MASK;
        let end = 1 << ROW_SHIFT_MIN;
        Self {
            spread: hash as u8,
            field: field & !(end - 1) | end,
        }
    }

    /// The window from a hash of which only the first `known_bits` are known.
    pub fn of_known(prefix: u64, known_bits: u32, spread: u8, level: u32) -> Self {
        let valid = (known_bits - level).min(FIELD_BITS - 1 - u32::from(ROW_SHIFT_MIN));
        let end = 1 << (FIELD_BITS - 1 - valid);
        let field = (prefix << level >> (64 - FIELD_BITS)) as u32;
        Self {
            spread,
            field: field & !(end - 1) | end,
        }
    }

    /// Number of hash bits that are known.
    pub fn valid_bits(self) -> u32 {
        FIELD_BITS - 1 - self.field.trailing_zeros()
    }

    /// The known bits at the top of a word.
    pub fn known(self) -> u64 {
        u64::from(self.field & (self.field - 1)) << (64 - FIELD_BITS)
    }

    /// Uses up the first bit, if one is known.
    #[inline]
    pub fn split(self) -> Option<(u64, Self)> {
        let first = u64::from(self.field >> (FIELD_BITS - 1));
        let field = self.field << 1 & FIELD_MASK;
        let rest = Self { field, ..self };
        (field != 0).then_some((first, rest))
    }
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line {
    tags: [u32; LINE_ENTRIES],
    rows_low: [u16; LINE_ENTRIES],
    count: u8,
    /// Filter of the entries that found no room here and went on.
    pub passed: u8,
    /// How many bits of a tag are the row id's.
    row_shift: u8,
    /// Filter of the entries at home here that are in the side tables.
    pub aside: u8,
}

const _: () = assert!(size_of::<Line>() == LINE_BYTES);

// SAFETY: numbers, of which zeros are `Line::EMPTY`.
unsafe impl Plain for Line {}

impl Line {
    pub const EMPTY: Self = Self {
        tags: [0; LINE_ENTRIES],
        rows_low: [0; LINE_ENTRIES],
        count: 0,
        passed: 0,
        row_shift: ROW_SHIFT_MIN,
        aside: 0,
    };

    #[inline(always)]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// A bit for each entry that may have the hash of `probe`.
    #[inline(always)]
    pub fn matches(&self, probe: u32) -> u32 {
        matches_of(&self.tags, probe, self.row_shift) & ((1 << self.count) - 1)
    }

    #[inline(always)]
    pub fn row(&self, index: usize) -> u32 {
        let high = self.tags[index] & ((1 << self.row_shift) - 1);
        high << 16 | u32::from(self.rows_low[index])
    }

    pub fn window(&self, index: usize) -> Window {
        let tag = self.tags[index];
        Window {
            spread: (tag >> FIELD_BITS) as u8,
            field: tag & FIELD_MASK & !((1 << self.row_shift) - 1),
        }
    }

    /// Adds an entry; false if the line is full.
    #[inline]
    pub fn push(&mut self, window: Window, row: u32) -> bool {
        let index = self.len();
        if index == LINE_ENTRIES {
            return false;
        }
        let high = row >> 16;
        if high >> self.row_shift != 0 {
            self.widen_rows((32 - high.leading_zeros()) as u8);
        }
        self.tags[index] = tag(window, self.row_shift, high);
        self.rows_low[index] = row as u16;
        self.count += 1;
        true
    }

    pub fn remove(&mut self, index: usize) {
        let last = self.len() - 1;
        self.tags[index] = self.tags[last];
        self.rows_low[index] = self.rows_low[last];
        self.count -= 1;
    }

    fn widen_rows(&mut self, row_shift: u8) {
        for index in 0..self.len() {
            let (window, high) = (self.window(index), self.row(index) >> 16);
            self.tags[index] = tag(window, row_shift, high);
        }
        self.row_shift = row_shift;
    }

    pub fn to_bytes(self) -> [u8; LINE_BYTES] {
        let mut bytes = [0; LINE_BYTES];
        let (tags, rest) = bytes.split_at_mut(4 * LINE_ENTRIES);
        let (rows, rest) = rest.split_at_mut(2 * LINE_ENTRIES);
        for (place, tag) in tags.chunks_exact_mut(4).zip(self.tags) {
            place.copy_from_slice(&tag.to_le_bytes());
        }
        for (place, row) in rows.chunks_exact_mut(2).zip(self.rows_low) {
            place.copy_from_slice(&row.to_le_bytes());
        }
        rest.copy_from_slice(&[self.count, self.passed, self.row_shift, self.aside]);
        bytes
    }

    /// The line as it was; `None` for bytes that no line has.
    pub fn from_bytes(bytes: &[u8; LINE_BYTES]) -> Option<Self> {
        let mut line = Self::EMPTY;
        let (tags, rest) = bytes.split_at(4 * LINE_ENTRIES);
        let (rows, rest) = rest.split_at(2 * LINE_ENTRIES);
        for (tag, bytes) in line.tags.iter_mut().zip(tags.chunks_exact(4)) {
            *tag = u32::from_le_bytes(bytes.try_into().ok()?);
        }
        for (row, bytes) in line.rows_low.iter_mut().zip(rows.chunks_exact(2)) {
            *row = u16::from_le_bytes(bytes.try_into().ok()?);
        }
        [line.count, line.passed, line.row_shift, line.aside] = rest.try_into().ok()?;
        let sound = line.len() <= LINE_ENTRIES
            && (ROW_SHIFT_MIN..=ROW_SHIFT_MAX).contains(&line.row_shift)
            && (0..line.len()).all(|index| line.window(index).field != 0);
        sound.then_some(line)
    }
}

/// A bit for each tag that agrees with `probe` in all that it knows.
#[inline(always)]
fn matches_of(tags: &[u32; LINE_ENTRIES], probe: u32, row_shift: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE2.
    unsafe {
        matches_sse2(tags, probe, row_shift)
    }
    #[cfg(not(target_arch = "x86_64"))]
    matches_portable(tags, probe, row_shift)
}

/// Four tags at a time; otherwise as `matches_portable`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn matches_sse2(tags: &[u32; LINE_ENTRIES], probe: u32, row_shift: u8) -> u32 {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_andnot_si128, _mm_cmpeq_epi32, _mm_movemask_epi8,
        _mm_packs_epi16, _mm_packs_epi32, _mm_set_epi32, _mm_set1_epi32, _mm_setzero_si128,
        _mm_sub_epi32, _mm_xor_si128,
    };
    let t = tags.map(u32::cast_signed);
    let end = 1i32 << row_shift;
    let hash_bits = _mm_set1_epi32(-end);
    let (probe, end) = (_mm_set1_epi32(probe.cast_signed()), _mm_set1_epi32(end));
    let equal = |four: __m128i| {
        let window = _mm_and_si128(four, hash_bits);
        let unknown = _mm_xor_si128(window, _mm_sub_epi32(window, end));
        let differs = _mm_and_si128(_mm_xor_si128(four, probe), hash_bits);
        _mm_cmpeq_epi32(_mm_andnot_si128(unknown, differs), _mm_setzero_si128())
    };
    let first = equal(_mm_set_epi32(t[3], t[2], t[1], t[0]));
    let second = equal(_mm_set_epi32(t[7], t[6], t[5], t[4]));
    let third = equal(_mm_set_epi32(0, 0, t[9], t[8]));
    let low = _mm_packs_epi32(first, second);
    let high = _mm_packs_epi32(third, third);
    _mm_movemask_epi8(_mm_packs_epi16(low, high)).cast_unsigned()
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn matches_portable(tags: &[u32; LINE_ENTRIES], probe: u32, row_shift: u8) -> u32 {
    let end = 1u32 << row_shift;
    let hash_bits = !(end - 1);
    let mut found = 0;
    for (index, &tag) in tags.iter().enumerate() {
        let window = tag & hash_bits;
        // All bits from the row id's up to the 1 that ends the window.
        let unknown = window ^ window.wrapping_sub(end);
        let differs = (tag ^ probe) & hash_bits & !unknown;
        found |= u32::from(differs == 0) << index;
    }
    found
}

/// A tag with the window cut to what `row_shift` leaves room for.
fn tag(window: Window, row_shift: u8, row_high: u32) -> u32 {
    let end = 1u32 << row_shift;
    let field = if window.field & (end - 1) == 0 {
        window.field
    } else {
        window.field & !(end - 1) | end
    };
    u32::from(window.spread) << FIELD_BITS | field | row_high
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_entry_matches_its_hash_however_often_it_split(
            hash in any::<u64>(), row in any::<u32>(), level in 0u32..20, splits in 0u32..23,
            others in prop::collection::vec((any::<u64>(), any::<u32>()), 0..9),
        ) {
            let mut window = Window::new(hash, level);
            for split in 0..splits {
                let expected = hash >> (63 - level - split) & 1;
                let (bit, rest) = window.split().unwrap();
                prop_assert_eq!(bit, expected);
                window = rest;
            }
            let level = level + splits;
            let mut line = Line::EMPTY;
            prop_assert!(line.push(window, row));
            for (hash, row) in others {
                prop_assert!(line.push(Window::new(hash, level), row));
            }
            prop_assert_eq!(line.matches(probe_of(hash, level)) & 1, 1);
            prop_assert_eq!(line.row(0), row);
            let again = Line::from_bytes(&line.to_bytes()).unwrap();
            prop_assert_eq!(again.matches(probe_of(hash, level)), line.matches(probe_of(hash, level)));
            let known = line.window(0).valid_bits();
            let mask = u64::MAX.checked_shl(64 - known).unwrap_or(0);
            prop_assert_eq!(line.window(0).known(), hash << level & mask);
            let rebuilt = Window::of_known(
                hash >> (64 - level - known) << (64 - level - known), level + known, hash as u8, level);
            prop_assert_eq!(rebuilt, line.window(0));
        }
    }

    proptest! {
        #[test]
        fn both_ways_to_compare_agree(
            tags in prop::array::uniform10(any::<u32>()),
            probe in any::<u32>(), copied in 0usize..10, row_shift in 0u8..=16,
        ) {
            let mut tags = tags;
            tags[copied] = probe;
            let found = matches_of(&tags, probe, row_shift) & 0x3FF;
            prop_assert_eq!(found, matches_portable(&tags, probe, row_shift));
            prop_assert!(found >> copied & 1 == 1);
        }
    }

    #[test]
    fn a_window_without_known_bits_can_not_split() {
        let mut window = Window::new(u64::MAX, 0);
        for _ in 0..23 {
            window = window.split().unwrap().1;
        }
        assert_eq!(window.valid_bits(), 0);
        assert!(window.split().is_none());
    }
}
