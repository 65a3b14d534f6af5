//! Writing of digits along a pattern.

use super::pattern::{Key, LocaleSign, Node, Pattern};
use super::{Digits, ITEM_BYTES};
use crate::error::{QueryError, Result};

/// Where the writing is.
struct Writer<'d> {
    pattern: Pattern,
    digits: &'d [u8],
    /// The next digit.
    at: usize,
    /// The last digit that `FM` leaves, which is the point where none does.
    last: Option<usize>,
    spaces: i32,
    negative: bool,
    sign_written: bool,
    /// Whether the last place had a digit.
    within: bool,
    /// The places so far, and all of them less one.
    place: i32,
    places: i32,
    out: String,
    /// Where the text ends before its end: at a digit that is missing.
    cut: Option<usize>,
}

pub(super) fn write(mut pattern: Pattern, digits: &Digits) -> Result<String> {
    if pattern.exponent {
        return Ok(digits.text.clone());
    }
    if pattern.zero_start > 0 {
        pattern.zero_start -= 1;
    }
    let mut spaces = digits.spaces;
    if pattern.roman {
        spaces = 0;
        pattern.pre = 0;
        pattern.post = 0;
        pattern.places_before_sign = 0;
        pattern.locale_sign = LocaleSign::None;
        pattern.decimal = false;
        pattern.zero = false;
        pattern.signed = false;
        pattern.bracket = false;
        pattern.minus = false;
        pattern.plus = false;
        pattern.shift = false;
    }
    // Roman numerals have neither sign.
    let (negative, positive) = (digits.negative, !digits.negative && !complete(&pattern));
    let sign_written = if pattern.plus || pattern.minus {
        pattern.minus
    } else {
        if !negative && pattern.fill {
            pattern.bracket = false;
        }
        if pattern.locale_sign == LocaleSign::Before && pattern.pre == pattern.places_before_sign {
            pattern.locale_sign = LocaleSign::After;
        }
        positive && pattern.fill && !pattern.signed
    };
    let bytes = digits.text.as_bytes();
    let mut last = None;
    if pattern.fill && pattern.decimal {
        last = last_relevant(bytes);
        if let Some(at) = last
            && pattern.zero_end > spaces
        {
            let zero = usize::try_from(pattern.zero_end - spaces).unwrap_or(0);
            last = Some(at.max(zero.min(bytes.len().saturating_sub(1))));
        }
    }
    let mut places = pattern.post + pattern.pre - 1;
    if !sign_written && spaces == 0 {
        places += 1;
    }
    let nodes = std::mem::take(&mut pattern.nodes);
    let mut writer = Writer {
        out: String::with_capacity((nodes.len() + 1).min(ITEM_BYTES << 7)),
        pattern,
        digits: bytes,
        at: 0,
        last,
        spaces,
        negative,
        sign_written,
        within: false,
        place: 0,
        places,
        cut: None,
    };
    for node in nodes {
        match node {
            Node::Character(character) => writer.out.push(character),
            Node::Key(key) => writer.key(key)?,
        }
    }
    if let Some(end) = writer.cut {
        writer.out.truncate(end);
    }
    Ok(writer.out)
}

/// Whether the digits are written as they are, without a sign of their own.
const fn complete(pattern: &Pattern) -> bool {
    pattern.roman
}

/// The last digit behind the point that is not zero, or the point; `None` without a point.
fn last_relevant(digits: &[u8]) -> Option<usize> {
    let point = digits.iter().position(|byte| *byte == b'.')?;
    let rest = digits[point + 1..].iter().rposition(|byte| *byte != b'0');
    Some(rest.map_or(point, |at| point + 1 + at))
}

