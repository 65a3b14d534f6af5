use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::SimulatedDevice;

const SECTOR: u64 = SECTOR_BYTES as u64;
const PATIENCE: Duration = Duration::from_secs(60);

/// Every engine that this machine has, on a fresh directory each.
fn devices() -> Vec<(tempfile::TempDir, FileDevice)> {
    [IoEngine::Threads, IoEngine::IoUring]
        .into_iter()
        .filter_map(|engine| {
            let directory = tempfile::tempdir().unwrap();
            match FileDevice::open(directory.path(), engine) {
                Ok(device) => Some((directory, device)),
                Err(error) => {
                    assert_eq!(engine, IoEngine::IoUring, "{error}");
                    eprintln!("not tested here: {engine:?}: {error}");
                    None
                }
            }
        })
        .collect()
}

/// Reads ranges (sector, sectors) all at once; the results in their order.
fn read_all(file: &dyn DeviceFile, ranges: &[(u64, usize)]) -> Vec<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    let requests = ranges.iter().enumerate().map(|(i, &(sector, sectors))| {
        let sender = sender.clone();
        let mut buffer = AlignedBuffer::new_zeroed(sectors * SECTOR_BYTES);
        buffer.fill(0xee);
        ReadRequest {
            offset: sector * SECTOR,
            buffer,
            completion: Box::new(move |result| {
                sender
                    .send((i, result.map(|bytes| bytes.to_vec())))
                    .unwrap();
            }),
        }
    });
    file.submit_reads(requests.collect());
    let mut results: Vec<_> = ranges
        .iter()
        .map(|_| receiver.recv_timeout(PATIENCE).unwrap())
        .collect();
    results.sort_by_key(|&(i, _)| i);
    results.into_iter().map(|(_, result)| result).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Write {
        offset: u64,
        len: usize,
        byte: u8,
    },
    WriteSectors {
        sector: u64,
        sectors: usize,
        byte: u8,
    },
    SetLen(u64),
    PunchSectors {
        sector: u64,
        sectors: u64,
    },
    Read {
        offset: u64,
        len: usize,
    },
    ReadSectors {
        sector: u64,
        sectors: usize,
    },
    Submit(Vec<(u64, usize)>),
    Sync,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..60_000_u64, 0..10_000_usize, 1..=255_u8).prop_map(|(offset, len, byte)| Step::Write {
            offset,
            len,
            byte
        }),
        (0..16_u64, 0..5_usize, 1..=255_u8).prop_map(|(sector, sectors, byte)| {
            Step::WriteSectors {
                sector,
                sectors,
                byte,
            }
        }),
        (0..80_000_u64).prop_map(Step::SetLen),
        (0..16_u64, 0..5_u64).prop_map(|(sector, sectors)| Step::PunchSectors { sector, sectors }),
        (0..80_000_u64, 0..10_000_usize).prop_map(|(offset, len)| Step::Read { offset, len }),
        (0..20_u64, 0..5_usize).prop_map(|(sector, sectors)| Step::ReadSectors { sector, sectors }),
        prop::collection::vec((0..20_u64, 1..5_usize), 0..8).prop_map(Step::Submit),
        Just(Step::Sync),
    ];
    prop::collection::vec(step, 1..30)
}

