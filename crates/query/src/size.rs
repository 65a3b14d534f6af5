//! What values hold beyond their own size, for the accounts of who keeps many of them.

use crate::datum::Datum;
use crate::types::range::Ends;

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
        Datum::Range(range) => {
            let ends = range.ends.iter().flat_map(Ends::values);
            SHARED + size_of_val(&**range) + ends.map(beyond).sum::<usize>()
        }
        Datum::JsonPath(path) => SHARED + size_of_val(&**path) + path.bytes,
        _ => 0,
    }
}

/// The bytes of values, their own size included.
#[must_use]
pub fn values(values: &[Datum]) -> usize {
    size_of_val(values) + values.iter().map(beyond).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, Plain};
    use crate::types::{self, ids};

    #[test]
    fn what_a_value_holds_grows_with_it_whatever_its_type() {
        let plain = Plain::default();
        let long = "7".repeat(3000);
        let samples = [
            (ids::TEXT, long.clone()),
            (ids::BYTEA, long.clone()),
            (ids::NUMERIC, long.clone()),
            (ids::JSONB, format!("{{\"a\": [\"{long}\"]}}")),
            (ids::JSONB, format!("{{\"{long}\": 1}}")),
            (ids::JSONB, format!("[{long}]")),
            (ids::VARBIT, "1".repeat(24_000)),
            (ids::TEXT_ARRAY, format!("{{{long}}}")),
            (ids::JSONPATH, format!("$.\"{long}\"")),
        ];
        for (oid, text) in samples {
            let call = Call::new(&plain, &[], oid);
            let value = types::input(&call, oid, &text, -1).expect("a value");
            let held = beyond(&value);
            assert!(held > 1000 && held < 100 * text.len(), "{oid}: {held}");
        }
        assert_eq!(beyond(&Datum::Int8(i64::MAX)), 0);
    }
}
