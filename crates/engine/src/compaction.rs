//! Compaction: what lives in blocks that are mostly holes is copied into new
//! blocks, without bringing it into memory (design point 8b; 004 §3.4, §6.2).
//!
//! Holes are counted, not found: each block knows how many of its records are
//! still some tuple's. A block with none is given up without being read.

use hashbrown::HashSet;
use thermocline_device::AlignedBuffer;
use thermocline_storage::block::{BlockBuilder, records};
use thermocline_storage::block_store::{BlockInfo, NewBlock};
use thermocline_storage::row_directory::{ColdAddress, Word};

use crate::counters::Counters;
use crate::database::Database;
use crate::error::Error;
use crate::evict::{cold_copy, store_failed};
use crate::partition::TablePartition;

/// A record copied, and where it came from.
struct Moved {
    row: u32,
    from: ColdAddress,
    slot: u16,
    extent: u8,
}

/// Copies live records together.
pub(crate) struct Compactor {
    builder: BlockBuilder,
    moved: Vec<Moved>,
    /// Blocks that could not be read: left alone, so that the others get their turn.
    damaged: HashSet<u32>,
}

impl Compactor {
    pub fn new(block_bytes: u32) -> Self {
        Compactor {
            builder: BlockBuilder::new(AlignedBuffer::new_zeroed(block_bytes as usize)),
            moved: Vec::new(),
            damaged: HashSet::new(),
        }
    }

    /// Gives up empty blocks and compacts up to one new block's worth of
    /// sparse ones. Whether it did anything.
    pub fn step(&mut self, db: &Database) -> Result<bool, Error> {
        let mut sparse: Vec<BlockInfo> = Vec::new();
        let mut did = false;
        for block in db.blocks.blocks() {
            if block.live_records == 0 {
                db.give_up_block(block.id);
                did = true;
            } else if block.live_share() * 100.0 < f64::from(db.policy.compaction_percent)
                && !self.damaged.contains(&block.id)
            {
                sparse.push(block);
            }
        }
        // The table and partition with the most to gain; a lone sparse block
        // is worth copying too, once most of it is holes.
        sparse.sort_by(|a, b| {
            (a.table, a.partition)
                .cmp(&(b.table, b.partition))
                .then(a.live_share().total_cmp(&b.live_share()))
        });
        let Some(group) = sparse
            .chunk_by(|a, b| (a.table, a.partition) == (b.table, b.partition))
            .max_by(|a, b| holes(a).total_cmp(&holes(b)))
        else {
            return Ok(did);
        };
        if holes(group) < (1 << 19) as f64 {
            return Ok(did);
        }
        self.compact(db, group)?;
        Ok(true)
    }

    /// Copies what lives in some blocks of one table and partition together, up
    /// to one new block's worth.
    pub(crate) fn compact(&mut self, db: &Database, group: &[BlockInfo]) -> Result<(), Error> {
        self.builder.clear();
        self.moved.clear();
        let (storage, partition) = (group[0].table, group[0].partition as usize);
        let pin = db.blocks.pin();
        let mut taken = 0u64;
        for block in group {
            let live = (block.live_share() * block.device_bytes as f64) as u64;
            if taken > 0 && taken + live > u64::from(db.policy.block_bytes) - 8192 {
                break;
            }
            taken += live;
            let read = db.blocks.read(block.id).map_err(|e| e.to_string());
            let found = read.as_ref().map_err(Clone::clone).and_then(|bytes| {
                let found = records(bytes, block.id);
                let found = found.and_then(|(_, found)| found.collect::<Result<Vec<_>, _>>());
                found.map_err(|e| e.to_string())
            });
            let mut found = match found {
                Ok(found) => found,
                Err(what) => {
                    self.damaged.insert(block.id);
                    let (at, of) = (block.offset, db.storages.name(storage));
                    db.report(&format!(
                        "compaction: blocks at byte {at}, block {} of {of}: {what}",
                        block.id
                    ));
                    continue;
                }
            };
            // Which of them live is decided by the directory, a few at a time.
            for some in found.chunks_mut(512) {
                let state = db.partitions[partition].state.lock();
                let Some(rows) = state.tables.get(&storage) else {
                    return Ok(());
                };
                for record in some {
                    if !is_copy_of(rows, record.row, block.id, record.slot) {
                        continue;
                    }
                    let pushed = self
                        .builder
                        .try_push(record.row, record.payload, record.flags);
                    if let Some((slot, extent)) = pushed {
                        self.moved.push(Moved {
                            row: record.row,
                            from: ColdAddress {
                                block: block.id,
                                slot: record.slot,
                                extent: 0,
                            },
                            slot,
                            extent,
                        });
                    }
                }
            }
        }
        drop(pin);
        if self.builder.record_count() == 0 {
            return Ok(());
        }
        let (id, _) = db
            .blocks
            .allocate(NewBlock {
                device_bytes: self.builder.device_bytes(),
                records: self.builder.record_count(),
                table: storage,
                partition: partition as u16,
            })
            .map_err(store_failed)?;
        let bytes = self
            .builder
            .finish(id, storage, partition as u16, db.log.appended_lsn());
        Counters::add(&db.counters.block_bytes_written, bytes.len() as u64);
        if let Err(error) = db.blocks.write(id, bytes) {
            db.give_up_block(id);
            return Err(store_failed(error));
        }
        Counters::add(&db.counters.tuples_compacted, self.moved.len() as u64);
        for some in self.moved.chunks(512) {
            let mut state = db.partitions[partition].state.lock();
            let rows = state.tables.get_mut(&storage);
            let Some(rows) = rows else {
                db.give_up_block(id);
                return Ok(());
            };
            for moved in some {
                let to = ColdAddress {
                    block: id,
                    slot: moved.slot,
                    extent: moved.extent,
                };
                if swing(rows, moved, to) {
                    db.blocks.sub_live(moved.from.block, 1);
                } else {
                    db.blocks.sub_live(id, 1);
                }
            }
        }
        self.builder.clear();
        Ok(())
    }
}

/// Bytes of holes in blocks.
fn holes(blocks: &[BlockInfo]) -> f64 {
    blocks
        .iter()
        .map(|b| (1.0 - b.live_share()) * b.device_bytes as f64)
        .sum()
}

/// Whether the record at this place is the row's cold copy.
fn is_copy_of(rows: &TablePartition, row: u32, block: u32, slot: u16) -> bool {
    let word = rows.directory.get(row);
    let address = match (word.as_cold(), word.as_hot()) {
        (Some(cold), _) => Some(cold.address()),
        (_, Some(hot)) => cold_copy(rows.heap.cold(hot.pointer())),
        _ => None,
    };
    address.is_some_and(|a| a.block == block && a.slot == slot)
}

/// Makes the new copy the row's, if the old one still is.
fn swing(rows: &mut TablePartition, moved: &Moved, to: ColdAddress) -> bool {
    if !is_copy_of(rows, moved.row, moved.from.block, moved.from.slot) {
        return false;
    }
    let word: Word = rows.directory.get(moved.row);
    if let Some(cold) = word.as_cold() {
        rows.directory.set(moved.row, cold.with_address(to));
    } else if let Some(hot) = word.as_hot() {
        rows.heap.set_cold(hot.pointer(), to.to_word());
        rows.directory.mark_changed(moved.row);
    }
    true
}
