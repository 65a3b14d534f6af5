//! The block: the unit that is written to a device (design 4 and 5).
//!
//! A block holds records of one table and one partition and is immutable once
//! written. It describes itself, so that eviction, checkpoints and scans share
//! the format, and each record can be checked when only the sectors it lies in
//! are read. The layout, little-endian:
//!
//! ```text
//! 0 magic u32 | 4 version u16 | 6 partition u16 | 8 header crc u32 | 12 block id u32
//! 16 table id u32 | 20 record count u32 | 24 length u32 | 28 payload crc u32
//! 32 created lsn u64 | 40 zeros to 64 | 64 records, each at a multiple of 16:
//! 0 payload bytes u32 | 4 row u32 | 8 crc u32 | 12 flags u16 | 14 zero u16 | 16 payload
//! ```
//!
//! Survives: bit rot, torn and misdirected writes, in that they are noticed: a
//! record's checksum covers block id, slot, row, flags, length and payload.
//!
//! A block of columns, or of compressed records, begins with the same header, but for its magic
//! number. What follows is [`crate::columns`]', or that of `block/frames.rs`.

mod frames;

use std::fmt;

use thermocline_device::{AlignedBuffer, Mutation, SECTOR_BYTES};

use crate::columns;

pub use frames::{Frame, FrameBuilder, SECTOR_STANDS_FOR_BYTES};

/// Bytes of a block's header.
pub const BLOCK_HEADER_BYTES: usize = 64;
/// Bytes of a record's header.
pub const RECORD_HEADER_BYTES: usize = 16;
/// Records start at multiples of this; a slot is an offset in these units.
pub const SLOT_BYTES: usize = 16;
/// A record starts in the first MiB of its block: a slot has 16 bits.
pub const SLOT_OFFSET_END: usize = (u16::MAX as usize + 1) * SLOT_BYTES;
/// The largest block: one record that is longer than a MiB may pass the MiB.
pub const BLOCK_BYTES_MAX: usize = 2 << 20;
/// An extent of this means "this many sectors or more".
pub const EXTENT_MAX: u8 = 15;

/// The largest block of columns: a row group with all that is written beside its values.
pub const COLUMNS_BYTES_MAX: usize = 64 << 20;

const MAGIC: u32 = 0x5443_424C; // "TCBL"
const COLUMNS_MAGIC: u32 = 0x5443_4343; // "TCCC"
const COMPRESSED_MAGIC: u32 = 0x5443_5A42; // "TCZB"
const VERSION: u16 = 1;
const HEADER_CRC_AT: usize = 8;

/// What is wrong with a block or one of its records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockFault {
    /// The bytes end before the record or block does; this many are needed from
    /// the start of what was given. Expected where the extent said "or more".
    Short {
        /// Bytes to read instead.
        needed_bytes: usize,
    },
    /// It does not begin as a block does.
    NotABlock,
    /// A newer program wrote it.
    Version,
    /// The header's checksum does not match.
    HeaderChecksum,
    /// The header names another block.
    OtherBlock {
        /// The block it names.
        found: u32,
    },
    /// The checksum over all records does not match.
    PayloadChecksum,
    /// A record's checksum does not match.
    RecordChecksum,
    /// A length or a count points outside of the block.
    Bounds,
    /// It is of another kind than what was looked for.
    OtherKind,
    /// Of a block of columns: the checksum of one column's values does not match.
    ColumnChecksum {
        /// The column's place in the table, from 0.
        column: u16,
    },
    /// Of a block of columns: the checksum of what all columns share does not match.
    SharedChecksum,
    /// Of a block of columns: the checksum of one page does not match.
    PageChecksum {
        /// Which page of the block, from 0.
        page: u32,
    },
}

/// What lies in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockKind {
    /// Records, one behind the other.
    Records,
    /// A row group, column by column ([`crate::columns`]).
    Columns,
    /// Records in frames, each compressed for itself.
    Compressed,
}

