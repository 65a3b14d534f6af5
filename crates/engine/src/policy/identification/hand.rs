//! The policies with a hand, which sweeps over the row directory and meets one row after the
//! other: temperature, CLOCK and FIFO. They keep nothing of a row but what its word says.
//!
//! A degree is taken from every tuple, hot and cold, when the hands have passed all tables once
//! and found little ([`Rounds`]). Each hand takes it from the tuples that it passes in its next
//! round.

use std::marker::PhantomData;

use thermocline_storage::temperature::MAX;

use super::{Identify, Rounds, Seen, Turn, Words};

/// How often CLOCK's hand passes a tuple that was used again and again.
const CLOCK_CHANCES: u8 = 2;

/// What a hand does with a hot tuple that it meets.
pub trait Rule {
    /// See [`Identify::ROUNDS`].
    const ROUNDS: u64;

    /// The temperature at which a hot tuple of this `warmth` stays, in a round that takes
    /// `cooling` degrees; None: it may leave.
    fn stays(rounds: &mut Rounds, warmth: u8, cooling: u8) -> Option<u8>;
}

/// What is warm stays, by what is known of how tuples are used.
#[derive(Default)]
pub struct Warmth;

impl Rule for Warmth {
    const ROUNDS: u64 = 1;

    #[inline]
    fn stays(rounds: &mut Rounds, warmth: u8, cooling: u8) -> Option<u8> {
        if rounds.meets(warmth) {
            return None;
        }
        let cooler = warmth.saturating_sub(cooling);
        rounds.stays(cooler);
        Some(cooler)
    }
}

/// What was used has another chance, or two.
#[derive(Default)]
pub struct Chances;

impl Rule for Chances {
    const ROUNDS: u64 = 4;

    #[inline]
    fn stays(_: &mut Rounds, warmth: u8, _: u8) -> Option<u8> {
        (warmth > 0).then(|| warmth.min(CLOCK_CHANCES) - 1)
    }
}

/// Nothing stays.
#[derive(Default)]
pub struct Turns;

impl Rule for Turns {
    const ROUNDS: u64 = 4;

    #[inline]
    fn stays(_: &mut Rounds, _: u8, _: u8) -> Option<u8> {
        None
    }
}

/// Uses are counted, of hot and cold tuples.
pub type Temperature = Hand<Warmth>;
/// A tuple that was used since the hand's last visit stays.
pub type Clock = Hand<Chances>;
/// Use does not count.
pub type Fifo = Hand<Turns>;

/// Where a hand stands, and what it takes.
#[derive(Default)]
pub struct Hand<R> {
    row: u32,
    /// Degrees that its rounds have taken, this one included; None: it has had none. A table
    /// that is made, or comes after a start, owes nothing for rounds before that.
    cooled: Option<u32>,
    /// Degrees that this round takes from each tuple.
    cooling: u8,
    rule: PhantomData<R>,
}

impl<R: Rule> Identify for Hand<R> {
    const ROUNDS: u64 = R::ROUNDS;

    #[inline]
    fn used(&mut self, _: u32, _: u64) {}

    #[inline]
    fn became_hot(&mut self, _: u32) {}

    #[inline]
    fn left(&mut self, _: u32) {}

    fn next<W: Words>(
        &mut self,
        words: &mut W,
        rounds: &mut Rounds,
        turn: &mut Turn,
    ) -> Option<u32> {
        let end = words.end();
        if end == 0 {
            turn.end();
        }
        while turn.step(1) {
            if self.row >= end {
                self.row = 0;
                self.round_over(rounds);
            }
            let row = self.row;
            let settled = words.settled_from(row);
            if settled > 0 && self.cooling == 0 {
                self.row += settled;
                turn.pass(settled);
                continue;
            }
            self.row += 1;
            turn.pass(1);
            match words.seen(row) {
                Seen::Hot(warmth) => match R::stays(rounds, warmth, self.cooling) {
                    Some(to) if to != warmth => words.cool(row, to),
                    Some(_) => {}
                    None => return Some(row),
                },
                Seen::Cold(warmth) if self.cooling > 0 && warmth > 0 => {
                    words.cool(row, warmth.saturating_sub(self.cooling));
                }
                Seen::Cold(_) | Seen::Gone => {}
            }
        }
        None
    }

    fn is_next(&mut self, row: u32) {
        self.row = row;
    }

    fn round_over(&mut self, rounds: &Rounds) {
        let degrees = rounds.degrees();
        let before = self.cooled.replace(degrees).unwrap_or(degrees);
        self.cooling = degrees.wrapping_sub(before).min(u32::from(MAX)) as u8;
    }

    fn keeps(&self, _: u32) -> Option<bool> {
        None
    }

    fn bytes(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Rows;
    use super::*;

    /// A hand goes over all rows once, and meets none that may leave.
    fn pass(hand: &mut Temperature, rows: &mut Rows, rounds: &mut Rounds) {
        let mut turn = Turn::new(rows.end(), 0);
        assert_eq!(hand.next(rows, rounds, &mut turn), None);
        let _ = rounds.passed(turn.passed(), 0);
        let hot = u64::from(rows.end());
        rounds.round_over(hot, hot, hot);
    }

    /// The hand over a new table took all degrees at once that others had lost before it was
    /// made: everything in it was cold after its first round, however often it was used.
    #[test]
    fn a_table_that_is_made_later_owes_nothing_for_rounds_before_that() {
        let mut rounds = Rounds::default();
        let (mut old, mut new) = (Temperature::default(), Temperature::default());
        let mut rows = Rows(vec![Seen::Hot(MAX); 10]);
        for _ in 0..3 {
            pass(&mut old, &mut rows, &mut rounds);
        }
        assert!(rounds.degrees() > 1);
        let mut later = Rows(vec![Seen::Hot(MAX); 10]);
        pass(&mut new, &mut later, &mut rounds);
        let degrees = rounds.degrees();
        let warmth = later.0.clone();
        let mut turn = Turn::new(1, 0);
        assert_eq!(new.next(&mut later, &mut rounds, &mut turn), None);
        assert_eq!(
            later.0, warmth,
            "the first round is over, and takes nothing"
        );
        assert_eq!(new.cooled, Some(degrees));
    }
}
