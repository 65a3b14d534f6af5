//! The Block Table as a checkpoint keeps it. The checkpoint checksums it; what is
//! checked here is that it makes sense: known ids, no overlaps, all in the files.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use thermocline_device::{DeviceFile, Mutation};

use super::extents::FreeExtents;
use super::{BlockStoreError, Entry, SECTOR};

const HEAD_BYTES: usize = 8;
const ENTRY_BYTES: usize = 28;
/// In the number of a block's sectors: its records are compressed.
const COMPRESSED: u32 = 1 << 31;

/// Appends a table of these blocks.
pub(super) fn encode<'a>(
    next_id: u32,
    entries: impl Iterator<Item = (u32, &'a Entry)>,
    out: &mut Vec<u8>,
) {
    let head = out.len();
    out.extend_from_slice(&next_id.to_le_bytes());
    out.extend_from_slice(&0u32.to_le_bytes());
    let mut count = 0u32;
    for (id, entry) in entries {
        count += 1;
        let live_records = entry.live_records.load(Ordering::Relaxed);
        let tablespace = match Mutation::TablespaceForgotten.is_made() {
            true => 0,
            false => entry.tablespace,
        };
        for field in [
            id,
            entry.offset,
            entry.sectors | if entry.compressed { COMPRESSED } else { 0 },
            entry.table,
            u32::from(tablespace) << 16 | u32::from(entry.partition),
            entry.records,
            live_records,
        ] {
            out.extend_from_slice(&field.to_le_bytes());
        }
    }
    out[head + 4..head + 8].copy_from_slice(&count.to_le_bytes());
}

/// A table read back.
pub(super) struct Restored {
    pub next_id: u32,
    pub table: BTreeMap<u32, Entry>,
    /// By tablespace and offset: where the extents begin, and how long they are, in sectors.
    used: Vec<(u16, u64, u64)>,
}

/// The table of no blocks.
impl Default for Restored {
    fn default() -> Self {
        Restored {
            next_id: 1,
            table: BTreeMap::new(),
            used: Vec::new(),
        }
    }
}

/// Reads a table.
pub(super) fn decode(bytes: &[u8]) -> Result<Restored, BlockStoreError> {
    let corrupt = BlockStoreError::Corrupt;
    let u32_at = |at: usize| {
        let field = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
        field.map(|field| u32::from_le_bytes(*field))
    };
    let (Some(next_id), Some(count)) = (u32_at(0), u32_at(4)) else {
        return Err(corrupt("block table is cut short"));
    };
    if bytes.len() != HEAD_BYTES + count as usize * ENTRY_BYTES {
        return Err(corrupt("block table has another length than it says"));
    }
    let mut table = BTreeMap::new();
    let mut used = Vec::with_capacity(count as usize);
    for entry in bytes[HEAD_BYTES..].chunks_exact(ENTRY_BYTES) {
        let mut fields = entry.chunks_exact(4).map(|field| {
            let field = field.first_chunk().copied().unwrap_or_default();
            u32::from_le_bytes(field)
        });
        let mut next = || fields.next().unwrap_or_default();
        let id = next();
        let (offset, sectors, storage) = (next(), next(), next());
        let place = next();
        let entry = Entry {
            offset,
            sectors: sectors & !COMPRESSED,
            compressed: sectors & COMPRESSED != 0,
            table: storage,
            partition: place as u16,
            tablespace: (place >> 16) as u16,
            records: next(),
            live_records: AtomicU32::new(next()),
        };
        if id == 0 || id >= next_id {
            return Err(corrupt("block table names an id that was never given"));
        }
        if entry.sectors == 0 {
            return Err(corrupt("block table has an empty block"));
        }
        used.push((
            entry.tablespace,
            u64::from(entry.offset),
            u64::from(entry.sectors),
        ));
        if table.insert(id, entry).is_some() {
            return Err(corrupt("block table names a block twice"));
        }
    }
    used.sort_unstable();
    Ok(Restored {
        next_id,
        table,
        used,
    })
}

impl Restored {
    /// That no two blocks lie in one place, and none before `begin`, in sectors.
    pub fn check_overlaps(&self, begin: u64) -> Result<(), BlockStoreError> {
        let mut last = (0, begin);
        for &(tablespace, offset, sectors) in &self.used {
            if last.0 != tablespace {
                last = (tablespace, begin);
            }
            if offset < last.1 {
                return Err(BlockStoreError::Corrupt(
                    "two blocks of the block table overlap",
                ));
            }
            last.1 = offset + sectors;
        }
        Ok(())
    }

    /// The numbers of the tablespaces that blocks lie in, some more than once.
    pub fn numbers(&self) -> impl Iterator<Item = u16> {
        self.used.iter().map(|(number, ..)| *number)
    }

    /// Whether a block lies in this tablespace.
    pub fn has_blocks_in(&self, number: u16) -> bool {
        let place = self.used.partition_point(|(other, ..)| *other < number);
        self.used
            .get(place)
            .is_some_and(|(other, ..)| *other == number)
    }

    /// What is free in a tablespace's file from the sector `begin` on, and how many sectors it has.
    pub fn free_in(
        &self,
        number: u16,
        begin: u64,
        file: &dyn DeviceFile,
    ) -> Result<(FreeExtents, u64), BlockStoreError> {
        let corrupt = BlockStoreError::Corrupt;
        let file_sectors = file.len().map_err(BlockStoreError::io("length"))? / SECTOR;
        let mut free = FreeExtents::default();
        let mut end = begin;
        let used = self.used.iter().filter(|(other, ..)| *other == number);
        for &(_, offset, sectors) in used {
            if offset < end {
                return Err(corrupt("two blocks of the block table overlap"));
            }
            if offset > end {
                free.give(end, offset - end);
            }
            end = offset + sectors;
        }
        if end > file_sectors {
            return Err(corrupt("the blocks' file is shorter than its block table"));
        }
        if end < file_sectors {
            free.give(end, file_sectors - end);
        }
        Ok((free, file_sectors))
    }
}
