//! One layout: where each column is in a tuple, and its reading and writing.
//! `tuple` describes the bytes and says who has to validate them.

use super::ColumnShape;
use thermocline_values::numeric::Numeric;
use thermocline_values::numeric::long::{self, LONG};
use thermocline_values::text_format::trim_blanks;
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

/// Set in the version word when offsets take four bytes.
const WIDE: u16 = 1 << 15;
/// Versions are below this.
pub(super) const VERSION_LIMIT: u16 = WIDE;
/// The bytes of the version word.
const VERSION_BYTES: usize = 2;
/// Says in a slot that the column is never NULL.
const NOT_NULLABLE: u16 = u16::MAX;
/// Set in the first byte of a variable-width numeric when it is negative.
const NEGATIVE: u8 = 1 << 7;
/// The first byte of one that has not the small form; its bytes follow.
const LONG_FOLLOWS: u8 = NEGATIVE - 1;

/// Where a column is.
#[derive(Clone, Copy, Debug)]
struct Slot {
    data_type: DataType,
    /// The column's bit among the nullable ones
    null_bit: u16,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// At this offset from the tuple's start
    Fixed(u32),
    /// The so-manieth of the variable-width columns
    Variable(u32),
}

/// Where a column's bytes are in a tuple, for whoever keeps columns apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Its bit among the nullable columns.
    pub null_bit: Option<u16>,
    pub place: PartPlace,
    /// Its bytes, taken for an integer with a sign, are in the order of the values.
    pub is_ordered: bool,
}

/// See [`Part`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PartPlace {
    Fixed { offset: u32, width: u8 },
    Variable { number: u32 },
}

/// A value of the types that most keys are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Integer {
    /// `int8`
    Eight(i64),
    /// `int4`
    Four(i32),
}

/// Where the columns of one version of a table are in its tuples.
#[derive(Clone, Debug)]
pub struct Layout {
    version: u16,
    shapes: Vec<ColumnShape>,
    slots: Vec<Slot>,
    /// Columns after those that the table does not have: one that was added and taken back
    hidden: Vec<Slot>,
    /// The offset of the first byte after the fixed-width columns
    fixed_end: usize,
    variable_count: usize,
}

#[cold]
#[inline(never)]
pub(super) fn malformed() -> ! {
    panic!("a tuple does not have the bytes of its layout: it was not validated");
}

#[cold]
#[inline(never)]
fn mismatch(column: usize, data_type: &DataType, value: ValueRef<'_>) -> ! {
    panic!("column {column} of type {data_type} cannot hold {value:?}");
}

/// `N` bytes at an offset.
#[inline]
fn chunk<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    match bytes.get(offset..).and_then(<[u8]>::first_chunk) {
        Some(chunk) => *chunk,
        None => malformed(),
    }
}

/// The bytes of a magnitude without its leading zeros.
fn magnitude_length(number: Numeric) -> usize {
    (128 - number.mantissa().unsigned_abs().leading_zeros() as usize).div_ceil(8)
}

/// The bytes a variable-width value takes; `None` if it is not one.
#[inline]
fn variable_length(data_type: &DataType, value: ValueRef<'_>) -> Option<usize> {
    match (value, data_type) {
        (ValueRef::Null, _) => Some(0),
        (ValueRef::Text(text), DataType::Char(_)) => Some(trim_blanks(text).len()),
        (ValueRef::Text(text), DataType::Text | DataType::Varchar(_)) => Some(text.len()),
        (ValueRef::Bytea(bytes), DataType::Bytea) => Some(bytes.len()),
        (ValueRef::Other(oid, bytes), DataType::Other { oid: wanted, .. }) if oid == *wanted => {
            Some(bytes.len())
        }
        (ValueRef::Numeric(number), DataType::Numeric { .. }) => Some(1 + magnitude_length(number)),
        (ValueRef::Other(LONG, bytes), DataType::Numeric { .. }) => Some(1 + bytes.len()),
        _ => None,
    }
}

