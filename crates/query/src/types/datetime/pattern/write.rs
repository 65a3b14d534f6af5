//! `to_char`: a moment or a span by a pattern.

use std::fmt::Write as _;

use super::{Case, Field, Key, Node, nodes};
use crate::error::{QueryError, Result};
use crate::types::datetime::show::{DAYS, MONTHS, SpanFields};
use crate::types::datetime::{Fields, iso_week, julian_of, julian_of_week};

/// The months' names.
pub(super) const FULL_MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// The days' names, from Sunday.
pub(super) const FULL_DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
/// The months in Roman numbers, from December down.
pub(super) const ROMAN: [&str; 12] = [
    "xii", "xi", "x", "ix", "viii", "vii", "vi", "v", "iv", "iii", "ii", "i",
];

/// What is written.
#[derive(Clone, Debug, Default)]
pub struct Value {
    year: i32,
    month: i32,
    day: i32,
    hour: i64,
    minute: i32,
    second: i32,
    micros: i32,
    weekday: i32,
    year_day: i32,
    /// Seconds east of Greenwich.
    east: i32,
    zone: Option<String>,
    is_span: bool,
}

impl Value {
    /// A moment; `zone` is how far west of Greenwich it is told and that zone's abbreviation.
    #[must_use]
    pub fn moment(fields: &Fields, zone: Option<(i32, String)>) -> Self {
        let (west, zone) = zone.map_or((0, None), |(west, name)| (west, Some(name)));
        Self {
            year: fields.year,
            month: fields.month,
            day: fields.day,
            hour: i64::from(fields.hour),
            minute: fields.minute,
            second: fields.second,
            micros: fields.micros,
            weekday: fields.weekday(),
            year_day: fields.year_day(),
            east: -west,
            zone,
            is_span: false,
        }
    }

    /// A span.
    #[must_use]
    pub fn span(fields: &SpanFields) -> Self {
        let months = fields.years.wrapping_mul(12).wrapping_add(fields.months);
        Self {
            year: fields.years,
            month: fields.months,
            day: fields.days,
            hour: fields.hours,
            minute: fields.minutes,
            second: fields.seconds,
            micros: fields.micros,
            year_day: months.wrapping_mul(30).wrapping_add(fields.days),
            is_span: true,
            ..Self::default()
        }
    }

    /// Writes it by a pattern.
    ///
    /// # Errors
    /// 22007 for fields that a span doesn't have.
    pub fn write(&self, pattern: &str) -> Result<String> {
        let mut out = String::with_capacity(pattern.len() + 16);
        for node in nodes(pattern, false)? {
            match node {
                Node::Field {
                    key,
                    trimmed,
                    translated,
                    ordinal,
                } => {
                    if self.is_span && of_moments_alone(key) {
                        return Err(QueryError::new(
                            "22007",
                            "invalid format specification for an interval value",
                        )
                        .with_hint("Intervals are not tied to specific calendar dates."));
                    }
                    let start = out.len();
                    let is_number = self.field(&mut out, key.field, trimmed, translated);
                    if let Some(upper) = ordinal
                        && is_number
                        && out.len() > start
                    {
                        let ending = ordinal_ending(out.get(start..).unwrap_or_default(), upper);
                        out.push_str(ending);
                    }
                }
                Node::Space(letter) | Node::Separator(letter) | Node::Letter(letter) => {
                    out.push(letter);
                }
            }
        }
        Ok(out)
    }

    /// A year as it is written: 1 BC is 1.
    fn shown_year(&self, year: i32) -> i32 {
        if self.is_span || year > 0 {
            year
        } else {
            1 - year
        }
    }

