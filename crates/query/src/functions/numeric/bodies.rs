//! The bodies: what is not computed in the type itself.

use std::cmp::Ordering;

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::numeric::Numeric;

macro_rules! comparisons {
    ($($name:ident $test:ident;)*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                Ok(Datum::Bool(a[0].as_numeric().cmp(a[1].as_numeric()).$test()))
            }
        )*
    };
}

comparisons! {
    numeric_eq is_eq;
    numeric_ne is_ne;
    numeric_lt is_lt;
    numeric_le is_le;
    numeric_gt is_gt;
    numeric_ge is_ge;
}

macro_rules! binary {
    ($($name:ident $method:ident;)*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                a[0].as_numeric().$method(a[1].as_numeric()).map(Datum::Numeric)
            }
        )*
    };
}

binary! {
    numeric_add add;
    numeric_sub sub;
    numeric_mul mul;
    numeric_div div;
    numeric_div_trunc div_trunc;
    numeric_mod rem;
    numeric_power power;
    numeric_log log;
}

macro_rules! unary {
    ($($name:ident $method:ident;)*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                a[0].as_numeric().$method().map(Datum::Numeric)
            }
        )*
    };
}

unary! {
    numeric_sqrt sqrt;
    numeric_exp exp;
    numeric_ln ln;
    numeric_ceil ceil;
    numeric_floor floor;
}

pub(super) fn numeric_log10(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Numeric::from_i64(10)
        .log(a[0].as_numeric())
        .map(Datum::Numeric)
}

pub(super) fn numeric_abs(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Numeric(a[0].as_numeric().abs()))
}

pub(super) fn numeric_uminus(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Numeric(a[0].as_numeric().negate()))
}

pub(super) fn numeric_uplus(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(a[0].clone())
}

pub(super) fn numeric_inc(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    a[0].as_numeric().add(&Numeric::ONE).map(Datum::Numeric)
}

pub(super) fn numeric_cmp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(a[0].as_numeric().cmp(a[1].as_numeric()) as i32))
}

pub(super) fn numeric_larger(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let greater = a[0].as_numeric().cmp(a[1].as_numeric()) == Ordering::Greater;
    Ok(a[usize::from(!greater)].clone())
}

pub(super) fn numeric_smaller(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let less = a[0].as_numeric().cmp(a[1].as_numeric()) == Ordering::Less;
    Ok(a[usize::from(!less)].clone())
}

pub(super) fn numeric_sign(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let number = a[0].as_numeric();
    Ok(Datum::Numeric(if number.is_nan() {
        Numeric::NaN
    } else {
        Numeric::from_i64(number.sign().into())
    }))
}

pub(super) fn numeric_round(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    a[0].as_numeric().round(a[1].as_int4()).map(Datum::Numeric)
}

pub(super) fn numeric_round0(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    a[0].as_numeric().round(0).map(Datum::Numeric)
}

pub(super) fn numeric_trunc(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    a[0].as_numeric().trunc(a[1].as_int4()).map(Datum::Numeric)
}

pub(super) fn numeric_trunc0(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    a[0].as_numeric().trunc(0).map(Datum::Numeric)
}

/// A scale, or NULL of what has no digits.
fn scale_of(number: &Numeric, scale: u16) -> Datum {
    if number.is_finite() {
        Datum::Int4(scale.into())
    } else {
        Datum::Null
    }
}

pub(super) fn numeric_scale(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let number = a[0].as_numeric();
    Ok(scale_of(number, number.scale()))
}

pub(super) fn numeric_min_scale(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let number = a[0].as_numeric();
    Ok(scale_of(number, number.min_scale()))
}

pub(super) fn numeric_trim_scale(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Numeric(a[0].as_numeric().trim_scale()))
}

pub(super) fn numeric(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    a[0].as_numeric().fit(a[1].as_int4()).map(Datum::Numeric)
}

pub(super) fn int2_numeric(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Numeric(Numeric::from_i64(a[0].as_int2().into())))
}

pub(super) fn int4_numeric(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Numeric(Numeric::from_i64(a[0].as_int4().into())))
}

pub(super) fn int8_numeric(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Numeric(Numeric::from_i64(a[0].as_int8())))
}

