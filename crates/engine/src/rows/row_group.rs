//! Reading rows from blocks of columns. A chunk that is in memory needs no read. Of the others those
//! are read that are asked for, each once for all rows of a batch. Each is checked by itself: a
//! damaged one is the error of whoever needs it, and of nobody else.
//!
//! A whole row needs every chunk of its group: of a group of which nothing is in memory all is
//! read at once.

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;
use thermocline_storage::block::{BlockError, BlockFault};
use thermocline_storage::block_store::Volumes;
use thermocline_storage::columns::{Directory, GroupReader};

use crate::catalog::storages::Storages;
use crate::ground::error::{Error, Result};
use crate::memory::fetched::Fetched;
use crate::rows::column_cache::ColumnCache;
use crate::rows::device_reads::{Arriving, FileRange};
use crate::rows::planned_read::{PlannedRead, address_key};

/// What is read of a block to find its directory there.
const DIRECTORY_READ_BYTES: u64 = 16 << 10;
/// Chunks are read together across gaps up to this.
const GAP_BYTES_MAX: u64 = 32 << 10;
const SECTOR: u64 = thermocline_device::SECTOR_BYTES as u64;

/// What reads blocks of columns.
pub(crate) struct RowGroups {
    volumes: Arc<Volumes>,
    storages: Arc<Storages>,
    /// What is kept of what was read.
    pub cache: ColumnCache,
    /// What scans came to, by storage.
    counts: Mutex<HashMap<u32, GroupCounts>>,
}

/// How many groups a scan came to, and how many of them it passed over without reading rows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GroupCounts {
    /// Groups in which there were rows of the table.
    pub groups: u64,
    /// Those in which no row has what is asked: nothing but that was read.
    pub skipped: u64,
}

/// The chunks of a block that are needed.
#[derive(Debug)]
pub(crate) struct Group {
    pub block: u32,
    pub directory: Arc<Directory>,
    chunks: Vec<Option<Arc<[u8]>>>,
}

impl Group {
    /// What reads its rows. `None`: the chunks are not what was written.
    pub fn reader(&self) -> Option<GroupReader<'_>> {
        let chunks = &self.chunks;
        GroupReader::new(&self.directory, |number| chunks.get(number)?.as_deref())
    }
}

/// A range of a block, and its bytes.
type Range = (std::ops::Range<u64>, thermocline_device::AlignedBuffer);

impl RowGroups {
    pub fn new(volumes: Arc<Volumes>, storages: Arc<Storages>, room: u64) -> Self {
        RowGroups {
            volumes,
            storages,
            cache: ColumnCache::new(room),
            counts: Mutex::default(),
        }
    }

    /// Counts a group that a scan came to.
    pub fn count(&self, storage: u32, was_skipped: bool) {
        let mut counts = self.counts.lock();
        let counts = counts.entry(storage).or_default();
        counts.groups += 1;
        counts.skipped += u64::from(was_skipped);
    }

    /// What scans of a storage came to since the database was opened.
    pub fn counts(&self, storage: u32) -> GroupCounts {
        let counts = self.counts.lock();
        counts.get(&storage).copied().unwrap_or_default()
    }

    /// Reads whole tuples of one block; how many bytes they have.
    pub async fn fetch(&self, reads: &[PlannedRead], fetched: &mut Fetched) -> Result<u64> {
        let mut bytes = 0;
        let mut group = None;
        self.each(reads, &mut group, &mut |read, tuple| {
            bytes += tuple.len() as u64;
            fetched.insert(address_key(read.address), tuple.into());
        })
        .await?;
        Ok(bytes)
    }

    /// Reads rows of one block, whole, and gives each to `each`.
    pub async fn each(
        &self,
        reads: &[PlannedRead],
        held: &mut Option<Group>,
        each: &mut impl FnMut(&PlannedRead, &[u8]),
    ) -> Result<()> {
        let Some(first) = reads.first() else {
            return Ok(());
        };
        let group = match held.take() {
            Some(group) if group.block == first.address.block => group,
            _ => self.group(first, None).await?,
        };
        let group = held.insert(group);
        let reader = group.reader().ok_or_else(|| self.malformed(first))?;
        let mut tuple = Vec::new();
        for read in reads {
            let position = read.address.slot;
            let row = read.row.row();
            let found = reader.row(usize::from(position));
            if found != Some(row) {
                return Err(self.other_row(read, position, found.unwrap_or_default(), row));
            }
            let put = reader.tuple(usize::from(position), &mut tuple);
            put.ok_or_else(|| self.malformed(read))?;
            each(read, &tuple);
        }
        Ok(())
    }

    /// The error of a chunk that is not what was written.
    pub fn malformed(&self, read: &PlannedRead) -> Error {
        let error = BlockError {
            block: read.address.block,
            slot: Some(read.address.slot),
            fault: BlockFault::Bounds,
        };
        self.storages.damaged(read, &error.to_string())
    }

