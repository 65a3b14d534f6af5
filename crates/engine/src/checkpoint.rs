//! Checkpoints: an eviction that leaves the tuples in memory (design point 4;
//! 004 §3.6).
//!
//! Partition by partition: dirty tuples are written to blocks while statements
//! go on; then, under the partition's lock, the few that became dirty meanwhile
//! follow, and the row directory (with every hot row's cold address) and the
//! indexes are copied. That is the partition's cut: the log up to it is not
//! needed for this partition any more. The manifest goes last. No statement
//! waits for more than one partition's copy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use thermocline_storage::row_directory::{ColdAddress, Word};

use crate::access::DEAD;
use crate::catalog::{IndexKind, Table};
use crate::counters::Counters;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::evict::{Evictor, cold_copy, fingerprint, store_failed};
use crate::manifest::{FORMAT_VERSION, Manifest, PartitionFile, write_file};
use crate::partition::{Index, PartitionState, TablePartition};
use crate::run::log_failed;

/// First bytes of a partition's image.
pub(crate) const IMAGE_MAGIC: &[u8; 8] = b"TCPARTI1";

/// When checkpoints happen, and what the last one was.
#[derive(Debug, Default)]
pub(crate) struct CheckpointState {
    /// One at a time.
    running: Mutex<()>,
    pub number: AtomicU64,
    /// The end of the log when the last one began.
    pub last_lsn: AtomicU64,
    poked: Mutex<bool>,
    signal: Condvar,
    pub last_duration_ms: AtomicU64,
    /// The longest time that a partition was held for a cut, in microseconds.
    pub longest_hold_us: AtomicU64,
}

impl CheckpointState {
    /// Asks for a checkpoint soon.
    pub fn poke(&self) {
        *self.poked.lock() = true;
        self.signal.notify_one();
    }

    /// Waits for a poke, at most this long. Whether there was one.
    pub fn wait(&self, at_most: Duration) -> bool {
        let mut poked = self.poked.lock();
        if !*poked {
            self.signal.wait_for(&mut poked, at_most);
        }
        std::mem::take(&mut *poked)
    }
}

impl Database {
    /// Makes a checkpoint now.
    pub async fn checkpoint(&self) -> Result<()> {
        self.check_open()?;
        self.run_checkpoint()
    }

    pub(crate) fn run_checkpoint(&self) -> Result<()> {
        let _running = self.checkpoint.running.lock();
        let started = self.clock.now();
        let number = self.checkpoint.number.load(Ordering::Relaxed) + 1;
        let begin = self.log.appended_lsn();
        let epoch = self.blocks.begin_checkpoint();
        let mut evictor = Evictor::new(self.policy.block_bytes);
        let mut image = Vec::new();
        let mut files = Vec::new();
        for partition in 0..self.partitions.len() {
            files.push(self.write_partition(number, partition, &mut evictor, &mut image)?);
        }
        drop(image);
        drop(evictor);
        let manifest = self.describe_checkpoint(number, files)?;
        // What the images say must be on the device before the manifest is.
        self.log
            .wait_durable_blocking(self.log.appended_lsn())
            .map_err(log_failed)?;
        self.blocks.sync().map_err(store_failed)?;
        let mut table = Vec::new();
        self.blocks.write_to(epoch, &mut table);
        let crc = crc32c::crc32c(&table);
        table.extend_from_slice(&crc.to_le_bytes());
        write_file(&*self.device, &manifest.blocks, &table)?;
        manifest.write(&*self.device)?;

        self.checkpoint.number.store(number, Ordering::Relaxed);
        self.checkpoint.last_lsn.store(begin, Ordering::Relaxed);
        self.blocks.release_up_to(epoch).map_err(store_failed)?;
        self.log
            .truncate_before(manifest.log_start)
            .map_err(|e| Error::Corrupt(e.to_string()))?;
        self.remove_old_files(&manifest)?;
        let took = self.clock.now().saturating_sub(started);
        self.checkpoint
            .last_duration_ms
            .store(took.as_millis() as u64, Ordering::Relaxed);
        Counters::add(&self.counters.checkpoints, 1);
        Ok(())
    }

    fn describe_checkpoint(&self, number: u64, partitions: Vec<PartitionFile>) -> Result<Manifest> {
        // No DDL commits between the catalog and its place in the log: that
        // needs the locks of all partitions.
        let first = self.partitions[0].state.lock();
        let catalog = self.catalog();
        let catalog_lsn = self.log.appended_lsn();
        let image = catalog.image(
            self.next_oid.load(Ordering::Relaxed),
            self.next_storage.load(Ordering::Relaxed),
        );
        let drafts = self
            .storages()
            .values()
            .filter(|t| {
                catalog
                    .table(t.def.oid)
                    .is_none_or(|c| c.def.storage != t.def.storage)
            })
            .map(|t| t.def.clone())
            .collect();
        let sequences = catalog
            .sequences
            .values()
            .filter_map(|def| {
                let sequence = self.sequences.read().get(&def.oid).cloned()?;
                let (value, is_called) = sequence.durable(def);
                Some((def.oid, value, is_called))
            })
            .collect();
        drop(first);
        let log_start = partitions
            .iter()
            .map(|p| p.cut)
            .chain([catalog_lsn])
            .min()
            .unwrap_or(catalog_lsn);
        Ok(Manifest {
            format: FORMAT_VERSION,
            database_id: format!("{:032x}", self.database_id),
            checkpoint: number,
            partitions,
            blocks: format!("checkpoint-{number:08}-blocks"),
            catalog: image,
            catalog_lsn,
            sequences,
            drafts,
            log_start,
            last_transaction: self.transactions.last_number(),
        })
    }

