//! The write-ahead log (design 4a): one endless stream of records, made durable
//! in groups, kept in segment files.
//!
//! Guarantees: a record whose `wait_durable` returned `Ok` is found again after
//! any crash, together with each record before it; what is found beyond that is
//! a prefix of what was appended. A write or fsync that fails stops the log for
//! good and is never tried again. A full device refuses new records while all
//! accepted ones still fit, and heals by itself when there is space.
//! Assumes: a sector that was synced stays as it is until it is written again.
//! Survives: torn, lost and reordered unsynced writes; a crash at any call to
//! the device, in recovery too. Corruption before the end of the log is told
//! from a torn end, and reported with file and offset.

mod append;
mod copy;
mod counters;
mod place;
mod reader;
mod segment;
mod segments;
mod stream;
mod wait;
mod window;
mod writer;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use thermocline_device::Clock;

pub use append::Log;
pub use copy::{
    ClosedSegment, Copied, CopyUntil, UNFINISHED_SEGMENT, archive_segment, copy_log, is_segment_of,
};
pub use counters::{GROUP_BUCKETS, LogStatistics};
pub use reader::{LogRecord, LogTail, read_tail};
pub use segment::{FIRST_LSN, Lsn, RECORD_BYTES_MAX, RECORD_HEADER_BYTES};
pub use stream::LogStream;
pub use wait::{Room, WaitDurable};
pub use writer::Step;

/// Whether a file of this name is a log's segment.
pub fn is_segment(name: &str) -> bool {
    segment::parse_segment_name(name).is_some()
}

/// The name of the segment whose first record is at `first`.
pub fn name_of_segment(first: Lsn) -> String {
    segment::segment_name(first)
}

/// How a log is kept.
#[derive(Clone)]
pub struct LogOptions {
    /// The database the log belongs to; segments of another are refused.
    pub database: u128,
    /// Bytes of a segment file, a multiple of the sector.
    pub segment_bytes: u64,
    /// Gathered bytes above which `has_room` says no.
    pub buffer_bytes: usize,
    /// How long a record stays unwritten when nobody waits for it.
    pub flush_interval: Duration,
    /// How often a full device is asked again for space.
    pub retry_interval: Duration,
    /// Segments kept for reuse, at least and at most; between them as many as are
    /// given up at a time. Writing to blocks that are already allocated spares the
    /// file system's own journal.
    pub spare_segments: RangeInclusive<usize>,
    /// No spare is kept with which the files would have more bytes.
    pub files_bytes_max: u64,
    /// The log is known to have been durable up to here: one that ends before is damaged.
    pub reaches: Lsn,
    /// A log that is continued goes on here, unless it has come further.
    pub goes_on_at: Lsn,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
}

impl LogOptions {
    /// The defaults: 64 MiB segments, a 4 MiB buffer, 10 ms to a lazy flush.
    pub fn new(database: u128, clock: Arc<dyn Clock>) -> Self {
        Self {
            database,
            segment_bytes: 64 << 20,
            buffer_bytes: 4 << 20,
            flush_interval: Duration::from_millis(10),
            retry_interval: Duration::from_millis(100),
            spare_segments: 4..=32,
            files_bytes_max: u64::MAX,
            reaches: 0,
            goes_on_at: 0,
            clock,
        }
    }
}

/// Why a log can't be opened, read or truncated.
#[derive(Debug)]
pub enum LogError {
    /// The device failed.
    Io {
        /// The file, and what was done to it.
        doing: String,
        /// What the device said.
        source: io::Error,
    },
    /// Something before the end of the log is not what was written.
    Corrupt {
        /// The segment.
        file: String,
        /// Bytes from its start.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// No segment holds this LSN.
    Missing {
        /// The LSN that was asked for.
        lsn: Lsn,
    },
    /// The log ends before what is known to have been durable.
    EndsEarly {
        /// The last segment that is there.
        file: String,
        /// Where it ends.
        end: Lsn,
        /// Up to where the log was durable.
        reaches: Lsn,
    },
}

impl LogError {
    fn io(file: &str, doing: &str) -> impl FnOnce(io::Error) -> Self {
        let doing = format!("{file}: {doing}");
        move |source| Self::Io { doing, source }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, source } => write!(f, "log: {doing}: {source}"),
            Self::Corrupt { file, offset, what } => {
                write!(f, "log is corrupt: {file} at byte {offset}: {what}")
            }
            Self::Missing { lsn } => {
                write!(
                    f,
                    "log is incomplete: no file log-* holds LSN {lsn}, one is missing"
                )
            }
            Self::EndsEarly { file, end, reaches } => write!(
                f,
                "log is incomplete: {file} ends at LSN {end}, and the last checkpoint had it \
                 durable up to LSN {reaches}: the file was cut short, or one after it is missing"
            ),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Corrupt { .. } | Self::Missing { .. } | Self::EndsEarly { .. } => None,
        }
    }
}

/// Why a record is refused, or can't be made durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogFailed {
    /// A write or an fsync failed; the log takes nothing more.
    Failed(Arc<str>),
    /// There is no space on the device for it, for now.
    StorageFull,
    /// The record, or what is gathered, would pass a limit of the format.
    TooLarge,
}

impl LogFailed {
    /// PostgreSQL's code for it.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Failed(_) => "58030",
            Self::StorageFull => "53100",
            Self::TooLarge => "54000",
        }
    }
}

impl fmt::Display for LogFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => write!(f, "the log has failed: {why}"),
            Self::StorageFull => f.write_str("no space left for the log"),
            Self::TooLarge => f.write_str("log record is too large"),
        }
    }
}

impl std::error::Error for LogFailed {}
