//! LRU and aLRU (004 §3.1): the tuple used longest ago leaves. The papers' aLRU lets only a
//! sample of the transactions move tuples: what is used often is moved often enough.
//!
//! Whether a transaction counts is settled once for each chain, when it comes to it: all the
//! tuples there that it uses are moved, or none. Counted out, not drawn, so that it follows
//! from what was done before.

use thermocline_storage::chains::Chains;

use super::super::share::Share;
use super::{Identify, Rounds, Seen, Turn, Words};

/// A look at the end of a chain takes about as long as so many steps of a hand.
pub(super) const LOOK_COST: u32 = 4;

/// A chain of all hot rows.
pub struct Lru {
    chain: Chains<1>,
    /// The share of transactions that count.
    sample: Share,
    /// What of a transaction is due by now, in millionths.
    due: u32,
    /// The transaction that was here last, and whether it counts.
    last: u64,
    counts: bool,
}

impl Lru {
    /// This share of the transactions counts.
    #[must_use]
    pub fn new(sample: Share) -> Self {
        Lru {
            chain: Chains::new(),
            sample,
            due: 0,
            last: 0,
            counts: sample == Share::WHOLE,
        }
    }

    /// Another transaction comes.
    fn begin(&mut self, transaction: u64) {
        self.last = transaction;
        self.due += self.sample.millionths();
        self.counts = self.due >= Share::WHOLE.millionths();
        if self.counts {
            self.due -= Share::WHOLE.millionths();
        }
    }
}

impl Identify for Lru {
    const ROUNDS: u64 = 4;

    #[inline]
    fn used(&mut self, row: u32, by: u64) {
        if by != self.last && self.sample != Share::WHOLE {
            self.begin(by);
        }
        if self.counts {
            self.chain.put_newest(0, row);
        }
    }

    fn came_along(&mut self, row: u32) {
        self.chain.put_oldest(0, row);
    }

    fn adopt(&mut self, row: u32) {
        if self.chain.chain_of(row).is_none() {
            self.chain.put_oldest(0, row);
        }
    }

    fn became_hot(&mut self, row: u32) {
        self.chain.put_newest(0, row);
    }

    fn left(&mut self, row: u32) {
        self.chain.remove(row);
    }

    fn next<W: Words>(&mut self, words: &mut W, _: &mut Rounds, turn: &mut Turn) -> Option<u32> {
        while turn.step(LOOK_COST) {
            let Some(row) = self.chain.oldest(0) else {
                turn.end();
                break;
            };
            turn.pass(1);
            self.chain.remove(row);
            if let Seen::Hot(_) = words.seen(row) {
                return Some(row);
            }
        }
        None
    }

    fn is_next(&mut self, row: u32) {
        self.chain.put_oldest(0, row);
    }

    fn round_over(&mut self, _: &Rounds) {}

    fn keeps(&self, row: u32) -> Option<bool> {
        Some(self.chain.chain_of(row).is_some())
    }

    fn bytes(&self) -> usize {
        self.chain.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Rows;
    use super::*;

    fn oldest(lru: &mut Lru, rows: &mut Rows) -> Option<u32> {
        lru.next(rows, &mut Rounds::default(), &mut Turn::new(u32::MAX, 0))
    }

    #[test]
    fn of_sampled_transactions_each_moves_all_that_it_uses_or_nothing() {
        let tenth = Share::of_millionths(100_000).expect("a share");
        let mut lru = Lru::new(tenth);
        let mut rows = Rows::hot(4);
        (0..4).for_each(|row| lru.became_hot(row));
        for transaction in 1..10 {
            lru.used(0, transaction);
            lru.used(1, transaction);
        }
        assert_eq!(oldest(&mut lru, &mut rows), Some(0));
        lru.is_next(0);
        lru.used(0, 10);
        lru.used(1, 10);
        let order: Vec<_> = (0..4).map(|_| oldest(&mut lru, &mut rows)).collect();
        assert_eq!(order, [2, 3, 0, 1].map(Some));
    }

    #[test]
    fn what_is_adopted_is_older_than_what_was_used() {
        let mut lru = Lru::new(Share::WHOLE);
        let mut rows = Rows::hot(4);
        lru.used(2, 1);
        lru.became_hot(0);
        (0..4).for_each(|row| lru.adopt(row));
        lru.came_along(0);
        let order: Vec<_> = (0..4).map(|_| oldest(&mut lru, &mut rows)).collect();
        assert_eq!(order, [0, 3, 1, 2].map(Some));
    }

    #[test]
    fn what_is_not_hot_any_more_is_passed() {
        let mut lru = Lru::new(Share::WHOLE);
        let mut rows = Rows::hot(3);
        (0..3).for_each(|row| lru.became_hot(row));
        rows.0[0] = Seen::Gone;
        assert_eq!(oldest(&mut lru, &mut rows), Some(1));
        lru.left(2);
        assert_eq!(oldest(&mut lru, &mut rows), None);
    }
}
