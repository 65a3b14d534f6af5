//! The words of a directory in memory, in chunks of three forms.
//!
//! A *narrow* chunk has six bytes a word ([`super::narrow`]), side by side. One that gets a
//! word with no room in six bytes is *wide*, eight bytes each, from then on: all numbers of
//! blocks are taken, or it is none of ours. One of which most rows are cold is *grouped*: the
//! words of each page apart, packed where that pays ([`super::group`]). It is narrow again
//! when most of its pages are no longer packed.
//!
//! The first chunk begins short and grows by copies, as long as it is the only one, so that a
//! small table takes little in each partition. It is narrow until it is whole.

use super::group::Group;
use super::narrow::{
    Blocks, NARROW, is_cold, is_hot, narrow_at, narrow_hot, narrow_or_free, set_narrow,
};
use super::word::Word;
use super::{PAGE_SHIFT, PAGE_WORDS};
use crate::arena::prefetch_line;
use crate::chunk::Chunk;

/// Words in a chunk: 48 KiB where they are narrow.
pub(super) const CHUNK_WORDS: usize = 8192;
const CHUNK_SHIFT: u32 = CHUNK_WORDS.trailing_zeros();
const CHUNK_GROUPS: usize = CHUNK_WORDS / PAGE_WORDS;
/// Pieces of 16 bits of a word that has no room in a narrow one.
const WIDE: usize = 4;

/// Words that the first chunk begins with.
const FIRST_WORDS: usize = PAGE_WORDS;
/// A shorter chunk is not grouped: the groups' heads would take as much.
const GROUPED_WORDS_MIN: usize = 1024;
/// A chunk is grouped when so many of its words are cold, and most of those that are not
/// free. It must take at most this part of the memory then.
const COLD_FIRST: u16 = 2 * PAGE_WORDS as u16;
const GROUPED_MAX: usize = CHUNK_WORDS * NARROW * 3 / 4;
/// A chunk with more groups that are plain is narrow.
const PLAIN_GROUPS_MAX: usize = CHUNK_GROUPS * 3 / 4;

enum Form {
    Narrow(Narrow),
    Grouped(Grouped),
    Wide(Chunk<u16>),
}

struct Narrow {
    words: Chunk<u16>,
    /// Words that are cold, and those that are not zero.
    cold: u16,
    used: u16,
    /// It is tried to group them when so many are cold.
    try_at: u16,
}

struct Grouped {
    groups: Box<[Group; CHUNK_GROUPS]>,
    plain: usize,
}

#[derive(Default)]
pub(super) struct Words {
    chunks: Vec<Form>,
    /// Apart from what every look-up reads.
    blocks: Box<Blocks>,
    /// Pieces of all groups.
    grouped_pieces: usize,
}

impl Words {
    /// Words that there is room for.
    #[inline]
    pub fn capacity(&self) -> usize {
        match &self.chunks[..] {
            [Form::Narrow(only)] => only.capacity(),
            chunks => chunks.len() * CHUNK_WORDS,
        }
    }

    /// Makes room for more free words: a chunk of them, or as many as there are while those are
    /// less than a chunk.
    pub fn grow(&mut self) {
        match &mut self.chunks[..] {
            [Form::Narrow(only)] if !only.is_whole() => only.lengthen(2 * only.capacity()),
            [] => self.chunks.push(Form::Narrow(Narrow::free(FIRST_WORDS))),
            _ => self.chunks.push(Form::Narrow(Narrow::free(CHUNK_WORDS))),
        }
    }

    /// Keeps the chunks of so many words.
    pub fn truncate(&mut self, words: usize) {
        let chunks = words.div_ceil(CHUNK_WORDS);
        for row in chunks * CHUNK_WORDS..self.capacity() {
            self.put(row as u32, Word(0));
        }
        for chunk in self.chunks.drain(chunks..) {
            if let Form::Grouped(chunk) = chunk {
                self.grouped_pieces -= chunk.pieces();
            }
        }
    }

    /// The word of a row, zero beyond the last.
    #[inline(always)]
    pub fn get(&self, row: u32) -> Word {
        let place = row as usize % CHUNK_WORDS;
        match self.chunks.get((row >> CHUNK_SHIFT) as usize) {
            Some(Form::Narrow(chunk)) => self.blocks.widened(narrow_or_free(&chunk.words, place)),
            Some(Form::Grouped(chunk)) => self.grouped(chunk, place),
            Some(Form::Wide(chunk)) => Word(wide_at(chunk, place)),
            None => Word(0),
        }
    }

    /// Apart, so that a look-up among rows in memory is short.
    #[inline(never)]
    fn grouped(&self, chunk: &Grouped, place: usize) -> Word {
        self.blocks.widened(chunk.get(place))
    }

