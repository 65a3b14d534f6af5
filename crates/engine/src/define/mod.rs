//! Definitions change: DDL of a transaction, and what it makes of rows that are there.

mod access;
pub(crate) mod definition;
mod entries;
mod filling;
pub(crate) mod index_build;
mod locking_objects;
mod policies;
pub(crate) mod rewrite;
pub mod tablespaces;
