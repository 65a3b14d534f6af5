//! Measures what a device is like, by using it for a moment.
//!
//! Guarantees: stays near its time budget (one operation may overrun it), and removes its
//! file, whether it succeeds or not. Assumes that the device is otherwise idle. Where the
//! device is not direct it measures the page cache, and where a disk's own cache holds the
//! whole test file it measures that cache: then the kind is a guess on the fast side.

use std::io;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::profile::classify;
use crate::random::SplitMix64;
use crate::{
    AlignedBuffer, Device, DeviceFile, DeviceProfile, OpenMode, ReadRequest, SECTOR_BYTES,
};

const PROBE_FILE_NAME: &str = "probe.tmp";
const FILE_BYTES_MAX: u64 = 64 << 20;
const CHUNK_BYTES: usize = 1 << 20;
const DEPTH: usize = 32;
const SYNCS_MAX: usize = 64;
const READS_MAX: usize = 4_000;
const DEEP_READS_MAX: u64 = 200_000;

/// Measures a device for about `budget`, on a temporary file of at most 64 MB.
pub fn probe(device: &dyn Device, budget: Duration) -> io::Result<DeviceProfile> {
    let file = device.open(PROBE_FILE_NAME, OpenMode::Create)?;
    let measured = measure(&*file, budget);
    drop(file);
    let removed = device.remove(PROBE_FILE_NAME);
    let profile = measured?;
    removed?;
    Ok(DeviceProfile {
        emulated: device.profile().emulated,
        ..profile
    })
}

fn measure(file: &dyn DeviceFile, budget: Duration) -> io::Result<DeviceProfile> {
    let mut random = SplitMix64::new(0x7465_6d70);
    // Nothing is kept of an earlier probe that was cut short.
    file.set_len(0)?;
    let (bytes, sequential_write_mb_s) = write_rate(file, budget.mul_f64(0.35), &mut random)?;
    let sync_us = sync_latency(file, budget.mul_f64(0.15), bytes, &mut random)?;
    let read_latency_us = read_latency(file, budget.mul_f64(0.25), bytes, &mut random)?;
    let read_iops = read_rate(file, budget.mul_f64(0.25), bytes, &mut random)?;
    Ok(DeviceProfile {
        kind: classify(read_latency_us),
        read_latency_us,
        read_iops,
        sequential_write_mb_s,
        sync_us,
        emulated: false,
    })
}

/// Writes the test file; its length, and MB a second.
fn write_rate(
    file: &dyn DeviceFile,
    budget: Duration,
    random: &mut SplitMix64,
) -> io::Result<(u64, f64)> {
    // Not zeros: some devices do not store those.
    let mut chunk = AlignedBuffer::new_zeroed(CHUNK_BYTES);
    random.fill(&mut chunk);
    let started = Instant::now();
    let mut bytes = 0;
    while bytes < FILE_BYTES_MAX && (bytes == 0 || started.elapsed() < budget) {
        file.write_at(&chunk, bytes)?;
        bytes += CHUNK_BYTES as u64;
    }
    file.sync_data()?;
    let rate = bytes as f64 / 1e6 / started.elapsed().as_secs_f64().max(1e-9);
    Ok((bytes, rate))
}

fn random_sector(bytes: u64, random: &mut SplitMix64) -> u64 {
    random.below(bytes / SECTOR_BYTES as u64) * SECTOR_BYTES as u64
}

/// Median of a one-sector write with its sync, in microseconds.
fn sync_latency(
    file: &dyn DeviceFile,
    budget: Duration,
    bytes: u64,
    random: &mut SplitMix64,
) -> io::Result<f64> {
    let mut sector = AlignedBuffer::new_zeroed(SECTOR_BYTES);
    random.fill(&mut sector);
    median_us(SYNCS_MAX, budget, || {
        file.write_at(&sector, random_sector(bytes, random))?;
        file.sync_data()
    })
}

