//! Files in this process's memory: what is emulated as DRAM or NVRAM lies here. It stands for a device,
//! and is no part of what the process is said to hold ([`device_bytes`]).
//!
//! Guarantees: reads and writes as the seam says; nothing outlives the process, so a sync has
//! nothing to do. Survives: nothing. For crashes and faults there is the simulated device.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};

use crate::device::{check_name, not_at_a_sector, past_the_end};
use crate::{
    Device, DeviceCounters, DeviceFile, DeviceKind, DeviceProfile, OpenMode, ReadRequest,
    SECTOR_BYTES, memory_bytes,
};

const CHUNK_BYTES: usize = 1 << 20;

/// Bytes of all devices in memory.
static DEVICE_BYTES: AtomicU64 = AtomicU64::new(0);

/// Bytes of this process's memory that stand for devices.
#[must_use]
pub fn device_bytes() -> u64 {
    DEVICE_BYTES.load(Relaxed)
}

/// A chunk of a file.
struct Chunk(Box<[u8]>);

impl Chunk {
    fn new() -> Self {
        DEVICE_BYTES.fetch_add(CHUNK_BYTES as u64, Relaxed);
        Chunk(vec![0; CHUNK_BYTES].into())
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        DEVICE_BYTES.fetch_sub(CHUNK_BYTES as u64, Relaxed);
    }
}

/// A device in memory. Empty when it is made, and gone with the last handle.
#[derive(Default)]
pub struct MemoryDevice {
    files: Mutex<BTreeMap<String, Arc<MemoryFile>>>,
    counters: Arc<DeviceCounters>,
}

struct MemoryFile {
    name: String,
    contents: RwLock<Contents>,
    counters: Arc<DeviceCounters>,
}

/// Bytes in chunks, which never move; those never written to have no memory.
#[derive(Default)]
struct Contents {
    len: u64,
    chunks: Vec<Option<Chunk>>,
}

impl MemoryDevice {
    /// A device without files.
    #[must_use]
    pub fn new() -> MemoryDevice {
        MemoryDevice::default()
    }

    fn new_file(&self, name: &str) -> Arc<MemoryFile> {
        Arc::new(MemoryFile {
            name: name.to_owned(),
            contents: RwLock::default(),
            counters: Arc::clone(&self.counters),
        })
    }
}

impl Device for MemoryDevice {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DeviceFile>> {
        check_name(name)?;
        let mut files = self.files.lock();
        match (files.get(name), mode) {
            (Some(_), OpenMode::CreateNew) => Err(io::ErrorKind::AlreadyExists.into()),
            (Some(file), _) => Ok(Arc::clone(file) as Arc<dyn DeviceFile>),
            (None, OpenMode::Existing) => Err(io::ErrorKind::NotFound.into()),
            (None, _) => {
                let file = self.new_file(name);
                files.insert(name.to_owned(), Arc::clone(&file));
                Ok(file)
            }
        }
    }

    fn temporary(&self) -> io::Result<Arc<dyn DeviceFile>> {
        Ok(self.new_file("temporary"))
    }

    fn remove_temporary(&self) -> io::Result<()> {
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.lock().keys().cloned().collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(to)?;
        let mut files = self.files.lock();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let removed = self.files.lock().remove(name);
        removed.map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let files = self.files.lock();
        let taken: usize = files
            .values()
            .map(|file| file.contents.read().bytes())
            .sum();
        Ok(memory_bytes().map_or(u64::MAX, |all| (all / 2).saturating_sub(taken as u64)))
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    fn profile(&self) -> DeviceProfile {
        DeviceProfile::typical(DeviceKind::Dram)
    }

    fn describe(&self) -> String {
        "memory of this process".to_owned()
    }
}

impl Contents {
    fn bytes(&self) -> usize {
        self.chunks.iter().flatten().count() * CHUNK_BYTES
    }

    fn set_len(&mut self, bytes: u64) {
        if bytes < self.len {
            self.clear(bytes, self.len - bytes);
            self.chunks
                .truncate(bytes.div_ceil(CHUNK_BYTES as u64) as usize);
        }
        self.len = bytes;
    }

    fn clear(&mut self, offset: u64, bytes: u64) {
        let end = self.len.min(offset.saturating_add(bytes));
        for (index, within, piece) in pieces(offset, end.saturating_sub(offset) as usize) {
            match self.chunks.get_mut(index) {
                Some(chunk) if piece.len() == CHUNK_BYTES => *chunk = None,
                Some(Some(chunk)) => chunk.0[within..within + piece.len()].fill(0),
                _ => {}
            }
        }
    }

    fn read(&self, buffer: &mut [u8], offset: u64) {
        for (index, within, piece) in pieces(offset, buffer.len()) {
            let to = &mut buffer[piece];
            match self.chunks.get(index) {
                Some(Some(chunk)) => to.copy_from_slice(&chunk.0[within..within + to.len()]),
                _ => to.fill(0),
            }
        }
    }

