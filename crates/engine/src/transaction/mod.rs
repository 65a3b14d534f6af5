//! Transactions: the order of commits, open snapshots, and what an
//! interactive transaction carries with it until it commits.
//!
//! A one-shot transaction has none of this: it holds its partitions from
//! beginning to end. An interactive one (`BEGIN … COMMIT`) reads a snapshot,
//! keeps its updates and deletes beside the tables (the overlay), and inserts
//! in place as uncommitted rows. It locks the rows it writes. When it commits
//! it checks under the locks of all partitions concerned that what it read is
//! still so.

pub(crate) mod expected;
pub(crate) mod reads;
mod snapshots;
pub(crate) mod table_locks;
pub(crate) mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::catalog::draft::Draft;
use crate::ground::error::Error;
use crate::ground::row_id::RowId;
use crate::ground::txn_id::{Timestamp, TxnId};
use crate::ground::wait::{Cancel, Event};
use crate::memory::account::{Account, Charge};
use crate::rows::versions::StoredRow;
use crate::transaction::expected::Expectations;
use crate::transaction::reads::Reads;
use crate::transaction::snapshots::Snapshots;
use crate::transaction::table_locks::TableLocks;
use crate::transaction::waits::Waits;

/// How much of other transactions a transaction may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees what is committed when it runs.
    ReadCommitted,
    /// All statements see one snapshot; a write to what changed since is
    /// 40001.
    RepeatableRead,
    /// As if transactions ran one after the other.
    Serializable,
}

/// What a statement is run with.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Wait until the commit is on the device before returning.
    pub synchronous_commit: bool,
    /// How long to wait for a row lock; None: without end.
    pub lock_timeout: Option<Duration>,
    /// When the statement must be over, on the configured clock.
    pub deadline: Option<Duration>,
    /// Lets somebody else stop the statement.
    pub cancel: Cancel,
    /// Where the rows that it uses are counted; None: nowhere.
    pub reads: Option<Arc<ReadCounts>>,
    /// Whom its changes are charged to; None: an account of their own.
    pub account: Option<Account>,
    /// Whose statement it is, as `Database::lock_waits` names him; 0: nobody's.
    pub session: u64,
}

/// The rows that statements of the short path have used.
#[derive(Debug, Default)]
pub struct ReadCounts {
    uses: AtomicU64,
    fetched: AtomicU64,
}

impl ReadCounts {
    pub(crate) fn used(&self, rows: u64) {
        self.uses.fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn fetched(&self, rows: u64) {
        self.fetched.fetch_add(rows, Ordering::Relaxed);
    }

    /// Rows found in memory, and rows read from the device, since this was last asked.
    pub fn take(&self) -> (u64, u64) {
        let taken = |count: &AtomicU64| match count.load(Ordering::Relaxed) {
            0 => 0,
            _ => count.swap(0, Ordering::Relaxed),
        };
        let (uses, fetched) = (taken(&self.uses), taken(&self.fetched));
        (uses.saturating_sub(fetched), fetched)
    }
}

impl RunOptions {
    /// Synchronous commit, no time limits.
    pub fn new() -> Self {
        RunOptions {
            synchronous_commit: true,
            ..Self::default()
        }
    }
}

/// The order of commits, and who is under way.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    snapshots: Snapshots,
    next: AtomicU64,
    pub waits: Waits,
    active: Mutex<BTreeSet<TxnId>>,
    /// Those whose rollback met a device error.
    pub unfinished: Mutex<Vec<TxnState>>,
    /// Some interactive transaction has ended, or given back locks of rows.
    pub ended: Event,
    /// How often one has given some back before its end.
    given_back: AtomicU64,
}

impl Deref for Transactions {
    type Target = Snapshots;

    #[inline]
    fn deref(&self) -> &Snapshots {
        &self.snapshots
    }
}

impl Transactions {
    /// Starts numbering after `last`.
    pub fn start_after(&self, last: u64) {
        self.next.fetch_max(last, Ordering::Relaxed);
    }

