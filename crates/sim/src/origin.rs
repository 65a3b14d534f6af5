//! Rounds that come to the boundaries of numbers and files: they begin right before them, or
//! grow to many times their memory first.

use std::rc::Rc;

use thermocline_device::SECTOR_BYTES;
use thermocline_engine::steps::Origin;
use thermocline_storage::row_directory::limit_block_numbers;

use crate::chance::Chance;
use crate::schema::random_row;
use crate::statement::Op;
use crate::world::World;

/// A round that grows has so many times its memory.
pub const GROWTH: u64 = 20;
/// The least that counts as memory there: a few blocks.
pub const GROWTH_MEMORY_MIN: u64 = 128 << 10;
/// Rows of a statement while the tables grow.
const GROWTH_ROWS: i64 = 40;

/// Somewhat less than a boundary.
fn before(chance: &mut Chance, boundary: u64, most: usize) -> u64 {
    boundary - 1 - chance.below(most) as u64
}

/// Where a round's numbers begin. `large`: its files have more than 4 GiB.
pub fn random(chance: &mut Chance, log_segment_bytes: u64, large: bool) -> Origin {
    let usual = !chance.percent(25) && !large;
    let sector = SECTOR_BYTES as u64;
    let mut origin = Origin::default();
    let segments = chance.below(5) as u64;
    let place = chance.pick(&[1 << 31, 1 << 32, 1 << 32, 1 << 40, 1 << 53, 1 << 63]);
    let lsn = place - segments * log_segment_bytes;
    let block_sector = before(chance, (1 << 32) / sector, 40);
    let block = before(chance, chance.clone().pick(&[1 << 16, 1 << 31]), 60) as u32;
    let arena = chance.pick(&[1 << 32, 1 << 35]) - (chance.below(4) << 22);
    let transaction = before(chance, 1 << 32, 100);
    let checkpoint = before(chance, chance.clone().pick(&[100_000_000, 1 << 32]), 3);
    let oid = before(chance, chance.clone().pick(&[1 << 31, 1 << 32]), 12) as u32;
    let storage = before(chance, 1 << 31, 5) as u32;
    let numbers = chance.pick(&[1, 2, 5, 20, 100]);
    // Not all of them at once: what one of them breaks another might hide.
    let mut has = |percent| chance.percent(percent) && !usual;
    if has(50) || large {
        origin.lsn = lsn;
    }
    if has(50) || large {
        origin.block_sector = block_sector;
    }
    if has(40) {
        origin.block = block;
    }
    if has(30) || large {
        origin.arena_bytes = arena;
    }
    if has(40) {
        origin.transaction = transaction;
    }
    if has(40) {
        origin.checkpoint = checkpoint;
    }
    if has(40) {
        (origin.oid, origin.storage) = (oid, storage);
    }
    limit_block_numbers(has(50).then_some(numbers));
    origin
}

impl World {
    /// Whether the tables are to grow before all else.
    pub fn is_growing(&self) -> bool {
        self.grown.get().1 < self.habits.grows_to && !self.is_over()
    }

    /// A statement that makes a table larger.
    pub fn grow(&self, slot: usize) -> Vec<Op> {
        let shape = self.shape(slot, &Default::default());
        let (first, mut bytes) = self.grown.get();
        let put = |id| {
            let row = self.with_chance(|chance| random_row(chance, &shape, self.ids()));
            bytes += row.v.len() as u64;
            Op::Put(id % self.ids() as i64, Rc::new(row))
        };
        let ops = (first..first + GROWTH_ROWS).map(put).collect();
        self.grown.set((first + GROWTH_ROWS, bytes));
        ops
    }
}
