//! Reads moments: dates, timestamps and times of day.

use super::abbreviations::{self, Abbreviation};
use super::split::{Bad, Kind, Split, atoi, fraction, fraction_micros, int, long};
use super::words::{self, Moment, Unit, Word};
use super::{DAY, Fields, date_of, fields_of, month_days, zone};
use crate::call::{Call, DateOrder};
use crate::error::{QueryError, Result};

/// Which parts of a moment have come, as bits.
mod part {
    pub const MOMENT: u32 = 1;
    pub const MONTH: u32 = 1 << 1;
    pub const YEAR: u32 = 1 << 2;
    pub const DAY: u32 = 1 << 3;
    pub const ZONE: u32 = 1 << 5;
    pub const SUMMER_ZONE: u32 = 1 << 6;
    pub const DYNAMIC_ZONE: u32 = 1 << 7;
    pub const HALF: u32 = 1 << 9;
    pub const HOUR: u32 = 1 << 10;
    pub const MINUTE: u32 = 1 << 11;
    pub const SECOND: u32 = 1 << 12;
    pub const SECONDS: u32 = SECOND | 1 << 13 | 1 << 14;
    pub const YEAR_DAY: u32 = 1 << 15;
    pub const WEEKDAY: u32 = 1 << 16;
    pub const ERA: u32 = 1 << 18;
    pub const SUMMER_MARK: u32 = 1 << 28;
    pub const DATE: u32 = YEAR | MONTH | DAY;
    pub const TIME: u32 = HOUR | MINUTE | SECONDS;
}

/// What a text stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// A moment in fields.
    Fields,
    /// 1970-01-01 UTC
    Epoch,
    /// `infinity`
    Late,
    /// `-infinity`
    Early,
}

/// A moment that was read.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// What the text stands for.
    pub meaning: Meaning,
    /// The moment.
    pub fields: Fields,
    /// Where it is told, in seconds west of Greenwich.
    pub west: i32,
}

/// Hours, minutes, seconds and microseconds.
pub(super) struct Clock {
    pub hour: i64,
    pub minute: i32,
    pub second: i32,
    pub micros: i32,
}

/// Whether a time of day is beyond 24:00:00.
#[must_use]
pub fn is_beyond_day(fields: &Fields) -> bool {
    !(0..=24).contains(&fields.hour)
        || !(0..60).contains(&fields.minute)
        || !(0..=60).contains(&fields.second)
        || !(0..=1_000_000).contains(&fields.micros)
        || fields.day_micros() > DAY
}

/// Reads a time with colons. `minutes_first` is for an interval of minutes and
/// seconds, whose two fields are these.
pub(super) fn clock(text: &[u8], minutes_first: bool) -> Result<Clock, Bad> {
    let (hour, rest) = long(text);
    let hour = hour.ok_or(Bad::Field)?;
    let Some((b':', rest)) = rest.split_first() else {
        return Err(Bad::Format);
    };
    let (minute, rest) = int(rest);
    let mut clock = Clock {
        hour,
        minute: minute.ok_or(Bad::Field)?,
        second: 0,
        micros: 0,
    };
    let shift = |clock: &mut Clock| {
        clock.second = clock.minute;
        clock.minute = i32::try_from(clock.hour).map_err(|_| Bad::Field)?;
        clock.hour = 0;
        Ok::<_, Bad>(())
    };
    match rest.split_first() {
        None if minutes_first => shift(&mut clock)?,
        None => {}
        Some((b'.', _)) => {
            clock.micros = fraction_micros(rest)?;
            shift(&mut clock)?;
        }
        Some((b':', rest)) => {
            let (second, rest) = int(rest);
            clock.second = second.ok_or(Bad::Field)?;
            match rest.first() {
                None => {}
                Some(b'.') => clock.micros = fraction_micros(rest)?,
                Some(_) => return Err(Bad::Format),
            }
        }
        Some(_) => return Err(Bad::Format),
    }
    if clock.hour < 0
        || !(0..60).contains(&clock.minute)
        || !(0..=60).contains(&clock.second)
        || !(0..=1_000_000).contains(&clock.micros)
    {
        return Err(Bad::Field);
    }
    Ok(clock)
}

