//! Everything that the papers vary, as values (004 §3, 000 §3–4): what a server is set to
//! ([`Policy`]), and what a table says for itself ([`table_policy`]), which rows leave memory next ([`identification`]). Adding a choice
//! touches its enum and the one file that carries it out.

use std::fmt;

pub mod book;
pub mod identification;
mod share;
pub mod table_policy;

use thermocline_device::{DeviceKind, DeviceProfile};

pub use identification::Identification;
use identification::{Order, Samples};
pub use share::Share;

/// The smallest and the largest block, in bytes. A record begins in its block's first
/// mebibyte, so that larger ones would not be filled.
pub const BLOCK_BYTES_MIN: u32 = 1 << 10;
/// See [`BLOCK_BYTES_MIN`].
pub const BLOCK_BYTES_MAX: u32 = 1 << 20;

/// What becomes of a tuple that was fetched and not changed (000 §4.2). One that is changed
/// becomes hot in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// It becomes hot if it is warm, by what [`Identification::Temperature`]
    /// counts, or memory is not scarce; else it is used where it is.
    Warm,
    /// It becomes hot.
    Always,
    /// It is used where it is and forgotten; only an update makes it hot.
    UpdateOnly,
    /// It becomes hot if it belongs to this share of the evicted tuples that are asked for, those
    /// asked for most (000 §5.2).
    Top(Share),
}

impl Merge {
    /// Those without a share, by the names that settings use.
    pub const NAMES: [(&str, Merge); 3] = [
        ("warm", Merge::Warm),
        ("always", Merge::Always),
        ("update_only", Merge::UpdateOnly),
    ];

    /// By its name: one of [`Self::NAMES`], or `top(5%)`.
    #[must_use]
    pub fn named(name: &str) -> Option<Merge> {
        if let Some(merge) = named(&Merge::NAMES, name) {
            return Some(merge);
        }
        let percent = name.trim().strip_prefix("top")?.trim_start();
        let percent = percent.strip_prefix('(')?.strip_suffix(')')?;
        let percent = percent.trim().trim_end_matches('%');
        Share::read(percent, 100.0).map(Merge::Top)
    }
}

/// How a transaction gets an evicted tuple (000 §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retrieval {
    /// Abort-and-restart: the partition goes on while the device reads.
    Restart,
    /// Synchronous retrieval: the partition is held while the device reads, and the
    /// transaction goes on.
    Sync,
}

impl Retrieval {
    /// All of them, by the names that settings use.
    pub const NAMES: [(&str, Retrieval); 2] =
        [("restart", Retrieval::Restart), ("sync", Retrieval::Sync)];
}

/// What is read of the device for an evicted tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadUnit {
    /// The sectors that it lies in.
    Sectors,
    /// The block that it lies in, as in the papers.
    Block,
}

impl ReadUnit {
    /// All of them, by the names that settings use.
    pub const NAMES: [(&str, ReadUnit); 2] =
        [("sectors", ReadUnit::Sectors), ("block", ReadUnit::Block)];
}

/// How an evicted tuple is got at (000 §4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColdAccess {
    /// By reads of the device.
    Block,
    /// Where it lies, as memory: without a request to the device, and without a restart.
    Byte,
}

impl ColdAccess {
    /// All of them, by the names that settings use.
    pub const NAMES: [(&str, ColdAccess); 2] =
        [("block", ColdAccess::Block), ("byte", ColdAccess::Byte)];
}

/// What becomes hot when a fetched tuple does (004 §3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeUnit {
    /// The tuple.
    Tuple,
    /// All that lives in its block, which is read as a whole and then given up.
    Block,
}

impl MergeUnit {
    /// All of them, by the names that settings use.
    pub const NAMES: [(&str, MergeUnit); 2] =
        [("tuple", MergeUnit::Tuple), ("block", MergeUnit::Block)];
}

/// How the tuples of a block are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As they are.
    None,
    /// By LZ4, those of a sector together ([`thermocline_storage::block::BlockKind::Compressed`]).
    Lz4,
}

impl Compression {
    /// All of them, by the names that settings use.
    pub const NAMES: [(&str, Compression); 2] =
        [("none", Compression::None), ("lz4", Compression::Lz4)];
}

/// When what lives in a block with many holes is taken out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compaction {
    /// By a thread of its own, when too little of all blocks lives.
    Background,
    /// When a tuple of the block is asked for: all that lives there becomes hot (004 §5.1).
    Lazy,
}

impl Compaction {
    /// All of them, by the names that settings use.
    pub const NAMES: [(&str, Compaction); 2] = [
        ("background", Compaction::Background),
        ("lazy", Compaction::Lazy),
    ];
}

