//! Values of any type as trees: `to_jsonb`, `jsonb_build_object` and their like.

use std::sync::Arc;

use super::super::json::{
    Kind, argument_type, check_pairs, field_name, is_plain_text, key_text, kind_of, moment_text,
    number_kept, object_entries, spread,
};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types;
use crate::types::array::Array;
use crate::types::json::too_deep;
use crate::types::jsonb::{ELEMENTS_MAX, Jsonb};
use crate::types::numeric::Numeric;

/// How deep arrays and rows may be within each other.
const DEPTH_MAX: usize = 500;

/// A value of a type as a tree, NULL included.
pub(in super::super) fn to_tree(call: &Call<'_>, oid: u32, value: &Datum) -> Result<Jsonb> {
    nested(call, kind_of(oid), oid, value, 0)
}

fn nested(call: &Call<'_>, kind: Kind, oid: u32, value: &Datum, depth: usize) -> Result<Jsonb> {
    if value.is_null() {
        return Ok(Jsonb::Null);
    }
    if depth > DEPTH_MAX {
        return Err(too_deep());
    }
    match kind {
        Kind::Bool => Ok(Jsonb::Bool(value.as_bool())),
        Kind::Number => number(call, oid, value),
        Kind::Date | Kind::Timestamp | Kind::TimestampTz => {
            Jsonb::string(moment_text(call, value).unwrap_or_default())
        }
        Kind::Json => Jsonb::parse(call, value.as_text()),
        Kind::Jsonb => Ok(value.as_jsonb().clone()),
        Kind::Array => {
            let array = value.as_array();
            if array.elements.is_empty() {
                return Jsonb::array(Vec::new());
            }
            let mut elements = array.elements.iter();
            dimension(call, array, &array.dimensions, &mut elements, depth)
        }
        Kind::Record => {
            let record = value.as_record();
            let pairs = record
                .types
                .iter()
                .zip(&record.values)
                .enumerate()
                .map(|(place, (oid, value))| {
                    Ok((
                        field_name(record, place),
                        nested(call, kind_of(*oid), *oid, value, depth + 1)?,
                    ))
                })
                .collect::<Result<_>>()?;
            Jsonb::object(pairs)
        }
        Kind::Other => match value {
            Datum::Text(text) if is_plain_text(oid) => Jsonb::string(Arc::clone(text)),
            value => Jsonb::string(types::to_text(call, oid, value)?),
        },
    }
}

fn number(call: &Call<'_>, oid: u32, value: &Datum) -> Result<Jsonb> {
    Ok(match value {
        Datum::Int2(n) => Jsonb::Number(Numeric::from_i64(i64::from(*n))),
        Datum::Int4(n) => Jsonb::Number(Numeric::from_i64(i64::from(*n))),
        Datum::Int8(n) => Jsonb::Number(Numeric::from_i64(*n)),
        Datum::Numeric(number) if number.is_finite() => Jsonb::Number(number.clone()),
        value => {
            let text = types::to_text(call, oid, value)?;
            if number_kept(&text) {
                Jsonb::Number(Numeric::parse(&text)?)
            } else {
                Jsonb::string(text)?
            }
        }
    })
}

fn dimension(
    call: &Call<'_>,
    array: &Array,
    dimensions: &[(i32, i32)],
    elements: &mut std::slice::Iter<'_, Datum>,
    depth: usize,
) -> Result<Jsonb> {
    let Some((&(length, _), inner)) = dimensions.split_first() else {
        return Jsonb::array(Vec::new());
    };
    let kind = kind_of(array.element);
    let length = usize::try_from(length).unwrap_or(0);
    if length > ELEMENTS_MAX {
        call.room(length.saturating_mul(32))?;
    }
    let mut items = Vec::with_capacity(length.min(array.elements.len()));
    for _ in 0..length {
        if !inner.is_empty() {
            items.push(dimension(call, array, inner, elements, depth)?);
        } else if let Some(element) = elements.next() {
            items.push(nested(call, kind, array.element, element, depth + 1)?);
        }
    }
    Jsonb::array(items)
}

pub(super) fn to_jsonb(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(to_tree(call, argument_type(call, 0)?, &arguments[0])?.into())
}

pub(super) fn jsonb_build_array(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(spread(call, arguments, array_of)?.unwrap_or_default())
}

fn array_of(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let items = arguments
        .iter()
        .enumerate()
        .map(|(place, value)| to_tree(call, argument_type(call, place)?, value))
        .collect::<Result<_>>()?;
    Ok(Jsonb::array(items)?.into())
}

pub(super) fn jsonb_build_object(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(spread(call, arguments, object_of)?.unwrap_or_default())
}

fn object_of(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    check_pairs("jsonb_build_object", arguments)?;
    let pairs = arguments
        .chunks_exact(2)
        .enumerate()
        .map(|(place, pair)| {
            if pair[0].is_null() {
                return Err(QueryError::invalid_parameter(format!(
                    "argument {}: key must not be null",
                    2 * place + 1
                )));
            }
            Ok((
                key_text(call, argument_type(call, 2 * place)?, &pair[0])?,
                to_tree(call, argument_type(call, 2 * place + 1)?, &pair[1])?,
            ))
        })
        .collect::<Result<_>>()?;
    Ok(Jsonb::object(pairs)?.into())
}

pub(super) fn jsonb_object(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let pairs = object_entries(arguments)?
        .into_iter()
        .map(|(key, value)| (key, value.map_or(Jsonb::Null, Jsonb::String)))
        .collect();
    Ok(Jsonb::object(pairs)?.into())
}
