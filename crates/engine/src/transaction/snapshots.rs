//! The order of commits, and the snapshots that are open. A commit pays two words for it: it takes
//! the next timestamp, and looks whether anybody needs what it replaces.
//!
//! Guarantees: a snapshot sees a commit whole or not at all. What a commit replaced is kept if a
//! snapshot is open that does not see it, unless that was ended. A commit that keeps nothing
//! ([`Snapshots::begin_unseen`]) has no snapshot beside it. `tests/models.rs` has each interleaving
//! of these tried. Assumes that a commit holds the locks of all partitions that it changes, and
//! that whoever reads by a snapshot takes them after it opened.

use std::collections::BTreeMap;

use crate::ground::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, yield_now};
use crate::ground::txn_id::Timestamp;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    /// The last commit's timestamp.
    clock: AtomicU64,
    /// Open snapshots; counted apart so that a commit looks at one word.
    open: AtomicUsize,
    /// Commits under way that no snapshot may be opened beside.
    unseen: AtomicUsize,
    snapshots: Mutex<BTreeMap<Timestamp, usize>>,
    /// Older snapshots were ended, since what they need took too much memory.
    oldest_kept: AtomicU64,
}

/// A commit that no snapshot may be opened beside.
pub(crate) struct Unseen<'a>(&'a Snapshots);

impl Drop for Unseen<'_> {
    fn drop(&mut self) {
        self.0.unseen.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Snapshots {
    /// The timestamp of a commit. Taken under the locks of all partitions that
    /// the commit changes; the second value says whether snapshots are open
    /// that need the before-images.
    pub fn commit_timestamp(&self) -> (Timestamp, bool) {
        let timestamp = self.clock.fetch_add(1, Ordering::SeqCst) + 1;
        // A snapshot registers before it reads the clock, so one that is not
        // seen here reads a clock that includes this commit.
        (timestamp, self.open.load(Ordering::SeqCst) > 0)
    }

    /// Keeps snapshots from opening until it is dropped, for a commit that has no
    /// before-images for them; None if one is open. Must not be held over a wait.
    pub fn begin_unseen(&self) -> Option<Unseen<'_>> {
        self.unseen.fetch_add(1, Ordering::SeqCst);
        let unseen = Unseen(self);
        // A snapshot counts itself before it looks for us: one of us sees the other.
        (self.open.load(Ordering::SeqCst) == 0).then_some(unseen)
    }

    /// Whether snapshots are open at this moment; one may open at the next.
    pub fn has_snapshots(&self) -> bool {
        self.open.load(Ordering::SeqCst) > 0
    }

    /// The last commit's timestamp.
    pub fn now(&self) -> Timestamp {
        self.clock.load(Ordering::SeqCst)
    }

    /// Opens a snapshot of everything committed so far.
    pub fn open_snapshot(&self) -> Timestamp {
        self.open.fetch_add(1, Ordering::SeqCst);
        // No new ones begin, and those under way end soon. Not under the lock, which they
        // may want for that.
        while self.unseen.load(Ordering::SeqCst) > 0 {
            yield_now();
        }
        let mut snapshots = self.snapshots.lock();
        let timestamp = self.clock.load(Ordering::SeqCst);
        *snapshots.entry(timestamp).or_default() += 1;
        timestamp
    }

    /// Holds an open snapshot once more; of one that was ended there is nothing to hold.
    pub fn share_snapshot(&self, timestamp: Timestamp) {
        let mut snapshots = self.snapshots.lock();
        if !self.is_kept(timestamp) {
            return;
        }
        self.open.fetch_add(1, Ordering::SeqCst);
        *snapshots.entry(timestamp).or_default() += 1;
    }

    pub fn close_snapshot(&self, timestamp: Timestamp) {
        let mut snapshots = self.snapshots.lock();
        if let Some(count) = snapshots.get_mut(&timestamp) {
            *count -= 1;
            if *count == 0 {
                snapshots.remove(&timestamp);
            }
            self.open.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Ends the oldest snapshot, for which most is kept; None if none keeps anything. Who
    /// reads by it learns that from [`Self::is_kept`].
    pub fn end_oldest_snapshot(&self) -> Option<Timestamp> {
        let mut snapshots = self.snapshots.lock();
        let (&oldest, &count) = snapshots.first_key_value()?;
        // One that opens from now on is later than this.
        if oldest >= self.clock.load(Ordering::SeqCst) {
            return None;
        }
        // Before the horizon moves and commits stop keeping images: who takes a partition's
        // lock after one of them has missed an image finds this.
        self.oldest_kept.store(oldest + 1, Ordering::SeqCst);
        snapshots.remove(&oldest);
        self.open.fetch_sub(count, Ordering::SeqCst);
        Some(oldest)
    }

    /// Whether what a snapshot needs is still there.
    #[inline]
    pub fn is_kept(&self, timestamp: Timestamp) -> bool {
        timestamp >= self.oldest_kept.load(Ordering::SeqCst)
    }

    /// No snapshot is older, whether it is open or opens later: what was replaced up to
    /// here nobody wants to see.
    pub fn horizon(&self) -> Timestamp {
        // Before the look for open ones: one that is missed by it reads a later clock.
        let now = self.clock.load(Ordering::SeqCst);
        if self.open.load(Ordering::SeqCst) == 0 {
            return now;
        }
        let snapshots = self.snapshots.lock();
        snapshots
            .keys()
            .next()
            .map_or(now, |oldest| now.min(*oldest))
    }

    /// Open snapshots.
    pub fn open_snapshots(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}
