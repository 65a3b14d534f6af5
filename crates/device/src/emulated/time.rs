//! How an emulated device waits: on the machine's clock it sleeps, and spins for what is too
//! short to sleep; on a simulator's clock it moves the time on.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::{Clock, SimulatedClock, SystemClock};

/// A thread that sleeps may wake so much later; the rest is spun.
const OVERSLEEP_NS: u64 = 150_000;

/// The time of an emulated device.
#[derive(Debug)]
pub(super) struct Time {
    source: Source,
    spun_ns: AtomicU64,
}

#[derive(Debug)]
enum Source {
    Machine(SystemClock),
    Simulator(SimulatedClock),
}

impl Time {
    pub fn of_the_machine() -> Time {
        Time {
            source: Source::Machine(SystemClock::new()),
            spun_ns: AtomicU64::new(0),
        }
    }

    pub fn of_a_simulator(clock: SimulatedClock) -> Time {
        Time {
            source: Source::Simulator(clock),
            spun_ns: AtomicU64::new(0),
        }
    }

    pub fn is_simulated(&self) -> bool {
        matches!(self.source, Source::Simulator(_))
    }

    pub fn now_ns(&self) -> u64 {
        let now = match &self.source {
            Source::Machine(clock) => clock.now(),
            Source::Simulator(clock) => clock.now(),
        };
        u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
    }

    /// How long a thread may sleep until then; what is left is to be spun.
    pub fn sleepable(&self, until_ns: u64) -> Duration {
        let left = until_ns.saturating_sub(self.now_ns());
        Duration::from_nanos(left.saturating_sub(OVERSLEEP_NS))
    }

    /// Waits until then; the time when it ends.
    pub fn wait_until(&self, until_ns: u64) -> u64 {
        match &self.source {
            Source::Simulator(clock) => {
                let now = self.now_ns();
                clock.advance(Duration::from_nanos(until_ns.saturating_sub(now)));
                until_ns.max(now)
            }
            Source::Machine(clock) => {
                let sleepable = self.sleepable(until_ns);
                if !sleepable.is_zero() {
                    clock.sleep(sleepable);
                }
                self.spin_until(until_ns)
            }
        }
    }

    fn spin_until(&self, until_ns: u64) -> u64 {
        let began = self.now_ns();
        let mut now = began;
        while now < until_ns {
            spin_loop();
            now = self.now_ns();
        }
        if now > began {
            self.spun_ns.fetch_add(now - began, Relaxed);
        }
        now
    }

    /// How long threads have spun so far, all together.
    pub fn spun(&self) -> Duration {
        Duration::from_nanos(self.spun_ns.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_when_it_should_and_what_was_spun_is_counted() {
        let time = Time::of_the_machine();
        let until = time.now_ns() + 1_000_000;
        time.wait_until(until);
        assert!(time.now_ns() >= until);
        let until = time.now_ns() + 50_000;
        time.wait_until(until);
        assert!(time.now_ns() >= until);
        assert!(
            time.spun() >= Duration::from_micros(20),
            "{:?}",
            time.spun()
        );
    }

    #[test]
    fn simulated_time_moves_to_the_nanosecond_and_nobody_spins() {
        let clock = SimulatedClock::new();
        let time = Time::of_a_simulator(clock.clone());
        time.wait_until(100);
        time.wait_until(50);
        assert_eq!(clock.now(), Duration::from_nanos(100));
        assert!(time.is_simulated() && time.spun().is_zero());
    }
}
