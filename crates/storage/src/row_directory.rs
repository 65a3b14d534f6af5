//! The row directory: one 8-byte word for each row of a table in a partition.
//!
//! Indexes lead to a row id, the row id to this word, the word to the tuple: in
//! the heap (hot) or in a block on a device (cold). Eviction and its undoing
//! change the word and nothing else, so a cold tuple costs this word and its
//! index entries (the tombstone of the anti-caching paper, §3.1).
//!
//! Guarantees: a row id stays until released; growth never copies words; ids
//! of released rows are used again before new ones. Assumes the partition's
//! lock. Does not survive a crash: checkpoints save the words, page by page,
//! and only pages in which a word changed in what a checkpoint says of it.

use crate::arena::TuplePtr;
use crate::changed_pages::ChangedPages;
use crate::chunk::Chunk;
use crate::index_snapshot::Corrupt;

/// Words in a chunk: 64 KiB.
pub const CHUNK_WORDS: usize = 8192;
const CHUNK_SHIFT: u32 = CHUNK_WORDS.trailing_zeros();
/// Words in a page, the unit in which a checkpoint saves them: 512 bytes.
pub const PAGE_WORDS: usize = 64;
const PAGE_SHIFT: u32 = PAGE_WORDS.trailing_zeros();
/// Row ids are below this, so that `u32::MAX` may mean "no row".
pub const ROWS_MAX: u32 = u32::MAX;

const TAG_SHIFT: u32 = 62;
const TAG_FREE: u64 = 0;
const TAG_HOT: u64 = 1;
const TAG_COLD: u64 = 2;
const ASIDE: u64 = 1 << 61;
const UNCOMMITTED: u64 = 1 << 60;
const TEMPERATURE_SHIFT: u32 = 57;
const TEMPERATURE_MASK: u64 = 7 << TEMPERATURE_SHIFT;
const POINTER_MASK: u64 = (1 << TuplePtr::BITS) - 1;
const FINGERPRINT_SHIFT: u32 = 52;
const FINGERPRINT_MASK: u8 = 31;
const ADDRESS_MASK: u64 = (1 << FINGERPRINT_SHIFT) - 1;

/// Where a tuple's copy is on a device. As a word it fits 52 bits and is never
/// zero, because block ids start at 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ColdAddress {
    /// The block's id; never used twice.
    pub block: u32,
    /// Offset of the record in the block, in 16-byte units.
    pub slot: u16,
    /// How many 4 KiB sectors the record touches; [`ColdAddress::EXTENT_LONG`]
    /// says to read the record's header first.
    pub extent: u8,
}

impl ColdAddress {
    /// The extent of records that touch this many sectors or more.
    pub const EXTENT_LONG: u8 = 15;

    /// As a word: the block in the high bits, then slot, then extent.
    pub fn to_word(self) -> u64 {
        assert!(self.block != 0, "block ids start at 1");
        assert!(self.extent <= Self::EXTENT_LONG, "extent out of range");
        u64::from(self.block) << 20 | u64::from(self.slot) << 4 | u64::from(self.extent)
    }

    /// From a word; `None` where there is no address (block 0).
    pub fn from_word(word: u64) -> Option<Self> {
        let block = (word >> 20) as u32;
        (block != 0).then_some(Self {
            block,
            slot: (word >> 4) as u16,
            extent: (word & 15) as u8,
        })
    }
}

/// What the directory knows of a row.
///
/// Bits from the top: tag 2, aside 1, uncommitted 1, temperature 3. Hot: 17
/// unused, pointer 40. Cold: fingerprint 5, block 32, slot 16, extent 4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word(pub u64);

/// A word known to be hot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotWord(u64);

/// A word known to be cold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColdWord(u64);

impl Word {
    /// A word for a tuple in the heap, of temperature 0.
    #[inline]
    pub fn hot(pointer: TuplePtr) -> Self {
        assert!(pointer.0 <= POINTER_MASK, "tuple address beyond 2^40");
        Self(TAG_HOT << TAG_SHIFT | pointer.0)
    }

    /// A word for a tuple on a device, of temperature 0. `fingerprint` is of the
    /// key's hash; its low 5 bits are kept.
    #[inline]
    pub fn cold(address: ColdAddress, fingerprint: u8) -> Self {
        let fingerprint = u64::from(fingerprint & FINGERPRINT_MASK) << FINGERPRINT_SHIFT;
        Self(TAG_COLD << TAG_SHIFT | fingerprint | address.to_word())
    }

