//! Long queries give way to others.
//!
//! An operator that always has the next batch never returns to the runtime, and so neither
//! other statements of its thread nor a cancel are ever looked at. DataFusion has the leaves
//! of a plan give way; but of a few batches a join makes any number, long after the leaves are
//! read. So joins, and what makes several rows of one, give way, too.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

/// Has each operator that may make many rows of few give way after a number of batches.
#[derive(Debug)]
pub(super) struct GiveWay;

impl PhysicalOptimizerRule for GiveWay {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wrapped = plan.transform_up(|node| {
            Ok(match node.name().contains("Join") {
                true => Transformed::yes(Arc::new(CooperativeExec::new(node)) as _),
                false => Transformed::no(node),
            })
        })?;
        Ok(wrapped.data)
    }

    fn name(&self) -> &'static str {
        "give_way"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
