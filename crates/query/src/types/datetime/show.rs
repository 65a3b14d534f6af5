//! Writes dates, times, timestamps and intervals in the session's styles.

use std::fmt::Write as _;

use super::{Fields, HOUR, MINUTE, SECOND, is_finite, unix_of, zone};
use crate::call::{DateOrder, DateStyle, IntervalStyle, Settings};
use crate::error::Result;
use crate::types::interval::Interval;

/// The months' short names.
pub const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The days' short names, from Sunday.
pub const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Appends a number with at least `width` digits.
fn number(out: &mut String, number: u32, width: usize) {
    let mut digits = [b'0'; 10];
    let mut at = digits.len();
    let mut rest = number;
    while at > 0 && (rest > 0 || digits.len() - at < width.max(1)) {
        at -= 1;
        if let Some(place) = digits.get_mut(at) {
            *place = b'0' + (rest % 10) as u8;
        }
        rest /= 10;
    }
    for digit in digits.get(at..).unwrap_or_default() {
        out.push(char::from(*digit));
    }
}

fn two(out: &mut String, value: i32) {
    number(out, value.unsigned_abs(), 2);
}

/// Appends a year, and a month and a day between separators.
fn date_in_order(out: &mut String, fields: &Fields, settings: &Settings, separator: char) {
    let (first, second) = if settings.date_order == DateOrder::Dmy {
        (fields.day, fields.month)
    } else {
        (fields.month, fields.day)
    };
    two(out, first);
    out.push(separator);
    two(out, second);
    out.push(separator);
    year(out, fields);
}

fn year(out: &mut String, fields: &Fields) {
    let year = if fields.year > 0 {
        fields.year.unsigned_abs()
    } else {
        fields.year.unsigned_abs() + 1
    };
    number(out, year, 4);
}

fn era(out: &mut String, fields: &Fields) {
    if fields.year <= 0 {
        out.push_str(" BC");
    }
}

fn date_part(out: &mut String, fields: &Fields, settings: &Settings) {
    match settings.date_style {
        DateStyle::Iso => {
            year(out, fields);
            out.push('-');
            two(out, fields.month);
            out.push('-');
            two(out, fields.day);
        }
        DateStyle::Sql => date_in_order(out, fields, settings, '/'),
        DateStyle::German => {
            two(out, fields.day);
            out.push('.');
            two(out, fields.month);
            out.push('.');
            year(out, fields);
        }
        DateStyle::Postgres => date_in_order(out, fields, settings, '-'),
    }
}

/// Appends a date.
pub fn date(out: &mut String, fields: &Fields, settings: &Settings) {
    date_part(out, fields, settings);
    era(out, fields);
}

/// Appends seconds with their fraction, without its last zeros.
fn seconds(out: &mut String, second: i32, micros: i32, width: usize) {
    number(out, second.unsigned_abs(), width);
    let mut rest = micros.unsigned_abs();
    if rest != 0 {
        let mut width = 6;
        while rest.is_multiple_of(10) {
            rest /= 10;
            width -= 1;
        }
        out.push('.');
        number(out, rest, width);
    }
}

/// Appends a time of day.
pub fn time(out: &mut String, fields: &Fields) {
    two(out, fields.hour);
    out.push(':');
    two(out, fields.minute);
    out.push(':');
    seconds(out, fields.second, fields.micros, 2);
}

/// Appends a distance from Greenwich.
pub fn numeric_zone(out: &mut String, west: i32) {
    out.push(if west <= 0 { '+' } else { '-' });
    let total = west.unsigned_abs();
    let (hour, minute, second) = (total / 3600, total / 60 % 60, total % 60);
    number(out, hour, 2);
    if minute != 0 || second != 0 {
        out.push(':');
        number(out, minute, 2);
    }
    if second != 0 {
        out.push(':');
        number(out, second, 2);
    }
}

/// Appends an infinite timestamp, or says that it is finite.
fn infinity(out: &mut String, timestamp: i64) -> bool {
    if is_finite(timestamp) {
        return false;
    }
    out.push_str(if timestamp == i64::MIN {
        "-infinity"
    } else {
        "infinity"
    });
    true
}