/// Reads a zone in numbers, with its sign: seconds west of Greenwich.
///
/// # Errors
/// Where it is none or too far.
pub fn numeric_zone(text: &[u8]) -> Result<i32, Bad> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => return Err(Bad::Format),
    };
    let number = |text| {
        let (number, rest) = int(text);
        Ok::<_, Bad>((number.ok_or(Bad::Displacement)?, rest))
    };
    let (mut hour, mut rest) = number(digits)?;
    let (mut minute, mut second) = (0, 0);
    match rest.split_first() {
        Some((b':', after)) => {
            (minute, rest) = number(after)?;
            if let Some((b':', after)) = rest.split_first() {
                (second, rest) = number(after)?;
            }
        }
        None if text.len() > 3 => {
            minute = hour % 100;
            hour /= 100;
        }
        _ => {}
    }
    if !(0..=15).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
        return Err(Bad::Displacement);
    }
    if !rest.is_empty() {
        return Err(Bad::Format);
    }
    let east = (hour * 60 + minute) * 60 + second;
    Ok(if negative { east } else { -east })
}

/// Checks a date whose `parts` have come, and settles its year.
///
/// # Errors
/// Where the year, month or day can't be.
fn settle_date(fields: &mut Fields, parts: u32, year_day: i32, form: YearForm) -> Result<(), Bad> {
    if parts & part::YEAR != 0 {
        match form {
            YearForm::Exact => {}
            YearForm::Era if fields.year <= 0 => return Err(Bad::Field),
            YearForm::Era => fields.year = 1 - fields.year,
            YearForm::TwoDigits if fields.year < 0 => return Err(Bad::Field),
            YearForm::TwoDigits if fields.year < 70 => fields.year += 2000,
            YearForm::TwoDigits if fields.year < 100 => fields.year += 1900,
            YearForm::TwoDigits => {}
            YearForm::Plain if fields.year <= 0 => return Err(Bad::Field),
            YearForm::Plain => {}
        }
    }
    if parts & part::YEAR_DAY != 0 {
        let first = super::julian_of(fields.year, 1, 1);
        fields.set_julian(first.wrapping_add(year_day).wrapping_sub(1));
    }
    if (parts & part::MONTH != 0 && !(1..=12).contains(&fields.month))
        || (parts & part::DAY != 0 && !(1..=31).contains(&fields.day))
    {
        return Err(Bad::MonthDay);
    }
    if parts & part::DATE == part::DATE && fields.day > month_days(fields.year, fields.month) {
        return Err(Bad::Field);
    }
    Ok(())
}

/// How a year was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum YearForm {
    /// As it is counted, with a year 0.
    Exact,
    /// BC
    Era,
    /// One or two digits.
    TwoDigits,
    /// AD
    Plain,
}

/// Checks a date, and settles its year.
///
/// # Errors
/// Where the year, month or day can't be.
pub fn check_date(fields: &mut Fields, form: YearForm) -> Result<(), Bad> {
    settle_date(fields, part::DATE, 0, form)
}

/// As [`check_date`], of those parts of the date that came.
///
/// # Errors
/// As [`check_date`].
pub fn check_parts(fields: &mut Fields, year: bool, month: bool, day: bool) -> Result<(), Bad> {
    let parts = [(year, part::YEAR), (month, part::MONTH), (day, part::DAY)];
    let parts = parts.iter().filter(|row| row.0).map(|row| row.1).sum();
    settle_date(fields, parts, 0, YearForm::Exact)
}

/// Reads a date or a timestamp that was split.
///
/// # Errors
/// Where it is none.
pub fn date_time(call: &Call<'_>, split: &Split) -> Result<Point, Bad> {
    Reader::new(call, split, false).date_time()
}

/// Reads a time of day that was split.
///
/// # Errors
/// Where it is none.
pub fn time_only(call: &Call<'_>, split: &Split) -> Result<Point, Bad> {
    Reader::new(call, split, true).time_only()
}

/// The moment when the transaction began, as the session's clocks show it, and
/// where they are.
fn now(call: &Call<'_>) -> Result<(Fields, i32)> {
    zone::fields_in(
        call.environment.transaction_time(),
        &call.settings().time_zone,
    )
    .ok_or_else(super::timestamp_out_of_range)
}

