//! The face of the log: appending, asking for durability, opening, truncating.
//!
//! Guarantees: `append` never waits for the device; it is a checksum, a short
//! mutex and a copy. A record that was accepted has its place in the order and
//! its space on the device. Assumes: callers ask for room before they take
//! partition locks, so that the buffer stays near `buffer_bytes`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use thermocline_device::{AlignedBuffer, Device, StopsOnPanic};

use super::copy::ClosedSegment;
use super::counters::LogCounters;
use super::reader::{LogTail, Recovered, recover};
use super::segment::{
    GROUP_HEADER_BYTES, RECORD_BYTES_MAX, RECORD_HEADER_BYTES, payload_crc, record_crc,
    round_to_sectors,
};
use super::segments::Segments;
use super::wait::{Room, WaitDurable, Waiters, block_on};
use super::writer::{Group, LogWriter};
use super::{LogError, LogFailed, LogOptions, LogStatistics, Lsn};

/// Gathered bytes at which records are refused whatever the caller does: a
/// group's length must fit its header.
const GATHER_BYTES_MAX: usize = 3 << 30;
/// Of the last segment that there is room for, this share is kept for records that make room.
const RESERVED_SHARE: u64 = 2;

/// How long flushes are left to the writer's thread after two met: where several commit at a
/// time, one thread that goes on and on is the faster way.
const CROWDED_FOR: Duration = Duration::from_millis(10);

/// A write-ahead log. Shared by all partitions; see the module's head.
pub struct Log {
    pub(super) options: LogOptions,
    pub(super) counters: LogCounters,
    pub(super) gather: Mutex<Gather>,
    pub(super) signal: Mutex<Signal>,
    pub(super) signalled: Condvar,
    pub(super) segments: Segments,
    pub(super) writer: Mutex<LogWriter>,
    /// Whether the writer's spare time goes to filling segments.
    pub(super) filling: AtomicBool,
    /// Whether the buffers were given back since the last group.
    pub(super) rested: AtomicBool,
    waiters: Waiters,
    appended: AtomicU64,
    /// Where the stream ended when it was opened, and where it goes on: no record is between.
    opened: (Lsn, Lsn),
    /// See [`Log::file_bytes`].
    pub(super) file_bytes: AtomicU64,
    /// See [`Log::appended`].
    appended_records: AtomicU64,
    appended_bytes: AtomicU64,
    /// Where the last record ends that is on the device.
    pub(super) stream_end: AtomicU64,
    gathered_bytes: AtomicUsize,
    /// Until when flushes are left to the writer's thread, in microseconds of the clock.
    crowded_until: AtomicU64,
}

/// The records that wait for the next flush.
pub(super) struct Gather {
    buffer: AlignedBuffer,
    used: usize,
    first: Lsn,
    next: Lsn,
    records: u64,
    /// Device bytes these records need at worst, each in a group of its own.
    cost_bytes: u64,
    /// The same for the group at the device.
    pub(super) in_flight_cost_bytes: u64,
    /// What may be outstanding while no next segment can be allocated.
    pub(super) limit_bytes: Option<u64>,
    pub(super) refusal: Option<LogFailed>,
    /// Bytes of the writer's own buffer.
    pub(super) writer_buffer_bytes: usize,
    room_wakers: Vec<Waker>,
}

/// What the writer's thread is asked to do.
#[derive(Default)]
pub(super) struct Signal {
    pub gathered: bool,
    pub requested: Lsn,
    pub running: bool,
    pub stop: bool,
    /// The thread waits to be told of a record. Otherwise it looks by itself.
    pub asleep: bool,
}

