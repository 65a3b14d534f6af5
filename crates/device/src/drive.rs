//! A thread that waits for its own reads: [`block_on`] runs a future and, between its
//! polls, gives the reads that it submitted to the kernel and takes their completions.
//!
//! Beside the shared ring and its reaper (`uring.rs`) this saves, for each read, a system
//! call, a lock and two changes of thread: what gathers while tasks run goes out together,
//! and one call both submits and waits. Threads that run under another executor, and
//! devices without io_uring, go on as before.
//!
//! Guarantees: when `block_on` returns, or unwinds, no read of the thread is under way. A
//! read is given to the kernel before the thread sleeps, and soon while it is busy.
//! Survives: a kernel that refuses a ring or breaks one (reads go to the shared ring, or
//! fail with the error). Wake-ups from other threads while the thread is in the kernel.
//!
//! The invariant for `unsafe`: as in `uring.rs`, a read's buffer and file are owned by a slot
//! from before its entry is pushed until its completion is taken. The ring never leaves its
//! thread.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, squeue, types};

use crate::reads::ReadJob;

const RING_ENTRIES: u32 = 128;
/// One entry stays free for the wake-up.
const IN_FLIGHT_MAX: usize = RING_ENTRIES as usize - 1;
/// Marks the entry that waits for a wake-up from another thread.
const WAKE_UP: u64 = u64::MAX;
/// `IORING_ENTER_GETEVENTS` of the kernel's interface.
const ENTER_GETEVENTS: u32 = 1;
const READ_BYTES_MAX: usize = 1 << 30;
/// So many gathered reads go out while the thread is still busy …
const BATCH: usize = 16;
/// … or fewer, when the first has waited so long.
const GATHER_TIME: Duration = Duration::from_micros(50);
/// How long to wait before a submission that the kernel had no memory for is repeated.
const CONGESTION_PAUSE: Duration = Duration::from_micros(100);

/// Runs a future to its end on the calling thread, which drives its reads itself.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let driver = Driver::enter();
    let mut context = Context::from_waker(&driver.waker);
    loop {
        if driver.signal.woken.swap(false, Ordering::Acquire)
            && let Poll::Ready(output) = future.as_mut().poll(&mut context)
        {
            return output;
        }
        driver.turn();
    }
}

/// Takes reads of a thread that is inside [`block_on`]; gives them back if the thread has
/// no ring.
pub(crate) fn take(jobs: Vec<ReadJob>) -> Result<(), Vec<ReadJob>> {
    let inside = DEPTH.try_with(Cell::get).unwrap_or(0) > 0;
    if !inside {
        return Err(jobs);
    }
    let mut jobs = Some(jobs);
    // A completion never runs while the ring is borrowed, so it may submit.
    let _ = RING.try_with(|ring| {
        let mut ring = ring.borrow_mut();
        if let RingState::Untried = *ring {
            *ring = LocalRing::new()
                .map_or(RingState::Refused, |ring| RingState::Ready(Box::new(ring)));
        }
        if let RingState::Ready(ring) = &mut *ring
            && let Some(jobs) = jobs.take()
        {
            ring.gather(jobs);
        }
    });
    jobs.map_or(Ok(()), Err)
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static RING: RefCell<RingState> = const { RefCell::new(RingState::Untried) };
    /// Written to wake the thread when it waits in its ring.
    static EVENT: Option<Arc<File>> = new_event().map(Arc::new);
    static SIGNAL: Arc<Signal> = Arc::new(Signal::new());
}

enum RingState {
    Untried,
    /// The kernel gives no ring; the shared one, or its threads, do the reads.
    Refused,
    Ready(Box<LocalRing>),
}

/// What a waker needs to know of the thread.
struct Signal {
    thread: Thread,
    woken: AtomicBool,
    place: AtomicU8,
    /// The thread's, and so that of all its signals.
    event: Option<Arc<File>>,
}

/// The thread runs, or waits for an `unpark`.
const OUTSIDE: u8 = 0;
/// The thread waits in its ring.
const IN_RING: u8 = 1;

