//! Keys whose bytes have the order of their values, so that an index compares
//! with `memcmp` and knows no types.
//!
//! Equal values have equal bytes (1.0 and 1.00, 0 and -0, a `char` with and
//! without blanks) and every encoded column tells where it ends. So a key of
//! fewer columns is a prefix of exactly the keys that begin with the same
//! values. NULLs are last, as in PostgreSQL; a descending column has all its
//! bits turned, which puts its NULLs first. A fixed-width column that is not
//! nullable costs exactly its width. Keys are not decoded.

use crate::tuple::{Integer, Layouts, TupleRef};
use thermocline_values::numeric::Numeric;
use thermocline_values::numeric::long::{self, LONG};
use thermocline_values::other_type::KeyPart;
use thermocline_values::text_format::trim_blanks;
use thermocline_values::types::DataType;
use thermocline_values::value::{ValueRef, canonical_double};

/// Before a value that is not NULL, in a nullable column.
const PRESENT: u8 = 1;
/// Instead of a value.
const NULL: u8 = 2;

/// Whether a key's first column is NULL, where that column is nullable and ascends.
#[inline]
#[must_use]
pub fn begins_with_null(key: &[u8]) -> bool {
    key.first() == Some(&NULL)
}
/// After text and bytes; smaller than any escaped byte that could follow.
const TERMINATOR: [u8; 2] = [0, 1];
/// What a byte 0 within text or bytes becomes.
const ESCAPED_ZERO: [u8; 2] = [0, 255];

/// What a key has to know of one of its columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyColumn {
    /// The column's type
    pub data_type: DataType,
    /// Whether the column can be NULL
    pub nullable: bool,
    /// Whether greater values come first
    pub descending: bool,
}

/// The columns of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyShape {
    columns: Vec<KeyColumn>,
    /// One ascending `int8` or `int4` column that can be NULL: what most keys are, and
    /// compared without looking at the columns.
    is_integer: bool,
}

/// The whole key of an `int8`, and of an `int4`.
#[inline]
fn eight_byte_key(value: i64) -> [u8; 9] {
    let [a, b, c, d, e, f, g, h] = (value ^ i64::MIN).to_be_bytes();
    [PRESENT, a, b, c, d, e, f, g, h]
}

#[inline]
fn four_byte_key(value: i32) -> [u8; 5] {
    let [a, b, c, d] = (value ^ i32::MIN).to_be_bytes();
    [PRESENT, a, b, c, d]
}

#[cold]
#[inline(never)]
fn mismatch(data_type: &DataType, value: ValueRef<'_>) -> ! {
    panic!("a key of type {data_type} cannot hold {value:?}");
}

impl KeyShape {
    /// A key of these columns, in this order.
    #[must_use]
    pub fn new(columns: Vec<KeyColumn>) -> Self {
        let is_integer = matches!(
            columns[..],
            [KeyColumn {
                data_type: DataType::BigInt | DataType::Integer,
                nullable: true,
                descending: false,
            }]
        );
        Self {
            columns,
            is_integer,
        }
    }

    /// The key's columns.
    #[must_use]
    pub fn columns(&self) -> &[KeyColumn] {
        &self.columns
    }

    /// Appends the key of these values, which are of the columns' types (see
    /// `cast::coerce_exact`). With fewer values than columns it is the prefix
    /// that all keys with these values share.
    #[inline]
    pub fn encode(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        match (self.is_integer, values) {
            (true, [ValueRef::BigInt(value)])
                if matches!(self.columns[0].data_type, DataType::BigInt) =>
            {
                out.extend_from_slice(&eight_byte_key(*value));
            }
            (true, [ValueRef::Integer(value)])
                if matches!(self.columns[0].data_type, DataType::Integer) =>
            {
                out.extend_from_slice(&four_byte_key(*value));
            }
            _ => self.encode_columns(values, out),
        }
    }

    fn encode_columns(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        assert!(
            values.len() <= self.columns.len(),
            "a key has no more values than columns"
        );
        for (column, value) in self.columns.iter().zip(values) {
            encode_column(column, *value, out);
        }
    }

