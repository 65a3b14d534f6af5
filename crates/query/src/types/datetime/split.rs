//! Splits the text of a moment or a span into fields, and reads the numbers in
//! them. Fields are ASCII, in lower case.

use super::{is_space, words};
use crate::error::QueryError;

/// The most fields of a text.
const FIELDS_MAX: usize = 25;
/// The most bytes of a date's or a time's fields, each with an end.
pub const DATE_ROOM: usize = 129;
/// As [`DATE_ROOM`], of a timestamp.
pub const TIMESTAMP_ROOM: usize = 153;
/// As [`DATE_ROOM`], of an interval.
pub const INTERVAL_ROOM: usize = 256;

/// Why a text is refused.
#[derive(Debug)]
pub enum Bad {
    /// It has no known form.
    Format,
    /// A field is beyond its range.
    Field,
    /// As `Field`, of a month or a day: perhaps they were meant the other way round.
    MonthDay,
    /// An interval's field is beyond its range.
    Interval,
    /// A zone is too far from Greenwich.
    Displacement,
    /// Something else.
    Query(QueryError),
}

impl From<QueryError> for Bad {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

impl Bad {
    /// The error about `text`, which is no value of the type.
    #[cold]
    #[must_use]
    pub fn error(self, text: &str, type_name: &str) -> QueryError {
        let beyond = || format!("date/time field value out of range: \"{text}\"");
        match self {
            Self::Format => QueryError::new(
                "22007",
                format!("invalid input syntax for type {type_name}: \"{text}\""),
            ),
            Self::Field => QueryError::new("22008", beyond()),
            Self::MonthDay => QueryError::new("22008", beyond())
                .with_hint("Perhaps you need a different \"datestyle\" setting."),
            Self::Interval => QueryError::new(
                "22015",
                format!("interval field value out of range: \"{text}\""),
            ),
            Self::Displacement => QueryError::new(
                "22009",
                format!("time zone displacement out of range: \"{text}\""),
            ),
            Self::Query(error) => error,
        }
    }
}

/// What a field looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Digits and perhaps a point.
    Number,
    /// Letters.
    Text,
    /// Digits with two delimiters, digits and text; names of zones with punctuation.
    Date,
    /// Digits and colons.
    Time,
    /// A sign and digits.
    Zone,
    /// A sign and letters.
    Special,
}

/// The fields of a text.
#[derive(Debug)]
pub struct Split {
    bytes: [u8; INTERVAL_ROOM],
    used: usize,
    /// How many bytes may come, ends of fields included.
    room: usize,
    /// How many came, ends of fields included.
    taken: usize,
    fields: [(Kind, u16, u16); FIELDS_MAX],
    count: usize,
}

impl Split {
    /// Splits a text.
    ///
    /// # Errors
    /// Where a character has no place in a moment or a span, or there is too much.
    pub fn new(text: &str, room: usize) -> Result<Self, Bad> {
        let mut split = Self {
            bytes: [0; INTERVAL_ROOM],
            used: 0,
            room,
            taken: 0,
            fields: [(Kind::Number, 0, 0); FIELDS_MAX],
            count: 0,
        };
        split.read(text.as_bytes())?;
        Ok(split)
    }

    /// How many fields there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What a field looks like; `None` behind the last one.
    #[must_use]
    pub fn kind(&self, at: usize) -> Option<Kind> {
        self.fields
            .get(..self.count)
            .and_then(|fields| fields.get(at))
            .map(|field| field.0)
    }

    /// A field.
    #[must_use]
    pub fn field(&self, at: usize) -> &[u8] {
        self.fields
            .get(at)
            .and_then(|field| self.bytes.get(usize::from(field.1)..usize::from(field.2)))
            .unwrap_or_default()
    }

