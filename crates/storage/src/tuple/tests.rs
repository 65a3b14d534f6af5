//! Tuples against the values they were made of.

use proptest::prelude::*;

use super::*;
use thermocline_values::numeric::Numeric;
use thermocline_values::sample_values::{any_type, nullable_value_of};

fn shape(data_type: DataType, nullable: bool) -> ColumnShape {
    ColumnShape {
        data_type,
        nullable,
    }
}

fn encode(layouts: &Layouts, values: &[Value]) -> Vec<u8> {
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    let mut out = Vec::new();
    layouts.encode(&values, &mut out);
    out
}

fn decode(layouts: &Layouts, bytes: &[u8]) -> Vec<Value> {
    layouts
        .tuple(bytes)
        .values()
        .map(|value| value.to_owned())
        .collect()
}

#[test]
fn a_tuple_without_nullable_or_variable_columns_has_no_overhead_but_its_version() {
    let layouts = Layouts::new(&[
        shape(DataType::SmallInt, false),
        shape(DataType::BigInt, false),
        shape(DataType::numeric(12, 2).unwrap(), false),
    ]);
    let values = [
        Value::SmallInt(-1),
        Value::BigInt(7),
        Value::Numeric(Numeric::parse("-123.45").unwrap()),
    ];
    let bytes = encode(&layouts, &values);
    assert_eq!(bytes.len(), 2 + 2 + 8 + 8);
    assert_eq!(decode(&layouts, &bytes), values);
    // The wide columns come first.
    assert_eq!(bytes[2], 7);
    assert_eq!(layouts.get(&bytes, 2).to_owned(), values[2]);
}

