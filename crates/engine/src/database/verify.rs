//! Everything that must agree, checked: rows against blocks, indexes against
//! rows, counts against recounts, files against the manifest.
//!
//! It holds all partitions meanwhile and reads every block: for a database that
//! serves nobody, as after opening one to look at it. What it finds is told,
//! not mended.

use std::collections::BTreeMap;

use thermocline_storage::block::{Record, each_record};
use thermocline_storage::key_hash::key_hash;
use thermocline_storage::row_directory::{ColdAddress, Word};

use crate::catalog::{IndexDef, Table};
use crate::format::manifest::Manifest;
use crate::ground::error::{Error, Result};
use crate::ground::scope::Scope;
use crate::parts::Parts;
use crate::rows::index::Index;
use crate::rows::partition::PartitionState;
use crate::rows::row_state::{DEAD, TablePartition};

/// Problems that are told apart; more are only counted.
const PROBLEMS_KEPT: usize = 100;

/// What [`Parts::verify`] has looked at and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Rows, hot and cold.
    pub rows: u64,
    /// Of these, the rows whose only copy is in a block.
    pub cold_rows: u64,
    /// Entries of indexes.
    pub index_entries: u64,
    /// Blocks, each read whole.
    pub blocks: u64,
    /// Bytes of blocks read.
    pub block_bytes: u64,
    /// What is wrong, up to a hundred of them, each with its place.
    pub problems: Vec<String>,
    /// All that is wrong.
    pub problem_count: u64,
}

impl Verified {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problem_count == 0
    }

    fn wrong(&mut self, problem: impl FnOnce() -> String) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(problem());
        }
    }
}

/// Where a row's record must be, and whether it is the row's only copy.
struct Reference {
    slot: u16,
    row: u32,
    only: bool,
}

/// What refers to a block.
#[derive(Default)]
struct References {
    storage: u32,
    partition: u16,
    records: Vec<Reference>,
}

impl Parts {
    /// Checks that everything agrees with everything. Damage is not an error
    /// but a problem in what is returned; an error is a device that cannot be
    /// listed or a manifest that cannot be read.
    pub fn verify(&self) -> Result<Verified> {
        let mut found = Verified::default();
        self.wait_for_partitions()?;
        let mut guards = self.lock(&Scope::All)?;
        let storages = self.tables_by_storage();
        let mut references: BTreeMap<u32, References> = BTreeMap::new();
        for state in guards.iter_mut() {
            if state.versions.overlap() {
                found.wrong(|| format!("partition {}: rows are inserted twice", state.id));
            }
            for (storage, rows) in state.tables.all_rows() {
                match storages.get(&storage) {
                    Some(table) => {
                        self.verify_rows(state, table, rows, &mut references, &mut found);
                    }
                    None => found.wrong(|| {
                        format!("partition {} has rows of no table: {storage}", state.id)
                    }),
                }
            }
        }
        let states: Vec<&PartitionState> = guards.iter_mut().map(|state| &*state).collect();
        self.verify_blocks(&states, &storages, &references, &mut found);
        self.verify_extents(&mut found);
        self.verify_files(&mut found)?;
        Ok(found)
    }

