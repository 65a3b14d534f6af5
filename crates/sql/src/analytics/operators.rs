//! PostgreSQL's operators and aggregates, planned: what DataFusion's planner
//! would type or compute otherwise is replaced while the plan is made, when
//! the types of both operands are known.
//!
//! A quoted literal takes the type of the other operand and is read by the
//! same functions as everywhere else, so a bad one gives PostgreSQL's error.
//! Texts are not compared with numbers or dates (42883), as in PostgreSQL.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::{count::count_udaf, sum::sum_udaf};
use datafusion::logical_expr::expr::{
    AggregateFunction, Cast, Placeholder, ScalarFunction, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawWindowExpr,
};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Operator, WindowFunctionDefinition,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use thermocline_storage::text_format;
use thermocline_storage::types::DataType;

use super::functions::{Operation, PgFunction, product_may_not_fit};
use super::growing::{Growth, joined};
use super::params::scalar_of;
use super::passing::{Gate, passing};
use super::types::{is_blank_padded, is_text, scalar_type, type_name};
use crate::error::SqlError;

/// Plans PostgreSQL's operators.
#[derive(Debug)]
pub(crate) struct PgOperators {
    growth: Arc<Growth>,
}

impl PgOperators {
    /// For one statement.
    pub(super) fn new(growth: Arc<Growth>) -> Self {
        Self { growth }
    }
}

fn error(sqlstate: &'static str, message: String) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new(sqlstate, message)))
}

fn cast_to(expr: Expr, arrow: ArrowType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), arrow))
}

/// The text of a quoted literal that nothing has given a type.
fn untyped_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), None) => {
            Some(text)
        }
        _ => None,
    }
}

/// A quoted literal read as a value of the other operand's type; other
/// expressions as they are.
pub(crate) fn typed_literal(expr: Expr, other: &Field) -> Result<Expr> {
    let Some(text) = untyped_text(&expr) else {
        return Ok(expr);
    };
    if is_blank_padded(other) {
        let trimmed = text.trim_end_matches(' ').to_owned();
        return Ok(Expr::Literal(ScalarValue::Utf8View(Some(trimmed)), None));
    }
    let Some(data_type) = scalar_type(other).filter(|data_type| !data_type.is_text()) else {
        return Ok(expr);
    };
    let wanted = match data_type {
        DataType::Numeric { .. } => DataType::NUMERIC,
        other => other,
    };
    let value = text_format::parse_text(&wanted, text)
        .map_err(|error| DataFusionError::External(Box::new(SqlError::from(error))))?;
    Ok(Expr::Literal(scalar_of(&value, None), None))
}

/// The plain type that a parameter compared with `field` takes.
fn parameter_field(field: &Field) -> Option<FieldRef> {
    let data_type = scalar_type(field)?;
    if *field.data_type() == ArrowType::Null {
        return None;
    }
    Some(Arc::new(super::types::field_of("", &data_type)))
}

fn infer_parameter(expr: Expr, other: &Field) -> Expr {
    match expr {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            Expr::Placeholder(Placeholder::new_with_field(id, parameter_field(other)))
        }
        expr => expr,
    }
}

fn is_untyped_parameter(expr: &Expr) -> bool {
    matches!(expr, Expr::Placeholder(Placeholder { field: None, .. }))
}

fn is_comparison(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    )
}

fn is_arithmetic(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
    )
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Decimal,
    Float,
    Date,
    Timestamp,
    Interval,
    Text,
    Null,
    Rest,
}

fn kind(arrow: &ArrowType) -> Kind {
    match arrow {
        ArrowType::Decimal128(..) | ArrowType::Decimal256(..) => Kind::Decimal,
        ArrowType::Date32 | ArrowType::Date64 => Kind::Date,
        ArrowType::Timestamp(..) => Kind::Timestamp,
        ArrowType::Interval(_) | ArrowType::Duration(_) => Kind::Interval,
        ArrowType::Null => Kind::Null,
        arrow if is_text(arrow) => Kind::Text,
        arrow if arrow.is_integer() => Kind::Integer,
        arrow if arrow.is_floating() => Kind::Float,
        _ => Kind::Rest,
    }
}

/// 42883 in PostgreSQL's words.
fn no_operator(left: &Field, op: &BinaryOperator, right: &Field) -> DataFusionError {
    let mut error = SqlError::new(
        "42883",
        format!(
            "operator does not exist: {} {op} {}",
            type_name(left),
            type_name(right)
        ),
    );
    error.hint = Some(
        "No operator matches the given name and argument types. You might need to add explicit \
         type casts."
            .to_owned(),
    );
    DataFusionError::External(Box::new(error))
}

fn call(operation: Operation, left: Expr, right: Expr) -> Option<Expr> {
    Some(PgFunction::call(operation, vec![left, right]))
}

