//! Opening a database: manifest, images, log's tail.
//!
//! The tables come up with every tuple evicted; nothing is loaded. Images are
//! read through a buffer, several partitions at a time. Then the
//! records of the log's tail are applied, each partition from its own cut on,
//! several partitions at a time, under the same memory limit as later: the
//! evictor works while they are. Rows of transactions that have no commit record
//! are removed at the end.

mod apply;
mod commands;
pub(crate) mod images;
mod progress;
mod replay;
mod replayers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use thermocline_device::{Clock, Mutation, StopPoint, block_on, stop_at};
use thermocline_storage::arena::{Arena, CACHE_LIMIT_BYTES_DEFAULT};
use thermocline_storage::block_store::{BlockStore, BlockStoreOptions};
use thermocline_storage::log::{Log, LogOptions};

use crate::catalog::{Catalog, CatalogImage, Table, TableDef};
use crate::checkpoint::CheckpointState;
use crate::config::{Config, MEMORY_LIMIT_MIN, PARTITIONS_MAX};
use crate::database::{Database, Parts, RecoveryReport};
use crate::error::{Error, Result};
use crate::evict::store_failed;
use crate::manifest::{FORMAT_VERSION, Manifest, PartitionFiles};
use crate::memory::{Memory, log_buffer_bytes};
use crate::partition::{Index, IndexSlot, Partition, PartitionState};
use crate::policy::Policy;
use crate::reserve::Reserve;
use crate::sequence::Sequence;
use crate::spill::Spill;
use crate::transaction::TxnId;
use crate::versions::{HeldBytes, Versions};
use images::{Restored, read_block_table, restore_partition};
use progress::Progress;

pub use progress::{RecoveryListener, RecoveryPart, RecoveryProgress};

/// Threads that a start takes at most, unless it is told how many.
const THREADS_MAX: usize = 8;

