//! The text and the binary form of `numeric`.

use super::var::Var;
use super::{Numeric, SCALE_MAX, fit, is_space, limbs};
use crate::error::{QueryError, Result};

/// What a text began with.
#[derive(Debug)]
pub enum Parsed {
    /// A number without digits.
    Special(Numeric),
    /// Digits.
    Finite(Var),
}

/// Why a text is no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// It does not begin with one.
    Invalid,
    /// Its exponent is beyond all.
    Overflow,
}

/// The longest exponent that is computed with.
const EXPONENT_MAX: i64 = 1 << 30;

/// Reads a number at the beginning of a text, and gives where it ends.
///
/// # Errors
/// What the text is instead.
pub fn parse_prefix(text: &[u8], start: usize) -> Result<(Parsed, usize), Failure> {
    let rest = &text[start.min(text.len())..];
    for (name, value) in [
        ("nan", Numeric::NaN),
        ("infinity", Numeric::Infinity),
        ("+infinity", Numeric::Infinity),
        ("-infinity", Numeric::NegativeInfinity),
        ("inf", Numeric::Infinity),
        ("+inf", Numeric::Infinity),
        ("-inf", Numeric::NegativeInfinity),
    ] {
        if rest.len() >= name.len() && rest[..name.len()].eq_ignore_ascii_case(name.as_bytes()) {
            return Ok((Parsed::Special(value), start + name.len()));
        }
    }
    let mut at = 0;
    let next = |at: usize| rest.get(at).copied().unwrap_or(0);
    let negative = next(at) == b'-';
    if matches!(next(at), b'+' | b'-') {
        at += 1;
    }
    let first = at;
    let mut point = None;
    if next(at) == b'.' {
        point = Some(at);
        at += 1;
    }
    if !next(at).is_ascii_digit() {
        return Err(Failure::Invalid);
    }
    loop {
        match next(at) {
            b'0'..=b'9' => at += 1,
            b'.' if point.is_some() => return Err(Failure::Invalid),
            b'.' => {
                point = Some(at);
                at += 1;
            }
            _ => break,
        }
    }
    let digits = &rest[first..at];
    let count = digits.len() - usize::from(point.is_some());
    let mut scale = point.map_or(0, |point| (at - point - 1) as i64);
    if matches!(next(at), b'e' | b'E') {
        at += 1;
        while is_space(next(at)) {
            at += 1;
        }
        let down = next(at) == b'-';
        if matches!(next(at), b'+' | b'-') {
            at += 1;
        }
        if !next(at).is_ascii_digit() {
            return Err(Failure::Invalid);
        }
        let mut exponent = 0i64;
        while next(at).is_ascii_digit() {
            exponent = (exponent * 10 + i64::from(next(at) - b'0')).min(EXPONENT_MAX);
            at += 1;
        }
        if exponent >= EXPONENT_MAX - 1 {
            return Err(Failure::Overflow);
        }
        scale += if down { exponent } else { -exponent };
    }
    // A short number is read in one word.
    let limbs = if count <= 18 {
        let n = digits
            .iter()
            .filter(|byte| **byte != b'.')
            .fold(0u64, |n, byte| n * 10 + u64::from(byte - b'0'));
        limbs::from_u128(u128::from(n))
    } else {
        let values = digits
            .iter()
            .filter(|byte| **byte != b'.')
            .map(|byte| byte - b'0');
        limbs::from_digits(values, count)
    };
    let scale = i32::try_from(scale).unwrap_or(i32::MAX);
    let scale = if limbs.is_empty() {
        scale.max(0)
    } else {
        scale
    };
    Ok((Parsed::Finite(Var::new(negative, limbs, scale)), start + at))
}

/// The text form of a number with a scale of at least zero.
pub(super) fn show(var: &Var) -> String {
    let digits = limbs::to_digits(&var.limbs);
    let scale = var.scale.max(0) as usize;
    let mut text = String::with_capacity(digits.len().max(scale) + 3);
    text.extend(var.negative.then_some('-'));
    let whole = digits.len().saturating_sub(scale);
    if whole == 0 {
        text.push('0');
    }
    text.extend(digits[..whole].iter().map(|digit| char::from(*digit)));
    if scale > 0 {
        text.push('.');
        text.extend(std::iter::repeat_n('0', scale - (digits.len() - whole)));
        text.extend(digits[whole..].iter().map(|digit| char::from(*digit)));
    }
    text
}

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xc000;
const INFINITY: u16 = 0xd000;
const NEGATIVE_INFINITY: u16 = 0xf000;

