//! The engine's default, by the rules of [`thermocline_storage::temperature`]; the engine's
//! own part, a hand over the row directory that cools what it passes, is done here as there.

use thermocline_storage::temperature::{HotSet, MAX, Shift, WRITTEN, is_admitted};

use super::Choice;

/// Marks a hot tuple, beside its temperature.
const HOT: u8 = 1 << 7;
/// The hand frees this share of memory at a time.
const SLACK_PERCENT: usize = 1;
/// A round that found less than this share of memory found too little.
const FOUND_ENOUGH_PERCENT: usize = 10;

/// Three bits for every tuple, and a hand.
#[derive(Debug)]
pub struct Temperature {
    capacity: usize,
    slack: usize,
    found_enough: usize,
    states: Vec<u8>,
    hot: usize,
    hand: usize,
    /// Degrees that the hand takes from each tuple in this round.
    cooling: u8,
    /// Tuples that left in this round.
    found: usize,
    hot_set: HotSet,
}

impl Temperature {
    /// Everything is cold, and of temperature 0.
    pub fn new(tuples: usize, capacity: usize) -> Self {
        Temperature {
            capacity,
            slack: capacity * SLACK_PERCENT / 100,
            found_enough: (capacity * FOUND_ENOUGH_PERCENT / 100).max(1),
            states: vec![0; tuples],
            hot: 0,
            hand: 0,
            cooling: 0,
            found: 0,
            hot_set: HotSet::new(),
        }
    }

    fn let_in(&mut self, tuple: u32, temperature: u8) {
        self.states[tuple as usize] = HOT | temperature;
        self.hot += 1;
        if self.hot > self.capacity {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        while self.hot > self.capacity - self.slack {
            let state = &mut self.states[self.hand];
            let temperature = *state & !HOT;
            let is_hot = *state & HOT != 0;
            if is_hot {
                self.hot_set.met(temperature);
            }
            if is_hot && temperature <= self.hot_set.evictable() {
                *state = temperature;
                self.hot -= 1;
                self.found += 1;
            } else {
                *state -= temperature.min(self.cooling);
            }
            self.hand += 1;
            if self.hand == self.states.len() {
                self.hand = 0;
                self.cooling = u8::from(self.found < self.found_enough);
                self.found = 0;
                self.hot_set.round_over(self.hot as u64);
            }
        }
    }

    fn observe(&mut self, returned: bool) {
        let full = self.hot + self.slack * 2 >= self.capacity;
        let hot = self.hot as u64;
        if self.hot_set.observe(1, returned.into(), hot, full) == Shift::Begun {
            for state in &mut self.states {
                if *state > HOT {
                    *state = HOT;
                }
            }
        }
    }
}

impl Choice for Temperature {
    fn access(&mut self, tuple: u32) -> bool {
        let state = self.states[tuple as usize];
        self.observe((1..HOT).contains(&state));
        let state = &mut self.states[tuple as usize];
        let temperature = (*state & !HOT).saturating_add(1).min(MAX);
        *state = *state & HOT | temperature;
        if *state & HOT != 0 {
            return true;
        }
        let room = self.hot < self.capacity - self.slack;
        if is_admitted(temperature, room, self.hot_set.is_learning()) {
            self.let_in(tuple, temperature);
        }
        false
    }

    fn insert(&mut self, tuple: u32) {
        let tuples = self.states.len().max(tuple as usize + 1);
        self.states.resize(tuples, 0);
        let state = &mut self.states[tuple as usize];
        if *state & HOT != 0 {
            *state = (*state).max(HOT | WRITTEN);
        } else {
            self.let_in(tuple, WRITTEN);
        }
    }

    fn hot(&self) -> usize {
        self.hot
    }

    fn is_hot(&self, tuple: u32) -> bool {
        self.states[tuple as usize] & HOT != 0
    }
}
