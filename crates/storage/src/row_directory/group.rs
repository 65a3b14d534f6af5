//! The words of a page, packed where that pays: a cold row's takes a byte or two then.
//!
//! Rows that left memory one after the other lie one after the other in a block, with their
//! fingerprints and temperatures as all that differs. A packed group keeps of such a row its
//! temperature, its fingerprint unless all have the same, and the slot: by how much it is
//! not where a straight line through the page's slots has it. What does not go by that (a
//! hot row, one in another block, a locked one) is an *exception*, a whole narrow word.
//!
//! Pieces of 16 bits of a packed group:
//!
//! * the number of the block;
//! * the slot of row 0;
//! * slots from row to row, times 128;
//! * slots of a record, whether each row has a fingerprint, bits of a slot's difference;
//! * a bit for each exception, in four;
//! * the fingerprint of all unless each has one;
//! * the records of all 64 rows;
//! * the exceptions.
//!
//! A plain group is 64 narrow words; where no row ever was it is empty.

use super::PAGE_WORDS;
use super::narrow::{NARROW, NUMBER_SHIFT, PRINT_SHIFT, REST_BITS, is_cold, narrow_at, set_narrow};
use super::word::ColdAddress;
use crate::block::SLOT_BYTES;
use crate::columns::COLUMNS_EXTENT;
use thermocline_device::SECTOR_BYTES;

/// Pieces of a plain group.
const PLAIN: usize = PAGE_WORDS * NARROW;
/// A group is packed into this or less, and plain again where it would take more than that.
const PACKED_FIRST: usize = PLAIN * 9 / 16;
const PACKED_MAX: usize = PLAIN * 3 / 4;
/// Memory is taken in multiples of this, which an allocator has: 16 bytes.
const ROOM_STEP: usize = 8;

const NUMBER: usize = 0;
const FIRST_SLOT: usize = 1;
const STEP: usize = 2;
const SHAPE: usize = 3;
const EXCEPTIONS: usize = 4;
const HEADER: usize = 8;
/// In `SHAPE`, above the slots of a record.
const RECORD_SLOTS_MAX: u16 = PRINTS - 1;
const PRINTS: u16 = 1 << 11;
const DIFFERENCE_AT: u32 = 12;
const DIFFERENCE_BITS_MAX: u32 = 15;

const TEMPERATURE_BITS: u32 = 3;
const FINGERPRINT_BITS: u32 = 5;
const FINGERPRINT_MASK: u64 = (1 << FINGERPRINT_BITS) - 1;
/// What a cold word begins with that is neither locked nor uncommitted, above its temperature.
const SETTLED: u64 = 0b1000;
const SETTLED_SHIFT: u32 = REST_BITS + TEMPERATURE_BITS;
const STEP_SHIFT: u32 = 7;
const SECTOR_SLOTS: u32 = (SECTOR_BYTES / SLOT_BYTES) as u32;

/// The words of a page, narrow ones.
#[derive(Default)]
pub(super) struct Group(Box<[u16]>);

impl Group {
    /// The smallest form of a page's narrow words.
    pub fn of(pieces: &[u16]) -> Self {
        assert_eq!(pieces.len(), PLAIN, "a page's words");
        if pieces.iter().all(|piece| *piece == 0) {
            return Self::default();
        }
        packed_of(pieces).unwrap_or_else(|| Self(pieces.into()))
    }

    #[inline]
    pub fn is_plain(&self) -> bool {
        self.0.len() == PLAIN
    }

    /// Pieces of memory taken.
    #[inline]
    pub fn pieces(&self) -> usize {
        self.0.len()
    }