    fn write_partition(
        &self,
        number: u64,
        partition: usize,
        evictor: &mut Evictor,
        image: &mut Vec<u8>,
    ) -> Result<PartitionFile> {
        let tables: Vec<_> = {
            let storages = self.storages();
            let state = self.partitions[partition].state.lock();
            state
                .tables
                .keys()
                .filter_map(|storage| storages.get(storage).cloned())
                .collect()
        };
        for table in &tables {
            // Again while much is dirtied meanwhile, but not for ever.
            for _ in 0..4 {
                if evictor.clean(self, partition, table)? < 256 {
                    break;
                }
            }
        }
        image.clear();
        let storages = self.storages();
        let mut state = self.partitions[partition].state.lock();
        let held_since = self.clock.now();
        let present: Vec<u32> = state.tables.keys().copied().collect();
        let mut written = 0u32;
        image.extend_from_slice(IMAGE_MAGIC);
        image.extend_from_slice(&(partition as u16).to_le_bytes());
        let count_at = image.len();
        image.extend_from_slice(&0u32.to_le_bytes());
        for storage in present {
            let Some(table) = storages.get(&storage) else {
                continue;
            };
            evictor.clean_locked(self, &mut state, table)?;
            write_table(image, table, state.table_mut(table))?;
            written += 1;
        }
        image[count_at..count_at + 4].copy_from_slice(&written.to_le_bytes());
        write_uncommitted(image, &state);
        let cut = self.log.appended_lsn();
        drop(state);
        let held = self.clock.now().saturating_sub(held_since);
        self.checkpoint
            .longest_hold_us
            .fetch_max(held.as_micros() as u64, Ordering::Relaxed);
        let crc = crc32c::crc32c(image);
        let file = format!("checkpoint-{number:08}-{partition:04}");
        write_file(&*self.device, &file, image)?;
        Ok(PartitionFile { file, cut, crc })
    }

    /// Removes checkpoint files that the manifest does not name.
    pub(crate) fn remove_old_files(&self, manifest: &Manifest) -> Result<()> {
        let files = self
            .device
            .list()
            .map_err(|e| Error::io(e, "listing the data directory"))?;
        for file in files.iter().filter(|f| f.starts_with("checkpoint-")) {
            let named =
                *file == manifest.blocks || manifest.partitions.iter().any(|p| p.file == *file);
            if !named {
                self.device
                    .remove(file)
                    .map_err(|e| Error::io(e, format!("removing {file}")))?;
            }
        }
        Ok(())
    }

    /// Whether the log has grown enough for a checkpoint.
    pub(crate) fn checkpoint_is_due(&self) -> bool {
        let grown = self
            .log
            .appended_lsn()
            .saturating_sub(self.checkpoint.last_lsn.load(Ordering::Relaxed));
        grown >= self.config.checkpoint_log_bytes
    }
}

/// Appends a table's directory and indexes.
fn write_table(image: &mut Vec<u8>, table: &Table, rows: &mut TablePartition) -> Result<()> {
    image.extend_from_slice(&table.def.storage.to_le_bytes());
    image.extend_from_slice(&rows.live.to_le_bytes());
    image.extend_from_slice(&rows.directory.appended().to_le_bytes());
    image.reserve(rows.metadata_bytes() + 1024);
    let mut key = Vec::new();
    for row in 0..rows.directory.appended() {
        let word = image_word(table, rows, rows.directory.get(row), &mut key)?;
        image.extend_from_slice(&word.0.to_le_bytes());
    }
    image.extend_from_slice(&(rows.indexes.len() as u32).to_le_bytes());
    for slot in &rows.indexes {
        image.extend_from_slice(&slot.oid.to_le_bytes());
        image.push(match slot.index.kind() {
            IndexKind::Hash => 1,
            IndexKind::BTree => 2,
        });
        let length_at = image.len();
        image.extend_from_slice(&0u64.to_le_bytes());
        let start = image.len();
        let written = match &slot.index {
            Index::Hash(index) => index.write_to(image),
            Index::BTree(index) => index.write_to(image),
        };
        written.map_err(|e| Error::io(e, "copying an index"))?;
        let length = (image.len() - start) as u64;
        image[length_at..length_at + 8].copy_from_slice(&length.to_le_bytes());
    }
    Ok(())
}

/// The word that a restart begins with: everything cold.
fn image_word(table: &Table, rows: &TablePartition, word: Word, key: &mut Vec<u8>) -> Result<Word> {
    let Some(hot) = word.as_hot() else {
        return Ok(if word == DEAD {
            Word(0)
        } else {
            word.with_aside(false)
        });
    };
    let address: ColdAddress = cold_copy(rows.heap.cold(hot.pointer()))
        .ok_or_else(|| Error::Internal("a tuple is still dirty at the cut".into()))?;
    let fingerprint = fingerprint(table, rows.heap.payload(hot.pointer()), key);
    Ok(Word::cold(address, fingerprint)
        .with_uncommitted(word.is_uncommitted())
        .with_temperature(word.temperature()))
}

fn write_uncommitted(image: &mut Vec<u8>, state: &PartitionState) {
    image.extend_from_slice(&(state.uncommitted.len() as u32).to_le_bytes());
    for ((storage, first), range) in &state.uncommitted {
        image.extend_from_slice(&storage.to_le_bytes());
        image.extend_from_slice(&first.to_le_bytes());
        image.extend_from_slice(&range.last.to_le_bytes());
        image.extend_from_slice(&range.owner.0.to_le_bytes());
    }
}
