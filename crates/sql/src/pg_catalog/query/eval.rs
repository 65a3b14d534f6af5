//! Evaluation of bound expressions over a row and the rows around it.

use super::aggregate::aggregate;
use super::cast::cast;
use super::expr::{Comparison, Expr, Test};
use super::functions;
use super::operator::{compare, operate};
use super::plan::QueryPlan;
use super::run::Run;
use crate::error::{Result, SqlError};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::pg_type::PgType;

/// The values in reach: the row of this query with its aggregates, window and
/// set-returning results, and the frames of the queries around it.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub row: &'a [Datum],
    pub aggregates: &'a [Datum],
    pub windows: &'a [Datum],
    pub sets: &'a [Datum],
    pub outer: Option<&'a Frame<'a>>,
}

impl<'a> Frame<'a> {
    /// A frame of a plain row.
    pub(crate) fn of(row: &'a [Datum], outer: Option<&'a Frame<'a>>) -> Self {
        Self {
            row,
            aggregates: &[],
            windows: &[],
            sets: &[],
            outer,
        }
    }

    fn at(&self, depth: usize) -> Result<&Frame<'a>> {
        let mut frame = self;
        for _ in 0..depth {
            frame = frame.outer.ok_or_else(lost)?;
        }
        Ok(frame)
    }
}

#[cold]
fn lost() -> SqlError {
    SqlError::internal("a bound column is not in its row")
}

fn column(values: &[Datum], index: usize) -> Result<Datum> {
    values.get(index).cloned().ok_or_else(lost)
}

/// Three-valued truth.
fn truth(datum: &Datum) -> Result<Option<bool>> {
    match datum {
        Datum::Null => Ok(None),
        Datum::Bool(value) => Ok(Some(*value)),
        _ => Err(SqlError::new("42804", "argument must be type boolean")),
    }
}

/// The value of `expr`.
pub(crate) fn evaluate(expr: &Expr, frame: &Frame<'_>, run: &Run<'_>) -> Result<Datum> {
    let value = value_of(expr, frame, run)?;
    if let (Datum::Text(text), Expr::Operate(..) | Expr::Cast { .. } | Expr::Call { .. }) =
        (&value, expr)
    {
        run.made(text.len() as u64)?;
    }
    Ok(value)
}

