//! Joins of which NULL equals NULL, kept from rules that mix them with others: DataFusion's rules
//! of inner joins take the keys of all of them together, and equalities of filters besides, and
//! give them the one or the other meaning of NULL.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchemaRef, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Extension, Join, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// A rule of joins that does not see those of which NULL equals NULL.
#[derive(Debug)]
pub(crate) struct Unseen<R>(pub(crate) R);

impl<R: OptimizerRule> OptimizerRule for Unseen<R> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        // A rule that is called for each node looks at that node's join alone.
        if self.apply_order().is_some() {
            return match plan {
                plan if nulls_equal(&plan) => Ok(Transformed::no(plan)),
                plan => self.0.rewrite(plan, config),
            };
        }
        if !plan.exists(|node| Ok(nulls_equal(node)))? {
            return self.0.rewrite(plan, config);
        }
        let hidden = plan.transform_up(|node| match node {
            LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull => {
                let node = Arc::new(Hidden(join));
                Ok(Transformed::yes(LogicalPlan::Extension(Extension { node })))
            }
            node => Ok(Transformed::no(node)),
        })?;
        let rewritten = self.0.rewrite(hidden.data, config)?;
        let changed = rewritten.transformed;
        let mut shown = rewritten.data.transform_up(|node| match &node {
            LogicalPlan::Extension(extension) => {
                match extension.node.as_any().downcast_ref::<Hidden>() {
                    Some(Hidden(join)) => Ok(Transformed::yes(LogicalPlan::Join(join.clone()))),
                    None => Ok(Transformed::no(node)),
                }
            }
            _ => Ok(Transformed::no(node)),
        })?;
        shown.transformed = changed;
        Ok(shown)
    }
}

fn nulls_equal(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull)
}

/// Such a join, as what no rule knows.
#[derive(PartialEq, Eq, Hash)]
struct Hidden(Join);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_for_explain(f)
    }
}

impl PartialOrd for Hidden {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.0.partial_cmp(&other.0)
    }
}

impl UserDefinedLogicalNodeCore for Hidden {
    fn name(&self) -> &str {
        "NullsEqualJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.0.left, &self.0.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.0.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NullsEqualJoin")
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut join = self.0.clone();
        let mut inputs = inputs.into_iter();
        if let (Some(left), Some(right)) = (inputs.next(), inputs.next()) {
            (join.left, join.right) = (Arc::new(left), Arc::new(right));
        }
        Ok(Self(join))
    }
}
