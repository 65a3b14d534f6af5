//! Crashes: after each single operation of a script, and of the recovery from it.

use proptest::prelude::*;
use thermocline_device::{Operation, SimulatedDevice};

use super::*;

/// A log under test, and what has to be found in it.
struct Harness {
    device: SimulatedDevice,
    /// Each record appended, by its end, in order, that no crash took back.
    appended: Vec<(Lsn, u64)>,
    acknowledged: usize,
    start: Option<Lsn>,
    /// How many of `appended` lie before `start`.
    truncated: usize,
    next_number: u64,
}

impl Harness {
    fn new(device: SimulatedDevice) -> Self {
        Self {
            device,
            appended: Vec::new(),
            acknowledged: 0,
            start: None,
            truncated: 0,
            next_number: 0,
        }
    }

    /// Opens the log, and checks what is in it. `None` when the device halted.
    fn recover(&mut self) -> Option<Log> {
        let (log, tail) = match open(&self.device, self.start) {
            Err(LogError::Io { .. }) => return None,
            opened => opened.expect("what a crash leaves is no damage"),
        };
        let found = match collect(tail) {
            Err(LogError::Io { .. }) => return None,
            found => found.expect("what a crash leaves is no damage"),
        };
        let kept = self.truncated + found.len();
        assert!(
            kept >= self.acknowledged,
            "{kept} of {} acknowledged",
            self.acknowledged
        );
        assert!(kept <= self.appended.len(), "more than was appended");
        let expected = &self.appended[self.truncated..kept];
        for ((_, end, bytes), (expected_end, number)) in found.iter().zip(expected) {
            assert_eq!((*end, bytes), (*expected_end, &payload(*number)));
        }
        self.appended.truncate(kept);
        // What was found is the log's from now on: it must not be lost later.
        self.acknowledged = kept;
        Some(log)
    }

    /// Appends, flushes and truncates until it ends or the device halts.
    fn run(&mut self, log: &Log, groups: &[usize]) {
        for (i, &records) in groups.iter().enumerate() {
            for _ in 0..records {
                let Ok(end) = log.append(&[&payload(self.next_number)]) else {
                    return;
                };
                self.appended.push((end, self.next_number));
                self.next_number += 1;
            }
            if log.wait_durable_blocking(log.appended_lsn()).is_err() {
                return;
            }
            self.acknowledged = self.appended.len();
            if i % 5 == 4 {
                // A checkpoint of all but the last two records.
                self.truncated = self.appended.len().saturating_sub(2).max(self.truncated);
                self.start = self.truncated.checked_sub(1).map(|at| self.appended[at].0);
                if log.truncate_before(self.start.unwrap_or(0)).is_err() {
                    return;
                }
            }
        }
    }
}

const SCRIPT: [usize; 16] = [1, 3, 1, 2, 1, 1, 4, 1, 1, 2, 1, 3, 1, 1, 1, 1];

#[test]
fn nothing_acknowledged_is_lost_whichever_operation_is_the_last() {
    let mut halts = 0;
    for seed in 0..3 {
        for halt in 0.. {
            let mut harness = Harness::new(SimulatedDevice::new());
            harness
                .device
                .set_atomic_write_bytes(if seed == 0 { 4096 } else { 512 });
            harness.device.halt_after(halt);
            if let Some(log) = harness.recover() {
                harness.run(&log, &SCRIPT);
            }
            if harness.appended.len() == SCRIPT.iter().sum::<usize>()
                && harness.device.operations() < halt
            {
                break;
            }
            halts += 1;
            harness.device.crash(seed * 1000 + halt);
            // Recovery is interrupted too, later and later, until it gets through.
            let mut patience = halt % 4;
            let log = loop {
                harness.device.halt_after(patience);
                match harness.recover() {
                    Some(log) => break log,
                    None => harness.device.crash(seed + patience),
                }
                patience += 1;
            };
            harness.run(&log, &SCRIPT[..4]);
            harness.device.crash_losing_all();
            let log = harness.recover().expect("nothing halts it now");
            harness.run(&log, &SCRIPT[..2]);
            assert_eq!(harness.acknowledged, harness.appended.len());
            harness.device.crash_losing_all();
            harness.recover().expect("nothing halts it now");
        }
    }
    assert!(halts > 150, "{halts} crash points");
}

