//! A session's own numbers, merged into those of all now and then, so that statements meet no
//! lock that other sessions take. A session repeats few statements: they are found by looking at
//! all, the last one first.

use std::sync::Arc;

use super::counts::{Counts, Execution};

/// Statements that a session counts by itself.
const SLOTS: usize = 32;
/// Executions after which the numbers are merged at the latest.
const MERGED_AFTER: u32 = 1024;

/// One statement of one role.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) query_id: i64,
    /// The role's name: numbers of roles are looked up when merging.
    pub(super) role: Arc<str>,
    pub(super) counts: Counts,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct LocalStatistics {
    slots: Vec<Slot>,
    last: usize,
    executions: u32,
}

impl LocalStatistics {
    /// Counts an execution of a statement that was counted before; false if it was not.
    #[inline]
    pub(super) fn add(&mut self, query_id: i64, role: &Arc<str>, execution: &Execution) -> bool {
        let is = |slot: &Slot| {
            slot.query_id == query_id && (Arc::ptr_eq(&slot.role, role) || slot.role == *role)
        };
        if !self.slots.get(self.last).is_some_and(is) {
            match self.slots.iter().position(is) {
                Some(place) => self.last = place,
                None => return false,
            }
        }
        self.slots[self.last].counts.add(execution);
        self.executions += 1;
        true
    }

    /// Makes a place for a statement; there must be room.
    pub(super) fn begin(&mut self, query_id: i64, role: &Arc<str>) {
        debug_assert!(!self.is_full());
        self.last = self.slots.len();
        self.slots.push(Slot {
            query_id,
            role: Arc::clone(role),
            counts: Counts::default(),
        });
    }

    pub(super) fn is_full(&self) -> bool {
        self.slots.len() >= SLOTS
    }

    /// Whether the numbers are to be merged now.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.executions >= MERGED_AFTER
    }

    /// Gives all numbers away and begins anew.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Slot> {
        self.executions = 0;
        self.last = 0;
        std::mem::take(&mut self.slots).into_iter()
    }
}
