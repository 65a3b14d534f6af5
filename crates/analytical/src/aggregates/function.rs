//! An aggregate as a function of DataFusion. Its name is a number, as of `udf`'s functions.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::AggregateFunctionParams;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr as DfExpr, GroupsAccumulator, Signature,
    Volatility, lit,
};

use super::grouped::OneGroup;
use crate::form::Form;

/// What goes in and what comes out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Values of rows; the aggregate's value.
    Whole,
    /// Values of rows; states, for [`Self::OfStates`].
    ToStates,
    /// States; the aggregate's value.
    OfStates,
}

/// Makes the states of all groups.
pub(super) type Maker = Arc<dyn Fn(Role) -> Box<dyn GroupsAccumulator> + Send + Sync>;

struct Function {
    name: String,
    maker: Maker,
    role: Role,
    form: Form,
    signature: Signature,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A call.
pub(super) fn call(maker: Maker, role: Role, form: Form, mut arguments: Vec<DfExpr>) -> DfExpr {
    if arguments.is_empty() {
        // DataFusion has none without.
        arguments.push(lit(true));
    }
    let function = Function {
        name: format!("a{}", NUMBER.fetch_add(1, Ordering::Relaxed)),
        maker,
        role,
        form,
        signature: Signature::any(arguments.len(), Volatility::Immutable),
    };
    AggregateUDF::new_from_impl(function).call(arguments)
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl AggregateUDFImpl for Function {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema_name(&self, _: &AggregateFunctionParams) -> DfResult<String> {
        Ok(self.name.clone())
    }

    fn human_display(&self, _: &AggregateFunctionParams) -> DfResult<String> {
        Ok(self.name.clone())
    }

    fn display_name(&self, _: &AggregateFunctionParams) -> DfResult<String> {
        Ok(self.name.clone())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(match self.role {
            Role::ToStates => DataType::BinaryView,
            _ => self.form.arrow(),
        })
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        Ok(Box::new(OneGroup::new((self.maker)(self.role))))
    }

    fn state_fields(&self, of: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        let name = format_state_name(of.name, "state");
        Ok(vec![Arc::new(Field::new(name, DataType::BinaryView, true))])
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> DfResult<Box<dyn GroupsAccumulator>> {
        Ok((self.maker)(self.role))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}