impl Database {
    /// Opens the database in the configured device's directory, or makes one.
    pub fn open(config: Config) -> Result<Arc<Database>> {
        let started = config.clock.now();
        let manifest = Manifest::read(&*config.device)?;
        stop_at(StopPoint::RecoveryManifest);
        let partitions = match &manifest {
            Some(manifest) => manifest.partitions.len() as u16,
            None => choose_partitions(config.partitions)?,
        };
        let database_id = match &manifest {
            Some(manifest) => u128::from_str_radix(&manifest.database_id, 16)
                .map_err(|_| Error::Corrupt("manifest: the database id".into()))?,
            None => new_database_id(&*config.clock),
        };
        if let Some(archive) = &config.archive {
            Database::check_archive(&**archive, database_id)?;
        }
        let limit = config.memory_limit.max(MEMORY_LIMIT_MIN);
        let machine = match config.simulator {
            Some(_) => None,
            None => thermocline_device::memory_bytes(),
        };
        // The limit may be raised later, to what the machine has.
        let room = machine.unwrap_or(limit).max(limit);
        let arena = Arena::reserve_for(room as usize)
            .map_err(|e| Error::io(e, "reserving address space"))?;
        // Where memory is scarce, rows need it more than those who come for a span.
        arena.set_cache_limit_bytes((limit / 256).min(CACHE_LIMIT_BYTES_DEFAULT as u64) as usize);
        let arena = Arc::new(arena);
        if manifest.is_none() {
            // The directory's identity must be there before its blocks and log.
            first_manifest(database_id, partitions).write(&*config.device)?;
        }
        let table = match &manifest {
            Some(manifest) => read_block_table(&*config.device, manifest)?,
            None => None,
        };
        let blocks = BlockStore::open(
            &*config.device,
            BlockStoreOptions::new(database_id),
            table.as_deref(),
        )
        .map_err(store_failed)?;
        let reserve = Reserve::open(config.device.clone(), config.disk_reserve_bytes);
        reserve.let_log_have(config.segment_bytes());
        let start = manifest.as_ref().map(|m| m.log_start).filter(|l| *l > 0);
        let options = LogOptions {
            segment_bytes: config.segment_bytes(),
            files_bytes_max: config.checkpoint_log_bytes.saturating_mul(2),
            buffer_bytes: log_buffer_bytes(limit),
            reaches: manifest.as_ref().map_or(0, |m| m.log_end),
            ..LogOptions::new(database_id, config.clock.clone())
        };
        let (log, tail) = Log::open(config.device.clone(), options, start).map_err(log_broken)?;
        let policy = config
            .policy
            .unwrap_or_else(|| Policy::for_device(&config.device.profile()));
        let versions_held = Arc::<HeldBytes>::default();
        let parts = Parts {
            policy,
            memory: Memory::new(limit, arena.clone(), config.simulator.is_none()),
            partitions: (0..partitions)
                .map(|id| {
                    let mut state = PartitionState::new(id, arena.clone());
                    state.chain_sample = policy.identification.chain_sample();
                    state.versions = Versions::charged_to(versions_held.clone());
                    Partition::new(state)
                })
                .collect(),
            arena,
            log: Arc::new(log),
            blocks,
            database_id,
            checkpoint: CheckpointState::default(),
            reserve,
            spill: Spill::new(config.device.clone(), config.temp_file_limit)?,
            versions_held,
        };
        let db = Database::from_parts(config, parts);
        let mut cuts = vec![0; partitions as usize];
        let mut catalog_lsn = 0;
        let mut rows = 0;
        let mut image_bytes = 0;
        let images_begun = db.clock.now();
        if let Some(manifest) = &manifest {
            rows = db.restore(manifest)?;
            if manifest.format < FORMAT_VERSION {
                // The log that follows is none for the program that wrote it.
                let mut manifest = manifest.clone();
                manifest.format = FORMAT_VERSION;
                manifest.write(&*db.device)?;
            }
            cuts = manifest.partitions.iter().map(|p| p.cut).collect();
            catalog_lsn = manifest.catalog_lsn;
            image_bytes = manifest.image_bytes();
        }
        stop_at(StopPoint::RecoveryImages);
        let db = Arc::new(db);
        let log_begun = db.clock.now();
        let (records, log_bytes) = db.replay(tail, &cuts, catalog_lsn)?;
        stop_at(StopPoint::RecoverySettle);
        let settling_begun = db.clock.now();
        db.log.count_tail(records, log_bytes);
        db.measured_replay(records, log_bytes, settling_begun.saturating_sub(log_begun));
        db.settle()?;
        stop_at(StopPoint::RecoveryDone);
        // What this thread's allocations have left would stay its own otherwise.
        thermocline_device::return_memory();
        let ended = db.clock.now();
        let milliseconds =
            |from: Duration, to: Duration| to.saturating_sub(from).as_millis() as u64;
        *db.recovered.lock() = RecoveryReport {
            milliseconds: milliseconds(started, ended),
            rows,
            records,
            image_bytes,
            image_milliseconds: milliseconds(images_begun, log_begun),
            log_bytes,
            log_milliseconds: milliseconds(log_begun, settling_begun),
            settling_milliseconds: milliseconds(settling_begun, ended),
        };
        db.reserve.take();
        if db.config.background {
            db.start_threads()?;
        }
        Ok(db)
    }

    /// Puts the checkpoint's images in place. Rows restored.
    fn restore(&self, manifest: &Manifest) -> Result<u64> {
        self.checkpoint
            .number
            .store(manifest.checkpoint, Ordering::Relaxed);
        self.checkpoint.last_log.lock().lsn = manifest.log_start;
        self.transactions.start_after(manifest.last_transaction);
        self.adopt_catalog(&manifest.catalog);
        for def in &manifest.drafts {
            self.adopt_draft(def.clone());
        }
        {
            let mut sequences = self.sequences.write();
            for (oid, value, is_called) in &manifest.sequences {
                sequences.insert(*oid, Sequence::new(*value, *is_called));
            }
        }
        let Restored { rows, lives } = self.restore_partitions(manifest)?;
        self.adopt_images(manifest.partitions.clone());
        for block in self.blocks.blocks() {
            let live = lives.get(&block.id).copied().unwrap_or(0);
            if live > block.records || !self.blocks.set_live(block.id, live) {
                return Err(Error::Corrupt(format!(
                    "block {} has more live tuples than records",
                    block.id
                )));
            }
        }
        self.remove_old_files(manifest)?;
        Ok(rows)
    }

    /// Threads that a start takes: no more than there are partitions.
    fn recovery_threads(&self) -> usize {
        let threads = match (self.config.recovery_threads, self.config.background) {
            (0, true) => std::thread::available_parallelism()
                .map_or(1, |n| n.get())
                .min(THREADS_MAX),
            (0, false) => 1,
            (threads, _) => threads,
        };
        threads.min(self.partitions.len())
    }

