//! Checkpoints: an eviction that leaves the tuples in memory (004 §3.6), of what changed since the last one.
//!
//! Partition by partition, while statements go on: changed tuples are written
//! to blocks, and changed pages of the row directory and of the indexes to an
//! image file ([`crate::keep::capture`]). The last, short turn under the partition's
//! lock is its cut: the log up to it is not needed for this partition any
//! more. The manifest goes last. A partition's image is a *base*, which has all
//! pages, and *deltas*, which have those that changed. When the deltas have
//! grown to half of their base, a new base takes their place.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hashbrown::HashSet;
use thermocline_device::{Mutation, StopPoint, stop_at};

use crate::cold::evict::Evictor;
use crate::cold::pace::Pace;
use crate::format::image::ImageWriter;
use crate::format::manifest::{FORMAT_VERSION, Manifest, PartitionFiles, write_file};
use crate::ground::counters::Counters;
use crate::ground::error::{Error, Result, log_broken, log_failed, store_failed};
use crate::ground::moment::Moment;
use crate::keep::capture::{Capture, PAGE_BYTES};
use crate::parts::Parts;
use crate::parts::checkpoint_state::{Chain, Last, LogPosition, Purpose, replay_units};
use crate::parts::reserve::SpaceUse;
use crate::transaction::RunOptions;

/// Deltas that a start reads at most for each partition.
const DELTAS_MAX: usize = 16;
/// The share of the device's sequential writing that a checkpoint takes at most, if
/// the settings do not say.
const CHECKPOINT_SHARE: f64 = 0.25;
/// A checkpoint comes when this share of the blocks' file waits for it, as a
/// divisor.
const PENDING_SHARE: u64 = 16;
/// In a small file no less than this part of the log that calls for one.
const PENDING_MIN: u64 = 4;
/// Deltas are worth it up to this many bytes, however small their base.
const BASE_MIN: u64 = 64 << 10;
/// What a unit costs, until a start has measured it, and what is believed of a measurement.
const UNIT_NS: u64 = 64;
const UNIT_NS_BELIEVED: std::ops::RangeInclusive<u64> = 8..=1000;
/// A measurement of fewer units says little.
const UNITS_MEASURED_MIN: u64 = 1_000_000;
/// A checkpoint begins at this share of the time that applying the log may take, as a divisor:
/// the log grows while it is made.
const TARGET_SHARE: u32 = 2;
/// Less log than this is what a checkpoint leaves itself, or hardly more.
const CHANGED_BYTES: u64 = 4096;

/// Roughly what a manifest takes, for the room that is made for it.
const MANIFEST_BYTES: u64 = 256 << 10;

impl Parts {
    /// Makes a checkpoint now.
    pub async fn checkpoint(&self) -> Result<()> {
        self.check_open()?;
        self.all_there(&RunOptions::default()).await?;
        self.run_checkpoint(Purpose::Asked)
    }

    /// The images that the database was opened with.
    pub(crate) fn adopt_images(&self, partitions: Vec<PartitionFiles>) {
        self.checkpoint_state().running.lock().chains = partitions
            .into_iter()
            .map(|image| Chain { image, end: None })
            .collect();
    }

    /// Has the next checkpoint write a base of a partition. An index that was built anew marks
    /// the pages that it has. Earlier files may have pages of an index of the same object id
    /// that it has not: a delta would leave those in place.
    pub(crate) fn forget_image(&self, partition: usize) {
        if let Some(chain) = self
            .checkpoint_state()
            .running
            .lock()
            .chains
            .get_mut(partition)
        {
            *chain = Chain::default();
        }
    }

    /// All partitions are there: what the last checkpoint has of one that is not is all that
    /// there is of it.
    pub(crate) fn run_checkpoint(&self, purpose: Purpose) -> Result<()> {
        if !self.arrivals().are_complete() {
            return Err(Error::Internal(
                "a checkpoint before all partitions are there".into(),
            ));
        }
        let awaited = u64::from(purpose != Purpose::Upkeep);
        self.checkpoint_state()
            .awaited
            .fetch_add(awaited, Ordering::Relaxed);
        let mut last = self.checkpoint_state().running.lock();
        self.checkpoint_state()
            .awaited
            .fetch_sub(awaited, Ordering::Relaxed);
        last.chains
            .resize_with(self.all_partitions().len(), Chain::default);
        self.see_how_much_is_free();
        let result = self.write_checkpoint(purpose, &mut last);
        if result.is_err() {
            // Pages count as saved that are in no image: begin anew.
            last.chains.fill(Chain::default());
            self.stop_if_blocks_failed();
            self.remove_unfinished();
        }
        self.reserve().take();
        result
    }

