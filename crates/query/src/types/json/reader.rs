//! Reads JSON token by token, without recursion.

use std::borrow::Cow;

use super::quote::{is_word, number_end};
use crate::error::{QueryError, Result};

/// What a reader finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// `{`
    ObjectStart,
    /// `}`
    ObjectEnd,
    /// `[`
    ArrayStart,
    /// `]`
    ArrayEnd,
    /// The key of an object's field and its colon.
    Key(Cow<'a, str>),
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as it is written.
    Number(&'a str),
    /// A string; empty where the reader does not resolve escapes.
    String(Cow<'a, str>),
}

impl Event<'_> {
    /// Whether a value begins here, be it one token or more.
    #[must_use]
    pub const fn begins_value(&self) -> bool {
        !matches!(self, Self::ObjectEnd | Self::ArrayEnd | Self::Key(_))
    }

    /// Whether a value ends here.
    #[must_use]
    pub const fn ends_value(&self) -> bool {
        !matches!(self, Self::ObjectStart | Self::ArrayStart | Self::Key(_))
    }
}

/// An event and its bytes in the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token<'a> {
    /// What was found.
    pub event: Event<'a>,
    /// Its first byte.
    pub start: usize,
    /// Behind its last byte.
    pub end: usize,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Value,
    ArrayFirst,
    ArrayNext,
    ObjectFirst,
    ObjectKey,
    ObjectNext,
    End,
}

/// A word of JSON's text.
enum Word<'a> {
    Mark(u8),
    String(Cow<'a, str>),
    Number,
    True,
    False,
    Null,
    End,
}

/// A reader of a text.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    unescape: bool,
    depth_max: usize,
    /// The containers that are open: whether each is an object.
    open: Vec<bool>,
    state: State,
}

impl<'a> Reader<'a> {
    /// A reader of all of `text`, which resolves escapes in strings if asked to.
    #[must_use]
    pub const fn new(text: &'a str, unescape: bool, depth_max: usize) -> Self {
        Self {
            text,
            at: 0,
            unescape,
            depth_max,
            open: Vec::new(),
            state: State::Value,
        }
    }

    /// How many containers are open.
    #[must_use]
    pub const fn level(&self) -> usize {
        self.open.len()
    }