    /// The narrow word of a place in the page.
    #[inline]
    pub fn get(&self, place: usize) -> u64 {
        if self.is_plain() {
            return narrow_at(&self.0, place);
        }
        if self.0.is_empty() {
            return 0;
        }
        if let Some(at) = self.exception(place) {
            return narrow_at(&self.0[at..], 0);
        }
        let shape = self.shape();
        let record = self.record(shape, place);
        let temperature = record & ((1 << TEMPERATURE_BITS) - 1);
        let rest = record >> TEMPERATURE_BITS;
        let (fingerprint, difference) = match shape.prints {
            true => (rest & FINGERPRINT_MASK, rest >> FINGERPRINT_BITS),
            false => (shape.print, rest),
        };
        let slot = self.expected_slot(place).wrapping_add(difference as u16);
        SETTLED << SETTLED_SHIFT
            | temperature << REST_BITS
            | fingerprint << PRINT_SHIFT
            | u64::from(self.0[NUMBER]) << NUMBER_SHIFT
            | u64::from(slot) << 4
            | u64::from(extent_of(slot, shape.record_slots))
    }

    /// Changes the narrow word of a place. A packed group becomes a plain one where there
    /// is too little left that is packed.
    pub fn put(&mut self, place: usize, word: u64) {
        if self.0.is_empty() {
            self.0 = vec![0; PLAIN].into_boxed_slice();
        }
        if self.is_plain() {
            return set_narrow(&mut self.0, place, word);
        }
        let shape = self.shape();
        match (self.packed(shape, place, word), self.exception(place)) {
            (Some(record), exception) => {
                if exception.is_some() {
                    self.remove_exception(shape, place);
                }
                self.set_record(shape, place, record);
            }
            (None, Some(at)) => set_narrow(&mut self.0[at..], 0, word),
            (None, None) => self.add_exception(shape, place, word),
        }
    }

    /// How many words from a place on are known to be cold and nothing but cold.
    #[inline]
    pub fn settled_from(&self, place: usize) -> usize {
        if self.is_plain() || self.0.is_empty() {
            return 0;
        }
        let settled = (!self.exceptions() >> place).trailing_ones() as usize;
        settled.min(PAGE_WORDS - place)
    }

    /// How many words from a place on are known to be cold and nothing but cold, in one block of columns
    /// and one position after the other. None, where it is not known.
    #[inline]
    pub fn columns_from(&self, place: usize) -> usize {
        let settled = self.settled_from(place);
        if settled == 0 {
            return 0;
        }
        let shape = self.shape();
        let slot = self.expected_slot(place);
        let in_line = shape.difference_bits == 0
            && self.0[STEP] == 1 << STEP_SHIFT
            && extent_of(slot, shape.record_slots) == COLUMNS_EXTENT;
        match in_line {
            true => settled.min(usize::from(u16::MAX - slot) + 1),
            false => 0,
        }
    }

    /// Packs a plain group if that makes it much smaller; takes from a packed one the room
    /// that it does not need.
    pub fn pack(&mut self) {
        if self.0.is_empty() {
            return;
        }
        if self.is_plain() {
            if let Some(packed) = packed_of(&self.0) {
                *self = packed;
            }
            return;
        }
        let room = self.shape().room(self.exceptions().count_ones() as usize);
        if room < self.0.len() {
            self.resize(room);
        }
    }

    /// Makes a packed group a plain one.
    fn unpack(&mut self) {
        let mut plain = vec![0; PLAIN].into_boxed_slice();
        self.write_plain(&mut plain);
        self.0 = plain;
    }

    /// The words as plain pieces.
    pub fn write_plain(&self, pieces: &mut [u16]) {
        for place in 0..PAGE_WORDS {
            set_narrow(pieces, place, self.get(place));
        }
    }

    #[inline(always)]
    fn shape(&self) -> Shape {
        let shape = self.0[SHAPE];
        let prints = shape & PRINTS != 0;
        Shape {
            record_slots: shape & RECORD_SLOTS_MAX,
            difference_bits: u32::from(shape >> DIFFERENCE_AT),
            prints,
            print: if prints { 0 } else { u64::from(self.0[HEADER]) },
        }
    }

