//! `json`: a text that is checked, and kept as it was written.

mod quote;
mod reader;

pub use quote::{is_number, quote};
pub(crate) use reader::too_deep;
pub use reader::{Event, Reader, Token};

use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// How deep a text of `json` may be nested.
pub const DEPTH_MAX: usize = 9000;

/// The types of this file.
pub const TYPES: &[Type] = &[Type {
    array: ids::JSON_ARRAY,
    input,
    output,
    receive,
    send,
    ..Type::new(ids::JSON, "json", "json")
}];

fn input(call: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    check(call, text)?;
    Ok(Datum::text(text))
}

/// Reads a text to its end, so that it is known to be JSON.
///
/// # Errors
/// 22P02 where it is not, 54001 where it is nested too deep.
pub fn check(call: &Call<'_>, text: &str) -> Result<()> {
    let mut reader = Reader::new(text, false, DEPTH_MAX);
    let mut events = 0_u32;
    while reader.next()?.is_some() {
        events = events.wrapping_add(1);
        if events.is_multiple_of(0x1_0000) {
            call.environment.check_interrupted()?;
        }
    }
    Ok(())
}

fn output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    out.push_str(value.as_text());
    Ok(())
}

fn receive(call: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    input(call, utf8(bytes)?, modifier)
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(value.as_text().as_bytes());
    Ok(())
}

/// The text that a client sent in binary form.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        Ok(_) => Err(QueryError::new(
            "22021",
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        )),
        Err(error) => {
            let shown: Vec<String> = bytes
                .iter()
                .skip(error.valid_up_to())
                .take(error.error_len().unwrap_or(4))
                .map(|byte| format!("0x{byte:02x}"))
                .collect();
            Err(QueryError::new(
                "22021",
                format!(
                    "invalid byte sequence for encoding \"UTF8\": {}",
                    shown.join(" ")
                ),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Plain;

    fn refused(text: &str) -> (String, Option<String>) {
        let environment = Plain::default();
        let call = Call::new(&environment, &[], ids::JSON);
        let error = check(&call, text).unwrap_err();
        (error.sqlstate.to_owned(), error.detail.clone())
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (text, detail) in [
            ("", "The input string ended unexpectedly."),
            ("[1,]", "Expected JSON value, but found \"]\"."),
            ("[1", "The input string ended unexpectedly."),
            ("[1 2]", "Expected \",\" or \"]\", but found \"2\"."),
            ("{\"a\" 1}", "Expected \":\", but found \"1\"."),
            ("{1:2}", "Expected string or \"}\", but found \"1\"."),
            ("{\"a\":1,}", "Expected string, but found \"}\"."),
            ("{\"a\":1 2}", "Expected \",\" or \"}\", but found \"2\"."),
            ("1 2", "Expected end of input, but found \"2\"."),
            ("nul", "Token \"nul\" is invalid."),
            ("01", "Token \"01\" is invalid."),
            ("'x", "Token \"'\" is invalid."),
            ("\"a\\x\"", "Escape sequence \"\\x\" is invalid."),
            ("\"a\n\"", "Character with value 0x0a must be escaped."),
            (
                "\"\\u12\"",
                "\"\\u\" must be followed by four hexadecimal digits.",
            ),
            ("\"abc", "Token \"\"abc\" is invalid."),
        ] {
            let (code, found) = refused(text);
            assert_eq!((code.as_str(), found.as_deref()), ("22P02", Some(detail)));
        }
        assert_eq!(refused(&"[".repeat(20_000)).0, "54001");
    }
}
