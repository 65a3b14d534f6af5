//! Opening a database: manifest, images, log's tail.
//!
//! The tables come up with every tuple evicted; nothing is loaded. Then the
//! records of the log's tail are applied, each partition from its own cut on,
//! under the same memory limit as later: the evictor works while they are.
//! Rows of transactions that have no commit record are removed at the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hashbrown::HashMap;
use parking_lot::Mutex;
use thermocline_storage::arena::Arena;
use thermocline_storage::block_store::{BlockStore, BlockStoreOptions};
use thermocline_storage::btree::BTree;
use thermocline_storage::hash_index::HashIndex;
use thermocline_storage::heap::Heap;
use thermocline_storage::log::{Log, LogOptions, LogTail};
use thermocline_storage::row_directory::{RowDirectory, Word};

use crate::catalog::{Catalog, CatalogImage, Table, TableDef};
use crate::checkpoint::{CheckpointState, IMAGE_MAGIC};
use crate::config::{Config, MEMORY_LIMIT_MIN, PARTITIONS_MAX};
use crate::database::{Database, Parts, RecoveryReport};
use crate::error::{Error, Result};
use crate::evict::{Evictor, cold_copy, store_failed};
use crate::manifest::{FORMAT_VERSION, Manifest, PartitionFile, read_file};
use crate::memory::{Memory, log_buffer_bytes};
use crate::partition::{
    Index, IndexSlot, Partition, PartitionState, TablePartition, UncommittedRange,
};
use crate::policy::Policy;
use crate::record::{Reader, RecordKind, RowChange, changes, parse_commit_body, parse_record};
use crate::row_id::RowId;
use crate::sequence::Sequence;
use crate::transaction::TxnId;
use crate::wait::block_on;

/// Records applied between two looks at the memory.
const RECORDS_PER_LOOK: u64 = 256;

