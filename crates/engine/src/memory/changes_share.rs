//! What the changes of all transactions hold of memory until they end ([`crate::parts::changes`]): one
//! count, which each of them takes from and gives back to.

use crate::ground::event::Event;
use crate::ground::sync::Ordering::{Relaxed, SeqCst};
use crate::ground::sync::{AtomicU64, AtomicUsize};

/// Transactions that hold less than one part of the share in so many have a quarter of it for
/// themselves, beside it.
const SMALL_DIVISOR: u64 = 64;

/// What all transactions hold.
#[derive(Default)]
pub(crate) struct ChangesShare {
    held: AtomicU64,
    waiting: AtomicUsize,
    /// Some were given back while somebody waited.
    pub freed: Event,
}

impl ChangesShare {
    /// What they hold, in bytes.
    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// Takes `bytes` of a share of `most` for somebody who holds `own` of it.
    pub fn try_take(&self, bytes: u64, own: u64, most: u64) -> bool {
        if own + bytes > most {
            return false;
        }
        let reserve = match own + bytes <= most / SMALL_DIVISOR {
            true => most / 4,
            false => 0,
        };
        let taken = self.held.fetch_update(SeqCst, Relaxed, |held| {
            Some(held + bytes).filter(|sum| *sum <= most + reserve)
        });
        taken.is_ok()
    }

    /// Gives `bytes` back.
    pub fn give(&self, bytes: u64) {
        self.held.fetch_sub(bytes, SeqCst);
        if self.waiting.load(SeqCst) > 0 {
            self.freed.notify();
        }
    }

    /// Somebody waits, until it is dropped.
    pub fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, SeqCst);
        Waiting(self)
    }
}

/// Somebody who waits for others to give back.
pub(crate) struct Waiting<'a>(&'a ChangesShare);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_transactions_have_one_share_and_small_ones_a_reserve() {
        let share = ChangesShare::default();
        assert!(share.try_take(6400, 0, 6400), "alone, all of it");
        assert!(!share.try_take(101, 0, 6400));
        assert!(share.try_take(100, 0, 6400));
        assert!(!share.try_take(1, 100, 6400), "it is no longer small");
        assert!(!share.try_take(1, 6400, 6400), "more than there is");
        share.give(3200);
        assert!(share.try_take(3000, 0, 6400));
        assert_eq!(share.held(), 6300);
    }
}
