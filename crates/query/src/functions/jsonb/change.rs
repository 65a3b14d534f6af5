//! Trees that are changed: `jsonb_set`, `||`, `-` and their like.

use std::collections::HashSet;
use std::sync::Arc;

use super::contain::keys;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::array::Array;
use crate::types::jsonb::{Change, Jsonb, set_path};

/// The steps of a path.
fn steps(path: &Array) -> Result<Vec<Option<Arc<str>>>> {
    if path.dimensions.len() > 1 {
        return Err(QueryError::new("2202E", "wrong number of array subscripts"));
    }
    Ok(path
        .elements
        .iter()
        .map(|step| match step {
            Datum::Text(step) => Some(Arc::clone(step)),
            _ => None,
        })
        .collect())
}

/// Whether a container has nothing in it.
fn is_empty(value: &Jsonb) -> bool {
    match value {
        Jsonb::Array(items) => items.is_empty(),
        Jsonb::Object(pairs) => pairs.is_empty(),
        _ => false,
    }
}

fn change(
    call: &Call<'_>,
    arguments: &[Datum],
    new: Option<&Jsonb>,
    change: Change,
) -> Result<Datum> {
    let value = arguments[0].as_jsonb();
    let path = steps(arguments[1].as_array())?;
    if value.is_scalar() {
        return Err(QueryError::invalid_parameter(match change {
            Change::Delete => "cannot delete path in scalar",
            _ => "cannot set path in scalar",
        }));
    }
    let unchanged = is_empty(value) && matches!(change, Change::Delete | Change::Replace);
    if path.is_empty() || unchanged {
        return Ok(arguments[0].clone());
    }
    Ok(set_path(call, value, &path, new, change)?.into())
}

pub(super) fn jsonb_set(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    set(call, arguments, arguments[2].as_jsonb())
}

fn set(call: &Call<'_>, arguments: &[Datum], new: &Jsonb) -> Result<Datum> {
    let kind = if arguments[3].as_bool() {
        Change::Create
    } else {
        Change::Replace
    };
    change(call, arguments, Some(new), kind)
}

pub(super) fn jsonb_set_lax(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    if arguments[0].is_null() || arguments[1].is_null() || arguments[3].is_null() {
        return Ok(Datum::Null);
    }
    let treatment = match &arguments[4] {
        Datum::Text(text) => Some(&**text),
        _ => None,
    };
    if treatment.is_some() && !arguments[2].is_null() {
        return jsonb_set(call, arguments);
    }
    match treatment {
        Some("raise_exception") => Err(QueryError::new("22004", "JSON value must not be null")
            .with_detail(
                "Exception was raised because null_value_treatment is \"raise_exception\".",
            )
            .with_hint(
                "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.",
            )),
        Some("use_json_null") => set(call, arguments, &Jsonb::Null),
        Some("delete_key") => jsonb_delete_path(call, arguments),
        Some("return_target") => Ok(arguments[0].clone()),
        _ => Err(QueryError::invalid_parameter(
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
        )),
    }
}

pub(super) fn jsonb_insert(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let kind = if arguments[3].as_bool() {
        Change::InsertAfter
    } else {
        Change::InsertBefore
    };
    change(call, arguments, Some(arguments[2].as_jsonb()), kind)
}

pub(super) fn jsonb_delete_path(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    change(call, arguments, None, Change::Delete)
}

/// A tree without the fields of these keys and the elements that are these texts.
fn without(value: &Datum, is_deleted: impl Fn(&str) -> bool) -> Result<Datum> {
    match value.as_jsonb() {
        Jsonb::Array(items) => {
            let kept = items
                .iter()
                .filter(|item| !matches!(item, Jsonb::String(text) if is_deleted(text)))
                .cloned();
            Ok(Jsonb::array(kept.collect())?.into())
        }
        Jsonb::Object(pairs) => {
            let kept = pairs.iter().filter(|(key, _)| !is_deleted(key)).cloned();
            Ok(Jsonb::object(kept.collect())?.into())
        }
        _ => Err(QueryError::invalid_parameter("cannot delete from scalar")),
    }
}

pub(super) fn jsonb_delete(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let deleted = arguments[1].as_text();
    without(&arguments[0], |key| key == deleted)
}

pub(super) fn jsonb_delete_keys(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    if arguments[1].as_array().dimensions.len() > 1 {
        return Err(QueryError::new("2202E", "wrong number of array subscripts"));
    }
    let deleted: HashSet<&str> = keys(&arguments[1]).map(|key| &**key).collect();
    without(&arguments[0], |key| deleted.contains(key))
}

pub(super) fn jsonb_delete_place(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let items = match arguments[0].as_jsonb() {
        Jsonb::Array(items) => items,
        Jsonb::Object(_) => {
            return Err(QueryError::invalid_parameter(
                "cannot delete from object using integer index",
            ));
        }
        _ => return Err(QueryError::invalid_parameter("cannot delete from scalar")),
    };
    let index = i64::from(arguments[1].as_int4());
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let place = usize::try_from(if index < 0 { index + length } else { index });
    let Some(place) = place.ok().filter(|place| *place < items.len()) else {
        return Ok(arguments[0].clone());
    };
    let mut kept = items.to_vec();
    kept.remove(place);
    Ok(Jsonb::array(kept)?.into())
}

pub(super) fn jsonb_concat(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (left, right) = (arguments[0].as_jsonb(), arguments[1].as_jsonb());
    let elements = |value: &Jsonb| match value {
        Jsonb::Array(items) => items.len(),
        Jsonb::Object(pairs) => pairs.len(),
        _ => 1,
    };
    call.room((elements(left) + elements(right)).saturating_mul(std::mem::size_of::<Jsonb>()))?;
    if let (Jsonb::Object(left), Jsonb::Object(right)) = (left, right) {
        let pairs = left.iter().chain(right.iter()).cloned();
        return Ok(Jsonb::object(pairs.collect())?.into());
    }
    let mut items = Vec::with_capacity(elements(left) + elements(right));
    for side in [left, right] {
        match side {
            Jsonb::Array(more) => items.extend(more.iter().cloned()),
            other => items.push(other.clone()),
        }
    }
    Ok(Jsonb::array(items)?.into())
}