/// A moment as far as it was read.
struct Reader<'a> {
    call: &'a Call<'a>,
    split: &'a Split,
    /// Whether a time of day is read.
    time: bool,
    meaning: Meaning,
    fields: Fields,
    west: i32,
    /// What has come.
    parts: u32,
    /// What the next number is.
    prefix: Option<Unit>,
    year_day: i32,
    text_month: bool,
    julian: bool,
    two_digits: bool,
    bc: bool,
    /// `am` or, if true, `pm`.
    half: Option<bool>,
    zone: Option<jiff::tz::TimeZone>,
    /// An abbreviation, in which zone it is to be looked up.
    abbreviation: Option<(usize, jiff::tz::TimeZone)>,
}

impl<'a> Reader<'a> {
    fn new(call: &'a Call<'a>, split: &'a Split, time: bool) -> Self {
        Self {
            call,
            split,
            time,
            meaning: Meaning::Fields,
            fields: Fields::default(),
            west: 0,
            parts: 0,
            prefix: None,
            year_day: 0,
            text_month: false,
            julian: false,
            two_digits: false,
            bc: false,
            half: None,
            zone: None,
            abbreviation: None,
        }
    }

    fn date_time(mut self) -> Result<Point, Bad> {
        self.read_fields()?;
        self.settle()?;
        if self.meaning == Meaning::Fields {
            if self.parts & part::DATE != part::DATE {
                return Err(Bad::Format);
            }
            if let Some(zone) = self.zone.take() {
                self.no_summer_mark()?;
                self.west = zone::local_west(&zone, &self.fields);
            }
            if let Some((at, zone)) = self.abbreviation.take() {
                self.no_summer_mark()?;
                self.west = zone::abbreviation_west(&zone, &self.fields, self.split.field(at));
            }
            if self.parts & part::ZONE == 0 {
                self.no_summer_mark()?;
                self.west = zone::local_west(&self.call.settings().time_zone, &self.fields);
            }
        }
        Ok(self.point())
    }

    fn time_only(mut self) -> Result<Point, Bad> {
        self.read_fields()?;
        self.settle()?;
        if is_beyond_day(&self.fields) {
            return Err(Bad::Field);
        }
        if self.parts & part::TIME != part::TIME {
            return Err(Bad::Format);
        }
        if let Some(zone) = self.zone.take() {
            self.no_summer_mark()?;
            self.west = match zone::fixed_east(&zone) {
                Some(east) => -east,
                None if self.parts & part::DATE == part::DATE => {
                    zone::local_west(&zone, &self.fields)
                }
                None => return Err(Bad::Format),
            };
        }
        if let Some((at, zone)) = self.abbreviation.take() {
            self.no_summer_mark()?;
            let moment = self.moment_of_time()?;
            self.west = zone::abbreviation_west(&zone, &moment, self.split.field(at));
        }
        if self.parts & part::ZONE == 0 {
            self.no_summer_mark()?;
            let zone = &self.call.settings().time_zone;
            self.west = match zone::fixed_east(zone) {
                Some(east) => -east,
                None => zone::local_west(zone, &self.moment_of_time()?),
            };
        }
        Ok(self.point())
    }

    fn point(&self) -> Point {
        Point {
            meaning: self.meaning,
            fields: self.fields,
            west: self.west,
        }
    }

    /// `dst` belongs to a zone of fixed distance.
    fn no_summer_mark(&self) -> Result<(), Bad> {
        if self.parts & part::SUMMER_MARK != 0 {
            return Err(Bad::Format);
        }
        Ok(())
    }

    /// A time of day with its date, or today's.
    fn moment_of_time(&self) -> Result<Fields, Bad> {
        let date = match self.parts & part::DATE {
            0 => now(self.call)?.0,
            part::DATE => self.fields,
            _ => return Err(Bad::Format),
        };
        Ok(Fields {
            year: date.year,
            month: date.month,
            day: date.day,
            ..self.fields
        })
    }

    /// Checks the date and applies `am` and `pm`.
    fn settle(&mut self) -> Result<(), Bad> {
        let form = if self.julian {
            YearForm::Exact
        } else if self.bc {
            YearForm::Era
        } else if self.two_digits {
            YearForm::TwoDigits
        } else {
            YearForm::Plain
        };
        settle_date(&mut self.fields, self.parts, self.year_day, form)?;
        if let Some(afternoon) = self.half {
            let hour = &mut self.fields.hour;
            match (*hour, afternoon) {
                (13.., _) => return Err(Bad::Field),
                (12, false) => *hour = 0,
                (12, true) | (_, false) => {}
                (_, true) => *hour += 12,
            }
        }
        Ok(())
    }

