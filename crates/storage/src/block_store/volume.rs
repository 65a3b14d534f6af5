//! The files of blocks: one in the database's own directory, and one for each tablespace.
//!
//! Guarantees: extents that are given out do not overlap; a file that was written is synced by the
//! next [`Volumes::sync`]. A tablespace that is not there is an error of whoever needs it, with what
//! there is to say of it, and of nobody else.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use thermocline_device::{Device, DeviceFile, OpenMode};

use super::extents::FreeExtents;
use super::snapshot::Restored;
use super::superblock::{SUPERBLOCK_SECTORS, Superblock};
use super::{BlockStoreError, BlockStoreOptions, SECTOR};

/// The number of the database's own directory among tablespaces.
pub const HOME: u16 = 0;

/// What errors call the file of a tablespace's blocks: as it is called in the database's own directory.
#[must_use]
pub fn file_named(number: u16) -> String {
    match number {
        HOME => "blocks".into(),
        number => format!("blocks-{number}"),
    }
}

/// Where the blocks of a tablespace are to be found.
pub struct TablespaceFile {
    /// Its number, which is not [`HOME`].
    pub number: u16,
    /// Where its file is; or why nobody can say.
    pub device: Result<Arc<dyn Device>, String>,
    /// The file's name there.
    pub name: String,
    /// Bytes that the file may have at most.
    pub capacity: Option<u64>,
}

/// What a file of blocks holds, in bytes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VolumeStatistics {
    /// Length of the file.
    pub file_bytes: u64,
    /// Free inside the file.
    pub free_bytes: u64,
    /// Number of free extents.
    pub free_extents: u64,
    /// Why it is not there.
    pub missing: Option<String>,
}

/// What is free in a file.
#[derive(Default)]
struct Extents {
    free: FreeExtents,
    file_sectors: u64,
}

/// A file of blocks.
pub(super) struct Volume {
    file: Arc<dyn DeviceFile>,
    extents: Mutex<Extents>,
    /// Written since the last sync.
    unsynced: AtomicBool,
    /// It takes new blocks.
    accepts: AtomicBool,
    grow_sectors: u64,
    capacity_sectors: AtomicU64,
}

impl Volume {
    /// A file with this length and these free extents.
    pub fn new(
        file: Arc<dyn DeviceFile>,
        grow_bytes: u64,
        capacity: Option<u64>,
        (free, file_sectors): (FreeExtents, u64),
    ) -> Self {
        Volume {
            file,
            extents: Mutex::new(Extents { free, file_sectors }),
            unsynced: AtomicBool::new(false),
            accepts: AtomicBool::new(true),
            grow_sectors: grow_bytes / SECTOR,
            capacity_sectors: AtomicU64::new(sectors_of(capacity)),
        }
    }