impl Gather {
    fn push(&mut self, payload: &[&[u8]], bytes: usize, payload_crc: u32) {
        let needed = self.used + RECORD_HEADER_BYTES + bytes;
        if needed > self.buffer.len() {
            // A large record does not come with others as large.
            let grown = round_to_sectors((needed + needed / 4) as u64) as usize;
            let mut buffer = AlignedBuffer::new_zeroed(grown);
            buffer[..self.used].copy_from_slice(&self.buffer[..self.used]);
            self.buffer = buffer;
        }
        let crc = record_crc(payload_crc, self.next);
        let (header, mut rest) = self.buffer[self.used..needed].split_at_mut(RECORD_HEADER_BYTES);
        header[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
        header[4..].copy_from_slice(&crc.to_le_bytes());
        for piece in payload {
            let (place, after) = rest.split_at_mut(piece.len());
            place.copy_from_slice(piece);
            rest = after;
        }
        self.used = needed;
        self.next += (RECORD_HEADER_BYTES + bytes) as u64;
        self.records += 1;
    }

    /// Gives the buffer's memory back, if it has no records.
    pub(super) fn forget(&mut self) {
        if self.records == 0 {
            self.buffer.forget();
        }
    }
}

impl Log {
    /// Opens the log in the device's directory, or begins one.
    ///
    /// `start` is the oldest LSN that the last checkpoint still needs, `None`
    /// when there is no checkpoint. The tail gives the records from there on,
    /// in order. New records go to a new segment: the old tail is never
    /// overwritten.
    pub fn open(
        device: Arc<dyn Device>,
        options: LogOptions,
        start: Option<Lsn>,
    ) -> Result<(Self, LogTail), LogError> {
        assert!(
            options.segment_bytes == round_to_sectors(options.segment_bytes)
                && options.segment_bytes >= 8 * thermocline_device::SECTOR_BYTES as u64,
            "a segment is whole sectors, and has room for groups"
        );
        let (recovered, tail) = recover(&device, &options, start)?;
        let Recovered { end, next, .. } = recovered;
        // Those who were told that there is room still append: a buffer that
        // had to grow for them each time would cost a copy and twice the memory.
        let headroom_bytes = (options.buffer_bytes / 2).max(4096);
        let buffer_bytes =
            round_to_sectors((options.buffer_bytes + headroom_bytes) as u64) as usize;
        let segments = Segments::new(device, recovered.segments, recovered.spares, &options)?;
        let log = Self {
            counters: LogCounters::default(),
            gather: Mutex::new(Gather {
                buffer: AlignedBuffer::new_zeroed(buffer_bytes),
                used: GROUP_HEADER_BYTES,
                first: next,
                next,
                records: 0,
                cost_bytes: 0,
                in_flight_cost_bytes: 0,
                limit_bytes: None,
                refusal: None,
                writer_buffer_bytes: buffer_bytes,
                room_wakers: Vec::new(),
            }),
            signal: Mutex::new(Signal::default()),
            signalled: Condvar::new(),
            segments,
            writer: Mutex::new(LogWriter::new(
                end,
                recovered.sequence,
                recovered.tail_bytes,
                buffer_bytes,
            )),
            file_bytes: AtomicU64::new(recovered.tail_bytes),
            appended_records: AtomicU64::new(0),
            appended_bytes: AtomicU64::new(0),
            filling: AtomicBool::new(true),
            rested: AtomicBool::new(true),
            waiters: Waiters::new(next),
            appended: AtomicU64::new(next),
            opened: (end, next),
            stream_end: AtomicU64::new(end),
            gathered_bytes: AtomicUsize::new(0),
            crowded_until: AtomicU64::new(0),
            options,
        };
        log.writer.lock().prepare(&log)?;
        Ok((log, tail))
    }

    /// Appends a record made of these pieces; its end LSN, to be waited for.
    ///
    /// Never waits. An error means that the record is not in the log and never
    /// will be.
    pub fn append(&self, payload: &[&[u8]]) -> Result<Lsn, LogFailed> {
        self.append_beside(payload, self.options.segment_bytes / RESERVED_SHARE)
    }

    /// As [`Log::append`], also of what is kept of the last segment that a full device
    /// has room for: for records after which there will be more.
    pub fn append_reserved(&self, payload: &[&[u8]]) -> Result<Lsn, LogFailed> {
        self.append_beside(payload, 0)
    }

    /// Whether no next segment can be allocated.
    pub fn is_short(&self) -> bool {
        self.gather.lock().limit_bytes.is_some()
    }

    fn append_beside(&self, payload: &[&[u8]], kept_bytes: u64) -> Result<Lsn, LogFailed> {
        let bytes: usize = payload.iter().map(|piece| piece.len()).sum();
        if bytes > RECORD_BYTES_MAX {
            return Err(LogFailed::TooLarge);
        }
        let crc = payload_crc(payload);
        let alone = (GROUP_HEADER_BYTES + RECORD_HEADER_BYTES + bytes) as u64;
        let cost_bytes = round_to_sectors(alone);

        let mut gather = self.gather.lock();
        if let Some(why) = &gather.refusal {
            return Err(why.clone());
        }
        let outstanding = gather.cost_bytes + gather.in_flight_cost_bytes + cost_bytes;
        let within = |limit| outstanding + kept_bytes <= limit;
        if !gather.limit_bytes.is_none_or(within) {
            return Err(LogFailed::StorageFull);
        }
        if gather.used + bytes > GATHER_BYTES_MAX {
            return Err(LogFailed::TooLarge);
        }
        let before = gather.used;
        gather.push(payload, bytes, crc);
        gather.cost_bytes += cost_bytes;
        let end = gather.next;
        // Under the mutex: nobody else counts.
        let count = |counter: &AtomicU64, more: usize| {
            counter.store(
                counter.load(Ordering::Relaxed) + more as u64,
                Ordering::Relaxed,
            );
        };
        count(&self.appended_records, 1);
        count(&self.appended_bytes, RECORD_HEADER_BYTES + bytes);
        let begins_group = gather.records == 1;
        let half = self.options.buffer_bytes / 2;
        let half_full = before < half && gather.used >= half;
        self.gathered_bytes.store(gather.used, Ordering::Relaxed);
        self.appended.store(end, Ordering::Release);
        drop(gather);

        if begins_group || half_full {
            let mut signal = self.signal.lock();
            signal.gathered = true;
            if half_full {
                // The device is at work before somebody has to wait for room.
                signal.requested = signal.requested.max(end);
            }
            if half_full || signal.asleep {
                self.signalled.notify_one();
            }
        }
        Ok(end)
    }

