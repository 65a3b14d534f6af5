//! The paper's microbenchmark (000 §2), shortened: a hash table on the device, tuples of 1 KB.
//! Half reads and half writes of keys by Zipf's law, one thread, 1 or 64 tuples an operation,
//! each write synced.
//!
//! A bucket holds what one operation takes. On a device of sectors a single tuple has a sector
//! to itself: neither it nor the paper's device reads less. The hash is one to one, so that
//! no bucket overflows. Each read checks that it found its key.

use std::io;
use std::time::Duration;

use super::load::Target;
use super::times::Times;
use crate::random::SplitMix64;
use crate::{AlignedBuffer, SECTOR_BYTES};

pub(super) const TUPLE_BYTES: usize = 1 << 10;
/// Keys at most: their shares are kept in memory.
const KEYS_MAX: u64 = 1 << 18;
/// An odd factor: multiplied by it, modulo a power of two, no two keys share a bucket.
const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Loading writes so much at once.
const LOAD_BYTES: usize = 1 << 20;

/// Operations of 1 or 64 tuples.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuples {
    /// Tuples an operation.
    pub tuples: usize,
    /// Reads.
    pub read: Times,
    /// Writes, each with its sync.
    pub write: Times,
}

/// Runs the microbenchmark for `tuples` tuples an operation.
pub(super) fn run(
    target: &Target,
    tuples: usize,
    unit_bytes: usize,
    time: Duration,
) -> io::Result<Tuples> {
    let bytes = (tuples * TUPLE_BYTES).next_multiple_of(unit_bytes);
    let table = Table::load(target, bytes)?;
    let zipf = Zipf::new(table.keys);
    let mut random = SplitMix64::new(21);
    let mut buffer = AlignedBuffer::new_zeroed(bytes.next_multiple_of(SECTOR_BYTES));
    random.fill(&mut buffer);
    let buffer = &mut buffer[..bytes];
    let mut kinds = Vec::new();
    let measured = target.repeat(time, || {
        let key = zipf.key(&mut random);
        let is_read = random.below(2) == 0;
        kinds.push(is_read);
        if is_read {
            table.read(key, buffer)
        } else {
            table.write(key, buffer)
        }
    })?;
    let of = |reads: bool| {
        let times = measured.times.iter().zip(&kinds);
        let times = times.filter(|(_, is_read)| **is_read == reads);
        Times::of(times.map(|(time, _)| *time).collect())
    };
    Ok(Tuples {
        tuples,
        read: of(true),
        write: of(false),
    })
}

struct Table<'a> {
    target: &'a Target,
    bucket_bytes: usize,
    /// Buckets, each with its key: a power of two.
    keys: u64,
}

impl<'a> Table<'a> {
    /// Makes a table of as many keys as the file has room for.
    fn load(target: &'a Target, bucket_bytes: usize) -> io::Result<Table<'a>> {
        let room = (target.bytes / bucket_bytes as u64).clamp(1, KEYS_MAX);
        let table = Table {
            target,
            bucket_bytes,
            keys: 1 << room.ilog2(),
        };
        let mut key_of = vec![0; table.keys as usize];
        for key in 0..table.keys {
            key_of[table.bucket(key) as usize] = key;
        }
        let in_chunk = (LOAD_BYTES / bucket_bytes).max(1);
        let mut chunk = AlignedBuffer::new_zeroed(in_chunk * bucket_bytes);
        SplitMix64::new(22).fill(&mut chunk);
        for (number, keys) in key_of.chunks(in_chunk).enumerate() {
            for (bucket, key) in chunk.chunks_mut(bucket_bytes).zip(keys) {
                put_key(bucket, *key);
            }
            let offset = (number * in_chunk * bucket_bytes) as u64;
            target
                .file
                .write_at(&chunk[..keys.len() * bucket_bytes], offset)?;
        }
        target.file.sync_data()?;
        Ok(table)
    }

    fn bucket(&self, key: u64) -> u64 {
        key.wrapping_mul(HASH_FACTOR) & (self.keys - 1)
    }

    fn offset(&self, key: u64) -> u64 {
        self.bucket(key) * self.bucket_bytes as u64
    }

    fn read(&self, key: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.target.file.read_at(buffer, self.offset(key))?;
        if buffer[..8] == key.to_le_bytes() {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the device gave other bytes than were written, for key {key}"),
        ))
    }

    fn write(&self, key: u64, buffer: &mut [u8]) -> io::Result<()> {
        put_key(buffer, key);
        self.target.file.write_at(buffer, self.offset(key))?;
        self.target.file.sync_data()
    }
}

fn put_key(bucket: &mut [u8], key: u64) {
    bucket[..8].copy_from_slice(&key.to_le_bytes());
}

/// Keys by Zipf's law with exponent 1: key `k` comes `k + 1` times as rarely as key 0.
struct Zipf {
    /// What comes up to each key, as a share of all.
    up_to: Vec<f64>,
}

impl Zipf {
    fn new(keys: u64) -> Zipf {
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=keys)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        up_to.iter_mut().for_each(|share| *share /= sum);
        Zipf { up_to }
    }

    fn key(&self, random: &mut SplitMix64) -> u64 {
        let share = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let key = self.up_to.partition_point(|up_to| *up_to <= share);
        key.min(self.up_to.len() - 1) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Device, MemoryDevice, SystemClock};

    #[test]
    fn the_first_keys_come_most_often() {
        let zipf = Zipf::new(1000);
        let mut random = SplitMix64::new(1);
        let mut seen = vec![0; 1000];
        for _ in 0..100_000 {
            seen[zipf.key(&mut random) as usize] += 1;
        }
        let share = f64::from(seen[0]) / 1e5;
        assert!((share - 1.0 / 7.485).abs() < 0.01, "{share}");
        let ratio = f64::from(seen[0]) / f64::from(seen[9]);
        assert!((7.0..14.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn every_key_has_its_bucket_and_wrong_bytes_are_noticed() {
        let target = Target {
            file: MemoryDevice::new().temporary().unwrap(),
            bytes: 1 << 20,
            clock: Arc::new(SystemClock::new()),
        };
        target.file.set_len(1 << 20).unwrap();
        let table = Table::load(&target, 4096).unwrap();
        assert_eq!(table.keys, 256);
        let mut buffer = vec![0; 4096];
        (0..256).for_each(|key| table.read(key, &mut buffer).unwrap());
        let tuples = run(&target, 64, 4096, Duration::from_millis(2)).unwrap();
        assert!(tuples.read.count + tuples.write.count > 0);
        let table = Table::load(&target, 4096).unwrap();
        target.file.write_at(&[9; 8], table.offset(5)).unwrap();
        let error = table.read(5, &mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
