//! The blocks, and the Block Table that says where they are: in which tablespace's file, and where there.
//!
//! Guarantees: an id is never used twice, not even after a crash. Space is not
//! used again before the checkpoint that no longer names it is durable and no
//! reader that pinned it is left. A full device is an error value.
//! Assumes: `allocate`, `write`, `sync` and `release_up_to` may wait for the
//! device, so that no partition is locked meanwhile; a reader pins before it looks
//! up an address. Survives: a crash at any point (the table comes from the last
//! checkpoint). A sync that fails is not tried again: the store refuses from then on.

mod error;
mod extents;
mod snapshot;
mod superblock;
mod volume;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::{Mutex, RwLock};
use thermocline_device::{
    AlignedBuffer, Device, DeviceFile, Mutation, OpenMode, SECTOR_BYTES, StopPoint, stop_amid,
    stop_at,
};

pub use error::BlockStoreError;
use volume::Volume;
pub use volume::{HOME, TablespaceFile, VolumeStatistics, Volumes, file_named};

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
    /// The number of the tablespace that it is to lie in.
    pub tablespace: u16,
    /// Its records are compressed ([`crate::block::BlockKind::Compressed`]).
    pub compressed: bool,
}

/// What the Block Table says of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockInfo {
    /// The block's id.
    pub id: u32,
    /// The number of the tablespace that it lies in.
    pub tablespace: u16,
    /// Where it is in the file there, in bytes.
    pub offset: u64,
    /// Bytes on the device, whole sectors.
    pub device_bytes: u64,
    /// Its records are compressed ([`crate::block::BlockKind::Compressed`]).
    pub compressed: bool,
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
    tablespace: u16,
    compressed: bool,
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
            tablespace: self.tablespace,
            offset,
            device_bytes: u64::from(self.sectors) * SECTOR,
            compressed: self.compressed,
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

struct Ids {
    superblock: Superblock,
    next_id: u32,
    pending: Vec<Pending>,
}

#[derive(Default)]
struct Pins {
    epoch: u64,
    readers: BTreeMap<u64, u64>,
}

