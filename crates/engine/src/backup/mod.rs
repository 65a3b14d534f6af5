//! Backups of a database that goes on working, and what comes back of them.
//!
//! A backup is a directory with generations. Each is a checkpoint's files, the
//! log from there to the moment of the backup, and the blocks that the
//! checkpoint names. Blocks and images never change and their names are never
//! used again, so that a generation holds only what no earlier one has. All that
//! is copied is verified on the way. While one is made, checkpoints remove no
//! files and no log until images and log are copied, and no block's space is
//! used again until the end. Nobody waits for it.
//!
//! Here a generation is made; `place` is where it may go, `generation` what it
//! looks like, `restore` how a directory comes of it. A crash at any point leaves the generations before.

mod aside;
mod generation;
mod place;
mod restore;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hashbrown::{HashMap, HashSet};
use thermocline_device::{AlignedBuffer, Clock, Device, Mutation, OpenMode, SECTOR_BYTES};
use thermocline_storage::block::verify_records;
use thermocline_storage::block_store::{BlockInfo, HOME, blocks_of_table, file_named};
use thermocline_storage::log::{CopyUntil, LogStream, archive_segment, copy_log, name_of_segment};

use crate::format::image::ImageReader;
use crate::format::manifest::{ImageFile, Manifest};
use crate::ground::error::{Error, Result, log_broken, store_failed};
use crate::parts::Parts;
use crate::parts::checkpoint_state::Purpose;
use crate::restart::images::read_block_table;
use generation::{CopiedFile, FORMAT_VERSION, Generation, PackedBlock};
pub use generation::{GenerationReport, generations};
use place::Survey;
pub use restore::{RestoreOptions, RestoreReport, restore};

/// An archive that failed is tried again after this time.
const ARCHIVE_REST: Duration = Duration::from_secs(5);
/// Bytes copied at a time.
const PIECE_BYTES: usize = 1 << 20;

/// How a backup is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct BackupOptions {
    /// At most so many bytes a second are read; None: as fast as it goes.
    pub bytes_per_second: Option<u64>,
}

/// What a backup made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupReport {
    /// The number of the generation.
    pub generation: u64,
    /// The state is that at this LSN.
    pub lsn: u64,
    /// The moment, in microseconds since 1970.
    pub time_us: i64,
    /// Blocks of the generation.
    pub blocks: u64,
    /// Of these, those that no earlier generation had.
    pub blocks_copied: u64,
    /// Bytes written to the target.
    pub bytes_copied: u64,
}

/// Keeps files until it is dropped.
struct Hold<'a>(&'a AtomicU64);

impl<'a> Hold<'a> {
    fn new(holding: &'a AtomicU64) -> Self {
        holding.fetch_add(1, Ordering::SeqCst);
        Hold(holding)
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Counts what is copied, says how far it is, and keeps to a rate.
struct Meter<'a> {
    clock: &'a dyn Clock,
    begun: Duration,
    rate: Option<u64>,
    done: u64,
    total: u64,
    observe: &'a mut dyn FnMut(u64, u64),
}

impl Meter<'_> {
    fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        (self.observe)(self.done, self.total.max(self.done));
        if let Some(rate) = self.rate.filter(|rate| *rate > 0) {
            let due = Duration::from_secs_f64(self.done as f64 / rate as f64);
            let spent = self.clock.now().saturating_sub(self.begun);
            if let Some(early) = due.checked_sub(spent).filter(|e| !e.is_zero()) {
                self.clock.sleep(early);
            }
        }
    }
}

impl Parts {
    /// Makes a generation of a backup in `target`, with the state of now. What
    /// earlier generations there hold is not copied again. `observe` is told
    /// bytes done and bytes in all.
    ///
    /// # Errors
    /// 55006 when a backup is under way. 55000 when `target` is neither empty nor
    /// holds backups of this database, 58P02 when a stranger's file is in the way; damage, named; the device's errors. Then there is no
    /// new generation, and those before are as they were.
    pub fn backup(
        &self,
        target: &Arc<dyn Device>,
        options: &BackupOptions,
        observe: &mut dyn FnMut(u64, u64),
    ) -> Result<BackupReport> {
        self.check_open()?;
        self.wait_for_partitions()?;
        let Some(_running) = self.backups().running.try_lock() else {
            return Err(Error::catalog("55006", "a backup is already under way"));
        };
        let survey = Survey::of(&**target, self.database_id())?;
        let made = self.make_generation(target, options, observe, &survey);
        if let Err(error) = self.remove_superseded() {
            self.report(&format!("after a backup: {error}"));
        }
        made
    }

