//! Compaction: what lives in blocks that are mostly holes is copied into new
//! blocks, without bringing it into memory (design point 8b; 004 §3.4, §6.2).
//!
//! Holes are counted, not found: each block knows how many of its records are
//! still some tuple's. A block with none is given up without being read. The
//! emptiest blocks are copied, and only while all of them together live too
//! little: a block that is left alone goes on emptying by itself.

use hashbrown::HashSet;
use thermocline_device::{AlignedBuffer, Mutation, StopPoint, stop_at};
use thermocline_storage::block::{BlockBuilder, records};
use thermocline_storage::block_store::{BlockInfo, NewBlock};
use thermocline_storage::row_directory::{ColdAddress, Word};

use crate::counters::Counters;
use crate::database::Database;
use crate::error::Error;
use crate::evict::{LeftPage, cold_copy, store_failed};
use crate::partition::TablePartition;
use crate::steps::Moment;

/// What a block's header and the padding of its records may take.
const BLOCK_SLACK: u32 = 8 << 10;
/// It is not worth a copy to win back less than this part of a block, as a divisor.
const HOLES_MIN: u32 = 4;
/// New blocks that one step fills at most.
const GROUPS_A_STEP: usize = 4;
/// Records whose words are looked at, or swung, in one turn under the lock.
const TURN_RECORDS: usize = 64;

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
    left: LeftPage,
}

impl Compactor {
    pub fn new(block_bytes: u32) -> Self {
        Compactor {
            builder: BlockBuilder::new(AlignedBuffer::new_zeroed(block_bytes as usize)),
            moved: Vec::new(),
            damaged: HashSet::new(),
            left: LeftPage::default(),
        }
    }

    /// Gives up empty blocks. When too small a share of all blocks lives, copies
    /// a few blocks' worth together, where a copied byte gives back the most.
    /// Whether it did anything.
    pub fn step(&mut self, db: &Database) -> Result<bool, Error> {
        let mut blocks: Vec<BlockInfo> = db.blocks.blocks();
        let (mut did, mut all, mut live) = (false, 0.0, 0.0);
        blocks.retain(|block| {
            if block.live_records == 0 {
                db.give_up_block(block.id);
                did = true;
                return false;
            }
            all += block.device_bytes as f64;
            live += live_bytes(block);
            !self.damaged.contains(&block.id)
        });
        let wanted = f64::from(db.policy.compaction_percent) / 100.0;
        if live >= all * wanted {
            return Ok(did);
        }
        blocks.sort_by(|a, b| {
            (a.table, a.partition)
                .cmp(&(b.table, b.partition))
                .then(a.live_share().total_cmp(&b.live_share()))
                .then(a.id.cmp(&b.id))
        });
        let room = room_of(db) as f64;
        let mut groups: Vec<Group<'_>> = blocks
            .chunk_by(|a, b| (a.table, a.partition) == (b.table, b.partition))
            .map(|blocks| Group::emptiest(blocks, room))
            .filter(|group| group.holes >= f64::from(db.policy.block_bytes / HOLES_MIN))
            .collect();
        groups.sort_by(|a, b| b.gain().total_cmp(&a.gain()));
        for group in groups.iter().take(GROUPS_A_STEP) {
            if all <= 0.0 || live >= all * wanted {
                break;
            }
            self.compact(db, group.blocks)?;
            all -= group.holes;
            did = true;
        }
        Ok(did)
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
            let live = live_bytes(block) as u64;
            if taken > 0 && taken + live > room_of(db) {
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
            for some in found.chunks_mut(TURN_RECORDS) {
                let state = db.partitions[partition].lock();
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
        db.pause(Moment::CompactionRead);
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
        db.pause(Moment::CompactionWritten);
        stop_at(StopPoint::CompactionCopied);
        for some in self.moved.chunks(TURN_RECORDS) {
            let mut state = db.partitions[partition].lock();
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
                let forgotten = Mutation::TombstoneForgotten.is_made() && moved.row % 10 == 0;
                if forgotten || swing(rows, moved, to) {
                    db.blocks.sub_live(moved.from.block, 1);
                    self.left.note(rows, moved.row);
                } else {
                    db.blocks.sub_live(id, 1);
                }
            }
            drop(state);
            stop_at(StopPoint::CompactionSwing);
        }
        self.builder.clear();
        Ok(())
    }
}

/// The emptiest blocks of a table in a partition, as many as fill a new one.
struct Group<'a> {
    blocks: &'a [BlockInfo],
    /// Bytes of what lives in them, and of the rest.
    live: f64,
    holes: f64,
}

impl<'a> Group<'a> {
    /// Of blocks in order of their live share.
    fn emptiest(blocks: &'a [BlockInfo], room: f64) -> Self {
        let (mut live, mut holes, mut taken) = (0.0, 0.0, 0);
        for block in blocks {
            let lives = live_bytes(block);
            if taken > 0 && live + lives > room {
                break;
            }
            taken += 1;
            live += lives;
            holes += block.device_bytes as f64 - lives;
        }
        Group {
            blocks: &blocks[..taken],
            live,
            holes,
        }
    }

    /// Bytes given back for a byte copied.
    fn gain(&self) -> f64 {
        self.holes / self.live.max(1.0)
    }
}

/// Bytes of records that a new block is sure to hold, whatever its size.
fn room_of(db: &Database) -> u64 {
    let block_bytes = db.policy.block_bytes;
    u64::from(block_bytes - BLOCK_SLACK.min(block_bytes / 4))
}

/// Bytes of a block that live, taking its records for equally long.
fn live_bytes(block: &BlockInfo) -> f64 {
    block.live_share() * block.device_bytes as f64
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
