//! How far a start has come, for whoever waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thermocline_device::Clock;

use crate::ground::listener::{RecoveryListener, RecoveryPart, RecoveryProgress};
use crate::parts::settings::Settings;

/// Between two words about the same part.
const INTERVAL: Duration = Duration::from_secs(1);

/// Tells about one part, at most once a second.
pub(super) struct Progress {
    listener: Option<(RecoveryListener, Arc<dyn Clock>)>,
    part: RecoveryPart,
    /// Nanoseconds of the clock from which on there is something to tell.
    next: AtomicU64,
}

impl Progress {
    pub fn new(config: &Settings, part: RecoveryPart) -> Self {
        let next = nanoseconds(config.clock.now() + INTERVAL);
        Progress {
            listener: config
                .progress
                .clone()
                .map(|tell| (tell, config.clock.clone())),
            part,
            next: AtomicU64::new(next),
        }
    }

    /// So much of the part is done.
    pub fn tell(&self, done: u64, total: u64) {
        let Some((listener, clock)) = &self.listener else {
            return;
        };
        if self.part == RecoveryPart::Partitions && done == total {
            return self.told(listener, done, total);
        }
        let (now, next) = (clock.now(), self.next.load(Ordering::Relaxed));
        let later = nanoseconds(now + INTERVAL);
        // Of several threads one tells.
        if nanoseconds(now) >= next
            && self
                .next
                .compare_exchange(next, later, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            self.told(listener, done, total);
        }
    }

    fn told(&self, listener: &RecoveryListener, done: u64, total: u64) {
        listener.tell(RecoveryProgress {
            part: self.part,
            done,
            total,
        });
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use thermocline_device::{SimulatedClock, SimulatedDevice};

    use super::*;

    #[test]
    fn progress_is_told_once_a_second() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let clock = Arc::new(SimulatedClock::new());
        let mut config = Settings::new(Arc::new(SimulatedDevice::new()));
        config.clock = clock.clone();
        let heard = told.clone();
        let listener = RecoveryListener::new(move |progress| heard.lock().push(progress.done));
        config.progress = Some(listener);
        let progress = Progress::new(&config, RecoveryPart::Log);
        for done in 0..40 {
            progress.tell(done, 40);
            clock.advance(Duration::from_millis(100));
        }
        assert_eq!(*told.lock(), [10, 20, 30]);
        let progress = Progress::new(&config, RecoveryPart::Partitions);
        for done in 0..=4 {
            progress.tell(done, 4);
        }
        assert_eq!(*told.lock(), [10, 20, 30, 4], "the end is told at once");
    }
}
