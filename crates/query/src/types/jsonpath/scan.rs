//! The words of paths. PostgreSQL's scanner takes the longest word at each
//! place, and so does this one.

use std::sync::Arc;

use crate::error::{QueryError, Result};

/// The words with a meaning, which are keys elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keyword {
    Abs,
    Ceiling,
    Datetime,
    Double,
    Exists,
    False,
    Flag,
    Floor,
    Is,
    KeyValue,
    Last,
    Lax,
    LikeRegex,
    Null,
    Size,
    Starts,
    Strict,
    To,
    True,
    Type,
    Unknown,
    With,
}

/// Keywords and whether they must be written in small letters.
const KEYWORDS: &[(&str, bool, Keyword)] = &[
    ("abs", false, Keyword::Abs),
    ("ceiling", false, Keyword::Ceiling),
    ("datetime", false, Keyword::Datetime),
    ("double", false, Keyword::Double),
    ("exists", false, Keyword::Exists),
    ("false", true, Keyword::False),
    ("flag", false, Keyword::Flag),
    ("floor", false, Keyword::Floor),
    ("is", false, Keyword::Is),
    ("keyvalue", false, Keyword::KeyValue),
    ("last", false, Keyword::Last),
    ("lax", false, Keyword::Lax),
    ("like_regex", false, Keyword::LikeRegex),
    ("null", true, Keyword::Null),
    ("size", false, Keyword::Size),
    ("starts", false, Keyword::Starts),
    ("strict", false, Keyword::Strict),
    ("to", false, Keyword::To),
    ("true", true, Keyword::True),
    ("type", false, Keyword::Type),
    ("unknown", false, Keyword::Unknown),
    ("with", false, Keyword::With),
];

/// A word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// One character, or two.
    Mark(&'static str),
    /// A mark that has no meaning.
    Other,
    /// A name, which is a keyword in its place.
    Name(Arc<str>, Option<Keyword>),
    String(Arc<str>),
    Variable(Arc<str>),
    /// A whole number.
    Integer(String),
    Number(String),
    End,
}

/// Marks of the language, the longest first.
const MARKS: &[&str] = &[
    "&&", "||", "**", "<=", "==", "<>", "!=", ">=", "!", "<", ">", "?", "%", "$", ".", "[", "]",
    "{", "}", "(", ")", "@", ",", "*", "-", "+", "/",
];

/// What stands between words.
const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

const fn is_special(byte: u8) -> bool {
    matches!(
        byte,
        b'?' | b'%'
            | b'$'
            | b'.'
            | b'['
            | b']'
            | b'{'
            | b'}'
            | b'('
            | b')'
            | b'|'
            | b'&'
            | b'!'
            | b'='
            | b'<'
            | b'>'
            | b'@'
            | b'#'
            | b','
            | b'*'
            | b':'
            | b'-'
            | b'+'
            | b'/'
    )
}

/// What names consist of.
const fn is_other(byte: u8) -> bool {
    !is_blank(byte) && !is_special(byte) && byte != b'\\' && byte != b'"'
}

