//! What a filter asks of single columns of a table, for a scan that can answer it while it reads: a
//! comparison with a constant, one of several constants, NULL or not. Of a conjunction each part counts.
//!
//! What is found here is true of every row of which the filter is true. The filter may ask more, so it is
//! asked again above the scan.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr as DfExpr, Operator};
use thermocline_query::datum::Datum;
use thermocline_query::tree::{Expr, ExprKind};

use crate::evaluate::{Context, NoRow, columns_of};
use crate::form::{ColumnReader, Form};
use crate::udf::{RowFunction, is_volatile};

/// Something that is asked of a column.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The column's name in the table's schema.
    pub column: String,
    /// What is asked.
    pub asked: Asked,
}

/// See [`Condition`]. Constants are not NULL.
#[derive(Clone, Debug)]
pub enum Asked {
    /// Whether it is NULL, or is not.
    Null(bool),
    /// How it compares with a constant, by the order of its type.
    Compare(Comparison, Datum),
    /// That it equals one of these.
    In(Vec<Datum>),
}

/// A comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    Other,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl Comparison {
    fn of_sign(sign: &str) -> Option<Self> {
        Some(match sign {
            "=" => Self::Equal,
            "<>" => Self::Other,
            "<" => Self::Less,
            "<=" => Self::AtMost,
            ">" => Self::Greater,
            ">=" => Self::AtLeast,
            _ => return None,
        })
    }

    /// As it is written.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Other => "<>",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }

    /// With the sides exchanged.
    const fn turned(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::AtMost => Self::AtLeast,
            Self::Greater => Self::Less,
            Self::AtLeast => Self::AtMost,
            same => same,
        }
    }
}

/// What a filter over a table's columns asks. `oid` says of which type a column is.
pub fn conditions(filter: &DfExpr, oid: &dyn Fn(&str) -> Option<u32>) -> Vec<Condition> {
    let mut found = Vec::new();
    of_plan(filter, oid, &mut found);
    found
}

fn name_of(expr: &DfExpr) -> Option<&str> {
    match expr {
        DfExpr::Column(column) => Some(&column.name),
        _ => None,
    }
}

/// The column of a comparison, and the form of what is compared.
fn compared(expr: &DfExpr, oid: &dyn Fn(&str) -> Option<u32>) -> Option<(String, Form)> {
    if let DfExpr::Cast(cast) = expr {
        let name = name_of(&cast.expr)?;
        // Whole numbers of other widths are compared as the widest.
        let form = Form::of(oid(name)?);
        return form.is_integer().then(|| (name.to_owned(), Form::Int8));
    }
    let name = name_of(expr)?;
    Some((name.to_owned(), Form::of(oid(name)?)))
}

const fn is_null(value: &Datum) -> bool {
    matches!(value, Datum::Null)
}

fn value_of(form: Form, value: &ScalarValue) -> Option<Datum> {
    let reader = ColumnReader::new(form, value.to_array().ok()?).ok()?;
    reader.get(0).ok().filter(|value| !is_null(value))
}

