//! A file of a file system as memory: what lies there is looked at in place. Meant for file systems
//! on memory; on a disk each look may wait for it.
//!
//! Guarantees: what is looked at lies before the file's end, also while the file is cut.
//! Assumes that only this handle cuts the file, and that nobody writes to a range that is looked
//! at. Where the file is written directly the kernel drops the pages that it had of it.
//! Survives nothing: where the device cannot read a page the kernel kills the process.
//!
//! Pages that were looked at are resident in this process, but are the device's: they are no
//! part of what the process is said to hold ([`mapped_bytes`]).

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::RwLock;

use crate::sys::MappedFile;

/// The kernel maps so many bytes around one that is looked at.
const AROUND_BYTES: usize = 64 << 10;
/// The least that is mapped: addresses cost nothing, and the file may grow.
const MAPPED_MIN: usize = 1 << 30;

/// Bytes of files that were looked at and are mapped.
static MAPPED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Bytes of this process's resident memory that are mapped files': about, and never too few.
pub(crate) fn mapped_bytes() -> u64 {
    MAPPED_BYTES.load(Relaxed)
}

/// A file's mapping, which is made when somebody looks.
#[derive(Default)]
pub(crate) struct Mapping(RwLock<Option<Mapped>>);

struct Mapped {
    memory: MappedFile,
    /// Bytes before the file's end.
    len: usize,
    touched: Touched,
}

/// Which pieces of a mapping were looked at, a bit each.
struct Touched {
    bits: Vec<AtomicU64>,
}

impl Mapping {
    /// Has `see` look at a range; whether it lies before the file's end.
    pub fn look(
        &self,
        file: &File,
        (offset, bytes): (u64, usize),
        see: &mut dyn FnMut(&[u8]) -> usize,
    ) -> io::Result<bool> {
        let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let offset = usize::try_from(offset).map_err(too_large)?;
        if let Some(mapped) = &*self.0.read()
            && mapped.look(offset, bytes, see)
        {
            return Ok(true);
        }
        let mut mapping = self.0.write();
        let len = usize::try_from(file.metadata()?.len()).map_err(too_large)?;
        let mapped = match mapping.take() {
            Some(mapped) if len <= mapped.memory.len() => Mapped { len, ..mapped },
            _ => Mapped::of(file, len)?,
        };
        Ok(mapping.insert(mapped).look(offset, bytes, see))
    }

    /// Cuts the file to `len` bytes, while nobody looks.
    pub fn cut(&self, len: u64, cut: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut mapping = self.0.write();
        if let Some(mapped) = &mut *mapping {
            mapped.len = mapped.len.min(usize::try_from(len).unwrap_or(usize::MAX));
        }
        cut()
    }
}

impl Mapped {
    fn of(file: &File, len: usize) -> io::Result<Mapped> {
        let mapped = len.saturating_mul(2).max(MAPPED_MIN);
        let pieces = mapped.div_ceil(AROUND_BYTES);
        let mut bits = Vec::new();
        bits.resize_with(pieces.div_ceil(64), || AtomicU64::new(0));
        Ok(Mapped {
            memory: MappedFile::of(file, mapped)?,
            len,
            touched: Touched { bits },
        })
    }

    /// False: the range does not lie before what is known of the file's end.
    fn look(&self, offset: usize, bytes: usize, see: &mut dyn FnMut(&[u8]) -> usize) -> bool {
        let is_there = offset.checked_add(bytes).is_some_and(|end| end <= self.len);
        let range = self.memory.bytes(offset, bytes).filter(|_| is_there);
        range.is_some_and(|there| {
            let seen = see(there);
            self.touched.note(offset, seen);
            true
        })
    }
}

impl Touched {
    fn note(&self, offset: usize, bytes: usize) {
        if bytes == 0 {
            return;
        }
        for piece in offset / AROUND_BYTES..=(offset + bytes - 1) / AROUND_BYTES {
            let bit = 1 << (piece % 64);
            let Some(word) = self.bits.get(piece / 64) else {
                return;
            };
            if word.load(Relaxed) & bit == 0 && word.fetch_or(bit, Relaxed) & bit == 0 {
                MAPPED_BYTES.fetch_add(AROUND_BYTES as u64, Relaxed);
            }
        }
    }
}

impl Drop for Touched {
    fn drop(&mut self) {
        let words = self.bits.iter().map(|word| word.load(Relaxed).count_ones());
        let pieces: u64 = words.map(u64::from).sum();
        MAPPED_BYTES.fetch_sub(pieces * AROUND_BYTES as u64, Relaxed);
    }
}
