//! How tables hold ranges. These bytes are on devices, and their order is that of the values.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | 0 for the empty range, after which nothing follows; 1 where the lower end is missing, else 2 |
//! | | the lower end's value; then 0 where it is in the range, 1 where it is not |
//! | 1 | 2 where the upper end is missing, else 1 |
//! | | the upper end's value; then 0 where it is not in the range, 1 where it is |
//! | 4 | of `numrange`: the digits that each end shows after the point, 0 for one that is missing |
//!
//! An end's value is its number, the highest byte first and the sign turned; that of a `numeric`
//! is its key (`values::numeric::long`).

use std::ops::Bound;

use thermocline_query::datum::Datum;
use thermocline_query::error::Result;
use thermocline_query::types::ids;
use thermocline_query::types::numeric::Numeric;
use thermocline_query::types::range::{Ends, Range, element_of};
use thermocline_values::numeric::long;
use thermocline_values::value::Value;

use super::stored::{from_ordered32, from_ordered64, long_numeric, ordered32, ordered64};
use super::value::of_numeric;

const EMPTY: u8 = 0;
const LOWER_MISSING: u8 = 1;
const LOWER: u8 = 2;
const UPPER: u8 = 1;
const UPPER_MISSING: u8 = 2;

/// Appends the bytes of a range.
///
/// # Errors
/// XX000 for a number that has no form.
pub(super) fn encode(range: &Range, out: &mut Vec<u8>) -> Result<()> {
    let mut scales = [0_u16; 2];
    match &range.ends {
        None => out.push(EMPTY),
        Some(Ends { lower, upper }) => {
            match lower {
                Bound::Unbounded => out.push(LOWER_MISSING),
                Bound::Included(value) | Bound::Excluded(value) => {
                    out.push(LOWER);
                    scales[0] = encode_end(value, out)?;
                    out.push(u8::from(matches!(lower, Bound::Excluded(_))));
                }
            }
            match upper {
                Bound::Unbounded => out.push(UPPER_MISSING),
                Bound::Included(value) | Bound::Excluded(value) => {
                    out.push(UPPER);
                    scales[1] = encode_end(value, out)?;
                    out.push(u8::from(matches!(upper, Bound::Included(_))));
                }
            }
        }
    }
    if range.element == ids::NUMERIC {
        for scale in scales {
            out.extend(scale.to_be_bytes());
        }
    }
    Ok(())
}

/// Appends an end's value. Of a `numeric` it gives how many digits show after the point.
fn encode_end(value: &Datum, out: &mut Vec<u8>) -> Result<u16> {
    match value {
        Datum::Int4(value) | Datum::Date(value) => out.extend(ordered32(*value)),
        Datum::Int8(value) | Datum::Timestamp(value) | Datum::TimestampTz(value) => {
            out.extend(ordered64(*value));
        }
        value => {
            let number = value.as_numeric();
            match of_numeric(number)? {
                Value::Numeric(small) => long::push_small_key(small, out),
                Value::Other(_, bytes) => out.extend_from_slice(long::key_of(&bytes)),
                _ => {}
            }
            return Ok(number.scale());
        }
    }
    Ok(0)
}

/// The range of these bytes; `None` for bytes of none.
pub(super) fn decode(oid: u32, bytes: &[u8]) -> Option<Range> {
    let element = element_of(oid)?;
    let (mut bytes, scales) = match element {
        ids::NUMERIC => bytes.split_last_chunk::<4>()?,
        _ => (bytes, &[0; 4]),
    };
    let [a, b, c, d] = *scales;
    let bytes = &mut bytes;
    let ends = match take::<1>(bytes)? {
        [EMPTY] => None,
        [kind] => {
            let lower = match kind {
                LOWER_MISSING => Bound::Unbounded,
                LOWER => {
                    let value = decode_end(element, bytes, [a, b])?;
                    match take::<1>(bytes)? {
                        [0] => Bound::Included(value),
                        _ => Bound::Excluded(value),
                    }
                }
                _ => return None,
            };
            let upper = match take::<1>(bytes)? {
                [UPPER_MISSING] => Bound::Unbounded,
                [UPPER] => {
                    let value = decode_end(element, bytes, [c, d])?;
                    match take::<1>(bytes)? {
                        [0] => Bound::Excluded(value),
                        _ => Bound::Included(value),
                    }
                }
                _ => return None,
            };
            Some(Ends { lower, upper })
        }
    };
    bytes.is_empty().then_some(Range { element, ends })
}

