//! `int2vector` and `oidvector`: numbers with spaces between them, as arrays that begin at 0.

use std::cmp::Ordering;
use std::sync::Arc;

use super::super::array::Array;
use super::super::ids;
use super::super::integer::{self, out_of_range};
use super::super::numeric::is_space;
use super::{parse_prefix, unsigned};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

fn vector(element: u32, elements: Vec<Datum>) -> Datum {
    let length = i32::try_from(elements.len()).unwrap_or(i32::MAX);
    Datum::Array(Arc::new(Array {
        element,
        dimensions: vec![(length, 0)],
        elements,
    }))
}

fn skip_spaces(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii() && is_space(c as u8))
}

pub(super) fn input_int2(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    let mut elements = Vec::new();
    let mut rest = skip_spaces(text);
    while !rest.is_empty() {
        let invalid = || QueryError::invalid_text("smallint", rest);
        let (size, end, overflow) = unsigned(rest.as_bytes(), 10).ok_or_else(invalid)?;
        let negative = rest.starts_with('-');
        let number = i16::try_from(size.cast_signed())
            .ok()
            .filter(|n| !overflow && (*n == 0 || (*n < 0) == negative));
        let number = number.ok_or_else(|| out_of_range(rest, "smallint"))?;
        if !matches!(rest.as_bytes().get(end), None | Some(b' ')) {
            return Err(invalid());
        }
        elements.push(Datum::Int2(number));
        rest = skip_spaces(&rest[end..]);
    }
    Ok(vector(ids::INT2, elements))
}

pub(super) fn input_oid(_: &Call<'_>, text: &str, _: i32) -> Result<Datum> {
    let mut elements = Vec::new();
    let mut rest = skip_spaces(text);
    while !rest.is_empty() {
        let (oid, end) = parse_prefix(rest)?;
        elements.push(Datum::Oid(oid));
        rest = skip_spaces(&rest[end..]);
    }
    Ok(vector(ids::OID, elements))
}

pub(super) fn output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    for (at, element) in value.as_array().elements.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        match element {
            Datum::Int2(n) => integer::write((*n).into(), out),
            Datum::Oid(n) => integer::write((*n).into(), out),
            _ => {}
        }
    }
    Ok(())
}

/// The order: by length, then by the numbers.
#[must_use]
pub fn compare(a: &Array, b: &Array) -> Ordering {
    let by_length = a.elements.len().cmp(&b.elements.len());
    by_length.then_with(|| compare_elements(a, b))
}

/// The order of `int2vector`, which is that of arrays.
pub fn compare_elements(a: &Array, b: &Array) -> Ordering {
    let number = |element: &Datum| match element {
        Datum::Int2(n) => i64::from(*n),
        Datum::Oid(n) => i64::from(*n),
        _ => -1,
    };
    a.elements
        .iter()
        .map(number)
        .cmp(b.elements.iter().map(number))
}

pub(super) fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let array = value.as_array();
    let length = u32::try_from(array.elements.len()).unwrap_or(u32::MAX);
    for field in [1, 0, array.element, length, 0] {
        out.extend_from_slice(&field.to_be_bytes());
    }
    for element in &array.elements {
        match element {
            Datum::Int2(n) => {
                out.extend_from_slice(&2u32.to_be_bytes());
                out.extend_from_slice(&n.to_be_bytes());
            }
            Datum::Oid(n) => {
                out.extend_from_slice(&4u32.to_be_bytes());
                out.extend_from_slice(&n.to_be_bytes());
            }
            _ => out.extend_from_slice(&u32::MAX.to_be_bytes()),
        }
    }
    Ok(())
}

pub(super) fn receive(bytes: &[u8], element: u32) -> Result<Datum> {
    let invalid = || QueryError::new("22P03", "invalid vector of numbers in external form");
    let mut rest = bytes;
    let field = |rest: &mut &[u8]| -> Result<u32> {
        let (first, more) = rest.split_first_chunk().ok_or_else(invalid)?;
        *rest = more;
        Ok(u32::from_be_bytes(*first))
    };
    let (dimensions, flags, of) = (field(&mut rest)?, field(&mut rest)?, field(&mut rest)?);
    if flags != 0 || of != element {
        return Err(invalid());
    }
    if dimensions == 0 {
        return Ok(vector(element, Vec::new()));
    }
    let (length, bound) = (field(&mut rest)?, field(&mut rest)?);
    if dimensions != 1 || bound != 0 {
        return Err(invalid());
    }
    let mut elements = Vec::new();
    for _ in 0..length {
        let size = field(&mut rest)?;
        elements.push(match (size, element) {
            (2, ids::INT2) => {
                let (first, more) = rest.split_first_chunk().ok_or_else(invalid)?;
                rest = more;
                Datum::Int2(i16::from_be_bytes(*first))
            }
            (4, ids::OID) => Datum::Oid(field(&mut rest)?),
            _ => return Err(invalid()),
        });
    }
    if rest.is_empty() {
        Ok(vector(element, elements))
    } else {
        Err(invalid())
    }
}
