//! The figures of *Larger-than-Memory Data Management on Modern Storage Hardware for In-Memory
//! OLTP Database Systems* (000, DaMoN 2016), one file each.

pub(super) mod access;
pub(super) mod best_policies;
pub(super) mod merge_threshold;
pub(super) mod retrieval;
pub(super) mod storage_comparison;
pub(super) mod sustained;
pub(super) mod workloads;

use super::setting::Medium;

/// A panel for each device, in the paper's order: a, b, c …
fn panel_of(number: usize, name: &str) -> String {
    let letter = char::from(b'a' + number as u8);
    format!("{letter} {name}")
}

/// The panel of a device that rows may leave to.
fn panel(medium: Medium) -> String {
    let number = Medium::COLD.iter().position(|one| *one == medium);
    panel_of(number.unwrap_or_default(), medium.name())
}

/// What is drawn of each such device.
fn of_each<T>(of_device: impl Fn(Medium) -> T) -> Vec<T> {
    Medium::COLD.into_iter().map(of_device).collect()
}
