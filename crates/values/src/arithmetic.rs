//! `+ - * / %` on values, with PostgreSQL's result types and errors: integers
//! overflow with 22003 and divide towards zero. An integer with a numeric is a
//! numeric. Anything with a float is a double (two reals stay a real), dates
//! move by days. What has no result type here is refused with 42883; intervals
//! are not a type, so neither is the difference of two timestamps.

#[cfg(test)]
mod tests;

use crate::cast::{to_double, to_numeric};
use crate::datetime::{add_days, is_infinite_date};
use crate::numeric::Numeric;
use crate::numeric::long::LONG;
use crate::other_type;
use crate::types::DataType;
use crate::value::Value;
use crate::value_error::{NUMERIC_OVERFLOW, ValueError};

/// An arithmetic operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl Operator {
    /// The operator as it is written.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

/// The type of `left operator right`, or `None` if there is no such operator.
#[must_use]
pub fn result_type(operator: Operator, left: &DataType, right: &DataType) -> Option<DataType> {
    use DataType as T;
    let is_days = |data_type: &T| matches!(data_type, T::SmallInt | T::Integer);
    match (operator, left, right) {
        (Operator::Add | Operator::Subtract, T::Date, days) if is_days(days) => Some(T::Date),
        (Operator::Add, days, T::Date) if is_days(days) => Some(T::Date),
        (Operator::Subtract, T::Date, T::Date) => Some(T::Integer),
        _ if !left.is_number() || !right.is_number() => None,
        (Operator::Remainder, T::Real | T::Double, _)
        | (Operator::Remainder, _, T::Real | T::Double) => None,
        (_, T::Real, T::Real) => Some(T::Real),
        (_, T::Real | T::Double, _) | (_, _, T::Real | T::Double) => Some(T::Double),
        (_, T::Numeric { .. }, _) | (_, _, T::Numeric { .. }) => Some(T::NUMERIC),
        (_, T::BigInt, _) | (_, _, T::BigInt) => Some(T::BigInt),
        (_, T::Integer, _) | (_, _, T::Integer) => Some(T::Integer),
        _ => Some(T::SmallInt),
    }
}

/// Computes `left operator right`; NULL if either is.
///
/// # Errors
/// 22003 for overflow, 22012 for division by zero, 22008 for a date out of
/// range, 42883 where there is no such operator.
pub fn calculate(operator: Operator, left: &Value, right: &Value) -> Result<Value, ValueError> {
    use Value as V;
    match (left, right) {
        (V::Null, _) | (_, V::Null) => Ok(V::Null),
        (V::SmallInt(a), V::SmallInt(b)) => {
            let result = integers(operator, i64::from(*a), i64::from(*b));
            narrow(result, "smallint").map(V::SmallInt)
        }
        (V::SmallInt(_) | V::Integer(_), V::SmallInt(_) | V::Integer(_)) => {
            let result = integers(operator, integer(left), integer(right));
            narrow(result, "integer").map(V::Integer)
        }
        (
            V::SmallInt(_) | V::Integer(_) | V::BigInt(_),
            V::SmallInt(_) | V::Integer(_) | V::BigInt(_),
        ) => {
            let result = integers(operator, integer(left), integer(right));
            narrow(result, "bigint").map(V::BigInt)
        }
        (V::Date(date), V::SmallInt(_) | V::Integer(_)) => move_date(operator, *date, right),
        (V::SmallInt(_) | V::Integer(_), V::Date(date)) if operator == Operator::Add => {
            move_date(operator, *date, left)
        }
        (V::Date(a), V::Date(b)) if operator == Operator::Subtract => {
            if is_infinite_date(*a) || is_infinite_date(*b) {
                return Err(ValueError::new("22008", "cannot subtract infinite dates"));
            }
            narrow(Ok(i64::from(*a) - i64::from(*b)), "integer").map(V::Integer)
        }
        (V::Real(a), V::Real(b)) if operator != Operator::Remainder => {
            // The doubles' result, rounded once, is the reals' result.
            let result = floats(operator, f64::from(*a), f64::from(*b))?;
            let rounded = result as f32;
            check_float(operator, rounded.into(), f64::from(*a), f64::from(*b))?;
            Ok(V::Real(rounded))
        }
        _ if !is_number(left) || !is_number(right) => Err(no_operator(operator, left, right)),
        (V::Real(_) | V::Double(_), _) | (_, V::Real(_) | V::Double(_)) => {
            if operator == Operator::Remainder {
                return Err(no_operator(operator, left, right));
            }
            floats(operator, to_double(left)?, to_double(right)?).map(V::Double)
        }
        _ => {
            let small = to_numeric(left).and_then(|a| {
                let b = to_numeric(right)?;
                match operator {
                    Operator::Add => a.add(b),
                    Operator::Subtract => a.sub(b),
                    Operator::Multiply => a.mul(b),
                    Operator::Divide => a.div(b),
                    Operator::Remainder => a.rem(b),
                }
            });
            match small {
                Err(error) if error.sqlstate == NUMERIC_OVERFLOW => {
                    other_type::forms().calculate(operator, left, right)
                }
                small => small.map(V::Numeric),
            }
        }
    }
}