impl Writer<'_> {
    fn digit(&self, at: usize) -> u8 {
        self.digits.get(at).copied().unwrap_or(0)
    }

    fn key(&mut self, key: Key) -> Result<()> {
        match key {
            Key::Nine | Key::Zero | Key::Point | Key::LocalePoint => self.number(key),
            // The locale is always C.
            Key::Comma | Key::Group => {
                if self.within {
                    self.out.push(',');
                } else if !self.pattern.fill {
                    self.out.push(' ');
                }
            }
            Key::Currency => self.out.push(' '),
            Key::Roman | Key::SmallRoman => {
                let mut text = String::from_utf8_lossy(self.digits).into_owned();
                if key == Key::SmallRoman {
                    text.make_ascii_lowercase();
                }
                if !self.pattern.fill {
                    text = format!("{text:>15}");
                }
                self.out.push_str(&text);
            }
            Key::Ordinal | Key::SmallOrdinal => {
                if self.pattern.roman
                    || self.digit(0) == b'#'
                    || self.negative
                    || self.pattern.decimal
                {
                    return Ok(());
                }
                let ending = ordinal(self.digits)?;
                if key == Key::Ordinal {
                    self.out.push_str(ending);
                } else {
                    self.out.push_str(&ending.to_ascii_lowercase());
                }
            }
            Key::Minus => self.sign_or_space(self.negative.then_some('-')),
            Key::Plus => {
                self.sign_or_space((!self.negative && !complete(&self.pattern)).then_some('+'));
            }
            Key::Sign if complete(&self.pattern) => {
                self.cut.get_or_insert(self.out.len());
            }
            Key::Sign => self.out.push(if self.negative { '-' } else { '+' }),
            Key::Silent => {}
        }
        Ok(())
    }

    fn sign_or_space(&mut self, sign: Option<char>) {
        match sign {
            Some(sign) => self.out.push(sign),
            None if self.pattern.fill => {}
            None => self.out.push(' '),
        }
    }

    /// Whether the first digit is a zero that is not written: `.1`.
    fn is_blank_zero(&self) -> bool {
        !self.pattern.zero && self.at == 0 && self.digit(0) == b'0' && self.pattern.post != 0
    }

    fn last_is_point(&self) -> bool {
        self.last.is_some_and(|last| self.digit(last) == b'.')
    }

    /// The sign, before the first place that has a digit.
    fn write_sign(&mut self) {
        if self.pattern.signed {
            if self.pattern.locale_sign == LocaleSign::Before {
                self.out.push(if self.negative { '-' } else { '+' });
                self.sign_written = true;
            }
            return;
        }
        if self.pattern.bracket {
            self.out.push(if self.negative { '<' } else { ' ' });
        } else if self.negative {
            self.out.push('-');
        } else if !self.pattern.fill {
            self.out.push(' ');
        }
        self.sign_written = true;
    }

    /// A place of a digit or of the point.
    fn number(&mut self, key: Key) {
        if self.pattern.roman {
            return;
        }
        self.within = false;
        let zeros = self.pattern.zero && self.pattern.zero_start <= self.place;
        if !self.sign_written
            && (self.place >= self.spaces
                || (self.pattern.zero && self.pattern.zero_start == self.place))
            && (!self.is_blank_zero() || self.last_is_point())
        {
            self.write_sign();
        }
        if self.place < self.spaces {
            if zeros {
                self.out.push('0');
                self.within = true;
            } else if !self.pattern.fill {
                self.out.push(' ');
            }
        } else {
            self.write_digit(key);
        }
        let mut end = self.places + i32::from(self.spaces != 0) + i32::from(self.pattern.decimal);
        if self.last == Some(self.at) {
            end = self.place;
        }
        if self.place + 1 == end {
            if self.sign_written && self.pattern.bracket {
                self.out.push(if self.negative { '>' } else { ' ' });
            } else if self.pattern.signed && self.pattern.locale_sign == LocaleSign::After {
                self.out.push(if self.negative { '-' } else { '+' });
            }
        }
        self.place += 1;
    }

    fn write_digit(&mut self, key: Key) {
        let digit = self.digit(self.at);
        if digit == b'.' {
            if !self.last_is_point() || self.pattern.fill {
                self.out.push('.');
            }
        } else if self.last.is_some_and(|last| self.at > last) && key != Key::Zero {
            // `FM` leaves it out.
        } else if self.is_blank_zero() {
            if !self.pattern.fill {
                self.out.push(' ');
            } else if self.last_is_point() {
                self.out.push('0');
            }
        } else if digit != 0 {
            self.out.push(char::from(digit));
            self.within = true;
        } else {
            // PostgreSQL writes the end of its text here.
            self.cut.get_or_insert(self.out.len());
            self.within = true;
        }
        if digit != 0 {
            self.at += 1;
        }
    }
}

/// The ending of an ordinal number.
fn ordinal(digits: &[u8]) -> Result<&'static str> {
    let last = digits.last().copied().unwrap_or(0);
    if !last.is_ascii_digit() {
        return Err(QueryError::new(
            "22P02",
            format!("\"{}\" is not a number", String::from_utf8_lossy(digits)),
        ));
    }
    let teen = digits.len() > 1 && digits[digits.len() - 2] == b'1';
    Ok(match last {
        _ if teen => "TH",
        b'1' => "ST",
        b'2' => "ND",
        b'3' => "RD",
        _ => "TH",
    })
}
