//! The engine's own policies, driven over a trace: the same code finds what leaves memory here
//! and there. What the engine's directory and evictor do around it is done here on bytes.

use thermocline_engine::identification::{Identification, Lru, Order, Rounds, Seen, Turn, Words};
use thermocline_engine::{Policy, Share};
use thermocline_storage::temperature::{MAX, Shift, WRITTEN, is_admitted};

use super::Choice;

/// Marks a hot tuple, beside its temperature.
const HOT: u8 = 1 << 7;
/// What goes by temperature frees this share of memory at a time, as the evictor does; the
/// others, which rivals' figures are held against, one tuple.
const SLACK_PERCENT: usize = 1;

/// What the engine has in a tuple's word: whether it is hot, and how warm.
struct States(Vec<u8>);

impl Words for States {
    fn end(&self) -> u32 {
        self.0.len() as u32
    }

    fn settled_from(&self, _: u32) -> u32 {
        0
    }

    #[inline]
    fn seen(&self, row: u32) -> Seen {
        let state = self.0[row as usize];
        match state & HOT != 0 {
            true => Seen::Hot(state & !HOT),
            false => Seen::Cold(state),
        }
    }

    #[inline]
    fn cool(&mut self, row: u32, to: u8) {
        let state = &mut self.0[row as usize];
        *state = *state & HOT | to;
    }
}

/// A policy of the engine, and the words that it sees.
pub struct Driven {
    capacity: usize,
    slack: usize,
    states: States,
    hot: usize,
    order: Order,
    uses: u64,
    rounds: Rounds,
    /// Whether it goes by temperature, and so does what comes back; else all does.
    is_by_warmth: bool,
}

impl Driven {
    /// Everything is cold, and of temperature 0.
    pub fn new(identification: Identification, tuples: usize, capacity: usize) -> Self {
        let is_by_warmth = identification.learns();
        let policy = Policy {
            identification,
            ..Policy::default()
        };
        Driven {
            capacity,
            slack: usize::from(is_by_warmth) * capacity * SLACK_PERCENT / 100,
            states: States(vec![0; tuples]),
            hot: 0,
            order: policy.order(),
            uses: 0,
            rounds: Rounds::default(),
            is_by_warmth,
        }
    }

    /// An LRU chain in which this share of uses counts, each by a transaction of its own.
    pub fn sampled_lru(tuples: usize, capacity: usize, share: f64) -> Self {
        let share = Share::of_millionths((share * 1e6).round() as u32);
        Driven {
            order: Order::Lru(Lru::new(share.unwrap_or(Share::WHOLE))),
            ..Self::new(Identification::ALru, tuples, capacity)
        }
    }

    fn let_in(&mut self, tuple: u32) {
        if self.hot >= self.capacity {
            self.make_room(self.capacity - self.slack.max(1));
        }
        self.states.0[tuple as usize] |= HOT;
        self.hot += 1;
        self.order.became_hot(tuple);
    }

    /// Tuples leave until there are at most so many.
    fn make_room(&mut self, most: usize) {
        while self.hot > most {
            // No longer than the round, so that its end is not missed.
            let steps = self.rounds.left().clamp(1, u64::from(u32::MAX));
            let mut turn = Turn::new(steps as u32, 0);
            let found = self
                .order
                .next(&mut self.states, &mut self.rounds, &mut turn);
            assert!(turn.passed() < u64::MAX, "no hot tuple is known to be one");
            if let Some(tuple) = found {
                self.states.0[tuple as usize] &= !HOT;
                self.hot -= 1;
                self.order.left(tuple);
            }
            if self.rounds.passed(turn.passed(), found.is_some().into()) {
                let hot = self.hot as u64;
                self.rounds.round_over(self.states.0.len() as u64, hot, hot);
            }
        }
    }

    /// Takes a use into account. `returned`: the tuple is cold, and was used not long ago.
    fn observe(&mut self, returned: bool) {
        let full = self.hot + self.slack * 2 >= self.capacity;
        let hot = self.hot as u64;
        if self.rounds.observe(1, returned.into(), hot, full) == Shift::Begun {
            for state in &mut self.states.0 {
                if *state > HOT {
                    *state = HOT;
                }
            }
        }
    }
}

impl Choice for Driven {
    fn access(&mut self, tuple: u32) -> bool {
        if self.is_by_warmth {
            let returned = matches!(self.states.seen(tuple), Seen::Cold(1..));
            self.observe(returned);
        }
        let state = &mut self.states.0[tuple as usize];
        let warmth = (*state & !HOT).saturating_add(1).min(MAX);
        *state = *state & HOT | warmth;
        if *state & HOT != 0 {
            self.uses += 1;
            self.order.used(tuple, self.uses);
            return true;
        }
        let room = self.hot < self.capacity - self.slack;
        if !self.is_by_warmth || is_admitted(warmth, room, self.rounds.is_learning()) {
            self.let_in(tuple);
        }
        false
    }

    fn insert(&mut self, tuple: u32) {
        let tuples = self.states.0.len().max(tuple as usize + 1);
        self.states.0.resize(tuples, 0);
        let state = &mut self.states.0[tuple as usize];
        let is_hot = *state & HOT != 0;
        *state = *state & HOT | (*state & !HOT).max(WRITTEN);
        match is_hot {
            true => {
                self.uses += 1;
                self.order.used(tuple, self.uses);
            }
            false => self.let_in(tuple),
        }
    }

    fn hot(&self) -> usize {
        self.hot
    }

    fn is_hot(&self, tuple: u32) -> bool {
        self.states.0[tuple as usize] & HOT != 0
    }
}
