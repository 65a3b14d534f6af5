//! Texts made of others: joined, repeated, filled, replaced, translated.

use std::collections::HashMap;

use memchr::memmem;
use unicode_normalization::UnicodeNormalization;

use super::part::{characters, slice};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::array::Array;
use crate::types::{self, ids};

pub(super) fn textcat(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (x, y) = (a[0].as_text(), a[1].as_text());
    call.room(x.len() + y.len())?;
    let mut joined = String::with_capacity(x.len() + y.len());
    joined.push_str(x);
    joined.push_str(y);
    Ok(Datum::text(joined))
}

/// An argument's text, by the type that it has in this call.
fn shown(call: &Call<'_>, a: &[Datum], at: usize, out: &mut String) -> Result<()> {
    let oid = call.arguments.get(at).copied().unwrap_or(ids::TEXT);
    match &a[at] {
        // A cast from bool gives a word where its text form is a letter.
        Datum::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        // So does one from bpchar leave its padding.
        Datum::Text(text) if oid == ids::BPCHAR => {
            out.push_str(types::text::without_padding(text));
        }
        value => types::output(call, oid, value, out)?,
    }
    Ok(())
}

pub(super) fn cat_any(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let mut joined = String::new();
    for at in [0, 1] {
        if let Datum::Text(text) = &a[at] {
            call.room(joined.len() + text.len())?;
        }
        shown(call, a, at, &mut joined)?;
    }
    call.room(joined.len())?;
    Ok(Datum::text(joined))
}

/// Whether the last argument is an array marked VARIADIC: such a call names
/// the array's type `anyarray`.
pub(in crate::functions) fn is_variadic(call: &Call<'_>) -> bool {
    call.arguments.last() == Some(&ids::ANYARRAY)
}

/// The values' texts with a separator between them; NULLs are left out, or
/// have a text of their own.
fn join_array(
    call: &Call<'_>,
    array: &Array,
    separator: &str,
    null: Option<&str>,
) -> Result<Datum> {
    let mut joined = String::new();
    let mut first = true;
    for (at, element) in array.elements.iter().enumerate() {
        if at % 4096 == 4095 {
            call.environment.check_interrupted()?;
        }
        if element.is_null() && null.is_none() {
            continue;
        }
        if !first {
            joined.push_str(separator);
        }
        first = false;
        match element {
            Datum::Null => joined.push_str(null.unwrap_or_default()),
            Datum::Text(text) => joined.push_str(text),
            value => types::output(call, array.element, value, &mut joined)?,
        }
        call.room(joined.len())?;
    }
    Ok(Datum::text(joined))
}

fn join(call: &Call<'_>, a: &[Datum], from: usize, separator: &str) -> Result<Datum> {
    if is_variadic(call) {
        return match a.last() {
            Some(Datum::Array(array)) => join_array(call, array, separator, None),
            _ => Ok(Datum::Null),
        };
    }
    let mut joined = String::new();
    let mut first = true;
    for (at, value) in a.iter().enumerate().skip(from) {
        if value.is_null() {
            continue;
        }
        if !first {
            joined.push_str(separator);
        }
        first = false;
        let oid = call.arguments.get(at).copied().unwrap_or(ids::TEXT);
        types::output(call, oid, value, &mut joined)?;
        call.room(joined.len())?;
    }
    Ok(Datum::text(joined))
}

pub(super) fn concat(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    join(call, a, 0, "")
}

pub(super) fn concat_ws(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    match &a[0] {
        Datum::Text(separator) => join(call, a, 1, separator),
        _ => Ok(Datum::Null),
    }
}

pub(super) fn array_to_string(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (Datum::Array(array), Datum::Text(separator)) = (&a[0], &a[1]) else {
        return Ok(Datum::Null);
    };
    let null = match a.get(2) {
        Some(Datum::Text(null)) => Some(&**null),
        _ => None,
    };
    join_array(call, array, separator, null)
}

