//! Operations that the device has not answered yet, and since when: how a stall is seen
//! while it lasts. Histograms only show it when it is over.
//!
//! Each operation takes a free slot and writes its start there: one compare-and-swap, no
//! lock. Whoever asks scans the slots. Where all slots that were tried are taken the
//! operation is not seen here; with 256 of them others of the same age are.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

const SLOTS: usize = 256;
/// How many slots an operation tries.
const TRIES: usize = 8;
/// Neighbouring operations begin their search this far apart: not in one cache line.
const STRIDE: usize = 9;

/// Operations under way.
#[derive(Debug)]
pub(crate) struct Outstanding {
    base: Instant,
    /// 0: free; else microseconds since `base`, and one.
    slots: [AtomicU64; SLOTS],
    next: AtomicUsize,
    longest_us: AtomicU64,
}

/// Where an operation is noted; give it back when the operation is over.
#[derive(Debug)]
#[must_use = "an operation that never ends is a stall"]
pub struct Ticket {
    slot: Option<u16>,
    began_us: u64,
}

/// The operations under way at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutstandingSnapshot {
    /// Reads, writes and syncs that are not answered.
    pub operations: u64,
    /// How long the oldest of them has taken so far.
    pub oldest: Duration,
    /// The longest that any took so far, one that is over or one under way.
    pub longest: Duration,
}

impl Default for Outstanding {
    fn default() -> Self {
        Outstanding {
            base: Instant::now(),
            slots: std::array::from_fn(|_| AtomicU64::new(0)),
            next: AtomicUsize::new(0),
            longest_us: AtomicU64::new(0),
        }
    }
}

impl Outstanding {
    fn now_us(&self) -> u64 {
        self.base.elapsed().as_micros() as u64
    }

    pub fn begin(&self) -> Ticket {
        let began_us = self.now_us();
        let first = self.next.fetch_add(STRIDE, Relaxed);
        let slot = (first..first + TRIES)
            .map(|at| at % SLOTS)
            .find(|&at| self.take(at, began_us))
            .map(|at| at as u16);
        Ticket { slot, began_us }
    }

    fn take(&self, at: usize, began_us: u64) -> bool {
        self.slots[at]
            .compare_exchange(0, began_us + 1, Relaxed, Relaxed)
            .is_ok()
    }

    pub fn end(&self, ticket: Ticket) {
        let took = self.now_us().saturating_sub(ticket.began_us);
        if took > self.longest_us.load(Relaxed) {
            self.longest_us.fetch_max(took, Relaxed);
        }
        if let Some(slot) = ticket.slot {
            self.slots[usize::from(slot)].store(0, Relaxed);
        }
    }

    pub fn snapshot(&self) -> OutstandingSnapshot {
        let began = self.slots.iter().map(|slot| slot.load(Relaxed));
        let (mut operations, mut oldest) = (0, None);
        for began in began.filter(|began| *began > 0) {
            operations += 1;
            oldest = Some(oldest.map_or(began, |oldest: u64| oldest.min(began)));
        }
        let now = self.now_us();
        let oldest_us = oldest.map_or(0, |began| (now + 1).saturating_sub(began));
        let longest_us = oldest_us.max(self.longest_us.load(Relaxed));
        OutstandingSnapshot {
            operations,
            oldest: Duration::from_micros(oldest_us),
            longest: Duration::from_micros(longest_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_seen_while_it_lasts_and_the_longest_afterwards() {
        let outstanding = Outstanding::default();
        assert_eq!(outstanding.snapshot(), OutstandingSnapshot::default());
        let old = outstanding.begin();
        std::thread::sleep(Duration::from_millis(30));
        let young = outstanding.begin();
        let seen = outstanding.snapshot();
        assert_eq!(seen.operations, 2);
        assert!(seen.oldest >= Duration::from_millis(30), "{seen:?}");
        outstanding.end(old);
        let seen = outstanding.snapshot();
        assert_eq!(seen.operations, 1);
        assert!(seen.oldest < seen.longest, "{seen:?}");
        assert!(seen.longest >= Duration::from_millis(30), "{seen:?}");
        outstanding.end(young);
        let seen = outstanding.snapshot();
        assert_eq!((seen.operations, seen.oldest), (0, Duration::ZERO));
    }

    #[test]
    fn more_operations_than_slots_cost_nobody_a_slot_for_good() {
        let outstanding = Outstanding::default();
        let tickets: Vec<_> = (0..2 * SLOTS).map(|_| outstanding.begin()).collect();
        let seen = outstanding.snapshot().operations as usize;
        assert!(seen > SLOTS / 2 && seen <= SLOTS, "{seen}");
        tickets.into_iter().for_each(|t| outstanding.end(t));
        assert_eq!(outstanding.snapshot().operations, 0);
    }
}
