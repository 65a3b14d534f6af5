//! The fields of a timestamp (`extract`, `date_part`) and truncation to a unit
//! (`date_trunc`). Assumes UTC, as the whole of `datetime` does.

use super::{
    Civil, DAY_US, EPOCH_JULIAN_DAY, HOUR_US, MINUTE_US, SECOND_US, UNIX_EPOCH_DAYS,
    civil_from_days, days_from_civil, is_infinite_timestamp, timestamp_from_microseconds,
};
use crate::numeric::Numeric;
use crate::numeric::long::{self, LONG};
use crate::value::{TIMESTAMP_INFINITY, Value};
use crate::value_error::ValueError;

/// A field or unit of a timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// Seconds and fraction, in microseconds
    Microseconds,
    /// Seconds and fraction, in milliseconds
    Milliseconds,
    /// Seconds and fraction
    Second,
    /// 0 to 59
    Minute,
    /// 0 to 23
    Hour,
    /// Day of the month
    Day,
    /// ISO week of the year
    Week,
    /// 1 to 12
    Month,
    /// 1 to 4
    Quarter,
    /// Year; there is no year 0
    Year,
    /// Year divided by ten
    Decade,
    /// 2001 to 2100 is 21
    Century,
    /// 2001 to 3000 is 3
    Millennium,
    /// Day of the week, Sunday is 0
    Dow,
    /// Day of the week, Sunday is 7
    IsoDow,
    /// Day of the year
    Doy,
    /// The year its ISO week belongs to
    IsoYear,
    /// Seconds since 1970-01-01
    Epoch,
    /// Julian day and fraction
    Julian,
    /// Seconds east of UTC
    Timezone,
    /// Hours of the offset
    TimezoneHour,
    /// Minutes of the offset
    TimezoneMinute,
}

impl Field {
    /// The field of that name, in any case and in PostgreSQL's spellings.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "microseconds" | "microsecond" | "us" | "usec" | "usecs" | "microsecon" => {
                Self::Microseconds
            }
            "milliseconds" | "millisecond" | "ms" | "msec" | "msecs" | "millisecon" => {
                Self::Milliseconds
            }
            "second" | "seconds" | "sec" | "secs" | "s" => Self::Second,
            "minute" | "minutes" | "min" | "mins" | "m" => Self::Minute,
            "hour" | "hours" | "hr" | "hrs" | "h" => Self::Hour,
            "day" | "days" | "d" => Self::Day,
            "week" | "weeks" | "w" => Self::Week,
            "month" | "months" | "mon" | "mons" => Self::Month,
            "quarter" | "qtr" => Self::Quarter,
            "year" | "years" | "yr" | "yrs" | "y" => Self::Year,
            "decade" | "decades" | "dec" | "decs" => Self::Decade,
            "century" | "centuries" | "c" | "cent" => Self::Century,
            "millennium" | "millennia" | "mil" | "mils" => Self::Millennium,
            "dow" => Self::Dow,
            "isodow" => Self::IsoDow,
            "doy" => Self::Doy,
            "isoyear" => Self::IsoYear,
            "epoch" => Self::Epoch,
            "julian" | "j" | "jd" => Self::Julian,
            "timezone" => Self::Timezone,
            "timezone_hour" | "timezone_h" => Self::TimezoneHour,
            "timezone_minute" | "timezone_m" => Self::TimezoneMinute,
            _ => return None,
        })
    }
}

/// Monday is 1, Sunday is 7.
fn iso_day_of_week(days: i64) -> i64 {
    // 2000-01-01 was a Saturday.
    (days + 5).rem_euclid(7) + 1
}

/// The first day of the calendar year.
fn year_start(year: i64) -> i64 {
    days_from_civil(Civil {
        year,
        month: 1,
        day: 1,
    })
}

/// The ISO year and week of a day: those of its week's Thursday.
fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - iso_day_of_week(days) + 4;
    let year = civil_from_days(thursday).year;
    (year, (thursday - year_start(year)) / 7 + 1)
}

/// A year as people count: the year before 1 is -1.
fn without_year_zero(year: i64) -> i64 {
    if year > 0 { year } else { year - 1 }
}

/// The span of `years` (100 or 1000) that a year is in; there is no 0th.
fn span_of_years(year: i64, years: i64) -> i64 {
    if year > 0 {
        (year + years - 1) / years
    } else {
        -((years - year) / years)
    }
}