    /// The error of a position that has another row than the directory says.
    pub fn other_row(&self, read: &PlannedRead, position: u16, found: u32, row: u32) -> Error {
        let block = read.address.block;
        let what =
            format!("block {block}, position {position}: row {found} is in row {row}'s place");
        self.storages.damaged(read, &what)
    }

    /// The chunks of a block that these columns need; all, where nothing is said.
    pub async fn group(&self, read: &PlannedRead, wanted: Option<&[usize]>) -> Result<Group> {
        let length = match wanted {
            None => read.block_bytes,
            Some(_) => DIRECTORY_READ_BYTES.min(read.block_bytes),
        };
        let (mut group, there) = self.directory_of(read, length).await?;
        self.load_beside(read, &mut group, wanted, there).await?;
        Ok(group)
    }

    /// A group without chunks.
    pub async fn opened(&self, read: &PlannedRead) -> Result<Group> {
        let length = DIRECTORY_READ_BYTES.min(read.block_bytes);
        Ok(self.directory_of(read, length).await?.0)
    }

    /// Adds the chunks that these columns need; all, where nothing is said.
    pub async fn load(
        &self,
        read: &PlannedRead,
        group: &mut Group,
        wanted: Option<&[usize]>,
    ) -> Result<()> {
        self.load_beside(read, group, wanted, Vec::new()).await
    }

    /// A group without chunks, and what was read of its block to find the directory.
    async fn directory_of(&self, read: &PlannedRead, first: u64) -> Result<(Group, Vec<Range>)> {
        let block = read.address.block;
        let of = |directory: Arc<Directory>| Group {
            block,
            chunks: vec![None; directory.chunks()],
            directory,
        };
        if let Some(directory) = self.cache.directory(block) {
            return Ok((of(directory), Vec::new()));
        }
        let mut length = first;
        loop {
            let there = self.read(read, std::iter::once(0..length).collect());
            let there = there.await?;
            let bytes = there.first().map_or(&[][..], |(_, bytes)| bytes);
            match Directory::decode(bytes, block) {
                Ok((_, directory)) => {
                    let directory = Arc::new(directory);
                    self.cache.put_directory(block, &directory);
                    return Ok((of(directory), there));
                }
                Err(BlockError {
                    fault: BlockFault::Short { needed_bytes },
                    ..
                }) if length < read.block_bytes => {
                    length = read.block_bytes.min(needed_bytes as u64);
                }
                Err(error) => return Err(self.storages.damaged(read, &error.to_string())),
            }
        }
    }

    /// As [`Self::load`]; some of the block was read already.
    async fn load_beside(
        &self,
        read: &PlannedRead,
        group: &mut Group,
        wanted: Option<&[usize]>,
        mut there: Vec<Range>,
    ) -> Result<()> {
        let block = group.block;
        let directory = &group.directory;
        let mut missing = Vec::new();
        for number in directory.wanted(wanted) {
            let chunk = &mut group.chunks[number];
            if chunk.is_none() {
                *chunk = self.cache.chunk(block, number);
            }
            if chunk.is_none() {
                missing.push(number);
            }
        }
        let range_of = |number: usize| {
            let range = directory.chunk(number).unwrap_or_default().range();
            range.start as u64..range.end as u64
        };
        let is_there = |there: &[Range], range: &std::ops::Range<u64>| {
            there
                .iter()
                .position(|(within, _)| within.start <= range.start && range.end <= within.end)
        };
        let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
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
        if !ranges.is_empty() {
            there.extend(self.read(read, ranges).await?);
        }
        for number in missing {
            let range = range_of(number);
            let bytes = is_there(&there, &range).and_then(|place| {
                let (within, bytes) = &there[place];
                let begin = (range.start - within.start) as usize;
                bytes.get(begin..begin + (range.end - range.start) as usize)
            });
            let bytes = bytes.unwrap_or(&[]);
            let checked = directory.check(number, bytes, block);
            checked.map_err(|error| self.storages.damaged(read, &error.to_string()))?;
            let bytes: Arc<[u8]> = bytes.into();
            self.cache.put_chunk(block, number, &bytes);
            group.chunks[number] = Some(bytes);
        }
        Ok(())
    }

    /// Reads ranges of a block, all at once.
    async fn read(
        &self,
        read: &PlannedRead,
        ranges: Vec<std::ops::Range<u64>>,
    ) -> Result<Vec<Range>> {
        let lengths = ranges.iter().map(|range| FileRange {
            tablespace: read.tablespace,
            offset: read.block_offset + range.start,
            bytes: (range.end - range.start) as usize,
        });
        let mut arriving = Arriving::submit(&self.volumes, lengths);
        let mut there = Vec::with_capacity(ranges.len());
        while let Some((number, outcome)) = arriving.next().await {
            let buffer = outcome.map_err(|error| Error::io(error, self.storages.place(read)))?;
            there.push((ranges[number].clone(), buffer));
        }
        Ok(there)
    }
}
