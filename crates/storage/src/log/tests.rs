//! Behaviour of the log as a whole: order, group commit, waiting, rotation,
//! truncation. Crashes, damage and full devices have files of their own.

mod copies;
mod crash;
mod damage;
mod here;
mod space;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use thermocline_device::{Clock, Device, FileDevice, IoEngine, OpenMode, SimulatedDevice};

use super::*;

pub(super) const SECTOR: u64 = thermocline_device::SECTOR_BYTES as u64;
pub(super) const SEGMENT_BYTES: u64 = 8 * SECTOR;

/// A clock that stands still until it is moved.
#[derive(Default)]
pub(super) struct ManualClock(AtomicU64);

impl ManualClock {
    pub fn advance(&self, duration: Duration) {
        self.0
            .fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
    fn unix_time_us(&self) -> i64 {
        0
    }
    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

pub(super) fn options() -> LogOptions {
    LogOptions {
        segment_bytes: SEGMENT_BYTES,
        buffer_bytes: 8192,
        ..LogOptions::new(42, Arc::new(ManualClock::default()))
    }
}

pub(super) fn open(
    device: &SimulatedDevice,
    start: Option<Lsn>,
) -> Result<(Log, LogTail), LogError> {
    Log::open(Arc::new(device.clone()), options(), start)
}

/// The payload of the `number`th record: from nothing to more than a sector.
pub(super) fn payload(number: u64) -> Vec<u8> {
    let length = (number * 7919) % 5000;
    number
        .to_le_bytes()
        .iter()
        .copied()
        .cycle()
        .take(length as usize)
        .collect()
}

pub(super) fn collect(mut tail: LogTail) -> Result<Vec<(Lsn, Lsn, Vec<u8>)>, LogError> {
    let mut records = Vec::new();
    while let Some(record) = tail.next()? {
        records.push((record.start, record.end, record.payload.to_vec()));
    }
    Ok(records)
}

pub(super) fn payloads(tail: LogTail) -> Vec<Vec<u8>> {
    collect(tail)
        .unwrap()
        .into_iter()
        .map(|(_, _, payload)| payload)
        .collect()
}

/// Appends records of these numbers, each made durable alone.
pub(super) fn append_durable(log: &Log, numbers: std::ops::Range<u64>) -> Vec<Lsn> {
    numbers
        .map(|number| {
            let end = log.append(&[&payload(number)]).unwrap();
            log.wait_durable_blocking(end).unwrap();
            end
        })
        .collect()
}

pub(super) fn segment_files(device: &SimulatedDevice) -> Vec<String> {
    let names = device.list().unwrap();
    names
        .into_iter()
        .filter(|name| segment::parse_segment_name(name).is_some())
        .collect()
}

#[derive(Default)]
struct CountWakes(AtomicUsize);

impl Wake for CountWakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn records_come_back_in_order_with_the_lsns_they_were_given() {
    let device = SimulatedDevice::new();
    let (log, tail) = open(&device, None).unwrap();
    assert!(collect(tail).unwrap().is_empty(), "a new log holds nothing");
    let mut expected = Vec::new();
    for number in 0..200 {
        let start = log.appended_lsn();
        let whole = payload(number);
        let (a, b) = whole.split_at(whole.len() / 3);
        let end = log.append(&[a, b"", b]).unwrap();
        assert!(start > 0 && end > start);
        expected.push((start, end, whole));
        if number % 7 == 0 {
            log.wait_durable_blocking(end).unwrap();
        }
    }
    log.wait_durable_blocking(log.appended_lsn()).unwrap();
    assert_eq!(
        collect(log.read_from(expected[0].0).unwrap()).unwrap(),
        expected
    );
    assert_eq!(
        collect(log.read_from(expected[90].0).unwrap()).unwrap(),
        expected[90..]
    );
    assert!(log.statistics().rotations > 5, "small segments were filled");
    device.crash_losing_all();
    let (log, tail) = open(&device, None).unwrap();
    assert_eq!(collect(tail).unwrap(), expected);
    let (_, tail) = open(&device, Some(expected[123].0)).unwrap();
    assert_eq!(collect(tail).unwrap(), expected[123..]);
    assert!(
        log.appended_lsn() > expected[199].1,
        "no LSN is given twice"
    );
}

#[test]
fn many_threads_share_flushes_and_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let device: Arc<dyn Device> =
        Arc::new(FileDevice::open(directory.path(), IoEngine::Threads).unwrap());
    let clock = Arc::new(thermocline_device::SystemClock::new());
    let options = LogOptions {
        segment_bytes: 256 << 10,
        ..LogOptions::new(1, clock)
    };
    let (log, _) = Log::open(Arc::clone(&device), options.clone(), None).unwrap();
    let log = Arc::new(log);
    let writer = log.spawn().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let log = &log;
            scope.spawn(move || {
                for number in 0..50u64 {
                    let own = [thread.to_le_bytes(), number.to_le_bytes()].concat();
                    let end = log.append(&[&own, &[7; 500]]).unwrap();
                    log.wait_durable_blocking(end).unwrap();
                    assert!(log.durable_lsn() >= end);
                }
            });
        }
    });
    log.shut_down();
    writer.join().unwrap();
    let statistics = log.statistics();
    assert_eq!(statistics.records, 400);
    assert!(statistics.flushes <= 400 && statistics.sync_time > Duration::ZERO);
    assert_eq!(
        statistics.group_records.iter().sum::<u64>(),
        statistics.flushes
    );
    drop(log);

    let (_, tail) = Log::open(device, options, None).unwrap();
    let mut next = [0u64; 8];
    for payload in payloads(tail) {
        let field = |at: usize| u64::from_le_bytes(payload[at..at + 8].try_into().unwrap());
        assert_eq!(
            next[field(0) as usize],
            field(8),
            "each thread's order is kept"
        );
        next[field(0) as usize] += 1;
    }
    assert_eq!(next, [50; 8]);
}

