//! The ground: what everything else stands on, and what knows nothing of rows, catalogs or
//! partitions. Errors, numbers, waiting, counters, temporary files, and whom a simulator or an operator
//! hears.
//!
//! Imports nothing of the engine.

pub(crate) mod alone;
pub(crate) mod aside;
pub(crate) mod byte_parts;
pub(crate) mod counters;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod listener;
pub(crate) mod moment;
pub(crate) mod pulse;
pub(crate) mod row_id;
pub(crate) mod scope;
pub mod spill;
pub(crate) mod start;
pub(crate) mod sync;
pub(crate) mod txn_id;
pub(crate) mod wait;
