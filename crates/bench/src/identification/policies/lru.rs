//! LRU and aLRU chains (004 §3.1): a used tuple moves to the front, the last one leaves.
//! In aLRU only a sample of uses moves tuples; what was fetched is always put in front.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Choice;
use super::chains::Chains;

/// The chain of all hot tuples.
#[derive(Debug)]
pub struct Lru {
    capacity: usize,
    chain: Chains<1>,
    /// The share of uses that count, if not all do.
    sample: Option<(f64, StdRng)>,
}

impl Lru {
    /// Every use counts.
    pub fn new(tuples: usize, capacity: usize) -> Self {
        Lru {
            capacity,
            chain: Chains::new(tuples),
            sample: None,
        }
    }

    /// This share of uses counts.
    pub fn sampled(tuples: usize, capacity: usize, share: f64, seed: u64) -> Self {
        Lru {
            sample: Some((share, StdRng::seed_from_u64(seed))),
            ..Lru::new(tuples, capacity)
        }
    }

    fn let_in(&mut self, tuple: u32) {
        self.chain.put_first(0, tuple);
        if self.chain.length(0) > self.capacity
            && let Some(last) = self.chain.last(0)
        {
            self.chain.remove(last);
        }
    }
}

impl Choice for Lru {
    fn access(&mut self, tuple: u32) -> bool {
        if self.chain.chain_of(tuple).is_none() {
            self.let_in(tuple);
            return false;
        }
        let counts = match &mut self.sample {
            Some((share, random)) => random.random_bool(*share),
            None => true,
        };
        if counts {
            self.chain.put_first(0, tuple);
        }
        true
    }

    fn insert(&mut self, tuple: u32) {
        self.chain.grow(tuple);
        self.let_in(tuple);
    }

    fn hot(&self) -> usize {
        self.chain.length(0)
    }

    fn is_hot(&self, tuple: u32) -> bool {
        self.chain.chain_of(tuple).is_some()
    }
}