    fn write_checkpoint(&self, purpose: Purpose, last: &mut Last) -> Result<()> {
        let started = self.clock().now();
        let number = self.checkpoint_state().number.load(Ordering::Relaxed) + 1;
        let begin = self.log_position();
        let epoch = self.blocks().begin_checkpoint();
        let paced = purpose == Purpose::Upkeep && self.settings().background;
        let mut pace = match paced {
            true => Pace::spread(self.checkpoint_rate(), last, started),
            false => Pace::at_full_speed(started),
        };
        last.began = Some(started);
        let mut evictor = Evictor::for_checkpoint(self.policy().block_bytes);
        self.memory().foresee(u64::from(self.policy().block_bytes));
        let mut frames = Vec::new();
        let mut image_bytes = 0;
        let refused = self.checkpoint_state().refuse_commands();
        for (partition, chain) in last.chains.iter_mut().enumerate() {
            let name = format!("checkpoint-{number:08}-{partition:04}");
            let capture = Capture {
                parts: self,
                partition,
                evictor: &mut evictor,
                pace: &mut pace,
                frames: &mut frames,
                writer: ImageWriter::new(&**self.device(), name),
            };
            image_bytes += write_partition(capture, number, purpose, chain)?;
            self.pause(Moment::PartitionWritten);
        }
        drop(frames);
        drop(evictor);
        last.bytes = pace.bytes;
        let chains = last.chains.iter();
        let images = chains.map(|chain| chain.image.clone()).collect();
        let mut manifest = self.describe_checkpoint(number, images)?;
        drop(refused);
        // What the images say must be on the device before the manifest is.
        self.log()
            .wait_durable_blocking(self.log().appended_lsn())
            .map_err(log_failed)?;
        self.kinds_need_no_log(&manifest)?;
        manifest.log_end = self.log().stream_end();
        if Mutation::ManifestFirst.is_made() {
            manifest.write(&**self.device())?;
        }
        if Mutation::LogTruncatedEarly.is_made() {
            let cut = self.log().truncate_before(manifest.log_start);
            cut.map_err(log_broken)?;
        }
        if Mutation::BlocksReleasedEarly.is_made() {
            self.blocks().release_up_to(epoch).map_err(store_failed)?;
        }
        if !Mutation::BlocksNotSynced.is_made() {
            self.blocks().sync().map_err(store_failed)?;
        }
        let mut table = Vec::new();
        self.blocks().write_to(epoch, &mut table);
        let bytes = table.len() as u64 + MANIFEST_BYTES;
        self.reserve().allows(SpaceUse::MakingRoom, bytes);
        let crc = crc32c::crc32c(&table);
        table.extend_from_slice(&crc.to_le_bytes());
        write_file(&**self.device(), &manifest.blocks, &table)?;
        self.pause(Moment::BlockTableWritten);
        stop_at(StopPoint::CheckpointTable);
        manifest.put_in_place(&**self.device())?;
        if let Err(error) = Manifest::sync_name(&**self.device()) {
            // Either may be found by a restart: the files of both have to stay as they are.
            self.log().fail("the manifest could not be made durable");
            return Err(error);
        }
        stop_at(StopPoint::CheckpointBeforeTruncate);
        self.pause(Moment::ManifestWritten);

        self.checkpoint_state()
            .number
            .store(number, Ordering::Relaxed);
        *self.checkpoint_state().last_log.lock() = begin;
        self.blocks().release_up_to(epoch).map_err(store_failed)?;
        if !self.backups().holds_files() {
            self.log()
                .truncate_before(self.archived_up_to(manifest.log_start))
                .map_err(log_broken)?;
            self.remove_old_files(&manifest)?;
        }
        self.checkpoint_state()
            .last_pending_bytes
            .store(self.blocks().pending_bytes(), Ordering::Relaxed);
        let took = self.clock().now().saturating_sub(started);
        self.checkpoint_state()
            .last_duration_ms
            .store(took.as_millis() as u64, Ordering::Relaxed);
        self.checkpoint_state()
            .last_image_bytes
            .store(image_bytes, Ordering::Relaxed);
        Counters::add(&self.count().checkpoints, 1);
        Counters::add(&self.count().image_bytes_written, image_bytes);
        Ok(())
    }