/// A fault, and where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockError {
    /// The block that was to be read.
    pub block: u32,
    /// The record's slot, when it is about one record.
    pub slot: Option<u16>,
    /// What is wrong.
    pub fault: BlockFault,
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}", self.block)?;
        if let Some(slot) = self.slot {
            write!(f, ", slot {slot}")?;
        }
        match self.fault {
            BlockFault::Short { needed_bytes } => write!(f, ": {needed_bytes} bytes are needed"),
            BlockFault::NotABlock => f.write_str(": not a block"),
            BlockFault::Version => f.write_str(": its version is not known"),
            BlockFault::HeaderChecksum => f.write_str(": header checksum does not match"),
            BlockFault::OtherBlock { found } => write!(f, ": block {found} is in its place"),
            BlockFault::PayloadChecksum => f.write_str(": payload checksum does not match"),
            BlockFault::RecordChecksum => f.write_str(": record checksum does not match"),
            BlockFault::Bounds => f.write_str(": a length points outside of it"),
            BlockFault::OtherKind => f.write_str(": it is of another kind"),
            BlockFault::ColumnChecksum { column } => {
                write!(f, ", column {}: its checksum does not match", column + 1)
            }
            BlockFault::SharedChecksum => {
                f.write_str(": the checksum of what its columns share does not match")
            }
            BlockFault::PageChecksum { page } => {
                write!(f, ", page {page}: its checksum does not match")
            }
        }
    }
}

impl std::error::Error for BlockError {}

/// Bytes that a record takes in a block.
pub const fn record_bytes(payload_bytes: usize) -> usize {
    (RECORD_HEADER_BYTES + payload_bytes).next_multiple_of(SLOT_BYTES)
}

/// The sectors of a record: byte offset in the block, and bytes.
pub const fn sector_range(slot: u16, extent: u8) -> (usize, usize) {
    let offset = slot as usize * SLOT_BYTES;
    (
        offset - offset % SECTOR_BYTES,
        extent as usize * SECTOR_BYTES,
    )
}

fn extent_of(offset: usize, payload_bytes: usize) -> u8 {
    let end = offset + RECORD_HEADER_BYTES + payload_bytes;
    let sectors = end.div_ceil(SECTOR_BYTES) - offset / SECTOR_BYTES;
    sectors.min(usize::from(EXTENT_MAX)) as u8
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk::<2>()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk::<4>()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk::<8>()?))
}

/// Checksum of a record, from its header (whose own checksum is left out) and payload.
fn record_crc(block: u32, slot: u16, record: &[u8]) -> u32 {
    let mut place = [0; 6];
    place[..4].copy_from_slice(&block.to_le_bytes());
    place[4..].copy_from_slice(&slot.to_le_bytes());
    let crc = crc32c::crc32c(&place);
    let crc = crc32c::crc32c_append(crc, &record[..8]);
    crc32c::crc32c_append(crc, &record[12..])
}

/// Fills a block with records.
pub struct BlockBuilder {
    buffer: AlignedBuffer,
    /// A block is not to be larger, unless it is of one record.
    target_bytes: usize,
    used: usize,
    records: u32,
}

impl BlockBuilder {
    /// A builder for blocks as large as the buffer (at most `BLOCK_BYTES_MAX`). A
    /// record that is larger than that gets a block of its own.
    pub fn new(buffer: AlignedBuffer) -> Self {
        assert!(
            (SECTOR_BYTES..=BLOCK_BYTES_MAX).contains(&buffer.len()),
            "a block is one sector to BLOCK_BYTES_MAX"
        );
        Self {
            target_bytes: buffer.len(),
            buffer,
            used: BLOCK_HEADER_BYTES,
            records: 0,
        }
    }

    /// The blocks that follow are to be no larger than this, unless one is of one record. Below a
    /// sector a block is padded to it. The builder has to be empty.
    pub fn set_target_bytes(&mut self, bytes: usize) {
        assert!(self.records == 0, "a block is being built");
        let bytes = bytes.clamp(BLOCK_HEADER_BYTES, BLOCK_BYTES_MAX);
        if bytes > self.buffer.len() {
            self.buffer = AlignedBuffer::new_zeroed(bytes.next_multiple_of(SECTOR_BYTES));
        }
        self.target_bytes = bytes;
    }

