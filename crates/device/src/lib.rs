//! Floor 0: devices. The only crate of the product that touches files.
//!
//! | file | holds |
//! |---|---|
//! | `device.rs` | the seam: [`Device`] (a directory), [`DeviceFile`], [`ReadRequest`] |
//! | `buffer.rs` | [`AlignedBuffer`], memory that direct I/O accepts |
//! | `file.rs` | [`FileDevice`], the real thing: O_DIRECT where the file system allows it |
//! | `reads.rs`, `uring.rs`, `threads.rs` | asynchronous reads, by io_uring or by a pool of threads |
//! | `mapping.rs` | a file as memory, to look at what lies there |
//! | `drive.rs` | [`block_on`]: a thread that waits does its own reads |
//! | `sys.rs` | the few system calls that the standard library lacks |
//! | `outside.rs` | a file that a client names, anywhere on this machine |
//! | `counters.rs`, `outstanding.rs`, `profile.rs` | what a device did and is doing, what it is like |
//! | `probe.rs`, `probe/` | [`probe()`]: how that is measured, and which sort of device it is |
//! | `emulated.rs`, `emulated/` | [`EmulatedDevice`]: a hard disk, flash or memory over the device that is there |
//! | `memory.rs` | [`MemoryDevice`], files in memory |
//! | `simulated.rs`, `simulated/` | [`SimulatedDevice`], which crashes, fails and fills up on request; [`SimulatedClock`]; [`read_damaged`] |
//! | `mutation.rs` | mistakes made on purpose, for the simulator to find |
//! | `panics.rs` | what a panic means for the process |
//! | `stop_points.rs` | places where the program kills itself on request; nothing unless compiled in |
//! | `directory.rs` | where a directory is, and what is in it, before anything is done with it |
//! | `kept_space.rs` | [`KeptSpace`]: what ordinary growth leaves free |
//! | `clock.rs`, `lock.rs`, `random.rs` | time, one process a directory, seeded chance |
//!
//! `unsafe` lives in `buffer.rs`, `uring.rs`, `drive.rs` and `sys.rs` only.

mod buffer;
mod clock;
mod counters;
mod device;
mod directory;
mod drive;
mod emulated;
mod file;
mod kept_space;
mod lock;
mod mapping;
mod memory;
mod mutation;
mod outside;
mod outstanding;
mod panics;
mod probe;
mod process;
mod profile;
mod random;
mod reads;
mod simulated;
mod stop_points;
mod sys;
mod threads;
mod uring;

pub use buffer::{AlignedBuffer, SECTOR_BYTES};
pub use clock::{Clock, SystemClock};
pub use counters::{
    CountersSnapshot, DeviceCounters, LATENCY_BUCKETS, LatencyHistogram, LatencySnapshot,
};
pub use device::{Device, DeviceFile, OpenMode, ReadCompletion, ReadRequest};
pub use directory::{
    Lies, directory_above_with, directory_entries, how_it_lies, make_directory, make_new_directory,
    make_private_directory, remove_device_directory, resolve_directory,
};
pub use drive::block_on;
pub use emulated::{Access, EmulatedDevice, EmulatedProfile, EmulationCounts, Mechanics, Shingles};
pub use file::{FileDevice, IoEngine};
pub use kept_space::KeptSpace;
pub use lock::{DirectoryLock, LOCK_FILE_NAME, lock_directory};
pub use memory::{MemoryDevice, device_bytes};
pub use mutation::Mutation;
pub use outside::OutsideFile;
pub use outstanding::{OutstandingSnapshot, Ticket};
pub use panics::{StopsOnPanic, go_on_after_panics, stop_after_panic};
pub use probe::{
    Cell, Class, KernelWord, Pattern, Probing, Report, Times, Tuples, glance, probe, probe_tuples,
};
pub use process::{
    Resident, ask_for_memory, give_way_to_other_threads, go_before_other_threads,
    huge_pages_only_when_asked, huge_pages_when_asked, memory_bytes, resident, resident_bytes,
    return_memory, return_memory_if_asked,
};
pub use profile::{DeviceKind, DeviceProfile};
pub use simulated::{Fault, FaultCounts, Operation, SimulatedClock, SimulatedDevice, read_damaged};
#[cfg(feature = "stop-points")]
pub use stop_points::check_stop_point;
pub use stop_points::{PanicPoint, StopPoint, panic_at, stop_amid, stop_at};
pub use sys::{forget_code, forget_pages, join_all_memory, map_zeroed};
