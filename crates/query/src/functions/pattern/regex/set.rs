//! Sets of characters: ranges of their numbers, and the classes with names.

use std::sync::LazyLock;

use super::super::super::text::ctype;

/// The greatest number that a pattern may name; those of characters are less.
pub(super) const CHAR_MAX: u32 = 0x7fff_fffe;

/// A set of characters: ranges in order, apart from each other.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Set(pub(super) Vec<(u32, u32)>);

impl Set {
    pub(super) fn range(first: u32, last: u32) -> Self {
        Self(vec![(first, last)])
    }

    /// The set of ranges in any order.
    pub(super) fn of(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    pub(super) fn everything() -> Self {
        Self::range(0, CHAR_MAX)
    }

    pub(super) fn complement(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for (first, last) in &self.0 {
            if *first > next {
                ranges.push((next, first - 1));
            }
            next = last + 1;
        }
        if next <= CHAR_MAX {
            ranges.push((next, CHAR_MAX));
        }
        Self(ranges)
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        Self::of(self.0.iter().chain(&other.0).copied().collect())
    }

    pub(super) fn without(&self, other: &Self) -> Self {
        self.complement().union(other).complement()
    }

    /// A character, or both its cases.
    pub(super) fn of_char(c: u32, any_case: bool) -> Self {
        if any_case {
            Self::of(vec![(lower(c), lower(c)), (upper(c), upper(c))])
        } else {
            Self::range(c, c)
        }
    }

    /// A range, with both cases of what is in it.
    pub(super) fn of_range(first: u32, last: u32, any_case: bool) -> Self {
        let mut ranges = vec![(first, last)];
        if any_case {
            // Beyond the last character nothing has cases.
            for c in first..=last.min(0x10_ffff) {
                for cased in [lower(c), upper(c)] {
                    if cased != c && !(first..=last).contains(&cased) {
                        ranges.push((cased, cased));
                    }
                }
            }
        }
        Self::of(ranges)
    }
}

/// The character in lower case.
pub(super) fn lower(c: u32) -> u32 {
    char::from_u32(c).map_or(c, |c| u32::from(ctype::lower(c)))
}

fn upper(c: u32) -> u32 {
    char::from_u32(c).map_or(c, |c| u32::from(ctype::upper(c)))
}

/// A class of characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Alnum,
    Alpha,
    Ascii,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Xdigit,
    Word,
}

const NAMES: [(&str, Class); 14] = [
    ("alnum", Class::Alnum),
    ("alpha", Class::Alpha),
    ("ascii", Class::Ascii),
    ("blank", Class::Blank),
    ("cntrl", Class::Cntrl),
    ("digit", Class::Digit),
    ("graph", Class::Graph),
    ("lower", Class::Lower),
    ("print", Class::Print),
    ("punct", Class::Punct),
    ("space", Class::Space),
    ("upper", Class::Upper),
    ("xdigit", Class::Xdigit),
    ("word", Class::Word),
];

static ALPHA: LazyLock<Set> = LazyLock::new(|| matching(ctype::is_alpha));
static UPPER: LazyLock<Set> = LazyLock::new(|| matching(ctype::is_upper));
static LOWER: LazyLock<Set> = LazyLock::new(|| matching(ctype::is_lower));
static PRINT: LazyLock<Set> = LazyLock::new(|| matching(ctype::is_print));
static SPACE: LazyLock<Set> = LazyLock::new(|| matching(ctype::is_space));

fn matching(test: fn(char) -> bool) -> Set {
    let characters = ('\0'..=char::MAX).filter(|c| test(*c)).map(u32::from);
    Set::of(characters.map(|c| (c, c)).collect())
}

impl Class {
    pub(super) fn named(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, class)| *class)
    }

    pub(super) fn set(self, any_case: bool) -> Set {
        let digits = Set::range(0x30, 0x39);
        match self {
            Self::Lower | Self::Upper if any_case => ALPHA.clone(),
            Self::Alpha => ALPHA.clone(),
            Self::Alnum => ALPHA.union(&digits),
            Self::Word => ALPHA.union(&digits).union(&Set::range(0x5f, 0x5f)),
            Self::Ascii => Set::range(0, 0x7f),
            Self::Blank => Set::of(vec![(9, 9), (0x20, 0x20)]),
            Self::Cntrl => Set::of(vec![(0, 0x1f), (0x7f, 0x9f)]),
            Self::Digit => digits,
            Self::Print => PRINT.clone(),
            Self::Graph => PRINT.without(&SPACE),
            Self::Punct => PRINT.without(&SPACE).without(&ALPHA).without(&digits),
            Self::Space => SPACE.clone(),
            Self::Lower => LOWER.clone(),
            Self::Upper => UPPER.clone(),
            Self::Xdigit => Set::of(vec![(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)]),
        }
    }
}

/// The character of a name in `[. .]` and `[= =]`; a single one is its own name.
pub(super) fn element(name: &str) -> Option<u32> {
    let mut characters = name.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        return Some(u32::from(only));
    }
    let found = ELEMENTS.iter().find(|(known, _)| *known == name);
    found.map(|(_, c)| u32::from(*c))
}

#[rustfmt::skip]
const ELEMENTS: &[(&str, u8)] = &[
    ("NUL", 0), ("SOH", 1), ("STX", 2), ("ETX", 3), ("EOT", 4), ("ENQ", 5), ("ACK", 6), ("BEL", 7),
    ("alert", 7), ("BS", 8), ("backspace", 8), ("HT", 9), ("tab", 9), ("LF", 10), ("newline", 10), ("VT", 11),
    ("vertical-tab", 11), ("FF", 12), ("form-feed", 12), ("CR", 13), ("carriage-return", 13), ("SO", 14),
    ("SI", 15), ("DLE", 16), ("DC1", 17), ("DC2", 18), ("DC3", 19), ("DC4", 20), ("NAK", 21), ("SYN", 22),
    ("ETB", 23), ("CAN", 24), ("EM", 25), ("SUB", 26), ("ESC", 27), ("IS4", 28), ("FS", 28), ("IS3", 29),
    ("GS", 29), ("IS2", 30), ("RS", 30), ("IS1", 31), ("US", 31), ("space", 32), ("exclamation-mark", 33),
    ("quotation-mark", 34), ("number-sign", 35), ("dollar-sign", 36), ("percent-sign", 37), ("ampersand", 38),
    ("apostrophe", 39), ("left-parenthesis", 40), ("right-parenthesis", 41), ("asterisk", 42),
    ("plus-sign", 43), ("comma", 44), ("hyphen", 45), ("hyphen-minus", 45), ("period", 46), ("full-stop", 46),
    ("slash", 47), ("solidus", 47), ("zero", 48), ("one", 49), ("two", 50), ("three", 51), ("four", 52),
    ("five", 53), ("six", 54), ("seven", 55), ("eight", 56), ("nine", 57), ("colon", 58), ("semicolon", 59),
    ("less-than-sign", 60), ("equals-sign", 61), ("greater-than-sign", 62), ("question-mark", 63),
    ("commercial-at", 64), ("left-square-bracket", 91), ("backslash", 92), ("reverse-solidus", 92),
    ("right-square-bracket", 93), ("circumflex", 94), ("circumflex-accent", 94), ("underscore", 95),
    ("low-line", 95), ("grave-accent", 96), ("left-brace", 123), ("left-curly-bracket", 123),
    ("vertical-line", 124), ("right-brace", 125), ("right-curly-bracket", 125), ("tilde", 126), ("DEL", 127),
];
