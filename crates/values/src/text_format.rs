//! Values as text, byte for byte as PostgreSQL prints and reads them.
//! Reading never panics: what is malformed is a `ValueError` in PostgreSQL's
//! words. Printing appends to the caller's buffer and allocates nothing else.

mod float;
#[cfg(test)]
mod tests;

use float::{write_double, write_real};

use crate::datetime;
use crate::numeric::Numeric;
use crate::numeric::long::{self, LONG};
use crate::other_type;
use crate::types::DataType;
use crate::value::{Value, ValueRef};
use crate::value_error::{NUMERIC_OVERFLOW, ValueError};

/// Reads a value from its text.
///
/// # Errors
/// 22P02, 22003, 22001, 22007 and their like, in PostgreSQL's words.
pub fn parse_text(data_type: &DataType, text: &str) -> Result<Value, ValueError> {
    Ok(match *data_type {
        DataType::Boolean => Value::Boolean(parse_boolean(text)?),
        DataType::SmallInt => Value::SmallInt(
            i16::try_from(parse_integer(text, "smallint")?)
                .map_err(|_| ValueError::text_out_of_range("smallint", text))?,
        ),
        DataType::Integer => Value::Integer(
            i32::try_from(parse_integer(text, "integer")?)
                .map_err(|_| ValueError::text_out_of_range("integer", text))?,
        ),
        DataType::BigInt => Value::BigInt(parse_integer(text, "bigint")?),
        DataType::Real => Value::Real(parse_real(text)?),
        DataType::Double => Value::Double(parse_double(text)?),
        DataType::Numeric { precision, .. } => {
            let small = match (precision, data_type.small_scale()) {
                (0, _) => Numeric::parse(text),
                (_, Some(scale)) => Numeric::parse_scaled(text, Some(scale))
                    .and_then(|number| fit_numeric(number, precision, scale)),
                (_, None) => Err(ValueError::numeric_overflow()),
            };
            match small {
                Err(error) if error.sqlstate == NUMERIC_OVERFLOW => {
                    other_type::forms().numeric_of_text(data_type.typmod(), text)?
                }
                small => Value::Numeric(small?),
            }
        }
        DataType::Text | DataType::Varchar(0) => Value::Text(checked_text(text)?.to_string()),
        DataType::Varchar(limit) => {
            Value::Text(fit_text(checked_text(text)?, limit, data_type)?.to_string())
        }
        DataType::Char(0) => Value::Text(trim_blanks(checked_text(text)?).to_string()),
        DataType::Char(limit) => {
            Value::Text(trim_blanks(fit_text(checked_text(text)?, limit, data_type)?).to_string())
        }
        DataType::Bytea => Value::Bytea(parse_bytea(text)?),
        DataType::Date => Value::Date(datetime::parse_date(text)?),
        DataType::Timestamp => Value::Timestamp(datetime::parse_timestamp(text)?),
        DataType::TimestampTz => Value::TimestampTz(datetime::parse_timestamptz(text)?),
        DataType::TimestampTo(digits) => {
            Value::Timestamp(datetime::rounded(datetime::parse_timestamp(text)?, digits))
        }
        DataType::TimestampTzTo(digits) => Value::TimestampTz(datetime::rounded(
            datetime::parse_timestamptz(text)?,
            digits,
        )),
        DataType::Uuid => Value::Uuid(parse_uuid(text)?),
        DataType::Other { oid, modifier } => {
            Value::Other(oid, other_type::forms().parse_text(oid, modifier, text)?)
        }
    })
}

