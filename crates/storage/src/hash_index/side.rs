//! What does not fit the lines of a hash index.
//!
//! *Duplicates*: entries of which the whole hash is known, by hash: the many
//! rows of one key in a non-unique index, and what found its group full.
//! *Strays*: entries of which only the first hash bits are known: a group had
//! no room for them when it was rebuilt, or they are so old that all their
//! bits were used up. There are few of either in a unique index.

use std::collections::{BTreeSet, btree_set};
use std::ops::Bound;

use super::top_bits;
use crate::btree::{BTree, RowsEqual};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Stray {
    /// The hash bits that are known, from the top; zeros below.
    pub prefix: u64,
    pub known_bits: u8,
    pub spread: u8,
    pub row: u32,
}

#[derive(Default)]
pub(super) struct Side {
    pub duplicates: BTree,
    pub strays: BTreeSet<Stray>,
    /// A bit for each number of known bits that some stray may have.
    pub lengths: u64,
}

/// What a stray costs in a tree of the standard library, nodes' slack included.
const STRAY_BYTES: usize = 2 * size_of::<Stray>();

impl Side {
    pub fn len(&self) -> usize {
        self.duplicates.len() + self.strays.len()
    }

    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.duplicates.bytes() + self.strays.len() * STRAY_BYTES
    }

    pub fn add_duplicate(&mut self, hash: u64, row: u32) -> bool {
        let added = self.duplicates.insert(&hash.to_be_bytes(), row);
        added.unwrap_or(false)
    }

    pub fn add_stray(&mut self, stray: Stray) {
        self.lengths |= 1 << stray.known_bits;
        self.strays.insert(stray);
    }

    pub fn remove_stray(&mut self, stray: &Stray) -> bool {
        let removed = self.strays.remove(stray);
        if self.strays.is_empty() {
            self.lengths = 0;
        }
        removed
    }

    /// The rows that may have `hash`.
    pub fn candidates(&self, hash: u64) -> SideCandidates<'_> {
        SideCandidates {
            side: self,
            hash,
            duplicates: self.duplicates.rows_equal(&hash.to_be_bytes()),
            lengths: self.lengths,
            strays: None,
        }
    }

    /// The stray entry of `row` with the most known bits that may have `hash`.
    pub fn find_stray(&self, hash: u64, row: u32) -> Option<Stray> {
        let lengths = (0..64u8).rev().filter(|l| self.lengths >> l & 1 == 1);
        lengths
            .flat_map(|length| self.strays_of(hash, length))
            .find(|stray| stray.row == row && stray.spread == hash as u8)
            .copied()
    }

    fn strays_of(&self, hash: u64, known_bits: u8) -> btree_set::Range<'_, Stray> {
        let low = Stray {
            prefix: keep_top(hash, u32::from(known_bits)),
            known_bits,
            spread: 0,
            row: 0,
        };
        let high = Stray {
            spread: u8::MAX,
            row: u32::MAX,
            ..low
        };
        self.strays.range(low..=high)
    }

    /// The distinct hashes of duplicates whose first `level` bits are `group`.
    pub fn duplicate_hashes(&self, group: u64, level: u32) -> Vec<u64> {
        let mut hashes: Vec<u64> = Vec::new();
        let mut key = Vec::with_capacity(8);
        let start = align_top(group, level).to_be_bytes();
        let mut at = self.duplicates.seek(Bound::Included(&start), true);
        while let Some(position) = at {
            self.duplicates.entry(position, &mut key);
            let Some(hash) = key.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)) else {
                break;
            };
            if top_bits(hash, level) != group {
                break;
            }
            hashes.push(hash);
            at = self.duplicates.seek(Bound::Excluded(&key), true);
        }
        hashes
    }

    /// The strays that a look-up in `group` may want: those below it, and those
    /// that do not know enough to say whether they are.
    pub fn strays_around(&self, group: u64, level: u32) -> Vec<Stray> {
        let first = align_top(group, level);
        let last = first | u64::MAX >> level;
        let within = |prefix| Stray {
            prefix,
            known_bits: 0,
            spread: 0,
            row: 0,
        };
        let above = (0..level as u8)
            .filter(|length| self.lengths >> length & 1 == 1)
            .flat_map(|length| self.strays_of(first, length));
        let end = Stray {
            known_bits: u8::MAX,
            spread: u8::MAX,
            row: u32::MAX,
            ..within(last)
        };
        let below = self
            .strays
            .range(within(first)..=end)
            .filter(|stray| u32::from(stray.known_bits) >= level);
        above.chain(below).copied().collect()
    }
}

/// The first `bits` of `hash`, zeros below.
fn keep_top(hash: u64, bits: u32) -> u64 {
    align_top(top_bits(hash, bits), bits)
}

/// A group's number at the top of a word.
pub(super) fn align_top(group: u64, level: u32) -> u64 {
    group.checked_shl(64 - level).unwrap_or(0)
}

pub(super) struct SideCandidates<'a> {
    side: &'a Side,
    hash: u64,
    duplicates: RowsEqual<'a>,
    lengths: u64,
    strays: Option<btree_set::Range<'a, Stray>>,
}

impl Iterator for SideCandidates<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if let Some(row) = self.duplicates.next() {
            return Some(row);
        }
        loop {
            for stray in self.strays.iter_mut().flatten() {
                if stray.spread == self.hash as u8 {
                    return Some(stray.row);
                }
            }
            if self.lengths == 0 {
                return None;
            }
            let length = self.lengths.trailing_zeros() as u8;
            self.lengths &= self.lengths - 1;
            self.strays = Some(self.side.strays_of(self.hash, length));
        }
    }
}
