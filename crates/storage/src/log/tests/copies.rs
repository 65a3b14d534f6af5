//! Copies of the log: to an LSN, to a time, out of several directories, with
//! gaps and damage.

use super::*;

/// A clock whose calendar goes with it.
#[derive(Default)]
struct Calendar(AtomicU64);

impl Clock for Calendar {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
    fn unix_time_us(&self) -> i64 {
        self.0.load(Ordering::Relaxed) as i64
    }
    fn sleep(&self, duration: Duration) {
        self.0
            .fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
    }
}

fn shared(device: &SimulatedDevice) -> Arc<dyn Device> {
    Arc::new(device.clone())
}

fn open_at(device: &SimulatedDevice, clock: &Arc<Calendar>) -> (Log, LogTail) {
    let options = LogOptions {
        clock: clock.clone(),
        ..options()
    };
    Log::open(shared(device), options, None).unwrap()
}

/// Two lives of a log, a record every 10 µs from 10 on, number n at 10 (n + 1).
fn written() -> (SimulatedDevice, Vec<Lsn>) {
    let device = SimulatedDevice::new();
    let clock = Arc::new(Calendar::default());
    let mut ends = Vec::new();
    for life in 0..2 {
        let (log, _) = open_at(&device, &clock);
        for number in life * 20..life * 20 + 20 {
            clock.sleep(Duration::from_micros(10));
            ends.extend(append_durable(&log, number..number + 1));
        }
    }
    (device, ends)
}

fn copied(
    sources: &[&SimulatedDevice],
    from: Lsn,
    until: CopyUntil,
) -> Result<(SimulatedDevice, Copied), LogError> {
    let sources: Vec<_> = sources.iter().map(|d| shared(d)).collect();
    let target = SimulatedDevice::new();
    let mut stream = LogStream::open(&sources, 42, from)?;
    // For another database, as a restored one is.
    let copied = copy_log(&mut stream, &target, 43, until)?;
    Ok((target, copied))
}

fn payloads_in(device: &SimulatedDevice, database: u128) -> Vec<Vec<u8>> {
    let options = LogOptions {
        database,
        ..options()
    };
    payloads(read_tail(&shared(device), &options, None).unwrap())
}

fn numbers(range: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    range.map(payload).collect()
}

#[test]
fn a_copy_holds_the_records_up_to_an_lsn_or_a_time() {
    let (device, ends) = written();
    let all = CopyUntil::default();
    let (copy, report) = copied(&[&device], segment::FIRST_LSN, all).unwrap();
    assert_eq!(payloads_in(&copy, 43), numbers(0..40));
    assert_eq!((report.end, report.time_us), (ends[39], Some(400)));
    for number in 0..40u64 {
        let end = ends[number as usize];
        for lsn in [end, end + 7] {
            let until = CopyUntil {
                lsn: Some(lsn),
                ..all
            };
            let (copy, report) = copied(&[&device], segment::FIRST_LSN, until).unwrap();
            assert_eq!(payloads_in(&copy, 43), numbers(0..number + 1));
            assert_eq!(report.end, end);
        }
        let time = 10 * (number as i64 + 1);
        for time_us in [time, time + 9] {
            let until = CopyUntil {
                time_us: Some(time_us),
                ..all
            };
            let (copy, report) = copied(&[&device], segment::FIRST_LSN, until).unwrap();
            assert_eq!(payloads_in(&copy, 43), numbers(0..number + 1));
            assert_eq!(report.time_us, Some(time));
        }
    }
    // From the middle on, and opened as a log that goes on.
    let (copy, _) = copied(&[&device], ends[9], all).unwrap();
    assert_eq!(payloads_in(&copy, 43), numbers(10..40));
    let options = LogOptions {
        database: 43,
        ..options()
    };
    let (log, tail) = Log::open(shared(&copy), options, Some(ends[9])).unwrap();
    assert_eq!(payloads(tail), numbers(10..40));
    append_durable(&log, 40..42);
    drop(log);
    assert_eq!(payloads_in(&copy, 43), numbers(10..42));
}

#[test]
fn an_lsn_in_the_middle_of_a_group_cuts_the_group() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    let ends: Vec<_> = (1..9)
        .map(|number| log.append(&[&[number; 100]]).unwrap())
        .collect();
    log.step();
    for (number, end) in ends.iter().enumerate() {
        let until = CopyUntil {
            lsn: Some(*end),
            time_us: None,
        };
        let (copy, report) = copied(&[&device], segment::FIRST_LSN, until).unwrap();
        assert_eq!(
            (payloads_in(&copy, 43).len(), report.end),
            (number + 1, *end)
        );
        // And on from there.
        let (rest, _) = copied(&[&device], *end, CopyUntil::default()).unwrap();
        assert_eq!(payloads_in(&rest, 43).len(), 7 - number);
    }
}