pub(super) fn float4_numeric(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Numeric(Numeric::from_f32(a[0].as_float4())))
}

pub(super) fn float8_numeric(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Numeric(Numeric::from_f64(a[0].as_float8())))
}

/// The nearest whole number, if it fits.
fn to_whole<T: TryFrom<i128>>(number: &Numeric, type_name: &str) -> Result<T> {
    if !number.is_finite() {
        let what = if number.is_nan() { "NaN" } else { "infinity" };
        return Err(QueryError::unsupported(
            format!("cannot convert {what} to {type_name}"),
            "Leave such values out, for example with nullif.",
        ));
    }
    number
        .to_i128()
        .and_then(|n| T::try_from(n).ok())
        .ok_or_else(|| QueryError::out_of_range(type_name))
}

pub(super) fn numeric_int2(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    to_whole(a[0].as_numeric(), "smallint").map(Datum::Int2)
}

pub(super) fn numeric_int4(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    to_whole(a[0].as_numeric(), "integer").map(Datum::Int4)
}

pub(super) fn numeric_int8(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    to_whole(a[0].as_numeric(), "bigint").map(Datum::Int8)
}

/// 22003 of a number beyond a floating type.
fn beyond(number: &Numeric, type_name: &str) -> QueryError {
    QueryError::new(
        "22003",
        format!("\"{number}\" is out of range for type {type_name}"),
    )
}

pub(super) fn numeric_float8(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let number = a[0].as_numeric();
    let n = number.to_f64();
    if number.is_finite() && (n.is_infinite() || (n == 0.0 && number.sign() != 0)) {
        return Err(beyond(number, "double precision"));
    }
    Ok(Datum::Float8(n))
}

pub(super) fn numeric_float4(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let number = a[0].as_numeric();
    let n = number.to_f32();
    if number.is_finite() && (n.is_infinite() || (n == 0.0 && number.sign() != 0)) {
        return Err(beyond(number, "real"));
    }
    Ok(Datum::Float4(n))
}

fn bucket_error(message: &str) -> QueryError {
    QueryError::new("2201G", message)
}

pub(super) fn width_bucket_numeric(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (operand, first, second) = (a[0].as_numeric(), a[1].as_numeric(), a[2].as_numeric());
    let count = a[3].as_int4();
    if count <= 0 {
        return Err(bucket_error("count must be greater than zero"));
    }
    if operand.is_nan() || first.is_nan() || second.is_nan() {
        return Err(bucket_error(
            "operand, lower bound, and upper bound cannot be NaN",
        ));
    }
    if first.is_infinite() || second.is_infinite() {
        return Err(bucket_error("lower and upper bounds must be finite"));
    }
    let (before, after) = match first.cmp(second) {
        Ordering::Equal => return Err(bucket_error("lower bound cannot equal upper bound")),
        Ordering::Less => (operand < first, operand >= second),
        Ordering::Greater => (operand > first, operand <= second),
    };
    let bucket = if before {
        Numeric::ZERO
    } else if after {
        Numeric::from_i64(i64::from(count) + 1)
    } else {
        // Both differences have the same sign.
        let part = operand.sub(first)?.mul(&Numeric::from_i64(count.into()))?;
        part.div(&second.sub(first)?)?.add(&Numeric::ONE)?.floor()?
    };
    to_whole(&bucket, "integer").map(Datum::Int4)
}

/// Whether a value lies within a distance of a base: what the frames of windows ask.
pub(super) fn in_range_numeric_numeric(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (value, base, offset) = (a[0].as_numeric(), a[1].as_numeric(), a[2].as_numeric());
    let (below, less) = (a[3].as_bool(), a[4].as_bool());
    if offset.is_nan() || offset.sign() < 0 {
        return Err(QueryError::new(
            "22013",
            "invalid preceding or following size in window function",
        ));
    }
    if value.is_nan() {
        return Ok(Datum::Bool(base.is_nan() || !less));
    }
    if base.is_nan() {
        return Ok(Datum::Bool(less));
    }
    let bound = if below {
        base.sub(offset)?
    } else {
        base.add(offset)?
    };
    // An infinity less itself is near all.
    Ok(Datum::Bool(
        bound.is_nan()
            || if less {
                *value <= bound
            } else {
                *value >= bound
            },
    ))
}
