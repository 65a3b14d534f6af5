//! The range types: all values of another type between two ends. A value is empty or has a lower
//! and an upper end, each of which may be missing.
//!
//! Ranges of whole things (integers, days) are kept in one form: with the lower end, without the
//! upper one. So equal ranges have equal ends.

mod binary;
mod text;

use std::cmp::Ordering;
use std::ops::Bound;

use super::{Type, date, datetime, ids, numeric};
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// A range.
#[derive(Clone, Debug)]
pub struct Range {
    /// The number of the type of its ends.
    pub element: u32,
    /// Its ends; `None` where it is empty.
    pub ends: Option<Ends>,
}

/// The ends of a range that is not empty, in their order.
#[derive(Clone, Debug)]
pub struct Ends {
    /// Where it begins.
    pub lower: Bound<Datum>,
    /// Where it stops.
    pub upper: Bound<Datum>,
}

/// A range type of this number and name.
const fn of(oid: u32, name: &'static str, array: u32) -> Type {
    Type {
        category: b'R',
        array,
        input: text::input,
        output: text::output,
        receive: binary::receive,
        send: binary::send,
        compare: Some(|a, b| a.as_range().compare(b.as_range())),
        ..Type::new(oid, name, name)
    }
}

/// The types of this file.
pub const TYPES: &[Type] = &[
    of(ids::INT4RANGE, "int4range", ids::INT4RANGE_ARRAY),
    of(ids::NUMRANGE, "numrange", ids::NUMRANGE_ARRAY),
    of(ids::TSRANGE, "tsrange", ids::TSRANGE_ARRAY),
    of(ids::TSTZRANGE, "tstzrange", ids::TSTZRANGE_ARRAY),
    of(ids::DATERANGE, "daterange", ids::DATERANGE_ARRAY),
    of(ids::INT8RANGE, "int8range", ids::INT8RANGE_ARRAY),
];

/// The number of the type of a range type's ends, or `None` for another type.
#[must_use]
pub const fn element_of(oid: u32) -> Option<u32> {
    match oid {
        ids::INT4RANGE => Some(ids::INT4),
        ids::NUMRANGE => Some(ids::NUMERIC),
        ids::TSRANGE => Some(ids::TIMESTAMP),
        ids::TSTZRANGE => Some(ids::TIMESTAMPTZ),
        ids::DATERANGE => Some(ids::DATE),
        ids::INT8RANGE => Some(ids::INT8),
        _ => None,
    }
}

/// Whether a value can be an end of a range over this type.
pub(crate) const fn is_end(element: u32, value: &Datum) -> bool {
    matches!(
        (element, value),
        (ids::INT4, Datum::Int4(_))
            | (ids::NUMERIC, Datum::Numeric(_))
            | (ids::TIMESTAMP, Datum::Timestamp(_))
            | (ids::TIMESTAMPTZ, Datum::TimestampTz(_))
            | (ids::DATE, Datum::Date(_))
            | (ids::INT8, Datum::Int8(_))
    )
}

/// The order of two ends' values, which are of one type.
#[must_use]
pub fn order(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Int4(a), Datum::Int4(b)) | (Datum::Date(a), Datum::Date(b)) => a.cmp(b),
        (Datum::Int8(a), Datum::Int8(b))
        | (Datum::Timestamp(a), Datum::Timestamp(b))
        | (Datum::TimestampTz(a), Datum::TimestampTz(b)) => a.cmp(b),
        _ => numeric::compare(a, b),
    }
}

/// An end of a range, as ends are compared: a lower one or an upper one.
#[derive(Clone, Copy, Debug)]
pub enum End<'a> {
    /// Where a range begins.
    Lower(&'a Bound<Datum>),
    /// Where a range stops.
    Upper(&'a Bound<Datum>),
}

impl<'a> End<'a> {
    const fn bound(self) -> &'a Bound<Datum> {
        match self {
            Self::Lower(bound) | Self::Upper(bound) => bound,
        }
    }

    /// Where it stands beside its value: before it (-1), at it, or behind it; that of an end
    /// that is missing stands before all or behind all.
    const fn side(self) -> i8 {
        match self {
            Self::Lower(Bound::Excluded(_)) | Self::Upper(Bound::Unbounded) => 1,
            Self::Upper(Bound::Excluded(_)) | Self::Lower(Bound::Unbounded) => -1,
            Self::Lower(Bound::Included(_)) | Self::Upper(Bound::Included(_)) => 0,
        }
    }

    /// The order of two ends' values. A missing end is before all or behind all.
    #[must_use]
    pub fn compare_values(self, other: Self) -> Ordering {
        match (value(self.bound()), value(other.bound())) {
            (Some(a), Some(b)) => order(a, b),
            (None, None) => self.side().cmp(&other.side()),
            (None, Some(_)) => self.side().cmp(&0),
            (Some(_), None) => 0.cmp(&other.side()),
        }
    }

    /// The order of two ends.
    #[must_use]
    pub fn compare(self, other: Self) -> Ordering {
        self.compare_values(other)
            .then_with(|| self.side().cmp(&other.side()))
    }
}

