//! An expression of `thermocline_query` over a row of a table.

use thermocline_query::datum::Datum as QueryDatum;
use thermocline_query::error::Result as QueryResult;
use thermocline_query::evaluate::{Evaluator, Row};
use thermocline_query::tree;
use thermocline_query::types;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::{Datum, EvalContext, Expr, RowAccess};
use crate::error::Result;
use crate::one_row::StatementEnvironment;
use crate::typed::value;

/// See the head of this file. Equal where their texts are.
#[derive(Clone, Debug)]
pub struct Analysed {
    /// The expression; its columns are places of `arguments`.
    pub(crate) expr: tree::Expr,
    /// What it reads: columns and parameters, and their types.
    pub(crate) arguments: Vec<(Expr, DataType)>,
    /// The value's type; a text of the type where tables have none such.
    pub(crate) data_type: Option<DataType>,
    /// Whether evaluating it twice may give two values.
    pub(crate) volatile: bool,
    /// How it was written.
    pub(crate) text: String,
}

/// Its arguments as columns.
struct Arguments<'a, 'c, R: ?Sized> {
    analysed: &'a Analysed,
    row: &'a R,
    context: &'a EvalContext<'c>,
}

impl<R: RowAccess + ?Sized> Row for Arguments<'_, '_, R> {
    fn column(&self, _: usize, _: usize, column: usize) -> QueryResult<QueryDatum> {
        let Some((expr, data_type)) = self.analysed.arguments.get(column) else {
            return Ok(QueryDatum::Null);
        };
        let value = expr.evaluate(self.row, self.context)?;
        value::to_query(value.as_ref(), data_type)
    }

    fn whole_row(&self, _: usize, _: usize) -> QueryResult<QueryDatum> {
        Ok(QueryDatum::Null)
    }
}

impl Analysed {
    /// Whether it calls one of these functions.
    pub(crate) fn calls(&self, names: &[&str]) -> bool {
        self.expr.any(&mut |expr| match &expr.kind {
            tree::ExprKind::Call(call) => names.contains(&call.function.name),
            _ => false,
        })
    }

    /// Its value over a row.
    ///
    /// # Errors
    /// As its functions' in PostgreSQL.
    pub(super) fn evaluate<R: RowAccess + ?Sized>(
        &self,
        row: &R,
        context: &EvalContext<'_>,
    ) -> Result<Datum<'static>> {
        let environment =
            StatementEnvironment::new(context.session, context.now_us, context.styles);
        let evaluator = Evaluator {
            environment: &environment,
            parameters: &[],
        };
        let arguments = Arguments {
            analysed: self,
            row,
            context,
        };
        let result = evaluator.evaluate(&self.expr, &arguments);
        let result = result.map_err(|error| environment.told(error))?;
        if result.is_null() {
            return Ok(Datum::NULL);
        }
        Ok(Datum::Owned(match &self.data_type {
            Some(data_type) => value::to_stored(&result, data_type)?,
            None => {
                let call = thermocline_query::call::Call::new(&environment, &[], self.expr.oid);
                Value::Text(types::to_text(&call, self.expr.oid, &result)?)
            }
        }))
    }
}