    /// Appends the key of a tuple; `columns` says which of its columns they are.
    pub fn encode_from_tuple(
        &self,
        layouts: &Layouts,
        columns: &[usize],
        tuple: &[u8],
        out: &mut Vec<u8>,
    ) {
        assert_eq!(
            columns.len(),
            self.columns.len(),
            "a tuple's key has all its columns"
        );
        let tuple = layouts.tuple(tuple);
        if self.is_integer
            && let [column] = *columns
        {
            match tuple.integer(column) {
                Some(Integer::Eight(value)) => {
                    return out.extend_from_slice(&eight_byte_key(value));
                }
                Some(Integer::Four(value)) => return out.extend_from_slice(&four_byte_key(value)),
                // NULL, or the default of a column that is younger.
                None => {}
            }
        }
        for (column, index) in self.columns.iter().zip(columns) {
            encode_column(column, tuple.get(*index), out);
        }
    }

    /// Whether this is the key of a tuple; as comparing with what
    /// [`KeyShape::encode_from_tuple`] appends, but most types need no copy.
    #[must_use]
    #[inline]
    pub fn is_key_of(
        &self,
        layouts: &Layouts,
        columns: &[usize],
        tuple: &[u8],
        key: &[u8],
    ) -> bool {
        let tuple = layouts.tuple(tuple);
        if self.is_integer
            && let [column] = *columns
        {
            match tuple.integer(column) {
                Some(Integer::Eight(value)) => return key == eight_byte_key(value),
                Some(Integer::Four(value)) => return key == four_byte_key(value),
                // NULL, or the default of a column that is younger.
                None => {}
            }
        }
        self.has_columns(tuple, columns, key)
    }

