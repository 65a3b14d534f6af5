//! Loads on a file: blocking operations one after the other, writes by several threads, and
//! asynchronous reads of which a number is always under way.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;

use super::{Access, Pattern};
use crate::random::SplitMix64;
use crate::{AlignedBuffer, Clock, DeviceFile, ReadRequest, SECTOR_BYTES};

/// No load takes more operations, however fast the device is.
const OPERATIONS_MAX: usize = 50_000;

/// A device may complete a read before its submission returns, so submissions may nest; so far.
const SUBMITTING_MAX: usize = 4;

/// The file that loads use, and whose clock measures them.
#[derive(Clone)]
pub(super) struct Target {
    pub file: Arc<dyn DeviceFile>,
    pub bytes: u64,
    pub clock: Arc<dyn Clock>,
}

/// What a load measured: each operation's time, and the time of all.
pub(super) struct Measured {
    pub times: Vec<Duration>,
    pub elapsed: Duration,
}

/// Offsets in the file, of operations of one size.
struct Offsets {
    pattern: Pattern,
    step: u64,
    places: u64,
    next: u64,
    random: SplitMix64,
}

impl Offsets {
    fn new(target: &Target, pattern: Pattern, bytes: usize, seed: u64) -> Offsets {
        Offsets {
            pattern,
            step: bytes as u64,
            places: (target.bytes / bytes as u64).max(1),
            next: 0,
            random: SplitMix64::new(seed),
        }
    }

    fn next(&mut self) -> u64 {
        let place = match self.pattern {
            Pattern::Random => self.random.below(self.places),
            Pattern::Sequential => self.next % self.places,
        };
        self.next += 1;
        place * self.step
    }
}

impl Target {
    /// Runs `act` until the time is over, once at least.
    pub fn repeat(
        &self,
        time: Duration,
        mut act: impl FnMut() -> io::Result<()>,
    ) -> io::Result<Measured> {
        let begun = self.clock.now();
        let mut times = Vec::new();
        let mut now = begun;
        while times.is_empty() || (now - begun < time && times.len() < OPERATIONS_MAX) {
            act()?;
            let then = self.clock.now();
            times.push(then - now);
            now = then;
        }
        let elapsed = now - begun;
        Ok(Measured { times, elapsed })
    }

    /// One blocking operation at a time. What is written in a row is synced in the end, and
    /// that counts.
    pub fn one_at_a_time(
        &self,
        operation: Access,
        pattern: Pattern,
        bytes: usize,
        time: Duration,
    ) -> io::Result<Measured> {
        let mut offsets = Offsets::new(self, pattern, bytes, 11);
        let mut buffer = AlignedBuffer::new_zeroed(bytes.next_multiple_of(SECTOR_BYTES));
        SplitMix64::new(12).fill(&mut buffer);
        let buffer = &mut buffer[..bytes];
        let mut measured = self.repeat(time, || match operation {
            Access::Read => self.file.read_at(buffer, offsets.next()),
            Access::Write => self.file.write_at(buffer, offsets.next()),
            Access::Sync => {
                self.file.write_at(buffer, offsets.next())?;
                self.file.sync_data()
            }
        })?;
        if operation == Access::Write {
            let before = self.clock.now();
            self.file.sync_data()?;
            if pattern == Pattern::Sequential {
                measured.elapsed += self.clock.now() - before;
            }
        }
        Ok(measured)
    }

