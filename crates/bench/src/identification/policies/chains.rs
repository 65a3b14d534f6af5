//! Doubly linked chains of tuples by 4-byte ids (004 §3.1), a tuple being in at most
//! one of them. Each chain is a ring through an end of its own.

/// In no chain.
const NONE: u8 = u8::MAX;

/// `N` chains over the same tuples; front is what was put in last.
#[derive(Debug)]
pub(super) struct Chains<const N: usize> {
    /// First the `N` ends, then the tuples.
    next: Vec<u32>,
    previous: Vec<u32>,
    chain_of: Vec<u8>,
    lengths: [usize; N],
}

impl<const N: usize> Chains<N> {
    pub fn new(tuples: usize) -> Self {
        assert!(N < usize::from(NONE), "a chain's number is a byte");
        let ends: Vec<u32> = (0..(tuples + N) as u32).collect();
        Chains {
            next: ends.clone(),
            previous: ends,
            chain_of: vec![NONE; tuples],
            lengths: [0; N],
        }
    }

    /// Makes place for tuples up to this one.
    pub fn grow(&mut self, tuple: u32) {
        let tuples = self.chain_of.len().max(tuple as usize + 1);
        self.next.resize(tuples + N, 0);
        self.previous.resize(tuples + N, 0);
        self.chain_of.resize(tuples, NONE);
    }

    /// The chain that the tuple is in.
    pub fn chain_of(&self, tuple: u32) -> Option<usize> {
        let chain = self.chain_of[tuple as usize];
        (chain != NONE).then_some(usize::from(chain))
    }

    /// Tuples in a chain.
    pub fn length(&self, chain: usize) -> usize {
        self.lengths[chain]
    }

    /// Tuples in all chains.
    pub fn total(&self) -> usize {
        self.lengths.iter().sum()
    }

    /// Puts a tuple at the front of a chain, wherever it was.
    pub fn put_first(&mut self, chain: usize, tuple: u32) {
        self.remove(tuple);
        let place = tuple as usize + N;
        let second = self.next[chain];
        self.next[chain] = place as u32;
        self.previous[place] = chain as u32;
        self.next[place] = second;
        self.previous[second as usize] = place as u32;
        self.chain_of[tuple as usize] = chain as u8;
        self.lengths[chain] += 1;
    }

    /// The tuple at the back.
    pub fn last(&self, chain: usize) -> Option<u32> {
        let place = self.previous[chain] as usize;
        (place >= N).then(|| (place - N) as u32)
    }

    /// Takes a tuple out of its chain, if it is in one.
    pub fn remove(&mut self, tuple: u32) {
        let Some(chain) = self.chain_of(tuple) else {
            return;
        };
        let place = tuple as usize + N;
        let (previous, next) = (self.previous[place], self.next[place]);
        self.next[previous as usize] = next;
        self.previous[next as usize] = previous;
        self.chain_of[tuple as usize] = NONE;
        self.lengths[chain] -= 1;
    }
}