fn new_event() -> Option<File> {
    // SAFETY: no memory is passed.
    let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    // SAFETY: the call has just made the descriptor, and nobody else has it.
    (descriptor >= 0).then(|| unsafe { File::from_raw_fd(descriptor) })
}

impl Signal {
    fn new() -> Signal {
        Signal {
            thread: thread::current(),
            woken: AtomicBool::new(false),
            place: AtomicU8::new(OUTSIDE),
            event: EVENT.try_with(Clone::clone).ok().flatten(),
        }
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.woken.swap(true, Ordering::SeqCst) {
            return;
        }
        if self.place.load(Ordering::SeqCst) == IN_RING
            && let Some(mut event) = self.event.as_deref()
        {
            // A counter that is full has woken the thread already.
            let _ = event.write(&1_u64.to_ne_bytes());
        } else {
            self.thread.unpark();
        }
    }
}

/// One call of [`block_on`].
struct Driver {
    signal: Arc<Signal>,
    waker: Waker,
    outermost: bool,
}

impl Driver {
    fn enter() -> Driver {
        let outermost = DEPTH
            .try_with(|depth| depth.replace(depth.get() + 1) == 0)
            .unwrap_or(false);
        // A call inside another has a flag of its own, and while a thread ends its own
        // signal may be gone already.
        let own = outermost
            .then(|| SIGNAL.try_with(Arc::clone).ok())
            .flatten();
        let signal = own.unwrap_or_else(|| Arc::new(Signal::new()));
        signal.woken.store(true, Ordering::Relaxed);
        Driver {
            waker: Waker::from(signal.clone()),
            signal,
            outermost,
        }
    }

    /// Between two polls: reads go out, completions are run; sleeps if there is nothing
    /// else to do.
    fn turn(&self) {
        let awake = self.signal.woken.load(Ordering::Acquire);
        let turned = RING.try_with(|ring| {
            let mut finished = Finished::new();
            let waited = match &mut *ring.borrow_mut() {
                RingState::Ready(ring) if ring.has_reads() => {
                    if awake {
                        ring.pass(&mut finished);
                    } else {
                        ring.wait(&self.signal, &mut finished);
                    }
                    true
                }
                _ => false,
            };
            complete(finished);
            waited
        });
        if !awake && !turned.unwrap_or(false) {
            thread::park();
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.outermost {
            // Others may wait for what this thread has begun to read.
            let _ = RING.try_with(|ring| {
                loop {
                    let mut finished = Finished::new();
                    match &mut *ring.borrow_mut() {
                        RingState::Ready(ring) if ring.has_reads() => ring.enter(1, &mut finished),
                        _ => break,
                    }
                    complete(finished);
                }
            });
        }
        let _ = DEPTH.try_with(|depth| depth.set(depth.get() - 1));
    }
}

/// Reads that are over, to be completed when the ring is not borrowed.
type Finished = Vec<(ReadJob, io::Result<()>)>;

fn complete(finished: Finished) {
    for (job, outcome) in finished {
        job.complete(outcome);
    }
}

/// A ring of one thread.
struct LocalRing {
    uring: IoUring,
    slots: Vec<Option<ReadJob>>,
    free: Vec<usize>,
    /// Reads that the kernel has not seen yet, the oldest first.
    gathered: VecDeque<ReadJob>,
    gathered_since: Option<Instant>,
    /// User data of entries that are pushed, but not yet taken by the kernel.
    pushed: VecDeque<u64>,
    /// The entry that waits for a wake-up is in the ring.
    listening: bool,
    /// The error after which nothing is submitted any more.
    broken: Option<i32>,
}

impl LocalRing {
    fn new() -> io::Result<LocalRing> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun();
        let uring = match builder.setup_taskrun_flag().build(RING_ENTRIES) {
            Ok(uring) => uring,
            // An older kernel.
            Err(_) => IoUring::new(RING_ENTRIES)?,
        };
        Ok(LocalRing {
            uring,
            slots: (0..IN_FLIGHT_MAX).map(|_| None).collect(),
            free: (0..IN_FLIGHT_MAX).rev().collect(),
            gathered: VecDeque::new(),
            gathered_since: None,
            pushed: VecDeque::new(),
            listening: false,
            broken: None,
        })
    }

