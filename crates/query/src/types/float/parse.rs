//! Reading of `real` and `double precision`, as C's `strtod` reads.

use super::super::numeric::is_space;
use crate::error::{QueryError, Result};

/// Reads a double.
///
/// # Errors
/// 22P02, 22003.
pub fn parse_f64(text: &str) -> Result<f64> {
    parse(text, "double precision", |text| text.parse().ok(), |n| n)
}

/// Reads a single.
///
/// # Errors
/// 22P02, 22003.
pub fn parse_f32(text: &str) -> Result<f32> {
    let read = |text: &str| text.parse::<f32>().ok().map(f64::from);
    parse(text, "real", read, |n| f64::from(n as f32)).map(|n| n as f32)
}

fn parse(
    text: &str,
    type_name: &str,
    read: impl Fn(&str) -> Option<f64>,
    narrow: impl Fn(f64) -> f64,
) -> Result<f64> {
    let invalid = || QueryError::invalid_text(type_name, text);
    let bytes = text.as_bytes();
    let start = bytes.iter().take_while(|byte| is_space(**byte)).count();
    let number = &text[start..];
    let (value, length, zero) = special(number)
        .map(|(n, length)| (n, length, true))
        .or_else(|| hexadecimal(number).map(|(n, length, zero)| (narrow(n), length, zero)))
        .or_else(|| {
            let (length, zero) = decimal(number.as_bytes())?;
            Some((read(&number[..length])?, length, zero))
        })
        .ok_or_else(invalid)?;
    let is_special = special(number).is_some();
    if !is_special && (value.is_infinite() || (value == 0.0 && !zero)) {
        let shown = if type_name == "real" {
            text
        } else {
            &number[..length]
        };
        return Err(QueryError::new(
            "22003",
            format!("\"{shown}\" is out of range for type {type_name}"),
        ));
    }
    if number.as_bytes()[length..]
        .iter()
        .all(|byte| is_space(*byte))
    {
        Ok(value)
    } else {
        Err(invalid())
    }
}

fn sign(text: &str) -> (f64, usize) {
    match text.as_bytes().first() {
        Some(b'-') => (-1.0, 1),
        Some(b'+') => (1.0, 1),
        _ => (1.0, 0),
    }
}

/// `NaN` and the infinities, and their lengths.
fn special(text: &str) -> Option<(f64, usize)> {
    let (sign, start) = sign(text);
    let rest = &text.as_bytes()[start..];
    let begins = |name: &[u8]| {
        rest.get(..name.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(name))
    };
    if begins(b"infinity") {
        return Some((sign * f64::INFINITY, start + 8));
    }
    if begins(b"inf") {
        return Some((sign * f64::INFINITY, start + 3));
    }
    if begins(b"nan") {
        let tail = &rest[3..];
        let more = match tail.first() {
            Some(b'(') => {
                let word = tail[1..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
                    .count();
                if tail.get(word + 1) == Some(&b')') {
                    word + 2
                } else {
                    0
                }
            }
            _ => 0,
        };
        return Some((f64::NAN, start + 3 + more));
    }
    None
}

/// The length of a decimal number, and whether all of its digits are zero.
fn decimal(text: &[u8]) -> Option<(usize, bool)> {
    let next = |at: usize| text.get(at).copied().unwrap_or(0);
    let mut at = usize::from(matches!(next(0), b'+' | b'-'));
    let (mut digits, mut zero, mut point) = (0, true, false);
    loop {
        match next(at) {
            byte @ b'0'..=b'9' => {
                digits += 1;
                zero &= byte == b'0';
            }
            b'.' if !point => point = true,
            _ => break,
        }
        at += 1;
    }
    if digits == 0 {
        return None;
    }
    if matches!(next(at), b'e' | b'E') {
        let signed = usize::from(matches!(next(at + 1), b'+' | b'-'));
        if next(at + 1 + signed).is_ascii_digit() {
            at += 1 + signed;
            while next(at).is_ascii_digit() {
                at += 1;
            }
        }
    }
    Some((at, zero))
}

/// A hexadecimal number such as `0x1.8p3`, its length, and whether it is zero.
fn hexadecimal(text: &str) -> Option<(f64, usize, bool)> {
    let (sign, start) = sign(text);
    let bytes = text.as_bytes();
    let next = |at: usize| bytes.get(at).copied().unwrap_or(0);
    if next(start) != b'0' || !matches!(next(start + 1), b'x' | b'X') {
        return None;
    }
    let mut at = start + 2;
    // What is beyond 60 bits is only known to be there.
    let (mut mantissa, mut exponent, mut digits, mut point) = (0u64, 0i64, 0, false);
    loop {
        let byte = next(at);
        if let Some(value) = char::from(byte).to_digit(16) {
            digits += 1;
            if mantissa >> 59 == 0 {
                mantissa = mantissa << 4 | u64::from(value);
                exponent -= if point { 4 } else { 0 };
            } else {
                mantissa |= u64::from(value != 0);
                exponent += if point { 0 } else { 4 };
            }
        } else if byte == b'.' && !point {
            point = true;
        } else {
            break;
        }
        at += 1;
    }
    if digits == 0 {
        return None;
    }
    if matches!(next(at), b'p' | b'P') {
        let signed = usize::from(matches!(next(at + 1), b'+' | b'-'));
        let down = next(at + 1) == b'-';
        if next(at + 1 + signed).is_ascii_digit() {
            at += 1 + signed;
            let mut power = 0i64;
            while next(at).is_ascii_digit() {
                power = (power * 10 + i64::from(next(at) - b'0')).min(1 << 40);
                at += 1;
            }
            exponent += if down { -power } else { power };
        }
    }
    Some((sign * scale(mantissa, exponent), at, mantissa == 0))
}

/// `mantissa` * 2^`exponent`, rounded once.
fn scale(mantissa: u64, exponent: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let top = 64 - i64::from(mantissa.leading_zeros()) + exponent;
    if top > 1024 {
        return f64::INFINITY;
    }
    if top < -1074 {
        return 0.0;
    }
    // The bits that remain: 53, or fewer for the smallest numbers.
    let kept = (top + 1074).min(53);
    let drop = (64 - i64::from(mantissa.leading_zeros()) - kept).max(0);
    let mut kept_bits = if drop >= 64 { 0 } else { mantissa >> drop };
    if drop > 0 {
        let rest = mantissa - if drop >= 64 { 0 } else { kept_bits << drop };
        let half = 1u64 << (drop - 1).min(63);
        if rest > half || (rest == half && kept_bits % 2 == 1) {
            kept_bits += 1;
        }
    }
    let power = i32::try_from(exponent + drop).unwrap_or(0);
    // Both steps are exact: the bits are as many as the result has.
    let first = (power / 2).max(-1000);
    (kept_bits as f64) * 2f64.powi(first) * 2f64.powi(power - first)
}
