//! Ranges of two ranges, and `range_intersect_agg`.

use std::ops::Bound;
use std::sync::Arc;

use super::compare::{overlap, touch};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions::{Aggregate, AggregateState};
use crate::size;
use crate::types::range::Range;

#[cold]
fn not_contiguous(what: &str) -> QueryError {
    QueryError::new(
        "22000",
        format!("result of range {what} would not be contiguous"),
    )
}

fn made(element: u32, lower: Bound<Datum>, upper: Bound<Datum>) -> Result<Datum> {
    Range::new(element, lower, upper).map(|range| Datum::Range(Arc::new(range)))
}

/// From where the first of two ranges begins to where the last one stops.
fn around(arguments: &[Datum], gap_allowed: bool) -> Result<Datum> {
    let (a, b) = (arguments[0].as_range(), arguments[1].as_range());
    let (one, other) = match (&a.ends, &b.ends) {
        (None, _) => return Ok(arguments[1].clone()),
        (_, None) => return Ok(arguments[0].clone()),
        (Some(one), Some(other)) => (one, other),
    };
    if !gap_allowed && !overlap(one, other) && !touch(one, other) {
        return Err(not_contiguous("union"));
    }
    let first = match one.low().compare(other.low()).is_lt() {
        true => one,
        false => other,
    };
    let last = match one.high().compare(other.high()).is_gt() {
        true => one,
        false => other,
    };
    made(a.element, first.lower.clone(), last.upper.clone())
}

pub(super) fn union(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    around(arguments, false)
}

pub(super) fn merge(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    around(arguments, true)
}

/// What is in both.
fn common(a: &Range, b: &Range) -> Result<Datum> {
    let (Some(one), Some(other)) = (&a.ends, &b.ends) else {
        return Ok(Datum::Range(Range::empty(a.element).into()));
    };
    if !overlap(one, other) {
        return Ok(Datum::Range(Range::empty(a.element).into()));
    }
    let first = match one.low().compare(other.low()).is_ge() {
        true => one,
        false => other,
    };
    let last = match one.high().compare(other.high()).is_le() {
        true => one,
        false => other,
    };
    made(a.element, first.lower.clone(), last.upper.clone())
}

pub(super) fn intersect(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    common(arguments[0].as_range(), arguments[1].as_range())
}

/// The end of another range that stops where one begins, or begins where one stops.
fn turned(bound: &Bound<Datum>) -> Bound<Datum> {
    match bound {
        Bound::Included(value) => Bound::Excluded(value.clone()),
        Bound::Excluded(value) => Bound::Included(value.clone()),
        Bound::Unbounded => Bound::Unbounded,
    }
}

pub(super) fn minus(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let (a, b) = (arguments[0].as_range(), arguments[1].as_range());
    let (Some(one), Some(other)) = (&a.ends, &b.ends) else {
        return Ok(arguments[0].clone());
    };
    if !overlap(one, other) {
        return Ok(arguments[0].clone());
    }
    let left = one.low().compare(other.low()).is_lt();
    let right = one.high().compare(other.high()).is_gt();
    match (left, right) {
        (true, true) => Err(not_contiguous("difference")),
        (false, false) => Ok(Datum::Range(Range::empty(a.element).into())),
        (true, false) => made(a.element, one.lower.clone(), turned(&other.lower)),
        (false, true) => made(a.element, turned(&other.upper), one.upper.clone()),
    }
}

/// What is in all ranges so far; NULL before the first.
#[derive(Default)]
struct Intersection(Datum);

impl AggregateState for Intersection {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        self.0 = match &self.0 {
            Datum::Range(so_far) => common(so_far, arguments[0].as_range())?,
            _ => arguments[0].clone(),
        };
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        Ok(self.0.clone())
    }

    fn bytes(&self) -> usize {
        size::beyond(&self.0)
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(vec![self.0.clone()])
    }

    fn merge(&mut self, call: &Call<'_>, saved: &[Datum]) -> Result<()> {
        match saved.first() {
            None | Some(Datum::Null) => Ok(()),
            Some(_) => self.update(call, saved),
        }
    }
}

/// `range_intersect_agg`
pub(in crate::functions) static INTERSECT_AGGREGATE: Aggregate =
    Aggregate::normal(|_| Box::new(Intersection::default()));