    /// A range where it lies; None: in several chunks, or in one without memory.
    fn in_one_chunk(&self, offset: u64, bytes: usize) -> Option<&[u8]> {
        let within = (offset % CHUNK_BYTES as u64) as usize;
        let chunk = self.chunks.get((offset / CHUNK_BYTES as u64) as usize)?;
        chunk.as_ref()?.0.get(within..within + bytes)
    }

    fn write(&mut self, bytes: &[u8], offset: u64) {
        for (index, within, piece) in pieces(offset, bytes.len()) {
            if self.chunks.len() <= index {
                self.chunks.resize_with(index + 1, || None);
            }
            let chunk = self.chunks[index].get_or_insert_with(Chunk::new);
            chunk.0[within..within + piece.len()].copy_from_slice(&bytes[piece]);
        }
        self.len = self.len.max(offset + bytes.len() as u64);
    }
}

/// A range by chunks: which, where in it, and which part of the range.
fn pieces(
    offset: u64,
    bytes: usize,
) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % CHUNK_BYTES as u64) as usize;
        let piece = (CHUNK_BYTES - within).min(bytes - done);
        let range = done..done + piece;
        done += piece;
        (piece > 0).then_some(((at / CHUNK_BYTES as u64) as usize, within, range))
    })
}

impl DeviceFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.contents.read().len)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.contents.write().set_len(bytes);
        Ok(())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let contents = self.contents.read();
        if offset + buffer.len() as u64 > contents.len {
            return Err(past_the_end(&self.name, offset, buffer.len()));
        }
        contents.read(buffer, offset);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.contents.write().write(bytes, offset);
        self.counters.wrote(bytes.len());
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn punch_hole(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.contents.write().clear(offset, bytes);
        Ok(())
    }

    fn look(
        &self,
        offset: u64,
        bytes: usize,
        see: &mut dyn FnMut(&[u8]) -> usize,
    ) -> io::Result<()> {
        let contents = self.contents.read();
        let end = offset.checked_add(bytes as u64);
        if end.is_none_or(|end| end > contents.len) {
            return Err(past_the_end(&self.name, offset, bytes));
        }
        match contents.in_one_chunk(offset, bytes) {
            Some(there) => see(there),
            None => {
                let mut copied = vec![0; bytes];
                contents.read(&mut copied, offset);
                see(&copied)
            }
        };
        Ok(())
    }

    fn submit_reads(&self, requests: Vec<ReadRequest>) {
        for request in requests {
            let (offset, mut buffer) = (request.offset, request.buffer);
            self.counters.read_started();
            let began = Instant::now();
            let result = if !offset.is_multiple_of(SECTOR_BYTES as u64) {
                Err(not_at_a_sector(&self.name, offset))
            } else {
                let contents = self.contents.read();
                if offset >= contents.len && !buffer.is_empty() {
                    Err(past_the_end(&self.name, offset, buffer.len()))
                } else {
                    contents.read(&mut buffer, offset);
                    Ok(buffer)
                }
            };
            let bytes = result.as_ref().ok().map(|buffer| buffer.len());
            self.counters.read_finished(bytes, began.elapsed());
            (request.completion)(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_what_was_cut_is_zero() {
        let device = MemoryDevice::new();
        let file = device.open("file", OpenMode::CreateNew).unwrap();
        let at = CHUNK_BYTES as u64 - 3;
        file.write_at(b"across", at).unwrap();
        let mut read = [0; 6];
        file.read_at(&mut read, at).unwrap();
        assert_eq!(&read, b"across");
        assert_eq!(file.len().unwrap(), at + 6);
        let error = file.read_at(&mut read, at + 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        file.set_len(at + 1).unwrap();
        file.set_len(at + 6).unwrap();
        file.read_at(&mut read, at).unwrap();
        assert_eq!(&read, b"a\0\0\0\0\0");
        file.punch_hole(0, at + 1).unwrap();
        file.read_at(&mut read, at).unwrap();
        assert_eq!(read, [0; 6]);
    }

    #[test]
    fn bytes_are_seen_where_they_lie_and_across_chunks() {
        let device = MemoryDevice::new();
        let file = device.open("file", OpenMode::CreateNew).unwrap();
        let at = CHUNK_BYTES as u64 - 3;
        file.write_at(b"across", at).unwrap();
        let look = |offset, bytes| {
            let mut seen = Vec::new();
            let looked = file.look(offset, bytes, &mut |there| {
                seen = there.to_vec();
                there.len()
            });
            looked.map(|()| seen)
        };
        assert_eq!(look(at, 6).unwrap(), b"across");
        assert_eq!(look(at, 3).unwrap(), b"acr");
        let error = look(at + 1, 6).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(look(u64::MAX, 6).is_err());
    }

    #[test]
    fn names_are_made_renamed_and_removed() {
        let device = MemoryDevice::new();
        device.open("one", OpenMode::Create).unwrap();
        assert!(device.open("one", OpenMode::CreateNew).is_err());
        assert!(device.open("two", OpenMode::Existing).is_err());
        device.rename("one", "two").unwrap();
        assert_eq!(device.list().unwrap(), ["two"]);
        device.remove("two").unwrap();
        assert!(device.remove("two").is_err());
        assert!(device.free_bytes().unwrap() > 0);
    }
}