/// The blocks of a database. Locks are taken in the order ids, table, pins; that of a file's
/// extents alone.
pub struct BlockStore {
    volumes: Arc<Volumes>,
    options: BlockStoreOptions,
    ids: Mutex<Ids>,
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
    let restored = snapshot::decode(table)?;
    restored.check_overlaps(SUPERBLOCK_SECTORS)?;
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
        Self::open_with(device, options, table, Vec::new())
    }

    /// As [`Self::open`], with these tablespaces. What cannot be opened of them is an error of
    /// whoever needs it later.
    pub fn open_with(
        device: &dyn Device,
        options: BlockStoreOptions,
        table: Option<&[u8]>,
        tablespaces: Vec<TablespaceFile>,
    ) -> Result<Self, BlockStoreError> {
        assert!(
            options.grow_bytes.is_multiple_of(SECTOR) && options.grow_bytes > 0,
            "the file grows by whole sectors"
        );
        assert!(
            options.first_sector >= SUPERBLOCK_SECTORS && options.first_id > 0,
            "blocks come after the superblock, and their ids begin at 1"
        );
        let new = Superblock {
            id_ceiling: options.first_id,
            ..Superblock::new(options.database)
        };
        let bytes = options.grow_bytes.max(options.first_sector * SECTOR);
        let (file, superblock) =
            volume::open_file(device, &options.name, (new, bytes), table.is_some())?;
        let restored = match table {
            Some(table) => snapshot::decode(table)?,
            None => snapshot::Restored::default(),
        };
        restored.check_overlaps(SUPERBLOCK_SECTORS)?;
        let free = restored.free_in(HOME, options.first_sector, &*file)?;
        let volumes = Volumes::new(Volume::new(file, options.grow_bytes, None, free));
        let known =
            |number| number == HOME || tablespaces.iter().any(|known| known.number == number);
        if !restored.numbers().all(known) {
            return Err(BlockStoreError::Corrupt(
                "block table names a tablespace that the file tablespaces has not",
            ));
        }
        for tablespace in tablespaces {
            assert!(tablespace.number != HOME, "the home is opened first");
            let known = volume::open_volume(&tablespace, &options, &restored);
            volumes.put(tablespace.number, known.map(Arc::new));
        }
        Ok(Self {
            volumes: Arc::new(volumes),
            options,
            ids: Mutex::new(Ids {
                superblock,
                next_id: restored.next_id.max(superblock.id_ceiling),
                pending: Vec::new(),
            }),
            table: RwLock::new(restored.table),
            pins: Arc::default(),
            failed: AtomicBool::new(false),
        })
    }

    /// Adds a tablespace in which no block lies. Its file may be there, with nothing that is
    /// needed; it is made if it is not.
    ///
    /// # Errors
    /// The device's, or it is not there.
    pub fn add_tablespace(&self, tablespace: &TablespaceFile) -> Result<(), BlockStoreError> {
        let number = tablespace.number;
        assert!(
            number != HOME && !self.has_blocks_in(number),
            "a tablespace is empty at first"
        );
        match volume::open_volume(tablespace, &self.options, &snapshot::Restored::default()) {
            Ok(volume) => self.volumes.put(number, Ok(Arc::new(volume))),
            Err(why) => {
                self.volumes.put(number, Err(why.clone()));
                return Err(BlockStoreError::Missing { number, why });
            }
        }
        Ok(())
    }

    /// Gives up a tablespace if nothing lies in it; whether that was so. Its file stays. From then on nobody
    /// gets room there, so that no Block Table names it again.
    pub fn retire_tablespace(&self, number: u16) -> bool {
        if let Ok(volume) = self.volumes.volume(number) {
            volume.set_accepting(false);
        }
        let is_vacant = self.is_vacant(number);
        match (is_vacant, self.volumes.volume(number)) {
            (true, _) => self.volumes.remove(number),
            (false, Ok(volume)) => volume.set_accepting(true),
            (false, Err(_)) => {}
        }
        is_vacant
    }

    /// Whether nothing lies there: no block, none whose space is not free yet, none that is about to be
    /// in the table. One that is not there is, if no block is known to lie in it.
    pub fn is_vacant(&self, number: u16) -> bool {
        let volume = self.volumes.volume(number);
        let is_taken = volume.is_ok_and(|v| v.taken_bytes() > SUPERBLOCK_SECTORS * SECTOR);
        !is_taken && !self.has_blocks_in(number)
    }

    /// Sets how many bytes the file of a tablespace may have, from its next growth on.
    pub fn set_capacity(&self, number: u16, capacity: Option<u64>) {
        if let Ok(volume) = self.volumes.volume(number) {
            volume.set_capacity(capacity);
        }
    }

    fn has_blocks_in(&self, number: u16) -> bool {
        let ids = self.ids.lock();
        let mut pending = ids.pending.iter();
        pending.any(|p| p.entry.tablespace == number)
            || (self.table.read().values()).any(|entry| entry.tablespace == number)
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
        self.ids.lock().superblock.id_ceiling
    }

    /// Finds space for a block; its id and its offset in bytes.
    pub fn allocate(&self, block: NewBlock) -> Result<(u32, u64), BlockStoreError> {
        assert!(
            block.device_bytes > 0 && block.device_bytes.is_multiple_of(SECTOR_BYTES),
            "a block is whole sectors"
        );
        let volume = self.volumes.volume(block.tablespace)?;
        let sectors = (block.device_bytes / SECTOR_BYTES) as u64;
        // The file may have to grow, which others need not wait for.
        let offset = volume.take(sectors)?;
        let id = self.put_entry(block, offset, sectors);
        if id.is_err() {
            volume.give_back(vec![(u64::from(offset), sectors)], false)?;
        }
        Ok((id?, u64::from(offset) * SECTOR))
    }

    /// Puts a block at this offset, in sectors, into the table; its id.
    fn put_entry(
        &self,
        block: NewBlock,
        offset: u32,
        sectors: u64,
    ) -> Result<u32, BlockStoreError> {
        let mut ids = self.ids.lock();
        if ids.next_id >= ids.superblock.id_ceiling {
            let next = ids
                .superblock
                .reserve_ids()
                .ok_or(BlockStoreError::OutOfIds)?;
            let home = self.volumes.home().file();
            next.write(&**home)?;
            self.synced(home.sync_data())?;
            ids.superblock = next;
        }
        let freed = ids.pending.last().map(|pending| pending.id);
        let id = match freed.filter(|_| Mutation::BlockIdReused.is_made()) {
            Some(freed) => freed,
            None => ids.next_id,
        };
        ids.next_id = ids.next_id.max(id + 1);
        let entry = Entry {
            offset,
            sectors: sectors as u32,
            table: block.table,
            partition: block.partition,
            tablespace: block.tablespace,
            compressed: block.compressed,
            records: block.records,
            live_records: AtomicU32::new(block.records),
        };
        let before = self.table.write().insert(id, entry);
        assert!(before.is_none(), "block ids are never used twice");
        Ok(id)
    }

    /// Writes an allocated block, in one write.
    pub fn write(&self, id: u32, bytes: &[u8]) -> Result<(), BlockStoreError> {
        let info = self.info(id).ok_or(BlockStoreError::UnknownBlock(id))?;
        assert!(
            bytes.len() as u64 == info.device_bytes,
            "a block is as long as it was said to be"
        );
        let volume = self.volumes.volume(info.tablespace)?;
        stop_amid(StopPoint::MidBlock, || {
            let half = (bytes.len() / 2).next_multiple_of(SECTOR_BYTES);
            let _ = volume.write(&bytes[..half], info.offset);
        });
        volume
            .write(bytes, info.offset)
            .map_err(BlockStoreError::io("write"))?;
        stop_at(StopPoint::BlockFooter);
        Ok(())
    }

    /// Makes all blocks written so far durable.
    pub fn sync(&self) -> Result<(), BlockStoreError> {
        self.check_failed()?;
        self.synced(self.volumes.sync())
    }

    fn synced(&self, outcome: std::io::Result<()>) -> Result<(), BlockStoreError> {
        outcome.map_err(|error| {
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
        let volume = self.volumes.volume(info.tablespace)?;
        volume
            .file()
            .read_at(&mut buffer[..bytes], info.offset)
            .map_err(BlockStoreError::io("read"))?;
        Ok(&buffer[..bytes])
    }

    /// The files, for asynchronous reads at `info(id).offset`.
    pub fn volumes(&self) -> &Arc<Volumes> {
        &self.volumes
    }

    /// Bytes of the files before their first blocks: of the home's, and of so many others.
    pub fn superblock_bytes(&self, others: usize) -> u64 {
        (self.options.first_sector + others as u64 * SUPERBLOCK_SECTORS) * SECTOR
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
        let mut ids = self.ids.lock();
        let entry = self.table.write().remove(&id);
        let entry = entry.ok_or(BlockStoreError::UnknownBlock(id))?;
        let epoch = self.pins.lock().epoch;
        ids.pending.push(Pending { epoch, id, entry });
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
        let ids = self.ids.lock();
        let table = self.table.read();
        let live = table.iter().map(|(id, entry)| (*id, entry));
        let since = ids.pending.iter().filter(|p| p.epoch > epoch);
        let freed = since.map(|p| (p.id, &p.entry));
        snapshot::encode(ids.next_id, live.chain(freed), out);
    }

    /// Gives back the space of blocks freed before the checkpoint of `epoch` began,
    /// once that checkpoint is durable. What readers have pinned is left for the
    /// next call. The bytes given back.
    pub fn release_up_to(&self, epoch: u64) -> Result<u64, BlockStoreError> {
        let mut ids = self.ids.lock();
        let oldest = self.pins.lock().readers.keys().next().copied();
        let free_to_go = |p: &mut Pending| p.epoch <= epoch && oldest.is_none_or(|o| p.epoch < o);
        let mut gone: BTreeMap<u16, Vec<(u64, u64)>> = BTreeMap::new();
        for p in ids.pending.extract_if(.., free_to_go) {
            let extent = (u64::from(p.entry.offset), u64::from(p.entry.sectors));
            gone.entry(p.entry.tablespace).or_default().push(extent);
        }
        drop(ids);
        let mut released = 0;
        let mut outcome = Ok(());
        for (number, extents) in gone {
            // Of one that is not there nothing can be given back: its file is read anew when it is.
            let Ok(volume) = self.volumes.volume(number) else {
                continue;
            };
            match volume.give_back(extents, self.options.punch_holes) {
                Ok(sectors) => released += sectors * SECTOR,
                Err(error) => outcome = Err(error),
            }
        }
        outcome.map(|()| released)
    }

    /// Bytes freed that wait for a checkpoint to be used again.
    pub fn pending_bytes(&self) -> u64 {
        let ids = self.ids.lock();
        let pending = ids.pending.iter();
        pending.map(|p| u64::from(p.entry.sectors) * SECTOR).sum()
    }

    /// Bytes of the files that are taken: by blocks, and by what was freed and waits
    /// for a checkpoint.
    pub fn taken_bytes(&self) -> u64 {
        let all = self.volumes.all();
        all.iter().map(|volume| volume.taken_bytes()).sum()
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

    /// Sums over all blocks and files.
    pub fn statistics(&self) -> BlockStoreStatistics {
        let ids = self.ids.lock();
        let mut sums = BlockStoreStatistics::default();
        for pending in &ids.pending {
            sums.pending_bytes += u64::from(pending.entry.sectors) * SECTOR;
        }
        drop(ids);
        let numbers = self.volumes.numbers();
        for number in std::iter::once(HOME).chain(numbers) {
            let file = self.volumes.statistics(number);
            sums.free_bytes += file.free_bytes;
            sums.free_extents += file.free_extents;
            sums.file_bytes += file.file_bytes;
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

    /// What the file of one tablespace holds.
    pub fn statistics_of(&self, number: u16) -> VolumeStatistics {
        self.volumes.statistics(number)
    }
}
