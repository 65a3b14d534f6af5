//! Tests of filters and vectors, against each tuple taken apart.

use proptest::prelude::*;

use super::directory::Directory;
use super::filter::{ColumnTest, Test, float_key};
use super::shape::{Cell, Shape};
use super::tests::{ID, built, encoded, orders, shape};
use super::{GroupReader, Vector};
use crate::tuple::{ColumnShape, Layouts};
use thermocline_values::sample_values::{any_type, nullable_value_of};
use thermocline_values::types::DataType;

/// What is asked of a column, bounded by the values of two rows.
fn test_between(of: DataType, cells: (Cell<'_>, Cell<'_>), null: Option<bool>) -> Option<Test> {
    if let Some(wanted) = null {
        return Some(Test::Null(wanted));
    }
    match cells {
        (Cell::Integer(a), Cell::Integer(b)) if is_float(of) => {
            let (a, b) = (key_of(of, a), key_of(of, b));
            Some(Test::Floats(vec![(a.min(b), a.max(b))]))
        }
        (Cell::Integer(a), Cell::Integer(b)) => Some(Test::Integers(vec![
            (i64::MIN, a.min(b).saturating_sub(1)),
            (a.max(b), a.max(b)),
        ])),
        (Cell::Bytes(a), Cell::Bytes(b)) => {
            let (low, high) = (a.min(b), a.max(b));
            Some(Test::Bytes(vec![
                (low.to_vec(), Some([low, b"\0"].concat())),
                (high.to_vec(), None),
            ]))
        }
        _ => None,
    }
}

fn is_float(of: DataType) -> bool {
    matches!(of, DataType::Real | DataType::Double)
}

fn key_of(of: DataType, bits: i64) -> i64 {
    match of {
        DataType::Real => float_key(f64::from(f32::from_bits(bits as u32))),
        _ => float_key(f64::from_bits(bits.cast_unsigned())),
    }
}

fn has(of: DataType, cell: Cell<'_>, test: &Test) -> bool {
    match (cell, test) {
        (cell, Test::Null(wanted)) => (cell == Cell::Null) == *wanted,
        (Cell::Integer(value), Test::Integers(ranges)) => ranges
            .iter()
            .any(|(low, high)| (*low..=*high).contains(&value)),
        (Cell::Integer(value), Test::Floats(ranges)) => {
            let key = key_of(of, value);
            ranges
                .iter()
                .any(|(low, high)| (*low..=*high).contains(&key))
        }
        (Cell::Bytes(value), Test::Bytes(ranges)) => ranges.iter().any(|(low, high)| {
            value >= &low[..] && high.as_ref().is_none_or(|high| value < &high[..])
        }),
        _ => false,
    }
}

#[test]
fn floats_have_the_order_of_postgresql() {
    let ascending = [
        f64::NEG_INFINITY,
        -1e300,
        -1.5,
        -1e-320,
        0.0,
        1e-320,
        2.0,
        f64::INFINITY,
    ];
    for pair in ascending.windows(2) {
        assert!(float_key(pair[0]) < float_key(pair[1]), "{pair:?}");
    }
    assert!(float_key(f64::NAN) > float_key(f64::INFINITY));
    assert_eq!(float_key(f64::NAN), float_key(-f64::NAN));
    assert_eq!(float_key(-0.0), float_key(0.0));
}

