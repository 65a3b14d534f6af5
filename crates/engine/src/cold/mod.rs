//! What leaves memory and comes back: eviction, the pace of it, compaction of what has holes,
//! reading for a statement that needs what is gone.
//!
//! Runs beside statements, in short turns under a partition's lock.

pub(crate) mod block_writer;
pub(crate) mod compaction;
pub(crate) mod cooling;
pub(crate) mod evict;
pub(crate) mod fetching;
pub(crate) mod pace;