pub(super) fn repeat(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let text = a[0].as_text();
    let count = usize::try_from(a[1].as_int4()).unwrap_or(0);
    call.room(text.len().saturating_mul(count))?;
    Ok(Datum::text(text.repeat(count)))
}

/// The text, cut to its length in characters, and what fills it up.
fn filled(call: &Call<'_>, a: &[Datum], left: bool) -> Result<Datum> {
    let text = a[0].as_text();
    let fill = a.get(2).map_or(" ", Datum::as_text);
    let length = usize::try_from(a[1].as_int4()).unwrap_or(0);
    let kept = slice(text, 0, Some(length));
    let missing = if fill.is_empty() {
        0
    } else {
        length.saturating_sub(characters(kept))
    };
    // PostgreSQL asks for as much as the widest characters would take.
    let most = if fill.is_empty() {
        characters(kept)
    } else {
        length
    };
    if most.saturating_mul(4).saturating_add(4) > crate::call::VALUE_BYTES_MAX {
        return Err(QueryError::new("54000", "requested length too large"));
    }
    if missing == 0 {
        return super::part::same_or(&a[0], kept);
    }
    let widest = fill.chars().map(char::len_utf8).max().unwrap_or(0);
    call.room(kept.len() + missing.saturating_mul(widest))?;
    let mut made = String::with_capacity(kept.len() + missing);
    if !left {
        made.push_str(kept);
    }
    if widest == 1 {
        let whole = missing / fill.len();
        for _ in 0..whole {
            made.push_str(fill);
        }
        made.push_str(slice(fill, 0, Some(missing % fill.len())));
    } else {
        made.extend(fill.chars().cycle().take(missing));
    }
    if left {
        made.push_str(kept);
    }
    Ok(Datum::text(made))
}

pub(super) fn lpad(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    filled(call, a, true)
}

pub(super) fn rpad(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    filled(call, a, false)
}

pub(super) fn replace(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (text, from, to) = (a[0].as_text(), a[1].as_text(), a[2].as_text());
    if from.is_empty() || text.len() < from.len() {
        return Ok(a[0].clone());
    }
    let finder = memmem::Finder::new(from.as_bytes());
    let count = finder.find_iter(text.as_bytes()).count();
    if count == 0 {
        return Ok(a[0].clone());
    }
    let length = (text.len() - count * from.len()).saturating_add(count.saturating_mul(to.len()));
    call.room(length)?;
    let mut made = String::with_capacity(length);
    let mut done = 0;
    for at in finder.find_iter(text.as_bytes()) {
        made.push_str(text.get(done..at).unwrap_or_default());
        made.push_str(to);
        done = at + from.len();
    }
    made.push_str(text.get(done..).unwrap_or_default());
    Ok(Datum::text(made))
}

pub(super) fn translate(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let text = a[0].as_text();
    let mut to = a[2].as_text().chars();
    let mut map = HashMap::new();
    for from in a[1].as_text().chars() {
        let to = to.next();
        map.entry(from).or_insert(to);
    }
    call.room(text.len().saturating_mul(4))?;
    let translated = text.chars().filter_map(|c| match map.get(&c) {
        Some(to) => *to,
        None => Some(c),
    });
    Ok(Datum::text(translated.collect::<String>()))
}

pub(super) fn reverse(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let text = a[0].as_text();
    call.room(text.len())?;
    Ok(Datum::text(text.chars().rev().collect::<String>()))
}

pub(super) fn chr(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let limit = |message: String| Err(QueryError::new("54000", message));
    let number = a[0].as_int4();
    match u32::try_from(number) {
        Err(_) => Err(QueryError::invalid_parameter(
            "character number must be positive",
        )),
        Ok(0) => limit("null character not permitted".to_owned()),
        Ok(number @ 0x11_0000..) => limit(format!(
            "requested character too large for encoding: {number}"
        )),
        Ok(number) => match char::from_u32(number) {
            Some(c) => Ok(Datum::text(c.encode_utf8(&mut [0; 4]) as &str)),
            None => limit(format!(
                "requested character not valid for encoding: {number}"
            )),
        },
    }
}