    #[inline(always)]
    fn exceptions(&self) -> u64 {
        let pieces = &self.0[EXCEPTIONS..EXCEPTIONS + 4];
        (pieces.iter().rev()).fold(0, |bits, piece| bits << 16 | u64::from(*piece))
    }

    fn set_exceptions(&mut self, bits: u64) {
        for (number, piece) in self.0[EXCEPTIONS..EXCEPTIONS + 4].iter_mut().enumerate() {
            *piece = (bits >> (16 * number)) as u16;
        }
    }

    /// The piece at which the exception of a place begins, if it is one.
    #[inline(always)]
    fn exception(&self, place: usize) -> Option<usize> {
        let exceptions = self.exceptions();
        (exceptions >> place & 1 == 1).then(|| self.shape().exception_at(exceptions, place))
    }

    /// Where the line has the slot of a place.
    #[inline(always)]
    fn expected_slot(&self, place: usize) -> u16 {
        self.0[FIRST_SLOT].wrapping_add(along(self.0[STEP], place))
    }

    #[inline(always)]
    fn record(&self, shape: Shape, place: usize) -> u64 {
        let (at, shift) = shape.place_of(place);
        // The pieces behind the last record's are there or not needed.
        let low = u64::from(self.0[at]);
        let middle = u64::from(*self.0.get(at + 1).unwrap_or(&0));
        let high = u64::from(*self.0.get(at + 2).unwrap_or(&0));
        (low | middle << 16 | high << 32) >> shift & shape.mask()
    }

    fn set_record(&mut self, shape: Shape, place: usize, record: u64) {
        let (at, shift) = shape.place_of(place);
        let (mask, record) = (shape.mask() << shift, record << shift);
        for number in 0..3 {
            let part = (mask >> (16 * number)) as u16;
            if part != 0 {
                let piece = &mut self.0[at + number];
                *piece = *piece & !part | (record >> (16 * number)) as u16;
            }
        }
    }

    /// The record of a word, if the group can keep it as one.
    #[inline]
    fn packed(&self, shape: Shape, place: usize, word: u64) -> Option<u64> {
        let slot = (word >> 4) as u16;
        let fingerprint = word >> PRINT_SHIFT & FINGERPRINT_MASK;
        let difference = slot.wrapping_sub(self.expected_slot(place));
        let fits = word >> SETTLED_SHIFT == SETTLED
            && (word >> NUMBER_SHIFT) as u16 == self.0[NUMBER]
            && (word & 15) as u8 == extent_of(slot, shape.record_slots)
            && u32::from(difference) >> shape.difference_bits == 0
            && (shape.prints || fingerprint == shape.print);
        fits.then(|| {
            let difference = u64::from(difference);
            let rest = match shape.prints {
                true => difference << FINGERPRINT_BITS | fingerprint,
                false => difference,
            };
            rest << TEMPERATURE_BITS | word >> REST_BITS & ((1 << TEMPERATURE_BITS) - 1)
        })
    }

    fn add_exception(&mut self, shape: Shape, place: usize, word: u64) {
        let exceptions = self.exceptions();
        let count = exceptions.count_ones() as usize;
        let end = shape.end() + count * NARROW;
        if end + NARROW > PACKED_MAX {
            self.unpack();
            return set_narrow(&mut self.0, place, word);
        }
        if end + NARROW > self.0.len() {
            let room = shape.room(count + 1);
            self.resize(room);
        }
        let at = shape.exception_at(exceptions, place);
        self.0.copy_within(at..end, at + NARROW);
        set_narrow(&mut self.0[at..], 0, word);
        self.set_exceptions(exceptions | 1 << place);
    }

    fn remove_exception(&mut self, shape: Shape, place: usize) {
        let exceptions = self.exceptions();
        let count = exceptions.count_ones() as usize;
        let at = shape.exception_at(exceptions, place);
        let end = shape.end() + count * NARROW;
        self.0.copy_within(at + NARROW..end, at);
        self.set_exceptions(exceptions & !(1 << place));
        // Not at once: a row that left memory often comes back.
        let room = shape.room(count - 1);
        if room + ROOM_STEP < self.0.len() {
            self.resize(room);
        }
    }

