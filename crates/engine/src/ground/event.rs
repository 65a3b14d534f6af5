//! An event that futures listen to: the engine's one way to wait.
//!
//! Guarantees: a listener that was made before the event happened ends, whichever thread it is
//! polled on, and whatever happens between two polls (`tests/models.rs`).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::ground::sync::{AtomicU64, Mutex, Ordering};

/// Something that happens again and again, and that futures wait for.
#[derive(Debug, Default)]
pub struct Event {
    happened: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

impl Event {
    /// A future that ends when the event next happens after this call.
    pub fn listen(&self) -> Listener<'_> {
        Listener {
            event: self,
            seen: self.happened.load(Ordering::Acquire),
        }
    }

    /// The event happens: all listeners go on.
    pub fn notify(&self) {
        let wakers = {
            let mut waiting = self.waiting.lock();
            self.happened.fetch_add(1, Ordering::Release);
            std::mem::take(&mut *waiting)
        };
        for waker in wakers {
            waker.wake();
        }
    }

    /// Whether anybody waits.
    pub fn has_listeners(&self) -> bool {
        !self.waiting.lock().is_empty()
    }
}

/// See [`Event::listen`].
#[derive(Debug)]
pub struct Listener<'a> {
    event: &'a Event,
    seen: u64,
}

impl Future for Listener<'_> {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.event.waiting.lock();
        if self.event.happened.load(Ordering::Acquire) != self.seen {
            return Poll::Ready(());
        }
        if !waiting.iter().any(|w| w.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
        Poll::Pending
    }
}
