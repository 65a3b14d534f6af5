//! What threads share. The handshakes that are tried in each interleaving take it from here, so
//! that a model check (`tests/models.rs`) can put its own in its place.

pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::thread::yield_now;

pub(crate) use parking_lot::Mutex;
