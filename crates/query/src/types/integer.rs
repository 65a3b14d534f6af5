//! `smallint`, `integer` and `bigint`.

use super::numeric::is_space;
use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// Reads a whole number between two bounds; spaces around it are left out.
///
/// # Errors
/// 22P02 for what is no number, 22003 beyond the bounds.
pub fn parse(text: &str, least: i64, most: i64, type_name: &str) -> Result<i64> {
    let bytes = text.as_bytes();
    let mut at = bytes.iter().take_while(|byte| is_space(**byte)).count();
    let negative = bytes.get(at) == Some(&b'-');
    if matches!(bytes.get(at), Some(b'+' | b'-')) {
        at += 1;
    }
    let start = at;
    // Below zero, since there is one number more on that side.
    let mut n = 0i64;
    while let Some(byte @ b'0'..=b'9') = bytes.get(at) {
        let next = n
            .checked_mul(10)
            .and_then(|n| n.checked_sub(i64::from(byte - b'0')))
            .filter(|n| *n >= least);
        let Some(next) = next else {
            return Err(out_of_range(text, type_name));
        };
        n = next;
        at += 1;
    }
    let blank = bytes[at..].iter().all(|byte| is_space(*byte));
    if at == start || !blank {
        return Err(QueryError::invalid_text(type_name, text));
    }
    if negative {
        return Ok(n);
    }
    match n.checked_neg() {
        Some(n) if n <= most => Ok(n),
        _ => Err(out_of_range(text, type_name)),
    }
}

#[cold]
pub(super) fn out_of_range(text: &str, type_name: &str) -> QueryError {
    QueryError::new(
        "22003",
        format!("value \"{text}\" is out of range for type {type_name}"),
    )
}

/// Appends a whole number.
#[inline]
pub(super) fn write(n: i64, out: &mut String) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    let mut size = n.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (size % 10) as u8;
        size /= 10;
        if size == 0 {
            break;
        }
    }
    if n < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    out.push_str(std::str::from_utf8(&buffer[at..]).unwrap_or_default());
}

/// The whole of a binary form of this many bytes.
pub(super) fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    match bytes.first_chunk() {
        None => Err(QueryError::new(
            "08P01",
            "insufficient data left in message",
        )),
        Some(_) if bytes.len() > N => Err(QueryError::new(
            "22P03",
            "incorrect binary data format in function argument",
        )),
        Some(chunk) => Ok(*chunk),
    }
}

fn input_int2(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    parse(text, i16::MIN.into(), i16::MAX.into(), "smallint").map(|n| Datum::Int2(n as i16))
}

fn input_int4(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    parse(text, i32::MIN.into(), i32::MAX.into(), "integer").map(|n| Datum::Int4(n as i32))
}

fn input_int8(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    parse(text, i64::MIN, i64::MAX, "bigint").map(Datum::Int8)
}

fn output_int2(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    write(value.as_int2().into(), out);
    Ok(())
}

fn output_int4(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    write(value.as_int4().into(), out);
    Ok(())
}

fn output_int8(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    write(value.as_int8(), out);
    Ok(())
}

/// The types of this file.
pub const TYPES: &[Type] = &[
    Type {
        length: 2,
        category: b'N',
        array: ids::INT2_ARRAY,
        input: input_int2,
        output: output_int2,
        receive: |_, bytes, _| Ok(Datum::Int2(i16::from_be_bytes(exactly(bytes)?))),
        send: |_, value, out| {
            out.extend_from_slice(&value.as_int2().to_be_bytes());
            Ok(())
        },
        compare: Some(|a, b| a.as_int2().cmp(&b.as_int2())),
        ..Type::new(ids::INT2, "int2", "smallint")
    },
    Type {
        length: 4,
        category: b'N',
        array: ids::INT4_ARRAY,
        input: input_int4,
        output: output_int4,
        receive: |_, bytes, _| Ok(Datum::Int4(i32::from_be_bytes(exactly(bytes)?))),
        send: |_, value, out| {
            out.extend_from_slice(&value.as_int4().to_be_bytes());
            Ok(())
        },
        compare: Some(|a, b| a.as_int4().cmp(&b.as_int4())),
        ..Type::new(ids::INT4, "int4", "integer")
    },
    Type {
        length: 8,
        category: b'N',
        array: ids::INT8_ARRAY,
        input: input_int8,
        output: output_int8,
        receive: |_, bytes, _| Ok(Datum::Int8(i64::from_be_bytes(exactly(bytes)?))),
        send: |_, value, out| {
            out.extend_from_slice(&value.as_int8().to_be_bytes());
            Ok(())
        },
        compare: Some(|a, b| a.as_int8().cmp(&b.as_int8())),
        ..Type::new(ids::INT8, "int8", "bigint")
    },
];
