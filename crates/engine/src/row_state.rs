//! A row's life: the one file that changes a row's word in the directory, the counts of a
//! table's rows, its place in the eviction chain and what is said of its copy on a device.
//!
//! A row is *free* (its number is nobody's), *hot* (its tuple is in the heap), *cold* (it is on
//! a device only) or *dead* (deleted, while its number is still somebody's). Of a hot tuple's
//! copy the tuple's header tells: there is none (*dirty*), one is being made (*copying*), or
//! there is one (*clean*).
//!
//! | transition | before | after |
//! |---|---|---|
//! | [`insert`](TablePartition::insert) | free | dirty |
//! | [`undo_insert`](TablePartition::undo_insert) | hot | free |
//! | [`change`](TablePartition::change) | hot, cold | dirty |
//! | [`undo_change`](TablePartition::undo_change) | dirty | what it was, if that was hot |
//! | [`undo_change_of_cold`](TablePartition::undo_change_of_cold) | dirty | cold |
//! | [`replay`](TablePartition::replay) | free, hot, cold | dirty |
//! | [`die`](TablePartition::die) | hot, cold | dead |
//! | [`undo_die`](TablePartition::undo_die) | dead | what it was |
//! | [`bury`](TablePartition::bury) | dead | dead, without a tuple; or free |
//! | [`free_number`](TablePartition::free_number) | dead, without a tuple | free |
//! | [`forget`](TablePartition::forget) | hot, cold | free |
//!
//! Guarantees: a transition changes all that belongs to it, or nothing. Assumes the partition's
//! lock, and that the caller says rightly what the row is: debug builds look. Indexes, blocks'
//! counts of what lives in them, the log and versions are the caller's.

use thermocline_storage::arena::TuplePtr;
use thermocline_storage::row_directory::{ColdAddress, ColdWord, HotWord, Word};
use thermocline_storage::temperature;

use crate::error::{Error, Result};
use crate::evict::cold_copy;
use crate::partition::TablePartition;

/// The word of a row that a transaction under way has deleted: nobody sees it,
/// and its number is not given out. The directory takes unknown tags for free
/// when it is restored.
pub(crate) const DEAD: Word = Word(3 << 62);

/// Who has the numbers that no row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// The directory, which gives them out again.
    Listed,
    /// Nobody yet: rows are being restored, and each brings its own.
    Restoring,
}

/// What became of a row that the log has a tuple for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replayed {
    /// It was not there.
    Inserted,
    /// It was there; the copy that its tuple had is a hole now.
    Changed(Option<ColdAddress>),
}

impl TablePartition {
    /// A number for a new row, which is free until [`Self::insert`].
    pub fn take_number(&mut self) -> Result<u32> {
        let number = self.directory.allocate();
        number.ok_or_else(|| Error::TooLarge("the partition has no row numbers left".into()))
    }

    /// Has this number for a new row, as it had it before; false if a row is there.
    pub fn take_number_again(&mut self, row: u32) -> bool {
        if is_there(self.directory.get(row)) {
            return false;
        }
        self.directory.restore(row, Word(0));
        true
    }

    /// Gives a number back that no row got.
    pub fn give_number(&mut self, row: u32, numbers: Numbers) {
        debug_assert!(self.directory.get(row).is_free(), "row {row} is not free");
        self.free(row, numbers);
    }

    /// A new row has its first tuple.
    ///
    /// # Errors
    /// The arena is exhausted; its number is still the caller's.
    #[inline]
    pub fn insert(&mut self, row: u32, tuple: &[u8], uncommitted: bool) -> Result<()> {
        debug_assert!(self.directory.get(row).is_free(), "row {row} is not free");
        let word = self.store_new(row, tuple, uncommitted)?;
        self.directory.set(row, word);
        Ok(())
    }

    #[inline]
    fn store_new(&mut self, row: u32, tuple: &[u8], uncommitted: bool) -> Result<Word> {
        let pointer = self.heap.insert(row, 0, tuple).ok_or_else(exhausted)?;
        self.became_hot(row);
        self.live += 1;
        Ok(Word::hot(pointer)
            .with_uncommitted(uncommitted)
            .with_temperature(temperature::WRITTEN))
    }

    /// A row is as if it had never been inserted.
    pub fn undo_insert(&mut self, row: u32, word: Word, numbers: Numbers) {
        debug_assert!(self.is_now(row, word) && word.is_hot());
        if let Some(hot) = word.as_hot() {
            self.heap.free(hot.pointer());
            self.live -= 1;
            self.free(row, numbers);
        }
    }

    /// A row's tuple becomes another, which no block has. `warmer`: so many uses of the row
    /// were not counted before. Returns where the copy lies that the old tuple had: a hole from
    /// now on.
    ///
    /// # Errors
    /// The arena is exhausted; the row is as it was.
    #[inline]
    pub fn change(
        &mut self,
        row: u32,
        word: Word,
        tuple: &[u8],
        warmer: u8,
    ) -> Result<Option<ColdAddress>> {
        debug_assert!(self.is_now(row, word) && is_there(word));
        let (pointer, hole) = match (word.as_hot(), word.as_cold()) {
            (Some(hot), _) => {
                let hole = cold_copy(self.heap.cold(hot.pointer()));
                (self.heap.replace(hot.pointer(), tuple), hole)
            }
            (_, cold) => {
                let hole = cold.map(ColdWord::address);
                (self.heap.insert(row, 0, tuple), hole)
            }
        };
        let pointer = pointer.ok_or_else(exhausted)?;
        debug_assert!(self.heap.cold(pointer) == 0, "a changed tuple has a copy");
        let warmth = temperature::of_changed(word.temperature(), word.is_cold());
        let warmth = (warmth + warmer).min(temperature::MAX);
        let hot = hot_word(pointer, word).with_temperature(warmth);
        self.directory.set(row, hot);
        if word.is_cold() {
            self.cold -= 1;
            self.became_hot(row);
        }
        Ok(hole)
    }