/// Appends the text of a value; nothing for NULL, which has no text.
pub fn write_text(value: ValueRef<'_>, data_type: &DataType, out: &mut Vec<u8>) {
    match value {
        ValueRef::Null => {}
        ValueRef::Boolean(value) => out.push(if value { b't' } else { b'f' }),
        ValueRef::SmallInt(value) => write_integer(value.into(), out),
        ValueRef::Integer(value) => write_integer(value.into(), out),
        ValueRef::BigInt(value) => write_integer(value, out),
        ValueRef::Real(value) => write_real(value, out),
        ValueRef::Double(value) => write_double(value, out),
        ValueRef::Numeric(value) => value.write_text(out),
        ValueRef::Text(value) => {
            out.extend_from_slice(value.as_bytes());
            if let DataType::Char(limit) = data_type {
                pad_blanks(value, *limit, out);
            }
        }
        ValueRef::Bytea(value) => {
            out.extend_from_slice(b"\\x");
            write_hex(value, out);
        }
        ValueRef::Date(value) => datetime::write_date(value, out),
        ValueRef::Timestamp(value) => datetime::write_timestamp(value, out),
        ValueRef::TimestampTz(value) => datetime::write_timestamptz(value, out),
        ValueRef::Uuid(value) => {
            for (index, byte) in value.iter().enumerate() {
                if matches!(index, 4 | 6 | 8 | 10) {
                    out.push(b'-');
                }
                write_hex(std::slice::from_ref(byte), out);
            }
        }
        ValueRef::Other(LONG, bytes) => long::write_text(bytes, out),
        ValueRef::Other(oid, bytes) => other_type::forms().write_text(oid, bytes, out),
    }
}

/// Appends the blanks that a `char(limit)` is filled up with.
pub(crate) fn pad_blanks(text: &str, limit: u32, out: &mut Vec<u8>) {
    // Only ASCII has as many characters as bytes.
    let length = if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    };
    let blanks = (limit as usize).saturating_sub(length);
    out.resize(out.len() + blanks, b' ');
}

/// The text without its trailing blanks: the form in which `char` is kept.
#[must_use]
pub fn trim_blanks(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// 22003 in the words for a column's precision.
pub(crate) fn field_overflow() -> ValueError {
    ValueError::new("22003", "numeric field overflow")
}

/// Rounds to a column's scale and checks its precision.
pub(crate) fn fit_numeric(
    number: Numeric,
    precision: u16,
    scale: u8,
) -> Result<Numeric, ValueError> {
    number
        .rescale(scale)
        .filter(|number| {
            number
                .mantissa()
                .unsigned_abs()
                .checked_ilog10()
                .is_none_or(|log| log < u32::from(precision))
        })
        .ok_or_else(field_overflow)
}

/// The text cut to a column's length, which may cut blanks only.
pub(crate) fn fit_text<'a>(
    text: &'a str,
    limit: u32,
    data_type: &DataType,
) -> Result<&'a str, ValueError> {
    let (kept, cut) = split_characters(text, limit);
    if cut.bytes().all(|byte| byte == b' ') {
        Ok(kept)
    } else {
        Err(ValueError::too_long(data_type))
    }
}

/// The first so many characters, and the others.
pub(crate) fn split_characters(text: &str, count: u32) -> (&str, &str) {
    let count = count as usize;
    if text.len() <= count {
        return (text, "");
    }
    match text.char_indices().nth(count) {
        Some((index, _)) => text.split_at(index),
        None => (text, ""),
    }
}

/// PostgreSQL's texts cannot hold the character 0.
pub(crate) fn checked_text(text: &str) -> Result<&str, ValueError> {
    if text.as_bytes().contains(&0) {
        return Err(ValueError::new(
            "22021",
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        ));
    }
    Ok(text)
}

/// Without the white space that C's `isspace` knows.
fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b')
}

fn parse_boolean(text: &str) -> Result<bool, ValueError> {
    let word = trim(text).to_ascii_lowercase();
    let begins = |full: &str, least: usize| word.len() >= least && full.starts_with(&*word);
    if begins("true", 1) || begins("yes", 1) || word == "on" || word == "1" {
        Ok(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0" {
        Ok(false)
    } else {
        Err(ValueError::syntax("boolean", text))
    }
}

fn parse_integer(text: &str, type_name: &str) -> Result<i64, ValueError> {
    let trimmed = trim(text);
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ValueError::syntax(type_name, text));
    }
    trimmed
        .parse()
        .map_err(|_| ValueError::text_out_of_range(type_name, text))
}

