//! The writer: takes what is gathered, writes it as one group, syncs it, tells
//! who waited; asks for segments ahead of need, and gives up old ones.
//!
//! Guarantees: one flush is at the device at a time, so that nothing valid can
//! lie behind a torn group. A segment's header and name are durable before its
//! first group. `Log::step` does all the work and no waiting of its own, so that
//! a simulator can drive it; the thread only decides when.
//! Survives: a full device (nothing accepted is lost, creating space is tried
//! again). Any other failed write or sync stops the log.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use thermocline_device::{
    AlignedBuffer, Mutation, OpenMode, SECTOR_BYTES, StopPoint, StopsOnPanic, stop_amid, stop_at,
};

use super::place::{Current, SharedSector};
use super::reader::SegmentRef;
use super::segment::{GROUP_HEADER_BYTES, GroupHeader, SegmentHeader, segment_name};
use super::segments::{Stop, fill_piece};
use super::{Log, LogError, LogFailed, Lsn};

const SECTOR: u64 = SECTOR_BYTES as u64;

/// After so long without a record the buffers' memory goes back to the system.
const REST_AFTER: Duration = Duration::from_secs(1);

/// What one step of the writer did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Nothing was gathered.
    Idle,
    /// A group was made durable.
    Flushed,
    /// A group waits for space on the device.
    Full,
    /// The log has failed.
    Failed,
}

/// Records on their way to the device, behind room for their group's header.
pub(super) struct Group {
    pub first: Lsn,
    pub end: Lsn,
    pub records: u64,
    pub used: usize,
    /// When it was taken, in microseconds since 1970.
    pub time_us: i64,
    pub buffer: AlignedBuffer,
}

/// Writes groups into segments. Driven by [`Log::step`].
pub(super) struct LogWriter {
    current: Option<Current>,
    group: Option<Group>,
    idle_buffer: Option<AlignedBuffer>,
    buffer_bytes: usize,
    sequence: u64,
    /// Bytes of the segments before the current one.
    taken_bytes: u64,
    /// The last group's time: a clock that is set back does not take it along.
    time_us: i64,
    stream_end: Lsn,
    retry_at: Option<Duration>,
    /// When the last group was written, until the buffers have been given back for it.
    flushed_at: Option<Duration>,
}

impl LogWriter {
    /// A writer that will continue a stream which ended at `stream_end`.
    pub fn new(stream_end: Lsn, sequence: u64, taken_bytes: u64, buffer_bytes: usize) -> Self {
        Self {
            current: None,
            group: None,
            idle_buffer: Some(AlignedBuffer::new_zeroed(buffer_bytes)),
            buffer_bytes,
            sequence,
            taken_bytes,
            time_us: i64::MIN,
            stream_end,
            retry_at: None,
            flushed_at: None,
        }
    }

    fn step(&mut self, log: &Log) -> Result<Step, LogError> {
        let step = self.write_gathered(log)?;
        if step != Step::Full {
            self.prepare(log)?;
            self.fill(log)?;
        }
        if step == Step::Idle {
            self.rest(log);
        }
        Ok(step)
    }

    /// As a step that leaves the filling of segments to the writer's thread.
    pub fn flush(&mut self, log: &Log) -> Result<Step, LogError> {
        let step = self.write_gathered(log)?;
        if step != Step::Flushed {
            return Ok(step);
        }
        self.prepare(log)?;
        let is_new = self.current.as_ref().is_some_and(Current::is_unfilled);
        if is_new && !log.filling.swap(true, Ordering::Relaxed) {
            // Under the lock: it looks before it waits.
            let _signal = log.signal.lock();
            log.signalled.notify_one();
        }
        Ok(step)
    }

    /// Makes durable what is gathered, as one group.
    fn write_gathered(&mut self, log: &Log) -> Result<Step, LogError> {
        let group = match self.group.take() {
            Some(group) => Some(group),
            None => log.take_group(&mut self.idle_buffer),
        };
        let Some(mut group) = group else {
            return Ok(Step::Idle);
        };
        match self.write(log, &mut group) {
            Ok(()) => {
                self.written(log, group);
                Ok(Step::Flushed)
            }
            Err(Stop::Full) => {
                self.group = Some(group);
                log.refuse(LogFailed::StorageFull);
                Ok(Step::Full)
            }
            Err(Stop::Fatal(error)) => Err(error),
        }
    }

