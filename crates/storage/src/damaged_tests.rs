use std::sync::Arc;

use thermocline_device::{
    AlignedBuffer, Device, OpenMode, SECTOR_BYTES, SimulatedClock, SimulatedDevice, read_damaged,
};

use crate::block::{
    BLOCK_HEADER_BYTES, BlockBuilder, BlockFault, BlockHeader, Frame, FrameBuilder, each_record,
    read_record,
};
use crate::block_store::{BlockStore, BlockStoreOptions, blocks_of_table};
use crate::btree::BTree;
use crate::changed_pages::Paged;
use crate::columns::{ColumnBuilder, Directory, GroupReader};
use crate::hash_index::HashIndex;
use crate::index_snapshot::Reader;
use crate::log::{Log, LogOptions, read_tail};
use crate::tuple::{ColumnShape, Layouts};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

const ID: u32 = 77;

fn u32_at(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 4).map_or(0, |field| {
        u32::from_le_bytes(field.try_into().expect("four bytes")) as usize
    })
}

fn put_u32(bytes: &mut [u8], at: usize, number: u32) {
    if let Some(field) = bytes.get_mut(at..at + 4) {
        field.copy_from_slice(&number.to_le_bytes());
    }
}

/// Makes the checksum of a block's header right, after that of what follows it.
fn repair_header(block: &mut [u8], payload_end: usize) {
    let end = payload_end.clamp(BLOCK_HEADER_BYTES.min(block.len()), block.len());
    if let Some(payload) = block.get(BLOCK_HEADER_BYTES..end) {
        let crc = crc32c::crc32c(payload);
        put_u32(block, 28, crc);
    }
    if block.len() >= BLOCK_HEADER_BYTES {
        put_u32(block, 8, 0);
        let crc = crc32c::crc32c(&block[..BLOCK_HEADER_BYTES]);
        put_u32(block, 8, crc);
    }
}

fn repair_records(block: &mut [u8]) {
    let id = (u32_at(block, 12) as u32).to_le_bytes();
    let mut at = BLOCK_HEADER_BYTES;
    for _ in 0..1000 {
        let end = at.saturating_add(16 + u32_at(block, at));
        if end > block.len() {
            break;
        }
        let slot = ((at / 16) as u16).to_le_bytes();
        let crc = crc32c::crc32c(&[&id[..], &slot].concat());
        let crc = crc32c::crc32c_append(crc, &block[at..at + 8]);
        let crc = crc32c::crc32c_append(crc, &block[at + 12..end]);
        put_u32(block, at + 8, crc);
        at = end.next_multiple_of(16);
    }
    let end = u32_at(block, 24);
    repair_header(block, end);
}

#[test]
fn a_damaged_block_of_records_is_refused() {
    let valid: Vec<Vec<u8>> = [(1, 5000), (20, 100), (300, 0)]
        .into_iter()
        .map(|(count, bytes)| {
            let mut builder = BlockBuilder::new(AlignedBuffer::new_zeroed(64 << 10));
            for row in 0..count {
                builder.try_push(row, &vec![row as u8; bytes], 0);
            }
            builder.finish(ID, 5, 3, 9).to_vec()
        })
        .collect();
    read_damaged(
        "block of records",
        &valid,
        |bytes| repair_records(bytes),
        |block| {
            for (slot, before) in [(4, 0), (5, 0), (200, 0), (u16::MAX, 0), (4, 64)] {
                let _ = read_record(block, ID, slot, before);
            }
            let read = each_record(block, ID, |_| ()).map_err(|error| error.to_string());
            read.map(|_| ())
        },
    );
}

/// Makes the checksums of a compressed block's frames right, then the block's.
fn repair_frames(block: &mut [u8]) {
    let id = (u32_at(block, 12) as u32).to_le_bytes();
    let mut sector = 0;
    while sector * SECTOR_BYTES < block.len() {
        let at = (sector * SECTOR_BYTES).max(BLOCK_HEADER_BYTES);
        let (compressed, from) = (u32_at(block, at), u32_at(block, at + 4));
        let bytes = u32_at(block, at + 12);
        let stored = compressed.saturating_add(bytes.saturating_sub(from));
        let end = at.saturating_add(24).saturating_add(stored);
        if end > block.len() {
            break;
        }
        let crc = crc32c::crc32c(&id);
        let crc = crc32c::crc32c_append(crc, &(sector as u32).to_le_bytes());
        let crc = crc32c::crc32c_append(crc, &block[at..at + 8]);
        let crc = crc32c::crc32c_append(crc, &block[at + 12..end]);
        put_u32(block, at + 8, crc);
        sector = end
            .div_ceil(SECTOR_BYTES)
            .max(sector + bytes.div_ceil(16 << 10));
    }
    let end = u32_at(block, 24);
    repair_header(block, end);
}

