use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::*;
use crate::{
    AlignedBuffer, Clock, Device, DeviceFile, DeviceKind, FileDevice, IoEngine, MemoryDevice,
    OpenMode, ReadRequest, SECTOR_BYTES, SimulatedClock, SimulatedDevice,
};

const SECTOR: u64 = SECTOR_BYTES as u64;

fn profile(kind: DeviceKind) -> EmulatedProfile {
    EmulatedProfile::of(kind).unwrap()
}

fn simulated(kind: DeviceKind) -> (EmulatedDevice, SimulatedClock) {
    let clock = SimulatedClock::new();
    let below = Arc::new(SimulatedDevice::new());
    let device = EmulatedDevice::simulated(below, profile(kind), clock.clone()).unwrap();
    (device, clock)
}

fn sectors(count: usize) -> AlignedBuffer {
    AlignedBuffer::new_zeroed(count * SECTOR_BYTES)
}

#[test]
fn a_blocking_operation_takes_the_profiles_time_and_does_its_work() {
    let (device, clock) = simulated(DeviceKind::Xpoint);
    let file = device.open("file", OpenMode::Create).unwrap();
    let mut bytes = sectors(1);
    bytes.fill(7);
    for (operation, low_us, high_us) in [("write", 11, 13), ("read", 10, 12), ("sync", 10, 10)] {
        let before = clock.now();
        match operation {
            "write" => file.write_at(&bytes, 0).unwrap(),
            "read" => file.read_at(&mut bytes, 0).unwrap(),
            _ => file.sync_data().unwrap(),
        }
        let us = (clock.now() - before).as_micros();
        assert!((low_us..=high_us).contains(&us), "{operation}: {us} us");
    }
    assert!(bytes.iter().all(|&byte| byte == 7));
    let counted = device.counters().snapshot();
    assert_eq!((counted.reads, counted.writes, counted.syncs), (1, 1, 1));
    assert!(device.profile().emulated);
    assert_eq!(
        device.describe(),
        "emulated xpoint over simulated, in memory"
    );
    assert_eq!(device.counts().operations, 3);
}

#[test]
fn reads_that_go_together_overlap_as_far_as_there_are_channels() {
    let (device, clock) = simulated(DeviceKind::Ssd);
    let file = device.open("file", OpenMode::Create).unwrap();
    file.write_at(&sectors(64), 0).unwrap();
    let ends = Arc::new(Mutex::new(Vec::new()));
    let before = clock.now();
    let requests = (0..64).map(|sector| {
        let (ends, clock) = (Arc::clone(&ends), clock.clone());
        ReadRequest {
            offset: sector * SECTOR,
            buffer: sectors(1),
            completion: Box::new(move |result| {
                result.unwrap();
                ends.lock().push(clock.now());
            }),
        }
    });
    file.submit_reads(requests.collect());
    let took = clock.now() - before;
    let ends = ends.lock();
    assert_eq!(ends.len(), 64);
    assert!(
        ends.is_sorted(),
        "completions run in the order of their ends"
    );
    let expected = 64.0 / profile(DeviceKind::Ssd).per_second(Access::Read, SECTOR, 64);
    let ratio = took.as_secs_f64() / expected;
    assert!((0.9..1.25).contains(&ratio), "{ratio}");
}

/// Reads one sector after the other from within completions.
fn chain(file: &Arc<dyn DeviceFile>, left: u64, done: &Arc<AtomicU64>) {
    let (again, count) = (Arc::clone(file), Arc::clone(done));
    let completion = move |result: io::Result<AlignedBuffer>| {
        result.unwrap();
        count.fetch_add(1, Ordering::Relaxed);
        if left > 1 {
            chain(&again, left - 1, &count);
        }
    };
    file.submit_reads(vec![ReadRequest {
        offset: left % 16 * SECTOR,
        buffer: sectors(1),
        completion: Box::new(completion),
    }]);
}

#[test]
fn a_completion_may_submit_again_and_time_goes_on() {
    let (device, clock) = simulated(DeviceKind::Xpoint);
    let file = device.open("file", OpenMode::Create).unwrap();
    file.write_at(&sectors(16), 0).unwrap();
    let done = Arc::new(AtomicU64::new(0));
    let before = clock.now();
    chain(&file, 10_000, &done);
    assert_eq!(done.load(Ordering::Relaxed), 10_000);
    let took = clock.now() - before;
    let us = took.as_secs_f64() * 1e6 / 10_000.0;
    assert!((9.5..12.0).contains(&us), "{us} us each");
}