#[test]
fn one_flush_serves_all_who_gathered() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    let wakes = Arc::new(CountWakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    let first = log.append(&[b"first"]).unwrap();
    let second = log.append(&[b"second"]).unwrap();
    let mut waits: Vec<_> = [first, second, second]
        .map(|end| log.wait_durable(end))
        .into();
    for wait in &mut waits {
        assert!(Pin::new(&mut *wait).poll(&mut context).is_pending());
        assert!(Pin::new(&mut *wait).poll(&mut context).is_pending());
    }
    drop(waits.pop());
    assert_eq!(log.step(), Step::Flushed);
    assert_eq!(
        wakes.0.load(Ordering::Relaxed),
        2,
        "each once, the dropped one never"
    );
    for wait in &mut waits {
        assert_eq!(Pin::new(&mut *wait).poll(&mut context), Poll::Ready(Ok(())));
    }
    assert_eq!(log.statistics().flushes, 1);
    assert_eq!(log.step(), Step::Idle);
}

#[test]
fn a_record_nobody_waits_for_is_flushed_soon() {
    let device = SimulatedDevice::new();
    let clock = Arc::new(thermocline_device::SystemClock::new());
    let options = LogOptions::new(42, clock.clone());
    let (log, _) = Log::open(Arc::new(device), options, None).unwrap();
    let log = Arc::new(log);
    let writer = log.spawn().unwrap();
    // Let the thread fall asleep, so that it is the append that wakes it.
    clock.sleep(Duration::from_millis(20));
    let end = log.append(&[b"lazy"]).unwrap();
    let begun = clock.now();
    while log.durable_lsn() < end {
        assert!(
            clock.now() - begun < Duration::from_secs(5),
            "never flushed"
        );
        clock.sleep(Duration::from_millis(1));
    }
    let last = log.append(&[b"at the end"]).unwrap();
    log.shut_down();
    writer.join().unwrap();
    assert_eq!(log.durable_lsn(), last, "shutting down flushes");
}

#[test]
fn room_is_waited_for_and_the_buffer_shrinks_again() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    let memory_bytes = log.memory_bytes();
    assert!(log.has_room());
    log.append(&[&[1; 30_000]]).unwrap();
    assert!(!log.has_room() && log.memory_bytes() > memory_bytes);
    let wakes = Arc::new(CountWakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    let mut room = log.room();
    assert!(Pin::new(&mut room).poll(&mut context).is_pending());
    assert_eq!(log.step(), Step::Flushed);
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(Pin::new(&mut room).poll(&mut context), Poll::Ready(Ok(())));
    log.append(&[b"next"]).unwrap();
    log.step();
    assert_eq!(log.memory_bytes(), memory_bytes);
}

