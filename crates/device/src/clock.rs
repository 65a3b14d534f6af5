//! Where time comes from, so that a simulator can hand out its own.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A source of time.
pub trait Clock: Send + Sync {
    /// Time since the clock was made; never goes back.
    fn now(&self) -> Duration;
    /// The calendar's time in microseconds since 1970-01-01 UTC; may jump.
    fn unix_time_us(&self) -> i64;
    /// Waits for at least this long.
    fn sleep(&self, duration: Duration);
}

/// The machine's clock.
#[derive(Clone, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> SystemClock {
        SystemClock {
            start: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix_time_us(&self) -> i64 {
        let us = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => us(since),
            Err(before) => -us(before.duration()),
        }
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_moves_the_clock_on_by_at_least_that_long() {
        let clock = SystemClock::new();
        let before = clock.now();
        clock.sleep(Duration::from_millis(5));
        assert!(clock.now() - before >= Duration::from_millis(5));
        assert!(
            clock.unix_time_us() > 1_700_000_000_000_000,
            "later than 2023"
        );
    }
}