    fn has_columns(&self, tuple: TupleRef<'_>, columns: &[usize], key: &[u8]) -> bool {
        let mut rest = key;
        for (column, index) in self.columns.iter().zip(columns) {
            match after_column(column, tuple.get(*index), rest) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        rest.is_empty()
    }

    /// Appends the prefix of all keys that have these values and then, in the
    /// next column, a text that begins with `start`: the range of a `LIKE`.
    /// Returns false and appends nothing if the next column is no text.
    pub fn encode_text_start(
        &self,
        values: &[ValueRef<'_>],
        start: &str,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(column) = self.columns.get(values.len()) else {
            return false;
        };
        if !column.data_type.is_text() {
            return false;
        }
        self.encode(values, out);
        let begin = out.len();
        if column.nullable {
            out.push(PRESENT);
        }
        push_escaped(start.as_bytes(), out);
        if column.descending {
            invert(&mut out[begin..]);
        }
        true
    }
}

/// Turns a prefix into the first key after all that begin with it. Returns
/// false, with the key emptied, when there is none.
#[must_use]
pub fn prefix_successor(key: &mut Vec<u8>) -> bool {
    while let Some(last) = key.pop() {
        if last < u8::MAX {
            key.push(last + 1);
            return true;
        }
    }
    false
}

fn invert(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

/// What follows the column in a key, if the column has this value there.
#[inline]
fn after_column<'k>(column: &KeyColumn, value: ValueRef<'_>, key: &'k [u8]) -> Option<&'k [u8]> {
    let plain = column.nullable && !column.descending;
    match value {
        ValueRef::BigInt(value) if plain && column.data_type == DataType::BigInt => {
            key.strip_prefix(&eight_byte_key(value))
        }
        ValueRef::Integer(value) if plain && column.data_type == DataType::Integer => {
            key.strip_prefix(&four_byte_key(value))
        }
        ValueRef::Text(value)
            if plain
                && matches!(column.data_type, DataType::Text | DataType::Varchar(_))
                && !value.as_bytes().contains(&0) =>
        {
            let rest = key.strip_prefix(&[PRESENT])?;
            rest.strip_prefix(value.as_bytes())?
                .strip_prefix(&TERMINATOR)
        }
        _ => {
            let mut encoded = Vec::with_capacity(key.len() + 16);
            encode_column(column, value, &mut encoded);
            key.strip_prefix(&encoded[..])
        }
    }
}

#[inline]
fn encode_column(column: &KeyColumn, value: ValueRef<'_>, out: &mut Vec<u8>) {
    let begin = out.len();
    match (column.nullable, value.is_null()) {
        (true, true) => out.push(NULL),
        (false, true) => mismatch(&column.data_type, value),
        (true, false) => {
            out.push(PRESENT);
            encode_value(&column.data_type, value, out);
        }
        (false, false) => encode_value(&column.data_type, value, out),
    }
    if column.descending {
        invert(&mut out[begin..]);
    }
}

#[inline]
fn encode_value(data_type: &DataType, value: ValueRef<'_>, out: &mut Vec<u8>) {
    match (value, data_type) {
        (ValueRef::Boolean(value), DataType::Boolean) => out.push(value.into()),
        (ValueRef::SmallInt(value), DataType::SmallInt) => {
            out.extend_from_slice(&(value ^ i16::MIN).to_be_bytes());
        }
        (ValueRef::Integer(value), DataType::Integer) | (ValueRef::Date(value), DataType::Date) => {
            out.extend_from_slice(&(value ^ i32::MIN).to_be_bytes());
        }
        (ValueRef::BigInt(value), DataType::BigInt)
        | (ValueRef::Timestamp(value), DataType::Timestamp | DataType::TimestampTo(_))
        | (ValueRef::TimestampTz(value), DataType::TimestampTz | DataType::TimestampTzTo(_)) => {
            out.extend_from_slice(&(value ^ i64::MIN).to_be_bytes());
        }
        (ValueRef::Real(value), DataType::Real) => {
            let bits = if value.is_nan() {
                f32::NAN.to_bits()
            } else {
                // Adding 0 makes -0 into 0.
                (value + 0.0).to_bits()
            };
            let mask = if bits >> 31 == 1 { u32::MAX } else { 1 << 31 };
            out.extend_from_slice(&(bits ^ mask).to_be_bytes());
        }
        (ValueRef::Double(value), DataType::Double) => {
            let bits = canonical_double(value).to_bits();
            let mask = if bits >> 63 == 1 { u64::MAX } else { 1 << 63 };
            out.extend_from_slice(&(bits ^ mask).to_be_bytes());
        }
        (ValueRef::Numeric(number), DataType::Numeric { .. }) => match data_type.small_scale() {
            None => long::push_small_key(number, out),
            Some(scale) => {
                let fixed = number
                    .rescale(scale)
                    .and_then(|number| fixed_numeric(number, data_type, out));
                if fixed.is_none() {
                    mismatch(data_type, value);
                }
            }
        },
        (ValueRef::Other(LONG, bytes), DataType::Numeric { .. }) => {
            match (data_type.fixed_width(), bytes) {
                (None, bytes) => out.extend_from_slice(long::key_of(bytes)),
                // As a mantissa beyond all: see `tuple`.
                (Some(width), long::NAN_BYTES) => out.extend(std::iter::repeat_n(u8::MAX, width)),
                (Some(_), _) => mismatch(data_type, value),
            }
        }
        (ValueRef::Text(value), DataType::Char(_)) => {
            push_escaped(trim_blanks(value).as_bytes(), out);
            out.extend_from_slice(&TERMINATOR);
        }
        (ValueRef::Text(value), DataType::Text | DataType::Varchar(_)) => {
            push_escaped(value.as_bytes(), out);
            out.extend_from_slice(&TERMINATOR);
        }
        (ValueRef::Bytea(value), DataType::Bytea) => {
            push_escaped(value, out);
            out.extend_from_slice(&TERMINATOR);
        }
        (ValueRef::Uuid(value), DataType::Uuid) => out.extend_from_slice(&value),
        (ValueRef::Other(oid, bytes), DataType::Other { oid: wanted, .. }) if oid == *wanted => {
            let Some(other) = data_type.other() else {
                mismatch(data_type, value)
            };
            match other.key {
                KeyPart::None => mismatch(data_type, value),
                KeyPart::Whole | KeyPart::AllBut(_) if other.width.is_none() => {
                    push_escaped(other.key_of(bytes), out);
                    out.extend_from_slice(&TERMINATOR);
                }
                KeyPart::First(_) | KeyPart::AllBut(_) | KeyPart::Whole => {
                    out.extend_from_slice(other.key_of(bytes))
                }
            }
        }
        _ => mismatch(data_type, value),
    }
}

fn push_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut pieces = bytes.split(|byte| *byte == 0);
    out.extend_from_slice(pieces.next().unwrap_or_default());
    for piece in pieces {
        out.extend_from_slice(&ESCAPED_ZERO);
        out.extend_from_slice(piece);
    }
}

/// A numeric of the column's scale, as an integer of the column's width.
fn fixed_numeric(number: Numeric, data_type: &DataType, out: &mut Vec<u8>) -> Option<()> {
    let mantissa = number.mantissa();
    match data_type.fixed_width()? {
        4 => out.extend_from_slice(&(i32::try_from(mantissa).ok()? ^ i32::MIN).to_be_bytes()),
        8 => out.extend_from_slice(&(i64::try_from(mantissa).ok()? ^ i64::MIN).to_be_bytes()),
        _ => out.extend_from_slice(&(mantissa ^ i128::MIN).to_be_bytes()),
    }
    Some(())
}

#[cfg(test)]
mod tests;
