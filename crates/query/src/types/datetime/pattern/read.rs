//! `to_date` and `to_timestamp`: a moment from a text by a pattern.

use super::write::{FULL_DAYS, FULL_MONTHS, ROMAN};
use super::{Calendar, Field, Key, Node, is_separator, nodes};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::datetime::point::check_parts;
use crate::types::datetime::show::{DAYS, MONTHS};
use crate::types::datetime::split::{Bad, long};
use crate::types::datetime::{
    Fields, is_leap, is_space, julian_of_week, month_days, timestamp_out_of_range, zone,
};
use crate::types::time::TimeTz;
use crate::types::{date, ids, time, timestamp};

/// A moment that was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// The moment.
    pub fields: Fields,
    /// Where it is told, in seconds west of Greenwich, if the text says.
    pub west: Option<i32>,
    /// How many digits of a second's fraction the pattern has; 0 where it has no such field.
    pub digits: i32,
    dated: bool,
    timed: bool,
    zoned: bool,
}

/// What `parse` finds.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The value.
    pub value: Datum,
    /// Its type: the pattern's fields decide.
    pub oid: u32,
    /// Its modifier.
    pub modifier: i32,
}

/// The fields of a text.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    calendar: Option<Calendar>,
    hour: i32,
    afternoon: i32,
    minute: i32,
    second: i32,
    day_second: i32,
    /// From 1 for Sunday; 0 for none.
    weekday: i32,
    day: i32,
    year_day: i32,
    month: i32,
    millis: i32,
    year: i32,
    bc: i32,
    week: i32,
    month_week: i32,
    century: i32,
    julian: i32,
    micros: i32,
    year_digits: i32,
    twelve_hours: bool,
    zone_sign: i32,
    zone_hour: i32,
    zone_minute: i32,
    fraction_digits: i32,
}

fn bad(message: impl Into<String>) -> QueryError {
    QueryError::new("22007", message)
}

/// Reads a text by a pattern.
///
/// # Errors
/// 22007, 22008 where the text does not fit, 0A000 for fields that are only written.
pub fn moment(text: &str, pattern: &str, standard: bool) -> Result<Moment> {
    let nodes = nodes(pattern, standard)?;
    let read = Reader {
        text,
        at: 0,
        read: Read::default(),
    }
    .fields(&nodes, standard)?;
    let mut moment = read.moment(text)?;
    for node in &nodes {
        let Node::Field { key, .. } = node else {
            continue;
        };
        match key.field {
            Field::Exact | Field::IsoWeek => {}
            Field::Half { .. }
            | Field::ClockHour
            | Field::Hour
            | Field::Minute
            | Field::Second
            | Field::Millisecond
            | Field::Microsecond
            | Field::Fraction(_)
            | Field::DaySecond => moment.timed = true,
            Field::ZoneHour | Field::ZoneMinute => moment.zoned = true,
            Field::Zone { .. } | Field::Offset if standard => return Err(write_only(key)),
            Field::Zone { .. } | Field::Offset => {}
            _ => moment.dated = true,
        }
    }
    Ok(moment)
}

/// Reads a text by a pattern as the type that the pattern's fields make; SQL's
/// own form of patterns, if `standard`.
///
/// # Errors
/// As [`moment`].
pub fn parse(text: &str, pattern: &str, standard: bool) -> Result<Parsed> {
    let moment = moment(text, pattern, standard)?;
    let modifier = if moment.digits == 0 {
        -1
    } else {
        moment.digits
    };
    let west = |of: &str| {
        moment
            .west
            .ok_or_else(|| bad(format!("missing time zone in input string for type {of}")))
    };
    let fields = &moment.fields;
    let (value, oid) = match (moment.dated, moment.timed, moment.zoned) {
        (true, true, true) => {
            let value = fields
                .timestamp(west("timestamptz")?)
                .ok_or_else(|| QueryError::new("22008", "timestamptz out of range"))?;
            let value = timestamp::rounded(value, modifier)?;
            (Datum::TimestampTz(value), ids::TIMESTAMPTZ)
        }
        (true, true, false) => {
            let value = fields.timestamp(0).ok_or_else(timestamp_out_of_range)?;
            let value = timestamp::rounded(value, modifier)?;
            (Datum::Timestamp(value), ids::TIMESTAMP)
        }
        (true, false, true) => return Err(bad("datetime format is zoned but not timed")),
        (true, false, false) => (Datum::Date(date_of(fields, text)?), ids::DATE),
        (false, true, zoned) => {
            let micros = time::rounded(fields.day_micros(), modifier);
            if zoned {
                let zone = west("timetz")?;
                (Datum::TimeTz(TimeTz { micros, zone }), ids::TIMETZ)
            } else {
                (Datum::Time(micros), ids::TIME)
            }
        }
        (false, false, _) => return Err(bad("datetime format is not dated and not timed")),
    };
    Ok(Parsed {
        value,
        oid,
        modifier,
    })
}

