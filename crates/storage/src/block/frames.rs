//! Compressed blocks: their records lie in frames, each compressed for itself.
//!
//! A frame begins with a sector, and nearly all take no more than that one. A device gives no less
//! at a time. So a row costs the reads that it costs in a block of records, and a sector has
//! as many rows as fit into it. The block's header is that of any block, with a magic number of its
//! own. What follows, little-endian:
//!
//! ```text
//! frame, at the begin of a sector (in the first sector behind the block's header):
//! 0 compressed bytes u32 | 4 what they stand for, bytes u32 | 8 crc u32 | 12 bytes in all u32
//! 16 records u16 | 18 zeros to 24 | 24 compressed bytes (LZ4) | the rest of the bytes as they are
//! record, in the frame's bytes: 0 row u32 | 4 payload bytes u32 | 8 payload
//! ```
//!
//! A record's slot is the first of its sector's, and as many more as records come before it.
//! Sectors of one frame stand for a bounded number of bytes: what is brought into memory
//! is known from what is read.

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use thermocline_device::{AlignedBuffer, Mutation, SECTOR_BYTES};

use super::{
    BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BlockError, BlockFault, BlockHeader, BlockKind,
    EXTENT_MAX, Record, SLOT_BYTES, SLOT_OFFSET_END, u16_at, u32_at,
};

/// Bytes of a frame's header.
const FRAME_HEADER_BYTES: usize = 24;
/// Bytes that each sector of a frame stands for, at most.
pub const SECTOR_STANDS_FOR_BYTES: usize = 16 << 10;
/// Bytes before a record's payload, in a frame's bytes.
const RECORD_HEADER_BYTES: usize = 8;
const SECTOR_SLOTS: usize = SECTOR_BYTES / SLOT_BYTES;
/// Slots of the first sector that the block's header takes.
const HEADER_SLOTS: usize = BLOCK_HEADER_BYTES / SLOT_BYTES;
const RECORDS_MAX: usize = SECTOR_SLOTS - HEADER_SLOTS;
/// A frame with less room than this part of a sector, as a divisor, is full.
const FULL_DIVISOR: usize = 16;

/// Where in its block a frame begins that has this sector first.
const fn begin_of(sector: usize) -> usize {
    match sector {
        0 => BLOCK_HEADER_BYTES,
        _ => sector * SECTOR_BYTES,
    }
}

/// Sectors that a frame takes.
fn sectors_of(sector: usize, stored_bytes: usize, stands_for: usize) -> usize {
    let end = begin_of(sector) + FRAME_HEADER_BYTES + stored_bytes;
    let taken = end.div_ceil(SECTOR_BYTES) - sector;
    taken.max(stands_for.div_ceil(SECTOR_STANDS_FOR_BYTES))
}

/// Checksum of a frame without its own, and of the place that it is in.
fn frame_crc(block: u32, sector: usize, frame: &[u8]) -> u32 {
    let mut place = [0; 8];
    place[..4].copy_from_slice(&block.to_le_bytes());
    place[4..].copy_from_slice(&(sector as u32).to_le_bytes());
    let crc = crc32c::crc32c(&place);
    let crc = crc32c::crc32c_append(crc, &frame[..8]);
    crc32c::crc32c_append(crc, &frame[12..])
}

fn compress(bytes: &[u8], into: &mut Vec<u8>) {
    into.resize(get_maximum_output_size(bytes.len()), 0);
    match compress_into(bytes, into) {
        Ok(length) => into.truncate(length),
        Err(error) => unreachable!("there is room for the worst: {error}"),
    }
}

/// Fills a compressed block.
pub struct FrameBuilder {
    buffer: AlignedBuffer,
    /// A block is not to be larger, unless it is of one record.
    target_bytes: usize,
    /// Where the frame begins that is being filled, in sectors.
    sector: usize,
    /// Sectors that this frame takes.
    sectors: usize,
    /// Its records.
    frame_records: usize,
    /// Its bytes.
    bytes: Vec<u8>,
    /// The first of them, compressed, and how many these are.
    compressed: Vec<u8>,
    compressed_from: usize,
    trial: Vec<u8>,
    records: u32,
    record_bytes: usize,
}

impl FrameBuilder {
    /// A builder for blocks as large as the buffer (at most `BLOCK_BYTES_MAX`).
    pub fn new(buffer: AlignedBuffer) -> Self {
        assert!(
            (SECTOR_BYTES..=BLOCK_BYTES_MAX).contains(&buffer.len()),
            "a block is one sector to BLOCK_BYTES_MAX"
        );
        Self {
            target_bytes: buffer.len(),
            buffer,
            sector: 0,
            sectors: 0,
            frame_records: 0,
            bytes: Vec::new(),
            compressed: Vec::new(),
            compressed_from: 0,
            trial: Vec::new(),
            records: 0,
            record_bytes: 0,
        }
    }

