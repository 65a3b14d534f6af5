//! Asynchronous reads by io_uring: one ring, filled by whoever submits, under a mutex and
//! with one system call a batch; emptied by one reaper thread, which runs the completions.
//!
//! Guarantees: at most `IN_FLIGHT_MAX` reads in the ring, the others wait in order and
//! never fail for want of room; dropping the reader first lets all reads complete.
//! Survives: signals, a kernel short of memory (tried again), a ring that breaks (what the
//! kernel has not seen fails with its error, what it has seen is still waited for).
//!
//! The invariant for `unsafe`: a read's buffer and file are owned by a slot from before its
//! entry is pushed until its completion is reaped. Entries are pushed only under the mutex;
//! completions are taken only by the reaper.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use io_uring::{IoUring, Probe, opcode, squeue, types};
use parking_lot::Mutex;

use crate::reads::ReadJob;

const RING_ENTRIES: u32 = 256;
/// One entry stays free for the wake-up at the end.
const IN_FLIGHT_MAX: usize = RING_ENTRIES as usize - 1;
/// Marks the entry that only wakes the reaper up.
const WAKE_UP: u64 = u64::MAX;
/// `IORING_ENTER_GETEVENTS` of the kernel's interface.
const ENTER_GETEVENTS: u32 = 1;
/// A length that one entry can carry; a longer read is continued.
const READ_BYTES_MAX: usize = 1 << 30;
/// How long to wait before a submission that the kernel had no memory for is repeated.
const CONGESTION_PAUSE: Duration = Duration::from_micros(100);

/// Reads through one io_uring.
pub(crate) struct UringReader {
    ring: Arc<Ring>,
    reaper: Option<JoinHandle<()>>,
}

struct Ring {
    uring: IoUring,
    state: Mutex<State>,
}

struct State {
    /// Reads in the ring; the index is the entry's user data.
    slots: Vec<Option<ReadJob>>,
    free: Vec<usize>,
    /// Reads for which there is no slot yet.
    waiting: VecDeque<ReadJob>,
    /// User data of entries that are pushed, but not yet taken by the kernel.
    pushed: VecDeque<u64>,
    /// The error after which nothing is submitted any more.
    broken: Option<i32>,
    stopping: bool,
}

/// Reads that are over, to be completed when the mutex is released.
type Finished = Vec<(ReadJob, io::Result<()>)>;

impl UringReader {
    /// Makes a ring and proves that it works; the error says why it does not.
    pub(crate) fn new() -> io::Result<UringReader> {
        let uring = IoUring::new(RING_ENTRIES)?;
        let mut probe = Probe::new();
        uring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel's io_uring cannot read",
            ));
        }
        let ring = Arc::new(Ring {
            uring,
            state: Mutex::new(State {
                slots: (0..IN_FLIGHT_MAX).map(|_| None).collect(),
                free: (0..IN_FLIGHT_MAX).rev().collect(),
                waiting: VecDeque::new(),
                pushed: VecDeque::new(),
                broken: None,
                stopping: false,
            }),
        });
        let reaping = Arc::clone(&ring);
        let reaper = thread::Builder::new()
            .name("device-reaper".into())
            .spawn(move || reaping.reap())?;
        Ok(UringReader {
            ring,
            reaper: Some(reaper),
        })
    }

    pub(crate) fn submit(&self, jobs: Vec<ReadJob>) {
        self.ring.submit(|state| state.waiting.extend(jobs));
    }
}

impl Drop for UringReader {
    fn drop(&mut self) {
        self.ring.submit(|state| {
            state.stopping = true;
            self.ring.push(state, WAKE_UP, opcode::Nop::new().build());
        });
        let broken = self.ring.state.lock().broken.is_some();
        if let Some(reaper) = self.reaper.take() {
            // The last handle may have gone away inside a completion: on the reaper itself.
            // A broken ring may have no way to wake the reaper; it owns what it needs.
            if !broken && reaper.thread().id() != thread::current().id() {
                // A completion that panics is caught, so there is no panic to pass on.
                let _ = reaper.join();
            }
        }
    }
}

impl Ring {
    /// Changes the state, then submits until the kernel has taken every entry.
    fn submit(&self, change: impl FnOnce(&mut State)) {
        let mut finished = Finished::new();
        let mut state = self.state.lock();
        change(&mut state);
        while !self.flush(&mut state, &mut finished) {
            // Not under the mutex: the reaper may need it to free what the kernel lacks.
            drop(state);
            thread::sleep(CONGESTION_PAUSE);
            state = self.state.lock();
        }
        drop(state);
        complete(finished);
    }

