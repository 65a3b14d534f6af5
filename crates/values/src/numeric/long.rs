//! Numerics that the small form does not hold: more than 38 digits, NaN, the infinities.
//! Their bytes are on devices and in keys, which never change:
//!
//! | bytes | what |
//! |---|---|
//! | the key | orders and equals as the value does, also beside the keys of small ones |
//! | 2 | digits shown after the point, the higher byte first |
//!
//! A key is the place of the first digit, then the digits two to a byte (1 to 100) up to the
//! last that is not zero, then 0. All bits turned for a negative one. The place is a byte, or a
//! byte and four more where it is beyond what the small form has. Arithmetic over such numbers
//! is another floor's (`other_type::OtherForms`).

use std::fmt::Write;

use super::Numeric;
use crate::types::{DataType, NUMERIC_DIGITS_MAX};
use crate::value::{Value, ValueRef};

/// The number of the type in `pg_type`: by it `Value::Other` is a long numeric.
pub const LONG: u32 = DataType::NUMERIC.oid();

/// The first byte of a key: zero.
const ZERO: u8 = 0x80;
/// Of a positive number with no digit before the point.
const POSITIVE: i32 = 0xC0;
/// Of a positive number whose first digit is further behind the point than the small form has.
const TINY: u8 = 0x90;
/// Of a positive number whose first digit is further before it.
const HUGE: u8 = 0xF0;
const INFINITY: u8 = 0xFE;
const NAN: u8 = 0xFF;
/// The digits shown after the point, at the end.
const SCALE_BYTES: usize = 2;

/// Not a number, as its bytes.
pub const NAN_BYTES: &[u8] = &[NAN, 0, 0];
/// The number beyond all.
pub const INFINITY_BYTES: &[u8] = &[INFINITY, 0, 0];
/// The number before all.
pub const NEGATIVE_INFINITY_BYTES: &[u8] = &[!INFINITY, 0, 0];

/// The bytes by which a long numeric is ordered and compared.
#[must_use]
pub fn key_of(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().saturating_sub(SCALE_BYTES)]
}

/// How many of these bytes are the key of a number, whatever follows it; `None` where it does not
/// end.
#[must_use]
pub fn key_length(bytes: &[u8]) -> Option<usize> {
    let first = *bytes.first()?;
    let (magnitude, end) = match first < ZERO {
        true => (!first, u8::MAX),
        false => (first, 0),
    };
    let head = match magnitude {
        ZERO | INFINITY | NAN => return Some(1),
        TINY | HUGE => 5,
        _ => 1,
    };
    let pairs = bytes.get(head..)?.iter().position(|byte| *byte == end)?;
    Some(head + pairs + 1)
}