fn of_plan(filter: &DfExpr, oid: &dyn Fn(&str) -> Option<u32>, found: &mut Vec<Condition>) {
    let mut ask = |column: &str, asked: Asked| {
        found.push(Condition {
            column: column.to_owned(),
            asked,
        });
    };
    match filter {
        DfExpr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let comparison = match op {
                Operator::And => {
                    of_plan(left, oid, found);
                    of_plan(right, oid, found);
                    return;
                }
                Operator::Eq => Comparison::Equal,
                Operator::NotEq => Comparison::Other,
                Operator::Lt => Comparison::Less,
                Operator::LtEq => Comparison::AtMost,
                Operator::Gt => Comparison::Greater,
                Operator::GtEq => Comparison::AtLeast,
                _ => return,
            };
            let (column, value, comparison) = match (left.as_ref(), right.as_ref()) {
                (column, DfExpr::Literal(value, _)) => (column, value, comparison),
                (DfExpr::Literal(value, _), column) => (column, value, comparison.turned()),
                _ => return,
            };
            if let Some((column, form)) = compared(column, oid)
                && let Some(value) = value_of(form, value)
            {
                ask(&column, Asked::Compare(comparison, value));
            }
        }
        DfExpr::IsNull(inner) | DfExpr::IsNotNull(inner) => {
            if let Some(column) = name_of(inner) {
                ask(column, Asked::Null(matches!(filter, DfExpr::IsNull(_))));
            }
        }
        DfExpr::InList(list) if !list.negated => {
            let Some((column, form)) = compared(&list.expr, oid) else {
                return;
            };
            let mut values = Vec::with_capacity(list.list.len());
            for value in &list.list {
                let DfExpr::Literal(value, _) = value else {
                    return;
                };
                // NULL is equal to nothing.
                values.extend(value_of(form, value));
            }
            ask(&column, Asked::In(values));
        }
        DfExpr::Column(column) => {
            let is_true = Asked::Compare(Comparison::Equal, Datum::Bool(true));
            ask(&column.name, is_true);
        }
        DfExpr::Not(inner) => {
            if let Some(column) = name_of(inner) {
                let is_false = Asked::Compare(Comparison::Equal, Datum::Bool(false));
                ask(column, is_false);
            }
        }
        DfExpr::ScalarFunction(call) => {
            let function = call.func.inner().downcast_ref::<RowFunction>();
            if let Some((expr, context)) = function.and_then(RowFunction::filter) {
                let columns: Vec<Option<&str>> = call.args.iter().map(name_of).collect();
                of_expr(expr, &columns, context, found);
            }
        }
        _ => {}
    }
}

/// As [`conditions`] of a bound expression whose columns' numbers are places among these.
fn of_expr(expr: &Expr, columns: &[Option<&str>], context: &Context, found: &mut Vec<Condition>) {
    let name = |expr: &Expr| {
        let column = match &expr.kind {
            ExprKind::Relabel(inner) if Form::of(inner.oid) == Form::of(expr.oid) => inner,
            _ => expr,
        };
        match &column.kind {
            ExprKind::Column { column, .. } => columns.get(*column).copied().flatten(),
            _ => None,
        }
    };
    let constant = |expr: &Expr| {
        if !columns_of([expr]).is_empty() || is_volatile(expr) {
            return None;
        }
        let value = context.evaluator.evaluate(expr, &NoRow).ok();
        value.filter(|value| !is_null(value))
    };
    let mut ask = |column: &str, asked: Asked| {
        found.push(Condition {
            column: column.to_owned(),
            asked,
        });
    };
    match &expr.kind {
        ExprKind::And(parts) => {
            for part in parts {
                of_expr(part, columns, context, found);
            }
        }
        ExprKind::IsNull(inner, wanted) => {
            if let Some(column) = name(inner) {
                ask(column, Asked::Null(*wanted));
            }
        }
        ExprKind::Call(call) => {
            let comparison = call.operator.and_then(Comparison::of_sign);
            let (Some(comparison), [left, right]) = (comparison, call.arguments.as_slice()) else {
                return;
            };
            if let Some(column) = name(left)
                && let Some(value) = constant(right)
            {
                ask(column, Asked::Compare(comparison, value));
            } else if let Some(column) = name(right)
                && let Some(value) = constant(left)
            {
                ask(column, Asked::Compare(comparison.turned(), value));
            }
        }
        ExprKind::AnyOfArray(comparison) if comparison.any && comparison.operator == "=" => {
            if let Some(column) = name(&comparison.value)
                && let Some(Datum::Array(array)) = constant(&comparison.array)
            {
                let values = array.elements.iter();
                let values = values.filter(|value| !is_null(value));
                ask(column, Asked::In(values.cloned().collect()));
            }
        }
        _ => {}
    }
}
