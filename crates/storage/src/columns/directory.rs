//! The directory of a block of columns: the shape of its tuples, where each chunk lies, and what
//! is known of each column's values without reading them. Checks what was read by chunks, and by
//! pages.

use std::ops::Range;

use thermocline_device::{Mutation, SECTOR_BYTES};

use super::GROUP_ROWS_MAX;
use super::integers::Encoding;
use super::shape::Shape;
use crate::block::{BLOCK_HEADER_BYTES, BlockError, BlockFault, BlockHeader, BlockKind};
use crate::tuple::{Part, PartPlace, header};

/// The chunk of the row numbers, and the one of the odd tuples. Columns follow.
pub(super) const ROWS: usize = 0;
pub(super) const ODD: usize = 1;
pub(super) const FIRST_COLUMN: usize = 2;

/// A page of a block: what is read to look at single rows.
pub const PAGE_BYTES: usize = SECTOR_BYTES;
/// What the checksum of the pages' sums says in place of a chunk's number.
const SUMS: usize = u16::MAX as usize;
const SUM_BYTES: usize = 4;

const FIXED_BYTES: usize = 16;
const CHUNK_BYTES: usize = 12;
const COLUMN_BYTES: usize = 28;
const NO_NULL_BIT: u16 = u16::MAX;
/// In a column's kind: its width varies; its values have an order that the zone is of.
const VARIABLE: u8 = 1;
const ORDERED: u8 = 2;
/// And above these bits, how it is encoded: its place here and one, or zero.
const ENCODING_SHIFT: u32 = 2;
const ENCODINGS: [Encoding; 5] = [
    Encoding::Constant,
    Encoding::FrameOfReference,
    Encoding::RunLength,
    Encoding::Dictionary,
    Encoding::Plain,
];

/// Where a chunk lies in its block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Chunk {
    /// The first byte.
    pub offset: u32,
    /// How many bytes.
    pub bytes: u32,
    pub(super) crc: u32,
}

impl Chunk {
    /// The bytes of the block.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.offset as usize..self.offset as usize + self.bytes as usize
    }
}

/// What is known of a column's values in a group (a zone map).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ColumnZone {
    /// How many are NULL.
    pub nulls: u32,
    /// The least and the greatest of the others, where the type is kept as an integer in the
    /// order of its values. Odd tuples don't count.
    pub range: Option<(i64, i64)>,
    /// How they are encoded. Groups of an earlier program do not say it.
    pub encoding: Option<Encoding>,
}

/// See the module's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    pub(super) rows: u32,
    pub(super) odd: u32,
    pub(super) shape: Shape,
    pub(super) chunks: Vec<Chunk>,
    pub(super) zones: Vec<ColumnZone>,
    /// Where the checksums of the pages lie. Groups of an earlier program have none.
    pub(super) sums: Option<Chunk>,
}

fn crc_of(number: usize, bytes: &[u8], id: u32) -> u32 {
    let mut place = [0; 6];
    place[..4].copy_from_slice(&id.to_le_bytes());
    place[4..].copy_from_slice(&(number as u16).to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&place), bytes)
}

/// The checksum of a part of a page.
fn page_crc(page: usize, bytes: &[u8], id: u32) -> u32 {
    let mut place = [0; 8];
    place[..4].copy_from_slice(&id.to_le_bytes());
    place[4..].copy_from_slice(&(page as u32).to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&place), bytes)
}

impl Directory {
    /// Bytes of the directory of so many columns, with the place of the pages' sums.
    pub(super) fn bytes_of(columns: usize) -> usize {
        Self::bytes_without_sums(columns) + CHUNK_BYTES
    }

    pub(super) fn bytes_without_sums(columns: usize) -> usize {
        FIXED_BYTES + (FIRST_COLUMN + columns) * CHUNK_BYTES + columns * COLUMN_BYTES
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// How many chunks there are.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Where a chunk lies.
    #[must_use]
    pub fn chunk(&self, number: usize) -> Option<Chunk> {
        self.chunks.get(number).copied()
    }

    /// How many columns there are: those of the layout that most tuples have.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.shape.parts.len()
    }

