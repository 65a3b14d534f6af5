//! Keys: bytes that order and equal as PostgreSQL orders values of a type, whatever its form.
//! Each key ends by itself, so that keys can stand one after the other.

use std::net::IpAddr;
use std::ops::Bound;

use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::types::jsonb::Jsonb;
use thermocline_query::types::numeric::Numeric;
use thermocline_query::types::range::Range;
use thermocline_query::types::{self, element_of, ids};

/// Before the key of a value within a row or an array; NULLs are the greatest there.
const VALUE: u8 = 1;
const NULL: u8 = 2;
const END: u8 = 0;

/// How a value stands among others in a sort.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Direction {
    /// From the greatest to the least.
    pub descending: bool,
    /// NULLs before all.
    pub nulls_first: bool,
}

/// Whether values of a type have keys.
#[must_use]
pub fn has_order(oid: u32) -> bool {
    if let Some(element) = element_of(oid) {
        return has_order(element);
    }
    !matches!(oid, ids::JSON | ids::XML | ids::JSONPATH)
}

/// Appends the key of a value in a sort, NULL included.
///
/// # Errors
/// 42883 for a type without an order.
pub fn directed(oid: u32, value: &Datum, direction: Direction, out: &mut Vec<u8>) -> Result<()> {
    if value.is_null() {
        out.push(if direction.nulls_first { 0 } else { 2 });
        return Ok(());
    }
    out.push(1);
    let start = out.len();
    key(oid, value, out)?;
    if direction.descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(())
}

/// Appends the key of a value that is not NULL.
///
/// # Errors
/// 42883 for a type without an order.
pub fn key(oid: u32, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Null => out.push(END),
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Char(value) => out.push(*value),
        Datum::Int2(value) => out.extend((*value as u16 ^ 1 << 15).to_be_bytes()),
        Datum::Int4(value) | Datum::Date(value) => signed32(*value, out),
        // `xid8` and `pg_lsn` have no sign.
        Datum::Int8(value) if matches!(oid, ids::XID8 | ids::PG_LSN) => {
            out.extend(value.to_be_bytes());
        }
        Datum::Int8(value)
        | Datum::Time(value)
        | Datum::Timestamp(value)
        | Datum::TimestampTz(value) => signed64(*value, out),
        Datum::Oid(value) => out.extend(value.to_be_bytes()),
        Datum::Enum(place) => out.extend(place.to_be_bytes()),
        Datum::Float4(value) => float(f64::from(*value), out),
        Datum::Float8(value) => float(*value, out),
        Datum::Numeric(value) => numeric(value, out),
        Datum::Text(text) => match oid {
            ids::BPCHAR => escaped(text.trim_end_matches(' ').as_bytes(), out),
            ids::JSON | ids::XML => return Err(without_order(oid)),
            _ => escaped(text.as_bytes(), out),
        },
        Datum::Bytea(value) => escaped(value, out),
        Datum::TimeTz(value) => {
            let utc = value
                .micros
                .saturating_add(i64::from(value.zone) * 1_000_000);
            signed64(utc, out);
            signed32(value.zone, out);
        }
        Datum::Interval(value) => {
            let days = i128::from(value.months) * 30 + i128::from(value.days);
            let micros = days * 86_400_000_000 + i128::from(value.micros);
            out.extend((micros as u128 ^ 1 << 127).to_be_bytes());
        }
        Datum::Uuid(value) => out.extend(value),
        Datum::Jsonb(value) => json(value, out),
        Datum::JsonPath(_) => return Err(without_order(oid)),
        Datum::Array(array) if oid == ids::OIDVECTOR => {
            out.extend(length(array.elements.len()));
            array
                .elements
                .iter()
                .try_for_each(|element| key(ids::OID, element, out))?;
        }
        Datum::Array(array) => {
            for element in &array.elements {
                nested(array.element, element, out)?;
            }
            out.push(END);
            out.extend(length(array.dimensions.len()));
            for (length, _) in &array.dimensions {
                signed32(*length, out);
            }
            for (_, lower) in &array.dimensions {
                signed32(*lower, out);
            }
        }
        Datum::Record(record) => {
            for (oid, value) in record.types.iter().zip(&record.values) {
                nested(*oid, value, out)?;
            }
            out.push(END);
        }
        Datum::Inet(value) => {
            let (family, bytes) = match value.address {
                IpAddr::V4(address) => (4, address.octets().to_vec()),
                IpAddr::V6(address) => (6, address.octets().to_vec()),
            };
            out.push(family);
            // By the network's bits, a shorter network before those within it; then by all bits.
            for bit in 0..usize::from(value.prefix) {
                let byte = bytes.get(bit / 8).copied().unwrap_or(0);
                out.push(1 + (byte >> (7 - bit % 8) & 1));
            }
            out.push(END);
            out.extend(bytes);
        }
        Datum::Range(value) => range(value, out)?,
        Datum::MacAddr(value) => out.extend(value),
        Datum::Bit(value) => {
            escaped(&value.bytes, out);
            out.extend(length(value.length));
        }
    }
    Ok(())
}

/// An empty range is before all; then by where it begins, then by where it stops.
fn range(value: &Range, out: &mut Vec<u8>) -> Result<()> {
    let Range { element, ends } = value;
    let Some(ends) = ends else {
        out.push(0);
        return Ok(());
    };
    for (bound, missing) in [(&ends.lower, 1), (&ends.upper, 3)] {
        let (value, side) = match (bound, missing) {
            (Bound::Unbounded, _) => {
                out.push(missing);
                continue;
            }
            (Bound::Included(value), _) => (value, 1),
            (Bound::Excluded(value), 1) => (value, 2),
            (Bound::Excluded(value), _) => (value, 0),
        };
        out.push(2);
        key(*element, value, out)?;
        out.push(side);
    }
    Ok(())
}

