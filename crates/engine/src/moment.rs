//! Places inside background tasks where others may run: what a simulator stops at
//! ([`crate::steps`]), and what the tasks say.

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