    fn make_generation(
        &self,
        target: &Arc<dyn Device>,
        options: &BackupOptions,
        observe: &mut dyn FnMut(u64, u64),
        survey: &Survey,
    ) -> Result<BackupReport> {
        let earlier = &survey.generations;
        let number = earlier.last().map_or(1, |last| last.generation + 1);

        // In this order: what the next checkpoint names stays from here on.
        let pin = (!Mutation::BackupPinsNothing.is_made()).then(|| self.blocks().pin());
        let holds = !Mutation::BackupHoldsNothing.is_made();
        let hold = holds.then(|| Hold::new(&self.backups().holding));
        self.run_checkpoint(Purpose::Asked)?;
        let manifest = Manifest::read(&**self.device())?
            .ok_or_else(|| Error::Corrupt("manifest: it is missing".into()))?;
        survey.begin(&**target, self.database_id(), number, manifest.checkpoint)?;
        let table = read_block_table(&**self.device(), &manifest)?.unwrap_or_default();
        let mut blocks = blocks_of_table(&table).map_err(store_failed)?;
        blocks.sort_unstable_by_key(|block| (block.tablespace, block.offset));

        let known: HashSet<u32> = match earlier.last() {
            Some(last) => last.blocks(&**target)?.iter().map(|b| b.id).collect(),
            None => HashSet::new(),
        };
        let new = blocks.iter().filter(|b| !known.contains(&b.id));
        let mut meter = Meter {
            clock: &**self.clock(),
            begun: self.clock().now(),
            rate: options.bytes_per_second,
            done: 0,
            total: new.map(|b| b.device_bytes).sum(),
            observe,
        };
        let log = self.copy_tail(&manifest, target)?;
        meter.advance(log.bytes);
        let files = self.copy_images(&manifest, earlier, target, &mut meter)?;
        drop(hold);
        let packed = match earlier.last() {
            Some(last) => last.blocks(&**target)?,
            None => Vec::new(),
        };
        let (packed, copied) = self.copy_blocks(number, &blocks, packed, target, &mut meter)?;
        drop(pin);

        let (index, index_crc) = generation::write_index(&**target, number, &packed)?;
        let home = self.blocks().statistics_of(HOME);
        let generation = Generation {
            format: FORMAT_VERSION,
            generation: number,
            database_id: format!("{:032x}", self.database_id()),
            lsn: log.end,
            time_us: log.time_us.unwrap_or_else(|| self.clock().unix_time_us()),
            log: name_of_segment(manifest.log_start),
            files,
            index,
            index_crc,
            file_bytes: home.file_bytes,
            id_ceiling: self.blocks().id_ceiling(),
            manifest,
        };
        generation.write(&**target)?;
        place::end(&**target)?;
        Ok(BackupReport {
            generation: number,
            lsn: generation.lsn,
            time_us: generation.time_us,
            blocks: blocks.len() as u64,
            blocks_copied: copied,
            bytes_copied: meter.done,
        })
    }

    /// The log from the checkpoint to now.
    fn copy_tail(
        &self,
        manifest: &Manifest,
        target: &Arc<dyn Device>,
    ) -> Result<thermocline_storage::log::Copied> {
        let source = [self.device().clone()];
        let stream = LogStream::open(&source, self.database_id(), manifest.log_start);
        let until = CopyUntil {
            lsn: Some(match Mutation::BackupWithoutTail.is_made() {
                true => manifest.log_end,
                false => self.log().durable_lsn(),
            }),
            time_us: None,
        };
        let end_before = self.log().end_before(manifest.log_start);
        let mut stream = stream.map_err(log_broken)?.behind(end_before);
        copy_log(&mut stream, &**target, self.database_id(), until).map_err(log_broken)
    }

    /// The checkpoint's files that no earlier generation has.
    fn copy_images(
        &self,
        manifest: &Manifest,
        earlier: &[Generation],
        target: &Arc<dyn Device>,
        meter: &mut Meter<'_>,
    ) -> Result<Vec<CopiedFile>> {
        let mut files = Vec::new();
        let images = manifest.partitions.iter().flat_map(|p| &p.files);
        let images: HashMap<&str, &ImageFile> = images.map(|i| (i.file.as_str(), i)).collect();
        for name in manifest.files() {
            let mut before = earlier.iter().flat_map(|g| &g.files);
            let file = match before.find(|f| f.file == name) {
                Some(copied) => copied.clone(),
                None => {
                    if let Some(image) = images.get(name) {
                        let mut frames = ImageReader::open(&**self.device(), image)?;
                        while frames.next()?.is_some() {}
                    }
                    copy_file(&**self.device(), &**target, name, None, meter)?
                }
            };
            files.push(file);
        }
        Ok(files)
    }

