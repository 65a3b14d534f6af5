//! W-TinyLFU (Einziger, Friedman, Manes, 2017): a hundredth of memory is a window in the
//! order of use. What leaves it comes into the main part if the sketch counts more uses of
//! it than of what would have to leave there. The main part is a segmented LRU chain.
//! Without a doorkeeper, and without Caffeine's search for the window's size.

use thermocline_storage::chains::Chains;

use super::Choice;
use super::sketch::Sketch;

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

/// The window's part of memory.
const WINDOW_PERCENT: usize = 1;
/// The protected part of the main part.
const PROTECTED_PERCENT: usize = 80;

/// The three chains and the sketch.
pub struct TinyLfu {
    window_length: usize,
    main_length: usize,
    protected_length: usize,
    chains: Chains<3>,
    sketch: Sketch,
}

impl TinyLfu {
    /// Needs a capacity of 2 at least.
    pub fn new(capacity: usize) -> Self {
        let window_length = (capacity * WINDOW_PERCENT / 100).max(1);
        let main_length = capacity - window_length;
        TinyLfu {
            window_length,
            main_length,
            protected_length: main_length * PROTECTED_PERCENT / 100,
            chains: Chains::new(),
            sketch: Sketch::new(capacity),
        }
    }

    fn let_in(&mut self, tuple: u32) {
        self.chains.put_newest(WINDOW, tuple);
        if self.chains.len(WINDOW) <= self.window_length {
            return;
        }
        let Some(candidate) = self.chains.oldest(WINDOW) else {
            return;
        };
        let main = self.chains.len(PROBATION) + self.chains.len(PROTECTED);
        if main < self.main_length {
            self.chains.put_newest(PROBATION, candidate);
            return;
        }
        let victim = self
            .chains
            .oldest(PROBATION)
            .or_else(|| self.chains.oldest(PROTECTED));
        match victim {
            Some(victim) if self.sketch.uses(candidate) > self.sketch.uses(victim) => {
                self.chains.remove(victim);
                self.chains.put_newest(PROBATION, candidate);
            }
            _ => self.chains.remove(candidate),
        }
    }

    fn protect(&mut self, tuple: u32) {
        self.chains.put_newest(PROTECTED, tuple);
        if self.chains.len(PROTECTED) > self.protected_length
            && let Some(last) = self.chains.oldest(PROTECTED)
        {
            self.chains.put_newest(PROBATION, last);
        }
    }
}

impl Choice for TinyLfu {
    fn access(&mut self, tuple: u32) -> bool {
        self.sketch.count(tuple);
        let chain = self.chains.chain_of(tuple);
        match chain {
            None => self.let_in(tuple),
            Some(WINDOW) => self.chains.put_newest(WINDOW, tuple),
            Some(_) => self.protect(tuple),
        }
        chain.is_some()
    }

    fn insert(&mut self, tuple: u32) {
        self.access(tuple);
    }

    fn hot(&self) -> usize {
        (0..3).map(|chain| self.chains.len(chain)).sum()
    }

    fn is_hot(&self, tuple: u32) -> bool {
        self.chains.chain_of(tuple).is_some()
    }
}