/// Appends a moment; `zone` appends where it is told.
fn moment(out: &mut String, fields: &Fields, settings: &Settings, zone: impl FnOnce(&mut String)) {
    if settings.date_style == DateStyle::Postgres {
        let at = |names: &[&'static str], at: i32| {
            usize::try_from(at)
                .ok()
                .and_then(|at| names.get(at).copied())
                .unwrap_or_default()
        };
        out.push_str(at(&DAYS, fields.weekday()));
        out.push(' ');
        let month = at(&MONTHS, fields.month - 1);
        if settings.date_order == DateOrder::Dmy {
            two(out, fields.day);
            out.push(' ');
            out.push_str(month);
        } else {
            out.push_str(month);
            out.push(' ');
            two(out, fields.day);
        }
        out.push(' ');
        time(out, fields);
        out.push(' ');
        year(out, fields);
    } else {
        date_part(out, fields, settings);
        out.push(' ');
        time(out, fields);
    }
    zone(out);
    era(out, fields);
}

/// Appends a timestamp.
///
/// # Errors
/// 22008 out of range.
pub fn timestamp(out: &mut String, timestamp: i64, settings: &Settings) -> Result<()> {
    if infinity(out, timestamp) {
        return Ok(());
    }
    let fields = super::fields_of(timestamp).ok_or_else(super::timestamp_out_of_range)?;
    moment(out, &fields, settings, |_| {});
    Ok(())
}

/// Appends a timestamp with its zone.
///
/// # Errors
/// 22008 out of range.
pub fn timestamptz(out: &mut String, timestamp: i64, settings: &Settings) -> Result<()> {
    if infinity(out, timestamp) {
        return Ok(());
    }
    let (fields, west) = zone::fields_in(timestamp, &settings.time_zone)
        .ok_or_else(super::timestamp_out_of_range)?;
    moment(out, &fields, settings, |out| {
        if settings.date_style == DateStyle::Iso {
            numeric_zone(out, west);
        } else {
            let name = zone::shown_abbreviation(settings, unix_of(timestamp));
            out.push(' ');
            out.extend(name.chars().take(10));
        }
    });
    Ok(())
}

/// An interval, taken apart. All have the sign of what they come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpanFields {
    /// Years.
    pub years: i32,
    /// Months, less than a year.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Hours.
    pub hours: i64,
    /// Minutes, less than an hour.
    pub minutes: i32,
    /// Seconds, less than a minute.
    pub seconds: i32,
    /// Microseconds, less than a second.
    pub micros: i32,
}

impl SpanFields {
    /// Takes an interval apart.
    #[must_use]
    pub fn of(interval: Interval) -> Self {
        Self {
            years: interval.months / 12,
            months: interval.months % 12,
            days: interval.days,
            hours: interval.micros / HOUR,
            minutes: (interval.micros / MINUTE % 60) as i32,
            seconds: (interval.micros / SECOND % 60) as i32,
            micros: (interval.micros % SECOND) as i32,
        }
    }

    /// The interval; `None` where it doesn't fit.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        let micros = self
            .hours
            .checked_mul(HOUR)?
            .checked_add(i64::from(self.minutes) * MINUTE)?
            .checked_add(i64::from(self.seconds) * SECOND)?
            .checked_add(i64::from(self.micros))?;
        Some(Interval {
            months: i32::try_from(months).ok()?,
            days: self.days,
            micros,
        })
    }

    /// The seconds within the minute, in microseconds.
    #[must_use]
    pub fn second_micros(&self) -> i64 {
        i64::from(self.seconds) * SECOND + i64::from(self.micros)
    }
}

/// Appends an interval.
pub fn interval(out: &mut String, interval: Interval, style: IntervalStyle) {
    let fields = SpanFields::of(interval);
    let negative_time = interval.micros < 0;
    match style {
        IntervalStyle::Postgres => postgres(out, &fields, negative_time),
        IntervalStyle::PostgresVerbose => verbose(out, &fields),
        IntervalStyle::SqlStandard => standard(out, &fields, interval),
        IntervalStyle::Iso8601 => iso(out, &fields, negative_time),
    }
}

/// Appends `hours:minutes:seconds` without sign.
fn clock(out: &mut String, fields: &SpanFields, width: usize) {
    let hours = fields.hours.unsigned_abs();
    let _ = write!(out, "{hours:0width$}:");
    two(out, fields.minutes);
    out.push(':');
    seconds(out, fields.seconds, fields.micros, 2);
}