    /// The version of the layout that most tuples have.
    #[must_use]
    pub fn layout_version(&self) -> Option<usize> {
        Some(header(&self.shape.word.to_le_bytes())?.0)
    }

    /// What is known of a column's values.
    #[must_use]
    pub fn zone(&self, column: usize) -> Option<ColumnZone> {
        self.zones.get(column).copied()
    }

    /// The chunks that are needed to read these columns; all, where nothing is said.
    pub fn wanted(&self, columns: Option<&[usize]>) -> Vec<usize> {
        let of_column = |column: usize| FIRST_COLUMN + column;
        match columns {
            None => (0..self.chunks()).collect(),
            Some(columns) => {
                let known = columns.iter().filter(|column| **column < self.columns());
                let mut wanted: Vec<usize> = known.map(|column| of_column(*column)).collect();
                wanted.extend([ROWS, ODD]);
                wanted.sort_unstable();
                wanted.dedup();
                wanted
            }
        }
    }

    /// The column of a chunk, if it is one's.
    #[must_use]
    pub fn column_of(&self, number: usize) -> Option<usize> {
        number.checked_sub(FIRST_COLUMN)
    }

    /// The chunk of a column.
    #[must_use]
    pub fn chunk_of(&self, column: usize) -> usize {
        FIRST_COLUMN + column
    }

    /// Where the checksums of the pages lie, if the group has them: without them its chunks are
    /// read whole.
    #[must_use]
    pub fn sums(&self) -> Option<Chunk> {
        self.sums
    }

    /// The bytes of a page that its sum is of: neither the directory nor the sums themselves, which
    /// have their own.
    fn summed(&self, page: usize) -> Range<usize> {
        let begin = BLOCK_HEADER_BYTES + Self::bytes_of(self.columns());
        let end = self.sums.unwrap_or_default().offset as usize;
        let page = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        page.start.max(begin)..page.end.min(end).max(page.start.max(begin))
    }

    /// Writes the pages' sums to their place in `block`.
    pub(super) fn sum_pages(&self, block: &mut [u8], id: u32) {
        let sums = self.sums.unwrap_or_default().range();
        for (page, at) in sums.step_by(SUM_BYTES).enumerate() {
            let crc = page_crc(page, &block[self.summed(page)], id);
            block[at..at + SUM_BYTES].copy_from_slice(&crc.to_le_bytes());
        }
    }

    /// Bytes of the sums of pages that lie behind so many bytes.
    pub(super) fn sum_bytes(length: usize) -> usize {
        length.div_ceil(PAGE_BYTES) * SUM_BYTES
    }

    /// Checks the pages' sums of block `id`, as they were read.
    ///
    /// # Errors
    /// Their own checksum is another, or there are none.
    pub fn check_sums(&self, bytes: &[u8], id: u32) -> Result<(), BlockError> {
        let is_right = |sums: Chunk| {
            bytes.len() == sums.bytes as usize
                && bytes.len() == Self::sum_bytes(sums.offset as usize)
                && crc_of(SUMS, bytes, id) == sums.crc
        };
        match self.sums.is_some_and(is_right) {
            true => Ok(()),
            false => Err(BlockError {
                block: id,
                slot: None,
                fault: BlockFault::SharedChecksum,
            }),
        }
    }

