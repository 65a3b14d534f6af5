//! Operators of catalog queries on values.

use std::cmp::Ordering;

use thermocline_storage::functions::like_match;
use thermocline_storage::numeric::Numeric;

use super::expr::{Comparison, Operator};
use super::text::{Names, datum_text};
use crate::error::{Result, SqlError};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::pg_type::PgType;

/// `left op right`; NULL if either is.
pub(crate) fn compare(comparison: Comparison, left: &Datum, right: &Datum) -> Datum {
    if left.is_null() || right.is_null() {
        return Datum::Null;
    }
    let order = left.compare(right);
    Datum::Bool(match comparison {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterEqual => order != Ordering::Less,
    })
}

fn out_of_range(data_type: PgType) -> SqlError {
    let name = match data_type.oid {
        21 => "smallint",
        20 => "bigint",
        _ => "integer",
    };
    SqlError::new("22003", format!("{name} out of range"))
}

fn division_by_zero() -> SqlError {
    SqlError::new("22012", "division by zero")
}

/// `left op right` with the result of type `result`.
pub(crate) fn operate(
    operator: Operator,
    result: PgType,
    left: &Datum,
    right: &Datum,
    names: &dyn Names,
) -> Result<Datum> {
    if operator == Operator::ConcatArrays {
        return Ok(concat_arrays(left, right));
    }
    if left.is_null() || right.is_null() {
        return Ok(Datum::Null);
    }
    match operator {
        Operator::Concat => {
            let text = |datum: &Datum| match datum {
                Datum::Text(text) => text.to_string(),
                Datum::Bool(value) => value.to_string(),
                other => datum_text(other, PgType::TEXT, names),
            };
            Ok(Datum::text(text(left) + &text(right)))
        }
        Operator::Match {
            insensitive,
            negated,
        } => {
            let (Some(text), Some(pattern)) = (left.as_text(), right.as_text()) else {
                return Err(SqlError::new("42883", "operator does not exist: ~"));
            };
            Ok(Datum::Bool(
                regex(pattern, insensitive)?.is_match(text) != negated,
            ))
        }
        Operator::Like {
            insensitive,
            negated,
        } => {
            let (Some(text), Some(pattern)) = (left.as_text(), right.as_text()) else {
                return Err(SqlError::new("42883", "operator does not exist: ~~"));
            };
            Ok(Datum::Bool(
                like(pattern, text, Some('\\'), insensitive)? != negated,
            ))
        }
        Operator::Contains | Operator::Overlaps => {
            let (Some(left), Some(right)) = (left.as_array(), right.as_array()) else {
                return Err(SqlError::new(
                    "42883",
                    "operator does not exist for these types",
                ));
            };
            let holds = |element: &Datum| left.contains(element);
            Ok(Datum::Bool(if operator == Operator::Contains {
                right.iter().all(holds)
            } else {
                right.iter().any(holds)
            }))
        }
        _ => arithmetic(operator, result, left, right),
    }
}

/// `LIKE`.
pub(crate) fn like(
    pattern: &str,
    text: &str,
    escape: Option<char>,
    insensitive: bool,
) -> Result<bool> {
    Ok(like_match(pattern, text, escape, insensitive)?)
}

/// A POSIX regular expression.
pub(crate) fn regex(pattern: &str, insensitive: bool) -> Result<super::functions::Regex> {
    super::functions::Regex::new(pattern, insensitive)
}

fn concat_arrays(left: &Datum, right: &Datum) -> Datum {
    match (left, right) {
        (Datum::Array(a), Datum::Array(b)) => Datum::array(a.iter().chain(b.iter()).cloned()),
        (Datum::Null, other) | (other, Datum::Null) => other.clone(),
        (Datum::Array(a), element) => Datum::array(a.iter().cloned().chain([element.clone()])),
        (element, Datum::Array(b)) => {
            Datum::array([element.clone()].into_iter().chain(b.iter().cloned()))
        }
        _ => Datum::Null,
    }
}

fn numeric(datum: &Datum) -> Option<Numeric> {
    match datum {
        Datum::Int(value) => Some(Numeric::from(*value)),
        Datum::Numeric(value) => Some(*value),
        Datum::Text(text) => Numeric::parse(text).ok(),
        _ => None,
    }
}

fn float(datum: &Datum) -> Option<f64> {
    match datum {
        Datum::Int(value) => Some(*value as f64),
        Datum::Float(value) => Some(*value),
        Datum::Numeric(value) => Some(value.to_f64()),
        _ => None,
    }
}

fn arithmetic(operator: Operator, result: PgType, left: &Datum, right: &Datum) -> Result<Datum> {
    let mismatch = || SqlError::new("42883", "operator does not exist for these types");
    match (left, right) {
        (Datum::Int(a), Datum::Int(b)) if result.is_integer() => {
            let value = match operator {
                Operator::Add => a.checked_add(*b),
                Operator::Subtract => a.checked_sub(*b),
                Operator::Multiply => a.checked_mul(*b),
                Operator::Divide | Operator::Modulo if *b == 0 => return Err(division_by_zero()),
                Operator::Divide => a.checked_div(*b),
                Operator::Modulo => Some(a.checked_rem(*b).unwrap_or(0)),
                Operator::BitAnd => Some(a & b),
                Operator::BitOr => Some(a | b),
                _ => return Err(mismatch()),
            };
            let fits = |value: &i64| match result.oid {
                21 => i16::try_from(*value).is_ok(),
                23 => i32::try_from(*value).is_ok(),
                _ => true,
            };
            value
                .filter(fits)
                .map(Datum::Int)
                .ok_or_else(|| out_of_range(result))
        }
        _ if matches!(result.oid, 700 | 701) => {
            let (Some(a), Some(b)) = (float(left), float(right)) else {
                return Err(mismatch());
            };
            Ok(Datum::Float(match operator {
                Operator::Add => a + b,
                Operator::Subtract => a - b,
                Operator::Multiply => a * b,
                Operator::Divide if b == 0.0 => return Err(division_by_zero()),
                Operator::Divide => a / b,
                _ => return Err(mismatch()),
            }))
        }
        _ => {
            let (Some(a), Some(b)) = (numeric(left), numeric(right)) else {
                return Err(mismatch());
            };
            Ok(Datum::Numeric(match operator {
                Operator::Add => a.add(b)?,
                Operator::Subtract => a.sub(b)?,
                Operator::Multiply => a.mul(b)?,
                Operator::Divide => a.div(b)?,
                Operator::Modulo => a.rem(b)?,
                _ => return Err(mismatch()),
            }))
        }
    }
}