/// Appends the key of a number that has `digits` (0 to 9, the first not 0), of which
/// `before_point` stand before the point; no digits are zero.
fn push_key(negative: bool, digits: &[u8], before_point: i32, out: &mut Vec<u8>) {
    let significant = digits
        .iter()
        .rposition(|digit| *digit != 0)
        .map_or(0, |at| at + 1);
    if significant == 0 {
        return out.push(ZERO);
    }
    let begin = out.len();
    let small = -i32::from(NUMERIC_DIGITS_MAX)..=i32::from(NUMERIC_DIGITS_MAX);
    if small.contains(&before_point) {
        out.push((POSITIVE + before_point) as u8);
    } else {
        out.push(if before_point < 0 { TINY } else { HUGE });
        out.extend((before_point ^ i32::MIN).to_be_bytes());
    }
    for pair in digits[..significant].chunks(2) {
        let second = pair.get(1).copied().unwrap_or(0);
        out.push(pair[0] * 10 + second + 1);
    }
    out.push(0);
    if negative {
        out[begin..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Appends the key of a small numeric.
pub fn push_small_key(number: Numeric, out: &mut Vec<u8>) {
    // 38 digits, the first at the end.
    let mut digits = [0; NUMERIC_DIGITS_MAX as usize + 1];
    let mut rest = number.mantissa().unsigned_abs();
    let mut start = digits.len();
    while rest > 0 {
        // 64 bits at a time: dividing 128 is several times slower.
        const CHUNK: u128 = 10_000_000_000_000_000_000;
        let mut chunk = (rest % CHUNK) as u64;
        rest /= CHUNK;
        let stop = if rest > 0 { start - 19 } else { 0 };
        while start > stop && (chunk > 0 || rest > 0) {
            start -= 1;
            digits[start] = (chunk % 10) as u8;
            chunk /= 10;
        }
    }
    let digits = &digits[start..];
    let before_point = digits.len() as i32 - i32::from(number.scale());
    push_key(number.mantissa() < 0, digits, before_point, out);
}

/// The bytes of a number by its text as PostgreSQL shows it, without an exponent; `None` for
/// another text.
#[must_use]
pub fn from_text(text: &str) -> Option<Vec<u8>> {
    match text {
        "NaN" => return Some(NAN_BYTES.to_vec()),
        "Infinity" => return Some(INFINITY_BYTES.to_vec()),
        "-Infinity" => return Some(NEGATIVE_INFINITY_BYTES.to_vec()),
        _ => {}
    }
    let unsigned = text.strip_prefix('-');
    let negative = unsigned.is_some();
    let unsigned = unsigned.unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut digits = Vec::with_capacity(unsigned.len());
    for byte in whole.bytes().chain(fraction.bytes()) {
        digits.push(byte.is_ascii_digit().then(|| byte - b'0')?);
    }
    let leading = digits.iter().take_while(|digit| **digit == 0).count();
    let before_point = i32::try_from(whole.len()).ok()? - i32::try_from(leading).ok()?;
    let mut out = Vec::with_capacity(digits.len() / 2 + 8);
    push_key(negative, &digits[leading..], before_point, &mut out);
    out.extend(u16::try_from(fraction.len()).ok()?.to_be_bytes());
    Some(out)
}

/// A finite number's parts.
struct Parts {
    negative: bool,
    /// 0 to 9, the first and the last not 0 (the last may be, of an odd number of them).
    digits: Vec<u8>,
    before_point: i32,
    /// Digits shown after the point.
    scale: u16,
}

/// The parts of a finite number; `None` for NaN, an infinity and malformed bytes.
fn parts(bytes: &[u8]) -> Option<Parts> {
    let (key, scale) = bytes.split_last_chunk::<SCALE_BYTES>()?;
    let scale = u16::from_be_bytes(*scale);
    let first = *key.first()?;
    if first == ZERO {
        return Some(Parts {
            negative: false,
            digits: Vec::new(),
            before_point: 0,
            scale,
        });
    }
    let negative = first < ZERO;
    let turned = |byte: u8| if negative { !byte } else { byte };
    let (before_point, pairs) = match turned(first) {
        INFINITY | NAN => return None,
        TINY | HUGE => {
            let (place, pairs) = key[1..].split_first_chunk::<4>()?;
            let place = i32::from_be_bytes(place.map(turned)) ^ i32::MIN;
            (place, pairs)
        }
        place => (i32::from(place) - POSITIVE, &key[1..]),
    };
    let (end, pairs) = pairs.split_last()?;
    if turned(*end) != 0 {
        return None;
    }
    let mut digits = Vec::with_capacity(pairs.len() * 2);
    for pair in pairs {
        let pair = turned(*pair).checked_sub(1).filter(|pair| *pair < 100)?;
        digits.extend([pair / 10, pair % 10]);
    }
    Some(Parts {
        negative,
        digits,
        before_point,
        scale,
    })
}

/// Appends the number as PostgreSQL shows it.
pub fn write_text(bytes: &[u8], out: &mut Vec<u8>) {
    let Some(parts) = parts(bytes) else {
        let word: &[u8] = match bytes.first() {
            Some(&INFINITY) => b"Infinity",
            Some(first) if *first == !INFINITY => b"-Infinity",
            _ => b"NaN",
        };
        return out.extend_from_slice(word);
    };
    let digit_at = |place: i32| -> u8 {
        let at = usize::try_from(place + parts.before_point);
        let digit = at.ok().and_then(|at| parts.digits.get(at));
        b'0' + digit.copied().unwrap_or(0)
    };
    if parts.negative {
        out.push(b'-');
    }
    if parts.before_point <= 0 {
        out.push(b'0');
    }
    out.extend((-parts.before_point.max(0)..0).map(digit_at));
    if parts.scale > 0 {
        out.push(b'.');
        out.extend((0..i32::from(parts.scale)).map(digit_at));
    }
}

/// The nearest double; an infinity where it is beyond all of them.
#[must_use]
pub fn to_f64(bytes: &[u8]) -> f64 {
    let Some(parts) = parts(bytes) else {
        return match bytes.first() {
            Some(&INFINITY) => f64::INFINITY,
            Some(first) if *first == !INFINITY => f64::NEG_INFINITY,
            _ => f64::NAN,
        };
    };
    let mut text = String::with_capacity(parts.digits.len() + 16);
    text.push_str(if parts.negative { "-0." } else { "0." });
    text.extend(parts.digits.iter().map(|digit| char::from(b'0' + digit)));
    // Writing to a String does not fail.
    let _ = write!(text, "e{}", parts.before_point);
    text.parse().unwrap_or(f64::NAN)
}

/// The same value in the small form, if that has one: of whatever scale.
#[must_use]
pub fn narrow(bytes: &[u8]) -> Option<Numeric> {
    let Parts {
        negative,
        digits,
        before_point,
        ..
    } = parts(bytes)?;
    let used = digits.iter().rposition(|digit| *digit != 0);
    let digits = &digits[..used.map_or(0, |at| at + 1)];
    let scale = (digits.len() as i32).checked_sub(before_point)?;
    let padded = scale.min(0).unsigned_abs() as usize;
    if digits.len() + padded > usize::from(NUMERIC_DIGITS_MAX) {
        return None;
    }
    let zeros = std::iter::repeat_n(&0, padded);
    let magnitude = digits.iter().chain(zeros);
    let magnitude = magnitude.fold(0i128, |sum, digit| sum * 10 + i128::from(*digit));
    let scale = u8::try_from(scale.max(0)).ok()?;
    Numeric::checked(if negative { -magnitude } else { magnitude }, scale)
}

/// Whether the value is a numeric of either form.
#[must_use]
#[inline]
pub const fn is_numeric(value: &Value) -> bool {
    matches!(value, Value::Numeric(_) | Value::Other(LONG, _))
}

/// Calls `f` with a numeric's key; `None` for another value.
pub(crate) fn with_key<R>(value: ValueRef<'_>, f: impl FnOnce(&[u8]) -> R) -> Option<R> {
    match value {
        ValueRef::Other(LONG, bytes) => Some(f(key_of(bytes))),
        ValueRef::Numeric(number) => {
            let mut key = Vec::with_capacity(24);
            push_small_key(number, &mut key);
            Some(f(&key))
        }
        _ => None,
    }
}
