//! Temporary files: a model of records, and what a device that is full, fails or lies makes of
//! them.

use std::io;
use std::sync::Arc;

use proptest::prelude::*;
use thermocline_device::{
    Device, Fault, FileDevice, IoEngine, KeptSpace, Operation, SimulatedDevice,
};
use thermocline_engine::spill::{SPILL_BUFFER_BYTES, Spill, SpillFile, SpillReader};

fn spill(device: &SimulatedDevice, limit: Option<u64>) -> Arc<Spill> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let kept = Arc::new(KeptSpace::new(device.clone()));
    Spill::new(device, kept, limit).expect("begins")
}

fn record(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + number * 31) as u8).collect()
}

fn fill(file: &mut SpillFile, records: usize, bytes: usize) {
    for number in 0..records {
        file.append(&record(number, bytes)).expect("appends");
    }
}

#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    Read { of: usize, window: usize },
    Forget(usize),
    Seal,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => prop_oneof![0..200_usize, 3_000..5_000_usize, 100_000..200_000_usize]
            .prop_map(Step::Append),
        4 => (any::<usize>(), 1..70_000_usize).prop_map(|(of, window)| Step::Read { of, window }),
        1 => any::<usize>().prop_map(Step::Forget),
    ];
    let seal = prop::collection::vec(Just(Step::Seal), 0..2);
    let reads = (any::<usize>(), 1..70_000_usize);
    let reads = reads.prop_map(|(of, window)| Step::Read { of, window });
    (
        prop::collection::vec(step, 1..60),
        seal,
        prop::collection::vec(reads, 0..4),
    )
        .prop_map(|(first, seal, last)| [first, seal, last].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn records_come_back_in_order_and_from_their_positions(steps in steps()) {
        let device = SimulatedDevice::new();
        let spill = spill(&device, None);
        let mut file = spill.create().expect("makes a file");
        let mut model: Vec<(u64, usize)> = Vec::new();
        let mut first = 0;
        for step in steps {
            match step {
                Step::Append(bytes) => {
                    let position = file.append(&record(model.len(), bytes)).expect("appends");
                    model.push((position, bytes));
                }
                Step::Read { of, window } if first < model.len() => {
                    let from = first + of % (model.len() - first);
                    let mut reader = SpillReader::new(window);
                    reader.at(model[from].0);
                    for (number, (position, bytes)) in model.iter().enumerate().skip(from) {
                        prop_assert_eq!(reader.position(), *position);
                        let read = reader.next(&file).expect("reads").expect("is there");
                        prop_assert!(read == record(number, *bytes));
                    }
                    prop_assert!(reader.next(&file).expect("reads").is_none());
                }
                Step::Forget(of) if first < model.len() => {
                    first += of % (model.len() - first);
                    file.forget_before(model[first].0).expect("forgets");
                }
                Step::Seal => file.seal().expect("seals"),
                Step::Read { .. } | Step::Forget(_) => {}
            }
        }
        prop_assert_eq!(file.records(), model.len() as u64);
        // Never more on the device than was appended and not forgotten, but for a buffer.
        let live = file.bytes() - model.get(first).map_or(0, |(position, _)| *position);
        let taken = spill.report().bytes;
        prop_assert!(taken <= live + 2 * SPILL_BUFFER_BYTES as u64, "{taken} for {live}");
        drop(file);
        let after = spill.report();
        prop_assert_eq!((after.files, after.bytes, after.files_made), (0, 0, 1));
    }
}