    /// How warm the tuple is, 0 to [`crate::temperature::MAX`].
    #[inline]
    pub fn temperature(self) -> u8 {
        ((self.0 & TEMPERATURE_MASK) >> TEMPERATURE_SHIFT) as u8
    }

    /// The same word with another temperature (its low three bits).
    #[inline]
    #[must_use]
    pub fn with_temperature(self, temperature: u8) -> Self {
        let bits = u64::from(temperature) << TEMPERATURE_SHIFT & TEMPERATURE_MASK;
        Self(self.0 & !TEMPERATURE_MASK | bits)
    }

    fn free(next: Option<u32>) -> Self {
        Self(TAG_FREE << TAG_SHIFT | next.map_or(0, |row| u64::from(row) + 1))
    }

    fn next_free(self) -> Option<u32> {
        (self.0 as u32).checked_sub(1)
    }

    /// Whether no row has this word.
    #[inline]
    pub fn is_free(self) -> bool {
        self.0 >> TAG_SHIFT == TAG_FREE
    }

    /// Whether the tuple is in the heap.
    #[inline]
    pub fn is_hot(self) -> bool {
        self.0 >> TAG_SHIFT == TAG_HOT
    }

    /// Whether the tuple is only on a device.
    #[inline]
    pub fn is_cold(self) -> bool {
        self.0 >> TAG_SHIFT == TAG_COLD
    }

    /// The hot view.
    #[inline]
    pub fn as_hot(self) -> Option<HotWord> {
        self.is_hot().then_some(HotWord(self.0))
    }

    /// The cold view.
    #[inline]
    pub fn as_cold(self) -> Option<ColdWord> {
        self.is_cold().then_some(ColdWord(self.0))
    }

    /// Whether the partition's side tables know more (a row lock, versions).
    #[inline]
    pub fn is_aside(self) -> bool {
        self.0 & ASIDE != 0
    }

    /// Whether the transaction that wrote this row has not committed.
    #[inline]
    pub fn is_uncommitted(self) -> bool {
        self.0 & UNCOMMITTED != 0
    }

    /// The same word with `aside` as given.
    #[inline]
    #[must_use]
    pub fn with_aside(self, aside: bool) -> Self {
        Self(self.0 & !ASIDE | if aside { ASIDE } else { 0 })
    }

    /// The same word with `uncommitted` as given.
    #[inline]
    #[must_use]
    pub fn with_uncommitted(self, uncommitted: bool) -> Self {
        Self(self.0 & !UNCOMMITTED | if uncommitted { UNCOMMITTED } else { 0 })
    }
}

impl HotWord {
    /// Where the tuple is.
    #[inline]
    pub fn pointer(self) -> TuplePtr {
        TuplePtr(self.0 & POINTER_MASK)
    }

    /// The word of the same row after the tuple moved in the heap.
    #[inline]
    pub fn with_pointer(self, pointer: TuplePtr) -> Word {
        assert!(pointer.0 <= POINTER_MASK, "tuple address beyond 2^40");
        Word(self.0 & !POINTER_MASK | pointer.0)
    }

    /// The word itself.
    #[inline]
    pub fn word(self) -> Word {
        Word(self.0)
    }
}

impl ColdWord {
    /// Where the record is.
    #[inline]
    pub fn address(self) -> ColdAddress {
        let word = self.0 & ADDRESS_MASK;
        ColdAddress {
            block: (word >> 20) as u32,
            slot: (word >> 4) as u16,
            extent: (word & 15) as u8,
        }
    }

    /// 5 bits of the key's hash.
    #[inline]
    pub fn fingerprint(self) -> u8 {
        (self.0 >> FINGERPRINT_SHIFT) as u8 & FINGERPRINT_MASK
    }

    /// Whether a key with this fingerprint may be the tuple's.
    #[inline]
    pub fn may_be(self, fingerprint: u8) -> bool {
        self.fingerprint() == fingerprint & FINGERPRINT_MASK
    }

    /// The word of the same row after compaction moved the record.
    #[inline]
    pub fn with_address(self, address: ColdAddress) -> Word {
        Word(self.0 & !ADDRESS_MASK | address.to_word())
    }

    /// The word itself.
    #[inline]
    pub fn word(self) -> Word {
        Word(self.0)
    }
}

/// The words of all rows of one table in one partition.
#[derive(Default)]
pub struct RowDirectory {
    chunks: Vec<Chunk<u64>>,
    /// Row ids below this have been used at some time.
    appended: u32,
    rows: u32,
    free: Option<u32>,
    changed: ChangedPages,
}

