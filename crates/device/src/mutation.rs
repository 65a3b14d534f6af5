//! Mistakes made on purpose, one at a time, to see whether the simulator finds them.
//!
//! Compiled only with the feature `mutations`, which nothing but the simulator's own check
//! asks for (`thermocline-sim mutations`). Without it [`Mutation::is_made`] is the constant
//! false, and what it guards is not compiled into anything.

/// A mistake that a database engine could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mutation {
    /// The log's groups are not synced.
    LogNotSynced = 1,
    /// A group goes into the only sector that has the groups before it.
    LogSectorInPlace,
    /// A new log segment's name is not synced.
    SegmentNameNotSynced,
    /// Commits are acknowledged before their group is written.
    AcknowledgedEarly,
    /// Groups and records of the log are believed without their checksums.
    LogChecksumSkipped,
    /// The block file is not synced before a manifest names its blocks.
    BlocksNotSynced,
    /// The manifest is put in place before what it names is durable.
    ManifestFirst,
    /// Space of dead blocks is used again before the manifest that no longer names them.
    BlocksReleasedEarly,
    /// The log is cut before the manifest that no longer needs it.
    LogTruncatedEarly,
    /// A file of a checkpoint is not synced.
    ImageNotSynced,
    /// A block's id is given to the next block.
    BlockIdReused,
    /// A record of a block is believed without its checksum.
    RecordChecksumSkipped,
    /// A page of a row group is believed without its checksum.
    PageChecksumSkipped,
    /// Compaction forgets to lead one tuple in ten to its new block.
    TombstoneForgotten,
    /// The evictor does not look whether a tuple changed while its block was written.
    EvictedThoughChanged,
    /// A change that moves a tuple frees the old one, which an undo would need.
    OldTupleFreedEarly,
    /// Rows of transactions without a commit record stay after a start.
    UncommittedKept,
    /// Replay does not take rows out of indexes that they leave.
    RemovedKeysIgnored,
    /// Serializable transactions are not validated.
    NotValidated,
    /// A commit does not look again at what foreign keys made it expect.
    NotExpected,
    /// Rows of a table that their transaction made are noted as inserted twice.
    MadeNotedTwice,
    /// Writing a table anew leaves out the rows of a partition.
    PartitionNotRewritten,
    /// Evicted rows are replaced unread though snapshots are open.
    OverwrittenUnseen,
    /// A log that ends before what a checkpoint had made durable is believed.
    LogEndBelieved,
    /// Where no record was written between two starts, a segment of the log is missed.
    StartTakenForGap,
    /// Numbers of sequences are told before the log is durable that keeps them from coming again.
    NumbersToldEarly,
    /// A checkpoint keeps the number of a sequence that was given last, and not how far numbers
    /// are logged ahead.
    NumbersLoggedForgotten,
    /// When a storage gets another definition, layouts that only the one before had are forgotten.
    LayoutsForgotten,
    /// A checkpoint does not keep the definitions of open transactions.
    DraftsForgotten,
    /// Procedures are logged as commands while a checkpoint is taken.
    CommandsDuringCheckpoint,
    /// A backup goes wherever it is told to.
    BackupAnywhere,
    /// A backup does not keep blocks from being overwritten while it copies.
    BackupPinsNothing,
    /// A backup does not keep checkpoints from removing files and log while it copies.
    BackupHoldsNothing,
    /// A backup copies the log up to the checkpoint only.
    BackupWithoutTail,
    /// A checkpoint's Block Table does not say in which tablespace a block lies.
    TablespaceForgotten,
    /// A tablespace is dropped though blocks lie in it.
    TablespaceNotVacated,
    /// Offsets of blocks are computed in 32 bits.
    OffsetsNarrow,
    /// The log's places are compared in 32 bits.
    LsnsNarrow,
    /// A directory that has no number left for a block gives out the last one again.
    BlockNumbersWrap,
    /// What goes back to a savepoint leaves the definitions as they are.
    DefinitionsKept,
    /// A row that comes is not counted.
    RowNotCounted,
    /// A row that goes stays counted.
    GoneRowCounted,
    /// A row that leaves memory is not counted as cold.
    ColdNotCounted,
    /// A row that comes back, or goes, stays counted as cold.
    WarmRowCountedCold,
    /// The policy does not learn that a row has become hot.
    HotRowNotChained,
    /// The policy does not learn that a row has left.
    LeftRowChained,
    /// A tuple that came back forgets where its copy lies.
    CopyForgotten,
    /// A tuple that was copied and stays forgets where its copy lies.
    CopyNotNoted,
    /// A change in place that is undone does not bring the copy back.
    CopyNotTakenBack,
    /// A row whose copy moved is led to the old one.
    MoveNotNoted,
    /// A row that comes into memory loses the mark that it is not committed.
    MarkLostComing,
    /// A row that leaves memory loses the mark that it is not committed.
    MarkLostLeaving,
    /// A row that is committed keeps the mark that it is not.
    MarkKeptAtCommit,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Mutation; 53] = [
        Mutation::LogNotSynced,
        Mutation::LogSectorInPlace,
        Mutation::SegmentNameNotSynced,
        Mutation::AcknowledgedEarly,
        Mutation::LogChecksumSkipped,
        Mutation::BlocksNotSynced,
        Mutation::ManifestFirst,
        Mutation::BlocksReleasedEarly,
        Mutation::LogTruncatedEarly,
        Mutation::ImageNotSynced,
        Mutation::BlockIdReused,
        Mutation::RecordChecksumSkipped,
        Mutation::PageChecksumSkipped,
        Mutation::TombstoneForgotten,
        Mutation::EvictedThoughChanged,
        Mutation::OldTupleFreedEarly,
        Mutation::UncommittedKept,
        Mutation::RemovedKeysIgnored,
        Mutation::NotValidated,
        Mutation::NotExpected,
        Mutation::MadeNotedTwice,
        Mutation::PartitionNotRewritten,
        Mutation::OverwrittenUnseen,
        Mutation::LogEndBelieved,
        Mutation::StartTakenForGap,
        Mutation::NumbersToldEarly,
        Mutation::NumbersLoggedForgotten,
        Mutation::LayoutsForgotten,
        Mutation::DraftsForgotten,
        Mutation::CommandsDuringCheckpoint,
        Mutation::BackupAnywhere,
        Mutation::BackupPinsNothing,
        Mutation::BackupHoldsNothing,
        Mutation::BackupWithoutTail,
        Mutation::TablespaceForgotten,
        Mutation::TablespaceNotVacated,
        Mutation::OffsetsNarrow,
        Mutation::LsnsNarrow,
        Mutation::BlockNumbersWrap,
        Mutation::DefinitionsKept,
        Mutation::RowNotCounted,
        Mutation::GoneRowCounted,
        Mutation::ColdNotCounted,
        Mutation::WarmRowCountedCold,
        Mutation::HotRowNotChained,
        Mutation::LeftRowChained,
        Mutation::CopyForgotten,
        Mutation::CopyNotNoted,
        Mutation::CopyNotTakenBack,
        Mutation::MoveNotNoted,
        Mutation::MarkLostComing,
        Mutation::MarkLostLeaving,
        Mutation::MarkKeptAtCommit,
    ];

    /// Whether this is the mistake to be made now.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub fn is_made(self) -> bool {
        MADE.load(std::sync::atomic::Ordering::Relaxed) == self as u8
    }

    /// Whether this is the mistake to be made now: never.
    #[cfg(not(feature = "mutations"))]
    #[must_use]
    #[inline(always)]
    pub const fn is_made(self) -> bool {
        false
    }

    /// Makes this mistake from now on, in the whole process; `None`: none.
    #[cfg(feature = "mutations")]
    pub fn make(which: Option<Mutation>) {
        let number = which.map_or(0, |mutation| mutation as u8);
        MADE.store(number, std::sync::atomic::Ordering::Relaxed);
    }
}

#[cfg(feature = "mutations")]
static MADE: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);
