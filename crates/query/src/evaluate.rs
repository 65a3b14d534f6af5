//! The row form of expressions: a typed expression over the values of one row.
//! Subqueries, aggregates and windows are the executors' and come here as columns.

mod compare;
mod store;
mod subscript;

use std::sync::Arc;

use crate::call::{Call, Environment};
use crate::datum::{Datum, Record};
use crate::domain;
use crate::error::{QueryError, Result};
use crate::functions::Body;
use crate::tree::{Expr, ExprKind, FunctionCall, Now};
use crate::types::array::{self, Array};
use crate::types::user::columns_of;
use crate::types::{self, ids, timestamp};

/// The row that an expression is computed over.
pub trait Row {
    /// A column of a relation of the query `level` queries further out.
    ///
    /// # Errors
    /// Whatever keeps it from being read.
    fn column(&self, level: usize, relation: usize, column: usize) -> Result<Datum>;

    /// All columns of a relation, as a record; NULL where an outer join has none.
    ///
    /// # Errors
    /// As [`Row::column`].
    fn whole_row(&self, level: usize, relation: usize) -> Result<Datum>;

    /// What the executor has computed for an expression that is no row form's: a subquery, an
    /// aggregate, a window function, a grouping.
    ///
    /// # Errors
    /// XX000 where there is none.
    fn computed(&self, expr: &Expr) -> Result<Datum> {
        Err(QueryError::internal(format!(
            "an expression has no row form: {:?}",
            std::mem::discriminant(&expr.kind)
        )))
    }
}

/// The row of an expression that reads none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRow;

impl Row for NoRow {
    fn column(&self, _: usize, _: usize, _: usize) -> Result<Datum> {
        Err(QueryError::internal("there is no row here"))
    }

    fn whole_row(&self, _: usize, _: usize) -> Result<Datum> {
        Err(QueryError::internal("there is no row here"))
    }
}

/// What expressions are computed with.
#[derive(Clone, Copy)]
pub struct Evaluator<'a> {
    /// The server.
    pub environment: &'a dyn Environment,
    /// The values of the parameters.
    pub parameters: &'a [Datum],
}

/// What stands for placeholders within an expression.
#[derive(Clone, Copy)]
struct Scope<'a> {
    row: &'a dyn Row,
    operand: Option<&'a Datum>,
    element: Option<&'a Datum>,
    columns: Option<&'a [Datum]>,
}

impl<'a> Evaluator<'a> {
    /// The value of an expression over a row.
    ///
    /// # Errors
    /// As its functions' in PostgreSQL.
    pub fn evaluate(&self, expr: &Expr, row: &dyn Row) -> Result<Datum> {
        self.value(
            expr,
            Scope {
                row,
                operand: None,
                element: None,
                columns: None,
            },
        )
    }

    /// As [`Evaluator::evaluate`], of a subquery's test or a set operation's cast: `columns` are
    /// the values of [`ExprKind::SubqueryColumn`].
    ///
    /// # Errors
    /// As [`Evaluator::evaluate`].
    pub fn evaluate_over(&self, expr: &Expr, row: &dyn Row, columns: &[Datum]) -> Result<Datum> {
        self.value(
            expr,
            Scope {
                row,
                operand: None,
                element: None,
                columns: Some(columns),
            },
        )
    }

    /// The rows of a function that gives any number of them; of another expression its value.
    ///
    /// # Errors
    /// As [`Evaluator::evaluate`].
    pub fn rows(&self, expr: &Expr, row: &dyn Row) -> Result<Vec<Datum>> {
        let scope = Scope {
            row,
            operand: None,
            element: None,
            columns: None,
        };
        let ExprKind::Call(call) = &expr.kind else {
            return Ok(vec![self.value(expr, scope)?]);
        };
        if !call.function.returns_set() {
            return Ok(vec![self.value(expr, scope)?]);
        }
        let arguments = self.arguments(call, scope)?;
        if call.function.strict && arguments.iter().any(Datum::is_null) {
            return Ok(Vec::new());
        }
        let context = Call::new(self.environment, &call.types, expr.oid);
        match call.function.body {
            Body::Set(body) => body(&context, &arguments).map_err(|error| error.at(-1)),
            Body::ServerSet => match self.environment.call(call.function.name, &arguments)? {
                Datum::Array(rows) => Ok(rows.elements.clone()),
                Datum::Null => Ok(Vec::new()),
                one => Ok(vec![one]),
            },
            _ => Err(QueryError::internal("a set is of another kind")),
        }
    }

