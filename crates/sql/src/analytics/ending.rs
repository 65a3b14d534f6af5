//! The end of a statement amid an operator. A join without equal keys goes through all pairs of two
//! batches, and many batches, before it has a row to hand out: only the condition that it asks
//! of each batch of pairs can tell it that nobody wants to know any more.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::call_name::call_name;
use crate::error::SqlError;

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
            let function = Arc::new(ScalarUDF::new_from_impl(UnlessEnded {
                signature: Signature::any(1, Volatility::Volatile),
                ended,
            }));
            let plan = plan.transform_up(|plan| match plan {
                LogicalPlan::Join(mut join) if join.filter.is_some() => {
                    join.filter = join.filter.map(|filter| function.call(vec![filter]));
                    Ok(Transformed::yes(LogicalPlan::Join(join)))
                }
                plan => Ok(Transformed::no(plan)),
            })?;
            Ok(plan.data)
        }
    }
}

/// Its argument, as long as the statement has not ended.
#[derive(Debug)]
struct UnlessEnded {
    signature: Signature,
    ended: Arc<AtomicBool>,
}

impl PartialEq for UnlessEnded {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ended, &other.ended)
    }
}

impl Eq for UnlessEnded {}

impl Hash for UnlessEnded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl ScalarUDFImpl for UnlessEnded {
    fn name(&self) -> &str {
        "tc_unless_ended"
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        call_name(self.name(), arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        Ok(given[0].clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.ended.load(Ordering::Relaxed) {
            let error = SqlError::new("57014", "canceling statement due to user request");
            return Err(DataFusionError::External(Box::new(error)));
        }
        let first = arguments.args.into_iter().next();
        first.ok_or_else(|| datafusion::common::internal_datafusion_err!("no argument"))
    }
}
