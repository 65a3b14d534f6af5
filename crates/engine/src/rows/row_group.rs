//! Reading rows from blocks of columns. A chunk that is in memory needs no read. Of the others those
//! are read that are asked for, each once for all rows of a batch. Each is checked by itself: a
//! damaged one is the error of whoever needs it, and of nobody else.
//!
//! A whole row needs every chunk of its group: of a group of which nothing is in memory all is
//! read at once.

use std::ops::Range;
use std::sync::Arc;

use thermocline_device::DeviceFile;
use thermocline_storage::block::{BlockError, BlockFault};
use thermocline_storage::columns::{Directory, GroupReader};

use crate::catalog::storages::Storages;
use crate::ground::error::{Error, Result};
use crate::memory::fetched::Fetched;
use crate::rows::column_cache::ColumnCache;
use crate::rows::device_reads::Arriving;
use crate::rows::planned_read::{PlannedRead, address_key};

/// What is read of a block to find its directory there.
const DIRECTORY_READ_BYTES: u64 = 16 << 10;
/// Chunks are read together across gaps up to this.
const GAP_BYTES_MAX: u64 = 32 << 10;
const SECTOR: u64 = thermocline_device::SECTOR_BYTES as u64;

/// What reads blocks of columns.
pub(crate) struct RowGroups {
    file: Arc<dyn DeviceFile>,
    storages: Arc<Storages>,
    /// What is kept of what was read.
    pub cache: ColumnCache,
}

/// Which columns a scan reads, and the group that it read last.
#[derive(Debug, Default)]
pub(crate) struct GroupHeld {
    wanted: Option<Arc<[usize]>>,
    last: Option<Group>,
}

impl GroupHeld {
    /// For whoever needs whole rows.
    pub fn of_all_columns() -> Self {
        GroupHeld::default()
    }

    /// For whoever needs these columns.
    pub fn of_columns(columns: &[usize]) -> Self {
        GroupHeld {
            wanted: Some(columns.into()),
            last: None,
        }
    }
}

/// The chunks of a block that are needed.
#[derive(Debug)]
struct Group {
    block: u32,
    directory: Arc<Directory>,
    chunks: Vec<Option<Arc<[u8]>>>,
}

impl RowGroups {
    pub fn new(file: Arc<dyn DeviceFile>, storages: Arc<Storages>, room: u64) -> Self {
        RowGroups {
            file,
            storages,
            cache: ColumnCache::new(room),
        }
    }

    /// Reads whole tuples of one block; how many bytes they have.
    pub async fn fetch(&self, reads: &[PlannedRead], fetched: &mut Fetched) -> Result<u64> {
        let mut bytes = 0;
        let mut group = GroupHeld::of_all_columns();
        self.each(reads, &mut group, &mut |read, tuple| {
            bytes += tuple.len() as u64;
            fetched.insert(address_key(read.address), tuple.into());
        })
        .await?;
        Ok(bytes)
    }

    /// Reads rows of one block, and gives each to `each`. Columns that `held` does not want are
    /// NULL.
    pub async fn each(
        &self,
        reads: &[PlannedRead],
        held: &mut GroupHeld,
        each: &mut impl FnMut(&PlannedRead, &[u8]),
    ) -> Result<()> {
        let Some(first) = reads.first() else {
            return Ok(());
        };
        let wanted = held.wanted.clone();
        let group = match held.last.take() {
            Some(group) if group.block == first.address.block => group,
            _ => self.group(first, wanted.as_deref()).await?,
        };
        let group = held.last.insert(group);
        let chunks = &group.chunks;
        let reader = GroupReader::new(&group.directory, |number| chunks.get(number)?.as_deref());
        let malformed = |read| {
            let block = group.block;
            let slot = Some(first.address.slot);
            let fault = BlockFault::Bounds;
            let error = BlockError { block, slot, fault };
            self.storages.damaged(read, &error.to_string())
        };
        let reader = reader.ok_or_else(|| malformed(first))?;
        let mut tuple = Vec::new();
        for read in reads {
            let position = usize::from(read.address.slot);
            let row = read.row.row();
            if reader.row(position) != Some(row) {
                let found = reader.row(position).unwrap_or_default();
                let what = format!(
                    "block {}, position {position}: row {found} is in row {row}'s place",
                    group.block
                );
                return Err(self.storages.damaged(read, &what));
            }
            let put = reader.tuple(position, &mut tuple);
            put.ok_or_else(|| malformed(read))?;
            each(read, &tuple);
        }
        Ok(())
    }

