//! CLOCK and its lesser brother: a hand passes over the row directory; a tuple that was
//! used since its last visit loses one of its counts and stays, another one leaves.

use super::Choice;

/// Marks a hot tuple, beside its count.
const HOT: u8 = 1 << 7;

/// A hand and a counter for each hot tuple.
#[derive(Debug)]
pub struct Sweep {
    capacity: usize,
    count_max: u8,
    states: Vec<u8>,
    hot: usize,
    hand: usize,
}

impl Sweep {
    /// Counters of two bits.
    pub fn clock(tuples: usize, capacity: usize) -> Self {
        Sweep {
            capacity,
            count_max: 3,
            states: vec![0; tuples],
            hot: 0,
            hand: 0,
        }
    }

    /// No counters: tuples leave in the order of the directory.
    pub fn fifo(tuples: usize, capacity: usize) -> Self {
        Sweep {
            count_max: 0,
            ..Sweep::clock(tuples, capacity)
        }
    }

    fn let_in(&mut self, tuple: u32) {
        while self.hot >= self.capacity {
            let state = &mut self.states[self.hand];
            if *state == HOT {
                *state = 0;
                self.hot -= 1;
            } else if *state > HOT {
                *state -= 1;
            }
            self.hand += 1;
            if self.hand == self.states.len() {
                self.hand = 0;
            }
        }
        self.states[tuple as usize] = HOT;
        self.hot += 1;
    }
}

impl Choice for Sweep {
    fn access(&mut self, tuple: u32) -> bool {
        let state = &mut self.states[tuple as usize];
        if *state & HOT == 0 {
            self.let_in(tuple);
            return false;
        }
        if *state < HOT + self.count_max {
            *state += 1;
        }
        true
    }

    fn insert(&mut self, tuple: u32) {
        let tuples = self.states.len().max(tuple as usize + 1);
        self.states.resize(tuples, 0);
        self.access(tuple);
    }

    fn hot(&self) -> usize {
        self.hot
    }

    fn is_hot(&self, tuple: u32) -> bool {
        self.states[tuple as usize] & HOT != 0
    }
}
