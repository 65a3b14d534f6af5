//! Whether a query is to end before its last row: because nobody waits for it any more, or
//! because it may run for a time only.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
#[cfg(feature = "analytics")]
use std::time::Duration;
use std::time::Instant;

/// What times are counted from.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    unwanted: AtomicBool,
    /// In microseconds; 0: as long as it takes.
    until: AtomicU64,
}

impl Ending {
    #[cfg(feature = "analytics")]
    /// Nobody waits for it.
    pub(crate) fn end(&self) {
        self.unwanted.store(true, Relaxed);
    }

    #[cfg(feature = "analytics")]
    /// It may run for so long from now on; `None`: as long as it takes.
    pub(crate) fn run_for(&self, time: Option<Duration>) {
        let until = time.map_or(0, |time| (BEGAN.elapsed() + time).as_micros().max(1) as u64);
        self.until.store(until, Relaxed);
    }

    /// Whether its time is over.
    pub(crate) fn is_over(&self) -> bool {
        let until = self.until.load(Relaxed);
        until > 0 && BEGAN.elapsed().as_micros() as u64 >= until
    }

    /// Whether it is to end, for either reason.
    pub(crate) fn is_due(&self) -> bool {
        self.unwanted.load(Relaxed) || self.is_over()
    }
}

#[cfg(all(test, feature = "analytics"))]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_its_time_is_over_or_nobody_waits() {
        let ending = Ending::default();
        assert!(!ending.is_due());
        ending.run_for(Some(Duration::ZERO));
        std::thread::sleep(Duration::from_millis(1));
        assert!(ending.is_over() && ending.is_due());
        ending.run_for(Some(Duration::from_secs(3600)));
        assert!(!ending.is_due());
        ending.end();
        assert!(ending.is_due() && !ending.is_over());
        ending.run_for(None);
        assert!(ending.is_due());
    }
}
