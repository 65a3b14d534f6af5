//! The one writer of blocks: eviction, checkpoints and compaction fill a block with tuples of one
//! table and partition, and it is written as the table's rows are kept: as records, or column by
//! column.
//!
//! A row group is larger than a block of records, since its columns are encoded together: up to
//! [`GROUP_BLOCKS`] times as many bytes of tuples, and no more than a part of the memory limit,
//! because they are collected in memory beside the table.

use thermocline_device::{AlignedBuffer, SECTOR_BYTES};
use thermocline_storage::block::{BlockBuilder, BlockKind, FrameBuilder};
use thermocline_storage::block_store::{BlockStoreError, HOME, NewBlock};
use thermocline_storage::columns::ColumnBuilder;

use crate::catalog::{AccessMethod, Table};
use crate::ground::counters::Counters;
use crate::ground::error::{Error, Result, store_failed};
use crate::parts::Parts;
use crate::parts::reserve::SpaceUse;
use crate::policy::Compression;

/// Bytes of a row group's tuples at most, in blocks, ...
const GROUP_BLOCKS: u64 = 8;
/// ... and as a part of the memory limit.
const GROUP_LIMIT_DIVISOR: u64 = 64;

/// Fills a block and writes it. Its buffers are made once: whoever evicts takes no more memory to
/// make progress.
pub(crate) struct BlockWriter {
    records: BlockBuilder,
    /// Made for the first block of this kind, ...
    frames: Option<FrameBuilder>,
    /// ... and for the first group.
    columns: Option<ColumnBuilder>,
    /// What is being filled.
    kind: BlockKind,
    /// What the blocks are written for.
    space_use: SpaceUse,
}

