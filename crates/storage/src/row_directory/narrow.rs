//! Narrow words: six bytes for what a word says in eight, and the numbers that stand in them
//! for the ids of blocks.
//!
//! A word has eight bytes, of which a hot one uses 47 bits. A cold one spends 32 on the id of
//! its block. Here that is a number of 16 bits for each block that words of this directory
//! name at present ([`Blocks`]).

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use thermocline_device::Mutation;

use super::word::{ColdAddress, FINGERPRINT_SHIFT, TEMPERATURE_SHIFT, Word};

/// Pieces of 16 bits that a narrow word takes.
pub(super) const NARROW: usize = 3;

/// Bits of a narrow word below the seven that each word begins with.
pub(super) const REST_BITS: u32 = 41;
/// Above them in a word: tag, aside, uncommitted, temperature.
const TOP_SHIFT: u32 = TEMPERATURE_SHIFT;
const REST_MASK: u64 = (1 << REST_BITS) - 1;
/// Of a cold word's rest: fingerprint 5, number of the block 16, slot 16, extent 4.
pub(super) const NUMBER_SHIFT: u32 = 20;
const PLACE_MASK: u64 = (1 << NUMBER_SHIFT) - 1;
pub(super) const PRINT_SHIFT: u32 = NUMBER_SHIFT + u16::BITS;

const _: () = assert!(ColdAddress::EXTENT_LONG < 16, "an extent has four bits");

#[inline(always)]
pub(super) fn narrow_at(pieces: &[u16], place: usize) -> u64 {
    let pieces = &pieces[place * NARROW..][..NARROW];
    u64::from(pieces[0]) | u64::from(pieces[1]) << 16 | u64::from(pieces[2]) << 32
}

/// As [`narrow_at`], of a place that may lie behind the last: what is there is free.
#[inline(always)]
pub(super) fn narrow_or_free(pieces: &[u16], place: usize) -> u64 {
    let there = pieces.get(place * NARROW..(place + 1) * NARROW);
    there.map_or(0, |pieces| narrow_at(pieces, 0))
}

#[inline(always)]
pub(super) fn set_narrow(pieces: &mut [u16], place: usize, word: u64) {
    let pieces = &mut pieces[place * NARROW..][..NARROW];
    for (number, piece) in pieces.iter_mut().enumerate() {
        *piece = (word >> (16 * number)) as u16;
    }
}

/// The number of the block that a narrow word names.
#[inline(always)]
fn number_of(narrow: u64) -> Option<u16> {
    is_cold(narrow).then_some((narrow >> NUMBER_SHIFT) as u16)
}

/// Whether a narrow word is a cold one.
#[inline(always)]
pub(super) fn is_cold(narrow: u64) -> bool {
    Word(narrow >> REST_BITS << TOP_SHIFT).is_cold()
}

/// Whether a narrow word is a hot one.
#[inline(always)]
pub(super) fn is_hot(narrow: u64) -> bool {
    Word(narrow >> REST_BITS << TOP_SHIFT).is_hot()
}

/// The narrow form of a hot word; None of another, or where there is no room in it.
#[inline(always)]
pub(super) fn narrow_hot(word: Word) -> Option<u64> {
    word.is_hot().then(|| narrow_uncold(word)).flatten()
}

/// The narrow form of a word that is not cold, if there is room in it.
#[inline(always)]
fn narrow_uncold(word: Word) -> Option<u64> {
    let rest = word.0 & ((1 << TOP_SHIFT) - 1);
    (rest <= REST_MASK).then_some(word.0 >> TOP_SHIFT << REST_BITS | rest)
}

/// Blocks that narrow words can name: a number has 16 bits.
const NUMBERS: usize = 1 << u16::BITS;

thread_local! {
    static NUMBERS_MAX: Cell<usize> = const { Cell::new(NUMBERS) };
}

/// Has directories of this thread give numbers to so many blocks at most, so that a simulator
/// comes to the last in a round; None: to as many as there are.
#[doc(hidden)]
pub fn limit_block_numbers(most: Option<usize>) {
    NUMBERS_MAX.set(most.unwrap_or(NUMBERS).min(NUMBERS));
}

