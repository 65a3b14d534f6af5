//! Which hot row leaves next: the policy's order of rows, over the words of the directory.

use thermocline_storage::row_directory::{HotWord, RowDirectory};

use super::{TablePartition, is_there};
use crate::policy::Policy;
use crate::policy::identification::{Rounds, Seen, Turn, Words};

/// The words of a directory, as a policy sees them.
struct Seeing<'a>(&'a mut RowDirectory);

impl Words for Seeing<'_> {
    #[inline]
    fn end(&self) -> u32 {
        self.0.appended()
    }

    #[inline]
    fn settled_from(&self, row: u32) -> u32 {
        self.0.settled_from(row)
    }

    #[inline]
    fn seen(&self, row: u32) -> Seen {
        let word = self.0.get(row);
        match is_there(word) {
            true if word.is_hot() => Seen::Hot(word.temperature()),
            true => Seen::Cold(word.temperature()),
            false => Seen::Gone,
        }
    }

    #[inline]
    fn cool(&mut self, row: u32, to: u8) {
        let word = self.0.get(row);
        debug_assert!(is_there(word) && to <= word.temperature());
        self.0.set_unsaved(row, word.with_temperature(to));
    }
}

impl TablePartition {
    /// The hot row that is to leave next, as long as the turn lasts: it leaves, or
    /// [stays](Self::stays), or [is the next again](Self::is_next).
    #[inline]
    pub fn next_to_leave(
        &mut self,
        rounds: &mut Rounds,
        turn: &mut Turn,
    ) -> Option<(u32, HotWord)> {
        if !self.unknown.is_empty() {
            self.tell_of_hot_rows(turn);
        }
        let words = &mut Seeing(&mut self.directory);
        let row = self.order.next(words, rounds, turn)?;
        let hot = self.directory.get(row).as_hot();
        debug_assert!(hot.is_some(), "row {row} is to leave, and is not hot");
        self.counts.identified += 1;
        Some((row, hot?))
    }

    /// The policy that says which rows leave.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Goes by another policy from now on. Rows stay what they are; an order that keeps rows is
    /// told of those that are hot in the turns of whoever looks for some that may leave. Until
    /// then it knows those that were used since, which are not the ones to leave.
    pub fn follow(&mut self, policy: Policy) {
        if !policy.has_order_of(&self.policy) {
            self.order = policy.order();
            let rows = match self.order.keeps_rows() {
                true => self.directory.appended(),
                false => 0,
            };
            self.unknown = 0..rows;
        }
        self.policy = policy;
    }

    #[cold]
    fn tell_of_hot_rows(&mut self, turn: &mut Turn) {
        while turn.looks()
            && let Some(row) = self.unknown.next()
        {
            if self.directory.get(row).is_hot() {
                self.order.adopt(row);
            }
        }
    }

    /// A hot row that was to leave stays.
    #[inline]
    pub fn stays(&mut self, row: u32) {
        debug_assert!(self.directory.get(row).is_hot(), "row {row} is not hot");
        self.order.became_hot(row);
    }

    /// The row that was to leave next cannot yet.
    pub fn is_next(&mut self, row: u32) {
        // It will be found again.
        self.counts.identified = self.counts.identified.saturating_sub(1);
        self.order.is_next(row);
    }

    /// How many times over all rows whoever looks for some that may leave has to go.
    pub fn rounds_to_leave(&self) -> u64 {
        self.order.rounds()
    }
}
