//! What dates, times, timestamps and intervals share: the calendar, the
//! reading of texts (`split`, `point`, `span`), zones and the writing of texts.
//! Days are counted as Julian days, so that the calendar reaches as far as
//! PostgreSQL's.

pub mod abbreviations;
pub mod pattern;
pub mod point;
pub mod show;
pub mod span;
pub mod split;
pub mod words;
pub mod zone;

use crate::error::{QueryError, Result};

/// A second, in microseconds.
pub const SECOND: i64 = 1_000_000;
/// A minute, in microseconds.
pub const MINUTE: i64 = 60 * SECOND;
/// An hour, in microseconds.
pub const HOUR: i64 = 60 * MINUTE;
/// A day, in microseconds.
pub const DAY: i64 = 24 * HOUR;
/// A day, in seconds.
pub const DAY_SECONDS: i64 = 86_400;
/// The Julian day of 2000-01-01, from which dates and timestamps count.
pub const EPOCH_JULIAN: i32 = 2_451_545;
/// The Julian day of 1970-01-01.
pub const UNIX_JULIAN: i32 = 2_440_588;
/// 1970-01-01 as a timestamp.
pub const UNIX_EPOCH: i64 = (UNIX_JULIAN - EPOCH_JULIAN) as i64 * DAY;
/// The first timestamp: Julian day 0.
pub const TIMESTAMP_FIRST: i64 = -211_813_488_000_000_000;
/// The first moment beyond all timestamps: 294277-01-01.
pub const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;
/// The first day beyond all timestamps.
pub const TIMESTAMP_END_DATE: i32 = 109_203_528 - EPOCH_JULIAN;
/// The first day beyond all dates: 5874898-01-01.
pub const DATE_END: i32 = 2_147_483_494 - EPOCH_JULIAN;

/// A moment, taken apart. The year 0 is 1 BC, -1 is 2 BC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fields {
    /// The year.
    pub year: i32,
    /// 1 to 12.
    pub month: i32,
    /// 1 to 31.
    pub day: i32,
    /// 0 to 24.
    pub hour: i32,
    /// 0 to 59.
    pub minute: i32,
    /// 0 to 60.
    pub second: i32,
    /// Microseconds.
    pub micros: i32,
}

impl Fields {
    /// The Julian day.
    #[must_use]
    pub fn julian(&self) -> i32 {
        julian_of(self.year, self.month, self.day)
    }

    /// Sets the date.
    pub fn set_julian(&mut self, julian: i32) {
        (self.year, self.month, self.day) = date_of(julian);
    }

    /// Sets the time of day.
    pub fn set_time(&mut self, micros: i64) {
        self.hour = (micros / HOUR) as i32;
        self.minute = (micros / MINUTE % 60) as i32;
        self.second = (micros / SECOND % 60) as i32;
        self.micros = (micros % SECOND) as i32;
    }

    /// The seconds since midnight.
    #[must_use]
    pub fn day_seconds(&self) -> i64 {
        (i64::from(self.hour) * 60 + i64::from(self.minute)) * 60 + i64::from(self.second)
    }

    /// The microseconds since midnight.
    #[must_use]
    pub fn day_micros(&self) -> i64 {
        self.day_seconds() * SECOND + i64::from(self.micros)
    }

    /// The seconds within the minute, in microseconds.
    #[must_use]
    pub fn second_micros(&self) -> i64 {
        i64::from(self.second) * SECOND + i64::from(self.micros)
    }

    /// Whether the date is near enough to be counted in Julian days.
    #[must_use]
    pub const fn is_countable(&self) -> bool {
        (self.year > -4713 || (self.year == -4713 && self.month >= 11))
            && (self.year < 5_874_898 || (self.year == 5_874_898 && self.month < 6))
    }

    /// The timestamp of this moment, told `west` seconds west of Greenwich;
    /// `None` beyond the range of timestamps.
    #[must_use]
    pub fn timestamp(&self, west: i32) -> Option<i64> {
        if !self.is_countable() {
            return None;
        }
        let days = i128::from(self.julian()) - i128::from(EPOCH_JULIAN);
        let micros = days * i128::from(DAY)
            + i128::from(self.day_micros())
            + i128::from(west) * i128::from(SECOND);
        i64::try_from(micros)
            .ok()
            .filter(|micros| is_timestamp(*micros))
    }

