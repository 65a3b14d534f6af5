use proptest::prelude::*;

use super::*;
use crate::block::{BlockHeader, BlockKind, each_record, verify_records};
use crate::tuple::{ColumnShape, Layouts};
use thermocline_values::sample_values::{any_type, nullable_value_of};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

pub(super) const ID: u32 = 77;

pub(super) fn shape(data_type: DataType) -> ColumnShape {
    ColumnShape {
        data_type,
        nullable: true,
    }
}

pub(super) fn encoded(layouts: &Layouts, values: &[Value]) -> Vec<u8> {
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    let mut out = Vec::new();
    layouts.encode(&values, &mut out);
    out
}

pub(super) fn built(layouts: &Layouts, tuples: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = ColumnBuilder::new(1 << 20);
    for (place, tuple) in tuples.iter().enumerate() {
        let pushed = builder.try_push(100 + place as u32, tuple);
        assert_eq!(pushed, Some((place as u16, COLUMNS_EXTENT)));
    }
    builder.seal(layouts);
    let block = builder.finish(ID, 5, 3, 9).to_vec();
    assert_eq!(block.len(), builder.device_bytes());
    block
}

/// A table as a shop has it: serial numbers, few states, a date that ascends, a comment.
pub(super) fn orders(count: i64) -> (Layouts, Vec<Vec<u8>>) {
    let layouts = Layouts::new(&[
        shape(DataType::BigInt),
        shape(DataType::Text),
        shape(DataType::Date),
        shape(DataType::Double),
        shape(DataType::Text),
        shape(DataType::Integer),
    ]);
    let states = ["open", "paid", "sent", "returned"];
    let order = |n: i64| {
        let values = [
            Value::BigInt(1_000_000 + n),
            Value::Text(states[(n * 7919 % 4) as usize].into()),
            Value::Date(9000 + (n / 50) as i32),
            Value::Double((n * 31 % 1009) as f64 / 100.0),
            Value::Text(format!("note {}", n * 7919 % 100_003)),
            match n % 10 {
                0 => Value::Null,
                _ => Value::Integer((n % 7) as i32),
            },
        ];
        encoded(&layouts, &values)
    };
    let tuples = (0..count).map(order).collect();
    (layouts, tuples)
}

#[test]
fn a_group_is_smaller_than_its_tuples_and_gives_them_back() {
    let (layouts, tuples) = orders(5000);
    let block = built(&layouts, &tuples);
    let mut found = Vec::new();
    let header = each_record(&block, ID, |record| {
        assert_eq!(usize::from(record.slot), found.len());
        assert_eq!(record.row, 100 + found.len() as u32);
        found.push(record.payload.to_vec());
    });
    assert_eq!(header.expect("is sound").records, 5000);
    assert_eq!(found, tuples);
    let raw: usize = tuples.iter().map(Vec::len).sum();
    assert!(block.len() * 2 < raw, "{} of {raw}", block.len());
}

#[test]
fn each_column_has_its_encoding_and_its_zone() {
    let (layouts, tuples) = orders(5000);
    let block = built(&layouts, &tuples);
    let (header, directory) = Directory::decode(&block, ID).expect("is sound");
    assert_eq!(header.kind, BlockKind::Columns);
    assert_eq!((header.table, header.partition), (5, 3));
    let chunk = |number: usize| directory.chunk(number).map(|chunk| &block[chunk.range()]);
    let reader = GroupReader::new(&directory, chunk).expect("is sound");
    let encodings: Vec<Encoding> = (0..6).filter_map(|c| reader.encoding(c)).collect();
    assert_eq!(
        encodings,
        [
            Encoding::FrameOfReference,
            Encoding::Dictionary,
            Encoding::RunLength,
            Encoding::Dictionary,
            Encoding::Plain,
            Encoding::FrameOfReference
        ]
    );
    let zone = |column| directory.zone(column).expect("is a column");
    let said: Vec<Encoding> = (0..6).filter_map(|c| zone(c).encoding).collect();
    assert_eq!(said, encodings, "the directory says it, too");
    assert_eq!(zone(0).range, Some((1_000_000, 1_004_999)));
    assert_eq!(zone(1).range, None);
    assert_eq!(zone(2).range, Some((9000, 9099)));
    assert_eq!(zone(3).range, None, "no integer");
    assert_eq!((zone(5).range, zone(5).nulls), (Some((0, 6)), 500));
}

