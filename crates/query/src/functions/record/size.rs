//! How many bytes a value takes where PostgreSQL stores it, uncompressed.

use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::array::Array;
use crate::types::range::Ends;
use crate::types::record::Level;
use crate::types::{self, ids};

/// The bytes of a value's head.
const HEAD: usize = 4;
/// Up to this length a value in a row has a head of one byte.
const SHORT_MAX: usize = 126;

/// At multiples of which a type's values stand.
fn alignment(oid: u32) -> usize {
    match oid {
        ids::INT8
        | ids::FLOAT8
        | ids::TIME
        | ids::TIMETZ
        | ids::TIMESTAMP
        | ids::TIMESTAMPTZ
        | ids::INTERVAL
        | ids::PG_LSN
        | ids::XID8
        | ids::TSRANGE
        | ids::TSTZRANGE
        | ids::INT8RANGE
        | ids::RECORD => 8,
        ids::BOOL | ids::CHAR | ids::NAME | ids::UUID | ids::CSTRING | ids::UNKNOWN => 1,
        ids::INT2 | ids::TID => 2,
        oid => match types::element_of(oid) {
            Some(element) if alignment(element) == 8 => 8,
            _ => 4,
        },
    }
}

/// The bytes of a decimal number, by its text form: four digits take two.
fn numeric_size(text: &str) -> usize {
    let (whole, fraction) = text
        .trim_start_matches('-')
        .split_once('.')
        .unwrap_or((text.trim_start_matches('-'), ""));
    if !whole.starts_with(|char: char| char.is_ascii_digit()) {
        return HEAD + 2;
    }
    // Groups of four around the point; those of zeros at both ends are not stored.
    let mut digits = "0".repeat((4 - whole.len() % 4) % 4);
    digits.push_str(whole);
    let weight = digits.len() / 4;
    digits.push_str(fraction);
    while !digits.len().is_multiple_of(4) {
        digits.push('0');
    }
    let groups: Vec<&[u8]> = digits.as_bytes().chunks(4).collect();
    let is_zero = |group: &&[u8]| group.iter().all(|digit| *digit == b'0');
    let Some(first) = groups.iter().position(|group| !is_zero(group)) else {
        return HEAD + 2;
    };
    let last = groups
        .iter()
        .rposition(|group| !is_zero(group))
        .unwrap_or(first);
    let short = fraction.len() <= 63 && weight <= first + 64 && first <= weight + 63;
    HEAD + if short { 2 } else { 4 } + 2 * (last - first + 1)
}

fn array_size(call: &Call<'_>, array: &Array) -> Result<usize> {
    let mut size = 16 + 8 * array.dimensions.len();
    if array.elements.is_empty() {
        return Ok(size);
    }
    if array.has_null() {
        size += array.elements.len().div_ceil(8);
    }
    size = size.next_multiple_of(8);
    let align = alignment(array.element);
    for value in &array.elements {
        if !value.is_null() {
            let bytes = stored_size(call, array.element, value)?;
            size = size.saturating_add(bytes.next_multiple_of(align));
        }
    }
    Ok(size)
}

/// The size so far with one more value of this type, which takes these bytes alone.
fn added(size: usize, oid: u32, bytes: usize) -> usize {
    let varies = types::by_oid(oid).is_none_or(|row| row.length == -1);
    if varies && bytes.saturating_sub(3) <= SHORT_MAX {
        size.saturating_add(bytes.saturating_sub(3))
    } else {
        size.next_multiple_of(alignment(oid)).saturating_add(bytes)
    }
}

/// The bytes of a value that is not NULL; those of `jsonb` and `jsonpath` roughly.
pub(in crate::functions) fn stored_size(call: &Call<'_>, oid: u32, value: &Datum) -> Result<usize> {
    let length = types::by_oid(oid).map_or(-1, |row| row.length);
    if let Ok(length) = usize::try_from(length) {
        return Ok(length);
    }
    Ok(match value {
        Datum::Text(text) if length == -2 => text.len() + 1,
        Datum::Text(text) => HEAD + text.len(),
        Datum::Bytea(bytes) => HEAD + bytes.len(),
        Datum::Numeric(_) => numeric_size(&types::to_text(call, ids::NUMERIC, value)?),
        Datum::Inet(address) => HEAD + 2 + usize::from(address.bits()) / 8,
        Datum::Range(range) => {
            let mut size = HEAD + 4;
            for value in range.ends.iter().flat_map(Ends::values) {
                let bytes = stored_size(call, range.element, value)?;
                size = added(size, range.element, bytes);
            }
            size + 1
        }
        Datum::Array(array) if types::by_oid(oid).is_some_and(|row| row.element != 0) => {
            // `int2vector` and `oidvector`: a head of their own.
            24 + array.elements.len() * if array.element == ids::INT2 { 2 } else { 4 }
        }
        Datum::Array(array) => array_size(call, array)?,
        Datum::Record(record) => {
            let _level = Level::enter()?;
            let nulls = record.values.iter().any(Datum::is_null);
            let bitmap = if nulls {
                record.values.len().div_ceil(8)
            } else {
                0
            };
            let mut size = (23 + bitmap).next_multiple_of(8);
            for (oid, value) in record.types.iter().zip(&record.values) {
                if value.is_null() {
                    continue;
                }
                let bytes = stored_size(call, *oid, value)?;
                size = added(size, *oid, bytes);
            }
            size
        }
        value => {
            let mut bytes = Vec::new();
            types::send(call, oid, value, &mut bytes)?;
            HEAD + bytes.len()
        }
    })
}
