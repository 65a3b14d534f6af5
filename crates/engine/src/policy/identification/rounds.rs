//! What all hands over all tables have found, and what follows: how much everything is to cool,
//! and whether it is to be learned which tuples are warm ([`thermocline_storage::temperature`]).

use thermocline_storage::temperature::{HotSet, MAX, Shift};

/// Hands that found less than this share of what is in memory, in one round
/// over all tables, found too little.
const FOUND_ENOUGH: f64 = 0.1;

/// Rounds over all tables.
#[derive(Default)]
pub struct Rounds {
    /// Degrees that everything has to have cooled by.
    degrees: u32,
    /// Words passed and bytes found since the last round was over.
    passed: u64,
    found: u64,
    /// The coolest hot tuple met in this round.
    coolest: u8,
    /// Words of all tables, and bytes in memory, when the last round was over.
    words: u64,
    bytes: u64,
    hot_set: HotSet,
}

impl Rounds {
    /// Degrees that everything has to have cooled by since the first round; they begin anew
    /// after the last number.
    pub(super) fn degrees(&self) -> u32 {
        self.degrees
    }

    /// A hand has met a hot tuple. Whether it may leave.
    #[inline]
    pub(super) fn meets(&mut self, warmth: u8) -> bool {
        self.hot_set.met(warmth);
        warmth <= self.hot_set.evictable()
    }

    /// A hand has met a hot tuple that stays.
    #[inline]
    pub(super) fn stays(&mut self, warmth: u8) {
        self.coolest = self.coolest.min(warmth);
    }

    /// A hand has passed some words and found some bytes to evict. Whether the round is over:
    /// then [`Self::round_over`] follows.
    #[must_use]
    pub fn passed(&mut self, words: u64, found: u64) -> bool {
        self.passed += words;
        self.found += found;
        self.passed >= self.words
    }

    /// Words that are to be passed until the round is over.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.words.saturating_sub(self.passed)
    }

    /// The next round begins, over so many words. `bytes` and `hot`: those of the tuples in
    /// memory, and how many these are.
    pub fn round_over(&mut self, words: u64, bytes: u64, hot: u64) {
        if (self.found as f64) < self.bytes as f64 * FOUND_ENOUGH {
            // As many degrees as it takes: rounds that find nothing cost time.
            let needed = match self.found {
                0 => self.coolest.saturating_sub(self.hot_set.evictable()).max(1),
                _ => 1,
            };
            self.degrees = self.degrees.wrapping_add(u32::from(needed));
        }
        (self.passed, self.found, self.coolest) = (0, 0, MAX);
        (self.words, self.bytes) = (words, bytes);
        self.hot_set.round_over(hot);
    }

    /// Takes uses and misses since the last time into account, as [`HotSet::observe`].
    pub fn observe(&mut self, uses: u64, returns: u64, hot: u64, full: bool) -> Shift {
        self.hot_set.observe(uses, returns, hot, full)
    }

    /// Whether it is being learned which tuples are warm.
    #[must_use]
    pub fn is_learning(&self) -> bool {
        self.hot_set.is_learning()
    }
}
