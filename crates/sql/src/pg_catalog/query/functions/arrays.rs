//! Functions on arrays.

use crate::error::Result;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::pg_type::PgType;
use crate::pg_catalog::query::run::Run;
use crate::pg_catalog::query::text::datum_text;

fn array(values: &[Datum]) -> Option<&[Datum]> {
    values.first().and_then(Datum::as_array)
}

pub(super) fn to_string(values: &[Datum], data_type: PgType, run: &Run<'_>) -> Result<Datum> {
    let (Some(elements), Some(separator)) = (array(values), values.get(1).and_then(Datum::as_text))
    else {
        return Ok(Datum::Null);
    };
    let null_text = values.get(2).and_then(Datum::as_text);
    let between = separator.len() + null_text.map_or(0, str::len);
    run.made((elements.len() as u64).saturating_mul(between as u64))?;
    let element = data_type.element().unwrap_or(PgType::TEXT);
    let texts: Vec<String> = elements
        .iter()
        .filter_map(|value| match (value.is_null(), null_text) {
            (true, None) => None,
            (true, Some(text)) => Some(text.to_owned()),
            (false, _) => Some(datum_text(value, element, run.names())),
        })
        .collect();
    Ok(Datum::text(texts.join(separator)))
}

pub(super) fn position(values: &[Datum]) -> Datum {
    let (Some(elements), Some(wanted)) = (array(values), values.get(1)) else {
        return Datum::Null;
    };
    elements
        .iter()
        .position(|element| element == wanted)
        .map(|at| at as i64 + 1)
        .into()
}

/// The last or first subscript in dimension 1; NULL for an empty array.
pub(super) fn bound(values: &[Datum], data_type: PgType, upper: bool) -> Datum {
    let first = i64::from(!matches!(data_type.oid, 22 | 30));
    match (array(values), values.get(1).and_then(Datum::as_int)) {
        (Some(elements), Some(1)) if !elements.is_empty() => Datum::Int(if upper {
            first + elements.len() as i64 - 1
        } else {
            first
        }),
        _ => Datum::Null,
    }
}

pub(super) fn length(values: &[Datum]) -> Datum {
    match (array(values), values.get(1).and_then(Datum::as_int)) {
        (Some(elements), Some(1)) if !elements.is_empty() => Datum::Int(elements.len() as i64),
        _ => Datum::Null,
    }
}

pub(super) fn cardinality(values: &[Datum]) -> Datum {
    array(values).map(|elements| elements.len() as i64).into()
}

pub(super) fn remove(values: &[Datum]) -> Datum {
    match (array(values), values.get(1)) {
        (Some(elements), Some(unwanted)) => Datum::array(
            elements
                .iter()
                .filter(|element| *element != unwanted)
                .cloned(),
        ),
        _ => Datum::Null,
    }
}

pub(super) fn append(values: &[Datum]) -> Datum {
    match values {
        [Datum::Array(a), Datum::Array(b)] => Datum::array(a.iter().chain(b.iter()).cloned()),
        [Datum::Array(a), element] => Datum::array(a.iter().cloned().chain([element.clone()])),
        [Datum::Null, Datum::Array(b)] => Datum::Array(b.clone()),
        [Datum::Null, element] => Datum::array([element.clone()]),
        _ => Datum::Null,
    }
}

pub(super) fn from_string(values: &[Datum]) -> Datum {
    match (
        values.first().and_then(Datum::as_text),
        values.get(1).and_then(Datum::as_text),
    ) {
        (Some(""), _) => Datum::array([]),
        (Some(text), Some(separator)) => Datum::array(text.split(separator).map(Datum::text)),
        _ => Datum::Null,
    }
}