    /// The indexes of a table that have all its rows. One that an open transaction has dropped
    /// lacks the rows that it has inserted since.
    fn indexes_that_agree<'t>(&self, table: &'t Table) -> &'t [IndexDef] {
        let catalog = self.catalog();
        let shared = catalog.table(table.def.oid);
        let is_held = shared.is_some_and(|shared| shared.gate.is_held_strongly());
        match is_held {
            true => &[],
            false => &table.def.indexes,
        }
    }

    /// The directory, the counts, and the indexes as far as memory knows.
    fn verify_rows(
        &self,
        state: &PartitionState,
        table: &Table,
        rows: &TablePartition,
        references: &mut BTreeMap<u32, References>,
        found: &mut Verified,
    ) {
        let place = || format!("table {} partition {}", table.def.name, state.id);
        let indexes = self.indexes_that_agree(table);
        let (mut live, mut cold) = (0, 0);
        for (row, word) in rows.directory().iter() {
            if word == DEAD {
                continue;
            }
            let mut refer = |address: ColdAddress, only| {
                let of = references.entry(address.block).or_insert(References {
                    storage: table.def.storage,
                    partition: state.id,
                    records: Vec::new(),
                });
                if of.storage != table.def.storage || of.partition != state.id {
                    found.wrong(|| {
                        format!(
                            "{}: row {row} is in block {}, which is another table's",
                            place(),
                            address.block
                        )
                    });
                }
                of.records.push(Reference {
                    slot: address.slot,
                    row,
                    only,
                });
            };
            if let Some(hot) = word.as_hot() {
                live += 1;
                let tuple = rows.heap().payload(hot.pointer());
                if let Some(address) = rows.copy_of(hot) {
                    refer(address, false);
                }
                if rows.heap().row(hot.pointer()) != row {
                    found.wrong(|| format!("{}: row {row} has another row's tuple", place()));
                }
                verify_tuple((table, indexes), rows, (state.id, row), tuple, found);
            } else if let Some(cold_word) = word.as_cold() {
                live += 1;
                cold += 1;
                refer(cold_word.address(), true);
            }
            if word.is_uncommitted() && state.owner_of((table.def.storage, row)).is_none() {
                found.wrong(|| format!("{}: row {row} is uncommitted and nobody's", place()));
            }
        }
        found.rows += live;
        found.cold_rows += cold;
        if rows.live() != live || rows.cold() != cold {
            found.wrong(|| {
                format!(
                    "{}: {} rows, {} cold are counted; {live}, {cold} are there",
                    place(),
                    rows.live(),
                    rows.cold()
                )
            });
        }
        for def in indexes {
            match rows.indexes().iter().find(|slot| slot.oid == def.oid) {
                // The transaction that makes the table may be filling it: indexes come last.
                None if self.catalog().table(table.def.oid).is_none() => {}
                None => found.wrong(|| format!("{}: index {} is missing", place(), def.name)),
                Some(slot) => {
                    let entries = match &slot.index {
                        Index::Hash(index) => index.len() as u64,
                        Index::BTree(index) => index.len() as u64,
                    };
                    found.index_entries += entries;
                    // How many are within a predicate only their tuples tell.
                    let agrees = match table.def.predicate_of(def) {
                        Some(_) => entries <= live,
                        None => entries == live,
                    };
                    if !agrees {
                        found.wrong(|| {
                            format!(
                                "{}: index {} has {entries} entries for {live} rows",
                                place(),
                                def.name
                            )
                        });
                    }
                }
            }
        }
    }

    /// Every block read; every row's record found in it.
    fn verify_blocks(
        &self,
        states: &[&PartitionState],
        storages: &crate::catalog::storages::TablesByStorage,
        references: &BTreeMap<u32, References>,
        found: &mut Verified,
    ) {
        for (block, of) in references {
            if self.blocks().info(*block).is_none() {
                found.wrong(|| {
                    format!(
                        "block {block} is gone, and {} rows of partition {} are in it",
                        of.records.len(),
                        of.partition
                    )
                });
            }
        }
        let mut blocks = self.blocks().blocks();
        blocks.sort_unstable_by_key(|info| (info.tablespace, info.offset));
        let nothing = References::default();
        for info in blocks {
            found.blocks += 1;
            found.block_bytes += info.device_bytes;
            let of = references.get(&info.id).unwrap_or(&nothing);
            let live = of.records.len() as u64;
            if live != u64::from(info.live_records) {
                found.wrong(|| {
                    format!(
                        "block {}: {} live records are counted, {live} are there",
                        info.id, info.live_records
                    )
                });
            }
            if of.records.is_empty() {
                continue;
            }
            if (of.storage, of.partition) != (info.table, info.partition) {
                found.wrong(|| format!("block {} is of another table or partition", info.id));
                continue;
            }
            let Some(table) = storages.get(&of.storage) else {
                continue;
            };
            let rows = states
                .iter()
                .find(|state| state.id == of.partition)
                .and_then(|state| state.tables.rows(of.storage));
            let (Some(rows), Ok(bytes)) = (rows, self.blocks().read(info.id)) else {
                found.wrong(|| format!("blocks: block {} cannot be read", info.id));
                continue;
            };
            let indexes = self.indexes_that_agree(table);
            let mut wanted: BTreeMap<u16, &Reference> =
                of.records.iter().map(|r| (r.slot, r)).collect();
            if wanted.len() != of.records.len() {
                found.wrong(|| format!("block {}: rows share a record", info.id));
            }
            let checked = each_record(&bytes, info.id, |record| {
                let reference = wanted.get(&record.slot);
                if let Some(reference) = reference.filter(|r| r.row == record.row) {
                    let table = (&**table, indexes);
                    verify_record(table, rows, of.partition, reference, &record, found);
                    wanted.remove(&record.slot);
                }
            });
            match checked {
                Err(error) => found.wrong(|| format!("blocks: {error}")),
                Ok(header) => {
                    if (header.table, header.partition, header.records)
                        != (info.table, info.partition, info.records)
                    {
                        found.wrong(|| {
                            format!("blocks: block {}'s header is another one's", info.id)
                        });
                    }
                    for reference in wanted.values() {
                        found.wrong(|| {
                            format!(
                                "block {} has no record of row {} in slot {}",
                                info.id, reference.row, reference.slot
                            )
                        });
                    }
                }
            }
        }
    }

    /// No two blocks overlap, and all lie in their files.
    fn verify_extents(&self, found: &mut Verified) {
        let mut blocks = self.blocks().blocks();
        blocks.sort_unstable_by_key(|info| (info.tablespace, info.offset));
        for pair in blocks.windows(2) {
            let same = pair[0].tablespace == pair[1].tablespace;
            if same && pair[0].offset + pair[0].device_bytes > pair[1].offset {
                found.wrong(|| format!("blocks {} and {} overlap", pair[0].id, pair[1].id));
            }
        }
        let numbers = self.blocks().volumes().numbers();
        let of_file = |number: &u16| self.blocks().statistics_of(*number).missing;
        if numbers.iter().any(|number| of_file(number).is_some()) {
            // How long the file is that is not there nobody knows.
            return;
        }
        let sums = self.blocks().statistics();
        let superblock = sums.file_bytes - sums.free_bytes - sums.device_bytes;
        let superblock = superblock.saturating_sub(sums.pending_bytes);
        if superblock != self.blocks().superblock_bytes(numbers.len()) {
            found.wrong(|| {
                format!("blocks: {superblock} bytes are neither free nor a block's: {sums:?}")
            });
        }
    }

    /// No file but those that are known; those that the manifest names are there.
    fn verify_files(&self, found: &mut Verified) -> Result<()> {
        let listed = self.device().list();
        let files = listed.map_err(|e| Error::io(e, "listing the data directory"))?;
        let manifest = Manifest::read(&**self.device())?;
        let named = manifest.iter().flat_map(Manifest::files);
        let named: std::collections::BTreeSet<&str> = named.collect();
        for file in &files {
            if file.starts_with("checkpoint-") && !named.contains(file.as_str()) {
                found.wrong(|| format!("{file}: the manifest does not name it"));
            }
        }
        for name in named {
            if !files.iter().any(|file| file == name) {
                found.wrong(|| format!("{name}: the manifest names it, and it is not there"));
            }
        }
        Ok(())
    }
}

