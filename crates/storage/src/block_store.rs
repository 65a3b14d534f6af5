//! The blocks of one device, in one file, and the Block Table that says where.
//!
//! Guarantees: an id is never used twice, not even after a crash. Space is not
//! used again before the checkpoint that no longer names it is durable and no
//! reader that pinned it is left. A full device is an error value.
//! Assumes: `allocate`, `write`, `sync` and `release_up_to` may wait for the
//! device, so that no partition is locked meanwhile; a reader pins before it looks
//! up an address. Survives: a crash at any point (the table comes from the last
//! checkpoint). A sync that fails is not tried again: the store refuses from then on.

mod extents;
mod snapshot;
mod superblock;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::{Mutex, RwLock};
use thermocline_device::{
    AlignedBuffer, Device, DeviceFile, Mutation, OpenMode, SECTOR_BYTES, StopPoint, stop_amid,
    stop_at,
};

use extents::FreeExtents;
use superblock::{SUPERBLOCK_SECTORS, Superblock};

const SECTOR: u64 = SECTOR_BYTES as u64;
/// Entries of the table that are read under one lock.
const TURN_BLOCKS: usize = 1024;

/// How a block store is kept.
#[derive(Clone, Debug)]
pub struct BlockStoreOptions {
    /// Name of the file.
    pub name: String,
    /// The database the blocks belong to; those of another are refused.
    pub database: u128,
    /// Steps by which the file grows and shrinks, in bytes.
    pub grow_bytes: u64,
    /// Whether space that is free inside the file goes back to the file system.
    pub punch_holes: bool,
    /// The sector that the first block may have. Each opening has to say the same.
    pub first_sector: u64,
    /// The first block's id, in a new file.
    pub first_id: u32,
}

impl BlockStoreOptions {
    /// The defaults: a file `blocks`, steps of 16 MiB, holes punched.
    pub fn new(database: u128) -> Self {
        Self {
            name: "blocks".into(),
            database,
            grow_bytes: 16 << 20,
            punch_holes: true,
            first_sector: SUPERBLOCK_SECTORS,
            first_id: 1,
        }
    }
}

/// Why the block store can't do what was asked.
#[derive(Debug)]
pub enum BlockStoreError {
    /// The device failed.
    Io {
        /// What was done.
        doing: &'static str,
        /// What the device said.
        source: io::Error,
    },
    /// There is no space left on the device.
    StorageFull,
    /// All block ids were used.
    OutOfIds,
    /// The table has no such block.
    UnknownBlock(u32),
    /// The file or the checkpoint's table is not what was written.
    Corrupt(&'static str),
    /// A sync failed before; what is on the device is not known.
    Failed,
}

impl BlockStoreError {
    fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::StorageFull,
            _ => Self::Io { doing, source },
        }
    }
}

impl fmt::Display for BlockStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, source } => write!(f, "blocks: {doing}: {source}"),
            Self::StorageFull => f.write_str("no space left for blocks"),
            Self::OutOfIds => f.write_str("no block ids left"),
            Self::UnknownBlock(id) => write!(f, "there is no block {id}"),
            Self::Corrupt(what) => write!(f, "blocks are corrupt: {what}"),
            Self::Failed => f.write_str("blocks: a sync has failed before"),
        }
    }
}

impl std::error::Error for BlockStoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// A block to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewBlock {
    /// Bytes on the device, whole sectors.
    pub device_bytes: usize,
    /// Its records, all of them live at first.
    pub records: u32,
    /// Whose records they are.
    pub table: u32,
    /// Whose records they are.
    pub partition: u16,
}

/// What the Block Table says of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockInfo {
    /// The block's id.
    pub id: u32,
    /// Where it is in the file, in bytes.
    pub offset: u64,
    /// Bytes on the device, whole sectors.
    pub device_bytes: u64,
    /// Whose records it holds.
    pub table: u32,
    /// Whose records it holds.
    pub partition: u16,
    /// All its records.
    pub records: u32,
    /// Those that are still some tuple's: counted, since a restart can count
    /// them again from the row directories, which it could not do with bytes.
    pub live_records: u32,
}

impl BlockInfo {
    /// The share of the records that is live, from 0 to 1.
    pub fn live_share(&self) -> f64 {
        if self.records == 0 {
            return 0.0;
        }
        f64::from(self.live_records) / f64::from(self.records)
    }
}