impl RowDirectory {
    /// An empty directory; takes no memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// A row id for a new row; its word is free until [`RowDirectory::set`].
    /// `None` when all 2^32 - 1 ids are taken.
    pub fn allocate(&mut self) -> Option<u32> {
        let row = match self.free {
            Some(row) => {
                self.free = self.get(row).next_free();
                *self.word_mut(row) = Word::free(None).0;
                row
            }
            None => self.append()?,
        };
        self.rows += 1;
        Some(row)
    }

    /// Gives a row id back. It must be allocated; its word becomes free.
    pub fn release(&mut self, row: u32) {
        assert!(self.rows > 0, "released a row of an empty directory");
        *self.word_mut(row) = Word::free(self.free).0;
        self.changed.mark((row >> PAGE_SHIFT) as usize);
        self.free = Some(row);
        self.rows -= 1;
    }

    /// The word of `row`; free for a row that never was.
    #[inline]
    pub fn get(&self, row: u32) -> Word {
        let chunk = self.chunks.get((row >> CHUNK_SHIFT) as usize);
        let word = chunk.and_then(|chunk| chunk.get(row as usize % CHUNK_WORDS));
        Word(word.copied().unwrap_or(0))
    }

    /// Changes the word of an allocated row. Freeing is
    /// [`RowDirectory::release`]'s.
    #[inline]
    pub fn set(&mut self, row: u32, word: Word) {
        assert!(!word.is_free(), "a row is freed by release");
        *self.word_mut(row) = word.0;
        self.changed.mark((row >> PAGE_SHIFT) as usize);
    }

    /// As [`RowDirectory::set`], where the tuple and its copy on a device stay
    /// what they were: only its temperature, its place in memory, whether it
    /// is in memory at all, or `aside` changes. A checkpoint has nothing new to
    /// save then.
    #[inline]
    pub fn set_unsaved(&mut self, row: u32, word: Word) {
        assert!(!word.is_free(), "a row is freed by release");
        *self.word_mut(row) = word.0;
    }

    /// Notes that what a checkpoint says of a row changed, though not its word:
    /// a hot tuple's copy on a device is another.
    #[inline]
    pub fn mark_changed(&mut self, row: u32) {
        self.changed.mark((row >> PAGE_SHIFT) as usize);
    }

    /// Puts back the word of a row while a directory is restored, whether the
    /// row is there or not; a free word takes it away. Row ids must not be
    /// allocated again before [`RowDirectory::rebuild_free_list`].
    pub fn restore(&mut self, row: u32, word: Word) {
        while self.appended <= row {
            if self.append().is_none() {
                return;
            }
        }
        *self.word_mut(row) = word.0;
        self.changed.mark((row >> PAGE_SHIFT) as usize);
    }

    /// Finds the free rows after words were restored one by one; the lowest
    /// ids will be given out first.
    pub fn rebuild_free_list(&mut self) {
        self.rows = 0;
        self.free = None;
        for row in (0..self.appended).rev() {
            let word = self.get(row);
            if word.is_hot() || word.is_cold() {
                self.rows += 1;
            } else {
                *self.word_mut(row) = Word::free(self.free).0;
                self.free = Some(row);
            }
        }
    }

    /// Asks for the cache line of a row's word.
    #[inline]
    pub fn prefetch(&self, row: u32) {
        let chunk = self.chunks.get((row >> CHUNK_SHIFT) as usize);
        if let Some(word) = chunk.and_then(|chunk| chunk.get(row as usize % CHUNK_WORDS)) {
            crate::arena::prefetch_line(word);
        }
    }

    /// Rows allocated and not released.
    pub fn len(&self) -> usize {
        self.rows as usize
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// One beyond the highest row id ever used: where sweeps over rows end.
    pub fn appended(&self) -> u32 {
        self.appended
    }

    /// The rows that have a word, in order of row id.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Word)> + '_ {
        self.iter_from(0)
    }

