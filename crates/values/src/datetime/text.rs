//! Dates and timestamps as text: what PostgreSQL reads (with DateStyle
//! ISO, MDY) and what it prints. Understood are the ISO forms, `YYYYMMDD`,
//! `MM/DD/YYYY`, names of months, AM/PM, BC, numeric zones, `infinity` and
//! `epoch`. Words that need a clock (`now`, `today`) are not read here. No
//! input panics: it is 22007 (not a date) or 22008 (no such date).

use super::{
    Civil, DAY_US, HOUR_US, MINUTE_US, SECOND_US, UNIX_EPOCH_DAYS, civil_from_days, date_from_days,
    days_from_civil, days_in_month, timestamp_from_microseconds,
};
use crate::value::{
    DATE_INFINITY, DATE_NEGATIVE_INFINITY, TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY,
};
use crate::value_error::ValueError;

/// Why a text is not a date.
#[derive(Clone, Copy)]
enum Fault {
    Syntax,
    FieldRange,
    ZoneRange,
}

impl Fault {
    fn explain(self, type_name: &str, text: &str) -> ValueError {
        match self {
            Self::Syntax => ValueError::new(
                "22007",
                format!("invalid input syntax for type {type_name}: \"{text}\""),
            ),
            Self::FieldRange => ValueError::new(
                "22008",
                format!("date/time field value out of range: \"{text}\""),
            ),
            Self::ZoneRange => ValueError::new(
                "22009",
                format!("time zone displacement out of range: \"{text}\""),
            ),
        }
    }
}

/// What a text says.
enum Moment {
    Infinity,
    NegativeInfinity,
    At {
        /// Days since 2000-01-01
        days: i64,
        /// Microseconds since midnight; 24:00 is possible
        time_us: i64,
        /// Seconds east of UTC
        zone_seconds: Option<i64>,
    },
}

/// A cursor over the bytes of a trimmed text.
struct Scanner<'a> {
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn take_while(&mut self, matches: fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().take_while(|byte| matches(**byte)).count();
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
}

/// At most nine digits, so that no product overflows.
fn number(digits: &[u8]) -> Result<i64, Fault> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Fault::Syntax);
    }
    if digits.len() > 9 {
        return Err(Fault::FieldRange);
    }
    Ok(digits
        .iter()
        .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// Names count in full or from three letters on.
fn index_of(names: &[&str], word: &[u8]) -> Option<usize> {
    let word = std::str::from_utf8(word).ok()?.to_ascii_lowercase();
    (word.len() >= 3)
        .then(|| {
            names
                .iter()
                .position(|name| *name == word || (word.len() <= 4 && name.starts_with(&word)))
        })
        .flatten()
}

fn month_of(word: &[u8]) -> Option<i64> {
    index_of(&MONTHS, word).map(|index| index as i64 + 1)
}

/// The parts of a date as they are found.
#[derive(Default)]
struct DateParts {
    /// Year, with the number of digits it was written with
    year: Option<(i64, usize)>,
    month: Option<i64>,
    day: Option<i64>,
    before_christ: bool,
}

impl DateParts {
    fn is_empty(&self) -> bool {
        self.year.is_none() && self.month.is_none() && self.day.is_none()
    }

    fn set(&mut self, year: &[u8], month: i64, day: i64) -> Result<(), Fault> {
        if !self.is_empty() {
            return Err(Fault::Syntax);
        }
        self.year = Some((number(year)?, year.len()));
        self.month = Some(month);
        self.day = Some(day);
        Ok(())
    }

    /// Three fields with a separator between: ISO, or month first.
    fn read_separated(&mut self, parts: [&[u8]; 3]) -> Result<(), Fault> {
        let [first, second, third] = parts;
        if let Some(month) = month_of(first) {
            self.set(third, month, number(second)?)
        } else if let Some(month) = month_of(second) {
            if first.len() > 2 {
                self.set(first, month, number(third)?)
            } else {
                self.set(third, month, number(first)?)
            }
        } else if second.len() > 2 && first.len() > 2 {
            // A day of the year, which ends a date.
            Err(Fault::Syntax)
        } else if first.len() > 2 {
            self.set(first, number(second)?, number(third)?)
        } else {
            self.set(third, number(first)?, number(second)?)
        }
    }

    /// A run of digits outside any separated date.
    fn read_digits(&mut self, digits: &[u8]) -> Result<(), Fault> {
        let count = digits.len();
        if self.is_empty() && (count == 8 || count == 6) {
            let (year, rest) = digits.split_at(count - 4);
            let (month, day) = rest.split_at(2);
            return self.set(year, number(month)?, number(day)?);
        }
        if self.month.is_none() {
            // Only a named month lets a bare number be a day.
            if self.day.is_none() && count <= 2 {
                self.day = Some(number(digits)?);
                return Ok(());
            }
            return Err(Fault::Syntax);
        }
        if self.day.is_none() && count <= 2 {
            self.day = Some(number(digits)?);
        } else if self.year.is_none() {
            self.year = Some((number(digits)?, count));
        } else {
            return Err(Fault::Syntax);
        }
        Ok(())
    }

    fn days(&self) -> Result<i64, Fault> {
        let (Some((year, digits)), Some(month), Some(day)) = (self.year, self.month, self.day)
        else {
            return Err(Fault::Syntax);
        };
        let year = match (self.before_christ, year, digits) {
            (_, 0, 3..) | (true, 0, _) => return Err(Fault::FieldRange),
            (true, _, _) => 1 - year,
            (false, 0..70, ..=2) => year + 2000,
            (false, 70..100, ..=2) => year + 1900,
            _ => year,
        };
        let (Ok(month), Ok(day)) = (u32::try_from(month), u32::try_from(day)) else {
            return Err(Fault::FieldRange);
        };
        if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
            return Err(Fault::FieldRange);
        }
        Ok(days_from_civil(Civil { year, month, day }))
    }
}

