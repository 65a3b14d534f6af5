//! What the log's tail says of all partitions: transactions that end, and definitions. Kept
//! once, in the order of the log; each partition goes through it by itself, between the pieces
//! of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;

use crate::catalog::Catalog;
use crate::catalog::storages::TablesByStorage;
use crate::ground::txn_id::TxnId;
use crate::parts::Parts;

/// The catalog at some place of the log, and what reads the rows of each storage there.
pub(super) struct Definitions {
    pub catalog: Arc<Catalog>,
    pub tables: TablesByStorage,
}

impl Definitions {
    /// Those in force while the log is read.
    pub fn of_now(db: &Parts) -> Arc<Self> {
        Arc::new(Definitions {
            catalog: db.catalog(),
            tables: db.tables_by_storage(),
        })
    }
}

/// What happens to all partitions.
#[derive(Clone)]
pub(super) enum Event {
    /// The transaction's rows count from here on.
    Visible(TxnId),
    /// The transaction's rows go.
    Abort(TxnId),
    /// These hold from here on.
    Define(Arc<Definitions>),
}

/// All that happened up to where the log was read, each with its record's end.
#[derive(Default)]
pub(super) struct Events {
    list: RwLock<Vec<(u64, Event)>>,
    count: AtomicUsize,
}

impl Events {
    pub fn push(&self, lsn: u64, event: Event) {
        let mut list = self.list.write();
        list.push((lsn, event));
        self.count.store(list.len(), Ordering::Release);
    }

    /// The event at this place of the list, if it came before `lsn`: what a record says of
    /// rows is before what it says of all.
    #[inline]
    pub fn before(&self, place: usize, lsn: u64) -> Option<(u64, Event)> {
        if place >= self.count.load(Ordering::Acquire) {
            return None;
        }
        let list = self.list.read();
        list.get(place).filter(|(at, _)| *at < lsn).cloned()
    }
}
