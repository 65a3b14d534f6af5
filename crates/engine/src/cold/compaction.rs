//! Compaction: what lives in blocks that are mostly holes is copied into new
//! blocks, without bringing it into memory (004 §3.4, §6.2).
//!
//! Holes are counted, not found: each block knows how many of its records are
//! still some tuple's. A block with none is given up without being read. The
//! emptiest blocks are copied, and only while all of them together live too
//! little: a block that is left alone goes on emptying by itself.
//!
//! Blocks that lie in another tablespace than their table says are copied there, however full they
//! are: so a table moves while it is used, and a crash leaves it somewhere on the way.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use thermocline_device::{AlignedBuffer, Mutation, SECTOR_BYTES, StopPoint, stop_at};
use thermocline_storage::block::each_record;
use thermocline_storage::block_store::{BlockInfo, BlockStoreError, file_named};
use thermocline_storage::row_directory::{ColdAddress, Word};

use crate::catalog::Table;
use crate::catalog::storages::TablesByStorage;
use crate::cold::block_writer::{BlockWriter, buffer_bytes};
use crate::ground::counters::Counters;
use crate::ground::error::Error;
use crate::ground::moment::Moment;
use crate::parts::Parts;
use crate::parts::reserve::SpaceUse;
use crate::policy::Compaction;
use crate::rows::row_state::{LeftPage, TablePartition};

/// What a block's header and the padding of its records may take.
const BLOCK_SLACK: u32 = 8 << 10;
/// It is not worth a copy to win back less than this part of a block, as a divisor.
const HOLES_MIN: u32 = 4;
/// New blocks that one step fills at most.
const GROUPS_A_STEP: usize = 4;
/// Blocks that one look can choose from, the emptiest of all.
const CANDIDATES: usize = 4096;
/// New blocks that one look decides on: about a second's work, or of very many
/// blocks one for so many.
const GROUPS_A_LOOK: usize = 64;
const BLOCKS_A_GROUP: usize = 1024;
/// Blocks that may be looked at for each step: a look takes a millisecond then.
const BLOCKS_A_STEP: usize = 16 << 10;
/// Records whose words are looked at, or swung, in one turn under the lock.
const TURN_RECORDS: usize = 64;

/// A record copied, and where it came from.
struct Moved {
    row: u32,
    from: ColdAddress,
    slot: u16,
    extent: u8,
}

/// A record read, whose tuple ends here among those of its block.
struct Found {
    row: u32,
    slot: u16,
    end: usize,
}

/// Copies live records together.
pub(crate) struct Compactor {
    writer: BlockWriter,
    /// Always the same: memory that comes and goes looks like growth.
    read: AlignedBuffer,
    found: Vec<Found>,
    tuples: Vec<u8>,
    moved: Vec<Moved>,
    /// Blocks that could not be read: left alone, so that the others get their turn.
    damaged: HashSet<u32>,
    /// What the last look chose, the best last.
    groups: Vec<Vec<BlockInfo>>,
    /// Before so many steps there is no look.
    rest: usize,
    left: LeftPage,
}

impl Compactor {
    pub fn new(block_bytes: u32) -> Self {
        Compactor {
            writer: BlockWriter::new(block_bytes, SpaceUse::Compaction),
            read: AlignedBuffer::new_zeroed(buffer_bytes(block_bytes)),
            found: Vec::new(),
            tuples: Vec::new(),
            moved: Vec::new(),
            damaged: HashSet::new(),
            groups: Vec::new(),
            rest: 0,
            left: LeftPage::default(),
        }
    }

    /// Gives up empty blocks. When too small a share of all blocks lives, copies
    /// a few blocks' worth together, where a copied byte gives back the most.
    /// Whether it did anything.
    pub fn step(&mut self, parts: &Parts) -> Result<bool, Error> {
        let mut did = false;
        self.rest = self.rest.saturating_sub(1);
        if self.groups.is_empty() && self.rest == 0 {
            did = self.look(parts);
        }
        for _ in 0..GROUPS_A_STEP {
            let Some(group) = self.groups.pop() else {
                break;
            };
            self.compact(parts, &group)?;
            did = true;
        }
        Ok(did)
    }