    fn resize(&mut self, pieces: usize) {
        let mut resized = vec![0; pieces].into_boxed_slice();
        let kept = pieces.min(self.0.len());
        resized[..kept].copy_from_slice(&self.0[..kept]);
        self.0 = resized;
    }
}

/// How the records of a packed group look.
#[derive(Clone, Copy)]
struct Shape {
    record_slots: u16,
    difference_bits: u32,
    /// Whether each has a fingerprint of its own; `print` is that of all otherwise.
    prints: bool,
    print: u64,
}

impl Shape {
    #[inline(always)]
    fn bits(self) -> u32 {
        let print_bits = if self.prints { FINGERPRINT_BITS } else { 0 };
        TEMPERATURE_BITS + print_bits + self.difference_bits
    }

    #[inline(always)]
    fn mask(self) -> u64 {
        (1 << self.bits()) - 1
    }

    /// The piece in which the record of a place begins, and the bit there.
    #[inline(always)]
    fn place_of(self, place: usize) -> (usize, u32) {
        let bit = place * self.bits() as usize;
        (self.first() + bit / 16, (bit % 16) as u32)
    }

    /// The piece in which the first record begins.
    #[inline(always)]
    fn first(self) -> usize {
        HEADER + usize::from(!self.prints)
    }

    /// The piece behind the last record.
    #[inline(always)]
    fn end(self) -> usize {
        self.first() + self.bits() as usize * (PAGE_WORDS / 16)
    }

    /// The piece at which the exception of a place begins, or would.
    #[inline(always)]
    fn exception_at(self, exceptions: u64, place: usize) -> usize {
        let before = (exceptions & ((1 << place) - 1)).count_ones() as usize;
        self.end() + before * NARROW
    }

    /// Pieces of a group with so many exceptions.
    fn room(self, exceptions: usize) -> usize {
        let room = self.end() + exceptions * NARROW;
        room.next_multiple_of(ROOM_STEP)
    }
}

/// How far the line has gone at a place, in slots.
#[inline(always)]
fn along(step: u16, place: usize) -> u16 {
    ((u32::from(step) * place as u32) >> STEP_SHIFT) as u16
}

/// How many sectors a record of so many slots touches, as an address says it. Without slots it is
/// a row of a block of columns, whose extent is 0.
#[inline(always)]
fn extent_of(slot: u16, record_slots: u16) -> u8 {
    if record_slots == 0 {
        return COLUMNS_EXTENT;
    }
    let offset = u32::from(slot) % SECTOR_SLOTS;
    let sectors = (offset + u32::from(record_slots)).div_ceil(SECTOR_SLOTS);
    sectors.min(u32::from(ColdAddress::EXTENT_LONG)) as u8
}

/// A settled row of the block that most rows of a page lie in.
#[derive(Clone, Copy)]
struct Settled {
    place: usize,
    word: u64,
    slot: u16,
}

