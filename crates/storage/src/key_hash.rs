//! The hash of a key, for hash indexes, fingerprints and partitions.
//!
//! Of an integer key in the range of 32 bits nothing is lost: its hash is a
//! permutation of those bits. A hash index keeps the first [`WHOLE_BITS`] of it and
//! the last 8. Together with the fingerprint in a cold row's word they are the key.
//! So it can be told of an evicted row, without reading it, that it has a certain
//! key. Other keys are hashed whole, and their fingerprints say that they are others.

use xxhash_rust::xxh3::xxh3_64;

/// So many of the first bits of an integer key's hash have to be known, beside the last
/// eight and the fingerprint, to know the key.
pub const WHOLE_BITS: u32 = 20;
/// Where the five bits of the fingerprint lie in a hash: the lowest says that the key is
/// no integer of 32 bits, the others are four bits of one that is.
const FINGERPRINT_SHIFT: u32 = 8;
const OTHER: u64 = 1 << FINGERPRINT_SHIFT;
/// The first byte of an encoded column that is not NULL.
const PRESENT: u8 = 1;

/// The hash of an encoded key (see [`crate::key`]).
#[inline]
pub fn key_hash(key: &[u8]) -> u64 {
    match integer_of(key) {
        Some(integer) => integer_hash(integer),
        None => xxh3_64(key) | OTHER,
    }
}

/// The bits of a hash that are kept in a cold row's word: five, the lowest ones.
#[inline]
pub fn fingerprint_of(hash: u64) -> u8 {
    (hash >> FINGERPRINT_SHIFT) as u8
}

/// Whether a hash is that of an integer key, of which everything is in it. Only of keys
/// that are one column of an integer type: the bytes of others may look the same.
#[inline]
pub fn is_whole(hash: u64) -> bool {
    hash & OTHER == 0
}

/// The integer that the key looks like: one column of four bytes, or of eight if its
/// value takes no more than 32 bits and is not negative.
#[inline]
fn integer_of(key: &[u8]) -> Option<u32> {
    match *key {
        [PRESENT, a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d])),
        // The first bit is turned, so that negative values come first.
        [PRESENT, 0x80, 0, 0, 0, a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d])),
        _ => None,
    }
}

#[inline]
fn integer_hash(integer: u32) -> u64 {
    let bits = permuted(integer);
    let filler = u64::from(bits).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    let (first, middle, last) = (bits >> 12, bits >> 8 & 15, bits & 0xFF);
    u64::from(first) << (64 - WHOLE_BITS)
        | filler << (FINGERPRINT_SHIFT + 5)
        | u64::from(middle) << (FINGERPRINT_SHIFT + 1)
        | u64::from(last)
}

/// A permutation of all 32-bit integers of which every bit depends on all others
/// (Wellons' `lowbias32`).
#[inline]
fn permuted(integer: u32) -> u32 {
    let mut x = integer;
    x = (x ^ x >> 16).wrapping_mul(0x7FEB_352D);
    x = (x ^ x >> 15).wrapping_mul(0x846C_A68B);
    x ^ x >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeyColumn, KeyShape};
    use proptest::prelude::*;
    use thermocline_values::types::DataType;
    use thermocline_values::value::ValueRef;

    /// The permutation backwards.
    fn restored(bits: u32) -> u32 {
        let mut x = bits ^ bits >> 16;
        x = x.wrapping_mul(0x43021123);
        x ^= x >> 15 ^ x >> 30;
        x = x.wrapping_mul(0x1D69E2A5);
        x ^ x >> 16
    }

    fn encoded(data_type: DataType, value: ValueRef<'_>) -> Vec<u8> {
        let column = KeyColumn {
            data_type,
            nullable: true,
            descending: false,
        };
        let mut key = Vec::new();
        KeyShape::new(vec![column]).encode(&[value], &mut key);
        key
    }

    proptest! {
        #[test]
        fn what_is_kept_of_an_integers_hash_is_the_integer(integer in any::<u32>()) {
            let hash = integer_hash(integer);
            let first = (hash >> (64 - WHOLE_BITS)) as u32;
            let fingerprint = fingerprint_of(hash) & 31;
            prop_assert_eq!(fingerprint & 1, 0);
            let bits = first << 12 | u32::from(fingerprint >> 1) << 8 | (hash & 0xFF) as u32;
            prop_assert_eq!(restored(bits), integer);
        }

        #[test]
        fn integers_are_whole_where_they_fit_and_others_are_not(
            small in any::<u32>(), large in any::<i64>(), text in ".*",
        ) {
            let big = |value| key_hash(&encoded(DataType::BigInt, ValueRef::BigInt(value)));
            prop_assert!(is_whole(big(i64::from(small))));
            let fits = u32::try_from(large).is_ok();
            prop_assert_eq!(is_whole(big(large)), fits);
            prop_assert!(!is_whole(big(-1 - i64::from(small))));
            let integer = encoded(DataType::Integer, ValueRef::Integer(small.cast_signed()));
            prop_assert!(is_whole(key_hash(&integer)));
            // Of two bytes, or of one zero that becomes two, it looks like an integer.
            let key = encoded(DataType::Text, ValueRef::Text(&text));
            let short = text.len() == 2 || text == "\0";
            prop_assert!(short || !is_whole(key_hash(&key)));
        }
    }

    /// Groups, home lines and partitions are chosen by different bits of the hashes.
    #[test]
    fn consecutive_integers_are_spread_evenly() {
        let mut counts = [[0u32; 64]; 4];
        for integer in 0..64 * 1024 {
            let hash = key_hash(&encoded(DataType::BigInt, ValueRef::BigInt(integer)));
            let parts = [hash >> 58, hash & 63, hash >> 38 & 63, hash >> 20 & 63];
            for (counts, part) in counts.iter_mut().zip(parts) {
                counts[part as usize] += 1;
            }
        }
        for counts in counts {
            assert!(
                counts.iter().all(|count| (860..1190).contains(count)),
                "{counts:?}"
            );
        }
    }
}
