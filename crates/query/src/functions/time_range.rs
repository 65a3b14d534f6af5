//! `OVERLAPS`, and the bounds of windows that are given as intervals.

use std::cmp::Ordering;

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::ids;
use crate::types::interval::Interval;
use crate::types::time::TimeTz;
use crate::types::timestamp::{plus, timestamp_of_date, zoned_plus};

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(
        4133,
        "in_range",
        &[ids::DATE, ids::DATE, ids::INTERVAL, ids::BOOL, ids::BOOL],
        ids::BOOL,
        in_range_date_interval,
    ),
    Function::row(
        4134,
        "in_range",
        &[
            ids::TIMESTAMP,
            ids::TIMESTAMP,
            ids::INTERVAL,
            ids::BOOL,
            ids::BOOL,
        ],
        ids::BOOL,
        in_range_timestamp_interval,
    ),
    Function::row(
        4135,
        "in_range",
        &[
            ids::TIMESTAMPTZ,
            ids::TIMESTAMPTZ,
            ids::INTERVAL,
            ids::BOOL,
            ids::BOOL,
        ],
        ids::BOOL,
        in_range_timestamptz_interval,
    )
    .stable(),
    Function::row(
        4136,
        "in_range",
        &[
            ids::INTERVAL,
            ids::INTERVAL,
            ids::INTERVAL,
            ids::BOOL,
            ids::BOOL,
        ],
        ids::BOOL,
        in_range_interval_interval,
    ),
    Function::row(
        4137,
        "in_range",
        &[ids::TIME, ids::TIME, ids::INTERVAL, ids::BOOL, ids::BOOL],
        ids::BOOL,
        in_range_time_interval,
    ),
    Function::row(
        4138,
        "in_range",
        &[
            ids::TIMETZ,
            ids::TIMETZ,
            ids::INTERVAL,
            ids::BOOL,
            ids::BOOL,
        ],
        ids::BOOL,
        in_range_timetz_interval,
    ),
    Function::row(
        1271,
        "overlaps",
        &[ids::TIMETZ, ids::TIMETZ, ids::TIMETZ, ids::TIMETZ],
        ids::BOOL,
        overlaps_timetz,
    )
    .called_on_null(),
    Function::row(
        1304,
        "overlaps",
        &[
            ids::TIMESTAMPTZ,
            ids::TIMESTAMPTZ,
            ids::TIMESTAMPTZ,
            ids::TIMESTAMPTZ,
        ],
        ids::BOOL,
        overlaps_timestamptz,
    )
    .called_on_null(),
    Function::row(
        1305,
        "overlaps",
        &[
            ids::TIMESTAMPTZ,
            ids::INTERVAL,
            ids::TIMESTAMPTZ,
            ids::INTERVAL,
        ],
        ids::BOOL,
        overlaps_timestamptz_spans,
    )
    .called_on_null()
    .stable(),
    Function::row(
        1306,
        "overlaps",
        &[
            ids::TIMESTAMPTZ,
            ids::TIMESTAMPTZ,
            ids::TIMESTAMPTZ,
            ids::INTERVAL,
        ],
        ids::BOOL,
        overlaps_timestamptz_second_span,
    )
    .called_on_null()
    .stable(),
    Function::row(
        1307,
        "overlaps",
        &[
            ids::TIMESTAMPTZ,
            ids::INTERVAL,
            ids::TIMESTAMPTZ,
            ids::TIMESTAMPTZ,
        ],
        ids::BOOL,
        overlaps_timestamptz_first_span,
    )
    .called_on_null()
    .stable(),
    Function::row(
        1308,
        "overlaps",
        &[ids::TIME, ids::TIME, ids::TIME, ids::TIME],
        ids::BOOL,
        overlaps_time,
    )
    .called_on_null(),
    Function::row(
        1309,
        "overlaps",
        &[ids::TIME, ids::INTERVAL, ids::TIME, ids::INTERVAL],
        ids::BOOL,
        overlaps_time_spans,
    )
    .called_on_null(),
    Function::row(
        1310,
        "overlaps",
        &[ids::TIME, ids::TIME, ids::TIME, ids::INTERVAL],
        ids::BOOL,
        overlaps_time_second_span,
    )
    .called_on_null(),
    Function::row(
        1311,
        "overlaps",
        &[ids::TIME, ids::INTERVAL, ids::TIME, ids::TIME],
        ids::BOOL,
        overlaps_time_first_span,
    )
    .called_on_null(),
    Function::row(
        2041,
        "overlaps",
        &[
            ids::TIMESTAMP,
            ids::TIMESTAMP,
            ids::TIMESTAMP,
            ids::TIMESTAMP,
        ],
        ids::BOOL,
        overlaps_timestamp,
    )
    .called_on_null(),
    Function::row(
        2042,
        "overlaps",
        &[ids::TIMESTAMP, ids::INTERVAL, ids::TIMESTAMP, ids::INTERVAL],
        ids::BOOL,
        overlaps_timestamp_spans,
    )
    .called_on_null(),
    Function::row(
        2043,
        "overlaps",
        &[
            ids::TIMESTAMP,
            ids::TIMESTAMP,
            ids::TIMESTAMP,
            ids::INTERVAL,
        ],
        ids::BOOL,
        overlaps_timestamp_second_span,
    )
    .called_on_null(),
    Function::row(
        2044,
        "overlaps",
        &[
            ids::TIMESTAMP,
            ids::INTERVAL,
            ids::TIMESTAMP,
            ids::TIMESTAMP,
        ],
        ids::BOOL,
        overlaps_timestamp_first_span,
    )
    .called_on_null(),
];

