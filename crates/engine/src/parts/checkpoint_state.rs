//! When checkpoints happen, and what the last one left to the next. How one is made is `checkpoint`'s.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use thermocline_device::Mutation;
use thermocline_storage::log::Lsn;

use crate::format::manifest::PartitionFiles;

/// A record costs as much to apply as so many units, ...
const RECORD_UNITS: u64 = 16;
/// ... and a unit is as much as so many bytes cost.
const BYTES_A_UNIT: u64 = 16;

/// When checkpoints happen, and what the last one was.
#[derive(Debug, Default)]
pub(crate) struct CheckpointState {
    /// One at a time; what the last one left.
    pub running: Mutex<Last>,
    /// How many wait for one; the one under way hurries then.
    pub awaited: AtomicU64,
    pub number: AtomicU64,
    /// Between a partition's cut and the catalog's place in the log a command
    /// would be replayed with a catalog newer than the one it ran with.
    pub no_commands: AtomicBool,
    /// The log when the last one began.
    pub last_log: Mutex<LogPosition>,
    /// What applying a unit of the log took at the last start; 0: not measured.
    pub replay_unit_ns: AtomicU64,
    pub poked: Mutex<bool>,
    pub signal: Condvar,
    /// Bytes of freed blocks that waited still when the last one was done.
    pub last_pending_bytes: AtomicU64,
    pub last_duration_ms: AtomicU64,
    /// Bytes of image files that the last one wrote.
    pub last_image_bytes: AtomicU64,
    /// The longest time that a checkpoint held a partition, in microseconds.
    pub longest_hold_us: AtomicU64,
}

/// How far the log has come, as checkpoints count it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogPosition {
    pub lsn: Lsn,
    /// Bytes of files: what small groups are padded with, too.
    pub file_bytes: u64,
    /// What has to be applied, in units of its cost.
    pub replay_units: u64,
}

/// What it costs to apply so many records with so many bytes: most of a small record's cost
/// is not in its bytes.
pub(crate) fn replay_units(records: u64, bytes: u64) -> u64 {
    records * RECORD_UNITS + bytes / BYTES_A_UNIT
}

/// What a checkpoint leaves to the next one.
#[derive(Debug, Default)]
pub(crate) struct Last {
    pub chains: Vec<Chain>,
    /// When it began; None: there was none since the start.
    pub began: Option<Duration>,
    /// Bytes that it wrote at its pace.
    pub bytes: u64,
}

/// A partition's image as the manifest names it, and what its last frame said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chain {
    pub image: PartitionFiles,
    /// Checksum of the last frame; None: not known since the start.
    pub end: Option<u32>,
}

/// What a checkpoint is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The log has grown, or time has passed: it keeps to its pace.
    Upkeep,
    /// Somebody waits for it.
    Asked,
    /// The last one before the end. It keeps the temperatures as they are.
    Close,
}

impl CheckpointState {
    /// Asks for a checkpoint soon.
    pub fn poke(&self) {
        *self.poked.lock() = true;
        self.signal.notify_one();
    }

    /// Whether procedures may be logged as commands now. Asked under the lock of
    /// the partition that the command is of.
    pub fn allows_commands(&self) -> bool {
        !self.no_commands.load(Ordering::Acquire) || Mutation::CommandsDuringCheckpoint.is_made()
    }

    /// Has procedures logged by values until the guard is dropped.
    pub fn refuse_commands(&self) -> CommandsRefused<'_> {
        self.no_commands.store(true, Ordering::Release);
        CommandsRefused(&self.no_commands)
    }

    /// Waits for a poke, at most this long. Whether there was one.
    pub fn wait(&self, at_most: Duration) -> bool {
        let mut poked = self.poked.lock();
        if !*poked {
            self.signal.wait_for(&mut poked, at_most);
        }
        std::mem::take(&mut *poked)
    }
}

/// See [`CheckpointState::refuse_commands`].
pub(crate) struct CommandsRefused<'a>(&'a AtomicBool);

impl Drop for CommandsRefused<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
