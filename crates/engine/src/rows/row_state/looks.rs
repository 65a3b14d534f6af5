//! What is asked of the rows of a table. Nothing here changes any.

use thermocline_storage::heap::Heap;
use thermocline_storage::row_directory::{ColdAddress, ColdWord, HotWord, RowDirectory, Word};

use super::{CopyWord, Copying, PolicyCounts, TablePartition};
use crate::rows::index::IndexSlot;

impl TablePartition {
    /// The words of the rows.
    #[inline]
    pub fn directory(&self) -> &RowDirectory {
        &self.directory
    }

    /// The tuples of the hot rows, and those of dead ones that are not buried.
    #[inline]
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Rows that are there, hot or cold.
    #[inline]
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Of these, the cold ones.
    #[inline]
    pub fn cold(&self) -> u64 {
        self.cold
    }

    /// Its indexes, which lead to the rows' numbers.
    #[inline]
    pub fn indexes(&self) -> &[IndexSlot] {
        &self.indexes
    }

    /// What the policy has done.
    pub fn counts(&self) -> &PolicyCounts {
        &self.counts
    }

    /// What is said of a hot tuple's copy.
    #[inline]
    pub fn copy_word(&self, hot: HotWord) -> CopyWord {
        CopyWord(self.heap.cold(hot.pointer()))
    }

    /// Where a hot tuple's copy lies, if it is clean.
    #[inline]
    pub fn copy_of(&self, hot: HotWord) -> Option<ColdAddress> {
        self.copy_word(hot).address()
    }

    /// Whether a hot tuple has no copy, and none is being made.
    #[inline]
    pub fn is_dirty(&self, hot: HotWord) -> bool {
        self.copy_word(hot) == CopyWord::NONE
    }

    /// Whether a hot tuple is still as it was when it was copied.
    #[inline]
    pub fn is_as_copied(&self, hot: HotWord, copying: Copying, slot: u16) -> bool {
        self.copy_word(hot) == copying.mark(slot)
    }

    /// Where a row's copy lies, if it has one: it is clean, or cold.
    #[inline]
    pub fn copy_of_row(&self, word: Word) -> Option<ColdAddress> {
        match (word.as_hot(), word.as_cold()) {
            (Some(hot), _) => self.copy_of(hot),
            (_, cold) => cold.map(ColdWord::address),
        }
    }

    /// Bytes of what is kept of rows beside their tuples: directory and order.
    pub fn state_bytes(&self) -> usize {
        self.directory.bytes() + self.order.bytes()
    }
}
