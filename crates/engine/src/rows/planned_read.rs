//! Reads of evicted tuples as they are planned, and how an error names the place of one.

use thermocline_storage::block;
use thermocline_storage::block_store::{BlockInfo, BlockPin, BlockStore};
use thermocline_storage::row_directory::ColdAddress;

use crate::catalog::storages::Storages;
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;

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
    /// Where the block begins in its file, and its length, in bytes.
    pub block_offset: u64,
    pub block_bytes: u64,
}

/// Plans reads; the pin keeps the blocks until they are done.
pub(crate) fn plan(
    blocks: &BlockStore,
    rows: impl Iterator<Item = (RowId, ColdAddress)>,
) -> Result<(Vec<PlannedRead>, BlockPin)> {
    let pin = blocks.pin();
    let mut reads = Vec::new();
    // Rows of a scan come block by block.
    let mut last: Option<BlockInfo> = None;
    for (row, address) in rows {
        let known = last.filter(|info| info.id == address.block);
        let info = known.or_else(|| blocks.info(address.block));
        let info = info.ok_or_else(|| {
            Error::Corrupt(format!(
                "the directory's row {row} refers to block {}, which the block table lacks",
                address.block
            ))
        })?;
        last = Some(info);
        reads.push(PlannedRead {
            row,
            address,
            storage: info.table,
            block_offset: info.offset,
            block_bytes: info.device_bytes,
        });
    }
    Ok((reads, pin))
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
            false => u64::from(read.address.slot) * block::SLOT_BYTES as u64,
        };
        let at = read.block_offset + slot;
        let of = self.name(read.storage);
        format!("blocks at byte {at}, row {} of {of}", read.row)
    }

    /// `table "public.t"`, or what there is to say of a storage without one.
    pub fn name(&self, storage: u32) -> String {
        match self.read().get(&storage) {
            Some(table) => format!("table \"{}.{}\"", table.def.schema, table.def.name),
            None => format!("storage {storage}"),
        }
    }
}