/// Whether a fetched tuple's block is read as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whole {
    No,
    Yes,
    /// If a smaller share of its records lives.
    Below(Share),
}

impl Whole {
    /// With this share of a block's records alive.
    pub fn holds(self, live_share: f64) -> bool {
        match self {
            Whole::No => false,
            Whole::Yes => true,
            Whole::Below(share) => live_share * 1e6 < f64::from(share.millionths()),
        }
    }
}

/// When tuples leave memory (004 §3.2, 000 §3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// When the process comes near its limit.
    Threshold,
    /// When somebody says so.
    Manual,
}

impl Timing {
    /// All of them, by the names that settings use.
    pub const NAMES: [(&str, Timing); 2] =
        [("threshold", Timing::Threshold), ("manual", Timing::Manual)];
}

/// The set of choices in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// See [`Identification`].
    pub identification: Identification,
    /// Of [`Identification::ALru`]: the share of transactions that count.
    pub alru_sample: Share,
    /// Of [`Identification::Offline`]: the share of uses that are logged.
    pub offline_sample: Share,
    /// See [`Timing`].
    pub timing: Timing,
    /// See [`Retrieval`].
    pub retrieval: Retrieval,
    /// See [`ReadUnit`].
    pub read_unit: ReadUnit,
    /// See [`ColdAccess`]. By the byte, what lies in a file that cannot be seen as memory is
    /// read by block all the same.
    pub access: ColdAccess,
    /// See [`Merge`].
    pub merge: Merge,
    /// See [`MergeUnit`].
    pub merge_unit: MergeUnit,
    /// The unit of writing, in bytes; [`BLOCK_BYTES_MIN`] to [`BLOCK_BYTES_MAX`]
    /// (004 §5.2, 000 §5.1). Below a sector it is padded to it.
    pub block_bytes: u32,
    /// See [`Compression`]. Of tables of columns, whose blocks are encoded anyway, it means nothing.
    pub compression: Compression,
    /// See [`Compaction`].
    pub compaction: Compaction,
    /// Of [`Compaction::Lazy`]: the share of a block's records below which it is given up.
    pub fill_factor: Share,
    /// Blocks are compacted, the emptiest first, while less than this percentage
    /// of all their bytes lives.
    pub compaction_percent: u8,
}

impl Policy {
    /// The default for a device. What the papers saw is not a law here: reads
    /// are of sectors, so large blocks cost reading nothing, and every device gets them. Where a
    /// read takes less than to run again, the partition is held meanwhile.
    pub fn for_device(profile: &DeviceProfile) -> Self {
        let (retrieval, merge) = match profile.kind {
            DeviceKind::Nvram | DeviceKind::Dram => (Retrieval::Sync, Merge::UpdateOnly),
            DeviceKind::Xpoint => (Retrieval::Sync, Merge::Warm),
            _ => (Retrieval::Restart, Merge::Warm),
        };
        Policy {
            retrieval,
            merge,
            ..Policy::default()
        }
    }

    /// The papers' default for any device (000, Table 1): large blocks, read as a whole,
    /// abort-and-restart, all that is fetched becomes hot.
    #[must_use]
    pub fn generic() -> Self {
        Policy {
            identification: Identification::ALru,
            read_unit: ReadUnit::Block,
            merge: Merge::Always,
            ..Policy::default()
        }
    }

    /// What the papers found best for a device (000, Table 1). They give no block for NVRAM, which
    /// they use by the byte: it is written by 4 KB.
    #[must_use]
    pub fn of_papers(profile: &DeviceProfile) -> Self {
        const TOP: Share = Share::fixed(50_000);
        let block_bytes = match profile.kind {
            DeviceKind::Generic | DeviceKind::Dram => return Policy::generic(),
            DeviceKind::Hdd | DeviceKind::Smr => 16 << 10,
            DeviceKind::Ssd | DeviceKind::Xpoint | DeviceKind::Nvram => 4 << 10,
        };
        Policy {
            retrieval: Retrieval::Sync,
            access: match profile.kind {
                DeviceKind::Nvram => ColdAccess::Byte,
                _ => ColdAccess::Block,
            },
            merge: Merge::Top(TOP),
            block_bytes,
            ..Policy::generic()
        }
    }

    /// Whether any tuple leaves memory.
    #[must_use]
    pub fn may_leave(&self) -> bool {
        self.identification != Identification::Off
    }

    /// Whether tuples leave memory when it becomes scarce.
    #[must_use]
    pub fn leaves_by_itself(&self) -> bool {
        self.may_leave() && self.timing == Timing::Threshold
    }