/// A field of a timestamp, as a numeric. An infinite one's are infinite where they grow without
/// bound, and NULL otherwise.
///
/// # Errors
/// 22003 when a value exceeds 38 digits, which no timestamp reaches.
pub fn extract(field: Field, timestamp: i64) -> Result<Value, ValueError> {
    if is_infinite_timestamp(timestamp) {
        return Ok(match field {
            Field::Year
            | Field::Decade
            | Field::Century
            | Field::Millennium
            | Field::IsoYear
            | Field::Epoch
            | Field::Julian => {
                let infinity = match timestamp {
                    TIMESTAMP_INFINITY => long::INFINITY_BYTES,
                    _ => long::NEGATIVE_INFINITY_BYTES,
                };
                Value::Other(LONG, infinity.to_vec())
            }
            _ => Value::Null,
        });
    }
    let days = timestamp.div_euclid(DAY_US);
    let time = timestamp.rem_euclid(DAY_US);
    let civil = civil_from_days(days);
    let seconds = time % MINUTE_US;
    let whole = match field {
        Field::Milliseconds => return Numeric::new(seconds.into(), 3).map(Value::Numeric),
        Field::Second => return Numeric::new(seconds.into(), 6).map(Value::Numeric),
        Field::Epoch => {
            let unix = i128::from(timestamp) + i128::from(UNIX_EPOCH_DAYS * DAY_US);
            return Numeric::new(unix, 6).map(Value::Numeric);
        }
        Field::Julian => {
            let fraction = Numeric::from(time).div(Numeric::from(DAY_US))?;
            return Numeric::from(days + EPOCH_JULIAN_DAY)
                .add(fraction)
                .map(Value::Numeric);
        }
        Field::Microseconds => seconds,
        Field::Minute => time % HOUR_US / MINUTE_US,
        Field::Hour => time / HOUR_US,
        Field::Day => civil.day.into(),
        Field::Week => iso_week(days).1,
        Field::Month => civil.month.into(),
        Field::Quarter => (i64::from(civil.month) - 1) / 3 + 1,
        Field::Year => without_year_zero(civil.year),
        Field::Decade => civil.year.div_euclid(10),
        Field::Century => span_of_years(civil.year, 100),
        Field::Millennium => span_of_years(civil.year, 1000),
        Field::Dow => iso_day_of_week(days) % 7,
        Field::IsoDow => iso_day_of_week(days),
        Field::Doy => days - year_start(civil.year) + 1,
        Field::IsoYear => without_year_zero(iso_week(days).0),
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute => 0,
    };
    Ok(Value::Numeric(Numeric::from(whole)))
}

/// The start of the unit that a timestamp lies in; `None` if the field is not
/// a unit that one can truncate to.
///
/// # Errors
/// 22008 when the start lies before the first timestamp.
pub fn date_trunc(unit: Field, timestamp: i64) -> Result<Option<i64>, ValueError> {
    let to_multiple = |unit_us: i64| Ok(Some(timestamp - timestamp.rem_euclid(unit_us)));
    let days = timestamp.div_euclid(DAY_US);
    let civil = civil_from_days(days);
    let start_of = |year, month| {
        days_from_civil(Civil {
            year,
            month,
            day: 1,
        })
    };
    let start = match unit {
        _ if is_infinite_timestamp(timestamp) => return Ok(Some(timestamp)),
        Field::Microseconds => return Ok(Some(timestamp)),
        Field::Milliseconds => return to_multiple(1000),
        Field::Second => return to_multiple(SECOND_US),
        Field::Minute => return to_multiple(MINUTE_US),
        Field::Hour => return to_multiple(HOUR_US),
        Field::Day => days,
        Field::Week => days - iso_day_of_week(days) + 1,
        Field::Month => start_of(civil.year, civil.month),
        Field::Quarter => start_of(civil.year, (civil.month - 1) / 3 * 3 + 1),
        Field::Year => start_of(civil.year, 1),
        Field::Decade => start_of(civil.year.div_euclid(10) * 10, 1),
        Field::Century => start_of((civil.year - 1).div_euclid(100) * 100 + 1, 1),
        Field::Millennium => start_of((civil.year - 1).div_euclid(1000) * 1000 + 1, 1),
        _ => return Ok(None),
    };
    timestamp_from_microseconds(i128::from(start) * i128::from(DAY_US)).map(Some)
}
