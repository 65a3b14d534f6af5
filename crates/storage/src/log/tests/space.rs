//! A full device: what was accepted is written, what can't be is refused, and it
//! heals by itself.

use thermocline_device::SimulatedDevice;

use super::*;

fn open_with_clock(device: &SimulatedDevice) -> (Log, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let options = LogOptions {
        clock: clock.clone(),
        ..options()
    };
    let (log, _) = Log::open(Arc::new(device.clone()), options, None).unwrap();
    (log, clock)
}

#[test]
fn a_full_device_refuses_records_before_it_breaks_a_promise() {
    let device = SimulatedDevice::new();
    device.set_capacity_bytes(Some(2 * SEGMENT_BYTES + SECTOR));
    let (log, clock) = open_with_clock(&device);
    let mut accepted = Vec::new();
    let refused = loop {
        // Two records a group, so that groups and records differ.
        let number = accepted.len() as u64;
        match log.append(&[&number.to_le_bytes(), &[1; 1000]]) {
            Ok(end) => accepted.push(end),
            Err(why) => break why,
        }
        if number % 2 == 1 {
            assert_eq!(log.step(), Step::Flushed, "what was accepted is written");
        }
        assert!(number < 1000, "the device never fills");
    };
    assert_eq!(refused, LogFailed::StorageFull);
    assert_eq!(refused.sqlstate(), "53100");
    assert!(accepted.len() > 10, "both segments were used");
    log.wait_durable_blocking(*accepted.last().unwrap())
        .unwrap();

    // Healing: there is space again, and after a while the log asks for it.
    device.set_capacity_bytes(None);
    assert_eq!(log.append(&[&[1; 30_000]]), Err(LogFailed::StorageFull));
    clock.advance(options().retry_interval);
    log.step();
    let end = log.append(&[b"healed"]).unwrap();
    log.wait_durable_blocking(end).unwrap();
    device.crash_losing_all();
    let (_, tail) = open(&device, None).unwrap();
    let found = payloads(tail);
    assert_eq!(found.len(), accepted.len() + 1);
    for (number, payload) in found[..accepted.len()].iter().enumerate() {
        assert_eq!(payload[..8], (number as u64).to_le_bytes());
    }
}

#[test]
fn truncation_heals_a_full_log() {
    let device = SimulatedDevice::new();
    device.set_capacity_bytes(Some(2 * SEGMENT_BYTES + SECTOR));
    let (log, _) = open_with_clock(&device);
    let mut last = 0;
    while let Ok(end) = log.append(&[&[1; 3000]]) {
        log.wait_durable_blocking(end).unwrap();
        last = end;
    }
    log.truncate_before(last).unwrap();
    log.step();
    let end = log.append(&[b"after the checkpoint"]).unwrap();
    log.wait_durable_blocking(end).unwrap();
}

#[test]
fn waiters_of_a_group_without_space_are_told_and_nothing_is_lost() {
    let device = SimulatedDevice::new();
    device.set_capacity_bytes(Some(3 * SEGMENT_BYTES));
    let (log, clock) = open_with_clock(&device);
    let safe = *append_durable(&log, 0..2).last().unwrap();
    // Larger than any segment that is there: it needs one of its own.
    let large = vec![8; 4 * SEGMENT_BYTES as usize];
    let end = log.append(&[&large]).unwrap();
    assert_eq!(log.wait_durable_blocking(end), Err(LogFailed::StorageFull));
    assert_eq!(log.step(), Step::Full);
    assert_eq!(log.append(&[b"behind it"]), Err(LogFailed::StorageFull));
    assert_eq!(log.wait_durable_blocking(safe), Ok(()));
    device.set_capacity_bytes(None);
    clock.advance(options().retry_interval);
    assert_eq!(log.step(), Step::Flushed);
    assert_eq!(log.wait_durable_blocking(end), Ok(()));
    append_durable(&log, 2..3);
    device.crash_losing_all();
    let (_, tail) = open(&device, None).unwrap();
    assert_eq!(payloads(tail), [payload(0), payload(1), large, payload(2)]);
}

#[test]
fn the_thread_heals_a_full_log_without_being_asked() {
    let device = SimulatedDevice::new();
    device.set_capacity_bytes(Some(3 * SEGMENT_BYTES));
    let clock = Arc::new(thermocline_device::SystemClock::new());
    let options = LogOptions {
        clock: clock.clone(),
        retry_interval: Duration::from_millis(5),
        ..options()
    };
    let (log, _) = Log::open(Arc::new(device.clone()), options, None).unwrap();
    let log = Arc::new(log);
    let writer = log.spawn().unwrap();
    let end = log.append(&[&vec![8; 4 * SEGMENT_BYTES as usize]]).unwrap();
    assert_eq!(log.wait_durable_blocking(end), Err(LogFailed::StorageFull));
    device.set_capacity_bytes(None);
    let begun = clock.now();
    while log.durable_lsn() < end {
        assert!(clock.now() - begun < Duration::from_secs(5), "never healed");
        clock.sleep(Duration::from_millis(1));
    }
    log.shut_down();
    writer.join().unwrap();
}

#[test]
fn a_database_opens_on_a_full_device_and_refuses_records() {
    let device = SimulatedDevice::new();
    let (log, _) = open_with_clock(&device);
    append_durable(&log, 0..4);
    device.crash_losing_all();
    for name in device.list().unwrap() {
        if segment::parse_spare_name(&name).is_some() {
            device.remove(&name).unwrap();
        }
    }
    device.set_capacity_bytes(Some(1));
    let (log, tail) = open(&device, None).unwrap();
    assert_eq!(payloads(tail).len(), 4);
    assert_eq!(log.append(&[b"no"]), Err(LogFailed::StorageFull));
    assert!(log.refusal().is_none(), "it has not failed");
}
