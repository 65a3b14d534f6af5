//! Checking a whole directory while no database is open on it: whatever a
//! restart or a statement would come upon, and what they would not.
//!
//! Checked are:
//!
//! * the manifest, the superblock and the Block Table;
//! * each partition's image;
//! * each block's header and checksums, and each record in it against the row directory and
//!   the indexes (`rows`);
//! * the log from where a restart needs it on, record by record (`log`).
//!
//! Nothing is changed. One partition's directory and indexes and one block are in memory at a
//! time.
//!
//! Damage does not end the check: what can still be read is. What can't be
//! checked at all (no database there, a device that fails) is an error.

mod log;
mod rows;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use hashbrown::HashSet;
use serde::Serialize;
use thermocline_device::{Device, IoEngine, OpenMode};
use thermocline_storage::arena::Arena;
use thermocline_storage::block_store::{BlockInfo, BlockStore, BlockStoreOptions};

use crate::catalog::storages::TablesByStorage;
use crate::catalog::{Catalog, Table};
use crate::format::manifest::{MANIFEST, Manifest, PLACES, PartitionFiles};
use crate::ground::error::{Error, Result, store_failed};
use crate::parts::tablespaces::Tablespaces;
use crate::restart::images::{Restored, read_block_table, restore_partition};
use crate::rows::partition::PartitionState;

