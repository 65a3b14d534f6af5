//! The binary form of arrays, and a reader of binary forms.

use super::{Array, DIMENSIONS_MAX, check_bounds, count, room, too_many_dimensions};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::domain::is_domain;
use crate::types::{Element, format_type, ids};

/// Reads a binary form from its beginning on.
pub(in crate::types) struct Message<'a> {
    rest: &'a [u8],
}

impl<'a> Message<'a> {
    pub(in crate::types) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(in crate::types) fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.rest.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(*bytes)
            }
            None if self.rest.is_empty() && N == 1 => {
                Err(QueryError::new("08P01", "no data left in message"))
            }
            None => Err(QueryError::new(
                "08P01",
                "insufficient data left in message",
            )),
        }
    }

    pub(in crate::types) fn byte(&mut self) -> Result<u8> {
        self.bytes::<1>().map(|[byte]| byte)
    }

    pub(in crate::types) fn int4(&mut self) -> Result<i32> {
        self.bytes().map(i32::from_be_bytes)
    }

    pub(in crate::types) fn oid(&mut self) -> Result<u32> {
        self.bytes().map(u32::from_be_bytes)
    }

    /// A length and as many bytes; `None` for NULL.
    pub(in crate::types) fn value(&mut self) -> Result<Option<&'a [u8]>> {
        let length = self.int4()?;
        if length == -1 {
            return Ok(None);
        }
        match usize::try_from(length) {
            Ok(length) if length <= self.rest.len() => {
                let (value, rest) = self.rest.split_at(length);
                self.rest = rest;
                Ok(Some(value))
            }
            _ => Err(QueryError::new(
                "22P03",
                "insufficient data left in message",
            )),
        }
    }

    /// Refuses bytes that are left.
    pub(in crate::types) fn end(&self) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(QueryError::new("22P03", "incorrect binary data format"))
    }
}

/// Appends a length and what `write` appends.
pub(in crate::types) fn send_value(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let place = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out)?;
    let length = i32::try_from(out.len() - place - 4)
        .map_err(|_| QueryError::new("54000", "requested length too large"))?;
    if let Some(bytes) = out.get_mut(place..place + 4) {
        bytes.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

#[cold]
fn without_binary(direction: &str, element: Element) -> QueryError {
    QueryError::new(
        "42883",
        format!(
            "no binary {direction} function available for type {}",
            format_type(element.oid, -1)
        ),
    )
}

pub(in crate::types) fn receive(
    call: &Call<'_>,
    element: Element,
    bytes: &[u8],
    modifier: i32,
) -> Result<Datum> {
    let mut message = Message::new(bytes);
    let depth = message.int4()?;
    let Ok(depth) = usize::try_from(depth) else {
        return Err(QueryError::new(
            "22P03",
            format!("invalid number of dimensions: {depth}"),
        ));
    };
    if depth > DIMENSIONS_MAX {
        return Err(too_many_dimensions(depth));
    }
    if !matches!(message.int4()?, 0 | 1) {
        return Err(QueryError::new("22P03", "invalid array flags"));
    }
    let found = message.oid()?;
    if found != element.oid {
        return Err(QueryError::new(
            "42804",
            format!(
                "binary data has array element type {found} ({}) instead of expected {} ({})",
                format_type(found, -1),
                element.oid,
                format_type(element.oid, -1)
            ),
        ));
    }
    let mut dimensions = Vec::with_capacity(depth);
    for _ in 0..depth {
        dimensions.push((message.int4()?, message.int4()?));
    }
    let items = count(&dimensions)?;
    check_bounds(&dimensions)?;
    if element.oid == ids::ACLITEM {
        return Err(without_binary("input", element));
    }
    if items == 0 {
        message.end()?;
        return Ok(Datum::Array(Array::empty(element.oid).into()));
    }
    // Each element takes four bytes at least: what is claimed beyond is not made room for.
    let likely = items.min(message.rest.len() / 4);
    room(call, likely)?;
    let mut elements = Vec::with_capacity(likely);
    for number in 0..items {
        elements.push(match message.value()? {
            None => {
                crate::domain::check(call, element.oid, &Datum::Null)?;
                Datum::Null
            }
            Some(bytes) if is_domain(element.oid) => {
                crate::types::receive(call, element.oid, bytes, modifier)?
            }
            Some(bytes) => (element.row.receive)(call, bytes, modifier)?,
        });
        if number % 4096 == 4095 {
            call.environment.check_interrupted()?;
        }
    }
    message.end()?;
    Ok(Datum::Array(
        Array {
            element: element.oid,
            dimensions,
            elements,
        }
        .into(),
    ))
}

pub(in crate::types) fn send(
    call: &Call<'_>,
    element: Element,
    value: &Datum,
    out: &mut Vec<u8>,
) -> Result<()> {
    let array = value.as_array();
    if element.oid == ids::ACLITEM {
        return Err(without_binary("output", element));
    }
    let depth = u32::try_from(array.dimensions.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&depth.to_be_bytes());
    out.extend_from_slice(&i32::from(array.has_null()).to_be_bytes());
    out.extend_from_slice(&element.oid.to_be_bytes());
    for (length, lower) in &array.dimensions {
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&lower.to_be_bytes());
    }
    for value in &array.elements {
        if value.is_null() {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
        } else {
            send_value(out, |out| (element.row.send)(call, value, out))?;
        }
    }
    Ok(())
}
