//! The seam for devices: real, emulated, faulty and simulated ones look the same from here.
//!
//! Guarantees that every implementation gives: data is durable once `sync_data` returned;
//! a name (made, renamed or removed) once `sync_directory` returned; a rename is atomic.
//! A sync that failed promises nothing about the writes before it, not even when it is
//! repeated: whoever sees one fail stops.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::{AlignedBuffer, DeviceCounters, DeviceProfile};

/// What `open` does about a file that is or is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must be there (`NotFound` otherwise).
    Existing,
    /// Open it, or make it, empty.
    Create,
    /// The file must not be there (`AlreadyExists` otherwise).
    CreateNew,
}

/// A directory on a device. Names are plain file names: no `/`, no leading dot.
pub trait Device: Send + Sync + 'static {
    /// Opens a file for reading and writing.
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DeviceFile>>;
    /// A new empty file without a name, for data that nobody needs after this process: its
    /// space is free when the last handle goes, and at the latest after a crash.
    fn temporary(&self) -> io::Result<Arc<dyn DeviceFile>>;
    /// Removes what a process that was killed has left of its temporary files.
    fn remove_temporary(&self) -> io::Result<()>;
    /// The names of the files, sorted; not those that this crate keeps for itself.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Renames a file, atomically replacing one that has the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file; files already open stay readable.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes all names made, renamed or removed so far durable.
    fn sync_directory(&self) -> io::Result<()>;
    /// Bytes that can still be written.
    fn free_bytes(&self) -> io::Result<u64>;
    /// What was done so far, by all files of this device.
    fn counters(&self) -> &DeviceCounters;
    /// What the device is like, as measured or as told.
    fn profile(&self) -> DeviceProfile;
    /// The directory, resolved, if it is one of this machine's file systems.
    fn path(&self) -> Option<&Path> {
        None
    }
    /// Whether reads may come from the page cache, and tell nothing of the device below.
    fn is_cached(&self) -> bool {
        false
    }
    /// For people, e.g. `/data (ext4), io_uring, direct`.
    fn describe(&self) -> String;
}

/// An open file of a [`Device`]. All methods may be called from many threads at once;
/// reads and writes of overlapping ranges at the same time are the caller's mistake.
///
/// Direct and buffered access to one range is coherent but costly: use a file in one
/// way. Buffered writes stay in the page cache until the kernel drops them, so large
/// data is better written from aligned buffers.
#[allow(clippy::len_without_is_empty)]
pub trait DeviceFile: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Cuts or extends the file; an extension reads as zeros, and its space is reserved
    /// where the file system can do that (`StorageFull` otherwise comes later).
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Fills the buffer, or fails: `UnexpectedEof` when the range passes the file's end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all the bytes, or fails. Direct when address, length and offset are whole sectors.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes durable all that was written to this file before, and its length.
    fn sync_data(&self) -> io::Result<()>;
    /// Gives the space of a range back; it reads as zeros, the length stays. The range may
    /// keep its space and contents where the file system cannot do this.
    fn punch_hole(&self, offset: u64, bytes: u64) -> io::Result<()>;
    /// Has `see` look at a range where it lies: no request, and no copy where that can be helped.
    /// `see` gets the whole range and says how many of its bytes, from the first, it has looked
    /// at. It must be short, and must not use the file.
    ///
    /// What is seen may be damaged: whoever looks has to check it.
    ///
    /// # Errors
    /// `Unsupported` where the device is not memory that a processor can address, and then
    /// `see` is not called; `UnexpectedEof` when the range passes the file's end.
    fn look(
        &self,
        _offset: u64,
        _bytes: usize,
        _see: &mut dyn FnMut(&[u8]) -> usize,
    ) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Starts reads, all together, and returns without waiting for them. Any number may be
    /// given: those that the device cannot take yet wait their turn.
    ///
    /// When the file's end lies inside a request's range the missing tail is zeros; when
    /// the range lies wholly past it, the result is `UnexpectedEof`.
    fn submit_reads(&self, requests: Vec<ReadRequest>);
}

/// What is done with the outcome of a read.
///
/// It must be short and must not wait. It usually runs on a thread of the device. But a
/// request that is refused at once, and every request to a simulated device, completes on
/// the thread that submitted it: hold no lock there that the completion takes.
pub type ReadCompletion = Box<dyn FnOnce(io::Result<AlignedBuffer>) + Send>;

/// One asynchronous read.
pub struct ReadRequest {
    /// Where to read, in bytes; a multiple of a sector (`InvalidInput` otherwise).
    pub offset: u64,
    /// What to fill; its length is the length of the read.
    pub buffer: AlignedBuffer,
    /// Called once, with the filled buffer or the error.
    pub completion: ReadCompletion,
}

/// Refuses names that could leave the device's directory or hide in it.
pub(crate) fn check_name(name: &str) -> io::Result<()> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("not a file name on a device: {name:?}"),
        ));
    }
    Ok(())
}

/// The error of a read that passes the file's end.
pub(crate) fn past_the_end(name: &str, offset: u64, bytes: usize) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("{name}: {bytes} bytes at {offset} are past the end of the file"),
    )
}

/// The error of an asynchronous read that does not begin at a sector.
pub(crate) fn not_at_a_sector(name: &str, offset: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{name}: an asynchronous read at {offset} does not begin at a sector"),
    )
}
