//! Reading of a number along a pattern.

use super::pattern::{Key, LocaleSign, Node, Pattern};
use crate::error::{QueryError, Result};

/// Where the reading is.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// The sign: a space until one was read.
    sign: u8,
    digits: String,
    before: i32,
    after: i32,
    point: bool,
}

/// The number's text and how many digits stand after its point.
pub(super) fn read(pattern: &mut Pattern, text: &str) -> Result<(String, i32)> {
    if pattern.exponent {
        return Err(QueryError::unsupported(
            "\"EEEE\" not supported for input",
            "Use a pattern of digits, or a cast.",
        ));
    }
    if pattern.roman {
        return Err(QueryError::unsupported(
            "\"RN\" not supported for input",
            "Use a pattern of digits.",
        ));
    }
    let mut reader = Reader {
        text,
        at: 0,
        sign: b' ',
        digits: String::new(),
        before: 0,
        after: 0,
        point: false,
    };
    for node in std::mem::take(&mut pattern.nodes) {
        if reader.at >= text.len() {
            break;
        }
        match node {
            Node::Character(_) => reader.skip_character(),
            Node::Key(key) => reader.key(pattern, key),
        }
    }
    let digits = reader.digits.strip_suffix('.').unwrap_or(&reader.digits);
    Ok((format!("{}{digits}", char::from(reader.sign)), reader.after))
}

impl Reader<'_> {
    fn next(&self) -> u8 {
        self.byte(self.at)
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn ended(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Goes over one character. Behind one of several bytes reading may stand within it, as it
    /// does in PostgreSQL after keywords, which go by bytes.
    fn skip_character(&mut self) {
        self.at += 1;
        while self.at < self.text.len() && !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
    }

    /// Goes over characters that are no part of a number.
    fn skip_others(&mut self, count: usize) {
        for _ in 0..count {
            if self.ended() || matches!(self.next(), b'0'..=b'9' | b'.' | b',' | b'+' | b'-') {
                return;
            }
            self.skip_character();
        }
    }

    fn key(&mut self, pattern: &Pattern, key: Key) {
        match key {
            Key::Nine | Key::Zero | Key::Point | Key::LocalePoint => {
                self.number(pattern, key);
                self.at += 1;
            }
            Key::Comma | Key::Group => {
                // Nothing says here that a number has begun, so that `FM` passes all of them.
                if !pattern.fill && self.next() == b',' {
                    self.at += 1;
                }
            }
            Key::Currency => self.skip_others(1),
            Key::Ordinal | Key::SmallOrdinal => {
                if !pattern.decimal {
                    self.skip_others(2);
                }
            }
            Key::Minus | Key::Plus | Key::Sign => {
                let next = self.next();
                let taken = match key {
                    Key::Minus => next == b'-',
                    Key::Plus => next == b'+',
                    _ => matches!(next, b'-' | b'+'),
                };
                if taken {
                    self.sign = next;
                    self.at += 1;
                } else {
                    self.skip_others(1);
                }
            }
            Key::Roman | Key::SmallRoman | Key::Silent => {}
        }
    }

    /// Reads a sign, a digit or the point; the caller goes on by one byte.
    fn number(&mut self, pattern: &Pattern, key: Key) {
        if self.next() == b' ' {
            self.at += 1;
        }
        if self.ended() {
            return;
        }
        let none = self.before + self.after == 0;
        if self.sign == b' ' && matches!(key, Key::Zero | Key::Nine) && none {
            let before = pattern.signed && pattern.locale_sign == LocaleSign::Before;
            match self.next() {
                b'-' => self.take_sign(b'-'),
                b'<' if pattern.bracket && !before => self.take_sign(b'-'),
                b'+' => self.take_sign(b'+'),
                _ => {}
            }
        }
        if self.ended() {
            return;
        }
        let mut read = false;
        let next = self.next();
        if next.is_ascii_digit() {
            if self.point && self.after == pattern.post {
                return;
            }
            self.digits.push(char::from(next));
            if self.point {
                self.after += 1;
            } else {
                self.before += 1;
            }
            read = true;
        } else if pattern.decimal && !self.point && next == b'.' {
            self.digits.push('.');
            self.point = true;
            read = true;
        }
        if self.sign == b' ' && self.before + self.after > 0 {
            self.sign_behind(pattern, read);
        }
    }

    fn take_sign(&mut self, sign: u8) {
        self.sign = sign;
        self.at += 1;
    }

    /// A sign behind the last digit.
    fn sign_behind(&mut self, pattern: &Pattern, read: bool) {
        if pattern.signed && read {
            let behind = self.byte(self.at + 1);
            if self.at + 1 < self.text.len() && matches!(behind, b'-' | b'+') {
                self.sign = behind;
                self.at += 1;
            }
        } else if !read
            && !pattern.signed
            && (pattern.plus || pattern.minus)
            && matches!(self.next(), b'-' | b'+')
        {
            self.sign = self.next();
        }
    }
}