/// A scanner of a path.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// What error messages show of the last word; empty at the end.
    near: &'a str,
}

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            near: "",
        }
    }

    /// An error at the last word.
    #[cold]
    pub(super) fn error(&self, message: &str) -> QueryError {
        QueryError::new(
            "42601",
            if self.near.is_empty() {
                format!("{message} at end of jsonpath input")
            } else {
                format!("{message} at or near \"{}\" of jsonpath input", self.near)
            },
        )
    }

    #[cold]
    fn fail(&mut self, message: &str, start: usize, end: usize) -> QueryError {
        self.near = self.slice(start, end);
        self.error(message)
    }

    /// The text between two places; up to the end of the character at the second.
    fn slice(&self, start: usize, end: usize) -> &'a str {
        let mut end = end.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        self.text.get(start..end).unwrap_or_default()
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn run(&self, mut at: usize, of: impl Fn(u8) -> bool) -> usize {
        while self.byte(at).is_some_and(&of) {
            at += 1;
        }
        at
    }

    /// The next word.
    pub(super) fn next(&mut self) -> Result<Word> {
        loop {
            let start = self.at;
            let Some(byte) = self.byte(start) else {
                self.near = "";
                return Ok(Word::End);
            };
            if is_blank(byte) {
                self.at = self.run(start, is_blank);
                continue;
            }
            if self.text.as_bytes()[start..].starts_with(b"/*") {
                self.comment()?;
                continue;
            }
            if let Some(number) = self.number()? {
                return Ok(number);
            }
            match byte {
                b'"' => {
                    let text = self.quoted(start + 1)?;
                    self.near = self.slice(self.at - 1, self.at);
                    return Ok(Word::String(text));
                }
                b'$' if self.byte(start + 1) == Some(b'"') => {
                    let text = self.quoted(start + 2)?;
                    self.near = self.slice(self.at - 1, self.at);
                    return Ok(Word::Variable(text));
                }
                b'$' if self.byte(start + 1).is_some_and(is_other) => {
                    self.at = self.run(start + 1, is_other);
                    self.near = self.slice(start, self.at);
                    return Ok(Word::Variable(self.text[start + 1..self.at].into()));
                }
                byte if is_special(byte) => {
                    let rest = &self.text[start..];
                    let mark = MARKS.iter().find(|mark| rest.starts_with(**mark));
                    self.at += mark.map_or(1, |mark| mark.len());
                    self.near = self.slice(start, self.at);
                    return Ok(mark.map_or(Word::Other, |mark| Word::Mark(mark)));
                }
                _ => {
                    if let Some(name) = self.name()? {
                        return Ok(name);
                    }
                }
            }
        }
    }

    fn comment(&mut self) -> Result<()> {
        match self.text[self.at + 2..].find("*/") {
            Some(length) => {
                self.at += length + 4;
                Ok(())
            }
            None => {
                self.near = "";
                Err(self.error("unexpected end of comment"))
            }
        }
    }

    /// A number, if one is the longest word here.
    fn number(&mut self) -> Result<Option<Word>> {
        let start = self.at;
        let digits = |at| self.run(at, |byte| byte.is_ascii_digit());
        let integer = match self.byte(start) {
            Some(b'0') => start + 1,
            Some(b'1'..=b'9') => digits(start),
            _ => start,
        };
        let mut decimal = start;
        if self.byte(integer) == Some(b'.') {
            let end = digits(integer + 1);
            if integer > start || end > integer + 1 {
                decimal = end;
            }
        }
        if integer == start && decimal == start {
            return Ok(None);
        }
        let mantissa = integer.max(decimal);
        let mut real = start;
        let mut broken = start;
        if matches!(self.byte(mantissa), Some(b'e' | b'E')) {
            let signed = matches!(self.byte(mantissa + 1), Some(b'+' | b'-'));
            let from = mantissa + 1 + usize::from(signed);
            let end = digits(from);
            if end > from {
                real = end;
            } else if signed {
                broken = from;
            }
        }
        let junk = |end: usize| {
            if end > start && self.byte(end).is_some_and(is_other) {
                end + 1
            } else {
                start
            }
        };
        let junk = junk(integer).max(junk(decimal)).max(junk(real));
        let name = self.run(start, is_other);
        let longest = real.max(mantissa).max(broken).max(junk).max(name);
        let text = || self.text[start..longest].to_owned();
        let word = if real == longest || decimal == longest {
            Word::Number(text())
        } else if integer == longest {
            Word::Integer(text())
        } else if broken == longest {
            return Err(self.fail("invalid numeric literal", start, longest));
        } else if junk == longest {
            return Err(self.fail("trailing junk after numeric literal", start, longest));
        } else {
            return Ok(None);
        };
        self.at = longest;
        self.near = self.slice(start, longest);
        Ok(Some(word))
    }

    /// A name; none where a comment follows it at once, which swallows it.
    fn name(&mut self) -> Result<Option<Word>> {
        let mut name = String::new();
        loop {
            let start = self.at;
            match self.byte(start) {
                Some(b'\\') => self.escape(&mut name)?,
                Some(byte) if is_other(byte) => {
                    self.at = self.run(start, is_other);
                    name.push_str(&self.text[start..self.at]);
                }
                Some(b'/') if self.byte(start + 1) == Some(b'*') => {
                    self.comment()?;
                    return Ok(None);
                }
                Some(byte) if is_blank(byte) => {
                    self.at = self.run(start, is_blank);
                    self.near = self.slice(start, self.at);
                    break;
                }
                _ => {
                    self.near = "";
                    break;
                }
            }
        }
        let keyword = KEYWORDS
            .iter()
            .find(|(word, small, _)| {
                if *small {
                    *word == name
                } else {
                    word.eq_ignore_ascii_case(&name)
                }
            })
            .map(|(_, _, keyword)| *keyword);
        Ok(Some(Word::Name(name.into(), keyword)))
    }

    /// The rest of a string in quotes that goes on at `start`.
    fn quoted(&mut self, start: usize) -> Result<Arc<str>> {
        let mut text = String::new();
        self.at = start;
        loop {
            let start = self.at;
            match self.byte(start) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text.into());
                }
                Some(b'\\') => self.escape(&mut text)?,
                Some(_) => {
                    self.at = self.run(start, |byte| byte != b'"' && byte != b'\\');
                    text.push_str(&self.text[start..self.at]);
                }
                None => {
                    self.near = "";
                    return Err(self.error("unexpected end of quoted string"));
                }
            }
        }
    }

    /// An escape, whose backslash is here.
    fn escape(&mut self, out: &mut String) -> Result<()> {
        let start = self.at;
        let Some(next) = self.text[start + 1..].chars().next() else {
            return Err(self.fail("unexpected end after backslash", start, start + 1));
        };
        self.at = start + 1 + next.len_utf8();
        out.push(match next {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'u' => return self.unicode(start, out),
            'x' => {
                let digits = self.run(self.at, |byte| byte.is_ascii_hexdigit());
                if digits < self.at + 2 {
                    return Err(self.fail("invalid hex character sequence", start, digits));
                }
                let code = u32::from_str_radix(&self.text[self.at..self.at + 2], 16);
                self.at += 2;
                return push_code(code.unwrap_or_default(), out);
            }
            '\n' => {
                return Err(self.fail("unexpected end after backslash", start, start + 1));
            }
            other => other,
        });
        Ok(())
    }

    /// Escapes `\uXXXX` and `\u{X}`, all that follow each other from `start` on.
    fn unicode(&mut self, start: usize, out: &mut String) -> Result<()> {
        let mut codes = Vec::new();
        let mut at = start;
        while self.text.as_bytes()[at..].starts_with(b"\\u") {
            let braced = self.byte(at + 2) == Some(b'{');
            let from = at + 2 + usize::from(braced);
            let most = from + if braced { 6 } else { 4 };
            let end = self.run(from, |byte| byte.is_ascii_hexdigit()).min(most);
            let complete = if braced {
                end > from && self.byte(end) == Some(b'}')
            } else {
                end == most
            };
            if !complete {
                return Err(self.fail("invalid unicode sequence", start, end));
            }
            codes.push(u32::from_str_radix(&self.text[from..end], 16).unwrap_or_default());
            at = end + usize::from(braced);
        }
        self.at = at;
        let mut high = None;
        for code in codes {
            match (high, code) {
                (None, 0xd800..=0xdbff) => high = Some(code),
                (Some(_), 0xd800..=0xdbff) => {
                    return Err(surrogate(
                        "Unicode high surrogate must not follow a high surrogate.",
                    ));
                }
                (Some(first), 0xdc00..=0xdfff) => {
                    push_code(0x1_0000 + ((first & 0x3ff) << 10) + (code & 0x3ff), out)?;
                    high = None;
                }
                (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(lonely()),
                (None, code) => push_code(code, out)?,
            }
        }
        if high.is_some() {
            return Err(lonely());
        }
        Ok(())
    }
}

fn push_code(code: u32, out: &mut String) -> Result<()> {
    if code == 0 {
        return Err(
            QueryError::new("22P05", "unsupported Unicode escape sequence")
                .with_detail("\\u0000 cannot be converted to text."),
        );
    }
    out.push(
        char::from_u32(code)
            .ok_or_else(|| QueryError::new("42601", "invalid Unicode code point"))?,
    );
    Ok(())
}

#[cold]
fn lonely() -> QueryError {
    surrogate("Unicode low surrogate must follow a high surrogate.")
}

#[cold]
fn surrogate(detail: &str) -> QueryError {
    QueryError::new("22P02", "invalid input syntax for type jsonpath").with_detail(detail)
}
