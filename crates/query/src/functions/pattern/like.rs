//! LIKE and ILIKE.

use std::borrow::Cow;

use super::super::text::lowered;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

#[cold]
fn ends_with_escape() -> QueryError {
    QueryError::new("22025", "LIKE pattern must not end with escape character")
}

/// Whether a byte continues a character, in texts.
const fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The rest after the first character; bytes are characters of their own
/// unless they are of a text.
fn after_character(bytes: &[u8], text: bool) -> &[u8] {
    let mut rest = bytes.get(1..).unwrap_or_default();
    while text
        && let [first, inner @ ..] = rest
        && continues(*first)
    {
        rest = inner;
    }
    rest
}

/// A part of a pattern without `%` before a place in a text: what follows it,
/// if it matches.
enum Fit<'a> {
    /// It matches, and this is left of the text.
    Yes(&'a [u8]),
    /// It does not.
    No,
    /// Nor does it anywhere later: the text is too short.
    Never,
}

/// Matches the pattern up to `%` or its end.
fn fit<'a>(mut bytes: &'a [u8], segment: &[u8], text: bool) -> Result<Fit<'a>> {
    let mut pattern = segment;
    while let [first, rest @ ..] = pattern {
        let mut wanted = *first;
        let mut after = rest;
        if bytes.is_empty() {
            return Ok(Fit::Never);
        }
        match wanted {
            b'_' => {
                bytes = after_character(bytes, text);
                pattern = rest;
                continue;
            }
            b'\\' => {
                let [escaped, rest @ ..] = rest else {
                    return Err(ends_with_escape());
                };
                wanted = *escaped;
                after = rest;
            }
            _ => {}
        }
        match bytes {
            [found, rest @ ..] if *found == wanted => bytes = rest,
            _ => return Ok(Fit::No),
        }
        pattern = after;
    }
    Ok(Fit::Yes(bytes))
}

/// Takes the pattern up to its next `%`, and tells whether there is one.
fn segment(pattern: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut at = 0;
    while let Some(byte) = pattern.get(at) {
        match byte {
            b'\\' => at += 2,
            b'%' => {
                let (before, after) = pattern.split_at(at);
                return (before, after.get(1..));
            }
            _ => at += 1,
        }
    }
    (pattern, None)
}

/// Whether a text is like a pattern. What is between two `%` matches where it
/// first can: nothing is gained by a later place.
fn is_like(call: &Call<'_>, text: &[u8], pattern: &[u8], is_text: bool) -> Result<bool> {
    let (first, mut rest) = segment(pattern);
    let mut bytes = match fit(text, first, is_text)? {
        Fit::Yes(bytes) => bytes,
        _ => return Ok(false),
    };
    let Some(mut pattern) = rest else {
        return Ok(bytes.is_empty());
    };
    let mut steps = 0_u32;
    loop {
        if bytes.is_empty() {
            return Ok(pattern.iter().all(|byte| *byte == b'%'));
        }
        // Blanks after `%` are taken first, and more of `%` is no more.
        loop {
            match pattern {
                [b'%', inner @ ..] => pattern = inner,
                [b'_', inner @ ..] => {
                    if bytes.is_empty() {
                        return Ok(false);
                    }
                    bytes = after_character(bytes, is_text);
                    pattern = inner;
                }
                _ => break,
            }
        }
        if pattern.is_empty() {
            return Ok(true);
        }
        if pattern == b"\\" {
            return Err(ends_with_escape());
        }
        let part;
        (part, rest) = segment(pattern);
        let literal = match part {
            [b'\\', byte, ..] => Some(*byte),
            [byte, ..] => Some(*byte),
            [] => None,
        };
        let found = loop {
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(65_536) {
                call.environment.check_interrupted()?;
            }
            // To where the part's first byte is.
            let next = literal.and_then(|byte| memchr::memchr(byte, bytes));
            let Some(next) = next else {
                return Ok(false);
            };
            bytes = bytes.get(next..).unwrap_or_default();
            match fit(bytes, part, is_text)? {
                // The last part must take the whole rest.
                Fit::Yes(after) if rest.is_some() || after.is_empty() => break after,
                Fit::Never => return Ok(false),
                _ => bytes = after_character(bytes, is_text),
            }
        };
        bytes = found;
        match rest {
            Some(after) => pattern = after,
            None => return Ok(true),
        }
    }
}

