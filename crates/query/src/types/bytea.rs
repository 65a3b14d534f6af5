//! `bytea`.

use super::{Type, ids};
use crate::call::{ByteaOutput, Call};
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// The types of this file.
pub const TYPES: &[Type] = &[Type {
    array: ids::BYTEA_ARRAY,
    input,
    output,
    receive,
    send,
    compare: Some(|a, b| a.as_bytes().cmp(b.as_bytes())),
    ..Type::new(ids::BYTEA, "bytea", "bytea")
}];

/// The hexadecimal digit of a byte's lower half.
#[must_use]
pub fn hex_digit(value: u8) -> char {
    let value = value & 15;
    char::from(if value < 10 {
        b'0' + value
    } else {
        b'a' + value - 10
    })
}

/// Appends two hexadecimal digits a byte.
pub fn hex_into(bytes: &[u8], out: &mut String) {
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(hex_digit(byte >> 4));
        out.push(hex_digit(*byte));
    }
}

/// Bytes of their hexadecimal digits; blanks between bytes are left out.
///
/// # Errors
/// 22023 for what is no digit, and an odd number of them.
pub fn from_hex(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut characters = text.chars();
    let digit = |c: char| match c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()) {
        Some(digit) => Ok(digit),
        None => Err(QueryError::invalid_parameter(format!(
            "invalid hexadecimal digit: \"{c}\""
        ))),
    };
    while let Some(c) = characters.next() {
        if matches!(c, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let high = digit(c)?;
        let Some(c) = characters.next() else {
            return Err(QueryError::invalid_parameter(
                "invalid hexadecimal data: odd number of digits",
            ));
        };
        bytes.push(high << 4 | digit(c)?);
    }
    Ok(bytes)
}

/// Bytes of the text form with escapes: `\\` and `\ooo`. `None` for others.
#[must_use]
pub fn from_escapes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => return Some(bytes),
            [b'\\', b'\\', rest @ ..] => {
                bytes.push(b'\\');
                rest
            }
            [
                b'\\',
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                rest @ ..,
            ] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest
            }
            [b'\\', ..] => return None,
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        };
    }
}

fn input(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    if let Some(digits) = text.strip_prefix("\\x") {
        return from_hex(digits).map(Datum::bytes);
    }
    match from_escapes(text) {
        Some(bytes) => Ok(Datum::bytes(bytes)),
        None => Err(QueryError::new(
            "22P02",
            "invalid input syntax for type bytea",
        )),
    }
}

/// Appends a byte as `\ooo`.
pub fn octal_into(byte: u8, out: &mut String) {
    out.push('\\');
    for shift in [6, 3, 0] {
        out.push(char::from(b'0' + (byte >> shift & 7)));
    }
}

fn output(call: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    let bytes = value.as_bytes();
    match call.settings().bytea_output {
        ByteaOutput::Hex => {
            out.push_str("\\x");
            hex_into(bytes, out);
        }
        ByteaOutput::Escape => {
            for byte in bytes {
                match byte {
                    b'\\' => out.push_str("\\\\"),
                    0x20..=0x7e => out.push(char::from(*byte)),
                    _ => octal_into(*byte, out),
                }
            }
        }
    }
    Ok(())
}

fn receive(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    Ok(Datum::bytes(bytes))
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(value.as_bytes());
    Ok(())
}