fn write_to(model: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if !bytes.is_empty() {
        model.resize(model.len().max(offset + bytes.len()), 0);
        model[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
}

fn check_read(read: io::Result<()>, seen: &[u8], model: &[u8], offset: usize) {
    match model.get(offset..offset + seen.len()) {
        Some(expected) => {
            read.unwrap();
            assert!(seen == expected, "{} bytes at {offset} differ", seen.len());
        }
        None if seen.is_empty() => read.unwrap(),
        None => assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof),
    }
}

fn play(file: &dyn DeviceFile, model: &mut Vec<u8>, step: &Step) {
    match *step {
        Step::Write { offset, len, byte } => {
            let bytes = vec![byte; len];
            file.write_at(&bytes, offset).unwrap();
            write_to(model, offset as usize, &bytes);
        }
        Step::WriteSectors {
            sector,
            sectors,
            byte,
        } => {
            let mut bytes = AlignedBuffer::new_zeroed(sectors * SECTOR_BYTES);
            bytes.fill(byte);
            file.write_at(&bytes, sector * SECTOR).unwrap();
            write_to(model, (sector * SECTOR) as usize, &bytes);
        }
        Step::SetLen(len) => {
            file.set_len(len).unwrap();
            model.resize(len as usize, 0);
        }
        Step::PunchSectors { sector, sectors } => {
            file.punch_hole(sector * SECTOR, sectors * SECTOR).unwrap();
            let end = model.len().min(((sector + sectors) * SECTOR) as usize);
            if let Some(hole) = model.get_mut((sector * SECTOR) as usize..end) {
                hole.fill(0);
            }
        }
        Step::Read { offset, len } => {
            let mut seen = vec![0xee; len];
            let read = file.read_at(&mut seen, offset);
            check_read(read, &seen, model, offset as usize);
        }
        Step::ReadSectors { sector, sectors } => {
            let mut seen = AlignedBuffer::new_zeroed(sectors * SECTOR_BYTES);
            let read = file.read_at(&mut seen, sector * SECTOR);
            check_read(read, &seen, model, (sector * SECTOR) as usize);
        }
        Step::Submit(ref ranges) => {
            for (&(sector, sectors), read) in ranges.iter().zip(read_all(file, ranges)) {
                let from = (sector * SECTOR) as usize;
                if from < model.len() {
                    let end = model.len().min(from + sectors * SECTOR_BYTES);
                    let mut expected = model[from..end].to_vec();
                    expected.resize(sectors * SECTOR_BYTES, 0);
                    assert!(read.unwrap() == expected, "{sectors} at {sector} differ");
                } else {
                    assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
                }
            }
        }
        Step::Sync => file.sync_data().unwrap(),
    }
    assert_eq!(file.len().unwrap(), model.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn every_engine_and_the_simulation_answer_as_a_vector_of_bytes(steps in steps()) {
        let real = devices();
        let simulated = SimulatedDevice::new();
        let all = real.iter().map(|(_, device)| device as &dyn Device);
        for device in all.chain([&simulated as &dyn Device]) {
            let file = device.open("data", OpenMode::CreateNew).unwrap();
            let mut model = Vec::new();
            for step in &steps {
                play(&*file, &mut model, step);
            }
            let mut seen = vec![0; model.len()];
            file.read_at(&mut seen, 0).unwrap();
            prop_assert!(seen == model, "{} ends differently", device.describe());
            let counters = device.counters().snapshot();
            prop_assert_eq!(counters.in_flight, 0);
        }
    }
}

#[test]
fn two_thousand_reads_from_several_threads_complete_with_their_own_sectors() {
    const SECTORS: u64 = 512;
    for (_directory, device) in devices() {
        let file = device.open("data", OpenMode::Create).unwrap();
        let mut bytes = AlignedBuffer::new_zeroed((SECTORS * SECTOR) as usize);
        for (sector, chunk) in bytes.chunks_mut(SECTOR_BYTES).enumerate() {
            chunk.fill(sector as u8);
            chunk[..8].copy_from_slice(&(sector as u64).to_le_bytes());
        }
        file.write_at(&bytes, 0).unwrap();
        // More at once than the ring holds and than the pool has threads.
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let file = &file;
                scope.spawn(move || {
                    let ranges: Vec<_> = (0..500)
                        .map(|i| ((i * 37 + thread * 101) % SECTORS, 1))
                        .collect();
                    for (&(sector, _), read) in ranges.iter().zip(read_all(&**file, &ranges)) {
                        let read = read.unwrap();
                        assert_eq!(read[..8], sector.to_le_bytes());
                        assert!(read[8..].iter().all(|&byte| byte == sector as u8));
                    }
                });
            }
        });
        let counters = device.counters().snapshot();
        assert_eq!((counters.reads, counters.errors), (2000, 0));
        assert_eq!(counters.read_bytes, 2000 * SECTOR);
        assert_eq!(counters.read_latency.count(), 2000);
        assert!(counters.read_latency_us_p50 <= counters.read_latency_us_p99);
    }
}

