//! How fast a checkpoint writes while statements run: it is spread over time, and hurries when
//! somebody waits for it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::parts::Parts;
use crate::parts::checkpoint_state::Last;

/// A checkpoint takes this share of the time from the last one's beginning to its own, so
/// that statements hardly feel it, ...
const DURATION_SHARE: f64 = 0.5;
/// ... but is not slower than this part of the most: the log to replay grows meanwhile,
/// and procedures are logged by values.
const SLOWEST: u64 = 16;
/// The longest pause at a time, so that a stop is noticed.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Spreads a checkpoint's writing over time.
#[derive(Debug)]
pub(crate) struct Pace {
    pub bytes_a_second: Option<u64>,
    began: Duration,
    pub bytes: u64,
}

impl Pace {
    /// A checkpoint that nobody waits for. It is taken to write as much as the last one.
    pub fn spread(most: u64, last: &Last, now: Duration) -> Self {
        let bytes_a_second = last.began.map_or(most, |began| {
            let time = now.saturating_sub(began).mul_f64(DURATION_SHARE);
            let even = last.bytes as f64 / time.as_secs_f64().max(0.001);
            (even as u64).clamp(most / SLOWEST, most)
        });
        Pace {
            bytes_a_second: Some(bytes_a_second),
            began: now,
            bytes: 0,
        }
    }

    pub fn at_full_speed(now: Duration) -> Self {
        Pace {
            bytes_a_second: None,
            began: now,
            bytes: 0,
        }
    }

    /// Counts bytes written, and waits if they came too soon. When the log has
    /// grown by half of what calls for a checkpoint, nothing is waited for: its files stay
    /// below twice as much. Nor when a start would take all of the time that it may take to
    /// apply the log: the first answer waits for the log to be read.
    pub fn spend(&mut self, db: &Parts, bytes: u64) {
        self.bytes += bytes;
        let Some(rate) = self.bytes_a_second.filter(|rate| *rate > 0) else {
            return;
        };
        let due = Duration::from_secs_f64(self.bytes as f64 / rate as f64);
        loop {
            let ahead = due.saturating_sub(db.clock().now().saturating_sub(self.began));
            if ahead < Duration::from_millis(1)
                || db.checkpoint_state().awaited.load(Ordering::Relaxed) > 0
                || db.log_since_checkpoint()
                    >= db.settings().checkpoint_log_bytes.saturating_mul(3) / 2
                || db.replay_estimate() >= db.settings().recovery_target
            {
                return;
            }
            std::thread::sleep(ahead.min(PAUSE_MAX));
        }
    }
}
