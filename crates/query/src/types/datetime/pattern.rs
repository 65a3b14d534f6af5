//! Patterns of dates and times: what `to_char` writes and `to_date` and
//! `to_timestamp` read by (`write`, `read`).

pub mod read;
pub mod write;

use super::is_space;
use crate::error::{QueryError, Result};

/// The letters of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Case {
    Upper,
    Title,
    Lower,
}

/// The calendar that a field belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Calendar {
    Gregorian,
    Iso,
}

/// A field of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    Era {
        dots: bool,
        upper: bool,
    },
    Half {
        dots: bool,
        upper: bool,
    },
    Century,
    Day(Case),
    ShortDay(Case),
    Month(Case),
    ShortMonth(Case),
    YearDay,
    MonthDay,
    Weekday,
    /// So many digits of a second's fraction.
    Fraction(u8),
    /// `FX`: the text is as long as the pattern.
    Exact,
    Hour,
    ClockHour,
    IsoYearDay,
    IsoWeekday,
    IsoWeek,
    Year {
        digits: u8,
        iso: bool,
    },
    CommaYear,
    Julian,
    Minute,
    MonthNumber,
    Millisecond,
    Microsecond,
    Offset,
    Quarter,
    RomanMonth {
        upper: bool,
    },
    DaySecond,
    Second,
    ZoneHour,
    ZoneMinute,
    Zone {
        upper: bool,
    },
    Week,
    MonthWeek,
}

/// How a pattern writes a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    pub name: &'static str,
    pub field: Field,
    /// Whether it is read as digits.
    pub digits: bool,
    pub calendar: Option<Calendar>,
}

const fn key(name: &'static str, field: Field, digits: bool, calendar: Option<Calendar>) -> Key {
    Key {
        name,
        field,
        digits,
        calendar,
    }
}

