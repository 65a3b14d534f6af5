//! The patterns of numbers and what they say together.

use crate::error::{QueryError, Result};

/// A keyword of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Key {
    Comma,
    Point,
    Zero,
    Nine,
    /// `D`
    LocalePoint,
    /// `G`
    Group,
    /// `L`
    Currency,
    /// `MI`
    Minus,
    /// `PL`
    Plus,
    /// `SG`
    Sign,
    /// `RN`
    Roman,
    /// `rn`
    SmallRoman,
    /// `TH`
    Ordinal,
    /// `th`
    SmallOrdinal,
    /// What is read with the pattern and writes nothing by itself.
    Silent,
}

/// A part of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Node {
    Key(Key),
    /// A character that is written as it is.
    Character(char),
}

/// Where the sign of `S` stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LocaleSign {
    None,
    Before,
    After,
}

/// A pattern: its parts and what they say together.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) nodes: Vec<Node>,
    /// Places before the point.
    pub(super) pre: i32,
    /// Places after the point.
    pub(super) post: i32,
    /// Places after `V`.
    pub(super) multi: i32,
    /// The place of the first `0` from 1, and behind the last one.
    pub(super) zero_start: i32,
    pub(super) zero_end: i32,
    pub(super) locale_sign: LocaleSign,
    /// How many places stood before `S`.
    pub(super) places_before_sign: i32,
    pub(super) decimal: bool,
    pub(super) zero: bool,
    /// `FM`
    pub(super) fill: bool,
    /// `S`
    pub(super) signed: bool,
    /// `PR`
    pub(super) bracket: bool,
    /// `MI`
    pub(super) minus: bool,
    /// `PL`
    pub(super) plus: bool,
    /// `RN`
    pub(super) roman: bool,
    /// `V`
    pub(super) shift: bool,
    /// `EEEE`
    pub(super) exponent: bool,
    blank: bool,
}

/// The keywords; of those that begin alike the longer come first.
const KEYWORDS: &[(&str, Word)] = &[
    (",", Word::Comma),
    (".", Word::Point),
    ("0", Word::Zero),
    ("9", Word::Nine),
    ("B", Word::B),
    ("C", Word::C),
    ("D", Word::D),
    ("EEEE", Word::E),
    ("FM", Word::Fm),
    ("G", Word::G),
    ("L", Word::L),
    ("MI", Word::Mi),
    ("PL", Word::Pl),
    ("PR", Word::Pr),
    ("RN", Word::Rn),
    ("SG", Word::Sg),
    ("SP", Word::C),
    ("S", Word::S),
    ("TH", Word::Th),
    ("V", Word::V),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Comma,
    Point,
    Zero,
    Nine,
    B,
    C,
    D,
    E,
    Fm,
    G,
    L,
    Mi,
    Pl,
    Pr,
    Rn,
    Sg,
    S,
    Th,
    V,
}

/// The keyword at the beginning of a text, whether it is in small letters, and its length. Letters
/// of both kinds are no keyword.
fn keyword(text: &str) -> Option<(Word, bool, usize)> {
    let bytes = text.as_bytes();
    KEYWORDS.iter().find_map(|(name, word)| {
        let head = bytes.get(..name.len())?;
        let large = head == name.as_bytes();
        let small = head
            .iter()
            .zip(name.bytes())
            .all(|(byte, wanted)| *byte == wanted.to_ascii_lowercase());
        (large || small).then_some((*word, !large, name.len()))
    })
}

#[cold]
fn syntax(message: &str) -> QueryError {
    QueryError::new("42601", message)
}