/// The literal of a float, if it has the form of one.
fn float_literal<'a>(text: &'a str, type_name: &str) -> Result<&'a str, ValueError> {
    let trimmed = trim(text);
    let unsigned = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    let is_word = ["nan", "inf", "infinity"]
        .iter()
        .any(|word| unsigned.eq_ignore_ascii_case(word));
    let is_number = unsigned
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    if is_word || (is_number && !unsigned.is_empty()) {
        Ok(trimmed)
    } else {
        Err(ValueError::syntax(type_name, text))
    }
}

/// Whether a literal says zero or infinity, and does not merely round to it.
fn is_exact_extreme(literal: &str) -> bool {
    let digits = literal.split(['e', 'E']).next().unwrap_or_default();
    literal.contains(['n', 'N']) || !digits.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

fn parse_double(text: &str) -> Result<f64, ValueError> {
    let literal = float_literal(text, "double precision")?;
    let value: f64 = literal
        .parse()
        .map_err(|_| ValueError::syntax("double precision", text))?;
    if (value == 0.0 || value.is_infinite()) && !is_exact_extreme(literal) {
        return Err(ValueError::new(
            "22003",
            format!("\"{literal}\" is out of range for type double precision"),
        ));
    }
    Ok(value)
}

fn parse_real(text: &str) -> Result<f32, ValueError> {
    let literal = float_literal(text, "real")?;
    let value: f32 = literal
        .parse()
        .map_err(|_| ValueError::syntax("real", text))?;
    if (value == 0.0 || value.is_infinite()) && !is_exact_extreme(literal) {
        return Err(ValueError::new(
            "22003",
            format!("\"{literal}\" is out of range for type real"),
        ));
    }
    Ok(value)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn parse_bytea(text: &str) -> Result<Vec<u8>, ValueError> {
    let Some(hex) = text.strip_prefix("\\x") else {
        return parse_escaped_bytea(text);
    };
    let mut bytes = Vec::with_capacity(hex.len() / 2);
    let mut rest = hex.bytes().filter(|byte| !byte.is_ascii_whitespace());
    while let Some(high) = rest.next() {
        let digit = |byte: u8| {
            hex_digit(byte).ok_or_else(|| {
                ValueError::new(
                    "22023",
                    format!("invalid hexadecimal digit: \"{}\"", char::from(byte)),
                )
            })
        };
        let high = digit(high)?;
        let low = rest.next().ok_or_else(|| {
            ValueError::new("22023", "invalid hexadecimal data: odd number of digits")
        })?;
        bytes.push(high << 4 | digit(low)?);
    }
    Ok(bytes)
}

/// The older format: `\\` for a backslash, `\ooo` for any byte.
fn parse_escaped_bytea(text: &str) -> Result<Vec<u8>, ValueError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => {
                bytes.push(b'\\');
                after
            }
            (
                b'\\',
                [
                    a @ b'0'..=b'3',
                    b @ b'0'..=b'7',
                    c @ b'0'..=b'7',
                    after @ ..,
                ],
            ) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                after
            }
            (b'\\', _) => {
                return Err(ValueError::new(
                    "22P02",
                    "invalid input syntax for type bytea",
                ));
            }
            _ => {
                bytes.push(*first);
                after
            }
        };
    }
    Ok(bytes)
}

fn parse_uuid(text: &str) -> Result<[u8; 16], ValueError> {
    let error = || ValueError::syntax("uuid", text);
    let inner = match text.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}').ok_or_else(error)?,
        None => text,
    };
    let mut uuid = [0; 16];
    let mut rest = inner.as_bytes();
    for (index, byte) in uuid.iter_mut().enumerate() {
        // A hyphen may follow every second byte.
        if index > 0
            && index % 2 == 0
            && let [b'-', after @ ..] = rest
        {
            rest = after;
        }
        let [high, low, after @ ..] = rest else {
            return Err(error());
        };
        match (hex_digit(*high), hex_digit(*low)) {
            (Some(high), Some(low)) => *byte = high << 4 | low,
            _ => return Err(error()),
        }
        rest = after;
    }
    if rest.is_empty() {
        Ok(uuid)
    } else {
        Err(error())
    }
}

pub(crate) fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Appends an integer.
pub fn write_integer(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let (mut start, mut rest) = (digits.len(), value.unsigned_abs());
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}