#[test]
fn a_numeric_keeps_the_scale_it_had() {
    let layouts = Layouts::new(&[shape(DataType::NUMERIC, false)]);
    for text in [
        "0",
        "0.00",
        "-1.50",
        "99999999999999999999999999999999999999",
    ] {
        let number = Numeric::parse(text).unwrap();
        let bytes = encode(&layouts, &[Value::Numeric(number)]);
        match layouts.get(&bytes, 0) {
            ValueRef::Numeric(found) => assert_eq!(found.to_string(), text),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_added_column_reads_as_its_default_in_older_tuples() {
    let mut layouts = Layouts::new(&[shape(DataType::Integer, false)]);
    let old = encode(&layouts, &[Value::Integer(1)]);
    layouts.add_column(shape(DataType::Text, false), Value::Text("warm".into()));
    layouts.add_column(shape(DataType::BigInt, true), Value::Null);
    let new = encode(
        &layouts,
        &[
            Value::Integer(2),
            Value::Text("hot".into()),
            Value::BigInt(3),
        ],
    );
    assert!(layouts.validate(&old) && layouts.validate(&new));
    assert_eq!(
        decode(&layouts, &old),
        [Value::Integer(1), Value::Text("warm".into()), Value::Null]
    );
    assert_eq!(
        decode(&layouts, &new),
        [
            Value::Integer(2),
            Value::Text("hot".into()),
            Value::BigInt(3)
        ]
    );
    // What an older tuple lacks cannot be patched, what it has can.
    let mut patched = old.clone();
    assert!(!layouts.patch(&mut patched, 2, ValueRef::BigInt(4)));
    assert_eq!(patched, old);
    assert!(layouts.patch(&mut patched, 0, ValueRef::Integer(9)));
    assert_eq!(layouts.get(&patched, 0).to_owned(), Value::Integer(9));
}

#[test]
fn a_column_that_becomes_nullable_reads_on_in_older_tuples() {
    let mut layouts = Layouts::new(&[shape(DataType::Integer, false)]);
    let old = encode(&layouts, &[Value::Integer(1)]);
    layouts.set_nullable(0, true);
    let new = encode(&layouts, &[Value::Null]);
    assert_eq!(decode(&layouts, &old), [Value::Integer(1)]);
    assert_eq!(decode(&layouts, &new), [Value::Null]);
}

#[test]
fn patching_turns_null_into_a_value_and_back() {
    let layouts = Layouts::new(&[shape(DataType::Integer, true), shape(DataType::Text, true)]);
    let mut bytes = encode(&layouts, &[Value::Null, Value::Text("abc".into())]);
    assert!(layouts.patch(&mut bytes, 0, ValueRef::Integer(5)));
    assert_eq!(layouts.get(&bytes, 0).to_owned(), Value::Integer(5));
    assert!(layouts.patch(&mut bytes, 1, ValueRef::Text("xyz")));
    assert!(!layouts.patch(&mut bytes, 1, ValueRef::Text("longer")));
    assert!(!layouts.patch(&mut bytes, 1, ValueRef::Null));
    assert!(layouts.patch(&mut bytes, 0, ValueRef::Null));
    assert_eq!(
        bytes,
        encode(&layouts, &[Value::Null, Value::Text("xyz".into())])
    );
}

#[test]
fn a_large_tuple_has_wide_offsets() {
    let layouts = Layouts::new(&[shape(DataType::Text, false), shape(DataType::Bytea, true)]);
    for length in [65_534, 65_535, 65_536, 200_000] {
        let values = [Value::Text("x".repeat(length)), Value::Bytea(vec![1])];
        let bytes = encode(&layouts, &values);
        assert!(layouts.validate(&bytes));
        assert_eq!(decode(&layouts, &bytes), values);
    }
}

#[test]
#[should_panic(expected = "cannot hold")]
fn a_value_of_another_type_is_not_encoded() {
    let layouts = Layouts::new(&[shape(DataType::Integer, true)]);
    encode(&layouts, &[Value::BigInt(1)]);
}

#[test]
#[should_panic(expected = "cannot hold Null")]
fn null_is_not_encoded_where_it_is_forbidden() {
    let layouts = Layouts::new(&[shape(DataType::Text, false)]);
    encode(&layouts, &[Value::Null]);
}

fn any_row() -> impl Strategy<Value = (Vec<ColumnShape>, Vec<Value>)> {
    proptest::collection::vec((any_type(), any::<bool>()), 1..12)
        .prop_map(|columns| {
            let shapes = columns.into_iter();
            shapes
                .map(|(data_type, nullable)| shape(data_type, nullable))
                .collect::<Vec<_>>()
        })
        .prop_flat_map(|shapes| {
            let values: Vec<_> = shapes
                .iter()
                .map(|shape| nullable_value_of(shape.data_type, shape.nullable))
                .collect();
            (Just(shapes), values)
        })
}

proptest! {
    #[test]
    fn a_tuple_reads_as_what_was_written((shapes, values) in any_row()) {
        let layouts = Layouts::new(&shapes);
        let bytes = encode(&layouts, &values);
        prop_assert!(layouts.validate(&bytes));
        prop_assert_eq!(decode(&layouts, &bytes), values);
    }

    #[test]
    fn patching_is_encoding_again((shapes, mut values) in any_row(), (_, others) in any_row()) {
        let layouts = Layouts::new(&shapes);
        let mut bytes = encode(&layouts, &values);
        for (column, other) in others.into_iter().enumerate().take(values.len()) {
            let same_type = other.data_type() == values[column].data_type();
            if same_type && shapes[column].data_type.is_fixed_width()
                && !thermocline_values::numeric::long::is_numeric(&other)
            {
                prop_assert!(layouts.patch(&mut bytes, column, other.as_ref()));
                values[column] = other;
            }
        }
        prop_assert_eq!(bytes, encode(&layouts, &values));
    }

    #[test]
    fn damaged_tuples_are_refused_or_readable(
        (shapes, values) in any_row(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let layouts = Layouts::new(&shapes);
        let mut bytes = encode(&layouts, &values);
        if bytes.len().is_multiple_of(2) {
            bytes.truncate(cut.index(bytes.len()) + 1);
        }
        for (index, byte) in damage {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if layouts.validate(&bytes) {
            prop_assert_eq!(decode(&layouts, &bytes).len(), values.len());
        }
    }

    #[test]
    fn noise_is_refused_or_readable(mut bytes: Vec<u8>, (shapes, _) in any_row()) {
        if let Some(version) = bytes.first_chunk_mut::<2>() {
            *version = [0; 2];
        }
        let layouts = Layouts::new(&shapes);
        if layouts.validate(&bytes) {
            prop_assert_eq!(decode(&layouts, &bytes).len(), shapes.len());
        }
    }
}
