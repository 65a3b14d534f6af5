//! The yardstick: which tuples to keep if one knew how likely each is to be used. No
//! policy without foresight misses less in the long run.

use super::Choice;
use crate::ycsb::Scatter;

/// Keeps the likeliest tuples.
#[derive(Debug)]
pub enum Best {
    /// Always the same: those of the first ranks.
    Fixed {
        /// Whether each is kept.
        kept: Vec<bool>,
        /// How many are.
        hot: usize,
    },
    /// Those that were inserted last.
    Newest {
        /// How many are kept.
        capacity: usize,
        /// How many there are.
        tuples: usize,
    },
}

impl Best {
    /// The likelier a tuple, the lower its rank by this permutation.
    pub fn fixed(scatter: Scatter, tuples: usize, capacity: usize) -> Self {
        let hot = capacity.min(tuples);
        let mut kept = vec![false; tuples];
        for rank in 0..hot as u64 {
            kept[scatter.key(rank) as usize] = true;
        }
        Best::Fixed { kept, hot }
    }

    /// The newer a tuple, the likelier.
    pub fn newest(tuples: usize, capacity: usize) -> Self {
        Best::Newest { capacity, tuples }
    }
}

impl Choice for Best {
    fn access(&mut self, tuple: u32) -> bool {
        self.is_hot(tuple)
    }

    fn insert(&mut self, tuple: u32) {
        match self {
            // A tuple that is known already is loaded.
            Best::Fixed { kept, .. } => assert!(
                (tuple as usize) < kept.len(),
                "a fixed set takes no new tuple"
            ),
            Best::Newest { tuples, .. } => *tuples = (*tuples).max(tuple as usize + 1),
        }
    }

    fn hot(&self) -> usize {
        match self {
            Best::Fixed { hot, .. } => *hot,
            Best::Newest { capacity, tuples } => *capacity.min(tuples),
        }
    }

    fn is_hot(&self, tuple: u32) -> bool {
        match self {
            Best::Fixed { kept, .. } => kept[tuple as usize],
            Best::Newest { capacity, tuples } => tuple as usize + capacity >= *tuples,
        }
    }
}