    fn value(&self, expr: &Expr, scope: Scope<'_>) -> Result<Datum> {
        stacker::maybe_grow(64 << 10, 2 << 20, || self.value_here(expr, scope))
    }

    fn value_here(&self, expr: &Expr, scope: Scope<'_>) -> Result<Datum> {
        match &expr.kind {
            ExprKind::Constant(value) => Ok(value.clone()),
            ExprKind::Parameter(at) => Ok(self.parameters.get(*at).cloned().unwrap_or_default()),
            ExprKind::Column {
                level,
                relation,
                column,
            } => scope.row.column(*level, *relation, *column),
            ExprKind::WholeRow { level, relation } => scope.row.whole_row(*level, *relation),
            ExprKind::Call(call) => self.call(call, expr.oid, scope),
            ExprKind::Relabel(inner) => {
                let value = self.value(inner, scope)?;
                Ok(relabelled(value, expr.oid))
            }
            ExprKind::ThroughText(inner) => {
                let value = self.value(inner, scope)?;
                if value.is_null() {
                    return Ok(Datum::Null);
                }
                let call = Call::new(self.environment, &[], expr.oid);
                let text = types::to_text(&call, inner.oid, &value)?;
                types::input(&call, expr.oid, &text, -1)
            }
            ExprKind::Fit(inner, explicit) => {
                let value = self.value(inner, scope)?;
                let call = Call::new(self.environment, &[], expr.oid);
                types::fit(&call, expr.oid, &value, expr.modifier, *explicit)
            }
            ExprKind::Checked(inner) => {
                let value = self.value(inner, scope)?;
                let call = Call::new(self.environment, &[], expr.oid);
                domain::check(&call, expr.oid, &value)?;
                Ok(value)
            }
            ExprKind::ArrayCast(inner, cast) => {
                let value = self.value(inner, scope)?;
                let Datum::Array(array) = &value else {
                    return Ok(Datum::Null);
                };
                let mut elements = Vec::with_capacity(array.elements.len());
                for element in &array.elements {
                    let scope = Scope {
                        element: Some(element),
                        ..scope
                    };
                    elements.push(self.value(cast, scope)?);
                }
                Ok(Datum::Array(Arc::new(Array {
                    element: cast.oid,
                    dimensions: array.dimensions.clone(),
                    elements,
                })))
            }
            ExprKind::Element => Ok(scope.element.cloned().unwrap_or_default()),
            ExprKind::RowCast(inner, casts) => {
                let value = self.value(inner, scope)?;
                if value.is_null() {
                    return Ok(Datum::Null);
                }
                let scope = Scope {
                    element: Some(&value),
                    ..scope
                };
                let values = casts
                    .iter()
                    .map(|cast| self.value(cast, scope))
                    .collect::<Result<_>>()?;
                Ok(record(casts, values, expr.oid))
            }
            ExprKind::And(parts) => {
                let mut unknown = false;
                for part in parts {
                    match self.value(part, scope)? {
                        Datum::Bool(false) => return Ok(Datum::Bool(false)),
                        Datum::Null => unknown = true,
                        _ => {}
                    }
                }
                Ok(if unknown {
                    Datum::Null
                } else {
                    Datum::Bool(true)
                })
            }
            ExprKind::Or(parts) => {
                let mut unknown = false;
                for part in parts {
                    match self.value(part, scope)? {
                        Datum::Bool(true) => return Ok(Datum::Bool(true)),
                        Datum::Null => unknown = true,
                        _ => {}
                    }
                }
                Ok(if unknown {
                    Datum::Null
                } else {
                    Datum::Bool(false)
                })
            }
            ExprKind::Not(inner) => Ok(match self.value(inner, scope)? {
                Datum::Bool(value) => Datum::Bool(!value),
                _ => Datum::Null,
            }),
            ExprKind::IsNull(inner, wanted) => {
                let value = self.value(inner, scope)?;
                // Of a row that has any value, neither is true.
                let is = match &value {
                    Datum::Record(record) if *wanted => record.values.iter().all(Datum::is_null),
                    Datum::Record(record) => record.values.iter().all(|value| !value.is_null()),
                    value => value.is_null() == *wanted,
                };
                Ok(Datum::Bool(is))
            }
            ExprKind::Is(inner, wanted, positive) => {
                let value = self.value(inner, scope)?;
                let is = match (&value, wanted) {
                    (Datum::Bool(value), Some(wanted)) => value == wanted,
                    (Datum::Null, None) => true,
                    _ => false,
                };
                Ok(Datum::Bool(is == *positive))
            }
            ExprKind::Distinct(call, wanted) => {
                let arguments = self.arguments(call, scope)?;
                let distinct = match (arguments[0].is_null(), arguments[1].is_null()) {
                    (true, true) => false,
                    (false, false) => {
                        !matches!(self.run(call, &arguments, ids::BOOL)?, Datum::Bool(true))
                    }
                    _ => true,
                };
                Ok(Datum::Bool(distinct == *wanted))
            }
            ExprKind::Case(case) => {
                let operand = match &case.operand {
                    Some(operand) => Some(self.value(operand, scope)?),
                    None => None,
                };
                let within = Scope {
                    operand: operand.as_ref().or(scope.operand),
                    ..scope
                };
                for (condition, value) in &case.branches {
                    if matches!(self.value(condition, within)?, Datum::Bool(true)) {
                        return self.value(value, scope);
                    }
                }
                self.value(&case.otherwise, scope)
            }
            ExprKind::CaseOperand => Ok(scope.operand.cloned().unwrap_or_default()),
            ExprKind::Coalesce(parts) => {
                for part in parts {
                    let value = self.value(part, scope)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Datum::Null)
            }
            ExprKind::Extreme(parts, greatest) => {
                let mut best = Datum::Null;
                for part in parts {
                    let value = self.value(part, scope)?;
                    if value.is_null() {
                        continue;
                    }
                    let better = best.is_null() || {
                        let order = types::compare(expr.oid, &value, &best)?;
                        if *greatest {
                            order.is_gt()
                        } else {
                            order.is_lt()
                        }
                    };
                    if better {
                        best = value;
                    }
                }
                Ok(best)
            }
            ExprKind::NullIf(call) => {
                let mut arguments = self.arguments(call, scope)?;
                let equal = !arguments.iter().any(Datum::is_null)
                    && matches!(self.run(call, &arguments, ids::BOOL)?, Datum::Bool(true));
                Ok(if equal {
                    Datum::Null
                } else {
                    arguments.swap_remove(0)
                })
            }
            ExprKind::Array(parts, nested) => {
                let values = self.values(parts, scope)?;
                let element = types::element_of(expr.oid).unwrap_or(0);
                let call = Call::new(self.environment, &[], expr.oid);
                let array = match nested {
                    true => array::construct(&call, element, &values)?,
                    false => Array::of(element, values),
                };
                Ok(Datum::Array(Arc::new(array)))
            }
            ExprKind::Row(parts) => {
                let values = self.values(parts, scope)?;
                Ok(record(parts, values, expr.oid))
            }
            ExprKind::AnyOfArray(comparison) => self.any_of_array(comparison, scope),
            ExprKind::RowComparison(comparison) => self.row_comparison(comparison, scope),
            ExprKind::Subscript(subscript) => self.subscript(subscript, expr.oid, scope),
            ExprKind::Field(inner, at) => Ok(match self.value(inner, scope)? {
                Datum::Record(record) => record.values.get(*at).cloned().unwrap_or_default(),
                _ => Datum::Null,
            }),
            ExprKind::Store(store) => self.store(store, expr.oid, scope),
            ExprKind::SubqueryColumn(at) => match scope.columns {
                Some(columns) => Ok(columns.get(*at).cloned().unwrap_or_default()),
                None => scope.row.computed(expr),
            },
            ExprKind::Now(now) => self.now(*now, expr.modifier),
            ExprKind::Subquery(_)
            | ExprKind::Aggregate(_)
            | ExprKind::Window(_)
            | ExprKind::Grouping(..) => scope.row.computed(expr),
        }
    }