/// All fields; those that begin with others come first.
static KEYS: &[Key] = &[
    key(
        "A.D.",
        Field::Era {
            dots: true,
            upper: true,
        },
        false,
        None,
    ),
    key(
        "A.M.",
        Field::Half {
            dots: true,
            upper: true,
        },
        false,
        None,
    ),
    key(
        "AD",
        Field::Era {
            dots: false,
            upper: true,
        },
        false,
        None,
    ),
    key(
        "AM",
        Field::Half {
            dots: false,
            upper: true,
        },
        false,
        None,
    ),
    key(
        "B.C.",
        Field::Era {
            dots: true,
            upper: true,
        },
        false,
        None,
    ),
    key(
        "BC",
        Field::Era {
            dots: false,
            upper: true,
        },
        false,
        None,
    ),
    key("CC", Field::Century, true, None),
    key("DAY", Field::Day(Case::Upper), false, None),
    key("DDD", Field::YearDay, true, Some(Calendar::Gregorian)),
    key("DD", Field::MonthDay, true, Some(Calendar::Gregorian)),
    key("DY", Field::ShortDay(Case::Upper), false, None),
    key("Day", Field::Day(Case::Title), false, None),
    key("Dy", Field::ShortDay(Case::Title), false, None),
    key("D", Field::Weekday, true, Some(Calendar::Gregorian)),
    key("FF1", Field::Fraction(1), true, None),
    key("FF2", Field::Fraction(2), true, None),
    key("FF3", Field::Fraction(3), true, None),
    key("FF4", Field::Fraction(4), true, None),
    key("FF5", Field::Fraction(5), true, None),
    key("FF6", Field::Fraction(6), true, None),
    key("FX", Field::Exact, false, None),
    key("HH24", Field::Hour, true, None),
    key("HH12", Field::ClockHour, true, None),
    key("HH", Field::ClockHour, true, None),
    key("IDDD", Field::IsoYearDay, true, Some(Calendar::Iso)),
    key("ID", Field::IsoWeekday, true, Some(Calendar::Iso)),
    key("IW", Field::IsoWeek, true, Some(Calendar::Iso)),
    key(
        "IYYY",
        Field::Year {
            digits: 4,
            iso: true,
        },
        true,
        Some(Calendar::Iso),
    ),
    key(
        "IYY",
        Field::Year {
            digits: 3,
            iso: true,
        },
        true,
        Some(Calendar::Iso),
    ),
    key(
        "IY",
        Field::Year {
            digits: 2,
            iso: true,
        },
        true,
        Some(Calendar::Iso),
    ),
    key(
        "I",
        Field::Year {
            digits: 1,
            iso: true,
        },
        true,
        Some(Calendar::Iso),
    ),
    key("J", Field::Julian, true, None),
    key("MI", Field::Minute, true, None),
    key("MM", Field::MonthNumber, true, Some(Calendar::Gregorian)),
    key(
        "MONTH",
        Field::Month(Case::Upper),
        false,
        Some(Calendar::Gregorian),
    ),
    key(
        "MON",
        Field::ShortMonth(Case::Upper),
        false,
        Some(Calendar::Gregorian),
    ),
    key("MS", Field::Millisecond, true, None),
    key(
        "Month",
        Field::Month(Case::Title),
        false,
        Some(Calendar::Gregorian),
    ),
    key(
        "Mon",
        Field::ShortMonth(Case::Title),
        false,
        Some(Calendar::Gregorian),
    ),
    key("OF", Field::Offset, false, None),
    key(
        "P.M.",
        Field::Half {
            dots: true,
            upper: true,
        },
        false,
        None,
    ),
    key(
        "PM",
        Field::Half {
            dots: false,
            upper: true,
        },
        false,
        None,
    ),
    key("Q", Field::Quarter, true, None),
    key(
        "RM",
        Field::RomanMonth { upper: true },
        false,
        Some(Calendar::Gregorian),
    ),
    key("SSSSS", Field::DaySecond, true, None),
    key("SSSS", Field::DaySecond, true, None),
    key("SS", Field::Second, true, None),
    key("TZH", Field::ZoneHour, false, None),
    key("TZM", Field::ZoneMinute, true, None),
    key("TZ", Field::Zone { upper: true }, false, None),
    key("US", Field::Microsecond, true, None),
    key("WW", Field::Week, true, Some(Calendar::Gregorian)),
    key("W", Field::MonthWeek, true, Some(Calendar::Gregorian)),
    key("Y,YYY", Field::CommaYear, true, Some(Calendar::Gregorian)),
    key(
        "YYYY",
        Field::Year {
            digits: 4,
            iso: false,
        },
        true,
        Some(Calendar::Gregorian),
    ),
    key(
        "YYY",
        Field::Year {
            digits: 3,
            iso: false,
        },
        true,
        Some(Calendar::Gregorian),
    ),
    key(
        "YY",
        Field::Year {
            digits: 2,
            iso: false,
        },
        true,
        Some(Calendar::Gregorian),
    ),
    key(
        "Y",
        Field::Year {
            digits: 1,
            iso: false,
        },
        true,
        Some(Calendar::Gregorian),
    ),
    key(
        "a.d.",
        Field::Era {
            dots: true,
            upper: false,
        },
        false,
        None,
    ),
    key(
        "a.m.",
        Field::Half {
            dots: true,
            upper: false,
        },
        false,
        None,
    ),
    key(
        "ad",
        Field::Era {
            dots: false,
            upper: false,
        },
        false,
        None,
    ),
    key(
        "am",
        Field::Half {
            dots: false,
            upper: false,
        },
        false,
        None,
    ),
    key(
        "b.c.",
        Field::Era {
            dots: true,
            upper: false,
        },
        false,
        None,
    ),
    key(
        "bc",
        Field::Era {
            dots: false,
            upper: false,
        },
        false,
        None,
    ),
    key("cc", Field::Century, true, None),
    key("day", Field::Day(Case::Lower), false, None),
    key("ddd", Field::YearDay, true, Some(Calendar::Gregorian)),
    key("dd", Field::MonthDay, true, Some(Calendar::Gregorian)),
    key("dy", Field::ShortDay(Case::Lower), false, None),
    key("d", Field::Weekday, true, Some(Calendar::Gregorian)),
    key("ff1", Field::Fraction(1), true, None),
    key("ff2", Field::Fraction(2), true, None),
    key("ff3", Field::Fraction(3), true, None),
    key("ff4", Field::Fraction(4), true, None),
    key("ff5", Field::Fraction(5), true, None),
    key("ff6", Field::Fraction(6), true, None),
    key("fx", Field::Exact, false, None),
    key("hh24", Field::Hour, true, None),
    key("hh12", Field::ClockHour, true, None),
    key("hh", Field::ClockHour, true, None),
    key("iddd", Field::IsoYearDay, true, Some(Calendar::Iso)),
    key("id", Field::IsoWeekday, true, Some(Calendar::Iso)),
    key("iw", Field::IsoWeek, true, Some(Calendar::Iso)),
    key(
        "iyyy",
        Field::Year {
            digits: 4,
            iso: true,
        },
        true,
        Some(Calendar::Iso),
    ),
    key(
        "iyy",
        Field::Year {
            digits: 3,
            iso: true,
        },
        true,
        Some(Calendar::Iso),
    ),
    key(
        "iy",
        Field::Year {
            digits: 2,
            iso: true,
        },
        true,
        Some(Calendar::Iso),
    ),
    key(
        "i",
        Field::Year {
            digits: 1,
            iso: true,
        },
        true,
        Some(Calendar::Iso),
    ),
    key("j", Field::Julian, true, None),
    key("mi", Field::Minute, true, None),
    key("mm", Field::MonthNumber, true, Some(Calendar::Gregorian)),
    key(
        "month",
        Field::Month(Case::Lower),
        false,
        Some(Calendar::Gregorian),
    ),
    key(
        "mon",
        Field::ShortMonth(Case::Lower),
        false,
        Some(Calendar::Gregorian),
    ),
    key("ms", Field::Millisecond, true, None),
    key("of", Field::Offset, false, None),
    key(
        "p.m.",
        Field::Half {
            dots: true,
            upper: false,
        },
        false,
        None,
    ),
    key(
        "pm",
        Field::Half {
            dots: false,
            upper: false,
        },
        false,
        None,
    ),
    key("q", Field::Quarter, true, None),
    key(
        "rm",
        Field::RomanMonth { upper: false },
        false,
        Some(Calendar::Gregorian),
    ),
    key("sssss", Field::DaySecond, true, None),
    key("ssss", Field::DaySecond, true, None),
    key("ss", Field::Second, true, None),
    key("tzh", Field::ZoneHour, false, None),
    key("tzm", Field::ZoneMinute, true, None),
    key("tz", Field::Zone { upper: false }, false, None),
    key("us", Field::Microsecond, true, None),
    key("ww", Field::Week, true, Some(Calendar::Gregorian)),
    key("w", Field::MonthWeek, true, Some(Calendar::Gregorian)),
    key("y,yyy", Field::CommaYear, true, Some(Calendar::Gregorian)),
    key(
        "yyyy",
        Field::Year {
            digits: 4,
            iso: false,
        },
        true,
        Some(Calendar::Gregorian),
    ),
    key(
        "yyy",
        Field::Year {
            digits: 3,
            iso: false,
        },
        true,
        Some(Calendar::Gregorian),
    ),
    key(
        "yy",
        Field::Year {
            digits: 2,
            iso: false,
        },
        true,
        Some(Calendar::Gregorian),
    ),
    key(
        "y",
        Field::Year {
            digits: 1,
            iso: false,
        },
        true,
        Some(Calendar::Gregorian),
    ),
];