    /// Changes the word of a row for which there is room.
    #[inline]
    pub fn put(&mut self, row: u32, word: Word) {
        let (number, place) = ((row >> CHUNK_SHIFT) as usize, row as usize % CHUNK_WORDS);
        // What a use of a row in memory does, before all that it can't be.
        if let Form::Narrow(chunk) = &mut self.chunks[number]
            && is_hot(narrow_at(&chunk.words, place))
            && let Some(new) = narrow_hot(word)
        {
            return set_narrow(&mut chunk.words, place, new);
        }
        self.put_any(number, place, word);
    }

    #[inline(never)]
    fn put_any(&mut self, number: usize, place: usize, word: Word) {
        let put = match &mut self.chunks[number] {
            Form::Narrow(chunk) => {
                let old = narrow_at(&chunk.words, place);
                let new = self.blocks.narrowed(word, old);
                if let Some(new) = new {
                    chunk.put(place, old, new);
                }
                new.is_some()
            }
            Form::Grouped(chunk) => {
                let new = self.blocks.narrowed(word, chunk.get(place));
                if let Some(new) = new {
                    self.grouped_pieces -= chunk.groups[place >> PAGE_SHIFT].pieces();
                    chunk.put(place, new);
                    self.grouped_pieces += chunk.groups[place >> PAGE_SHIFT].pieces();
                    if chunk.plain > PLAIN_GROUPS_MAX {
                        self.ungroup(number);
                    }
                }
                new.is_some()
            }
            Form::Wide(chunk) => {
                set_wide(chunk, place, word.0);
                true
            }
        };
        if !put {
            self.widen(number, place, word);
        }
    }

    /// Packs the words of a page that `row` is in, where that saves memory.
    pub fn pack(&mut self, row: u32) {
        let number = (row >> CHUNK_SHIFT) as usize;
        match self.chunks.get_mut(number) {
            Some(Form::Narrow(chunk)) if chunk.is_cold() => self.group(number),
            Some(Form::Grouped(chunk)) => {
                let group = &mut chunk.groups[(row as usize % CHUNK_WORDS) >> PAGE_SHIFT];
                let (plain, pieces) = (group.is_plain(), group.pieces());
                group.pack();
                chunk.plain -= usize::from(plain && !group.is_plain());
                self.grouped_pieces = self.grouped_pieces - pieces + group.pieces();
            }
            _ => {}
        }
    }

    /// How many rows from `row` on are known to be cold, neither locked nor uncommitted,
    /// without a look at the word of each; none, where it is not known.
    #[inline]
    pub fn settled_from(&self, row: u32) -> u32 {
        match self.chunks.get((row >> CHUNK_SHIFT) as usize) {
            Some(Form::Grouped(chunk)) => {
                let place = row as usize % CHUNK_WORDS;
                chunk.groups[place >> PAGE_SHIFT].settled_from(place % PAGE_WORDS) as u32
            }
            _ => 0,
        }
    }

    /// How many rows from `row` on are known to be settled, in one block of columns, and at one position after
    /// the other; none, where it is not known.
    #[inline]
    pub fn columns_from(&self, row: u32) -> u32 {
        match self.chunks.get((row >> CHUNK_SHIFT) as usize) {
            Some(Form::Grouped(chunk)) => {
                let place = row as usize % CHUNK_WORDS;
                chunk.groups[place >> PAGE_SHIFT].columns_from(place % PAGE_WORDS) as u32
            }
            _ => 0,
        }
    }

    /// Asks for the cache line of a row's word.
    #[inline]
    pub fn prefetch(&self, row: u32) {
        let place = row as usize % CHUNK_WORDS;
        match self.chunks.get((row >> CHUNK_SHIFT) as usize) {
            Some(Form::Narrow(chunk)) => {
                if let Some(piece) = chunk.words.get(place * NARROW) {
                    prefetch_line(piece);
                }
            }
            Some(Form::Grouped(chunk)) => prefetch_line(&chunk.groups[place >> PAGE_SHIFT]),
            Some(Form::Wide(chunk)) => prefetch_line(&chunk[place * WIDE]),
            None => {}
        }
    }

    /// Bytes of memory taken.
    pub fn bytes(&self) -> usize {
        let of = |chunk: &Form| match chunk {
            Form::Narrow(chunk) => size_of_val(&*chunk.words),
            Form::Grouped(chunk) => size_of_val(&*chunk.groups),
            Form::Wide(chunk) => size_of_val(&**chunk),
        };
        self.chunks.iter().map(of).sum::<usize>()
            + self.grouped_pieces * size_of::<u16>()
            + self.chunks.capacity() * size_of::<Form>()
            + self.blocks.bytes()
    }

