//! What a transition keeps in step with a row's word: how many rows are there, how many of them
//! are cold, and the policy's order. And what debug builds hold every transition to, by what the
//! row was before it.

use thermocline_device::Mutation;
use thermocline_storage::row_directory::{ColdAddress, HotWord, Word};

use super::{TablePartition, is_there};

/// A row and the counts, as they were before a transition. Nothing in a release build.
#[derive(Clone, Copy)]
pub(super) struct Before {
    word: Word,
    live: u64,
    cold: u64,
}

impl TablePartition {
    /// A row more is there.
    #[inline]
    pub(super) fn note_more(&mut self) {
        if !Mutation::RowNotCounted.is_made() {
            self.live += 1;
        }
    }

    /// A row fewer is there.
    #[inline]
    pub(super) fn note_fewer(&mut self) {
        if !Mutation::GoneRowCounted.is_made() {
            self.live -= 1;
        }
    }

    /// A row more is cold.
    #[inline]
    pub(super) fn note_colder(&mut self) {
        if !Mutation::ColdNotCounted.is_made() {
            self.cold += 1;
        }
    }

    /// A row fewer is cold.
    #[inline]
    pub(super) fn note_warmer(&mut self) {
        if !Mutation::WarmRowCountedCold.is_made() {
            self.cold -= 1;
        }
    }

    /// The policy learns that a row is hot that was not.
    #[inline]
    pub(super) fn note_hot(&mut self, row: u32) {
        if !Mutation::HotRowNotChained.is_made() {
            self.order.became_hot(row);
        }
        debug_assert!(
            self.order.keeps(row) != Some(false),
            "row {row} is hot, and its policy does not know"
        );
    }

    /// The policy learns that a row has left memory.
    #[inline]
    pub(super) fn note_left(&mut self, row: u32) {
        if !Mutation::LeftRowChained.is_made() {
            self.order.left(row);
        }
        debug_assert!(
            self.order.keeps(row) != Some(true),
            "row {row} has left, and its policy does not know"
        );
    }

    /// On the way into a transition.
    #[inline]
    pub(super) fn look(&self, row: u32) -> Before {
        let word = match cfg!(debug_assertions) {
            true => self.directory.get(row),
            false => Word(0),
        };
        Before {
            word,
            live: self.live,
            cold: self.cold,
        }
    }

    /// On the way out of it: the counts follow the word, and a row that stays keeps its marks.
    #[inline]
    pub(super) fn check(&self, row: u32, before: Before) {
        if !cfg!(debug_assertions) {
            return;
        }
        let now = self.directory.get(row);
        let followed = |count: u64, was: bool, is: bool| count + u64::from(is) - u64::from(was);
        let live = followed(before.live, is_there(before.word), is_there(now));
        assert!(self.live == live, "row {row} is not counted as it is");
        let cold = followed(before.cold, before.word.is_cold(), now.is_cold());
        assert!(self.cold == cold, "cold row {row} is not counted as it is");
        assert!(self.cold <= self.live, "cold rows are counted twice");
        if is_there(before.word) && is_there(now) {
            let marks = |word: Word| (word.is_aside(), word.is_uncommitted());
            assert!(
                marks(before.word) == marks(now),
                "row {row} has lost a mark"
            );
        }
        self.check_tuple(row);
    }

    /// On the way out: where the row's copy lies, if it has one.
    #[inline]
    pub(super) fn check_copy(&self, row: u32, copy: Option<ColdAddress>) {
        debug_assert!(
            self.copy_of_row(self.directory.get(row)) == copy,
            "row {row} has its copy elsewhere"
        );
    }

    /// A row's word leads to its own tuple.
    #[inline]
    pub(super) fn check_tuple(&self, row: u32) {
        debug_assert!(
            self.has_tuple_of(row, self.directory.get(row)),
            "row {row} leads to another's tuple"
        );
    }

    /// Whether the heap has the tuple that a word leads to.
    pub(super) fn has_tuple_of(&self, row: u32, word: Word) -> bool {
        let is_its = |hot: HotWord| self.heap.row(hot.pointer()) == row;
        word.as_hot().is_none_or(is_its)
    }
}
