//! `min` and `max`.

use std::cmp::Ordering;

use super::super::{Aggregate, AggregateState};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::size;
use crate::types;

/// The largest or the smallest value so far.
struct Extreme {
    value: Datum,
    /// The type's order, where it is the same for all its values.
    compare: Option<fn(&Datum, &Datum) -> Ordering>,
    oid: u32,
    /// The outcome of a comparison of the value with a new one that lets it stay.
    stays: Ordering,
    /// Whether it stays before an equal one.
    stays_if_equal: bool,
}

impl Extreme {
    fn state(call: &Call<'_>, stays: Ordering, stays_if_equal: bool) -> Box<dyn AggregateState> {
        let oid = call.arguments.first().copied().unwrap_or(0);
        Box::new(Self {
            value: Datum::Null,
            compare: types::by_oid(oid).and_then(|row| row.compare),
            oid,
            stays,
            stays_if_equal,
        })
    }
}

impl AggregateState for Extreme {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        let new = &arguments[0];
        if !self.value.is_null() {
            let order = match self.compare {
                Some(compare) => compare(&self.value, new),
                None => types::compare(self.oid, &self.value, new)?,
            };
            if order == self.stays || (self.stays_if_equal && order == Ordering::Equal) {
                return Ok(());
            }
        }
        self.value = new.clone();
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        Ok(self.value.clone())
    }

    fn bytes(&self) -> usize {
        size::beyond(&self.value)
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(vec![self.value.clone()])
    }

    fn merge(&mut self, call: &Call<'_>, saved: &[Datum]) -> Result<()> {
        if saved[0].is_null() {
            return Ok(());
        }
        self.update(call, saved)
    }
}

/// `max`
pub(super) static MAX: Aggregate =
    Aggregate::normal(|call| Extreme::state(call, Ordering::Greater, false));
/// `min`
pub(super) static MIN: Aggregate =
    Aggregate::normal(|call| Extreme::state(call, Ordering::Less, false));
/// `max` of `bpchar`: of equal texts the first one.
pub(super) static MAX_BPCHAR: Aggregate =
    Aggregate::normal(|call| Extreme::state(call, Ordering::Greater, true));
/// `min` of `bpchar`: of equal texts the first one.
pub(super) static MIN_BPCHAR: Aggregate =
    Aggregate::normal(|call| Extreme::state(call, Ordering::Less, true));