    /// Reads the images, several at a time.
    fn restore_partitions(&self, manifest: &Manifest) -> Result<Restored> {
        let threads = self.recovery_threads();
        let progress = Progress::new(&self.config, RecoveryPart::Images);
        let (total, done) = (manifest.image_bytes(), AtomicU64::new(0));
        let next = AtomicUsize::new(0);
        let tables = self.storages();
        let restore = || {
            let mut restored = Restored::default();
            loop {
                let partition = next.fetch_add(1, Ordering::Relaxed);
                let Some(image) = manifest.partitions.get(partition) else {
                    return Ok(restored);
                };
                let mut state = self.partitions[partition].lock();
                restore_partition(&*self.device, &mut state, image, &mut restored)?;
                drop_unnamed_indexes(&mut state, &tables);
                drop(state);
                let bytes = image.bytes();
                progress.tell(done.fetch_add(bytes, Ordering::Relaxed) + bytes, total);
            }
        };
        if threads <= 1 {
            return restore();
        }
        let parts = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(restore)).collect();
            workers
                .into_iter()
                .map(|worker| {
                    let panicked = |_| Error::Internal("restoring a partition panicked".into());
                    worker.join().map_err(panicked)?
                })
                .collect::<Result<Vec<Restored>>>()
        })?;
        let mut restored = Restored::default();
        for part in parts {
            restored.rows += part.rows;
            for (block, lives) in part.lives {
                *restored.lives.entry(block).or_default() += lives;
            }
        }
        Ok(restored)
    }

    fn adopt_catalog(&self, image: &CatalogImage) {
        let catalog = Catalog::from_image(image, self.partitions());
        for table in catalog.tables.values() {
            self.storages.put(table);
        }
        {
            let mut sequences = self.sequences.write();
            for def in catalog.sequences.values() {
                sequences
                    .entry(def.oid)
                    .or_insert_with(|| Sequence::new(def.start, false));
            }
        }
        self.next_oid.fetch_max(image.next_oid, Ordering::Relaxed);
        self.next_storage
            .fetch_max(image.next_storage, Ordering::Relaxed);
        *self.catalog.write() = Arc::new(catalog);
    }

    fn adopt_draft(&self, def: TableDef) {
        self.next_storage
            .fetch_max(def.storage + 1, Ordering::Relaxed);
        self.next_oid.fetch_max(def.oid + 1, Ordering::Relaxed);
        self.storages
            .put(&Arc::new(Table::new(def, self.partitions())));
    }

    /// Whose rows are not committed, in which partition, in the storages that `of` accepts.
    fn uncommitted_owners(&self, of: impl Fn(u32) -> bool) -> Vec<(u16, TxnId)> {
        let mut owners = Vec::new();
        for partition in &self.partitions {
            let state = partition.lock();
            let ranges = state.uncommitted.iter().filter(|(row, _)| of(row.0));
            owners.extend(ranges.map(|(_, range)| (state.id, range.owner)));
        }
        owners
    }

    /// What is left to do after the log: nothing of open transactions stays,
    /// free row numbers are known again, indexes that a crash cut off are made.
    fn settle(self: &Arc<Self>) -> Result<()> {
        let owners = self.uncommitted_owners(|_| true).into_iter();
        for (partition, owner) in owners.filter(|_| !Mutation::UncommittedKept.is_made()) {
            self.remove_rows_of(partition, owner)?;
        }
        let catalog = self.catalog();
        let wanted: HashMap<u32, Arc<Table>> = catalog
            .tables
            .values()
            .map(|table| (table.def.storage, table.clone()))
            .collect();
        for partition in &self.partitions {
            let mut state = partition.lock();
            let present: Vec<u32> = state.tables.keys().copied().collect();
            for storage in present {
                if !wanted.contains_key(&storage) {
                    self.drop_storage(&mut state, storage);
                }
            }
            for (storage, rows) in &mut state.tables {
                rows.directory.rebuild_free_list();
                // The next evictor counts anew.
                rows.cooled = 0;
                if let Some(table) = wanted.get(storage) {
                    rows.indexes
                        .retain(|slot| table.def.indexes.iter().any(|i| i.oid == slot.oid));
                }
            }
        }
        self.storages
            .retain(|storage| wanted.contains_key(&storage));
        wanted.values().for_each(|table| self.storages.put(table));
        self.sequences
            .write()
            .retain(|oid, _| catalog.sequences.contains_key(oid));
        for table in catalog.tables.values() {
            for position in 0..table.def.indexes.len() {
                self.rebuild_missing_index(table, position)?;
            }
        }
        Ok(())
    }

    /// Builds an index that was committed after the last checkpoint. In the middle of
    /// the log it leads to rows that are committed further on, too.
    fn rebuild_missing_index(self: &Arc<Self>, table: &Arc<Table>, position: usize) -> Result<()> {
        let def = &table.def.indexes[position];
        let snapshot = self.snapshot();
        for partition in 0..self.partitions() {
            let missing = {
                let state = self.partitions[partition as usize].lock();
                state
                    .tables
                    .get(&table.def.storage)
                    .is_some_and(|rows| !rows.indexes.iter().any(|s| s.oid == def.oid))
            };
            if !missing {
                continue;
            }
            let mut index = Index::new(def.kind);
            let mut scan = snapshot.scan(table, partition).and_uncommitted();
            let mut key = Vec::new();
            let mut failed = None;
            while block_on(scan.next_chunk(|row, tuple| {
                key.clear();
                table.index_key_of(position, tuple, &mut key);
                if let Err(error) = index.insert(&key, row.row()) {
                    failed = Some(error);
                }
            }))? {}
            if let Some(error) = failed {
                return Err(error);
            }
            self.forget_image(usize::from(partition));
            let mut state = self.partitions[partition as usize].lock();
            let rows = state.table_mut(table);
            let at = position.min(rows.indexes.len());
            rows.indexes.insert(
                at,
                IndexSlot {
                    oid: def.oid,
                    index,
                },
            );
        }
        Ok(())
    }
}

