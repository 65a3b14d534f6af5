//! Opening a database: manifest, images, log's tail.
//!
//! The manifest is read, and the log's tail: then the catalog, the sequences and the numbers
//! of transactions are what they will be, and the database serves. Each partition comes by
//! itself (`loading`): its image is read, through a buffer, with every tuple evicted.
//! Its share of the tail is applied, from its own cut on. Rows of transactions that have no
//! commit record are removed. Then it is there. Statements wait for those that they need
//! ([`crate::rows::arrivals`], `there`). All of it keeps the same memory limit as later: the evictor works
//! meanwhile. Without background threads all partitions are there when the database is open.

mod apply;
mod commands;
mod events;
pub(crate) mod images;
mod loading;
mod pieces;
mod progress;
mod replay;
mod settle;
mod tail;
mod there;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use thermocline_device::{StopPoint, stop_at};
use thermocline_storage::arena::{Arena, CACHE_LIMIT_BYTES_DEFAULT};
use thermocline_storage::block_store::BlockStore;
use thermocline_storage::log::{Log, LogOptions, LogTail};

use crate::catalog::logged_change::CatalogChange;
use crate::catalog::objects_by_number::changes;
use crate::catalog::sequence::Sequence;
use crate::catalog::{Catalog, CatalogImage, Table, TableDef};
use crate::database::Database;
use crate::database::config::Config;
use crate::format::manifest::{FORMAT_VERSION, Manifest, PartitionFiles, new_database_id};
use crate::ground::error::{Error, Result, log_broken, store_failed};
use crate::ground::moment::Origin;
use crate::memory::log_buffer_bytes;
use crate::parts::reserve::Reserve;
use crate::parts::settings::{MEMORY_LIMIT_MIN, PARTITIONS_MAX};
use crate::parts::tablespaces::Tablespaces;
use crate::parts::{Opened, Parts};
use crate::rows::partition::PartitionState;
use crate::rows::versions::Versions;
use events::Definitions;
use images::read_block_table;
use loading::Hand;
use settle::Ending;

