//! The order of keys against the order of values.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::tuple::ColumnShape;
use thermocline_values::sample_values::{any_type, nullable_value_of};
use thermocline_values::value::Value;

fn column(data_type: DataType) -> KeyColumn {
    KeyColumn {
        data_type,
        nullable: false,
        descending: false,
    }
}

fn key(shape: &KeyShape, values: &[Value]) -> Vec<u8> {
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    let mut out = Vec::new();
    shape.encode(&values, &mut out);
    out
}

fn numeric_key(data_type: DataType, text: &str) -> Vec<u8> {
    let number = Value::Numeric(Numeric::parse(text).unwrap());
    key(&KeyShape::new(vec![column(data_type)]), &[number])
}

#[test]
fn a_fixed_width_column_costs_its_width() {
    let shape = KeyShape::new(vec![
        column(DataType::Integer),
        column(DataType::SmallInt),
        column(DataType::numeric(12, 2).unwrap()),
    ]);
    let values = [
        Value::Integer(-1),
        Value::SmallInt(1),
        Value::Numeric(Numeric::from(3)),
    ];
    assert_eq!(key(&shape, &values).len(), 4 + 2 + 8);
    assert_eq!(key(&shape, &values[..1]), [0x7f, 0xff, 0xff, 0xff]);
}

#[test]
fn scales_and_blanks_do_not_make_keys_differ() {
    let price = DataType::numeric(12, 2).unwrap();
    for data_type in [DataType::NUMERIC, price] {
        assert_eq!(
            numeric_key(data_type, "1.0"),
            numeric_key(data_type, "1.00")
        );
        assert_eq!(numeric_key(data_type, "0"), numeric_key(data_type, "0.00"));
    }
    let shape = KeyShape::new(vec![column(DataType::Char(5))]);
    assert_eq!(
        key(&shape, &[Value::Text("ab  ".into())]),
        key(&shape, &[Value::Text("ab".into())])
    );
}

#[test]
fn numerics_are_in_order_across_signs_and_sizes() {
    let ascending = [
        "-99999999999999999999999999999999999999",
        "-100",
        "-99.5",
        "-99",
        "-1.01",
        "-1",
        "-0.1",
        "-0.00000000000000000000000000000000000001",
        "0",
        "0.00000000000000000000000000000000000001",
        "0.09",
        "0.1",
        "0.11",
        "1",
        "1.01",
        "9.99",
        "10",
        "10.5",
        "100",
        "99999999999999999999999999999999999999",
    ];
    for pair in ascending.windows(2) {
        let (a, b) = (
            numeric_key(DataType::NUMERIC, pair[0]),
            numeric_key(DataType::NUMERIC, pair[1]),
        );
        assert!(a < b, "{} {a:?} before {} {b:?}", pair[0], pair[1]);
    }
}

#[test]
fn a_prefix_and_its_successor_bound_its_keys() {
    let shape = KeyShape::new(vec![column(DataType::Text), column(DataType::Integer)]);
    let entry =
        |text: &str, number| key(&shape, &[Value::Text(text.into()), Value::Integer(number)]);
    let lower = key(&shape, &[Value::Text("ab".into())]);
    let mut upper = lower.clone();
    assert!(prefix_successor(&mut upper));
    for inside in [
        entry("ab", i32::MIN),
        entry("ab", -1),
        entry("ab", i32::MAX),
    ] {
        assert!(lower <= inside && inside < upper);
    }
    for outside in [
        entry("aa", i32::MAX),
        entry("abc", 0),
        entry("ab\u{1}", 0),
        entry("a", 0),
    ] {
        assert!(outside < lower || outside >= upper);
    }
    assert!(!prefix_successor(&mut vec![255, 255]));
}