    /// Checks a page of block `id` by sums that were checked.
    ///
    /// # Errors
    /// The checksum is another.
    pub fn check_page(
        &self,
        sums: &[u8],
        page: usize,
        bytes: &[u8],
        id: u32,
    ) -> Result<(), BlockError> {
        let summed = self.summed(page);
        let begin = page * PAGE_BYTES;
        let part = bytes.get(summed.start - begin..summed.end - begin);
        let sum = sums.get(page * SUM_BYTES..).and_then(<[u8]>::first_chunk);
        let is_right = part
            .zip(sum)
            .is_some_and(|(part, sum)| page_crc(page, part, id) == u32::from_le_bytes(*sum));
        match is_right || Mutation::PageChecksumSkipped.is_made() {
            true => Ok(()),
            false => Err(BlockError {
                block: id,
                slot: None,
                fault: BlockFault::PageChecksum { page: page as u32 },
            }),
        }
    }

    /// Checks the bytes of a chunk of block `id`.
    ///
    /// # Errors
    /// The checksum is another.
    pub fn check(&self, number: usize, bytes: &[u8], id: u32) -> Result<(), BlockError> {
        let chunk = self.chunk(number).unwrap_or_default();
        if bytes.len() == chunk.bytes as usize && crc_of(number, bytes, id) == chunk.crc {
            return Ok(());
        }
        Err(BlockError {
            block: id,
            slot: None,
            fault: match number.checked_sub(FIRST_COLUMN) {
                Some(column) => BlockFault::ColumnChecksum {
                    column: column as u16,
                },
                None => BlockFault::SharedChecksum,
            },
        })
    }

    /// Sets the checksums of all chunks of `block`, which begins with its header.
    pub(super) fn checksum(&mut self, block: &[u8], id: u32) {
        for (number, chunk) in self.chunks.iter_mut().enumerate() {
            chunk.crc = crc_of(number, &block[chunk.range()], id);
        }
        if let Some(sums) = &mut self.sums {
            sums.crc = crc_of(SUMS, &block[sums.range()], id);
        }
    }

