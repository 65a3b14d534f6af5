//! When operations count, and what is counted of them.
//!
//! An operation counts when it began and ended while the run was measuring. Each
//! thread has a tally of its own; they are added up at the end.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::Result;

/// The longest latency that is told from longer ones.
const LATENCY_NS_MAX: u64 = 600_000_000_000;
/// More would take a quarter of a megabyte a thread, in a cgroup that a rival's cache is to fill.
const LATENCY_DIGITS: u8 = 2;

/// How often a thread tells how far it came.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// Warming up, measuring, or over.
#[derive(Debug, Default)]
pub struct Phase {
    measuring: AtomicBool,
    stopped: AtomicBool,
    operations: AtomicU64,
    inserts: AtomicU64,
}

/// When warming up is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warmup {
    /// After this time.
    For(Duration),
    /// When two windows that follow each other differ by at most a twentieth,
    /// at the latest after `max`.
    UntilStable {
        /// The time over which operations are counted.
        window: Duration,
        /// The longest that it may take.
        max: Duration,
    },
}

impl Phase {
    /// Whether operations count.
    pub fn is_measuring(&self) -> bool {
        self.measuring.load(Ordering::Relaxed) && !self.is_stopped()
    }

    /// Whether clients shall end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// From now on operations count.
    pub fn measure(&self) {
        self.measuring.store(true, Ordering::Relaxed);
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// The number of the next row to insert, from 0.
    pub fn next_insert(&self) -> u64 {
        self.inserts.fetch_add(1, Ordering::Relaxed)
    }

    /// How many rows were to be inserted.
    pub fn inserts(&self) -> u64 {
        self.inserts.load(Ordering::Relaxed)
    }

    /// Operations so far, warm-up included; up to date within 50 ms.
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// Waits through warm-up and measurement, with `counters` read at the
    /// beginning and the end of the measurement; ends early when a client failed.
    pub fn conduct<T>(
        &self,
        warmup: Warmup,
        measured: Duration,
        counters: impl Fn() -> T,
    ) -> Measured<T> {
        match warmup {
            Warmup::For(time) => self.pass(time),
            Warmup::UntilStable { window, max } => self.pass_until_stable(window, max),
        }
        let before = counters();
        let begin = Instant::now();
        self.measure();
        self.pass(measured);
        self.stop();
        Measured {
            elapsed: begin.elapsed(),
            before,
            after: counters(),
        }
    }

    fn pass_until_stable(&self, window: Duration, max: Duration) {
        let end = Instant::now() + max;
        let mut last = None;
        while !self.is_stopped() && Instant::now() + window <= end {
            let begin = self.operations.load(Ordering::Relaxed);
            self.pass(window);
            let now = self.operations.load(Ordering::Relaxed) - begin;
            if last.is_some_and(|last: u64| now > 0 && now.abs_diff(last) * 20 <= now.max(last)) {
                return;
            }
            last = Some(now);
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

/// Counts a thread's operations, warm-up included, and tells the phase now and
/// then: threads that told each operation would wait for one another.
#[derive(Debug)]
pub struct Progress<'a> {
    phase: &'a Phase,
    untold: Cell<u64>,
    told: Cell<Instant>,
}

impl<'a> Progress<'a> {
    /// Nothing yet.
    pub fn new(phase: &'a Phase) -> Self {
        Progress {
            phase,
            untold: Cell::new(0),
            told: Cell::new(Instant::now()),
        }
    }

    /// So many more operations.
    #[inline]
    pub fn count(&self, now: Instant, operations: u64) {
        self.untold.set(self.untold.get() + operations);
        if now.duration_since(self.told.get()) >= PROGRESS_INTERVAL {
            let untold = self.untold.replace(0);
            self.phase.operations.fetch_add(untold, Ordering::Relaxed);
            self.told.set(now);
        }
    }
}

/// A measurement's frame.
#[derive(Debug)]
pub struct Measured<T> {
    /// How long it took.
    pub elapsed: Duration,
    /// The counters at its beginning.
    pub before: T,
    /// The counters at its end.
    pub after: T,
}

/// What was counted.
#[derive(Debug)]
pub struct Tally {
    latency_ns: Histogram<u64>,
    reads: u64,
    updates: u64,
    known: u64,
    missed: u64,
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Result<Self> {
        Ok(Tally {
            latency_ns: Histogram::new_with_bounds(1, LATENCY_NS_MAX, LATENCY_DIGITS)?,
            reads: 0,
            updates: 0,
            known: 0,
            missed: 0,
        })
    }

    /// Counts an operation; `missed` as far as the client can tell.
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

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Tally) -> Result<()> {
        self.latency_ns.add(&other.latency_ns)?;
        self.reads += other.reads;
        self.updates += other.updates;
        self.known += other.known;
        self.missed += other.missed;
        Ok(())
    }

    /// How many operations were counted.
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
    fn warming_up_ends_when_the_rate_is_steady_and_not_before() {
        let window = Duration::from_millis(300);
        let max = 20 * window;
        let steady = Phase::default();
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| {
                let progress = Progress::new(&steady);
                while !steady.is_stopped() {
                    std::thread::sleep(Duration::from_millis(5));
                    progress.count(Instant::now(), 1);
                }
            });
            let begin = Instant::now();
            steady.conduct(Warmup::UntilStable { window, max }, window, || ());
            begin.elapsed()
        });
        assert!(ended >= 3 * window && ended < max, "{ended:?}");
        let idle = Phase::default();
        let begin = Instant::now();
        let warmup = Warmup::UntilStable {
            window,
            max: 3 * window,
        };
        idle.conduct(warmup, window, || ());
        assert!(begin.elapsed() >= 3 * window, "nothing is never steady");
    }

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
