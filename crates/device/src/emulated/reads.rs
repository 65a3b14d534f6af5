//! Asynchronous reads of an emulated device: they are done by the device below at once, and
//! their completions run when the model says so. On the machine's clock a thread of the
//! device runs them; on a simulator's clock whoever submitted, moving the time on. What a
//! completion submits then joins those that are under way.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::device::Shared;
use super::model::End;
use crate::{AlignedBuffer, ReadCompletion, Ticket};

/// A read that is over below, and not yet here.
pub(super) struct Pending {
    pub ticket: u64,
    pub began_ns: u64,
    pub outstanding: Ticket,
    pub result: io::Result<AlignedBuffer>,
    pub completion: ReadCompletion,
}

/// The reads of a device that are to be completed.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    work: Condvar,
    /// On a simulator's clock: somebody moves the time on already.
    driven: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The model does not know yet when they are over.
    unknown: Vec<Pending>,
    /// By their end and their ticket.
    known: BTreeMap<(u64, u64), Pending>,
    stopping: bool,
}

/// What is to be done next.
enum Turn {
    Complete(Vec<(u64, Pending)>),
    WaitUntil(u64),
    Nothing,
}

impl Shared {
    /// Takes a read whose data is there.
    pub(super) fn hand_over(&self, pending: Pending) {
        self.queue.state.lock().unknown.push(pending);
        if self.time.is_simulated() {
            self.drive_after(|| {});
        } else {
            self.queue.work.notify_one();
        }
    }

    /// Does something, and on a simulator's clock completes then what there is to complete,
    /// unless the thread does so already.
    pub(super) fn drive_after(&self, act: impl FnOnce()) {
        if !self.time.is_simulated() || self.queue.driven.swap(true, Ordering::AcqRel) {
            return act();
        }
        act();
        loop {
            let turn = self.turn();
            match turn {
                Turn::Complete(pending) => self.complete(pending),
                Turn::WaitUntil(then) => drop(self.time.wait_until(then)),
                Turn::Nothing => break,
            }
        }
        self.queue.driven.store(false, Ordering::Release);
    }

    fn turn(&self) -> Turn {
        self.turn_of(&mut self.queue.state.lock())
    }

    fn turn_of(&self, state: &mut State) -> Turn {
        let now = self.time.now_ns();
        let mut ask_again = u64::MAX;
        let unknown = std::mem::take(&mut state.unknown);
        if !unknown.is_empty() {
            let mut model = self.model.lock();
            for pending in unknown {
                match model.end(now, pending.ticket) {
                    End::At(end) => {
                        state.known.insert((end, pending.ticket), pending);
                    }
                    End::NotBefore(then) => {
                        ask_again = ask_again.min(then);
                        state.unknown.push(pending);
                    }
                }
            }
        }
        let later = state.known.split_off(&(now + 1, 0));
        let due = std::mem::replace(&mut state.known, later);
        if !due.is_empty() {
            let due = due.into_iter().map(|((end, _), read)| (end, read));
            return Turn::Complete(due.collect());
        }
        let first = state.known.keys().next().map_or(u64::MAX, |(end, _)| *end);
        match first.min(ask_again) {
            u64::MAX => Turn::Nothing,
            then => Turn::WaitUntil(then),
        }
    }

    fn complete(&self, pending: Vec<(u64, Pending)>) {
        for (end, read) in pending {
            let now = self.time.now_ns();
            self.note_late(read.began_ns, end, now);
            let bytes = read.result.as_ref().ok().map(AlignedBuffer::len);
            let took = Duration::from_nanos(now.saturating_sub(read.began_ns));
            self.counters.end(read.outstanding);
            self.counters.read_finished(bytes, took);
            (read.completion)(read.result);
        }
    }

    fn run(&self) {
        let mut state = self.queue.state.lock();
        loop {
            match self.turn_of(&mut state) {
                Turn::Complete(pending) => {
                    drop(state);
                    self.complete(pending);
                    state = self.queue.state.lock();
                }
                Turn::WaitUntil(then) => {
                    let sleepable = self.time.sleepable(then);
                    if sleepable.is_zero() {
                        drop(state);
                        self.time.wait_until(then);
                        state = self.queue.state.lock();
                    } else {
                        self.queue.work.wait_for(&mut state, sleepable);
                    }
                }
                Turn::Nothing if state.stopping => return,
                Turn::Nothing => self.queue.work.wait(&mut state),
            }
        }
    }
}

/// The device and its thread. Reads under way hold on to it.
pub(super) struct Driven {
    pub shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Driven {
    pub fn new(shared: Shared) -> io::Result<Driven> {
        let shared = Arc::new(shared);
        let thread = if shared.time.is_simulated() {
            None
        } else {
            let running = Arc::clone(&shared);
            let builder = thread::Builder::new().name("device-emulated".into());
            Some(builder.spawn(move || running.run())?)
        };
        Ok(Driven { shared, thread })
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.shared.queue.state.lock().stopping = true;
        self.shared.queue.work.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // A completion that panicked was told where it did.
            let _ = thread.join();
        }
    }
}
