//! Whether a plan changes rows whose triggers are to be called. A table's definition says it in one
//! word, so a table without triggers costs no more than a look at that. And whether it calls functions.

use thermocline_engine::TriggerEvent;

use super::{InsertTarget, ShortPlan};
use crate::expr::Expr;

impl ShortPlan {
    /// Whether it changes rows whose triggers it fires.
    #[must_use]
    pub fn fires(&self) -> bool {
        match self {
            Self::Insert(insert) => insert.target.fires(),
            Self::Update(update) => update.source.table.fires(TriggerEvent::Update),
            Self::Delete(delete) => delete.source.table.fires(TriggerEvent::Delete),
            Self::ByQuery(plan) => plan.change.fires(),
            Self::Merge(plan) => plan.actions.iter().flatten().any(Self::fires),
            Self::CurrentOf(plan) => plan.change.fires(),
            Self::After(after) => {
                let mut before = after.before.iter();
                after.plan.fires() || before.any(|before| before.plan.fires())
            }
            Self::Each(each) => each.plans.iter().flatten().any(Self::fires),
            Self::Select(_) | Self::OneRow(_) | Self::Computed(_) | Self::LockingRead(_) => false,
        }
    }
}

impl ShortPlan {
    /// Whether it has a query or a cursor within, and so is the session's to run.
    pub(crate) fn is_sessions(&self) -> bool {
        matches!(
            self,
            Self::ByQuery(_)
                | Self::Merge(_)
                | Self::CurrentOf(_)
                | Self::LockingRead(_)
                | Self::Computed(_)
                | Self::After(_)
        )
    }
}

/// Rows that are stored at a time where they have calls: all begin anew with each call.
const CALLING_ROWS: usize = 16;

impl InsertTarget {
    /// How many rows are stored at a time, where that would be so many.
    pub(crate) fn rows_at_once(&self, most: usize) -> usize {
        let defaults = self.defaults.iter().map(|(_, expr)| expr);
        let checks = self.checks.iter().map(|check| &check.condition);
        match defaults.chain(checks).any(Expr::has_call) {
            true => most.min(CALLING_ROWS),
            false => most,
        }
    }

    /// Whether the rows fire triggers.
    pub(crate) fn fires(&self) -> bool {
        let conflict = self.conflict.as_ref();
        let updates = conflict.is_some_and(|conflict| conflict.update.is_some());
        self.table.fires(TriggerEvent::Insert) || updates && self.table.fires(TriggerEvent::Update)
    }
}