    fn write(&mut self, log: &Log, group: &mut Group) -> Result<(), Stop> {
        self.time_us = self.time_us.max(group.time_us);
        let header = GroupHeader {
            first: group.first,
            sequence: self.sequence,
            time_us: self.time_us,
            bytes: (group.used - GROUP_HEADER_BYTES) as u32,
        };
        assert!(
            header.whole_bytes() == group.used as u64
                && group.end - group.first == u64::from(header.bytes),
            "the group's header tells its size"
        );
        header.encode(log.options.database, &mut group.buffer[..]);
        let own_bytes = header.device_bytes() as usize;
        group.buffer[group.used..own_bytes].fill(0);
        let placed = |current: &mut Option<Current>| {
            let current = current.as_mut()?;
            current.place(&group.buffer[..group.used])
        };
        let place = match placed(&mut self.current) {
            Some(place) => Some(place),
            None => {
                self.rotate(log, own_bytes as u64, group.first)?;
                placed(&mut self.current)
            }
        };
        let (Some(current), Some(place)) = (&mut self.current, place) else {
            unreachable!("a rotation that succeeds leaves a segment with room");
        };
        let bytes = match place.is_beside {
            true => &current.shared.bytes[..],
            false => &group.buffer[..own_bytes],
        };

        stop_amid(StopPoint::LogMidGroup, || {
            let half = (bytes.len() / 2).next_multiple_of(SECTOR_BYTES) - SECTOR_BYTES / 2;
            let _ = current.file.write_at(&bytes[..half], place.offset);
        });
        let clock = &log.options.clock;
        let begun = clock.now();
        current
            .file
            .write_at(bytes, place.offset)
            .map_err(|e| Stop::of(LogError::io(&current.name, "write")(e)))?;
        stop_at(StopPoint::LogBeforeSync);
        let wrote = clock.now();
        if !Mutation::LogNotSynced.is_made() {
            current
                .file
                .sync_data()
                .map_err(|e| Stop::Fatal(LogError::io(&current.name, "sync")(e)))?;
        }
        stop_at(StopPoint::LogBeforeAcknowledge);
        let spent = (
            wrote.saturating_sub(begun),
            clock.now().saturating_sub(wrote),
        );
        let device_bytes = bytes.len() as u64;
        log.counters.spent(spent.0, spent.1);
        log.counters
            .flushed(group.records, u64::from(header.bytes), device_bytes);
        current.wrote(&place, &group.buffer[..group.used]);
        let taken = self.taken_bytes + current.offset;
        log.file_bytes.store(taken, Ordering::Relaxed);
        self.sequence += 1;
        self.stream_end = group.end;
        Ok(())
    }

    /// Begins a segment with room for a group of `device_bytes`.
    fn rotate(&mut self, log: &Log, device_bytes: u64, first: Lsn) -> Result<(), Stop> {
        let bytes = log
            .options
            .segment_bytes
            .max(device_bytes + SECTOR_BYTES as u64);
        let spare = match log.segments.take_spare(bytes) {
            Some(spare) => spare,
            None => log.segments.create_spare(bytes)?,
        };
        let header = SegmentHeader {
            first,
            previous_end: self.stream_end,
            database: log.options.database,
        };
        let mut sector = AlignedBuffer::new_zeroed(SECTOR_BYTES);
        header.encode(&mut sector[..]);

        let device = log.segments.device();
        let named = device
            .open(&spare.name, OpenMode::Existing)
            .and_then(|file| file.write_at(&sector[..], 0).map(|()| file));
        let file = match named {
            Ok(file) => file,
            Err(error) => {
                let stop = Stop::of(LogError::io(&spare.name, "write header")(error));
                log.segments.give_spare(spare);
                return Err(stop);
            }
        };
        let fatal = |doing| {
            let name = spare.name.clone();
            move |e| Stop::Fatal(LogError::io(&name, doing)(e))
        };
        file.sync_data().map_err(fatal("sync header"))?;
        let name = segment_name(first);
        stop_at(StopPoint::LogRotate);
        device.rename(&spare.name, &name).map_err(fatal("rename"))?;
        stop_at(StopPoint::LogRotated);
        if !Mutation::SegmentNameNotSynced.is_made() {
            device.sync_directory().map_err(fatal("sync directory"))?;
        }
        let file = device
            .open(&name, OpenMode::Existing)
            .map_err(fatal("open again"))?;
        log.segments.push(SegmentRef {
            first,
            previous_end: self.stream_end,
        });
        log.counters.rotated();
        self.taken_bytes += self.current.as_ref().map_or(0, |before| before.bytes);
        self.current = Some(Current {
            name,
            file,
            offset: SECTOR,
            bytes: spare.bytes,
            filled_bytes: spare.filled_bytes,
            shared: SharedSector::closed(),
        });
        Ok(())
    }

