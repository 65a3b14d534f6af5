//! Parts of a tree: `->`, `#>`, lengths and kinds.

use std::sync::Arc;

use super::super::json::path_of;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::jsonb::{Jsonb, element};

/// A part of a tree.
fn part(found: Option<&Jsonb>) -> Datum {
    found.map_or(Datum::Null, |found| found.clone().into())
}

/// A part of a tree as a text; NULL for `null`.
pub(super) fn part_text(found: Option<&Jsonb>) -> Datum {
    found
        .and_then(Jsonb::as_plain_text)
        .map_or(Datum::Null, Datum::Text)
}

fn by_index(arguments: &[Datum]) -> Option<&Jsonb> {
    let items = match arguments[0].as_jsonb() {
        Jsonb::Array(items) => items,
        Jsonb::Object(_) => return None,
        // A scalar that stands alone is like the only element of an array.
        scalar => std::slice::from_ref(scalar),
    };
    let index = i64::from(arguments[1].as_int4());
    let place = if index < 0 {
        index + i64::try_from(items.len()).ok()?
    } else {
        index
    };
    items.get(usize::try_from(place).ok()?)
}

fn by_path(arguments: &[Datum]) -> Option<&Jsonb> {
    element(arguments[0].as_jsonb(), path_of(arguments[1].as_array())?)
}

pub(super) fn jsonb_object_field(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(part(arguments[0].as_jsonb().get(arguments[1].as_text())))
}

pub(super) fn jsonb_object_field_text(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(part_text(
        arguments[0].as_jsonb().get(arguments[1].as_text()),
    ))
}

pub(super) fn jsonb_array_element(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(part(by_index(arguments)))
}

pub(super) fn jsonb_array_element_text(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(part_text(by_index(arguments)))
}

pub(super) fn jsonb_extract_path(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(part(by_path(arguments)))
}

pub(super) fn jsonb_extract_path_text(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(part_text(by_path(arguments)))
}

pub(super) fn jsonb_array_length(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    match arguments[0].as_jsonb() {
        Jsonb::Array(items) => Ok(Datum::Int4(i32::try_from(items.len()).unwrap_or(i32::MAX))),
        Jsonb::Object(_) => Err(QueryError::invalid_parameter(
            "cannot get array length of a non-array",
        )),
        _ => Err(QueryError::invalid_parameter(
            "cannot get array length of a scalar",
        )),
    }
}

pub(super) fn jsonb_typeof(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Text(Arc::from(arguments[0].as_jsonb().kind())))
}

pub(super) fn jsonb_pretty(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let value = arguments[0].as_jsonb();
    // Indentation grows with the depth: its length is counted before it is made.
    call.room(pretty_length(value, 0))?;
    let mut out = String::new();
    value.write_pretty(0, &mut out);
    Ok(Datum::text(out))
}

/// How many bytes the indentation takes, about.
fn pretty_length(value: &Jsonb, level: usize) -> usize {
    let line = 4 * (level + 1) + 8;
    let over = |values: &mut dyn Iterator<Item = &Jsonb>| {
        values.fold(line, |sum, value| {
            sum.saturating_add(line)
                .saturating_add(pretty_length(value, level + 1))
        })
    };
    match value {
        Jsonb::Array(items) => over(&mut items.iter()),
        Jsonb::Object(pairs) => over(&mut pairs.iter().map(|(_, value)| value)),
        Jsonb::String(text) => text.len(),
        _ => 8,
    }
}

pub(super) fn jsonb_strip_nulls(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(stripped(arguments[0].as_jsonb())?.into())
}

fn stripped(value: &Jsonb) -> Result<Jsonb> {
    match value {
        Jsonb::Array(items) => Jsonb::array(items.iter().map(stripped).collect::<Result<_>>()?),
        Jsonb::Object(pairs) => Jsonb::object(
            pairs
                .iter()
                .filter(|(_, value)| !matches!(value, Jsonb::Null))
                .map(|(key, value)| Ok((Arc::clone(key), stripped(value)?)))
                .collect::<Result<_>>()?,
        ),
        scalar => Ok(scalar.clone()),
    }
}
