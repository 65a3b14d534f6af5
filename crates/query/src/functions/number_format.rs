//! `to_char` and `to_number`: patterns of numbers.

mod pattern;
mod read;
mod write;

use self::pattern::Pattern;
use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::ids;
use crate::types::numeric::Numeric;

/// The functions of this file.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(1772, "to_char", &[ids::NUMERIC, ids::TEXT], ids::TEXT, numeric_to_char).stable(),
    Function::row(1773, "to_char", &[ids::INT4, ids::TEXT], ids::TEXT, int4_to_char).stable(),
    Function::row(1774, "to_char", &[ids::INT8, ids::TEXT], ids::TEXT, int8_to_char).stable(),
    Function::row(1775, "to_char", &[ids::FLOAT4, ids::TEXT], ids::TEXT, float4_to_char).stable(),
    Function::row(1776, "to_char", &[ids::FLOAT8, ids::TEXT], ids::TEXT, float8_to_char).stable(),
    Function::row(1777, "to_number", &[ids::TEXT, ids::TEXT], ids::NUMERIC, numeric_to_number).stable(),
];

/// The bytes that one item of a pattern can write at most.
const ITEM_BYTES: usize = 8;

/// A number ready to be written: its digits, without a sign unless it is complete.
struct Digits {
    text: String,
    /// How many places of the pattern stand before the first digit.
    spaces: i32,
    negative: bool,
}

impl Digits {
    /// What is written as it is: Roman numerals and numbers with an exponent.
    fn complete(text: String) -> Self {
        Self {
            text,
            spaces: 0,
            negative: false,
        }
    }

    /// Digits within the places of a pattern; too many give a row of `#`.
    fn placed(text: &str, pattern: &Pattern) -> Self {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let before = digits.find('.').unwrap_or(digits.len());
        let before = i32::try_from(before).unwrap_or(i32::MAX);
        let text = if before > pattern.pre {
            format!("{}.{}", hashes(pattern.pre), hashes(pattern.post))
        } else {
            digits.to_owned()
        };
        Self {
            text,
            spaces: (pattern.pre - before).max(0),
            negative,
        }
    }
}

fn hashes(count: i32) -> String {
    "#".repeat(usize::try_from(count).unwrap_or(0))
}

/// What stands for a number without digits where an exponent is wanted.
fn without_exponent(pattern: &Pattern) -> String {
    format!(" {}.{}", hashes(pattern.pre), hashes(pattern.post + 4))
}