#[test]
fn a_damaged_block_of_compressed_records_is_refused() {
    let valid: Vec<Vec<u8>> = [(1, 5000), (20, 100), (300, 0), (3, 30_000)]
        .into_iter()
        .map(|(count, bytes)| {
            let mut builder = FrameBuilder::new(AlignedBuffer::new_zeroed(64 << 10));
            for row in 0..count {
                let tuple = (0..bytes).map(|at: usize| (at / 7 * (at % 3)) as u8);
                builder.try_push(row, &tuple.collect::<Vec<u8>>());
            }
            builder.finish(ID, 5, 3, 9).to_vec()
        })
        .collect();
    read_damaged(
        "block of compressed records",
        &valid,
        |bytes| repair_frames(bytes),
        |block| {
            for (slot, before) in [(4, 0), (5, 0), (256, 0), (u16::MAX, 0), (4, 64)] {
                let _ = Frame::default().record(block, ID, slot, before);
            }
            let read = each_record(block, ID, |_| ()).map_err(|error| error.to_string());
            read.map(|_| ())
        },
    );
}

fn layouts() -> Layouts {
    let types = [
        DataType::BigInt,
        DataType::Text,
        DataType::Integer,
        DataType::Uuid,
        DataType::Text,
    ];
    let shapes = types.map(|data_type| ColumnShape {
        data_type,
        nullable: true,
    });
    Layouts::new(&shapes)
}

fn block_of_columns(count: i64, spread: i64) -> Vec<u8> {
    let layouts = layouts();
    let mut builder = ColumnBuilder::new(1 << 20);
    for n in 0..count {
        let state = ["open", "paid", "sent"][(n / spread % 3) as usize];
        let values = [
            Value::BigInt((n * 7919 % 13) << 40),
            Value::Text(state.into()),
            if n % 5 == 0 {
                Value::Null
            } else {
                Value::Integer((n / spread) as i32)
            },
            Value::Uuid([n as u8; 16]),
            Value::Text(format!("note {n}")),
        ];
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        let mut tuple = Vec::new();
        layouts.encode(&values, &mut tuple);
        if n % 50 == 7 {
            // Of another layout.
            tuple[0] ^= 1;
        }
        builder.try_push(n as u32, &tuple);
    }
    builder.seal(&layouts);
    builder.finish(ID, 5, 3, 9).to_vec()
}

/// Checksums of the chunks that the directory names, of the directory, and of the header.
fn repair_columns(block: &mut [u8]) {
    let id = (u32_at(block, 12) as u32).to_le_bytes();
    let begin = BLOCK_HEADER_BYTES;
    let columns = u32_at(block, begin + 4) >> 16;
    for number in 0..(2 + columns).min(100) {
        let at = begin + 16 + number * 12;
        let (offset, bytes) = (u32_at(block, at), u32_at(block, at + 4));
        if let Some(chunk) = block.get(offset..offset + bytes) {
            let place = [&id[..], &(number as u16).to_le_bytes()].concat();
            let crc = crc32c::crc32c_append(crc32c::crc32c(&place), chunk);
            put_u32(block, at + 8, crc);
        }
    }
    let end = begin + u32_at(block, begin);
    repair_header(block, end);
}

#[test]
fn a_damaged_block_of_columns_is_refused() {
    let valid = [(3, 1), (200, 50), (700, 3), (2000, 200)].map(|(n, s)| block_of_columns(n, s));
    read_damaged(
        "block of columns",
        &valid,
        |bytes| repair_columns(bytes),
        |block| {
            let read = each_record(block, ID, |_| ()).map_err(|error| error.to_string());
            read.map(|_| ())
        },
    );
}

#[test]
fn some_columns_of_a_damaged_block_are_refused() {
    let valid = [(200, 50), (700, 3)].map(|(n, s)| block_of_columns(n, s));
    read_damaged(
        "some columns",
        &valid,
        |bytes| repair_columns(bytes),
        |block| {
            let (_, directory) = Directory::decode(block, ID).map_err(|error| error.to_string())?;
            let wanted = directory.wanted(Some(&[0, 2, 9]));
            let reader = GroupReader::new(&directory, |number| {
                let place = directory
                    .chunk(number)
                    .filter(|_| wanted.contains(&number))?;
                block.get(place.range())
            });
            let reader = reader.ok_or("it is malformed")?;
            let mut tuple = Vec::new();
            for position in 0..directory.rows() + 1 {
                if reader.tuple(position, &mut tuple).is_some() {
                    let _ = layouts().validate(&tuple);
                }
                let _ = reader.row(position);
            }
            Ok(())
        },
    );
}

