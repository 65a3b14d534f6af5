//! Waiting without a runtime: what cancels a statement or ends its session, over events
//! ([`crate::ground::event`]).
//!
//! Everything the engine waits for (log flushes, device reads, other
//! transactions, memory) is a future over these. So the same code runs under
//! any executor, under none, and in a simulator.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;

use crate::ground::error::{Error, Result, SessionEnd};
pub use crate::ground::event::Event;

/// Lets others go first, once, that are ready on this thread. Between two turns of work that
/// takes many of them: a thread serves many sessions.
pub async fn give_way() {
    let mut asked = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut asked, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// What a statement waits for, for who looks at it from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum WaitsFor {
    /// Nothing: it runs.
    Nothing,
    /// Another transaction, which has a row that it wants.
    Transaction,
    /// A table that others use.
    Relation,
    /// An advisory lock.
    Advisory,
    /// Evicted tuples.
    Read,
    /// The log, until its commit is durable.
    Log,
    /// Room in memory.
    Memory,
    /// Its client, to send more.
    ClientRead,
    /// Its client, to take in what was sent.
    ClientWrite,
}

/// A request to give up, shared between a session, its statements and whoever may cancel or
/// end them; and what the session waits for.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    inner: Arc<CancelInner>,
}

#[derive(Debug, Default)]
struct CancelInner {
    asked: AtomicU8,
    event: Event,
    waits_for: AtomicU8,
}

/// What was asked for: that the statement ends,
const STATEMENT: u8 = 1;
/// that the session ends when it has nothing to do,
const WHEN_IDLE: u8 = 2;
/// that it ends now, since somebody wants it to,
const ADMINISTRATOR: u8 = 4;
/// or since its client is gone.
const CLIENT_LOST: u8 = 8;

impl Cancel {
    /// Nothing is asked for.
    pub fn new() -> Self {
        Self::default()
    }

    fn ask(&self, what: u8) {
        self.inner.asked.fetch_or(what, Ordering::AcqRel);
        self.inner.event.notify();
    }

    /// Asks the statement to give up; it ends with 57014 at its next wait or
    /// check.
    pub fn cancel(&self) {
        self.ask(STATEMENT);
    }

    /// Asks the session to end: a statement ends at its next wait or check, and no later one
    /// runs. There is no way back.
    pub fn end_session(&self, why: SessionEnd) {
        self.ask(match why {
            SessionEnd::Administrator => ADMINISTRATOR,
            SessionEnd::ClientLost => CLIENT_LOST,
        });
    }

    /// Asks the session to end once it has nothing to do.
    pub fn end_when_idle(&self) {
        self.ask(WHEN_IDLE);
    }

    /// Takes a statement's cancel back before the next one.
    pub fn reset(&self) {
        if self.inner.asked.load(Ordering::Acquire) & STATEMENT != 0 {
            self.inner.asked.fetch_and(!STATEMENT, Ordering::AcqRel);
        }
    }