#[test]
fn reads_that_stall_below_come_when_they_are_let_go() {
    let clock = SimulatedClock::new();
    let below = SimulatedDevice::new();
    let device = EmulatedDevice::simulated(
        Arc::new(below.clone()),
        profile(DeviceKind::Hdd),
        clock.clone(),
    )
    .unwrap();
    let file = device.open("file", OpenMode::Create).unwrap();
    file.write_at(&sectors(16), 0).unwrap();
    below.set_stalls(true);
    let done = Arc::new(AtomicU64::new(0));
    chain(&file, 1, &done);
    chain(&file, 1, &done);
    assert_eq!(done.load(Ordering::Relaxed), 0);
    assert!(below.let_go(1));
    assert_eq!(done.load(Ordering::Relaxed), 1);
    below.set_stalls(false);
    assert_eq!(done.load(Ordering::Relaxed), 2);
}

#[test]
fn errors_of_the_device_below_pass_and_a_wrong_offset_is_refused() {
    let (device, _clock) = simulated(DeviceKind::Hdd);
    let file = device.open("file", OpenMode::Create).unwrap();
    assert!(file.read_at(&mut [0; 8], 0).is_err());
    let errors = Arc::new(Mutex::new(Vec::new()));
    for offset in [5, 1 << 20] {
        let errors = Arc::clone(&errors);
        file.submit_reads(vec![ReadRequest {
            offset,
            buffer: sectors(1),
            completion: Box::new(move |result| errors.lock().push(result.unwrap_err().kind())),
        }]);
    }
    let expected = [io::ErrorKind::InvalidInput, io::ErrorKind::UnexpectedEof];
    assert_eq!(*errors.lock(), expected);
    assert_eq!(device.counters().snapshot().errors, 3);
    assert_eq!(device.counters().snapshot().in_flight, 0);
    assert!(device.open("../x", OpenMode::Create).is_err());
}

#[test]
fn names_and_their_places_go_with_renames_and_removals() {
    let (device, _clock) = simulated(DeviceKind::Hdd);
    let file = device.open("one", OpenMode::CreateNew).unwrap();
    file.write_at(&sectors(1), 0).unwrap();
    device.rename("one", "two").unwrap();
    device.sync_directory().unwrap();
    assert_eq!(device.list().unwrap(), ["two"]);
    assert_eq!(device.placements.lock().len(), 1);
    device.remove("two").unwrap();
    assert_eq!(device.placements.lock().len(), 0);
    let temporary = device.temporary().unwrap();
    temporary.write_at(&sectors(1), 0).unwrap();
    device.remove_temporary().unwrap();
}

/// A profile that any machine can keep.
fn slow() -> EmulatedProfile {
    EmulatedProfile {
        read_ns: 20_000_000,
        write_ns: 20_000_000,
        sync_ns: 1_000_000_000,
        read_rate: 20_000_000,
        write_rate: 1_000_000,
        request_rate: 20_000_000,
        spread_percent: 0,
        ..profile(DeviceKind::Ssd)
    }
}

#[test]
fn on_the_machines_clock_reads_wait_in_threads_and_asynchronously() {
    let device = EmulatedDevice::new(Arc::new(MemoryDevice::new()), slow()).unwrap();
    let file = device.open("file", OpenMode::Create).unwrap();
    file.write_at(&sectors(16), 0).unwrap();
    let before = Instant::now();
    file.read_at(&mut sectors(1), 0).unwrap();
    assert!(before.elapsed() >= Duration::from_millis(20));
    let before = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| file.read_at(&mut sectors(1), 0).unwrap());
        }
    });
    let took = before.elapsed();
    assert!(took >= Duration::from_millis(20), "{took:?}");
    let (sender, receiver) = std::sync::mpsc::channel();
    let before = Instant::now();
    let requests = (0..16).map(|sector| {
        let sender = sender.clone();
        ReadRequest {
            offset: sector * SECTOR,
            buffer: sectors(1),
            completion: Box::new(move |result| sender.send(result.is_ok()).unwrap()),
        }
    });
    file.submit_reads(requests.collect());
    drop(file);
    drop(device);
    assert_eq!((0..16).filter(|_| receiver.recv().unwrap()).count(), 16);
    let took = before.elapsed();
    assert!(
        took >= Duration::from_millis(40),
        "two turns of 8: {took:?}"
    );
}