/// A row's record in its block.
fn verify_record(
    (table, indexes): (&Table, &[IndexDef]),
    rows: &TablePartition,
    partition: u16,
    reference: &Reference,
    record: &Record<'_>,
    found: &mut Verified,
) {
    let word: Word = rows.directory().get(reference.row);
    if reference.only {
        let at = (partition, reference.row);
        verify_tuple((table, indexes), rows, at, record.payload, found);
        let differs = word
            .as_cold()
            .is_some_and(|cold| !table.has_fingerprint(cold, record.payload, &mut Vec::new()));
        if differs {
            found.wrong(|| {
                format!(
                    "table {} partition {partition}: row {}'s fingerprint is another key's",
                    table.def.name, reference.row
                )
            });
        }
    } else if let Some(hot) = word.as_hot()
        && rows.heap().payload(hot.pointer()) != record.payload
    {
        found.wrong(|| {
            format!(
                "table {} partition {partition}: row {} is not as its copy in a block says",
                table.def.name, reference.row
            )
        });
    }
}

/// A tuple: its layout, and that every index leads to it.
fn verify_tuple(
    (table, indexes): (&Table, &[IndexDef]),
    rows: &TablePartition,
    (partition, row): (u16, u32),
    tuple: &[u8],
    found: &mut Verified,
) {
    let place = || format!("table {} partition {partition}: row {row}", table.def.name);
    if !table.layouts.validate(tuple) {
        found.wrong(|| format!("{} is no tuple of its table", place()));
        return;
    }
    if table
        .partition_of_tuple(tuple)
        .is_some_and(|p| p != partition)
    {
        found.wrong(|| format!("{} belongs to another partition", place()));
    }
    let mut key = Vec::new();
    for (position, def) in indexes.iter().enumerate() {
        let Some(slot) = rows.indexes().iter().find(|slot| slot.oid == def.oid) else {
            continue;
        };
        key.clear();
        table.index_key_of(position, tuple, &mut key);
        let leads = match &slot.index {
            Index::Hash(index) => index.candidates(key_hash(&key)).any(|r| r == row),
            Index::BTree(index) => index.rows_equal(&key).any(|r| r == row),
        };
        let has_entry = table.has_entry(position, &key);
        if leads != has_entry {
            let does = if has_entry { "does not lead" } else { "leads" };
            found.wrong(|| format!("{}: index {} {does} to it", place(), def.name));
        }
    }
}