use loading::{Bringing, Loading};

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
            Parts::check_archive(&**archive, database_id)?;
        }
        let limit = config.memory_limit.max(MEMORY_LIMIT_MIN);
        let origin = Origin::of(config.simulator.as_deref());
        let arena = reserve_arena(&config, limit, &origin)?;
        if manifest.is_none() {
            // The directory's identity must be there before its blocks and log.
            first_manifest(database_id, partitions).write(&*config.device)?;
        }
        let table = match &manifest {
            Some(manifest) => read_block_table(&*config.device, manifest)?,
            None => None,
        };
        let tablespaces =
            Tablespaces::read(config.device.clone(), database_id, config.io, config.policy)?;
        let blocks = BlockStore::open_with(
            &*config.device,
            origin.blocks(database_id),
            table.as_deref(),
            tablespaces.open_all(),
        )
        .map_err(store_failed)?;
        let reserve = Reserve::open(config.device.clone(), config.disk_reserve_bytes);
        reserve.let_log_have(config.segment_bytes());
        let (log, tail) = open_log(&config, manifest.as_ref(), database_id, limit)?;
        let opened = Opened {
            database_id,
            partitions,
            limit,
            arena,
            blocks,
            tablespaces,
            log,
            reserve,
        };
        let parts = Parts::new(config.settings, opened)?;
        let db = Arc::new(Database::from_parts(parts, config.procedures));
        for (id, partition) in (0..partitions).zip(db.all_partitions()) {
            *partition.lock() = db.empty_partition(id);
        }
        match &manifest {
            Some(manifest) => db.recover(manifest, tail, started)?,
            None => {
                db.begin_at(&origin, true);
                drop(tail);
            }
        }
        stop_at(StopPoint::RecoveryDone);
        // What this thread's allocations have left would stay its own otherwise.
        thermocline_device::return_memory();
        let took = db.clock().now().saturating_sub(started).as_millis() as u64;
        {
            let mut report = db.start().report_mut();
            report.milliseconds = took;
            if manifest.is_none() {
                report.whole_milliseconds = took;
            }
        }
        db.reserve().take();
        if db.settings().background {
            db.start_threads()?;
        }
        Ok(db)
    }

    /// Reads the log, and has the partitions brought: all of them by the end, or, where there
    /// is somebody to do it, as it serves.
    fn recover(
        self: &Arc<Self>,
        manifest: &Manifest,
        tail: LogTail,
        begun: Duration,
    ) -> Result<()> {
        self.adopt_manifest(manifest)?;
        self.begin_at(&Origin::of(self.settings().simulator.as_deref()), false);
        let simulator = self.settings().simulator.as_ref();
        let by_hand = simulator.is_some_and(|simulator| simulator.brings_partitions());
        let is_whole = !self.settings().background && !by_hand;
        let loading = Arc::new(Loading::new(
            self,
            self.procedures().clone(),
            manifest,
            begun,
            is_whole,
        ));
        for partition in self.all_partitions() {
            partition.lock().is_there = false;
        }
        self.arrivals().expect(self.all_partitions().len(), by_hand);
        self.start().bring_by(Arc::new(Bringing {
            loading: loading.clone(),
            parts: Arc::downgrade(self),
        }));
        let threads = match self.recovery_threads() {
            1 if !self.settings().background => 0,
            threads => threads,
        };
        let mut loaders = Vec::new();
        let read = self.start_loaders(&loading, threads, &mut loaders);
        let read = read.and_then(|()| self.read_log(tail, &loading));
        let read = read.and_then(|()| match is_whole {
            true => {
                loading.work(self, Hand::Any);
                self.join_loaders(&mut loaders);
                loading.failure().map_or(Ok(()), Err)
            }
            false => Ok(()),
        });
        if read.is_err() {
            self.stop();
            self.join_loaders(&mut loaders);
            self.start().all_are_there();
        }
        self.keep_threads(loaders);
        read
    }

    fn start_loaders(
        self: &Arc<Self>,
        loading: &Arc<Loading>,
        threads: usize,
        loaders: &mut Vec<JoinHandle<()>>,
    ) -> Result<()> {
        let hands = std::iter::repeat_n(Hand::Any, threads);
        let express = self.settings().background.then_some(Hand::Express);
        for hand in hands.chain(express) {
            let (db, loading) = (self.clone(), loading.clone());
            let builder = std::thread::Builder::new().name("loader".into());
            let loader = builder.spawn(move || {
                loading.work(&db, hand);
                drop(loading);
                thermocline_device::return_memory();
            });
            loaders.push(loader.map_err(|error| Error::io(error, "starting a thread"))?);
        }
        Ok(())
    }

    fn join_loaders(&self, loaders: &mut Vec<JoinHandle<()>>) {
        for loader in loaders.drain(..) {
            // What fails in it is told by `Loading`.
            let _ = loader.join();
        }
    }

    /// Reads the log's tail. From here on the definitions are those of its end.
    fn read_log(&self, tail: LogTail, loading: &Loading) -> Result<()> {
        let begun = self.clock().now();
        let (records, bytes) = self.read_tail(tail, loading)?;
        if let Some(failed) = loading.failure() {
            return Err(failed);
        }
        self.log().count_tail(records, bytes);
        let took = self.clock().now().saturating_sub(begun);
        let took = took.as_micros() as u64;
        loading.spent.reading_us.fetch_add(took, Ordering::Relaxed);
        {
            let mut report = self.start().report_mut();
            (report.records, report.log_bytes) = (records, bytes);
        }
        self.settle_tablespaces()?;
        let ending = Ending::new(Definitions::of_now(self));
        for table in ending.wanted.values() {
            self.storages().put(table);
        }
        let catalog = self.catalog();
        self.sequences()
            .write()
            .retain(|oid, _| catalog.sequences.contains_key(oid));
        loading.log_is_read(ending);
        Ok(())
    }
}

impl Parts {
    /// A partition with no rows, yet.
    fn empty_partition(&self, id: u16) -> PartitionState {
        let mut state =
            PartitionState::new(id, self.arena().clone(), self.tablespaces().book().clone());
        state.versions = Versions::charged_to(self.versions_held().clone());
        state
    }

    /// Goes on from there, unless it has come further.
    pub(crate) fn begin_at(&self, origin: &Origin, is_new: bool) {
        self.transactions().start_after(origin.transaction);
        let number = &self.checkpoint_state().number;
        number.fetch_max(origin.checkpoint, Ordering::Relaxed);
        if is_new && origin.oid > 0 {
            self.begin_oids_at(origin.oid);
        }
        self.allocate_storages_from(origin.storage);
    }