    /// As [`super::BlockBuilder::set_target_bytes`].
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
    pub fn try_push(&mut self, row: u32, payload: &[u8]) -> Option<(u16, u8)> {
        if self.frame_records > 0 && !self.joins(row, payload) {
            self.close();
        }
        if self.frame_records == 0 && !self.begins(row, payload) {
            return None;
        }
        let slot = begin_of(self.sector) / SLOT_BYTES + self.frame_records;
        self.frame_records += 1;
        self.records += 1;
        self.record_bytes += RECORD_HEADER_BYTES + payload.len();
        let extent = self.sectors.min(usize::from(EXTENT_MAX));
        Some((slot as u16, extent as u8))
    }

    fn put(&mut self, row: u32, payload: &[u8]) {
        self.bytes.extend_from_slice(&row.to_le_bytes());
        let length = payload.len() as u32;
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(payload);
    }

    /// Bytes that a frame of one sector can store.
    fn room(&self) -> usize {
        let end = (self.sector + 1) * SECTOR_BYTES;
        let end = match self.sector {
            // A block below a sector is padded to it.
            0 => end.min(self.target_bytes),
            _ => end,
        };
        end.saturating_sub(begin_of(self.sector) + FRAME_HEADER_BYTES)
    }

    /// Puts a record into the frame that is being filled, if it fits.
    fn joins(&mut self, row: u32, payload: &[u8]) -> bool {
        let room = self.room();
        let before = self.bytes.len();
        let after = before + RECORD_HEADER_BYTES + payload.len();
        let is_full = self.compressed.len() + room / FULL_DIVISOR > room;
        if self.sectors > 1
            || self.frame_records == RECORDS_MAX
            || after > SECTOR_STANDS_FOR_BYTES
            || is_full
        {
            return false;
        }
        self.put(row, payload);
        // What was not compressed yet is taken as it is, until that is too much.
        if self.compressed.len() + after - self.compressed_from <= room {
            return true;
        }
        compress(&self.bytes, &mut self.trial);
        if self.trial.len() > room {
            self.bytes.truncate(before);
            return false;
        }
        std::mem::swap(&mut self.compressed, &mut self.trial);
        self.compressed_from = after;
        true
    }

    /// Begins a frame with a record, if the block has room for it.
    fn begins(&mut self, row: u32, payload: &[u8]) -> bool {
        let begin = self.sector * SECTOR_BYTES;
        if begin >= SLOT_OFFSET_END {
            return false;
        }
        self.put(row, payload);
        let bytes = self.bytes.len();
        if bytes > self.room() {
            compress(&self.bytes, &mut self.trial);
            if self.trial.len() < bytes {
                std::mem::swap(&mut self.compressed, &mut self.trial);
                self.compressed_from = bytes;
            }
        }
        let stored = self.compressed.len() + bytes - self.compressed_from;
        self.sectors = sectors_of(self.sector, stored, bytes);
        let end = begin + self.sectors * SECTOR_BYTES;
        let alone = self.records == 0 && end <= BLOCK_BYTES_MAX;
        if end > self.target_bytes && !alone {
            self.empty_frame();
            return false;
        }
        if end > self.buffer.len() {
            self.buffer = AlignedBuffer::new_zeroed(end);
        }
        true
    }

    fn empty_frame(&mut self) {
        self.sectors = 0;
        self.frame_records = 0;
        self.compressed_from = 0;
        for buffer in [&mut self.bytes, &mut self.compressed, &mut self.trial] {
            buffer.clear();
            // What a long record took goes back.
            buffer.shrink_to(4 * SECTOR_STANDS_FOR_BYTES);
        }
    }