/// Computes `-value`; NULL for NULL.
///
/// # Errors
/// 22003 for the least integer, 42883 for what is no number.
pub fn negate(value: &Value) -> Result<Value, ValueError> {
    let out_of_range = || ValueError::out_of_range(type_name(value));
    Ok(match value {
        Value::Null => Value::Null,
        Value::SmallInt(value) => Value::SmallInt(value.checked_neg().ok_or_else(out_of_range)?),
        Value::Integer(value) => Value::Integer(value.checked_neg().ok_or_else(out_of_range)?),
        Value::BigInt(value) => Value::BigInt(value.checked_neg().ok_or_else(out_of_range)?),
        Value::Real(value) => Value::Real(-value),
        Value::Double(value) => Value::Double(-value),
        Value::Numeric(value) => Value::Numeric(-*value),
        Value::Other(LONG, _) => {
            let zero = Value::Numeric(Numeric::ZERO);
            other_type::forms().calculate(Operator::Subtract, &zero, value)?
        }
        other => {
            let signature = format!("- {}", type_name(other));
            return Err(ValueError::no_operator(&signature));
        }
    })
}

fn is_number(value: &Value) -> bool {
    matches!(
        value,
        Value::SmallInt(_)
            | Value::Integer(_)
            | Value::BigInt(_)
            | Value::Real(_)
            | Value::Double(_)
            | Value::Numeric(_)
            | Value::Other(LONG, _)
    )
}

/// The SQL name of a value's type.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "unknown",
        Value::Boolean(_) => DataType::Boolean.base_name(),
        Value::SmallInt(_) => DataType::SmallInt.base_name(),
        Value::Integer(_) => DataType::Integer.base_name(),
        Value::BigInt(_) => DataType::BigInt.base_name(),
        Value::Real(_) => DataType::Real.base_name(),
        Value::Double(_) => DataType::Double.base_name(),
        Value::Numeric(_) => DataType::NUMERIC.base_name(),
        Value::Text(_) => DataType::Text.base_name(),
        Value::Bytea(_) => DataType::Bytea.base_name(),
        Value::Date(_) => DataType::Date.base_name(),
        Value::Timestamp(_) => DataType::Timestamp.base_name(),
        Value::TimestampTz(_) => DataType::TimestampTz.base_name(),
        Value::Uuid(_) => DataType::Uuid.base_name(),
        Value::Other(LONG, _) => DataType::NUMERIC.base_name(),
        Value::Other(oid, _) => DataType::Other {
            oid: *oid,
            modifier: -1,
        }
        .base_name(),
    }
}

#[cold]
fn no_operator(operator: Operator, left: &Value, right: &Value) -> ValueError {
    ValueError::no_operator(&format!(
        "{} {} {}",
        type_name(left),
        operator.symbol(),
        type_name(right)
    ))
}

/// The value of any integer type; 0 for what the callers have excluded.
fn integer(value: &Value) -> i64 {
    match value {
        Value::SmallInt(value) => i64::from(*value),
        Value::Integer(value) => i64::from(*value),
        Value::BigInt(value) => *value,
        _ => 0,
    }
}

/// `None` within the result means that 64 bits overflow.
fn integers(operator: Operator, a: i64, b: i64) -> Result<i64, Option<ValueError>> {
    if b == 0 && matches!(operator, Operator::Divide | Operator::Remainder) {
        return Err(Some(ValueError::division_by_zero()));
    }
    match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        // The least integer has remainder 0 by -1, though its quotient overflows.
        Operator::Remainder => Some(a.wrapping_rem(b)),
    }
    .ok_or(None)
}

fn narrow<T: TryFrom<i64>>(
    result: Result<i64, Option<ValueError>>,
    type_name: &str,
) -> Result<T, ValueError> {
    match result {
        Ok(value) => T::try_from(value).map_err(|_| ValueError::out_of_range(type_name)),
        Err(error) => Err(error.unwrap_or_else(|| ValueError::out_of_range(type_name))),
    }
}

fn move_date(operator: Operator, date: i32, days: &Value) -> Result<Value, ValueError> {
    let days = integer(days);
    let days = match operator {
        Operator::Add => days,
        Operator::Subtract => -days,
        _ => {
            return Err(no_operator(
                operator,
                &Value::Date(date),
                &Value::Integer(0),
            ));
        }
    };
    // Only the negation of the least integer does not fit.
    let days = i32::try_from(days).map_err(|_| ValueError::new("22008", "date out of range"))?;
    add_days(date, days).map(Value::Date)
}

fn floats(operator: Operator, a: f64, b: f64) -> Result<f64, ValueError> {
    let result = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide if b == 0.0 && !a.is_nan() => {
            return Err(ValueError::division_by_zero());
        }
        Operator::Divide => a / b,
        Operator::Remainder => return Err(ValueError::no_operator("double precision %")),
    };
    check_float(operator, result, a, b)?;
    Ok(result)
}

/// PostgreSQL refuses infinities and zeros that the operands do not explain.
fn check_float(operator: Operator, result: f64, a: f64, b: f64) -> Result<(), ValueError> {
    if result.is_infinite() && a.is_finite() && b.is_finite() {
        return Err(float_overflow());
    }
    let underflows = match operator {
        Operator::Multiply => a != 0.0 && b != 0.0,
        Operator::Divide => a != 0.0 && b.is_finite(),
        _ => false,
    };
    if result == 0.0 && underflows {
        return Err(float_underflow());
    }
    Ok(())
}

/// 22003 in the words for floats.
#[cold]
pub(crate) fn float_overflow() -> ValueError {
    ValueError::new("22003", "value out of range: overflow")
}

/// 22003 in the words for floats.
#[cold]
pub(crate) fn float_underflow() -> ValueError {
    ValueError::new("22003", "value out of range: underflow")
}
