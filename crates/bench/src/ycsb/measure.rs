//! When operations count, and what is counted of them.
//!
//! An operation counts when it began and ended while the run was measuring. Each
//! thread has a tally of its own; they are added up at the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::Options;
use crate::Result;

/// The longest latency that is told from longer ones.
const LATENCY_NS_MAX: u64 = 600_000_000_000;
const LATENCY_DIGITS: u8 = 3;

/// Warming up, measuring, or over.
#[derive(Debug, Default)]
pub(super) struct Phase {
    measuring: AtomicBool,
    stopped: AtomicBool,
}

impl Phase {
    pub fn is_measuring(&self) -> bool {
        self.measuring.load(Ordering::Relaxed) && !self.is_stopped()
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub fn measure(&self) {
        self.measuring.store(true, Ordering::Relaxed);
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Waits through warm-up and measurement, with `counters` read at the
    /// beginning and the end of the measurement; ends early when a client failed.
    pub fn conduct<T>(&self, options: &Options, counters: impl Fn() -> T) -> Measured<T> {
        self.pass(Duration::from_secs(options.warmup));
        let before = counters();
        let begin = Instant::now();
        self.measure();
        self.pass(Duration::from_secs(options.seconds));
        self.stop();
        Measured {
            elapsed: begin.elapsed(),
            before,
            after: counters(),
        }
    }

    fn pass(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.is_stopped() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// A measurement's frame.
#[derive(Debug)]
pub(super) struct Measured<T> {
    pub elapsed: Duration,
    pub before: T,
    pub after: T,
}

/// What was counted.
#[derive(Debug)]
pub(super) struct Tally {
    latency_ns: Histogram<u64>,
    reads: u64,
    updates: u64,
    known: u64,
    missed: u64,
}

impl Tally {
    pub fn new() -> Result<Self> {
        Ok(Tally {
            latency_ns: Histogram::new_with_bounds(1, LATENCY_NS_MAX, LATENCY_DIGITS)?,
            reads: 0,
            updates: 0,
            known: 0,
            missed: 0,
        })
    }

    pub fn record(&mut self, latency: Duration, read: bool, missed: Option<bool>) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.latency_ns.saturating_record(ns.max(1));
        self.reads += u64::from(read);
        self.updates += u64::from(!read);
        if let Some(missed) = missed {
            self.known += 1;
            self.missed += u64::from(missed);
        }
    }

    pub fn add(&mut self, other: &Tally) -> Result<()> {
        self.latency_ns.add(&other.latency_ns)?;
        self.reads += other.reads;
        self.updates += other.updates;
        self.known += other.known;
        self.missed += other.missed;
        Ok(())
    }

    pub fn operations(&self) -> u64 {
        self.reads + self.updates
    }

    /// The latency that this share of the operations did not pass.
    pub fn latency_us(&self, quantile: f64) -> Option<f64> {
        (self.operations() > 0).then(|| self.latency_ns.value_at_quantile(quantile) as f64 / 1000.0)
    }

    /// The share of accesses that found their tuple not in memory; only when
    /// that is known of each of them.
    pub fn miss_share(&self) -> Option<f64> {
        let operations = self.operations();
        (operations > 0 && self.known == operations).then(|| self.missed as f64 / operations as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_all_threads() {
        let mut all = Tally::new().expect("valid bounds");
        for (latency_us, times) in [(10, 98), (1000, 1), (5000, 1)] {
            let mut thread = Tally::new().expect("valid bounds");
            for _ in 0..times {
                thread.record(
                    Duration::from_micros(latency_us),
                    true,
                    Some(latency_us > 10),
                );
            }
            all.add(&thread).expect("the same bounds");
        }
        let near = |quantile: f64, us: f64| {
            let found = all.latency_us(quantile).expect("there are operations");
            assert!((found / us - 1.0).abs() < 0.01, "{quantile}: {found}");
        };
        near(0.5, 10.0);
        near(0.99, 1000.0);
        near(0.999, 5000.0);
        assert_eq!(all.miss_share(), Some(0.02));
    }

    #[test]
    fn what_was_not_seen_has_no_figure() {
        let mut tally = Tally::new().expect("valid bounds");
        assert_eq!(tally.latency_us(0.5), None);
        assert_eq!(tally.miss_share(), None);
        tally.record(Duration::from_micros(1), true, None);
        assert_eq!(tally.miss_share(), None);
        assert!(tally.latency_us(0.5).is_some());
    }
}
