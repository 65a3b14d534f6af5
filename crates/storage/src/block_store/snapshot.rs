//! The Block Table as a checkpoint keeps it. The checkpoint checksums it; what is
//! checked here is that it makes sense: known ids, no overlaps, all in the file.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use super::extents::FreeExtents;
use super::{BlockStoreError, Entry};

const HEAD_BYTES: usize = 8;
const ENTRY_BYTES: usize = 28;

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
        for field in [
            id,
            entry.offset,
            entry.sectors,
            entry.table,
            u32::from(entry.partition),
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
    pub free: FreeExtents,
}

/// Reads a table, and finds what is free in a file of `file_sectors` from `begin` on.
pub(super) fn decode(
    bytes: &[u8],
    begin: u64,
    file_sectors: u64,
) -> Result<Restored, BlockStoreError> {
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
        let entry = Entry {
            offset: next(),
            sectors: next(),
            table: next(),
            partition: u16::try_from(next()).map_err(|_| corrupt("partition out of range"))?,
            records: next(),
            live_records: AtomicU32::new(next()),
        };
        if id == 0 || id >= next_id {
            return Err(corrupt("block table names an id that was never given"));
        }
        if entry.sectors == 0 {
            return Err(corrupt("block table has an empty block"));
        }
        used.push((u64::from(entry.offset), u64::from(entry.sectors)));
        if table.insert(id, entry).is_some() {
            return Err(corrupt("block table names a block twice"));
        }
    }
    used.sort_unstable();
    let mut free = FreeExtents::default();
    let mut end = begin;
    for (offset, sectors) in used {
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
    Ok(Restored {
        next_id,
        table,
        free,
    })
}
