//! What a database is set to. Everything that comes from outside (device,
//! clock) is here, so that a whole database can be run from a seed. Procedures,
//! which are code over all of it, come with [`Config`](crate::Config).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thermocline_device::{Clock, Device, IoEngine, SystemClock};

use crate::ground::listener::RecoveryListener;
use crate::ground::moment::Simulator;
use crate::policy::Policy;

/// The smallest `memory_limit` that the engine works in, in bytes.
pub const MEMORY_LIMIT_MIN: u64 = 64 << 20;
/// The largest number of partitions.
pub const PARTITIONS_MAX: u16 = 1024;

/// A segment has at most this share of the log that calls for a checkpoint, as a divisor, ...
const SEGMENT_SHARE: u64 = 16;
/// ... in units of so many bytes.
const SEGMENT_UNIT: u64 = 1 << 20;

/// What a database is set to, for as long as it is open.
#[derive(Clone)]
pub struct Settings {
    /// Where everything is kept.
    pub device: Arc<dyn Device>,
    /// How the devices of tablespaces are read.
    pub io: IoEngine,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The process's resident memory stays below this, in bytes.
    pub memory_limit: u64,
    /// Partitions: a power of two; 0 chooses eight for each core. A directory keeps
    /// the number it was made with.
    pub partitions: u16,
    /// Before-images that open snapshots need may take so many bytes, then the oldest
    /// snapshot is ended; None: a quarter of the memory limit.
    pub versions_bytes_max: Option<u64>,
    /// Bytes that what one serializable transaction has read may be noted in; beyond it is
    /// noted more coarsely. None: an eighth of its share of memory, at most 8 MB.
    pub reads_bytes_max: Option<usize>,
    /// A checkpoint begins when the log's files have grown by this much, in bytes; they have
    /// at most twice as many.
    pub checkpoint_log_bytes: u64,
    /// Checkpoints begin so early, and hurry so, that a start applies the log in about this time.
    pub recovery_target: Duration,
    /// A checkpoint begins at the latest after this time, if anything changed.
    pub checkpoint_interval: Duration,
    /// Bytes a second that a checkpoint writes at most while statements run; 0
    /// is no limit, None a quarter of what the device writes. It hurries when
    /// the log grows half as long again as calls for a checkpoint, or takes all of the recovery
    /// target to apply.
    pub checkpoint_bytes_per_second: Option<u64>,
    /// Bytes of a log segment file, unless that is much of what calls for a checkpoint.
    pub log_segment_bytes: u64,
    /// Where closed segments of the log are kept for recovery to a point in time;
    /// None: nowhere.
    pub archive: Option<Arc<dyn Device>>,
    /// Below which directories clients may have backups written.
    pub backup_directories: Vec<PathBuf>,
    /// Bytes of the device that are kept for making room when it is full; 0: none.
    pub disk_reserve_bytes: u64,
    /// Bytes that temporary files may take together; None: as many as there is room for.
    pub temp_file_limit: Option<u64>,
    /// Bytes that pages of warm columns may take; None: a thirty-second of the memory limit.
    pub warm_buffer: Option<u64>,
    /// Background threads run (evictor, checkpointer, log writer). Without
    /// them the caller drives the steps itself, as a simulator does.
    pub background: bool,
    /// Threads that read images and apply the log when the database is opened; 0:
    /// one a core, at most eight, and one where there are no background threads.
    pub recovery_threads: usize,
    /// Is told how far opening the database has come.
    pub progress: Option<RecoveryListener>,
    /// The policy; None chooses by the device's profile.
    pub policy: Option<Policy>,
    /// What a simulator puts in the place of threads; goes with `background`
    /// off. See [`crate::database::steps`].
    pub simulator: Option<Arc<dyn Simulator>>,
}

impl Settings {
    /// Defaults over a device.
    pub fn new(device: Arc<dyn Device>) -> Self {
        Settings {
            device,
            io: IoEngine::Auto,
            clock: Arc::new(SystemClock::default()),
            memory_limit: 1 << 30,
            partitions: 0,
            versions_bytes_max: None,
            reads_bytes_max: None,
            checkpoint_log_bytes: 256 << 20,
            recovery_target: Duration::from_secs(1),
            checkpoint_interval: Duration::from_secs(300),
            checkpoint_bytes_per_second: None,
            log_segment_bytes: 64 << 20,
            archive: None,
            backup_directories: Vec::new(),
            disk_reserve_bytes: 0,
            temp_file_limit: None,
            warm_buffer: None,
            background: true,
            recovery_threads: 0,
            progress: None,
            policy: None,
            simulator: None,
        }
    }

    /// Bytes of a segment: of the files that hold the log's tail the first and the last are
    /// needed in part only, and one lies ready.
    pub(crate) fn segment_bytes(&self) -> u64 {
        let share = (self.checkpoint_log_bytes / SEGMENT_SHARE).next_multiple_of(SEGMENT_UNIT);
        self.log_segment_bytes.min(share)
    }
}