    fn read_fields(&mut self) -> Result<(), Bad> {
        for at in 0..self.split.len() {
            let came = match self.split.kind(at) {
                Some(Kind::Date) => self.date_field(at)?,
                Some(Kind::Time) => self.time_field(at)?,
                Some(Kind::Zone) => {
                    self.west = numeric_zone(self.split.field(at))?;
                    part::ZONE
                }
                Some(Kind::Number) => match self.prefix {
                    Some(prefix) => {
                        let came = self.prefixed_number(at, prefix)?;
                        self.prefix = None;
                        self.meaning = Meaning::Fields;
                        came
                    }
                    None if self.time => self.time_number(at)?,
                    None => self.date_number(at)?,
                },
                Some(Kind::Text | Kind::Special) => match self.word(at)? {
                    Some(came) => came,
                    None => continue,
                },
                None => return Err(Bad::Format),
            };
            if came & self.parts != 0 {
                return Err(Bad::Format);
            }
            self.parts |= came;
        }
        Ok(())
    }

    fn time_field(&mut self, at: usize) -> Result<u32, Bad> {
        if !self.time
            && let Some(prefix) = self.prefix.take()
            && prefix != Unit::TimeOfDay
        {
            return Err(Bad::Format);
        }
        let clock = clock(self.split.field(at), false)?;
        self.fields.hour = i32::try_from(clock.hour).map_err(|_| Bad::Field)?;
        self.fields.minute = clock.minute;
        self.fields.second = clock.second;
        self.fields.micros = clock.micros;
        if !self.time && is_beyond_day(&self.fields) {
            return Err(Bad::Field);
        }
        Ok(part::TIME)
    }

    /// A field with delimiters: a date, the name of a zone, or a time run
    /// together with its zone.
    fn date_field(&mut self, at: usize) -> Result<u32, Bad> {
        let field = self.split.field(at);
        if self.time {
            let last = self.split.kind(self.split.len().wrapping_sub(1));
            if at == 0
                && self.split.len() >= 2
                && (last == Some(Kind::Date) || self.split.kind(1) == Some(Kind::Time))
            {
                return self.delimited_date(field);
            }
            if field.first().is_some_and(u8::is_ascii_digit) {
                return self.time_with_zone(field);
            }
            return self.named_zone(field);
        }
        if self.prefix == Some(Unit::Julian) {
            let (number, rest) = int(field);
            let julian = number.filter(|number| *number >= 0).ok_or(Bad::Field)?;
            self.fields.set_julian(julian);
            self.julian = true;
            self.west = numeric_zone(rest)?;
            self.prefix = None;
            return Ok(part::DATE | part::TIME | part::ZONE);
        }
        let day = part::MONTH | part::DAY;
        if self.prefix.is_none() && self.parts & day != day {
            return self.delimited_date(field);
        }
        if field.first().is_some_and(u8::is_ascii_digit) || self.prefix.is_some() {
            if self
                .prefix
                .take()
                .is_some_and(|prefix| prefix != Unit::TimeOfDay)
            {
                return Err(Bad::Format);
            }
            return self.time_with_zone(field);
        }
        self.named_zone(field)
    }

    /// `hhmmss-zz`
    fn time_with_zone(&mut self, field: &[u8]) -> Result<u32, Bad> {
        if self.parts & part::TIME == part::TIME {
            return Err(Bad::Format);
        }
        let minus = field
            .iter()
            .position(|byte| *byte == b'-')
            .ok_or(Bad::Format)?;
        let (time, zone) = field.split_at(minus);
        self.west = numeric_zone(zone)?;
        let parts = if self.time {
            self.parts | part::DATE
        } else {
            self.parts
        };
        Ok(self.joined_number(time, parts)? | part::ZONE)
    }

    fn named_zone(&mut self, field: &[u8]) -> Result<u32, Bad> {
        let name = std::str::from_utf8(field).unwrap_or_default();
        self.zone = Some(zone::named(name).ok_or_else(|| {
            QueryError::invalid_parameter(format!("time zone \"{name}\" not recognized"))
        })?);
        Ok(part::ZONE)
    }

