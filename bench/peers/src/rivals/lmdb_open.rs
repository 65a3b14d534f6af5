//! Opening LMDB, which its binding calls unsafe: a file that is mapped into memory
//! must not be changed by anyone else, nor opened twice by one process.
//!
//! Invariant: the directory is this program's own, each run is a process of its
//! own, and a process opens it once at a time.
#![allow(unsafe_code)]

use std::path::Path;

use heed::{Env, EnvFlags, EnvOpenOptions, WithTls};
use thermocline_bench::Result;

/// The map's size; addresses only, the file grows as it is used.
const MAP_BYTES: usize = 256 << 30;
/// Readers beside the clients' threads: a check of the rows, the loader.
const MORE_READERS: usize = 16;

/// Opens the environment in a directory that belongs to this program alone.
pub fn open(directory: &Path, threads: usize, synchronous: bool) -> Result<Env<WithTls>> {
    let mut options = EnvOpenOptions::new();
    options
        .map_size(MAP_BYTES)
        .max_readers((threads + MORE_READERS) as u32);
    let mut flags = EnvFlags::NO_READ_AHEAD;
    if !synchronous {
        flags |= EnvFlags::NO_SYNC;
    }
    // SAFETY: of the flags, NO_SYNC gives up what a crash of the machine may
    // lose, and nothing that this process relies on.
    unsafe { options.flags(flags) };
    // SAFETY: see the head: nobody else changes the file, and this process has
    // no other environment on it.
    Ok(unsafe { options.open(directory) }?)
}