    /// Writes the frame that is being filled, if it has records, all but its checksum.
    fn close(&mut self) {
        if self.frame_records == 0 {
            return;
        }
        let (begin, end) = (
            begin_of(self.sector),
            (self.sector + self.sectors) * SECTOR_BYTES,
        );
        let frame = &mut self.buffer[begin..end];
        frame.fill(0);
        let fields = [
            self.compressed.len(),
            self.compressed_from,
            0,
            self.bytes.len(),
        ];
        for (field, at) in fields.into_iter().zip((0..).step_by(4)) {
            frame[at..at + 4].copy_from_slice(&(field as u32).to_le_bytes());
        }
        frame[16..18].copy_from_slice(&(self.frame_records as u16).to_le_bytes());
        let parts = [&self.compressed[..], &self.bytes[self.compressed_from..]];
        let mut at = FRAME_HEADER_BYTES;
        for part in parts {
            frame[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        self.sector += self.sectors;
        self.empty_frame();
    }

    /// How many records were added.
    pub fn record_count(&self) -> u32 {
        self.records
    }

    /// Bytes of the records so far, not compressed.
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// Bytes of the block so far, whole sectors: what `finish` will return.
    pub fn device_bytes(&self) -> usize {
        (self.sector + self.sectors).max(1) * SECTOR_BYTES
    }

    /// Checksums all, and gives the block as it is to be written.
    pub fn finish(&mut self, id: u32, table: u32, partition: u16, created_lsn: u64) -> &[u8] {
        assert!(id != 0, "block ids begin at 1");
        self.close();
        let device_bytes = self.device_bytes();
        if self.records == 0 {
            // What an earlier block left there is no frame of this one.
            self.buffer[..device_bytes].fill(0);
        }
        let mut sector = 0;
        while sector < self.sector {
            let begin = begin_of(sector);
            let Ok(shape) = Shape::of(&self.buffer[begin..device_bytes], sector) else {
                unreachable!("the frame was just written")
            };
            let frame = &mut self.buffer[begin..begin + FRAME_HEADER_BYTES + shape.stored()];
            let crc = frame_crc(id, sector, frame);
            frame[8..12].copy_from_slice(&crc.to_le_bytes());
            sector += shape.sectors(sector);
        }
        let (header, frames) = self.buffer.split_at_mut(BLOCK_HEADER_BYTES);
        let payload_crc = crc32c::crc32c(&frames[..device_bytes - BLOCK_HEADER_BYTES]);
        BlockHeader {
            kind: BlockKind::Compressed,
            id,
            table,
            partition,
            records: self.records,
            length_bytes: device_bytes as u32,
            created_lsn,
            payload_crc,
        }
        .encode(header);
        &self.buffer[..device_bytes]
    }

    /// Forgets the records, so that the next block can be built.
    pub fn clear(&mut self) {
        self.empty_frame();
        self.sector = 0;
        self.records = 0;
        self.record_bytes = 0;
    }
}

/// What a frame's header says.
struct Shape {
    compressed: usize,
    compressed_from: usize,
    bytes: usize,
    records: usize,
}

impl Shape {
    fn of(frame: &[u8], sector: usize) -> Result<Self, BlockFault> {
        let short = BlockFault::Short {
            needed_bytes: SECTOR_BYTES,
        };
        let field = |at| u32_at(frame, at).map(|field| field as usize).ok_or(short);
        let shape = Shape {
            compressed: field(0)?,
            compressed_from: field(4)?,
            bytes: field(12)?,
            records: usize::from(u16_at(frame, 16).ok_or(short)?),
        };
        let is_whole = shape.compressed_from <= shape.bytes
            && shape.compressed <= BLOCK_BYTES_MAX
            && shape.bytes <= BLOCK_BYTES_MAX * SECTOR_STANDS_FOR_BYTES / SECTOR_BYTES
            && (1..=RECORDS_MAX).contains(&shape.records)
            && begin_of(sector) + FRAME_HEADER_BYTES + shape.stored() <= BLOCK_BYTES_MAX;
        is_whole.then_some(shape).ok_or(BlockFault::Bounds)
    }

    /// Bytes behind the header.
    fn stored(&self) -> usize {
        self.compressed + (self.bytes - self.compressed_from)
    }

    fn sectors(&self, sector: usize) -> usize {
        sectors_of(sector, self.stored(), self.bytes)
    }
}

/// A frame that was read: its records, as long as it holds no other one.
#[derive(Debug, Default)]
pub struct Frame {
    block: u32,
    sector: usize,
    sectors: usize,
    bytes: Vec<u8>,
    /// Where each record's payload begins and ends, and its row.
    records: Vec<(u32, u32, u32)>,
}

impl Frame {
    /// The record in `slot` of block `id`, from the sectors of its frame, which begin at byte
    /// `first_sector_offset` of the block. A frame that it holds already is not read again.
    ///
    /// # Errors
    /// As [`super::read_record`].
    pub fn record(
        &mut self,
        sectors: &[u8],
        id: u32,
        slot: u16,
        first_sector_offset: usize,
    ) -> Result<Record<'_>, BlockError> {
        let fail = |fault| BlockError {
            block: id,
            slot: Some(slot),
            fault,
        };
        let sector = usize::from(slot) / SECTOR_SLOTS;
        if self.sectors == 0 || (self.block, self.sector) != (id, sector) {
            let at = begin_of(sector).checked_sub(first_sector_offset);
            let frame = at.and_then(|at| sectors.get(at..));
            self.read(frame.ok_or(fail(BlockFault::Bounds))?, id, sector)
                .map_err(fail)?;
        }
        let number = usize::from(slot).checked_sub(begin_of(sector) / SLOT_BYTES);
        number
            .and_then(|number| self.at(number))
            .ok_or(fail(BlockFault::Bounds))
    }

    fn at(&self, number: usize) -> Option<Record<'_>> {
        let (begin, end, row) = *self.records.get(number)?;
        Some(Record {
            slot: (begin_of(self.sector) / SLOT_BYTES + number) as u16,
            row,
            flags: 0,
            payload: &self.bytes[begin as usize..end as usize],
        })
    }