    pub fn last_number(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Whether what a snapshot needs is still there: under the locks of all partitions that
    /// are read by it, once they are taken.
    #[inline]
    pub fn check_snapshot(&self, timestamp: Timestamp) -> Result<(), Error> {
        match self.is_kept(timestamp) {
            true => Ok(()),
            false => Err(Error::SnapshotTooOld),
        }
    }

    /// A number that nobody has had.
    pub fn number(&self) -> TxnId {
        TxnId(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub fn begin(&self) -> TxnId {
        let id = self.number();
        self.active.lock().insert(id);
        id
    }

    pub fn end(&self, id: TxnId) {
        self.active.lock().remove(&id);
        self.ended.notify();
    }

    /// A transaction has given back locks of rows, and goes on.
    pub fn give_back(&self) {
        self.given_back.fetch_add(1, Ordering::SeqCst);
        self.ended.notify();
    }

    /// How often locks of rows were given back.
    pub fn given_back(&self) -> u64 {
        self.given_back.load(Ordering::SeqCst)
    }

    pub fn is_active(&self, id: TxnId) -> bool {
        self.active.lock().contains(&id)
    }
}

/// An update or delete that is not committed yet.
#[derive(Debug, Clone)]
pub(crate) struct Overlaid {
    /// The table's object id.
    pub table: u32,
    /// The new image; None: deleted.
    pub new: Option<Arc<[u8]>>,
    /// An index key differs from the committed image's.
    pub moved: bool,
    /// How many savepoints there were.
    pub level: u32,
}

/// The state of an interactive transaction.
#[derive(Debug)]
pub(crate) struct TxnState {
    pub id: TxnId,
    pub isolation: Isolation,
    pub read_only: bool,
    /// Taken at the first statement (not under READ COMMITTED).
    pub snapshot: Option<Timestamp>,
    pub overlay: HashMap<(u32, RowId), Overlaid>,
    /// Rows inserted in place, by partition and storage: they are marked there.
    pub inserted: BTreeMap<(u16, u32), u64>,
    /// How often there came a point to which the transaction may be taken back, one after
    /// the other. A row that was inserted before the last is changed in the overlay.
    pub level: u32,
    /// What the overlay had before it was first changed after each of them.
    pub journal: Vec<((u32, RowId), Option<Overlaid>)>,
    pub locked: Vec<(u16, StoredRow)>,
    /// Under SERIALIZABLE, unless it is read-only.
    pub reads: Reads,
    /// What foreign keys make it expect of others' rows.
    pub expected: Expectations,
    /// Locks of tables.
    pub locks: TableLocks,
    /// What a DDL of this transaction has made of the catalog.
    pub draft: Option<Draft>,
    /// The log holds provisional records of this transaction.
    pub logged: bool,
    /// Bytes of overlay, locks and savepoints ([`crate::parts::changes`]), ...
    pub bytes: usize,
    /// ... what is charged for them, ...
    pub charge: Option<Charge>,
    /// ... and to whom.
    pub account: Option<Account>,
}

impl TxnState {
    pub fn sees_draft_of(&self, storage: u32) -> bool {
        self.draft
            .as_ref()
            .is_some_and(|d| d.made.contains(&storage))
    }

    /// Whether it has dropped an index of a storage, which others have still.
    pub fn has_dropped_index_of(&self, storage: u32) -> bool {
        self.draft
            .as_ref()
            .is_some_and(|d| d.dropped_indexes.iter().any(|index| index.0 == storage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_waits_for_an_unseen_commit_and_keeps_others_from_beginning() {
        let transactions = Transactions::default();
        let unseen = transactions.begin_unseen().expect("no snapshot is open");
        let timestamp = std::thread::scope(|scope| {
            let snapshot = scope.spawn(|| transactions.open_snapshot());
            while !transactions.has_snapshots() {
                std::thread::yield_now();
            }
            assert!(!snapshot.is_finished());
            let (timestamp, _) = transactions.commit_timestamp();
            drop(unseen);
            assert_eq!(snapshot.join().expect("opens"), timestamp);
            timestamp
        });
        assert!(transactions.begin_unseen().is_none());
        transactions.close_snapshot(timestamp);
        assert!(transactions.begin_unseen().is_some());
    }

    #[test]
    fn an_unseen_commit_collects_versions_while_a_snapshot_waits_for_it() {
        let transactions = Arc::new(Transactions::default());
        let unseen = transactions.begin_unseen().expect("no snapshot is open");
        let opening = transactions.clone();
        let snapshot = std::thread::spawn(move || opening.open_snapshot());
        while !transactions.has_snapshots() {
            std::thread::yield_now();
        }
        let (done, horizon) = std::sync::mpsc::channel();
        let committing = transactions.clone();
        std::thread::spawn(move || done.send(committing.horizon()));
        let horizon = horizon.recv_timeout(std::time::Duration::from_secs(10));
        assert_eq!(horizon, Ok(0), "the commit waits for the snapshot");
        drop(unseen);
        assert_eq!(snapshot.join().expect("opens"), 0);
    }

    #[test]
    fn what_a_later_snapshot_wants_is_beyond_the_horizon() {
        let transactions = Transactions::default();
        transactions.commit_timestamp();
        let horizon = transactions.horizon();
        let snapshot = transactions.open_snapshot();
        let (replaced, _) = transactions.commit_timestamp();
        assert!(horizon <= snapshot && horizon < replaced);
    }

    #[test]
    fn the_oldest_snapshot_is_ended_for_all_who_hold_it_and_no_later_one() {
        let transactions = Transactions::default();
        let old = transactions.open_snapshot();
        assert_eq!(
            transactions.end_oldest_snapshot(),
            None,
            "nothing is kept for it"
        );
        transactions.share_snapshot(old);
        transactions.commit_timestamp();
        let later = transactions.open_snapshot();
        transactions.commit_timestamp();
        assert_eq!(transactions.end_oldest_snapshot(), Some(old));
        assert!(matches!(
            transactions.check_snapshot(old),
            Err(Error::SnapshotTooOld)
        ));
        assert!(transactions.check_snapshot(later).is_ok());
        assert_eq!(
            (transactions.horizon(), transactions.open_snapshots()),
            (later, 1)
        );
        // Whoever holds it goes on until told.
        transactions.share_snapshot(old);
        transactions.close_snapshot(old);
        assert_eq!(
            (transactions.horizon(), transactions.open_snapshots()),
            (later, 1)
        );
        assert_eq!(transactions.end_oldest_snapshot(), Some(later));
        assert!(!transactions.has_snapshots());
        assert_eq!(transactions.open_snapshot(), 2);
    }

    #[test]
    fn a_commit_learns_of_open_snapshots() {
        let transactions = Transactions::default();
        assert_eq!(transactions.commit_timestamp(), (1, false));
        let snapshot = transactions.open_snapshot();
        assert_eq!(snapshot, 1);
        assert_eq!(transactions.commit_timestamp(), (2, true));
        assert_eq!(transactions.horizon(), 1);
        transactions.close_snapshot(snapshot);
        assert_eq!(transactions.horizon(), 2);
        assert_eq!(transactions.commit_timestamp(), (3, false));
    }
}