/// `hh:mm[:ss[.fraction]]` after its hours, or all of `hhmm[ss]`.
fn read_time(scanner: &mut Scanner<'_>, hours: &[u8]) -> Result<i64, Fault> {
    let (hours, minutes, seconds) = if scanner.accept(b':') {
        let minutes = scanner.take_while(is_digit);
        let seconds = if scanner.accept(b':') {
            scanner.take_while(is_digit)
        } else {
            b"0"
        };
        (hours, minutes, seconds)
    } else {
        match hours.len() {
            2 => (hours, &b"0"[..], &b"0"[..]),
            4 => (&hours[..2], &hours[2..], &b"0"[..]),
            6 => (&hours[..2], &hours[2..4], &hours[4..]),
            _ => return Err(Fault::Syntax),
        }
    };
    let mut fraction_us = 0;
    if scanner.accept(b'.') {
        let digits = scanner.take_while(is_digit);
        let mut unit = SECOND_US / 10;
        for digit in digits.iter().take(6) {
            fraction_us += i64::from(digit - b'0') * unit;
            unit /= 10;
        }
        fraction_us += i64::from(digits.get(6).is_some_and(|digit| *digit >= b'5'));
    }
    let (hours, minutes, seconds) = (number(hours)?, number(minutes)?, number(seconds)?);
    let time_us = hours * HOUR_US + minutes * MINUTE_US + seconds * SECOND_US + fraction_us;
    if minutes > 59 || seconds > 60 || hours > 24 || time_us > DAY_US {
        return Err(Fault::FieldRange);
    }
    Ok(time_us)
}

/// `hh`, `hhmm` or `hh:mm[:ss]` after its sign.
fn read_zone(scanner: &mut Scanner<'_>, sign: i64) -> Result<i64, Fault> {
    let digits = scanner.take_while(is_digit);
    let (hours, mut minutes) = match digits.len() {
        1 | 2 => (digits, 0),
        3 | 4 => {
            let (hours, minutes) = digits.split_at(digits.len() - 2);
            (hours, number(minutes)?)
        }
        _ => return Err(Fault::Syntax),
    };
    let mut seconds = 0;
    if digits.len() <= 2 && scanner.accept(b':') {
        minutes = number(scanner.take_while(is_digit))?;
        if scanner.accept(b':') {
            seconds = number(scanner.take_while(is_digit))?;
        }
    }
    let hours = number(hours)?;
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Fault::ZoneRange);
    }
    Ok(sign * (hours * 3600 + minutes * 60 + seconds))
}

/// What was read of a moment so far.
#[derive(Default)]
struct MomentParts {
    date: DateParts,
    time_us: Option<i64>,
    zone_seconds: Option<i64>,
    afternoon: Option<bool>,
    time_follows: bool,
}