    fn values(&self, exprs: &[Expr], scope: Scope<'_>) -> Result<Vec<Datum>> {
        exprs.iter().map(|expr| self.value(expr, scope)).collect()
    }

    fn arguments(&self, call: &FunctionCall, scope: Scope<'_>) -> Result<Vec<Datum>> {
        self.values(&call.arguments, scope)
    }

    fn call(&self, call: &FunctionCall, result: u32, scope: Scope<'_>) -> Result<Datum> {
        // Most functions have one or two arguments: no list is made for them.
        match call.arguments.as_slice() {
            [only] => {
                let value = [self.value(only, scope)?];
                self.run(call, &value, result)
            }
            [left, right] => {
                let values = [self.value(left, scope)?, self.value(right, scope)?];
                self.run(call, &values, result)
            }
            _ => {
                let values = self.arguments(call, scope)?;
                self.run(call, &values, result)
            }
        }
    }

    fn run(&self, call: &FunctionCall, arguments: &[Datum], result: u32) -> Result<Datum> {
        if call.function.strict && arguments.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let context = Call::new(self.environment, &call.types, result);
        match call.function.body {
            Body::Row(body) => body(&context, arguments),
            Body::Server => self.environment.call(call.function.name, arguments),
            Body::Set(_) | Body::ServerSet | Body::Aggregate(_) | Body::Window(_) => Err(
                QueryError::internal(format!("function {} has no row form", call.function.name)),
            ),
        }
    }

