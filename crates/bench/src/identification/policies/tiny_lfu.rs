//! W-TinyLFU (Einziger, Friedman, Manes, 2017): a hundredth of memory is a window in the
//! order of use; what leaves it comes into the main part if the sketch counts more uses of
//! it than of what would have to leave there. The main part is a segmented LRU chain.
//! Without a doorkeeper, and without Caffeine's search for the window's size.

use super::Choice;
use super::chains::Chains;
use super::sketch::Sketch;

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

/// The window's part of memory.
const WINDOW_PERCENT: usize = 1;
/// The protected part of the main part.
const PROTECTED_PERCENT: usize = 80;

/// The three chains and the sketch.
#[derive(Debug)]
pub struct TinyLfu {
    window_length: usize,
    main_length: usize,
    protected_length: usize,
    chains: Chains<3>,
    sketch: Sketch,
}

impl TinyLfu {
    /// Needs a capacity of 2 at least.
    pub fn new(tuples: usize, capacity: usize) -> Self {
        let window_length = (capacity * WINDOW_PERCENT / 100).max(1);
        let main_length = capacity - window_length;
        TinyLfu {
            window_length,
            main_length,
            protected_length: main_length * PROTECTED_PERCENT / 100,
            chains: Chains::new(tuples),
            sketch: Sketch::new(capacity),
        }
    }

    fn let_in(&mut self, tuple: u32) {
        self.chains.put_first(WINDOW, tuple);
        if self.chains.length(WINDOW) <= self.window_length {
            return;
        }
        let Some(candidate) = self.chains.last(WINDOW) else {
            return;
        };
        let main = self.chains.length(PROBATION) + self.chains.length(PROTECTED);
        if main < self.main_length {
            self.chains.put_first(PROBATION, candidate);
            return;
        }
        let victim = self
            .chains
            .last(PROBATION)
            .or_else(|| self.chains.last(PROTECTED));
        match victim {
            Some(victim) if self.sketch.uses(candidate) > self.sketch.uses(victim) => {
                self.chains.remove(victim);
                self.chains.put_first(PROBATION, candidate);
            }
            _ => self.chains.remove(candidate),
        }
    }

    fn protect(&mut self, tuple: u32) {
        self.chains.put_first(PROTECTED, tuple);
        if self.chains.length(PROTECTED) > self.protected_length
            && let Some(last) = self.chains.last(PROTECTED)
        {
            self.chains.put_first(PROBATION, last);
        }
    }
}

impl Choice for TinyLfu {
    fn access(&mut self, tuple: u32) -> bool {
        self.sketch.count(tuple);
        let chain = self.chains.chain_of(tuple);
        match chain {
            None => self.let_in(tuple),
            Some(WINDOW) => self.chains.put_first(WINDOW, tuple),
            Some(_) => self.protect(tuple),
        }
        chain.is_some()
    }

    fn insert(&mut self, tuple: u32) {
        self.chains.grow(tuple);
        self.access(tuple);
    }

    fn hot(&self) -> usize {
        self.chains.total()
    }

    fn is_hot(&self, tuple: u32) -> bool {
        self.chains.chain_of(tuple).is_some()
    }
}
