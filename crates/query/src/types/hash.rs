//! Hashes of values: equal values of a type have equal hashes. Integers of all
//! widths hash alike, and so do floats, `text`, `varchar` and `name`, since they
//! are compared with each other.

use std::hash::{Hash as _, Hasher};
use std::ops::Bound;

use super::ids;
use super::jsonb::Jsonb;
use super::numeric::Numeric;
use crate::datum::Datum;

/// NULL is equal to itself where rows are grouped.
const NULL: u8 = 0;
/// Before what is not NULL inside of arrays and rows.
const VALUE: u8 = 1;

const MICROS_PER_DAY: i128 = 86_400_000_000;
const DAYS_PER_MONTH: i128 = 30;

fn float<H: Hasher>(value: f64, state: &mut H) {
    // -0 is 0, and all that is not a number is the same.
    let value = if value.is_nan() {
        f64::NAN
    } else {
        value + 0.0
    };
    value.to_bits().hash(state);
}

/// Without the zeros at its end.
fn numeric<H: Hasher>(value: &Numeric, state: &mut H) {
    match value {
        Numeric::NaN => state.write_u8(2),
        Numeric::Infinity => state.write_u8(3),
        Numeric::NegativeInfinity => state.write_u8(4),
        finite => match finite.to_parts() {
            Some((unscaled, scale)) => small_numeric(unscaled, scale, state),
            None => {
                let shortest = finite.canonical();
                match shortest.to_parts() {
                    Some((unscaled, scale)) => small_numeric(unscaled, scale, state),
                    None => shortest.hash(state),
                }
            }
        },
    }
}

fn small_numeric<H: Hasher>(mut unscaled: i128, mut scale: u16, state: &mut H) {
    if unscaled == 0 {
        scale = 0;
    }
    while scale > 0 && unscaled % 10 == 0 {
        unscaled /= 10;
        scale -= 1;
    }
    unscaled.hash(state);
    scale.hash(state);
}

fn jsonb<H: Hasher>(value: &Jsonb, state: &mut H) {
    match value {
        Jsonb::Null => state.write_u8(0),
        Jsonb::Bool(value) => {
            state.write_u8(1);
            value.hash(state);
        }
        Jsonb::Number(value) => {
            state.write_u8(2);
            numeric(value, state);
        }
        Jsonb::String(text) => {
            state.write_u8(3);
            text.hash(state);
        }
        Jsonb::Array(elements) => {
            state.write_u8(4);
            elements.len().hash(state);
            for element in elements.iter() {
                jsonb(element, state);
            }
        }
        Jsonb::Object(pairs) => {
            state.write_u8(5);
            pairs.len().hash(state);
            for (key, value) in pairs.iter() {
                key.hash(state);
                jsonb(value, state);
            }
        }
    }
}

fn inner<H: Hasher>(oid: u32, value: &Datum, state: &mut H) {
    if !value.is_null() {
        state.write_u8(VALUE);
    }
    hash(oid, value, state);
}

/// Feeds a value of a type to a hasher.
pub fn hash<H: Hasher>(oid: u32, value: &Datum, state: &mut H) {
    match value {
        Datum::Null => state.write_u8(NULL),
        Datum::Bool(value) => value.hash(state),
        Datum::Char(value) => value.hash(state),
        Datum::Int2(value) => i64::from(*value).hash(state),
        Datum::Int4(value) => i64::from(*value).hash(state),
        Datum::Int8(value) => value.hash(state),
        Datum::Oid(value) => i64::from(*value).hash(state),
        Datum::Float4(value) => float(f64::from(*value), state),
        Datum::Float8(value) => float(*value, state),
        Datum::Numeric(value) => numeric(value, state),
        Datum::Text(text) if oid == ids::BPCHAR => text.trim_end_matches(' ').hash(state),
        Datum::Text(text) => text.hash(state),
        Datum::Bytea(bytes) => bytes.hash(state),
        Datum::Date(value) => value.hash(state),
        Datum::Time(value) | Datum::Timestamp(value) | Datum::TimestampTz(value) => {
            value.hash(state);
        }
        // Equal only where time and zone are.
        Datum::TimeTz(value) => {
            value.micros.hash(state);
            value.zone.hash(state);
        }
        Datum::Interval(value) => {
            let days = i128::from(value.months) * DAYS_PER_MONTH + i128::from(value.days);
            (days * MICROS_PER_DAY + i128::from(value.micros)).hash(state);
        }
        Datum::Uuid(bytes) => bytes.hash(state),
        Datum::Jsonb(value) => jsonb(value, state),
        // It has no equality.
        Datum::JsonPath(_) => {}
        Datum::Array(array) => {
            array.elements.len().hash(state);
            for element in &array.elements {
                inner(array.element, element, state);
            }
        }
        Datum::Record(record) => {
            record.values.len().hash(state);
            for (at, value) in record.values.iter().enumerate() {
                let oid = record.types.get(at).copied().unwrap_or(0);
                inner(oid, value, state);
            }
        }
        Datum::Inet(value) => {
            value.address.hash(state);
            value.prefix.hash(state);
        }
        Datum::MacAddr(bytes) => bytes.hash(state),
        Datum::Bit(bits) => {
            bits.length.hash(state);
            bits.bytes.hash(state);
        }
        Datum::Range(range) => {
            for bound in range
                .ends
                .iter()
                .flat_map(|ends| [&ends.lower, &ends.upper])
            {
                let (kind, value) = match bound {
                    Bound::Unbounded => (0, &Datum::Null),
                    Bound::Included(value) => (1, value),
                    Bound::Excluded(value) => (2, value),
                };
                state.write_u8(kind);
                hash(range.element, value, state);
            }
        }
        Datum::Enum(place) => place.hash(state),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::hash_map::DefaultHasher;

    use super::*;

    fn of(oid: u32, value: &Datum) -> u64 {
        let mut state = DefaultHasher::new();
        hash(oid, value, &mut state);
        state.finish()
    }

    #[test]
    fn zeros_at_the_end_do_not_count() {
        let hash = |text: &str| {
            let value = Numeric::parse(text).expect("a number");
            of(ids::NUMERIC, &Datum::Numeric(value))
        };
        let zeros = "0".repeat(60);
        assert_eq!(hash("1"), hash("1.00"));
        assert_eq!(hash("0"), hash("0.000"));
        assert_ne!(hash("1"), hash("10"));
        assert_eq!(hash("21"), hash(&format!("21.{zeros}")));
        assert_eq!(
            hash(&format!("7{zeros}")),
            hash(&format!("7{zeros}.{zeros}"))
        );
    }

    #[test]
    fn what_is_compared_hashes_alike() {
        assert_eq!(
            of(ids::INT2, &Datum::Int2(-5)),
            of(ids::INT8, &Datum::Int8(-5))
        );
        assert_eq!(
            of(ids::FLOAT4, &Datum::Float4(-0.0)),
            of(ids::FLOAT8, &Datum::Float8(0.0))
        );
        assert_eq!(
            of(ids::FLOAT8, &Datum::Float8(-f64::NAN)),
            of(ids::FLOAT8, &Datum::Float8(f64::NAN))
        );
        assert_eq!(
            of(ids::BPCHAR, &Datum::text("a  ")),
            of(ids::BPCHAR, &Datum::text("a"))
        );
        assert_ne!(
            of(ids::TEXT, &Datum::text("a  ")),
            of(ids::TEXT, &Datum::text("a"))
        );
    }
}