fn postgres(out: &mut String, fields: &SpanFields, negative_time: bool) {
    let (mut first, mut after_negative) = (true, false);
    for (value, unit) in [
        (fields.years, "year"),
        (fields.months, "mon"),
        (fields.days, "day"),
    ] {
        if value == 0 {
            continue;
        }
        let space = if first { "" } else { " " };
        let plus = if after_negative && value > 0 { "+" } else { "" };
        let plural = if value == 1 { "" } else { "s" };
        let _ = write!(out, "{space}{plus}{value} {unit}{plural}");
        after_negative = value < 0;
        first = false;
    }
    if first || fields.hours != 0 || fields.minutes != 0 || fields.second_micros() != 0 {
        if !first {
            out.push(' ');
        }
        if negative_time {
            out.push('-');
        } else if after_negative {
            out.push('+');
        }
        clock(out, fields, 2);
    }
}

fn verbose(out: &mut String, fields: &SpanFields) {
    out.push('@');
    let (mut first, mut ago) = (true, false);
    for (value, unit) in [
        (i64::from(fields.years), "year"),
        (i64::from(fields.months), "mon"),
        (i64::from(fields.days), "day"),
        (fields.hours, "hour"),
        (i64::from(fields.minutes), "min"),
    ] {
        if value == 0 {
            continue;
        }
        if first {
            ago = value < 0;
        }
        let value = if ago { -value } else { value };
        let plural = if value == 1 { "" } else { "s" };
        let _ = write!(out, " {value} {unit}{plural}");
        first = false;
    }
    if fields.second_micros() != 0 {
        out.push(' ');
        if fields.second_micros() < 0 {
            if first {
                ago = true;
            } else if !ago {
                out.push('-');
            }
        } else if ago {
            out.push('-');
        }
        seconds(out, fields.seconds, fields.micros, 1);
        let plural = if fields.seconds.abs() != 1 || fields.micros != 0 {
            "s"
        } else {
            ""
        };
        let _ = write!(out, " sec{plural}");
        first = false;
    }
    if first {
        out.push_str(" 0");
    }
    if ago {
        out.push_str(" ago");
    }
}

fn standard(out: &mut String, fields: &SpanFields, interval: Interval) {
    let negative = interval.months < 0 || interval.days < 0 || interval.micros < 0;
    let positive = interval.months > 0 || interval.days > 0 || interval.micros > 0;
    let has_months = interval.months != 0;
    let has_rest = interval.days != 0 || interval.micros != 0;
    if !negative && !positive {
        out.push('0');
        return;
    }
    let (years, months) = (fields.years.unsigned_abs(), fields.months.unsigned_abs());
    let days = fields.days.unsigned_abs();
    if (negative && positive) || (has_months && has_rest) {
        let sign = |negative| if negative { '-' } else { '+' };
        let _ = write!(
            out,
            "{}{years}-{months} {}{days} {}",
            sign(interval.months < 0),
            sign(interval.days < 0),
            sign(interval.micros < 0),
        );
        clock(out, fields, 1);
        return;
    }
    if negative {
        out.push('-');
    }
    if has_months {
        let _ = write!(out, "{years}-{months}");
        return;
    }
    if interval.days != 0 {
        let _ = write!(out, "{days} ");
    }
    clock(out, fields, 1);
}

fn iso(out: &mut String, fields: &SpanFields, negative_time: bool) {
    let has_time = fields.hours != 0 || fields.minutes != 0 || fields.second_micros() != 0;
    if fields.years == 0 && fields.months == 0 && fields.days == 0 && !has_time {
        out.push_str("PT0S");
        return;
    }
    out.push('P');
    let mut part = |value: i64, unit: char| {
        if value != 0 {
            let _ = write!(out, "{value}{unit}");
        }
    };
    part(i64::from(fields.years), 'Y');
    part(i64::from(fields.months), 'M');
    part(i64::from(fields.days), 'D');
    if !has_time {
        return;
    }
    out.push('T');
    let mut part = |value: i64, unit: char| {
        if value != 0 {
            let _ = write!(out, "{value}{unit}");
        }
    };
    part(fields.hours, 'H');
    part(i64::from(fields.minutes), 'M');
    if fields.second_micros() != 0 {
        if negative_time {
            out.push('-');
        }
        seconds(out, fields.seconds, fields.micros, 1);
        out.push('S');
    }
}