    /// A row that was changed where it lay has its old tuple again, and `copy`, which the tuple's
    /// header said of its copy.
    pub fn undo_change(&mut self, row: u32, hot: HotWord, old: &[u8], copy: u64) {
        debug_assert!(self.is_now(row, hot.word()) && self.heap.cold(hot.pointer()) == 0);
        if let Some(pointer) = self.heap.replace(hot.pointer(), old) {
            self.heap.set_cold(pointer, copy);
            self.directory.set(row, hot.with_pointer(pointer));
        }
    }

    /// A row that was cold and was changed is again where it was.
    pub fn undo_change_of_cold(&mut self, row: u32, hot: HotWord, cold: ColdWord) {
        debug_assert!(self.is_now(row, hot.word()) && self.heap.cold(hot.pointer()) == 0);
        self.heap.free(hot.pointer());
        self.directory.set(row, cold.word());
        self.cold += 1;
    }

    /// At a restart: the log has this tuple for a row, whether it was there or not.
    ///
    /// # Errors
    /// The arena is exhausted; the row is as it was.
    pub fn replay(&mut self, row: u32, tuple: &[u8], provisional: bool) -> Result<Replayed> {
        let word = self.directory.get(row);
        if !is_there(word) {
            let word = self.store_new(row, tuple, provisional)?;
            self.directory.restore(row, word);
            return Ok(Replayed::Inserted);
        }
        let hole = self.change(row, word, tuple, 0)?;
        if word.is_hot() {
            // Nothing else counts as its use.
            self.became_hot(row);
        }
        Ok(Replayed::Changed(hole))
    }

    /// A row is deleted. Its tuple, if it is hot, stays until it is buried. Returns where the
    /// tuple's copy lies: a hole, if this is not undone.
    #[inline]
    pub fn die(&mut self, row: u32, word: Word) -> Option<ColdAddress> {
        debug_assert!(self.is_now(row, word) && is_there(word));
        self.directory.set(row, DEAD);
        self.live -= 1;
        match (word.as_hot(), word.as_cold()) {
            (Some(hot), _) => cold_copy(self.heap.cold(hot.pointer())),
            (_, cold) => {
                self.cold -= u64::from(word.is_cold());
                cold.map(ColdWord::address)
            }
        }
    }

    /// A dead row is what it was.
    pub fn undo_die(&mut self, row: u32, word: Word) {
        debug_assert!(self.is_now(row, DEAD) && is_there(word));
        debug_assert!(self.has_tuple_of(row, word), "row {row} died for good");
        self.directory.set(row, word);
        self.live += 1;
        self.cold += u64::from(word.is_cold());
    }

    /// A row that had this word when it died is dead for good: its tuple goes. So does its
    /// number, unless it is `kept`, for snapshots to which the row is still there.
    pub fn bury(&mut self, row: u32, word: Word, kept: bool, numbers: Numbers) {
        debug_assert!(self.is_now(row, DEAD) && is_there(word));
        debug_assert!(self.has_tuple_of(row, word), "row {row} was buried before");
        if let Some(hot) = word.as_hot() {
            self.heap.free(hot.pointer());
        }
        if !kept {
            self.free(row, numbers);
        }
    }

    /// No snapshot sees a dead row any more: its number may be another's.
    pub fn free_number(&mut self, row: u32) {
        debug_assert!(self.is_now(row, DEAD), "row {row} is not dead");
        self.free(row, Numbers::Listed);
    }

    /// At a restart: a row goes, whatever it was, with its tuple and its number. Returns where
    /// the tuple's copy lies: a hole from now on.
    pub fn forget(&mut self, row: u32) -> Option<ColdAddress> {
        let word = self.directory.get(row);
        let hole = match (word.as_hot(), word.as_cold()) {
            (Some(hot), _) => {
                let hole = cold_copy(self.heap.cold(hot.pointer()));
                self.heap.free(hot.pointer());
                hole
            }
            (_, cold) => {
                self.cold -= u64::from(word.is_cold());
                cold.map(ColdWord::address)
            }
        };
        // An image may have been wrong about how many there are.
        self.live = self.live.saturating_sub(u64::from(is_there(word)));
        self.free(row, Numbers::Restoring);
        hole
    }

    /// The word of a row that is no more.
    fn free(&mut self, row: u32, numbers: Numbers) {
        match numbers {
            Numbers::Listed => self.directory.release(row),
            Numbers::Restoring => self.directory.restore(row, Word(0)),
        }
    }

    /// Whether the heap has the tuple that a word leads to.
    fn has_tuple_of(&self, row: u32, word: Word) -> bool {
        let is_its = |hot: HotWord| self.heap.row(hot.pointer()) == row;
        word.as_hot().is_none_or(is_its)
    }

    /// Whether the caller knows the row as it is.
    fn is_now(&self, row: u32, word: Word) -> bool {
        self.directory.get(row) == word
    }
}

/// The word of a row whose tuple is in the heap now, and was not, or elsewhere.
#[inline]
fn hot_word(pointer: TuplePtr, before: Word) -> Word {
    Word::hot(pointer)
        .with_aside(before.is_aside())
        .with_uncommitted(before.is_uncommitted())
        .with_temperature(before.temperature())
}

/// Whether the word is of a row that is there, hot or cold.
#[inline]
fn is_there(word: Word) -> bool {
    word.is_hot() || word.is_cold()
}

fn exhausted() -> Error {
    Error::OutOfMemory("the arena is exhausted".into())
}
