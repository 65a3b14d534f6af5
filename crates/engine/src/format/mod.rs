//! What is written, byte by byte: log records, calls in the log, the manifest, image files. Who
//! writes them and when is decided above.
//!
//! Imports `catalog`, `ground`.

pub(crate) mod command;
#[cfg(test)]
mod damaged_tests;
pub(crate) mod definitions;
pub(crate) mod image;
pub(crate) mod manifest;
pub(crate) mod places;
pub(crate) mod record;