    /// Takes what is gathered, leaving `buffer` for what comes.
    pub(super) fn take_group(&self, buffer: &mut Option<AlignedBuffer>) -> Option<Group> {
        // First, so that a record appended meanwhile is signalled again.
        self.signal.lock().gathered = false;
        let mut gather = self.gather.lock();
        if gather.records == 0 {
            return None;
        }
        let Some(fresh) = buffer.take() else {
            unreachable!("the writer has its buffer while no group is pending");
        };
        let group = Group {
            first: gather.first,
            end: gather.next,
            records: gather.records,
            used: gather.used,
            time_us: self.options.clock.unix_time_us(),
            buffer: std::mem::replace(&mut gather.buffer, fresh),
        };
        gather.writer_buffer_bytes = group.buffer.len();
        gather.in_flight_cost_bytes = std::mem::take(&mut gather.cost_bytes);
        gather.first = gather.next;
        gather.records = 0;
        gather.used = GROUP_HEADER_BYTES;
        self.gathered_bytes.store(0, Ordering::Relaxed);
        let wakers = std::mem::take(&mut gather.room_wakers);
        drop(gather);
        wakers.into_iter().for_each(Waker::wake);
        Some(group)
    }

    /// Stops the log for good, for a reason that lies elsewhere on the device.
    /// What is gathered and not yet durable never will be.
    pub fn fail(&self, why: &str) {
        if !matches!(self.refusal(), Some(LogFailed::Failed(_))) {
            self.refuse(LogFailed::Failed(why.into()));
        }
    }

    /// Stops taking records, and tells all who wait.
    pub(super) fn refuse(&self, why: LogFailed) {
        let wakers = {
            let mut gather = self.gather.lock();
            gather.refusal = Some(why.clone());
            std::mem::take(&mut gather.room_wakers)
        };
        self.waiters.refuse(why);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(super) fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// Each record that ends at or before this LSN is durable.
    pub fn durable_lsn(&self) -> Lsn {
        self.waiters.durable()
    }

    /// Where the last durable record ends. Unlike [`Log::durable_lsn`] it is not ahead of
    /// it after a start, and so a log that is read again is found to reach it.
    pub fn stream_end(&self) -> Lsn {
        self.stream_end.load(Ordering::Acquire)
    }

    /// Where the next record will start.
    pub fn appended_lsn(&self) -> Lsn {
        self.appended.load(Ordering::Acquire)
    }

    /// Bytes of files that the log has taken, padding and all: at an opening those that hold
    /// the tail; what is gathered counts as it is.
    pub fn file_bytes(&self) -> u64 {
        let gathered = self.gathered_bytes.load(Ordering::Relaxed) as u64;
        self.file_bytes.load(Ordering::Relaxed) + gathered
    }

    /// Records that the log was given since it was opened, and bytes of them; those of its
    /// tail, too, once they are counted.
    pub fn appended(&self) -> (u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.appended_records), read(&self.appended_bytes))
    }

    /// Counts the records of the tail, before the first is appended.
    pub fn count_tail(&self, records: u64, bytes: u64) {
        let gather = self.gather.lock();
        self.appended_records.fetch_add(records, Ordering::Relaxed);
        self.appended_bytes.fetch_add(bytes, Ordering::Relaxed);
        drop(gather);
    }

    /// Asks for the records up to `lsn` to be written without delay.
    pub fn request_flush(&self, lsn: Lsn) {
        let lsn = lsn.min(self.appended_lsn());
        if lsn > self.durable_lsn() {
            let mut signal = self.signal.lock();
            if lsn > signal.requested {
                signal.requested = lsn;
                self.signalled.notify_one();
            }
        }
    }

