//! Packing the words of rows that left memory, a page at a time.

use thermocline_storage::row_directory::PAGE_WORDS;

use super::TablePartition;

/// The page of a directory from which rows leave, to be packed when they come from the next.
#[derive(Default)]
pub(crate) struct LeftPage(Option<u32>);

impl LeftPage {
    /// A row has left, or moved to another block.
    #[inline]
    pub fn note(&mut self, rows: &mut TablePartition, row: u32) {
        let before = self.0.replace(row).unwrap_or(row);
        if before / PAGE_WORDS as u32 != row / PAGE_WORDS as u32 {
            rows.pack(before);
        }
    }
}