    /// Sets how many bytes the file may have, from its next growth on.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        let sectors = sectors_of(capacity);
        self.capacity_sectors.store(sectors, Ordering::Relaxed);
    }

    pub fn file(&self) -> &Arc<dyn DeviceFile> {
        &self.file
    }

    /// Takes an extent, in sectors; where it begins.
    pub fn take(&self, sectors: u64) -> Result<u32, BlockStoreError> {
        let mut extents = self.extents.lock();
        if !self.accepts.load(Ordering::Relaxed) {
            return Err(BlockStoreError::StorageFull);
        }
        let offset = match extents.free.take(sectors) {
            Some(offset) => offset,
            None => {
                self.grow(&mut extents, sectors)?;
                extents
                    .free
                    .take(sectors)
                    .ok_or(BlockStoreError::StorageFull)?
            }
        };
        u32::try_from(offset).map_err(|_| {
            extents.free.give(offset, sectors);
            BlockStoreError::StorageFull
        })
    }

    /// Whether new blocks are taken from now on. Who takes an extent has it by then, or gets none.
    pub fn set_accepting(&self, accepts: bool) {
        let _extents = self.extents.lock();
        self.accepts.store(accepts, Ordering::Relaxed);
    }

    /// Makes a free extent of `sectors` at the file's end.
    fn grow(&self, extents: &mut Extents, sectors: u64) -> Result<(), BlockStoreError> {
        let tail = extents.free.tail_start(extents.file_sectors);
        let needed = tail + sectors;
        let capacity = self.capacity_sectors.load(Ordering::Relaxed);
        if needed > capacity {
            return Err(BlockStoreError::StorageFull);
        }
        let stepped = needed.next_multiple_of(self.grow_sectors).min(capacity);
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
        let from = extents.file_sectors;
        extents.free.give(from, grown - from);
        extents.file_sectors = grown;
        Ok(())
    }

    /// Gives extents back, offset and length in sectors, and cuts the file where only free space
    /// follows. How many sectors they have.
    pub fn give_back(
        &self,
        mut gone: Vec<(u64, u64)>,
        punch_holes: bool,
    ) -> Result<u64, BlockStoreError> {
        gone.sort_unstable();
        gone.dedup_by(|next, last| {
            let adjacent = last.0 + last.1 == next.0;
            if adjacent {
                last.1 += next.1;
            }
            adjacent
        });
        let mut punched = Ok(());
        if punch_holes {
            // Nobody else knows of these extents now: allocation goes on meanwhile.
            punched = gone
                .iter()
                .try_for_each(|(at, sectors)| self.file.punch_hole(at * SECTOR, sectors * SECTOR));
        }
        let mut extents = self.extents.lock();
        let mut released = 0;
        for (offset, sectors) in gone {
            extents.free.give(offset, sectors);
            released += sectors;
        }
        self.shrink(&mut extents)?;
        punched.map_err(BlockStoreError::io("punch hole"))?;
        Ok(released)
    }

    fn shrink(&self, extents: &mut Extents) -> Result<(), BlockStoreError> {
        let tail = extents.free.tail_start(extents.file_sectors);
        let end = tail.next_multiple_of(self.grow_sectors);
        if end < extents.file_sectors {
            self.file
                .set_len(end * SECTOR)
                .map_err(BlockStoreError::io("shrink"))?;
            extents.free.cut(end);
            extents.file_sectors = end;
        }
        Ok(())
    }

    pub fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let written = self.file.write_at(bytes, offset);
        self.unsynced.store(true, Ordering::Release);
        written
    }

    /// Bytes that are taken.
    pub fn taken_bytes(&self) -> u64 {
        let extents = self.extents.lock();
        (extents.file_sectors - extents.free.sectors()) * SECTOR
    }

    fn statistics(&self) -> VolumeStatistics {
        let extents = self.extents.lock();
        VolumeStatistics {
            file_bytes: extents.file_sectors * SECTOR,
            free_bytes: extents.free.sectors() * SECTOR,
            free_extents: extents.free.count() as u64,
            missing: None,
        }
    }
}

fn sectors_of(capacity: Option<u64>) -> u64 {
    capacity.map_or(u64::MAX, |bytes| bytes / SECTOR)
}

/// A file, or why it is not there.
type Known = Result<Arc<Volume>, String>;

/// All files of blocks, by the numbers of their tablespaces; shared with those who read them.
pub struct Volumes {
    home: Arc<Volume>,
    others: RwLock<Vec<(u16, Known)>>,
}

impl Volumes {
    pub(super) fn new(home: Volume) -> Self {
        Volumes {
            home: Arc::new(home),
            others: RwLock::default(),
        }
    }

    /// The file of a tablespace's blocks, to be read at the offsets that the Block Table says.
    ///
    /// # Errors
    /// `NotFound`, with what there is to say, where the tablespace is not there.
    pub fn file(&self, number: u16) -> io::Result<Arc<dyn DeviceFile>> {
        if number == HOME {
            return Ok(self.home.file.clone());
        }
        match self.volume(number) {
            Ok(volume) => Ok(volume.file.clone()),
            Err(error) => Err(io::Error::new(io::ErrorKind::NotFound, error.to_string())),
        }
    }

    pub(super) fn home(&self) -> &Volume {
        &self.home
    }

