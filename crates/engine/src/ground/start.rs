//! The last start: what it took, and who brings the partitions that are not there yet. How they
//! are brought is `restart`'s.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// What opening the database took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Milliseconds from the call to readiness: from then on statements are answered whose
    /// partitions are there.
    pub milliseconds: u64,
    /// Milliseconds from the call until all partitions were there; 0: they are not yet.
    pub whole_milliseconds: u64,
    /// Partitions that are there.
    pub partitions_there: u16,
    /// Rows that the checkpoint brought, all cold; of all partitions, once they are there.
    pub rows: u64,
    /// Log records read after it.
    pub records: u64,
    /// Bytes of the checkpoint's images.
    pub image_bytes: u64,
    /// Milliseconds that reading them took, with all threads at it.
    pub image_milliseconds: u64,
    /// Bytes of the log records.
    pub log_bytes: u64,
    /// Milliseconds that reading them took, and applying them with all threads.
    pub log_milliseconds: u64,
    /// Milliseconds that the rest took, with all threads at it: rows that did not commit are
    /// removed, missing indexes are made.
    pub settling_milliseconds: u64,
}

/// Who brings partitions, a part of one at a time.
pub(crate) trait Bring: Send + Sync {
    /// Does a part in this thread. Whether there was anything to do.
    fn step(&self) -> bool;

    /// Whether somebody is at work on one.
    fn is_busy(&self) -> bool;
}

/// The last start.
#[derive(Default)]
pub(crate) struct Start {
    /// What brings the partitions, until all are there.
    bringing: Mutex<Option<Arc<dyn Bring>>>,
    report: Mutex<RecoveryReport>,
}

impl Start {
    /// What it took.
    pub fn report(&self) -> RecoveryReport {
        *self.report.lock()
    }

    pub fn report_mut(&self) -> MutexGuard<'_, RecoveryReport> {
        self.report.lock()
    }

    /// Partitions are missing, and this is who brings them.
    pub fn bring_by(&self, who: Arc<dyn Bring>) {
        *self.bringing.lock() = Some(who);
    }

    /// Nobody need bring anything any more.
    pub fn all_are_there(&self) {
        *self.bringing.lock() = None;
    }

    /// Whether a partition is being brought.
    pub fn is_busy(&self) -> bool {
        let who = self.bringing.lock().clone();
        who.is_some_and(|who| who.is_busy())
    }

    /// Brings a partition, or a part of one, in this thread. Whether there was anything to do.
    pub fn step(&self) -> bool {
        let who = self.bringing.lock().clone();
        who.is_some_and(|who| who.step())
    }
}
