//! Waiting for the log: for a record to be durable, for room in the buffer.
//!
//! Guarantees: a waiter is woken once what it waits for has happened or never
//! will. Works in any executor, as a waiter is a `Waker` and nothing else.
//! Assumes: `publish` and `refuse` are called by the log only.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use parking_lot::Mutex;

use super::{Log, LogFailed, Lsn};

/// Who waits for which LSN.
pub(super) struct Waiters {
    durable: AtomicU64,
    state: Mutex<State>,
}

struct State {
    wakers: BTreeMap<(Lsn, u64), Waker>,
    next_id: u64,
    refusal: Option<LogFailed>,
}

impl Waiters {
    pub fn new(durable: Lsn) -> Self {
        Self {
            durable: AtomicU64::new(durable),
            state: Mutex::new(State {
                wakers: BTreeMap::new(),
                next_id: 0,
                refusal: None,
            }),
        }
    }

    /// Each record that ends at or before this LSN is durable.
    pub fn durable(&self) -> Lsn {
        self.durable.load(Ordering::Acquire)
    }

    /// Makes `lsn` the durable end of the log, and wakes who waited for it.
    pub fn publish(&self, lsn: Lsn) {
        let due = {
            let mut state = self.state.lock();
            assert!(lsn >= self.durable(), "durability never goes back");
            // Under the lock: a waiter that registers later sees the new value.
            self.durable.store(lsn, Ordering::Release);
            if state.refusal == Some(LogFailed::StorageFull) {
                state.refusal = None;
            }
            let later = state.wakers.split_off(&(lsn + 1, 0));
            std::mem::replace(&mut state.wakers, later)
        };
        due.into_values().for_each(Waker::wake);
    }

    /// Tells each waiter, present and to come, that it waits in vain.
    pub fn refuse(&self, why: LogFailed) {
        let all = {
            let mut state = self.state.lock();
            state.refusal = Some(why);
            std::mem::take(&mut state.wakers)
        };
        all.into_values().for_each(Waker::wake);
    }

    fn poll(&self, lsn: Lsn, id: &mut Option<u64>, waker: &Waker) -> Poll<Result<(), LogFailed>> {
        let mut state = self.state.lock();
        let settled = if self.durable() >= lsn {
            Some(Ok(()))
        } else {
            state.refusal.clone().map(Err)
        };
        if let Some(result) = settled {
            if let Some(id) = id.take() {
                state.wakers.remove(&(lsn, id));
            }
            return Poll::Ready(result);
        }
        let id = *id.get_or_insert_with(|| {
            state.next_id += 1;
            state.next_id
        });
        state.wakers.insert((lsn, id), waker.clone());
        Poll::Pending
    }

    fn forget(&self, lsn: Lsn, id: u64) {
        self.state.lock().wakers.remove(&(lsn, id));
    }
}

/// Ready when the record that ends at an LSN is durable; see [`Log::wait_durable`].
#[must_use = "a future does nothing unless awaited"]
pub struct WaitDurable<'a> {
    pub(super) log: &'a Log,
    pub(super) lsn: Lsn,
    pub(super) id: Option<u64>,
}

impl Future for WaitDurable<'_> {
    type Output = Result<(), LogFailed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { log, lsn, id } = &mut *self;
        if log.durable_lsn() >= *lsn && id.is_none() {
            return Poll::Ready(Ok(()));
        }
        let first = id.is_none();
        let poll = log.waiters().poll(*lsn, id, context.waker());
        if first && poll.is_pending() {
            log.request_flush(*lsn);
        }
        poll
    }
}

impl Drop for WaitDurable<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.log.waiters().forget(self.lsn, id);
        }
    }
}

/// Ready when the buffer has room; see [`Log::room`].
#[must_use = "a future does nothing unless awaited"]
pub struct Room<'a> {
    pub(super) log: &'a Log,
}

impl Future for Room<'_> {
    type Output = Result<(), LogFailed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.log.poll_room(context.waker())
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future of this module on the calling thread.
pub(super) fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = Pin::new(&mut future).poll(&mut context) {
            return output;
        }
        std::thread::park();
    }
}