impl MomentParts {
    /// Digits, and what belongs to them.
    fn read_digits(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Fault> {
        let digits = scanner.take_while(is_digit);
        match scanner.peek() {
            _ if self.time_follows => {
                self.time_us = Some(read_time(scanner, digits)?);
                self.time_follows = false;
            }
            Some(b':') if self.time_us.is_none() => {
                self.time_us = Some(read_time(scanner, digits)?);
            }
            Some(separator @ (b'-' | b'/' | b'.')) if self.date.is_empty() => {
                scanner.accept(separator);
                let second = scanner.take_while(|byte| byte.is_ascii_alphanumeric());
                if !scanner.accept(separator) {
                    return Err(Fault::Syntax);
                }
                let third = scanner.take_while(is_digit);
                self.date.read_separated([digits, second, third])?;
            }
            _ => self.date.read_digits(digits)?,
        }
        Ok(())
    }

    /// A word. The moment, where the word is all of it.
    fn read_word(&mut self, scanner: &mut Scanner<'_>) -> Result<Option<Moment>, Fault> {
        let word = scanner.take_while(is_letter).to_ascii_lowercase();
        let is_all = self.date.is_empty() && scanner.rest.is_empty();
        match word.as_slice() {
            b"infinity" if is_all => return Ok(Some(Moment::Infinity)),
            b"epoch" if is_all => {
                return Ok(Some(Moment::At {
                    days: -UNIX_EPOCH_DAYS,
                    time_us: 0,
                    zone_seconds: Some(0),
                }));
            }
            b"t" if !self.date.is_empty() && self.time_us.is_none() => self.time_follows = true,
            b"z" | b"utc" | b"gmt" | b"zulu" | b"ut" if self.zone_seconds.is_none() => {
                self.zone_seconds = Some(0);
            }
            b"bc" => self.date.before_christ = true,
            b"ad" => {}
            b"am" if self.afternoon.is_none() => self.afternoon = Some(false),
            b"pm" if self.afternoon.is_none() => self.afternoon = Some(true),
            word if index_of(&DAYS, word).is_some() => {}
            word => match month_of(word) {
                Some(month) if self.date.month.is_none() => {
                    self.date.month = Some(month);
                    // The form Mon-DD-YYYY.
                    while scanner.accept(b'-') {
                        self.date.read_digits(scanner.take_while(is_digit))?;
                    }
                }
                _ => return Err(Fault::Syntax),
            },
        }
        Ok(None)
    }

    fn moment(&self) -> Result<Moment, Fault> {
        if self.time_follows {
            return Err(Fault::Syntax);
        }
        let time_us = match (self.time_us, self.afternoon) {
            (time_us, None) => time_us.unwrap_or(0),
            (Some(time_us), Some(_)) if time_us >= 13 * HOUR_US => return Err(Fault::FieldRange),
            (Some(time_us), Some(afternoon)) => {
                time_us % (12 * HOUR_US) + if afternoon { 12 * HOUR_US } else { 0 }
            }
            (None, Some(_)) => return Err(Fault::Syntax),
        };
        Ok(Moment::At {
            days: self.date.days()?,
            time_us,
            zone_seconds: self.zone_seconds,
        })
    }
}

fn read_moment(text: &str) -> Result<Moment, Fault> {
    let mut scanner = Scanner {
        rest: text.trim_ascii().as_bytes(),
    };
    let mut parts = MomentParts::default();
    while let Some(next) = scanner.peek() {
        match next {
            b'0'..=b'9' => parts.read_digits(&mut scanner)?,
            b'+' | b'-' if scanner.rest.get(1).is_some_and(u8::is_ascii_digit) => {
                scanner.accept(next);
                if parts.time_us.is_none() || parts.zone_seconds.is_some() {
                    return Err(Fault::Syntax);
                }
                let sign = if next == b'-' { -1 } else { 1 };
                parts.zone_seconds = Some(read_zone(&mut scanner, sign)?);
            }
            b'+' | b'-' => {
                scanner.accept(next);
                let word = scanner.take_while(is_letter).to_ascii_lowercase();
                return match (word.as_slice(), scanner.rest, next) {
                    (b"infinity", [], b'-') => Ok(Moment::NegativeInfinity),
                    (b"infinity", [], _) => Ok(Moment::Infinity),
                    _ => Err(Fault::Syntax),
                };
            }
            b' ' | b',' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c' if !parts.time_follows => {
                scanner.accept(next);
            }
            _ if is_letter(next) => {
                if let Some(moment) = parts.read_word(&mut scanner)? {
                    return Ok(moment);
                }
            }
            _ => return Err(Fault::Syntax),
        }
    }
    parts.moment()
}