    /// Goes over all blocks: gives up the empty ones, and decides which to copy together.
    /// Whether it gave up any.
    fn look(&mut self, parts: &Parts) -> bool {
        let (mut all, mut live) = (0.0, 0.0);
        let (mut empty, mut emptiest) = (Vec::new(), Vec::new());
        let mut misplaced = Vec::new();
        let sizes = BlockSizes::of(parts);
        let belongs = sizes.belongs();
        let left_alone = sizes.left_alone();
        let mut count = 0;
        parts.blocks().each_block(|block| {
            count += 1;
            if block.live_records == 0 {
                empty.push(block.id);
                return;
            }
            if misplaced.len() < CANDIDATES
                && belongs
                    .get(&block.table)
                    .is_some_and(|to| *to != block.tablespace)
                && parts.blocks().volumes().file(block.tablespace).is_ok()
                && !self.damaged.contains(&block.id)
            {
                misplaced.push(block);
                return;
            }
            if left_alone.contains(&block.table) {
                return;
            }
            all += block.device_bytes as f64;
            live += live_bytes(&block);
            if !self.damaged.contains(&block.id) {
                emptiest.push(block);
                if emptiest.len() >= 2 * CANDIDATES {
                    keep_emptiest(&mut emptiest, CANDIDATES);
                }
            }
        });
        for block in &empty {
            parts.give_up_block(*block);
        }
        self.rest = count / BLOCKS_A_STEP;
        if !misplaced.is_empty() {
            let mut groups = groups_of(misplaced, |storage| sizes.room(storage) as f64);
            groups.truncate(GROUPS_A_LOOK.max(count / BLOCKS_A_GROUP));
            self.groups = groups.into_iter().map(|group| group.blocks).collect();
            return !empty.is_empty();
        }
        let wanted = f64::from(parts.policy().compaction_percent) / 100.0;
        if live < all * wanted {
            keep_emptiest(&mut emptiest, CANDIDATES);
            let mut groups = groups_of(emptiest, |storage| sizes.room(storage) as f64);
            groups.retain(|group| {
                let size = sizes.size(group.blocks[0].table);
                group.holes >= f64::from(size / HOLES_MIN)
            });
            groups.sort_by(|a, b| b.gain().total_cmp(&a.gain()));
            groups.truncate(GROUPS_A_LOOK.max(count / BLOCKS_A_GROUP));
            for group in groups {
                if live >= all * wanted {
                    break;
                }
                all -= group.holes;
                self.groups.push(group.blocks);
            }
            self.groups.reverse();
        }
        !empty.is_empty()
    }

    /// Copies what lives in some blocks of one table and partition together, up
    /// to one new block's worth.
    pub(crate) fn compact(&mut self, parts: &Parts, group: &[BlockInfo]) -> Result<(), Error> {
        self.moved.clear();
        let (storage, partition) = (group[0].table, group[0].partition as usize);
        let sizes = BlockSizes::of(parts);
        let Some(table) = sizes.tables.get(&storage) else {
            return Ok(());
        };
        self.writer.begin(parts, table);
        let room = sizes.room(storage);
        let pin = parts.blocks().pin();
        let mut taken = 0u64;
        for block in group {
            let live = live_bytes(block) as u64;
            if taken > 0 && taken + live > room {
                break;
            }
            taken += live;
            if !self.read_block(parts, block) {
                continue;
            }
            if !self.copy_living(parts, partition, block) {
                return Ok(());
            }
        }
        drop(pin);
        parts.pause(Moment::CompactionRead);
        if self.writer.record_count() == 0 {
            return Ok(());
        }
        let (id, written) = self.writer.write(parts, partition, table)?;
        Counters::add(&parts.count().tuples_compacted, self.moved.len() as u64);
        parts.pause(Moment::CompactionWritten);
        stop_at(StopPoint::CompactionCopied);
        self.swing_moved(parts, (storage, partition), id, written);
        Ok(())
    }