pub(super) fn ascii(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let first = a[0].as_text().chars().next().map_or(0, u32::from);
    Ok(Datum::Int4(first.cast_signed()))
}

/// What a normal form does with a text.
enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

fn form(name: &str) -> Result<Form> {
    match &*name.to_ascii_uppercase() {
        "NFC" => Ok(Form::Nfc),
        "NFD" => Ok(Form::Nfd),
        "NFKC" => Ok(Form::Nfkc),
        "NFKD" => Ok(Form::Nfkd),
        _ => Err(QueryError::invalid_parameter(format!(
            "invalid normalization form: {name}"
        ))),
    }
}

pub(super) fn normalize(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (text, form) = (a[0].as_text(), form(a[1].as_text())?);
    if text.is_ascii() {
        return Ok(a[0].clone());
    }
    // The longest decomposition has eighteen characters.
    call.room(text.len())?;
    let normal: String = match form {
        Form::Nfc => text.nfc().collect(),
        Form::Nfd => text.nfd().collect(),
        Form::Nfkc => text.nfkc().collect(),
        Form::Nfkd => text.nfkd().collect(),
    };
    Ok(Datum::text(normal))
}

pub(super) fn is_normalized(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (text, form) = (a[0].as_text(), form(a[1].as_text())?);
    let normal = text.is_ascii()
        || match form {
            Form::Nfc => text.nfc().eq(text.chars()),
            Form::Nfd => text.nfd().eq(text.chars()),
            Form::Nfkc => text.nfkc().eq(text.chars()),
            Form::Nfkd => text.nfkd().eq(text.chars()),
        };
    Ok(Datum::Bool(normal))
}

#[cold]
fn invalid_pair() -> QueryError {
    QueryError::new("42601", "invalid Unicode surrogate pair")
}

/// A Unicode escape at a text's beginning: the character's number and how
/// long the escape is.
fn escape(text: &str) -> Option<(u32, usize)> {
    let forms: [(&str, usize); 4] = [("\\", 4), ("\\u", 4), ("\\+", 6), ("\\U", 8)];
    forms.into_iter().find_map(|(start, digits)| {
        let rest = text.strip_prefix(start)?.get(..digits)?;
        if !rest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        Some((u32::from_str_radix(rest, 16).ok()?, start.len() + digits))
    })
}

pub(super) fn unistr(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let mut rest = a[0].as_text();
    call.room(rest.len())?;
    let mut made = String::with_capacity(rest.len());
    let mut first_half = None;
    while let Some(c) = rest.chars().next() {
        if c != '\\' || rest.starts_with("\\\\") {
            if first_half.is_some() {
                return Err(invalid_pair());
            }
            made.push(c);
            let length = if c == '\\' { 2 } else { c.len_utf8() };
            rest = rest.get(length..).unwrap_or_default();
            continue;
        }
        let Some((number, length)) = escape(rest) else {
            return Err(QueryError::new("42601", "invalid Unicode escape")
                .with_hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX."));
        };
        if number == 0 || number > 0x10_ffff {
            return Err(QueryError::invalid_parameter(format!(
                "invalid Unicode code point: {number:04X}"
            )));
        }
        match (first_half.take(), number) {
            (Some(high), 0xdc00..=0xdfff) => {
                let both = 0x1_0000_u32 + ((high & 0x3ff) << 10) + (number & 0x3ff);
                made.push(char::from_u32(both).ok_or_else(invalid_pair)?);
            }
            (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(invalid_pair()),
            (None, 0xd800..=0xdbff) => first_half = Some(number),
            (None, _) => made.push(char::from_u32(number).ok_or_else(invalid_pair)?),
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    if first_half.is_some() {
        return Err(invalid_pair());
    }
    Ok(Datum::text(made))
}