    /// A number whose meaning the field before has given.
    fn prefixed_number(&mut self, at: usize, prefix: Unit) -> Result<u32, Bad> {
        let field = self.split.field(at);
        let (number, rest) = int(field);
        let number = number.ok_or(Bad::Field)?;
        let may_have_fraction = matches!(prefix, Unit::Julian | Unit::TimeOfDay | Unit::Second);
        match rest.first() {
            Some(b'.') if may_have_fraction => {}
            None => {}
            Some(_) => return Err(Bad::Format),
        }
        match prefix {
            Unit::Year => {
                self.fields.year = number;
                Ok(part::YEAR)
            }
            Unit::Month if self.parts & part::MONTH != 0 && self.parts & part::HOUR != 0 => {
                self.fields.minute = number;
                Ok(part::MINUTE)
            }
            Unit::Month => {
                self.fields.month = number;
                Ok(part::MONTH)
            }
            Unit::Day => {
                self.fields.day = number;
                Ok(part::DAY)
            }
            Unit::Hour => {
                self.fields.hour = number;
                Ok(part::HOUR)
            }
            Unit::Minute => {
                self.fields.minute = number;
                Ok(part::MINUTE)
            }
            Unit::Second => {
                self.fields.second = number;
                if rest.is_empty() {
                    return Ok(part::SECOND);
                }
                self.fields.micros = fraction_micros(rest)?;
                Ok(part::SECONDS)
            }
            Unit::Julian => {
                if number < 0 {
                    return Err(Bad::Field);
                }
                self.fields.set_julian(number);
                self.julian = true;
                if rest.is_empty() {
                    return Ok(part::DATE);
                }
                let micros = fraction(rest)? * DAY as f64;
                self.fields.set_time(super::truncated(micros));
                Ok(part::DATE | part::TIME)
            }
            Unit::TimeOfDay => {
                let came = self.joined_number(field, self.parts | part::DATE)?;
                if came != part::TIME {
                    return Err(Bad::Format);
                }
                Ok(came)
            }
            _ => Err(Bad::Format),
        }
    }

    /// A number within a timestamp.
    fn date_number(&mut self, at: usize) -> Result<u32, Bad> {
        let field = self.split.field(at);
        let point = field.iter().position(|byte| *byte == b'.');
        match point {
            Some(_) if self.parts & part::DATE == 0 => self.delimited_date(field),
            Some(point) if point > 2 => self.joined_number(field, self.parts),
            _ if field.len() >= 6
                && (self.parts & part::DATE == 0 || self.parts & part::TIME == 0) =>
            {
                self.joined_number(field, self.parts)
            }
            _ => self.single_number(field, self.parts, self.text_month),
        }
    }

    /// A number within a time of day.
    fn time_number(&mut self, at: usize) -> Result<u32, Bad> {
        let field = self.split.field(at);
        let parts = self.parts | part::DATE;
        let last = self.split.kind(self.split.len().wrapping_sub(1));
        match field.iter().position(|byte| *byte == b'.') {
            Some(_) if at == 0 && self.split.len() >= 2 && last == Some(Kind::Date) => {
                self.delimited_date(field)
            }
            Some(point) if point > 2 => self.joined_number(field, parts),
            Some(_) => Err(Bad::Format),
            None if field.len() > 4 => self.joined_number(field, parts),
            None => self.single_number(field, parts, false),
        }
    }

    /// A date with delimiters.
    fn delimited_date(&mut self, mut text: &[u8]) -> Result<u32, Bad> {
        let mut pieces: [&[u8]; 25] = [&[]; 25];
        let mut count = 0;
        while !text.is_empty() && count < pieces.len() {
            let skipped = text
                .iter()
                .take_while(|byte| !byte.is_ascii_alphanumeric())
                .count();
            text = text.get(skipped..).unwrap_or_default();
            let Some(first) = text.first() else {
                return Err(Bad::Format);
            };
            let length = if first.is_ascii_digit() {
                text.iter().take_while(|byte| byte.is_ascii_digit()).count()
            } else {
                text.iter()
                    .take_while(|byte| byte.is_ascii_alphabetic())
                    .count()
            };
            let (piece, rest) = text.split_at(length);
            if let Some(place) = pieces.get_mut(count) {
                *place = piece;
            }
            count += 1;
            text = rest.get(1..).unwrap_or_default();
        }
        let (mut parts, mut came) = (self.parts, 0);
        let mut text_month = false;
        let mut done = [false; 25];
        let pieces = pieces.get(..count).unwrap_or_default();
        for (piece, done) in pieces.iter().zip(&mut done) {
            if !piece.first().is_some_and(u8::is_ascii_alphabetic) {
                continue;
            }
            match words::of_moment(piece) {
                Some(Word::Ignored) => continue,
                Some(Word::Month(month)) => {
                    self.fields.month = month;
                    text_month = true;
                }
                _ => return Err(Bad::Format),
            }
            if parts & part::MONTH != 0 {
                return Err(Bad::Format);
            }
            parts |= part::MONTH;
            came |= part::MONTH;
            *done = true;
        }
        for (piece, done) in pieces.iter().zip(done) {
            if done {
                continue;
            }
            if piece.is_empty() {
                return Err(Bad::Format);
            }
            let one = self.single_number(piece, parts, text_month)?;
            if parts & one != 0 {
                return Err(Bad::Format);
            }
            parts |= one;
            came |= one;
        }
        if parts & !(part::YEAR_DAY | part::ZONE) != part::DATE {
            return Err(Bad::Format);
        }
        Ok(came)
    }

