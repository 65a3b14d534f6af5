//! What the scans of a statement share: how many row groups they came to, what they have read,
//! whether they are to end, and for EXPLAIN ANALYZE the plan that they are of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;
use thermocline_engine::{GroupCounts, IndexKeys, ScanNotes, Table};

use super::ran;
use crate::error::SqlError;
use crate::pg_catalog::Ending;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Scans {
    groups: AtomicU64,
    skipped: AtomicU64,
    ending: Arc<Ending>,
    /// Where a serializable transaction learns what they read.
    notes: Option<Arc<ScanNotes>>,
    /// The plan, where somebody will ask what became of it. Else it goes as soon as it has run.
    plan: Option<Mutex<Option<Arc<dyn ExecutionPlan>>>>,
}

impl Scans {
    /// Those of a statement that ends so.
    pub(super) fn new(
        ending: Arc<Ending>,
        notes: Option<Arc<ScanNotes>>,
        keeps_plan: bool,
    ) -> Self {
        Self {
            ending,
            notes,
            plan: keeps_plan.then(Mutex::default),
            ..Self::default()
        }
    }

    /// The plan is about to run; one that began before it is of no more interest.
    pub(super) fn runs(&self, plan: &Arc<dyn ExecutionPlan>) {
        if let Some(kept) = &self.plan {
            *kept.lock() = Some(Arc::clone(plan));
        }
    }

    /// The operators of a plan that has run, with what they counted.
    pub(super) fn ran(&self) -> Vec<String> {
        let plan = self.plan.as_ref().and_then(|kept| kept.lock().take());
        plan.map_or_else(Vec::new, |plan| ran::lines(&plan))
    }

    /// Counts the row groups of a scan that has ended.
    pub(super) fn add(&self, counts: GroupCounts) {
        self.groups.fetch_add(counts.groups, Relaxed);
        self.skipped.fetch_add(counts.skipped, Relaxed);
    }

    /// Row groups that scans came to, and that they passed over.
    pub(crate) fn counts(&self) -> GroupCounts {
        GroupCounts {
            groups: self.groups.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
        }
    }

    /// Notes what a scan is about to read: by keys, or all.
    pub(super) fn reads(&self, table: &Table, keys: Option<&IndexKeys>) {
        match (&self.notes, keys) {
            (Some(notes), Some(keys)) => notes.keys(table, keys),
            (Some(notes), None) => notes.table(table),
            (None, _) => {}
        }
    }

    /// Asked between the turns of a scan.
    ///
    /// # Errors
    /// 57014 where the statement is to end.
    pub(super) fn go_on(&self) -> Result<()> {
        match self.ending.is_due() {
            true => Err(DataFusionError::External(Box::new(SqlError::new(
                "57014",
                "canceling statement due to user request",
            )))),
            false => Ok(()),
        }
    }
}