/// Reads a date; a time of day after it is ignored.
///
/// # Errors
/// 22007, 22008 or 22009 in PostgreSQL's words.
pub fn parse_date(text: &str) -> Result<i32, ValueError> {
    match read_moment(text).map_err(|fault| fault.explain("date", text))? {
        Moment::Infinity => Ok(DATE_INFINITY),
        Moment::NegativeInfinity => Ok(DATE_NEGATIVE_INFINITY),
        Moment::At { days, .. } => date_from_days(days)
            .map_err(|_| ValueError::new("22008", format!("date out of range: \"{text}\""))),
    }
}

fn parse_moment(text: &str, type_name: &str, zoned: bool) -> Result<i64, ValueError> {
    match read_moment(text).map_err(|fault| fault.explain(type_name, text))? {
        Moment::Infinity => Ok(TIMESTAMP_INFINITY),
        Moment::NegativeInfinity => Ok(TIMESTAMP_NEGATIVE_INFINITY),
        Moment::At {
            days,
            time_us,
            zone_seconds,
        } => {
            let zone_us = match zone_seconds {
                Some(seconds) if zoned => seconds * SECOND_US,
                _ => 0,
            };
            let microseconds =
                i128::from(days) * i128::from(DAY_US) + i128::from(time_us - zone_us);
            timestamp_from_microseconds(microseconds).map_err(|_| {
                ValueError::new("22008", format!("timestamp out of range: \"{text}\""))
            })
        }
    }
}

/// Reads a timestamp; a zone after it is ignored, as SQL wants it.
///
/// # Errors
/// 22007, 22008 or 22009 in PostgreSQL's words.
pub fn parse_timestamp(text: &str) -> Result<i64, ValueError> {
    parse_moment(text, "timestamp", false)
}

/// Reads a timestamp with a zone; without one it is UTC.
///
/// # Errors
/// 22007, 22008 or 22009 in PostgreSQL's words.
pub fn parse_timestamptz(text: &str) -> Result<i64, ValueError> {
    parse_moment(text, "timestamp with time zone", true)
}

/// Appends a number with at least so many digits.
fn push_padded(out: &mut Vec<u8>, number: i64, width: usize) {
    let mut digits = [b'0'; 20];
    let (mut start, mut rest) = (digits.len(), number.unsigned_abs());
    while rest > 0 || digits.len() - start < width {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends the date without its era and says whether it is before Christ.
fn push_date(out: &mut Vec<u8>, days: i64) -> bool {
    let civil = civil_from_days(days);
    let before_christ = civil.year <= 0;
    let year = if before_christ {
        1 - civil.year
    } else {
        civil.year
    };
    push_padded(out, year, 4);
    out.push(b'-');
    push_padded(out, civil.month.into(), 2);
    out.push(b'-');
    push_padded(out, civil.day.into(), 2);
    before_christ
}

/// Appends a date as PostgreSQL prints it.
pub fn write_date(days: i32, out: &mut Vec<u8>) {
    match days {
        DATE_INFINITY => out.extend_from_slice(b"infinity"),
        DATE_NEGATIVE_INFINITY => out.extend_from_slice(b"-infinity"),
        _ => {
            if push_date(out, days.into()) {
                out.extend_from_slice(b" BC");
            }
        }
    }
}

fn write_moment(microseconds: i64, zone: &[u8], out: &mut Vec<u8>) {
    match microseconds {
        TIMESTAMP_INFINITY => return out.extend_from_slice(b"infinity"),
        TIMESTAMP_NEGATIVE_INFINITY => return out.extend_from_slice(b"-infinity"),
        _ => {}
    }
    let before_christ = push_date(out, microseconds.div_euclid(DAY_US));
    let time = microseconds.rem_euclid(DAY_US);
    out.push(b' ');
    push_padded(out, time / HOUR_US, 2);
    out.push(b':');
    push_padded(out, time % HOUR_US / MINUTE_US, 2);
    out.push(b':');
    push_padded(out, time % MINUTE_US / SECOND_US, 2);
    let fraction = time % SECOND_US;
    if fraction > 0 {
        out.push(b'.');
        push_padded(out, fraction, 6);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
    out.extend_from_slice(zone);
    if before_christ {
        out.extend_from_slice(b" BC");
    }
}

/// Appends a timestamp as PostgreSQL prints it.
pub fn write_timestamp(microseconds: i64, out: &mut Vec<u8>) {
    write_moment(microseconds, b"", out);
}

/// Appends a timestamp with time zone as PostgreSQL prints it in UTC.
pub fn write_timestamptz(microseconds: i64, out: &mut Vec<u8>) {
    write_moment(microseconds, b"+00", out);
}
