//! S3-FIFO (Yang et al., SOSP 2023): a small queue of a tenth of what is hot sorts out what is
//! used once. What is used again, there or soon after it left, comes into the main queue. What
//! has left the small queue is remembered as a *ghost*, until as many others as the main queue
//! has have left it, too.
//!
//! The paper's queues have a fixed length; here memory is one for all tables, so their
//! lengths follow from how many tuples are hot.

use thermocline_storage::chains::Chains;

use super::lru::LOOK_COST;
use super::{Identify, Rounds, Seen, Turn, Words};

/// The chains, the newest of each being what came last.
const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOSTS: usize = 2;

/// The small queue has this part of what is hot.
const SMALL_DIVISOR: usize = 10;
/// Uses are counted up to this, in a row's mark.
const USES_MAX: u8 = 3;
/// Uses in the small queue that lead to the main one.
const PROMOTE: u8 = 2;
/// Marks of a row that was given out, from this queue.
const FROM_SMALL: u8 = 1 << 7;
const FROM_MAIN: u8 = 1 << 6;

/// The queues of all hot rows, and the ghosts.
#[derive(Default)]
pub struct S3Fifo {
    chains: Chains<3>,
}

impl S3Fifo {
    fn hot(&self) -> usize {
        self.chains.len(SMALL) + self.chains.len(MAIN)
    }

    fn small_len(&self) -> usize {
        (self.hot() / SMALL_DIVISOR).max(1)
    }

    /// The queue that the next row to look at is in.
    fn queue(&self) -> usize {
        let small = self.chains.len(SMALL);
        match small >= self.small_len() || self.chains.is_empty(MAIN) {
            true => SMALL,
            false => MAIN,
        }
    }

    fn put(&mut self, queue: usize, row: u32) {
        self.chains.put_newest(queue, row);
        self.chains.set_mark(row, 0);
    }

    fn take(&mut self, row: u32, mark: u8) {
        self.chains.remove(row);
        self.chains.set_mark(row, mark);
    }

    /// Forgets the oldest ghosts beyond as many as the main queue has rows.
    fn forget_ghosts(&mut self) {
        let most = self.hot().saturating_sub(self.small_len());
        while self.chains.len(GHOSTS) > most
            && let Some(ghost) = self.chains.oldest(GHOSTS)
        {
            self.chains.remove(ghost);
        }
    }
}

impl Identify for S3Fifo {
    /// As often as a row of the main queue has another chance, and once more.
    const ROUNDS: u64 = USES_MAX as u64 + 1;

    fn used(&mut self, row: u32, _: u64) {
        let mark = self.chains.mark(row);
        if mark < USES_MAX {
            self.chains.set_mark(row, mark + 1);
        }
    }

    fn became_hot(&mut self, row: u32) {
        let known = self.chains.chain_of(row) == Some(GHOSTS);
        match known || self.chains.mark(row) == FROM_MAIN {
            true => self.put(MAIN, row),
            false => self.put(SMALL, row),
        }
    }

    fn came_along(&mut self, row: u32) {
        self.chains.put_oldest(SMALL, row);
        self.chains.set_mark(row, 0);
    }

    fn adopt(&mut self, row: u32) {
        if self.chains.chain_of(row).is_none() {
            // A use may have been noted meanwhile.
            self.chains.put_oldest(SMALL, row);
        }
    }

    fn left(&mut self, row: u32) {
        if self.chains.mark(row) == FROM_SMALL {
            self.put(GHOSTS, row);
            self.forget_ghosts();
        } else {
            self.take(row, 0);
        }
    }

    fn next<W: Words>(&mut self, words: &mut W, _: &mut Rounds, turn: &mut Turn) -> Option<u32> {
        while turn.step(LOOK_COST) {
            let queue = self.queue();
            let Some(row) = self.chains.oldest(queue) else {
                turn.end();
                break;
            };
            turn.pass(1);
            let uses = self.chains.mark(row);
            match (words.seen(row), queue) {
                (Seen::Cold(_) | Seen::Gone, _) => self.take(row, 0),
                (Seen::Hot(_), SMALL) if uses >= PROMOTE => self.put(MAIN, row),
                (Seen::Hot(_), SMALL) => {
                    self.take(row, FROM_SMALL);
                    return Some(row);
                }
                (Seen::Hot(_), _) if uses > 0 => {
                    self.put(MAIN, row);
                    self.chains.set_mark(row, uses - 1);
                }
                (Seen::Hot(_), _) => {
                    self.take(row, FROM_MAIN);
                    return Some(row);
                }
            }
        }
        None
    }

