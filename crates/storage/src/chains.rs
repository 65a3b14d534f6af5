//! Chains of the rows of one table in one partition, in the order in which they were put in
//! (004 §3.1, 000 §3.1): one for LRU, one for each queue of other policies. A row is in at most
//! one of them.
//!
//! Doubly linked by 4-byte row numbers, as in the papers. But the links lie
//! beside the tuples, in chunks by row number, so that a tuple pays for them only
//! where such a policy is chosen. Beside its links each row has a byte for the policy.
//!
//! Assumes the partition's lock. A row in a chain need not be hot any more: who
//! takes the oldest looks.

/// Links in a chunk: 48 KiB.
const CHUNK_LINKS: usize = 4096;
/// Links that a chunk begins with: it grows by copies, so that small tables take little.
const FIRST_LINKS: usize = 64;
/// No row.
const NONE: u32 = u32::MAX;
/// In no chain.
const UNCHAINED: u8 = u8::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Link {
    newer: u32,
    older: u32,
    chain: u8,
    mark: u8,
}

const UNLINKED: Link = Link {
    newer: NONE,
    older: NONE,
    chain: UNCHAINED,
    mark: 0,
};

/// The ends of a chain, and how many rows it has.
#[derive(Clone, Copy)]
struct Ends {
    newest: u32,
    oldest: u32,
    len: usize,
}

const EMPTY: Ends = Ends {
    newest: NONE,
    oldest: NONE,
    len: 0,
};

/// `N` chains over the same rows.
pub struct Chains<const N: usize> {
    chunks: Vec<Box<[Link]>>,
    ends: [Ends; N],
}

impl<const N: usize> Default for Chains<N> {
    fn default() -> Self {
        const { assert!(N < UNCHAINED as usize, "a chain's number is a byte") };
        Chains {
            chunks: Vec::new(),
            ends: [EMPTY; N],
        }
    }
}

impl<const N: usize> Chains<N> {
    /// Empty ones.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Rows in a chain.
    #[must_use]
    #[inline]
    pub fn len(&self, chain: usize) -> usize {
        self.ends[chain].len
    }

    /// Whether no row is in a chain.
    #[must_use]
    pub fn is_empty(&self, chain: usize) -> bool {
        self.ends[chain].len == 0
    }