/// The date that was read.
///
/// # Errors
/// 22008 out of range.
pub fn date_of(fields: &Fields, text: &str) -> Result<i32> {
    date::of_fields(fields)
        .ok_or_else(|| QueryError::new("22008", format!("date out of range: \"{text}\"")))
}

/// The timestamp that was read, in the session's zone if the text names none.
///
/// # Errors
/// 22008 out of range.
pub fn timestamptz_of(call: &Call<'_>, moment: &Moment) -> Result<i64> {
    let west = moment
        .west
        .unwrap_or_else(|| zone::local_west(&call.settings().time_zone, &moment.fields));
    let timestamp = moment
        .fields
        .timestamp(west)
        .ok_or_else(timestamp_out_of_range)?;
    if moment.digits == 0 {
        return Ok(timestamp);
    }
    timestamp::rounded(timestamp, moment.digits)
}

fn write_only(key: &Key) -> QueryError {
    QueryError::unsupported(
        format!(
            "formatting field \"{}\" is only supported in to_char",
            key.name
        ),
        "Leave the field out of the pattern.",
    )
}

/// Years of fewer than four digits are near 2020.
fn near_2020(year: i32) -> i32 {
    match year {
        ..70 => year.wrapping_add(2000),
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}

/// Sets a field, which may not have had another value.
fn set(place: &mut i32, value: i32, key: &Key) -> Result<()> {
    if *place != 0 && *place != value {
        return Err(bad(format!(
            "conflicting values for \"{}\" field in formatting string",
            key.name
        ))
        .with_detail("This value contradicts a previous setting for the same field type."));
    }
    *place = value;
    Ok(())
}

/// Whether a number ends where no digit follows.
fn ends_itself(nodes: &[Node]) -> bool {
    match nodes {
        [] => false,
        [
            Node::Field {
                ordinal: Some(_), ..
            },
            ..,
        ] => true,
        [_, Node::Field { key, .. }, ..] => !key.digits,
        [
            _,
            Node::Space(letter) | Node::Separator(letter) | Node::Letter(letter),
            ..,
        ] => !letter.is_ascii_digit(),
        [_] => true,
    }
}

/// A text as far as it was read.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    read: Read,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_letter(&mut self) {
        self.at += self.next().map_or(0, char::len_utf8);
    }

    /// Skips white space; how much there was.
    fn skip_spaces(&mut self) -> i32 {
        let spaces = self
            .rest()
            .bytes()
            .take_while(|byte| is_space(*byte))
            .count();
        self.at += spaces;
        i32::try_from(spaces).unwrap_or(i32::MAX)
    }

    fn fields(mut self, nodes: &[Node], standard: bool) -> Result<Read> {
        let mut exact = standard;
        // White space that the text has more than the pattern.
        let mut extra = 0_i32;
        let mut at = 0;
        while let Some(nodes) = nodes.get(at..)
            && let [node, ..] = nodes
            && let Some(letter) = self.next()
        {
            let mut letter = letter;
            let is_exact_mark =
                matches!(node, Node::Field { key, .. } if key.field == Field::Exact);
            if !exact && !is_exact_mark && (matches!(node, Node::Field { .. }) || at == 0) {
                extra = extra.saturating_add(self.skip_spaces());
                letter = self.next().unwrap_or('\0');
            }
            at += 1;
            match node {
                Node::Space(wanted) | Node::Separator(wanted) => {
                    if standard {
                        if letter != *wanted {
                            return Err(bad(format!("unmatched format separator \"{wanted}\"")));
                        }
                        self.skip_letter();
                    } else if exact {
                        self.skip_letter();
                    } else {
                        extra -= 1;
                        if u8::try_from(letter).is_ok_and(is_space) || is_separator(letter) {
                            self.skip_letter();
                            extra += 1;
                        }
                    }
                }
                Node::Letter(wanted) => {
                    if !exact && extra > 0 {
                        extra -= 1;
                    } else {
                        if standard && letter != *wanted {
                            return Err(bad(format!("unmatched format character \"{wanted}\"")));
                        }
                        self.skip_letter();
                    }
                }
                Node::Field { key, .. } => {
                    self.set_calendar(key)?;
                    if is_exact_mark {
                        exact = true;
                    } else {
                        self.field(nodes, key, extra)?;
                    }
                    if !exact {
                        extra = self.skip_spaces();
                    }
                }
            }
        }
        if standard {
            if at < nodes.len() {
                return Err(bad("input string is too short for datetime format"));
            }
            self.skip_spaces();
            if !self.rest().is_empty() {
                return Err(bad(
                    "trailing characters remain in input string after datetime format",
                ));
            }
        }
        Ok(self.read)
    }

    fn set_calendar(&mut self, key: &Key) -> Result<()> {
        match (self.read.calendar, key.calendar) {
            (_, None) => {}
            (None, calendar) => self.read.calendar = calendar,
            (Some(before), Some(now)) if before != now => {
                return Err(bad("invalid combination of date conventions").with_hint(
                    "Do not mix Gregorian and ISO week date conventions in a formatting template.",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads a number of `length` digits, or as many as there are where the
    /// pattern lets it end itself: the number and how many bytes it took.
    fn number(&mut self, nodes: &[Node], key: &Key, length: usize) -> Result<(i32, usize)> {
        let start = self.at;
        let from_start = self.rest();
        self.skip_spaces();
        let rest = self.rest().as_bytes();
        let cut = rest.get(..length).unwrap_or(rest);
        let trimmed = matches!(nodes.first(), Some(Node::Field { trimmed: true, .. }));
        let shown = String::from_utf8_lossy(cut);
        let invalid = || bad(format!("invalid value \"{shown}\" for \"{}\"", key.name));
        let hint = "If your source string is not fixed-width, try using the \"FM\" modifier.";
        let number = if trimmed || ends_itself(nodes) {
            let (number, after) = long(from_start.as_bytes());
            self.at = start + (from_start.len() - after.len());
            number
        } else {
            if rest.len() < length {
                return Err(bad(format!(
                    "source string too short for \"{}\" formatting field",
                    key.name
                ))
                .with_detail(format!(
                    "Field requires {length} characters, but only {} remain.",
                    rest.len()
                ))
                .with_hint(hint));
            }
            let (number, after) = long(cut);
            let used = cut.len() - after.len();
            if used > 0 && used < length {
                return Err(invalid()
                    .with_detail(format!(
                        "Field requires {length} characters, but only {used} could be parsed."
                    ))
                    .with_hint(hint));
            }
            self.at += used;
            number
        };
        if self.at == start {
            return Err(invalid().with_detail("Value must be an integer."));
        }
        let number = number
            .and_then(|number| i32::try_from(number).ok())
            .ok_or_else(|| {
                QueryError::new(
                    "22008",
                    format!(
                        "value for \"{}\" in source string is out of range",
                        key.name
                    ),
                )
                .with_detail("Value must be in the range -2147483648 to 2147483647.")
            })?;
        Ok((number, self.at - start))
    }

    /// Reads one of some names, in any case: its place.
    fn name(&mut self, names: &[&str], key: &Key) -> Result<i32> {
        let rest = self.rest().as_bytes();
        let found = names.iter().position(|name| {
            rest.get(..name.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
        });
        let Some(found) = found else {
            let shown = self
                .rest()
                .split([' ', '\t', '\n', '\r', '\u{c}'])
                .next()
                .unwrap_or_default();
            return Err(
                bad(format!("invalid value \"{shown}\" for \"{}\"", key.name)).with_detail(
                    "The given value did not match any of the allowed values for this field.",
                ),
            );
        };
        self.at += names.get(found).map_or(0, |name| name.len());
        Ok(found as i32)
    }

    /// Skips the two letters of an ordinal number.
    fn skip_ending(&mut self, nodes: &[Node]) {
        if matches!(
            nodes.first(),
            Some(Node::Field {
                ordinal: Some(_),
                ..
            })
        ) {
            self.skip_letter();
            self.skip_letter();
        }
    }

    /// Reads a field; `nodes` begins with it.
    fn field(&mut self, nodes: &[Node], key: &Key, extra: i32) -> Result<()> {
        let length = key.name.len();
        match key.field {
            Field::Exact => {}
            Field::Half { dots, .. } => {
                let names = if dots { ["a.m.", "p.m."] } else { ["am", "pm"] };
                let half = self.name(&names, key)?;
                set(&mut self.read.afternoon, half, key)?;
                self.read.twelve_hours = true;
            }
            Field::Era { dots, .. } => {
                let names = if dots { ["a.d.", "b.c."] } else { ["ad", "bc"] };
                let era = self.name(&names, key)?;
                set(&mut self.read.bc, era, key)?;
            }
            Field::Month(_) => {
                let month = self.name(&FULL_MONTHS, key)?;
                set(&mut self.read.month, month + 1, key)?;
            }
            Field::ShortMonth(_) => {
                let month = self.name(&MONTHS, key)?;
                set(&mut self.read.month, month + 1, key)?;
            }
            Field::Day(_) => self.weekday_name(&FULL_DAYS, key)?,
            Field::ShortDay(_) => self.weekday_name(&DAYS, key)?,
            Field::RomanMonth { .. } => {
                let month = self.name(&ROMAN, key)?;
                set(&mut self.read.month, 12 - month, key)?;
            }
            Field::Zone { .. } | Field::Offset => return Err(write_only(key)),
            Field::ZoneHour => {
                match self.next() {
                    Some(sign @ ('+' | '-' | ' ')) => {
                        self.read.zone_sign = if sign == '-' { -1 } else { 1 };
                        self.skip_letter();
                    }
                    _ => {
                        let before = self.text.get(..self.at).unwrap_or_default();
                        let minus = extra > 0 && before.ends_with('-');
                        self.read.zone_sign = if minus { -1 } else { 1 };
                    }
                }
                let (hour, _) = self.number(nodes, key, 2)?;
                set(&mut self.read.zone_hour, hour, key)?;
            }
            Field::ZoneMinute => {
                if self.read.zone_sign == 0 {
                    self.read.zone_sign = 1;
                }
                let (minute, _) = self.number(nodes, key, 2)?;
                set(&mut self.read.zone_minute, minute, key)?;
            }
            Field::CommaYear => {
                let year = self.comma_year()?;
                set(&mut self.read.year, year, key)?;
                self.read.year_digits = 4;
                self.skip_ending(nodes);
            }
            Field::Quarter => {
                // A quarter says nothing that could be kept.
                self.number(nodes, key, length)?;
                self.skip_ending(nodes);
            }
            Field::Year { digits, .. } => {
                let (year, used) = self.number(nodes, key, length)?;
                set(&mut self.read.year, year, key)?;
                if digits < 4 && used < 4 {
                    self.read.year = near_2020(year);
                }
                self.read.year_digits = i32::from(digits);
                self.skip_ending(nodes);
            }
            Field::Fraction(_) | Field::Microsecond => {
                let digits = match key.field {
                    Field::Fraction(digits) => {
                        self.read.fraction_digits = i32::from(digits);
                        usize::from(digits)
                    }
                    _ => 6,
                };
                let (micros, used) = self.number(nodes, key, digits)?;
                set(&mut self.read.micros, micros, key)?;
                let scale = match used {
                    1 => 100_000,
                    2 => 10_000,
                    3 => 1000,
                    4 => 100,
                    5 => 10,
                    _ => 1,
                };
                self.read.micros = micros.wrapping_mul(scale);
                self.skip_ending(nodes);
            }
            Field::Millisecond => {
                let (millis, used) = self.number(nodes, key, 3)?;
                set(&mut self.read.millis, millis, key)?;
                let scale = match used {
                    1 => 100,
                    2 => 10,
                    _ => 1,
                };
                self.read.millis = millis.wrapping_mul(scale);
                self.skip_ending(nodes);
            }
            Field::IsoWeekday => {
                let (day, _) = self.number(nodes, key, 1)?;
                set(&mut self.read.weekday, day, key)?;
                let day = day.wrapping_add(1);
                self.read.weekday = if day > 7 { 1 } else { day };
                self.skip_ending(nodes);
            }
            field => {
                let length = match field {
                    Field::ClockHour | Field::Hour => 2,
                    Field::IsoYearDay => 3,
                    _ => length,
                };
                let (number, _) = self.number(nodes, key, length)?;
                let read = &mut self.read;
                let place = match field {
                    Field::ClockHour | Field::Hour => &mut read.hour,
                    Field::Minute => &mut read.minute,
                    Field::Second => &mut read.second,
                    Field::DaySecond => &mut read.day_second,
                    Field::MonthNumber => &mut read.month,
                    Field::YearDay | Field::IsoYearDay => &mut read.year_day,
                    Field::MonthDay => &mut read.day,
                    Field::Weekday => &mut read.weekday,
                    Field::Week | Field::IsoWeek => &mut read.week,
                    Field::Century => &mut read.century,
                    Field::MonthWeek => &mut read.month_week,
                    _ => &mut read.julian,
                };
                set(place, number, key)?;
                if field == Field::ClockHour {
                    read.twelve_hours = true;
                }
                self.skip_ending(nodes);
            }
        }
        Ok(())
    }

    fn weekday_name(&mut self, names: &[&str], key: &Key) -> Result<()> {
        let day = self.name(names, key)?;
        set(&mut self.read.weekday, day, key)?;
        self.read.weekday = day + 1;
        Ok(())
    }

    /// `2,024`
    fn comma_year(&mut self) -> Result<i32> {
        let invalid = || bad("invalid input string for \"Y,YYY\"");
        let text = self.rest().as_bytes();
        let (thousands, rest) = long(text);
        if rest.len() == text.len() {
            return Err(invalid());
        }
        let Some((b',', after)) = rest.split_first() else {
            return Err(invalid());
        };
        let spaces = after.iter().take_while(|byte| is_space(**byte)).count();
        let after = after.get(spaces..).unwrap_or_default();
        let cut = after.get(..3).unwrap_or(after);
        let (years, left) = long(cut);
        let used = cut.len() - left.len();
        if used == 0 {
            return Err(invalid());
        }
        self.at += text.len() - after.len() + used;
        let thousands = thousands.unwrap_or(i64::MAX) as i32;
        Ok((years.unwrap_or(0) as i32).wrapping_add(thousands.wrapping_mul(1000)))
    }
}

impl Read {
    /// The moment that the fields make; `text` is for errors.
    fn moment(self, text: &str) -> Result<Moment> {
        let mut fields = Fields {
            month: 1,
            day: 1,
            ..Fields::default()
        };
        self.set_time(&mut fields)?;
        let (mut has_year, mut has_month, mut has_day) = (false, false, false);
        let century = if self.bc != 0 {
            self.century.wrapping_neg()
        } else {
            self.century
        };
        if self.year != 0 {
            fields.year = self.year_in(century);
            has_year = true;
        } else if century != 0 {
            let before = if century >= 0 {
                century.wrapping_sub(1)
            } else {
                century
            };
            fields.year = before.wrapping_mul(100).wrapping_add(1);
            has_year = true;
        }
        if self.julian != 0 {
            fields.set_julian(self.julian);
            (has_year, has_month, has_day) = (true, true, true);
        }
        let iso = self.calendar == Some(Calendar::Iso);
        let mut year_day = self.year_day;
        if self.week != 0 {
            if iso {
                let monday = julian_of_week(fields.year, self.week);
                let later = match self.weekday {
                    0 => 0,
                    1 => 6,
                    day if day > 1 => day - 2,
                    _ => 6,
                };
                fields.set_julian(monday.wrapping_add(later));
                (has_year, has_month, has_day) = (true, true, true);
            } else {
                year_day = self.week.wrapping_sub(1).wrapping_mul(7).wrapping_add(1);
            }
        }
        let day = if self.month_week != 0 {
            self.month_week
                .wrapping_sub(1)
                .wrapping_mul(7)
                .wrapping_add(1)
        } else {
            self.day
        };
        if day != 0 {
            fields.day = day;
            has_day = true;
        }
        if self.month != 0 {
            fields.month = self.month;
            has_month = true;
        }
        if year_day != 0 && (fields.month <= 1 || fields.day <= 1) {
            if fields.year == 0 && self.bc == 0 {
                return Err(bad("cannot calculate day of year without year information"));
            }
            if iso {
                let before = julian_of_week(fields.year, 1).wrapping_sub(1);
                fields.set_julian(before.wrapping_add(year_day));
                has_year = true;
            } else {
                set_year_day(&mut fields, year_day);
            }
            (has_month, has_day) = (true, true);
        }
        let micros = self.millis.wrapping_mul(1000).wrapping_add(self.micros);
        fields.micros = micros;
        let beyond = || Bad::Field.error(text, "timestamp");
        if (has_year || has_month || has_day)
            && check_parts(&mut fields, has_year, has_month, has_day).is_err()
        {
            return Err(beyond());
        }
        if !(0..24).contains(&fields.hour)
            || !(0..60).contains(&fields.minute)
            || !(0..60).contains(&fields.second)
            || !(0..1_000_000).contains(&fields.micros)
        {
            return Err(beyond());
        }
        let mut west = None;
        if self.zone_sign != 0 {
            if !(0..=15).contains(&self.zone_hour) || !(0..60).contains(&self.zone_minute) {
                return Err(Bad::Displacement.error(text, "timestamp"));
            }
            west = Some(-self.zone_sign * (self.zone_hour * 60 + self.zone_minute) * 60);
        }
        Ok(Moment {
            fields,
            west,
            digits: self.fraction_digits,
            ..Moment::default()
        })
    }

    fn set_time(&self, fields: &mut Fields) -> Result<()> {
        if self.day_second != 0 {
            fields.hour = self.day_second / 3600;
            fields.minute = self.day_second / 60 % 60;
            fields.second = self.day_second % 60;
        }
        if self.second != 0 {
            fields.second = self.second;
        }
        if self.minute != 0 {
            fields.minute = self.minute;
        }
        if self.hour != 0 {
            fields.hour = self.hour;
        }
        if self.twelve_hours {
            if !(1..=12).contains(&fields.hour) {
                return Err(bad(format!(
                    "hour \"{}\" is invalid for the 12-hour clock",
                    fields.hour
                ))
                .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            if self.afternoon != 0 && fields.hour < 12 {
                fields.hour += 12;
            } else if self.afternoon == 0 && fields.hour == 12 {
                fields.hour = 0;
            }
        }
        Ok(())
    }

    /// The year as it is counted, with a year 0.
    fn year_in(&self, century: i32) -> i32 {
        if century == 0 || self.year_digits > 2 {
            let year = if self.bc != 0 {
                self.year.wrapping_neg()
            } else {
                self.year
            };
            return if year < 0 { year + 1 } else { year };
        }
        let hundreds = |century: i32| century.wrapping_mul(100);
        match (self.year % 100, century >= 0) {
            (0, true) => hundreds(century),
            (0, false) => hundreds(century).wrapping_add(1),
            (year, true) => hundreds(century.wrapping_sub(1)).wrapping_add(year),
            (year, false) => hundreds(century.wrapping_add(1))
                .wrapping_sub(year)
                .wrapping_add(1),
        }
    }
}

/// The month and day of a day of the year, as far as they are not there yet.
fn set_year_day(fields: &mut Fields, year_day: i32) {
    let year = if is_leap(fields.year) { 2000 } else { 2001 };
    let (mut month, mut before) = (1, 0);
    while month <= 12 {
        let days = month_days(year, month);
        if year_day <= before + days {
            break;
        }
        before += days;
        month += 1;
    }
    if month > 12 {
        before = 365 + i32::from(is_leap(fields.year));
    }
    if fields.month <= 1 {
        fields.month = month;
    }
    if fields.day <= 1 {
        fields.day = year_day.wrapping_sub(before);
    }
}