/// A piece of a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    Field {
        key: &'static Key,
        /// `FM`: without padding.
        trimmed: bool,
        /// `TM`: in the session's language.
        translated: bool,
        /// `TH` (true) or `th`: an ordinal number.
        ordinal: Option<bool>,
    },
    Space(char),
    Separator(char),
    Letter(char),
}

/// Whether a character separates fields.
pub(super) fn is_separator(letter: char) -> bool {
    letter.is_ascii_graphic() && !letter.is_ascii_alphanumeric()
}

/// Takes a pattern apart. `standard` is SQL's own form, which allows few separators.
pub(super) fn nodes(pattern: &str, standard: bool) -> Result<Vec<Node>> {
    let mut nodes = Vec::new();
    let mut rest = pattern;
    while !rest.is_empty() {
        let (mut trimmed, mut translated) = (false, false);
        match rest.get(..2) {
            Some("FM" | "fm") => trimmed = true,
            Some("TM" | "tm") => translated = true,
            _ => {}
        }
        if trimmed || translated {
            rest = rest.get(2..).unwrap_or_default();
        }
        let Some(letter) = rest.chars().next() else {
            break;
        };
        let key = KEYS.iter().find(|key| rest.starts_with(key.name));
        if let Some(key) = key {
            rest = rest.get(key.name.len()..).unwrap_or_default();
            let ordinal = match rest.get(..2) {
                Some("TH") => Some(true),
                Some("th") => Some(false),
                _ => None,
            };
            // SP was to spell numbers, but says nothing.
            if ordinal.is_some() || rest.starts_with("SP") {
                rest = rest.get(2..).unwrap_or_default();
            }
            nodes.push(Node::Field {
                key,
                trimmed,
                translated,
                ordinal,
            });
            continue;
        }
        if letter == '"' {
            rest = quoted(rest.get(1..).unwrap_or_default(), &mut nodes);
            continue;
        }
        if standard {
            if !"-./,':; ".contains(letter) {
                return Err(QueryError::new(
                    "22007",
                    format!("invalid datetime format separator: \"{letter}\""),
                ));
            }
            nodes.push(if letter == ' ' {
                Node::Space(letter)
            } else {
                Node::Separator(letter)
            });
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        let letter = if rest.starts_with("\\\"") {
            '"'
        } else {
            letter
        };
        if letter == '"' {
            rest = rest.get(1..).unwrap_or_default();
        }
        nodes.push(if is_separator(letter) {
            Node::Separator(letter)
        } else if u8::try_from(letter).is_ok_and(is_space) {
            Node::Space(letter)
        } else {
            Node::Letter(letter)
        });
        rest = rest.get(letter.len_utf8()..).unwrap_or_default();
    }
    Ok(nodes)
}

/// Takes what stands within double quotes; gives what follows.
fn quoted<'a>(text: &'a str, nodes: &mut Vec<Node>) -> &'a str {
    let mut letters = text.chars();
    while let Some(mut letter) = letters.next() {
        if letter == '"' {
            break;
        }
        if letter == '\\'
            && let Some(next) = letters.next()
        {
            letter = next;
        }
        nodes.push(Node::Letter(letter));
    }
    letters.as_str()
}
