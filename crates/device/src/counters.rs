//! What a device did: counts, bytes and latencies, as relaxed atomics.
//!
//! Counters only grow (`in_flight` and `outstanding` are gauges); a snapshot is not one instant, but
//! each number in it is a true one. Latencies fall into buckets by powers of two of a
//! microsecond, so a quantile is an estimate: right to within its bucket.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::outstanding::{Outstanding, OutstandingSnapshot, Ticket};

/// How many latency buckets there are. Bucket 0 is below 1 µs, bucket `i` is from
/// `2^(i-1)` up to `2^i` µs, the last has no upper end.
pub const LATENCY_BUCKETS: usize = 32;

/// A histogram of latencies in powers of two of a microsecond.
#[derive(Debug, Default)]
pub struct LatencyHistogram {
    buckets: [AtomicU64; LATENCY_BUCKETS],
    total_us: AtomicU64,
}

impl LatencyHistogram {
    /// Counts one latency.
    pub fn record(&self, latency: Duration) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let bucket = (u64::BITS - us.leading_zeros()) as usize;
        self.buckets[bucket.min(LATENCY_BUCKETS - 1)].fetch_add(1, Relaxed);
        self.total_us.fetch_add(us, Relaxed);
    }

    /// The histogram as plain numbers.
    #[must_use]
    pub fn snapshot(&self) -> LatencySnapshot {
        LatencySnapshot {
            buckets: std::array::from_fn(|i| self.buckets[i].load(Relaxed)),
            total_us: self.total_us.load(Relaxed),
        }
    }
}

/// A [`LatencyHistogram`] at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencySnapshot {
    /// Counts by bucket.
    pub buckets: [u64; LATENCY_BUCKETS],
    /// All latencies added up, in whole microseconds each.
    pub total_us: u64,
}

impl LatencySnapshot {
    /// How many latencies were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The mean in microseconds, 0 when nothing was counted.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.total_us as f64 / count as f64,
        }
    }

    /// The estimated latency in microseconds that a share `quantile` (0 to 1) does not
    /// pass; 0 when nothing was counted.
    #[must_use]
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        let target = quantile.clamp(0.0, 1.0) * self.count() as f64;
        let mut below = 0.0;
        let mut result = 0.0;
        for (i, &count) in self.buckets.iter().enumerate() {
            if count == 0 {
                continue;
            }
            let low = if i == 0 {
                0.0
            } else {
                (1_u64 << (i - 1)) as f64
            };
            let high = (1_u64 << i) as f64;
            let share = ((target - below) / count as f64).clamp(0.0, 1.0);
            result = low + (high - low) * share;
            below += count as f64;
            if below >= target {
                break;
            }
        }
        result
    }
}

/// What a device did since it was opened.
#[derive(Debug, Default)]
pub struct DeviceCounters {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    syncs: AtomicU64,
    errors: AtomicU64,
    in_flight: AtomicU64,
    outstanding: Outstanding,
    read_latency: LatencyHistogram,
    sync_latency: LatencyHistogram,
}

impl DeviceCounters {
    /// A read, write or sync was given to the device.
    pub fn begin(&self) -> Ticket {
        self.outstanding.begin()
    }

    /// What began is over, however it ended.
    pub fn end(&self, ticket: Ticket) {
        self.outstanding.end(ticket);
    }

    /// What the device has not answered yet.
    #[must_use]
    pub fn outstanding(&self) -> OutstandingSnapshot {
        self.outstanding.snapshot()
    }