/// Pages of a structure, each behind its number, and its head, each behind its length.
fn saved(structure: &impl Paged) -> Vec<u8> {
    let mut out = Vec::new();
    let mut part = Vec::new();
    for page in 0..structure.pages() {
        part.clear();
        part.extend_from_slice(&(page as u32).to_le_bytes());
        if structure.write_page(page, &mut part) {
            out.extend_from_slice(&(part.len() as u32).to_le_bytes());
            out.extend_from_slice(&part);
        }
    }
    part.clear();
    structure.write_head(&mut part);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&part);
    out
}

fn restored(structure: &mut impl Paged, bytes: &[u8]) -> Result<(), String> {
    let mut from = Reader::new(bytes);
    let words = |error: crate::index_snapshot::Corrupt| error.to_string();
    loop {
        let length = from.u32().map_err(words)? as usize;
        if length == 0 {
            return structure.read_head(&mut from).map_err(words);
        }
        let mut part = Reader::new(from.bytes(length).map_err(words)?);
        let page = part.u32().map_err(words)? as usize;
        structure.read_page(page, &mut part).map_err(words)?;
    }
}

#[test]
fn a_damaged_btree_is_refused() {
    let valid: Vec<Vec<u8>> = [0, 5, 3000]
        .into_iter()
        .map(|keys: u32| {
            let mut tree = BTree::new();
            for key in 0..keys {
                let key_bytes = format!("a common beginning {}", key * 7919 % 5003);
                let _ = tree.insert(key_bytes.as_bytes(), key);
            }
            saved(&tree)
        })
        .collect();
    read_damaged(
        "B+tree",
        &valid,
        |_| (),
        |bytes| {
            let mut tree = BTree::new();
            restored(&mut tree, bytes)?;
            // What is taken for a tree can be used as one.
            tree.get_first(b"a common beginning 77");
            tree.remove(b"a common beginning 77", 5);
            let _ = tree.insert(b"a common beginning 77", 5);
            Ok(())
        },
    );
}

#[test]
fn a_damaged_hash_index_is_refused() {
    let valid: Vec<Vec<u8>> = [0, 5, 5000]
        .into_iter()
        .map(|keys: u64| {
            let mut index = HashIndex::new();
            for key in 0..keys {
                let hash = (key / 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                index.insert(hash, key as u32);
            }
            let mut out = saved(&index);
            if let Some(duplicates) = index.duplicates() {
                out.extend(saved(duplicates));
            }
            out
        })
        .collect();
    read_damaged(
        "hash index",
        &valid,
        |_| (),
        |bytes| {
            let mut index = HashIndex::new();
            restored(&mut index, bytes)?;
            let hash = 77u64.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            index.candidates(hash).count();
            index.remove(hash, 7);
            index.insert(hash, 7);
            Ok(())
        },
    );
}

/// A tuple of the shape was made before the shape was looked at: one field of the directory asked
/// for 4 GB for each row.
#[test]
fn a_shape_that_no_tuple_can_have_is_refused() {
    let mut block = block_of_columns(200, 50);
    put_u32(&mut block, BLOCK_HEADER_BYTES + 8, u32::MAX);
    repair_columns(&mut block);
    let read = each_record(&block, ID, |_| ()).map_err(|error| error.fault);
    assert_eq!(read.err(), Some(BlockFault::Bounds));
}

fn store_options() -> BlockStoreOptions {
    BlockStoreOptions {
        grow_bytes: 64 << 10,
        ..BlockStoreOptions::new(7)
    }
}

/// A device with one file of these bytes.
fn device_with(file: &str, bytes: &[u8]) -> SimulatedDevice {
    let device = SimulatedDevice::new();
    let made = device.open(file, OpenMode::Create).expect("a file");
    made.write_at(bytes, 0).expect("room");
    made.set_len(bytes.len() as u64).expect("room");
    device
}

fn bytes_of(device: &SimulatedDevice, file: &str) -> Vec<u8> {
    let file = device.open(file, OpenMode::Existing).expect("it is there");
    let mut bytes = vec![0; file.len().expect("a length") as usize];
    file.read_at(&mut bytes, 0).expect("readable");
    bytes
}

#[test]
fn a_damaged_block_table_is_refused() {
    let device = SimulatedDevice::new();
    let store = BlockStore::open(&device, store_options(), None).expect("opens");
    let mut valid = Vec::new();
    for _ in 0..3 {
        for number in 0..20 {
            let block = crate::block_store::NewBlock {
                tablespace: crate::block_store::HOME,
                compressed: number % 2 == 0,
                device_bytes: SECTOR_BYTES * (1 + number % 3),
                table: 4,
                partition: 2,
                records: 5,
            };
            store.allocate(block).expect("room");
        }
        let epoch = store.begin_checkpoint();
        let mut table = Vec::new();
        store.write_to(epoch, &mut table);
        valid.push(table);
    }
    drop(store);
    let blocks = bytes_of(&device, "blocks");
    read_damaged(
        "Block Table",
        &valid,
        |_| (),
        |table| {
            let _ = blocks_of_table(table);
            let device = device_with("blocks", &blocks);
            let opened = BlockStore::open(&device, store_options(), Some(table));
            opened.map(|_| ()).map_err(|error| error.to_string())
        },
    );
    let superblocks = blocks[..2 * SECTOR_BYTES].to_vec();
    let repair = |bytes: &mut Vec<u8>| {
        for at in [0, SECTOR_BYTES] {
            if let Some(header) = bytes.get(at..at + 40) {
                let crc = crc32c::crc32c(header);
                put_u32(bytes, at + 40, crc);
            }
        }
    };
    read_damaged("superblocks", &[superblocks], repair, |bytes| {
        let device = device_with("blocks", bytes);
        let opened = BlockStore::open(&device, store_options(), None);
        opened.map(|_| ()).map_err(|error| error.to_string())
    });
}

/// Checksums of the segment's header, and of groups and records where they begin by their
/// lengths.
fn repair_segment(bytes: &mut [u8]) {
    if let Some(header) = bytes.get(..40) {
        let crc = crc32c::crc32c(header);
        put_u32(bytes, 40, crc);
    }
    let database = 42u128.to_le_bytes();
    let mut at = SECTOR_BYTES;
    while at + 40 <= bytes.len() {
        if bytes[at..at + 4] != *b"GLCT" {
            at += SECTOR_BYTES;
            continue;
        }
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[at..at + 32]), &database);
        put_u32(bytes, at + 32, crc);
        let mut lsn = [0; 8];
        lsn.copy_from_slice(&bytes[at + 8..at + 16]);
        let mut lsn = u64::from_le_bytes(lsn);
        let group_end = at.saturating_add(40 + u32_at(bytes, at + 4));
        let mut record = at + 40;
        while record + 8 <= group_end.min(bytes.len()) {
            let end = record + 8 + u32_at(bytes, record);
            let Some(payload) = bytes.get(record + 8..end) else {
                break;
            };
            let crc = crc32c::crc32c_append(crc32c::crc32c(payload), &lsn.to_le_bytes());
            put_u32(bytes, record + 4, crc);
            lsn = lsn.wrapping_add((end - record) as u64);
            record = end;
        }
        at = record.max(at + 1).next_multiple_of(SECTOR_BYTES);
    }
}

