//! Compressed blocks come back as they were built, from the whole or from a record's own
//! sectors. No flipped bit goes unnoticed. A sector never stands for more than it may.

use proptest::prelude::*;

use super::super::{each_record, sector_range};
use super::*;

type Pushed = (u16, u8, u32, Vec<u8>);

fn build(target: usize, rows: &[(u32, Vec<u8>)], id: u32) -> (Vec<u8>, Vec<Pushed>) {
    let buffer = AlignedBuffer::new_zeroed(target.next_multiple_of(SECTOR_BYTES));
    let mut builder = FrameBuilder::new(buffer);
    builder.set_target_bytes(target);
    // A used buffer must not shine through.
    while builder.try_push(9, &[0xee; 5000]).is_some() {}
    builder.finish(1, 1, 1, 1);
    builder.clear();
    let mut pushed = Vec::new();
    for (row, payload) in rows {
        if let Some((slot, extent)) = builder.try_push(*row, payload) {
            pushed.push((slot, extent, *row, payload.clone()));
        }
    }
    assert_eq!(builder.record_count() as usize, pushed.len());
    let expected_bytes = builder.device_bytes();
    let block = builder.finish(id, 77, 5, 1234).to_vec();
    assert_eq!(block.len(), expected_bytes);
    (block, pushed)
}

/// Reads a record as a fetch does: from the sectors that its address names.
fn fetch<'a>(
    frame: &'a mut Frame,
    block: &[u8],
    id: u32,
    slot: u16,
    extent: u8,
) -> Result<Record<'a>, BlockError> {
    let (offset, bytes) = sector_range(slot, extent);
    let end = match extent {
        EXTENT_MAX => block.len(),
        _ => offset + bytes,
    };
    frame.record(&block[offset..end], id, slot, offset)
}

/// A tuple as applications have them, or bytes that nothing can be made of.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let text = (any::<u32>(), 0usize..40).prop_map(|(number, times)| {
        format!("{number}: customer, street and town; ")
            .repeat(times)
            .into_bytes()
    });
    let noise = prop::collection::vec(any::<u8>(), 0..6000);
    let same = (any::<u8>(), 0usize..70_000).prop_map(|(byte, length)| vec![byte; length]);
    prop_oneof![6 => text, 2 => noise, 1 => same]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_come_back_from_the_block_and_from_their_sectors(
        rows in prop::collection::vec((any::<u32>(), payload()), 0..300),
        target in prop_oneof![Just(1024), (1usize..40).prop_map(|sectors| sectors * SECTOR_BYTES)],
        id in 1u32..,
    ) {
        let (block, pushed) = build(target, &rows, id);
        let mut found = Vec::new();
        let header = each_record(&block, id, |record| {
            found.push((record.slot, record.row, record.payload.to_vec()));
        })
        .unwrap();
        prop_assert_eq!(
            (header.kind, header.table, header.partition, header.created_lsn),
            (BlockKind::Compressed, 77, 5, 1234)
        );
        prop_assert_eq!(found.len(), pushed.len());
        let mut kept = Frame::default();
        for (found, (slot, extent, row, payload)) in found.iter().zip(&pushed) {
            prop_assert_eq!(found, &(*slot, *row, payload.clone()));
            let expected = Record { slot: *slot, row: *row, flags: 0, payload };
            let mut fresh = Frame::default();
            prop_assert_eq!(fetch(&mut fresh, &block, id, *slot, *extent), Ok(expected));
            prop_assert_eq!(fetch(&mut kept, &block, id, *slot, *extent), Ok(expected));
            let stands_for = usize::from(*extent) * SECTOR_STANDS_FOR_BYTES;
            prop_assert!(*extent == EXTENT_MAX || payload.len() <= stands_for);
            let wrong = fetch(&mut fresh, &block, id ^ 1, *slot, *extent);
            prop_assert_eq!(wrong.unwrap_err().fault, BlockFault::RecordChecksum);
        }
        prop_assert!(each_record(&block, id ^ 1, |_| ()).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..9000),
        slot in any::<u16>(),
        offset in 0usize..9000,
    ) {
        prop_assert!(Frame::default().record(&bytes, 1, slot, offset).is_err());
    }
}

#[test]
fn each_flipped_bit_is_detected() {
    let rows: Vec<_> = (0..60u32)
        .map(|row| (row, format!("row {row} of a table").repeat(8).into_bytes()))
        .collect();
    let (mut block, pushed) = build(3 * SECTOR_BYTES, &rows, 42);
    assert_eq!(pushed.len(), 60);
    for bit in 0..block.len() * 8 {
        block[bit / 8] ^= 1 << (bit % 8);
        assert!(each_record(&block, 42, |_| ()).is_err(), "bit {bit}");
        let (slot, extent, row, payload) = &pushed[bit % pushed.len()];
        let mut frame = Frame::default();
        if let Ok(record) = fetch(&mut frame, &block, 42, *slot, *extent) {
            assert_eq!((record.row, record.payload), (*row, &payload[..]));
        }
        block[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn rows_that_are_alike_take_a_part_of_their_bytes() {
    let rows: Vec<_> = (0..2000u32)
        .map(|row| {
            let text = format!(
                "order {row}, customer {}, status delivered, paid by card",
                row * 7919 % 977
            );
            (row, text.into_bytes())
        })
        .collect();
    let (block, pushed) = build(1 << 20, &rows, 1);
    assert_eq!(pushed.len(), rows.len());
    assert!(pushed.iter().all(|(_, extent, ..)| *extent == 1));
    let bytes: usize = rows.iter().map(|(_, payload)| payload.len()).sum();
    assert!(block.len() * 2 < bytes, "{} of {bytes}", block.len());
}

#[test]
fn a_record_of_more_than_a_mebibyte_fits_a_block_of_its_own() {
    let mut number = 1u32;
    let payload: Vec<u8> = std::iter::repeat_with(|| {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (number >> 24) as u8
    })
    .take((1 << 20) + 65_536)
    .collect();
    let (block, pushed) = build(BLOCK_BYTES_MAX, &[(7, payload.clone()), (8, vec![1])], 1);
    assert_eq!(
        pushed.len(),
        1,
        "the second would begin beyond the last slot"
    );
    let mut frame = Frame::default();
    let record = fetch(&mut frame, &block, 1, pushed[0].0, pushed[0].1).unwrap();
    assert_eq!((record.row, record.payload), (7, &payload[..]));
}

#[test]
fn a_block_without_records_has_nothing_of_the_one_before() {
    let (block, _) = build(1024, &[], 7);
    assert_eq!(
        each_record(&block, 7, |_| ()).map(|header| header.records),
        Ok(0)
    );
}