#[test]
fn a_text_start_bounds_a_like() {
    for descending in [false, true] {
        let shape = KeyShape::new(vec![
            column(DataType::Integer),
            KeyColumn {
                data_type: DataType::Text,
                nullable: true,
                descending,
            },
        ]);
        let entry = |text: &str| key(&shape, &[Value::Integer(1), Value::Text(text.into())]);
        let mut lower = Vec::new();
        assert!(shape.encode_text_start(&[ValueRef::Integer(1)], "ab", &mut lower));
        let mut upper = lower.clone();
        assert!(prefix_successor(&mut upper));
        for (text, inside) in [
            ("ab", true),
            ("abz", true),
            ("aa", false),
            ("ac", false),
            ("a", false),
        ] {
            let found = entry(text);
            assert_eq!(lower <= found && found < upper, inside, "{text}");
        }
        let null = key(&shape, &[Value::Integer(1), Value::Null]);
        assert!(null < lower || null >= upper);
        assert!(!shape.encode_text_start(&[], "ab", &mut Vec::new()));
    }
}

#[test]
#[should_panic(expected = "cannot hold")]
fn a_value_of_another_type_has_no_key() {
    key(
        &KeyShape::new(vec![column(DataType::Integer)]),
        &[Value::BigInt(1)],
    );
}

/// A key's columns and two rows of values for them.
fn two_rows() -> impl Strategy<Value = (Vec<KeyColumn>, Vec<Value>, Vec<Value>)> {
    proptest::collection::vec((any_type(), any::<bool>(), any::<bool>()), 1..4)
        .prop_map(|columns| {
            let columns = columns.into_iter();
            columns
                .map(|(data_type, nullable, descending)| KeyColumn {
                    data_type,
                    nullable,
                    descending,
                })
                .collect::<Vec<_>>()
        })
        .prop_flat_map(|columns| {
            let row = || -> Vec<_> {
                let columns = columns.iter();
                columns
                    .map(|column| nullable_value_of(column.data_type, column.nullable))
                    .collect()
            };
            (Just(columns.clone()), row(), row(), any::<bool>())
        })
        .prop_map(|(columns, first, mut second, share)| {
            // Half of the pairs agree in their first column.
            if share {
                second[0] = first[0].clone();
            }
            (columns, first, second)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn bytes_are_in_the_order_of_values((columns, first, second) in two_rows()) {
        let shape = KeyShape::new(columns.clone());
        let mut expected = Ordering::Equal;
        for ((column, a), b) in columns.iter().zip(&first).zip(&second) {
            let order = if column.descending { b.cmp(a) } else { a.cmp(b) };
            expected = expected.then(order);
        }
        prop_assert_eq!(key(&shape, &first).cmp(&key(&shape, &second)), expected);
    }

    #[test]
    fn a_key_begins_with_another_only_if_its_values_do((columns, first, second) in two_rows()) {
        let shape = KeyShape::new(columns);
        let prefix = key(&shape, &first[..1]);
        let whole = key(&shape, &second);
        prop_assert_eq!(whole.starts_with(&prefix), first[0] == second[0]);
        let mut successor = prefix.clone();
        let inside = prefix <= whole && (!prefix_successor(&mut successor) || whole < successor);
        prop_assert_eq!(inside, first[0] == second[0]);
    }

    #[test]
    fn a_tuples_key_is_that_of_its_values((columns, values, other) in two_rows()) {
        let shapes: Vec<ColumnShape> = columns
            .iter()
            .rev()
            .map(|column| ColumnShape {
                data_type: column.data_type,
                nullable: column.nullable,
            })
            .collect();
        let layouts = Layouts::new(&shapes);
        let reversed: Vec<ValueRef<'_>> = values.iter().rev().map(Value::as_ref).collect();
        let mut tuple = Vec::new();
        layouts.encode(&reversed, &mut tuple);
        let indexes: Vec<usize> = (0..columns.len()).rev().collect();
        let shape = KeyShape::new(columns);
        let mut found = Vec::new();
        shape.encode_from_tuple(&layouts, &indexes, &tuple, &mut found);
        prop_assert_eq!(&found, &key(&shape, &values));
        let is_key = |key: &[u8]| shape.is_key_of(&layouts, &indexes, &tuple, key);
        prop_assert!(is_key(&found));
        let other = key(&shape, &other);
        prop_assert_eq!(is_key(&other), other == found);
        prop_assert!(!is_key(&found[..found.len() - 1]));
        found.push(0);
        prop_assert!(!is_key(&found));
    }
}