/// Whether two spans share a moment; ends may come in any order, and where one
/// is unknown the answer may be, too.
fn overlap<T: Copy>(
    first: (Option<T>, Option<T>),
    second: (Option<T>, Option<T>),
    order: impl Fn(&T, &T) -> Ordering,
) -> Datum {
    let sorted = |(start, end): (Option<T>, Option<T>)| match (start, end) {
        (Some(start), Some(end)) if order(&start, &end).is_gt() => Some((end, Some(start))),
        (Some(start), end) => Some((start, end)),
        (None, Some(end)) => Some((end, None)),
        (None, None) => None,
    };
    let (Some((start, end)), Some((other_start, other_end))) = (sorted(first), sorted(second))
    else {
        return Datum::Null;
    };
    let within = |start: &T, end: Option<T>, own_end: Option<T>| match (end, own_end) {
        (None, _) => Datum::Null,
        (Some(end), _) if order(start, &end).is_lt() => Datum::Bool(true),
        (Some(_), None) => Datum::Null,
        (Some(_), Some(_)) => Datum::Bool(false),
    };
    match order(&start, &other_start) {
        Ordering::Greater => within(&start, other_end, end),
        Ordering::Less => within(&other_start, end, other_end),
        Ordering::Equal if end.is_none() || other_end.is_none() => Datum::Null,
        Ordering::Equal => Datum::Bool(true),
    }
}

/// A value, if it is not NULL.
fn known<T>(value: &Datum, read: impl FnOnce(&Datum) -> T) -> Option<T> {
    if value.is_null() {
        None
    } else {
        Some(read(value))
    }
}

/// The end of a span whose length is given.
fn end<T: Copy>(
    start: Option<T>,
    length: &Datum,
    plus: impl FnOnce(T, Interval) -> Result<T>,
) -> Result<Option<T>> {
    match (start, known(length, Datum::as_interval)) {
        (Some(start), Some(length)) => plus(start, length).map(Some),
        _ => Ok(None),
    }
}

