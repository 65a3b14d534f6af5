//! A checkpoint's files: partitions' images, base and deltas, and the block
//! table, verified before they are believed.

use hashbrown::HashMap;
use thermocline_device::Device;
use thermocline_storage::btree::BTree;
use thermocline_storage::changed_pages::Paged;
use thermocline_storage::hash_index::HashIndex;
use thermocline_storage::index_snapshot::{Corrupt, Reader};
use thermocline_storage::row_directory::{PAGE_WORDS, RowDirectory};

use crate::catalog::IndexKind;
use crate::format::image::{Frame, IMAGE_MAGIC, ImageReader};
use crate::format::manifest::{Manifest, PartitionFiles, read_file};
use crate::ground::error::{Error, Result};
use crate::ground::txn_id::TxnId;
use crate::rows::index::{Index, IndexSlot};
use crate::rows::kind::Kind;
use crate::rows::partition::{PartitionState, UncommittedRange};
use crate::rows::row_state::TablePartition;

/// What the images of some partitions hold.
#[derive(Default)]
pub(crate) struct Restored {
    pub rows: u64,
    /// How many tuples each block holds for them.
    pub lives: HashMap<u32, u32>,
}

/// A table whose pages are being filled.
#[derive(Default)]
struct Pages {
    directory: RowDirectory,
    indexes: HashMap<u32, Index>,
}

/// Puts a partition's image in place: the base, then each delta over it.
pub(crate) fn restore_partition(
    device: &dyn Device,
    state: &mut PartitionState,
    image: &PartitionFiles,
    restored: &mut Restored,
) -> Result<()> {
    let mut pages: HashMap<u32, Pages> = HashMap::new();
    let mut late = Vec::new();
    for (number, file) in image.files.iter().enumerate() {
        let is_last = number + 1 == image.files.len();
        let mut reader = ImageReader::open(device, file)?;
        let mut is_first_frame = true;
        let mut has_end = false;
        while let Some((frame, body)) = reader.next()? {
            let mut from = Reader::new(body);
            let from = &mut from;
            let read = match frame {
                _ if has_end || is_first_frame != (frame == Frame::Head) => {
                    Err(Corrupt("frames in another order than they are written"))
                }
                Frame::Head => read_file_head(from, state.id, number == 0),
                Frame::Words | Frame::Lines | Frame::Nodes | Frame::Duplicates => {
                    read_pages(frame, from, &mut pages)
                }
                // Later files have these rows again.
                Frame::Tuples if is_last => {
                    late.push(body.to_vec());
                    Ok(())
                }
                Frame::Tuples => Ok(()),
                Frame::End => {
                    has_end = true;
                    if is_last {
                        read_end(from, state, &mut pages, restored)
                    } else {
                        Ok(())
                    }
                }
            };
            is_first_frame = false;
            read.map_err(|error| reader.damaged(error))?;
        }
        if !has_end {
            return Err(reader.damaged("its last frame is missing"));
        }
        if is_last {
            for tuples in &late {
                read_tuples(&mut Reader::new(tuples), state)
                    .map_err(|error| reader.damaged(error))?;
            }
        }
    }
    Ok(())
}

fn read_file_head(
    from: &mut Reader<'_>,
    partition: u16,
    is_base: bool,
) -> std::result::Result<(), Corrupt> {
    if from.bytes(8)? != IMAGE_MAGIC || u16::from_le_bytes(from.array()?) != partition {
        return Err(Corrupt("not an image of this partition"));
    }
    if (from.u8()? == 1) != is_base {
        return Err(Corrupt("a delta in place of a base, or the reverse"));
    }
    from.u64()?;
    from.end()
}

/// Fills the pages of a section.
fn read_pages(
    kind: Frame,
    from: &mut Reader<'_>,
    pages: &mut HashMap<u32, Pages>,
) -> std::result::Result<(), Corrupt> {
    let table = pages.entry(from.u32()?).or_default();
    let oid = from.u32()?;
    let count = from.u32()?;
    for _ in 0..count {
        let page = from.u32()? as usize;
        if kind == Frame::Words {
            let words = from.bytes(PAGE_WORDS * 8)?.chunks_exact(8);
            let words = words.filter_map(|word| word.first_chunk().copied());
            table
                .directory
                .restore_page(page, words.map(u64::from_le_bytes))?;
            continue;
        }
        let index = table.indexes.entry(oid).or_insert_with(|| match kind {
            Frame::Nodes => Index::BTree(BTree::new()),
            _ => Index::Hash(HashIndex::new()),
        });
        match (index, kind) {
            (Index::BTree(tree), Frame::Nodes) => tree.read_page(page, from)?,
            (Index::Hash(index), Frame::Lines) => index.read_page(page, from)?,
            (Index::Hash(index), Frame::Duplicates) => index.read_duplicates_page(page, from)?,
            _ => return Err(Corrupt("an index of two kinds")),
        }
    }
    from.end()
}

