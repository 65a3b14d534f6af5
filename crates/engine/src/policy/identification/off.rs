//! No identification: nothing leaves memory, so nothing is kept of rows, and their uses are not
//! counted. What both papers compare with.

use super::{Identify, Rounds, Turn, Words};

/// See the module's head.
#[derive(Debug, Clone, Copy, Default)]
pub struct Off;

impl Identify for Off {
    const ROUNDS: u64 = 0;

    #[inline]
    fn used(&mut self, _: u32, _: u64) {}

    #[inline]
    fn became_hot(&mut self, _: u32) {}

    #[inline]
    fn left(&mut self, _: u32) {}

    fn next<W: Words>(&mut self, _: &mut W, _: &mut Rounds, turn: &mut Turn) -> Option<u32> {
        turn.end();
        None
    }

    fn is_next(&mut self, _: u32) {}

    fn round_over(&mut self, _: &Rounds) {}

    fn keeps(&self, _: u32) -> Option<bool> {
        None
    }

    fn bytes(&self) -> usize {
        0
    }
}
