//! Everything that the papers vary, as values (004 §3, 000 §3–4). Adding a choice touches its
//! enum and the one file that carries it out.

use std::fmt;

use thermocline_device::{DeviceKind, DeviceProfile};

pub use crate::rows::identification::Identification;

/// What becomes of a tuple that was fetched and not changed (000 §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// It becomes hot if it is warm, by what [`Identification::Temperature`]
    /// counts, or memory is not scarce; else it is used where it is.
    Warm,
    /// It becomes hot.
    Always,
    /// It is used where it is and forgotten; only an update makes it hot.
    UpdateOnly,
}

impl Merge {
    /// All of them, by the names that settings use.
    pub const NAMES: [(&str, Merge); 3] = [
        ("warm", Merge::Warm),
        ("always", Merge::Always),
        ("update_only", Merge::UpdateOnly),
    ];
}

/// How a transaction gets an evicted tuple (000 §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retrieval {
    /// Abort-and-restart: the partition goes on while the device reads.
    Restart,
}

/// The set of choices in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// See [`Identification`].
    pub identification: Identification,
    /// See [`Retrieval`].
    pub retrieval: Retrieval,
    /// See [`Merge`].
    pub merge: Merge,
    /// The unit of writing, in bytes; 4 KiB to 1 MiB (004 §5.2, 000 §5.1).
    pub block_bytes: u32,
    /// Blocks are compacted, the emptiest first, while less than this percentage
    /// of all their bytes lives.
    pub compaction_percent: u8,
}

impl Policy {
    /// The default for a device. What the papers saw is not a law here: reads
    /// are of sectors and asynchronous, so large blocks cost reading nothing,
    /// and every device gets them until a measurement says otherwise.
    pub fn for_device(profile: &DeviceProfile) -> Self {
        let merge = match profile.kind {
            DeviceKind::Nvram | DeviceKind::Dram => Merge::UpdateOnly,
            _ => Merge::Warm,
        };
        Policy {
            identification: Identification::Temperature,
            retrieval: Retrieval::Restart,
            merge,
            block_bytes: 1 << 20,
            compaction_percent: 70,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            identification: Identification::Temperature,
            retrieval: Retrieval::Restart,
            merge: Merge::Warm,
            block_bytes: 1 << 20,
            compaction_percent: 70,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (identification, _) = Identification::NAMES
            .into_iter()
            .find(|(_, choice)| *choice == self.identification)
            .unwrap_or(("?", self.identification));
        let (merge, _) = Merge::NAMES
            .into_iter()
            .find(|(_, choice)| *choice == self.merge)
            .unwrap_or(("?", self.merge));
        write!(
            f,
            "identification={identification} retrieval=restart merge={merge} block={} compaction={}%",
            self.block_bytes, self.compaction_percent
        )
    }
}