#[test]
fn a_log_at_rest_gives_its_buffers_back_and_goes_on() {
    let device = SimulatedDevice::new();
    let clock = Arc::new(ManualClock::default());
    let options = LogOptions {
        buffer_bytes: 1 << 20,
        clock: clock.clone(),
        ..options()
    };
    let (log, _) = Log::open(Arc::new(device.clone()), options, None).unwrap();
    let long = vec![7; 100_000];
    let resting = |log: &Log| log.rested.load(Ordering::Relaxed);
    for round in 0..2 {
        log.append(&[&long]).unwrap();
        assert_eq!(log.step(), Step::Flushed);
        log.append(&[b"soon after"]).unwrap();
        clock.advance(Duration::from_secs(2));
        assert_eq!(log.step(), Step::Flushed);
        assert_eq!(log.step(), Step::Idle);
        assert!(!resting(&log), "round {round}: just written");
        clock.advance(Duration::from_secs(2));
        assert_eq!(log.step(), Step::Idle);
        assert!(resting(&log), "round {round}: nobody logs");
    }
    // What is gathered while the log's thread decides to rest stays.
    log.append(&[b"last"]).unwrap();
    log.gather.lock().forget();
    log.wait_durable_blocking(log.appended_lsn()).unwrap();
    device.crash_losing_all();
    let (_, tail) = open(&device, None).unwrap();
    let expected: [&[u8]; 5] = [&long, b"soon after", &long, b"soon after", b"last"];
    assert_eq!(payloads(tail), expected);
}

#[test]
fn a_record_larger_than_a_segment_gets_one_of_its_size() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    append_durable(&log, 0..3);
    let large = vec![9; 3 * SEGMENT_BYTES as usize];
    log.wait_durable_blocking(log.append(&[&large]).unwrap())
        .unwrap();
    append_durable(&log, 3..5);
    device.crash_losing_all();
    let (_, tail) = open(&device, None).unwrap();
    let expected = [
        payload(0),
        payload(1),
        payload(2),
        large,
        payload(3),
        payload(4),
    ];
    assert_eq!(payloads(tail), expected);
    let (log, _) = open(&device, None).unwrap();
    let too_large = vec![0; RECORD_BYTES_MAX / 8];
    assert_eq!(log.append(&[&too_large[..]; 9]), Err(LogFailed::TooLarge));
}

#[test]
fn truncation_keeps_what_is_needed_and_recycles_some() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    let ends = append_durable(&log, 0..100);
    let before = segment_files(&device).len();
    assert!(before > 10);
    log.truncate_before(ends[79]).unwrap();
    let after = segment_files(&device).len();
    assert!(after < before / 2, "{after} of {before} segments are left");
    let spares = device.list().unwrap().len() - after;
    assert!(options().spare_segments.contains(&spares));
    assert!(spares >= (before - after) / 2, "{spares} spares");
    let numbers: Vec<_> = (80..100).map(payload).collect();
    assert_eq!(payloads(log.read_from(ends[79]).unwrap()), numbers);
    assert!(matches!(
        log.read_from(ends[0]),
        Err(LogError::Missing { .. })
    ));

    // Recycled files have old groups in them, which must not be taken for new ones.
    append_durable(&log, 100..130);
    device.crash_losing_all();
    let (_, tail) = open(&device, Some(ends[79])).unwrap();
    assert_eq!(payloads(tail), (80..130).map(payload).collect::<Vec<_>>());
    assert!(matches!(
        open(&device, Some(ends[0])),
        Err(LogError::Missing { .. })
    ));
}

/// As many spares are kept as checkpoints use up, so that none is made in vain.
#[test]
fn spares_follow_what_is_given_up_at_a_time() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    let spares = || device.list().unwrap().len() - segment_files(&device).len();
    let give_up = |from: u64, segments: usize| {
        let mut next = from;
        let before = segment_files(&device).len();
        while segment_files(&device).len() < before + segments {
            append_durable(&log, next..next + 1);
            next += 1;
        }
        log.truncate_before(log.durable_lsn()).unwrap();
        next
    };
    let mut next = give_up(0, 10);
    assert!((9..=11).contains(&spares()), "{} spares", spares());
    for _ in 0..20 {
        next = give_up(next, 1);
    }
    assert_eq!(spares(), *options().spare_segments.start());
}

#[test]
fn opening_again_and_again_makes_no_files() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    append_durable(&log, 0..3);
    drop(log);
    open(&device, None).unwrap();
    let files = device.list().unwrap();
    for _ in 0..5 {
        let (_, tail) = open(&device, None).unwrap();
        assert_eq!(payloads(tail).len(), 3);
    }
    assert_eq!(device.list().unwrap(), files);
}

