//! The functions of `information_schema`, under PostgreSQL's numbers, and one of an extension.

use std::sync::Arc;

use crate::call::Call;
use crate::datum::{Datum, Record};
use crate::error::Result;
use crate::functions::Function;
use crate::types::{self, ids};

/// What PostgreSQL gives to functions of extensions is larger; this is no other's.
const STAT_STATEMENTS_RESET: u32 = 15_900;

/// The functions of this file.
pub(in crate::functions) static FUNCTIONS: &[Function] = &[
    Function::set(
        13208,
        "_pg_expandarray",
        &[ids::ANYARRAY],
        ids::RECORD,
        expand_array,
    )
    .columns(&[("x", ids::ANYELEMENT), ("n", ids::INT4)]),
    Function::server(
        13209,
        "_pg_index_position",
        &[ids::OID, ids::INT2],
        ids::INT4,
    ),
    Function::row(
        13212,
        "_pg_char_max_length",
        &[ids::OID, ids::INT4],
        ids::INT4,
        char_max_length,
    ),
    Function::row(
        13213,
        "_pg_char_octet_length",
        &[ids::OID, ids::INT4],
        ids::INT4,
        char_octet_length,
    ),
    Function::row(
        13215,
        "_pg_numeric_precision",
        &[ids::OID, ids::INT4],
        ids::INT4,
        numeric_precision,
    ),
    Function::row(
        13216,
        "_pg_numeric_precision_radix",
        &[ids::OID, ids::INT4],
        ids::INT4,
        numeric_precision_radix,
    ),
    Function::row(
        13217,
        "_pg_numeric_scale",
        &[ids::OID, ids::INT4],
        ids::INT4,
        numeric_scale,
    ),
    Function::row(
        13218,
        "_pg_datetime_precision",
        &[ids::OID, ids::INT4],
        ids::INT4,
        datetime_precision,
    ),
    Function::row(
        13219,
        "_pg_interval_type",
        &[ids::OID, ids::INT4],
        ids::TEXT,
        interval_type,
    ),
    Function::server(
        STAT_STATEMENTS_RESET,
        "pg_stat_statements_reset",
        &[ids::OID, ids::OID, ids::INT8],
        ids::VOID,
    )
    .volatile()
    .defaults(&[Some("0"), Some("0"), Some("0")])
    .named(&["userid", "dbid", "queryid"]),
];

/// The longest text, in bytes, as this schema tells it.
const TEXT_BYTES_MAX: i32 = 1 << 30;
/// The bytes of UTF-8's longest character.
const CHARACTER_BYTES_MAX: i32 = 4;
/// What is added to modifiers of texts and numbers.
const MODIFIER_OFFSET: i32 = 4;
const LOW_BITS: i32 = 0xffff;

/// The elements of an array of one dimension, with their subscripts from 1.
fn expand_array(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    let array = arguments[0].as_array();
    let count = match array.dimensions.first() {
        Some((length, _)) => usize::try_from(*length).unwrap_or(0),
        None => 0,
    };
    call.room(count.saturating_mul(size_of::<Datum>() * 3))?;
    let types: Arc<[u32]> = Arc::new([array.element, ids::INT4]);
    let names: Arc<[Arc<str>]> = Arc::new(["x".into(), "n".into()]);
    let rows = (1..).zip(array.elements.iter().take(count));
    Ok(rows
        .map(|(number, element)| {
            // Of more dimensions one subscript finds nothing.
            let element = if array.dimensions.len() == 1 {
                element.clone()
            } else {
                Datum::Null
            };
            Datum::Record(Arc::new(Record {
                modifiers: None,
                types: Arc::clone(&types),
                names: Some(Arc::clone(&names)),
                values: vec![element, Datum::Int4(number)],
            }))
        })
        .collect())
}

fn optional(value: Option<i32>) -> Result<Datum> {
    Ok(value.map_or(Datum::Null, Datum::Int4))
}

fn type_and_modifier(arguments: &[Datum]) -> (u32, i32) {
    (arguments[0].as_oid(), arguments[1].as_int4())
}

fn longest(oid: u32, modifier: i32) -> Option<i32> {
    match (oid, modifier) {
        (_, -1) => None,
        (ids::BPCHAR | ids::VARCHAR, _) => Some(modifier.wrapping_sub(MODIFIER_OFFSET)),
        (ids::BIT | ids::VARBIT, _) => Some(modifier),
        _ => None,
    }
}

fn char_max_length(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (oid, modifier) = type_and_modifier(arguments);
    optional(longest(oid, modifier))
}

fn char_octet_length(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (oid, modifier) = type_and_modifier(arguments);
    if !matches!(oid, ids::TEXT | ids::BPCHAR | ids::VARCHAR) {
        return Ok(Datum::Null);
    }
    if modifier == -1 {
        return Ok(Datum::Int4(TEXT_BYTES_MAX));
    }
    match longest(oid, modifier) {
        None => Ok(Datum::Null),
        Some(longest) => longest
            .checked_mul(CHARACTER_BYTES_MAX)
            .map(Datum::Int4)
            .ok_or_else(|| crate::error::QueryError::out_of_range("integer")),
    }
}

fn numeric_precision(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (oid, modifier) = type_and_modifier(arguments);
    optional(match oid {
        ids::INT2 => Some(16),
        ids::INT4 => Some(32),
        ids::INT8 => Some(64),
        ids::FLOAT4 => Some(24),
        ids::FLOAT8 => Some(53),
        ids::NUMERIC if modifier != -1 => {
            Some((modifier.wrapping_sub(MODIFIER_OFFSET) >> 16) & LOW_BITS)
        }
        _ => None,
    })
}

fn numeric_precision_radix(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    optional(match arguments[0].as_oid() {
        ids::INT2 | ids::INT4 | ids::INT8 | ids::FLOAT4 | ids::FLOAT8 => Some(2),
        ids::NUMERIC => Some(10),
        _ => None,
    })
}

fn numeric_scale(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (oid, modifier) = type_and_modifier(arguments);
    optional(match oid {
        ids::INT2 | ids::INT4 | ids::INT8 => Some(0),
        ids::NUMERIC if modifier != -1 => Some(modifier.wrapping_sub(MODIFIER_OFFSET) & LOW_BITS),
        _ => None,
    })
}

fn datetime_precision(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (oid, modifier) = type_and_modifier(arguments);
    optional(match oid {
        ids::DATE => Some(0),
        ids::TIME | ids::TIMESTAMP | ids::TIMESTAMPTZ | ids::TIMETZ => {
            Some(if modifier < 0 { 6 } else { modifier })
        }
        ids::INTERVAL if modifier < 0 || modifier & LOW_BITS == LOW_BITS => Some(6),
        ids::INTERVAL => Some(modifier & LOW_BITS),
        _ => None,
    })
}

/// The fields of an interval type, in capitals.
fn interval_type(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (oid, modifier) = type_and_modifier(arguments);
    if oid != ids::INTERVAL {
        return Ok(Datum::Null);
    }
    let name = types::format_type(oid, modifier);
    let fields = name.split_once(' ').filter(|(first, _)| {
        first.strip_prefix("interval").is_some_and(|precision| {
            precision
                .chars()
                .all(|letter| matches!(letter, '(' | ')' | '0'..='9'))
        })
    });
    Ok(fields.map_or(Datum::Null, |(_, fields)| {
        Datum::text(fields.to_uppercase())
    }))
}