    /// The day of the week, 0 for Sunday.
    #[must_use]
    pub fn weekday(&self) -> i32 {
        weekday_of(self.julian())
    }

    /// The day of the year, from 1.
    #[must_use]
    pub fn year_day(&self) -> i32 {
        self.julian()
            .wrapping_sub(julian_of(self.year, 1, 1))
            .wrapping_add(1)
    }

    /// The last day of the month at most.
    pub fn limit_day(&mut self) {
        self.day = self.day.min(month_days(self.year, self.month));
    }

    /// Moves by months; the year and month alone.
    pub fn add_months(&mut self, months: i32) -> Option<()> {
        let month = self.month.checked_add(months)?;
        if month > 12 {
            self.year += (month - 1) / 12;
            self.month = (month - 1) % 12 + 1;
        } else if month < 1 {
            self.year += month / 12 - 1;
            self.month = month % 12 + 12;
        } else {
            self.month = month;
        }
        self.limit_day();
        Some(())
    }
}

/// The Julian day of a date. Right from Julian day -32044 on; other dates give some number.
#[must_use]
pub fn julian_of(year: i32, month: i32, day: i32) -> i32 {
    let (month, year) = if month > 2 {
        (i64::from(month) + 1, i64::from(year) + 4800)
    } else {
        (i64::from(month) + 13, i64::from(year) + 4799)
    };
    let century = year / 100;
    let julian = year * 365 - 32_167 + year / 4 - century
        + century / 4
        + 7834 * month / 256
        + i64::from(day);
    julian as i32
}

/// The year, month and day of a Julian day.
#[must_use]
pub fn date_of(julian: i32) -> (i32, i32, i32) {
    let mut julian = (julian as u32).wrapping_add(32_044);
    let quad = julian / 146_097;
    let extra = (julian - quad * 146_097) * 4 + 3;
    julian = julian
        .wrapping_add(60)
        .wrapping_add(quad * 3)
        .wrapping_add(extra / 146_097);
    let quad = julian / 1461;
    julian -= quad * 1461;
    let year = julian * 4 / 1461;
    julian = if year == 0 {
        (julian + 306) % 366
    } else {
        (julian + 305) % 365
    } + 123;
    let year = year + quad * 4;
    let quad = julian * 2141 / 65_536;
    (
        year as i32 - 4800,
        ((quad + 10) % 12 + 1) as i32,
        (julian - 7834 * quad / 256) as i32,
    )
}

/// The day of the week of a Julian day, 0 for Sunday.
#[must_use]
pub fn weekday_of(julian: i32) -> i32 {
    (i64::from(julian) + 1).rem_euclid(7) as i32
}

/// Whether the year has a 29th of February.
#[must_use]
pub const fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The days of a month; 31 for a month that is none.
#[must_use]
pub const fn month_days(year: i32, month: i32) -> i32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The Monday of the year's first week by ISO 8601, as a Julian day.
fn first_monday(year: i32) -> i32 {
    let fourth = julian_of(year, 1, 4);
    fourth.wrapping_sub(weekday_of(fourth.wrapping_sub(1)))
}

/// The Monday of a week by ISO 8601, as a Julian day.
#[must_use]
pub fn julian_of_week(year: i32, week: i32) -> i32 {
    week.wrapping_sub(1)
        .wrapping_mul(7)
        .wrapping_add(first_monday(year))
}

/// The year and week of a date by ISO 8601.
#[must_use]
pub fn iso_week(year: i32, month: i32, day: i32) -> (i32, i32) {
    let julian = julian_of(year, month, day);
    let mut iso_year = year;
    if julian < first_monday(year) {
        iso_year = year.wrapping_sub(1);
    }
    let mut week = julian.wrapping_sub(first_monday(iso_year)) / 7 + 1;
    if week >= 52 {
        // PostgreSQL compares with the year after the date's own here.
        let next = first_monday(year.wrapping_add(1));
        if julian >= next {
            week = julian.wrapping_sub(next) / 7 + 1;
            iso_year = iso_year.wrapping_add(1);
        }
    }
    (iso_year, week)
}