#[test]
fn some_columns_are_read_without_the_others() {
    let (layouts, tuples) = orders(300);
    let block = built(&layouts, &tuples);
    let (_, directory) = Directory::decode(&block, ID).expect("is sound");
    let wanted = directory.wanted(Some(&[2, 4, 11]));
    let chunk = |number: usize| {
        let is_wanted = wanted.contains(&number);
        let place = directory.chunk(number).filter(|_| is_wanted)?;
        Some(&block[place.range()])
    };
    let reader = GroupReader::new(&directory, chunk).expect("is sound");
    let mut tuple = Vec::new();
    for (position, whole) in tuples.iter().enumerate() {
        reader.tuple(position, &mut tuple).expect("is there");
        assert!(layouts.validate(&tuple));
        for column in 0..6 {
            let value = layouts.get(&tuple, column).to_owned();
            match [2, 4].contains(&column) {
                true => assert_eq!(value, layouts.get(whole, column).to_owned()),
                false => assert_eq!(value, Value::Null),
            }
        }
    }
    assert!(reader.tuple(300, &mut tuple).is_none());
}

#[test]
fn tuples_of_older_layouts_are_kept_whole() {
    let (mut layouts, mut tuples) = orders(100);
    let mut values = vec![Value::Null; 6];
    layouts.add_column(shape(DataType::Integer), Value::Integer(42));
    values.push(Value::Integer(1));
    tuples.extend((0..40).map(|_| encoded(&layouts, &values)));
    // One whose NULL has bytes: nobody writes it so, and it comes back as it was.
    let (_, strange) = orders(2);
    let mut strange = strange[1].clone();
    strange[2] |= 1;
    tuples.push(strange);
    let block = built(&layouts, &tuples);
    let mut found = Vec::new();
    each_record(&block, ID, |record| found.push(record.payload.to_vec())).expect("is sound");
    assert_eq!(found, tuples);
    let (_, directory) = Directory::decode(&block, ID).expect("is sound");
    assert_eq!((directory.columns(), directory.odd), (6, 41));
}

#[test]
fn a_group_has_a_bound_unless_it_is_of_one_row() {
    let mut builder = ColumnBuilder::new(1000);
    assert!(builder.try_push(1, &[0; 5000]).is_some());
    assert!(builder.try_push(2, &[0; 1]).is_none());
    builder.clear();
    assert!(builder.try_push(1, &[0; 600]).is_some());
    assert!(builder.try_push(2, &[0; 600]).is_none());
    assert!(builder.try_push(3, &[0; 400]).is_some());
    let mut builder = ColumnBuilder::new(1 << 20);
    let pushed = (0..=GROUP_ROWS_MAX as u32).map(|row| builder.try_push(row, b""));
    let pushed: Vec<_> = pushed.collect();
    assert_eq!(pushed[GROUP_ROWS_MAX - 1], Some((u16::MAX, 0)));
    assert_eq!(pushed[GROUP_ROWS_MAX], None);
}

