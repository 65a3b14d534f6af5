//! The figures of *Larger-than-Memory Data Management on Modern Storage Hardware for In-Memory
//! OLTP Database Systems* (000, DaMoN 2016), one file each.

pub(super) mod access;
pub(super) mod best_policies;
pub(super) mod merge_threshold;
pub(super) mod retrieval;
pub(super) mod storage_comparison;
pub(super) mod sustained;
pub(super) mod workloads;

/// A panel for each device, in the paper's order: a, b, c …
fn panel_of(number: usize, name: &str) -> String {
    let letter = char::from(b'a' + number as u8);
    format!("{letter} {name}")
}