    /// Writes what is gathered on the calling thread, unless it is durable up to `lsn` or
    /// somebody writes now or did a moment ago. For a thread that has nothing else to do: nobody is woken.
    /// Whatever came of it, [`Log::wait_durable`] tells.
    pub fn flush_here(&self, lsn: Lsn) {
        let now = self.options.clock.now().as_micros() as u64;
        if self.durable_lsn() >= lsn || now < self.crowded_until.load(Ordering::Relaxed) {
            return;
        }
        let Some(mut writer) = self.writer.try_lock() else {
            let until = now + CROWDED_FOR.as_micros() as u64;
            self.crowded_until.store(until, Ordering::Relaxed);
            return;
        };
        let _stops = StopsOnPanic::while_in("a flush of the log");
        self.step_as(&mut writer, LogWriter::flush);
        drop(writer);
        if self.durable_lsn() < lsn {
            // The thread goes on with it, and tries again where the device is full.
            let mut signal = self.signal.lock();
            signal.requested = signal.requested.max(lsn);
            self.signalled.notify_one();
        }
    }

    /// Ready when the record that ends at `lsn` is durable. Asks for the flush.
    pub fn wait_durable(&self, lsn: Lsn) -> WaitDurable<'_> {
        assert!(
            lsn <= self.appended_lsn(),
            "what is waited for was appended"
        );
        WaitDurable {
            log: self,
            lsn,
            id: None,
        }
    }

    /// As [`Log::wait_durable`], for a thread. Where no writer thread runs, the
    /// caller writes.
    pub fn wait_durable_blocking(&self, lsn: Lsn) -> Result<(), LogFailed> {
        assert!(
            lsn <= self.appended_lsn(),
            "what is waited for was appended"
        );
        while self.durable_lsn() < lsn && !self.signal.lock().running {
            self.step();
            if let Some(why) = self.refusal() {
                return if self.durable_lsn() >= lsn {
                    Ok(())
                } else {
                    Err(why)
                };
            }
        }
        block_on(self.wait_durable(lsn))
    }

    /// Why the log takes nothing, if it takes nothing.
    pub fn refusal(&self) -> Option<LogFailed> {
        self.gather.lock().refusal.clone()
    }

    /// Whether the buffer has room. Ask before taking partition locks.
    pub fn has_room(&self) -> bool {
        self.gathered_bytes.load(Ordering::Relaxed) < self.options.buffer_bytes
    }

    /// Ready when the buffer has room.
    pub fn room(&self) -> Room<'_> {
        Room { log: self }
    }

    pub(super) fn poll_room(&self, waker: &Waker) -> Poll<Result<(), LogFailed>> {
        {
            let mut gather = self.gather.lock();
            if let Some(why) = &gather.refusal {
                return Poll::Ready(Err(why.clone()));
            }
            if gather.used < self.options.buffer_bytes {
                return Poll::Ready(Ok(()));
            }
            if !gather.room_wakers.iter().any(|held| held.will_wake(waker)) {
                gather.room_wakers.push(waker.clone());
            }
        }
        self.request_flush(self.appended_lsn());
        Poll::Pending
    }

    /// Bytes of memory held by the buffers.
    pub fn memory_bytes(&self) -> usize {
        let gather = self.gather.lock();
        gather.buffer.len() + gather.writer_buffer_bytes
    }

    /// A reading of the counters.
    pub fn statistics(&self) -> LogStatistics {
        self.counters.snapshot()
    }

    /// The segments that no record will be added to, in order.
    pub fn closed_segments(&self) -> Vec<ClosedSegment> {
        let list = self.segments.list();
        let pairs = list.iter().zip(list.iter().skip(1));
        pairs
            .map(|(segment, next)| ClosedSegment {
                first: segment.first,
                end: next.previous_end,
            })
            .collect()
    }

    /// Where the last record before `lsn` ends. That is `lsn` itself but for the first
    /// record after a start: there the stream goes on at a higher LSN.
    pub fn end_before(&self, lsn: Lsn) -> Lsn {
        let (end, next) = self.opened;
        let starts = self.segments.list();
        let starts = starts.iter().map(|s| (s.previous_end, s.first));
        let around = |(end, next): &(Lsn, Lsn)| *end < lsn && lsn <= *next;
        let start = starts.chain([(end, next)]).find(around);
        start.map_or(lsn, |(end, _)| end)
    }

    /// The durable records that start at or after `lsn`. The caller keeps
    /// `truncate_before` away from what it reads.
    pub fn read_from(&self, lsn: Lsn) -> Result<LogTail, LogError> {
        let segments = self.segments.list();
        let until = self.durable_lsn();
        let device = self.segments.device().clone();
        LogTail::new(device, self.options.database, segments, Some(lsn), until)
    }
}
