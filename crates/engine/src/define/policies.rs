//! A table's policy that DDL has changed comes into force with the commit, under the locks of all
//! partitions. No row is touched: an order that keeps rows is told of them later, in the turns of
//! whoever looks for some that may leave.

use std::sync::Arc;

use crate::catalog::Table;
use crate::parts::Parts;
use crate::policy::Merge;
use crate::rows::partition::PartitionState;

impl Parts {
    /// The rows of these tables in a partition go by what their definitions say now.
    pub(super) fn follow_policies(&self, state: &mut PartitionState, tables: &[&Arc<Table>]) {
        for table in tables {
            let policy = self.policy_of(table);
            if !matches!(policy.merge, Merge::Top(_)) {
                table.asked_for.forget();
            }
            if let Some(rows) = state.tables.rows_mut(table.def.storage) {
                rows.follow(policy);
            }
        }
    }
}
