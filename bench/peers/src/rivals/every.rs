//! Something that a rival's background does over and over: a sync, a flush.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A thread that does it until this is dropped.
#[derive(Debug)]
pub struct Every {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Every {
    /// Does it after each `interval`.
    pub fn new(interval: Duration, it: impl Fn() + Send + 'static) -> Every {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                thread::park_timeout(interval);
                it();
            }
        });
        Every {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Every {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn it_happens_until_the_end_and_once_more_there() {
        let times = Arc::new(AtomicU32::new(0));
        let counted = times.clone();
        let every = Every::new(Duration::from_millis(1), move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        while times.load(Ordering::Relaxed) < 3 {
            thread::yield_now();
        }
        drop(every);
        let at_the_end = times.load(Ordering::Relaxed);
        thread::sleep(Duration::from_millis(20));
        assert!(at_the_end >= 3);
        assert_eq!(times.load(Ordering::Relaxed), at_the_end);
    }
}
