//! How fast data larger than memory could be read: the device's reads a second,
//! by the share of accesses that miss when the best tuples are in memory.
//!
//! Of the limit, each tuple costs 16 bytes whether it is in memory or not; the
//! rest holds whole tuples, each with a header of 16 bytes:
//!
//! ```text
//! K = (limit - 16 N) / (row_bytes + 16)      tuples that fit, of N
//! miss share = 1 - H(K, s) / H(N, s)         H(n, s) = 1^-s + 2^-s + ... + n^-s
//! bound = device reads a second / miss share
//! ```
//!
//! The choice is the best *static* one: nothing that is known beforehand could
//! miss less. Where the 16 bytes alone pass the limit K is 0. With updates it is a
//! yardstick and no law, because an update need not read what it replaces.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use thermocline_bench::Result;
use thermocline_device::{
    AlignedBuffer, Device, DeviceFile, FileDevice, IoEngine, OpenMode, ReadRequest, SECTOR_BYTES,
};

/// Bytes that a tuple costs wherever it is.
const TUPLE_OVERHEAD_BYTES: u64 = 16;
/// Bytes of a tuple's header in memory.
const TUPLE_HEADER_BYTES: u64 = 16;
const FILE_NAME: &str = "reads";
const CHUNK_BYTES: usize = 4 << 20;

/// The tuples that fit.
fn tuples_in_memory(rows: u64, row_bytes: u64, memory_limit: u64) -> u64 {
    let left = memory_limit.saturating_sub(TUPLE_OVERHEAD_BYTES.saturating_mul(rows));
    (left / (row_bytes + TUPLE_HEADER_BYTES)).min(rows)
}

/// The share of accesses that the best static choice of tuples misses.
pub fn miss_share(rows: u64, zipf: f64, row_bytes: u64, memory_limit: u64) -> f64 {
    let hot = tuples_in_memory(rows, row_bytes, memory_limit);
    1.0 - harmonic(hot, zipf) / harmonic(rows, zipf)
}

/// 1^-s + … + n^-s: the first terms one by one, the others by the formula of
/// Euler and Maclaurin, whose error is far below what matters here.
fn harmonic(n: u64, s: f64) -> f64 {
    const EXACT: u64 = 10_000;
    let exact: f64 = (1..=n.min(EXACT)).map(|k| (k as f64).powf(-s)).sum();
    if n <= EXACT {
        return exact;
    }
    let (a, b) = (EXACT as f64, n as f64);
    let integral = if (s - 1.0).abs() < 1e-9 {
        (b / a).ln()
    } else {
        (b.powf(1.0 - s) - a.powf(1.0 - s)) / (1.0 - s)
    };
    let slope = |x: f64| -s * x.powf(-s - 1.0);
    exact + integral + (b.powf(-s) - a.powf(-s)) / 2.0 + (slope(b) - slope(a)) / 12.0
}

/// Random reads of one sector a second, with so many in flight, from a file as
/// large as the data: the better of threads that wait and of asynchronous reads.
/// None where the file system reads through the page cache.
pub fn device_reads(
    directory: &Path,
    bytes: u64,
    in_flight: usize,
    time: Duration,
) -> Result<Option<f64>> {
    let device = FileDevice::open(directory, IoEngine::Auto)?;
    if !device.is_direct() {
        return Ok(None);
    }
    let file = device.open(FILE_NAME, OpenMode::Create)?;
    let bytes = bytes.max(CHUNK_BYTES as u64) / CHUNK_BYTES as u64 * CHUNK_BYTES as u64;
    if file.len()? != bytes {
        fill(&*file, bytes)?;
    }
    let waiting = waiting_reads(&file, bytes, in_flight, time / 2)?;
    let asynchronous = asynchronous_reads(&*file, bytes, in_flight, time / 2)?;
    Ok(Some(waiting.max(asynchronous)))
}

fn fill(file: &dyn DeviceFile, bytes: u64) -> io::Result<()> {
    // Not zeros: some devices don't store those.
    let mut chunk = AlignedBuffer::new_zeroed(CHUNK_BYTES);
    SmallRng::seed_from_u64(1).fill_bytes(&mut chunk);
    file.set_len(0)?;
    for offset in (0..bytes).step_by(CHUNK_BYTES) {
        file.write_at(&chunk, offset)?;
    }
    file.sync_data()
}

