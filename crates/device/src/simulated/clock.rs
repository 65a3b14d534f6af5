//! A clock that a simulator moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Clock;

/// Time that passes only when somebody sleeps or moves it on. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct SimulatedClock {
    /// Nanoseconds: a cache line takes less than a microsecond.
    now_ns: Arc<AtomicU64>,
}

impl SimulatedClock {
    /// When its calendar begins: 2026-01-01 UTC, in microseconds since 1970.
    pub const BEGINS_UNIX_US: i64 = 1_767_225_600_000_000;

    /// A clock at its beginning.
    #[must_use]
    pub fn new() -> SimulatedClock {
        SimulatedClock::default()
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.now_ns.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }

    fn unix_time_us(&self) -> i64 {
        let passed_us = self.now_ns.load(Ordering::Relaxed) / 1_000;
        let passed = i64::try_from(passed_us).unwrap_or(i64::MAX);
        Self::BEGINS_UNIX_US.saturating_add(passed)
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sleeping_and_moving_make_time_pass() {
        let clock = SimulatedClock::new();
        assert_eq!(clock.now(), Duration::ZERO);
        let same = clock.clone();
        same.sleep(Duration::from_secs(3));
        clock.advance(Duration::from_millis(1));
        assert_eq!(clock.now(), Duration::from_millis(3001));
        assert_eq!(
            clock.unix_time_us(),
            SimulatedClock::BEGINS_UNIX_US + 3_001_000
        );
    }
}