    fn is_next(&mut self, row: u32) {
        let queue = match self.chains.mark(row) {
            FROM_MAIN => MAIN,
            _ => SMALL,
        };
        self.chains.put_oldest(queue, row);
        self.chains.set_mark(row, 0);
    }

    fn round_over(&mut self, _: &Rounds) {}

    fn keeps(&self, row: u32) -> Option<bool> {
        let chain = self.chains.chain_of(row);
        Some(chain.is_some_and(|chain| chain != GHOSTS))
    }

    fn bytes(&self) -> usize {
        self.chains.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Rows;
    use super::*;

    /// Rows 0..20 are hot, and have come in this order.
    fn twenty() -> (S3Fifo, Rows) {
        let mut order = S3Fifo::default();
        (0..20).for_each(|row| order.became_hot(row));
        (order, Rows::hot(40))
    }

    fn next(order: &mut S3Fifo, rows: &mut Rows) -> Option<u32> {
        order.next(rows, &mut Rounds::default(), &mut Turn::new(u32::MAX, 0))
    }

    fn leaves(order: &mut S3Fifo, rows: &mut Rows) -> Option<u32> {
        let row = next(order, rows)?;
        rows.0[row as usize] = Seen::Cold(0);
        order.left(row);
        Some(row)
    }

    #[test]
    fn what_is_used_twice_in_the_small_queue_stays() {
        let (mut order, mut rows) = twenty();
        for row in [0, 2, 2, 4, 4] {
            order.used(row, 0);
        }
        let gone: Vec<_> = (0..4).map(|_| leaves(&mut order, &mut rows)).collect();
        assert_eq!(gone, [0, 1, 3, 5].map(Some));
        assert_eq!(order.chains.len(MAIN), 2);
    }

    #[test]
    fn what_left_and_is_used_soon_comes_into_the_main_queue() {
        let (mut order, mut rows) = twenty();
        assert_eq!(leaves(&mut order, &mut rows), Some(0));
        order.became_hot(0);
        order.became_hot(20);
        assert_eq!(order.chains.chain_of(0), Some(MAIN));
        assert_eq!(order.chains.chain_of(20), Some(SMALL));
    }

    #[test]
    fn there_are_no_more_ghosts_than_rows_in_the_main_queue() {
        let (mut order, mut rows) = twenty();
        while leaves(&mut order, &mut rows).is_some() {
            assert!(order.chains.len(GHOSTS) <= order.hot());
        }
        assert!(order.chains.is_empty(GHOSTS) && order.hot() == 0);
    }

    #[test]
    fn a_row_of_the_main_queue_has_a_chance_for_each_use() {
        let (mut order, mut rows) = twenty();
        (0..20)
            .flat_map(|row| [row, row])
            .for_each(|row| order.used(row, 0));
        assert_eq!(leaves(&mut order, &mut rows), Some(0));
        (1..20).for_each(|_| order.used(1, 0));
        let gone: Vec<_> = (0..19).map(|_| leaves(&mut order, &mut rows)).collect();
        assert_eq!(gone.last(), Some(&Some(1)), "{gone:?}");
    }

    #[test]
    fn what_stays_after_all_is_in_its_queue() {
        let (mut order, mut rows) = twenty();
        (0..18)
            .flat_map(|row| [row, row])
            .for_each(|row| order.used(row, 0));
        // All but two are in the main queue.
        let mut queues = Vec::new();
        for _ in 0..3 {
            let row = next(&mut order, &mut rows).expect("there are rows");
            let mark = order.chains.mark(row);
            order.is_next(row);
            assert_eq!(next(&mut order, &mut rows), Some(row));
            order.became_hot(row);
            queues.push((mark, order.chains.chain_of(row)));
        }
        for (mark, queue) in queues {
            let from = if mark == FROM_MAIN { MAIN } else { SMALL };
            assert_eq!(queue, Some(from));
        }
        assert_eq!(order.hot(), 20);
    }
}