/// Sums over a block store, in bytes where not said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BlockStoreStatistics {
    /// Number of blocks.
    pub blocks: u64,
    /// What the blocks take on the device.
    pub device_bytes: u64,
    /// All records.
    pub records: u64,
    /// Records that are still some tuple's.
    pub live_records: u64,
    /// Freed, but not to be used again yet.
    pub pending_bytes: u64,
    /// Free inside the file.
    pub free_bytes: u64,
    /// Number of free extents.
    pub free_extents: u64,
    /// Length of the file.
    pub file_bytes: u64,
}

struct Entry {
    /// In sectors.
    offset: u32,
    sectors: u32,
    table: u32,
    partition: u16,
    records: u32,
    live_records: AtomicU32,
}

impl Entry {
    fn info(&self, id: u32) -> BlockInfo {
        let offset = match Mutation::OffsetsNarrow.is_made() {
            true => u64::from(self.offset.wrapping_mul(SECTOR as u32)),
            false => u64::from(self.offset) * SECTOR,
        };
        BlockInfo {
            id,
            offset,
            device_bytes: u64::from(self.sectors) * SECTOR,
            table: self.table,
            partition: self.partition,
            records: self.records,
            live_records: self.live_records.load(Ordering::Relaxed),
        }
    }
}

struct Pending {
    epoch: u64,
    id: u32,
    entry: Entry,
}

struct Space {
    free: FreeExtents,
    file_sectors: u64,
    superblock: Superblock,
    next_id: u32,
    pending: Vec<Pending>,
}

#[derive(Default)]
struct Pins {
    epoch: u64,
    readers: BTreeMap<u64, u64>,
}

/// The blocks of one device. Locks are taken in the order space, table, pins.
pub struct BlockStore {
    file: Arc<dyn DeviceFile>,
    options: BlockStoreOptions,
    space: Mutex<Space>,
    /// In the order of the blocks' ids: whoever goes over all does so in the same order.
    table: RwLock<BTreeMap<u32, Entry>>,
    pins: Arc<Mutex<Pins>>,
    failed: AtomicBool,
}

/// Keeps the blocks that a reader may still read; see [`BlockStore::pin`].
pub struct BlockPin {
    pins: Arc<Mutex<Pins>>,
    epoch: u64,
}

impl Drop for BlockPin {
    fn drop(&mut self) {
        let mut pins = self.pins.lock();
        if let Some(readers) = pins.readers.get_mut(&self.epoch) {
            *readers -= 1;
            if *readers == 0 {
                pins.readers.remove(&self.epoch);
            }
        }
    }
}

/// The blocks of a table as [`BlockStore::write_to`] wrote it, in no order.
///
/// # Errors
/// [`BlockStoreError::Corrupt`] if it makes no sense.
pub fn blocks_of_table(table: &[u8]) -> Result<Vec<BlockInfo>, BlockStoreError> {
    let restored = snapshot::decode(table, SUPERBLOCK_SECTORS, u64::MAX)?;
    let entries = restored.table.iter();
    Ok(entries.map(|(id, entry)| entry.info(*id)).collect())
}

impl BlockStore {
    /// Opens the blocks as the checkpoint's table says; without one, all is free.
    pub fn open(
        device: &dyn Device,
        options: BlockStoreOptions,
        table: Option<&[u8]>,
    ) -> Result<Self, BlockStoreError> {
        assert!(
            options.grow_bytes.is_multiple_of(SECTOR) && options.grow_bytes > 0,
            "the file grows by whole sectors"
        );
        assert!(
            options.first_sector >= SUPERBLOCK_SECTORS && options.first_id > 0,
            "blocks come after the superblock, and their ids begin at 1"
        );
        let file = device
            .open(&options.name, OpenMode::Create)
            .map_err(BlockStoreError::io("open"))?;
        let superblock = match Superblock::read(&*file, options.database)? {
            Some(superblock) => superblock,
            None if table.is_some() => {
                return Err(BlockStoreError::Corrupt("there is no superblock"));
            }
            None => {
                let superblock = Superblock {
                    id_ceiling: options.first_id,
                    ..Superblock::new(options.database)
                };
                file.set_len(options.grow_bytes.max(options.first_sector * SECTOR))
                    .map_err(BlockStoreError::io("allocate"))?;
                superblock.write(&*file)?;
                file.sync_data().map_err(BlockStoreError::io("sync"))?;
                device
                    .sync_directory()
                    .map_err(BlockStoreError::io("sync directory"))?;
                superblock
            }
        };
        let file_sectors = file.len().map_err(BlockStoreError::io("length"))? / SECTOR;
        let nothing = [1u32.to_le_bytes(), 0u32.to_le_bytes()].concat();
        let begin = options.first_sector;
        let restored = snapshot::decode(table.unwrap_or(&nothing), begin, file_sectors)?;
        Ok(Self {
            file,
            options,
            space: Mutex::new(Space {
                free: restored.free,
                file_sectors,
                superblock,
                next_id: restored.next_id.max(superblock.id_ceiling),
                pending: Vec::new(),
            }),
            table: RwLock::new(restored.table),
            pins: Arc::default(),
            failed: AtomicBool::new(false),
        })
    }

