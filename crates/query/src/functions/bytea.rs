//! Functions and operators of `bytea`.

use std::cmp::Ordering;

use super::Function;
use super::text::{bytes_difference, end_of_part, negative_length};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::ids;

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(
        1948,
        "byteaeq",
        &[ids::BYTEA, ids::BYTEA],
        ids::BOOL,
        |_, a| truth(order(a).is_eq()),
    ),
    Function::row(
        1953,
        "byteane",
        &[ids::BYTEA, ids::BYTEA],
        ids::BOOL,
        |_, a| truth(order(a).is_ne()),
    ),
    Function::row(
        1949,
        "bytealt",
        &[ids::BYTEA, ids::BYTEA],
        ids::BOOL,
        |_, a| truth(order(a).is_lt()),
    ),
    Function::row(
        1950,
        "byteale",
        &[ids::BYTEA, ids::BYTEA],
        ids::BOOL,
        |_, a| truth(order(a).is_le()),
    ),
    Function::row(
        1951,
        "byteagt",
        &[ids::BYTEA, ids::BYTEA],
        ids::BOOL,
        |_, a| truth(order(a).is_gt()),
    ),
    Function::row(
        1952,
        "byteage",
        &[ids::BYTEA, ids::BYTEA],
        ids::BOOL,
        |_, a| truth(order(a).is_ge()),
    ),
    Function::row(
        1954,
        "byteacmp",
        &[ids::BYTEA, ids::BYTEA],
        ids::INT4,
        |_, a| {
            Ok(Datum::Int4(bytes_difference(
                a[0].as_bytes(),
                a[1].as_bytes(),
            )))
        },
    ),
    Function::row(
        2011,
        "byteacat",
        &[ids::BYTEA, ids::BYTEA],
        ids::BYTEA,
        byteacat,
    ),
    Function::row(6163, "bit_count", &[ids::BYTEA], ids::INT8, bit_count),
    Function::row(1810, "bit_length", &[ids::BYTEA], ids::INT4, bit_length),
    Function::row(720, "octet_length", &[ids::BYTEA], ids::INT4, |_, a| {
        number(a[0].as_bytes().len())
    }),
    Function::row(2010, "length", &[ids::BYTEA], ids::INT4, |_, a| {
        number(a[0].as_bytes().len())
    }),
    Function::row(
        2013,
        "substring",
        &[ids::BYTEA, ids::INT4],
        ids::BYTEA,
        substring,
    ),
    Function::row(
        2012,
        "substring",
        &[ids::BYTEA, ids::INT4, ids::INT4],
        ids::BYTEA,
        substring,
    ),
    Function::row(
        2086,
        "substr",
        &[ids::BYTEA, ids::INT4],
        ids::BYTEA,
        substring,
    ),
    Function::row(
        2085,
        "substr",
        &[ids::BYTEA, ids::INT4, ids::INT4],
        ids::BYTEA,
        substring,
    ),
    Function::row(
        752,
        "overlay",
        &[ids::BYTEA, ids::BYTEA, ids::INT4],
        ids::BYTEA,
        overlay,
    ),
    Function::row(
        749,
        "overlay",
        &[ids::BYTEA, ids::BYTEA, ids::INT4, ids::INT4],
        ids::BYTEA,
        overlay,
    ),
    Function::row(
        2014,
        "position",
        &[ids::BYTEA, ids::BYTEA],
        ids::INT4,
        position,
    ),
    Function::row(
        2015,
        "btrim",
        &[ids::BYTEA, ids::BYTEA],
        ids::BYTEA,
        |_, a| trim(a, true, true),
    ),
    Function::row(
        6195,
        "ltrim",
        &[ids::BYTEA, ids::BYTEA],
        ids::BYTEA,
        |_, a| trim(a, true, false),
    ),
    Function::row(
        6196,
        "rtrim",
        &[ids::BYTEA, ids::BYTEA],
        ids::BYTEA,
        |_, a| trim(a, false, true),
    ),
    Function::row(
        721,
        "get_byte",
        &[ids::BYTEA, ids::INT4],
        ids::INT4,
        get_byte,
    ),
    Function::row(
        722,
        "set_byte",
        &[ids::BYTEA, ids::INT4, ids::INT4],
        ids::BYTEA,
        set_byte,
    ),
    Function::row(723, "get_bit", &[ids::BYTEA, ids::INT8], ids::INT4, get_bit),
    Function::row(
        724,
        "set_bit",
        &[ids::BYTEA, ids::INT8, ids::INT4],
        ids::BYTEA,
        set_bit,
    ),
];

fn truth(value: bool) -> Result<Datum> {
    Ok(Datum::Bool(value))
}

fn order(a: &[Datum]) -> Ordering {
    a[0].as_bytes().cmp(b_of(a))
}

fn b_of(a: &[Datum]) -> &[u8] {
    a[1].as_bytes()
}