    fn gather(&mut self, jobs: Vec<ReadJob>) {
        if self.gathered_since.is_none() {
            self.gathered_since = jobs.first().map(ReadJob::started);
        }
        self.gathered.extend(jobs);
    }

    fn has_reads(&self) -> bool {
        !self.gathered.is_empty() || self.free.len() < IN_FLIGHT_MAX
    }

    /// While the thread has other work: as few system calls as the reads allow.
    fn pass(&mut self, finished: &mut Finished) {
        let due = self.gathered.len() >= BATCH
            || self
                .gathered_since
                .is_some_and(|since| since.elapsed() >= GATHER_TIME);
        let arrived = {
            let queue = self.uring.submission();
            queue.taskrun()
        };
        if (due && !self.free.is_empty()) || arrived {
            self.enter(0, finished);
        } else {
            self.reap(finished);
        }
    }

    /// Until a read is over, or the thread is woken.
    fn wait(&mut self, signal: &Signal, finished: &mut Finished) {
        if !self.listening
            && self.broken.is_none()
            && let Some(event) = &signal.event
        {
            let entry = opcode::PollAdd::new(types::Fd(event.as_raw_fd()), libc::POLLIN as u32);
            self.push(WAKE_UP, entry.build());
            self.listening = true;
        }
        signal.place.store(IN_RING, Ordering::SeqCst);
        let least = usize::from(!signal.woken.load(Ordering::SeqCst));
        self.enter(least, finished);
        signal.place.store(OUTSIDE, Ordering::SeqCst);
        if !self.listening
            && let Some(mut event) = signal.event.as_deref()
        {
            // The counter goes back to zero, where it may be already.
            let _ = event.read(&mut [0; 8]);
        }
    }

