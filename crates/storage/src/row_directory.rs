//! The row directory: one word for each row of a table in a partition. It has eight bytes
//! for whoever asks and six in memory, or one or two where neighbours are alike
//! ([`words`]).
//!
//! Indexes lead to a row id, the row id to this word, the word to the tuple: in
//! the heap (hot) or in a block on a device (cold). Eviction and its undoing
//! change the word and nothing else, so a cold tuple costs this word and its
//! index entries (the tombstone of the anti-caching paper, §3.1).
//!
//! Guarantees: a row id stays until released; growth copies 48 KiB of words at most; ids
//! of released rows are used again before new ones. Assumes the partition's
//! lock. Does not survive a crash: checkpoints save the words, page by page,
//! and only pages in which a word changed in what a checkpoint says of it.

mod group;
mod narrow;
mod word;
mod words;

use crate::changed_pages::ChangedPages;
use crate::index_snapshot::Corrupt;
#[doc(hidden)]
pub use narrow::limit_block_numbers;
pub use word::{ColdAddress, ColdWord, HotWord, Word};
use words::Words;

/// Pages are saved in the order of their rows, so that few are missing before one: a number that
/// asks for more is damage, and would take memory for all rows before it.
const ROWS_MISSING_MAX: usize = 1 << 20;

/// Words in a page, the unit in which a checkpoint saves them: 512 bytes there.
pub const PAGE_WORDS: usize = 64;
const PAGE_SHIFT: u32 = PAGE_WORDS.trailing_zeros();
/// Row ids are below this, so that `u32::MAX` may mean "no row".
pub const ROWS_MAX: u32 = u32::MAX;

/// The words of all rows of one table in one partition.
#[derive(Default)]
pub struct RowDirectory {
    words: Words,
    /// Row ids below this have been used at some time.
    appended: u32,
    rows: u32,
    free: Option<u32>,
    changed: ChangedPages,
}

impl RowDirectory {
    /// An empty directory; takes hardly any memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// A row id for a new row; its word is free until [`RowDirectory::set`].
    /// `None` when all 2^32 - 1 ids are taken.
    pub fn allocate(&mut self) -> Option<u32> {
        let row = match self.free {
            Some(row) => {
                self.free = self.get(row).next_free();
                self.put(row, Word::free(None));
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
        self.put(row, Word::free(self.free));
        self.changed.mark((row >> PAGE_SHIFT) as usize);
        self.free = Some(row);
        self.rows -= 1;
    }

    /// The word of `row`; free for a row that never was.
    #[inline]
    pub fn get(&self, row: u32) -> Word {
        self.words.get(row)
    }

    /// Changes the word of an allocated row. Freeing is
    /// [`RowDirectory::release`]'s.
    #[inline]
    pub fn set(&mut self, row: u32, word: Word) {
        assert!(!word.is_free(), "a row is freed by release");
        self.put(row, word);
        self.changed.mark((row >> PAGE_SHIFT) as usize);
    }

    /// As [`RowDirectory::set`], where the tuple and its copy on a device stay
    /// what they were: only its temperature, its place in memory, whether it
    /// is in memory at all, or `aside` changes. A checkpoint has nothing new to
    /// save then.
    #[inline]
    pub fn set_unsaved(&mut self, row: u32, word: Word) {
        assert!(!word.is_free(), "a row is freed by release");
        self.put(row, word);
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
        self.put(row, word);
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
                self.put(row, Word::free(self.free));
                self.free = Some(row);
            }
        }
    }

    /// Packs the words around `row` in memory where that pays: call it after rows left
    /// memory. Bounded work, most often none.
    pub fn pack(&mut self, row: u32) {
        self.words.pack(row);
    }

    /// How many rows from `row` on are known to be cold, neither aside nor uncommitted,
    /// without a look at each; 0 where a look is needed.
    #[inline]
    pub fn settled_from(&self, row: u32) -> u32 {
        self.words.settled_from(row)
    }

    /// A run of rows from `row` on that lie in one block of columns at one position after the other, without a look
    /// at the word of each: where the first lies, and how many they are. All of them are cold, and neither locked
    /// nor uncommitted.
    #[inline]
    pub fn columns_from(&self, row: u32) -> Option<(ColdAddress, u32)> {
        match self.words.columns_from(row) {
            0 => None,
            count => Some((self.get(row).as_cold()?.address(), count)),
        }
    }