    /// A number whose meaning depends on what came before.
    fn single_number(&mut self, text: &[u8], parts: u32, text_month: bool) -> Result<u32, Bad> {
        let (number, rest) = int(text);
        let number = number.ok_or(Bad::Field)?;
        if rest.len() == text.len() {
            return Err(Bad::Format);
        }
        match rest.first() {
            Some(b'.') if text.len() - rest.len() > 2 => {
                return self.joined_number(text, parts | part::DATE);
            }
            Some(b'.') => self.fields.micros = fraction_micros(rest)?,
            Some(_) => return Err(Bad::Format),
            None => {}
        }
        let length = text.len();
        let date = parts & part::DATE;
        if length == 3 && date == part::YEAR && (1..=366).contains(&number) {
            self.year_day = number;
            return Ok(part::YEAR_DAY | part::MONTH | part::DAY);
        }
        let order = self.call.settings().date_order;
        let year_first = length >= 3 || order == DateOrder::Ymd;
        const YEAR_MONTH: u32 = part::YEAR | part::MONTH;
        const MONTH_DAY: u32 = part::MONTH | part::DAY;
        let came = match date {
            0 if year_first => part::YEAR,
            0 if order == DateOrder::Dmy => part::DAY,
            0 | part::YEAR | part::DAY => part::MONTH,
            part::MONTH if text_month && year_first => part::YEAR,
            part::MONTH => part::DAY,
            YEAR_MONTH if text_month && length >= 3 && self.two_digits => {
                // The first number was the day after all.
                self.fields.day = self.fields.year;
                self.fields.year = number;
                self.two_digits = false;
                return Ok(part::DAY);
            }
            YEAR_MONTH => part::DAY,
            MONTH_DAY => part::YEAR,
            part::DATE => return self.joined_number(text, parts),
            _ => return Err(Bad::Format),
        };
        match came {
            part::YEAR => {
                self.fields.year = number;
                self.two_digits = length <= 2;
            }
            part::MONTH => self.fields.month = number,
            _ => self.fields.day = number,
        }
        Ok(came)
    }

    /// Digits run together: a date or a time of day.
    fn joined_number(&mut self, text: &[u8], parts: u32) -> Result<u32, Bad> {
        let mut text = text;
        if let Some(point) = text.iter().position(|byte| *byte == b'.') {
            let (whole, rest) = text.split_at(point);
            self.fields.micros = if rest.len() == 1 {
                0
            } else {
                let (number, _) = super::split::double(rest).unwrap_or((0.0, &[]));
                (number * 1_000_000.0).round_ties_even() as i32
            };
            text = whole;
        } else if parts & part::DATE != part::DATE && text.len() >= 6 {
            let (rest, day) = text.split_at(text.len() - 2);
            let (year, month) = rest.split_at(rest.len() - 2);
            self.fields.day = atoi(day);
            self.fields.month = atoi(month);
            self.fields.year = atoi(year);
            if year.len() == 2 {
                self.two_digits = true;
            }
            return Ok(part::DATE);
        }
        if parts & part::TIME != part::TIME && matches!(text.len(), 4 | 6) {
            let (hour, rest) = text.split_at(2);
            let (minute, second) = rest.split_at(2);
            self.fields.hour = atoi(hour);
            self.fields.minute = atoi(minute);
            self.fields.second = atoi(second);
            return Ok(part::TIME);
        }
        Err(Bad::Format)
    }

