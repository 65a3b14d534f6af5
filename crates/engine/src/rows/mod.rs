//! Rows: a partition's tables behind one lock, whatever kind they are of ([`kind`]). What a row goes
//! through ([`row_state`]), how one is read that has left ([`fetch`], [`row_group`],
//! [`group_scan`]), and what it was before ([`versions`]).
//!
//! Knows no transactions, no log and no other partition.

pub(crate) mod arrivals;
mod column_cache;
pub(crate) mod column_use;
mod device_reads;
pub(crate) mod fetch;
pub(crate) mod group_scan;
pub(crate) mod index;
pub(crate) mod kind;
pub(crate) mod partition;
pub(crate) mod planned_read;
pub(crate) mod row_group;
mod row_pages;
pub(crate) mod row_state;
pub(crate) mod versions;