/// Median of a one-sector read at depth 1, in microseconds.
fn read_latency(
    file: &dyn DeviceFile,
    budget: Duration,
    bytes: u64,
    random: &mut SplitMix64,
) -> io::Result<f64> {
    let mut sector = AlignedBuffer::new_zeroed(SECTOR_BYTES);
    median_us(READS_MAX, budget, || {
        file.read_at(&mut sector, random_sector(bytes, random))
    })
}

fn median_us(
    count_max: usize,
    budget: Duration,
    mut operation: impl FnMut() -> io::Result<()>,
) -> io::Result<f64> {
    let started = Instant::now();
    let mut latencies = Vec::with_capacity(count_max);
    while latencies.len() < count_max && (latencies.is_empty() || started.elapsed() < budget) {
        let before = Instant::now();
        operation()?;
        latencies.push(before.elapsed());
    }
    latencies.sort_unstable();
    Ok(latencies[latencies.len() / 2].as_secs_f64() * 1e6)
}

/// One-sector reads a second, with `DEPTH` of them on their way all the time.
fn read_rate(
    file: &dyn DeviceFile,
    budget: Duration,
    bytes: u64,
    random: &mut SplitMix64,
) -> io::Result<f64> {
    let (sender, receiver) = mpsc::channel();
    let mut submit = |buffers: Vec<AlignedBuffer>| {
        let request = |buffer| {
            let sender = sender.clone();
            ReadRequest {
                offset: random_sector(bytes, random),
                buffer,
                // The receiver is gone only when the probe has already failed.
                completion: Box::new(move |result| drop(sender.send(result))),
            }
        };
        file.submit_reads(buffers.into_iter().map(request).collect());
    };
    let started = Instant::now();
    submit(
        (0..DEPTH)
            .map(|_| AlignedBuffer::new_zeroed(SECTOR_BYTES))
            .collect(),
    );
    let mut in_flight = DEPTH;
    let mut reads = 0;
    let mut elapsed = Duration::ZERO;
    let mut failure = None;
    while in_flight > 0 {
        let first = receiver.recv().map_err(io::Error::other)?;
        let mut buffers = Vec::with_capacity(DEPTH);
        for result in std::iter::once(first).chain(receiver.try_iter()) {
            in_flight -= 1;
            match result {
                Ok(buffer) => {
                    reads += 1;
                    buffers.push(buffer);
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        elapsed = started.elapsed();
        if elapsed < budget && reads < DEEP_READS_MAX && failure.is_none() {
            in_flight += buffers.len();
            submit(buffers);
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(reads as f64 / elapsed.as_secs_f64().max(1e-9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileDevice, IoEngine, Operation, SimulatedDevice};

    #[test]
    fn a_probe_measures_every_figure_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let device = FileDevice::open(directory.path(), IoEngine::Auto).unwrap();
        let profile = probe(&device, Duration::from_millis(400)).unwrap();
        assert!(profile.read_latency_us > 0.0, "{profile:?}");
        assert!(profile.read_iops > 0.0, "{profile:?}");
        assert!(profile.sequential_write_mb_s > 0.0, "{profile:?}");
        assert!(profile.sync_us > 0.0, "{profile:?}");
        assert_eq!(profile.kind, classify(profile.read_latency_us));
        assert!(!profile.emulated);
        assert_eq!(device.list().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_probe_that_fails_says_so_and_leaves_no_file() {
        for (operation, kind) in [
            (Operation::Write, io::ErrorKind::StorageFull),
            (Operation::Sync, io::ErrorKind::Other),
            (Operation::Read, io::ErrorKind::TimedOut),
        ] {
            let device = SimulatedDevice::new();
            device.fail_next(operation, kind);
            let failed = probe(&device, Duration::from_millis(5)).unwrap_err();
            assert_eq!(failed.kind(), kind);
            assert_eq!(device.list().unwrap(), Vec::<String>::new());
        }
    }
}