pub(super) fn like(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (text, pattern) = (a[0].as_text().as_bytes(), a[1].as_text().as_bytes());
    is_like(call, text, pattern, true).map(Datum::Bool)
}

pub(super) fn bytea_like(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    is_like(call, a[0].as_bytes(), a[1].as_bytes(), false).map(Datum::Bool)
}

fn lower<'a>(call: &Call<'_>, text: &'a str) -> Result<Cow<'a, str>> {
    if text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Ok(text.into());
    }
    call.room(text.len())?;
    if text.is_ascii() {
        return Ok(text.to_ascii_lowercase().into());
    }
    Ok(lowered(text).into())
}

pub(super) fn ilike(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (text, pattern) = (lower(call, a[0].as_text())?, lower(call, a[1].as_text())?);
    is_like(call, text.as_bytes(), pattern.as_bytes(), true).map(Datum::Bool)
}

#[cold]
pub(super) fn invalid_escape() -> QueryError {
    QueryError::new("22025", "invalid escape string")
        .with_hint("Escape string must be empty or one character.")
}

/// The pattern with `\` for its escape.
fn escaped(pattern: &[u8], escape: &[u8], is_text: bool) -> Result<Option<Vec<u8>>> {
    if !escape.is_empty() && !after_character(escape, is_text).is_empty() {
        return Err(invalid_escape());
    }
    if escape == b"\\" {
        return Ok(None);
    }
    let mut made = Vec::with_capacity(pattern.len() * 2);
    let mut rest = pattern;
    let mut after_escape = false;
    while !rest.is_empty() {
        let after = after_character(rest, is_text);
        let character = rest.get(..rest.len() - after.len()).unwrap_or_default();
        if character == escape && !after_escape && !escape.is_empty() {
            made.push(b'\\');
            after_escape = true;
        } else {
            if character == b"\\" && !after_escape {
                made.push(b'\\');
            }
            made.extend_from_slice(character);
            after_escape = false;
        }
        rest = after;
    }
    Ok(Some(made))
}

pub(super) fn like_escape(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (pattern, escape) = (a[0].as_text(), a[1].as_text());
    call.room(pattern.len() * 2)?;
    Ok(
        match escaped(pattern.as_bytes(), escape.as_bytes(), true)? {
            Some(made) => Datum::text(crate::types::text::utf8(&made)?),
            None => a[0].clone(),
        },
    )
}

pub(super) fn bytea_like_escape(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (pattern, escape) = (a[0].as_bytes(), a[1].as_bytes());
    call.room(pattern.len() * 2)?;
    Ok(match escaped(pattern, escape, false)? {
        Some(made) => Datum::bytes(made),
        None => a[0].clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Plain;

    fn like(text: &str, pattern: &str) -> bool {
        let environment = Plain::default();
        let call = Call::new(&environment, &[], 0);
        is_like(&call, text.as_bytes(), pattern.as_bytes(), true).expect("a pattern")
    }

    #[test]
    fn percent_takes_any_and_the_rest_must_end_with_the_text() {
        assert!(like("abcabd", "%ab_"));
        assert!(like("abab", "a%ab"));
        assert!(!like("ab", "a%ab"));
        assert!(like("\u{e9}t\u{e9}", "_t_"));
        assert!(like("a%b", "a\\%b") && !like("axb", "a\\%b"));
        assert!(like("", "%") && !like("", "%_"));
        let (text, pattern) = ("a".repeat(5000), "%a".repeat(2000) + "b");
        assert!(!like(&text, &pattern));
    }
}
