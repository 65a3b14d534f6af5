//! The arithmetic of intervals that sums, averages and percentiles need.

use crate::error::{QueryError, Result};
use crate::types::interval::Interval;

const DAYS_PER_MONTH: f64 = 30.0;
const SECONDS_PER_DAY: f64 = 86_400.0;
const MICROS_PER_SECOND: f64 = 1_000_000.0;

fn out_of_range() -> QueryError {
    QueryError::new("22008", "interval out of range")
}

/// a + b
pub(super) fn add(a: Interval, b: Interval) -> Result<Interval> {
    let sum = || {
        Some(Interval {
            months: a.months.checked_add(b.months)?,
            days: a.days.checked_add(b.days)?,
            micros: a.micros.checked_add(b.micros)?,
        })
    };
    sum().ok_or_else(out_of_range)
}

/// a - b
pub(super) fn subtract(a: Interval, b: Interval) -> Result<Interval> {
    let difference = || {
        Some(Interval {
            months: a.months.checked_sub(b.months)?,
            days: a.days.checked_sub(b.days)?,
            micros: a.micros.checked_sub(b.micros)?,
        })
    };
    difference().ok_or_else(out_of_range)
}

/// Rounded to microseconds, of a count of seconds.
fn rounded(value: f64) -> f64 {
    (value * MICROS_PER_SECOND).round_ties_even() / MICROS_PER_SECOND
}

#[allow(clippy::cast_possible_truncation, reason = "the range was looked at")]
fn whole32(value: f64) -> Result<i32> {
    if value >= f64::from(i32::MIN) && value < 2_147_483_648.0 {
        return Ok(value as i32);
    }
    Err(out_of_range())
}

#[allow(clippy::cast_possible_truncation, reason = "the range was looked at")]
fn whole64(value: f64) -> Result<i64> {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        return Ok(value as i64);
    }
    Err(out_of_range())
}

/// Applies `scale` to each part; fractions go down to the smaller parts.
#[allow(clippy::cast_precision_loss, reason = "as PostgreSQL does")]
fn scaled(span: Interval, scale: impl Fn(f64) -> f64) -> Result<Interval> {
    let months = whole32(scale(f64::from(span.months)))?;
    let mut days = whole32(scale(f64::from(span.days)))?;
    let month_days = (scale(f64::from(span.months)) - f64::from(months)) * DAYS_PER_MONTH;
    let month_days = rounded(month_days);
    let mut seconds = rounded(
        (scale(f64::from(span.days)) - f64::from(days) + month_days - month_days.trunc())
            * SECONDS_PER_DAY,
    );
    if seconds.abs() >= SECONDS_PER_DAY {
        let more = (seconds / SECONDS_PER_DAY).trunc();
        days = days.checked_add(whole32(more)?).ok_or_else(out_of_range)?;
        seconds -= more * SECONDS_PER_DAY;
    }
    let days = days
        .checked_add(whole32(month_days.trunc())?)
        .ok_or_else(out_of_range)?;
    let micros = (scale(span.micros as f64) + seconds * MICROS_PER_SECOND).round_ties_even();
    Ok(Interval {
        months,
        days,
        micros: whole64(micros)?,
    })
}

/// span * factor
pub(super) fn multiply(span: Interval, factor: f64) -> Result<Interval> {
    scaled(span, |part| part * factor)
}

/// span / divisor
pub(super) fn divide(span: Interval, divisor: f64) -> Result<Interval> {
    if divisor == 0.0 {
        return Err(QueryError::division_by_zero());
    }
    scaled(span, |part| part / divisor)
}
