//! Lengths of texts, parts of them and places in them.

use memchr::memmem;

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::array::Array;
use crate::types::ids;
use crate::types::text::without_padding;

pub(super) fn number(value: usize) -> Result<Datum> {
    Ok(Datum::Int4(i32::try_from(value).unwrap_or(i32::MAX)))
}

/// How many characters.
pub(in crate::functions) fn characters(text: &str) -> usize {
    text.chars().count()
}

pub(super) fn length(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    number(characters(a[0].as_text()))
}

pub(super) fn bpchar_length(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    number(characters(without_padding(a[0].as_text())))
}

pub(super) fn octet_length(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    number(a[0].as_text().len())
}

pub(super) fn bit_length(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    i32::try_from(a[0].as_text().len())
        .ok()
        .and_then(|bytes| bytes.checked_mul(8))
        .map_or_else(
            || Err(QueryError::out_of_range("integer")),
            |bits| Ok(Datum::Int4(bits)),
        )
}

/// Where the character of this number is, counted from 0, or the text's end.
pub(super) fn offset(text: &str, characters: usize) -> usize {
    if characters == 0 {
        return 0;
    }
    if characters >= text.len() {
        return text.len();
    }
    text.char_indices()
        .nth(characters)
        .map_or(text.len(), |(at, _)| at)
}

/// So many characters from the one of this number, counted from 0.
pub(super) fn slice(text: &str, first: usize, count: Option<usize>) -> &str {
    let rest = text.get(offset(text, first)..).unwrap_or_default();
    match count {
        Some(count) => rest.get(..offset(rest, count)).unwrap_or(rest),
        None => rest,
    }
}

/// 22011
#[cold]
pub(in crate::functions) fn negative_length() -> QueryError {
    QueryError::new("22011", "negative substring length not allowed")
}

/// The place after a part that begins at `start` and has this length, both
/// counted from 1; `None` for the end.
pub(in crate::functions) fn end_of_part(start: i32, length: Option<i32>) -> Result<Option<i32>> {
    match length {
        None => Ok(None),
        Some(length) if length < 0 => Err(negative_length()),
        Some(length) => Ok(start.checked_add(length)),
    }
}

/// The part of a text from `start`, counted from 1.
fn part(text: &str, start: i32, length: Option<i32>) -> Result<&str> {
    let end = end_of_part(start, length)?;
    let first = start.max(1);
    let count = end.map(|end| usize::try_from(i64::from(end) - i64::from(first)).unwrap_or(0));
    let before = usize::try_from(first - 1).unwrap_or(0);
    Ok(slice(text, before, count))
}

/// A part of the first argument: that itself, if it is all.
pub(super) fn same_or(a: &Datum, part: &str) -> Result<Datum> {
    if part.len() == a.as_text().len() {
        return Ok(a.clone());
    }
    Ok(Datum::text(part))
}

pub(super) fn substring(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let length = a.get(2).map(Datum::as_int4);
    same_or(&a[0], part(a[0].as_text(), a[1].as_int4(), length)?)
}

pub(super) fn overlay(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (whole, new, start) = (a[0].as_text(), a[1].as_text(), a[2].as_int4());
    let length = match a.get(3) {
        Some(length) => length.as_int4(),
        None => i32::try_from(characters(new)).unwrap_or(i32::MAX),
    };
    if start <= 0 {
        return Err(negative_length());
    }
    let after = start
        .checked_add(length)
        .ok_or_else(|| QueryError::out_of_range("integer"))?;
    let (before, after) = (part(whole, 1, Some(start - 1))?, part(whole, after, None)?);
    call.room(before.len() + new.len() + after.len())?;
    Ok(Datum::text([before, new, after].concat()))
}

pub(super) fn left(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (text, count) = (a[0].as_text(), a[1].as_int4());
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let wanted = if count < 0 {
        characters(text).saturating_sub(wanted)
    } else {
        wanted
    };
    same_or(&a[0], slice(text, 0, Some(wanted)))
}

