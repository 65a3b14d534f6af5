//! Functions of numbers. Integers have no rounding functions of their own in
//! PostgreSQL: `round(5)` is that of doubles, `round(5, 2)` that of numerics.
//! A numeric to the power of a fraction is not supported; a double is.

use super::{Function, strict, wrong_arguments};
use crate::arithmetic::{
    Operator, calculate, float_overflow, float_underflow, negate, result_type,
};
use crate::numeric::Numeric;
use crate::types::DataType;
use crate::value::Value;
use crate::value_error::ValueError;

/// The digits after the point that a numeric power has at least.
const POWER_SCALE_MIN: u8 = 16;

pub(super) fn lookup(name: &str, types: &[DataType]) -> Option<Function> {
    use DataType::{Double, Integer};
    const NUMERIC: DataType = DataType::NUMERIC;
    if !types.iter().all(DataType::is_number) {
        return None;
    }
    let is_numeric = |data_type: &DataType| matches!(data_type, DataType::Numeric { .. });
    let is_float = |data_type: &DataType| matches!(data_type, DataType::Real | DataType::Double);
    // The type in which PostgreSQL computes what it has for both.
    let common = match types {
        types if types.iter().any(is_numeric) && !types.iter().any(is_float) => NUMERIC,
        _ => Double,
    };
    match (name, types) {
        ("abs", [data_type]) => {
            let result = if is_numeric(data_type) {
                NUMERIC
            } else {
                *data_type
            };
            Some(strict(&[*data_type], result, abs))
        }
        ("mod", [left, right]) => {
            let result = result_type(Operator::Remainder, left, right)?;
            Some(strict(&[*left, *right], result, remainder))
        }
        ("round", [_]) => Some(strict(&[common], common, round)),
        ("trunc", [_]) => Some(strict(&[common], common, trunc)),
        ("ceil" | "ceiling", [_]) => Some(strict(&[common], common, ceil)),
        ("floor", [_]) => Some(strict(&[common], common, floor)),
        ("sign", [_]) => Some(strict(&[common], common, sign)),
        ("sqrt", [_]) => Some(strict(&[common], common, sqrt)),
        ("power" | "pow", [_, _]) => Some(strict(&[common, common], common, power)),
        ("round" | "trunc", [number, DataType::SmallInt | DataType::Integer])
            if !is_float(number) =>
        {
            let call = if name == "round" { round_to } else { trunc_to };
            Some(strict(&[NUMERIC, Integer], NUMERIC, call))
        }
        _ => None,
    }
}

fn abs(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Numeric(value)] => Ok(Value::Numeric(value.abs())),
        [Value::Real(value)] => Ok(Value::Real(value.abs())),
        [Value::Double(value)] => Ok(Value::Double(value.abs())),
        [value @ (Value::SmallInt(..0) | Value::Integer(..0) | Value::BigInt(..0))] => {
            negate(value)
        }
        [value] => Ok(value.clone()),
        _ => Err(wrong_arguments("abs")),
    }
}

fn remainder(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [left, right] => calculate(Operator::Remainder, left, right),
        _ => Err(wrong_arguments("mod")),
    }
}

/// Applies the one or the other to the only argument.
fn map(
    name: &str,
    arguments: &[Value],
    numeric: impl FnOnce(Numeric) -> Result<Numeric, ValueError>,
    double: impl FnOnce(f64) -> Result<f64, ValueError>,
) -> Result<Value, ValueError> {
    match arguments {
        [Value::Numeric(value)] => numeric(*value).map(Value::Numeric),
        [Value::Double(value)] => double(*value).map(Value::Double),
        _ => Err(wrong_arguments(name)),
    }
}

fn round(arguments: &[Value]) -> Result<Value, ValueError> {
    map(
        "round",
        arguments,
        |value| value.round(0),
        |value| Ok(value.round_ties_even()),
    )
}

