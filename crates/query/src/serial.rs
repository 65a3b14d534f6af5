//! Values in bytes of our own: a tag, then the value; for columns that have no Arrow type, and for
//! tables. Exact: what is read is what was written. These bytes are on devices: tags and forms
//! stay as they are.

use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

use crate::call::{Call, Plain};
use crate::datum::{Datum, Record};
use crate::error::{QueryError, Result};
use crate::types::array::Array;
use crate::types::bit::BitString;
use crate::types::inet::Inet;
use crate::types::interval::Interval;
use crate::types::jsonb::Jsonb;
use crate::types::numeric::Numeric;
use crate::types::range::{Ends, Range, is_end};
use crate::types::time::TimeTz;
use crate::types::{self, ids};

/// The tag of a text, which is read where it lies.
const TEXT: u8 = 10;

/// Appends a value's bytes.
///
/// # Errors
/// XX000 for a value that has no bytes.
pub fn write(value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Null => out.push(0),
        Datum::Bool(value) => out.extend([1, u8::from(*value)]),
        Datum::Char(value) => out.extend([2, *value]),
        Datum::Int2(value) => tagged(3, &value.to_le_bytes(), out),
        Datum::Int4(value) => tagged(4, &value.to_le_bytes(), out),
        Datum::Int8(value) => tagged(5, &value.to_le_bytes(), out),
        Datum::Oid(value) => tagged(6, &value.to_le_bytes(), out),
        Datum::Float4(value) => tagged(7, &value.to_le_bytes(), out),
        Datum::Float8(value) => tagged(8, &value.to_le_bytes(), out),
        Datum::Numeric(value) => {
            out.push(NUMERIC);
            write_numeric(value, out);
        }
        Datum::Text(value) => write_text_bytes(value.as_bytes(), out),
        Datum::Bytea(value) => {
            out.push(11);
            write_bytes(value, out);
        }
        Datum::Date(value) => tagged(12, &value.to_le_bytes(), out),
        Datum::Time(value) => tagged(13, &value.to_le_bytes(), out),
        Datum::TimeTz(value) => {
            tagged(14, &value.micros.to_le_bytes(), out);
            out.extend(value.zone.to_le_bytes());
        }
        Datum::Timestamp(value) => tagged(15, &value.to_le_bytes(), out),
        Datum::TimestampTz(value) => tagged(16, &value.to_le_bytes(), out),
        Datum::Interval(value) => {
            tagged(17, &value.months.to_le_bytes(), out);
            out.extend(value.days.to_le_bytes());
            out.extend(value.micros.to_le_bytes());
        }
        Datum::Uuid(value) => tagged(18, value, out),
        Datum::Jsonb(value) => {
            out.push(19);
            write_json(value, out);
        }
        Datum::JsonPath(_) => {
            let plain = Plain::default();
            let call = Call::new(&plain, &[], ids::JSONPATH);
            let text = types::to_text(&call, ids::JSONPATH, value)?;
            out.push(20);
            write_bytes(text.as_bytes(), out);
        }
        Datum::Array(value) => {
            tagged(21, &value.element.to_le_bytes(), out);
            write_length(value.dimensions.len(), out);
            for (length, lower) in &value.dimensions {
                out.extend(length.to_le_bytes());
                out.extend(lower.to_le_bytes());
            }
            write_all(&value.elements, out)?;
        }
        Datum::Record(value) => {
            out.push(22);
            write_length(value.types.len(), out);
            for oid in value.types.iter() {
                out.extend(oid.to_le_bytes());
            }
            match &value.names {
                Some(names) => {
                    out.push(1);
                    write_length(names.len(), out);
                    for name in names.iter() {
                        write_bytes(name.as_bytes(), out);
                    }
                }
                None => out.push(0),
            }
            write_all(&value.values, out)?;
        }
        Datum::Inet(value) => {
            match value.address {
                IpAddr::V4(address) => tagged(23, &address.octets(), out),
                IpAddr::V6(address) => tagged(24, &address.octets(), out),
            }
            out.push(value.prefix);
        }
        Datum::MacAddr(value) => tagged(25, value, out),
        Datum::Bit(value) => {
            out.push(26);
            write_length(value.length, out);
            write_bytes(&value.bytes, out);
        }
        Datum::Enum(place) => tagged(27, &place.to_le_bytes(), out),
        Datum::Range(value) => {
            tagged(28, &value.element.to_le_bytes(), out);
            match &value.ends {
                Some(ends) => {
                    write_end(&ends.lower, out)?;
                    write_end(&ends.upper, out)?;
                }
                None => out.push(NO_ENDS),
            }
        }
    }
    Ok(())
}

