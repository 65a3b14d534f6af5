use proptest::prelude::*;

use super::*;
use crate::{AlignedBuffer, ReadRequest};

const SECTOR: u64 = SECTOR_BYTES as u64;

fn contents(device: &SimulatedDevice, name: &str) -> io::Result<Vec<u8>> {
    let file = device.open(name, OpenMode::Existing)?;
    let mut bytes = vec![0; file.len()? as usize];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// A device with a durable file of `sectors` sectors of ones.
fn with_durable(name: &str, sectors: usize) -> SimulatedDevice {
    let device = SimulatedDevice::new();
    let file = device.open(name, OpenMode::CreateNew).unwrap();
    file.write_at(&vec![1; sectors * SECTOR_BYTES], 0).unwrap();
    file.sync_data().unwrap();
    device.sync_directory().unwrap();
    device
}

#[test]
fn what_was_synced_survives_every_crash() {
    for seed in 0..200 {
        let device = with_durable("data", 3);
        device.crash(seed);
        assert_eq!(contents(&device, "data").unwrap(), [1; 3 * SECTOR_BYTES]);
    }
}

#[test]
fn a_crash_keeps_any_set_of_whole_sectors_of_an_unsynced_write() {
    let mut seen = BTreeSet::new();
    for seed in 0..500 {
        let device = with_durable("data", 3);
        let file = device.open("data", OpenMode::Existing).unwrap();
        file.write_at(&[2; 3 * SECTOR_BYTES], 0).unwrap();
        device.crash(seed);
        let bytes = contents(&device, "data").unwrap();
        assert_eq!(bytes.len(), 3 * SECTOR_BYTES);
        let sectors: Vec<u8> = bytes
            .chunks(SECTOR_BYTES)
            .map(|sector| {
                assert!(sector.iter().all(|&byte| byte == sector[0]), "torn");
                sector[0]
            })
            .collect();
        seen.insert(sectors);
    }
    assert_eq!(seen.len(), 8, "{seen:?}");
}

#[test]
fn sectors_tear_when_asked_to() {
    let torn = (0..100).any(|seed| {
        let device = with_durable("data", 1);
        device.set_atomic_write_bytes(512);
        let file = device.open("data", OpenMode::Existing).unwrap();
        file.write_at(&[2; SECTOR_BYTES], 0).unwrap();
        device.crash(seed);
        let bytes = contents(&device, "data").unwrap();
        assert!(bytes.chunks(512).all(|c| c.iter().all(|&b| b == c[0])));
        bytes.contains(&1) && bytes.contains(&2)
    });
    assert!(torn);
}

#[test]
fn an_unsynced_extension_may_be_lost_cut_or_full_of_zeros() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..500 {
        let device = with_durable("data", 1);
        let file = device.open("data", OpenMode::Existing).unwrap();
        file.set_len(2 * SECTOR).unwrap();
        file.write_at(&[2; 2 * SECTOR_BYTES], SECTOR).unwrap();
        device.crash(seed);
        let bytes = contents(&device, "data").unwrap();
        assert_eq!(bytes[..SECTOR_BYTES], [1; SECTOR_BYTES]);
        let rest = bytes.chunks(SECTOR_BYTES).skip(1);
        outcomes.insert(rest.map(|sector| sector[0]).collect::<Vec<_>>());
    }
    let expected: BTreeSet<Vec<u8>> = [&[][..], &[0], &[2], &[0, 0], &[0, 2], &[2, 0], &[2, 2]]
        .map(<[u8]>::to_vec)
        .into();
    assert_eq!(outcomes, expected);
}

#[test]
fn a_new_file_needs_a_sync_of_its_directory_to_survive_for_sure() {
    let outcomes: BTreeSet<bool> = (0..50)
        .map(|seed| {
            let device = SimulatedDevice::new();
            let file = device.open("new", OpenMode::CreateNew).unwrap();
            file.write_at(b"data", 0).unwrap();
            file.sync_data().unwrap();
            device.crash(seed);
            match contents(&device, "new") {
                Ok(bytes) => {
                    assert_eq!(bytes, b"data", "its data was synced");
                    true
                }
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::NotFound);
                    false
                }
            }
        })
        .collect();
    assert_eq!(outcomes.len(), 2, "both happen");
}

