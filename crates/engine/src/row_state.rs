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
//! | [`bury`](TablePartition::bury) | dead | free |
//!
//! Guarantees: a transition changes all that belongs to it, or nothing. Assumes the partition's
//! lock, and that the caller says rightly what the row is: debug builds look. Indexes, blocks'
//! counts of what lives in them, the log and versions are the caller's.

use thermocline_storage::row_directory::Word;
use thermocline_storage::temperature;

use crate::error::{Error, Result};
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

    /// Gives the number of a dead row back.
    pub fn bury(&mut self, row: u32, numbers: Numbers) {
        debug_assert!(self.directory.get(row) == DEAD, "row {row} is not dead");
        self.free(row, numbers);
    }

    /// A new row has its first tuple.
    ///
    /// # Errors
    /// The arena is exhausted; its number is still the caller's.
    #[inline]
    pub fn insert(&mut self, row: u32, tuple: &[u8], uncommitted: bool) -> Result<()> {
        debug_assert!(self.directory.get(row).is_free(), "row {row} is not free");
        let pointer = self.heap.insert(row, 0, tuple).ok_or_else(exhausted)?;
        let word = Word::hot(pointer)
            .with_uncommitted(uncommitted)
            .with_temperature(temperature::WRITTEN);
        self.directory.set(row, word);
        self.became_hot(row);
        self.live += 1;
        Ok(())
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

    /// The word of a row that is no more.
    fn free(&mut self, row: u32, numbers: Numbers) {
        match numbers {
            Numbers::Listed => self.directory.release(row),
            Numbers::Restoring => self.directory.restore(row, Word(0)),
        }
    }

    /// Whether the caller knows the row as it is.
    fn is_now(&self, row: u32, word: Word) -> bool {
        self.directory.get(row) == word
    }
}

/// Whether the word is of a row that is there, hot or cold.
#[inline]
fn is_there(word: Word) -> bool {
    word.is_hot() || word.is_cold()
}

fn exhausted() -> Error {
    Error::OutOfMemory("the arena is exhausted".into())
}