    pub(super) fn volume(&self, number: u16) -> Result<Arc<Volume>, BlockStoreError> {
        if number == HOME {
            return Ok(self.home.clone());
        }
        let others = self.others.read();
        let why = match others.iter().find(|(known, _)| *known == number) {
            Some((_, Ok(volume))) => return Ok(volume.clone()),
            Some((_, Err(why))) => why.clone(),
            None => "there is none of this number".into(),
        };
        Err(BlockStoreError::Missing { number, why })
    }

    pub(super) fn put(&self, number: u16, known: Known) {
        let mut others = self.others.write();
        others.retain(|(other, _)| *other != number);
        others.push((number, known));
        others.sort_unstable_by_key(|(number, _)| *number);
    }

    pub(super) fn remove(&self, number: u16) {
        self.others.write().retain(|(other, _)| *other != number);
    }

    /// The numbers of all tablespaces but the home.
    pub fn numbers(&self) -> Vec<u16> {
        let others = self.others.read();
        others.iter().map(|(number, _)| *number).collect()
    }

    /// Those that are there, the home first.
    pub(super) fn all(&self) -> Vec<Arc<Volume>> {
        let others = self.others.read();
        let others = others.iter().filter_map(|(_, known)| known.clone().ok());
        std::iter::once(self.home.clone()).chain(others).collect()
    }

    /// Makes durable what was written to any of them.
    pub(super) fn sync(&self) -> io::Result<()> {
        let mut outcome = Ok(());
        for (place, volume) in self.all().iter().enumerate() {
            let is_written = volume.unsynced.swap(false, Ordering::AcqRel);
            if is_written || place == 0 {
                // The others are synced all the same: what is there is the best that can be had.
                let synced = volume.file.sync_data();
                outcome = outcome.and(synced);
            }
        }
        outcome
    }

    pub(super) fn statistics(&self, number: u16) -> VolumeStatistics {
        match self.volume(number) {
            Ok(volume) => volume.statistics(),
            Err(error) => VolumeStatistics {
                missing: Some(match error {
                    BlockStoreError::Missing { why, .. } => why,
                    other => other.to_string(),
                }),
                ..VolumeStatistics::default()
            },
        }
    }
}

/// Opens a file of blocks; one that need not be there is made, of so many bytes and with this superblock.
pub(super) fn open_file(
    device: &dyn Device,
    name: &str,
    (new, bytes): (Superblock, u64),
    must_be_there: bool,
) -> Result<(Arc<dyn DeviceFile>, Superblock), BlockStoreError> {
    let file = device
        .open(name, OpenMode::Create)
        .map_err(BlockStoreError::io("open"))?;
    if let Some(superblock) = Superblock::read(&*file, new.database)? {
        return Ok((file, superblock));
    }
    if must_be_there {
        return Err(BlockStoreError::Corrupt("there is no superblock"));
    }
    file.set_len(bytes)
        .map_err(BlockStoreError::io("allocate"))?;
    new.write(&*file)?;
    file.sync_data().map_err(BlockStoreError::io("sync"))?;
    device
        .sync_directory()
        .map_err(BlockStoreError::io("sync directory"))?;
    Ok((file, new))
}

/// The file of a tablespace, or why it is not there.
pub(super) fn open_volume(
    tablespace: &TablespaceFile,
    options: &BlockStoreOptions,
    restored: &Restored,
) -> Result<Volume, String> {
    let device = tablespace.device.as_ref().map_err(Clone::clone)?;
    let open = || {
        let new = Superblock::new(options.database);
        let has_blocks = restored.has_blocks_in(tablespace.number);
        let bytes = SUPERBLOCK_SECTORS * SECTOR;
        let (file, _) = open_file(&**device, &tablespace.name, (new, bytes), has_blocks)?;
        let free = restored.free_in(tablespace.number, SUPERBLOCK_SECTORS, &*file)?;
        let (grow, capacity) = (options.grow_bytes, tablespace.capacity);
        Ok(Volume::new(file, grow, capacity, free))
    };
    open().map_err(|error: BlockStoreError| error.to_string())
}