    /// Writes it over the beginning of `out`, which is as long.
    pub(super) fn encode(&self, out: &mut [u8]) {
        let mut bytes = Vec::with_capacity(out.len());
        bytes.extend_from_slice(&(out.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.shape.word.to_le_bytes());
        bytes.extend_from_slice(&(self.columns() as u16).to_le_bytes());
        bytes.extend_from_slice(&self.shape.fixed_end.to_le_bytes());
        bytes.extend_from_slice(&self.odd.to_le_bytes());
        for chunk in &self.chunks {
            for field in [chunk.offset, chunk.bytes, chunk.crc] {
                bytes.extend_from_slice(&field.to_le_bytes());
            }
        }
        for (part, zone) in self.shape.parts.iter().zip(&self.zones) {
            let (kind, width, place) = match part.place {
                PartPlace::Fixed { offset, width } => (0, width, offset),
                PartPlace::Variable { number } => (VARIABLE, 0, number),
            };
            let encoding = ENCODINGS
                .iter()
                .position(|other| Some(*other) == zone.encoding);
            let encoding = encoding.map_or(0, |place| place as u8 + 1) << ENCODING_SHIFT;
            bytes.push(kind | encoding | if part.is_ordered { ORDERED } else { 0 });
            bytes.push(width);
            bytes.extend_from_slice(&part.null_bit.unwrap_or(NO_NULL_BIT).to_le_bytes());
            bytes.extend_from_slice(&place.to_le_bytes());
            bytes.extend_from_slice(&zone.nulls.to_le_bytes());
            // No values: the least is above the greatest.
            let (least, greatest) = zone.range.unwrap_or((1, 0));
            bytes.extend_from_slice(&least.to_le_bytes());
            bytes.extend_from_slice(&greatest.to_le_bytes());
        }
        if let Some(sums) = &self.sums {
            for field in [sums.offset, sums.bytes, sums.crc] {
                bytes.extend_from_slice(&field.to_le_bytes());
            }
        }
        out.copy_from_slice(&bytes);
    }

    /// Reads and checks header and directory of block `id` from its beginning.
    ///
    /// # Errors
    /// What is wrong with it; [`BlockFault::Short`] says how many bytes are needed.
    pub fn decode(block: &[u8], id: u32) -> Result<(BlockHeader, Self), BlockError> {
        let fail = |fault| BlockError {
            block: id,
            slot: None,
            fault,
        };
        let header = BlockHeader::decode(block, id)?;
        if header.kind != BlockKind::Columns {
            return Err(fail(BlockFault::OtherKind));
        }
        let short = |needed: usize| {
            fail(BlockFault::Short {
                needed_bytes: needed.next_multiple_of(SECTOR_BYTES),
            })
        };
        let first = block.get(BLOCK_HEADER_BYTES..).unwrap_or(&[]);
        let length = first.first_chunk();
        let length = length.ok_or(short(BLOCK_HEADER_BYTES + FIXED_BYTES))?;
        let length = u32::from_le_bytes(*length) as usize;
        let end = BLOCK_HEADER_BYTES + length;
        if end > header.length_bytes as usize {
            return Err(fail(BlockFault::Bounds));
        }
        let bytes = block.get(BLOCK_HEADER_BYTES..end).ok_or(short(end))?;
        if crc32c::crc32c(bytes) != header.payload_crc {
            return Err(fail(BlockFault::SharedChecksum));
        }
        let directory = Self::read(bytes, header.records).ok_or(fail(BlockFault::Bounds))?;
        let is_inside = |chunk: &Chunk| {
            let range = chunk.range();
            range.start >= end && range.end <= header.length_bytes as usize
        };
        let mut all = directory.chunks.iter().chain(&directory.sums);
        if !all.all(is_inside) {
            return Err(fail(BlockFault::Bounds));
        }
        Ok((header, directory))
    }

    fn read(bytes: &[u8], rows: u32) -> Option<Self> {
        let mut rest = Fields(bytes.get(4..)?);
        let word = rest.u16()?;
        let columns = usize::from(rest.u16()?);
        let fixed_end = rest.u32()?;
        let odd = rest.u32()?;
        let has_sums = bytes.len() == Self::bytes_of(columns);
        let has_none = bytes.len() == Self::bytes_without_sums(columns);
        if !has_sums && !has_none || odd > rows || rows as usize > GROUP_ROWS_MAX {
            return None;
        }
        let mut chunks = Vec::with_capacity(FIRST_COLUMN + columns);
        for _ in 0..FIRST_COLUMN + columns {
            chunks.push(rest.chunk()?);
        }
        let (mut parts, mut zones) = (Vec::new(), Vec::new());
        for _ in 0..columns {
            let [kind, width] = rest.u16()?.to_le_bytes();
            let null_bit = rest.u16()?;
            let place = rest.u32()?;
            let nulls = rest.u32()?;
            let (least, greatest) = (rest.i64()?, rest.i64()?);
            parts.push(Part {
                null_bit: (null_bit != NO_NULL_BIT).then_some(null_bit),
                place: match kind & VARIABLE {
                    0 => PartPlace::Fixed {
                        offset: place,
                        width,
                    },
                    _ => PartPlace::Variable { number: place },
                },
                is_ordered: kind & ORDERED != 0,
            });
            zones.push(ColumnZone {
                nulls,
                range: (least <= greatest).then_some((least, greatest)),
                encoding: usize::from(kind >> ENCODING_SHIFT)
                    .checked_sub(1)
                    .and_then(|place| ENCODINGS.get(place).copied()),
            });
        }
        let shape = Shape::new(word, fixed_end, parts);
        let sums = if has_sums { Some(rest.chunk()?) } else { None };
        shape.is_sound().then_some(Self {
            rows,
            odd,
            shape,
            chunks,
            zones,
            sums,
        })
    }
}

/// Reads numbers one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn chunk(&mut self) -> Option<Chunk> {
        Some(Chunk {
            offset: self.u32()?,
            bytes: self.u32()?,
            crc: self.u32()?,
        })
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_le_bytes)
    }
}
