//! Tuples and the values in them, the row heap and its indexes, blocks and the
//! log: what a partition keeps in memory and on its devices.
//!
//! Each module is used under its partition's lock unless it says otherwise.

pub mod arena;
pub mod arithmetic;
pub mod binary_format;
pub mod block;
pub mod block_store;
pub mod btree;
pub mod cast;
pub mod chains;
pub mod changed_pages;
mod chunk;
pub mod columns;
pub mod compare;
pub mod count_min;
#[cfg(test)]
mod damaged_tests;
pub mod datetime;
pub mod hash_index;
pub mod heap;
pub mod index_snapshot;
pub mod key;
pub mod key_hash;
pub mod log;
pub mod numeric;
pub mod other_type;
pub mod row_directory;
#[cfg(test)]
mod sample_values;
pub mod temperature;
pub mod text_format;
pub mod tuple;
pub mod types;
pub mod value;
pub mod value_error;
mod wide;
