//! The end of a statement amid an operator. A join without equal keys goes through all pairs of
//! two batches, and many batches, before it has a row to hand out: only the condition that it
//! asks of each batch of pairs can tell it that nobody wants to know any more.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use thermocline_query::call::Environment;

use crate::errors::external;

/// Has the conditions of a plan's joins ask whether the statement is to go on.
///
/// # Errors
/// None; the tree's walker has the type.
pub fn asked(plan: LogicalPlan, environment: &Arc<dyn Environment>) -> Result<LogicalPlan> {
    let plan = plan.transform_up(|plan| match plan {
        LogicalPlan::Join(mut join) if join.filter.is_some() => {
            join.filter = join.filter.map(|filter| unless_ended(filter, environment));
            Ok(Transformed::yes(LogicalPlan::Join(join)))
        }
        plan => Ok(Transformed::no(plan)),
    })?;
    Ok(plan.data)
}

/// A condition's value, as long as the statement goes on.
fn unless_ended(filter: Expr, environment: &Arc<dyn Environment>) -> Expr {
    let function = UnlessEnded {
        signature: Signature::any(1, Volatility::Volatile),
        environment: Arc::clone(environment),
    };
    ScalarUDF::new_from_impl(function).call(vec![filter])
}

struct UnlessEnded {
    signature: Signature,
    environment: Arc<dyn Environment>,
}

impl fmt::Debug for UnlessEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for UnlessEnded {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.environment, &other.environment)
    }
}

impl Eq for UnlessEnded {}

impl Hash for UnlessEnded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl ScalarUDFImpl for UnlessEnded {
    fn name(&self) -> &'static str {
        "unless_ended"
    }

    fn schema_name(&self, _: &[Expr]) -> Result<String> {
        Ok(self.name().to_owned())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.environment.check_interrupted().map_err(external)?;
        match arguments.args.into_iter().next() {
            Some(value) => Ok(value),
            None => datafusion::common::internal_err!("a condition without a value"),
        }
    }
}
