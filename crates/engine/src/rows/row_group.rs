//! Reading rows from blocks of columns. A chunk that is in memory needs no read. Of the others those
//! are read that are asked for, each once for all rows of a batch. Each is checked by itself: a
//! damaged one is the error of whoever needs it, and of nobody else.
//!
//! A whole row needs every column of its group. Of many rows all chunks are read at once; of few, only
//! pages of those that are large (`row_pages`).

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hashbrown::HashMap;
use parking_lot::Mutex;
use thermocline_storage::block::{BlockError, BlockFault};
use thermocline_storage::block_store::Volumes;
use thermocline_storage::columns::{Directory, GroupReader, PAGE_BYTES};

use crate::catalog::storages::Storages;
use crate::catalog::{Residence, Table};
use crate::ground::error::{Error, Result};
use crate::rows::column_cache::{ColumnCache, Leaves, Piece};
use crate::rows::column_use::{ColumnUses, TableUse};
use crate::rows::device_reads::{Arriving, FileRange};
use crate::rows::planned_read::PlannedRead;

/// A chunk of up to so many bytes is read whole, though one row of it is asked for.
pub(super) const WHOLE_BYTES_MAX: usize = 4 * PAGE_BYTES;
/// What is read of a block to find its directory there.
pub(super) const DIRECTORY_READ_BYTES: u64 = 16 << 10;
/// Chunks are read together across gaps up to this.
const GAP_BYTES_MAX: u64 = 32 << 10;
const SECTOR: u64 = thermocline_device::SECTOR_BYTES as u64;

/// What reads blocks of columns.
pub(crate) struct RowGroups {
    volumes: Arc<Volumes>,
    storages: Arc<Storages>,
    /// What is kept of what was read, but for columns that are warm.
    pub cache: ColumnCache,
    /// Pages of columns that are warm (002 §2.1), the small chunks among them.
    pub warm: ColumnCache,
    /// Pages that were read for single rows since the database was opened.
    pub pages_read: AtomicU64,
    uses: ColumnUses,
    /// What scans came to, by storage.
    counts: Mutex<HashMap<u32, GroupCounts>>,
}

/// What a table says of where its columns are kept.
#[derive(Clone)]
pub(crate) struct Home(Option<Arc<Table>>);

impl Home {
    pub fn is_warm(&self, column: usize) -> bool {
        self.residence(column) == Residence::Warm
    }

    fn is_hot(&self, column: usize) -> bool {
        self.residence(column) == Residence::Hot
    }

    fn has_hot(&self) -> bool {
        let columns = self.0.iter().flat_map(|table| &table.def.columns);
        columns
            .into_iter()
            .any(|column| column.residence == Residence::Hot)
    }

    fn residence(&self, column: usize) -> Residence {
        let of = |table: &Arc<Table>| Some(table.def.columns.get(column)?.residence);
        self.0.as_ref().and_then(of).unwrap_or_default()
    }

    /// When what is kept of a column leaves; of none: what all columns share.
    pub fn leaves(&self, column: Option<usize>) -> Leaves {
        let priority = self
            .0
            .as_ref()
            .map_or(0, |table| table.def.unload_priority());
        Leaves::new(priority, column.is_some_and(|column| self.is_hot(column)))
    }
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
    pub(super) chunks: Vec<Option<Arc<[u8]>>>,
}

impl Group {
    /// What reads its rows. `None`: the chunks are not what was written.
    pub fn reader(&self) -> Option<GroupReader<'_>> {
        let chunks = &self.chunks;
        GroupReader::new(&self.directory, |number| chunks.get(number)?.as_deref())
    }
}

/// A range of a block, and its bytes.
pub(super) type Range = (std::ops::Range<u64>, thermocline_device::AlignedBuffer);

