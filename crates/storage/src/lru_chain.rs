//! The LRU chain: the rows of one table in one partition in the order of their
//! use (004 §3.1, 000 §3.1).
//!
//! Doubly linked by 4-byte row numbers, as in the papers; but the links lie
//! beside the tuples, in chunks by row number, so that a tuple pays for them only
//! where this policy is chosen. The papers' aLRU lets only a sample of the uses
//! move a row: what is used often is moved often enough.
//!
//! Assumes the partition's lock. A row in the chain need not be hot any more: who
//! takes the oldest looks.

/// Links in a chunk: 32 KiB.
const CHUNK_LINKS: usize = 4096;
/// No row.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Link {
    newer: u32,
    older: u32,
    /// Whether the row is in the chain.
    linked: bool,
}

const UNLINKED: Link = Link {
    newer: NONE,
    older: NONE,
    linked: false,
};

/// Rows from the one used last to the one used longest ago.
pub struct LruChain {
    chunks: Vec<Option<Box<[Link; CHUNK_LINKS]>>>,
    newest: u32,
    oldest: u32,
    len: usize,
    /// One of so many uses counts.
    sample: u32,
    uses: u32,
}

impl LruChain {
    /// An empty chain, in which one of `sample` uses moves a row; 1: each.
    #[must_use]
    pub fn new(sample: u32) -> Self {
        Self {
            chunks: Vec::new(),
            newest: NONE,
            oldest: NONE,
            len: 0,
            sample: sample.max(1),
            uses: 0,
        }
    }

    /// Rows in the chain.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no row is in the chain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let chunks = self.chunks.iter().flatten().count();
        chunks * size_of::<[Link; CHUNK_LINKS]>() + self.chunks.capacity() * size_of::<usize>()
    }

    /// A row was used.
    #[inline]
    pub fn used(&mut self, row: u32) {
        self.uses += 1;
        if self.uses >= self.sample {
            self.uses = 0;
            self.touch(row);
        }
    }

    /// Makes a row the newest, whether it was in the chain or not.
    pub fn touch(&mut self, row: u32) {
        if self.newest == row {
            return;
        }
        self.remove(row);
        let second = std::mem::replace(&mut self.newest, row);
        *self.link_mut(row) = Link {
            newer: NONE,
            older: second,
            linked: true,
        };
        match second {
            NONE => self.oldest = row,
            second => self.link_mut(second).newer = row,
        }
        self.len += 1;
    }

    /// Takes a row out, if it is there.
    pub fn remove(&mut self, row: u32) {
        let link = self.link(row);
        if !link.linked {
            return;
        }
        match link.newer {
            NONE => self.newest = link.older,
            newer => self.link_mut(newer).older = link.older,
        }
        match link.older {
            NONE => self.oldest = link.newer,
            older => self.link_mut(older).newer = link.newer,
        }
        *self.link_mut(row) = UNLINKED;
        self.len -= 1;
    }

    /// The row used longest ago.
    #[must_use]
    #[inline]
    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    fn link(&self, row: u32) -> Link {
        let chunk = self.chunks.get(row as usize / CHUNK_LINKS);
        let chunk = chunk.and_then(Option::as_deref);
        chunk.map_or(UNLINKED, |chunk| chunk[row as usize % CHUNK_LINKS])
    }

    fn link_mut(&mut self, row: u32) -> &mut Link {
        let number = row as usize / CHUNK_LINKS;
        if self.chunks.len() <= number {
            self.chunks.resize_with(number + 1, || None);
        }
        let chunk = self.chunks[number].get_or_insert_with(|| Box::new([UNLINKED; CHUNK_LINKS]));
        &mut chunk[row as usize % CHUNK_LINKS]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Touch(u32),
        Remove(u32),
        TakeOldest,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let row = || prop_oneof![0..20u32, 4090..4100u32, Just(100_000u32)];
        let step = prop_oneof![
            4 => row().prop_map(Step::Touch),
            2 => row().prop_map(Step::Remove),
            1 => Just(Step::TakeOldest),
        ];
        proptest::collection::vec(step, 1..200)
    }

    proptest! {
        #[test]
        fn the_chain_is_a_queue_of_rows_in_the_order_of_their_use(steps in steps()) {
            let mut chain = LruChain::new(1);
            let mut model: VecDeque<u32> = VecDeque::new();
            for step in steps {
                match step {
                    Step::Touch(row) => {
                        chain.used(row);
                        model.retain(|other| *other != row);
                        model.push_front(row);
                    }
                    Step::Remove(row) => {
                        chain.remove(row);
                        model.retain(|other| *other != row);
                    }
                    Step::TakeOldest => {
                        let oldest = chain.oldest();
                        prop_assert_eq!(oldest, model.pop_back());
                        if let Some(row) = oldest {
                            chain.remove(row);
                        }
                    }
                }
                prop_assert_eq!(chain.len(), model.len());
                prop_assert_eq!(chain.is_empty(), model.is_empty());
            }
            while let Some(row) = chain.oldest() {
                prop_assert_eq!(Some(row), model.pop_back());
                chain.remove(row);
            }
            prop_assert!(model.is_empty());
        }
    }

    #[test]
    fn of_sampled_uses_only_some_move_a_row() {
        let mut chain = LruChain::new(100);
        chain.touch(1);
        chain.touch(2);
        for _ in 0..99 {
            chain.used(1);
        }
        assert_eq!(chain.oldest(), Some(1));
        chain.used(1);
        assert_eq!(chain.oldest(), Some(2));
    }
}