/// Writes a variable-width value into exactly its bytes.
#[inline]
fn write_variable(value: ValueRef<'_>, into: &mut [u8]) {
    match value {
        // A char's blanks are cut by the length.
        ValueRef::Text(text) => into.copy_from_slice(&text.as_bytes()[..into.len()]),
        ValueRef::Other(LONG, bytes) => {
            if let Some((first, rest)) = into.split_first_mut() {
                *first = LONG_FOLLOWS;
                rest.copy_from_slice(bytes);
            }
        }
        ValueRef::Bytea(bytes) | ValueRef::Other(_, bytes) => into.copy_from_slice(bytes),
        ValueRef::Numeric(number) => {
            let sign = if number.mantissa() < 0 { NEGATIVE } else { 0 };
            let magnitude = number.mantissa().unsigned_abs().to_le_bytes();
            if let Some((first, rest)) = into.split_first_mut() {
                *first = sign | number.scale();
                rest.copy_from_slice(&magnitude[..rest.len()]);
            }
        }
        _ => {}
    }
}

fn read_numeric(bytes: &[u8]) -> Option<ValueRef<'_>> {
    let (first, rest) = bytes.split_first()?;
    if *first == LONG_FOLLOWS {
        return Some(ValueRef::Other(LONG, rest));
    }
    let mut magnitude = [0; 16];
    magnitude.get_mut(..rest.len())?.copy_from_slice(rest);
    let mantissa = i128::try_from(u128::from_le_bytes(magnitude)).ok()?;
    let negative = first & NEGATIVE != 0;
    let mantissa = if negative { -mantissa } else { mantissa };
    Numeric::checked(mantissa, first & !NEGATIVE).map(ValueRef::Numeric)
}

/// Writes a fixed-width value at its place; `None` if it is of another type.
#[inline]
fn write_fixed(data_type: &DataType, value: ValueRef<'_>, place: &mut [u8]) -> Option<()> {
    match (value, data_type) {
        (ValueRef::Boolean(value), DataType::Boolean) => place.fill(value.into()),
        (ValueRef::SmallInt(value), DataType::SmallInt) => {
            place.copy_from_slice(&value.to_le_bytes());
        }
        (ValueRef::Integer(value), DataType::Integer) | (ValueRef::Date(value), DataType::Date) => {
            place.copy_from_slice(&value.to_le_bytes())
        }
        (ValueRef::BigInt(value), DataType::BigInt)
        | (ValueRef::Timestamp(value), DataType::Timestamp | DataType::TimestampTo(_))
        | (ValueRef::TimestampTz(value), DataType::TimestampTz | DataType::TimestampTzTo(_)) => {
            place.copy_from_slice(&value.to_le_bytes());
        }
        (ValueRef::Real(value), DataType::Real) => place.copy_from_slice(&value.to_le_bytes()),
        (ValueRef::Double(value), DataType::Double) => place.copy_from_slice(&value.to_le_bytes()),
        (ValueRef::Uuid(value), DataType::Uuid) => place.copy_from_slice(&value),
        (ValueRef::Other(oid, bytes), DataType::Other { oid: wanted, .. })
            if oid == *wanted && bytes.len() == place.len() =>
        {
            place.copy_from_slice(bytes);
        }
        (ValueRef::Numeric(value), DataType::Numeric { .. }) => {
            let mantissa = value.rescale(data_type.small_scale()?)?.mantissa();
            match place.len() {
                4 => place.copy_from_slice(&i32::try_from(mantissa).ok()?.to_le_bytes()),
                8 => place.copy_from_slice(&i64::try_from(mantissa).ok()?.to_le_bytes()),
                _ => place.copy_from_slice(&mantissa.to_le_bytes()),
            }
        }
        // The greatest mantissa, which no number has, is NaN.
        (ValueRef::Other(LONG, long::NAN_BYTES), DataType::Numeric { .. }) => {
            let (last, rest) = place.split_last_mut()?;
            rest.fill(u8::MAX);
            *last = i8::MAX as u8;
        }
        _ => return None,
    }
    Some(())
}

