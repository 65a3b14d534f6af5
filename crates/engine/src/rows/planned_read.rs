//! Reads of evicted tuples as they are planned, and how an error names the place of one.

use thermocline_storage::block;
use thermocline_storage::block_store::{BlockInfo, BlockPin, BlockStore, file_named};
use thermocline_storage::row_directory::ColdAddress;

use crate::catalog::storages::Storages;
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::policy::Whole;

/// Marks the key of a whole block: addresses have 48 bits.
const OF_BLOCK: u64 = 1 << 63;

/// The key of a cold address among fetched tuples.
#[inline]
pub(crate) fn address_key(address: ColdAddress) -> u64 {
    (u64::from(address.block) << 16) | u64::from(address.slot)
}

/// A tuple to be read: planned under the partition's lock, so that the block
/// cannot be given up before the read.
#[derive(Clone, Copy)]
pub(crate) struct PlannedRead {
    pub row: RowId,
    pub address: ColdAddress,
    /// Whose row it is; for an error's words.
    pub storage: u32,
    /// The tablespace that the block lies in.
    pub tablespace: u16,
    /// Where the block begins in its file, and its length, in bytes.
    pub block_offset: u64,
    pub block_bytes: u64,
    /// Its records are compressed.
    pub compressed: bool,
    /// All of the block is read, and not only the tuple's sectors.
    pub whole: bool,
}

/// A tuple that is needed and is not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missing {
    pub row: RowId,
    pub address: ColdAddress,
    /// Whether all of its block is read, by the table's policy; of a row in columns it never is.
    pub whole: Whole,
}

/// One of which only its sectors are read.
impl From<(RowId, ColdAddress)> for Missing {
    fn from((row, address): (RowId, ColdAddress)) -> Self {
        Missing {
            row,
            address,
            whole: Whole::No,
        }
    }
}

impl PlannedRead {
    fn of(missing: Missing, info: &BlockInfo) -> Self {
        let Missing {
            row,
            address,
            whole,
        } = missing;
        PlannedRead {
            row,
            address,
            storage: info.table,
            tablespace: info.tablespace,
            block_offset: info.offset,
            block_bytes: info.device_bytes,
            compressed: info.compressed,
            whole: !address.is_in_columns() && whole.holds(info.live_share()),
        }
    }

    /// What is read of its block: first byte and length.
    pub fn range(&self) -> (usize, usize) {
        match self.whole {
            true => (0, self.block_bytes as usize),
            false => read_range(self.address, self.block_bytes),
        }
    }

    /// What it has in common with other reads that bring the same.
    pub fn key(&self) -> u64 {
        match self.whole {
            true => OF_BLOCK | u64::from(self.address.block),
            false => address_key(self.address),
        }
    }
}

/// Plans reads; the pin keeps the blocks until they are done.
pub(crate) fn plan(
    blocks: &BlockStore,
    rows: impl Iterator<Item = impl Into<Missing>>,
) -> Result<(Vec<PlannedRead>, BlockPin)> {
    let pin = blocks.pin();
    let mut reads = Vec::new();
    // Rows of a scan come block by block.
    let mut last: Option<BlockInfo> = None;
    for missing in rows {
        let missing = missing.into();
        let info = match last.filter(|info| info.id == missing.address.block) {
            Some(info) => info,
            None => known(blocks, &missing)?,
        };
        last = Some(info);
        reads.push(PlannedRead::of(missing, &info));
    }
    Ok((reads, pin))
}

/// Plans one read under the lock of the row's partition. A block that a row's word leads to lives as
/// long as that is held, so nothing is pinned: the read must be over by then.
pub(crate) fn plan_under_lock(blocks: &BlockStore, missing: Missing) -> Result<PlannedRead> {
    Ok(PlannedRead::of(missing, &known(blocks, &missing)?))
}

fn known(blocks: &BlockStore, missing: &Missing) -> Result<BlockInfo> {
    let block = missing.address.block;
    blocks.info(block).ok_or_else(|| {
        Error::Corrupt(format!(
            "the directory's row {} refers to block {block}, which the block table lacks",
            missing.row
        ))
    })
}

/// The sectors of the block that a record lies in: first byte and length. A
/// record whose extent is "long" is read to the end of its block.
pub(crate) fn read_range(address: ColdAddress, block_bytes: u64) -> (usize, usize) {
    let (first, bytes) = block::sector_range(address.slot, address.extent);
    if address.extent == ColdAddress::EXTENT_LONG {
        (first, (block_bytes as usize).saturating_sub(first))
    } else {
        (first, bytes)
    }
}

impl Storages {
    /// The error of a record that is not what was written: where it is, and whose.
    pub(crate) fn damaged(&self, read: &PlannedRead, what: &str) -> Error {
        Error::Corrupt(format!("{}: {what}", self.place(read)))
    }

    /// Where a record lies, and whose it is.
    pub(crate) fn place(&self, read: &PlannedRead) -> String {
        let slot = match read.address.is_in_columns() {
            true => 0,
            // Of a frame, which begins with a sector.
            false if read.compressed => block::sector_range(read.address.slot, 0).0 as u64,
            false => u64::from(read.address.slot) * block::SLOT_BYTES as u64,
        };
        let at = read.block_offset + slot;
        let of = self.name(read.storage);
        let file = file_named(read.tablespace);
        format!("{file} at byte {at}, row {} of {of}", read.row)
    }

    /// `table "public.t"`, or what there is to say of a storage without one.
    pub fn name(&self, storage: u32) -> String {
        match self.read().get(&storage) {
            Some(table) => format!("table \"{}.{}\"", table.def.schema, table.def.name),
            None => format!("storage {storage}"),
        }
    }
}
