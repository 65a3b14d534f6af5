//! Tuples that were read from the device for a statement, beside the tables. One statement may
//! have a share of the memory limit for them, and all together no more: who comes when it is
//! used up waits until others are done. The share is smaller where what can't leave has taken
//! the memory.
//!
//! A statement that holds tuples and needs more may not just wait: others may wait for what it
//! holds. So one statement at a time, the first, may go beyond the share without waiting. The
//! others wait for its end.
//!
//! Guarantees: all together hold at most the share and what one statement may have, beside small
//! ones, which never wait. A statement that waits for another's lock holds a small one at most.
//! The first may wait for rows that a waiting one has locked: that one gets an error when nobody was
//! given room for [`WAIT_MAX`](crate::memory::account::WAIT_MAX). While others get theirs, one after the
//! other, on a slow device, it waits on, up to [`WAIT_LONGEST`].

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::ground::wait::Event;

/// A statement waits no longer for room, whoever gets some meanwhile.
pub(crate) const WAIT_LONGEST: Duration = Duration::from_secs(60);

/// A statement that holds no more than one part of the share in so many is small: it is counted,
/// and does not wait.
const SMALL_DIVISOR: u64 = 32;

/// What all statements hold.
#[derive(Default)]
pub(crate) struct FetchedShare {
    bytes: AtomicU64,
    /// Whether a statement may go beyond now.
    has_first: AtomicBool,
    /// How often somebody was given room.
    grants: AtomicU64,
    /// Some was given back.
    pub freed: Event,
}

impl FetchedShare {
    #[inline]
    pub fn held(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// How often somebody was given room: while it grows, those who wait get on.
    pub fn grants(&self) -> u64 {
        self.grants.load(Relaxed)
    }

    /// Takes `bytes`, whatever all together have.
    pub fn take(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Takes `bytes` if all together have at most `most` then, or nobody has any yet.
    pub fn try_take(&self, bytes: u64, most: u64) -> bool {
        let taken = self.bytes.fetch_update(Relaxed, Relaxed, |held| {
            Some(held + bytes).filter(|sum| *sum <= most || held == 0)
        });
        self.grants.fetch_add(u64::from(taken.is_ok()), Relaxed);
        taken.is_ok()
    }

    /// Takes `bytes` more for a statement that holds `fetched`: within `most`, or as the first.
    pub fn try_take_more(&self, fetched: &mut Fetched, bytes: u64, most: u64) -> bool {
        if self.try_take(bytes, most) {
            return true;
        }
        fetched.is_first = fetched.is_first || !self.has_first.swap(true, Relaxed);
        if fetched.is_first {
            self.bytes.fetch_add(bytes, Relaxed);
            self.grants.fetch_add(1, Relaxed);
        }
        fetched.is_first
    }
}

/// Tuples that were read from the device for this statement, by address.
/// A tree, for it costs nothing while it is empty, as it mostly is.
#[derive(Default)]
pub(crate) struct Fetched {
    tuples: BTreeMap<u64, Arc<[u8]>>,
    /// Blocks that were read as a whole, for what else lies in them, and their bytes.
    blocks: BTreeMap<u32, Arc<[u8]>>,
    block_bytes: u64,
    /// What of the share is counted for them.
    counted: u64,
    /// Whether it may go beyond the share: one at a time.
    is_first: bool,
    share: Option<Arc<FetchedShare>>,
}

impl Fetched {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn insert(&mut self, address: u64, tuple: Arc<[u8]>) {
        self.tuples.insert(address, tuple);
    }

    /// Has a block, too, if its blocks come to no more than `most` bytes then.
    pub fn keep_block(&mut self, block: u32, bytes: Arc<[u8]>, most: u64) {
        let more = bytes.len() as u64;
        if self.block_bytes + more <= most && !self.blocks.contains_key(&block) {
            self.block_bytes += more;
            self.blocks.insert(block, bytes);
        }
    }

    /// A block that was read as a whole, and kept.
    pub fn block(&self, block: u32) -> Option<&Arc<[u8]>> {
        self.blocks.get(&block)
    }

    fn bytes(&self) -> u64 {
        let tuples = self.tuples.values().map(|tuple| tuple.len() as u64);
        tuples.sum::<u64>() + self.block_bytes
    }

    /// What of the share is counted for them, in bytes.
    pub fn counted(&self) -> u64 {
        self.counted
    }

    /// Whether a statement is no small one any more with `bytes` more, of a share of `most`.
    pub fn is_large_with(&self, bytes: u64, most: u64) -> bool {
        self.counted + bytes > most / SMALL_DIVISOR
    }

    /// Counts `bytes` more, which were taken from the share.
    pub fn count(&mut self, share: &Arc<FetchedShare>, bytes: u64) {
        self.counted += bytes;
        self.share.get_or_insert_with(|| Arc::clone(share));
    }

    /// Drops the tuples if others may wait for their room: before a wait for others' locks,
    /// after which the rows are looked for anew.
    pub fn release_large(&mut self, most: u64) {
        if self.is_large_with(0, most) {
            *self = Self::default();
        }
    }

    /// Gives back what was counted beyond what is there, and counts what has come beyond it: how
    /// long a row in columns is nobody knows before.
    pub fn settle(&mut self) {
        let there = self.bytes();
        let beyond = there.saturating_sub(self.counted);
        if let Some(share) = self.share.as_ref().filter(|_| beyond > 0) {
            share.take(beyond);
            self.counted = there;
        }
        self.give(self.counted.saturating_sub(there));
    }

    fn give(&mut self, bytes: u64) {
        if let Some(share) = self.share.as_ref().filter(|_| bytes > 0) {
            self.counted -= bytes;
            share.bytes.fetch_sub(bytes, Relaxed);
            share.freed.notify();
        }
    }
}

impl Deref for Fetched {
    type Target = BTreeMap<u64, Arc<[u8]>>;

    fn deref(&self) -> &Self::Target {
        &self.tuples
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        self.tuples.clear();
        self.blocks.clear();
        if let Some(share) = self.share.as_ref().filter(|_| self.is_first) {
            share.has_first.store(false, Relaxed);
            share.freed.notify();
        }
        self.give(self.counted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_statements_together_have_one_share() {
        let share = Arc::new(FetchedShare::default());
        let mut large = Fetched::new();
        assert!(share.try_take(200, 100), "alone, as much as it needs");
        large.count(&share, 200);
        assert_eq!(share.grants(), 1);
        assert!(!share.try_take(1, 100));
        assert_eq!(share.grants(), 1, "nobody gets on");
        large.insert(7, vec![0; 90].into());
        large.settle();
        assert!(!share.try_take(11, 100));
        assert!(share.try_take(10, 100));
        let mut small = Fetched::new();
        small.count(&share, 10);
        // Of those that hold some one may go beyond, until its end.
        let mut other = Fetched::new();
        assert!(share.try_take_more(&mut small, 20, 100));
        small.count(&share, 20);
        assert!(share.try_take_more(&mut small, 30, 100));
        small.count(&share, 30);
        assert!(!share.try_take_more(&mut other, 1, 100));
        small.release_large(100);
        assert!(!small.is_first);
        assert!(share.try_take_more(&mut other, 1, 100), "within");
        assert!(!other.is_first);
        other.count(&share, 1);
        assert!(share.try_take_more(&mut other, 90, 100), "as the first");
        other.count(&share, 90);
        drop(other);
        drop(large);
        assert!(share.try_take(90, 100));
        small.count(&share, 90);
        drop(small);
        assert_eq!(share.bytes.load(Relaxed), 0);
    }
}