    /// As [`RowDirectory::iter`], from row `first` on.
    pub fn iter_from(&self, first: u32) -> impl Iterator<Item = (u32, Word)> + '_ {
        (first..self.appended)
            .map(|row| (row, self.get(row)))
            .filter(|(_, word)| !word.is_free())
    }

    /// Bytes of memory taken.
    pub fn bytes(&self) -> usize {
        self.chunks.len() * CHUNK_WORDS * size_of::<u64>()
            + self.chunks.capacity() * size_of::<Chunk<u64>>()
            + self.changed.bytes()
    }

    /// Which pages changed in what a checkpoint says of them.
    pub fn changed(&mut self) -> &mut ChangedPages {
        &mut self.changed
    }

    /// One beyond the last page.
    pub fn pages(&self) -> usize {
        (self.appended as usize).div_ceil(PAGE_WORDS)
    }

    /// The first row of a page.
    pub fn first_row(page: usize) -> u32 {
        (page * PAGE_WORDS) as u32
    }

    /// The words of a page, zero where no row ever was; `None` beyond the last.
    pub fn page(&self, page: usize) -> Option<&[u64]> {
        let first = page * PAGE_WORDS;
        let chunk = self.chunks.get(first / CHUNK_WORDS)?;
        chunk.get(first % CHUNK_WORDS..)?.get(..PAGE_WORDS)
    }

    /// Fills a page of a directory that is being restored;
    /// [`RowDirectory::end_restore`] comes after the last.
    ///
    /// # Errors
    /// [`Corrupt`] where no row can be.
    pub fn restore_page(
        &mut self,
        page: usize,
        words: impl Iterator<Item = u64>,
    ) -> Result<(), Corrupt> {
        let first = page * PAGE_WORDS;
        if first >= ROWS_MAX as usize {
            return Err(Corrupt("a page of rows beyond the last"));
        }
        while self.chunks.len() * CHUNK_WORDS <= first {
            self.chunks.push(Chunk::zeroed(CHUNK_WORDS));
        }
        let chunk = &mut self.chunks[first / CHUNK_WORDS][first % CHUNK_WORDS..];
        for (place, word) in chunk[..PAGE_WORDS].iter_mut().zip(words) {
            *place = word;
        }
        Ok(())
    }

    /// Ends the restoring of pages: rows below `appended` were used at some
    /// time. Nothing counts as changed. Row ids must not be allocated before
    /// [`RowDirectory::rebuild_free_list`].
    ///
    /// # Errors
    /// [`Corrupt`] where pages of these rows were not filled.
    pub fn end_restore(&mut self, appended: u32) -> Result<(), Corrupt> {
        if appended as usize > self.chunks.len() * CHUNK_WORDS {
            return Err(Corrupt("pages of rows are missing"));
        }
        self.chunks
            .truncate((appended as usize).div_ceil(CHUNK_WORDS));
        self.appended = appended;
        self.changed.clear_all();
        Ok(())
    }

    fn append(&mut self) -> Option<u32> {
        let row = self.appended;
        if row == ROWS_MAX {
            return None;
        }
        if row as usize == self.chunks.len() * CHUNK_WORDS {
            self.chunks.push(Chunk::zeroed(CHUNK_WORDS));
        }
        self.appended += 1;
        Some(row)
    }

    fn word_mut(&mut self, row: u32) -> &mut u64 {
        assert!(row < self.appended, "row id out of the directory");
        &mut self.chunks[(row >> CHUNK_SHIFT) as usize][row as usize % CHUNK_WORDS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn address() -> impl Strategy<Value = ColdAddress> {
        (1u32.., any::<u16>(), 0u8..=15).prop_map(|(block, slot, extent)| ColdAddress {
            block,
            slot,
            extent,
        })
    }

    proptest! {
        #[test]
        fn words_keep_every_field(
            address in address(), other in address(), pointer in 0u64..1 << 40,
            moved in 0u64..1 << 40, fingerprint in 0u8..32, temperature in 0u8..8,
            aside in any::<bool>(), uncommitted in any::<bool>(),
        ) {
            let cold = Word::cold(address, fingerprint).with_aside(aside).with_uncommitted(uncommitted);
            let cold = cold.with_temperature(temperature);
            prop_assert_eq!(cold.temperature(), temperature);
            let view = cold.as_cold().unwrap();
            prop_assert_eq!((view.address(), view.fingerprint()), (address, fingerprint));
            prop_assert_eq!((cold.is_aside(), cold.is_uncommitted()), (aside, uncommitted));
            prop_assert!(cold.as_hot().is_none() && !cold.is_free());
            let compacted = view.with_address(other);
            prop_assert_eq!(compacted.as_cold().unwrap().address(), other);
            prop_assert_eq!(compacted.as_cold().unwrap().fingerprint(), fingerprint);
            prop_assert_eq!(compacted.is_aside(), aside);
            prop_assert_eq!(compacted.temperature(), temperature);
            prop_assert_eq!(ColdAddress::from_word(address.to_word()), Some(address));

            let hot = Word::hot(TuplePtr(pointer)).with_uncommitted(uncommitted).with_aside(aside);
            let hot = hot.with_temperature(temperature);
            let hot = hot.as_hot().unwrap().with_pointer(TuplePtr(moved));
            let view = hot.as_hot().unwrap();
            prop_assert_eq!((view.pointer(), hot.temperature()), (TuplePtr(moved), temperature));
            prop_assert_eq!((hot.is_aside(), hot.is_uncommitted()), (aside, uncommitted));
            prop_assert!(hot.as_cold().is_none() && !hot.is_free());
        }

        #[test]
        fn behaves_as_a_map_and_survives_a_snapshot(
            steps in prop::collection::vec((any::<bool>(), any::<u16>(), 1u64..1 << 40), 1..400),
        ) {
            let mut directory = RowDirectory::new();
            let mut model: HashMap<u32, Word> = HashMap::new();
            for (add, which, pointer) in steps {
                if add || model.is_empty() {
                    let row = directory.allocate().unwrap();
                    directory.set(row, Word::hot(TuplePtr(pointer)));
                    prop_assert!(model.insert(row, Word::hot(TuplePtr(pointer))).is_none());
                } else {
                    let mut rows: Vec<u32> = model.keys().copied().collect();
                    rows.sort_unstable();
                    let row = rows[which as usize % rows.len()];
                    model.remove(&row);
                    directory.release(row);
                }
            }
            directory.changed().clear_all();
            let mut restored = RowDirectory::new();
            for page in 0..directory.pages() {
                let words = directory.page(page).unwrap().iter().copied();
                restored.restore_page(page, words).unwrap();
            }
            restored.end_restore(directory.appended()).unwrap();
            restored.rebuild_free_list();
            prop_assert_eq!(restored.changed().count(), 0);
            for directory in [&directory, &restored] {
                prop_assert_eq!(directory.len(), model.len());
                prop_assert_eq!(directory.iter().collect::<HashMap<_, _>>(), model.clone());
            }
            // Free ids are used before new ones, each once.
            let appended = restored.appended();
            for _ in model.len()..appended as usize {
                let row = restored.allocate().unwrap();
                prop_assert!(row < appended && !model.contains_key(&row));
                restored.set(row, Word::hot(TuplePtr(1)));
                model.insert(row, Word::hot(TuplePtr(1)));
            }
            prop_assert_eq!(restored.allocate(), Some(appended));
        }
    }

    #[test]
    fn growth_over_chunks_keeps_words_and_counts_memory() {
        let mut directory = RowDirectory::new();
        assert_eq!(directory.bytes(), 0);
        for expected in 0..3 * CHUNK_WORDS as u32 + 1 {
            let row = directory.allocate().unwrap();
            assert_eq!(row, expected);
            directory.set(row, Word::hot(TuplePtr(u64::from(row) + 1)));
        }
        assert!(directory.bytes() >= 4 * CHUNK_WORDS * 8);
        assert_eq!(directory.pages(), 3 * CHUNK_WORDS / PAGE_WORDS + 1);
        assert!(directory.page(directory.pages() - 1).is_some());
        assert!(directory.page(4 * CHUNK_WORDS / PAGE_WORDS).is_none());
        for row in 0..directory.appended() {
            let hot = directory.get(row).as_hot().unwrap();
            assert_eq!(hot.pointer(), TuplePtr(u64::from(row) + 1));
        }
        assert!(directory.get(u32::MAX).is_free());
    }

    #[test]
    fn a_page_changes_with_what_a_checkpoint_says_of_it() {
        let mut directory = RowDirectory::new();
        for _ in 0..3 * PAGE_WORDS {
            let row = directory.allocate().unwrap();
            directory.set(row, Word::hot(TuplePtr(7)));
        }
        assert_eq!(directory.changed().count(), 3);
        directory.changed().clear_all();
        let warm = directory.get(5).with_temperature(3);
        directory.set_unsaved(5, warm);
        assert_eq!((directory.get(5), directory.changed().count()), (warm, 0));
        directory.mark_changed(PAGE_WORDS as u32);
        assert_eq!(directory.changed().next(0), Some(1));
        directory.release(2 * PAGE_WORDS as u32 + 1);
        directory.restore(0, Word(0));
        assert_eq!(directory.changed().count(), 3);
    }

    #[test]
    fn a_restored_directory_misses_no_page() {
        let mut directory = RowDirectory::new();
        directory
            .restore_page(0, [0; PAGE_WORDS].into_iter())
            .unwrap();
        assert!(directory.end_restore(CHUNK_WORDS as u32 + 1).is_err());
        let beyond = ROWS_MAX as usize / PAGE_WORDS + 1;
        assert!(directory.restore_page(beyond, std::iter::empty()).is_err());
    }
}