    /// Whether the statement has to give up.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.inner.asked.load(Ordering::Acquire) & !WHEN_IDLE != 0
    }

    /// 57014 if the statement has to give up, 57P01 or 08006 if its session has.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.inner.asked.load(Ordering::Acquire) & !WHEN_IDLE {
            0 => Ok(()),
            _ => Err(self.error()),
        }
    }

    /// 57P01 or 08006 if the session has to end.
    pub fn check_session(&self) -> Result<()> {
        match self.session_end() {
            None => Ok(()),
            Some(end) => Err(Error::SessionEnds(end)),
        }
    }

    #[cold]
    fn error(&self) -> Error {
        match self.session_end() {
            Some(end) => Error::SessionEnds(end),
            None => Error::Cancelled,
        }
    }

    /// Why the session has to end now, if it has.
    #[inline]
    pub fn session_end(&self) -> Option<SessionEnd> {
        let asked = self.inner.asked.load(Ordering::Acquire);
        match asked & (ADMINISTRATOR | CLIENT_LOST) {
            0 => None,
            ends if ends & ADMINISTRATOR != 0 => Some(SessionEnd::Administrator),
            _ => Some(SessionEnd::ClientLost),
        }
    }

    /// Why a session that has nothing to do has to end, if it has.
    pub fn idle_end(&self) -> Option<SessionEnd> {
        let asked = self.inner.asked.load(Ordering::Acquire);
        let asked_when_idle = asked & WHEN_IDLE != 0;
        let end = self.session_end();
        end.or(asked_when_idle.then_some(SessionEnd::Administrator))
    }

    /// Ends when the session has to end now.
    pub async fn session_ended(&self) -> SessionEnd {
        self.until(Self::session_end).await
    }

    /// Ends when a session that has nothing to do has to end.
    pub async fn idle_ended(&self) -> SessionEnd {
        self.until(Self::idle_end).await
    }

    /// Ends when the statement has to give up.
    pub async fn cancelled(&self) -> Error {
        self.until(|asked| asked.check().err()).await
    }

    async fn until<T>(&self, reached: impl Fn(&Self) -> Option<T>) -> T {
        loop {
            let asked = self.inner.event.listen();
            if let Some(reached) = reached(self) {
                return reached;
            }
            asked.await;
        }
    }

    pub(crate) fn event(&self) -> &Event {
        &self.inner.event
    }

    /// Notes what is waited for, until the note is dropped.
    pub fn note_wait(&self, what: WaitsFor) -> WaitNote<'_> {
        let before = self.inner.waits_for.swap(what as u8, Ordering::Relaxed);
        WaitNote(self, before)
    }

    /// What is waited for.
    pub fn waits_for(&self) -> WaitsFor {
        let noted = self.inner.waits_for.load(Ordering::Relaxed);
        let known = [
            WaitsFor::Transaction,
            WaitsFor::Relation,
            WaitsFor::Advisory,
            WaitsFor::Read,
            WaitsFor::Log,
            WaitsFor::Memory,
            WaitsFor::ClientRead,
            WaitsFor::ClientWrite,
        ];
        let found = known.into_iter().find(|what| *what as u8 == noted);
        found.unwrap_or(WaitsFor::Nothing)
    }
}

/// See [`Cancel::note_wait`].
#[derive(Debug)]
pub struct WaitNote<'a>(&'a Cancel, u8);

impl Drop for WaitNote<'_> {
    fn drop(&mut self) {
        self.0.inner.waits_for.store(self.1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};
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
    fn a_cancel_is_of_one_statement_and_an_end_of_all() {
        let cancel = Cancel::new();
        cancel.cancel();
        assert!(matches!(cancel.check(), Err(Error::Cancelled)));
        cancel.reset();
        cancel.end_when_idle();
        assert!(cancel.check().is_ok() && cancel.session_end().is_none());
        assert_eq!(cancel.idle_end(), Some(SessionEnd::Administrator));
        cancel.end_session(SessionEnd::ClientLost);
        cancel.end_session(SessionEnd::Administrator);
        cancel.reset();
        assert!(cancel.is_cancelled());
        let end = SessionEnd::Administrator;
        assert!(matches!(cancel.check(), Err(Error::SessionEnds(why)) if why == end));
        assert_eq!(block_on(cancel.session_ended()), end);
    }

    #[test]
    fn a_wait_is_noted_while_it_lasts() {
        let cancel = Cancel::new();
        let outer = cancel.note_wait(WaitsFor::ClientRead);
        let inner = cancel.note_wait(WaitsFor::Transaction);
        assert_eq!(cancel.waits_for(), WaitsFor::Transaction);
        drop(inner);
        assert_eq!(cancel.waits_for(), WaitsFor::ClientRead);
        drop(outer);
        assert_eq!(cancel.waits_for(), WaitsFor::Nothing);
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