impl RowGroups {
    /// With room for so many bytes of chunks, and of pages of warm columns.
    pub fn new(volumes: Arc<Volumes>, storages: Arc<Storages>, room: u64, warm_room: u64) -> Self {
        RowGroups {
            volumes,
            storages,
            cache: ColumnCache::new(room),
            warm: ColumnCache::new(warm_room),
            pages_read: AtomicU64::new(0),
            uses: ColumnUses::default(),
            counts: Mutex::default(),
        }
    }

    /// Where the columns of a storage are kept.
    pub fn home(&self, storage: u32) -> Home {
        Home(self.storages.read().get(&storage).cloned())
    }

    /// What is kept of the pieces of a column.
    pub fn kept(&self, is_warm: bool) -> &ColumnCache {
        match is_warm {
            true => &self.warm,
            false => &self.cache,
        }
    }

    /// How the columns of a storage are used.
    pub fn uses(&self, storage: u32) -> TableUse {
        let columns = self
            .storages
            .read()
            .get(&storage)
            .map(|table| table.def.columns.len());
        self.uses.of(storage, columns.unwrap_or(0), &self.storages)
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

    /// The error of a block in which something is wrong.
    pub(super) fn damaged(&self, read: &PlannedRead, error: &BlockError) -> Error {
        self.storages.damaged(read, &error.to_string())
    }

    /// The error of a chunk that is not what was written.
    pub fn malformed(&self, read: &PlannedRead) -> Error {
        let error = BlockError {
            block: read.address.block,
            slot: Some(read.address.slot),
            fault: BlockFault::Bounds,
        };
        self.damaged(read, &error)
    }

    /// The error of a position that has another row than the directory says.
    pub fn other_row(&self, read: &PlannedRead, position: u16, found: u32, row: u32) -> Error {
        let block = read.address.block;
        let what =
            format!("block {block}, position {position}: row {found} is in row {row}'s place");
        self.storages.damaged(read, &what)
    }

    /// Of a group that was just written, keeps the columns that are to be in memory.
    pub fn keep_written(&self, storage: u32, block: u32, bytes: &[u8]) {
        let home = self.home(storage);
        if !home.has_hot() {
            return;
        }
        let Ok((_, directory)) = Directory::decode(bytes, block) else {
            return;
        };
        for column in 0..directory.columns() {
            let number = directory.chunk_of(column);
            let chunk = directory.chunk(number).filter(|_| home.is_hot(column));
            if let Some(chunk) = chunk.and_then(|chunk| bytes.get(chunk.range())) {
                let leaves = home.leaves(Some(column));
                self.cache
                    .put(block, Piece::Chunk(number), &chunk.into(), leaves);
            }
        }
        let leaves = home.leaves(None);
        self.cache
            .put_directory(block, &Arc::new(directory), leaves);
    }

    /// Lets a column's chunk, and what else is kept of it, leave memory.
    pub fn let_go(&self, group: &Group, column: usize) {
        let directory = &group.directory;
        let chunk = directory.chunk(directory.chunk_of(column));
        let pages = chunk.unwrap_or_default().range();
        let pages = pages.start / PAGE_BYTES..pages.end.div_ceil(PAGE_BYTES);
        for kept in [&self.cache, &self.warm] {
            kept.drop_piece(group.block, Piece::Chunk(directory.chunk_of(column)));
            kept.drop_piece(group.block, Piece::Place(column));
            for page in pages.clone() {
                kept.drop_piece(group.block, Piece::Page(page));
            }
        }
    }

    /// Whether a column's chunk is in memory whole.
    pub fn is_in_memory(&self, group: &Group, column: usize) -> bool {
        let number = group.directory.chunk_of(column);
        let chunk = group.directory.chunk(number).unwrap_or_default();
        let kept = [&self.cache, &self.warm].into_iter();
        let mut bytes = kept.map(|kept| kept.bytes_of(group.block, Piece::Chunk(number)));
        chunk.bytes == 0 || bytes.any(|bytes| bytes > 0)
    }

    /// Bytes in memory of a column: of its chunk, or of its pages, which it may share with its neighbours.
    pub fn bytes_in_memory(&self, group: &Group, column: usize) -> u64 {
        let directory = &group.directory;
        let number = directory.chunk_of(column);
        let chunk = directory.chunk(number).unwrap_or_default();
        let of = |piece| {
            let kept = [&self.cache, &self.warm].into_iter();
            kept.map(|kept| kept.bytes_of(group.block, piece)).max()
        };
        let whole = of(Piece::Chunk(number)).unwrap_or(0);
        if whole > 0 || chunk.bytes == 0 {
            return whole;
        }
        let range = chunk.range();
        let pages = range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES);
        pages.filter_map(|page| of(Piece::Page(page))).sum()
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
    pub(super) async fn directory_of(
        &self,
        read: &PlannedRead,
        first: u64,
    ) -> Result<(Group, Vec<Range>)> {
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
                    let leaves = self.home(read.storage).leaves(None);
                    self.cache.put_directory(block, &directory, leaves);
                    return Ok((of(directory), there));
                }
                Err(BlockError {
                    fault: BlockFault::Short { needed_bytes },
                    ..
                }) if length < read.block_bytes => {
                    length = read.block_bytes.min(needed_bytes as u64);
                }
                Err(error) => return Err(self.damaged(read, &error)),
            }
        }
    }

    /// A chunk that is in memory.
    pub(super) fn kept_chunk(
        &self,
        home: &Home,
        group: &Group,
        number: usize,
    ) -> Option<Arc<[u8]>> {
        let column = group.directory.column_of(number);
        let is_warm = column.is_some_and(|column| home.is_warm(column));
        let piece = Piece::Chunk(number);
        self.kept(is_warm).get(group.block, piece)
    }

    /// As [`Self::load`]; some of the block was read already.
    async fn load_beside(
        &self,
        read: &PlannedRead,
        group: &mut Group,
        wanted: Option<&[usize]>,
        there: Vec<Range>,
    ) -> Result<()> {
        let numbers = group.directory.wanted(wanted);
        self.load_chunks(read, group, &numbers, there, false).await
    }

    /// Adds these chunks; some of the block was read already. `keeps_warm`: what is read of warm columns
    /// stays in their buffer, if it is no larger than a few pages. A scan leaves nothing of them behind.
    pub(super) async fn load_chunks(
        &self,
        read: &PlannedRead,
        group: &mut Group,
        numbers: &[usize],
        mut there: Vec<Range>,
        keeps_warm: bool,
    ) -> Result<()> {
        let block = group.block;
        let home = self.home(read.storage);
        let mut missing = Vec::new();
        for number in numbers.iter().copied() {
            if group.chunks[number].is_none() {
                group.chunks[number] = self.kept_chunk(&home, group, number);
            }
            if group.chunks[number].is_none() {
                missing.push(number);
            }
        }
        let directory = &group.directory;
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
        let uses = (!missing.is_empty()).then(|| self.uses(read.storage));
        for number in missing {
            let range = range_of(number);
            let bytes = is_there(&there, &range).and_then(|place| {
                let (within, bytes) = &there[place];
                let begin = (range.start - within.start) as usize;
                bytes.get(begin..begin + (range.end - range.start) as usize)
            });
            let bytes = bytes.unwrap_or(&[]);
            let checked = directory.check(number, bytes, block);
            checked.map_err(|error| self.damaged(read, &error))?;
            let bytes: Arc<[u8]> = bytes.into();
            let column = directory.column_of(number);
            uses.iter()
                .for_each(|uses| uses.count_device(column, bytes.len()));
            let is_warm = column.is_some_and(|column| home.is_warm(column));
            if !is_warm || keeps_warm && bytes.len() <= WHOLE_BYTES_MAX {
                let leaves = home.leaves(column);
                self.kept(is_warm)
                    .put(block, Piece::Chunk(number), &bytes, leaves);
            }
            group.chunks[number] = Some(bytes);
        }
        Ok(())
    }

    /// Reads ranges of a block, all at once.
    pub(super) async fn read(
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
