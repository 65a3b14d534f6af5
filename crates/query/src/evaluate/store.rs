//! Values with a part of them changed: elements and slices of arrays, columns of rows, what is at
//! subscripts of `jsonb`.

use std::sync::Arc;

use super::{Evaluator, Scope};
use crate::call::Call;
use crate::datum::{Datum, Record};
use crate::error::{QueryError, Result};
use crate::tree::{Bounds, Expr, Part, Store};
use crate::types::array::{Array, subscript};
use crate::types::user::columns_of;
use crate::types::{self, ids, jsonb};

impl Evaluator<'_> {
    pub(super) fn store(&self, store: &Store, oid: u32, scope: Scope<'_>) -> Result<Datum> {
        let container = self.value(&store.container, scope)?;
        match &store.part {
            Part::Field(at) => {
                let value = self.value(&store.value, scope)?;
                field_stored(container, *at, value, oid)
            }
            Part::Elements(bounds, slice) => {
                let mut given = Vec::with_capacity(bounds.len());
                for (lower, upper) in bounds {
                    given.push((self.bound(lower, scope)?, self.bound(upper, scope)?));
                }
                let value = self.value(&store.value, scope)?;
                let call = Call::new(self.environment, &[], oid);
                if oid == ids::JSONB {
                    return json_stored(&call, &container, &given, bounds, &value);
                }
                elements_stored(&call, container, &given, *slice, value)
            }
        }
    }

    /// A bound: not written, or its value.
    fn bound(&self, bound: &Option<Expr>, scope: Scope<'_>) -> Result<Option<Datum>> {
        let value = bound.as_ref().map(|bound| self.value(bound, scope));
        value.transpose()
    }
}

fn field_stored(container: Datum, at: usize, value: Datum, oid: u32) -> Result<Datum> {
    let mut record = match container {
        Datum::Record(record) => Record::clone(&record),
        _ => columns_of(oid)?.nulls(),
    };
    match record.values.get_mut(at) {
        Some(place) => *place = value,
        None => return Err(QueryError::internal("a row without the column")),
    }
    Ok(Datum::Record(record.into()))
}

type Given = (Option<Datum>, Option<Datum>);

fn json_stored(
    call: &Call<'_>,
    container: &Datum,
    given: &[Given],
    bounds: &[Bounds],
    value: &Datum,
) -> Result<Datum> {
    let path: Vec<Option<Arc<str>>> = given
        .iter()
        .map(|(_, upper)| match upper {
            Some(Datum::Int4(at)) => Some(Arc::from(at.to_string())),
            Some(Datum::Text(key)) => Some(Arc::from(&**key)),
            _ => None,
        })
        .collect();
    let is_number =
        |(_, upper): &Bounds| upper.as_ref().is_some_and(|upper| upper.oid == ids::INT4);
    let tree = |value: &Datum| match value {
        Datum::Jsonb(tree) => Some(Arc::clone(tree)),
        _ => None,
    };
    let (before, new) = (tree(container), tree(value));
    let first_is_number = bounds.first().is_some_and(is_number);
    let after = jsonb::assign(
        call,
        before.as_deref(),
        first_is_number,
        &path,
        new.as_deref(),
    )?;
    Ok(Datum::Jsonb(Arc::new(after)))
}

fn elements_stored(
    call: &Call<'_>,
    container: Datum,
    given: &[Given],
    slice: bool,
    value: Datum,
) -> Result<Datum> {
    let null = || QueryError::new("22004", "array subscript in assignment must not be null");
    let number = |bound: &Option<Datum>| match bound {
        None => Ok(None),
        Some(Datum::Int4(at)) => Ok(Some(*at)),
        Some(_) => Err(null()),
    };
    let array = match &container {
        Datum::Array(array) => Array::clone(array),
        _ => Array::of(types::element_of(call.result).unwrap_or(0), Vec::new()),
    };
    let mut places = Vec::with_capacity(given.len());
    for (lower, upper) in given {
        places.push((number(lower)?, number(upper)?));
    }
    let after = match slice {
        false => {
            let places: Vec<i32> = places.iter().filter_map(|(_, upper)| *upper).collect();
            subscript::set(call, array, &places, value)?
        }
        true => match &value {
            Datum::Array(source) => subscript::set_slice(call, array, &places, source)?,
            // As PostgreSQL: a slice to which NULL is assigned stays as it was.
            _ => return Ok(container),
        },
    };
    Ok(Datum::Array(Arc::new(after)))
}