#[test]
fn reads_past_the_end_and_off_a_sector_are_refused_and_a_tail_is_zeros() {
    for (_directory, device) in devices() {
        let file = device.open("data", OpenMode::Create).unwrap();
        file.write_at(&[5; 5000], 0).unwrap();
        let results = read_all(&*file, &[(0, 4), (1, 1), (2, 1), (1 << 40, 1)]);
        let whole = results[0].as_ref().unwrap();
        assert!(whole[..5000].iter().all(|&byte| byte == 5));
        assert!(whole[5000..].iter().all(|&byte| byte == 0));
        assert_eq!(results[1].as_ref().unwrap()[904..], [0; SECTOR_BYTES - 904]);
        for past in &results[2..] {
            let error = past.as_ref().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
            assert!(error.to_string().contains("data"), "{error}");
        }
        let (sender, receiver) = mpsc::channel();
        file.submit_reads(vec![ReadRequest {
            offset: 100,
            buffer: AlignedBuffer::new_zeroed(SECTOR_BYTES),
            completion: Box::new(move |result| sender.send(result.map(drop)).unwrap()),
        }]);
        let off = receiver.recv_timeout(PATIENCE).unwrap().unwrap_err();
        assert_eq!(off.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(device.counters().snapshot().errors, 3);
    }
}

#[test]
fn reads_outlive_their_handle_their_device_and_the_thread_that_submitted_them() {
    for (_directory, device) in devices() {
        let done = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&done);
        std::thread::spawn(move || {
            let file = device.open("data", OpenMode::Create).unwrap();
            file.set_len(1 << 20).unwrap();
            let requests = (0..1000).map(|i| {
                let done = Arc::clone(&counting);
                ReadRequest {
                    offset: i % 256 * SECTOR,
                    buffer: AlignedBuffer::new_zeroed(SECTOR_BYTES),
                    completion: Box::new(move |result| {
                        assert!(result.is_ok());
                        done.fetch_add(1, SeqCst);
                    }),
                }
            });
            file.submit_reads(requests.collect());
        })
        .join()
        .unwrap();
        // Dropping the last handle waited for all of them.
        assert_eq!(done.load(SeqCst), 1000);
    }
}

#[test]
fn the_last_handle_may_be_dropped_by_a_completion() {
    for (_directory, device) in devices() {
        let file = device.open("data", OpenMode::Create).unwrap();
        file.set_len(SECTOR).unwrap();
        let (sender, receiver) = mpsc::channel();
        let (device, last) = (Mutex::new(Some(device)), Arc::clone(&file));
        file.submit_reads(vec![ReadRequest {
            offset: 0,
            buffer: AlignedBuffer::new_zeroed(SECTOR_BYTES),
            completion: Box::new(move |result| {
                // Wait until the test has let go, so that these really are the last.
                while Arc::strong_count(&last) > 1 {
                    std::thread::yield_now();
                }
                drop((device.lock().take(), last));
                sender.send(result.map(drop)).unwrap();
            }),
        }]);
        drop(file);
        receiver.recv_timeout(PATIENCE).unwrap().unwrap();
    }
}

#[test]
fn a_completion_that_panics_does_not_take_other_reads_with_it() {
    for (_directory, device) in devices() {
        let file = device.open("data", OpenMode::Create).unwrap();
        file.set_len(SECTOR).unwrap();
        for _ in 0..40 {
            file.submit_reads(vec![ReadRequest {
                offset: 0,
                buffer: AlignedBuffer::new_zeroed(SECTOR_BYTES),
                completion: Box::new(|_| std::panic::resume_unwind(Box::new("expected"))),
            }]);
        }
        assert!(read_all(&*file, &[(0, 1)])[0].is_ok());
        drop((file, device));
    }
}

#[test]
fn names_are_listed_renamed_and_removed_and_never_leave_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let _lock = crate::lock_directory(directory.path()).unwrap();
    let device = FileDevice::open(directory.path(), IoEngine::Auto).unwrap();
    let missing = |result: io::Result<Arc<dyn DeviceFile>>| result.err().unwrap().kind();
    assert_eq!(
        missing(device.open("b", OpenMode::Existing)),
        io::ErrorKind::NotFound
    );
    device.open("b", OpenMode::CreateNew).unwrap();
    assert_eq!(
        missing(device.open("b", OpenMode::CreateNew)),
        io::ErrorKind::AlreadyExists
    );
    let a = device.open("a", OpenMode::Create).unwrap();
    a.write_at(b"kept", 0).unwrap();
    device.open("a", OpenMode::Create).unwrap();
    assert_eq!(a.len().unwrap(), 4, "opening again does not truncate");
    assert_eq!(device.list().unwrap(), ["a", "b"]);
    device.rename("a", "b").unwrap();
    device.sync_directory().unwrap();
    assert_eq!(device.list().unwrap(), ["b"]);
    device.remove("b").unwrap();
    assert!(device.list().unwrap().is_empty());
    for name in ["", ".", "..", ".hidden", "../a", "a/b", "a\0"] {
        assert_eq!(
            missing(device.open(name, OpenMode::Create)),
            io::ErrorKind::InvalidInput
        );
    }
}

