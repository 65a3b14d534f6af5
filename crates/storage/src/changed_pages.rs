//! Which pages of a structure changed since a checkpoint last copied them, and
//! how a checkpoint reads and a restart fills them ([`Paged`]).
//!
//! The row directory, the hash index and the B+tree are saved page by page, and
//! only the pages that changed (004 §3.6 saves all there is each time). Marking
//! a page is one store: statements do it with every change. Nothing here
//! survives a crash: after a restart nothing is marked but what the log's tail
//! changes.
//!
//! Assumes the partition's lock.

use crate::index_snapshot::{Corrupt, Reader};

/// Pages that are looked at together when the next changed one is sought.
const STRIDE: usize = 64;

/// A mark for each page: whether it changed.
#[derive(Default)]
pub struct ChangedPages {
    marks: Vec<u8>,
}

impl ChangedPages {
    /// Notes that a page changed.
    #[inline(always)]
    pub fn mark(&mut self, page: usize) {
        match self.marks.get_mut(page) {
            Some(mark) => *mark = 1,
            None => self.grow(page),
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, page: usize) {
        self.marks.resize(page + 1, 0);
        self.marks[page] = 1;
    }

    /// Notes that a page was copied as it is now.
    pub fn clear(&mut self, page: usize) {
        if let Some(mark) = self.marks.get_mut(page) {
            *mark = 0;
        }
    }

    /// Notes that all of the first `pages` changed: a whole copy is wanted.
    pub fn mark_all(&mut self, pages: usize) {
        self.marks.clear();
        self.marks.resize(pages, 1);
    }

    /// Notes that nothing changed: all is as it was read from a checkpoint.
    pub fn clear_all(&mut self) {
        self.marks.fill(0);
    }

    /// The first changed page from `from` on.
    pub fn next(&self, from: usize) -> Option<usize> {
        let rest = self.marks.get(from..)?;
        let any = |marks: &[u8]| marks.iter().fold(0, |all, mark| all | mark) != 0;
        let stride = rest.chunks(STRIDE).position(any)?;
        let first = stride * STRIDE;
        let within = rest[first..].iter().position(|mark| *mark != 0)?;
        Some(from + first + within)
    }

    /// How many pages changed.
    pub fn count(&self) -> usize {
        self.marks.iter().map(|mark| usize::from(*mark)).sum()
    }

    /// Bytes of memory taken.
    pub fn bytes(&self) -> usize {
        self.marks.capacity()
    }
}

/// A structure that is saved and restored page by page. Pages may be filled in
/// any order, one more than once: the last counts. What the pages do not say
/// is in the structure's *head*, which comes last.
pub trait Paged {
    /// Which pages changed.
    fn changed(&mut self) -> &mut ChangedPages;
    /// One beyond the last page there is.
    fn pages(&self) -> usize;
    /// Appends a page. Nothing is appended where the structure has let go of
    /// the page: it then needs no saving. Whether there was one.
    fn write_page(&self, page: usize, out: &mut Vec<u8>) -> bool;
    /// Fills a page.
    ///
    /// # Errors
    /// [`Corrupt`] where numbers are out of range or bytes are missing.
    fn read_page(&mut self, page: usize, from: &mut Reader<'_>) -> Result<(), Corrupt>;
    /// Appends the head.
    fn write_head(&self, out: &mut Vec<u8>);
    /// Makes the structure whole when its pages are filled; nothing counts as
    /// changed then.
    ///
    /// # Errors
    /// [`Corrupt`] where head and pages do not make such a structure.
    fn read_head(&mut self, from: &mut Reader<'_>) -> Result<(), Corrupt>;
}

#[cfg(test)]
pub(crate) mod testing {
    //! Chains of saved pages, as a checkpoint makes and a restart reads them.
    use super::*;

    const END: u32 = u32::MAX;

    /// Appends the pages that changed.
    pub fn save_changed(structure: &mut impl Paged, chain: &mut Vec<u8>) {
        let mut from = 0;
        while let Some(page) = structure.changed().next(from) {
            let length = chain.len();
            chain.extend_from_slice(&(page as u32).to_le_bytes());
            if !structure.write_page(page, chain) {
                chain.truncate(length);
            }
            structure.changed().clear(page);
            from = page + 1;
        }
    }

    /// Ends the pages, whether or not a head follows.
    pub fn end_pages(chain: &mut Vec<u8>) {
        chain.extend_from_slice(&END.to_le_bytes());
    }

    /// Hands each page's number to `fill`, which reads the page.
    pub fn read_pages(
        reader: &mut Reader<'_>,
        mut fill: impl FnMut(usize, &mut Reader<'_>) -> Result<(), Corrupt>,
    ) -> Result<(), Corrupt> {
        loop {
            match reader.u32()? {
                END => return Ok(()),
                page => fill(page as usize, reader)?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn marks_agree_with_a_set(
            steps in prop::collection::vec((any::<bool>(), 0usize..500), 0..200),
            all in prop::option::of(0usize..300),
        ) {
            let mut pages = ChangedPages::default();
            let mut model = BTreeSet::new();
            if let Some(all) = all {
                pages.mark_all(all);
                model.extend(0..all);
            }
            for (mark, page) in steps {
                if mark {
                    pages.mark(page);
                    model.insert(page);
                } else {
                    pages.clear(page);
                    model.remove(&page);
                }
            }
            prop_assert_eq!(pages.count(), model.len());
            for from in 0..510 {
                prop_assert_eq!(pages.next(from), model.range(from..).next().copied());
            }
            pages.clear_all();
            prop_assert_eq!(pages.next(0), None);
        }
    }
}