    fn push(&mut self, byte: u8) -> Result<(), Bad> {
        if self.taken + 1 >= self.room {
            return Err(Bad::Format);
        }
        let place = self.bytes.get_mut(self.used).ok_or(Bad::Format)?;
        *place = byte.to_ascii_lowercase();
        self.used += 1;
        self.taken += 1;
        Ok(())
    }

    /// Takes bytes from `at` on while `wanted` says so.
    fn take(
        &mut self,
        text: &[u8],
        at: &mut usize,
        wanted: impl Fn(u8) -> bool,
    ) -> Result<(), Bad> {
        while let Some(byte) = text.get(*at).copied().filter(|byte| wanted(*byte)) {
            self.push(byte)?;
            *at += 1;
        }
        Ok(())
    }

    fn read(&mut self, text: &[u8]) -> Result<(), Bad> {
        let mut at = 0;
        while let Some(byte) = text.get(at).copied() {
            if is_space(byte) {
                at += 1;
                continue;
            }
            if self.count >= FIELDS_MAX {
                return Err(Bad::Format);
            }
            let start = self.used;
            let kind = match byte {
                b'0'..=b'9' => self.digits(text, &mut at)?,
                b'.' => {
                    self.push(byte)?;
                    at += 1;
                    self.take(text, &mut at, |byte| byte.is_ascii_digit())?;
                    Kind::Number
                }
                byte if byte.is_ascii_alphabetic() => self.letters(text, &mut at, start)?,
                b'+' | b'-' => self.signed(text, &mut at)?,
                byte if byte.is_ascii_punctuation() => {
                    at += 1;
                    continue;
                }
                _ => return Err(Bad::Format),
            };
            if let Some(field) = self.fields.get_mut(self.count) {
                *field = (kind, start as u16, self.used as u16);
            }
            self.count += 1;
            self.taken += 1;
        }
        Ok(())
    }

    /// A field that begins with a digit.
    fn digits(&mut self, text: &[u8], at: &mut usize) -> Result<Kind, Bad> {
        let digit = |byte: u8| byte.is_ascii_digit();
        self.take(text, at, digit)?;
        match text.get(*at).copied() {
            Some(b':') => {
                self.take(text, at, |byte| digit(byte) || matches!(byte, b':' | b'.'))?;
                Ok(Kind::Time)
            }
            Some(delimiter @ (b'-' | b'/' | b'.')) => {
                self.push(delimiter)?;
                *at += 1;
                if !text.get(*at).copied().is_some_and(digit) {
                    self.take(text, at, |byte| {
                        byte.is_ascii_alphanumeric() || byte == delimiter
                    })?;
                    return Ok(Kind::Date);
                }
                self.take(text, at, digit)?;
                if text.get(*at) == Some(&delimiter) {
                    self.take(text, at, |byte| digit(byte) || byte == delimiter)?;
                    return Ok(Kind::Date);
                }
                Ok(if delimiter == b'.' {
                    Kind::Number
                } else {
                    Kind::Date
                })
            }
            _ => Ok(Kind::Number),
        }
    }

    /// A field that begins with a letter: a word, a date that begins with its
    /// month or the name of a zone.
    fn letters(&mut self, text: &[u8], at: &mut usize, start: usize) -> Result<Kind, Bad> {
        self.take(text, at, |byte| byte.is_ascii_alphabetic())?;
        let is_date = match text.get(*at) {
            Some(b'-' | b'/' | b'.') => true,
            Some(byte) if *byte == b'+' || byte.is_ascii_digit() => {
                let word = self.bytes.get(start..self.used).unwrap_or_default();
                words::of_moment(word).is_none()
            }
            _ => false,
        };
        if !is_date {
            return Ok(Kind::Text);
        }
        self.take(text, at, |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'/' | b'_' | b'.' | b':')
        })?;
        Ok(Kind::Date)
    }

    /// A field that begins with a sign.
    fn signed(&mut self, text: &[u8], at: &mut usize) -> Result<Kind, Bad> {
        if let Some(sign) = text.get(*at) {
            self.push(*sign)?;
            *at += 1;
        }
        while text.get(*at).copied().is_some_and(is_space) {
            *at += 1;
        }
        match text.get(*at) {
            Some(byte) if byte.is_ascii_digit() => {
                self.take(text, at, |byte| {
                    byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-')
                })?;
                Ok(Kind::Zone)
            }
            Some(byte) if byte.is_ascii_alphabetic() => {
                self.take(text, at, |byte| byte.is_ascii_alphabetic())?;
                Ok(Kind::Special)
            }
            _ => Err(Bad::Format),
        }
    }
}