    fn written(&mut self, log: &Log, group: Group) {
        let buffer = if group.buffer.len() > self.buffer_bytes {
            AlignedBuffer::new_zeroed(self.buffer_bytes)
        } else {
            group.buffer
        };
        {
            let mut gather = log.gather.lock();
            gather.in_flight_cost_bytes = 0;
            gather.writer_buffer_bytes = buffer.len();
            if gather.refusal == Some(LogFailed::StorageFull) {
                gather.refusal = None;
            }
            // Together with the cost: the space is counted once at any time.
            gather.limit_bytes = gather.limit_bytes.map(|_| self.remaining_bytes());
        }
        self.idle_buffer = Some(buffer);
        self.flushed_at = Some(log.options.clock.now());
        log.rested.store(false, Ordering::Relaxed);
        log.stream_end.store(group.end, Ordering::Release);
        log.waiters().publish(group.end);
    }

    /// Gives the buffers' memory back when nothing has been logged for a while.
    fn rest(&mut self, log: &Log) {
        let idle = |at: Duration| log.options.clock.now().saturating_sub(at) >= REST_AFTER;
        if !self.flushed_at.is_some_and(idle) {
            return;
        }
        if let Some(buffer) = &mut self.idle_buffer {
            buffer.forget();
        }
        log.gather.lock().forget();
        self.flushed_at = None;
        log.rested.store(true, Ordering::Relaxed);
    }

    fn remaining_bytes(&self) -> u64 {
        self.current.as_ref().map_or(0, |c| c.bytes - c.offset)
    }

    /// Allocates the next segment once the current one is half full, so that a
    /// full device is met while all that was accepted still fits.
    pub fn prepare(&mut self, log: &Log) -> Result<(), LogError> {
        let half_empty = |c: &Current| c.offset * 2 < c.bytes;
        let enough = self.current.as_ref().is_some_and(half_empty) || log.segments.has_spare();
        if !enough {
            let now = log.options.clock.now();
            if self.retry_at.is_some_and(|at| now < at) {
                return Ok(());
            }
            match log.segments.create_spare(log.options.segment_bytes) {
                Ok(spare) => log.segments.give_spare(spare),
                Err(Stop::Full) => {
                    self.retry_at = Some(now + log.options.retry_interval);
                    log.gather.lock().limit_bytes = Some(self.remaining_bytes());
                    return Ok(());
                }
                Err(Stop::Fatal(error)) => return Err(error),
            }
        }
        self.retry_at = None;
        log.gather.lock().limit_bytes = None;
        Ok(())
    }

    /// Fills the next piece of the segment being written, then of the spares.
    fn fill(&mut self, log: &Log) -> Result<(), LogError> {
        let more = if let Some(current) = self.current.as_mut().filter(|c| c.is_unfilled()) {
            let from = current.offset.max(current.filled_bytes);
            current.filled_bytes = fill_piece(&*current.file, &current.name, from, current.bytes)?;
            true
        } else {
            log.segments.fill_piece()?
        };
        log.filling.store(more, Ordering::Relaxed);
        Ok(())
    }
}

/// Stops the log when its thread dies, so that nobody waits for ever.
struct StopOnPanic<'a>(&'a Log);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        self.0.signal.lock().running = false;
        if std::thread::panicking() {
            self.0
                .refuse(LogFailed::Failed("the log's writer panicked".into()));
        }
    }
}

impl Log {
    /// Writes what is gathered now, and makes it durable.
    pub fn step(&self) -> Step {
        self.step_as(&mut self.writer.lock(), LogWriter::step)
    }