    /// Makes the file of a store that is put together from a backup: blocks go
    /// to the offsets that its table will name, and no id below `id_ceiling` is
    /// given out again.
    ///
    /// # Errors
    /// There is such a file already, or the device fails.
    pub fn make_file(
        device: &dyn Device,
        options: &BlockStoreOptions,
        id_ceiling: u32,
        file_bytes: u64,
    ) -> Result<Arc<dyn DeviceFile>, BlockStoreError> {
        let file = device
            .open(&options.name, OpenMode::CreateNew)
            .map_err(BlockStoreError::io("create"))?;
        file.set_len(file_bytes.max(SUPERBLOCK_SECTORS * SECTOR))
            .map_err(BlockStoreError::io("allocate"))?;
        let superblock = Superblock {
            id_ceiling,
            ..Superblock::new(options.database)
        };
        superblock.write(&*file)?;
        Ok(file)
    }

    /// No id from here on was given out, now or before a crash.
    pub fn id_ceiling(&self) -> u32 {
        self.space.lock().superblock.id_ceiling
    }

    /// Finds space for a block; its id and its offset in bytes.
    pub fn allocate(&self, block: NewBlock) -> Result<(u32, u64), BlockStoreError> {
        assert!(
            block.device_bytes > 0 && block.device_bytes.is_multiple_of(SECTOR_BYTES),
            "a block is whole sectors"
        );
        let sectors = (block.device_bytes / SECTOR_BYTES) as u64;
        let mut space = self.space.lock();
        if space.next_id >= space.superblock.id_ceiling {
            let next = space
                .superblock
                .reserve_ids()
                .ok_or(BlockStoreError::OutOfIds)?;
            next.write(&*self.file)?;
            self.sync()?;
            space.superblock = next;
        }
        let offset = match space.free.take(sectors) {
            Some(offset) => offset,
            None => {
                self.grow(&mut space, sectors)?;
                space
                    .free
                    .take(sectors)
                    .ok_or(BlockStoreError::StorageFull)?
            }
        };
        let Ok(offset_sectors) = u32::try_from(offset) else {
            space.free.give(offset, sectors);
            return Err(BlockStoreError::StorageFull);
        };
        let freed = space.pending.last().map(|pending| pending.id);
        let id = match freed.filter(|_| Mutation::BlockIdReused.is_made()) {
            Some(freed) => freed,
            None => space.next_id,
        };
        space.next_id = space.next_id.max(id + 1);
        let entry = Entry {
            offset: offset_sectors,
            sectors: sectors as u32,
            table: block.table,
            partition: block.partition,
            records: block.records,
            live_records: AtomicU32::new(block.records),
        };
        let before = self.table.write().insert(id, entry);
        assert!(before.is_none(), "block ids are never used twice");
        Ok((id, offset * SECTOR))
    }

    /// Makes a free extent of `sectors` at the file's end.
    fn grow(&self, space: &mut Space, sectors: u64) -> Result<(), BlockStoreError> {
        let tail = space.free.tail_start(space.file_sectors);
        let needed = tail + sectors;
        let stepped = needed.next_multiple_of(self.options.grow_bytes / SECTOR);
        let grown = match self.file.set_len(stepped * SECTOR) {
            Ok(()) => stepped,
            // The last step may not fit where the block does.
            Err(_) if needed < stepped => {
                self.file
                    .set_len(needed * SECTOR)
                    .map_err(BlockStoreError::io("grow"))?;
                needed
            }
            Err(error) => return Err(BlockStoreError::io("grow")(error)),
        };
        let from = space.file_sectors;
        space.free.give(from, grown - from);
        space.file_sectors = grown;
        Ok(())
    }

    /// Writes an allocated block, in one write.
    pub fn write(&self, id: u32, bytes: &[u8]) -> Result<(), BlockStoreError> {
        let info = self.info(id).ok_or(BlockStoreError::UnknownBlock(id))?;
        assert!(
            bytes.len() as u64 == info.device_bytes,
            "a block is as long as it was said to be"
        );
        stop_amid(StopPoint::MidBlock, || {
            let half = (bytes.len() / 2).next_multiple_of(SECTOR_BYTES);
            let _ = self.file.write_at(&bytes[..half], info.offset);
        });
        self.file
            .write_at(bytes, info.offset)
            .map_err(BlockStoreError::io("write"))?;
        stop_at(StopPoint::BlockFooter);
        Ok(())
    }

