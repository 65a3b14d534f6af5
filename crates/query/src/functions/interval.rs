//! Functions and operators of `interval`.

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::datetime::{DAY, HOUR, MINUTE, interval_out_of_range, truncated};
use crate::types::ids;
use crate::types::interval::{Interval, fitted};

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(
        1200,
        "interval",
        &[ids::INTERVAL, ids::INT4],
        ids::INTERVAL,
        interval_scale,
    ),
    Function::row(
        1326,
        "interval_div",
        &[ids::INTERVAL, ids::FLOAT8],
        ids::INTERVAL,
        interval_div,
    ),
    Function::row(
        1170,
        "interval_mi",
        &[ids::INTERVAL, ids::INTERVAL],
        ids::INTERVAL,
        interval_mi,
    ),
    Function::row(
        1618,
        "interval_mul",
        &[ids::INTERVAL, ids::FLOAT8],
        ids::INTERVAL,
        interval_mul,
    ),
    Function::row(
        1169,
        "interval_pl",
        &[ids::INTERVAL, ids::INTERVAL],
        ids::INTERVAL,
        interval_pl,
    ),
    Function::row(
        1168,
        "interval_um",
        &[ids::INTERVAL],
        ids::INTERVAL,
        interval_um,
    ),
    Function::row(
        1390,
        "isfinite",
        &[ids::INTERVAL],
        ids::BOOL,
        interval_finite,
    ),
    Function::row(
        1295,
        "justify_days",
        &[ids::INTERVAL],
        ids::INTERVAL,
        interval_justify_days,
    ),
    Function::row(
        1175,
        "justify_hours",
        &[ids::INTERVAL],
        ids::INTERVAL,
        interval_justify_hours,
    ),
    Function::row(
        2711,
        "justify_interval",
        &[ids::INTERVAL],
        ids::INTERVAL,
        interval_justify_interval,
    ),
    Function::row(
        3464,
        "make_interval",
        &[
            ids::INT4,
            ids::INT4,
            ids::INT4,
            ids::INT4,
            ids::INT4,
            ids::INT4,
            ids::FLOAT8,
        ],
        ids::INTERVAL,
        make_interval,
    )
    .named(&["years", "months", "weeks", "days", "hours", "mins", "secs"])
    .defaults(&[
        Some("0"),
        Some("0"),
        Some("0"),
        Some("0"),
        Some("0"),
        Some("0"),
        Some("0.0"),
    ]),
    Function::row(
        1624,
        "mul_d_interval",
        &[ids::FLOAT8, ids::INTERVAL],
        ids::INTERVAL,
        mul_d_interval,
    ),
];

fn interval_finite(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(true))
}

fn interval_scale(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    fitted(a[0].as_interval(), a[1].as_int4()).map(Datum::Interval)
}

fn interval_um(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    a[0].as_interval().negated().map(Datum::Interval)
}

fn interval_pl(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    a[0].as_interval()
        .plus(a[1].as_interval())
        .map(Datum::Interval)
}

fn interval_mi(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    a[0].as_interval()
        .minus(a[1].as_interval())
        .map(Datum::Interval)
}

fn interval_mul(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    a[0].as_interval()
        .times(a[1].as_float8())
        .map(Datum::Interval)
}

fn mul_d_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    a[1].as_interval()
        .times(a[0].as_float8())
        .map(Datum::Interval)
}

fn interval_div(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    a[0].as_interval()
        .over(a[1].as_float8())
        .map(Datum::Interval)
}

/// Makes months of 30 days.
fn take_months(interval: &mut Interval) -> Result<()> {
    let whole = interval.days / 30;
    interval.days %= 30;
    interval.months = interval
        .months
        .checked_add(whole)
        .ok_or_else(interval_out_of_range)?;
    Ok(())
}

/// Makes the hours' sign the days'.
fn same_sign_of_time(interval: &mut Interval) {
    if interval.days > 0 && interval.micros < 0 {
        interval.micros += DAY;
        interval.days -= 1;
    } else if interval.days < 0 && interval.micros > 0 {
        interval.micros -= DAY;
        interval.days += 1;
    }
}

/// Makes days of 24 hours.
pub(super) fn justified_hours(mut interval: Interval) -> Result<Interval> {
    // PostgreSQL keeps the days' lower 32 bits.
    let whole = (interval.micros / DAY) as i32;
    interval.micros %= DAY;
    interval.days = interval
        .days
        .checked_add(whole)
        .ok_or_else(interval_out_of_range)?;
    same_sign_of_time(&mut interval);
    Ok(interval)
}

fn interval_justify_hours(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    justified_hours(a[0].as_interval()).map(Datum::Interval)
}

fn interval_justify_days(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let mut interval = a[0].as_interval();
    take_months(&mut interval)?;
    if interval.months > 0 && interval.days < 0 {
        interval.days += 30;
        interval.months -= 1;
    } else if interval.months < 0 && interval.days > 0 {
        interval.days -= 30;
        interval.months += 1;
    }
    Ok(Datum::Interval(interval))
}

fn interval_justify_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let mut interval = a[0].as_interval();
    if (interval.days > 0 && interval.micros > 0) || (interval.days < 0 && interval.micros < 0) {
        take_months(&mut interval)?;
    }
    let whole = interval.micros / DAY;
    interval.micros %= DAY;
    interval.days = i64::from(interval.days).wrapping_add(whole) as i32;
    take_months(&mut interval)?;
    let Interval { days, micros, .. } = interval;
    if interval.months > 0 && (days < 0 || (days == 0 && micros < 0)) {
        interval.days += 30;
        interval.months -= 1;
    } else if interval.months < 0 && (days > 0 || (days == 0 && micros > 0)) {
        interval.days -= 30;
        interval.months += 1;
    }
    same_sign_of_time(&mut interval);
    Ok(Datum::Interval(interval))
}

fn make_interval(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let at = |at: usize| a[at].as_int4();
    let seconds = a[6].as_float8();
    if !seconds.is_finite() {
        return Err(interval_out_of_range());
    }
    // As PostgreSQL 15, without a look at what doesn't fit.
    let micros = truncated((seconds * 1e6).round_ties_even());
    Ok(Datum::Interval(Interval {
        months: at(0).wrapping_mul(12).wrapping_add(at(1)),
        days: at(2).wrapping_mul(7).wrapping_add(at(3)),
        micros: i64::from(at(4))
            .wrapping_mul(HOUR)
            .wrapping_add(i64::from(at(5)).wrapping_mul(MINUTE))
            .wrapping_add(micros),
    }))
}