#[test]
fn a_rename_is_atomic_and_durable_after_a_sync_of_the_directory() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..50 {
        let device = with_durable("current", 1);
        let file = device.open("next", OpenMode::CreateNew).unwrap();
        file.write_at(b"next", 0).unwrap();
        file.sync_data().unwrap();
        device.rename("next", "current").unwrap();
        device.crash(seed);
        let current = contents(&device, "current").unwrap();
        let renamed = current == b"next";
        assert!(renamed || current == [1; SECTOR_BYTES]);
        outcomes.insert((renamed, device.list().unwrap().len()));
        if !renamed {
            continue;
        }
        device.remove("current").unwrap();
        device.sync_directory().unwrap();
        device.crash(seed);
        assert!(device.list().unwrap().is_empty());
    }
    assert_eq!(outcomes, [(false, 1), (false, 2), (true, 1)].into());
}

#[test]
fn losing_all_keeps_exactly_what_was_synced() {
    let device = with_durable("data", 1);
    let file = device.open("data", OpenMode::Existing).unwrap();
    file.write_at(&[2; SECTOR_BYTES], 0).unwrap();
    device.open("new", OpenMode::CreateNew).unwrap();
    device.crash_losing_all();
    assert_eq!(device.list().unwrap(), ["data"]);
    assert_eq!(contents(&device, "data").unwrap(), [1; SECTOR_BYTES]);
    let dead = file.write_at(&[3], 0).unwrap_err();
    assert!(dead.to_string().contains("before"), "{dead}");
}

#[test]
fn a_sync_that_failed_is_not_made_good_by_one_that_succeeds() {
    let lost = (0..50).filter(|&seed| {
        let device = with_durable("data", 1);
        device.crash(seed);
        let file = device.open("data", OpenMode::Existing).unwrap();
        file.write_at(&[2; SECTOR_BYTES], 0).unwrap();
        device.fail_next(Operation::Sync, io::ErrorKind::Other);
        assert!(file.sync_data().is_err());
        file.sync_data().unwrap();
        assert_eq!(
            contents(&device, "data").unwrap()[0],
            2,
            "seen all the same"
        );
        device.crash(seed);
        contents(&device, "data").unwrap()[0] == 1
    });
    assert!(
        (5..=45).contains(&lost.count()),
        "lost for good, or by luck not"
    );
}

#[test]
fn failures_happen_once_each_in_their_order_and_are_counted() {
    let device = with_durable("data", 1);
    let file = device.open("data", OpenMode::Existing).unwrap();
    device.fail_next(Operation::Write, io::ErrorKind::TimedOut);
    device.fail_next(Operation::Write, io::ErrorKind::StorageFull);
    let write = || file.write_at(&[7], 0).map_err(|error| error.kind());
    assert_eq!(write(), Err(io::ErrorKind::TimedOut));
    assert_eq!(contents(&device, "data").unwrap()[0], 1);
    assert_eq!(write(), Err(io::ErrorKind::StorageFull));
    assert_eq!(write(), Ok(()));
    device.fail_next(Operation::Read, io::ErrorKind::Other);
    assert!(file.read_at(&mut [0], 0).is_err());
    assert_eq!(device.counters().snapshot().errors, 3);
    assert_eq!(device.counters().snapshot().in_flight, 0);
}

#[test]
fn a_full_device_refuses_growth_until_there_is_room() {
    let device = with_durable("data", 2);
    device.set_capacity_bytes(Some(4 * SECTOR));
    assert_eq!(device.free_bytes().unwrap(), 2 * SECTOR);
    let full = |result: io::Result<()>| result.unwrap_err().kind() == io::ErrorKind::StorageFull;
    let file = device.open("more", OpenMode::Create).unwrap();
    assert!(full(file.set_len(3 * SECTOR)));
    file.set_len(2 * SECTOR).unwrap();
    assert!(full(file.write_at(&[1], 2 * SECTOR)));
    file.write_at(&[1; 2 * SECTOR_BYTES], 0).unwrap();
    let data = device.open("data", OpenMode::Existing).unwrap();
    data.punch_hole(0, SECTOR).unwrap();
    file.write_at(&[1], 2 * SECTOR).unwrap();
    assert!(full(data.write_at(&[1], 0)), "the hole's space is taken");
    drop(file);
    device.remove("more").unwrap();
    device.sync_directory().unwrap();
    data.write_at(&[1], 0).unwrap();
}