    /// Adds a record; its slot and extent, or `None` when it does not fit. In an empty
    /// block every record fits that any block can hold.
    pub fn try_push(&mut self, row: u32, payload: &[u8], flags: u16) -> Option<(u16, u8)> {
        let offset = self.used;
        let end = offset + record_bytes(payload.len());
        let alone = self.records == 0 && end <= BLOCK_BYTES_MAX;
        if (end > self.target_bytes && !alone) || offset >= SLOT_OFFSET_END {
            return None;
        }
        if end > self.buffer.len() {
            self.buffer = AlignedBuffer::new_zeroed(end.next_multiple_of(SECTOR_BYTES));
        }
        let record = &mut self.buffer[offset..end];
        record[0..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        record[4..8].copy_from_slice(&row.to_le_bytes());
        record[12..14].copy_from_slice(&flags.to_le_bytes());
        record[14..16].fill(0);
        let padding = RECORD_HEADER_BYTES + payload.len();
        record[RECORD_HEADER_BYTES..padding].copy_from_slice(payload);
        record[padding..].fill(0);
        self.used = end;
        self.records += 1;
        Some((
            (offset / SLOT_BYTES) as u16,
            extent_of(offset, payload.len()),
        ))
    }

    /// How many records were added.
    pub fn record_count(&self) -> u32 {
        self.records
    }

    /// Bytes of the records so far.
    pub fn record_bytes(&self) -> usize {
        self.used - BLOCK_HEADER_BYTES
    }

    /// Bytes of the block so far, whole sectors: what `finish` will return.
    pub fn device_bytes(&self) -> usize {
        self.used.next_multiple_of(SECTOR_BYTES)
    }

    /// Checksums all, and gives the block as it is to be written.
    pub fn finish(&mut self, id: u32, table: u32, partition: u16, created_lsn: u64) -> &[u8] {
        assert!(id != 0, "block ids begin at 1");
        let mut offset = BLOCK_HEADER_BYTES;
        for _ in 0..self.records {
            let length = u32_at(&self.buffer, offset).unwrap_or_default() as usize;
            let end = offset + RECORD_HEADER_BYTES + length;
            let crc = record_crc(id, (offset / SLOT_BYTES) as u16, &self.buffer[offset..end]);
            self.buffer[offset + 8..offset + 12].copy_from_slice(&crc.to_le_bytes());
            offset += record_bytes(length);
        }
        assert!(offset == self.used, "the records fill the block");
        let device_bytes = self.device_bytes();
        self.buffer[self.used..device_bytes].fill(0);
        let (header, records) = self.buffer.split_at_mut(BLOCK_HEADER_BYTES);
        let payload_crc = crc32c::crc32c(&records[..self.used - BLOCK_HEADER_BYTES]);
        BlockHeader {
            kind: BlockKind::Records,
            id,
            table,
            partition,
            records: self.records,
            length_bytes: self.used as u32,
            created_lsn,
            payload_crc,
        }
        .encode(header);
        &self.buffer[..device_bytes]
    }

    /// Forgets the records, so that the next block can be built.
    pub fn clear(&mut self) {
        self.used = BLOCK_HEADER_BYTES;
        self.records = 0;
    }

    /// Gives the buffer back.
    pub fn into_buffer(self) -> AlignedBuffer {
        self.buffer
    }
}

/// A block's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHeader {
    /// What lies in it.
    pub kind: BlockKind,
    /// The block's id.
    pub id: u32,
    /// The table whose records it holds.
    pub table: u32,
    /// The partition whose records it holds.
    pub partition: u16,
    /// How many records it holds.
    pub records: u32,
    /// Bytes of header and records, without the padding.
    pub length_bytes: u32,
    /// LSN at which the block was made.
    pub created_lsn: u64,
    /// Of records: over all of them; of columns: over their directory.
    pub(crate) payload_crc: u32,
}