/// What stands before an end of a range, or in the place of both.
const MISSING_END: u8 = 0;
const INCLUDED_END: u8 = 1;
const EXCLUDED_END: u8 = 2;
const NO_ENDS: u8 = 3;

fn write_end(bound: &Bound<Datum>, out: &mut Vec<u8>) -> Result<()> {
    let (tag, value) = match bound {
        Bound::Unbounded => {
            out.push(MISSING_END);
            return Ok(());
        }
        Bound::Included(value) => (INCLUDED_END, value),
        Bound::Excluded(value) => (EXCLUDED_END, value),
    };
    out.push(tag);
    write(value, out)
}

fn tagged(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend(bytes);
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn write_length(length: usize, out: &mut Vec<u8>) {
    let mut rest = length;
    while rest > 0x7f {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_length(bytes.len(), out);
    out.extend(bytes);
}

/// Appends the bytes of several values.
///
/// # Errors
/// As [`write()`]'s.
pub fn write_all(values: &[Datum], out: &mut Vec<u8>) -> Result<()> {
    write_length(values.len(), out);
    values.iter().try_for_each(|value| write(value, out))
}

fn write_numeric(value: &Numeric, out: &mut Vec<u8>) {
    match value.to_parts() {
        Some((unscaled, scale)) => {
            // Most numbers are short.
            if let Ok(short) = i64::try_from(unscaled) {
                out.extend(&short_numeric(short, scale)[1..]);
            } else {
                out.push(LONG);
                out.extend(unscaled.to_le_bytes());
                out.extend(scale.to_le_bytes());
            }
        }
        None => {
            out.push(TEXTUAL);
            write_bytes(value.to_string().as_bytes(), out);
        }
    }
}

/// The tag of a numeric, and what its digits stand as: 64 bits, 128 bits, or a text.
const NUMERIC: u8 = 9;
const SHORT: u8 = 0;
const LONG: u8 = 1;
const TEXTUAL: u8 = 2;

/// How many bytes a short numeric has.
pub const SHORT_NUMERIC_BYTES: usize = 12;

/// The bytes of the numeric `unscaled` / 10^`scale`, as [`write()`] makes them.
#[must_use]
#[inline]
pub const fn short_numeric(unscaled: i64, scale: u16) -> [u8; SHORT_NUMERIC_BYTES] {
    let [a, b, c, d, e, f, g, h] = unscaled.to_le_bytes();
    let [low, high] = scale.to_le_bytes();
    [NUMERIC, SHORT, a, b, c, d, e, f, g, h, low, high]
}

/// The unscaled number and the scale of a numeric, from its bytes, where it has no more than 38
/// digits or so.
#[must_use]
#[inline]
pub fn read_numeric_parts(bytes: &[u8]) -> Option<(i128, u16)> {
    let ([NUMERIC, form], digits) = bytes.split_first_chunk::<2>()? else {
        return None;
    };
    let (digits, scale) = digits.split_last_chunk::<2>()?;
    let unscaled = match *form {
        SHORT => i128::from(i64::from_le_bytes(digits.try_into().ok()?)),
        LONG => i128::from_le_bytes(digits.try_into().ok()?),
        _ => return None,
    };
    Some((unscaled, u16::from_le_bytes(*scale)))
}

/// Appends the bytes of the numeric `unscaled` / 10^`scale`, as [`write()`] makes them. The scale
/// is one that a numeric may have, and `unscaled` is not the least number.
#[inline]
pub fn write_numeric_parts(unscaled: i128, scale: u16, out: &mut Vec<u8>) {
    out.push(NUMERIC);
    write_numeric(&Numeric::from_parts(unscaled, scale), out);
}

/// Appends the bytes of a text, which is given as bytes, as [`write()`] makes them.
pub fn write_text_bytes(text: &[u8], out: &mut Vec<u8>) {
    out.push(TEXT);
    write_bytes(text, out);
}

/// A text of the bytes that [`write()`] makes, itself as bytes.
#[must_use]
#[inline]
pub fn read_text_bytes(bytes: &[u8]) -> Option<&[u8]> {
    let (&TEXT, bytes) = bytes.split_first()? else {
        return None;
    };
    let mut reader = Reader { bytes };
    let text = reader.bytes().ok()?;
    reader.bytes.is_empty().then_some(text)
}

fn write_json(value: &Jsonb, out: &mut Vec<u8>) {
    match value {
        Jsonb::Null => out.push(0),
        Jsonb::Bool(value) => out.extend([1, u8::from(*value)]),
        Jsonb::Number(value) => {
            out.push(2);
            write_numeric(value, out);
        }
        Jsonb::String(value) => {
            out.push(3);
            write_bytes(value.as_bytes(), out);
        }
        Jsonb::Array(values) => {
            out.push(4);
            write_length(values.len(), out);
            values.iter().for_each(|value| write_json(value, out));
        }
        Jsonb::Object(pairs) => {
            out.push(5);
            write_length(pairs.len(), out);
            for (key, value) in pairs.iter() {
                write_bytes(key.as_bytes(), out);
                write_json(value, out);
            }
        }
    }
}

/// The value of these bytes.
///
/// # Errors
/// XX000 for bytes that [`write()`] did not make.
pub fn read(bytes: &[u8]) -> Result<Datum> {
    Reader { bytes }.datum()
}

/// The values that [`write_all`] wrote.
///
/// # Errors
/// As [`read`]'s.
pub fn read_all(bytes: &[u8]) -> Result<Vec<Datum>> {
    Reader { bytes }.many(Reader::datum)
}

/// A `numeric` whose digits fit a word of 64 bits, which is how most are written: its digits and
/// its scale.
#[must_use]
#[inline]
pub fn read_short_numeric(bytes: &[u8]) -> Option<(i64, u16)> {
    let bytes: &[u8; SHORT_NUMERIC_BYTES] = bytes.try_into().ok()?;
    let [NUMERIC, SHORT, unscaled @ .., low, high] = *bytes else {
        return None;
    };
    Some((
        i64::from_le_bytes(unscaled),
        u16::from_le_bytes([low, high]),
    ))
}

/// A `numeric`.
///
/// # Errors
/// XX000 for bytes of anything else.
#[inline]
pub fn read_numeric(bytes: &[u8]) -> Result<Numeric> {
    if let Some((unscaled, scale)) = read_short_numeric(bytes) {
        return Ok(Numeric::from_parts(i128::from(unscaled), scale));
    }
    match read(bytes)? {
        Datum::Numeric(value) => Ok(value),
        _ => Err(broken()),
    }
}

/// A text, where it lies.
///
/// # Errors
/// XX000 for bytes of anything else.
pub fn text(bytes: &[u8]) -> Result<&str> {
    let mut reader = Reader { bytes };
    match reader.byte()? {
        TEXT => reader.text(),
        _ => Err(broken()),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

#[cold]
fn broken() -> QueryError {
    QueryError::internal("bytes that are no value")
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or_else(broken)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn word<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| broken())
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.word::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.word()?))
    }

    fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_le_bytes(self.word()?))
    }

    fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.word()?))
    }

    /// A number of things of at least one byte each.
    fn length(&mut self) -> Result<usize> {
        let mut length = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            length |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return usize::try_from(length).map_err(|_| broken());
            }
        }
        Err(broken())
    }

    fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| broken())
    }

    fn many<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let length = self.length()?;
        if length > self.bytes.len() {
            return Err(broken());
        }
        (0..length).map(|_| one(self)).collect()
    }

    fn datum(&mut self) -> Result<Datum> {
        Ok(match self.byte()? {
            0 => Datum::Null,
            1 => Datum::Bool(self.byte()? != 0),
            2 => Datum::Char(self.byte()?),
            3 => Datum::Int2(i16::from_le_bytes(self.word()?)),
            4 => Datum::Int4(self.i32()?),
            5 => Datum::Int8(self.i64()?),
            6 => Datum::Oid(self.u32()?),
            7 => Datum::Float4(f32::from_le_bytes(self.word()?)),
            8 => Datum::Float8(f64::from_le_bytes(self.word()?)),
            NUMERIC => Datum::Numeric(self.numeric()?),
            TEXT => Datum::text(self.text()?),
            11 => Datum::bytes(self.bytes()?),
            12 => Datum::Date(self.i32()?),
            13 => Datum::Time(self.i64()?),
            14 => Datum::TimeTz(TimeTz {
                micros: self.i64()?,
                zone: self.i32()?,
            }),
            15 => Datum::Timestamp(self.i64()?),
            16 => Datum::TimestampTz(self.i64()?),
            17 => Datum::Interval(Interval {
                months: self.i32()?,
                days: self.i32()?,
                micros: self.i64()?,
            }),
            18 => Datum::Uuid(self.word()?),
            19 => Datum::Jsonb(Arc::new(self.json()?)),
            20 => {
                let plain = Plain::default();
                let call = Call::new(&plain, &[], ids::JSONPATH);
                types::input(&call, ids::JSONPATH, self.text()?, -1)?
            }
            21 => Datum::Array(Arc::new(Array {
                element: self.u32()?,
                dimensions: self.many(|reader| Ok((reader.i32()?, reader.i32()?)))?,
                elements: self.many(Self::datum)?,
            })),
            22 => Datum::Record(Arc::new(Record {
                modifiers: None,
                types: self.many(Self::u32)?.into(),
                names: match self.byte()? {
                    0 => None,
                    _ => Some(self.many(|reader| Ok(Arc::from(reader.text()?)))?.into()),
                },
                values: self.many(Self::datum)?,
            })),
            23 => Datum::Inet(Inet {
                address: IpAddr::from(self.word::<4>()?),
                prefix: self.byte()?,
            }),
            24 => Datum::Inet(Inet {
                address: IpAddr::from(self.word::<16>()?),
                prefix: self.byte()?,
            }),
            25 => Datum::MacAddr(self.word()?),
            26 => Datum::Bit(Arc::new(BitString {
                length: self.length()?,
                bytes: self.bytes()?.to_vec(),
            })),
            27 => Datum::Enum(self.i64()?.cast_unsigned()),
            28 => Datum::Range(Arc::new(self.range()?)),
            _ => return Err(broken()),
        })
    }

    fn range(&mut self) -> Result<Range> {
        let element = self.u32()?;
        let ends = match self.byte()? {
            NO_ENDS => None,
            tag => {
                let lower = self.end(tag, element)?;
                let tag = self.byte()?;
                let upper = self.end(tag, element)?;
                Some(Ends { lower, upper })
            }
        };
        Ok(Range { element, ends })
    }

    /// An end of a range over this type.
    fn end(&mut self, tag: u8, element: u32) -> Result<Bound<Datum>> {
        let kind = match tag {
            MISSING_END => return Ok(Bound::Unbounded),
            INCLUDED_END => Bound::Included,
            EXCLUDED_END => Bound::Excluded,
            _ => return Err(broken()),
        };
        let value = self.datum()?;
        match is_end(element, &value) {
            true => Ok(kind(value)),
            false => Err(broken()),
        }
    }

    fn numeric(&mut self) -> Result<Numeric> {
        Ok(match self.byte()? {
            SHORT => {
                let unscaled = self.i64()?;
                Numeric::from_parts(i128::from(unscaled), u16::from_le_bytes(self.word()?))
            }
            LONG => {
                let unscaled = i128::from_le_bytes(self.word()?);
                Numeric::from_parts(unscaled, u16::from_le_bytes(self.word()?))
            }
            _ => Numeric::parse(self.text()?)?,
        })
    }

    fn json(&mut self) -> Result<Jsonb> {
        Ok(match self.byte()? {
            0 => Jsonb::Null,
            1 => Jsonb::Bool(self.byte()? != 0),
            2 => Jsonb::Number(self.numeric()?),
            3 => Jsonb::String(self.text()?.into()),
            4 => Jsonb::array(self.many(Self::json)?)?,
            5 => {
                Jsonb::object(self.many(|reader| Ok((Arc::from(reader.text()?), reader.json()?)))?)?
            }
            _ => return Err(broken()),
        })
    }
}
