//! Asynchronous reads by a pool of threads, for where io_uring is forbidden.
//!
//! Guarantees: at most `THREADS_MAX` reads at the device at once, the others wait in
//! order. Threads start only when there is work for them. Dropping the pool first does
//! the work that is left. Survives: threads that cannot be started, as long as one could.

use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

use crate::reads::ReadJob;

/// How many reads are at the device at once.
const THREADS_MAX: usize = 32;

/// A pool of threads that read.
pub(crate) struct ThreadReader {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

struct State {
    queue: VecDeque<ReadJob>,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    stopping: bool,
}

impl ThreadReader {
    pub(crate) fn new() -> ThreadReader {
        ThreadReader {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    queue: VecDeque::new(),
                    threads: Vec::new(),
                    idle: 0,
                    stopping: false,
                }),
                work: Condvar::new(),
            }),
        }
    }

    pub(crate) fn submit(&self, jobs: Vec<ReadJob>) {
        let count = jobs.len();
        let refused = {
            let mut state = self.shared.state.lock();
            state.queue.extend(jobs);
            let mut refused = None;
            while state.threads.len() < THREADS_MAX && state.idle < state.queue.len() {
                let shared = Arc::clone(&self.shared);
                let name = format!("device-read-{}", state.threads.len());
                match thread::Builder::new()
                    .name(name)
                    .spawn(move || shared.run())
                {
                    Ok(thread) => {
                        state.threads.push(thread);
                        // Idle until it takes its first job.
                        state.idle += 1;
                    }
                    Err(error) if state.threads.is_empty() => {
                        refused = Some((error, std::mem::take(&mut state.queue)));
                        break;
                    }
                    // Those that are there do the work, only more slowly.
                    Err(_) => break,
                }
            }
            refused
        };
        for _ in 0..count.min(THREADS_MAX) {
            self.shared.work.notify_one();
        }
        if let Some((error, jobs)) = refused {
            for job in jobs {
                job.complete(Err(io::Error::new(error.kind(), error.to_string())));
            }
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                state.idle -= 1;
                drop(state);
                read(job);
                state = self.state.lock();
                state.idle += 1;
            } else if state.stopping {
                return;
            } else {
                self.work.wait(&mut state);
            }
        }
    }
}

fn read(mut job: ReadJob) {
    let file = job.file();
    loop {
        let position = job.position();
        let outcome = file.for_aligned().read_at(job.missing(), position);
        if let Some(outcome) = job.advance(outcome) {
            return job.complete(outcome);
        }
    }
}

impl Drop for ThreadReader {
    fn drop(&mut self) {
        let threads = {
            let mut state = self.shared.state.lock();
            state.stopping = true;
            std::mem::take(&mut state.threads)
        };
        self.shared.work.notify_all();
        for thread in threads {
            // The last handle may have gone away inside a completion: on one of these threads.
            if thread.thread().id() != thread::current().id() {
                // A completion that panics is caught, so there is no panic to pass on.
                let _ = thread.join();
            }
        }
    }
}