    fn now(&self, now: Now, precision: i32) -> Result<Datum> {
        let settings = self.environment.settings();
        let time = self.environment.transaction_time();
        let rounded = |time: i64| match precision {
            0..=6 => timestamp::rounded(time, precision),
            _ => Ok(time),
        };
        let rounded_time = |micros: i64| match precision {
            0..=6 => types::time::rounded(micros, precision),
            _ => micros,
        };
        Ok(match now {
            Now::Date => Datum::Date(timestamp::date_of_timestamptz(time, settings)?),
            Now::TimestampTz => Datum::TimestampTz(rounded(time)?),
            Now::Timestamp => Datum::Timestamp(rounded(timestamp::timestamp_of_timestamptz(
                time, settings,
            )?)?),
            Now::Time => Datum::Time(rounded_time(timestamp::time_of_timestamptz(
                time, settings,
            )?)),
            Now::TimeTz => {
                let mut value = timestamp::timetz_of_timestamptz(time, settings)?;
                value.micros = rounded_time(value.micros);
                Datum::TimeTz(value)
            }
        })
    }
}

/// A row of this type of the values of expressions.
fn record(exprs: &[Expr], values: Vec<Datum>, oid: u32) -> Datum {
    if oid != ids::RECORD
        && let Ok(columns) = columns_of(oid)
        && columns.types.len() == values.len()
    {
        return Datum::Record(columns.row(values).into());
    }
    Datum::Record(Arc::new(Record {
        modifiers: None,
        types: exprs.iter().map(|expr| expr.oid).collect(),
        names: None,
        values,
    }))
}

/// A value as one of a type whose values have the same bits: what is kept differently here is turned.
pub(crate) fn relabelled(value: Datum, oid: u32) -> Datum {
    match (value, oid) {
        (Datum::Oid(value), ids::INT4) => Datum::Int4(value.cast_signed()),
        (
            Datum::Int4(value),
            ids::OID
            | ids::REGCLASS
            | ids::REGTYPE
            | ids::REGPROC
            | ids::REGPROCEDURE
            | ids::REGOPER
            | ids::REGOPERATOR
            | ids::REGNAMESPACE
            | ids::REGROLE
            | ids::REGCOLLATION,
        ) => Datum::Oid(value.cast_unsigned()),
        (Datum::Array(array), oid) => match types::element_of(oid) {
            Some(element) if element != array.element => Datum::Array(Arc::new(Array {
                element,
                dimensions: array.dimensions.clone(),
                elements: array
                    .elements
                    .iter()
                    .map(|value| relabelled(value.clone(), element))
                    .collect(),
            })),
            _ => Datum::Array(array),
        },
        (value, _) => value,
    }
}