    /// Gives the kernel all entries, waits for so many completions, and takes them.
    fn enter(&mut self, least: usize, finished: &mut Finished) {
        while self.broken.is_none()
            && !self.gathered.is_empty()
            && let Some(slot) = self.free.pop()
        {
            self.slots[slot] = self.gathered.pop_front();
            self.push_read(slot);
        }
        self.gathered_since = self.gathered.front().map(ReadJob::started);
        if self.broken.is_none() {
            // SAFETY: no argument is passed, so no memory but the rings' is used; the
            // entries' buffers and files are owned by their slots.
            let entered = unsafe {
                self.uring.submitter().enter::<()>(
                    self.pushed.len() as u32,
                    least as u32,
                    ENTER_GETEVENTS,
                    None,
                )
            };
            match entered {
                Ok(taken) => {
                    self.pushed.drain(..taken.min(self.pushed.len()));
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR | libc::ETIME) => {}
                    Some(libc::EAGAIN | libc::EBUSY) => thread::sleep(CONGESTION_PAUSE),
                    code => self.broken = Some(code.unwrap_or(libc::EIO)),
                },
            }
        }
        self.reap(finished);
        if let Some(code) = self.broken {
            self.give_up(code, finished);
        }
    }

    fn push_read(&mut self, slot: usize) {
        let Some(job) = &mut self.slots[slot] else {
            panic!("slot {slot} of the ring is empty");
        };
        let position = job.position();
        let descriptor = types::Fd(job.descriptor());
        let missing = job.missing();
        let bytes = missing.len().min(READ_BYTES_MAX) as u32;
        let entry = opcode::Read::new(descriptor, missing.as_mut_ptr(), bytes).offset(position);
        self.push(slot as u64, entry.build());
    }

    fn push(&mut self, data: u64, entry: squeue::Entry) {
        let entry = entry.user_data(data);
        // SAFETY: a read's buffer and descriptor belong to the job in slot `data`, which
        // keeps both until the completion is taken; the wake-up refers to no memory.
        let pushed = unsafe { self.uring.submission().push(&entry) };
        // At most `IN_FLIGHT_MAX` reads and one wake-up are ever in the ring.
        assert!(pushed.is_ok(), "the ring has no room for slot {data}");
        self.pushed.push_back(data);
    }

    fn reap(&mut self, finished: &mut Finished) {
        loop {
            let Some(entry) = self.uring.completion().next() else {
                return;
            };
            if entry.user_data() == WAKE_UP {
                self.listening = false;
                continue;
            }
            let slot = entry.user_data() as usize;
            let Some(mut job) = self.slots.get_mut(slot).and_then(Option::take) else {
                panic!("a completion for slot {slot}, which is empty");
            };
            let outcome = match usize::try_from(entry.result()) {
                Ok(bytes) => Ok(bytes),
                Err(_) => Err(io::Error::from_raw_os_error(-entry.result())),
            };
            self.free.push(slot);
            match job.advance(outcome) {
                Some(outcome) => finished.push((job, outcome)),
                // It goes on from where it stands, with the next submission.
                None => self.gathered.push_front(job),
            }
        }
    }

    /// The ring is broken: what the kernel has not taken fails. What it has taken is still
    /// waited for.
    fn give_up(&mut self, code: i32, finished: &mut Finished) {
        let error = || io::Error::from_raw_os_error(code);
        // Entries left in the ring are never submitted again, so their buffers are ours.
        for data in std::mem::take(&mut self.pushed) {
            let slot = usize::try_from(data).unwrap_or(usize::MAX);
            if let Some(job) = self.slots.get_mut(slot).and_then(Option::take) {
                self.free.push(slot);
                finished.push((job, Err(error())));
            }
        }
        finished.extend(self.gathered.drain(..).map(|job| (job, Err(error()))));
        self.gathered_since = None;
        // SAFETY: nothing is submitted and no argument is passed.
        let _ = unsafe { (self.uring.submitter()).enter::<()>(0, 0, ENTER_GETEVENTS, None) };
        thread::sleep(CONGESTION_PAUSE);
        self.reap(finished);
    }
}

