//! The end of a statement amid an operator. A join without equal keys goes through all pairs of two
//! batches, and many batches, before it has a row to hand out: only the condition that it asks
//! of each batch of pairs can tell it that nobody wants to know any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

use super::passing::{Gate, passing};

/// Ends its statement when it is dropped.
#[derive(Debug, Default)]
pub(super) struct End(Arc<AtomicBool>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl End {
    /// Has the conditions of a plan's joins look whether it has come.
    pub(super) fn asked(&self) -> impl FnOnce(LogicalPlan) -> Result<LogicalPlan> + Send + use<> {
        let ended = Arc::clone(&self.0);
        move |plan| {
            let plan = plan.transform_up(|plan| match plan {
                LogicalPlan::Join(mut join) if join.filter.is_some() => {
                    join.filter = join
                        .filter
                        .map(|filter| passing(Gate::Unended(Arc::clone(&ended)), vec![filter]));
                    Ok(Transformed::yes(LogicalPlan::Join(join)))
                }
                plan => Ok(Transformed::no(plan)),
            })?;
            Ok(plan.data)
        }
    }
}
