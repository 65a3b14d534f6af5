//! What an aggregate puts together of texts is worked out before it does: a batch of large ones
//! (a literal stands in each row of it) is refused with 53200 before it is made.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::call_name::call_name;
use super::growing::{Growth, batch_bytes};

/// The text that `string_agg` puts together with others, bounded. `between`: what comes between
/// them.
pub(super) fn gathered(argument: Expr, between: Expr, growth: &Arc<Growth>) -> Expr {
    let function = Gathered {
        // Of a literal it is none.
        signature: Signature::any(2, Volatility::Volatile),
        growth: Arc::clone(growth),
    };
    ScalarUDF::new_from_impl(function).call(vec![argument, between])
}

#[derive(Debug)]
struct Gathered {
    signature: Signature,
    growth: Arc<Growth>,
}

impl PartialEq for Gathered {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Gathered {}

impl Hash for Gathered {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl ScalarUDFImpl for Gathered {
    fn name(&self) -> &str {
        "tc_gathered"
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
        let rows = arguments.number_rows as u64;
        let mut bytes = 0u64;
        for argument in &arguments.args {
            bytes = bytes.saturating_add(batch_bytes(argument, rows)?);
        }
        self.growth.make_room(bytes)?;
        let first = arguments.args.into_iter().next();
        first.ok_or_else(|| datafusion::common::internal_datafusion_err!("no argument"))
    }
}
