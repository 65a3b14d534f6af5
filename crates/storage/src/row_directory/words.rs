//! The words of a directory in memory: six bytes each.
//!
//! A word has eight bytes, of which a hot one uses 47 bits. A cold one spends 32 on the id of
//! its block; here that is a number of 16 bits for each block that words of this directory
//! name at present ([`Blocks`]). A chunk that gets a word with no room in six bytes (all
//! numbers are taken, or it is none of ours) has eight for each from then on.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::word::{ColdAddress, FINGERPRINT_SHIFT, TEMPERATURE_SHIFT, Word};
use crate::arena::prefetch_line;
use crate::chunk::Chunk;

/// Words in a chunk: 48 KiB.
pub(super) const CHUNK_WORDS: usize = 8192;
const CHUNK_SHIFT: u32 = CHUNK_WORDS.trailing_zeros();
/// Pieces of 16 bits that a word takes, and those that it takes where it must.
const NARROW: usize = 3;
const WIDE: usize = 4;

/// Bits of a narrow word below the seven that each word begins with.
const REST_BITS: u32 = 41;
/// Above them in a word: tag, aside, uncommitted, temperature.
const TOP_SHIFT: u32 = TEMPERATURE_SHIFT;
const REST_MASK: u64 = (1 << REST_BITS) - 1;
/// Of a cold word's rest: fingerprint 5, number of the block 16, slot and extent 20.
const PLACE_BITS: u32 = 20;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
const NUMBER_BITS: u32 = 16;

#[derive(Default)]
pub(super) struct Words {
    chunks: Vec<Chunk<u16>>,
    /// Apart from what every look-up reads.
    blocks: Box<Blocks>,
}

impl Words {
    /// Words that there is room for.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.chunks.len() * CHUNK_WORDS
    }

    /// Makes room for a chunk of free words more.
    pub fn grow(&mut self) {
        self.chunks.push(Chunk::zeroed(CHUNK_WORDS * NARROW));
    }

    /// Keeps the chunks of so many words.
    pub fn truncate(&mut self, words: usize) {
        let chunks = words.div_ceil(CHUNK_WORDS);
        for row in chunks * CHUNK_WORDS..self.capacity() {
            self.put(row as u32, Word(0));
        }
        self.chunks.truncate(chunks);
    }

    /// The word of a row, zero beyond the last.
    #[inline(always)]
    pub fn get(&self, row: u32) -> Word {
        let Some(chunk) = self.chunks.get((row >> CHUNK_SHIFT) as usize) else {
            return Word(0);
        };
        let place = row as usize % CHUNK_WORDS;
        if chunk.len() == CHUNK_WORDS * NARROW {
            self.widened(narrow_at(chunk, place))
        } else {
            Word(wide_at(chunk, place))
        }
    }

    /// Changes the word of a row for which there is room.
    #[inline]
    pub fn put(&mut self, row: u32, word: Word) {
        let (number, place) = ((row >> CHUNK_SHIFT) as usize, row as usize % CHUNK_WORDS);
        let chunk = &mut self.chunks[number];
        if chunk.len() != CHUNK_WORDS * NARROW {
            return set_wide(chunk, place, word.0);
        }
        let old = narrow_at(chunk, place);
        match self.blocks.narrowed(word, old) {
            Some(new) => set_narrow(chunk, place, new),
            None => self.widen(number, place, word),
        }
    }

    /// Asks for the cache line of a row's word.
    #[inline]
    pub fn prefetch(&self, row: u32) {
        if let Some(chunk) = self.chunks.get((row >> CHUNK_SHIFT) as usize) {
            let width = chunk.len() / CHUNK_WORDS;
            prefetch_line(&chunk[row as usize % CHUNK_WORDS * width]);
        }
    }

    /// Bytes of memory taken.
    pub fn bytes(&self) -> usize {
        let pieces: usize = self.chunks.iter().map(|chunk| chunk.len()).sum();
        pieces * size_of::<u16>()
            + self.chunks.capacity() * size_of::<Chunk<u16>>()
            + self.blocks.bytes()
    }

    /// The word that a narrow one stands for.
    #[inline(always)]
    fn widened(&self, narrow: u64) -> Word {
        let top = narrow >> REST_BITS << TOP_SHIFT;
        if !Word(top).is_cold() {
            return Word(top | narrow & REST_MASK);
        }
        let fingerprint = (narrow & REST_MASK) >> (NUMBER_BITS + PLACE_BITS);
        let block = self.blocks.ids[usize::from((narrow >> PLACE_BITS) as u16)];
        Word(
            top | fingerprint << FINGERPRINT_SHIFT
                | u64::from(block) << PLACE_BITS
                | narrow & PLACE_MASK,
        )
    }

    /// Gives the words of a chunk eight bytes each, and puts one of them.
    #[cold]
    fn widen(&mut self, number: usize, place: usize, word: Word) {
        let mut wide = Chunk::zeroed(CHUNK_WORDS * WIDE);
        for other in 0..CHUNK_WORDS {
            let narrow = narrow_at(&self.chunks[number], other);
            set_wide(&mut wide, other, self.widened(narrow).0);
            if other != place {
                self.blocks.release_of(narrow);
            }
        }
        // The old word of `place` was released when there was no room for the new.
        set_wide(&mut wide, place, word.0);
        self.chunks[number] = wide;
    }
}