#[test]
fn a_checkpoint_past_the_end_of_the_log_is_believed() {
    // With synchronous_commit off a checkpoint may hold more than the log does.
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    append_durable(&log, 0..3);
    let lost = log.append(&[b"in the checkpoint only"]).unwrap();
    device.crash_losing_all();
    let (log, tail) = open(&device, Some(lost)).unwrap();
    assert!(payloads(tail).is_empty());
    assert!(log.appended_lsn() > lost);
    let start = log.appended_lsn();
    append_durable(&log, 3..5);
    assert_eq!(payloads(log.read_from(start).unwrap()).len(), 2);
    device.crash_losing_all();
    let (_, tail) = open(&device, Some(lost)).unwrap();
    assert_eq!(payloads(tail), [payload(3), payload(4)]);
}

#[test]
fn a_log_of_another_database_is_refused() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    append_durable(&log, 0..1);
    let other = LogOptions {
        database: 43,
        ..options()
    };
    let refused = Log::open(Arc::new(device.clone()), other, None);
    assert!(matches!(refused, Err(LogError::Corrupt { .. })));
    device
        .open("log-0000000000000001", OpenMode::Create)
        .unwrap();
    assert!(matches!(
        open(&device, None),
        Err(LogError::Corrupt { offset: 0, .. })
    ));
}

#[test]
fn a_log_that_was_never_written_opens_again_at_its_beginning() {
    let device = SimulatedDevice::new();
    for _ in 0..2 {
        let (log, tail) = open(&device, Some(FIRST_LSN)).unwrap();
        assert!(payloads(tail).is_empty());
        assert_eq!(log.appended_lsn(), FIRST_LSN);
    }
    // Where something was written once, nothing is an error.
    assert!(matches!(
        open(&device, Some(FIRST_LSN + 4096)),
        Err(LogError::Missing { .. })
    ));
    let (log, _) = open(&device, Some(FIRST_LSN)).unwrap();
    append_durable(&log, 0..3);
    drop(log);
    let (_, tail) = open(&device, Some(FIRST_LSN)).unwrap();
    assert_eq!(payloads(tail), (0..3).map(payload).collect::<Vec<_>>());
}

/// The log goes on right before a boundary of its places, and passes it: within a segment, and
/// from one to the next.
#[test]
fn places_beyond_each_boundary_are_as_good_as_others() {
    for (boundary, before) in [
        (1 << 31, 2),
        (1 << 32, 0),
        (1 << 32, 1),
        (1 << 32, 4),
        (1 << 53, 1),
        (1 << 63, 3),
    ] {
        let device = SimulatedDevice::new();
        let options = |goes_on_at| LogOptions {
            goes_on_at,
            ..options()
        };
        let shared = || -> Arc<dyn Device> { Arc::new(device.clone()) };
        let (log, _) = Log::open(shared(), options(0), None).unwrap();
        append_durable(&log, 0..3);
        drop(log);
        let goes_on_at = boundary - (before + 2) * SEGMENT_BYTES;
        let (log, tail) = Log::open(shared(), options(goes_on_at), None).unwrap();
        assert_eq!(payloads(tail), (0..3).map(payload).collect::<Vec<_>>());
        let ends = append_durable(&log, 3..80);
        assert!(ends[0] < boundary + 2 * SEGMENT_BYTES && ends[76] > boundary);
        log.truncate_before(ends[20]).unwrap();
        device.crash_losing_all();
        // What is beyond is not gone back to.
        let (log, tail) = Log::open(shared(), options(goes_on_at), Some(ends[20])).unwrap();
        assert_eq!(payloads(tail), (24..80).map(payload).collect::<Vec<_>>());
        assert!(append_durable(&log, 80..81)[0] > ends[76]);
    }
}

#[test]
fn a_record_beyond_the_largest_is_refused_before_it_is_copied() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    // The same bytes again and again: what is too long takes no memory.
    let piece = vec![7; 1 << 20];
    let mut pieces = vec![&piece[..]; RECORD_BYTES_MAX / piece.len()];
    pieces.push(&piece[..1]);
    assert_eq!(log.append(&pieces), Err(LogFailed::TooLarge));
    pieces.extend(vec![&piece[..]; 4096]);
    assert_eq!(log.append(&pieces), Err(LogFailed::TooLarge), "beyond 2^32");
    assert_eq!(append_durable(&log, 1..2).len(), 1);
}