#[test]
fn a_position_that_no_record_reached_is_in_the_stream() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    let end = append_durable(&log, 0..3)[2];
    drop(log);
    let (log, _) = open(&device, Some(end)).unwrap();
    append_durable(&log, 3..6);
    drop(log);
    let all = CopyUntil::default();
    for behind in [0, 1, 4096] {
        let (copy, _) = copied(&[&device], end + behind, all).unwrap();
        assert_eq!(payloads_in(&copy, 43), numbers(3..6), "{behind}");
    }
}

#[test]
fn an_archive_and_what_is_left_make_up_the_whole_stream() {
    let device = SimulatedDevice::new();
    let archive = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    let ends = append_durable(&log, 0..40);
    let closed = log.closed_segments();
    assert!(closed.len() > 3);
    for segment in &closed {
        assert!(archive_segment(&device, &archive, 42, *segment).unwrap());
        assert!(!archive_segment(&device, &archive, 42, *segment).unwrap());
    }
    assert!(archive_segment(&device, &archive, 77, closed[0]).is_err());
    log.truncate_before(ends[30]).unwrap();
    drop(log);
    let all = CopyUntil::default();
    let begin = segment::FIRST_LSN;
    assert!(
        matches!(copied(&[&device], begin, all), Err(LogError::Missing { lsn }) if lsn == begin),
        "the beginning is gone"
    );
    let (copy, _) = copied(&[&archive, &device], begin, all).unwrap();
    assert_eq!(payloads_in(&copy, 43), numbers(0..40));
    let (copy, _) = copied(&[&device, &archive], begin, all).unwrap();
    assert_eq!(payloads_in(&copy, 43), numbers(0..40));

    // A hole in the archive that nothing fills.
    let gone = segment_files(&archive)[1].clone();
    archive.remove(&gone).unwrap();
    assert!(matches!(
        copied(&[&archive, &device], begin, all),
        Err(LogError::Missing { lsn }) if lsn == closed[0].end
    ));
    // Not needed up to there.
    let until = CopyUntil {
        lsn: Some(closed[0].end),
        time_us: None,
    };
    copied(&[&archive, &device], begin, until).unwrap();
}

#[test]
fn damage_is_an_error_unless_another_directory_has_the_same() {
    let (device, _) = written();
    let whole = SimulatedDevice::new();
    for name in device.list().unwrap() {
        let from = device.open(&name, OpenMode::Existing).unwrap();
        let mut bytes = vec![0; from.len().unwrap() as usize];
        from.read_at(&mut bytes, 0).unwrap();
        let to = whole.open(&name, OpenMode::Create).unwrap();
        to.write_at(&bytes, 0).unwrap();
    }
    let hit = segment_files(&device)[2].clone();
    for offset in [3, SECTOR + 5, SECTOR + 60] {
        let file = device.open(&hit, OpenMode::Existing).unwrap();
        let mut byte = [0];
        file.read_at(&mut byte, offset).unwrap();
        file.write_at(&[byte[0] ^ 2], offset).unwrap();
        let begin = segment::FIRST_LSN;
        let all = CopyUntil::default();
        assert!(copied(&[&device], begin, all).is_err(), "byte {offset}");
        let (copy, _) = copied(&[&device, &whole], begin, all).unwrap();
        assert_eq!(payloads_in(&copy, 43), numbers(0..40), "byte {offset}");
        file.write_at(&byte, offset).unwrap();
    }
}

/// Segments that only the archive waits for are still told apart after a start, and where each
/// of them ends.
#[test]
fn what_no_checkpoint_needs_is_archived_after_a_start() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    let ends = append_durable(&log, 0..60);
    let before = log.closed_segments();
    assert!(before.len() > 5);
    drop(log);
    let (log, _) = open(&device, Some(ends[55])).unwrap();
    let closed = log.closed_segments();
    assert_eq!(closed[..before.len()], before[..]);
    let archive = SimulatedDevice::new();
    for segment in &closed {
        assert!(archive_segment(&device, &archive, 42, *segment).unwrap());
    }
    let whole = [shared(&archive), shared(&device)];
    let mut stream = LogStream::open(&whole, 42, FIRST_LSN).unwrap();
    let mut records = 0;
    while let Some(group) = stream.next().unwrap() {
        records += usize::from(!group.records.is_empty());
    }
    assert_eq!(records, 60);
    // Damage in one of them is no reason not to start.
    let file = device.open(&segment_files(&device)[1], OpenMode::Existing);
    file.unwrap().write_at(&[0; 4096], 0).unwrap();
    drop(log);
    let (log, tail) = open(&device, Some(ends[55])).unwrap();
    assert_eq!(payloads(tail), (56..60).map(payload).collect::<Vec<_>>());
    let closed = log.closed_segments()[1];
    assert!(archive_segment(&device, &SimulatedDevice::new(), 42, closed).is_err());
}