    /// Makes a narrow chunk a grouped one, if that saves enough.
    fn group(&mut self, number: usize) {
        let Form::Narrow(chunk) = &mut self.chunks[number] else {
            return;
        };
        chunk.lengthen(CHUNK_WORDS);
        let page = |page: usize| &chunk.words[page * PAGE_WORDS * NARROW..][..PAGE_WORDS * NARROW];
        let (mut groups, mut pieces) = (Vec::with_capacity(CHUNK_GROUPS), 0);
        let saves = (0..CHUNK_GROUPS).all(|number| {
            let group = Group::of(page(number));
            pieces += group.pieces();
            groups.push(group);
            pieces <= GROUPED_MAX
        });
        let plain = groups.iter().filter(|group| group.is_plain()).count();
        match groups.try_into() {
            Ok(groups) if saves && plain <= PLAIN_GROUPS_MAX => {
                self.chunks[number] = Form::Grouped(Grouped { groups, plain });
                self.grouped_pieces += pieces;
            }
            _ => chunk.try_at = chunk.cold + (chunk.cold / 8).max(PAGE_WORDS as u16),
        }
    }

    /// Makes a grouped chunk a narrow one.
    #[cold]
    fn ungroup(&mut self, number: usize) {
        let Form::Grouped(chunk) = &self.chunks[number] else {
            return;
        };
        let mut words = Chunk::zeroed(CHUNK_WORDS * NARROW);
        for (group, pieces) in
            (chunk.groups.iter()).zip(words.chunks_exact_mut(PAGE_WORDS * NARROW))
        {
            group.write_plain(pieces);
        }
        self.grouped_pieces -= chunk.pieces();
        let all = || (0..CHUNK_WORDS).map(|place| narrow_at(&words, place));
        let cold = all().filter(|word| is_cold(*word)).count() as u16;
        self.chunks[number] = Form::Narrow(Narrow {
            cold,
            used: all().filter(|word| *word != 0).count() as u16,
            try_at: cold + PAGE_WORDS as u16,
            words,
        });
    }

    /// Gives the words of a chunk eight bytes each, and puts one of them.
    #[cold]
    fn widen(&mut self, number: usize, place: usize, word: Word) {
        self.ungroup(number);
        let Form::Narrow(chunk) = &mut self.chunks[number] else {
            return;
        };
        chunk.lengthen(CHUNK_WORDS);
        let mut wide = Chunk::zeroed(CHUNK_WORDS * WIDE);
        for other in 0..CHUNK_WORDS {
            let narrow = narrow_at(&chunk.words, other);
            set_wide(&mut wide, other, self.blocks.widened(narrow).0);
            if other != place {
                self.blocks.release_of(narrow);
            }
        }
        // The old word of `place` was released when there was no room for the new.
        set_wide(&mut wide, place, word.0);
        self.chunks[number] = Form::Wide(wide);
    }
}

impl Narrow {
    fn free(words: usize) -> Self {
        Narrow {
            words: Chunk::zeroed(words * NARROW),
            cold: 0,
            used: 0,
            try_at: COLD_FIRST,
        }
    }

    #[inline]
    fn capacity(&self) -> usize {
        self.words.len() / NARROW
    }

    #[inline]
    fn is_whole(&self) -> bool {
        self.words.len() == CHUNK_WORDS * NARROW
    }

    /// Makes room for so many words, which are not more than a chunk's, by a copy.
    #[cold]
    fn lengthen(&mut self, words: usize) {
        if words > self.capacity() {
            self.words = Chunk::resized(&self.words, words * NARROW);
        }
    }

    #[inline]
    fn put(&mut self, place: usize, old: u64, new: u64) {
        self.cold = self.cold + u16::from(is_cold(new)) - u16::from(is_cold(old));
        self.used = self.used + u16::from(new != 0) - u16::from(old != 0);
        set_narrow(&mut self.words, place, new);
    }

    /// Whether enough of the words are cold to try to group them.
    fn is_cold(&self) -> bool {
        let long = self.capacity() >= GROUPED_WORDS_MIN;
        long && self.cold >= self.try_at && self.cold >= self.used / 8 * 5
    }
}

impl Grouped {
    #[inline]
    fn get(&self, place: usize) -> u64 {
        self.groups[place >> PAGE_SHIFT].get(place % PAGE_WORDS)
    }

    fn put(&mut self, place: usize, word: u64) {
        let group = &mut self.groups[place >> PAGE_SHIFT];
        let before = group.is_plain();
        group.put(place % PAGE_WORDS, word);
        self.plain += usize::from(group.is_plain() && !before);
    }

    fn pieces(&self) -> usize {
        self.groups.iter().map(|group| group.pieces()).sum()
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

#[cfg(test)]
mod tests;