/// `OVERLAPS` of one type: with two ends, and with lengths for one or both.
macro_rules! overlaps {
    ($read:expr, $plus:expr; $ends:ident $spans:ident $second:ident $first:ident) => {
        fn $ends(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let at = |at: usize| known(&a[at], $read);
            Ok(overlap((at(0), at(1)), (at(2), at(3)), Ord::cmp))
        }
        fn $spans(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let at = |at: usize| known(&a[at], $read);
            let first = end(at(0), &a[1], |start, length| $plus(call, start, length))?;
            let second = end(at(2), &a[3], |start, length| $plus(call, start, length))?;
            Ok(overlap((at(0), first), (at(2), second), Ord::cmp))
        }
        fn $second(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let at = |at: usize| known(&a[at], $read);
            let second = end(at(2), &a[3], |start, length| $plus(call, start, length))?;
            Ok(overlap((at(0), at(1)), (at(2), second), Ord::cmp))
        }
        fn $first(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            let at = |at: usize| known(&a[at], $read);
            let first = end(at(0), &a[1], |start, length| $plus(call, start, length))?;
            Ok(overlap((at(0), first), (at(2), at(3)), Ord::cmp))
        }
    };
}

overlaps!(Datum::as_timestamp, |_: &Call<'_>, start, length| plus(start, length);
    overlaps_timestamp overlaps_timestamp_spans overlaps_timestamp_second_span
    overlaps_timestamp_first_span);
overlaps!(Datum::as_timestamptz,
    |call: &Call<'_>, start, length| zoned_plus(start, length, call.settings());
    overlaps_timestamptz overlaps_timestamptz_spans overlaps_timestamptz_second_span
    overlaps_timestamptz_first_span);
overlaps!(Datum::as_time,
    |_: &Call<'_>, start, length: Interval| Ok(super::time::on_clock(start, length.micros));
    overlaps_time overlaps_time_spans overlaps_time_second_span overlaps_time_first_span);

fn overlaps_timetz(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let at = |at: usize| known(&a[at], Datum::as_timetz);
    Ok(overlap((at(0), at(1)), (at(2), at(3)), TimeTz::order))
}

#[cold]
fn bad_size() -> QueryError {
    QueryError::new(
        "22013",
        "invalid preceding or following size in window function",
    )
}

/// The offset, negated where the bound lies before.
fn offset(a: &[Datum]) -> Result<Interval> {
    let offset = a[2].as_interval();
    if offset.length() < 0 {
        return Err(bad_size());
    }
    Ok(if a[3].as_bool() {
        offset.reversed()
    } else {
        offset
    })
}

/// Whether a value lies on the wanted side of the bound.
fn beside(order: Ordering, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(if a[4].as_bool() {
        order.is_le()
    } else {
        order.is_ge()
    }))
}

fn in_range_timestamp_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bound = plus(a[1].as_timestamp(), offset(a)?)?;
    beside(a[0].as_timestamp().cmp(&bound), a)
}

fn in_range_timestamptz_interval(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bound = zoned_plus(a[1].as_timestamptz(), offset(a)?, call.settings())?;
    beside(a[0].as_timestamptz().cmp(&bound), a)
}

fn in_range_date_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let value = timestamp_of_date(a[0].as_date())?;
    let base = timestamp_of_date(a[1].as_date())?;
    beside(value.cmp(&plus(base, offset(a)?)?), a)
}

fn in_range_interval_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (base, offset) = (a[1].as_interval(), a[2].as_interval());
    if offset.length() < 0 {
        return Err(bad_size());
    }
    let bound = if a[3].as_bool() {
        base.minus(offset)?
    } else {
        base.plus(offset)?
    };
    beside(a[0].as_interval().order(&bound), a)
}

/// A time of day moved by the offset's hours, perhaps beyond the day.
fn time_bound(base: i64, a: &[Datum]) -> Result<i64> {
    let micros = a[2].as_interval().micros;
    if micros < 0 {
        return Err(bad_size());
    }
    Ok(if a[3].as_bool() {
        base.wrapping_sub(micros)
    } else {
        base.wrapping_add(micros)
    })
}

fn in_range_time_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bound = time_bound(a[1].as_time(), a)?;
    beside(a[0].as_time().cmp(&bound), a)
}

fn in_range_timetz_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let base = a[1].as_timetz();
    let bound = TimeTz {
        micros: time_bound(base.micros, a)?,
        zone: base.zone,
    };
    beside(a[0].as_timetz().order(&bound), a)
}
