//! Dates and timestamps: civil-day arithmetic on PostgreSQL's encoding (days
//! and microseconds since 2000-01-01), fields, truncation, months.
//!
//! The calendar is the proleptic Gregorian one, as in PostgreSQL. The time zone is UTC here, so a
//! `timestamptz` has the same fields as a `timestamp` of the same number: sessions of another
//! zone do not ask here. Infinities pass through unchanged.

mod fields;
#[cfg(test)]
mod tests;
mod text;

pub use fields::{Field, date_trunc, extract};
pub use text::{
    parse_date, parse_timestamp, parse_timestamptz, write_date, write_timestamp, write_timestamptz,
};

use crate::types::SECOND_DIGITS_MAX;
use crate::value::{
    DATE_INFINITY, DATE_NEGATIVE_INFINITY, TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY,
};
use crate::value_error::ValueError;

/// Microseconds in a second.
pub const SECOND_US: i64 = 1_000_000;
/// Microseconds in a minute.
pub const MINUTE_US: i64 = 60 * SECOND_US;
/// Microseconds in an hour.
pub const HOUR_US: i64 = 60 * MINUTE_US;
/// Microseconds in a day.
pub const DAY_US: i64 = 24 * HOUR_US;

/// Days from 1970-01-01, the Unix epoch, to 2000-01-01, ours.
pub const UNIX_EPOCH_DAYS: i64 = 10_957;

/// The Julian day of 2000-01-01.
pub(crate) const EPOCH_JULIAN_DAY: i64 = 2_451_545;

/// The first and the first impossible day: 4714-11-24 BC, 5874898-01-01.
const DATE_MIN: i64 = -EPOCH_JULIAN_DAY;
const DATE_END: i64 = 2_147_483_494 - EPOCH_JULIAN_DAY;

/// The first and the first impossible microsecond: 4714-11-24 BC, 294277-01-01.
const TIMESTAMP_MIN: i64 = DATE_MIN * DAY_US;
const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// A timestamp with so many digits of a second, the nearest; infinities stay such.
#[must_use]
pub const fn rounded(timestamp: i64, digits: u8) -> i64 {
    if digits >= SECOND_DIGITS_MAX
        || timestamp == TIMESTAMP_INFINITY
        || timestamp == TIMESTAMP_NEGATIVE_INFINITY
    {
        return timestamp;
    }
    let step = 10_i64.pow((SECOND_DIGITS_MAX - digits) as u32);
    let half = step / 2;
    match timestamp >= 0 {
        true => timestamp.saturating_add(half) / step * step,
        false => timestamp.saturating_sub(half) / step * step,
    }
}

/// A day of the calendar; the year before 1 is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Civil {
    /// Astronomical year: 1 BC is 0.
    pub year: i64,
    /// 1 to 12
    pub month: u32,
    /// 1 to 31
    pub day: u32,
}

/// Days since 2000-01-01 of a day of the calendar.
/// (Hinnant, "chrono-compatible low-level date algorithms".)
#[must_use]
pub const fn days_from_civil(civil: Civil) -> i64 {
    let year = if civil.month <= 2 {
        civil.year - 1
    } else {
        civil.year
    };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month = (civil.month as i64 + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + civil.day as i64 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468 - UNIX_EPOCH_DAYS
}

/// The day of the calendar that many days after 2000-01-01.
#[must_use]
pub const fn civil_from_days(days: i64) -> Civil {
    let days = days + UNIX_EPOCH_DAYS + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    Civil {
        year,
        month: month as u32,
        day: day as u32,
    }
}

/// The number of days of a month.
#[must_use]
pub const fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.rem_euclid(4) == 0
            && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) =>
        {
            29
        }
        2 => 28,
        _ => 31,
    }
}

/// Whether the date is one of the infinities.
#[must_use]
pub const fn is_infinite_date(days: i32) -> bool {
    days == DATE_INFINITY || days == DATE_NEGATIVE_INFINITY
}

/// Whether the timestamp is one of the infinities.
#[must_use]
pub const fn is_infinite_timestamp(microseconds: i64) -> bool {
    microseconds == TIMESTAMP_INFINITY || microseconds == TIMESTAMP_NEGATIVE_INFINITY
}

/// The date of that many days since 2000-01-01.
///
/// # Errors
/// 22008 outside PostgreSQL's range.
pub fn date_from_days(days: i64) -> Result<i32, ValueError> {
    if (DATE_MIN..DATE_END).contains(&days) {
        // The range lies within 32 bits.
        Ok(days as i32)
    } else {
        Err(ValueError::new("22008", "date out of range"))
    }
}

/// The timestamp of that many microseconds since 2000-01-01.
///
/// # Errors
/// 22008 outside PostgreSQL's range.
pub fn timestamp_from_microseconds(microseconds: i128) -> Result<i64, ValueError> {
    i64::try_from(microseconds)
        .ok()
        .filter(|microseconds| (TIMESTAMP_MIN..TIMESTAMP_END).contains(microseconds))
        .ok_or_else(|| ValueError::new("22008", "timestamp out of range"))
}

/// Midnight of a date.
///
/// # Errors
/// 22008 for a date beyond the timestamps.
pub fn timestamp_from_date(days: i32) -> Result<i64, ValueError> {
    match days {
        DATE_INFINITY => Ok(TIMESTAMP_INFINITY),
        DATE_NEGATIVE_INFINITY => Ok(TIMESTAMP_NEGATIVE_INFINITY),
        _ => timestamp_from_microseconds(i128::from(days) * i128::from(DAY_US))
            .map_err(|_| ValueError::new("22008", "date out of range for timestamp")),
    }
}

/// The day a timestamp lies in.
#[must_use]
pub const fn date_from_timestamp(microseconds: i64) -> i32 {
    match microseconds {
        TIMESTAMP_INFINITY => DATE_INFINITY,
        TIMESTAMP_NEGATIVE_INFINITY => DATE_NEGATIVE_INFINITY,
        // A timestamp's days are fewer than a date's.
        _ => microseconds.div_euclid(DAY_US) as i32,
    }
}

/// A date so many days later.
///
/// # Errors
/// 22008 outside PostgreSQL's range.
pub fn add_days(date: i32, days: i32) -> Result<i32, ValueError> {
    if is_infinite_date(date) {
        return Ok(date);
    }
    date_from_days(i64::from(date) + i64::from(days))
}

/// A timestamp so many months later; the day is cut to the month's last.
///
/// # Errors
/// 22008 outside PostgreSQL's range.
pub fn add_months(timestamp: i64, months: i32) -> Result<i64, ValueError> {
    if is_infinite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    let civil = civil_from_days(timestamp.div_euclid(DAY_US));
    let month_index = civil.year * 12 + i64::from(civil.month) - 1 + i64::from(months);
    let (year, month) = (
        month_index.div_euclid(12),
        month_index.rem_euclid(12) as u32 + 1,
    );
    let day = civil.day.min(days_in_month(year, month));
    let days = days_from_civil(Civil { year, month, day });
    timestamp_from_microseconds(
        i128::from(days) * i128::from(DAY_US) + i128::from(timestamp.rem_euclid(DAY_US)),
    )
}