impl BlockHeader {
    /// Writes it into the first bytes of a block.
    pub(crate) fn encode(&self, header: &mut [u8]) {
        let magic = match self.kind {
            BlockKind::Records => MAGIC,
            BlockKind::Columns => COLUMNS_MAGIC,
            BlockKind::Compressed => COMPRESSED_MAGIC,
        };
        header.fill(0);
        header[0..4].copy_from_slice(&magic.to_le_bytes());
        header[4..6].copy_from_slice(&VERSION.to_le_bytes());
        header[6..8].copy_from_slice(&self.partition.to_le_bytes());
        header[12..16].copy_from_slice(&self.id.to_le_bytes());
        header[16..20].copy_from_slice(&self.table.to_le_bytes());
        header[20..24].copy_from_slice(&self.records.to_le_bytes());
        header[24..28].copy_from_slice(&self.length_bytes.to_le_bytes());
        header[28..32].copy_from_slice(&self.payload_crc.to_le_bytes());
        header[32..40].copy_from_slice(&self.created_lsn.to_le_bytes());
        let crc = crc32c::crc32c(header);
        header[HEADER_CRC_AT..HEADER_CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads and checks the header of block `id`.
    pub fn decode(bytes: &[u8], id: u32) -> Result<Self, BlockError> {
        let fail = |fault| BlockError {
            block: id,
            slot: None,
            fault,
        };
        let short = BlockFault::Short {
            needed_bytes: BLOCK_HEADER_BYTES,
        };
        let mut header = *bytes
            .first_chunk::<BLOCK_HEADER_BYTES>()
            .ok_or(fail(short))?;
        let (kind, bytes_max) = match u32_at(&header, 0) {
            Some(MAGIC) => (BlockKind::Records, BLOCK_BYTES_MAX),
            Some(COLUMNS_MAGIC) => (BlockKind::Columns, COLUMNS_BYTES_MAX),
            Some(COMPRESSED_MAGIC) => (BlockKind::Compressed, BLOCK_BYTES_MAX),
            _ => return Err(fail(BlockFault::NotABlock)),
        };
        let crc = u32_at(&header, HEADER_CRC_AT);
        header[HEADER_CRC_AT..HEADER_CRC_AT + 4].fill(0);
        if crc != Some(crc32c::crc32c(&header)) {
            return Err(fail(BlockFault::HeaderChecksum));
        }
        if u16_at(&header, 4) != Some(VERSION) {
            return Err(fail(BlockFault::Version));
        }
        let field = |at| u32_at(&header, at).ok_or(fail(BlockFault::Bounds));
        let found = Self {
            kind,
            id: field(12)?,
            table: field(16)?,
            partition: u16_at(&header, 6).ok_or(fail(BlockFault::Bounds))?,
            records: field(20)?,
            length_bytes: field(24)?,
            created_lsn: u64_at(&header, 32).ok_or(fail(BlockFault::Bounds))?,
            payload_crc: field(28)?,
        };
        if found.id != id {
            return Err(fail(BlockFault::OtherBlock { found: found.id }));
        }
        if !(BLOCK_HEADER_BYTES..=bytes_max).contains(&(found.length_bytes as usize)) {
            return Err(fail(BlockFault::Bounds));
        }
        Ok(found)
    }
}

/// A record read back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// Where in the block it lies, in units of `SLOT_BYTES`.
    pub slot: u16,
    /// The row it is the value of.
    pub row: u32,
    /// What the writer noted.
    pub flags: u16,
    /// The tuple.
    pub payload: &'a [u8],
}

/// Reads and checks one record from the sectors it lies in.
///
/// `sectors` begins at byte `first_sector_offset` of the block, as `sector_range`
/// told. [`BlockFault::Short`] says how many bytes are needed from there on; that
/// is an ordinary answer where the extent is `EXTENT_MAX`, and damage otherwise.
pub fn read_record(
    sectors: &[u8],
    block: u32,
    slot: u16,
    first_sector_offset: usize,
) -> Result<Record<'_>, BlockError> {
    let fail = |fault| BlockError {
        block,
        slot: Some(slot),
        fault,
    };
    let offset = usize::from(slot) * SLOT_BYTES;
    if offset < BLOCK_HEADER_BYTES {
        return Err(fail(BlockFault::Bounds));
    }
    let at = offset
        .checked_sub(first_sector_offset)
        .ok_or(fail(BlockFault::Bounds))?;
    let short = |end: usize| {
        fail(BlockFault::Short {
            needed_bytes: end.next_multiple_of(SECTOR_BYTES),
        })
    };
    let length = u32_at(sectors, at).ok_or(short(at + RECORD_HEADER_BYTES))? as usize;
    if offset + RECORD_HEADER_BYTES + length > BLOCK_BYTES_MAX {
        return Err(fail(BlockFault::Bounds));
    }
    let end = at + RECORD_HEADER_BYTES + length;
    let record = sectors.get(at..end).ok_or(short(end))?;
    if u32_at(record, 8) != Some(record_crc(block, slot, record))
        && !Mutation::RecordChecksumSkipped.is_made()
    {
        return Err(fail(BlockFault::RecordChecksum));
    }
    Ok(Record {
        slot,
        row: u32_at(record, 4).ok_or(fail(BlockFault::Bounds))?,
        flags: u16_at(record, 12).ok_or(fail(BlockFault::Bounds))?,
        payload: &record[RECORD_HEADER_BYTES..],
    })
}

