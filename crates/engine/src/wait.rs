//! Waiting without a runtime: an event that futures listen to, and a flag that
//! cancels.
//!
//! Everything the engine waits for (log flushes, device reads, other
//! transactions, memory) is a future over these, so that the same code runs
//! under any executor, under none, and in a simulator.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

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

/// A request to give up, shared between a statement and whoever may cancel it.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    inner: Arc<CancelInner>,
}

#[derive(Debug, Default)]
struct CancelInner {
    requested: AtomicBool,
    event: Event,
}

impl Cancel {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the statement to give up; it ends with 57014 at its next wait or
    /// check.
    pub fn cancel(&self) {
        self.inner.requested.store(true, Ordering::Release);
        self.inner.event.notify();
    }

    /// Clears the flag before the next statement.
    pub fn reset(&self) {
        self.inner.requested.store(false, Ordering::Release);
    }

    /// Whether it was asked to give up.
    pub fn is_cancelled(&self) -> bool {
        self.inner.requested.load(Ordering::Acquire)
    }

    pub(crate) fn event(&self) -> &Event {
        &self.inner.event
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::thread;

    use thermocline_device::block_on;

    use super::*;

    #[test]
    fn a_listener_ends_when_the_event_happens_and_not_before() {
        let event = Arc::new(Event::default());
        let other = event.clone();
        let listener = event.listen();
        let thread = thread::spawn(move || other.notify());
        block_on(listener);
        thread.join().expect("the notifying thread ended");
        assert!(!event.has_listeners());
    }

    #[test]
    fn an_event_before_listening_does_not_count() {
        let event = Event::default();
        event.notify();
        let mut listener = pin!(event.listen());
        let mut context = Context::from_waker(Waker::noop());
        assert!(listener.as_mut().poll(&mut context).is_pending());
    }
}