/// Reads a fixed-width value; `None` for a numeric of too many digits.
#[inline]
fn read_fixed<'a>(data_type: &DataType, bytes: &'a [u8], offset: usize) -> Option<ValueRef<'a>> {
    Some(match data_type {
        DataType::Boolean => ValueRef::Boolean(chunk::<1>(bytes, offset)[0] != 0),
        DataType::SmallInt => ValueRef::SmallInt(i16::from_le_bytes(chunk(bytes, offset))),
        DataType::Integer => ValueRef::Integer(i32::from_le_bytes(chunk(bytes, offset))),
        DataType::BigInt => ValueRef::BigInt(i64::from_le_bytes(chunk(bytes, offset))),
        DataType::Real => ValueRef::Real(f32::from_le_bytes(chunk(bytes, offset))),
        DataType::Double => ValueRef::Double(f64::from_le_bytes(chunk(bytes, offset))),
        DataType::Date => ValueRef::Date(i32::from_le_bytes(chunk(bytes, offset))),
        DataType::Timestamp | DataType::TimestampTo(_) => {
            ValueRef::Timestamp(i64::from_le_bytes(chunk(bytes, offset)))
        }
        DataType::TimestampTz | DataType::TimestampTzTo(_) => {
            ValueRef::TimestampTz(i64::from_le_bytes(chunk(bytes, offset)))
        }
        DataType::Uuid => ValueRef::Uuid(chunk(bytes, offset)),
        DataType::Numeric { .. } => {
            let (mantissa, nan): (i128, i128) = match data_type.fixed_width() {
                Some(4) => (
                    i32::from_le_bytes(chunk(bytes, offset)).into(),
                    i32::MAX.into(),
                ),
                Some(8) => (
                    i64::from_le_bytes(chunk(bytes, offset)).into(),
                    i64::MAX.into(),
                ),
                _ => (i128::from_le_bytes(chunk(bytes, offset)), i128::MAX),
            };
            match mantissa == nan {
                true => ValueRef::Other(LONG, long::NAN_BYTES),
                false => ValueRef::Numeric(Numeric::checked(mantissa, data_type.small_scale()?)?),
            }
        }
        DataType::Other { oid, .. } => {
            let width = data_type.fixed_width()?;
            ValueRef::Other(*oid, bytes.get(offset..offset + width)?)
        }
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) | DataType::Bytea => return None,
    })
}

/// Reads a variable-width value; `None` for bytes that are not one.
#[inline]
fn read_variable<'a>(data_type: &DataType, bytes: &'a [u8]) -> Option<ValueRef<'a>> {
    match data_type {
        DataType::Bytea => Some(ValueRef::Bytea(bytes)),
        DataType::Other { oid, .. } => Some(ValueRef::Other(*oid, bytes)),
        DataType::Numeric { .. } => read_numeric(bytes),
        _ => std::str::from_utf8(bytes).ok().map(ValueRef::Text),
    }
}

/// The version of a tuple and the width of its offsets.
#[inline]
pub(crate) fn header(bytes: &[u8]) -> Option<(usize, usize)> {
    let word = u16::from_le_bytes(*bytes.first_chunk()?);
    let offset_width = if word & WIDE == 0 { 2 } else { 4 };
    Some((usize::from(word & !WIDE), offset_width))
}

impl Layout {
    /// The layout of these columns, of which the table has the first `own`.
    pub(super) fn new(version: u16, shapes: &[ColumnShape], own: usize) -> Self {
        let nullable_count = shapes.iter().filter(|shape| shape.nullable).count();
        assert!(
            nullable_count < usize::from(NOT_NULLABLE),
            "a table has more columns than a layout can number"
        );
        let mut null_bits = 0..NOT_NULLABLE;
        let mut variables = 0..;
        let mut slots: Vec<Slot> = shapes
            .iter()
            .map(|shape| Slot {
                data_type: shape.data_type,
                null_bit: match shape.nullable {
                    true => null_bits.next().unwrap_or(NOT_NULLABLE),
                    false => NOT_NULLABLE,
                },
                place: match shape.data_type.fixed_width() {
                    Some(_) => Place::Fixed(0),
                    None => Place::Variable(variables.next().unwrap_or(u32::MAX)),
                },
            })
            .collect();
        let variable_count = slots
            .iter()
            .filter(|slot| matches!(slot.place, Place::Variable(_)))
            .count();
        let mut fixed_end = VERSION_BYTES + nullable_count.div_ceil(8);
        for width in [16, 8, 4, 2, 1] {
            for slot in &mut slots {
                if slot.data_type.fixed_width() == Some(width) {
                    slot.place = Place::Fixed(fixed_end as u32);
                    fixed_end += width;
                }
            }
        }
        let hidden = slots.split_off(own);
        Self {
            version,
            shapes: shapes.to_vec(),
            slots,
            hidden,
            fixed_end,
            variable_count,
        }
    }

