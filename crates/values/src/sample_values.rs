//! Strategies that make types and values of them, for the property tests of
//! tuples and keys. Small domains are mixed in, so that equal values occur.

use proptest::prelude::*;

use crate::datetime::rounded;
use crate::numeric::long::{self, LONG};
use crate::numeric::{Numeric, POWERS_OF_TEN};
use crate::other_type::{KeyPart, OtherType};
use crate::types::DataType;
use crate::value::Value;

/// Any type.
pub fn any_type() -> impl Strategy<Value = DataType> {
    prop_oneof![
        Just(DataType::Boolean),
        Just(DataType::SmallInt),
        Just(DataType::Integer),
        Just(DataType::BigInt),
        Just(DataType::Real),
        Just(DataType::Double),
        Just(DataType::NUMERIC),
        (1i64..=45)
            .prop_flat_map(|precision| (Just(precision), -3..=precision + 2))
            .prop_map(|(precision, scale)| DataType::numeric(precision, scale).unwrap()),
        Just(DataType::Text),
        (1u32..20).prop_map(DataType::Varchar),
        (1u32..20).prop_map(DataType::Char),
        Just(DataType::Bytea),
        Just(DataType::Date),
        Just(DataType::Timestamp),
        Just(DataType::TimestampTz),
        Just(DataType::TimestampTo(3)),
        Just(DataType::TimestampTzTo(0)),
        Just(DataType::Uuid),
        prop_oneof![
            Just(18u32),
            Just(19),
            Just(26),
            Just(869),
            Just(1083),
            Just(1186)
        ]
        .prop_map(|oid| DataType::Other { oid, modifier: -1 }),
    ]
}

fn numeric_of(digits: u8, scale: Option<u8>) -> impl Strategy<Value = Value> {
    let limit = POWERS_OF_TEN[usize::from(digits)];
    (
        prop_oneof![any::<i128>(), -20i128..20],
        0..digits,
        prop_oneof![0u8..3, 0u8..=38],
    )
        .prop_map(move |(mantissa, shrink, any_scale)| {
            let mantissa = mantissa % limit / POWERS_OF_TEN[usize::from(shrink)];
            Value::Numeric(Numeric::new(mantissa, scale.unwrap_or(any_scale)).unwrap())
        })
}

/// A number that the small form does not hold, or none at all.
fn long_numeric() -> impl Strategy<Value = Value> {
    prop_oneof![
        "-?[1-9][0-9]{39,60}(\\.[0-9]{1,5})?",
        "-?0\\.0{38,60}[0-9]{0,3}",
        Just("NaN".to_owned()),
        Just("Infinity".to_owned()),
        Just("-Infinity".to_owned()),
    ]
    .prop_map(|text| Value::Other(LONG, long::from_text(&text).unwrap()))
}

/// A value of the type, as it would be stored in a column of it.
pub fn value_of(data_type: DataType) -> BoxedStrategy<Value> {
    let text = |pattern: &'static str, limit: u32| {
        pattern.prop_map(move |text| Value::Text(text.chars().take(limit as usize).collect()))
    };
    match data_type {
        DataType::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        DataType::SmallInt => prop_oneof![any::<i16>(), -2..2i16]
            .prop_map(Value::SmallInt)
            .boxed(),
        DataType::Integer => prop_oneof![any::<i32>(), -2..2i32]
            .prop_map(Value::Integer)
            .boxed(),
        DataType::BigInt => prop_oneof![any::<i64>(), -2..2i64]
            .prop_map(Value::BigInt)
            .boxed(),
        DataType::Real => prop_oneof![any::<f32>(), Just(0.0), Just(-0.0), Just(f32::NAN)]
            .prop_map(Value::Real)
            .boxed(),
        DataType::Double => prop_oneof![any::<f64>(), Just(0.0), Just(-0.0), Just(-f64::NAN)]
            .prop_map(Value::Double)
            .boxed(),
        DataType::Numeric { precision, .. } => match data_type.small_scale() {
            Some(scale) => prop_oneof![
                20 => numeric_of(precision as u8, Some(scale)),
                1 => Just(Value::Other(LONG, long::NAN_BYTES.to_vec())),
            ]
            .boxed(),
            None => prop_oneof![3 => numeric_of(38, None), 1 => long_numeric()].boxed(),
        },
        DataType::Text => {
            prop_oneof![text("\\PC{0,12}", 12), text("[a-b\u{0}\u{1} ]{0,3}", 3)].boxed()
        }
        DataType::Varchar(limit) => text("[a-c é]{0,20}", limit).boxed(),
        DataType::Char(limit) => text("[a-c é]{0,20}", limit)
            .prop_map(|value| match value {
                Value::Text(text) => Value::Text(text.trim_end_matches(' ').to_string()),
                other => other,
            })
            .boxed(),
        DataType::Bytea => prop_oneof![
            any::<Vec<u8>>(),
            proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..4),
        ]
        .prop_map(Value::Bytea)
        .boxed(),
        DataType::Date => prop_oneof![any::<i32>(), -2..2i32]
            .prop_map(Value::Date)
            .boxed(),
        DataType::Timestamp => any::<i64>().prop_map(Value::Timestamp).boxed(),
        DataType::TimestampTz => any::<i64>().prop_map(Value::TimestampTz).boxed(),
        DataType::TimestampTo(digits) => any::<i64>()
            .prop_map(move |at| Value::Timestamp(rounded(at, digits)))
            .boxed(),
        DataType::TimestampTzTo(digits) => any::<i64>()
            .prop_map(move |at| Value::TimestampTz(rounded(at, digits)))
            .boxed(),
        DataType::Uuid => any::<[u8; 16]>().prop_map(Value::Uuid).boxed(),
        DataType::Other { oid, .. } => {
            let bytes = match OtherType::of(oid) {
                Some(OtherType {
                    width: Some(width), ..
                }) => *width..=*width,
                // Equal keys and equal values are the same here: the part behind the key varies
                // in the tests of `key` alone.
                Some(OtherType {
                    key: KeyPart::First(bytes),
                    ..
                }) => *bytes..=*bytes,
                _ => 0..=9,
            };
            proptest::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], bytes)
                .prop_map(move |bytes| Value::Other(oid, bytes))
                .boxed()
        }
    }
}

/// As [`value_of`], with NULLs if the column is nullable.
pub fn nullable_value_of(data_type: DataType, nullable: bool) -> BoxedStrategy<Value> {
    if nullable {
        prop_oneof![1 => Just(Value::Null), 4 => value_of(data_type)].boxed()
    } else {
        value_of(data_type)
    }
}