impl Pattern {
    /// Reads a pattern.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut pattern = Self {
            nodes: Vec::with_capacity(text.len()),
            pre: 0,
            post: 0,
            multi: 0,
            zero_start: 0,
            zero_end: 0,
            locale_sign: LocaleSign::None,
            places_before_sign: 0,
            decimal: false,
            zero: false,
            fill: false,
            signed: false,
            bracket: false,
            minus: false,
            plus: false,
            roman: false,
            shift: false,
            exponent: false,
            blank: false,
        };
        let mut rest = text;
        while !rest.is_empty() {
            if let Some((word, small, length)) = keyword(rest) {
                let key = pattern.take(word, small)?;
                pattern.nodes.push(Node::Key(key));
                rest = &rest[length..];
                continue;
            }
            if let Some(quoted) = rest.strip_prefix('"') {
                rest = pattern.quoted(quoted);
                continue;
            }
            // A backslash only means something before a quote here.
            if rest.starts_with("\\\"") {
                rest = &rest[1..];
            }
            let mut characters = rest.chars();
            pattern.nodes.extend(characters.next().map(Node::Character));
            rest = characters.as_str();
        }
        Ok(pattern)
    }

    /// Takes characters up to the quote, and gives what follows it.
    fn quoted<'t>(&mut self, text: &'t str) -> &'t str {
        let mut characters = text.chars();
        while let Some(mut character) = characters.next() {
            if character == '"' {
                break;
            }
            if character == '\\'
                && let Some(escaped) = characters.next()
            {
                character = escaped;
            }
            self.nodes.push(Node::Character(character));
        }
        characters.as_str()
    }

    fn take(&mut self, word: Word, small: bool) -> Result<Key> {
        if self.exponent && word != Word::E {
            return Err(syntax("\"EEEE\" must be the last pattern used"));
        }
        Ok(match word {
            Word::Nine => {
                if self.bracket {
                    return Err(syntax("\"9\" must be ahead of \"PR\""));
                }
                if self.shift {
                    self.multi += 1;
                } else if self.decimal {
                    self.post += 1;
                } else {
                    self.pre += 1;
                }
                Key::Nine
            }
            Word::Zero => {
                if self.bracket {
                    return Err(syntax("\"0\" must be ahead of \"PR\""));
                }
                if !self.zero && !self.decimal {
                    self.zero = true;
                    self.zero_start = self.pre + 1;
                }
                if self.decimal {
                    self.post += 1;
                } else {
                    self.pre += 1;
                }
                self.zero_end = self.pre + self.post;
                Key::Zero
            }
            Word::B => {
                self.blank |= self.pre == 0 && self.post == 0 && !self.zero;
                Key::Silent
            }
            Word::D | Word::Point => {
                if self.decimal {
                    return Err(syntax("multiple decimal points"));
                }
                if self.shift {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                self.decimal = true;
                if word == Word::D {
                    Key::LocalePoint
                } else {
                    Key::Point
                }
            }
            Word::Fm => {
                self.fill = true;
                Key::Silent
            }
            Word::S => {
                self.take_sign()?;
                Key::Silent
            }
            Word::Mi => {
                self.without_sign("cannot use \"S\" and \"MI\" together")?;
                self.minus = true;
                Key::Minus
            }
            Word::Pl => {
                self.without_sign("cannot use \"S\" and \"PL\" together")?;
                self.plus = true;
                Key::Plus
            }
            Word::Sg => {
                self.without_sign("cannot use \"S\" and \"SG\" together")?;
                self.minus = true;
                self.plus = true;
                Key::Sign
            }
            Word::Pr => {
                if self.signed || self.plus || self.minus {
                    return Err(syntax(
                        "cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together",
                    ));
                }
                self.bracket = true;
                Key::Silent
            }
            Word::Rn => {
                self.roman = true;
                if small { Key::SmallRoman } else { Key::Roman }
            }
            Word::Th if small => Key::SmallOrdinal,
            Word::Th => Key::Ordinal,
            Word::L => Key::Currency,
            Word::G => Key::Group,
            Word::Comma => Key::Comma,
            Word::C => Key::Silent,
            Word::V => {
                if self.decimal {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                self.shift = true;
                Key::Silent
            }
            Word::E => {
                self.take_exponent()?;
                Key::Silent
            }
        })
    }

    fn without_sign(&self, message: &str) -> Result<()> {
        if self.signed {
            Err(syntax(message))
        } else {
            Ok(())
        }
    }

    fn take_sign(&mut self) -> Result<()> {
        self.without_sign("cannot use \"S\" twice")?;
        if self.plus || self.minus || self.bracket {
            return Err(syntax(
                "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together",
            ));
        }
        self.signed = true;
        if self.decimal {
            self.locale_sign = LocaleSign::After;
        } else {
            self.locale_sign = LocaleSign::Before;
            self.places_before_sign = self.pre;
        }
        Ok(())
    }

    fn take_exponent(&mut self) -> Result<()> {
        if self.exponent {
            return Err(syntax("cannot use \"EEEE\" twice"));
        }
        if self.blank
            || self.fill
            || self.signed
            || self.bracket
            || self.minus
            || self.plus
            || self.roman
            || self.shift
        {
            return Err(
                syntax("\"EEEE\" is incompatible with other formats").with_detail(
                    "\"EEEE\" may only be used together with digit and decimal point patterns.",
                ),
            );
        }
        self.exponent = true;
        Ok(())
    }
}