    /// A read was given to the device (or waits for it).
    pub fn read_started(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    /// A read that was started is over: `Some(bytes)` read, or `None` when it failed.
    pub fn read_finished(&self, bytes: Option<usize>, latency: Duration) {
        self.in_flight.fetch_sub(1, Relaxed);
        match bytes {
            Some(bytes) => {
                self.reads.fetch_add(1, Relaxed);
                self.read_bytes.fetch_add(bytes as u64, Relaxed);
                self.read_latency.record(latency);
            }
            None => self.error(),
        }
    }

    /// Bytes were written.
    pub fn wrote(&self, bytes: usize) {
        self.writes.fetch_add(1, Relaxed);
        self.written_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// A file or the directory was synced.
    pub fn synced(&self, latency: Duration) {
        self.syncs.fetch_add(1, Relaxed);
        self.sync_latency.record(latency);
    }

    /// An operation failed.
    pub fn error(&self) {
        self.errors.fetch_add(1, Relaxed);
    }

    /// Everything as plain numbers.
    #[must_use]
    pub fn snapshot(&self) -> CountersSnapshot {
        let read_latency = self.read_latency.snapshot();
        let sync_latency = self.sync_latency.snapshot();
        CountersSnapshot {
            reads: self.reads.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            writes: self.writes.load(Relaxed),
            written_bytes: self.written_bytes.load(Relaxed),
            syncs: self.syncs.load(Relaxed),
            errors: self.errors.load(Relaxed),
            in_flight: self.in_flight.load(Relaxed),
            outstanding: self.outstanding(),
            read_latency_us_p50: read_latency.quantile_us(0.50),
            read_latency_us_p99: read_latency.quantile_us(0.99),
            sync_latency_us_p50: sync_latency.quantile_us(0.50),
            sync_latency_us_p99: sync_latency.quantile_us(0.99),
            read_latency,
            sync_latency,
        }
    }
}

/// [`DeviceCounters`] at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountersSnapshot {
    /// Reads that succeeded.
    pub reads: u64,
    /// Bytes that they read.
    pub read_bytes: u64,
    /// Writes that succeeded.
    pub writes: u64,
    /// Bytes that they wrote.
    pub written_bytes: u64,
    /// Syncs of files and of the directory that succeeded.
    pub syncs: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Reads that are at the device now, or wait for it.
    pub in_flight: u64,
    /// Reads, writes and syncs that the device has not answered yet.
    pub outstanding: OutstandingSnapshot,
    /// Estimated median latency of reads in microseconds.
    pub read_latency_us_p50: f64,
    /// Estimated latency in microseconds that 99% of the reads do not pass.
    pub read_latency_us_p99: f64,
    /// Estimated median latency of syncs in microseconds.
    pub sync_latency_us_p50: f64,
    /// Estimated latency in microseconds that 99% of the syncs do not pass.
    pub sync_latency_us_p99: f64,
    /// Latencies of reads, from submission to completion.
    pub read_latency: LatencySnapshot,
    /// Latencies of syncs.
    pub sync_latency: LatencySnapshot,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_within_their_bucket() {
        let histogram = LatencyHistogram::default();
        for us in 1..=1000 {
            histogram.record(Duration::from_micros(us));
        }
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.count(), 1000);
        assert!((snapshot.mean_us() - 500.5).abs() < 1e-9);
        let p50 = snapshot.quantile_us(0.5);
        assert!((256.0..=512.0).contains(&p50), "{p50}");
        let p99 = snapshot.quantile_us(0.99);
        assert!((512.0..=1024.0).contains(&p99), "{p99}");
        assert!(snapshot.quantile_us(0.1) < p50 && p50 < p99);
    }

    #[test]
    fn buckets_hold_the_extremes() {
        let histogram = LatencyHistogram::default();
        assert_eq!(histogram.snapshot().quantile_us(0.5), 0.0);
        histogram.record(Duration::ZERO);
        histogram.record(Duration::from_micros(1));
        histogram.record(Duration::from_secs(1 << 40));
        let buckets = histogram.snapshot().buckets;
        assert_eq!((buckets[0], buckets[1], buckets[31]), (1, 1, 1));
    }

    #[test]
    fn a_failed_read_is_an_error_and_no_read() {
        let counters = DeviceCounters::default();
        counters.read_started();
        counters.read_started();
        assert_eq!(counters.snapshot().in_flight, 2);
        counters.read_finished(Some(4096), Duration::from_micros(10));
        counters.read_finished(None, Duration::from_micros(10));
        let snapshot = counters.snapshot();
        assert_eq!((snapshot.reads, snapshot.errors), (1, 1));
        assert_eq!((snapshot.read_bytes, snapshot.in_flight), (4096, 0));
    }
}