    /// One step, with all that the writer does in one or with less.
    pub(super) fn step_as(
        &self,
        writer: &mut LogWriter,
        step: impl FnOnce(&mut LogWriter, &Self) -> Result<Step, LogError>,
    ) -> Step {
        if let Some(LogFailed::Failed(_)) = self.refusal() {
            return Step::Failed;
        }
        match step(writer, self) {
            Ok(step) => step,
            Err(error) => {
                self.refuse(LogFailed::Failed(error.to_string().into()));
                Step::Failed
            }
        }
    }

    /// Gives the log a thread that flushes on request, and at the latest after
    /// `flush_interval`. It ends after [`Log::shut_down`].
    pub fn spawn(self: &Arc<Self>) -> io::Result<JoinHandle<()>> {
        let log = Arc::clone(self);
        self.signal.lock().running = true;
        let spawned = std::thread::Builder::new()
            .name("log-writer".into())
            .spawn(move || {
                let _stops = StopsOnPanic::while_in("the log's writer");
                log.run();
            });
        if spawned.is_err() {
            self.signal.lock().running = false;
        }
        spawned
    }

    /// Tells the thread to flush what is gathered and to end.
    pub fn shut_down(&self) {
        self.signal.lock().stop = true;
        self.signalled.notify_one();
    }

    fn run(&self) {
        let _guard = StopOnPanic(self);
        loop {
            let stop = self.wait_for_work();
            let step = self.step();
            if step == Step::Failed || (stop && step != Step::Flushed) {
                return;
            }
        }
    }

    fn wait_for_work(&self) -> bool {
        let (stuck, short) = {
            let gather = self.gather.lock();
            (gather.refusal.is_some(), gather.limit_bytes.is_some())
        };
        let mut signal = self.signal.lock();
        // Who commits again and again need not wake it each time to flush what nobody waits for.
        let mut seen = self.appended_lsn();
        let mut watches = true;
        loop {
            let filling = !stuck && self.filling.load(Ordering::Relaxed);
            if filling || signal.stop || (signal.requested > self.durable_lsn() && !stuck) {
                return signal.stop;
            }
            watches &= !stuck && !short;
            let timeout = if stuck || short {
                self.options.retry_interval
            } else if signal.gathered || watches {
                self.options.flush_interval
            } else if !self.rested.load(Ordering::Relaxed) {
                signal.asleep = true;
                REST_AFTER
            } else {
                signal.asleep = true;
                self.signalled.wait(&mut signal);
                signal.asleep = false;
                continue;
            };
            let slept = self.signalled.wait_for(&mut signal, timeout);
            signal.asleep = false;
            if !slept.timed_out() {
                continue;
            }
            if !watches || signal.gathered {
                return signal.stop;
            }
            watches = std::mem::replace(&mut seen, self.appended_lsn()) != seen;
        }
    }

    /// Whether one spare is enough from now on: where the device is short of space.
    pub fn be_frugal(&self, is_frugal: bool) {
        self.segments.be_frugal(is_frugal);
    }

    /// Gives up the segments of which no record ends after `lsn`.
    ///
    /// Some are kept as spares for reuse, the others removed.
    pub fn truncate_before(&self, lsn: Lsn) -> Result<(), LogError> {
        if let Some(recycled) = self.segments.retire(lsn, &self.options)? {
            if let Err(error) = self.segments.device().sync_directory() {
                let error = LogError::io("log", "sync directory")(error);
                self.refuse(LogFailed::Failed(error.to_string().into()));
                return Err(error);
            }
            for spare in recycled {
                self.segments.give_spare(spare);
            }
        }
        if self.is_short() {
            // On a full device this is what was waited for.
            self.prepare_again()?;
        }
        Ok(())
    }

    /// Allocates the next segment now, if there is none and the device has room for it.
    pub fn prepare_now(&self) {
        if let Err(error) = self.prepare_again() {
            self.refuse(LogFailed::Failed(error.to_string().into()));
        }
    }

    fn prepare_again(&self) -> Result<(), LogError> {
        let mut writer = self.writer.lock();
        writer.retry_at = None;
        writer.prepare(self)
    }
}
