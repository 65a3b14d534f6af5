//! `record` and composite types.

use std::cell::Cell;
use std::cmp::Ordering;

use super::array::{Equality, Message};
use super::{Type, ids};
use crate::call::{Call, SMALL_VALUE_BYTES};
use crate::datum::{Datum, Record};
use crate::error::{QueryError, Result};

/// The types of this file.
pub const TYPES: &[Type] = &[Type {
    category: b'P',
    array: ids::RECORD_ARRAY,
    input,
    output,
    receive,
    send,
    ..Type::new(ids::RECORD, "record", "record")
}];

/// How deep rows may lie in rows.
const DEPTH_MAX: u32 = 500;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// One row within another; leaving it is counted when this is dropped.
pub(crate) struct Level;

impl Level {
    /// Enters a row.
    pub(crate) fn enter() -> Result<Self> {
        DEPTH.with(|depth| {
            if depth.get() >= DEPTH_MAX {
                return Err(QueryError::new("54001", "stack depth limit exceeded"));
            }
            depth.set(depth.get() + 1);
            Ok(Self)
        })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get().saturating_sub(1)));
    }
}

#[cold]
fn anonymous() -> QueryError {
    QueryError::unsupported(
        "input of anonymous composite types is not implemented",
        "Name a composite type.",
    )
}

fn input(_: &Call<'_>, _: &str, _: i32) -> Result<Datum> {
    Err(anonymous())
}

fn receive(_: &Call<'_>, _: &[u8], _: i32) -> Result<Datum> {
    Err(anonymous())
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Reads a row's text form, `(a,"b c",)`, whose columns have these types and modifiers.
///
/// # Errors
/// 22P02 where it is no such row, and those of the columns' types.
pub fn read(call: &Call<'_>, text: &str, columns: &[(u32, i32)]) -> Result<Vec<Datum>> {
    let malformed = |detail: &str| {
        QueryError::new("22P02", format!("malformed record literal: \"{text}\""))
            .with_detail(detail)
    };
    let _level = Level::enter()?;
    let bytes = text.as_bytes();
    let at = |place: usize| bytes.get(place).copied().unwrap_or(0);
    let mut place = 0;
    while is_space(at(place)) {
        place += 1;
    }
    if at(place) != b'(' {
        return Err(malformed("Missing left parenthesis."));
    }
    place += 1;
    let mut values = Vec::with_capacity(columns.len());
    let mut column = Vec::new();
    for (number, (oid, modifier)) in columns.iter().enumerate() {
        if number > 0 {
            if at(place) != b',' {
                return Err(malformed("Too few columns."));
            }
            place += 1;
        }
        if matches!(at(place), b',' | b')') {
            values.push(Datum::Null);
            continue;
        }
        column.clear();
        let mut quoted = false;
        while quoted || !matches!(at(place), b',' | b')') {
            let byte = at(place);
            place += 1;
            match byte {
                0 => return Err(malformed("Unexpected end of input.")),
                b'\\' => {
                    if at(place) == 0 {
                        return Err(malformed("Unexpected end of input."));
                    }
                    column.push(at(place));
                    place += 1;
                }
                b'"' if !quoted => quoted = true,
                b'"' if at(place) == b'"' => {
                    column.push(b'"');
                    place += 1;
                }
                b'"' => quoted = false,
                byte => column.push(byte),
            }
        }
        let column =
            std::str::from_utf8(&column).map_err(|_| malformed("Unexpected end of input."))?;
        values.push(super::input(call, *oid, column, *modifier)?);
    }
    if at(place) != b')' {
        return Err(malformed("Too many columns."));
    }
    place += 1;
    if bytes
        .get(place..)
        .unwrap_or_default()
        .iter()
        .any(|byte| !is_space(*byte))
    {
        return Err(malformed("Junk after right parenthesis."));
    }
    Ok(values)
}

/// Reads a row's binary form, whose columns have these types and modifiers.
///
/// # Errors
/// 42804 and 22P03 where it is no such row, and those of the columns' types.
pub fn read_binary(call: &Call<'_>, bytes: &[u8], columns: &[(u32, i32)]) -> Result<Vec<Datum>> {
    let _level = Level::enter()?;
    let mut message = Message::new(bytes);
    let count = message.int4()?;
    if usize::try_from(count) != Ok(columns.len()) {
        return Err(QueryError::new(
            "42804",
            format!(
                "wrong number of columns: {count}, expected {}",
                columns.len()
            ),
        ));
    }
    let mut values = Vec::with_capacity(columns.len());
    for (number, (oid, modifier)) in columns.iter().enumerate() {
        let found = message.oid()?;
        if found != *oid {
            return Err(QueryError::new(
                "42804",
                format!(
                    "binary data has type {found} ({}) instead of expected {oid} ({}) in record column {}",
                    super::format_type(found, -1),
                    super::format_type(*oid, -1),
                    number + 1
                ),
            ));
        }
        values.push(match message.value()? {
            None => Datum::Null,
            Some(bytes) => super::receive(call, *oid, bytes, *modifier)?,
        });
    }
    message.end()?;
    Ok(values)
}

/// The type of a row's column.
fn type_of(record: &Record, column: usize) -> u32 {
    record.types.get(column).copied().unwrap_or(ids::TEXT)
}

/// Whether a column's text can't stand in a row as it is.
fn needs_quotes(text: &str) -> bool {
    text.is_empty()
        || text
            .bytes()
            .any(|byte| matches!(byte, b'"' | b'\\' | b'(' | b')' | b',') || is_space(byte))
}

pub(super) fn output(call: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    let record = value.as_record();
    let _level = Level::enter()?;
    out.push('(');
    for (number, value) in record.values.iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        if value.is_null() {
            continue;
        }
        let start = out.len();
        super::output(call, type_of(record, number), value, out)?;
        if needs_quotes(&out[start..]) {
            let text = out.split_off(start);
            if text.len() > SMALL_VALUE_BYTES {
                // Quotes double with each row around them.
                call.environment.check_interrupted()?;
                call.room(text.len().saturating_mul(2))?;
            }
            out.push('"');
            for char in text.chars() {
                if matches!(char, '"' | '\\') {
                    out.push(char);
                }
                out.push(char);
            }
            out.push('"');
        }
    }
    out.push(')');
    Ok(())
}