    /// The log is durable up to each partition's cut, and will lose what is before: whatever is
    /// no row in place keeps for itself what the log has named there.
    fn kinds_need_no_log(&self, manifest: &Manifest) -> Result<()> {
        for (partition, image) in self.all_partitions().iter().zip(&manifest.partitions) {
            let mut state = partition.lock_any();
            let mut kinds = state.tables.kinds_mut();
            kinds.try_for_each(|kind| kind.log_is_durable(image.cut))?;
        }
        Ok(())
    }

    /// Bytes a second that a checkpoint writes at most while statements run.
    fn checkpoint_rate(&self) -> u64 {
        self.settings()
            .checkpoint_bytes_per_second
            .unwrap_or_else(|| {
                let device = self.device().profile().sequential_write_mb_s * 1e6;
                (device * CHECKPOINT_SHARE) as u64
            })
    }

    fn describe_checkpoint(
        &self,
        number: u64,
        partitions: Vec<PartitionFiles>,
    ) -> Result<Manifest> {
        // No DDL commits between the catalog and its place in the log: that
        // needs the locks of all partitions.
        let first = self.all_partitions()[0].lock();
        let catalog = self.catalog();
        let catalog_lsn = self.log().appended_lsn();
        let (next_oid, next_storage) = self.next_numbers();
        let image = catalog.image(next_oid, next_storage);
        let drafts = self
            .tables_by_storage()
            .values()
            .filter(|t| catalog.table(t.def.oid).is_none_or(|c| !Arc::ptr_eq(c, t)))
            .filter(|_| !Mutation::DraftsForgotten.is_made())
            .map(|t| t.def.clone())
            .collect();
        // Those of open transactions, too: what is logged of them up to here is not read again.
        let mut sequences: Vec<_> = {
            let sequences = self.sequences().read();
            let all = sequences.iter().map(|(oid, sequence)| {
                let (value, is_called) = sequence.durable();
                (*oid, value, is_called)
            });
            all.collect()
        };
        sequences.sort_unstable();
        drop(first);
        let log_start = partitions
            .iter()
            .map(|p| p.cut)
            .chain([catalog_lsn])
            .min()
            .unwrap_or(catalog_lsn);
        Ok(Manifest {
            format: FORMAT_VERSION,
            database_id: format!("{:032x}", self.database_id()),
            checkpoint: number,
            partitions,
            blocks: format!("checkpoint-{number:08}-blocks"),
            catalog: image,
            catalog_lsn,
            sequences,
            drafts,
            log_start,
            log_end: 0,
            last_transaction: self.transactions().last_number(),
        })
    }

    /// Removes the files of a checkpoint that failed: on a full device others need the room.
    fn remove_unfinished(&self) {
        if self.stopped_because().is_some() {
            return;
        }
        let number = self.checkpoint_state().number.load(Ordering::Relaxed) + 1;
        let beginning = format!("checkpoint-{number:08}-");
        let files = self.device().list().unwrap_or_default();
        for file in files.iter().filter(|f| f.starts_with(&beginning)) {
            // The next attempt writes it anew, so that it does no harm.
            if let Err(error) = self.device().remove(file) {
                self.report(&format!("removing {file}: {error}"));
            }
        }
    }

    /// Removes what a backup kept of checkpoints before the last, unless one is under way, which
    /// does so at its end.
    pub(crate) fn remove_superseded(&self) -> Result<()> {
        let Some(_last) = self.checkpoint_state().running.try_lock() else {
            return Ok(());
        };
        if self.stopped_because().is_some() || self.backups().holds_files() {
            return Ok(());
        }
        let Some(manifest) = Manifest::read(&**self.device())? else {
            return Ok(());
        };
        self.log()
            .truncate_before(self.archived_up_to(manifest.log_start))
            .map_err(log_broken)?;
        self.remove_old_files(&manifest)
    }

