//! How far the warming up after a start has come. What warms is `warming`.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// How far the warming up is.
#[derive(Debug, Default)]
pub(crate) struct WarmUp {
    /// Partitions swept, once for each sweep.
    pub swept: AtomicU64,
    pub is_under_way: AtomicBool,
}

/// How far the warming up after a start has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmUpReport {
    /// Sweeps over a partition's directory that are done, …
    pub swept: u64,
    /// … of so many; it ends before that when memory has no room for more.
    pub sweeps: u64,
    /// Whether it goes on.
    pub is_under_way: bool,
}
