//! Texts: `text`, `varchar(n)`, `char(n)`, `name`, `"char"`, and what is handled as text.

use std::cmp::Ordering;

use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// The bytes of a `name`, one for the end of a C string included.
pub const NAME_BYTES: usize = 64;
/// The longest `varchar(n)` and `char(n)`.
const LENGTH_MAX: i32 = 10 << 20;
/// What PostgreSQL adds to a length to make it a modifier.
const MODIFIER_EXTRA: i32 = 4;

/// The types of this file.
pub const TYPES: &[Type] = &[
    Type {
        category: b'S',
        preferred: true,
        array: ids::TEXT_ARRAY,
        ..text(ids::TEXT, "text", "text")
    },
    Type {
        category: b'S',
        array: ids::VARCHAR_ARRAY,
        input: varchar_input,
        receive: varchar_receive,
        modifier_in: Some(varchar_modifier_in),
        modifier_out: Some(modifier_out),
        fit: Some(varchar_fit),
        ..text(ids::VARCHAR, "varchar", "character varying")
    },
    Type {
        category: b'S',
        array: ids::BPCHAR_ARRAY,
        input: bpchar_input,
        receive: bpchar_receive,
        compare: Some(compare_bpchar),
        modifier_in: Some(bpchar_modifier_in),
        modifier_out: Some(modifier_out),
        fit: Some(bpchar_fit),
        ..text(ids::BPCHAR, "bpchar", "character")
    },
    Type {
        length: 64,
        category: b'S',
        array: ids::NAME_ARRAY,
        element: ids::CHAR,
        input: name_input,
        receive: name_receive,
        ..text(ids::NAME, "name", "name")
    },
    Type {
        length: 1,
        category: b'Z',
        array: ids::CHAR_ARRAY,
        input: char_input,
        output: char_output,
        receive: char_receive,
        send: char_send,
        compare: Some(compare_char),
        ..Type::new(ids::CHAR, "char", "\"char\"")
    },
    Type {
        length: -2,
        category: b'P',
        array: ids::CSTRING_ARRAY,
        ..text(ids::CSTRING, "cstring", "cstring")
    },
    Type {
        length: -2,
        category: b'X',
        ..text(ids::UNKNOWN, "unknown", "unknown")
    },
    Type {
        array: ids::XML_ARRAY,
        ..Type::new(ids::XML, "xml", "xml")
    },
    Type {
        array: ids::REFCURSOR_ARRAY,
        compare: None,
        ..text(ids::REFCURSOR, "refcursor", "refcursor")
    },
    Type {
        category: b'Z',
        ..Type::new(ids::PG_NODE_TREE, "pg_node_tree", "pg_node_tree")
    },
];

/// A type whose values are texts as they are.
const fn text(oid: u32, name: &'static str, full_name: &'static str) -> Type {
    Type {
        input,
        output,
        receive,
        send,
        compare: Some(compare),
        ..Type::new(oid, name, full_name)
    }
}

fn input(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    Ok(Datum::text(text))
}

fn output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    out.push_str(value.as_text());
    Ok(())
}

fn receive(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    Ok(Datum::text(utf8(bytes)?))
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(value.as_text().as_bytes());
    Ok(())
}

fn compare(a: &Datum, b: &Datum) -> Ordering {
    a.as_text().as_bytes().cmp(b.as_text().as_bytes())
}

/// These bytes as a text.
///
/// # Errors
/// 22021 where they are none in UTF-8, or one of them is 0.
pub fn utf8(bytes: &[u8]) -> Result<&str> {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => match bytes.iter().position(|byte| *byte == 0) {
            None => return Ok(text),
            Some(zero) => zero,
        },
        Err(error) => {
            let until = error.valid_up_to();
            let before = bytes.get(..until).unwrap_or_default();
            before.iter().position(|byte| *byte == 0).unwrap_or(until)
        }
    };
    Err(invalid_encoding(
        "UTF8",
        bytes.get(valid..).unwrap_or_default(),
    ))
}

/// 22021: the first character of `rest` is none of the encoding.
#[cold]
pub fn invalid_encoding(encoding: &str, rest: &[u8]) -> QueryError {
    let length = match rest.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    let shown: Vec<String> = rest
        .iter()
        .take(length)
        .map(|byte| format!("0x{byte:02x}"))
        .collect();
    QueryError::new(
        "22021",
        format!(
            "invalid byte sequence for encoding \"{encoding}\": {}",
            shown.join(" ")
        ),
    )
}

/// The text's first `characters` characters.
#[must_use]
pub fn first_characters(text: &str, characters: usize) -> &str {
    if text.len() <= characters {
        return text;
    }
    match text.char_indices().nth(characters) {
        Some((at, _)) => text.get(..at).unwrap_or(text),
        None => text,
    }
}

