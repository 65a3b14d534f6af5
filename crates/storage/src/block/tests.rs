//! Blocks come back as they were built, from the whole or from a record's own
//! sectors, and no flipped bit goes unnoticed.

use proptest::prelude::*;

use super::*;

type Pushed = (u16, u8, u32, u16, Vec<u8>);

fn build(capacity: usize, rows: &[(u32, u16, Vec<u8>)], id: u32) -> (Vec<u8>, Vec<Pushed>) {
    let mut builder = BlockBuilder::new(AlignedBuffer::new_zeroed(capacity));
    // A used buffer must not shine through.
    while builder.try_push(9, &[0xee; 100], 0xffff).is_some() {}
    builder.clear();
    let mut pushed = Vec::new();
    for (row, flags, payload) in rows {
        if let Some((slot, extent)) = builder.try_push(*row, payload, *flags) {
            pushed.push((slot, extent, *row, *flags, payload.clone()));
        }
    }
    assert_eq!(builder.record_count() as usize, pushed.len());
    let expected_bytes = builder.device_bytes();
    let block = builder.finish(id, 77, 5, 1234).to_vec();
    assert_eq!(block.len(), expected_bytes);
    (block, pushed)
}

/// Reads a record as a fetch does: from the sectors that its address names.
fn fetch(block: &[u8], id: u32, slot: u16, extent: u8) -> Result<Record<'_>, BlockError> {
    let (offset, bytes) = sector_range(slot, extent);
    match read_record(&block[offset..offset + bytes], id, slot, offset) {
        Err(BlockError {
            fault: BlockFault::Short { needed_bytes },
            ..
        }) if extent == EXTENT_MAX => {
            assert!(needed_bytes > bytes);
            read_record(&block[offset..offset + needed_bytes], id, slot, offset)
        }
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_come_back_from_the_block_and_from_their_sectors(
        rows in prop::collection::vec(
            (any::<u32>(), any::<u16>(), (any::<u8>(), 0usize..9000)
                .prop_map(|(byte, length)| vec![byte; length])),
            0..60,
        ),
        sectors in 1usize..64,
        id in 1u32..,
    ) {
        let (block, pushed) = build(sectors * SECTOR_BYTES, &rows, id);
        prop_assert_eq!(block.len() % SECTOR_BYTES, 0);
        let (header, found) = records(&block, id).unwrap();
        prop_assert_eq!(
            (header.id, header.table, header.partition, header.created_lsn),
            (id, 77, 5, 1234)
        );
        let found: Vec<_> = found.map(Result::unwrap).collect();
        prop_assert_eq!(found.len(), pushed.len());
        for (record, (slot, extent, row, flags, payload)) in found.iter().zip(&pushed) {
            let expected = Record { slot: *slot, row: *row, flags: *flags, payload };
            prop_assert_eq!(*record, expected);
            prop_assert_eq!(fetch(&block, id, *slot, *extent), Ok(expected));
            let wrong = fetch(&block, id ^ 1, *slot, *extent);
            prop_assert_eq!(wrong.unwrap_err().fault, BlockFault::RecordChecksum);
        }
        prop_assert!(records(&block, id ^ 1).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..9000),
        slot in any::<u16>(),
        offset in 0usize..9000,
    ) {
        prop_assert!(records(&bytes, 1).is_err());
        let _ = read_record(&bytes, 1, slot, offset).map(|r| r.row);
    }
}

#[test]
fn each_flipped_bit_is_detected() {
    let rows: Vec<_> = (0..20u32).map(|i| (i, 1, vec![i as u8; 150])).collect();
    let (mut block, pushed) = build(SECTOR_BYTES, &rows, 42);
    let length = BlockHeader::decode(&block, 42).unwrap().length_bytes as usize;
    for bit in 0..length * 8 {
        block[bit / 8] ^= 1 << (bit % 8);
        assert!(records(&block, 42).is_err(), "bit {bit}");
        for (slot, extent, row, _, payload) in &pushed {
            let at = usize::from(*slot) * SLOT_BYTES;
            let inside = at..at + RECORD_HEADER_BYTES + payload.len();
            let read = fetch(&block, 42, *slot, *extent);
            if inside.contains(&(bit / 8)) {
                assert!(read.is_err(), "bit {bit} of row {row}");
            } else {
                assert_eq!(read.map(|r| r.row), Ok(*row));
            }
        }
        block[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn a_forged_count_is_out_of_bounds() {
    let (mut block, _) = build(SECTOR_BYTES, &[(1, 0, vec![1; 64]), (2, 0, vec![2; 64])], 3);
    for count in [1u32, 3, u32::MAX] {
        block[20..24].copy_from_slice(&count.to_le_bytes());
        block[HEADER_CRC_AT..HEADER_CRC_AT + 4].fill(0);
        let crc = crc32c::crc32c(&block[..BLOCK_HEADER_BYTES]);
        block[HEADER_CRC_AT..HEADER_CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        let (_, found) = records(&block, 3).unwrap();
        let results: Vec<_> = found.collect();
        assert!(results.len() <= 3, "{count}: it ends");
        assert!(results.iter().any(Result::is_err), "{count}");
    }
}

#[test]
fn a_record_of_more_than_a_mebibyte_fits_a_block_of_its_own() {
    let payload: Vec<u8> = (0..(1 << 20) + 65_536).map(|i| (i % 251) as u8).collect();
    let rows = [(7, 0, payload.clone()), (8, 0, vec![1])];
    let (block, pushed) = build(BLOCK_BYTES_MAX, &rows, 1);
    assert_eq!(
        pushed.len(),
        1,
        "the second would start beyond the last slot"
    );
    assert_eq!(pushed[0].1, EXTENT_MAX);
    let record = fetch(&block, 1, pushed[0].0, pushed[0].1).unwrap();
    assert_eq!((record.row, record.payload), (7, &payload[..]));
}

#[test]
fn the_last_slot_is_used_and_the_next_refused() {
    let mut builder = BlockBuilder::new(AlignedBuffer::new_zeroed(BLOCK_BYTES_MAX));
    let filler = SLOT_OFFSET_END - SLOT_BYTES - BLOCK_HEADER_BYTES - RECORD_HEADER_BYTES;
    assert_eq!(
        builder.try_push(1, &vec![3; filler], 0),
        Some((4, EXTENT_MAX))
    );
    assert_eq!(builder.try_push(2, &[4; 50], 0), Some((u16::MAX, 2)));
    assert_eq!(builder.try_push(3, &[], 0), None);
    let block = builder.finish(9, 1, 1, 1);
    assert_eq!(fetch(block, 9, u16::MAX, 2).map(|r| r.row), Ok(2));
    assert_eq!(records(block, 9).unwrap().1.count(), 2);
}