/// Checks a whole block, and gives its header and its records in order.
pub fn records(block: &[u8], id: u32) -> Result<(BlockHeader, Records<'_>), BlockError> {
    let header = BlockHeader::decode(block, id)?;
    let fail = |fault| BlockError {
        block: id,
        slot: None,
        fault,
    };
    if header.kind != BlockKind::Records {
        return Err(fail(BlockFault::OtherKind));
    }
    let length = header.length_bytes as usize;
    let bytes = block.get(..length).ok_or(fail(BlockFault::Short {
        needed_bytes: length.next_multiple_of(SECTOR_BYTES),
    }))?;
    if crc32c::crc32c(&bytes[BLOCK_HEADER_BYTES..]) != header.payload_crc {
        return Err(fail(BlockFault::PayloadChecksum));
    }
    let records = Records {
        bytes,
        id,
        offset: BLOCK_HEADER_BYTES,
        left: header.records,
    };
    Ok((header, records))
}

/// Checks a whole block, of any kind, and hands out its records.
///
/// # Errors
/// What is wrong with it, and where. Some records may have been handed out.
pub fn each_record(
    block: &[u8],
    id: u32,
    mut each: impl FnMut(Record<'_>),
) -> Result<BlockHeader, BlockError> {
    let header = BlockHeader::decode(block, id)?;
    match header.kind {
        BlockKind::Records => {
            let (_, mut found) = records(block, id)?;
            found.try_for_each(|record| record.map(&mut each))?;
        }
        BlockKind::Columns => columns::each_record(block, id, &mut each)?,
        BlockKind::Compressed => frames::each_record(block, &header, &mut each)?,
    }
    Ok(header)
}

/// Checks a whole block and each record in it.
///
/// # Errors
/// What is wrong with it, and where.
pub fn verify_records(block: &[u8], id: u32) -> Result<(), BlockError> {
    each_record(block, id, |_| ()).map(|_| ())
}

/// The records of a block; see [`records`].
pub struct Records<'a> {
    bytes: &'a [u8],
    id: u32,
    offset: usize,
    left: u32,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, BlockError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bounds = BlockError {
            block: self.id,
            slot: None,
            fault: BlockFault::Bounds,
        };
        if self.left == 0 {
            // Bytes that no record accounts for: the count does not fit.
            let rest = std::mem::replace(&mut self.offset, self.bytes.len());
            return (rest != self.bytes.len()).then_some(Err(bounds));
        }
        self.left -= 1;
        let Ok(slot) = u16::try_from(self.offset / SLOT_BYTES) else {
            self.left = 0;
            self.offset = self.bytes.len();
            return Some(Err(bounds));
        };
        let record = read_record(self.bytes, self.id, slot, 0);
        match &record {
            Ok(record) => self.offset += record_bytes(record.payload.len()),
            Err(_) => {
                self.left = 0;
                self.offset = self.bytes.len();
            }
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests;
