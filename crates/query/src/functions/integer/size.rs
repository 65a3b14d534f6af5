//! Sizes in bytes as people write them.

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::numeric::{Numeric, is_space};

/// A unit: its name, the least size that is written in the next one, whether it is rounded by
/// halves, and the power of two of its bytes.
struct Unit {
    name: &'static str,
    limit: i64,
    round: bool,
    bits: u32,
}

const fn unit(name: &'static str, limit: i64, round: bool, bits: u32) -> Unit {
    Unit {
        name,
        limit,
        round,
        bits,
    }
}

const UNITS: [Unit; 6] = [
    unit("bytes", 10 * 1024, false, 0),
    unit("kB", 20 * 1024 - 1, true, 10),
    unit("MB", 20 * 1024 - 1, true, 20),
    unit("GB", 20 * 1024 - 1, true, 30),
    unit("TB", 20 * 1024 - 1, true, 40),
    unit("PB", 20 * 1024 - 1, true, 50),
];

/// The number that a size is divided by for the next unit; a unit that is rounded keeps one bit more.
fn divisor(from: &Unit, to: &Unit) -> i64 {
    1 << (to.bits - from.bits - u32::from(to.round) + u32::from(from.round))
}

pub(super) fn pg_size_pretty(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let mut size = a[0].as_int8();
    for (at, unit) in UNITS.iter().enumerate() {
        match UNITS.get(at + 1) {
            Some(next) if size.unsigned_abs() >= unit.limit.unsigned_abs() => {
                size /= divisor(unit, next);
            }
            _ => {
                if unit.round {
                    size = if size < 0 { size - 1 } else { size + 1 } / 2;
                }
                return Ok(Datum::text(format!("{size} {}", unit.name)));
            }
        }
    }
    Err(QueryError::internal("a size has no unit"))
}

pub(super) fn pg_size_pretty_numeric(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let mut size = a[0].as_numeric().clone();
    for (at, unit) in UNITS.iter().enumerate() {
        match UNITS.get(at + 1) {
            Some(next) if size.abs() >= Numeric::from_i64(unit.limit) => {
                size = size.div_trunc(&Numeric::from_i64(divisor(unit, next)))?;
            }
            _ => {
                if unit.round {
                    let one = Numeric::ONE;
                    size = if size >= Numeric::ZERO {
                        size.add(&one)?
                    } else {
                        size.sub(&one)?
                    };
                    size = size.div_trunc(&Numeric::from_i64(2))?;
                }
                return Ok(Datum::text(format!("{size} {}", unit.name)));
            }
        }
    }
    Err(QueryError::internal("a size has no unit"))
}

pub(super) fn pg_size_bytes(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let text = a[0].as_text();
    let bytes = text.as_bytes();
    let next = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let start = bytes.iter().take_while(|byte| is_space(**byte)).count();
    let mut end = start + usize::from(matches!(next(start), b'+' | b'-'));
    let mut digits = false;
    while next(end).is_ascii_digit() {
        digits = true;
        end += 1;
    }
    if next(end) == b'.' {
        end += 1;
        while next(end).is_ascii_digit() {
            digits = true;
            end += 1;
        }
    }
    let invalid = || QueryError::invalid_parameter(format!("invalid size: \"{text}\""));
    if !digits {
        return Err(invalid());
    }
    if matches!(next(end), b'e' | b'E') {
        let mut at = end + 1;
        while is_space(next(at)) {
            at += 1;
        }
        at += usize::from(matches!(next(at), b'+' | b'-'));
        if next(at).is_ascii_digit() {
            while next(at).is_ascii_digit() {
                at += 1;
            }
            end = at;
        }
    }
    let mut number = Numeric::parse(&text[start..end])?;
    let is_blank = |c: char| c.is_ascii() && is_space(c as u8);
    let name = text[end..].trim_matches(is_blank);
    if !name.is_empty() {
        let unit = UNITS
            .iter()
            .find(|unit| unit.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| {
                invalid()
                    .with_detail(format!("Invalid size unit: \"{name}\"."))
                    .with_hint(
                        "Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".",
                    )
            })?;
        if unit.bits > 0 {
            number = Numeric::from_i64(1 << unit.bits).mul(&number)?;
        }
    }
    match number.to_i64() {
        Some(n) => Ok(Datum::Int8(n)),
        None => Err(QueryError::out_of_range("bigint")),
    }
}