    /// Holds no frame any more; memory that a long record took goes back.
    pub fn forget(&mut self) {
        self.sectors = 0;
        self.bytes.clear();
        self.bytes.shrink_to(4 * SECTOR_STANDS_FOR_BYTES);
    }

    fn read(&mut self, frame: &[u8], id: u32, sector: usize) -> Result<(), BlockFault> {
        // Nothing, if this ends half-way.
        self.sectors = 0;
        self.records.clear();
        let shape = Shape::of(frame, sector)?;
        let end = FRAME_HEADER_BYTES + shape.stored();
        let frame = frame.get(..end).ok_or(BlockFault::Short {
            needed_bytes: (begin_of(sector) % SECTOR_BYTES + end).next_multiple_of(SECTOR_BYTES),
        })?;
        if u32_at(frame, 8) != Some(frame_crc(id, sector, frame))
            && !Mutation::RecordChecksumSkipped.is_made()
        {
            return Err(BlockFault::RecordChecksum);
        }
        let (compressed, rest) = frame[FRAME_HEADER_BYTES..].split_at(shape.compressed);
        self.bytes.clear();
        self.bytes.resize(shape.compressed_from, 0);
        if shape.compressed_from > 0 {
            let came = decompress_into(compressed, &mut self.bytes);
            if came.ok() != Some(shape.compressed_from) {
                return Err(BlockFault::Bounds);
            }
        }
        self.bytes.extend_from_slice(rest);
        let mut at = 0;
        for _ in 0..shape.records {
            let row = u32_at(&self.bytes, at).ok_or(BlockFault::Bounds)?;
            let length = u32_at(&self.bytes, at + 4).ok_or(BlockFault::Bounds)? as usize;
            let begin = at + RECORD_HEADER_BYTES;
            at = begin + length;
            if at > self.bytes.len() {
                return Err(BlockFault::Bounds);
            }
            self.records.push((begin as u32, at as u32, row));
        }
        if at != self.bytes.len() {
            return Err(BlockFault::Bounds);
        }
        (self.block, self.sector) = (id, sector);
        self.sectors = shape.sectors(sector);
        Ok(())
    }
}

/// Checks a whole compressed block, and hands out its records.
pub(super) fn each_record(
    block: &[u8],
    header: &BlockHeader,
    each: &mut impl FnMut(Record<'_>),
) -> Result<(), BlockError> {
    let id = header.id;
    let fail = |fault| BlockError {
        block: id,
        slot: None,
        fault,
    };
    let length = header.length_bytes as usize;
    let block = block.get(..length).ok_or(fail(BlockFault::Short {
        needed_bytes: length,
    }))?;
    if crc32c::crc32c(&block[BLOCK_HEADER_BYTES..]) != header.payload_crc {
        return Err(fail(BlockFault::PayloadChecksum));
    }
    if header.records == 0 {
        return Ok(());
    }
    let mut frame = Frame::default();
    let (mut sector, mut records) = (0, 0);
    while sector * SECTOR_BYTES < length {
        let slot = (begin_of(sector) / SLOT_BYTES) as u16;
        let at = |fault| BlockError {
            slot: Some(slot),
            ..fail(fault)
        };
        frame
            .read(&block[begin_of(sector)..], id, sector)
            .map_err(at)?;
        (0..)
            .map_while(|number| frame.at(number))
            .for_each(&mut *each);
        records += frame.records.len();
        sector += frame.sectors;
    }
    let is_whole = sector * SECTOR_BYTES == length && records == header.records as usize;
    is_whole.then_some(()).ok_or(fail(BlockFault::Bounds))
}

#[cfg(test)]
mod tests;
