//! How two ranges, or a range and a value, lie to each other. An empty range lies nowhere, and is
//! in every range.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::range::{Ends, Range, order};

/// What is true of two ranges that are not empty; of others it is false.
fn of_ends(arguments: &[Datum], is: impl FnOnce(&Ends, &Ends) -> bool) -> Result<Datum> {
    let (a, b) = (arguments[0].as_range(), arguments[1].as_range());
    Ok(Datum::Bool(match (&a.ends, &b.ends) {
        (Some(a), Some(b)) => is(a, b),
        _ => false,
    }))
}

fn ordered(arguments: &[Datum]) -> Ordering {
    arguments[0].as_range().compare(arguments[1].as_range())
}

pub(super) fn cmp(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(ordered(arguments) as i32))
}

pub(super) fn eq(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(ordered(arguments).is_eq()))
}

pub(super) fn ne(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(ordered(arguments).is_ne()))
}

pub(super) fn lt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(ordered(arguments).is_lt()))
}

pub(super) fn le(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(ordered(arguments).is_le()))
}

pub(super) fn gt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(ordered(arguments).is_gt()))
}

pub(super) fn ge(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(ordered(arguments).is_ge()))
}

/// Whether the value is in the range.
fn holds(range: &Range, value: &Datum) -> bool {
    let Some(ends) = &range.ends else {
        return false;
    };
    (match &ends.lower {
        Bound::Unbounded => true,
        Bound::Included(lower) => order(lower, value).is_le(),
        Bound::Excluded(lower) => order(lower, value).is_lt(),
    }) && (match &ends.upper {
        Bound::Unbounded => true,
        Bound::Included(upper) => order(value, upper).is_le(),
        Bound::Excluded(upper) => order(value, upper).is_lt(),
    })
}

pub(super) fn contains_element(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(holds(arguments[0].as_range(), &arguments[1])))
}

pub(super) fn element_contained_by(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(holds(arguments[1].as_range(), &arguments[0])))
}

/// Whether all of the second range is in the first.
fn includes(a: &Range, b: &Range) -> bool {
    match (&a.ends, &b.ends) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(a), Some(b)) => {
            a.low().compare(b.low()).is_le() && a.high().compare(b.high()).is_ge()
        }
    }
}

pub(super) fn contains(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (a, b) = (arguments[0].as_range(), arguments[1].as_range());
    Ok(Datum::Bool(includes(a, b)))
}

pub(super) fn contained_by(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (a, b) = (arguments[0].as_range(), arguments[1].as_range());
    Ok(Datum::Bool(includes(b, a)))
}

/// Whether a value is in both.
pub(super) fn overlap(a: &Ends, b: &Ends) -> bool {
    a.low().compare(b.high()).is_le() && b.low().compare(a.high()).is_le()
}

pub(super) fn overlaps(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    of_ends(arguments, overlap)
}

pub(super) fn before(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    of_ends(arguments, |a, b| a.high().compare(b.low()).is_lt())
}

pub(super) fn after(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    of_ends(arguments, |a, b| a.low().compare(b.high()).is_gt())
}

pub(super) fn over_left(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    of_ends(arguments, |a, b| a.high().compare(b.high()).is_le())
}

pub(super) fn over_right(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    of_ends(arguments, |a, b| a.low().compare(b.low()).is_ge())
}

/// Whether nothing lies between where one range stops and another begins, and no value is in both.
fn meet(a: &Ends, b: &Ends) -> bool {
    let value_is_in = |bound: &Bound<Datum>| matches!(bound, Bound::Included(_));
    a.high().compare_values(b.low()).is_eq() && value_is_in(&a.upper) != value_is_in(&b.lower)
}

/// Whether two ranges touch. Those of whole things are in their one form, so that none of their
/// ends are neighbours.
pub(super) fn touch(a: &Ends, b: &Ends) -> bool {
    meet(a, b) || meet(b, a)
}

pub(super) fn adjacent(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    of_ends(arguments, touch)
}
