//! Patterns of SIMILAR TO and of SQL's SUBSTRING, as regular expressions.

use super::like::invalid_escape;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// Within a bracket expression: how much of it has been read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    /// Its `[`: here `]` is a character, and `^` the complement.
    Begun,
    /// Its `[^`: here, too, `]` is a character.
    Negated,
    /// More.
    Within,
}

/// The regular expression for a pattern. `None` as escape is for no escape.
fn expression(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut made = String::with_capacity(pattern.len() * 3 + 23);
    made.push_str("^(?:");
    let (mut after_escape, mut quotes) = (false, 0);
    let (mut depth, mut bracket) = (0_usize, Bracket::Within);
    for c in pattern.chars() {
        if after_escape {
            after_escape = false;
            if c == '"' && depth == 0 {
                made.push_str(match quotes {
                    0 => "){1,1}?(",
                    1 => "){1,1}(?:",
                    _ => {
                        return Err(QueryError::new(
                            "2200C",
                            "SQL regular expression may not contain more than two escape-double-quote separators",
                        ));
                    }
                });
                quotes += 1;
            } else {
                made.push('\\');
                made.push(c);
                bracket = Bracket::Within;
            }
        } else if Some(c) == escape {
            after_escape = true;
        } else if depth > 0 {
            if c == '\\' {
                made.push('\\');
            }
            made.push(c);
            bracket = match (c, bracket) {
                (']', Bracket::Within) => {
                    depth -= 1;
                    Bracket::Within
                }
                ('[', _) => {
                    depth += 1;
                    Bracket::Within
                }
                ('^', Bracket::Begun) => Bracket::Negated,
                _ => Bracket::Within,
            };
        } else {
            match c {
                '[' => {
                    made.push(c);
                    depth = 1;
                    bracket = Bracket::Begun;
                }
                '%' => made.push_str(".*"),
                '_' => made.push('.'),
                '(' => made.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    made.push('\\');
                    made.push(c);
                }
                _ => made.push(c),
            }
        }
    }
    made.push_str(")$");
    Ok(made)
}

fn escape_of(escape: &str) -> Result<Option<char>> {
    let mut characters = escape.chars();
    match (characters.next(), characters.next()) {
        (first, None) => Ok(first),
        _ => Err(invalid_escape()),
    }
}

/// The regular expression of a pattern with this text as its escape.
pub(super) fn with_escape(call: &Call<'_>, pattern: &str, escape: &str) -> Result<String> {
    call.room(pattern.len().saturating_mul(3))?;
    expression(pattern, escape_of(escape)?)
}

pub(super) fn similar_to_escape(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let escape = a.get(1).map_or("\\", Datum::as_text);
    with_escape(call, a[0].as_text(), escape).map(Datum::text)
}

pub(super) fn similar_escape(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let Datum::Text(pattern) = &a[0] else {
        return Ok(Datum::Null);
    };
    let escape = match &a[1] {
        Datum::Text(escape) => escape,
        _ => "\\",
    };
    with_escape(call, pattern, escape).map(Datum::text)
}