#[test]
fn asynchronous_reads_complete_at_once_with_the_same_rules() {
    let device = SimulatedDevice::new();
    let file = device.open("data", OpenMode::Create).unwrap();
    file.write_at(&[5; 5000], 0).unwrap();
    let read = |offset| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut buffer = AlignedBuffer::new_zeroed(SECTOR_BYTES);
        buffer.fill(0xee);
        file.submit_reads(vec![ReadRequest {
            offset,
            buffer,
            completion: Box::new(move |result| sender.send(result).unwrap()),
        }]);
        receiver.try_recv().unwrap()
    };
    let tail = read(SECTOR).unwrap();
    assert_eq!((tail[903], tail[904], tail[4095]), (5, 0, 0));
    let kind = |result: io::Result<AlignedBuffer>| result.unwrap_err().kind();
    assert_eq!(kind(read(2 * SECTOR)), io::ErrorKind::UnexpectedEof);
    assert_eq!(kind(read(7)), io::ErrorKind::InvalidInput);
    device.fail_next(Operation::Read, io::ErrorKind::TimedOut);
    assert_eq!(kind(read(0)), io::ErrorKind::TimedOut);
    assert_eq!(device.counters().snapshot().in_flight, 0);
}

/// A script that keeps a counter in two files by writing aside and renaming.
fn count_to(device: &SimulatedDevice, last: u64) -> (u64, io::Result<()>) {
    let mut acknowledged = 0;
    let mut step = |number: u64| {
        let file = device.open("next", OpenMode::Create)?;
        file.set_len(8)?;
        file.write_at(&number.to_le_bytes(), 0)?;
        file.sync_data()?;
        device.rename("next", "counter")?;
        device.sync_directory()?;
        acknowledged = number;
        Ok(())
    };
    let result = (1..=last).try_for_each(&mut step);
    (acknowledged, result)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_sound_protocol_survives_a_halt_at_any_operation(operations in 0..40_u64, seed: u64) {
        let device = SimulatedDevice::new();
        device.halt_after(operations);
        let (acknowledged, result) = count_to(&device, 5);
        prop_assert_eq!(result.is_err(), device.list().is_err(), "halted means halted");
        device.crash(seed);
        let found = match contents(&device, "counter") {
            Ok(bytes) => u64::from_le_bytes(bytes.try_into().unwrap()),
            Err(error) => {
                prop_assert_eq!(error.kind(), io::ErrorKind::NotFound);
                0
            }
        };
        prop_assert!(found == acknowledged || found == acknowledged + 1);
        // And it goes on from there.
        prop_assert!(count_to(&device, 2).1.is_ok());
    }

    #[test]
    fn the_same_seed_gives_the_same_crash(operations in 0..40_u64, seed: u64) {
        let run = || {
            let device = SimulatedDevice::new();
            device.halt_after(operations);
            let (acknowledged, _) = count_to(&device, 5);
            device.crash(seed);
            let names = device.list().unwrap();
            let files: Vec<_> =
                names.iter().map(|name| contents(&device, name).unwrap()).collect();
            (acknowledged, names, files)
        };
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn without_the_sync_the_same_protocol_is_caught_losing_data() {
    let caught = (0..100).any(|seed| {
        let device = SimulatedDevice::new();
        let file = device.open("next", OpenMode::Create).unwrap();
        file.write_at(&[1; 8], 0).unwrap();
        device.rename("next", "counter").unwrap();
        device.sync_directory().unwrap();
        device.crash(seed);
        contents(&device, "counter").unwrap() != [1; 8]
    });
    assert!(caught);
}

#[test]
fn operations_are_counted_so_that_every_halt_can_be_visited() {
    let device = SimulatedDevice::new();
    count_to(&device, 1).1.unwrap();
    assert_eq!(device.operations(), 6);
}

#[test]
fn a_flipped_bit_stays_flipped_through_a_crash() {
    let device = with_durable("data", 2);
    assert!(device.flip_bit("data", 5000, 3));
    assert!(!device.flip_bit("data", 3 * SECTOR, 0), "past the end");
    device.crash(1);
    let bytes = contents(&device, "data").unwrap();
    assert_eq!(bytes[5000], 1 ^ 8);
    assert_eq!(bytes.iter().filter(|&&byte| byte != 1).count(), 1);
    let (name, offset) = device.flip_random_bit("da", 7).unwrap();
    assert_eq!(name, "data");
    let after = contents(&device, "data").unwrap();
    let differ: Vec<usize> = (0..bytes.len()).filter(|&i| bytes[i] != after[i]).collect();
    assert_eq!(differ, [offset as usize]);
    assert_eq!(device.fault_counts().bit_flips, 2);
    assert_eq!(device.flip_random_bit("nothing", 7), None);
}

#[test]
fn faults_meet_the_next_operation_of_their_file_and_are_counted() {
    let device = with_durable("data", 4);
    let file = device.open("data", OpenMode::Existing).unwrap();
    let other = device.open("other", OpenMode::Create).unwrap();
    device.inject("data", Fault::LostWrite);
    other.write_at(&[9; SECTOR_BYTES], 0).unwrap();
    assert_eq!(contents(&device, "other").unwrap()[0], 9);
    file.write_at(&[2; SECTOR_BYTES], 0).unwrap();
    device.inject("data", Fault::MisdirectedWrite { sectors: 2 });
    file.write_at(&[3; SECTOR_BYTES], SECTOR).unwrap();
    device.inject("data", Fault::ShortWrite);
    assert!(file.write_at(&[4; SECTOR_BYTES], 2 * SECTOR).is_err());
    let sectors: Vec<(u8, u8)> = contents(&device, "data")
        .unwrap()
        .chunks(SECTOR_BYTES)
        .map(|sector| (sector[0], sector[SECTOR_BYTES - 1]))
        .collect();
    assert_eq!(sectors, [(1, 1), (1, 1), (4, 1), (3, 3)]);

    let mut buffer = [0; SECTOR_BYTES];
    device.inject("data", Fault::MisdirectedRead { sectors: 3 });
    file.read_at(&mut buffer, 0).unwrap();
    assert_eq!(buffer[0], 3);
    let mut buffer = [0; SECTOR_BYTES];
    device.inject("data", Fault::ShortRead);
    file.read_at(&mut buffer, 0).unwrap();
    assert_eq!((buffer[0], buffer[SECTOR_BYTES - 1]), (1, 0));
    device.inject("data", Fault::ShortRead);
    device.forget_faults();
    file.read_at(&mut buffer, 0).unwrap();
    assert_eq!(buffer, [1; SECTOR_BYTES]);

    let counts = device.fault_counts();
    let counted = (
        counts.lost_writes,
        counts.misdirected_writes,
        counts.short_writes,
        counts.misdirected_reads,
        counts.short_reads,
    );
    assert_eq!(counted, (1, 1, 1, 1, 1));
    assert_eq!(counts.by_kind().iter().map(|(_, n)| n).sum::<u64>(), 5);
}

#[test]
fn stalled_reads_end_when_they_are_let_go_in_any_order() {
    let device = with_durable("data", 2);
    let file = device.open("data", OpenMode::Existing).unwrap();
    device.set_stalls(true);
    let ended: Arc<Mutex<Vec<(u64, u8)>>> = Arc::default();
    let requests = [0, SECTOR].map(|offset| {
        let ended = ended.clone();
        ReadRequest {
            offset,
            buffer: AlignedBuffer::new_zeroed(SECTOR_BYTES),
            completion: Box::new(move |outcome| {
                ended.lock().push((offset, outcome.map_or(0, |b| b[0])));
            }),
        }
    });
    file.submit_reads(requests.into());
    assert_eq!((ended.lock().len(), device.stalled_reads()), (0, 2));
    // What they see is what is there in the end.
    file.write_at(&[5; SECTOR_BYTES], 0).unwrap();
    assert!(device.let_go(1));
    assert_eq!(*ended.lock(), [(SECTOR, 1)]);
    device.set_stalls(false);
    assert_eq!(*ended.lock(), [(SECTOR, 1), (0, 5)]);
    assert!(!device.let_go(0));
    drop(file);
    // Nothing of them holds the device.
    assert_eq!(Arc::strong_count(&device.shared), 1);
}