    /// The next token; `None` at the end.
    ///
    /// # Errors
    /// 22P02 for what is no JSON, 22P05 for `\u0000`, 54001 for what is nested too deep.
    #[allow(
        clippy::should_implement_trait,
        reason = "its items would hide the errors"
    )]
    pub fn next(&mut self) -> Result<Option<Token<'a>>> {
        loop {
            let (word, start) = self.word()?;
            let end = self.at;
            let event = match (self.state, word) {
                (State::End, Word::End) => return Ok(None),
                (_, Word::End) => {
                    return Err(syntax("The input string ended unexpectedly.".to_owned()));
                }
                (State::Value | State::ArrayFirst, Word::Mark(mark @ (b'{' | b'['))) => {
                    self.open(mark == b'{')?
                }
                (State::ArrayFirst | State::ArrayNext, Word::Mark(b']')) => {
                    self.close();
                    Event::ArrayEnd
                }
                (State::ObjectFirst | State::ObjectNext, Word::Mark(b'}')) => {
                    self.close();
                    Event::ObjectEnd
                }
                (State::ArrayNext, Word::Mark(b',')) => {
                    self.state = State::Value;
                    continue;
                }
                (State::ObjectNext, Word::Mark(b',')) => {
                    self.state = State::ObjectKey;
                    continue;
                }
                (State::ObjectFirst | State::ObjectKey, Word::String(key)) => {
                    let (word, colon) = self.word()?;
                    match word {
                        Word::Mark(b':') => {}
                        Word::End => {
                            return Err(syntax("The input string ended unexpectedly.".to_owned()));
                        }
                        _ => return Err(self.expected("\":\"", colon)),
                    }
                    self.state = State::Value;
                    Event::Key(key)
                }
                (State::Value | State::ArrayFirst, word) => {
                    let event = match word {
                        Word::String(text) => Event::String(text),
                        Word::Number => Event::Number(&self.text[start..end]),
                        Word::True => Event::Bool(true),
                        Word::False => Event::Bool(false),
                        Word::Null => Event::Null,
                        _ => return Err(self.expected("JSON value", start)),
                    };
                    self.ended();
                    event
                }
                (State::ArrayNext, _) => return Err(self.expected("\",\" or \"]\"", start)),
                (State::ObjectFirst, _) => return Err(self.expected("string or \"}\"", start)),
                (State::ObjectKey, _) => return Err(self.expected("string", start)),
                (State::ObjectNext, _) => return Err(self.expected("\",\" or \"}\"", start)),
                (State::End, _) => return Err(self.expected("end of input", start)),
            };
            return Ok(Some(Token { event, start, end }));
        }
    }

    fn open(&mut self, object: bool) -> Result<Event<'a>> {
        if self.open.len() >= self.depth_max {
            return Err(too_deep());
        }
        self.open.push(object);
        Ok(if object {
            self.state = State::ObjectFirst;
            Event::ObjectStart
        } else {
            self.state = State::ArrayFirst;
            Event::ArrayStart
        })
    }

    fn close(&mut self) {
        self.open.pop();
        self.ended();
    }

    /// A value has ended: what may follow depends on what it is in.
    fn ended(&mut self) {
        self.state = match self.open.last() {
            None => State::End,
            Some(true) => State::ObjectNext,
            Some(false) => State::ArrayNext,
        };
    }

    #[cold]
    fn expected(&self, what: &str, start: usize) -> QueryError {
        syntax(format!(
            "Expected {what}, but found \"{}\".",
            self.shown(start, self.at)
        ))
    }

    fn shown(&self, start: usize, end: usize) -> Cow<'a, str> {
        String::from_utf8_lossy(self.text.as_bytes().get(start..end).unwrap_or_default())
    }

    #[cold]
    fn invalid(&self, start: usize, end: usize) -> QueryError {
        syntax(format!("Token \"{}\" is invalid.", self.shown(start, end)))
    }

    /// The next word and where it begins; `at` is left behind it.
    fn word(&mut self) -> Result<(Word<'a>, usize)> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        let start = self.at;
        let Some(&first) = bytes.get(start) else {
            return Ok((Word::End, start));
        };
        let word = match first {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => {
                self.at += 1;
                Word::Mark(first)
            }
            b'"' => Word::String(self.string(start)?),
            b'-' | b'0'..=b'9' => {
                let (end, good) = number_end(bytes, start + usize::from(first == b'-'));
                if !good {
                    return Err(self.invalid(start, end));
                }
                self.at = end;
                Word::Number
            }
            _ => {
                let mut end = start;
                while bytes.get(end).copied().is_some_and(is_word) {
                    end += 1;
                }
                self.at = end;
                match &bytes[start..end] {
                    b"true" => Word::True,
                    b"false" => Word::False,
                    b"null" => Word::Null,
                    b"" => return Err(self.invalid(start, start + 1)),
                    _ => return Err(self.invalid(start, end)),
                }
            }
        };
        Ok((word, start))
    }

    /// The string whose quote is at `start`.
    fn string(&mut self, start: usize) -> Result<Cow<'a, str>> {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        let mut from = at;
        let mut resolved = String::new();
        loop {
            let Some(&byte) = bytes.get(at) else {
                return Err(self.invalid(start, at));
            };
            match byte {
                b'"' => break,
                0..=0x1f => {
                    return Err(syntax(format!(
                        "Character with value 0x{byte:02x} must be escaped."
                    )));
                }
                b'\\' => {
                    if self.unescape {
                        resolved.push_str(&self.text[from..at]);
                    }
                    at = self.escape(start, at + 1, &mut resolved)?;
                    from = at;
                }
                _ => at += 1,
            }
        }
        self.at = at + 1;
        if !self.unescape {
            return Ok(Cow::Borrowed(""));
        }
        let last = &self.text[from..at];
        if from == start + 1 {
            return Ok(Cow::Borrowed(last));
        }
        resolved.push_str(last);
        Ok(Cow::Owned(resolved))
    }

    /// The escape whose backslash is before `at`, and the second half of a
    /// surrogate pair with it; gives the place behind.
    fn escape(&self, start: usize, at: usize, out: &mut String) -> Result<usize> {
        let bytes = self.text.as_bytes();
        let Some(&byte) = bytes.get(at) else {
            return Err(self.invalid(start, at));
        };
        let resolved = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let code = self.hexadecimal(start, at + 1)?;
                if !self.unescape {
                    return Ok(at + 5);
                }
                return self.unicode(start, code, at + 5, out);
            }
            _ => {
                let shown = self.text[at..].chars().next().unwrap_or_default();
                return Err(syntax(format!("Escape sequence \"\\{shown}\" is invalid.")));
            }
        };
        if self.unescape {
            out.push(resolved);
        }
        Ok(at + 1)
    }

    fn unicode(&self, start: usize, code: u32, at: usize, out: &mut String) -> Result<usize> {
        let bytes = self.text.as_bytes();
        let low = || syntax("Unicode low surrogate must follow a high surrogate.".to_owned());
        let (code, at) = match code {
            0xd800..=0xdbff => {
                if bytes.get(at) != Some(&b'\\') || bytes.get(at + 1) != Some(&b'u') {
                    return Err(if bytes.get(at).is_none() {
                        self.invalid(start, at)
                    } else {
                        low()
                    });
                }
                match self.hexadecimal(start, at + 2)? {
                    second @ 0xdc00..=0xdfff => {
                        (0x1_0000 + ((code & 0x3ff) << 10) + (second & 0x3ff), at + 6)
                    }
                    0xd800..=0xdbff => {
                        return Err(syntax(
                            "Unicode high surrogate must not follow a high surrogate.".to_owned(),
                        ));
                    }
                    _ => return Err(low()),
                }
            }
            0xdc00..=0xdfff => return Err(low()),
            0 => {
                return Err(
                    QueryError::new("22P05", "unsupported Unicode escape sequence")
                        .with_detail("\\u0000 cannot be converted to text."),
                );
            }
            code => (code, at),
        };
        out.push(char::from_u32(code).ok_or_else(low)?);
        Ok(at)
    }

    /// The four hexadecimal digits at `at`.
    fn hexadecimal(&self, start: usize, at: usize) -> Result<u32> {
        let mut code = 0;
        for place in at..at + 4 {
            let Some(&byte) = self.text.as_bytes().get(place) else {
                return Err(self.invalid(start, place));
            };
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(syntax(
                    "\"\\u\" must be followed by four hexadecimal digits.".to_owned(),
                ));
            };
            code = code * 16 + digit;
        }
        Ok(code)
    }
}

#[cold]
fn syntax(detail: String) -> QueryError {
    QueryError::new("22P02", "invalid input syntax for type json").with_detail(detail)
}

/// What is nested deeper than a stack allows.
#[cold]
pub(crate) fn too_deep() -> QueryError {
    QueryError::new("54001", "stack depth limit exceeded")
}