    /// Bytes of memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let links: usize = self.chunks.iter().map(|chunk| chunk.len()).sum();
        links * size_of::<Link>() + self.chunks.capacity() * size_of::<Box<[Link]>>()
    }

    /// The chain that a row is in.
    #[must_use]
    #[inline]
    pub fn chain_of(&self, row: u32) -> Option<usize> {
        let chain = self.link(row).chain;
        (chain != UNCHAINED).then_some(usize::from(chain))
    }

    /// What was noted of a row, in a chain or not; 0 at first.
    #[must_use]
    #[inline]
    pub fn mark(&self, row: u32) -> u8 {
        self.link(row).mark
    }

    /// Notes something of a row, which stays whatever chain it comes to.
    #[inline]
    pub fn set_mark(&mut self, row: u32, mark: u8) {
        self.link_mut(row).mark = mark;
    }

    /// Makes a row the newest of a chain, wherever it was.
    pub fn put_newest(&mut self, chain: usize, row: u32) {
        if self.ends[chain].newest == row {
            return;
        }
        let mark = self.unlink(row);
        let second = std::mem::replace(&mut self.ends[chain].newest, row);
        *self.link_mut(row) = Link {
            newer: NONE,
            older: second,
            chain: chain as u8,
            mark,
        };
        match second {
            NONE => self.ends[chain].oldest = row,
            second => self.link_mut(second).newer = row,
        }
        self.ends[chain].len += 1;
    }

    /// Makes a row the oldest of a chain, wherever it was.
    pub fn put_oldest(&mut self, chain: usize, row: u32) {
        if self.ends[chain].oldest == row {
            return;
        }
        let mark = self.unlink(row);
        let second = std::mem::replace(&mut self.ends[chain].oldest, row);
        *self.link_mut(row) = Link {
            newer: second,
            older: NONE,
            chain: chain as u8,
            mark,
        };
        match second {
            NONE => self.ends[chain].newest = row,
            second => self.link_mut(second).older = row,
        }
        self.ends[chain].len += 1;
    }

    /// Takes a row out of its chain, if it is in one.
    pub fn remove(&mut self, row: u32) {
        if self.chain_of(row).is_some() {
            let mark = self.unlink(row);
            *self.link_mut(row) = Link { mark, ..UNLINKED };
        }
    }

    /// Has a row's neighbours and the ends of its chain, if it is in one, know nothing of it; its mark.
    #[inline]
    fn unlink(&mut self, row: u32) -> u8 {
        let link = self.link(row);
        let Some(ends) = self.ends.get_mut(usize::from(link.chain)) else {
            return link.mark;
        };
        debug_assert!(ends.len > 0, "a chain without rows has row {row}");
        ends.len -= 1;
        match link.newer {
            NONE => ends.newest = link.older,
            newer => self.link_mut(newer).older = link.older,
        }
        match link.older {
            NONE => self.ends[usize::from(link.chain)].oldest = link.newer,
            older => self.link_mut(older).newer = link.newer,
        }
        link.mark
    }

    /// The row that was put into a chain longest ago.
    #[must_use]
    #[inline]
    pub fn oldest(&self, chain: usize) -> Option<u32> {
        let oldest = self.ends[chain].oldest;
        (oldest != NONE).then_some(oldest)
    }

    #[inline]
    fn link(&self, row: u32) -> Link {
        let chunk = self.chunks.get(row as usize / CHUNK_LINKS);
        let link = chunk.and_then(|chunk| chunk.get(row as usize % CHUNK_LINKS));
        link.copied().unwrap_or(UNLINKED)
    }

    #[inline]
    fn link_mut(&mut self, row: u32) -> &mut Link {
        let (number, place) = (row as usize / CHUNK_LINKS, row as usize % CHUNK_LINKS);
        if self
            .chunks
            .get(number)
            .is_none_or(|chunk| chunk.len() <= place)
        {
            self.make_room(number, place);
        }
        &mut self.chunks[number][place]
    }

    /// Has a chunk have a link at this place.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, number: usize, place: usize) {
        if self.chunks.len() <= number {
            self.chunks.resize_with(number + 1, Box::default);
        }
        let links = (place + 1).next_power_of_two().max(FIRST_LINKS);
        let mut chunk = std::mem::take(&mut self.chunks[number]).into_vec();
        chunk.reserve_exact(links - chunk.len());
        chunk.resize(links, UNLINKED);
        self.chunks[number] = chunk.into_boxed_slice();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Newest(usize, u32),
        Oldest(usize, u32),
        Remove(u32),
        TakeOldest(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let row = || prop_oneof![0..20u32, 4090..4100u32, Just(100_000u32)];
        let step = prop_oneof![
            4 => (0..2usize, row()).prop_map(|(chain, row)| Step::Newest(chain, row)),
            2 => (0..2usize, row()).prop_map(|(chain, row)| Step::Oldest(chain, row)),
            2 => row().prop_map(Step::Remove),
            1 => (0..2usize).prop_map(Step::TakeOldest),
        ];
        proptest::collection::vec(step, 1..200)
    }

    proptest! {
        #[test]
        fn each_chain_is_a_queue_and_a_row_is_in_one_of_them(steps in steps()) {
            let mut chains = Chains::<2>::new();
            let mut models = [VecDeque::new(), VecDeque::new()];
            for step in steps {
                let row = match step {
                    Step::Newest(_, row) | Step::Oldest(_, row) | Step::Remove(row) => row,
                    Step::TakeOldest(chain) => {
                        let oldest = chains.oldest(chain);
                        prop_assert_eq!(oldest, models[chain].back().copied());
                        oldest.unwrap_or(50)
                    }
                };
                models.iter_mut().for_each(|model| model.retain(|other| *other != row));
                match step {
                    Step::Newest(chain, row) => {
                        chains.put_newest(chain, row);
                        chains.set_mark(row, row as u8);
                        models[chain].push_front(row);
                    }
                    Step::Oldest(chain, row) => {
                        chains.put_oldest(chain, row);
                        chains.set_mark(row, row as u8);
                        models[chain].push_back(row);
                    }
                    Step::Remove(_) | Step::TakeOldest(_) => {
                        chains.remove(row);
                        prop_assert_eq!(chains.chain_of(row), None);
                    }
                }
                for (chain, model) in models.iter().enumerate() {
                    prop_assert_eq!(chains.len(chain), model.len());
                    prop_assert_eq!(chains.is_empty(chain), model.is_empty());
                    for row in model {
                        prop_assert_eq!(chains.chain_of(*row), Some(chain));
                        prop_assert_eq!(chains.mark(*row), *row as u8);
                    }
                }
            }
            for (chain, model) in models.iter_mut().enumerate() {
                while let Some(row) = chains.oldest(chain) {
                    prop_assert_eq!(Some(row), model.pop_back());
                    chains.remove(row);
                }
                prop_assert!(model.is_empty());
            }
        }
    }
}
