//! Conversion of a value from one type to another, as PostgreSQL converts on
//! assignment to a column and on an explicit `CAST`. Every loss that
//! PostgreSQL reports is an error here; there is no silent truncation but
//! where SQL asks for it.

use crate::arithmetic::{float_overflow, float_underflow};
use crate::datetime::{date_from_timestamp, rounded, timestamp_from_date};
use crate::numeric::Numeric;
use crate::numeric::long::{self, LONG};
use crate::other_type;
use crate::text_format::{
    checked_text, fit_numeric, fit_text, parse_text, split_characters, trim_blanks, write_text,
};
use crate::types::DataType;
use crate::value::Value;
use crate::value_error::{NUMERIC_OVERFLOW, ValueError};

/// What a conversion is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CastContext {
    /// Storing into a column: too long a text is an error.
    Assignment,
    /// `CAST` or `::`: too long a text is cut.
    Explicit,
}

/// Whether PostgreSQL knows a conversion in this context.
#[must_use]
pub fn can_cast(from: &DataType, to: &DataType, context: CastContext) -> bool {
    use DataType as T;
    let explicit = context == CastContext::Explicit;
    match (from, to) {
        _ if from.is_number() && to.is_number() => true,
        _ if from.oid() == to.oid() || to.is_text() => true,
        _ if from.is_text() => explicit,
        (T::Boolean, T::Integer) | (T::Integer, T::Boolean) => explicit,
        (from, to) if is_moment(from) && is_moment(to) => true,
        _ => false,
    }
}

/// A date or a timestamp.
fn is_moment(data_type: &DataType) -> bool {
    *data_type == DataType::Date || data_type.is_timestamp()
}

/// Converts a value of type `from` into one of type `to`.
///
/// # Errors
/// 42846 where there is no conversion; 22003, 22001, 22P02 and their like for
/// a value that does not convert.
pub fn coerce(
    value: Value,
    from: &DataType,
    to: &DataType,
    context: CastContext,
) -> Result<Value, ValueError> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    if !can_cast(from, to, context) {
        return Err(ValueError::no_cast(from, to));
    }
    match (value, to) {
        // Other than its text, only another floor knows.
        (value @ Value::Other(LONG, _), to) if !to.is_text() => {
            other_type::forms().convert(&value, to)
        }
        (Value::Text(text), to) if to.is_text() => fit(text, to, context),
        (value, to) if to.is_text() => fit(as_text(&value, from)?, to, context),
        (Value::Text(text), to) => parse_text(to, &text),
        (Value::Boolean(value), DataType::Integer) => Ok(Value::Integer(value.into())),
        (Value::Integer(value), DataType::Boolean) => Ok(Value::Boolean(value != 0)),
        (value, DataType::SmallInt) => to_integer(&value, "smallint", i16::MIN, i16::MAX)
            .map(|value| Value::SmallInt(value as i16)),
        (value, DataType::Integer) => to_integer(&value, "integer", i32::MIN, i32::MAX)
            .map(|value| Value::Integer(value as i32)),
        (value, DataType::BigInt) => {
            to_integer(&value, "bigint", i64::MIN, i64::MAX).map(Value::BigInt)
        }
        (value, DataType::Real) => to_real(&value).map(Value::Real),
        (value, DataType::Double) => to_double(&value).map(Value::Double),
        (value, DataType::Numeric { precision, .. }) => {
            let small = to_numeric(&value).and_then(|number| match (precision, to.small_scale()) {
                (0, _) => Ok(number),
                (_, Some(scale)) => fit_numeric(number, *precision, scale),
                (_, None) => Err(ValueError::numeric_overflow()),
            });
            match small {
                Err(error) if error.sqlstate == NUMERIC_OVERFLOW => {
                    other_type::forms().convert(&value, to)
                }
                small => small.map(Value::Numeric),
            }
        }
        (value, DataType::TimestampTo(digits)) => {
            match coerce(value, from, &DataType::Timestamp, context)? {
                Value::Timestamp(at) => Ok(Value::Timestamp(rounded(at, *digits))),
                other => Ok(other),
            }
        }
        (value, DataType::TimestampTzTo(digits)) => {
            match coerce(value, from, &DataType::TimestampTz, context)? {
                Value::TimestampTz(at) => Ok(Value::TimestampTz(rounded(at, *digits))),
                other => Ok(other),
            }
        }
        (Value::Date(days), DataType::Timestamp) => timestamp_from_date(days).map(Value::Timestamp),
        (Value::Date(days), DataType::TimestampTz) => {
            timestamp_from_date(days).map(Value::TimestampTz)
        }
        (Value::Timestamp(at) | Value::TimestampTz(at), DataType::Date) => {
            Ok(Value::Date(date_from_timestamp(at)))
        }
        // The session's zone is UTC: the two have the same number.
        (Value::Timestamp(at) | Value::TimestampTz(at), DataType::Timestamp) => {
            Ok(Value::Timestamp(at))
        }
        (Value::Timestamp(at) | Value::TimestampTz(at), DataType::TimestampTz) => {
            Ok(Value::TimestampTz(at))
        }
        (value, _) => Ok(value),
    }
}

