//! Places inside background tasks where others may run, and the simulator that is told of them
//! ([`crate::database::steps`]).

use thermocline_storage::block_store::BlockStoreOptions;

/// A place inside a background task where others may run: no lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Tuples were copied into a block that is not written yet.
    BlockCopied,
    /// The block is written; its tuples' words are as before.
    BlockWritten,
    /// Compaction knows what it will move, and has written nothing.
    CompactionRead,
    /// The new block is written, the words lead to the old ones.
    CompactionWritten,
    /// A checkpoint has copied some pages of a partition ahead of its cut.
    PagesCopied,
    /// A partition's image is written.
    PartitionWritten,
    /// All but the manifest is written and synced.
    BlockTableWritten,
    /// The manifest is in force; what it makes superfluous is still there.
    ManifestWritten,
}

/// Who runs other things at a [`Moment`].
pub trait Simulator: Send + Sync {
    /// Others may run now. Must not run the step that it is called from.
    fn pause(&self, moment: Moment);

    /// Whether a start leaves it to the simulator to bring the partitions ([`crate::database::steps::Steps::load`]).
    /// Otherwise all are there when the database is open.
    fn brings_partitions(&self) -> bool {
        false
    }

    /// Where what only grows begins; the same at each start.
    fn origin(&self) -> Origin {
        Origin::default()
    }
}

/// Where what only grows begins, so that a simulator comes to the boundaries of its numbers at
/// once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// The log goes on here from the second start on, unless it has come further.
    pub lsn: u64,
    /// The sector of the blocks' file that the first block may have.
    pub block_sector: u64,
    /// The first block's id.
    pub block: u32,
    /// Bytes of the arena's addresses that nobody gets.
    pub arena_bytes: usize,
    /// The last transaction's number.
    pub transaction: u64,
    /// The last checkpoint's number.
    pub checkpoint: u64,
    /// The next object id, in a new directory.
    pub oid: u32,
    /// The next storage's number.
    pub storage: u32,
}

impl Origin {
    /// Where a database begins.
    pub(crate) fn of(simulator: Option<&dyn Simulator>) -> Origin {
        simulator.map_or(Origin::default(), Simulator::origin)
    }

    pub(crate) fn blocks(&self, database: u128) -> BlockStoreOptions {
        let usual = BlockStoreOptions::new(database);
        BlockStoreOptions {
            first_sector: self.block_sector.max(usual.first_sector),
            first_id: self.block.max(usual.first_id),
            ..usual
        }
    }
}
