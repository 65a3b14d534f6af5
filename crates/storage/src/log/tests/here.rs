//! Flushes by the thread that waits, beside the writer's own thread or without it.

use std::io;

use thermocline_device::{Operation, SystemClock};

use super::*;

fn is_durable(log: &Log, lsn: Lsn) -> Poll<Result<(), LogFailed>> {
    let waker = Waker::from(Arc::new(CountWakes::default()));
    Pin::new(&mut log.wait_durable(lsn)).poll(&mut Context::from_waker(&waker))
}

#[test]
fn who_waits_makes_all_that_is_gathered_durable() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    let first = log.append(&[b"first"]).unwrap();
    let second = log.append(&[b"second"]).unwrap();
    log.flush_here(first);
    assert_eq!(is_durable(&log, second), Poll::Ready(Ok(())));
    log.flush_here(second);
    assert_eq!(log.statistics().flushes, 1, "nothing was left to do");
    // Segment after segment, as by steps.
    for number in 0..200 {
        let end = log.append(&[&payload(number)]).unwrap();
        log.flush_here(end);
        assert_eq!(log.durable_lsn(), end);
    }
    device.crash_losing_all();
    let (_, tail) = open(&device, None).unwrap();
    let found = payloads(tail);
    assert_eq!(found[..2], [b"first".to_vec(), b"second".to_vec()]);
    assert_eq!(found[2..], (0..200).map(payload).collect::<Vec<_>>());
}

#[test]
fn a_failed_flush_here_is_told_to_who_waits() {
    let device = SimulatedDevice::new();
    let (log, _) = open(&device, None).unwrap();
    append_durable(&log, 0..3);
    let end = log.append(&[b"lost"]).unwrap();
    device.fail_next(Operation::Sync, io::ErrorKind::Other);
    log.flush_here(end);
    assert!(matches!(
        is_durable(&log, end),
        Poll::Ready(Err(LogFailed::Failed(_)))
    ));
    log.flush_here(end);
    assert_eq!(log.step(), Step::Failed);
}

#[test]
fn a_device_that_filled_up_is_tried_again_by_the_thread() {
    let device = SimulatedDevice::new();
    let clock = Arc::new(SystemClock::new());
    let options = LogOptions {
        clock: clock.clone(),
        ..options()
    };
    let (log, _) = Log::open(Arc::new(device.clone()), options, None).unwrap();
    let log = Arc::new(log);
    let writer = log.spawn().unwrap();
    append_durable(&log, 0..3);
    // Let the thread fall asleep: it is not the one that meets the full device.
    clock.sleep(Duration::from_millis(50));
    let end = log.append(&[b"late"]).unwrap();
    device.fail_next(Operation::Write, io::ErrorKind::StorageFull);
    log.flush_here(end);
    let begun = clock.now();
    while log.durable_lsn() < end {
        assert!(
            clock.now() - begun < Duration::from_secs(5),
            "never tried again"
        );
        clock.sleep(Duration::from_millis(1));
    }
    log.shut_down();
    writer.join().unwrap();
}

/// Threads that flush themselves, threads that wait for the writer's, records that nobody
/// waits for, and pauses in which the writer's thread falls asleep.
#[test]
fn flushes_here_and_by_the_thread_go_together() {
    let device = SimulatedDevice::new();
    let clock = Arc::new(SystemClock::new());
    let options = LogOptions {
        clock: clock.clone(),
        ..options()
    };
    let (log, _) = Log::open(Arc::new(device.clone()), options, None).unwrap();
    let log = Arc::new(log);
    let writer = log.spawn().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (log, clock) = (&log, &clock);
            scope.spawn(move || {
                for number in 0..150_u64 {
                    let end = log
                        .append(&[&(thread << 32 | number).to_le_bytes()])
                        .unwrap();
                    if thread % 2 == 0 {
                        log.flush_here(end);
                    }
                    if number % 3 > 0 {
                        log.wait_durable_blocking(end).unwrap();
                    }
                    match number % 50 {
                        49 => clock.sleep(Duration::from_millis(30)),
                        25 => clock.sleep(Duration::from_millis(9)),
                        _ => {}
                    }
                }
            });
        }
    });
    let last = log.append(&[b"nobody waits"]).unwrap();
    let begun = clock.now();
    while log.durable_lsn() < last {
        assert!(clock.now() - begun < Duration::from_secs(5));
        clock.sleep(Duration::from_millis(1));
    }
    log.shut_down();
    writer.join().unwrap();
    device.crash_losing_all();
    let (_, tail) = open(&device, None).unwrap();
    assert_eq!(payloads(tail).len(), 4 * 150 + 1);
}
