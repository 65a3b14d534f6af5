//! `real` and `double precision`.

mod moments;
mod parse;
mod random;
mod shortest;

use std::cmp::Ordering;

pub use self::moments::FloatMoments;
pub use self::parse::{parse_f32, parse_f64};
pub use self::random::Random;
use self::shortest::Float;
use super::integer::exactly;
use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;

/// PostgreSQL's order: what is not a number equals itself and is greater than all.
#[must_use]
#[inline]
pub fn compare_f64(a: f64, b: f64) -> Ordering {
    match a.partial_cmp(&b) {
        Some(order) => order,
        None => a.is_nan().cmp(&b.is_nan()),
    }
}

/// Appends a double as `extra_float_digits` wants it: the shortest digits that
/// are read as the same number, or a number of digits.
pub fn write_f64(n: f64, extra_digits: i32, out: &mut String) {
    write(n, extra_digits, out);
}

/// Appends a single, as [`write_f64`].
pub fn write_f32(n: f32, extra_digits: i32, out: &mut String) {
    write(n, extra_digits, out);
}

fn write<F: Float>(n: F, extra_digits: i32, out: &mut String) {
    let wide: f64 = n.into();
    if wide.is_nan() {
        out.push_str("NaN");
    } else if wide.is_infinite() {
        out.push_str(if wide > 0.0 { "Infinity" } else { "-Infinity" });
    } else if extra_digits > 0 {
        shortest::write(n, out);
    } else {
        write_general(wide, F::DIGITS + extra_digits, out);
    }
}

/// Appends a finite number with at most so many digits, as C's `%g`.
pub(crate) fn write_general(n: f64, digits: i32, out: &mut String) {
    let digits = usize::try_from(digits).unwrap_or(0).max(1);
    let text = format!("{n:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let figures: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let figures = match figures.trim_end_matches('0') {
        "" => "0",
        figures => figures,
    };
    out.extend(n.is_sign_negative().then_some('-'));
    let wide = i32::try_from(digits).unwrap_or(i32::MAX);
    shortest::place(figures, exponent, wide, out);
}

fn input_float4(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    parse_f32(text).map(Datum::Float4)
}

fn input_float8(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    parse_f64(text).map(Datum::Float8)
}

fn output_float4(call: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    write(value.as_float4(), call.settings().extra_float_digits, out);
    Ok(())
}

fn output_float8(call: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    write(value.as_float8(), call.settings().extra_float_digits, out);
    Ok(())
}

/// The types of this file.
pub const TYPES: &[Type] = &[
    Type {
        length: 4,
        category: b'N',
        array: ids::FLOAT4_ARRAY,
        input: input_float4,
        output: output_float4,
        receive: |_, bytes, _| Ok(Datum::Float4(f32::from_be_bytes(exactly(bytes)?))),
        send: |_, value, out| {
            out.extend_from_slice(&value.as_float4().to_be_bytes());
            Ok(())
        },
        compare: Some(|a, b| compare_f64(a.as_float4().into(), b.as_float4().into())),
        ..Type::new(ids::FLOAT4, "float4", "real")
    },
    Type {
        length: 8,
        category: b'N',
        preferred: true,
        array: ids::FLOAT8_ARRAY,
        input: input_float8,
        output: output_float8,
        receive: |_, bytes, _| Ok(Datum::Float8(f64::from_be_bytes(exactly(bytes)?))),
        send: |_, value, out| {
            out.extend_from_slice(&value.as_float8().to_be_bytes());
            Ok(())
        },
        compare: Some(|a, b| compare_f64(a.as_float8(), b.as_float8())),
        ..Type::new(ids::FLOAT8, "float8", "double precision")
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(n: f64, extra_digits: i32) -> String {
        let mut out = String::new();
        write_f64(n, extra_digits, &mut out);
        out
    }

    #[test]
    fn the_shortest_digits_are_within_the_bounds() {
        assert_eq!(shown(1e23, 1), "9.999999999999999e+22");
        assert_eq!(shown(9_007_199_254_740_992.0, 1), "9.007199254740992e+15");
        assert_eq!(shown(1e15, 1), "1e+15");
        assert_eq!(shown(123_456_789_012_345.0, 1), "123456789012345");
        assert_eq!(shown(0.0001, 1), "0.0001");
        assert_eq!(shown(0.00001, 1), "1e-05");
        assert_eq!(shown(-0.0, 1), "-0");
        assert_eq!(shown(5e-324, 1), "5e-324");
        assert_eq!(shown(0.1 + 0.2, 0), "0.3");
        assert_eq!(shown(1.0 / 3.0, -12), "0.333");
        assert_eq!(shown(2.5, -14), "2");
    }
}