    /// Removes checkpoint files that the manifest does not name.
    pub(crate) fn remove_old_files(&self, manifest: &Manifest) -> Result<()> {
        let files = self
            .device()
            .list()
            .map_err(|e| Error::io(e, "listing the data directory"))?;
        let named: HashSet<&str> = manifest.files().collect();
        for file in files.iter().filter(|f| f.starts_with("checkpoint-")) {
            if !named.contains(file.as_str()) {
                self.device()
                    .remove(file)
                    .map_err(|e| Error::io(e, format!("removing {file}")))?;
            }
        }
        Ok(())
    }

    /// Whether the log has grown enough for a checkpoint, or so much of the blocks'
    /// file waits for one that the file would grow without need.
    pub(crate) fn checkpoint_is_due(&self) -> bool {
        if self.log_since_checkpoint() >= self.settings().checkpoint_log_bytes
            || self.replay_estimate() >= self.settings().recovery_target / TARGET_SHARE
        {
            return true;
        }
        // What readers kept from being released at the last one is still there.
        let kept = self
            .checkpoint_state()
            .last_pending_bytes
            .load(Ordering::Relaxed);
        let pending = self.blocks().pending_bytes().saturating_sub(kept);
        pending >= self.settings().checkpoint_log_bytes / PENDING_MIN
            && pending >= self.blocks().taken_bytes() / PENDING_SHARE
    }

    pub(crate) fn log_position(&self) -> LogPosition {
        let (records, bytes) = self.log().appended();
        LogPosition {
            lsn: self.log().appended_lsn(),
            file_bytes: self.log().file_bytes(),
            replay_units: replay_units(records, bytes),
        }
    }

    /// Bytes of the log's files since the last checkpoint began.
    pub(crate) fn log_since_checkpoint(&self) -> u64 {
        let last = self.checkpoint_state().last_log.lock().file_bytes;
        self.log().file_bytes().saturating_sub(last)
    }

    /// Whether anything was logged since the last checkpoint began, but for what it leaves
    /// itself.
    pub(crate) fn has_logged(&self) -> bool {
        let last = self.checkpoint_state().last_log.lock().lsn;
        self.log().appended_lsn().saturating_sub(last) > CHANGED_BYTES
    }

    /// How long a start would take to apply the log, if the process ended now.
    pub(crate) fn replay_estimate(&self) -> Duration {
        let last = self.checkpoint_state().last_log.lock().replay_units;
        let (records, bytes) = self.log().appended();
        let units = replay_units(records, bytes).saturating_sub(last);
        let unit_ns = match self
            .checkpoint_state()
            .replay_unit_ns
            .load(Ordering::Relaxed)
        {
            0 => UNIT_NS,
            measured => measured,
        };
        Duration::from_nanos(units.saturating_mul(unit_ns))
    }

    /// Learns what applying the log costs on this machine.
    pub(crate) fn measured_replay(&self, records: u64, bytes: u64, took: Duration) {
        let units = replay_units(records, bytes);
        if units >= UNITS_MEASURED_MIN {
            let unit_ns = took.as_nanos() as u64 / units;
            let believed = unit_ns.clamp(*UNIT_NS_BELIEVED.start(), *UNIT_NS_BELIEVED.end());
            self.checkpoint_state()
                .replay_unit_ns
                .store(believed, Ordering::Relaxed);
        }
    }
}

/// Brings a partition's image up to date. Bytes written.
fn write_partition(
    capture: Capture<'_>,
    number: u64,
    purpose: Purpose,
    chain: &mut Chain,
) -> Result<u64> {
    let files = &chain.image.files;
    let base = files.first().map_or(0, |base| base.bytes);
    let deltas: u64 = files.iter().skip(1).map(|delta| delta.bytes).sum();
    let changed = capture.changed_pages() as u64 * PAGE_BYTES;
    let is_base = files.is_empty()
        || purpose == Purpose::Close
        || changed > 0 && (files.len() > DELTAS_MAX || deltas + changed > (base / 2).max(BASE_MIN));
    if is_base {
        capture.want_all();
    }
    let captured = capture.run(number, is_base)?;
    chain.image.cut = captured.cut;
    if !is_base && captured.copied == 0 && chain.end == Some(captured.end) {
        // Nothing changed. The frame that says so is in the buffer still.
        return Ok(0);
    }
    let file = captured.writer.finish()?;
    let bytes = file.bytes;
    if is_base {
        chain.image.files.clear();
    }
    chain.image.files.push(file);
    chain.end = Some(captured.end);
    Ok(bytes)
}