    /// Reads a block and checks its records. False: it is gone, or damaged, and is left alone.
    fn read_block(&mut self, parts: &Parts, block: &BlockInfo) -> bool {
        let read = match parts.blocks().read_into(block.id, &mut self.read) {
            // Its table was dropped meanwhile.
            Err(BlockStoreError::UnknownBlock(_)) => return false,
            read => read.map_err(|e| e.to_string()),
        };
        let (found, tuples) = (&mut self.found, &mut self.tuples);
        found.clear();
        tuples.clear();
        let checked = read.and_then(|bytes| {
            let checked = each_record(bytes, block.id, |record| {
                tuples.extend_from_slice(record.payload);
                found.push(Found {
                    row: record.row,
                    slot: record.slot,
                    end: tuples.len(),
                });
            });
            checked.map_err(|e| e.to_string())
        });
        if let Err(what) = checked {
            self.damaged.insert(block.id);
            let (at, of) = (block.offset, parts.storages().name(block.table));
            parts.report(&format!(
                "compaction: {} at byte {at}, block {} of {of}: {what}",
                file_named(block.tablespace),
                block.id
            ));
            return false;
        }
        true
    }

    /// Copies what lives of the block that was read, which the directory says, a few records at a
    /// time. False: the table is gone.
    fn copy_living(&mut self, parts: &Parts, partition: usize, block: &BlockInfo) -> bool {
        let mut begin = 0;
        for some in self.found.chunks(TURN_RECORDS) {
            let state = parts.all_partitions()[partition].lock();
            let Some(rows) = state.tables.rows(block.table) else {
                return false;
            };
            for record in some {
                let tuple = &self.tuples[begin..record.end];
                begin = record.end;
                let word = rows.directory().get(record.row);
                if !is_copy_of(rows, word, block.id, record.slot) {
                    continue;
                }
                if let Some((slot, extent)) = self.writer.try_push(record.row, tuple) {
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
        true
    }

    /// Has the words lead to the copies in the new block, but for tuples that left the old ones.
    fn swing_moved(
        &mut self,
        parts: &Parts,
        (storage, partition): (u32, usize),
        id: u32,
        mut written: u64,
    ) {
        for some in self.moved.chunks(TURN_RECORDS) {
            let mut state = parts.all_partitions()[partition].lock();
            let rows = state.tables.rows_mut(storage);
            let Some(rows) = rows else {
                parts.give_up_block(id);
                return;
            };
            rows.count().bytes_written += std::mem::take(&mut written);
            for moved in some {
                let to = ColdAddress {
                    block: id,
                    slot: moved.slot,
                    extent: moved.extent,
                };
                let forgotten = Mutation::TombstoneForgotten.is_made() && moved.row % 10 == 0;
                if forgotten || swing(rows, moved, to) {
                    parts.blocks().sub_live(moved.from.block, 1);
                    self.left.note(rows, moved.row);
                } else {
                    parts.blocks().sub_live(id, 1);
                }
            }
            drop(state);
            stop_at(StopPoint::CompactionSwing);
        }
    }
}

/// Blocks of a table in a partition, as many as fill a new one.
struct Group {
    blocks: Vec<BlockInfo>,
    /// Bytes of what lives in them, and of the rest.
    live: f64,
    holes: f64,
}

impl Group {
    /// Bytes given back for a byte copied.
    fn gain(&self) -> f64 {
        self.holes / self.live.max(1.0)
    }
}

/// Keeps so many blocks of which the smallest share lives.
fn keep_emptiest(blocks: &mut Vec<BlockInfo>, count: usize) {
    if blocks.len() > count {
        blocks.select_nth_unstable_by(count, emptier);
        blocks.truncate(count);
    }
}

fn emptier(a: &BlockInfo, b: &BlockInfo) -> std::cmp::Ordering {
    let shares = a.live_share().total_cmp(&b.live_share());
    shares.then(a.id.cmp(&b.id))
}

/// Puts blocks of the same table and partition together, emptiest first.
fn groups_of(mut blocks: Vec<BlockInfo>, room: impl Fn(u32) -> f64) -> Vec<Group> {
    let owner = |block: &BlockInfo| (block.table, block.partition);
    blocks.sort_by(|a, b| owner(a).cmp(&owner(b)).then_with(|| emptier(a, b)));
    let mut groups: Vec<Group> = Vec::new();
    for block in blocks {
        let live = live_bytes(&block);
        let holes = block.device_bytes as f64 - live;
        match groups.last_mut() {
            Some(group)
                if owner(&group.blocks[0]) == owner(&block)
                    && group.live + live <= room(block.table) =>
            {
                group.live += live;
                group.holes += holes;
                group.blocks.push(block);
            }
            _ => groups.push(Group {
                blocks: vec![block],
                live,
                holes,
            }),
        }
    }
    groups
}

/// How large the blocks of each table are, as of now.
struct BlockSizes<'a> {
    parts: &'a Parts,
    tables: TablesByStorage,
}

impl<'a> BlockSizes<'a> {
    fn of(parts: &'a Parts) -> Self {
        let tables = parts.tables_by_storage();
        BlockSizes { parts, tables }
    }

    /// The tablespace of each storage, where it takes blocks; nothing where there is only one.
    fn belongs(&self) -> HashMap<u32, u16> {
        let parts = self.parts;
        if parts.blocks().volumes().numbers().is_empty() {
            return HashMap::new();
        }
        let now = parts.clock().now();
        let of = |(storage, table): (&u32, &Arc<Table>)| {
            let number = parts.tablespace_of(table);
            (!parts.tablespaces().refuses(number, now)).then_some((*storage, number))
        };
        self.tables.iter().filter_map(of).collect()
    }

    /// The storages whose blocks are emptied when their rows are asked for.
    fn left_alone(&self) -> HashSet<u32> {
        let tables = self.tables.iter();
        let is_lazy = |table: &Table| {
            !table.is_columns() && self.parts.policy_of(table).compaction == Compaction::Lazy
        };
        let lazy = tables.filter(|(_, table)| is_lazy(table));
        lazy.map(|(storage, _)| *storage).collect()
    }

    /// Bytes of a new block of a storage. Never less than a sector: that is what it takes.
    fn size(&self, storage: u32) -> u32 {
        let table = self.tables.get(&storage);
        let policy = table.map_or(self.parts.policy(), |table| self.parts.policy_of(table));
        policy.block_bytes.max(SECTOR_BYTES as u32)
    }

    /// Bytes of records that a new block is sure to hold.
    fn room(&self, storage: u32) -> u64 {
        let size = self.size(storage);
        u64::from(size - BLOCK_SLACK.min(size / 4))
    }
}

/// Bytes of a block that live, taking its records for equally long.
fn live_bytes(block: &BlockInfo) -> f64 {
    block.live_share() * block.device_bytes as f64
}

/// Whether the record at this place is the copy of a row, which has this word.
fn is_copy_of(rows: &TablePartition, word: Word, block: u32, slot: u16) -> bool {
    let copy = rows.copy_of_row(word);
    copy.is_some_and(|copy| copy.block == block && copy.slot == slot)
}

/// Makes the new copy the row's, if the old one still is.
fn swing(rows: &mut TablePartition, moved: &Moved, to: ColdAddress) -> bool {
    let word = rows.directory().get(moved.row);
    let still_is = is_copy_of(rows, word, moved.from.block, moved.from.slot);
    if still_is {
        rows.move_copy(moved.row, word, to);
    }
    still_is
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(id: u32, partition: u16, live_records: u32) -> BlockInfo {
        BlockInfo {
            id,
            tablespace: 0,
            offset: u64::from(id) << 20,
            device_bytes: 100,
            compressed: false,
            table: 1,
            partition,
            records: 100,
            live_records,
        }
    }

    #[test]
    fn the_emptiest_blocks_are_kept() {
        let shares = (0..1000u32).map(|id| (id * 37) % 100);
        let mut blocks: Vec<BlockInfo> = (0..)
            .zip(shares)
            .map(|(id, live)| block(id, 0, live))
            .collect();
        keep_emptiest(&mut blocks, 50);
        // Ten of each share, so those of the five smallest.
        assert_eq!(blocks.len(), 50);
        assert!(blocks.iter().all(|block| block.live_records < 5));
        keep_emptiest(&mut blocks, 60);
        assert_eq!(blocks.len(), 50);
    }

    #[test]
    fn a_group_fills_a_block_and_is_of_one_partition() {
        let blocks = vec![
            block(1, 0, 60),
            block(2, 1, 10),
            block(3, 0, 20),
            block(4, 0, 30),
            block(5, 0, 50),
        ];
        let groups = groups_of(blocks, |_| 100.0);
        let ids = |group: &Group| group.blocks.iter().map(|b| b.id).collect::<Vec<_>>();
        let ids: Vec<Vec<u32>> = groups.iter().map(ids).collect();
        assert_eq!(ids, [vec![3, 4, 5], vec![1], vec![2]]);
        assert_eq!((groups[0].live, groups[0].holes), (100.0, 200.0));
        assert!(groups[0].gain() > groups[1].gain());
    }
}