enum Filling<'w> {
    Records(&'w mut BlockBuilder),
    Frames(&'w mut FrameBuilder),
    Columns(&'w mut ColumnBuilder),
}

/// Bytes of tuples that a row group may have.
pub(crate) fn group_bytes(parts: &Parts) -> u64 {
    let block = u64::from(parts.policy().block_bytes);
    let most = parts.memory().limit() / GROUP_LIMIT_DIVISOR;
    (GROUP_BLOCKS * block).min(most).max(block)
}

/// Bytes of a buffer for blocks of this size: a block below a sector is padded to it.
pub(crate) fn buffer_bytes(block_bytes: u32) -> usize {
    (block_bytes as usize).next_multiple_of(SECTOR_BYTES)
}

impl BlockWriter {
    /// Blocks of so many bytes, for this use.
    pub fn new(block_bytes: u32, space_use: SpaceUse) -> Self {
        BlockWriter {
            records: BlockBuilder::new(AlignedBuffer::new_zeroed(buffer_bytes(block_bytes))),
            frames: None,
            columns: None,
            kind: BlockKind::Records,
            space_use,
        }
    }

    /// Begins a block of a table's rows, without any.
    pub fn begin(&mut self, parts: &Parts, table: &Table) {
        let policy = parts.policy_of(table);
        let block_bytes = policy.block_bytes as usize;
        self.kind = match (table.def.access_method, policy.compression) {
            (AccessMethod::Columns, _) => BlockKind::Columns,
            (AccessMethod::Memory, Compression::Lz4) => BlockKind::Compressed,
            (AccessMethod::Memory, Compression::None) => BlockKind::Records,
        };
        match self.kind {
            BlockKind::Records => {
                self.records.clear();
                self.records.set_target_bytes(block_bytes);
            }
            BlockKind::Compressed => {
                let empty = || FrameBuilder::new(AlignedBuffer::new_zeroed(SECTOR_BYTES));
                let frames = self.frames.get_or_insert_with(empty);
                frames.clear();
                frames.set_target_bytes(block_bytes);
            }
            BlockKind::Columns => {
                let group = || ColumnBuilder::new(group_bytes(parts) as usize);
                self.columns.get_or_insert_with(group).clear();
            }
        }
    }

    /// What is being filled.
    fn filling(&mut self) -> Filling<'_> {
        match (self.kind, &mut self.frames, &mut self.columns) {
            (BlockKind::Compressed, Some(frames), _) => Filling::Frames(frames),
            (BlockKind::Columns, _, Some(columns)) => Filling::Columns(columns),
            _ => Filling::Records(&mut self.records),
        }
    }

    /// Adds a tuple; its slot and extent, or `None` when the block is full.
    pub fn try_push(&mut self, row: u32, tuple: &[u8]) -> Option<(u16, u8)> {
        match self.filling() {
            Filling::Records(records) => records.try_push(row, tuple, 0),
            Filling::Frames(frames) => frames.try_push(row, tuple),
            Filling::Columns(columns) => columns.try_push(row, tuple),
        }
    }

    /// How many tuples were added.
    pub fn record_count(&mut self) -> u32 {
        match self.filling() {
            Filling::Records(records) => records.record_count(),
            Filling::Frames(frames) => frames.record_count(),
            Filling::Columns(columns) => columns.record_count(),
        }
    }

    /// Bytes of the tuples so far.
    pub fn record_bytes(&mut self) -> usize {
        match self.filling() {
            Filling::Records(records) => records.record_bytes(),
            Filling::Frames(frames) => frames.record_bytes(),
            Filling::Columns(columns) => columns.record_bytes(),
        }
    }

    /// Writes the block into the table's tablespace, or into the database's own directory where that takes
    /// none; its id, and how many bytes it has.
    ///
    /// # Errors
    /// The device's; there is no such block then.
    pub fn write(&mut self, parts: &Parts, partition: usize, table: &Table) -> Result<(u32, u64)> {
        let storage = table.def.storage;
        let records = self.record_count();
        let compressed = self.kind == BlockKind::Compressed;
        let device_bytes = match self.filling() {
            Filling::Records(records) => records.device_bytes(),
            Filling::Frames(frames) => frames.device_bytes(),
            Filling::Columns(columns) => {
                // As it is now: the table may have been widened since it was asked for.
                let reader = parts.storages().read().get(&storage).cloned();
                columns.seal(&reader.as_deref().unwrap_or(table).layouts);
                columns.device_bytes()
            }
        };
        let new = NewBlock {
            device_bytes,
            records,
            table: storage,
            partition: partition as u16,
            tablespace: parts.tablespace_of(table),
            compressed,
        };
        let now = parts.clock().now();
        if new.tablespace != HOME && !parts.tablespaces().refuses(new.tablespace, now) {
            match self.put(parts, new) {
                Ok(written) => return Ok(written),
                // Its own directory takes it meanwhile, and memory does not have to keep it.
                Err(error) => self.note_refusal(parts, table, new.tablespace, &error),
            }
        }
        let home = NewBlock {
            tablespace: HOME,
            ..new
        };
        self.put(parts, home)
    }

    fn note_refusal(&self, parts: &Parts, table: &Table, tablespace: u16, error: &Error) {
        let now = parts.clock().now();
        parts.tablespaces().refused(tablespace, now);
        parts.report(&format!(
            "table \"{}.{}\": its tablespace takes no block, so that its rows go into the data directory for now: {error}",
            table.def.schema, table.def.name
        ));
    }

    /// Writes the block there; its id, and how many bytes it has.
    fn put(&mut self, parts: &Parts, new: NewBlock) -> Result<(u32, u64)> {
        let (storage, partition) = (new.table, new.partition);
        let bytes = new.device_bytes as u64;
        if new.tablespace == HOME && !parts.reserve().allows(self.space_use, bytes) {
            return Err(store_failed(BlockStoreError::StorageFull));
        }
        let (id, _) = parts.blocks().allocate(new).map_err(store_failed)?;
        let lsn = parts.log().appended_lsn();
        let kind = self.kind;
        let bytes = match self.filling() {
            Filling::Records(records) => records.finish(id, storage, partition, lsn),
            Filling::Frames(frames) => frames.finish(id, storage, partition, lsn),
            Filling::Columns(columns) => columns.finish(id, storage, partition, lsn),
        };
        Counters::add(&parts.count().block_bytes_written, bytes.len() as u64);
        if let Err(error) = parts.blocks().write(id, bytes) {
            parts.give_up_block(id);
            return Err(store_failed(error));
        }
        if kind == BlockKind::Columns {
            parts.fetcher().groups.keep_written(storage, id, bytes);
        }
        Ok((id, bytes.len() as u64))
    }
}