/// Something that is not as it was written, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The file.
    pub file: String,
    /// Bytes from its start, where one place can be named.
    pub offset: Option<u64>,
    /// The table concerned, as `schema.name`, where it is known.
    pub table: Option<String>,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        if let Some(table) = &self.table {
            write!(f, ", table {table}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// What is told while a check runs.
#[derive(Debug)]
pub enum CheckEvent<'a> {
    /// Damage was found.
    Found(&'a Finding),
    /// So many bytes of all were read.
    Progress {
        /// Bytes read so far.
        done: u64,
        /// Bytes there are to read.
        total: u64,
    },
}

/// What was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Number of findings; 0: the directory is sound.
    pub findings: u64,
    /// The checkpoint's number.
    pub checkpoint: u64,
    /// Tables of the catalog.
    pub tables: u64,
    /// Rows of the partitions' images.
    pub rows: u64,
    /// Blocks.
    pub blocks: u64,
    /// Records in them.
    pub records: u64,
    /// Log records behind the checkpoint.
    pub log_records: u64,
    /// Where the log ends.
    pub log_end: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Checks the directory of a device, and tells `observe` what it finds and how
/// far it is. No database may be open on it.
///
/// # Errors
/// [`Error::Catalog`] with 3D000 if there is no database, [`Error::Io`] if the
/// device fails: then there is no saying whether it is sound.
pub fn check(
    device: &Arc<dyn Device>,
    observe: &mut dyn FnMut(CheckEvent<'_>),
) -> Result<CheckReport> {
    let mut check = Check {
        device,
        observe,
        report: CheckReport::default(),
        total: 0,
    };
    check.run()?;
    Ok(check.report)
}

/// A check under way.
struct Check<'a> {
    device: &'a Arc<dyn Device>,
    observe: &'a mut dyn FnMut(CheckEvent<'_>),
    report: CheckReport,
    total: u64,
}

impl Check<'_> {
    fn run(&mut self) -> Result<()> {
        let manifest = match Manifest::read(&**self.device) {
            Ok(Some(manifest)) => manifest,
            Ok(None) => return Err(Error::catalog("3D000", "the directory has no database")),
            Err(error) => return self.found_in(MANIFEST, None, error),
        };
        self.report.checkpoint = manifest.checkpoint;
        let tables = tables_of(&manifest);
        self.report.tables = tables.len() as u64;
        let database = u128::from_str_radix(&manifest.database_id, 16)
            .map_err(|_| Error::Corrupt("manifest: the database id".into()))?;
        let store = match self.open_blocks(&manifest, database) {
            Ok(store) => store,
            Err(error) => {
                let file = match &error {
                    Error::Corrupt(what) if what.starts_with(&manifest.blocks) => &manifest.blocks,
                    Error::Corrupt(what) if what.contains(PLACES) => PLACES,
                    _ => "blocks",
                };
                self.found_in(file, None, error)?;
                None
            }
        };
        self.total = self.bytes_to_read(&manifest, store.as_ref())?;
        let mut blocks = store.as_ref().map_or_else(Vec::new, BlockStore::blocks);
        self.report.blocks = blocks.len() as u64;
        blocks.sort_unstable_by_key(|b| (b.partition, b.table, b.offset));
        let known: HashSet<u32> = blocks.iter().map(|b| b.id).collect();
        let arena = Arena::reserve(4 << 30).map_err(|e| Error::io(e, "reserving address space"));
        let arena = Arc::new(arena?);
        for (id, file) in manifest.partitions.iter().enumerate() {
            let id = id as u16;
            let state = self.load_partition(id, file, &arena)?;
            let of_partition: Vec<_> = blocks.iter().filter(|b| b.partition == id).collect();
            if let Some(store) = &store {
                self.check_partition(state, &tables, store, &of_partition, &known, file)?;
            }
        }
        let partitions = manifest.partitions.len() as u16;
        for block in blocks.iter().filter(|b| b.partition >= partitions) {
            let what = format!("block {} is of partition {}", block.id, block.partition);
            self.found(&manifest.blocks, None, None, what);
        }
        self.check_log(&manifest, database, tables)?;
        self.report.bytes = self.report.bytes.min(self.total);
        Ok(())
    }

    fn open_blocks(&self, manifest: &Manifest, database: u128) -> Result<Option<BlockStore>> {
        let tablespaces =
            Tablespaces::read(self.device.clone(), database, IoEngine::Threads, None)?;
        let Some(table) = read_block_table(&**self.device, manifest)? else {
            return Ok(None);
        };
        // Opening makes the file if it is missing.
        self.length_of("blocks")?;
        let options = BlockStoreOptions::new(database);
        let files = tablespaces.open_all_to_check();
        let store = BlockStore::open_with(&**self.device, options, Some(&table), files);
        store.map(Some).map_err(store_failed)
    }

    fn load_partition(
        &mut self,
        id: u16,
        image: &PartitionFiles,
        arena: &Arc<Arena>,
    ) -> Result<Option<PartitionState>> {
        let mut state = PartitionState::new(id, arena.clone(), Arc::default());
        let read = restore_partition(&**self.device, &mut state, image, &mut Restored::default());
        self.advance(image.files.iter().map(|file| file.bytes).sum());
        let Err(error) = read else {
            return Ok(Some(state));
        };
        let said = error.to_string();
        let mut files = image.files.iter().map(|file| file.file.as_str());
        let file = files.find(|file| said.contains(file)).unwrap_or(MANIFEST);
        self.found_in(file, None, error)?;
        Ok(None)
    }

    fn bytes_to_read(&self, manifest: &Manifest, store: Option<&BlockStore>) -> Result<u64> {
        let mut bytes = store.map_or(0, |s| s.statistics().device_bytes);
        let log = log::segments(&**self.device)?;
        let images = manifest.partitions.iter().flat_map(|p| &p.files);
        bytes += images.map(|file| file.bytes).sum::<u64>();
        for file in log {
            // One that is missing is found out where it is read.
            bytes += self.length_of(&file).unwrap_or(0);
        }
        Ok(bytes)
    }

    fn length_of(&self, file: &str) -> Result<u64> {
        self.device
            .open(file, OpenMode::Existing)
            .and_then(|file| file.len())
            .map_err(|e| Error::io(e, format!("opening {file}")))
    }

    fn advance(&mut self, bytes: u64) {
        self.report.bytes += bytes;
        let (done, total) = (self.report.bytes.min(self.total), self.total);
        (self.observe)(CheckEvent::Progress { done, total });
    }

    fn found(&mut self, file: &str, offset: Option<u64>, table: Option<&Table>, what: String) {
        self.report.findings += 1;
        (self.observe)(CheckEvent::Found(&Finding {
            file: file.to_owned(),
            offset,
            table: table.map(|t| format!("{}.{}", t.def.schema, t.def.name)),
            what,
        }));
    }

    /// An error of reading a file as a finding. A device that fails in other ways
    /// than by damage ends the check.
    fn found_in(&mut self, file: &str, offset: Option<u64>, error: Error) -> Result<()> {
        let what = match &error {
            Error::Corrupt(what) => {
                let what = what.strip_prefix(file).unwrap_or(what);
                what.strip_prefix(": ").unwrap_or(what).to_owned()
            }
            // A file that is missing or short, a sector that can't be read.
            Error::Io(..) => error.to_string(),
            _ => return Err(error),
        };
        self.found(file, offset, None, what);
        Ok(())
    }
}

fn tables_of(manifest: &Manifest) -> TablesByStorage {
    let partitions = manifest.partitions.len() as u16;
    let catalog = Catalog::from_image(&manifest.catalog, partitions, &Catalog::empty());
    let drafts = manifest
        .drafts
        .iter()
        .map(|def| Arc::new(Table::new(def.clone(), partitions)));
    // A draft that names a table's storage has columns that it is about to get.
    catalog
        .tables
        .values()
        .cloned()
        .chain(drafts)
        .map(|table| (table.def.storage, table))
        .collect()
}

/// What a check says of a block: where, and which.
fn block_place(block: &BlockInfo, slot: Option<u16>) -> u64 {
    block.offset + u64::from(slot.unwrap_or(0)) * thermocline_storage::block::SLOT_BYTES as u64
}