    /// Random writes by `depth` threads.
    pub fn writes_by_threads(
        &self,
        bytes: usize,
        depth: usize,
        time: Duration,
    ) -> io::Result<Measured> {
        let begun = self.clock.now();
        let writer = |seed: usize| {
            let mut offsets = Offsets::new(self, Pattern::Random, bytes, seed as u64);
            let mut buffer = AlignedBuffer::new_zeroed(bytes);
            SplitMix64::new(seed as u64).fill(&mut buffer);
            self.repeat(time, || self.file.write_at(&buffer, offsets.next()))
        };
        let parts: Vec<io::Result<Measured>> = std::thread::scope(|scope| {
            let writer = &writer;
            let threads: Vec<_> = (0..depth)
                .map(|seed| scope.spawn(move || writer(seed)))
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined
                .map(|part| part.unwrap_or_else(|_| Err(io::Error::other("a writer panicked"))))
                .collect()
        });
        let elapsed = self.clock.now() - begun;
        self.file.sync_data()?;
        let mut times = Vec::new();
        for part in parts {
            times.extend(part?.times);
        }
        Ok(Measured { times, elapsed })
    }

    /// Random asynchronous reads, `depth` of them always under way.
    pub fn reads_at_depth(
        &self,
        bytes: usize,
        depth: usize,
        time: Duration,
    ) -> io::Result<Measured> {
        let (sender, receiver) = mpsc::channel();
        let begun = self.clock.now();
        let reads = Arc::new(Reads {
            target: self.clone(),
            begun,
            time,
            state: Mutex::new(State {
                offsets: Offsets::new(self, Pattern::Random, bytes, 13),
                idle: (0..depth)
                    .map(|_| AlignedBuffer::new_zeroed(bytes))
                    .collect(),
                under_way: depth,
                submitting: 1,
                times: Vec::new(),
                ended: begun,
                failure: None,
                over: sender,
            }),
        });
        reads.submit();
        receiver.recv().map_err(io::Error::other)?;
        let mut state = reads.state.lock();
        match state.failure.take() {
            Some(error) => Err(error),
            None => Ok(Measured {
                times: std::mem::take(&mut state.times),
                elapsed: state.ended - begun,
            }),
        }
    }
}

/// Reads that follow each other: each that ends begins another.
struct Reads {
    target: Target,
    begun: Duration,
    time: Duration,
    state: Mutex<State>,
}

struct State {
    offsets: Offsets,
    /// Buffers whose read is over.
    idle: VecDeque<AlignedBuffer>,
    under_way: usize,
    /// How many submit just now. Beyond `SUBMITTING_MAX` buffers are left to those.
    submitting: usize,
    times: Vec<Duration>,
    /// When the last one ended.
    ended: Duration,
    failure: Option<io::Error>,
    over: mpsc::Sender<()>,
}

impl Reads {
    /// Submits reads for all idle buffers, until there are none.
    fn submit(self: &Arc<Self>) {
        loop {
            let mut state = self.state.lock();
            if state.idle.is_empty() {
                state.submitting -= 1;
                return;
            }
            let idle = std::mem::take(&mut state.idle);
            let began = self.target.clock.now();
            let requests = idle.into_iter().map(|buffer| {
                let reads = Arc::clone(self);
                ReadRequest {
                    offset: state.offsets.next(),
                    buffer,
                    completion: Box::new(move |result| reads.ended(began, result)),
                }
            });
            let requests = requests.collect();
            drop(state);
            self.target.file.submit_reads(requests);
        }
    }

    fn ended(self: Arc<Self>, began: Duration, result: io::Result<AlignedBuffer>) {
        let now = self.target.clock.now();
        let mut state = self.state.lock();
        let goes_on = now - self.begun < self.time && state.times.len() < OPERATIONS_MAX;
        state.times.push(now - began);
        state.ended = now;
        match result {
            Ok(buffer) if goes_on && state.failure.is_none() => state.idle.push_back(buffer),
            Ok(_) => state.under_way -= 1,
            Err(error) => {
                state.under_way -= 1;
                state.failure.get_or_insert(error);
            }
        }
        if state.under_way == 0 {
            // Nobody waits only when the probe has failed already.
            let _ = state.over.send(());
        }
        if !state.idle.is_empty() && state.submitting < SUBMITTING_MAX {
            state.submitting += 1;
            drop(state);
            self.submit();
        }
    }
}