    /// Whether a fetched tuple's block is read as a whole. By the byte, only what is to become
    /// hot as a whole is.
    pub(crate) fn reads_whole(&self) -> Whole {
        let by_block = self.access == ColdAccess::Block && self.read_unit == ReadUnit::Block;
        let always = by_block || self.merge_unit == MergeUnit::Block;
        match self.compaction {
            _ if always => Whole::Yes,
            Compaction::Lazy => Whole::Below(self.fill_factor),
            Compaction::Background => Whole::No,
        }
    }

    /// Whether all that lives in a block becomes hot with a tuple of it, where this share of its
    /// records lives.
    pub(crate) fn empties(&self, live_share: impl FnOnce() -> f64) -> bool {
        self.compaction == Compaction::Lazy && Whole::Below(self.fill_factor).holds(live_share())
    }
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            identification: Identification::Temperature,
            alru_sample: Share::fixed(10_000),
            offline_sample: Share::fixed(100_000),
            timing: Timing::Threshold,
            retrieval: Retrieval::Restart,
            read_unit: ReadUnit::Sectors,
            access: ColdAccess::Block,
            merge: Merge::Warm,
            merge_unit: MergeUnit::Tuple,
            block_bytes: 1 << 20,
            compression: Compression::None,
            compaction: Compaction::Background,
            fill_factor: Share::fixed(500_000),
            compaction_percent: 70,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "identification={} retrieval={} merge={} block={} compaction={}%",
            self.identification,
            self.retrieval,
            self.merge,
            self.block_bytes,
            self.compaction_percent
        )
    }
}

/// What is read from an option's text.
pub(super) trait Choice: Sized {
    /// None: there is no such choice.
    fn read(text: &str) -> Option<Self>;
}

/// What a list of names calls a choice.
fn name_of<T: PartialEq + Copy>(names: &[(&'static str, T)], choice: T) -> &'static str {
    let found = names.iter().find(|(_, named)| *named == choice);
    found.map_or("?", |(name, _)| name)
}

/// The choice of this name.
fn named<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    let found = names.iter().find(|(known, _)| *known == name);
    found.map(|(_, choice)| *choice)
}

/// Each is shown by its name, and read by it.
macro_rules! named_choices {
    ($($choice:ty),*) => {$(
        impl fmt::Display for $choice {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(name_of(&Self::NAMES, *self))
            }
        }

        impl Choice for $choice {
            fn read(text: &str) -> Option<Self> {
                named(&Self::NAMES, text)
            }
        }
    )*};
}

named_choices!(
    Identification,
    Retrieval,
    ReadUnit,
    ColdAccess,
    MergeUnit,
    Compression,
    Timing,
    Compaction
);

impl fmt::Display for Merge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Merge::Top(share) => write!(f, "top({}%)", f64::from(share.millionths()) / 1e4),
            plain => f.write_str(name_of(&Self::NAMES, *plain)),
        }
    }
}

impl Choice for Merge {
    fn read(text: &str) -> Option<Self> {
        Merge::named(text)
    }
}

impl Choice for Share {
    fn read(text: &str) -> Option<Self> {
        Share::read(text, 1.0)
    }
}

impl Policy {
    fn samples(&self) -> Samples {
        Samples {
            alru: self.alru_sample,
            offline: self.offline_sample,
        }
    }

    /// The order of no rows, by this policy.
    #[must_use]
    pub fn order(&self) -> Order {
        self.identification.order(self.samples())
    }

    /// Whether another's order of rows can serve.
    #[must_use]
    pub fn has_order_of(&self, other: &Policy) -> bool {
        let sample = |policy: &Policy| self.identification.sample(policy.samples());
        self.identification == other.identification && sample(self) == sample(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_is_read_by_the_name_that_it_is_shown_by() {
        let all = Merge::NAMES.map(|(_, merge)| merge);
        let top = Share::of_millionths(25_000).map(Merge::Top);
        for merge in all.into_iter().chain(top) {
            assert_eq!(Merge::named(&merge.to_string()), Some(merge), "{merge}");
        }
        assert_eq!(Merge::named("top(5)"), Merge::named("top ( 5 % )"));
        for wrong in [
            "top(0%)",
            "top(101%)",
            "top",
            "top(-1%)",
            "top(x)",
            "Warm",
            "",
        ] {
            assert_eq!(Merge::named(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_share_is_of_something_and_not_of_more_than_all() {
        for wrong in ["0", "2", "-0.1", "NaN", "inf", "1.000001", "0.0000001", "x"] {
            assert_eq!(Share::read(wrong, 1.0), None, "{wrong}");
        }
        assert_eq!(Share::read("1", 1.0), Some(Share::WHOLE));
        assert_eq!(
            Share::read(" 0.01", 1.0).map(|share| share.of(1000)),
            Some(10)
        );
        assert_eq!(Share::WHOLE.of(u64::MAX), u64::MAX);
    }
}