    /// Appends a field; whether it is a number that may be ordinal.
    fn field(&self, out: &mut String, field: Field, trimmed: bool, translated: bool) -> bool {
        let width = |width: usize| if trimmed { 0 } else { width };
        let two = |negative: bool| width(if negative { 3 } else { 2 });
        match field {
            Field::Half { dots, upper } => {
                let name = match (dots, self.hour % 24 >= 12) {
                    (false, false) => "AM",
                    (false, true) => "PM",
                    (true, false) => "A.M.",
                    (true, true) => "P.M.",
                };
                letters(out, name, upper);
                return false;
            }
            Field::Era { dots, upper } => {
                let name = match (dots, self.year <= 0) {
                    (false, false) => "AD",
                    (false, true) => "BC",
                    (true, false) => "A.D.",
                    (true, true) => "B.C.",
                };
                letters(out, name, upper);
                return false;
            }
            Field::Zone { upper } => {
                if let Some(zone) = &self.zone {
                    if upper {
                        out.push_str(zone);
                    } else {
                        out.push_str(&zone.to_ascii_lowercase());
                    }
                }
                return false;
            }
            Field::ZoneHour => {
                let hours = self.east.unsigned_abs() / 3600;
                let _ = write!(out, "{}{hours:02}", self.zone_sign());
                return false;
            }
            Field::ZoneMinute => {
                let _ = write!(out, "{:02}", self.east.unsigned_abs() % 3600 / 60);
                return false;
            }
            Field::Offset => {
                let (hours, rest) = (
                    self.east.unsigned_abs() / 3600,
                    self.east.unsigned_abs() % 3600,
                );
                let width = width(2);
                let _ = write!(out, "{}{hours:0width$}", self.zone_sign());
                if rest != 0 {
                    let _ = write!(out, ":{:02}", rest / 60);
                }
                return false;
            }
            Field::Month(case) => {
                let padded = !trimmed && !translated;
                name(out, &FULL_MONTHS, self.month - 1, case, padded);
                return false;
            }
            Field::ShortMonth(case) => {
                name(out, &MONTHS, self.month - 1, case, false);
                return false;
            }
            Field::Day(case) => {
                let padded = !trimmed && !translated;
                name(out, &FULL_DAYS, self.weekday, case, padded);
                return false;
            }
            Field::ShortDay(case) => {
                name(out, &DAYS, self.weekday, case, false);
                return false;
            }
            Field::RomanMonth { upper } => {
                self.roman_month(out, upper, trimmed);
                return false;
            }
            Field::Exact => return false,
            Field::ClockHour => {
                let hour = self.hour % 12;
                let hour = if hour == 0 { 12 } else { hour };
                number(out, hour, two(self.hour < 0));
            }
            Field::Hour => number(out, self.hour, two(self.hour < 0)),
            Field::Minute => number(out, self.minute.into(), two(self.minute < 0)),
            Field::Second => number(out, self.second.into(), two(self.second < 0)),
            Field::Fraction(digits) => {
                let digits = u32::from(digits.clamp(1, 6));
                let fraction = self.micros / 10_i32.pow(6 - digits);
                number(out, fraction.into(), digits as usize);
            }
            Field::Millisecond => number(out, (self.micros / 1000).into(), 3),
            Field::Microsecond => number(out, self.micros.into(), 6),
            Field::DaySecond => {
                let seconds = self.hour.wrapping_mul(3600)
                    + i64::from(self.minute * 60)
                    + i64::from(self.second);
                number(out, seconds, 0);
            }
            Field::MonthNumber => number(out, self.month.into(), two(self.month < 0)),
            Field::YearDay => number(out, self.year_day.into(), width(3)),
            Field::IsoYearDay => {
                let (year, _) = iso_week(self.year, self.month, self.day);
                let day = self
                    .julian()
                    .wrapping_sub(julian_of_week(year, 1))
                    .wrapping_add(1);
                number(out, day.into(), width(3));
            }
            Field::MonthDay => number(out, self.day.into(), width(2)),
            Field::Weekday => number(out, i64::from(self.weekday) + 1, 0),
            Field::IsoWeekday => number(out, i64::from((self.weekday + 6) % 7 + 1), 0),
            Field::Week => number(
                out,
                (self.year_day.wrapping_sub(1) / 7 + 1).into(),
                width(2),
            ),
            Field::IsoWeek => {
                let (_, week) = iso_week(self.year, self.month, self.day);
                number(out, week.into(), width(2));
            }
            Field::Quarter => {
                if self.month != 0 {
                    number(out, ((self.month - 1) / 3 + 1).into(), 0);
                }
            }
            Field::Century => {
                let century = if self.is_span {
                    self.year / 100
                } else if self.year > 0 {
                    (self.year - 1) / 100 + 1
                } else {
                    self.year / 100 - 1
                };
                let width = if (-99..=99).contains(&century) {
                    two(century < 0)
                } else {
                    0
                };
                number(out, century.into(), width);
            }
            Field::CommaYear => {
                let year = self.shown_year(self.year);
                let thousands = year / 1000;
                let _ = write!(out, "{thousands},{:03}", year - thousands * 1000);
            }
            Field::Year { digits, iso } => {
                let year = if iso {
                    iso_week(self.year, self.month, self.day).0
                } else {
                    self.year
                };
                let year = self.shown_year(year);
                // The padding is that of the calendar's year.
                let negative = self.shown_year(self.year) < 0;
                let size = usize::from(digits);
                let year = match digits {
                    1 => year % 10,
                    2 => year % 100,
                    3 => year % 1000,
                    _ => year,
                };
                let size = match digits {
                    1 => 1,
                    _ => width(size + usize::from(negative)),
                };
                number(out, year.into(), size);
            }
            Field::MonthWeek => number(out, (self.day.wrapping_sub(1) / 7 + 1).into(), 0),
            Field::Julian => number(out, self.julian().into(), 0),
        }
        true
    }

