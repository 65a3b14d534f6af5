//! Tuples, keys, the row heap and its indexes, blocks and the log: what a partition keeps in
//! memory and on its devices. The values themselves are in the crate `values`.
//!
//! Each module is used under its partition's lock unless it says otherwise.

pub mod arena;
pub mod block;
pub mod block_store;
pub mod btree;
pub mod chains;
pub mod changed_pages;
mod chunk;
pub mod columns;
pub mod count_min;
#[cfg(test)]
mod damaged_tests;
pub mod hash_index;
pub mod heap;
pub mod index_snapshot;
pub mod key;
pub mod key_hash;
pub mod log;
pub mod row_directory;
pub mod temperature;
pub mod tuple;
