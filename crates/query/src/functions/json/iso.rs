//! Dates and times as JSON writes them: ISO 8601, whatever the session's style is.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use crate::types::datetime::unix_of;
use crate::types::datetime::zone::east_at;

/// Days from 2000-01-01 back to 1970-01-01.
const UNIX_DAYS: i64 = 10_957;
/// Microseconds of a day.
pub(in super::super) const DAY: i64 = 86_400_000_000;

/// A day of the calendar; the year before 1 is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Civil {
    pub(in super::super) year: i64,
    pub(in super::super) month: u8,
    pub(in super::super) day: u8,
}

/// The day that is this many days after 2000-01-01.
pub(in super::super) fn civil(days: i64) -> Civil {
    // Eras of 400 years begin on the first of March.
    let days = days + UNIX_DAYS + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    Civil {
        year: year_of_era + era * 400 + i64::from(month <= 2),
        month: u8::try_from(month).unwrap_or(1),
        day: u8::try_from(day).unwrap_or(1),
    }
}

fn write_day(day: Civil, out: &mut String) {
    let year = if day.year > 0 { day.year } else { 1 - day.year };
    // Writing to a string cannot fail.
    let _ = write!(out, "{year:04}-{:02}-{:02}", day.month, day.day);
}

fn write_era(day: Civil, out: &mut String) {
    if day.year <= 0 {
        out.push_str(" BC");
    }
}

/// Appends a time of day.
pub(in super::super) fn write_time(micros: i64, out: &mut String) {
    let seconds = micros / 1_000_000;
    let _ = write!(
        out,
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    let fraction = micros % 1_000_000;
    if fraction > 0 {
        let digits = format!("{fraction:06}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

/// Appends an offset from Greenwich, in seconds to the east.
pub(in super::super) fn write_offset(seconds: i64, out: &mut String) {
    out.push(if seconds < 0 { '-' } else { '+' });
    let seconds = seconds.abs();
    let _ = write!(out, "{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    if seconds % 60 != 0 {
        let _ = write!(out, ":{:02}", seconds % 60);
    }
}

/// A date.
pub(in super::super) fn date_text(days: i32) -> String {
    match days {
        i32::MAX => "infinity".to_owned(),
        i32::MIN => "-infinity".to_owned(),
        days => {
            let day = civil(i64::from(days));
            let mut out = String::new();
            write_day(day, &mut out);
            write_era(day, &mut out);
            out
        }
    }
}

/// A timestamp, with its offset if there is one.
fn moment(micros: i64, offset: Option<i64>) -> String {
    let mut out = String::new();
    let day = civil(micros.div_euclid(DAY));
    write_day(day, &mut out);
    out.push('T');
    write_time(micros.rem_euclid(DAY), &mut out);
    if let Some(offset) = offset {
        write_offset(offset, &mut out);
    }
    write_era(day, &mut out);
    out
}

/// A timestamp without time zone.
pub(in super::super) fn timestamp_text(micros: i64) -> String {
    match micros {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        micros => moment(micros, None),
    }
}

/// A timestamp as it is told with an offset, in seconds to the east.
pub(in super::super) fn timestamptz_text(micros: i64, offset: i64) -> String {
    match micros {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        micros => moment(
            micros.saturating_add(offset.saturating_mul(1_000_000)),
            Some(offset),
        ),
    }
}

/// A zone's offset at a moment, in seconds to the east.
pub(in super::super) fn offset_at(zone: &TimeZone, micros: i64) -> i64 {
    i64::from(east_at(zone, unix_of(micros)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_calendar() {
        assert_eq!(date_text(0), "2000-01-01");
        assert_eq!(date_text(-1), "1999-12-31");
        assert_eq!(date_text(-2_451_545 + 38), "4713-01-01 BC");
        assert_eq!(date_text(2_145_031_948), "5874897-12-31");
        assert_eq!(timestamp_text(-1), "1999-12-31T23:59:59.999999");
        assert_eq!(timestamptz_text(0, -12_600), "1999-12-31T20:30:00-03:30");
        assert_eq!(timestamptz_text(i64::MIN, 0), "-infinity");
    }
}