/// Takes the first bytes off.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

/// Takes an end's value off.
fn decode_end(element: u32, bytes: &mut &[u8], scale: [u8; 2]) -> Option<Datum> {
    Some(match element {
        ids::INT4 => Datum::Int4(from_ordered32(take(bytes)?)),
        ids::DATE => Datum::Date(from_ordered32(take(bytes)?)),
        ids::INT8 => Datum::Int8(from_ordered64(take(bytes)?)),
        ids::TIMESTAMP => Datum::Timestamp(from_ordered64(take(bytes)?)),
        ids::TIMESTAMPTZ => Datum::TimestampTz(from_ordered64(take(bytes)?)),
        _ => {
            let (key, rest) = bytes.split_at_checked(long::key_length(bytes)?)?;
            *bytes = rest;
            Datum::Numeric(number(key, scale)?)
        }
    })
}

/// The number of this key that shows so many digits after the point.
fn number(key: &[u8], scale: [u8; 2]) -> Option<Numeric> {
    long_numeric(&[key, &scale].concat()).ok()
}

#[cfg(test)]
mod tests {
    use thermocline_query::call::{Call, Plain};
    use thermocline_query::types;
    use thermocline_values::other_type::OtherType;

    use crate::typed::stored;

    use super::*;

    fn bytes(oid: u32, text: &str) -> Vec<u8> {
        let plain = Plain::default();
        let call = Call::new(&plain, &[], oid);
        let value = types::input(&call, oid, text, -1).unwrap();
        let mut bytes = Vec::new();
        stored::encode(oid, &value, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn equal_ranges_of_other_words_have_equal_keys() {
        let other = OtherType::of(ids::NUMRANGE).unwrap();
        let (short, long) = (
            bytes(ids::NUMRANGE, "[1,20)"),
            bytes(ids::NUMRANGE, "[1.00,20.0)"),
        );
        assert_ne!(short, long);
        assert_eq!(other.key_of(&short), other.key_of(&long));
    }

    #[test]
    fn bytes_of_no_range_are_refused() {
        for (oid, text) in [(ids::INT4RANGE, "[1,5)"), (ids::NUMRANGE, "(-1.5,)")] {
            let bytes = bytes(oid, text);
            assert!(decode(oid, &bytes).is_some());
            for length in 0..bytes.len() {
                assert!(decode(oid, &bytes[..length]).is_none(), "{text} {length}");
            }
            assert!(decode(oid, &[&[7], &bytes[1..]].concat()).is_none());
            assert!(decode(oid, &[&bytes[..], &[0]].concat()).is_none());
        }
    }

    #[test]
    fn the_bytes_on_devices_stay_as_they_are() {
        let hex = |oid, text| -> String {
            let bytes = bytes(oid, text);
            bytes.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        assert_eq!(hex(ids::INT4RANGE, "[1,5)"), "028000000100018000000500");
        assert_eq!(hex(ids::NUMRANGE, "[1.50,)"), "02c11000000200020000");
        assert_eq!(hex(ids::NUMRANGE, "empty"), "0000000000");
        assert_eq!(
            hex(ids::INT4RANGE_ARRAY, "{\"[1,5)\",empty}"),
            "15400f00000102000000010000000\
             21c17000000010401000000020405000000\
             1c1700000003"
        );
    }
}