/// A whole number at the start of bytes, as C's `strtol`: the number, `None`
/// if it doesn't fit, and what follows. Without digits it is 0 and takes nothing.
#[must_use]
pub fn long(bytes: &[u8]) -> (Option<i64>, &[u8]) {
    let spaces = bytes.iter().take_while(|byte| is_space(**byte)).count();
    let mut rest = bytes.get(spaces..).unwrap_or_default();
    let mut negative = false;
    if let Some((sign @ (b'+' | b'-'), after)) = rest.split_first() {
        negative = *sign == b'-';
        rest = after;
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return (Some(0), bytes);
    }
    let (digits, rest) = rest.split_at(digits);
    let mut number = Some(0_i64);
    for digit in digits {
        let digit = i64::from(digit - b'0');
        number = number
            .and_then(|number| number.checked_mul(10))
            .and_then(|number| {
                if negative {
                    number.checked_sub(digit)
                } else {
                    number.checked_add(digit)
                }
            });
    }
    (number, rest)
}

/// As [`long`], of four bytes.
#[must_use]
pub fn int(bytes: &[u8]) -> (Option<i32>, &[u8]) {
    let (number, rest) = long(bytes);
    (number.and_then(|number| i32::try_from(number).ok()), rest)
}

/// A whole number at the start of bytes, as C's `atoi`.
#[must_use]
pub fn atoi(bytes: &[u8]) -> i32 {
    let (number, _) = long(bytes);
    let beyond = if bytes.first() == Some(&b'-') {
        i64::MIN
    } else {
        i64::MAX
    };
    number.unwrap_or(beyond) as i32
}

/// How many bytes at the start are a decimal number, as C's `strtod` reads it.
fn double_length(bytes: &[u8]) -> usize {
    let digits = |from: usize| {
        bytes
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let start = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(start);
    let mut end = start + whole;
    let mut any = whole > 0;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        if any || fraction > 0 {
            any = true;
            end += 1 + fraction;
        }
    }
    if !any {
        return 0;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    end
}

/// A number at the start of bytes, as C's `strtod`, and what follows; `None`
/// where there is none or it doesn't fit.
#[must_use]
pub fn double(bytes: &[u8]) -> Option<(f64, &[u8])> {
    let length = double_length(bytes);
    let (number, rest) = bytes.split_at_checked(length)?;
    let number: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    let is_zero = || {
        bytes
            .iter()
            .take(length)
            .take_while(|byte| !matches!(byte, b'e' | b'E'))
            .all(|byte| !matches!(byte, b'1'..=b'9'))
    };
    if number.is_infinite() || (number.abs() < f64::MIN_POSITIVE && !is_zero()) {
        return None;
    }
    Some((number, rest))
}

/// The fraction that is all of `bytes`, which begin with the point.
///
/// # Errors
/// Where something else follows.
pub fn fraction(bytes: &[u8]) -> Result<f64, Bad> {
    if bytes.len() <= 1 {
        return Ok(0.0);
    }
    match double(bytes) {
        Some((number, [])) => Ok(number),
        _ => Err(Bad::Format),
    }
}

/// As [`fraction`], of a second in microseconds.
///
/// # Errors
/// As [`fraction`].
pub fn fraction_micros(bytes: &[u8]) -> Result<i32, Bad> {
    Ok((fraction(bytes)? * 1_000_000.0).round_ties_even() as i32)
}
