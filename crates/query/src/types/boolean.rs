//! `boolean`.

use super::{Type, ids, text};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// The types of this file.
pub const TYPES: &[Type] = &[Type {
    length: 1,
    category: b'B',
    preferred: true,
    array: ids::BOOL_ARRAY,
    input,
    output,
    receive,
    send,
    compare: Some(|a, b| a.as_bool().cmp(&b.as_bool())),
    ..Type::new(ids::BOOL, "bool", "boolean")
}];

/// The words for true and false, and how many letters of each are enough.
const WORDS: [(&str, usize, bool); 8] = [
    ("true", 1, true),
    ("false", 1, false),
    ("yes", 1, true),
    ("no", 1, false),
    ("on", 2, true),
    ("off", 2, false),
    ("1", 1, true),
    ("0", 1, false),
];

/// The truth value that a text says, blanks around it left out.
#[must_use]
pub fn read(text: &str) -> Option<bool> {
    let said = text
        .trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}')
        .as_bytes();
    WORDS.iter().find_map(|(word, least, value)| {
        let begins = said.len() >= *least
            && word
                .as_bytes()
                .get(..said.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(said));
        begins.then_some(*value)
    })
}

fn input(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    match read(text) {
        Some(value) => Ok(Datum::Bool(value)),
        None => Err(QueryError::invalid_text("boolean", text)),
    }
}

fn output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    out.push(if value.as_bool() { 't' } else { 'f' });
    Ok(())
}

fn receive(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    match bytes {
        [byte, ..] => Ok(Datum::Bool(*byte != 0)),
        [] => Err(text::no_data()),
    }
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.push(u8::from(value.as_bool()));
    Ok(())
}