    /// Makes all blocks written so far durable.
    pub fn sync(&self) -> Result<(), BlockStoreError> {
        self.check_failed()?;
        self.file.sync_data().map_err(|error| {
            self.failed.store(true, Ordering::Release);
            BlockStoreError::io("sync")(error)
        })
    }

    /// Whether a sync has failed: what was written before is not known to be there.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    fn check_failed(&self) -> Result<(), BlockStoreError> {
        if self.has_failed() {
            return Err(BlockStoreError::Failed);
        }
        Ok(())
    }

    /// Reads a whole block.
    pub fn read(&self, id: u32) -> Result<AlignedBuffer, BlockStoreError> {
        let mut buffer = AlignedBuffer::new_zeroed(0);
        self.read_into(id, &mut buffer)?;
        Ok(buffer)
    }

    /// Reads a whole block into a buffer, which is replaced if it is too small; the
    /// block's bytes.
    pub fn read_into<'a>(
        &self,
        id: u32,
        buffer: &'a mut AlignedBuffer,
    ) -> Result<&'a [u8], BlockStoreError> {
        let info = self.info(id).ok_or(BlockStoreError::UnknownBlock(id))?;
        let bytes = info.device_bytes as usize;
        if buffer.len() < bytes {
            *buffer = AlignedBuffer::new_zeroed(bytes);
        }
        self.file
            .read_at(&mut buffer[..bytes], info.offset)
            .map_err(BlockStoreError::io("read"))?;
        Ok(&buffer[..bytes])
    }

    /// The file, for asynchronous reads at `info(id).offset`.
    pub fn file(&self) -> &Arc<dyn DeviceFile> {
        &self.file
    }

    /// Bytes of the file before the first block.
    pub fn superblock_bytes(&self) -> u64 {
        self.options.first_sector * SECTOR
    }

    /// What the table says of a block.
    pub fn info(&self, id: u32) -> Option<BlockInfo> {
        self.table.read().get(&id).map(|entry| entry.info(id))
    }

    /// What the table says of all blocks, in the order of their ids.
    pub fn blocks(&self) -> Vec<BlockInfo> {
        let mut blocks = Vec::new();
        self.each_block(|block| blocks.push(block));
        blocks
    }

    /// Hands out what the table says of each block, in the order of their ids. A block
    /// that is made or freed meanwhile may be left out. `each` must not call the store:
    /// the table is locked, if only for some blocks at a time, so that statements
    /// need not wait for all.
    pub fn each_block(&self, mut each: impl FnMut(BlockInfo)) {
        let mut from = Some(0);
        while let Some(first) = from {
            let mut last = None;
            for (id, entry) in self.table.read().range(first..).take(TURN_BLOCKS) {
                each(entry.info(*id));
                last = Some(*id);
            }
            from = last.and_then(|id| id.checked_add(1));
        }
    }

    /// Counts off records that are no tuple's any more; what is left alive, or
    /// `None` when the block was freed before.
    pub fn sub_live(&self, id: u32, dead: u32) -> Option<u32> {
        let table = self.table.read();
        let live_records = &table.get(&id)?.live_records;
        let before = live_records.fetch_sub(dead, Ordering::Relaxed);
        assert!(before >= dead, "a record dies once");
        Some(before - dead)
    }

    /// Sets the live records of a block: recovery counts what the row directories
    /// name. `false` when there is no such block.
    pub fn set_live(&self, id: u32, live: u32) -> bool {
        let table = self.table.read();
        let Some(entry) = table.get(&id) else {
            return false;
        };
        assert!(live <= entry.records, "no more lives than was written");
        entry.live_records.store(live, Ordering::Relaxed);
        true
    }

    /// Takes a block out of the table. Its space waits for `release_up_to`.
    pub fn free(&self, id: u32) -> Result<(), BlockStoreError> {
        let mut space = self.space.lock();
        let entry = self.table.write().remove(&id);
        let entry = entry.ok_or(BlockStoreError::UnknownBlock(id))?;
        let epoch = self.pins.lock().epoch;
        space.pending.push(Pending { epoch, id, entry });
        Ok(())
    }

    /// Begins a checkpoint, before any partition is written down: no address that
    /// it takes down can lead to a block freed until now. The epoch to give to
    /// `write_to`, and to `release_up_to` when the checkpoint is durable.
    pub fn begin_checkpoint(&self) -> u64 {
        let mut pins = self.pins.lock();
        pins.epoch += 1;
        pins.epoch - 1
    }

    /// Appends the table for the checkpoint that began at `epoch`. Blocks freed
    /// since are in it: the checkpoint's addresses may lead to them.
    pub fn write_to(&self, epoch: u64, out: &mut Vec<u8>) {
        let space = self.space.lock();
        let table = self.table.read();
        let live = table.iter().map(|(id, entry)| (*id, entry));
        let since = space.pending.iter().filter(|p| p.epoch > epoch);
        let freed = since.map(|p| (p.id, &p.entry));
        snapshot::encode(space.next_id, live.chain(freed), out);
    }

    /// Gives back the space of blocks freed before the checkpoint of `epoch` began,
    /// once that checkpoint is durable. What readers have pinned is left for the
    /// next call. The bytes given back.
    pub fn release_up_to(&self, epoch: u64) -> Result<u64, BlockStoreError> {
        let mut space = self.space.lock();
        let oldest = self.pins.lock().readers.keys().next().copied();
        let free_to_go = |p: &mut Pending| p.epoch <= epoch && oldest.is_none_or(|o| p.epoch < o);
        let mut extents: Vec<(u64, u64)> = space
            .pending
            .extract_if(.., free_to_go)
            .map(|p| (u64::from(p.entry.offset), u64::from(p.entry.sectors)))
            .collect();
        // Nobody else knows of these extents now: allocation goes on meanwhile.
        drop(space);
        extents.sort_unstable();
        extents.dedup_by(|next, last| {
            let adjacent = last.0 + last.1 == next.0;
            if adjacent {
                last.1 += next.1;
            }
            adjacent
        });
        let mut punched = Ok(());
        if self.options.punch_holes {
            punched = extents
                .iter()
                .try_for_each(|(at, sectors)| self.file.punch_hole(at * SECTOR, sectors * SECTOR));
        }
        let mut space = self.space.lock();
        let mut released = 0;
        for (offset, sectors) in extents {
            space.free.give(offset, sectors);
            released += sectors * SECTOR;
        }
        self.shrink(&mut space)?;
        punched.map_err(BlockStoreError::io("punch hole"))?;
        Ok(released)
    }

    /// Cuts the file where only free space follows.
    fn shrink(&self, space: &mut Space) -> Result<(), BlockStoreError> {
        let step = self.options.grow_bytes / SECTOR;
        let tail = space.free.tail_start(space.file_sectors);
        let end = tail.next_multiple_of(step);
        if end < space.file_sectors {
            self.file
                .set_len(end * SECTOR)
                .map_err(BlockStoreError::io("shrink"))?;
            space.free.cut(end);
            space.file_sectors = end;
        }
        Ok(())
    }

    /// Bytes freed that wait for a checkpoint to be used again.
    pub fn pending_bytes(&self) -> u64 {
        let space = self.space.lock();
        let pending = space.pending.iter();
        pending.map(|p| u64::from(p.entry.sectors) * SECTOR).sum()
    }

    /// Bytes of the file that are taken: by blocks, and by what was freed and waits
    /// for a checkpoint.
    pub fn taken_bytes(&self) -> u64 {
        let space = self.space.lock();
        (space.file_sectors - space.free.sectors()) * SECTOR
    }

    /// Keeps all blocks that can be found from now on from being released, until
    /// the pin is dropped. Pin first, then look up the address.
    pub fn pin(&self) -> BlockPin {
        let mut pins = self.pins.lock();
        let epoch = pins.epoch;
        *pins.readers.entry(epoch).or_insert(0) += 1;
        BlockPin {
            pins: Arc::clone(&self.pins),
            epoch,
        }
    }

    /// Sums over all blocks.
    pub fn statistics(&self) -> BlockStoreStatistics {
        let space = self.space.lock();
        let mut sums = BlockStoreStatistics {
            free_bytes: space.free.sectors() * SECTOR,
            free_extents: space.free.count() as u64,
            file_bytes: space.file_sectors * SECTOR,
            ..BlockStoreStatistics::default()
        };
        for pending in &space.pending {
            sums.pending_bytes += u64::from(pending.entry.sectors) * SECTOR;
        }
        for (id, entry) in self.table.read().iter() {
            let info = entry.info(*id);
            sums.blocks += 1;
            sums.device_bytes += info.device_bytes;
            sums.records += u64::from(info.records);
            sums.live_records += u64::from(info.live_records);
        }
        sums
    }
}
