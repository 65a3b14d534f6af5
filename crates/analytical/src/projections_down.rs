//! Projections go down in execution plans, as far as they make rows narrower. Nothing is computed
//! below a filter or a limit, though: it need not be computed of the rows that these leave out, and
//! it could fail for them. For the same reason no part of a join's condition is computed below the
//! join. DataFusion's own rule does both.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::{
    ProjectionExec, remove_unnecessary_projections, try_embed_projection,
};

/// The name of DataFusion's rule, in whose place this one is.
pub(crate) const REPLACED: &str = "ProjectionPushdown";

/// The rule.
#[derive(Debug)]
pub(crate) struct ProjectionsDown;

impl PhysicalOptimizerRule for ProjectionsDown {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(moved).data()
    }

    fn name(&self) -> &str {
        REPLACED
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn moved(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else {
        return Ok(Transformed::no(plan));
    };
    if !computes(projection) {
        return remove_unnecessary_projections(plan);
    }
    let input = projection.input();
    if let Some(filter) = input.downcast_ref::<FilterExec>() {
        // The filter gives fewer columns.
        let embedded = try_embed_projection(projection, filter)?;
        return Ok(embedded.map_or_else(|| Transformed::no(plan), Transformed::yes));
    }
    match input.fetch() {
        Some(_) => Ok(Transformed::no(plan)),
        None => remove_unnecessary_projections(plan),
    }
}

fn computes(projection: &ProjectionExec) -> bool {
    let is_there = |expr: &dyn datafusion::physical_expr::PhysicalExpr| {
        expr.is::<Column>() || expr.is::<Literal>()
    };
    !projection.expr().iter().all(|of| is_there(&*of.expr))
}