#[inline(always)]
fn narrow_at(chunk: &[u16], place: usize) -> u64 {
    let pieces = &chunk[place * NARROW..][..NARROW];
    u64::from(pieces[0]) | u64::from(pieces[1]) << 16 | u64::from(pieces[2]) << 32
}

#[inline(always)]
fn set_narrow(chunk: &mut [u16], place: usize, word: u64) {
    let pieces = &mut chunk[place * NARROW..][..NARROW];
    for (number, piece) in pieces.iter_mut().enumerate() {
        *piece = (word >> (16 * number)) as u16;
    }
}

fn wide_at(chunk: &[u16], place: usize) -> u64 {
    let pieces = &chunk[place * WIDE..][..WIDE];
    (pieces.iter().rev()).fold(0, |word, piece| word << 16 | u64::from(*piece))
}

fn set_wide(chunk: &mut [u16], place: usize, word: u64) {
    let pieces = &mut chunk[place * WIDE..][..WIDE];
    for (number, piece) in pieces.iter_mut().enumerate() {
        *piece = (word >> (16 * number)) as u16;
    }
}

/// The blocks that narrow words name, by number.
#[derive(Default)]
struct Blocks {
    ids: Vec<u32>,
    /// Words that name a block.
    words: Vec<u32>,
    free: Vec<u16>,
    numbers: HashMap<u32, u16, BuildHasherDefault<IdHasher>>,
}

