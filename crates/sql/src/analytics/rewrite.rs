//! What can only be settled once the plan's types are known: sums of bigint
//! are numeric, casts round and print as PostgreSQL's do, quoted literals in
//! lists and ranges take the type of what they are compared with. Runs between
//! planning and DataFusion's own analysis; names of columns stay.

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Cast, ScalarFunction, WindowFunctionDefinition};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use thermocline_storage::text_format;
use thermocline_storage::types::DataType;

use super::functions::{BIGINT_AS_NUMERIC, Operation, PgFunction, decimal_shape};
use super::operators::typed_literal;
use super::params::scalar_of;
use super::types::{UNCONSTRAINED_SCALE, is_text, scalar_type};
use crate::error::SqlError;

/// Rewrites every expression of `plan`.
pub(crate) fn rewrite_plan(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let mut schema = merge_schema(&plan.inputs());
        if let LogicalPlan::TableScan(scan) = &plan {
            schema.merge(&DFSchema::try_from_qualified_schema(
                scan.table_name.clone(),
                &scan.source.schema(),
            )?);
        }
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|expr| rewrite(expr, &schema))?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })?
        .map_data(|plan| plan.recompute_schema())
        // A subquery's new type changes the plan around it, too.
        .map(|plan| Transformed::yes(plan.data))
    })
    .map(|plan| plan.data)
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::AggregateFunction(mut call) if call.func.name() == "sum" => {
            let changed = widen_sum(&mut call.params.args, schema)?;
            Ok(transformed(Expr::AggregateFunction(call), changed))
        }
        Expr::WindowFunction(mut call) if call.fun.name() == "sum" => {
            let aggregate = matches!(call.fun, WindowFunctionDefinition::AggregateUDF(_));
            let changed = aggregate && widen_sum(&mut call.params.args, schema)?;
            Ok(transformed(Expr::WindowFunction(call), changed))
        }
        Expr::Cast(cast) => rewrite_cast(cast, schema),
        Expr::InList(mut list) => {
            let field = list.expr.to_field(schema)?.1;
            list.list = list
                .list
                .into_iter()
                .map(|item| typed_literal(item, &field))
                .collect::<Result<_>>()?;
            Ok(Transformed::yes(Expr::InList(list)))
        }
        Expr::Between(mut between) => {
            let field = between.expr.to_field(schema)?.1;
            *between.low = typed_literal(*between.low, &field)?;
            *between.high = typed_literal(*between.high, &field)?;
            Ok(Transformed::yes(Expr::Between(between)))
        }
        Expr::ScalarFunction(mut call) if matches!(call.func.name(), "concat" | "concat_ws") => {
            for argument in &mut call.args {
                let arrow = argument.get_type(schema)?;
                if !is_text(&arrow) && arrow != ArrowType::Null {
                    let value = std::mem::take(argument);
                    *argument = PgFunction::call(Operation::OutputText, vec![value]);
                }
            }
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        Expr::ScalarFunction(call)
            if call.args.len() == 1
                && matches!(call.func.name(), "round" | "ceil" | "floor" | "trunc") =>
        {
            rewrite_rounding(call, schema)
        }
        expr => Ok(Transformed::no(expr)),
    }
}

/// Floats round half to even; a decimal rounded to a whole number shows none
/// of its decimal places.
fn rewrite_rounding(call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let arrow = call.args[0].get_type(schema)?;
    if arrow.is_floating() && call.func.name() == "round" {
        let rounded = PgFunction::call(Operation::RoundToInteger, call.args);
        return Ok(Transformed::yes(rounded));
    }
    let expr = Expr::ScalarFunction(call);
    match arrow {
        ArrowType::Decimal128(precision, 1..) => {
            let whole = ArrowType::Decimal128(precision, 0);
            Ok(Transformed::yes(Expr::Cast(Cast::new(
                Box::new(expr),
                whole,
            ))))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

fn transformed(expr: Expr, changed: bool) -> Transformed<Expr> {
    if changed {
        Transformed::yes(expr)
    } else {
        Transformed::no(expr)
    }
}

/// The sum of bigints is numeric, so that it cannot overflow.
fn widen_sum(arguments: &mut [Expr], schema: &DFSchema) -> Result<bool> {
    let [argument] = arguments else {
        return Ok(false);
    };
    if argument.get_type(schema)? != ArrowType::Int64 {
        return Ok(false);
    }
    let value = std::mem::take(argument);
    *argument = Expr::Cast(Cast::new(Box::new(value), BIGINT_AS_NUMERIC));
    Ok(true)
}

fn rewrite_cast(mut cast: Cast, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if matches!(cast.expr.as_ref(), Expr::Placeholder(_)) {
        return Ok(Transformed::no(Expr::Cast(cast)));
    }
    let source = cast.expr.get_type(schema)?;
    let target = cast.field.data_type().clone();
    // A quoted literal is read as PostgreSQL reads it.
    if let Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) =
        cast.expr.as_ref()
        && let Some(data_type) = scalar_type(&cast.field)
        && !data_type.is_text()
    {
        let value = text_format::parse_text(&data_type, text)
            .map_err(|error| DataFusionError::External(Box::new(SqlError::from(error))))?;
        let given = match data_type {
            DataType::Numeric { precision: 0, .. } => None,
            _ => Some(&data_type),
        };
        return Ok(Transformed::yes(Expr::Literal(
            scalar_of(&value, given),
            None,
        )));
    }
    let wrap = |cast: &mut Cast, operation| {
        let value = std::mem::take(cast.expr.as_mut());
        *cast.expr = PgFunction::call(operation, vec![value]);
    };
    if is_text(&target) && !is_text(&source) && source != ArrowType::Null {
        wrap(&mut cast, Operation::Text);
        return Ok(Transformed::yes(Expr::Cast(cast)));
    }
    let fractional = source.is_floating() || matches!(source, ArrowType::Decimal128(_, 1..));
    if target.is_integer() && fractional {
        wrap(&mut cast, Operation::RoundToInteger);
        return Ok(Transformed::yes(Expr::Cast(cast)));
    }
    // `numeric` without a precision keeps the digits that are there.
    if target == ArrowType::Decimal128(38, UNCONSTRAINED_SCALE)
        && scalar_type(&cast.field) == Some(DataType::NUMERIC)
    {
        if matches!(source, ArrowType::Decimal128(..)) {
            return Ok(Transformed::yes(*cast.expr));
        }
        if source.is_integer() {
            let (precision, scale) = decimal_shape(&source);
            let target = ArrowType::Decimal128(precision, scale);
            return Ok(Transformed::yes(Expr::Cast(Cast::new(cast.expr, target))));
        }
    }
    Ok(Transformed::no(Expr::Cast(cast)))
}
