//! Functions that hand their first argument on, when something allows it: whatever DataFusion
//! puts them around asks there, batch by batch.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::call_name::call_name;
use super::growing::{Growth, batch_bytes};
use crate::error::SqlError;

/// What has to allow it.
#[derive(Debug)]
pub(super) enum Gate {
    /// There is memory for what an aggregate is about to put together of the arguments: a batch
    /// of large texts (a literal stands in each row of it) is refused with 53200 before.
    Room(Arc<Growth>),
    /// The statement has not ended.
    Unended(Arc<AtomicBool>),
}

/// A call that hands the first of these on.
pub(super) fn passing(gate: Gate, arguments: Vec<Expr>) -> Expr {
    let function = Passing {
        // Otherwise the optimizer would put a literal in the place of a literal's call.
        signature: Signature::any(arguments.len(), Volatility::Volatile),
        gate,
    };
    ScalarUDF::new_from_impl(function).call(arguments)
}

#[derive(Debug)]
struct Passing {
    signature: Signature,
    gate: Gate,
}

impl PartialEq for Passing {
    fn eq(&self, other: &Self) -> bool {
        match (&self.gate, &other.gate) {
            (Gate::Room(one), Gate::Room(other)) => Arc::ptr_eq(one, other),
            (Gate::Unended(one), Gate::Unended(other)) => Arc::ptr_eq(one, other),
            (Gate::Room(_), Gate::Unended(_)) | (Gate::Unended(_), Gate::Room(_)) => false,
        }
    }
}

impl Eq for Passing {}

impl Hash for Passing {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl ScalarUDFImpl for Passing {
    fn name(&self) -> &str {
        match self.gate {
            Gate::Room(_) => "tc_gathered",
            Gate::Unended(_) => "tc_unless_ended",
        }
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
        match &self.gate {
            Gate::Room(growth) => {
                let rows = arguments.number_rows as u64;
                let mut bytes = 0u64;
                for argument in &arguments.args {
                    bytes = bytes.saturating_add(batch_bytes(argument, rows)?);
                }
                growth.make_room(bytes)?;
            }
            Gate::Unended(ended) if ended.load(Ordering::Relaxed) => {
                let error = SqlError::new("57014", "canceling statement due to user request");
                return Err(DataFusionError::External(Box::new(error)));
            }
            Gate::Unended(_) => {}
        }
        let first = arguments.args.into_iter().next();
        first.ok_or_else(|| datafusion::common::internal_datafusion_err!("no argument"))
    }
}