/// The packed form of a page's plain words, if it is much smaller.
fn packed_of(plain: &[u16]) -> Option<Group> {
    let number = majority(plain)?;
    let mut settled = [Settled {
        place: 0,
        word: 0,
        slot: 0,
    }; PAGE_WORDS];
    let mut count = 0;
    for place in 0..PAGE_WORDS {
        let word = narrow_at(plain, place);
        if word >> SETTLED_SHIFT == SETTLED && (word >> NUMBER_SHIFT) as u16 == number {
            let slot = (word >> 4) as u16;
            settled[count] = Settled { place, word, slot };
            count += 1;
        }
    }
    let settled = &settled[..count];
    let (first, last) = (settled.first()?, settled.last()?);
    let rows = last.place - first.place;
    // Where slots do not ascend, differences from the lowest are as good as any.
    let slots = last.slot.saturating_sub(first.slot);
    let step = match rows {
        0 => 0,
        _ => ((u32::from(slots) << STEP_SHIFT) / rows as u32).min(u32::from(u16::MAX)) as u16,
    };
    let differences =
        (settled.iter()).map(|row| i32::from(row.slot) - i32::from(along(step, row.place)));
    let (low, high) = (differences.clone().min()?, differences.max()?);
    let print = first.word >> PRINT_SHIFT & FINGERPRINT_MASK;
    let shape = Shape {
        record_slots: record_slots(settled),
        difference_bits: u32::BITS - (high - low).cast_unsigned().leading_zeros(),
        prints: (settled.iter()).any(|row| row.word >> PRINT_SHIFT & FINGERPRINT_MASK != print),
        print,
    };
    if shape.difference_bits > DIFFERENCE_BITS_MAX || shape.room(PAGE_WORDS - count) > PACKED_FIRST
    {
        return None;
    }
    let mut group = Group(vec![0; shape.room(PAGE_WORDS - count)].into_boxed_slice());
    group.0[NUMBER] = number;
    group.0[FIRST_SLOT] = low as u16;
    group.0[STEP] = step;
    let difference_bits = (shape.difference_bits as u16) << DIFFERENCE_AT;
    group.0[SHAPE] = shape.record_slots | difference_bits;
    if shape.prints {
        group.0[SHAPE] |= PRINTS;
    } else {
        group.0[HEADER] = shape.print as u16;
    }
    let (mut exceptions, mut end) = (0, shape.end());
    for place in 0..PAGE_WORDS {
        let word = narrow_at(plain, place);
        match group.packed(shape, place, word) {
            Some(record) => group.set_record(shape, place, record),
            None if end + NARROW > PACKED_FIRST => return None,
            None => {
                exceptions |= 1 << place;
                if end + NARROW > group.0.len() {
                    group.resize(PACKED_MAX);
                }
                set_narrow(&mut group.0[end..], 0, word);
                end += NARROW;
            }
        }
    }
    group.set_exceptions(exceptions);
    let room = shape.room(exceptions.count_ones() as usize);
    if room != group.0.len() {
        group.resize(room);
    }
    Some(group)
}

/// The number that more than half of a page's cold words name, if one is.
fn majority(plain: &[u16]) -> Option<u16> {
    let (mut number, mut votes) = (0, 0);
    for word in (0..PAGE_WORDS).map(|place| narrow_at(plain, place)) {
        if !is_cold(word) {
            continue;
        }
        let named = (word >> NUMBER_SHIFT) as u16;
        match votes {
            0 => (number, votes) = (named, 1),
            _ if named == number => votes += 1,
            _ => votes -= 1,
        }
    }
    (votes > 0).then_some(number)
}

/// How long records are, in slots, so that by it most rows touch as many sectors as they do.
fn record_slots(settled: &[Settled]) -> u16 {
    // From each row's extent: it is longer than `low`, and no longer than `high`.
    let (mut low, mut high) = (0, u32::from(RECORD_SLOTS_MAX));
    for row in settled {
        let (offset, extent) = (u32::from(row.slot) % SECTOR_SLOTS, (row.word & 15) as u32);
        low = low.max(((extent.max(1) - 1) * SECTOR_SLOTS).saturating_sub(offset));
        if extent < u32::from(ColdAddress::EXTENT_LONG) {
            high = high.min((extent * SECTOR_SLOTS).saturating_sub(offset));
        }
    }
    let right = |slots: u32| {
        let right = |row: &&Settled| extent_of(row.slot, slots as u16) == (row.word & 15) as u8;
        settled.iter().filter(right).count()
    };
    let longer = (low + 1).min(u32::from(RECORD_SLOTS_MAX));
    if right(high) >= right(longer) {
        high as u16
    } else {
        longer as u16
    }
}