fn nested(oid: u32, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    if value.is_null() {
        out.push(NULL);
        return Ok(());
    }
    out.push(VALUE);
    key(oid, value, out)
}

#[cold]
fn without_order(oid: u32) -> QueryError {
    QueryError::new(
        "42883",
        format!(
            "could not identify a comparison function for type {}",
            types::format_type(oid, -1)
        ),
    )
}

/// The key of a signed number.
pub(crate) fn signed32(value: i32, out: &mut Vec<u8>) {
    out.extend((value as u32 ^ 1 << 31).to_be_bytes());
}

/// As [`signed32`].
pub(crate) fn signed64(value: i64, out: &mut Vec<u8>) {
    out.extend((value as u64 ^ 1 << 63).to_be_bytes());
}

fn length(length: usize) -> [u8; 8] {
    (length as u64).to_be_bytes()
}

/// -0 is 0, and what is not a number is the greatest.
pub(crate) fn float(value: f64, out: &mut Vec<u8>) {
    let bits = match value {
        value if value.is_nan() => u64::MAX,
        value => {
            let bits = if value == 0.0 { 0 } else { value.to_bits() };
            match bits >> 63 {
                0 => bits | 1 << 63,
                _ => !bits,
            }
        }
    };
    out.extend(bits.to_be_bytes());
}

/// Bytes with an end: a zero within is followed by 255.
pub(crate) fn escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for part in bytes.split_inclusive(|byte| *byte == 0) {
        out.extend(part);
        if part.last() == Some(&0) {
            out.push(255);
        }
    }
    out.extend([0, 0]);
}

fn numeric(value: &Numeric, out: &mut Vec<u8>) {
    let text = match value {
        Numeric::NegativeInfinity => return out.push(0),
        Numeric::Infinity => return out.push(4),
        Numeric::NaN => return out.push(5),
        finite => match finite.to_parts() {
            Some((unscaled, scale)) => return decimal(unscaled, scale, out),
            None => finite.to_string(),
        },
    };
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text.as_str()),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = [whole, fraction].concat();
    let leading = digits.bytes().take_while(|byte| *byte == b'0').count();
    if leading == digits.len() {
        return out.push(2);
    }
    let exponent = whole.len() as i64 - leading as i64;
    digits_key(negative, &digits.as_bytes()[leading..], exponent, out);
}

/// The key of the number `unscaled` / 10^`scale`.
pub(crate) fn decimal(unscaled: i128, scale: u16, out: &mut Vec<u8>) {
    const LENGTH: usize = 40;
    if unscaled == 0 {
        return out.push(2);
    }
    let mut buffer = [b'0'; LENGTH];
    let (mut rest, mut at) = (unscaled.unsigned_abs(), LENGTH);
    while rest > 0 && at > 0 {
        at -= 1;
        // A division of 64 bits is several times as fast.
        let digit = match u64::try_from(rest) {
            Ok(short) => {
                rest = u128::from(short / 10);
                (short % 10) as u8
            }
            Err(_) => {
                let digit = (rest % 10) as u8;
                rest /= 10;
                digit
            }
        };
        buffer[at] = b'0' + digit;
    }
    let exponent = (LENGTH - at) as i64 - i64::from(scale);
    digits_key(unscaled < 0, &buffer[at..], exponent, out);
}

/// The key of 0.d1d2d3… times ten to the exponent.
fn digits_key(negative: bool, digits: &[u8], exponent: i64, out: &mut Vec<u8>) {
    out.push(if negative { 1 } else { 3 });
    let start = out.len();
    signed64(exponent, out);
    let trailing = digits
        .iter()
        .rev()
        .take_while(|digit| **digit == b'0')
        .count();
    for pair in digits[..digits.len() - trailing].chunks(2) {
        let digit = |place: usize| pair.get(place).map_or(0, |digit| digit - b'0');
        out.push(1 + digit(0) * 10 + digit(1));
    }
    out.push(END);
    if negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// A value alone is an array of one element, before all others of one element.
fn json(value: &Jsonb, out: &mut Vec<u8>) {
    if matches!(value, Jsonb::Array(_) | Jsonb::Object(_)) {
        return json_element(value, out);
    }
    out.push(4);
    out.extend(length(1));
    out.push(0);
    json_element(value, out);
}

fn json_element(value: &Jsonb, out: &mut Vec<u8>) {
    match value {
        Jsonb::Null => out.push(0),
        Jsonb::String(text) => {
            out.push(1);
            escaped(text.as_bytes(), out);
        }
        Jsonb::Number(value) => {
            out.push(2);
            numeric(value, out);
        }
        Jsonb::Bool(value) => out.extend([3, u8::from(*value)]),
        Jsonb::Array(values) => {
            out.push(4);
            out.extend(length(values.len()));
            out.push(1);
            values.iter().for_each(|value| json_element(value, out));
        }
        Jsonb::Object(pairs) => {
            out.push(5);
            out.extend(length(pairs.len()));
            for (name, value) in pairs.iter() {
                escaped(name.as_bytes(), out);
                json_element(value, out);
            }
        }
    }
}