impl Database {
    /// Opens the database in the configured device's directory, or makes one.
    pub fn open(config: Config) -> Result<Arc<Database>> {
        let started = config.clock.now();
        let manifest = Manifest::read(&*config.device)?;
        let partitions = match &manifest {
            Some(manifest) => manifest.partitions.len() as u16,
            None => choose_partitions(config.partitions)?,
        };
        let database_id = match &manifest {
            Some(manifest) => u128::from_str_radix(&manifest.database_id, 16)
                .map_err(|_| Error::Corrupt("manifest: the database id".into()))?,
            None => new_database_id(&config),
        };
        let limit = config.memory_limit.max(MEMORY_LIMIT_MIN);
        let room = thermocline_device::memory_bytes()
            .unwrap_or(limit)
            .max(limit)
            * 2;
        let arena =
            Arena::reserve(room as usize).map_err(|e| Error::io(e, "reserving address space"))?;
        let arena = Arc::new(arena);
        if manifest.is_none() {
            // The directory's identity must be there before its blocks and log.
            first_manifest(database_id, partitions).write(&*config.device)?;
        }
        let table = match &manifest {
            Some(manifest) => read_block_table(&config, manifest)?,
            None => None,
        };
        let blocks = BlockStore::open(
            &*config.device,
            BlockStoreOptions::new(database_id),
            table.as_deref(),
        )
        .map_err(store_failed)?;
        let start = manifest.as_ref().map(|m| m.log_start).filter(|l| *l > 0);
        let options = LogOptions {
            segment_bytes: config.log_segment_bytes,
            buffer_bytes: log_buffer_bytes(limit),
            ..LogOptions::new(database_id, config.clock.clone())
        };
        let (log, tail) = Log::open(config.device.clone(), options, start).map_err(log_broken)?;
        let policy = config
            .policy
            .unwrap_or_else(|| Policy::for_device(&config.device.profile()));
        let parts = Parts {
            policy,
            memory: Memory::new(limit, arena.clone()),
            partitions: (0..partitions)
                .map(|id| Partition {
                    state: Mutex::new(PartitionState::new(id, arena.clone())),
                })
                .collect(),
            arena,
            log: Arc::new(log),
            blocks,
            database_id,
            checkpoint: CheckpointState::default(),
        };
        let db = Database::from_parts(config, parts);
        let mut cuts = vec![0; partitions as usize];
        let mut catalog_lsn = 0;
        let mut rows = 0;
        if let Some(manifest) = &manifest {
            rows = db.restore(manifest)?;
            cuts = manifest.partitions.iter().map(|p| p.cut).collect();
            catalog_lsn = manifest.catalog_lsn;
        }
        let records = db.replay(tail, &cuts, catalog_lsn)?;
        let db = Arc::new(db);
        db.settle()?;
        let took = db.clock.now().saturating_sub(started);
        *db.recovered.lock() = RecoveryReport {
            milliseconds: took.as_millis() as u64,
            rows,
            records,
        };
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
        self.checkpoint
            .last_lsn
            .store(manifest.log_start, Ordering::Relaxed);
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
        let mut lives: HashMap<u32, u32> = HashMap::new();
        let mut rows = 0;
        for (id, file) in manifest.partitions.iter().enumerate() {
            if file.file.is_empty() {
                continue;
            }
            let bytes = read_image(self, file)?;
            let mut state = self.partitions[id].state.lock();
            rows += read_partition(&mut state, &bytes, &mut lives)
                .map_err(|error| Error::Corrupt(format!("{}: {error}", file.file)))?;
        }
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

    fn adopt_catalog(&self, image: &CatalogImage) {
        let catalog = Catalog::from_image(image, self.partitions());
        {
            let mut storages = self.storages.write();
            for table in catalog.tables.values() {
                storages.insert(table.def.storage, table.clone());
            }
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
        let table = Table::new(def, self.partitions());
        self.storages
            .write()
            .insert(table.def.storage, Arc::new(table));
    }

    /// Applies the log's tail. Records applied.
    fn replay(&self, mut tail: LogTail, cuts: &[u64], catalog_lsn: u64) -> Result<u64> {
        let mut evictor = Evictor::new(self.policy.block_bytes);
        let mut records = 0;
        let mut last_transaction = 0;
        while let Some(record) = tail.next().map_err(log_broken)? {
            let lsn = record.end;
            let (kind, txn, body) = parse_record(record.payload)?;
            last_transaction = last_transaction.max(txn);
            match kind {
                RecordKind::Commit => {
                    let (row_changes, catalog) = parse_commit_body(body)?;
                    self.replay_changes(row_changes, lsn, cuts, TxnId(txn), None)?;
                    if txn != 0 {
                        self.replay_visible(TxnId(txn), lsn, cuts);
                    }
                    if !catalog.is_empty() && lsn > catalog_lsn {
                        let image: CatalogImage = serde_json::from_slice(catalog)
                            .map_err(|e| Error::Corrupt(format!("catalog in the log: {e}")))?;
                        self.adopt_catalog(&image);
                    }
                }
                RecordKind::Provisional => {
                    self.replay_changes(body, lsn, cuts, TxnId(txn), Some(TxnId(txn)))?;
                }
                RecordKind::Abort => self.replay_abort(TxnId(txn), lsn, cuts)?,
                RecordKind::Draft => {
                    let def: TableDef = serde_json::from_slice(body)
                        .map_err(|e| Error::Corrupt(format!("table in the log: {e}")))?;
                    if lsn > catalog_lsn {
                        self.adopt_draft(def);
                    }
                }
                RecordKind::Sequence => self.replay_sequence(body)?,
            }
            records += 1;
            if records % RECORDS_PER_LOOK == 0 {
                self.memory.read_resident();
                while evictor.step(self)? {
                    self.memory.read_resident();
                }
            }
        }
        self.transactions.start_after(last_transaction);
        Ok(records)
    }

    fn replay_changes(
        &self,
        body: &[u8],
        lsn: u64,
        cuts: &[u64],
        writer: TxnId,
        provisional: Option<TxnId>,
    ) -> Result<()> {
        for change in changes(body) {
            let change = change?;
            let (storage, row) = match &change {
                RowChange::Put { storage, row, .. } | RowChange::Delete { storage, row, .. } => {
                    (*storage, *row)
                }
            };
            let cut = *cuts.get(row.partition() as usize).ok_or_else(|| {
                Error::Corrupt(format!("the log names partition {}", row.partition()))
            })?;
            if lsn <= cut {
                continue;
            }
            let Some(table) = self.storages.read().get(&storage).cloned() else {
                // Dropped later in the log, or never committed.
                continue;
            };
            let partition = &self.partitions[row.partition() as usize];
            let owner = partition.state.lock().owner_of((storage, row.row()));
            if owner.is_some_and(|owner| owner != writer) {
                // Rows that did not commit go without a record of it, after a
                // crash and in a rollback; others then get their numbers.
                self.remove_row(&table, row)?;
            }
            let mut state = partition.state.lock();
            match change {
                RowChange::Put { tuple, removed, .. } => {
                    let rows = state.table_mut(&table);
                    let existed = self.replay_put(&table, rows, row.row(), tuple, provisional)?;
                    for (oid, key) in removed.iter() {
                        remove_key(rows, oid, key, row.row());
                    }
                    let mut key = Vec::new();
                    for (position, def) in table.def.indexes.iter().enumerate() {
                        if existed && !removed.iter().any(|(oid, _)| oid == def.oid) {
                            continue;
                        }
                        if let Some(slot) = rows.indexes.iter_mut().find(|s| s.oid == def.oid) {
                            key.clear();
                            table.index_key_of(position, tuple, &mut key);
                            slot.index.insert(&key, row.row())?;
                        }
                    }
                    // A draft's rows need no mark: they go with its storage.
                    if let Some(owner) = provisional
                        && !existed
                    {
                        state.note_uncommitted((storage, row.row()), owner);
                    }
                }
                RowChange::Delete { removed, .. } => {
                    let rows = state.table_mut(&table);
                    self.forget_tuple(rows, row.row());
                    for (oid, key) in removed.iter() {
                        remove_key(rows, oid, key, row.row());
                    }
                    rows.live = rows.live.saturating_sub(1);
                    state.forget_uncommitted((storage, row.row()));
                }
            }
        }
        Ok(())
    }

    /// Whether the row was there.
    fn replay_put(
        &self,
        table: &Table,
        rows: &mut TablePartition,
        row: u32,
        tuple: &[u8],
        provisional: Option<TxnId>,
    ) -> Result<bool> {
        if !table.layouts.validate(tuple) {
            return Err(Error::Corrupt(format!(
                "the log holds a tuple that is none of table {}",
                table.def.name
            )));
        }
        let word = rows.directory.get(row);
        let existed = word.is_hot() || word.is_cold();
        let uncommitted = if existed {
            word.is_uncommitted()
        } else {
            provisional.is_some()
        };
        let pointer = match word.as_hot() {
            Some(hot) => {
                if let Some(address) = cold_copy(rows.heap.cold(hot.pointer())) {
                    self.blocks.sub_live(address.block, 1);
                }
                rows.heap.replace(hot.pointer(), tuple)
            }
            None => {
                if let Some(cold) = word.as_cold() {
                    self.blocks.sub_live(cold.address().block, 1);
                    rows.cold -= 1;
                }
                rows.heap.insert(row, 0, tuple)
            }
        };
        let pointer = pointer.ok_or_else(|| Error::OutOfMemory("the arena is exhausted".into()))?;
        rows.heap.set_cold(pointer, 0);
        rows.directory
            .restore(row, Word::hot(pointer).with_uncommitted(uncommitted));
        if !existed {
            rows.live += 1;
        }
        Ok(existed)
    }

    fn forget_tuple(&self, rows: &mut TablePartition, row: u32) {
        let word = rows.directory.get(row);
        if let Some(hot) = word.as_hot() {
            if let Some(address) = cold_copy(rows.heap.cold(hot.pointer())) {
                self.blocks.sub_live(address.block, 1);
            }
            rows.heap.free(hot.pointer());
        } else if let Some(cold) = word.as_cold() {
            self.blocks.sub_live(cold.address().block, 1);
            rows.cold -= 1;
        }
        rows.directory.restore(row, Word(0));
    }

    fn replay_visible(&self, txn: TxnId, lsn: u64, cuts: &[u64]) {
        for (partition, cut) in self.partitions.iter().zip(cuts) {
            if lsn <= *cut {
                continue;
            }
            let mut state = partition.state.lock();
            for (first, last) in state.uncommitted_of(txn) {
                state.uncommitted.remove(&first);
                if let Some(rows) = state.tables.get_mut(&first.0) {
                    for row in first.1..=last {
                        let word = rows.directory.get(row);
                        if word.is_uncommitted() {
                            rows.directory.set(row, word.with_uncommitted(false));
                        }
                    }
                }
            }
        }
    }

    fn replay_abort(&self, txn: TxnId, lsn: u64, cuts: &[u64]) -> Result<()> {
        for (id, cut) in cuts.iter().enumerate() {
            if lsn > *cut {
                self.remove_rows_of(id as u16, txn)?;
            }
        }
        Ok(())
    }

    /// Removes the rows of a transaction that did not commit. The directory's
    /// free list is made at the end of recovery, so row numbers are not
    /// released here.
    fn remove_rows_of(&self, partition: u16, txn: TxnId) -> Result<()> {
        let ranges = self.partitions[partition as usize]
            .state
            .lock()
            .uncommitted_of(txn);
        for (first, last) in ranges {
            let Some(table) = self.storages.read().get(&first.0).cloned() else {
                continue;
            };
            for row in first.1..=last {
                self.remove_row(&table, RowId::new(partition, row))?;
            }
        }
        Ok(())
    }

    fn remove_row(&self, table: &Table, id: RowId) -> Result<()> {
        let tuple = block_on(self.one_shot_unchecked(id.partition(), |access| {
            Ok(access.current(table, id)?.map(<[u8]>::to_vec))
        }))?;
        let mut state = self.partitions[id.partition() as usize].state.lock();
        let rows = state.table_mut(table);
        if let Some(tuple) = tuple {
            rows.unindex_tuple(table, &tuple, id.row(), &mut Vec::new());
            rows.live = rows.live.saturating_sub(1);
        }
        self.forget_tuple(rows, id.row());
        state.forget_uncommitted((table.def.storage, id.row()));
        Ok(())
    }

    /// What is left to do after the log: nothing of open transactions stays,
    /// free row numbers are known again, indexes that a crash cut off are made.
    fn settle(self: &Arc<Self>) -> Result<()> {
        let owners: Vec<(u16, TxnId)> = self
            .partitions
            .iter()
            .flat_map(|p| {
                let state = p.state.lock();
                let id = state.id;
                state
                    .uncommitted
                    .values()
                    .map(|range| (id, range.owner))
                    .collect::<Vec<_>>()
            })
            .collect();
        for (partition, owner) in owners {
            self.remove_rows_of(partition, owner)?;
        }
        let catalog = self.catalog();
        let wanted: HashMap<u32, Arc<Table>> = catalog
            .tables
            .values()
            .map(|table| (table.def.storage, table.clone()))
            .collect();
        for partition in &self.partitions {
            let mut state = partition.state.lock();
            let present: Vec<u32> = state.tables.keys().copied().collect();
            for storage in present {
                if !wanted.contains_key(&storage) {
                    self.drop_storage(&mut state, storage);
                }
            }
            for (storage, rows) in &mut state.tables {
                rows.directory.rebuild_free_list();
                if let Some(table) = wanted.get(storage) {
                    rows.indexes
                        .retain(|slot| table.def.indexes.iter().any(|i| i.oid == slot.oid));
                }
            }
        }
        *self.storages.write() = wanted;
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

    /// Builds an index that was committed after the last checkpoint.
    fn rebuild_missing_index(self: &Arc<Self>, table: &Arc<Table>, position: usize) -> Result<()> {
        let def = &table.def.indexes[position];
        let snapshot = self.snapshot();
        for partition in 0..self.partitions() {
            let missing = {
                let state = self.partitions[partition as usize].state.lock();
                state
                    .tables
                    .get(&table.def.storage)
                    .is_some_and(|rows| !rows.indexes.iter().any(|s| s.oid == def.oid))
            };
            if !missing {
                continue;
            }
            let mut index = Index::new(def.kind);
            let mut scan = snapshot.scan(table, partition);
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
            let mut state = self.partitions[partition as usize].state.lock();
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

fn remove_key(rows: &mut TablePartition, oid: u32, key: &[u8], row: u32) {
    if let Some(slot) = rows.indexes.iter_mut().find(|s| s.oid == oid) {
        slot.index.remove(key, row);
    }
}

fn read_image(db: &Database, file: &PartitionFile) -> Result<Vec<u8>> {
    let bytes = read_file(&*db.device, &file.file)?;
    if crc32c::crc32c(&bytes) != file.crc {
        return Err(Error::Corrupt(format!(
            "{}: its checksum is wrong",
            file.file
        )));
    }
    Ok(bytes)
}

/// Reads a partition's image; counts the live tuples of each block.
fn read_partition(
    state: &mut PartitionState,
    bytes: &[u8],
    lives: &mut HashMap<u32, u32>,
) -> Result<u64> {
    let mut reader = Reader(bytes);
    if reader.take(8)? != IMAGE_MAGIC || reader.u16()? != state.id {
        return Err(Error::Corrupt("not an image of this partition".into()));
    }
    let mut restored = 0;
    for _ in 0..reader.u32()? {
        let storage = reader.u32()?;
        let live = reader.u64()?;
        let appended = reader.u32()? as usize;
        let words = reader.take(appended * 8)?;
        let words = words.chunks_exact(8).map(|word| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(word);
            u64::from_le_bytes(bytes)
        });
        let mut cold = 0;
        for word in words.clone() {
            if let Some(cold_word) = Word(word).as_cold() {
                *lives.entry(cold_word.address().block).or_default() += 1;
                cold += 1;
            }
        }
        let directory = RowDirectory::from_words(words);
        let mut indexes = Vec::new();
        for _ in 0..reader.u32()? {
            let oid = reader.u32()?;
            let kind = reader.u8()?;
            let length = reader.u64()? as usize;
            let bytes = reader.take(length)?;
            let corrupt = |_| Error::Corrupt(format!("the image of index {oid}"));
            let index = match kind {
                1 => Index::Hash(HashIndex::read_from(bytes).map_err(corrupt)?),
                2 => Index::BTree(BTree::read_from(bytes).map_err(corrupt)?),
                other => return Err(Error::Corrupt(format!("an index of kind {other}"))),
            };
            indexes.push(IndexSlot { oid, index });
        }
        restored += live;
        let table = TablePartition {
            heap: Heap::new(state.arena.clone()),
            directory,
            indexes,
            live,
            cold,
            hand: 0,
        };
        state.tables.insert(storage, Box::new(table));
    }
    for _ in 0..reader.u32()? {
        let storage = reader.u32()?;
        let first = reader.u32()?;
        let range = UncommittedRange {
            last: reader.u32()?,
            owner: TxnId(reader.u64()?),
        };
        state.uncommitted.insert((storage, first), range);
    }
    Ok(restored)
}

fn read_block_table(config: &Config, manifest: &Manifest) -> Result<Option<Vec<u8>>> {
    if manifest.blocks.is_empty() {
        return Ok(None);
    }
    let mut bytes = read_file(&*config.device, &manifest.blocks)?;
    let split = bytes.len().saturating_sub(4);
    let crc = bytes.split_off(split);
    if crc != crc32c::crc32c(&bytes).to_le_bytes() {
        return Err(Error::Corrupt(format!(
            "{}: its checksum is wrong",
            manifest.blocks
        )));
    }
    Ok(Some(bytes))
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

fn new_database_id(config: &Config) -> u128 {
    let time = config.clock.unix_time_us() as u64;
    let hash = |seed: u64| xxhash_rust::xxh3::xxh3_64_with_seed(&time.to_le_bytes(), seed);
    (u128::from(hash(u64::from(std::process::id()))) << 64) | u128::from(hash(time))
}

/// The manifest of a directory that has no checkpoint yet.
fn first_manifest(database_id: u128, partitions: u16) -> Manifest {
    let empty = PartitionFile {
        file: String::new(),
        cut: 0,
        crc: 0,
    };
    Manifest {
        format: FORMAT_VERSION,
        database_id: format!("{database_id:032x}"),
        checkpoint: 0,
        partitions: vec![empty; partitions as usize],
        blocks: String::new(),
        catalog: Catalog::empty().image(crate::catalog::FIRST_USER_OID, 1),
        catalog_lsn: 0,
        sequences: Vec::new(),
        drafts: Vec::new(),
        log_start: 0,
        last_transaction: 0,
    }
}

fn log_broken(error: thermocline_storage::log::LogError) -> Error {
    use thermocline_storage::log::LogError;
    match error {
        LogError::Io { doing, source } => Error::io(source, doing),
        other => Error::Corrupt(other.to_string()),
    }
}