/// Appends the binary form: digits in base ten thousand.
pub(super) fn send(value: &Numeric, out: &mut Vec<u8>) {
    let special = match value {
        Numeric::NaN => Some(NAN),
        Numeric::Infinity => Some(INFINITY),
        Numeric::NegativeInfinity => Some(NEGATIVE_INFINITY),
        _ => None,
    };
    let Some(var) = value.var() else {
        // The infinities have a bit of their own within what is the scale of others.
        let scale = if value.is_infinite() { 32 } else { 0 };
        for field in [0, 0, special.unwrap_or(NAN), scale] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        return;
    };
    let (count, weight) = if var.is_zero() {
        (0, 0)
    } else {
        (var.head(1).1, var.weight())
    };
    // All digits as a whole number of digits in base ten thousand.
    let last = (weight - count + 1) * 4;
    let places = last + var.scale;
    let shifted = if places >= 0 {
        limbs::shift_right(&var.limbs, places as usize)
    } else {
        limbs::shift_left(&var.limbs, places.unsigned_abs() as usize)
    };
    let digits = limbs::to_digits(&shifted);
    let sign = if var.negative { NEGATIVE } else { 0 };
    for field in [count as u16, weight as u16, sign, var.scale as u16] {
        out.extend_from_slice(&field.to_be_bytes());
    }
    let first = digits.len() % 4;
    let number = |digits: &[u8]| {
        digits
            .iter()
            .fold(0u16, |n, digit| n * 10 + u16::from(digit - b'0'))
    };
    if first > 0 {
        out.extend_from_slice(&number(&digits[..first]).to_be_bytes());
    }
    for four in digits[first..].chunks_exact(4) {
        out.extend_from_slice(&number(four).to_be_bytes());
    }
}

/// Reads the binary form.
pub(super) fn receive(bytes: &[u8], modifier: i32) -> Result<Numeric> {
    let short = || QueryError::new("08P01", "insufficient data left in message");
    let invalid = |what: &str| {
        QueryError::new(
            "22P03",
            format!("invalid {what} in external \"numeric\" value"),
        )
    };
    let field = |at: usize| -> Result<u16> {
        let two = bytes.get(at * 2..at * 2 + 2).ok_or_else(short)?;
        Ok(u16::from_be_bytes([two[0], two[1]]))
    };
    let (count, weight) = (usize::from(field(0)?), i32::from(field(1)? as i16));
    let sign = field(2)?;
    let special = match sign {
        0 | NEGATIVE => None,
        NAN => Some(Numeric::NaN),
        INFINITY => Some(Numeric::Infinity),
        NEGATIVE_INFINITY => Some(Numeric::NegativeInfinity),
        _ => return Err(invalid("sign")),
    };
    let scale = i32::from(field(3)?);
    if scale > SCALE_MAX {
        return Err(invalid("scale"));
    }
    let mut digits = Vec::with_capacity(count * 4);
    for at in 0..count {
        let digit = field(4 + at)?;
        if digit >= 10_000 {
            return Err(invalid("digit"));
        }
        digits.extend([1000, 100, 10, 1].map(|power| (digit / power % 10) as u8));
    }
    if bytes.len() > 8 + count * 2 {
        return Err(QueryError::new(
            "22P03",
            "incorrect binary data format in function argument",
        ));
    }
    if let Some(value) = special {
        return value.fit(modifier);
    }
    let limbs = limbs::from_digits(digits.iter().copied(), digits.len());
    let own = (i32::try_from(count).unwrap_or(i32::MAX) - 1 - weight) * 4;
    let var = if limbs.is_empty() {
        Var::zero(scale)
    } else {
        Var::new(sign == NEGATIVE, limbs, own).truncate(scale)
    };
    Numeric::finish(fit(var, modifier)?)
}