    /// A word: what came with it; `None` where it says nothing.
    fn word(&mut self, at: usize) -> Result<Option<u32>, Bad> {
        let field = self.split.field(at);
        if let Some(abbreviation) = abbreviations::find(field) {
            return match abbreviation {
                Abbreviation::Fixed(east, summer) => {
                    self.west = -east;
                    Ok(Some(if summer {
                        part::SUMMER_ZONE | part::ZONE
                    } else {
                        part::ZONE
                    }))
                }
                Abbreviation::Dynamic(name) => {
                    let zone = zone::of_abbreviation(name, field)?;
                    self.abbreviation = Some((at, zone));
                    Ok(Some(part::DYNAMIC_ZONE | part::ZONE))
                }
            };
        }
        let Some(word) = words::of_moment(field) else {
            let name = std::str::from_utf8(field).unwrap_or_default();
            self.zone = Some(zone::named(name).ok_or(Bad::Format)?);
            return Ok(Some(part::ZONE));
        };
        let came = match word {
            Word::Ignored => return Ok(None),
            Word::Moment(moment) if self.time => match moment {
                Moment::Now => {
                    let (now, _) = now(self.call)?;
                    self.fields.set_time(now.day_micros());
                    part::TIME
                }
                Moment::Midnight => {
                    self.midnight();
                    part::TIME | part::ZONE
                }
                _ => return Err(Bad::Format),
            },
            Word::Moment(moment) => self.moment(moment)?,
            Word::Month(_) | Word::Weekday if self.time => return Err(Bad::Format),
            Word::Month(month) => {
                let mut came = part::MONTH;
                if self.parts & part::MONTH != 0
                    && !self.text_month
                    && self.parts & part::DAY == 0
                    && (1..=31).contains(&self.fields.month)
                {
                    self.fields.day = self.fields.month;
                    came = part::DAY;
                }
                self.text_month = true;
                self.fields.month = month;
                came
            }
            Word::Weekday => part::WEEKDAY,
            Word::SummerMark => {
                self.west = self.west.wrapping_sub(3600);
                part::SUMMER_MARK | part::SUMMER_ZONE
            }
            Word::Half(afternoon) => {
                self.half = Some(afternoon);
                part::HALF
            }
            Word::Era(bc) => {
                self.bc = bc;
                part::ERA
            }
            Word::Unit(unit) => {
                self.prefix = Some(unit);
                0
            }
            Word::TimeMark => {
                if !self.time && self.parts & part::DATE != part::DATE {
                    return Err(Bad::Format);
                }
                if !matches!(
                    self.split.kind(at + 1),
                    Some(Kind::Number | Kind::Time | Kind::Date)
                ) {
                    return Err(Bad::Format);
                }
                self.prefix = Some(Unit::TimeOfDay);
                0
            }
            Word::Ago => return Err(Bad::Format),
        };
        Ok(Some(came))
    }

    fn midnight(&mut self) {
        self.fields.hour = 0;
        self.fields.minute = 0;
        self.fields.second = 0;
        self.west = 0;
    }

    /// A word for a moment, within a timestamp.
    fn moment(&mut self, moment: Moment) -> Result<u32, Bad> {
        let came = match moment {
            Moment::Now => {
                (self.fields, self.west) = now(self.call)?;
                part::DATE | part::TIME | part::ZONE
            }
            Moment::Yesterday | Moment::Today | Moment::Tomorrow => {
                let (now, _) = now(self.call)?;
                let julian = now.julian()
                    + match moment {
                        Moment::Yesterday => -1,
                        Moment::Tomorrow => 1,
                        _ => 0,
                    };
                (self.fields.year, self.fields.month, self.fields.day) = date_of(julian);
                part::DATE
            }
            Moment::Midnight => {
                self.midnight();
                part::TIME | part::ZONE
            }
            Moment::Early | Moment::Late | Moment::Epoch => {
                self.meaning = match moment {
                    Moment::Early => Meaning::Early,
                    Moment::Late => Meaning::Late,
                    _ => Meaning::Epoch,
                };
                return Ok(part::MOMENT);
            }
        };
        self.meaning = Meaning::Fields;
        Ok(came)
    }
}

/// The moment that is 1970-01-01 UTC.
#[must_use]
pub fn epoch() -> Fields {
    fields_of(super::UNIX_EPOCH).unwrap_or_default()
}
