//! The numbers of a statement's executions: a few additions each.

use std::time::Duration;

/// See the head of this file. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) total_ns: u64,
    /// The squares of the times, added up.
    squares: f64,
    /// 0 while there was no call.
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
    pub(crate) rows: u64,
    /// Uses of rows that were in memory, and rows that came from the device.
    pub(crate) hot: u64,
    pub(crate) cold: u64,
}

/// What an execution took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution {
    pub(crate) time: Duration,
    /// Not so for what goes on with a portal that was counted.
    pub(crate) is_call: bool,
    pub(crate) rows: u64,
    pub(crate) hot: u64,
    pub(crate) cold: u64,
}

impl Counts {
    pub(super) fn add(&mut self, execution: &Execution) {
        let ns = u64::try_from(execution.time.as_nanos()).unwrap_or(u64::MAX);
        self.total_ns = self.total_ns.saturating_add(ns);
        self.squares += ns as f64 * ns as f64;
        if self.calls == 0 || ns < self.min_ns {
            self.min_ns = ns;
        }
        self.max_ns = self.max_ns.max(ns);
        self.calls += u64::from(execution.is_call);
        self.rows += execution.rows;
        self.hot += execution.hot;
        self.cold += execution.cold;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.min_ns = match (self.calls, other.calls) {
            (0, _) => other.min_ns,
            (_, 0) => self.min_ns,
            _ => self.min_ns.min(other.min_ns),
        };
        self.calls += other.calls;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.squares += other.squares;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.rows += other.rows;
        self.hot += other.hot;
        self.cold += other.cold;
    }

    pub(crate) fn mean_ns(&self) -> f64 {
        self.total_ns as f64 / self.calls.max(1) as f64
    }

    pub(crate) fn deviation_ns(&self) -> f64 {
        let mean = self.mean_ns();
        let variance = self.squares / self.calls.max(1) as f64 - mean * mean;
        variance.max(0.0).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_parts_are_those_of_the_whole() {
        let times = [3u64, 5, 4, 8, 1, 9, 2, 1_000_000];
        let execution = |ns: u64| Execution {
            time: Duration::from_nanos(ns),
            is_call: true,
            rows: 2,
            hot: 3,
            cold: 1,
        };
        let mut whole = Counts::default();
        let mut merged = Counts::default();
        for part in times.chunks(3) {
            let mut counts = Counts::default();
            for ns in part {
                counts.add(&execution(*ns));
                whole.add(&execution(*ns));
            }
            merged.merge(&counts);
        }
        assert_eq!(merged, whole);
        assert_eq!((whole.calls, whole.min_ns, whole.max_ns), (8, 1, 1_000_000));
        assert_eq!((whole.rows, whole.hot, whole.cold), (16, 24, 8));
        let mean = times.iter().sum::<u64>() as f64 / 8.0;
        let variance = times
            .iter()
            .map(|t| (*t as f64 - mean).powi(2))
            .sum::<f64>()
            / 8.0;
        assert!((whole.mean_ns() - mean).abs() < 1e-6);
        assert!((whole.deviation_ns() - variance.sqrt()).abs() < 1e-3);
        let mut empty = Counts::default();
        empty.merge(&Counts::default());
        assert_eq!(empty, Counts::default());
        assert_eq!(empty.deviation_ns(), 0.0);
    }
}