fn value_of(expr: &Expr, frame: &Frame<'_>, run: &Run<'_>) -> Result<Datum> {
    match expr {
        Expr::Constant(value) => Ok(value.clone()),
        Expr::Parameter(index) => {
            run.parameters().get(*index).cloned().ok_or_else(|| {
                SqlError::new("42P02", format!("there is no parameter ${}", index + 1))
            })
        }
        Expr::Column { depth, index } => column(frame.at(*depth)?.row, *index),
        Expr::Aggregate { depth, index } => column(frame.at(*depth)?.aggregates, *index),
        Expr::Window(index) => column(frame.windows, *index),
        Expr::Set(index) => column(frame.sets, *index),
        Expr::Compare(comparison, left, right) => Ok(compare(
            *comparison,
            &evaluate(left, frame, run)?,
            &evaluate(right, frame, run)?,
        )),
        Expr::Operate(operator, result, left, right) => operate(
            *operator,
            *result,
            &evaluate(left, frame, run)?,
            &evaluate(right, frame, run)?,
            run.names(),
        ),
        Expr::Negate(value) => Ok(match evaluate(value, frame, run)? {
            Datum::Int(value) => Datum::Int(
                value
                    .checked_neg()
                    .ok_or_else(|| SqlError::new("22003", "bigint out of range"))?,
            ),
            Datum::Float(value) => Datum::Float(-value),
            Datum::Numeric(value) => Datum::Numeric(-value),
            other => other,
        }),
        Expr::And(left, right) => {
            let left = truth(&evaluate(left, frame, run)?)?;
            if left == Some(false) {
                return Ok(Datum::Bool(false));
            }
            Ok(match (left, truth(&evaluate(right, frame, run)?)?) {
                (_, Some(false)) => Datum::Bool(false),
                (Some(true), Some(true)) => Datum::Bool(true),
                _ => Datum::Null,
            })
        }
        Expr::Or(left, right) => {
            let left = truth(&evaluate(left, frame, run)?)?;
            if left == Some(true) {
                return Ok(Datum::Bool(true));
            }
            Ok(match (left, truth(&evaluate(right, frame, run)?)?) {
                (_, Some(true)) => Datum::Bool(true),
                (Some(false), Some(false)) => Datum::Bool(false),
                _ => Datum::Null,
            })
        }
        Expr::Not(value) => Ok(truth(&evaluate(value, frame, run)?)?
            .map(|value| !value)
            .into()),
        Expr::IsNull(value) => Ok(Datum::Bool(evaluate(value, frame, run)?.is_null())),
        Expr::IsBool(value, wanted, negated) => {
            let is = truth(&evaluate(value, frame, run)?)? == *wanted;
            Ok(Datum::Bool(is != *negated))
        }
        Expr::IsDistinct(left, right) => Ok(Datum::Bool(
            evaluate(left, frame, run)? != evaluate(right, frame, run)?,
        )),
        Expr::InList(value, list) => {
            let value = evaluate(value, frame, run)?;
            let mut unknown = value.is_null();
            for item in list {
                match compare(Comparison::Equal, &value, &evaluate(item, frame, run)?) {
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
        Expr::Quantified {
            test,
            all,
            value,
            array,
        } => {
            let value = evaluate(value, frame, run)?;
            match evaluate(array, frame, run)? {
                Datum::Null => Ok(Datum::Null),
                Datum::Array(elements) => quantified(*test, *all, &value, elements.iter(), run),
                _ => Err(SqlError::new(
                    "42809",
                    "op ANY/ALL (array) requires array on right side",
                )),
            }
        }
        Expr::QuantifiedQuery {
            test,
            all,
            value,
            query,
        } => {
            let value = evaluate(value, frame, run)?;
            let rows = run.query(query, Some(frame))?;
            let firsts = rows.iter().filter_map(|row| row.first());
            quantified(*test, *all, &value, firsts, run)
        }
        Expr::Exists(query) => Ok(Datum::Bool(!run.query(query, Some(frame))?.is_empty())),
        Expr::Scalar(query) => scalar(query, frame, run),
        Expr::ArrayOfQuery(query) => {
            let rows = run.query(query, Some(frame))?;
            Ok(Datum::array(
                rows.into_iter()
                    .map(|row| row.into_iter().next().unwrap_or_default()),
            ))
        }
        Expr::Case {
            branches,
            otherwise,
        } => {
            for (condition, result) in branches {
                if evaluate(condition, frame, run)?.is_true() {
                    return evaluate(result, frame, run);
                }
            }
            otherwise
                .as_ref()
                .map_or(Ok(Datum::Null), |otherwise| evaluate(otherwise, frame, run))
        }
        Expr::Coalesce(values) => {
            for value in values {
                let value = evaluate(value, frame, run)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            Ok(Datum::Null)
        }
        Expr::Cast { value, from, to } => {
            cast(evaluate(value, frame, run)?, *from, *to, run.names())
        }
        Expr::Array(elements) => Ok(Datum::Array(all(elements, frame, run)?.into())),
        Expr::Row(fields) => Ok(Datum::Record(all(fields, frame, run)?.into())),
        Expr::Subscript {
            array,
            index,
            lower_bound,
        } => {
            let array = evaluate(array, frame, run)?;
            let index = evaluate(index, frame, run)?;
            let at = index.as_int().map(|index| index - lower_bound);
            Ok(
                match (array.as_array(), at.and_then(|at| usize::try_from(at).ok())) {
                    (Some(elements), Some(at)) => elements.get(at).cloned().unwrap_or_default(),
                    _ => Datum::Null,
                },
            )
        }
        Expr::Field(record, index) => Ok(match evaluate(record, frame, run)? {
            Datum::Record(fields) => fields.get(*index).cloned().unwrap_or_default(),
            _ => Datum::Null,
        }),
        Expr::Call {
            function,
            arguments,
        } => {
            run.work(1)?;
            let values = arguments
                .iter()
                .map(|(argument, _)| evaluate(argument, frame, run))
                .collect::<Result<Vec<_>>>()?;
            let types: Vec<PgType> = arguments.iter().map(|(_, data_type)| *data_type).collect();
            functions::call(*function, &values, &types, run)
        }
    }
}

fn all(expressions: &[Expr], frame: &Frame<'_>, run: &Run<'_>) -> Result<Vec<Datum>> {
    expressions
        .iter()
        .map(|expr| evaluate(expr, frame, run))
        .collect()
}

fn scalar(query: &QueryPlan, frame: &Frame<'_>, run: &Run<'_>) -> Result<Datum> {
    let mut rows = run.query(query, Some(frame))?;
    if rows.len() > 1 {
        return Err(SqlError::new(
            "21000",
            "more than one row returned by a subquery used as an expression",
        ));
    }
    Ok(rows
        .pop()
        .and_then(|row| row.into_iter().next())
        .unwrap_or_default())
}

fn quantified<'a>(
    test: Test,
    all: bool,
    value: &Datum,
    elements: impl Iterator<Item = &'a Datum>,
    run: &Run<'_>,
) -> Result<Datum> {
    let mut unknown = false;
    for element in elements {
        let holds = match test {
            Test::Comparison(comparison) => compare(comparison, value, element),
            Test::Operator(operator) => {
                operate(operator, PgType::BOOL, value, element, run.names())?
            }
        };
        match holds {
            Datum::Null => unknown = true,
            holds if holds.is_true() != all => return Ok(Datum::Bool(!all)),
            _ => {}
        }
    }
    Ok(if unknown {
        Datum::Null
    } else {
        Datum::Bool(all)
    })
}

/// All aggregates over a group.
pub(crate) fn aggregates(
    calls: &[super::aggregate::AggregateCall],
    frames: &[Frame<'_>],
    run: &Run<'_>,
) -> Result<Vec<Datum>> {
    calls
        .iter()
        .map(|call| aggregate(call, frames, run))
        .collect()
}
