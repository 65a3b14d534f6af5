//! The elements and the fields of a tree as rows.

use std::sync::Arc;

use super::super::json::pair_maker;
use super::access::part_text;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::ids;
use crate::types::jsonb::{Jsonb, Pairs};

fn elements(value: &Jsonb) -> Result<&[Jsonb]> {
    match value {
        Jsonb::Array(items) => Ok(items),
        Jsonb::Object(_) => Err(QueryError::invalid_parameter(
            "cannot extract elements from an object",
        )),
        _ => Err(QueryError::invalid_parameter(
            "cannot extract elements from a scalar",
        )),
    }
}

pub(super) fn jsonb_array_elements(_: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    Ok(elements(arguments[0].as_jsonb())?
        .iter()
        .map(|item| item.clone().into())
        .collect())
}

pub(super) fn jsonb_array_elements_text(_: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    Ok(elements(arguments[0].as_jsonb())?
        .iter()
        .map(|item| part_text(Some(item)))
        .collect())
}

fn fields<'a>(name: &str, value: &'a Jsonb) -> Result<&'a Pairs> {
    match value {
        Jsonb::Object(pairs) => Ok(pairs),
        _ => Err(QueryError::invalid_parameter(format!(
            "cannot call {name} on a non-object"
        ))),
    }
}

pub(super) fn jsonb_each(_: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    let pair = pair_maker(ids::JSONB);
    Ok(fields("jsonb_each", arguments[0].as_jsonb())?
        .iter()
        .map(|(key, value)| pair(Arc::clone(key), value.clone().into()))
        .collect())
}

pub(super) fn jsonb_each_text(_: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    let pair = pair_maker(ids::TEXT);
    Ok(fields("jsonb_each_text", arguments[0].as_jsonb())?
        .iter()
        .map(|(key, value)| pair(Arc::clone(key), part_text(Some(value))))
        .collect())
}

pub(super) fn jsonb_object_keys(_: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    let found = match arguments[0].as_jsonb() {
        Jsonb::Object(pairs) => {
            return Ok(pairs
                .iter()
                .map(|(key, _)| Datum::Text(Arc::clone(key)))
                .collect());
        }
        Jsonb::Array(_) => "an array",
        _ => "a scalar",
    };
    Err(QueryError::invalid_parameter(format!(
        "cannot call jsonb_object_keys on {found}"
    )))
}