    fn julian(&self) -> i32 {
        julian_of(self.year, self.month, self.day)
    }

    fn zone_sign(&self) -> char {
        if self.east >= 0 { '+' } else { '-' }
    }

    fn roman_month(&self, out: &mut String, upper: bool, trimmed: bool) {
        if self.month == 0 && self.year == 0 {
            return;
        }
        let at = match self.month {
            0 if self.year >= 0 => 0,
            0 => 11,
            month if month < 0 => -(month + 1),
            month => 12 - month,
        };
        let name = usize::try_from(at).ok().and_then(|at| ROMAN.get(at));
        let start = out.len();
        letters(
            out,
            &name.copied().unwrap_or_default().to_ascii_uppercase(),
            upper,
        );
        if !trimmed {
            pad(out, start, 4);
        }
    }
}

/// Whether a span has no such field.
fn of_moments_alone(key: &Key) -> bool {
    matches!(
        key.field,
        Field::Era { .. }
            | Field::Zone { .. }
            | Field::ZoneHour
            | Field::ZoneMinute
            | Field::Offset
            | Field::Month(_)
            | Field::ShortMonth(_)
            | Field::Day(_)
            | Field::ShortDay(_)
            | Field::Weekday
            | Field::IsoWeekday
    )
}

fn number(out: &mut String, number: i64, width: usize) {
    let _ = write!(out, "{number:0width$}");
}

fn letters(out: &mut String, name: &str, upper: bool) {
    if upper {
        out.push_str(name);
    } else {
        out.extend(name.chars().map(|letter| letter.to_ascii_lowercase()));
    }
}

/// Fills up with blanks to `width` from `start` on.
fn pad(out: &mut String, start: usize, width: usize) {
    while out.len() < start + width {
        out.push(' ');
    }
}

fn name(out: &mut String, names: &[&str], at: i32, case: Case, padded: bool) {
    let Some(name) = usize::try_from(at).ok().and_then(|at| names.get(at)) else {
        return;
    };
    let start = out.len();
    match case {
        Case::Title => out.push_str(name),
        Case::Upper => out.push_str(&name.to_ascii_uppercase()),
        Case::Lower => out.push_str(&name.to_ascii_lowercase()),
    }
    if padded {
        pad(out, start, 9);
    }
}

/// The ending of an ordinal number.
fn ordinal_ending(number: &str, upper: bool) -> &'static str {
    let mut digits = number.bytes().rev();
    let last = digits.next();
    let ending = match (last, digits.next()) {
        (_, Some(b'1')) => 3,
        (Some(b'1'), _) => 0,
        (Some(b'2'), _) => 1,
        (Some(b'3'), _) => 2,
        _ => 3,
    };
    let endings = if upper {
        ["ST", "ND", "RD", "TH"]
    } else {
        ["st", "nd", "rd", "th"]
    };
    endings.get(ending).copied().unwrap_or_default()
}
