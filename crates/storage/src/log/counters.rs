//! What the log counts of itself. Guarantees: monotonic, cheap, never wrong by
//! more than the group being written. Assumes nothing, loses all at a restart.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Buckets of the histogram of group sizes.
pub const GROUP_BUCKETS: usize = 32;

/// The live counters of a log.
#[derive(Default)]
pub(super) struct LogCounters {
    written_bytes: AtomicU64,
    flushes: AtomicU64,
    records: AtomicU64,
    record_bytes: AtomicU64,
    rotations: AtomicU64,
    write_ns: AtomicU64,
    sync_ns: AtomicU64,
    group_records: [AtomicU64; GROUP_BUCKETS],
}

/// A reading of a log's counters since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LogStatistics {
    /// Bytes written to the device, headers and padding included.
    pub written_bytes: u64,
    /// Groups written and synced.
    pub flushes: u64,
    /// Records made durable.
    pub records: u64,
    /// Bytes of those records with their headers.
    pub record_bytes: u64,
    /// Segments begun.
    pub rotations: u64,
    /// Time spent in writes.
    pub write_time: Duration,
    /// Time spent in fdatasync.
    pub sync_time: Duration,
    /// Groups by their number of records: bucket b counts 2^b up to 2^(b+1).
    pub group_records: [u64; GROUP_BUCKETS],
}

impl LogCounters {
    pub fn rotated(&self) {
        self.rotations.fetch_add(1, Relaxed);
    }

    pub fn flushed(&self, records: u64, record_bytes: u64, device_bytes: u64) {
        self.flushes.fetch_add(1, Relaxed);
        self.records.fetch_add(records, Relaxed);
        self.record_bytes.fetch_add(record_bytes, Relaxed);
        self.written_bytes.fetch_add(device_bytes, Relaxed);
        let bucket = (records.max(1).ilog2() as usize).min(GROUP_BUCKETS - 1);
        self.group_records[bucket].fetch_add(1, Relaxed);
    }

    pub fn spent(&self, write: Duration, sync: Duration) {
        self.write_ns.fetch_add(write.as_nanos() as u64, Relaxed);
        self.sync_ns.fetch_add(sync.as_nanos() as u64, Relaxed);
    }

    pub fn snapshot(&self) -> LogStatistics {
        LogStatistics {
            written_bytes: self.written_bytes.load(Relaxed),
            flushes: self.flushes.load(Relaxed),
            records: self.records.load(Relaxed),
            record_bytes: self.record_bytes.load(Relaxed),
            rotations: self.rotations.load(Relaxed),
            write_time: Duration::from_nanos(self.write_ns.load(Relaxed)),
            sync_time: Duration::from_nanos(self.sync_ns.load(Relaxed)),
            group_records: std::array::from_fn(|b| self.group_records[b].load(Relaxed)),
        }
    }
}
