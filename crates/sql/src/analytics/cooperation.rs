//! Long queries give way to others.
//!
//! An operator that always has the next batch never returns to the runtime, and so neither
//! other statements of its thread nor a cancel are ever looked at. DataFusion has the leaves
//! of a plan give way; but of a few batches a join makes any number, long after the leaves are
//! read. So joins, and what makes several rows of one, give way, too.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

/// Has each operator that may make many rows of few give way after a number of batches.
pub(super) fn cooperative(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let wrapped = plan.transform_up(|node| {
        let multiplies = node.name().contains("Join") || node.name() == "UnnestExec";
        Ok(match multiplies {
            true => Transformed::yes(Arc::new(CooperativeExec::new(node)) as _),
            false => Transformed::no(node),
        })
    })?;
    Ok(wrapped.data)
}