    /// Where the bytes of all columns are, in the table's order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> {
        let slots = self.slots.iter().chain(&self.hidden);
        slots.map(|slot| Part {
            null_bit: (slot.null_bit != NOT_NULLABLE).then_some(slot.null_bit),
            place: match slot.place {
                Place::Fixed(offset) => PartPlace::Fixed {
                    offset,
                    width: slot.data_type.fixed_width().unwrap_or(0) as u8,
                },
                Place::Variable(number) => PartPlace::Variable { number },
            },
            is_ordered: match slot.data_type {
                DataType::Real | DataType::Double | DataType::Other { .. } => false,
                _ => slot.data_type.fixed_width().is_some_and(|width| width <= 8),
            },
        })
    }

    /// Where the fixed-width columns end.
    pub(crate) fn fixed_end(&self) -> usize {
        self.fixed_end
    }

    /// The columns, in the table's order.
    #[must_use]
    pub fn shapes(&self) -> &[ColumnShape] {
        &self.shapes
    }

    /// Appends the tuple of these values, one for each column. The values are
    /// of the columns' types and, where a column is not nullable, not NULL:
    /// the caller has converted and checked them.
    pub fn encode(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        assert_eq!(
            values.len(),
            self.slots.len(),
            "a tuple has a value for each column"
        );
        let mut variable_bytes = 0;
        for (column, (slot, value)) in self.slots.iter().zip(values).enumerate() {
            if let Place::Variable(_) = slot.place {
                match variable_length(&slot.data_type, *value) {
                    Some(length) => variable_bytes += length,
                    None => mismatch(column, &slot.data_type, *value),
                }
            }
        }
        let wide = variable_bytes > usize::from(u16::MAX);
        assert!(
            u32::try_from(variable_bytes).is_ok(),
            "a tuple is shorter than 4 GiB"
        );
        let offset_width = if wide { 4 } else { 2 };
        let data_start = self.fixed_end + self.variable_count * offset_width;
        let start = out.len();
        out.resize(start + data_start + variable_bytes, 0);
        let (head, data) = out[start..].split_at_mut(data_start);
        let version = self.version | if wide { WIDE } else { 0 };
        head[..VERSION_BYTES].copy_from_slice(&version.to_le_bytes());
        let mut end = 0;
        for (column, (slot, value)) in self.slots.iter().zip(values).enumerate() {
            if value.is_null() {
                if slot.null_bit == NOT_NULLABLE {
                    mismatch(column, &slot.data_type, *value);
                }
                let bit = usize::from(slot.null_bit);
                head[VERSION_BYTES + bit / 8] |= 1 << (bit % 8);
            }
            match slot.place {
                Place::Fixed(_) if value.is_null() => {}
                Place::Fixed(offset) => {
                    let place = self.fixed_place(head, slot, offset);
                    if write_fixed(&slot.data_type, *value, place).is_none() {
                        mismatch(column, &slot.data_type, *value);
                    }
                }
                Place::Variable(index) => {
                    let begin = end;
                    end += variable_length(&slot.data_type, *value).unwrap_or(0);
                    write_variable(*value, &mut data[begin..end]);
                    let at = self.fixed_end + index as usize * offset_width;
                    let bytes = (end as u32).to_le_bytes();
                    head[at..at + offset_width].copy_from_slice(&bytes[..offset_width]);
                }
            }
        }
    }

    fn fixed_place<'a>(&self, bytes: &'a mut [u8], slot: &Slot, offset: u32) -> &'a mut [u8] {
        let width = slot.data_type.fixed_width().unwrap_or(0);
        match bytes.get_mut(offset as usize..offset as usize + width) {
            Some(place) => place,
            None => malformed(),
        }
    }

    /// Where the bytes of a variable-width column begin and end.
    #[inline]
    fn variable_range(&self, bytes: &[u8], index: usize, offset_width: usize) -> (usize, usize) {
        let data_start = self.fixed_end + self.variable_count * offset_width;
        let end_of = |index: usize| {
            let at = self.fixed_end + index * offset_width;
            if offset_width == 2 {
                usize::from(u16::from_le_bytes(chunk(bytes, at)))
            } else {
                u32::from_le_bytes(chunk(bytes, at)) as usize
            }
        };
        let begin = if index == 0 { 0 } else { end_of(index - 1) };
        (data_start + begin, data_start + end_of(index))
    }

    #[inline]
    fn is_null(&self, bytes: &[u8], slot: &Slot) -> bool {
        if slot.null_bit == NOT_NULLABLE {
            return false;
        }
        let bit = usize::from(slot.null_bit);
        let [byte] = chunk(bytes, VERSION_BYTES + bit / 8);
        byte >> (bit % 8) & 1 == 1
    }

    /// The value of a column; `None` if the layout has no such column.
    #[inline]
    pub(super) fn get<'a>(
        &self,
        bytes: &'a [u8],
        column: usize,
        offset_width: usize,
    ) -> Option<ValueRef<'a>> {
        let slot = self.slots.get(column)?;
        if self.is_null(bytes, slot) {
            return Some(ValueRef::Null);
        }
        let value = match slot.place {
            Place::Fixed(offset) => read_fixed(&slot.data_type, bytes, offset as usize),
            Place::Variable(index) => {
                let (begin, end) = self.variable_range(bytes, index as usize, offset_width);
                bytes
                    .get(begin..end)
                    .and_then(|bytes| read_variable(&slot.data_type, bytes))
            }
        };
        if value.is_none() {
            malformed();
        }
        value
    }

    /// The value of an `int8` column, or of an `int4` one; `None` for NULL, any other
    /// column, and one that the layout does not have.
    #[inline]
    pub(super) fn integer(&self, bytes: &[u8], column: usize) -> Option<Integer> {
        let slot = self.slots.get(column)?;
        let Place::Fixed(offset) = slot.place else {
            return None;
        };
        if self.is_null(bytes, slot) {
            return None;
        }
        let offset = offset as usize;
        match slot.data_type {
            DataType::BigInt => Some(Integer::Eight(i64::from_le_bytes(chunk(bytes, offset)))),
            DataType::Integer => Some(Integer::Four(i32::from_le_bytes(chunk(bytes, offset)))),
            _ => None,
        }
    }

    /// Overwrites a column in place, if the new value takes exactly the bytes
    /// of the old one: always so for a fixed-width column, NULL included.
    /// Returns whether it did; the tuple is unchanged if not.
    pub(super) fn patch(
        &self,
        bytes: &mut [u8],
        column: usize,
        value: ValueRef<'_>,
        width: usize,
    ) -> bool {
        let Some(slot) = self.slots.get(column) else {
            return false;
        };
        if value.is_null() && slot.null_bit == NOT_NULLABLE {
            mismatch(column, &slot.data_type, value);
        }
        match slot.place {
            Place::Fixed(offset) => {
                let place = self.fixed_place(bytes, slot, offset);
                if value.is_null() {
                    place.fill(0);
                } else if write_fixed(&slot.data_type, value, place).is_none() {
                    mismatch(column, &slot.data_type, value);
                }
                if slot.null_bit != NOT_NULLABLE {
                    let bit = usize::from(slot.null_bit);
                    let mask = 1 << (bit % 8);
                    let byte = &mut bytes[VERSION_BYTES + bit / 8];
                    *byte = if value.is_null() {
                        *byte | mask
                    } else {
                        *byte & !mask
                    };
                }
                true
            }
            Place::Variable(index) => {
                if value.is_null() || self.is_null(bytes, slot) {
                    return false;
                }
                let (begin, end) = self.variable_range(bytes, index as usize, width);
                let Some(length) = variable_length(&slot.data_type, value) else {
                    mismatch(column, &slot.data_type, value)
                };
                match bytes.get_mut(begin..end) {
                    Some(place) if place.len() == length => {
                        write_variable(value, place);
                        true
                    }
                    Some(_) => false,
                    None => malformed(),
                }
            }
        }
    }

    /// Whether the bytes can be read by this layout.
    pub(super) fn validate(&self, bytes: &[u8], offset_width: usize) -> bool {
        let data_start = self.fixed_end + self.variable_count * offset_width;
        if bytes.len() < data_start {
            return false;
        }
        let mut end_before = data_start;
        for slot in self.slots.iter().chain(&self.hidden) {
            let value = match slot.place {
                Place::Fixed(offset) => read_fixed(&slot.data_type, bytes, offset as usize),
                Place::Variable(index) => {
                    let (begin, end) = self.variable_range(bytes, index as usize, offset_width);
                    if begin != end_before || end < begin || end > bytes.len() {
                        return false;
                    }
                    end_before = end;
                    match self.is_null(bytes, slot) {
                        true => Some(ValueRef::Null),
                        false => read_variable(&slot.data_type, &bytes[begin..end]),
                    }
                }
            };
            if value.is_none() {
                return false;
            }
        }
        end_before == bytes.len()
    }
}