    /// Appends new blocks to a pack of this generation. Where all blocks are
    /// now, and how many were copied.
    fn copy_blocks(
        &self,
        number: u64,
        blocks: &[BlockInfo],
        earlier: Vec<PackedBlock>,
        target: &Arc<dyn Device>,
        meter: &mut Meter<'_>,
    ) -> Result<(Vec<PackedBlock>, u64)> {
        let earlier: HashMap<u32, PackedBlock> = earlier.into_iter().map(|b| (b.id, b)).collect();
        let pack = generation::pack_name(number);
        let failed = |e| Error::io(e, format!("writing {pack} of the backup"));
        let mut file = None;
        let mut end = 0u64;
        let mut packed = Vec::with_capacity(blocks.len());
        let mut copied = 0;
        for block in blocks {
            let offset = (block.offset / SECTOR_BYTES as u64) as u32;
            if let Some(known) = earlier.get(&block.id) {
                packed.push(PackedBlock { offset, ..*known });
                continue;
            }
            let mut bytes = AlignedBuffer::new_zeroed(block.device_bytes as usize);
            let source = self.blocks().volumes().file(block.tablespace);
            source
                .and_then(|source| source.read_at(&mut bytes[..], block.offset))
                .map_err(|e| Error::io(e, place_of(block)))?;
            self.verify_block(block, &bytes)?;
            let file = match &mut file {
                Some(file) => file,
                None => file.insert(target.open(&pack, OpenMode::CreateNew).map_err(failed)?),
            };
            file.write_at(&bytes[..], end).map_err(failed)?;
            packed.push(PackedBlock {
                id: block.id,
                pack: number as u32,
                pack_offset: (end / SECTOR_BYTES as u64) as u32,
                sectors: (block.device_bytes / SECTOR_BYTES as u64) as u32,
                offset,
            });
            end += block.device_bytes;
            copied += 1;
            meter.advance(block.device_bytes);
        }
        if let Some(file) = file {
            file.sync_data().map_err(failed)?;
        }
        Ok((packed, copied))
    }

    fn verify_block(&self, block: &BlockInfo, bytes: &[u8]) -> Result<()> {
        verify_records(bytes, block.id).map_err(|error| {
            Error::Corrupt(format!(
                "{}: {error} ({})",
                place_of(block),
                self.storages().name(block.table)
            ))
        })
    }

    /// Copies the next closed segment of the log into the archive, if there is
    /// an archive. Whether there may be more to do.
    ///
    /// # Errors
    /// The archive can't be written; the log is kept until it can.
    pub fn archive_log(&self) -> Result<bool> {
        let Some(archive) = &self.settings().archive else {
            return Ok(false);
        };
        let done = self.backups().archived.load(Ordering::Relaxed);
        let closed = self.log().closed_segments();
        let Some(segment) = closed.into_iter().find(|s| s.end > done) else {
            return Ok(false);
        };
        archive_segment(&**self.device(), &**archive, self.database_id(), segment).map_err(
            |error| match log_broken(error) {
                Error::Io(error, what) => Error::Io(error, format!("archiving the log: {what}")),
                other => other,
            },
        )?;
        self.backups()
            .archived
            .store(segment.end, Ordering::Relaxed);
        Ok(true)
    }

    /// One step of [`Parts::archive_log`]. A failure is reported and holds up
    /// nothing but the log's removal.
    pub(crate) fn archive_in_turn(&self) {
        let mut again = self.backups().archive_again.lock();
        let now = self.clock().now();
        if now < *again {
            return;
        }
        if let Err(error) = self.archive_log() {
            self.report(&error.to_string());
            *again = now + ARCHIVE_REST;
        }
    }

    /// The log may go up to here, as far as the archive is concerned.
    pub(crate) fn archived_up_to(&self, wanted: u64) -> u64 {
        match self.settings().archive {
            None => wanted,
            Some(_) => wanted.min(self.backups().archived.load(Ordering::Relaxed)),
        }
    }
}

/// Where a block lies, for an error.
fn place_of(block: &BlockInfo) -> String {
    format!("{} at byte {}", file_named(block.tablespace), block.offset)
}

/// Copies a file; `expected` is what it must be.
fn copy_file(
    from: &dyn Device,
    to: &dyn Device,
    name: &str,
    expected: Option<&CopiedFile>,
    meter: &mut Meter<'_>,
) -> Result<CopiedFile> {
    let failed = |e| Error::io(e, format!("copying {name}"));
    let source = from.open(name, OpenMode::Existing).map_err(failed)?;
    let target = to.open(name, OpenMode::CreateNew).map_err(failed)?;
    let bytes = source.len().map_err(failed)?;
    target.set_len(bytes).map_err(failed)?;
    let mut buffer = AlignedBuffer::new_zeroed(PIECE_BYTES);
    let mut crc = 0;
    let mut offset = 0;
    while offset < bytes {
        let piece = (bytes - offset).min(PIECE_BYTES as u64) as usize;
        source
            .read_at(&mut buffer[..piece], offset)
            .map_err(failed)?;
        crc = crc32c::crc32c_append(crc, &buffer[..piece]);
        target.write_at(&buffer[..piece], offset).map_err(failed)?;
        offset += piece as u64;
        meter.advance(piece as u64);
    }
    target.sync_data().map_err(failed)?;
    let copied = CopiedFile {
        file: name.to_owned(),
        bytes,
        crc,
    };
    if expected.is_some_and(|expected| *expected != copied) {
        return Err(Error::Corrupt(format!("{name}: its checksum is wrong")));
    }
    Ok(copied)
}