/// Converts a value only if it comes out equal, as a comparison with a column
/// of type `to` needs it; `None` when the column can hold no equal value.
///
/// # Errors
/// As [`coerce`] for values that are no value of the type at all.
pub fn coerce_exact(
    value: &Value,
    from: &DataType,
    to: &DataType,
) -> Result<Option<Value>, ValueError> {
    let converted = match coerce(value.clone(), from, to, CastContext::Explicit) {
        Ok(converted) => converted,
        Err(error) if matches!(error.sqlstate, "22003" | "22008") && !from.is_text() => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let same = match (value, &converted) {
        (Value::Null, _) => true,
        // A char column compares without trailing blanks.
        (Value::Text(a), Value::Text(b)) if matches!(to, DataType::Char(_)) => trim_blanks(a) == b,
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Text(_), _) => true,
        _ if from.is_number() && to.is_number() => {
            crate::compare::compare(value.as_ref(), converted.as_ref())
                == Some(std::cmp::Ordering::Equal)
        }
        _ => {
            let back = coerce(converted.clone(), to, from, CastContext::Explicit)?;
            back == *value
        }
    };
    Ok(same.then_some(converted))
}

/// The text of a value in a cast; a boolean is spelled out.
fn as_text(value: &Value, from: &DataType) -> Result<String, ValueError> {
    if let Value::Boolean(value) = value {
        return Ok(value.to_string());
    }
    let mut out = Vec::new();
    write_text(value.as_ref(), from, &mut out);
    String::from_utf8(out).map_err(|_| ValueError::syntax("text", from.base_name()))
}

/// Fits a text into a text type.
fn fit(text: String, to: &DataType, context: CastContext) -> Result<Value, ValueError> {
    checked_text(&text)?;
    let (limit, trims) = match *to {
        DataType::Varchar(limit) => (limit, false),
        DataType::Char(limit) => (limit, true),
        _ => (0, false),
    };
    let fitted = match (limit, context) {
        (0, _) => text.as_str(),
        (_, CastContext::Assignment) => fit_text(&text, limit, to)?,
        (_, CastContext::Explicit) => split_characters(&text, limit).0,
    };
    let fitted = if trims { trim_blanks(fitted) } else { fitted };
    Ok(Value::Text(if fitted.len() == text.len() {
        text
    } else {
        fitted.to_string()
    }))
}

/// The nearest integer: floats round halves to even, numerics away from zero.
fn to_integer(
    value: &Value,
    type_name: &str,
    least: impl Into<i64>,
    greatest: impl Into<i64>,
) -> Result<i64, ValueError> {
    let error = || ValueError::out_of_range(type_name);
    let integer = match value {
        Value::SmallInt(value) => i64::from(*value),
        Value::Integer(value) => i64::from(*value),
        Value::BigInt(value) => *value,
        Value::Real(value) => float_to_integer(f64::from(*value)).ok_or_else(error)?,
        Value::Double(value) => float_to_integer(*value).ok_or_else(error)?,
        Value::Numeric(value) => value.to_i64().ok_or_else(error)?,
        other => return Err(mismatch(other, type_name)),
    };
    if (least.into()..=greatest.into()).contains(&integer) {
        Ok(integer)
    } else {
        Err(error())
    }
}

fn float_to_integer(value: f64) -> Option<i64> {
    let rounded = value.round_ties_even();
    // 2^63 is exact in a double; NaN is in no range.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (-LIMIT..LIMIT).contains(&rounded).then_some(rounded as i64)
}

/// The value as a double.
pub(crate) fn to_double(value: &Value) -> Result<f64, ValueError> {
    Ok(match value {
        Value::SmallInt(value) => f64::from(*value),
        Value::Integer(value) => f64::from(*value),
        Value::BigInt(value) => *value as f64,
        Value::Real(value) => f64::from(*value),
        Value::Double(value) => *value,
        Value::Numeric(value) => value.to_f64(),
        Value::Other(LONG, bytes) => long::to_f64(bytes),
        other => return Err(mismatch(other, "double precision")),
    })
}

fn to_real(value: &Value) -> Result<f32, ValueError> {
    let double = match value {
        // By way of a double an integer would be rounded twice.
        Value::BigInt(value) => return Ok(*value as f32),
        Value::Real(value) => return Ok(*value),
        Value::Numeric(value) => {
            let text = value.to_string();
            return text.parse().map_err(|_| ValueError::syntax("real", &text));
        }
        other => to_double(other)?,
    };
    let real = double as f32;
    if real.is_infinite() && double.is_finite() {
        return Err(float_overflow());
    }
    if real == 0.0 && double != 0.0 {
        return Err(float_underflow());
    }
    Ok(real)
}

/// The value as a numeric of its own scale; 22003 for what the small form does not hold.
pub(crate) fn to_numeric(value: &Value) -> Result<Numeric, ValueError> {
    match value {
        Value::SmallInt(value) => Ok(i64::from(*value).into()),
        Value::Integer(value) => Ok(i64::from(*value).into()),
        Value::BigInt(value) => Ok((*value).into()),
        Value::Real(value) => Numeric::from_f32(*value),
        Value::Double(value) => Numeric::from_f64(*value),
        Value::Numeric(value) => Ok(*value),
        Value::Other(LONG, _) => Err(ValueError::numeric_overflow()),
        other => Err(mismatch(other, "numeric")),
    }
}

/// The value is not of the type that the caller declared.
#[cold]
fn mismatch(value: &Value, type_name: &str) -> ValueError {
    ValueError::new(
        "XX000",
        format!("value {value:?} cannot be converted to {type_name}"),
    )
}

#[cfg(test)]
mod tests;