pub(super) fn send(call: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let record = value.as_record();
    let _level = Level::enter()?;
    let count = u32::try_from(record.values.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&count.to_be_bytes());
    for (number, value) in record.values.iter().enumerate() {
        let oid = type_of(record, number);
        out.extend_from_slice(&oid.to_be_bytes());
        if value.is_null() {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
        } else {
            super::array::send_value(out, |out| super::send(call, oid, value, out))?;
        }
    }
    Ok(())
}

#[cold]
fn dissimilar(a: u32, b: u32, column: usize) -> QueryError {
    QueryError::new(
        "42804",
        format!(
            "cannot compare dissimilar column types {} and {} at record column {}",
            super::format_type(a, -1),
            super::format_type(b, -1),
            column + 1
        ),
    )
}

#[cold]
fn different_lengths() -> QueryError {
    QueryError::new(
        "42804",
        "cannot compare record types with different numbers of columns",
    )
}

/// The order of two rows: by their first columns that differ; NULL is the largest.
///
/// # Errors
/// 42804 where the columns' types differ, 42883 where one has no order.
pub fn compare(a: &Datum, b: &Datum) -> Result<Ordering> {
    let (a, b) = (a.as_record(), b.as_record());
    let _level = Level::enter()?;
    for (number, (left, right)) in a.values.iter().zip(&b.values).enumerate() {
        let oid = type_of(a, number);
        if oid != type_of(b, number) {
            return Err(dissimilar(oid, type_of(b, number), number));
        }
        let order = match (left, right) {
            (Datum::Null, Datum::Null) => has_order(oid).map(|()| Ordering::Equal)?,
            (Datum::Null, _) => has_order(oid).map(|()| Ordering::Greater)?,
            (_, Datum::Null) => has_order(oid).map(|()| Ordering::Less)?,
            (left, right) => super::compare(oid, left, right)?,
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    if a.values.len() != b.values.len() {
        return Err(different_lengths());
    }
    Ok(Ordering::Equal)
}

/// The order of two rows by their columns' bytes, in the binary form of the protocol.
///
/// # Errors
/// 42804 where the columns' types differ, and those of the binary forms.
pub fn compare_images(call: &Call<'_>, a: &Datum, b: &Datum) -> Result<Ordering> {
    let (a, b) = (a.as_record(), b.as_record());
    let _level = Level::enter()?;
    let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
    for (number, (left, right)) in a.values.iter().zip(&b.values).enumerate() {
        let oid = type_of(a, number);
        if oid != type_of(b, number) {
            return Err(dissimilar(oid, type_of(b, number), number));
        }
        let order = match (left, right) {
            (Datum::Null, Datum::Null) => Ordering::Equal,
            (Datum::Null, _) => Ordering::Greater,
            (_, Datum::Null) => Ordering::Less,
            (left, right) => {
                of_left.clear();
                of_right.clear();
                super::send(call, oid, left, &mut of_left)?;
                super::send(call, oid, right, &mut of_right)?;
                of_left.cmp(&of_right)
            }
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    if a.values.len() != b.values.len() {
        return Err(different_lengths());
    }
    Ok(Ordering::Equal)
}

/// Refuses a type without an order.
fn has_order(oid: u32) -> Result<()> {
    match super::by_oid(oid) {
        Some(row) if row.compare.is_none() && row.oid != ids::RECORD => {
            Err(super::without_order(oid))
        }
        _ => Ok(()),
    }
}

/// Whether two rows are equal, column by column; NULLs are equal to each other.
///
/// # Errors
/// 42804 where the columns' types differ, 42883 where one can't be compared.
pub fn equal(a: &Datum, b: &Datum) -> Result<bool> {
    let (a, b) = (a.as_record(), b.as_record());
    let _level = Level::enter()?;
    for (number, (left, right)) in a.values.iter().zip(&b.values).enumerate() {
        let oid = type_of(a, number);
        if oid != type_of(b, number) {
            return Err(dissimilar(oid, type_of(b, number), number));
        }
        let equality = Equality::of(oid)?;
        let same = match (left, right) {
            (Datum::Null, Datum::Null) => true,
            (Datum::Null, _) | (_, Datum::Null) => false,
            (left, right) => equality.test(left, right)?,
        };
        if !same {
            return Ok(false);
        }
    }
    if a.values.len() != b.values.len() {
        return Err(different_lengths());
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{DEPTH_MAX, ids};
    use crate::call::{Call, Plain};
    use crate::datum::{Datum, Record};
    use crate::types::{compare, to_text};

    /// Rows within rows.
    fn nested(depth: u32) -> Datum {
        (0..depth).fold(Datum::Null, |value, _| {
            Datum::Record(Arc::new(Record {
                modifiers: None,
                types: Arc::new([ids::RECORD]),
                names: None,
                values: vec![value],
            }))
        })
    }

    #[test]
    fn rows_in_rows_end_somewhere() {
        let environment = Plain::default();
        let call = Call::new(&environment, &[], ids::TEXT);
        let value = nested(DEPTH_MAX);
        assert_eq!(
            compare(ids::RECORD, &value, &value),
            Ok(std::cmp::Ordering::Equal)
        );
        let value = nested(DEPTH_MAX + 1);
        let error = to_text(&call, ids::RECORD, &value).map_err(|error| error.sqlstate);
        assert_eq!(error, Err("54001"));
        let error = compare(ids::RECORD, &value, &value).map_err(|error| error.sqlstate);
        assert_eq!(error, Err("54001"));
    }
}
