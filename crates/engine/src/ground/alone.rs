//! Threads that have nothing else to do while a statement waits for the log: they write it
//! themselves. That spares the way to the log's own thread and back.
//!
//! A thread says of itself when it may be held up ([`Alone::live_here`]). Others are not.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

thread_local! {
    static HERE: RefCell<Option<Alone>> = const { RefCell::new(None) };
}

/// Whom a thread serves, as it says itself.
#[derive(Clone, Debug, Default)]
pub struct Alone {
    /// How many it serves. Only one of them may hold it up.
    pub living: Arc<AtomicUsize>,
    /// Whether it is held up: who comes is better served elsewhere.
    pub held_up: Arc<AtomicBool>,
}

impl Alone {
    /// Says it of the calling thread. Its statements that wait for the log write it themselves
    /// as long as the thread serves nobody else.
    pub fn live_here(self) {
        HERE.set(Some(self));
    }
}

/// Runs `work`, which waits for the device, if this thread may be held up.
pub(crate) fn if_alone(work: impl FnOnce()) {
    HERE.with_borrow(|here| {
        let Some(here) = here.as_ref().filter(|here| here.living.load(Relaxed) <= 1) else {
            return;
        };
        here.held_up.store(true, Relaxed);
        work();
        here.held_up.store(false, Relaxed);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_thread_that_says_so_and_serves_one_is_held_up() {
        let ran = |here: Option<&Alone>| {
            let mut ran = false;
            if_alone(|| {
                assert!(here.is_none_or(|here| here.held_up.load(Relaxed)));
                ran = true;
            });
            ran
        };
        assert!(!ran(None));
        let here = Alone::default();
        here.clone().live_here();
        here.living.store(1, Relaxed);
        assert!(ran(Some(&here)));
        assert!(!here.held_up.load(Relaxed));
        here.living.store(2, Relaxed);
        assert!(!ran(Some(&here)));
    }
}