pub(super) fn right(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (text, count) = (a[0].as_text(), a[1].as_int4());
    let left_out = match count {
        // The least number has no opposite, and leaves nothing out.
        ..0 => count
            .checked_neg()
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(0),
        _ => characters(text).saturating_sub(usize::try_from(count).unwrap_or(0)),
    };
    same_or(&a[0], slice(text, left_out, None))
}

pub(super) fn position(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (whole, sought) = (a[0].as_text(), a[1].as_text());
    match memmem::find(whole.as_bytes(), sought.as_bytes()) {
        Some(at) => number(characters(whole.get(..at).unwrap_or_default()) + 1),
        None => Ok(Datum::Int4(0)),
    }
}

pub(super) fn starts_with(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(a[0].as_text().starts_with(a[1].as_text())))
}

/// What is left of a text when the characters of a set are taken from its ends.
fn trimmed<'a>(text: &'a str, set: &str, left: bool, right: bool) -> &'a str {
    let mut characters = set.chars();
    match (characters.next(), characters.next()) {
        (None, _) => text,
        (Some(only), None) => {
            let text = if left {
                text.trim_start_matches(only)
            } else {
                text
            };
            if right {
                text.trim_end_matches(only)
            } else {
                text
            }
        }
        _ => {
            let within = |c: char| set.contains(c);
            let text = if left {
                text.trim_start_matches(within)
            } else {
                text
            };
            if right {
                text.trim_end_matches(within)
            } else {
                text
            }
        }
    }
}

fn trim(a: &[Datum], left: bool, right: bool) -> Result<Datum> {
    let set = a.get(1).map_or(" ", Datum::as_text);
    same_or(&a[0], trimmed(a[0].as_text(), set, left, right))
}

pub(super) fn btrim(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    trim(a, true, true)
}

pub(super) fn ltrim(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    trim(a, true, false)
}

pub(super) fn rtrim(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    trim(a, false, true)
}

pub(super) fn split_part(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (text, separator, field) = (a[0].as_text(), a[1].as_text(), a[2].as_int4());
    if field == 0 {
        return Err(QueryError::invalid_parameter(
            "field position must not be zero",
        ));
    }
    if separator.is_empty() {
        return Ok(if field == 1 || field == -1 {
            a[0].clone()
        } else {
            Datum::text("")
        });
    }
    let at = usize::try_from(field.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let found = if field > 0 {
        text.split(separator).nth(at)
    } else {
        // Separators are found from the left, even where fields are counted from the right.
        let count = memmem::find_iter(text.as_bytes(), separator.as_bytes()).count() + 1;
        count
            .checked_sub(at + 1)
            .and_then(|at| text.split(separator).nth(at))
    };
    same_or(&a[0], found.unwrap_or_default())
}

/// The fields of a text; `None` for NULL.
fn fields(call: &Call<'_>, a: &[Datum]) -> Result<Option<Vec<Datum>>> {
    let Datum::Text(text) = &a[0] else {
        return Ok(None);
    };
    let null = match a.get(2) {
        Some(Datum::Text(null)) => Some(&**null),
        _ => None,
    };
    let field = |field: &str| match null {
        Some(null) if null == field => Datum::Null,
        _ => Datum::text(field),
    };
    if text.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut found = Vec::new();
    let mut add = |part: &str| {
        if found.len() % 4096 == 4095 {
            call.environment.check_interrupted()?;
            call.room((found.len() + 1) * size_of::<Datum>())?;
        }
        found.push(field(part));
        Ok(())
    };
    match &a[1] {
        Datum::Text(separator) if separator.is_empty() => add(text)?,
        Datum::Text(separator) => text.split(&**separator).try_for_each(&mut add)?,
        _ => {
            let mut buffer = [0; 4];
            text.chars()
                .try_for_each(|c| add(c.encode_utf8(&mut buffer)))?;
        }
    }
    Ok(Some(found))
}

pub(super) fn string_to_array(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(match fields(call, a)? {
        Some(fields) => Datum::Array(Array::of(ids::TEXT, fields).into()),
        None => Datum::Null,
    })
}

pub(super) fn string_to_table(call: &Call<'_>, a: &[Datum]) -> Result<Vec<Datum>> {
    Ok(fields(call, a)?.unwrap_or_default())
}
