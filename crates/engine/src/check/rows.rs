//! Blocks against row directories and indexes: each cold word leads to a record
//! of its row, and each row is found under its keys.

use hashbrown::{HashMap, HashSet};
use thermocline_storage::block::{BlockHeader, BlockKind, Record, each_record, verify_records};
use thermocline_storage::block_store::{BlockInfo, BlockStore, file_named};
use thermocline_storage::key_hash::key_hash;

use super::{Check, block_place};
use crate::catalog::Table;
use crate::catalog::storages::TablesByStorage;
use crate::format::manifest::PartitionFiles;
use crate::ground::error::Result;
use crate::rows::index::Index;
use crate::rows::partition::PartitionState;
use crate::rows::row_state::TablePartition;

/// Findings of one kind in one table and partition that are told; the rest is
/// counted.
const TOLD_MAX: u64 = 20;

/// The rows of a table whose records were seen: one bit each.
struct Seen(Vec<u64>);

impl Seen {
    fn new(rows: u32) -> Self {
        Seen(vec![0; rows.div_ceil(64) as usize])
    }

    fn note(&mut self, row: u32) {
        self.0[row as usize / 64] |= 1 << (row % 64);
    }

    fn has(&self, row: u32) -> bool {
        self.0[row as usize / 64] >> (row % 64) & 1 == 1
    }
}

impl Check<'_> {
    /// Reads all blocks of a partition. Without `state` (its image is damaged)
    /// only their checksums can be checked.
    pub(super) fn check_partition(
        &mut self,
        state: Option<PartitionState>,
        tables: &TablesByStorage,
        store: &BlockStore,
        blocks: &[&BlockInfo],
        known: &HashSet<u32>,
        image: &PartitionFiles,
    ) -> Result<()> {
        let mut seen: HashMap<u32, Seen> = HashMap::new();
        for (storage, rows) in state.iter().flat_map(|s| s.tables.all_rows()) {
            seen.insert(storage, Seen::new(rows.directory().appended()));
            self.report.rows += rows.live();
        }
        let mut unread: HashSet<u32> = HashSet::new();
        let named = state.as_ref().map(blocks_named);
        for block in blocks {
            // The Block Table may have a block that was being written when the power failed. No
            // row refers to it, and a start gives it up.
            let is_needed = named.as_ref().is_none_or(|named| named.contains(&block.id));
            if !is_needed && !is_readable(store, block) {
                self.advance(block.device_bytes);
                continue;
            }
            let table = tables.get(&block.table).map(AsRef::as_ref);
            let rows = state.as_ref().and_then(|s| s.tables.rows(block.table));
            let seen = seen.get_mut(&block.table);
            if !self.check_block(store, block, table, rows, seen)? {
                unread.insert(block.id);
            }
        }
        for (storage, rows) in state.iter().flat_map(|s| s.tables.all_rows()) {
            let table = tables.get(&storage).map(AsRef::as_ref);
            if let Some(seen) = seen.get(&storage) {
                self.check_directory(image, table, rows, seen, known, &unread);
            }
            if let Some(table) = table {
                self.check_counts(image, table, rows);
            }
        }
        Ok(())
    }

    /// Whether the block could be read.
    fn check_block(
        &mut self,
        store: &BlockStore,
        block: &BlockInfo,
        table: Option<&Table>,
        rows: Option<&TablePartition>,
        mut seen: Option<&mut Seen>,
    ) -> Result<bool> {
        let file = &file_named(block.tablespace);
        let place = |slot| Some(block_place(block, slot));
        let bytes = store.read(block.id);
        self.advance(block.device_bytes);
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(error) => {
                self.found(
                    file,
                    place(None),
                    table,
                    format!("block {}: {error}", block.id),
                );
                return Ok(false);
            }
        };
        let header = match BlockHeader::decode(&bytes, block.id) {
            Ok(header) => header,
            Err(error) => {
                self.found(file, place(error.slot), table, error.to_string());
                return Ok(false);
            }
        };
        if (header.table, header.partition, header.records)
            != (block.table, block.partition, block.records)
        {
            let what = format!(
                "block {}: its header says storage {}, partition {}, {} records, and the block \
                 table {}, {}, {}",
                block.id,
                header.table,
                header.partition,
                header.records,
                block.table,
                block.partition,
                block.records
            );
            self.found(file, place(None), table, what);
            return Ok(false);
        }
        let mut key = Vec::new();
        let checked = each_record(&bytes, block.id, |record| {
            self.report.records += 1;
            if let (Some(table), Some(rows), Some(seen)) = (table, rows, seen.as_deref_mut()) {
                self.check_record(block, table, rows, seen, &record, &mut key);
            }
        });
        if let Err(error) = checked {
            // In columns a slot is no place.
            let slot = error.slot.filter(|_| header.kind != BlockKind::Columns);
            self.found(file, place(slot), table, error.to_string());
            return Ok(false);
        }
        Ok(true)
    }

    /// A record against the row that it is the copy of, if it still is.
    fn check_record(
        &mut self,
        block: &BlockInfo,
        table: &Table,
        rows: &TablePartition,
        seen: &mut Seen,
        record: &Record<'_>,
        key: &mut Vec<u8>,
    ) {
        if record.row >= rows.directory().appended() {
            return;
        }
        let Some(cold) = rows.directory().get(record.row).as_cold() else {
            return;
        };
        let address = cold.address();
        if (address.block, address.slot) != (block.id, record.slot) {
            // A hole: the row has a newer record, or is gone.
            return;
        }
        seen.note(record.row);
        let what = if !table.layouts.validate(record.payload) {
            "is no tuple of the table".to_owned()
        } else if !table.has_fingerprint(cold, record.payload, key) {
            "does not fit the fingerprint in the directory".to_owned()
        } else if !rows.directory().get(record.row).is_uncommitted()
            && let Some(index) = unindexed(table, rows, record.payload, record.row, key)
        {
            // Not one that an open transaction had inserted: it may have dropped the index before.
            format!("is not in index {index}")
        } else {
            return;
        };
        let what = format!(
            "row {} (block {}, slot {}) {what}",
            record.row, block.id, record.slot
        );
        let place = block_place(block, (!address.is_in_columns()).then_some(record.slot));
        self.found(
            &file_named(block.tablespace),
            Some(place),
            Some(table),
            what,
        );
    }

    /// Each cold word must have led to a record. What lies in a block that could
    /// not be read is damaged, but told already.
    fn check_directory(
        &mut self,
        image: &PartitionFiles,
        table: Option<&Table>,
        rows: &TablePartition,
        seen: &Seen,
        known: &HashSet<u32>,
        unread: &HashSet<u32>,
    ) {
        let mut missing = 0;
        let mut unreadable = 0;
        for (row, word) in rows.directory().iter() {
            let Some(cold) = word.as_cold().filter(|_| !seen.has(row)) else {
                continue;
            };
            let address = cold.address();
            if unread.contains(&address.block) {
                unreadable += 1;
                continue;
            }
            // Of a storage without a table nothing was noted.
            if table.is_none() && known.contains(&address.block) {
                continue;
            }
            missing += 1;
            if missing <= TOLD_MAX {
                let what = format!(
                    "row {row} refers to block {}, slot {}, where its record is not",
                    address.block, address.slot
                );
                self.found(image.newest(), None, table, what);
            }
        }
        if missing > TOLD_MAX {
            let what = format!("{} rows more refer to no record", missing - TOLD_MAX);
            self.found(image.newest(), None, table, what);
        }
        if unreadable > 0 {
            let what = format!("{unreadable} rows lie in blocks that cannot be read");
            self.found("blocks", None, table, what);
        }
    }

    /// Rows and index entries, counted.
    fn check_counts(&mut self, image: &PartitionFiles, table: &Table, rows: &TablePartition) {
        let present = rows.directory().iter().count();
        let words = rows.directory().iter();
        let uncommitted = words.filter(|(_, word)| word.is_uncommitted()).count();
        if present as u64 != rows.live() {
            let what = format!("{} rows are said to be there, {present} are", rows.live());
            self.found(image.newest(), None, Some(table), what);
        }
        for slot in rows.indexes() {
            let Some(def) = table.def.indexes.iter().find(|def| def.oid == slot.oid) else {
                continue;
            };
            let entries = match &slot.index {
                Index::Hash(index) => index.len(),
                Index::BTree(index) => index.len(),
            };
            let least = match table.def.predicate_of(def) {
                Some(_) => 0,
                None => present - uncommitted,
            };
            if !(least..=present).contains(&entries) {
                let what = format!(
                    "index {} has {entries} entries for {present} rows",
                    def.name
                );
                self.found(image.newest(), None, Some(table), what);
            }
        }
    }
}