#[test]
fn the_directory_alone_passes_over_a_group() {
    let (layouts, tuples) = orders(500);
    let block = built(&layouts, &tuples);
    let (_, directory) = Directory::decode(&block, ID).expect("is sound");
    let may = |column, test| directory.may_have(&[ColumnTest { column, test }]);
    assert!(may(0, Test::Integers(vec![(1_000_100, 1_000_100)])));
    assert!(!may(
        0,
        Test::Integers(vec![(0, 999_999), (1_000_500, i64::MAX)])
    ));
    assert!(!may(0, Test::Integers(Vec::new())));
    assert!(!may(0, Test::Null(true)), "none is NULL");
    assert!(may(5, Test::Null(true)) && may(5, Test::Null(false)));
    assert!(
        may(1, Test::Bytes(vec![(b"x".to_vec(), None)])),
        "texts have no zone"
    );
    assert!(may(17, Test::Null(true)), "the group has not the column");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn filters_keep_what_has_what_is_asked(
        (types, rows) in prop::collection::vec(any_type(), 1..6).prop_flat_map(|types| {
            let row: Vec<_> = types.iter().map(|of| nullable_value_of(*of, true)).collect();
            (Just(types), prop::collection::vec(row, 1..80))
        }),
        asked in prop::collection::vec((0usize..6, any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::option::weighted(0.2, any::<bool>())), 1..4),
        odd_every in prop_oneof![Just(0usize), 1usize..20],
        repeat in 1usize..4,
    ) {
        let shapes: Vec<ColumnShape> = types.iter().map(|of| shape(*of)).collect();
        let layouts = Layouts::new(&shapes);
        let rows = rows.iter().flat_map(|row| std::iter::repeat_n(row, repeat));
        let mut tuples: Vec<Vec<u8>> = rows.map(|row| encoded(&layouts, row)).collect();
        if odd_every > 0 {
            tuples.iter_mut().step_by(odd_every).for_each(|tuple| tuple.push(0));
        }
        let block = built(&layouts, &tuples);
        let (_, directory) = Directory::decode(&block, ID).expect("is sound");
        let word = u16::from_le_bytes([tuples[0][0], tuples[0][1]]);
        let of = Shape::of(word, &layouts).expect("a shape");
        let fits = |tuple: &[u8]| directory.columns() > 0 && directory.shape.fits(tuple);
        let sound: Vec<&Vec<u8>> = tuples.iter().filter(|tuple| fits(tuple)).collect();
        let tests: Vec<ColumnTest> = asked.iter().filter_map(|(column, a, b, null)| {
            if sound.is_empty() || *column >= types.len() {
                return None;
            }
            let part = &of.parts[*column];
            let cells = (of.cell(part, sound[a.index(sound.len())]), of.cell(part, sound[b.index(sound.len())]));
            let test = test_between(types[*column], cells, *null)?;
            Some(ColumnTest { column: *column, test })
        }).collect();
        let chunk = |number: usize| directory.chunk(number).map(|chunk| &block[chunk.range()]);
        let reader = GroupReader::new(&directory, chunk).expect("is sound");
        let passes = |tuple: &Vec<u8>| !fits(tuple) || tests.iter().all(|test| {
            has(types[test.column], of.cell(&of.parts[test.column], tuple), &test.test)
        });
        let wanted: Vec<u16> = (0..).zip(&tuples).filter(|(_, tuple)| passes(tuple)).map(|(place, _)| place).collect();
        let matching = reader.matching(&tests).expect("is sound");
        let matching = matching.unwrap_or_else(|| (0..tuples.len() as u16).collect());
        prop_assert_eq!(&matching, &wanted);
        if !wanted.is_empty() {
            prop_assert!(directory.may_have(&tests));
        }
        // The same rows as vectors.
        let places: Vec<u16> = wanted.into_iter().filter(|place| fits(&tuples[usize::from(*place)])).collect();
        for column in 0..directory.columns() {
            let mut valid = Vec::new();
            if !reader.validity(column, &places, &mut valid) {
                valid = vec![true; places.len()];
            }
            let mut integers = Vec::new();
            let vector = reader.vector(column).expect("a column");
            match &vector {
                Vector::Integers(all) | Vector::Dictionary(_, all) => all.each(&places, |value| integers.push(value)),
                Vector::Nothing | Vector::Strings(_) => {}
            }
            for (at, place) in places.iter().enumerate() {
                let cell = match &vector {
                    _ if !valid[at] => Cell::Null,
                    Vector::Nothing => Cell::Null,
                    Vector::Integers(_) => Cell::Integer(integers[at]),
                    Vector::Strings(strings) => Cell::Bytes(strings.get(usize::from(*place)).expect("is there")),
                    Vector::Dictionary(words, _) => Cell::Bytes(words.get(integers[at] as usize).expect("is there")),
                };
                prop_assert_eq!(cell, of.cell(&of.parts[column], &tuples[usize::from(*place)]));
            }
        }
    }
}