    /// Moves waiting reads into free slots and gives all entries to the kernel; `false`
    /// when the kernel cannot take them now.
    fn flush(&self, state: &mut State, finished: &mut Finished) -> bool {
        if state.broken.is_none() {
            while !state.waiting.is_empty()
                && let Some(slot) = state.free.pop()
            {
                state.slots[slot] = state.waiting.pop_front();
                self.push_read(state, slot);
            }
        }
        while state.broken.is_none() && !state.pushed.is_empty() {
            match self.uring.submitter().submit() {
                Ok(taken) => {
                    assert!(
                        taken <= state.pushed.len(),
                        "the kernel took {taken} entries"
                    );
                    state.pushed.drain(..taken);
                    if taken == 0 {
                        return false;
                    }
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN | libc::EBUSY) => return false,
                    code => state.broken = Some(code.unwrap_or(libc::EIO)),
                },
            }
        }
        if let Some(code) = state.broken {
            // Entries left in the ring are never submitted again, so their buffers are ours.
            for data in std::mem::take(&mut state.pushed) {
                let slot = usize::try_from(data).unwrap_or(usize::MAX);
                if let Some(job) = state.slots.get_mut(slot).and_then(Option::take) {
                    state.free.push(slot);
                    finished.push((job, Err(io::Error::from_raw_os_error(code))));
                }
            }
            for job in std::mem::take(&mut state.waiting) {
                finished.push((job, Err(io::Error::from_raw_os_error(code))));
            }
        }
        true
    }

    /// Pushes the read in a slot, from where it stands.
    fn push_read(&self, state: &mut State, slot: usize) {
        let Some(job) = &mut state.slots[slot] else {
            panic!("slot {slot} of the ring is empty");
        };
        let position = job.position();
        let descriptor = types::Fd(job.descriptor());
        let missing = job.missing();
        let bytes = missing.len().min(READ_BYTES_MAX) as u32;
        let entry = opcode::Read::new(descriptor, missing.as_mut_ptr(), bytes)
            .offset(position)
            .build();
        self.push(state, slot as u64, entry);
    }

    fn push(&self, state: &mut State, data: u64, entry: squeue::Entry) {
        if state.broken.is_some() && data == WAKE_UP {
            return;
        }
        // SAFETY: entries are pushed only here, and `state` proves that the mutex is held,
        // so there is no second view of the submission queue.
        let mut queue = unsafe { self.uring.submission_shared() };
        // SAFETY: a read's buffer and descriptor belong to the job in slot `data`, which
        // keeps both until the completion is reaped; the wake-up refers to no memory.
        let pushed = unsafe { queue.push(&entry.user_data(data)) };
        // At most `IN_FLIGHT_MAX` reads and one wake-up are ever in the ring.
        assert!(pushed.is_ok(), "the ring has no room for slot {data}");
        state.pushed.push_back(data);
    }

    /// The reaper's life.
    fn reap(&self) {
        let mut reaped: Vec<(u64, i32)> = Vec::with_capacity(2 * RING_ENTRIES as usize);
        let mut flushed = true;
        loop {
            if flushed {
                self.wait();
            } else {
                thread::sleep(CONGESTION_PAUSE);
            }
            // SAFETY: only this thread looks at the completion queue.
            let completions = unsafe { self.uring.completion_shared() };
            reaped.extend(completions.map(|entry| (entry.user_data(), entry.result())));

            let mut finished = Finished::new();
            let mut state = self.state.lock();
            for (data, result) in reaped.drain(..) {
                if data != WAKE_UP {
                    self.finish(&mut state, data, result, &mut finished);
                }
            }
            flushed = self.flush(&mut state, &mut finished);
            let done = state.stopping
                && state.pushed.is_empty()
                && state.waiting.is_empty()
                && state.free.len() == IN_FLIGHT_MAX;
            drop(state);
            complete(finished);
            if done {
                return;
            }
        }
    }

    /// Sleeps until there is a completion.
    fn wait(&self) {
        // SAFETY: no entries are submitted and no argument is passed, so no memory is used.
        let waited = unsafe {
            self.uring
                .submitter()
                .enter::<()>(0, 1, ENTER_GETEVENTS, None)
        };
        if waited.is_err() {
            // Interrupted, or the kernel cannot wait: then look again a little later. The
            // completions of what it has taken arrive in shared memory all the same.
            thread::sleep(CONGESTION_PAUSE);
        }
    }

    /// Takes note of one completion; the read goes on if it is not over.
    fn finish(&self, state: &mut State, data: u64, result: i32, finished: &mut Finished) {
        let slot = data as usize;
        let Some(mut job) = state.slots.get_mut(slot).and_then(Option::take) else {
            panic!("a completion for slot {data}, which is empty");
        };
        let outcome = match usize::try_from(result) {
            Ok(bytes) => Ok(bytes),
            Err(_) => Err(io::Error::from_raw_os_error(-result)),
        };
        match (job.advance(outcome), state.broken) {
            (Some(outcome), _) => {
                state.free.push(slot);
                finished.push((job, outcome));
            }
            (None, Some(code)) => {
                state.free.push(slot);
                finished.push((job, Err(io::Error::from_raw_os_error(code))));
            }
            (None, None) => {
                state.slots[slot] = Some(job);
                self.push_read(state, slot);
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Only a reaper that died leaves reads behind. The kernel may still write into
        // their buffers, so they are never given back.
        for job in self.state.get_mut().slots.drain(..).flatten() {
            std::mem::forget(job);
        }
    }
}

fn complete(finished: Finished) {
    for (job, outcome) in finished {
        job.complete(outcome);
    }
}
