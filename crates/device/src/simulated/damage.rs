//! Damaged copies of bytes that were valid, for tests of whatever reads what a device has.
//!
//! A copy is flipped, cut, extended, has parts moved and numbers put to their ends, all from a
//! seed. The caller makes its checksums right again, so that the damage gets behind them: whoever
//! reads it says what is wrong with it, or takes it for what it is, and neither panics nor takes
//! memory out of proportion. `scripts/fuzz.sh` lets all such tests run for longer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::random::SplitMix64;

/// Copies that a test reads unless it is told for how long (`FUZZ_SECONDS`).
const COPIES: u64 = 300;
/// Parts of a copy that are damaged at most.
const DAMAGES_MAX: u64 = 4;
/// Bytes that a copy gets in addition at most.
const EXTENDED_MAX: u64 = 5000;
/// One copy may take so much address space more than all before. Looked at where nothing else
/// runs in the process, with `FUZZ_SECONDS`.
const GROWTH_MAX_KB: u64 = 512 << 10;

/// Numbers that stand at the end of what a field holds, or beyond.
const ENDS: [u64; 12] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 32,
    i64::MAX as u64,
    i64::MIN as u64,
    u64::MAX,
];

/// Reads damaged copies of `valid` bytes, one after the other. `repair` makes the checksums
/// right; `read` has the error in words. Nothing is wrong with an error, or with damage that is
/// none to the reader; what is asked of the words is that they are there.
///
/// # Panics
/// `read` does, or its words are empty, or memory grows out of proportion. The seed is told:
/// `FUZZ_SEED` begins there.
pub fn read_damaged(
    name: &str,
    valid: &[Vec<u8>],
    repair: impl Fn(&mut Vec<u8>),
    mut read: impl FnMut(&[u8]) -> Result<(), String>,
) {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = number("FUZZ_SEED").unwrap_or(1);
    let seconds = number("FUZZ_SECONDS").map(Duration::from_secs);
    let begun = Instant::now();
    let mut refused = 0;
    let mut peak = address_space_kb();
    let goes_on = |done: u64| match seconds {
        Some(seconds) => begun.elapsed() < seconds,
        None => done < COPIES,
    };
    let mut seed = first;
    while goes_on(seed - first) {
        let mut chance = SplitMix64::new(seed);
        let mut bytes = pick(valid, &mut chance).clone();
        for _ in 0..=chance.below(DAMAGES_MAX) {
            damage(&mut bytes, pick(valid, &mut chance), &mut chance);
        }
        // Now and then it is the checksum that is to notice.
        if chance.below(8) > 0 {
            repair(&mut bytes);
        }
        match catch_unwind(AssertUnwindSafe(|| read(&bytes))) {
            Ok(Ok(())) => {}
            Ok(Err(words)) => {
                assert!(!words.is_empty(), "{name}: FUZZ_SEED={seed}: no words");
                refused += 1;
            }
            Err(_) => panic!("{name}: FUZZ_SEED={seed}: it panicked"),
        }
        let before = std::mem::replace(&mut peak, address_space_kb());
        let grown = peak.saturating_sub(before);
        assert!(
            seconds.is_none() || grown < GROWTH_MAX_KB,
            "{name}: FUZZ_SEED={seed}: {grown} kB were taken"
        );
        seed += 1;
    }
    let read = seed - first;
    println!("{name}: {read} damaged copies, {refused} refused");
    assert!(refused > 0, "{name}: nothing was ever refused");
}

fn pick<'v>(valid: &'v [Vec<u8>], chance: &mut SplitMix64) -> &'v Vec<u8> {
    &valid[chance.below(valid.len() as u64) as usize]
}

/// A place in so many bytes, more often one of the first: headers are there.
fn place(bytes: usize, chance: &mut SplitMix64) -> usize {
    let within = match chance.below(3) {
        0 => bytes.min(128),
        _ => bytes,
    };
    chance.below(within.max(1) as u64) as usize
}

fn damage(bytes: &mut Vec<u8>, other: &[u8], chance: &mut SplitMix64) {
    let at = place(bytes.len(), chance);
    match chance.below(9) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << chance.below(8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = chance.next() as u8;
            }
        }
        2 | 3 => {
            let end = ENDS[chance.below(ENDS.len() as u64) as usize];
            put_number(bytes, at, end, chance);
        }
        4 => {
            let near = bytes.get(at).map_or(0, |byte| u64::from(*byte));
            let number = near.wrapping_add(chance.below(5)).wrapping_sub(2);
            put_number(bytes, at, number, chance);
        }
        5 => bytes.truncate(at),
        6 => {
            let mut more = vec![0; chance.below(EXTENDED_MAX) as usize];
            if chance.below(2) == 0 {
                chance.fill(&mut more);
            }
            bytes.extend(more);
        }
        7 => {
            let taken = at..bytes.len().min(at + 1 + chance.below(100) as usize);
            bytes.drain(taken);
        }
        _ => {
            let from = place(other.len(), chance);
            let until = other.len().min(from + 1 + chance.below(200) as usize);
            let end = match chance.below(2) {
                0 => at,
                _ => bytes.len().min(at + until - from),
            };
            bytes.splice(at..end, other[from..until].iter().copied());
        }
    }
}

/// Writes a number of one to eight bytes, the lowest first.
fn put_number(bytes: &mut [u8], at: usize, number: u64, chance: &mut SplitMix64) {
    let width = 1 << chance.below(4);
    let number = number.to_le_bytes();
    for (byte, new) in bytes.iter_mut().skip(at).zip(&number[..width]) {
        *byte = *new;
    }
}

/// The most address space that the process ever had.
fn address_space_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    let number = peak.and_then(|peak| peak.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(bytes: &mut [u8]) {
        if let Some((sum, rest)) = bytes.split_last_mut() {
            *sum = rest.iter().fold(0, |sum, byte| sum ^ byte);
        }
    }

    #[test]
    fn a_reader_that_believes_a_length_is_found_out() {
        let mut valid = vec![3, 1, 2, 3, 0];
        sums(&mut valid);
        let believes = |bytes: &[u8]| match bytes.split_first() {
            Some((length, rest)) => {
                let sum = rest[..usize::from(*length)].iter().map(|b| u32::from(*b));
                if sum.sum::<u32>() > 99 {
                    Err("large".to_owned())
                } else {
                    Ok(())
                }
            }
            None => Err("nothing".to_owned()),
        };
        let found =
            catch_unwind(|| read_damaged("believes", &[valid], |bytes| sums(bytes), believes));
        assert!(found.is_err());
    }

    #[test]
    fn a_seed_damages_the_same_way_each_time() {
        let valid: Vec<u8> = (0..=255).collect();
        let once = |seed| {
            let (mut bytes, mut chance) = (valid.clone(), SplitMix64::new(seed));
            damage(&mut bytes, &valid, &mut chance);
            bytes
        };
        let changed = (0..100).filter(|seed| once(*seed) != valid).count();
        assert!(changed > 80, "{changed}");
        assert!((0..100).all(|seed| once(seed) == once(seed)));
    }
}