/// The end of a segment's last record is a start, too, though the next segment begins
/// behind it and the one before is given up.
#[test]
fn a_log_can_start_between_two_segments() {
    let mut harness = Harness::new(SimulatedDevice::new());
    let log = harness.recover().expect("nothing halts it");
    harness.run(&log, &[1]);
    drop(log);
    harness.device.crash_losing_all();
    // The records of this life are in a segment of their own.
    let log = harness.recover().expect("nothing halts it");
    harness.run(&log, &[2]);
    let (end_of_first, _) = harness.appended[0];
    (harness.start, harness.truncated) = (Some(end_of_first), 1);
    log.truncate_before(end_of_first).expect("truncates");
    drop(log);
    harness.device.crash_losing_all();
    harness.recover().expect("nothing halts it");
    assert_eq!(harness.appended.len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn crashes_take_back_only_what_was_not_acknowledged(
        lives in prop::collection::vec(
            (prop::collection::vec(0usize..6, 1..20), 0u64..60, any::<u64>()), 1..8)
    ) {
        let mut harness = Harness::new(SimulatedDevice::new());
        harness.device.set_atomic_write_bytes(512);
        for (groups, halt, seed) in lives {
            harness.device.halt_after(halt);
            if let Some(log) = harness.recover() {
                harness.run(&log, &groups);
            }
            harness.device.crash(seed);
        }
        harness.recover().expect("nothing halts it now");
    }
}

#[test]
fn a_failed_sync_stops_the_log_for_good() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    let mut harness = Harness::new(device.clone());
    harness.run(&log, &[1, 2, 1]);
    let end = log.append(&[b"unlucky"]).unwrap();
    let waker = Waker::from(Arc::new(CountWakes::default()));
    let mut context = Context::from_waker(&waker);
    let mut wait = log.wait_durable(end);
    assert!(Pin::new(&mut wait).poll(&mut context).is_pending());
    device.fail_next(Operation::Sync, io::ErrorKind::Other);
    let operations = device.operations();
    assert_eq!(log.step(), Step::Failed);
    let syncs = device.operations() - operations;
    let Poll::Ready(Err(why)) = Pin::new(&mut wait).poll(&mut context) else {
        panic!("the waiter is told");
    };
    assert!(matches!(why, LogFailed::Failed(_)) && why.sqlstate() == "58030");
    assert_eq!(log.append(&[b"refused"]), Err(why.clone()));
    assert_eq!(log.wait_durable_blocking(end), Err(why.clone()));
    assert_eq!(
        Pin::new(&mut log.room()).poll(&mut context),
        Poll::Ready(Err(why))
    );
    assert_eq!(log.step(), Step::Failed);
    assert_eq!(
        device.operations() - operations,
        syncs,
        "nothing is tried again"
    );
    assert!(log.wait_durable_blocking(harness.appended[3].0).is_ok());

    harness.appended.push((end, u64::MAX));
    device.crash_losing_all();
    let (_, tail) = open(&device, None).unwrap();
    assert_eq!(payloads(tail)[..4], [0, 1, 2, 3].map(payload));
}

#[test]
fn a_failed_write_stops_the_log_too() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    append_durable(&log, 0..2);
    let end = log.append(&[b"unlucky"]).unwrap();
    device.fail_next(Operation::Write, io::ErrorKind::Other);
    assert!(matches!(
        log.wait_durable_blocking(end),
        Err(LogFailed::Failed(_))
    ));
    assert!(matches!(
        log.append(&[b"refused"]),
        Err(LogFailed::Failed(_))
    ));
    device.crash_losing_all();
    let (_, tail) = open(&device, None).unwrap();
    assert_eq!(payloads(tail), [0, 1].map(payload));
}

#[test]
fn groups_seen_after_a_kill_survive_the_power_failure_that_follows() {
    // A killed process leaves a group in the cache that was written, not synced. The
    // next one takes its records for the log's; then they have to be durable.
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    let ends = append_durable(&log, 0..2);
    let bytes = payload(2);
    let mut group = vec![0; 2 * SECTOR as usize];
    let header = segment::GroupHeader {
        first: ends[1],
        sequence: 2,
        time_us: 0,
        bytes: (segment::RECORD_HEADER_BYTES + bytes.len()) as u32,
    };
    header.encode(42, &mut group);
    let crc = segment::record_crc(segment::payload_crc(&[&bytes]), ends[1]);
    let record = [
        &(bytes.len() as u32).to_le_bytes()[..],
        &crc.to_le_bytes(),
        &bytes,
    ]
    .concat();
    group[segment::GROUP_HEADER_BYTES..][..record.len()].copy_from_slice(&record);
    group.truncate(header.device_bytes() as usize);
    let file = segment_files(&device).pop().unwrap();
    let file = device.open(&file, OpenMode::Existing).unwrap();
    file.write_at(&group, 3 * SECTOR).unwrap();

    let expected = [0, 1, 2].map(payload);
    let (_, tail) = open(&device, None).unwrap();
    assert_eq!(payloads(tail), expected);
    device.crash_losing_all();
    let (_, tail) = open(&device, None).unwrap();
    assert_eq!(payloads(tail), expected);
}