/// Whether a number of microseconds is a finite timestamp.
#[must_use]
#[inline]
pub const fn is_timestamp(micros: i64) -> bool {
    TIMESTAMP_FIRST <= micros && micros < TIMESTAMP_END
}

/// Whether a number of days is a finite date.
#[must_use]
#[inline]
pub const fn is_date(days: i32) -> bool {
    -EPOCH_JULIAN <= days && days < DATE_END
}

/// Whether a timestamp is no infinity.
#[must_use]
#[inline]
pub const fn is_finite(timestamp: i64) -> bool {
    timestamp != i64::MIN && timestamp != i64::MAX
}

/// A timestamp taken apart; `None` beyond what the calendar counts.
#[must_use]
pub fn fields_of(timestamp: i64) -> Option<Fields> {
    let julian = timestamp.div_euclid(DAY) + i64::from(EPOCH_JULIAN);
    let julian = i32::try_from(julian).ok().filter(|julian| *julian >= 0)?;
    let mut fields = Fields::default();
    fields.set_julian(julian);
    fields.set_time(timestamp.rem_euclid(DAY));
    Some(fields)
}

/// Unix time of a timestamp, in whole seconds.
#[must_use]
pub fn unix_of(timestamp: i64) -> i64 {
    timestamp.div_euclid(SECOND) - UNIX_EPOCH / SECOND
}

/// Rounds to so many digits after the point, half away from zero.
#[must_use]
pub fn round_micros(micros: i64, digits: i32) -> i64 {
    let Some(power) = u32::try_from(digits).ok().filter(|digits| *digits < 6) else {
        return micros;
    };
    let scale = 10_i64.pow(6 - power);
    let half = scale / 2;
    if micros >= 0 {
        micros.wrapping_add(half) / scale * scale
    } else {
        (micros.wrapping_neg().wrapping_add(half) / scale * scale).wrapping_neg()
    }
}

/// A whole number of a `double`, as C's conversion on x86: what does not fit is the least number.
#[must_use]
pub fn truncated(number: f64) -> i64 {
    if (i64::MIN as f64..-(i64::MIN as f64)).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

/// 22008: a timestamp beyond its range.
#[cold]
#[must_use]
pub fn timestamp_out_of_range() -> QueryError {
    QueryError::new("22008", "timestamp out of range")
}

/// 22008: a date beyond its range.
#[cold]
#[must_use]
pub fn date_out_of_range() -> QueryError {
    QueryError::new("22008", "date out of range")
}

/// 22008: an interval beyond its range.
#[cold]
#[must_use]
pub fn interval_out_of_range() -> QueryError {
    QueryError::new("22008", "interval out of range")
}

/// Splits bytes that were received into numbers of these lengths.
///
/// # Errors
/// 08P01 for too few, 22P03 for too many.
pub fn received<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    <[u8; N]>::try_from(bytes).map_err(|_| {
        if bytes.len() < N {
            QueryError::new("08P01", "insufficient data left in message")
        } else {
            QueryError::new("22P03", "incorrect binary data format")
        }
    })
}

/// Whether a byte is white space, as C's `isspace`.
#[must_use]
pub const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_there_and_back() {
        assert_eq!(julian_of(2000, 1, 1), EPOCH_JULIAN);
        assert_eq!(julian_of(1970, 1, 1), UNIX_JULIAN);
        assert_eq!(date_of(0), (-4713, 11, 24));
        assert_eq!(date_of(-1), (-4713, 11, 23));
        assert_eq!(unix_of(0), 946_684_800);
        for julian in (0..2_147_483_493).step_by(1_000_003) {
            let (year, month, day) = date_of(julian);
            assert_eq!(julian_of(year, month, day), julian);
        }
    }

    #[test]
    fn weeks_at_the_turn_of_the_year() {
        assert_eq!(iso_week(2021, 1, 3), (2020, 53));
        assert_eq!(iso_week(2018, 12, 31), (2019, 1));
        assert_eq!(iso_week(2024, 12, 29), (2024, 52));
    }
}