    /// Asks for the cache line of a row's word.
    #[inline]
    pub fn prefetch(&self, row: u32) {
        self.words.prefetch(row);
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
        self.words.bytes() + self.changed.bytes()
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
    pub fn page(&self, page: usize) -> Option<impl Iterator<Item = Word> + Clone + '_> {
        let first = page * PAGE_WORDS;
        let there = first < self.words.capacity();
        there.then(|| (first..first + PAGE_WORDS).map(|row| self.words.get(row as u32)))
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
        if first > self.words.capacity() + ROWS_MISSING_MAX {
            return Err(Corrupt("a page of rows far beyond those before it"));
        }
        while self.words.capacity() <= first {
            self.words.grow();
        }
        for (row, word) in (first..first + PAGE_WORDS).zip(words) {
            self.words.put(row as u32, Word(word));
        }
        self.words.pack(first as u32);
        Ok(())
    }

    /// Ends the restoring of pages: rows below `appended` were used at some
    /// time. Nothing counts as changed. Row ids must not be allocated before
    /// [`RowDirectory::rebuild_free_list`].
    ///
    /// # Errors
    /// [`Corrupt`] where pages of these rows were not filled.
    pub fn end_restore(&mut self, appended: u32) -> Result<(), Corrupt> {
        if appended as usize > self.words.capacity() {
            return Err(Corrupt("pages of rows are missing"));
        }
        self.words.truncate(appended as usize);
        self.appended = appended;
        self.changed.clear_all();
        Ok(())
    }

    fn append(&mut self) -> Option<u32> {
        let row = self.appended;
        if row == ROWS_MAX {
            return None;
        }
        if row as usize == self.words.capacity() {
            self.words.grow();
        }
        self.appended += 1;
        Some(row)
    }

    #[inline]
    fn put(&mut self, row: u32, word: Word) {
        assert!(row < self.appended, "row id out of the directory");
        self.words.put(row, word);
    }
}

#[cfg(test)]
mod tests {
    use super::words::CHUNK_WORDS;
    use super::*;
    use crate::arena::TuplePtr;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn beyond_the_last_row_number_only_free_ones_are_given() {
        let mut directory = RowDirectory::new();
        let row = directory.allocate().expect("a row");
        directory.set(row, Word::hot(TuplePtr(1)));
        directory.appended = ROWS_MAX;
        assert_eq!(directory.allocate(), None);
        directory.release(row);
        assert_eq!(directory.allocate(), Some(row));
        assert_eq!(directory.allocate(), None);
    }

    proptest! {
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
                let words = directory.page(page).unwrap().map(|word| word.0);
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
        let bytes = directory.bytes();
        assert!((4 * CHUNK_WORDS * 6..5 * CHUNK_WORDS * 6).contains(&bytes));
        assert_eq!(directory.pages(), 3 * CHUNK_WORDS / PAGE_WORDS + 1);
        assert!(directory.page(directory.pages() - 1).is_some());
        assert!(directory.page(4 * CHUNK_WORDS / PAGE_WORDS).is_none());
        for row in 0..directory.appended() {
            let hot = directory.get(row).as_hot().unwrap();
            assert_eq!(hot.pointer(), TuplePtr(u64::from(row) + 1));
        }
        assert!(directory.get(u32::MAX).is_free());
    }

    /// As in each partition of a small table: 48 KiB was taken for the first row.
    #[test]
    fn few_rows_take_little() {
        let mut directory = RowDirectory::new();
        for rows in 1..=3 * CHUNK_WORDS {
            let row = directory.allocate().unwrap();
            directory.set(row, Word::hot(TuplePtr(u64::from(row) + 1)));
            if rows <= CHUNK_WORDS {
                assert!(directory.bytes() < 12 * rows + 700, "{rows} rows");
                assert!(directory.get(directory.pages() as u32 * 64).is_free());
            }
        }
        for row in 0..directory.appended() {
            let hot = directory.get(row).as_hot().unwrap();
            assert_eq!(hot.pointer(), TuplePtr(u64::from(row) + 1));
        }
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