/// An end's value, if it is not missing.
#[must_use]
pub const fn value(bound: &Bound<Datum>) -> Option<&Datum> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value),
        Bound::Unbounded => None,
    }
}

/// An end of this value, or a missing one for NULL.
#[must_use]
pub fn bound(value: Datum, included: bool) -> Bound<Datum> {
    match (value, included) {
        (Datum::Null, _) => Bound::Unbounded,
        (value, true) => Bound::Included(value),
        (value, false) => Bound::Excluded(value),
    }
}

impl Ends {
    /// Where the range begins.
    #[must_use]
    pub const fn low(&self) -> End<'_> {
        End::Lower(&self.lower)
    }

    /// The values of those ends that are not missing.
    pub fn values(&self) -> impl Iterator<Item = &Datum> {
        [&self.lower, &self.upper].into_iter().filter_map(value)
    }

    /// Where the range stops.
    #[must_use]
    pub const fn high(&self) -> End<'_> {
        End::Upper(&self.upper)
    }
}

impl Range {
    /// The range without values.
    #[must_use]
    pub const fn empty(element: u32) -> Self {
        Self {
            element,
            ends: None,
        }
    }

    /// The range between two ends, in its one form.
    ///
    /// # Errors
    /// 22000 where the ends are not in their order, 22003 and 22008 where the next integer or
    /// the next day is none.
    pub fn new(element: u32, lower: Bound<Datum>, upper: Bound<Datum>) -> Result<Self> {
        let ends = Ends { lower, upper };
        if is_nothing(&ends)? {
            return Ok(Self::empty(element));
        }
        let lower = match ends.lower {
            Bound::Excluded(value) => match next(&value)? {
                Some(next) => Bound::Included(next),
                None => Bound::Excluded(value),
            },
            other => other,
        };
        let upper = match ends.upper {
            Bound::Included(value) => match next(&value)? {
                Some(next) => Bound::Excluded(next),
                None => Bound::Included(value),
            },
            other => other,
        };
        let ends = Ends { lower, upper };
        // Between two neighbours there is nothing.
        let ends = (!is_nothing(&ends)?).then_some(ends);
        Ok(Self { element, ends })
    }

    /// The order: the empty range first, then by the lower ends, then by the upper ones.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        match (&self.ends, &other.ends) {
            (Some(a), Some(b)) => a
                .low()
                .compare(b.low())
                .then_with(|| a.high().compare(b.high())),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }
}

/// Whether nothing lies between two ends.
fn is_nothing(ends: &Ends) -> Result<bool> {
    match ends.low().compare_values(ends.high()) {
        Ordering::Less => Ok(false),
        Ordering::Equal => {
            let both = (&ends.lower, &ends.upper);
            Ok(!matches!(both, (Bound::Included(_), Bound::Included(_))))
        }
        Ordering::Greater => Err(out_of_order()),
    }
}

#[cold]
fn out_of_order() -> QueryError {
    QueryError::new(
        "22000",
        "range lower bound must be less than or equal to range upper bound",
    )
}

/// The next value after one of a type of whole things; the infinities have none.
fn next(value: &Datum) -> Result<Option<Datum>> {
    Ok(match value {
        Datum::Int4(value) => match value.checked_add(1) {
            Some(next) => Some(Datum::Int4(next)),
            None => return Err(QueryError::out_of_range("integer")),
        },
        Datum::Int8(value) => match value.checked_add(1) {
            Some(next) => Some(Datum::Int8(next)),
            None => return Err(QueryError::out_of_range("bigint")),
        },
        // The last but one number is no date, and the last one is an infinity.
        Datum::Date(value) if date::is_finite(*value) => match value + 1 {
            next if datetime::is_date(next) => Some(Datum::Date(next)),
            _ => return Err(datetime::date_out_of_range()),
        },
        _ => None,
    })
}

#[cfg(test)]
mod tests;