#[test]
fn the_description_tells_engine_and_directness_truly() {
    for (directory, device) in devices() {
        let description = device.describe();
        let engine = match device.engine() {
            IoEngine::IoUring => ", io_uring, ",
            _ => ", threads, ",
        };
        assert!(description.contains(engine), "{description}");
        let last = if device.is_direct() {
            "direct"
        } else {
            "buffered"
        };
        assert!(description.ends_with(last), "{description}");
        let canonical = directory.path().canonicalize().unwrap();
        assert!(description.starts_with(&*canonical.to_string_lossy()));
        assert!(device.free_bytes().unwrap() > 0);
    }
    if Path::new("/dev/shm").is_dir()
        && let Ok(directory) = tempfile::tempdir_in("/dev/shm")
    {
        let device = FileDevice::open(directory.path(), IoEngine::Auto).unwrap();
        if device.describe().contains("(tmpfs)") {
            assert!(!device.is_direct());
        }
    }
}

#[test]
fn a_direct_descriptor_gets_whole_sectors_only() {
    for (_directory, device) in devices().into_iter().filter(|(_, d)| d.is_direct()) {
        let path = device.path_of("data").unwrap();
        device.open("data", OpenMode::Create).unwrap();
        let open = |flags| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).custom_flags(flags);
            options.open(&path).unwrap()
        };
        let file = OpenFile {
            name: "data".into(),
            buffered: open(0),
            direct: Some(open(sys::O_DIRECT)),
            mapping: Mapping::default(),
        };
        let aligned = AlignedBuffer::new_zeroed(2 * SECTOR_BYTES);
        let is_direct =
            |bytes, offset| std::ptr::eq(file.for_bytes(bytes, offset), file.for_aligned());
        assert!(is_direct(&aligned, SECTOR));
        assert!(!is_direct(&aligned, 512), "an offset inside a sector");
        assert!(!is_direct(&aligned[1..], 0), "an address inside a sector");
        assert!(!is_direct(&aligned[..100], 0), "a part of a sector");
        file.write_at(&aligned[1..], 1).unwrap();
        file.write_at(&aligned, 0).unwrap();
        assert_eq!(file.len().unwrap(), 2 * SECTOR);
    }
}

/// What `look` sees of a range.
fn seen(file: &dyn DeviceFile, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut seen = Vec::new();
    file.look(offset, bytes, &mut |there| {
        seen = there.to_vec();
        there.len()
    })?;
    Ok(seen)
}

#[test]
fn what_is_looked_at_is_what_was_written_while_the_file_grows_and_is_cut() {
    for (_directory, device) in devices() {
        let file = device.open("looked-at", OpenMode::CreateNew).unwrap();
        assert!(seen(&*file, 0, 1).is_err(), "an empty file");
        file.set_len(8 * SECTOR).unwrap();
        let mut block = AlignedBuffer::new_zeroed(2 * SECTOR_BYTES);
        for round in 1..=3u8 {
            // Pages that were seen are written anew.
            block.fill(round);
            file.write_at(&block, SECTOR).unwrap();
            let there = seen(&*file, SECTOR + 5, 2 * SECTOR_BYTES - 10).unwrap();
            assert!(there.iter().all(|byte| *byte == round), "round {round}");
            let around = seen(&*file, SECTOR - 1, 2 * SECTOR_BYTES + 2).unwrap();
            assert_eq!((around[0], around[2 * SECTOR_BYTES + 1]), (0, 0));
        }
        let last = 8 * SECTOR - 1;
        assert_eq!(seen(&*file, last, 1).unwrap(), [0]);
        assert!(seen(&*file, last, 2).is_err());
        file.set_len(16 * SECTOR).unwrap();
        assert_eq!(seen(&*file, last, 2).unwrap(), [0, 0]);
        file.set_len(2 * SECTOR).unwrap();
        let error = seen(&*file, last, 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(seen(&*file, SECTOR, 1).unwrap(), [3]);
        file.set_len(8 * SECTOR).unwrap();
        assert_eq!(seen(&*file, 2 * SECTOR, 1).unwrap(), [0], "cut and gone");
        assert!(seen(&*file, u64::MAX, 1).is_err());
    }
}
