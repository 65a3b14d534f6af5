//! LRU and aLRU (004 §3.1): the tuple used longest ago leaves. The papers' aLRU lets only a
//! sample of the uses move a tuple: what is used often is moved often enough.

use thermocline_storage::chains::Chains;

use super::{Identify, Rounds, Seen, Turn, Words};

/// Of aLRU one use in so many counts.
pub(super) const SAMPLE: u32 = 100;
/// A look at the end of a chain takes about as long as so many steps of a hand.
pub(super) const LOOK_COST: u32 = 4;

/// A chain of all hot rows.
pub struct Lru {
    chain: Chains<1>,
    /// One of so many uses counts.
    sample: u32,
    uses: u32,
}

impl Lru {
    /// One of `sample` uses counts; 1: each.
    #[must_use]
    pub fn new(sample: u32) -> Self {
        Lru {
            chain: Chains::new(),
            sample: sample.max(1),
            uses: 0,
        }
    }
}

impl Identify for Lru {
    const ROUNDS: u64 = 4;

    #[inline]
    fn used(&mut self, row: u32) {
        self.uses += 1;
        if self.uses >= self.sample {
            self.uses = 0;
            self.chain.put_newest(0, row);
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
    fn of_sampled_uses_only_some_move_a_row() {
        let mut lru = Lru::new(SAMPLE);
        let mut rows = Rows::hot(3);
        lru.became_hot(1);
        lru.became_hot(2);
        (1..SAMPLE).for_each(|_| lru.used(1));
        assert_eq!(oldest(&mut lru, &mut rows), Some(1));
        lru.is_next(1);
        lru.used(1);
        assert_eq!(oldest(&mut lru, &mut rows), Some(2));
    }

    #[test]
    fn what_is_not_hot_any_more_is_passed() {
        let mut lru = Lru::new(1);
        let mut rows = Rows::hot(3);
        (0..3).for_each(|row| lru.became_hot(row));
        rows.0[0] = Seen::Gone;
        assert_eq!(oldest(&mut lru, &mut rows), Some(1));
        lru.left(2);
        assert_eq!(oldest(&mut lru, &mut rows), None);
    }
}