    /// Takes over what the manifest says of all partitions.
    fn adopt_manifest(&self, manifest: &Manifest) -> Result<()> {
        self.checkpoint_state()
            .number
            .store(manifest.checkpoint, Ordering::Relaxed);
        self.checkpoint_state().last_log.lock().lsn = manifest.log_start;
        self.transactions().start_after(manifest.last_transaction);
        self.begin_oids_at(manifest.catalog.next_oid);
        self.adopt_catalog(&manifest.catalog);
        for def in &manifest.drafts {
            self.adopt_draft(def.clone());
        }
        {
            let mut sequences = self.sequences().write();
            for (oid, value, is_called) in &manifest.sequences {
                sequences.insert(*oid, Sequence::new(*value, *is_called));
            }
        }
        self.start().report_mut().image_bytes = manifest.image_bytes();
        self.adopt_images(manifest.partitions.clone());
        self.remove_old_files(manifest)?;
        if manifest.format < FORMAT_VERSION {
            // The log that follows is none for the program that wrote it.
            let mut manifest = manifest.clone();
            manifest.format = FORMAT_VERSION;
            manifest.write(&**self.device())?;
        }
        Ok(())
    }

    /// Threads that a start takes: no more than there are partitions.
    fn recovery_threads(&self) -> usize {
        let threads = match (self.settings().recovery_threads, self.settings().background) {
            (0, true) => std::thread::available_parallelism()
                .map_or(1, |n| n.get())
                .min(THREADS_MAX),
            (0, false) => 1,
            (threads, _) => threads,
        };
        threads.min(self.all_partitions().len())
    }

    fn adopt_catalog(&self, image: &CatalogImage) {
        let known = self.catalog();
        let catalog = Catalog::from_image(image, self.partitions(), &known);
        self.adopt(&known, catalog, (image.next_oid, image.next_storage));
    }

    fn adopt_change(&self, change: CatalogChange) -> Result<()> {
        let (known, next) = (self.catalog(), (change.next_oid, change.next_storage));
        let catalog = change.apply(&known, self.partitions())?;
        self.adopt(&known, catalog, next);
        Ok(())
    }

    /// Has this catalog instead of `known`; the next object and storage have these numbers.
    fn adopt(&self, known: &Catalog, catalog: Catalog, (oid, storage): (u32, u32)) {
        for (_, _, table) in changes(&known.tables, &catalog.tables) {
            table
                .into_iter()
                .for_each(|table| self.storages().put(table));
        }
        if !known.types.ptr_eq(&catalog.types) {
            catalog.tell_types();
        }
        if !known.tablespaces.ptr_eq(&catalog.tablespaces) {
            self.tell_tablespaces(&catalog);
        }
        {
            let mut sequences = self.sequences().write();
            for (_, _, def) in changes(&known.sequences, &catalog.sequences) {
                let Some(def) = def else {
                    continue;
                };
                sequences
                    .entry(def.oid)
                    .or_insert_with(|| Sequence::new(def.start, false));
            }
        }
        self.allocate_oids_after(oid);
        self.allocate_storages_from(storage);
        *self.catalog_lock().write() = Arc::new(catalog);
    }

    fn adopt_draft(&self, def: TableDef) {
        self.allocate_storages_from(def.storage.saturating_add(1));
        self.allocate_oids_after(def.oid.wrapping_add(1));
        self.storages()
            .put(&Arc::new(Table::new(def, self.partitions())));
    }
}

/// Addresses for the tuples.
fn reserve_arena(config: &Config, limit: u64, origin: &Origin) -> Result<Arc<Arena>> {
    let machine = match config.simulator {
        Some(_) => None,
        None => thermocline_device::memory_bytes(),
    };
    // The limit may be raised later, to what the machine has.
    let room = machine.unwrap_or(limit).max(limit);
    let room = room.max(origin.arena_bytes as u64 / 128);
    let arena =
        Arena::reserve_for(room as usize).map_err(|e| Error::io(e, "reserving address space"))?;
    // Where memory is scarce, rows need it more than those who come for a span.
    arena.set_cache_limit_bytes((limit / 256).min(CACHE_LIMIT_BYTES_DEFAULT as u64) as usize);
    arena.begin_at(origin.arena_bytes);
    Ok(Arc::new(arena))
}

fn open_log(
    config: &Config,
    manifest: Option<&Manifest>,
    database_id: u128,
    limit: u64,
) -> Result<(Log, LogTail)> {
    let start = manifest.map(|m| m.log_start).filter(|l| *l > 0);
    let options = LogOptions {
        segment_bytes: config.segment_bytes(),
        files_bytes_max: config.checkpoint_log_bytes.saturating_mul(2),
        buffer_bytes: log_buffer_bytes(limit),
        reaches: manifest.map_or(0, |m| m.log_end),
        goes_on_at: Origin::of(config.simulator.as_deref()).lsn,
        ..LogOptions::new(database_id, config.clock.clone())
    };
    Log::open(config.device.clone(), options, start).map_err(log_broken)
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