#[test]
fn damage_is_noticed_and_hurts_one_column() {
    let (layouts, tuples) = orders(500);
    let block = built(&layouts, &tuples);
    let (header, directory) = Directory::decode(&block, ID).expect("is sound");
    for at in (0..header.length_bytes as usize).step_by(7) {
        let mut damaged = block.clone();
        damaged[at] ^= 0x10;
        let error = verify_records(&damaged, ID).expect_err("is damaged");
        let number = (0..directory.chunks()).find(|number| {
            let chunk = directory.chunk(*number).unwrap_or_default();
            chunk.range().contains(&at)
        });
        // The other chunks are as they were.
        if let (Some(number), Ok((_, directory))) = (number, Directory::decode(&damaged, ID)) {
            for other in 0..directory.chunks() {
                let range = directory.chunk(other).unwrap_or_default().range();
                let checked = directory.check(other, &damaged[range], ID);
                assert_eq!(checked.is_ok(), other != number, "{error}");
            }
        }
    }
    assert!(verify_records(&block, ID + 1).is_err(), "another block's");
    assert!(BlockHeader::decode(&block, ID).is_ok());
    assert!(crate::block::records(&block, ID).is_err(), "no records");
}

#[test]
fn what_is_cut_off_says_how_much_is_needed() {
    let (layouts, tuples) = orders(20);
    let block = built(&layouts, &tuples);
    for length in 0..Directory::bytes_of(6) + 64 {
        assert!(Directory::decode(&block[..length], ID).is_err());
    }
    assert!(Directory::decode(&block[..Directory::bytes_of(6) + 64], ID).is_ok());
}

#[test]
fn a_group_without_sums_of_pages_is_read_by_chunks() {
    let (layouts, tuples) = orders(300);
    let mut block = built(&layouts, &tuples);
    let (header, mut directory) = Directory::decode(&block, ID).expect("is sound");
    // As programs wrote it that knew no sums: their place is not in the directory.
    directory.sums = None;
    let bytes = Directory::bytes_without_sums(6);
    directory.encode(&mut block[64..64 + bytes]);
    let payload_crc = crc32c::crc32c(&block[64..64 + bytes]);
    BlockHeader {
        payload_crc,
        ..header
    }
    .encode(&mut block[..64]);
    let (_, read) = Directory::decode(&block, ID).expect("is sound");
    assert_eq!(read, directory);
    assert!(read.check_sums(&[], ID).is_err());
    let mut found = Vec::new();
    each_record(&block, ID, |record| found.push(record.payload.to_vec())).expect("is sound");
    assert_eq!(found, tuples);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_tuples_come_back(
        (types, rows) in prop::collection::vec(any_type(), 1..8).prop_flat_map(|types| {
            let row: Vec<_> = types.iter().map(|of| nullable_value_of(*of, true)).collect();
            (Just(types), prop::collection::vec(row, 0..60))
        }),
        wanted in prop::collection::vec(0usize..8, 0..4),
    ) {
        let shapes: Vec<ColumnShape> = types.iter().map(|of| shape(*of)).collect();
        let layouts = Layouts::new(&shapes);
        let tuples: Vec<Vec<u8>> = rows.iter().map(|row| encoded(&layouts, row)).collect();
        let block = built(&layouts, &tuples);
        let mut found = Vec::new();
        each_record(&block, ID, |record| found.push(record.payload.to_vec())).expect("is sound");
        prop_assert_eq!(&found, &tuples);
        let (_, directory) = Directory::decode(&block, ID).expect("is sound");
        if !tuples.is_empty() {
            prop_assert_eq!(directory.odd, 0);
        }
        let needed = directory.wanted(Some(&wanted));
        let chunk = |number: usize| {
            let place = directory.chunk(number).filter(|_| needed.contains(&number))?;
            Some(&block[place.range()])
        };
        let reader = GroupReader::new(&directory, chunk).expect("is sound");
        let mut tuple = Vec::new();
        for (position, row) in tuples.iter().enumerate() {
            reader.tuple(position, &mut tuple).expect("is there");
            prop_assert!(layouts.validate(&tuple));
            for column in wanted.iter().filter(|column| **column < types.len()) {
                prop_assert_eq!(layouts.get(&tuple, *column).to_owned(), layouts.get(row, *column).to_owned());
            }
        }
    }
}
