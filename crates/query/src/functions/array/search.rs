//! What arrays contain, and where.

use std::cmp::Ordering;

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::array::{self, Array, Equality};
use crate::types::{self, ids};

/// From how many comparisons on it pays to sort first.
const SORT_FROM: usize = 1024;

#[cold]
fn several_dimensions() -> QueryError {
    QueryError::unsupported(
        "searching for elements in multidimensional arrays is not supported",
        "Unnest the array first.",
    )
}

/// Calls `found` with the positions of a value, until it says that that is enough.
fn search(
    call: &Call<'_>,
    array: &Array,
    value: &Datum,
    from: i32,
    mut found: impl FnMut(i32) -> bool,
) -> Result<()> {
    let equality = Equality::of(array.element)?;
    let mut position = array.dimensions.first().map_or(1, |(_, lower)| *lower);
    for (number, element) in array.elements.iter().enumerate() {
        if number % 4096 == 4095 {
            call.environment.check_interrupted()?;
        }
        let same = position >= from
            && match (value, element) {
                (Datum::Null, Datum::Null) => true,
                (Datum::Null, _) | (_, Datum::Null) => false,
                (value, element) => equality.test(value, element)?,
            };
        if same && found(position) {
            return Ok(());
        }
        position = position.wrapping_add(1);
    }
    Ok(())
}

fn position(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let Datum::Array(array) = &arguments[0] else {
        return Ok(Datum::Null);
    };
    if array.dimensions.len() > 1 {
        return Err(several_dimensions());
    }
    if array.dimensions.is_empty() || (arguments[1].is_null() && !array.has_null()) {
        return Ok(Datum::Null);
    }
    let from = match arguments.get(2) {
        None => i32::MIN,
        Some(Datum::Int4(from)) => *from,
        Some(_) => {
            return Err(QueryError::new(
                "22004",
                "initial position must not be null",
            ));
        }
    };
    let mut result = Datum::Null;
    search(call, array, &arguments[1], from, |position| {
        result = Datum::Int4(position);
        true
    })?;
    Ok(result)
}

pub(super) fn array_position(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    position(call, arguments)
}

pub(super) fn array_position_start(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    position(call, arguments)
}

pub(super) fn array_positions(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let Datum::Array(array) = &arguments[0] else {
        return Ok(Datum::Null);
    };
    if array.dimensions.len() > 1 {
        return Err(several_dimensions());
    }
    let mut positions = Vec::new();
    if !array.dimensions.is_empty() && (!arguments[1].is_null() || array.has_null()) {
        search(call, array, &arguments[1], i32::MIN, |position| {
            positions.push(Datum::Int4(position));
            false
        })?;
    }
    Ok(Datum::Array(Array::of(ids::INT4, positions).into()))
}

/// Whether all elements of `a`, or any of them, are among those of `b`. NULL is equal to nothing.
fn contained(call: &Call<'_>, a: &Datum, b: &Datum, all: bool) -> Result<Datum> {
    let (a, b) = (a.as_array(), b.as_array());
    if a.element != b.element {
        return Err(array::different_elements());
    }
    let equality = Equality::of(a.element)?;
    let sorted = match equality {
        Equality::Order(compare)
            if a.elements.len().saturating_mul(b.elements.len()) >= SORT_FROM =>
        {
            array::room(call, b.elements.len())?;
            let mut values: Vec<&Datum> = b.elements.iter().filter(|v| !v.is_null()).collect();
            values.sort_unstable_by(|a, b| compare(a, b));
            Some((values, compare))
        }
        _ => None,
    };
    for (number, value) in a.elements.iter().enumerate() {
        if number % 1024 == 1023 {
            call.environment.check_interrupted()?;
        }
        let found = match &sorted {
            _ if value.is_null() => false,
            Some((values, compare)) => values
                .binary_search_by(|other| compare(other, value))
                .is_ok(),
            None => any_equal(call, equality, value, &b.elements)?,
        };
        if found != all {
            return Ok(Datum::Bool(found));
        }
    }
    Ok(Datum::Bool(all))
}

fn any_equal(call: &Call<'_>, equality: Equality, value: &Datum, others: &[Datum]) -> Result<bool> {
    if let Equality::Order(compare) = equality {
        // Without the way through errors, for the many small ones.
        return Ok(others
            .iter()
            .any(|other| !other.is_null() && compare(value, other) == Ordering::Equal));
    }
    for (number, other) in others.iter().enumerate() {
        if number % 4096 == 4095 {
            call.environment.check_interrupted()?;
        }
        if !other.is_null() && equality.test(value, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn arraycontains(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    contained(call, &arguments[1], &arguments[0], true)
}

pub(super) fn arraycontained(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    contained(call, &arguments[0], &arguments[1], true)
}

pub(super) fn arrayoverlap(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    contained(call, &arguments[0], &arguments[1], false)
}

/// Below which of the thresholds, which are in order, a value lies first.
pub(super) fn width_bucket_array(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (value, thresholds) = (&arguments[0], arguments[1].as_array());
    if thresholds.dimensions.len() > 1 {
        return Err(QueryError::new(
            "2202E",
            "thresholds must be one-dimensional array",
        ));
    }
    if thresholds.has_null() {
        return Err(QueryError::new(
            "22004",
            "thresholds array must not contain NULLs",
        ));
    }
    let (mut left, mut right) = (0, thresholds.elements.len());
    while left < right {
        let middle = left.midpoint(right);
        let order = types::compare(thresholds.element, value, &thresholds.elements[middle])?;
        if order.is_lt() {
            right = middle;
        } else {
            left = middle + 1;
        }
    }
    Ok(Datum::Int4(i32::try_from(left).unwrap_or(i32::MAX)))
}