fn number(value: usize) -> Result<Datum> {
    Ok(Datum::Int4(i32::try_from(value).unwrap_or(i32::MAX)))
}

fn byteacat(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    join(call, &[a[0].as_bytes(), a[1].as_bytes()])
}

fn join(call: &Call<'_>, parts: &[&[u8]]) -> Result<Datum> {
    call.room(parts.iter().map(|part| part.len()).sum())?;
    Ok(Datum::bytes(parts.concat()))
}

fn bit_count(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let count: u64 = a[0]
        .as_bytes()
        .iter()
        .map(|byte| u64::from(byte.count_ones()))
        .sum();
    Ok(Datum::Int8(i64::try_from(count).unwrap_or(i64::MAX)))
}

fn bit_length(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bits = i32::try_from(a[0].as_bytes().len())
        .ok()
        .and_then(|bytes| bytes.checked_mul(8));
    bits.map_or_else(
        || Err(QueryError::out_of_range("integer")),
        |bits| Ok(Datum::Int4(bits)),
    )
}

/// The part from `start`, counted from 1, over `length` bytes or all.
fn part(bytes: &[u8], start: i32, length: Option<i32>) -> Result<&[u8]> {
    let end = end_of_part(start, length)?;
    let first = usize::try_from(start.max(1) - 1).unwrap_or(0);
    let end = end.map_or(bytes.len(), |end| {
        usize::try_from(end.saturating_sub(1))
            .unwrap_or(0)
            .min(bytes.len())
    });
    Ok(bytes.get(first..end).unwrap_or_default())
}

fn substring(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let length = a.get(2).map(Datum::as_int4);
    let whole = a[0].as_bytes();
    let part = part(whole, a[1].as_int4(), length)?;
    if part.len() == whole.len() {
        return Ok(a[0].clone());
    }
    Ok(Datum::bytes(part))
}

fn overlay(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (whole, new, start) = (a[0].as_bytes(), a[1].as_bytes(), a[2].as_int4());
    let length = match a.get(3) {
        Some(length) => length.as_int4(),
        None => i32::try_from(new.len()).unwrap_or(i32::MAX),
    };
    if start <= 0 {
        return Err(negative_length());
    }
    let after = start
        .checked_add(length)
        .ok_or_else(|| QueryError::out_of_range("integer"))?;
    let (before, after) = (part(whole, 1, Some(start - 1))?, part(whole, after, None)?);
    join(call, &[before, new, after])
}

fn position(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let found = memchr::memmem::find(a[0].as_bytes(), a[1].as_bytes());
    number(found.map_or(0, |at| at + 1))
}

fn trim(a: &[Datum], left: bool, right: bool) -> Result<Datum> {
    let (whole, mut set) = (a[0].as_bytes(), [false; 256]);
    for byte in a[1].as_bytes() {
        set[usize::from(*byte)] = true;
    }
    let mut rest = whole;
    while let [first, inner @ ..] = rest
        && left
        && set[usize::from(*first)]
    {
        rest = inner;
    }
    while let [inner @ .., last] = rest
        && right
        && set[usize::from(*last)]
    {
        rest = inner;
    }
    if rest.len() == whole.len() {
        return Ok(a[0].clone());
    }
    Ok(Datum::bytes(rest))
}

/// The index of a byte or a bit, if there are so many.
fn index(at: i64, count: usize) -> Result<usize> {
    match usize::try_from(at) {
        Ok(at) if at < count => Ok(at),
        _ => Err(out_of_range(at, count)),
    }
}

/// 2202E: an index beyond what there is.
#[cold]
fn out_of_range(at: i64, count: usize) -> QueryError {
    let last = i64::try_from(count).unwrap_or(i64::MAX).saturating_sub(1);
    QueryError::new("2202E", format!("index {at} out of valid range, 0..{last}"))
}

fn get_byte(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bytes = a[0].as_bytes();
    let at = index(i64::from(a[1].as_int4()), bytes.len())?;
    Ok(Datum::Int4(i32::from(bytes[at])))
}

fn set_byte(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let mut bytes = a[0].as_bytes().to_vec();
    let at = index(i64::from(a[1].as_int4()), bytes.len())?;
    bytes[at] = a[2].as_int4().to_le_bytes()[0];
    Ok(Datum::bytes(bytes))
}

fn get_bit(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bytes = a[0].as_bytes();
    let at = index(a[1].as_int8(), bytes.len().saturating_mul(8))?;
    Ok(Datum::Int4(i32::from(bytes[at / 8] >> (at % 8) & 1)))
}

fn set_bit(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let mut bytes = a[0].as_bytes().to_vec();
    let at = index(a[1].as_int8(), bytes.len().saturating_mul(8))?;
    let mask = 1 << (at % 8);
    match a[2].as_int4() {
        0 => bytes[at / 8] &= !mask,
        1 => bytes[at / 8] |= mask,
        _ => return Err(QueryError::invalid_parameter("new bit must be 0 or 1")),
    }
    Ok(Datum::bytes(bytes))
}