impl Drop for LocalRing {
    fn drop(&mut self) {
        // Only a broken ring has reads left. The kernel may still write into their
        // buffers, so they are never given back.
        for job in self.slots.drain(..).flatten() {
            std::mem::forget(job);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;
    use std::thread::ThreadId;

    use super::*;
    use crate::{
        AlignedBuffer, Device, DeviceFile, FileDevice, IoEngine, OpenMode, ReadRequest,
        SECTOR_BYTES,
    };

    const SECTORS: usize = 500;

    /// A file whose sectors hold their number, on a device with io_uring.
    fn numbered() -> Option<(tempfile::TempDir, Arc<dyn DeviceFile>)> {
        let directory = tempfile::tempdir().unwrap();
        let device = match FileDevice::open(directory.path(), IoEngine::IoUring) {
            Ok(device) => device,
            Err(error) => {
                eprintln!("not tested here: {error}");
                return None;
            }
        };
        let file = device.open("numbered", OpenMode::CreateNew).unwrap();
        let mut bytes = AlignedBuffer::new_zeroed(SECTORS * SECTOR_BYTES);
        for (number, sector) in bytes.chunks_mut(SECTOR_BYTES).enumerate() {
            sector[..8].copy_from_slice(&(number as u64).to_le_bytes());
        }
        file.write_at(&bytes, 0).unwrap();
        Some((directory, file))
    }

    #[derive(Default)]
    struct Seen {
        numbers: Vec<(u64, ThreadId)>,
        waiting: Option<Waker>,
    }

    /// Reads these sectors; what they held, and which thread completed each.
    async fn read(file: &dyn DeviceFile, sectors: &[u64]) -> Vec<(u64, ThreadId)> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let requests = sectors.iter().map(|sector| {
            let seen = seen.clone();
            ReadRequest {
                offset: sector * SECTOR_BYTES as u64,
                buffer: AlignedBuffer::new_zeroed(SECTOR_BYTES),
                completion: Box::new(move |result| {
                    let number = u64::from_le_bytes(result.unwrap()[..8].try_into().unwrap());
                    let mut seen = seen.lock().unwrap();
                    seen.numbers.push((number, thread::current().id()));
                    if let Some(waker) = seen.waiting.take() {
                        waker.wake();
                    }
                }),
            }
        });
        file.submit_reads(requests.collect());
        poll_fn(|context| {
            let mut seen = seen.lock().unwrap();
            if seen.numbers.len() == sectors.len() {
                return Poll::Ready(());
            }
            seen.waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
        let mut numbers = std::mem::take(&mut seen.lock().unwrap().numbers);
        numbers.sort_unstable_by_key(|(number, _)| *number);
        numbers
    }

    #[test]
    fn reads_of_a_driven_thread_are_right_and_completed_by_it() {
        let Some((_directory, file)) = numbered() else {
            return;
        };
        let me = thread::current().id();
        for count in [1, 7, IN_FLIGHT_MAX, SECTORS] {
            let sectors: Vec<u64> = (0..count as u64).collect();
            let expected: Vec<_> = sectors.iter().map(|sector| (*sector, me)).collect();
            assert_eq!(block_on(read(&*file, &sectors)), expected);
        }
        // A call inside another, with reads of the outer one under way.
        let inner = block_on(async {
            let mut outer = pin!(read(&*file, &[1, 2, 3]));
            poll_fn(|context| {
                let _ = outer.as_mut().poll(context);
                Poll::Ready(())
            })
            .await;
            let inner = block_on(read(&*file, &[4]));
            assert_eq!(outer.await.len(), 3);
            inner
        });
        assert_eq!(inner, [(4, me)]);
    }

    #[test]
    fn a_thread_that_waits_in_its_ring_is_woken_by_others() {
        let Some((_directory, file)) = numbered() else {
            return;
        };
        let me = thread::current();
        for round in 0..200 {
            let signal = Arc::new((AtomicBool::new(false), Mutex::new(None::<Waker>)));
            let other = signal.clone();
            let waking = thread::spawn(move || {
                if round % 2 == 0 {
                    thread::sleep(Duration::from_micros(200));
                }
                other.0.store(true, Ordering::SeqCst);
                if let Some(waker) = other.1.lock().unwrap().take() {
                    waker.wake();
                }
            });
            let (sectors, flag) = block_on(async {
                // The thread has a ring, sometimes with reads that nobody waits for.
                let sectors = read(&*file, &[5]).await;
                if round % 3 == 0 {
                    let mut forgotten = pin!(read(&*file, &[6, 7]));
                    poll_fn(|context| {
                        let _ = forgotten.as_mut().poll(context);
                        Poll::Ready(())
                    })
                    .await;
                }
                poll_fn(|context| {
                    *signal.1.lock().unwrap() = Some(context.waker().clone());
                    match signal.0.load(Ordering::SeqCst) {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    }
                })
                .await;
                (sectors, true)
            });
            assert!(flag && sectors == [(5, me.id())]);
            waking.join().unwrap();
        }
    }

    #[test]
    fn a_future_that_panics_leaves_no_read_under_way() {
        let Some((_directory, file)) = numbered() else {
            return;
        };
        let done = Arc::new(AtomicBool::new(false));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            block_on(async {
                let done = done.clone();
                file.submit_reads(vec![ReadRequest {
                    offset: 0,
                    buffer: AlignedBuffer::new_zeroed(SECTOR_BYTES),
                    completion: Box::new(move |_| done.store(true, Ordering::SeqCst)),
                }]);
                panic!("on purpose");
            })
        }));
        assert!(outcome.is_err());
        assert!(done.load(Ordering::SeqCst), "the read was waited for");
        assert_eq!(block_on(read(&*file, &[9])).len(), 1);
    }
}