impl Blocks {
    /// The narrow form of a word that takes the place of `old`, which is released; None
    /// where there is no room in it.
    #[inline]
    fn narrowed(&mut self, word: Word, old: u64) -> Option<u64> {
        let top = word.0 >> TOP_SHIFT << REST_BITS;
        let Some(cold) = word.as_cold() else {
            self.release_of(old);
            let rest = word.0 & ((1 << TOP_SHIFT) - 1);
            return (rest <= REST_MASK).then_some(top | rest);
        };
        let block = cold.address().block;
        let number = match number_of(old) {
            Some(number) if self.ids[usize::from(number)] == block => number,
            _ => {
                self.release_of(old);
                self.take(block)?
            }
        };
        Some(
            top | u64::from(cold.fingerprint()) << (NUMBER_BITS + PLACE_BITS)
                | u64::from(number) << PLACE_BITS
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

    /// A narrow word goes.
    #[inline]
    fn release_of(&mut self, narrow: u64) {
        if let Some(number) = number_of(narrow) {
            let place = usize::from(number);
            self.words[place] -= 1;
            if self.words[place] == 0 {
                self.numbers.remove(&self.ids[place]);
                self.free.push(number);
            }
        }
    }

    fn bytes(&self) -> usize {
        let entry = size_of::<(u32, u16)>() + 1;
        self.ids.capacity() * size_of::<u32>()
            + self.words.capacity() * size_of::<u32>()
            + self.free.capacity() * size_of::<u16>()
            + self.numbers.capacity() * entry
    }
}

/// The number of the block that a narrow word names.
#[inline(always)]
fn number_of(narrow: u64) -> Option<u16> {
    let top = Word(narrow >> REST_BITS << TOP_SHIFT);
    top.is_cold().then_some((narrow >> PLACE_BITS) as u16)
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

const _: () = assert!(ColdAddress::EXTENT_LONG < 16, "an extent has four bits");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::TuplePtr;
    use proptest::prelude::*;

    fn word() -> impl Strategy<Value = Word> {
        let cold = |blocks: std::ops::Range<u32>| {
            (blocks, any::<u16>(), 0u8..16, 0u8..32).prop_map(
                |(block, slot, extent, fingerprint)| {
                    Word::cold(
                        ColdAddress {
                            block,
                            slot,
                            extent,
                        },
                        fingerprint,
                    )
                },
            )
        };
        let words = prop_oneof![
            4 => cold(1..20),
            2 => cold(1..u32::MAX),
            4 => (0u64..1 << 40).prop_map(|pointer| Word::hot(TuplePtr(pointer))),
            1 => Just(Word::free(Some(u32::MAX - 1))),
            1 => Just(Word(3 << 62)),
        ];
        (words, any::<bool>(), any::<bool>(), 0u8..8).prop_map(|(word, aside, own, warmth)| {
            word.with_aside(aside)
                .with_uncommitted(own)
                .with_temperature(warmth)
        })
    }

    fn check_blocks(words: &Words, model: &[Word]) {
        let mut named: HashMap<u32, u32> = HashMap::new();
        for word in model {
            if let Some(cold) = word.as_cold() {
                *named.entry(cold.address().block).or_default() += 1;
            }
        }
        assert_eq!(words.blocks.numbers.len(), named.len());
        for (block, count) in named {
            let number = usize::from(words.blocks.numbers[&block]);
            assert_eq!(
                (words.blocks.ids[number], words.blocks.words[number]),
                (block, count)
            );
        }
    }

    proptest! {
        #[test]
        fn words_are_what_was_put(
            steps in prop::collection::vec((0usize..60, word()), 1..300),
            foreign in prop::option::of((0usize..300, any::<u64>())),
        ) {
            let mut words = Words::default();
            words.grow();
            let mut model = vec![Word(0); 60];
            for (number, (row, word)) in steps.into_iter().enumerate() {
                let word = match foreign {
                    Some((at, foreign)) if at == number => Word(foreign),
                    _ => word,
                };
                words.put(row as u32, word);
                model[row] = word;
            }
            for (row, word) in model.iter().enumerate() {
                prop_assert_eq!(words.get(row as u32), *word);
            }
            prop_assert_eq!(words.get(CHUNK_WORDS as u32), Word(0));
            if words.chunks[0].len() == CHUNK_WORDS * NARROW {
                check_blocks(&words, &model);
            } else {
                check_blocks(&words, &[]);
            }
            words.truncate(0);
            check_blocks(&words, &[]);
            prop_assert_eq!(words.capacity(), 0);
        }
    }

    #[test]
    fn more_blocks_than_numbers_widen_the_chunk_that_needs_it() {
        let mut words = Words::default();
        let word = |row: u32| {
            let address = ColdAddress {
                block: row + 1,
                slot: 7,
                extent: 1,
            };
            Word::cold(address, row as u8 & 31)
        };
        let rows = (1 << NUMBER_BITS) + 2 * CHUNK_WORDS as u32;
        for row in 0..rows {
            if row as usize == words.capacity() {
                words.grow();
            }
            words.put(row, word(row));
        }
        assert!((0..rows).all(|row| words.get(row) == word(row)));
        let wide = words
            .chunks
            .iter()
            .filter(|c| c.len() == CHUNK_WORDS * WIDE)
            .count();
        assert_eq!(wide, 2);
        // Numbers that are free again are given out again.
        (0..CHUNK_WORDS as u32).for_each(|row| words.put(row, Word(0)));
        words.grow();
        let first = rows + CHUNK_WORDS as u32;
        words.put(rows, word(first));
        assert_eq!(words.get(rows), word(first));
        assert_eq!(
            words.chunks.last().map(|c| c.len()),
            Some(CHUNK_WORDS * NARROW)
        );
    }
}