#[test]
fn all_files_together_stay_within_the_limit_and_leave_room_for_the_log() {
    let device = SimulatedDevice::new();
    let spill = spill(&device, Some(1 << 20));
    let mut one = spill.create().expect("makes a file");
    let mut other = spill.create().expect("makes a file");
    fill(&mut one, 60, 10_000);
    let refused = (0..200).find_map(|n| other.append(&record(n, 10_000)).err());
    let refused = refused.expect("is refused");
    assert_eq!(refused.sqlstate(), "53400");
    assert!(refused.to_string().contains("(1024kB)"), "{refused}");
    assert!(refused.hint().is_some());
    let again = other.append(b"small").expect_err("stays refused");
    assert_eq!(again.sqlstate(), "53400");
    drop(one);
    let mut next = spill.create().expect("makes a file");
    drop(other);
    fill(&mut next, 60, 10_000);
    drop(next);

    // A device with room for the log and for little else.
    device.set_capacity_bytes(Some((16 << 20) + (200 << 10)));
    let mut file = spill.create().expect("makes a file");
    let refused = (0..200).find_map(|n| file.append(&record(n, 10_000)).err());
    assert_eq!(refused.expect("is refused").sqlstate(), "53100");
    assert!(device.free_bytes().expect("says") >= 16 << 20);
    drop(file);
    assert_eq!(spill.report().bytes, 0);
}

#[test]
fn what_the_device_does_wrong_is_an_error_and_never_another_record() {
    type Wrong = (Fault, &'static str);
    let wrongs: [Wrong; 4] = [
        (Fault::LostWrite, "XX001"),
        (Fault::MisdirectedWrite { sectors: 3 }, "XX001"),
        (Fault::ShortWrite, "58030"),
        (Fault::MisdirectedRead { sectors: 5 }, "XX001"),
    ];
    for (fault, sqlstate) in wrongs {
        let device = SimulatedDevice::new();
        let spill = spill(&device, None);
        let mut file = spill.create().expect("makes a file");
        device.inject("temporary", fault);
        let appended: Result<(), _> =
            (0..40).try_for_each(|n| file.append(&record(n, 9_000)).map(drop));
        let mut reader = SpillReader::new(8192);
        let mut read = 0;
        let error = loop {
            match reader.next(&file) {
                Ok(Some(found)) => assert!(found == record(read, 9_000), "{fault:?}"),
                Ok(None) => panic!("{fault:?} was not noticed"),
                Err(error) => break error,
            }
            read += 1;
        };
        assert_eq!(error.sqlstate(), sqlstate, "{fault:?}: {error}");
        if let Err(failed) = appended {
            assert_eq!(failed.sqlstate(), sqlstate);
        }
    }
    let device = SimulatedDevice::new();
    let spill = spill(&device, None);
    device.fail_next(Operation::Open, io::ErrorKind::StorageFull);
    assert_eq!(spill.create().err().map(|e| e.sqlstate()), Some("53100"));
    let mut file = spill.create().expect("makes a file");
    fill(&mut file, 20, 9_000);
    device.crash(3);
    let mut reader = SpillReader::new(8192);
    assert_eq!(reader.next(&file).expect_err("is gone").sqlstate(), "58030");
    assert!(device.list().expect("lists").is_empty());
}

#[test]
fn a_temporary_file_has_no_name_and_its_space_comes_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let device = FileDevice::open(directory.path(), IoEngine::Threads).expect("opens");
    let device: Arc<dyn Device> = Arc::new(device);
    // What a process has left that was killed between making a file and unnaming it.
    let folder = directory.path().join(".temporary");
    std::fs::create_dir(&folder).expect("makes");
    std::fs::write(folder.join("0"), b"left").expect("writes");
    let kept = Arc::new(KeptSpace::new(device.clone()));
    let spill = Spill::new(device.clone(), kept, None).expect("begins");
    assert!(!folder.exists());
    let mut file = spill.create().expect("makes a file");
    let mut second = spill.create().expect("makes another");
    fill(&mut file, 300, 10_000);
    fill(&mut second, 3, 10_000);
    file.seal().expect("seals");
    second.seal().expect("seals");
    assert_eq!(std::fs::read_dir(&folder).expect("lists").count(), 0);
    assert!(device.list().expect("lists").is_empty());
    let mut reader = SpillReader::new(1 << 20);
    let mut number = 0;
    while let Some(found) = reader.next(&file).expect("reads") {
        assert!(found == record(number, 10_000));
        number += 1;
    }
    assert_eq!(number, 300);
    let report = spill.report();
    assert_eq!((report.files, report.files_made), (2, 2));
    assert!(report.bytes >= 303 * 10_000 && report.bytes_read >= 300 * 10_000);
    drop((file, second));
    assert_eq!(spill.report().bytes, 0);
}