/// The text's first characters that take at most so many bytes.
#[must_use]
pub fn first_bytes(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// A `bpchar` without its padding.
#[must_use]
pub fn without_padding(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// The order of two `bpchar`s: what pads them does not count.
#[must_use]
pub fn compare_bpchar(a: &Datum, b: &Datum) -> Ordering {
    without_padding(a.as_text())
        .as_bytes()
        .cmp(without_padding(b.as_text()).as_bytes())
}

/// A name made of a text: as much of it as there is room for.
#[must_use]
pub fn to_name(text: &str) -> &str {
    first_bytes(text, NAME_BYTES - 1)
}

fn name_input(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    Ok(Datum::text(to_name(text)))
}

fn name_receive(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    let text = utf8(bytes)?;
    if text.len() >= NAME_BYTES {
        return Err(
            QueryError::new("42622", "identifier too long").with_detail(format!(
                "Identifier must be less than {NAME_BYTES} characters."
            )),
        );
    }
    Ok(Datum::text(text))
}

/// Reads a `"char"`: a byte, or `\ooo`.
#[must_use]
pub fn char_of(text: &str) -> u8 {
    let digit = |byte: &u8| (b'0'..=b'7').contains(byte).then(|| byte - b'0');
    match text.as_bytes() {
        [b'\\', a, b, c] => match (digit(a), digit(b), digit(c)) {
            (Some(a), Some(b), Some(c)) => (a << 6).wrapping_add(b << 3).wrapping_add(c),
            _ => b'\\',
        },
        bytes => bytes.first().copied().unwrap_or(0),
    }
}

/// Appends a `"char"`'s text form.
pub fn show_char(value: u8, out: &mut String) {
    match value {
        0 => {}
        1..=0x7f => out.push(char::from(value)),
        _ => {
            out.push('\\');
            for shift in [6, 3, 0] {
                out.push(char::from(b'0' + (value >> shift & 7)));
            }
        }
    }
}

fn char_input(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    Ok(Datum::Char(char_of(text)))
}

fn char_output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    show_char(value.as_char(), out);
    Ok(())
}

fn char_receive(_: &Call<'_>, bytes: &[u8], _: i32) -> Result<Datum> {
    match bytes {
        [byte, ..] => Ok(Datum::Char(*byte)),
        [] => Err(no_data()),
    }
}

fn char_send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.push(value.as_char());
    Ok(())
}

fn compare_char(a: &Datum, b: &Datum) -> Ordering {
    a.as_char().cmp(&b.as_char())
}

/// 08P01: a binary form that is too short.
#[cold]
#[must_use]
pub fn no_data() -> QueryError {
    QueryError::new("08P01", "no data left in message")
}

/// The length that a modifier stands for.
fn length_of(modifier: i32) -> Option<usize> {
    usize::try_from(modifier.checked_sub(MODIFIER_EXTRA)?).ok()
}

fn length_modifier(type_name: &str, modifiers: &[i32]) -> Result<i32> {
    let [length] = modifiers else {
        return Err(QueryError::invalid_parameter("invalid type modifier"));
    };
    if *length < 1 {
        return Err(QueryError::invalid_parameter(format!(
            "length for type {type_name} must be at least 1"
        )));
    }
    if *length > LENGTH_MAX {
        return Err(QueryError::invalid_parameter(format!(
            "length for type {type_name} cannot exceed {LENGTH_MAX}"
        )));
    }
    Ok(length + MODIFIER_EXTRA)
}

fn varchar_modifier_in(modifiers: &[i32]) -> Result<i32> {
    length_modifier("varchar", modifiers)
}

fn bpchar_modifier_in(modifiers: &[i32]) -> Result<i32> {
    length_modifier("char", modifiers)
}

fn modifier_out(modifier: i32) -> String {
    match length_of(modifier) {
        Some(length) if length > 0 => format!("({length})"),
        _ => String::new(),
    }
}

/// The text within so many characters. What is cut must be blanks, unless
/// the cast is explicit.
fn cut<'a>(text: &'a str, length: usize, explicit: bool, type_name: &str) -> Result<&'a str> {
    let kept = first_characters(text, length);
    let rest = text.get(kept.len()..).unwrap_or_default();
    if !explicit && rest.bytes().any(|byte| byte != b' ') {
        return Err(QueryError::new(
            "22001",
            format!("value too long for type {type_name}({length})"),
        ));
    }
    Ok(kept)
}

fn varchar_input(_: &Call<'_>, text: &str, modifier: i32) -> Result<Datum> {
    match length_of(modifier) {
        Some(length) => cut(text, length, false, "character varying").map(Datum::text),
        None => Ok(Datum::text(text)),
    }
}

fn varchar_receive(call: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    varchar_input(call, utf8(bytes)?, modifier)
}

/// A `varchar` within its length.
///
/// # Errors
/// 22001 where it is too long.
pub fn varchar_fit(_: &Call<'_>, value: &Datum, modifier: i32, explicit: bool) -> Result<Datum> {
    let Some(length) = length_of(modifier) else {
        return Ok(value.clone());
    };
    let text = value.as_text();
    let kept = cut(text, length, explicit, "character varying")?;
    if kept.len() == text.len() {
        return Ok(value.clone());
    }
    Ok(Datum::text(kept))
}

fn padded(call: &Call<'_>, text: &str, length: usize, explicit: bool) -> Result<Datum> {
    let kept = cut(text, length, explicit, "character")?;
    let missing = length.saturating_sub(kept.chars().count());
    if missing == 0 {
        return Ok(Datum::text(kept));
    }
    call.room(kept.len() + missing)?;
    let mut made = String::with_capacity(kept.len() + missing);
    made.push_str(kept);
    made.extend(std::iter::repeat_n(' ', missing));
    Ok(Datum::text(made))
}

fn bpchar_input(call: &Call<'_>, text: &str, modifier: i32) -> Result<Datum> {
    match length_of(modifier) {
        Some(length) => padded(call, text, length, false),
        None => Ok(Datum::text(text)),
    }
}

fn bpchar_receive(call: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    bpchar_input(call, utf8(bytes)?, modifier)
}

/// A `bpchar` of its length: cut, or padded with blanks.
///
/// # Errors
/// 22001 where it is too long.
pub fn bpchar_fit(call: &Call<'_>, value: &Datum, modifier: i32, explicit: bool) -> Result<Datum> {
    match length_of(modifier) {
        Some(length) => padded(call, value.as_text(), length, explicit),
        None => Ok(value.clone()),
    }
}