fn random_offset(random: &mut SmallRng, bytes: u64) -> u64 {
    random.random_range(0..bytes / SECTOR_BYTES as u64) * SECTOR_BYTES as u64
}

fn waiting_reads(
    file: &Arc<dyn DeviceFile>,
    bytes: u64,
    in_flight: usize,
    time: Duration,
) -> Result<f64> {
    let (reads, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let begin = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        let readers: Vec<_> = (0..in_flight)
            .map(|number| {
                let (reads, stop) = (&reads, &stop);
                scope.spawn(move || -> io::Result<()> {
                    let mut random = SmallRng::seed_from_u64(number as u64);
                    let mut sector = AlignedBuffer::new_zeroed(SECTOR_BYTES);
                    while !stop.load(Ordering::Relaxed) {
                        file.read_at(&mut sector, random_offset(&mut random, bytes))?;
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().map_err(|_| "a reader panicked")??;
        }
        Ok(())
    })?;
    Ok(reads.into_inner() as f64 / begin.elapsed().as_secs_f64())
}

fn asynchronous_reads(
    file: &dyn DeviceFile,
    bytes: u64,
    in_flight: usize,
    time: Duration,
) -> Result<f64> {
    let mut random = SmallRng::seed_from_u64(7);
    let (sender, receiver) = mpsc::channel();
    let mut submit = |buffers: Vec<AlignedBuffer>| {
        let request = |buffer| {
            let sender = sender.clone();
            ReadRequest {
                offset: random_offset(&mut random, bytes),
                buffer,
                // The receiver is gone only when another read has failed.
                completion: Box::new(move |result| drop(sender.send(result))),
            }
        };
        file.submit_reads(buffers.into_iter().map(request).collect());
    };
    let sector = |_| AlignedBuffer::new_zeroed(SECTOR_BYTES);
    let begin = Instant::now();
    submit((0..in_flight).map(sector).collect());
    let (mut under_way, mut reads) = (in_flight, 0u64);
    while under_way > 0 {
        let first = receiver.recv()?;
        let mut buffers = Vec::new();
        for result in std::iter::once(first).chain(receiver.try_iter()) {
            buffers.push(result?);
            under_way -= 1;
            reads += 1;
        }
        if begin.elapsed() < time {
            under_way += buffers.len();
            submit(buffers);
        }
    }
    Ok(reads as f64 / begin.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_hand(rows: u64, zipf: f64, row_bytes: u64, limit: u64) -> f64 {
        let weight = |rank: u64| 1.0 / (rank as f64).powf(zipf);
        let left = limit as i64 - 16 * rows as i64;
        let hot = (left.max(0) as u64 / (row_bytes + 16)).min(rows);
        let all: f64 = (1..=rows).map(weight).sum();
        let cold: f64 = (hot + 1..=rows).map(weight).sum();
        cold / all
    }

    #[test]
    fn the_miss_share_is_that_of_adding_all_ranks() {
        for zipf in [0.0, 0.5, 0.75, 1.0, 1.25, 2.0] {
            for (rows, row_bytes, limit) in [
                (1000, 100, 50_000),
                (200_000, 1000, 30_000_000),
                (500_000, 100, 12_000_000),
                (500_000, 100, 1 << 40),
                (500_000, 100, 1000),
            ] {
                let found = miss_share(rows, zipf, row_bytes, limit);
                let wanted = by_hand(rows, zipf, row_bytes, limit);
                assert!(
                    (found - wanted).abs() < 1e-9,
                    "{zipf} {rows}: {found} {wanted}"
                );
            }
        }
    }

    #[test]
    fn tuples_whose_overhead_fills_memory_leave_no_room_for_any() {
        assert_eq!(tuples_in_memory(20_000_000, 100, 256 << 20), 0);
        assert_eq!(miss_share(20_000_000, 1.0, 100, 256 << 20), 1.0);
    }

    #[test]
    fn a_device_is_read_with_several_in_flight() {
        let directory = tempfile::tempdir().expect("a directory");
        let time = Duration::from_millis(200);
        let reads = device_reads(directory.path(), 8 << 20, 4, time).expect("it can be read");
        assert!(reads.is_none_or(|reads| reads > 10.0), "{reads:?}");
    }
}