/// Drops the indexes of an image that the checkpoint's definitions do not name. A transaction
/// that was open had built them. What the log's tail says of their tables is applied by these
/// definitions until the transaction commits, so they would lack what it changed; if it does,
/// they are built anew.
fn drop_unnamed_indexes(state: &mut PartitionState, tables: &HashMap<u32, Arc<Table>>) {
    for (storage, rows) in &mut state.tables {
        let Some(table) = tables.get(storage) else {
            continue;
        };
        rows.indexes
            .retain(|slot| table.def.indexes.iter().any(|def| def.oid == slot.oid));
    }
}

fn choose_partitions(wanted: u16) -> Result<u16> {
    if wanted == 0 {
        let cores = std::thread::available_parallelism().map_or(2, |n| n.get());
        return Ok((cores * 8).next_power_of_two().clamp(16, 256) as u16);
    }
    if !wanted.is_power_of_two() || wanted > PARTITIONS_MAX {
        return Err(Error::catalog(
            "22023",
            format!("partitions must be a power of two of at most {PARTITIONS_MAX}, not {wanted}"),
        ));
    }
    Ok(wanted)
}

pub(crate) fn new_database_id(clock: &dyn Clock) -> u128 {
    let time = clock.unix_time_us() as u64;
    let hash = |seed: u64| xxhash_rust::xxh3::xxh3_64_with_seed(&time.to_le_bytes(), seed);
    (u128::from(hash(u64::from(std::process::id()))) << 64) | u128::from(hash(time))
}

/// The manifest of a directory that has no checkpoint yet.
fn first_manifest(database_id: u128, partitions: u16) -> Manifest {
    Manifest {
        format: FORMAT_VERSION,
        database_id: format!("{database_id:032x}"),
        checkpoint: 0,
        partitions: vec![PartitionFiles::default(); partitions as usize],
        blocks: String::new(),
        catalog: Catalog::empty().image(crate::catalog::FIRST_USER_OID, 1),
        catalog_lsn: 0,
        sequences: Vec::new(),
        drafts: Vec::new(),
        log_start: 0,
        log_end: 0,
        last_transaction: 0,
    }
}

/// What went wrong with the log, as an error of the engine.
pub(crate) fn log_broken(error: thermocline_storage::log::LogError) -> Error {
    use thermocline_storage::log::LogError;
    match error {
        LogError::Io { doing, source } => Error::io(source, doing),
        other => Error::Corrupt(other.to_string()),
    }
}