/// The expression of an arithmetic operator, where DataFusion's own will not do.
fn arithmetic(
    op: &BinaryOperator,
    (left, left_type): (Expr, &ArrowType),
    (right, right_type): (Expr, &ArrowType),
) -> Option<Expr> {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
    let numbers = |kind| matches!(kind, Kind::Integer | Kind::Decimal | Kind::Float);
    let (left_kind, right_kind) = (kind(left_type), kind(right_type));
    let operator = |operator, left, right| {
        Some(Expr::BinaryExpr(BinaryExpr::new(
            Box::new(left),
            operator,
            Box::new(right),
        )))
    };
    let as_timestamp = |expr| cast_to(expr, ArrowType::Timestamp(TimeUnit::Microsecond, None));
    let as_days = |expr| cast_to(expr, ArrowType::Int32);
    let as_date = |expr| cast_to(expr, ArrowType::Date32);
    match (left_kind, op, right_kind) {
        (Kind::Integer, Plus, Kind::Integer) => call(Operation::Add, left, right),
        (Kind::Integer, Minus, Kind::Integer) => call(Operation::Subtract, left, right),
        (Kind::Integer, Multiply, Kind::Integer) => call(Operation::Multiply, left, right),
        (Kind::Integer, Modulo, Kind::Integer) => call(Operation::Modulo, left, right),
        (l, Divide, r) if numbers(l) && numbers(r) => call(Operation::Divide, left, right),
        (l, Multiply, r)
            if (l == Kind::Decimal || r == Kind::Decimal)
                && l != Kind::Float
                && r != Kind::Float
                && numbers(l)
                && numbers(r)
                && product_may_not_fit(left_type, right_type) =>
        {
            call(Operation::MultiplyNumeric, left, right)
        }
        (Kind::Date, Plus, Kind::Integer) => {
            call(Operation::Add, as_days(left), right).map(|days| as_date(as_days(days)))
        }
        (Kind::Integer, Plus, Kind::Date) => {
            call(Operation::Add, left, as_days(right)).map(|days| as_date(as_days(days)))
        }
        (Kind::Date, Minus, Kind::Integer) => {
            call(Operation::Subtract, as_days(left), right).map(|days| as_date(as_days(days)))
        }
        (Kind::Date, Minus, Kind::Date) => call(Operation::Subtract, as_days(left), as_days(right)),
        (Kind::Date, Plus, Kind::Interval) => operator(Operator::Plus, as_timestamp(left), right),
        (Kind::Interval, Plus, Kind::Date) => operator(Operator::Plus, as_timestamp(right), left),
        (Kind::Date, Minus, Kind::Interval) => operator(Operator::Minus, as_timestamp(left), right),
        (Kind::Interval, Plus, Kind::Timestamp) => operator(Operator::Plus, right, left),
        _ => None,
    }
}

/// `||` of a text and something else takes the other's text.
fn as_text(expr: Expr, arrow: &ArrowType) -> Expr {
    match kind(arrow) {
        Kind::Text | Kind::Null => expr,
        _ => PgFunction::call(Operation::Text, vec![expr]),
    }
}

