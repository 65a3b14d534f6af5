//! What the eviction of a block's tuples updates (004 §5.5). In the paper each index entry of a
//! tuple comes to lead to its tombstone: here an entry is taken out and put in again with
//! another row. Ours changes the row's word in its directory, and no index.

use std::time::{Duration, Instant};

use thermocline_storage::arena::TuplePtr;
use thermocline_storage::btree::BTree;
use thermocline_storage::hash_index::HashIndex;
use thermocline_storage::key_hash::key_hash;
use thermocline_storage::row_directory::{ColdAddress, RowDirectory, Word};

use super::super::setting::Updates;
use super::ms;
use crate::Result;

/// Rows of the table that the tuples are of.
const ROWS: u32 = 100_000;
const REPETITIONS: u32 = 9;

/// A key of a row in the index with this number: scattered, and each index by another order.
fn key(index: u32, row: u32) -> [u8; 8] {
    let mixed = u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15 | u64::from(index) << 1);
    (mixed ^ u64::from(row)).to_be_bytes()
}

/// The mean milliseconds for so many tuples.
pub(in super::super) fn measure(
    updates: Updates,
    indexes: u32,
    tuples: u32,
) -> Result<Vec<(String, f64)>> {
    let mut hashes: Vec<HashIndex> = Vec::new();
    let mut trees: Vec<BTree> = Vec::new();
    let mut directory = RowDirectory::new();
    for row in 0..ROWS {
        directory.allocate().ok_or("no row is left")?;
        directory.set(row, Word::hot(TuplePtr(u64::from(row) + 1)));
    }
    for number in 0..indexes {
        let (mut hash, mut tree) = (HashIndex::new(), BTree::new());
        for row in 0..ROWS {
            let key = key(number, row);
            match updates {
                Updates::Hash => hash.insert(key_hash(&key), row),
                Updates::BTree => {
                    let inserted = tree.insert(&key, row);
                    inserted.map_err(|_| "a key is too long")?;
                }
                Updates::Word => {}
            }
        }
        hashes.push(hash);
        trees.push(tree);
    }
    let mut all = Duration::ZERO;
    for repetition in 0..REPETITIONS {
        let first = repetition * tuples % (ROWS - tuples);
        let begin = Instant::now();
        for row in first..first + tuples {
            match updates {
                Updates::Word => {
                    let address = ColdAddress {
                        block: repetition + 1,
                        slot: (row - first) as u16,
                        extent: 1,
                    };
                    directory.set(row, Word::cold(address, 0));
                }
                Updates::Hash => {
                    for (number, index) in (0..).zip(&mut hashes) {
                        let hash = key_hash(&key(number, row));
                        index.remove(hash, row);
                        index.insert(hash, row);
                    }
                }
                Updates::BTree => {
                    for (number, index) in (0..).zip(&mut trees) {
                        let key = key(number, row);
                        index.remove(&key, row);
                        let inserted = index.insert(&key, row);
                        inserted.map_err(|_| "a key is too long")?;
                    }
                }
            }
        }
        all += begin.elapsed();
    }
    Ok(vec![(
        "elapsed_ms".into(),
        ms(all) / f64::from(REPETITIONS),
    )])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_updating_is_measured() {
        for updates in [Updates::Hash, Updates::BTree, Updates::Word] {
            let values = measure(updates, 2, 100).expect("it runs");
            assert!(values[0].1 > 0.0, "{updates:?}");
        }
    }

    #[test]
    fn keys_of_a_row_differ_by_index() {
        assert_ne!(key(0, 5), key(1, 5));
        assert_ne!(key(0, 5), key(0, 6));
    }
}
