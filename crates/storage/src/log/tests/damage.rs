//! Damage: a torn end is the end; anything else is reported with its place.

use proptest::prelude::*;
use thermocline_device::SimulatedDevice;

use super::*;

fn overwrite(device: &SimulatedDevice, file: &str, offset: u64, change: impl Fn(&mut u8)) {
    let file = device.open(file, OpenMode::Existing).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, offset).unwrap();
    change(&mut byte[0]);
    file.write_at(&byte, offset).unwrap();
    file.sync_data().unwrap();
}

fn outcome(device: &SimulatedDevice) -> Result<Vec<Vec<u8>>, LogError> {
    let (_, tail) = open(device, None)?;
    let found = collect(tail)?;
    Ok(found.into_iter().map(|(_, _, payload)| payload).collect())
}

#[test]
fn a_torn_last_group_is_the_end_and_is_never_overwritten() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    for number in [1, 2] {
        log.append(&[&payload(number)]).unwrap();
    }
    log.step();
    for bytes in [[3; 100], [4; 100], [5; 100]] {
        log.append(&[&bytes]).unwrap();
    }
    log.step();
    let file = segment_files(&device).pop().unwrap();
    let first_group = segment::round_to_sectors(
        (segment::GROUP_HEADER_BYTES + 16 + payload(1).len() + payload(2).len()) as u64,
    );
    // The second record of the last group.
    let bad = SECTOR + first_group + (segment::GROUP_HEADER_BYTES + 108 + 8 + 50) as u64;
    overwrite(&device, &file, bad, |byte| *byte ^= 1);
    // A group of one sector is there whole or not at all.
    let expected = vec![payload(1), payload(2)];
    assert_eq!(outcome(&device).unwrap(), expected);

    let read = |name: &str| {
        let file = device.open(name, OpenMode::Existing).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        bytes
    };
    let before = read(&file);
    let (log, _) = open(&device, None).unwrap();
    append_durable(&log, 6..8);
    assert_eq!(read(&file), before, "the old tail is left as it was");
    let expected = [expected, vec![payload(6), payload(7)]].concat();
    assert_eq!(outcome(&device).unwrap(), expected);
    device.crash_losing_all();
    assert_eq!(outcome(&device).unwrap(), expected);
}

#[test]
fn damage_before_a_valid_group_is_reported_with_file_and_offset() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    for byte in 1..5u8 {
        log.append(&[&[byte; 3000]]).unwrap();
        log.step();
    }
    let file = segment_files(&device).pop().unwrap();
    // Group 2 (of one sector each): its record, then its header.
    let record = 2 * SECTOR + segment::GROUP_HEADER_BYTES as u64;
    for (bad, reported) in [(record + 20, record), (2 * SECTOR + 3, 2 * SECTOR)] {
        overwrite(&device, &file, bad, |byte| *byte ^= 0x40);
        match outcome(&device) {
            Err(LogError::Corrupt {
                file: named,
                offset,
                ..
            }) => {
                assert_eq!((named, offset), (file.clone(), reported));
            }
            other => panic!("damage is not reported: {other:?}"),
        }
        overwrite(&device, &file, bad, |byte| *byte ^= 0x40);
    }
    assert_eq!(outcome(&device).unwrap().len(), 4);
}

#[test]
fn damage_in_an_earlier_segment_is_reported() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    append_durable(&log, 0..40);
    let files = segment_files(&device);
    assert!(files.len() > 3);
    let hit = files[1].clone();
    overwrite(&device, &hit, SECTOR + 60, |byte| *byte ^= 2);
    assert!(matches!(outcome(&device), Err(LogError::Corrupt { file, .. }) if file == hit));
    overwrite(&device, &hit, SECTOR + 60, |byte| *byte ^= 2);
    device.remove(&hit).unwrap();
    assert!(outcome(&device).is_err(), "a missing segment is damage");
}

/// Appends records of these sizes, each durable alone; what they hold.
fn append_sizes(log: &Log, sizes: &[usize]) -> Vec<Vec<u8>> {
    let payloads = sizes.iter().enumerate();
    let payloads: Vec<Vec<u8>> = payloads.map(|(at, bytes)| vec![at as u8; *bytes]).collect();
    for payload in &payloads {
        let end = log.append(&[payload]).unwrap();
        log.wait_durable_blocking(end).unwrap();
    }
    payloads
}

#[test]
fn small_groups_share_two_sectors_and_fill_few() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    let written = append_sizes(&log, &[100; 80]);
    // 26 groups of 148 bytes and four for the place in each pair of sectors, two segments' headers
    // among it.
    assert!(
        log.file_bytes() <= 11 * SECTOR,
        "{} bytes of files for 80 groups",
        log.file_bytes()
    );
    assert_eq!(outcome(&device).unwrap(), written);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// One of the two sectors may be lost at any time, but for the newest group.
    #[test]
    fn a_lost_sector_costs_the_newest_group_at_most_or_is_told(
        sizes in prop::collection::vec(0usize..1200, 1..30),
        at in any::<prop::sample::Index>(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        let device = SimulatedDevice::new();
        let (log, _) = open(&device, None).unwrap();
        let all = append_sizes(&log, &sizes);
        let files = segment_files(&device);
        let file = files.last().unwrap();
        let sector = SECTOR + at.index((SEGMENT_BYTES / SECTOR - 1) as usize) as u64 * SECTOR;
        for place in places {
            overwrite(&device, file, sector + place.index(SECTOR as usize) as u64, |byte| *byte ^= 0x21);
        }
        match outcome(&device) {
            Ok(found) => {
                prop_assert!(found.len() + 1 >= all.len());
                prop_assert_eq!(&found[..], &all[..found.len()]);
            }
            Err(LogError::Corrupt { file: named, .. }) => prop_assert_eq!(&named, file),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_damaged_byte_never_changes_a_record(
        at in any::<prop::sample::Index>(), pick in any::<prop::sample::Index>(), mask in 1u8..
    ) {
        let device = SimulatedDevice::new();
        let (log, _) = open(&device, None).unwrap();
        append_durable(&log, 0..12);
        let files = segment_files(&device);
        let file = &files[pick.index(files.len())];
        let offset = at.index(SEGMENT_BYTES as usize) as u64;
        overwrite(&device, file, offset, |byte| *byte ^= mask);
        let all: Vec<_> = (0..12).map(payload).collect();
        match outcome(&device) {
            Ok(found) => {
                // Only the last group's damage can pass for a torn write.
                prop_assert!(found.len() >= 11);
                prop_assert_eq!(&found[..], &all[..found.len()]);
            }
            Err(LogError::Corrupt { file: named, .. }) => prop_assert_eq!(&named, file),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
