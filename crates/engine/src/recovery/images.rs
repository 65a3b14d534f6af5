//! A checkpoint's files: partitions' images and the block table, verified before
//! they are believed.

use hashbrown::HashMap;
use thermocline_device::Device;
use thermocline_storage::btree::BTree;
use thermocline_storage::hash_index::HashIndex;
use thermocline_storage::heap::Heap;
use thermocline_storage::row_directory::{RowDirectory, Word};

use crate::checkpoint::IMAGE_MAGIC;
use crate::error::{Error, Result};
use crate::manifest::{Manifest, PartitionFile, read_file};
use crate::partition::{Index, IndexSlot, PartitionState, TablePartition, UncommittedRange};
use crate::record::Reader;
use crate::transaction::TxnId;

pub(crate) fn read_image(device: &dyn Device, file: &PartitionFile) -> Result<Vec<u8>> {
    let bytes = read_file(device, &file.file)?;
    if crc32c::crc32c(&bytes) != file.crc {
        return Err(Error::Corrupt(format!(
            "{}: its checksum is wrong",
            file.file
        )));
    }
    Ok(bytes)
}

/// Reads a partition's image; counts the live tuples of each block.
pub(crate) fn read_partition(
    state: &mut PartitionState,
    bytes: &[u8],
    lives: &mut HashMap<u32, u32>,
) -> Result<u64> {
    let mut reader = Reader(bytes);
    if reader.take(8)? != IMAGE_MAGIC || reader.u16()? != state.id {
        return Err(Error::Corrupt("not an image of this partition".into()));
    }
    let mut restored = 0;
    for _ in 0..reader.u32()? {
        let storage = reader.u32()?;
        let live = reader.u64()?;
        let appended = reader.u32()? as usize;
        let words = reader.take(appended * 8)?;
        let words = words.chunks_exact(8).map(|word| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(word);
            u64::from_le_bytes(bytes)
        });
        let mut cold = 0;
        for word in words.clone() {
            if let Some(cold_word) = Word(word).as_cold() {
                *lives.entry(cold_word.address().block).or_default() += 1;
                cold += 1;
            }
        }
        let directory = RowDirectory::from_words(words);
        let mut indexes = Vec::new();
        for _ in 0..reader.u32()? {
            let oid = reader.u32()?;
            let kind = reader.u8()?;
            let length = reader.u64()? as usize;
            let bytes = reader.take(length)?;
            let corrupt = |_| Error::Corrupt(format!("the image of index {oid}"));
            let index = match kind {
                1 => Index::Hash(HashIndex::read_from(bytes).map_err(corrupt)?),
                2 => Index::BTree(BTree::read_from(bytes).map_err(corrupt)?),
                other => return Err(Error::Corrupt(format!("an index of kind {other}"))),
            };
            indexes.push(IndexSlot { oid, index });
        }
        restored += live;
        let table = TablePartition {
            heap: Heap::new(state.arena.clone()),
            directory,
            indexes,
            live,
            cold,
            hand: 0,
            cooled: 0,
            cooling: 0,
        };
        state.tables.insert(storage, Box::new(table));
    }
    for _ in 0..reader.u32()? {
        let storage = reader.u32()?;
        let first = reader.u32()?;
        let range = UncommittedRange {
            last: reader.u32()?,
            owner: TxnId(reader.u64()?),
        };
        state.uncommitted.insert((storage, first), range);
    }
    Ok(restored)
}

pub(crate) fn read_block_table(
    device: &dyn Device,
    manifest: &Manifest,
) -> Result<Option<Vec<u8>>> {
    if manifest.blocks.is_empty() {
        return Ok(None);
    }
    let mut bytes = read_file(device, &manifest.blocks)?;
    let split = bytes.len().saturating_sub(4);
    let crc = bytes.split_off(split);
    if crc != crc32c::crc32c(&bytes).to_le_bytes() {
        return Err(Error::Corrupt(format!(
            "{}: its checksum is wrong",
            manifest.blocks
        )));
    }
    Ok(Some(bytes))
}