/// The blocks that narrow words name, by number.
#[derive(Default)]
pub(super) struct Blocks {
    ids: Vec<u32>,
    /// Words that name a block.
    words: Vec<u32>,
    free: Vec<u16>,
    numbers: HashMap<u32, u16, BuildHasherDefault<IdHasher>>,
}

impl Blocks {
    /// The word that a narrow one stands for.
    #[inline(always)]
    pub fn widened(&self, narrow: u64) -> Word {
        let top = narrow >> REST_BITS << TOP_SHIFT;
        if !Word(top).is_cold() {
            return Word(top | narrow & REST_MASK);
        }
        let fingerprint = (narrow & REST_MASK) >> PRINT_SHIFT;
        let block = self.ids[usize::from((narrow >> NUMBER_SHIFT) as u16)];
        Word(
            top | fingerprint << FINGERPRINT_SHIFT
                | u64::from(block) << NUMBER_SHIFT
                | narrow & PLACE_MASK,
        )
    }

    /// The narrow form of a word that takes the place of `old`, which is released; None
    /// where there is no room in it.
    #[inline]
    pub fn narrowed(&mut self, word: Word, old: u64) -> Option<u64> {
        let Some(cold) = word.as_cold() else {
            self.release_of(old);
            return narrow_uncold(word);
        };
        let top = word.0 >> TOP_SHIFT << REST_BITS;
        let block = cold.address().block;
        let number = match number_of(old) {
            Some(number) if self.ids[usize::from(number)] == block => number,
            _ => {
                self.release_of(old);
                self.take(block)?
            }
        };
        Some(
            top | u64::from(cold.fingerprint()) << PRINT_SHIFT
                | u64::from(number) << NUMBER_SHIFT
                | word.0 & PLACE_MASK,
        )
    }

    /// The number of a block that one word more names.
    fn take(&mut self, block: u32) -> Option<u16> {
        if let Some(number) = self.numbers.get(&block) {
            self.words[usize::from(*number)] += 1;
            return Some(*number);
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                if self.ids.len() >= NUMBERS_MAX.get() {
                    return self
                        .last_again()
                        .filter(|_| Mutation::BlockNumbersWrap.is_made());
                }
                let number = u16::try_from(self.ids.len()).ok()?;
                self.ids.push(0);
                self.words.push(0);
                number
            }
        };
        self.numbers.insert(block, number);
        self.ids[usize::from(number)] = block;
        self.words[usize::from(number)] = 1;
        Some(number)
    }

    /// A mistake: see [`Mutation::BlockNumbersWrap`].
    #[cold]
    fn last_again(&mut self) -> Option<u16> {
        *self.words.last_mut()? += 1;
        u16::try_from(self.words.len() - 1).ok()
    }

    /// A narrow word goes.
    #[inline]
    pub fn release_of(&mut self, narrow: u64) {
        if let Some(number) = number_of(narrow) {
            let place = usize::from(number);
            self.words[place] -= 1;
            if self.words[place] == 0 {
                self.numbers.remove(&self.ids[place]);
                self.free.push(number);
            }
        }
    }

    pub fn bytes(&self) -> usize {
        let entry = size_of::<(u32, u16)>() + 1;
        self.ids.capacity() * size_of::<u32>()
            + self.words.capacity() * size_of::<u32>()
            + self.free.capacity() * size_of::<u16>()
            + self.numbers.capacity() * entry
    }
}

/// Block ids are counted up: they need spreading, no protection.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, id: u32) {
        self.0 = (self.0 ^ u64::from(id))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(26);
    }
}

#[cfg(test)]
impl Blocks {
    /// Checks that exactly the blocks that cold words name have numbers.
    pub fn check(&self, words: &[Word]) {
        let mut named: HashMap<u32, u32> = HashMap::new();
        for cold in words.iter().filter_map(|word| word.as_cold()) {
            *named.entry(cold.address().block).or_default() += 1;
        }
        assert_eq!(self.numbers.len(), named.len());
        for (block, count) in named {
            let number = usize::from(self.numbers[&block]);
            assert_eq!((self.ids[number], self.words[number]), (block, count));
        }
    }
}