    /// The chunks of a block that these columns need; all, where nothing is said.
    async fn group(&self, read: &PlannedRead, wanted: Option<&[usize]>) -> Result<Group> {
        let block = read.address.block;
        let damaged = |error: BlockError| self.storages.damaged(read, &error.to_string());
        // Where a file begins that was read, and its bytes.
        let mut there: Vec<(Range<u64>, thermocline_device::AlignedBuffer)> = Vec::new();
        let directory = match self.cache.directory(block) {
            Some(directory) => directory,
            None => {
                let mut length = match wanted {
                    None => read.block_bytes,
                    Some(_) => DIRECTORY_READ_BYTES.min(read.block_bytes),
                };
                loop {
                    there = self
                        .read(read, std::iter::once(0..length).collect())
                        .await?;
                    let bytes = there.first().map_or(&[][..], |(_, bytes)| bytes);
                    match Directory::decode(bytes, block) {
                        Ok((_, directory)) => break Arc::new(directory),
                        Err(BlockError {
                            fault: BlockFault::Short { needed_bytes },
                            ..
                        }) if length < read.block_bytes => {
                            length = read.block_bytes.min(needed_bytes as u64);
                        }
                        Err(error) => return Err(damaged(error)),
                    }
                }
            }
        };
        let numbers = directory.wanted(wanted);
        let mut chunks = vec![None; directory.chunks()];
        let mut missing = Vec::new();
        for number in numbers {
            chunks[number] = self.cache.chunk(block, number);
            if chunks[number].is_none() {
                missing.push(number);
            }
        }
        let range_of = |number: usize| {
            let range = directory.chunk(number).unwrap_or_default().range();
            range.start as u64..range.end as u64
        };
        let is_there = |there: &[(Range<u64>, _)], range: &Range<u64>| {
            there.iter().position(|(within, _): &(Range<u64>, _)| {
                within.start <= range.start && range.end <= within.end
            })
        };
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for number in &missing {
            let range = range_of(*number);
            if is_there(&there, &range).is_some() {
                continue;
            }
            let begin = range.start - range.start % SECTOR;
            let end = range.end.next_multiple_of(SECTOR);
            match ranges.last_mut() {
                // Chunks lie in the order of their numbers.
                Some(last) if begin <= last.end + GAP_BYTES_MAX => last.end = last.end.max(end),
                _ => ranges.push(begin..end),
            }
        }
        there.extend(self.read(read, ranges).await?);
        for number in missing {
            let range = range_of(number);
            let bytes = is_there(&there, &range).and_then(|place| {
                let (within, bytes) = &there[place];
                let begin = (range.start - within.start) as usize;
                bytes.get(begin..begin + (range.end - range.start) as usize)
            });
            let bytes = bytes.unwrap_or(&[]);
            directory.check(number, bytes, block).map_err(damaged)?;
            let bytes: Arc<[u8]> = bytes.into();
            self.cache.put_chunk(block, number, &bytes);
            chunks[number] = Some(bytes);
        }
        self.cache.put_directory(block, &directory);
        Ok(Group {
            block,
            directory,
            chunks,
        })
    }

    /// Reads ranges of a block, all at once.
    async fn read(
        &self,
        read: &PlannedRead,
        ranges: Vec<Range<u64>>,
    ) -> Result<Vec<(Range<u64>, thermocline_device::AlignedBuffer)>> {
        let lengths = ranges.iter().map(|range| {
            let bytes = (range.end - range.start) as usize;
            (read.block_offset + range.start, bytes)
        });
        let mut arriving = Arriving::submit(&*self.file, lengths);
        let mut there = Vec::with_capacity(ranges.len());
        while let Some((number, outcome)) = arriving.next().await {
            let buffer = outcome.map_err(|error| Error::io(error, self.storages.place(read)))?;
            there.push((ranges[number].clone(), buffer));
        }
        Ok(there)
    }
}