/// A float with an exponent, as C's `%+.*e` but for the plus, which is a space.
fn scientific(n: f64, pattern: &Pattern) -> String {
    if !n.is_finite() {
        return without_exponent(pattern);
    }
    let digits = usize::try_from(pattern.post).unwrap_or(0);
    let text = format!("{n:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if n.is_sign_negative() { "" } else { " " };
    let down = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{mantissa}e{down}{:02}", exponent.abs())
}

/// A whole number's digits with zeros after the point.
fn with_zeros(n: i64, pattern: &Pattern) -> String {
    match usize::try_from(pattern.post) {
        Ok(zeros) if zeros > 0 => format!("{n}.{}", "0".repeat(zeros)),
        _ => n.to_string(),
    }
}

/// A number in Roman numerals.
fn roman(n: Option<i32>) -> String {
    const ONES: [&str; 10] = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"];
    const TENS: [&str; 10] = ["", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"];
    const HUNDREDS: [&str; 10] = ["", "C", "CC", "CCC", "CD", "D", "DC", "DCC", "DCCC", "CM"];
    match n.and_then(|n| usize::try_from(n).ok()) {
        Some(n @ 1..=3999) => format!(
            "{}{}{}{}",
            "M".repeat(n / 1000),
            HUNDREDS[n / 100 % 10],
            TENS[n / 10 % 10],
            ONES[n % 10]
        ),
        _ => "#".repeat(15),
    }
}

/// Reads the pattern, asks for the number's digits and writes them.
fn shown(
    call: &Call<'_>,
    pattern: &Datum,
    digits: impl FnOnce(&mut Pattern) -> Result<Digits>,
) -> Result<Datum> {
    let text = pattern.as_text();
    if text.is_empty() {
        return Ok(Datum::text(""));
    }
    call.room(text.len().saturating_mul(ITEM_BYTES))?;
    let mut pattern = Pattern::parse(text)?;
    let digits = digits(&mut pattern)?;
    write::write(pattern, &digits).map(Datum::text)
}

fn int4_to_char(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let n = a[0].as_int4();
    shown(call, &a[1], |pattern| {
        if pattern.roman {
            return Ok(Digits::complete(roman(Some(n))));
        }
        if pattern.exponent {
            return Ok(Digits::complete(scientific(n.into(), pattern)));
        }
        let mut shown = n;
        if pattern.shift {
            // A power beyond the type is its least number, and the product is cut, as the
            // processor does it.
            let power = 10f64.powf(pattern.multi.into());
            let power = if power < 2_147_483_648.0 {
                power as i32
            } else {
                i32::MIN
            };
            shown = n.wrapping_mul(power);
            pattern.pre += pattern.multi;
        }
        Ok(Digits::placed(&with_zeros(shown.into(), pattern), pattern))
    })
}

fn int8_to_char(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let n = a[0].as_int8();
    shown(call, &a[1], |pattern| {
        if pattern.roman {
            let small = i32::try_from(n).map_err(|_| QueryError::out_of_range("integer"))?;
            return Ok(Digits::complete(roman(Some(small))));
        }
        if pattern.exponent {
            return numeric_scientific(&Numeric::from_i64(n), pattern);
        }
        let mut shown = n;
        if pattern.shift {
            let power = u32::try_from(pattern.multi)
                .ok()
                .and_then(|multi| 10i64.checked_pow(multi));
            shown = power
                .and_then(|power| n.checked_mul(power))
                .ok_or_else(|| QueryError::out_of_range("bigint"))?;
            pattern.pre += pattern.multi;
        }
        Ok(Digits::placed(&with_zeros(shown, pattern), pattern))
    })
}

fn numeric_scientific(n: &Numeric, pattern: &Pattern) -> Result<Digits> {
    if !n.is_finite() {
        return Ok(Digits::complete(without_exponent(pattern)));
    }
    let text = n.to_scientific(pattern.post)?;
    Ok(Digits::complete(if text.starts_with('-') {
        text
    } else {
        format!(" {text}")
    }))
}

fn numeric_to_char(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let n = a[0].as_numeric();
    shown(call, &a[1], |pattern| {
        if pattern.roman {
            if !n.is_finite() {
                let what = if n.is_nan() { "NaN" } else { "infinity" };
                return Err(QueryError::unsupported(
                    format!("cannot convert {what} to integer"),
                    "Leave such values out, for example with nullif.",
                ));
            }
            let small = n.to_i64().and_then(|n| i32::try_from(n).ok());
            let small = small.ok_or_else(|| QueryError::out_of_range("integer"))?;
            return Ok(Digits::complete(roman(Some(small))));
        }
        if pattern.exponent {
            return numeric_scientific(n, pattern);
        }
        let mut shown = n.clone();
        if pattern.shift {
            let power = Numeric::from_i64(10).power(&Numeric::from_i64(pattern.multi.into()))?;
            shown = n.mul(&power)?;
            pattern.pre += pattern.multi;
        }
        let text = shown.round(pattern.post)?.to_string();
        Ok(Digits::placed(&text, pattern))
    })
}

/// A float within its digits: those of `value`, which is the number to show, and `most` at most.
fn float(value: f64, most: i32, pattern: &mut Pattern) -> Digits {
    let show = |digits: i32| {
        let digits = usize::try_from(digits).unwrap_or(0);
        match value {
            n if n.is_nan() => "NaN".to_owned(),
            n if n.is_infinite() && n > 0.0 => "Infinity".to_owned(),
            n if n.is_infinite() => "-Infinity".to_owned(),
            n => format!("{n:.digits$}"),
        }
    };
    let before = i32::try_from(show(0).trim_start_matches('-').len()).unwrap_or(i32::MAX);
    if before >= most {
        pattern.post = 0;
    } else if pattern.post > most - before {
        pattern.post = most - before;
    }
    Digits::placed(&show(pattern.post), pattern)
}

fn float_to_char(
    call: &Call<'_>,
    n: f64,
    most: i32,
    format: &Datum,
    shifted: impl Fn(f64) -> f64,
) -> Result<Datum> {
    shown(call, format, |pattern| {
        if pattern.roman {
            let whole = n.round_ties_even();
            let small = (whole.abs() < 1e9).then_some(whole as i32);
            return Ok(Digits::complete(roman(small)));
        }
        if pattern.exponent {
            return Ok(Digits::complete(scientific(n, pattern)));
        }
        let mut value = n;
        if pattern.shift {
            value = shifted(10f64.powf(pattern.multi.into()));
            pattern.pre += pattern.multi;
        }
        Ok(float(value, most, pattern))
    })
}

fn float4_to_char(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let n = a[0].as_float4();
    float_to_char(call, n.into(), 6, &a[1], |power| (n * power as f32).into())
}

fn float8_to_char(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let n = a[0].as_float8();
    float_to_char(call, n, 15, &a[1], |power| n * power)
}

fn numeric_to_number(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let format = a[1].as_text();
    if format.is_empty() {
        return Ok(Datum::Null);
    }
    call.room(format.len().saturating_mul(ITEM_BYTES))?;
    let mut pattern = Pattern::parse(format)?;
    let (text, scale) = read::read(&mut pattern, a[0].as_text())?;
    let precision = pattern.pre.wrapping_add(pattern.multi).wrapping_add(scale);
    let modifier = (precision.wrapping_shl(16) | scale).wrapping_add(4);
    let number = Numeric::parse_with(&text, modifier)?;
    if !pattern.shift {
        return Ok(Datum::Numeric(number));
    }
    let power = Numeric::from_i64(10).power(&Numeric::from_i64((-pattern.multi).into()))?;
    number.mul(&power).map(Datum::Numeric)
}
