//! What values hold beyond their own size, for the accounts of who keeps many of them.

use crate::datum::Datum;

/// The counters of what is shared.
const SHARED: usize = 2 * size_of::<usize>();

/// The bytes of a value beyond its own size. What is shared is counted as if it were not.
#[must_use]
pub fn beyond(value: &Datum) -> usize {
    match value {
        Datum::Text(text) => SHARED + text.len(),
        Datum::Bytea(bytes) => SHARED + bytes.len(),
        Datum::Numeric(value) => value.held_bytes(),
        Datum::Jsonb(value) => SHARED + value.bytes(),
        Datum::Bit(bits) => SHARED + size_of_val(&**bits) + bits.bytes.len(),
        Datum::Array(array) => {
            SHARED
                + size_of_val(&**array)
                + size_of_val(array.dimensions.as_slice())
                + values(&array.elements)
        }
        Datum::Record(record) => SHARED + size_of_val(&**record) + values(&record.values),
        Datum::JsonPath(path) => SHARED + size_of_val(&**path),
        _ => 0,
    }
}

/// The bytes of values, their own size included.
#[must_use]
pub fn values(values: &[Datum]) -> usize {
    size_of_val(values) + values.iter().map(beyond).sum::<usize>()
}
