//! Row groups, column by column: the main part of a column table (002 §3), as blocks.
//!
//! A block of columns holds up to [`GROUP_ROWS_MAX`] rows of one table and partition. Each column
//! is a *chunk*, encoded by itself: integers as differences from a line, as runs or by a sorted
//! dictionary, strings plainly or by a sorted dictionary, whichever is smallest. A row's place in
//! the group is its slot: where others have an offset, a cold row's word has a number here, and
//! the extent 0 says so.
//!
//! A group gives back the bytes of each tuple as they were. It keeps the shape of its tuples, so
//! that no catalog is needed to read it. Tuples of another layout than most are *odd*, and kept
//! whole beside the columns.
//!
//! ```text
//! 0 header, as of any block; its payload crc is the directory's
//! 64 directory: bytes u32 | word u16 | columns u16 | end of the fixed-width columns u32 | odd u32
//!      then for the row numbers, the odd tuples and each column: offset u32, bytes u32, crc u32
//!      then for each column: kind u8 (with the encoding), width u8, null bit u16, place u32, nulls u32, least i64, greatest i64
//!      then for the sums of the pages: offset u32, bytes u32, crc u32
//! then the chunks, one behind the other
//! then for each page before here: crc u32
//! ```
//!
//! A column's chunk begins with which rows are NULL, if some are and some are not; a column that
//! is NULL throughout has no bytes.
//!
//! Survives what blocks survive. A chunk's checksum covers block id and the chunk's number, so
//! that damage of one leaves the other columns readable. Who wants single rows reads pages of
//! 4 KB, which have checksums, too (`points`).

mod builder;
mod directory;
mod filter;
#[cfg(test)]
mod filter_tests;
mod integers;
mod line;
mod points;
#[cfg(test)]
mod points_tests;
mod reader;
mod shape;
mod strings;
#[cfg(test)]
mod tests;
mod vectors;

use crate::block::{BlockError, BlockFault, Record};

pub use builder::ColumnBuilder;
pub use directory::{Chunk, ColumnZone, Directory, PAGE_BYTES};
pub use filter::{ByteRange, ColumnTest, Matching, Test, float_key};
pub use integers::Encoding;
pub use points::{Absent, ColumnPlace, Pages};
pub use reader::GroupReader;
pub use vectors::{IntegerVector, StringVector, Vector};

/// Rows of a group at most: a slot has 16 bits.
pub const GROUP_ROWS_MAX: usize = 1 << u16::BITS;

/// The extent of a cold row whose block holds columns. A record touches one sector at least.
pub const COLUMNS_EXTENT: u8 = 0;

/// Checks a whole block of columns, and hands out its rows as records.
pub(crate) fn each_record(
    block: &[u8],
    id: u32,
    each: &mut dyn FnMut(Record<'_>),
) -> Result<(), BlockError> {
    let (_, directory) = Directory::decode(block, id)?;
    let malformed = BlockError {
        block: id,
        slot: None,
        fault: BlockFault::Bounds,
    };
    let mut chunks = Vec::with_capacity(directory.chunks());
    for number in 0..directory.chunks() {
        let place = directory.chunk(number).ok_or(malformed)?;
        let bytes = block.get(place.range()).ok_or(malformed)?;
        directory.check(number, bytes, id)?;
        chunks.push(bytes);
    }
    if let Some(sums) = directory.sums() {
        let sums = block.get(sums.range()).ok_or(malformed)?;
        directory.check_sums(sums, id)?;
        let summed = sums.len() / size_of::<u32>();
        for (page, bytes) in block.chunks(PAGE_BYTES).take(summed).enumerate() {
            directory.check_page(sums, page, bytes, id)?;
        }
    }
    let reader = GroupReader::new(&directory, |number| chunks.get(number).copied());
    let reader = reader.ok_or(malformed)?;
    let mut payload = Vec::new();
    for position in 0..directory.rows() {
        let malformed = BlockError {
            slot: Some(position as u16),
            ..malformed
        };
        reader.tuple(position, &mut payload).ok_or(malformed)?;
        if !reader.is_in_zones(position) {
            return Err(malformed);
        }
        each(Record {
            slot: position as u16,
            row: reader.row(position).ok_or(malformed)?,
            flags: 0,
            payload: &payload,
        });
    }
    Ok(())
}
