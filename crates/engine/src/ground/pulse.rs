//! Whether anybody does anything: background threads look often while somebody does, and
//! rest while nobody does, so that an idle database costs nothing.
//!
//! Statements say that they are there by [`Pulse::beat`], which is one load where the last
//! beat has not been looked at yet. What grows memory without a statement (a warmer, a
//! checkpoint) is seen in the next reading at rest.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Nobody does anything, and the reader rests.
const RESTS: u8 = 0;
/// The reader looks often; no beat since it last asked.
const LISTENS: u8 = 1;
/// Somebody has done something since it last asked.
const BEATEN: u8 = 2;

/// How long nothing must happen before the reader rests.
const REST_AFTER: Duration = Duration::from_millis(500);
/// How long it rests at a time.
const REST: Duration = Duration::from_millis(250);
/// How often it asks whether anything happened.
const ASK_INTERVAL: Duration = Duration::from_millis(50);

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Pulse {
    state: AtomicU8,
    resting: Mutex<()>,
    woken: Condvar,
}

impl Default for Pulse {
    fn default() -> Self {
        Pulse {
            state: AtomicU8::new(BEATEN),
            resting: Mutex::new(()),
            woken: Condvar::new(),
        }
    }
}

impl Pulse {
    /// Something is done: the reader looks often from now on.
    #[inline]
    pub fn beat(&self) {
        if self.state.load(Ordering::Relaxed) != BEATEN {
            self.beat_first();
        }
    }

    #[cold]
    fn beat_first(&self) {
        if self.state.swap(BEATEN, Ordering::SeqCst) == RESTS {
            // Whoever is about to rest has the lock, or finds the state as it is now.
            drop(self.resting.lock());
            self.woken.notify_all();
        }
    }

    /// Whether the reader rests: others may look rarely, too.
    pub fn rests(&self) -> bool {
        self.state.load(Ordering::Relaxed) == RESTS
    }

    /// Waits for the next beat, but not longer than `at_most`.
    pub fn wait(&self, at_most: Duration) {
        let mut resting = self.resting.lock();
        if self.rests() {
            self.woken.wait_for(&mut resting, at_most);
        }
    }
}

/// How long the reader waits between two looks.
#[derive(Debug)]
pub(crate) struct Pace {
    asked: Instant,
    beaten: Instant,
}

impl Pace {
    pub fn new() -> Self {
        let now = Instant::now();
        Pace {
            asked: now,
            beaten: now,
        }
    }

    /// Waits until the next look is due. `busy` says that something goes on without a beat.
    pub fn wait(&mut self, pulse: &Pulse, busy: bool, interval: Duration) {
        let now = Instant::now();
        if busy {
            pulse.beat();
        }
        if now.duration_since(self.asked) >= ASK_INTERVAL {
            self.asked = now;
            let state = &pulse.state;
            let beaten = state
                .compare_exchange(BEATEN, LISTENS, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok();
            if beaten {
                self.beaten = now;
            } else if now.duration_since(self.beaten) >= REST_AFTER {
                // A beat since then makes this fail.
                let _ = state.compare_exchange(LISTENS, RESTS, Ordering::SeqCst, Ordering::Relaxed);
            }
        }
        match pulse.rests() {
            true => pulse.wait(REST),
            false => std::thread::sleep(interval),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    const LOOK: Duration = Duration::from_millis(1);

    fn rest(pulse: &Pulse, pace: &mut Pace) {
        while !pulse.rests() {
            pace.wait(pulse, false, LOOK);
        }
    }

    #[test]
    fn it_rests_when_nobody_does_anything_and_a_beat_wakes_it() {
        let pulse = Arc::new(Pulse::default());
        let mut pace = Pace::new();
        rest(&pulse, &mut pace);
        let began = Instant::now();
        pace.wait(&pulse, false, LOOK);
        assert!(began.elapsed() >= REST / 2, "it rests longer than a look");
        let waiting = Arc::clone(&pulse);
        let waits = thread::spawn(move || {
            waiting.wait(Duration::from_secs(60));
            !waiting.rests()
        });
        thread::sleep(Duration::from_millis(20));
        pulse.beat();
        assert!(waits.join().expect("the thread ended"));
        assert!(!pulse.rests());
    }

    #[test]
    fn it_does_not_rest_while_there_are_beats_or_it_is_busy() {
        for busy in [false, true] {
            let pulse = Pulse::default();
            let mut pace = Pace::new();
            let until = Instant::now() + REST_AFTER * 2;
            while Instant::now() < until {
                if !busy {
                    pulse.beat();
                }
                pace.wait(&pulse, busy, LOOK);
                assert!(!pulse.rests());
            }
        }
    }

    #[test]
    fn a_beat_between_two_looks_is_not_missed() {
        let pulse = Pulse::default();
        let mut pace = Pace::new();
        rest(&pulse, &mut pace);
        pulse.beat();
        assert!(!pulse.rests());
        // Others may ask at any time; only the reader lets it rest again.
        pulse.wait(Duration::from_secs(60));
        pace.wait(&pulse, false, LOOK);
        assert!(
            !pulse.rests(),
            "the beat counts from the look that finds it"
        );
    }
}
