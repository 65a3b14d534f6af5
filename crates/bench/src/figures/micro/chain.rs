//! Updates of rows by Zipf's law with a chain of all rows by their last use (004 §5.4). Each
//! update finds its row by a hash index and writes a field of it; the row becomes the newest.
//!
//! Doubly linked is the engine's own chain. Singly linked finds a row by going through the
//! chain from its oldest, which is what the paper's had to do.

use std::hint::black_box;
use std::time::Instant;

use thermocline_storage::chains::Chains;
use thermocline_storage::hash_index::HashIndex;
use thermocline_storage::key_hash::key_hash;

use super::super::setting::Links;
use super::ms;
use crate::Result;
use crate::ycsb::KeyChooser;

const ROW_BYTES: usize = 1000;
const FIELD_BYTES: usize = 100;
const NONE: u32 = u32::MAX;

/// Rows, each of which knows the next newer one.
struct Single {
    newer: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl Single {
    /// All rows, the first the oldest.
    fn of(rows: u32) -> Self {
        let newer = (1..rows).chain([NONE]).collect();
        Single {
            newer,
            oldest: 0,
            newest: rows - 1,
        }
    }

    fn put_newest(&mut self, row: u32) {
        if row == self.newest {
            return;
        }
        let after = self.newer[row as usize];
        if row == self.oldest {
            self.oldest = after;
        } else {
            let mut at = self.oldest;
            while self.newer[at as usize] != row {
                at = self.newer[at as usize];
            }
            self.newer[at as usize] = after;
        }
        self.newer[self.newest as usize] = row;
        self.newer[row as usize] = NONE;
        self.newest = row;
    }
}

/// The milliseconds of so many updates.
pub(in super::super) fn measure(
    links: Links,
    (rows, updates): (u32, u32),
    zipf: f64,
    seed: u64,
) -> Result<Vec<(String, f64)>> {
    let mut index = HashIndex::new();
    for row in 0..rows {
        index.insert(key_hash(&row.to_be_bytes()), row);
    }
    let mut payloads = vec![0u8; rows as usize * ROW_BYTES];
    let mut chooser = KeyChooser::new(u64::from(rows), zipf, seed + 1)?;
    let mut keys = || {
        (0..updates)
            .map(|_| chooser.key() as u32)
            .collect::<Vec<u32>>()
    };
    // The hot rows lie at the chain's end before time is taken, as they would.
    let (before, keys) = (keys(), keys());
    let mut double = Chains::<1>::new();
    let mut single = Single::of(rows);
    if links == Links::Doubly {
        (0..rows).for_each(|row| double.put_newest(0, row));
    }
    let mut update = |key: u32| {
        let hash = key_hash(&key.to_be_bytes());
        let Some(row) = index.candidates(hash).next() else {
            return;
        };
        let place = row as usize * ROW_BYTES;
        payloads[place..place + FIELD_BYTES].fill(key as u8);
        match links {
            Links::None => {}
            Links::Singly => single.put_newest(row),
            Links::Doubly => double.put_newest(0, row),
        }
    };
    before.into_iter().for_each(&mut update);
    let begin = Instant::now();
    keys.into_iter().for_each(&mut update);
    let elapsed = begin.elapsed();
    black_box(&payloads);
    Ok(vec![("elapsed_ms".into(), ms(elapsed))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_chain_keeps_the_order_of_uses() {
        let mut chain = Single::of(4);
        for row in [1, 3, 0, 0, 2, 1] {
            chain.put_newest(row);
        }
        let mut order = vec![chain.oldest];
        while chain.newer[order[order.len() - 1] as usize] != NONE {
            order.push(chain.newer[order[order.len() - 1] as usize]);
        }
        assert_eq!(order, [3, 0, 2, 1]);
        assert_eq!(chain.newest, 1);
    }

    #[test]
    fn every_way_of_linking_is_measured() {
        for links in [Links::None, Links::Singly, Links::Doubly] {
            let values = measure(links, (100, 1000), 1.0, 1).expect("it runs");
            assert!(values[0].1 > 0.0, "{links:?}");
        }
    }
}