impl ExprPlanner for PgOperators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = expr;
        let original = |left, right| {
            Ok(PlannerResult::Original(RawBinaryExpr {
                op: op.clone(),
                left,
                right,
            }))
        };
        let comparison = is_comparison(&op);
        if !comparison && !is_arithmetic(&op) && op != BinaryOperator::StringConcat {
            return original(left, right);
        }
        let (mut left, mut right) = (left, right);
        if is_untyped_parameter(&left) != is_untyped_parameter(&right) {
            if is_untyped_parameter(&left) {
                let field = right.to_field(schema)?.1;
                left = infer_parameter(left, &field);
            } else {
                let field = left.to_field(schema)?.1;
                right = infer_parameter(right, &field);
            }
        }
        if is_untyped_parameter(&left) || is_untyped_parameter(&right) {
            return original(left, right);
        }
        let left_field = left.to_field(schema)?.1;
        let right_field = right.to_field(schema)?.1;
        if op == BinaryOperator::StringConcat {
            let is_text = |field: &Field| kind(field.data_type()) == Kind::Text;
            let is_list = |field: &Field| field.data_type().is_list();
            let texts = is_text(&left_field) || is_text(&right_field);
            let lists = is_list(&left_field) || is_list(&right_field);
            let left = as_text(left, left_field.data_type());
            let right = as_text(right, right_field.data_type());
            if texts && !lists {
                let joined = joined(left, right, &self.growth);
                return Ok(PlannerResult::Planned(joined));
            }
            return original(left, right);
        }
        // date '2024-01-01' + '1' reads an interval or a number there; PostgreSQL
        // takes the other operand's type in comparisons and number arithmetic.
        let number = |field: &Field| {
            matches!(
                kind(field.data_type()),
                Kind::Integer | Kind::Decimal | Kind::Float
            )
        };
        if comparison || number(&right_field) {
            left = typed_literal(left, &right_field)?;
        }
        if comparison || number(&left_field) {
            right = typed_literal(right, &left_field)?;
        }
        let left_field = left.to_field(schema)?.1;
        let right_field = right.to_field(schema)?.1;
        if comparison {
            let (l, r) = (kind(left_field.data_type()), kind(right_field.data_type()));
            let typed = |kind| !matches!(kind, Kind::Text | Kind::Null | Kind::Rest);
            if (l == Kind::Text && typed(r)) || (r == Kind::Text && typed(l)) {
                return Err(no_operator(&left_field, &op, &right_field));
            }
            return original(left, right);
        }
        if kind(left_field.data_type()) == Kind::Text || kind(right_field.data_type()) == Kind::Text
        {
            return Err(no_operator(&left_field, &op, &right_field));
        }
        match arithmetic(
            &op,
            (left.clone(), left_field.data_type()),
            (right.clone(), right_field.data_type()),
        ) {
            Some(expr) => Ok(PlannerResult::Planned(expr)),
            None => original(left, right),
        }
    }

    /// `extract` is numeric in PostgreSQL; seconds have their fraction.
    fn plan_extract(&self, arguments: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let [Expr::Literal(ScalarValue::Utf8(Some(field)), _), value] = arguments.as_slice() else {
            return Ok(PlannerResult::Original(arguments));
        };
        let part = |name: &str| {
            let udf = datafusion::functions::datetime::date_part();
            let name = Expr::Literal(ScalarValue::Utf8(Some(name.to_owned())), None);
            Expr::ScalarFunction(ScalarFunction::new_udf(udf, vec![name, value.clone()]))
        };
        let scaled = |name: &str, scale: i8| {
            let unit = Expr::Literal(ScalarValue::Decimal128(Some(1), 7, scale), None);
            let number = cast_to(part(name), ArrowType::Decimal128(19, 0));
            Expr::BinaryExpr(BinaryExpr::new(
                Box::new(number),
                Operator::Multiply,
                Box::new(unit),
            ))
        };
        let planned = match field.to_ascii_lowercase().as_str() {
            "second" | "seconds" => scaled("microsecond", 6),
            "millisecond" | "milliseconds" => scaled("microsecond", 3),
            "epoch" => cast_to(part("epoch"), ArrowType::Decimal128(24, 6)),
            "timezone" | "timezone_hour" | "timezone_minute" => {
                return Err(error("0A000", format!("extract({field}) is not supported")));
            }
            name => cast_to(part(name), ArrowType::Decimal128(10, 0)),
        };
        Ok(PlannerResult::Planned(planned))
    }

    /// `avg(x)` is an exact division of the sum by the count.
    fn plan_aggregate(&self, mut raw: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        // DISTINCT and ORDER BY have to find the argument as it is.
        if raw.func.name() == "string_agg"
            && !raw.distinct
            && let [text, between] = raw.args.as_mut_slice()
        {
            let room = Gate::Room(Arc::clone(&self.growth));
            *text = passing(room, vec![text.clone(), between.clone()]);
        }
        if raw.func.name() != "avg" || raw.args.len() != 1 {
            return Ok(PlannerResult::Original(raw));
        }
        let aggregate = |function| {
            Expr::AggregateFunction(AggregateFunction::new_udf(
                function,
                raw.args.clone(),
                raw.distinct,
                raw.filter.clone(),
                raw.order_by.clone(),
                raw.null_treatment,
            ))
        };
        Ok(PlannerResult::Planned(average(
            aggregate(sum_udaf()),
            aggregate(count_udaf()),
        )))
    }

    fn plan_window(&self, raw: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        if raw.func_def.name() != "avg" || raw.args.len() != 1 {
            return Ok(PlannerResult::Original(raw));
        }
        let window = |function| {
            Expr::WindowFunction(Box::new(WindowFunction {
                fun: WindowFunctionDefinition::AggregateUDF(function),
                params: WindowFunctionParams {
                    args: raw.args.clone(),
                    partition_by: raw.partition_by.clone(),
                    order_by: raw.order_by.clone(),
                    window_frame: raw.window_frame.clone(),
                    filter: raw.filter.clone(),
                    null_treatment: raw.null_treatment,
                    distinct: raw.distinct,
                },
            }))
        };
        Ok(PlannerResult::Planned(average(
            window(sum_udaf()),
            window(count_udaf()),
        )))
    }
}

/// `sum / count`; without rows the sum is NULL and so is the average.
fn average(sum: Expr, count: Expr) -> Expr {
    PgFunction::call(Operation::Average, vec![sum, count])
}