/// Makes the tables that are there of their pages; counts the tuples of blocks.
fn read_end(
    from: &mut Reader<'_>,
    state: &mut PartitionState,
    pages: &mut HashMap<u32, Pages>,
    restored: &mut Restored,
) -> std::result::Result<(), Corrupt> {
    for _ in 0..from.u32()? {
        let storage = from.u32()?;
        let live = from.u64()?;
        let appended = from.u32()?;
        let mut found = pages.remove(&storage).unwrap_or_default();
        found.directory.end_restore(appended)?;
        let cold = count_lives(&found.directory, &mut restored.lives)?;
        let mut indexes = Vec::new();
        for _ in 0..from.u32()? {
            let oid = from.u32()?;
            let kind = match from.u8()? {
                1 => IndexKind::Hash,
                2 => IndexKind::BTree,
                _ => return Err(Corrupt("an index of no known kind")),
            };
            let length = from.u32()? as usize;
            let mut head = Reader::new(from.bytes(length)?);
            let index = found.indexes.remove(&oid);
            let mut index = index.unwrap_or_else(|| Index::new(kind));
            match (&mut index, kind) {
                (Index::Hash(index), IndexKind::Hash) => index.read_head(&mut head)?,
                (Index::BTree(tree), IndexKind::BTree) => tree.read_head(&mut head)?,
                _ => return Err(Corrupt("an index of two kinds")),
            }
            head.end()?;
            indexes.push(IndexSlot { oid, index });
        }
        restored.rows += live;
        let mut table = TablePartition::new(&state.pages, indexes, state.policies.home().server);
        table.restore(found.directory, cold, live);
        state.tables.put(storage, Kind::InPlace(table));
    }
    for _ in 0..from.u32()? {
        let storage = from.u32()?;
        let first = from.u32()?;
        let range = UncommittedRange {
            last: from.u32()?,
            level: 0,
            owner: TxnId(from.u64()?),
        };
        state.uncommitted.insert((storage, first), range);
    }
    from.end()
}

/// Counts the tuples that each block holds; how many there are.
fn count_lives(
    directory: &RowDirectory,
    lives: &mut HashMap<u32, u32>,
) -> std::result::Result<u64, Corrupt> {
    let mut cold = 0;
    // Neighbours are often in one block.
    let (mut block, mut run) = (0, 0);
    for (_, word) in directory.iter() {
        let word = word
            .as_cold()
            .ok_or(Corrupt("a word that is neither free nor cold"))?;
        cold += 1;
        if word.address().block != block {
            *lives.entry(block).or_default() += run;
            (block, run) = (word.address().block, 0);
        }
        run += 1;
    }
    *lives.entry(block).or_default() += run;
    Ok(cold)
}

/// Puts the tuples in memory that were in no block at the cut.
fn read_tuples(
    from: &mut Reader<'_>,
    state: &mut PartitionState,
) -> std::result::Result<(), Corrupt> {
    let storage = from.u32()?;
    from.u32()?;
    let count = from.u32()?;
    let rows = state
        .tables
        .rows_mut(storage)
        .ok_or(Corrupt("tuples of a table that is not there"))?;
    for _ in 0..count {
        let row = from.u32()?;
        let flags = from.u8()?;
        let length = from.u32()? as usize;
        let tuple = from.bytes(length)?;
        if row >= rows.directory().appended() || !rows.directory().get(row).is_free() {
            return Err(Corrupt("a tuple of a row that is elsewhere"));
        }
        rows.restore_dirty(row, tuple, flags & 7, flags & 8 != 0)
            .map_err(|_| Corrupt("a tuple for which there is no room"))?;
    }
    from.end()
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
