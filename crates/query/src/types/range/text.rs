//! The text form of ranges: `[1,5)`, `empty`. An end stands in quotes where it has characters
//! that mean something.

use std::ops::Bound;

use super::{Range, bound, element_of};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::domain::base;
use crate::types::numeric::is_space;
use crate::types::{self};

const EMPTY: &str = "empty";

/// What is wrong with a text.
type Wrong = &'static str;

#[cold]
fn malformed(text: &str, detail: Wrong) -> QueryError {
    QueryError::new("22P02", format!("malformed range literal: \"{text}\"")).with_detail(detail)
}

/// The type of the ends of the type that a call makes.
pub(super) fn element(call: &Call<'_>) -> Result<u32> {
    element_of(base(call.result)).ok_or_else(|| QueryError::internal("a range of no type"))
}

/// A range's text taken apart; an end that is missing is `None`.
struct Parts {
    lower: Option<String>,
    with_lower: bool,
    upper: Option<String>,
    with_upper: bool,
}

pub(super) fn input(call: &Call<'_>, text: &str, modifier: i32) -> Result<Datum> {
    let element = element(call)?;
    let parts = parts(text).map_err(|wrong| malformed(text, wrong))?;
    let range = match parts {
        None => Range::empty(element),
        Some(parts) => {
            let read = |text: Option<String>, included| match text {
                Some(text) => {
                    let value = types::input(call, element, &text, modifier)?;
                    Ok(bound(value, included))
                }
                None => Ok(Bound::Unbounded),
            };
            let lower = read(parts.lower, parts.with_lower)?;
            let upper = read(parts.upper, parts.with_upper)?;
            Range::new(element, lower, upper)?
        }
    };
    Ok(Datum::Range(range.into()))
}

/// The parts of a text; `None` for the empty range.
fn parts(text: &str) -> Result<Option<Parts>, Wrong> {
    let mut rest = without_spaces(text);
    if let Some(word) = rest.get(..EMPTY.len())
        && word.eq_ignore_ascii_case(EMPTY)
    {
        return match without_spaces(&rest[EMPTY.len()..]) {
            "" => Ok(None),
            _ => Err("Junk after \"empty\" key word."),
        };
    }
    let with_lower = match rest.as_bytes().first() {
        Some(b'[') => true,
        Some(b'(') => false,
        _ => return Err("Missing left parenthesis or bracket."),
    };
    rest = &rest[1..];
    let lower = end(&mut rest)?;
    rest = rest
        .strip_prefix(',')
        .ok_or("Missing comma after lower bound.")?;
    let upper = end(&mut rest)?;
    let with_upper = match rest.as_bytes().first() {
        Some(b']') => true,
        Some(b')') => false,
        _ => return Err("Too many commas."),
    };
    match without_spaces(&rest[1..]) {
        "" => Ok(Some(Parts {
            lower,
            with_lower,
            upper,
            with_upper,
        })),
        _ => Err("Junk after right parenthesis or bracket."),
    }
}

fn without_spaces(text: &str) -> &str {
    text.trim_start_matches(|char: char| u8::try_from(char).is_ok_and(is_space))
}

/// Takes an end's text off, up to what follows it, without its quotes and backslashes.
fn end(rest: &mut &str) -> Result<Option<String>, Wrong> {
    if rest.starts_with([',', ')', ']']) {
        return Ok(None);
    }
    let mut value = String::new();
    let mut quoted = false;
    let mut chars = rest.chars();
    loop {
        *rest = chars.as_str();
        match chars.next() {
            None => return Err("Unexpected end of input."),
            Some(',' | ')' | ']') if !quoted => return Ok(Some(value)),
            Some('\\') => value.push(chars.next().ok_or("Unexpected end of input.")?),
            Some('"') if !quoted => quoted = true,
            Some('"') if chars.as_str().starts_with('"') => {
                chars.next();
                value.push('"');
            }
            Some('"') => quoted = false,
            Some(char) => value.push(char),
        }
    }
}

pub(super) fn output(call: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    let range = value.as_range();
    let Some(ends) = &range.ends else {
        out.push_str(EMPTY);
        return Ok(());
    };
    out.push(match ends.lower {
        Bound::Included(_) => '[',
        _ => '(',
    });
    write_end(call, range.element, &ends.lower, out)?;
    out.push(',');
    write_end(call, range.element, &ends.upper, out)?;
    out.push(match ends.upper {
        Bound::Included(_) => ']',
        _ => ')',
    });
    Ok(())
}

fn write_end(call: &Call<'_>, element: u32, bound: &Bound<Datum>, out: &mut String) -> Result<()> {
    let Some(value) = super::value(bound) else {
        return Ok(());
    };
    let start = out.len();
    types::output(call, element, value, out)?;
    let shown = &out[start..];
    let means_something = |byte: u8| {
        matches!(
            byte,
            b'"' | b'\\'
                | b'('
                | b')'
                | b'['
                | b']'
                | b','
                | b' '
                | b'\t'
                | b'\n'
                | 0x0b
                | 0x0c
                | b'\r'
        )
    };
    if !shown.is_empty() && !shown.bytes().any(means_something) {
        return Ok(());
    }
    let shown = out.split_off(start);
    out.push('"');
    for char in shown.chars() {
        if matches!(char, '"' | '\\') {
            out.push(char);
        }
        out.push(char);
    }
    out.push('"');
    Ok(())
}