#[test]
fn a_damaged_segment_of_the_log_is_refused() {
    let options = || LogOptions {
        segment_bytes: 8 * SECTOR_BYTES as u64,
        buffer_bytes: 8192,
        ..LogOptions::new(42, Arc::new(SimulatedClock::default()))
    };
    let device = SimulatedDevice::new();
    let (log, _) = Log::open(Arc::new(device.clone()), options(), None).expect("opens");
    for number in 0..30usize {
        log.append(&[&vec![number as u8; number * 7919 % 3000]])
            .expect("room");
        if number % 3 == 0 {
            log.step();
        }
    }
    log.step();
    drop(log);
    let mut names = device.list().expect("names");
    names.retain(|name| crate::log::is_segment(name));
    names.sort();
    let name = names.pop().expect("a segment");
    let valid = bytes_of(&device, &name);
    read_damaged(
        "segment of the log",
        &[valid],
        |bytes| repair_segment(bytes),
        |bytes| {
            let device: Arc<dyn Device> = Arc::new(device_with(&name, bytes));
            let words = |error: crate::log::LogError| error.to_string();
            let mut tail = read_tail(&device, &options(), None).map_err(words)?;
            while tail.next().map_err(words)?.is_some() {}
            Ok(())
        },
    );
}

#[test]
fn a_damaged_header_of_a_block_is_refused() {
    let valid = block_of_columns(3, 1)[..BLOCK_HEADER_BYTES].to_vec();
    read_damaged(
        "header of a block",
        &[valid],
        |bytes| repair_header(bytes, 0),
        |bytes| {
            let read = BlockHeader::decode(bytes, ID).map_err(|error| error.to_string());
            read.map(|_| ())
        },
    );
}

#[test]
fn damaged_tuples_are_not_valid_or_can_be_read() {
    let layouts = layouts();
    let values = [
        Value::BigInt(5),
        Value::Text("a text".into()),
        Value::Null,
        Value::Uuid([7; 16]),
        Value::Text(String::new()),
    ];
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    let mut tuple = Vec::new();
    layouts.encode(&values, &mut tuple);
    read_damaged(
        "tuple",
        &[tuple],
        |_| (),
        |bytes| {
            if !layouts.validate(bytes) {
                return Err("it is not valid".into());
            }
            layouts.tuple(bytes).values().count();
            Ok(())
        },
    );
}