#[test]
fn a_device_that_is_slower_than_the_profile_is_refused_with_its_figure() {
    let directory = tempfile::tempdir().unwrap();
    let below = FileDevice::open(directory.path(), IoEngine::Threads).unwrap();
    let below: Arc<dyn Device> = Arc::new(below);
    let faster_than_any_file = EmulatedProfile {
        read_ns: 1,
        request_rate: u64::MAX,
        read_rate: u64::MAX,
        ..profile(DeviceKind::Dram)
    };
    let Err(error) = EmulatedDevice::new(Arc::clone(&below), faster_than_any_file) else {
        panic!("a read of a file takes more than a nanosecond");
    };
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    let said = error.to_string();
    assert!(said.contains("a read of 4 KB takes"), "{said}");
    assert!(said.contains("/dev/shm"), "{said}");
    assert_eq!(below.list().unwrap(), Vec::<String>::new());
}

#[test]
fn a_device_that_is_not_paced_does_its_work_and_takes_no_time() {
    let (device, clock) = simulated(DeviceKind::Hdd);
    let file = device.open("file", OpenMode::Create).unwrap();
    device.set_paced(false);
    let before = clock.now();
    let mut bytes = sectors(1);
    bytes.fill(9);
    file.write_at(&bytes, 0).unwrap();
    file.sync_data().unwrap();
    let read = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&read);
    file.submit_reads(vec![ReadRequest {
        offset: 0,
        buffer: sectors(1),
        completion: Box::new(move |result| *kept.lock() = Some(result)),
    }]);
    let buffer = read.lock().take().expect("it is over").unwrap();
    assert!(buffer.iter().all(|&byte| byte == 9));
    assert_eq!(clock.now(), before);
    let counted = device.counters().snapshot();
    assert_eq!((counted.reads, counted.writes, counted.syncs), (1, 1, 1));
    device.set_paced(true);
    file.read_at(&mut bytes, 0).unwrap();
    assert!(clock.now() > before);
}

/// Looks at a range and touches some of it; the nanoseconds that it took.
fn look(file: &dyn DeviceFile, clock: &SimulatedClock, at: u64, touched: usize) -> u128 {
    let before = clock.now();
    file.look(at, 4096, &mut |there| {
        assert!(there.iter().all(|byte| *byte == 7));
        touched
    })
    .unwrap();
    (clock.now() - before).as_nanos()
}

#[test]
fn a_look_takes_the_time_of_the_cache_lines_that_it_touches() {
    for (kind, line_ns) in [(DeviceKind::Nvram, 400), (DeviceKind::Dram, 100)] {
        let (device, clock) = simulated(kind);
        let file = device.open("file", OpenMode::Create).unwrap();
        let mut bytes = sectors(2);
        bytes.fill(7);
        file.write_at(&bytes, 0).unwrap();
        // One line, two since it begins at the end of one, and what a KB takes.
        let (one, two) = (look(&*file, &clock, 0, 8), look(&*file, &clock, 60, 8));
        let many = look(&*file, &clock, 64, 1024);
        assert!((line_ns - 2..=line_ns + 2).contains(&one), "{one}");
        let next = line_ns / 6;
        assert!((one + next - 2..=one + next + 2).contains(&two), "{two}");
        let expected = one + 15 * next;
        assert!((expected - 20..=expected + 20).contains(&many), "{many}");
        let reads = device.counters().snapshot().reads;
        assert_eq!((reads, device.counts().operations), (0, 4));
        device.set_paced(false);
        assert_eq!(look(&*file, &clock, 0, 1024), 0);
    }
}

#[test]
fn a_disk_is_not_looked_at() {
    for kind in [DeviceKind::Hdd, DeviceKind::Ssd, DeviceKind::Xpoint] {
        let (device, _) = simulated(kind);
        let file = device.open("file", OpenMode::Create).unwrap();
        file.write_at(&sectors(1), 0).unwrap();
        let error = file
            .look(0, 8, &mut |_| unreachable!("it is no memory"))
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }
}