/// The blocks that rows of a partition refer to.
fn blocks_named(state: &PartitionState) -> HashSet<u32> {
    let rows = state.tables.all_rows().map(|(_, rows)| rows);
    let words = rows.flat_map(|rows| rows.directory().iter());
    words
        .filter_map(|(_, word)| Some(word.as_cold()?.address().block))
        .collect()
}

/// Whether a block is as it was written.
fn is_readable(store: &BlockStore, block: &BlockInfo) -> bool {
    let bytes = store.read(block.id);
    bytes.is_ok_and(|bytes| verify_records(&bytes, block.id).is_ok())
}

/// The first index that does not lead from the tuple's key to its row, or does and should not.
fn unindexed<'a>(
    table: &'a Table,
    rows: &TablePartition,
    tuple: &[u8],
    row: u32,
    key: &mut Vec<u8>,
) -> Option<&'a str> {
    rows.indexes().iter().find_map(|slot| {
        let mut defs = table.def.indexes.iter();
        let position = defs.position(|def| def.oid == slot.oid)?;
        key.clear();
        table.index_key_of(position, tuple, key);
        let leads = match &slot.index {
            Index::Hash(index) => index.candidates(key_hash(key)).any(|r| r == row),
            Index::BTree(index) => index.rows_equal(key).any(|r| r == row),
        };
        let agrees = leads == table.has_entry(position, key);
        (!agrees).then(|| table.def.indexes[position].name.as_str())
    })
}