fn trunc(arguments: &[Value]) -> Result<Value, ValueError> {
    map(
        "trunc",
        arguments,
        |value| value.trunc(0),
        |value| Ok(value.trunc()),
    )
}

fn ceil(arguments: &[Value]) -> Result<Value, ValueError> {
    map("ceil", arguments, Numeric::ceil, |value| Ok(value.ceil()))
}

fn floor(arguments: &[Value]) -> Result<Value, ValueError> {
    map(
        "floor",
        arguments,
        Numeric::floor,
        |value| Ok(value.floor()),
    )
}

fn sign(arguments: &[Value]) -> Result<Value, ValueError> {
    map(
        "sign",
        arguments,
        |value| Numeric::new(value.mantissa().signum(), 0),
        |value| {
            Ok(if value > 0.0 {
                1.0
            } else if value < 0.0 {
                -1.0
            } else if value.is_nan() {
                value
            } else {
                0.0
            })
        },
    )
}

fn sqrt(arguments: &[Value]) -> Result<Value, ValueError> {
    map("sqrt", arguments, Numeric::sqrt, |value| {
        if value < 0.0 {
            return Err(ValueError::new(
                "2201F",
                "cannot take square root of a negative number",
            ));
        }
        Ok(value.sqrt())
    })
}

fn round_to(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Numeric(value), Value::Integer(digits)] => value.round(*digits).map(Value::Numeric),
        _ => Err(wrong_arguments("round")),
    }
}

fn trunc_to(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Numeric(value), Value::Integer(digits)] => value.trunc(*digits).map(Value::Numeric),
        _ => Err(wrong_arguments("trunc")),
    }
}

fn power(arguments: &[Value]) -> Result<Value, ValueError> {
    match arguments {
        [Value::Numeric(base), Value::Numeric(exponent)] => {
            numeric_power(*base, *exponent).map(Value::Numeric)
        }
        [Value::Double(base), Value::Double(exponent)] => {
            double_power(*base, *exponent).map(Value::Double)
        }
        _ => Err(wrong_arguments("power")),
    }
}

#[cold]
fn zero_to_negative() -> ValueError {
    ValueError::new("2201F", "zero raised to a negative power is undefined")
}

#[cold]
fn negative_to_fraction() -> ValueError {
    ValueError::new(
        "2201F",
        "a negative number raised to a non-integer power yields a complex result",
    )
}

fn numeric_power(base: Numeric, exponent: Numeric) -> Result<Numeric, ValueError> {
    let whole = exponent.normal_form();
    if whole.scale() > 0 {
        return Err(if base < Numeric::ZERO {
            negative_to_fraction()
        } else {
            ValueError::new(
                "0A000",
                "numeric raised to a non-integer power is not supported",
            )
        });
    }
    if base.is_zero() && whole < Numeric::ZERO {
        return Err(zero_to_negative());
    }
    let scale = base.scale().max(POWER_SCALE_MIN);
    let mut times = whole.mantissa().unsigned_abs();
    let one = Numeric::from(1);
    let (mut result, mut square) = (one, base.normal_form());
    // By squaring: each factor is exact or has all of 38 digits.
    while times > 0 {
        if times & 1 == 1 {
            result = result.mul(square)?;
        }
        times >>= 1;
        if times > 0 {
            square = square.mul(square)?;
        }
    }
    if whole < Numeric::ZERO {
        if result.is_zero() {
            return Err(ValueError::numeric_overflow());
        }
        result = one.div(result)?;
    }
    result.round(scale.into())
}

fn double_power(base: f64, exponent: f64) -> Result<f64, ValueError> {
    if base == 0.0 && exponent < 0.0 {
        return Err(zero_to_negative());
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        return Err(negative_to_fraction());
    }
    let result = base.powf(exponent);
    if base.is_finite() && exponent.is_finite() {
        if result.is_infinite() {
            return Err(float_overflow());
        }
        if result == 0.0 && base != 0.0 {
            return Err(float_underflow());
        }
    }
    Ok(result)
}
