//! The real device: a directory of a file system, read and written directly (O_DIRECT)
//! where the file system allows it, through the page cache where not; `describe` says which.
//!
//! Guarantees: reads and writes are whole or fail; each failure is counted and returned.
//! Assumes Linux, a local file system whose fdatasync and directory fsync mean what they
//! say, and that nobody else changes the files (see `lock.rs`).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::buffer::is_aligned;
use crate::device::{check_name, not_at_a_sector, past_the_end};
use crate::directory::{FILE_MODE, make_directory};
use crate::drive;
use crate::mapping::Mapping;
use crate::reads::ReadJob;
use crate::threads::ThreadReader;
use crate::uring::UringReader;
use crate::{
    AlignedBuffer, Device, DeviceCounters, DeviceFile, DeviceKind, DeviceProfile, LOCK_FILE_NAME,
    OpenMode, ReadRequest, SECTOR_BYTES, sys,
};

/// Made and removed at start to see whether the file system takes direct I/O.
const DIRECT_PROBE_NAME: &str = ".direct-probe";
/// The folder of temporary files, which lose their names as soon as they are open.
const TEMPORARY_FOLDER: &str = ".temporary";

/// How asynchronous reads are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoEngine {
    /// io_uring if the kernel lets us, threads otherwise.
    Auto,
    /// io_uring; opening the device fails where it is forbidden.
    IoUring,
    /// A pool of threads.
    Threads,
}

enum Reader {
    Uring(UringReader),
    Threads(ThreadReader),
}

/// A directory on a file system.
pub struct FileDevice {
    path: PathBuf,
    writable: bool,
    reader: Arc<Reader>,
    counters: Arc<DeviceCounters>,
    direct: bool,
    /// Reads may come from the page cache, of a file system that lies elsewhere.
    cached: bool,
    description: String,
    profile: Mutex<DeviceProfile>,
    /// Numbers temporary files.
    temporaries: AtomicU64,
}

impl FileDevice {
    /// Opens a directory as a device, making it if it is absent.
    pub fn open(path: impl AsRef<Path>, engine: IoEngine) -> io::Result<FileDevice> {
        make_directory(path.as_ref())?;
        FileDevice::of(path.as_ref(), engine, takes_direct)
    }

    /// Opens a directory that is there, for reading: nothing in it is changed, not even to see
    /// what it can do.
    pub fn for_reading(path: impl AsRef<Path>) -> io::Result<FileDevice> {
        let device = FileDevice::of(path.as_ref(), IoEngine::Threads, reads_direct)?;
        Ok(FileDevice {
            writable: false,
            ..device
        })
    }

    fn of(
        path: &Path,
        engine: IoEngine,
        direct: fn(&Path) -> io::Result<bool>,
    ) -> io::Result<FileDevice> {
        let path = path.canonicalize()?;
        let (reader, why_threads) = match engine {
            IoEngine::Threads => (Reader::Threads(ThreadReader::new()), None),
            IoEngine::IoUring => (Reader::Uring(UringReader::new()?), None),
            IoEngine::Auto => match UringReader::new() {
                Ok(reader) => (Reader::Uring(reader), None),
                Err(error) => (Reader::Threads(ThreadReader::new()), Some(error)),
            },
        };
        let file_system = sys::file_system(&path)?;
        // A file system in memory accepts the flag without giving it a meaning.
        let direct = !file_system.in_memory && direct(&path)?;
        let description = format!(
            "{} ({}), {}{}, {}",
            path.display(),
            file_system.name,
            match reader {
                Reader::Uring(_) => "io_uring",
                Reader::Threads(_) => "threads",
            },
            why_threads.map_or(String::new(), |error| format!(" (no io_uring: {error})")),
            if direct { "direct" } else { "buffered" },
        );
        Ok(FileDevice {
            path,
            writable: true,
            reader: Arc::new(reader),
            counters: Arc::default(),
            direct,
            cached: !direct && !file_system.in_memory,
            description,
            profile: Mutex::new(DeviceProfile::typical(DeviceKind::Generic)),
            temporaries: AtomicU64::new(0),
        })
    }

    /// Whether aligned reads and writes bypass the page cache.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Which engine does the asynchronous reads; never `Auto`.
    #[must_use]
    pub fn engine(&self) -> IoEngine {
        match *self.reader {
            Reader::Uring(_) => IoEngine::IoUring,
            Reader::Threads(_) => IoEngine::Threads,
        }
    }

    /// Replaces the profile (a typical generic one at first) by what was measured or told.
    pub fn set_profile(&self, profile: DeviceProfile) {
        *self.profile.lock() = profile;
    }

    fn open_path(
        &self,
        path: &Path,
        name: &str,
        mode: OpenMode,
    ) -> io::Result<Arc<dyn DeviceFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(self.writable).mode(FILE_MODE);
        match mode {
            OpenMode::Existing => &mut options,
            OpenMode::Create => options.create(true),
            OpenMode::CreateNew => options.create_new(true),
        };
        let buffered = options.open(path)?;
        let direct = match self.direct {
            false => None,
            true => Some(
                OpenOptions::new()
                    .read(true)
                    .write(self.writable)
                    .custom_flags(sys::O_DIRECT)
                    .open(path)?,
            ),
        };
        Ok(Arc::new(FileOnDevice {
            file: Arc::new(OpenFile {
                name: name.to_owned(),
                buffered,
                direct,
                mapping: Mapping::default(),
            }),
            reader: Arc::clone(&self.reader),
            counters: Arc::clone(&self.counters),
        }))
    }

    fn path_of(&self, name: &str) -> io::Result<PathBuf> {
        check_name(name)?;
        Ok(self.path.join(name))
    }
}

/// Whether a sector can be written and read directly in this directory.
fn takes_direct(directory: &Path) -> io::Result<bool> {
    let path = directory.join(DIRECT_PROBE_NAME);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    let tried = options
        .mode(FILE_MODE)
        .custom_flags(sys::O_DIRECT)
        .open(&path)
        .and_then(|file| {
            let mut buffer = AlignedBuffer::new_zeroed(SECTOR_BYTES);
            file.write_all_at(&buffer, 0)?;
            file.read_exact_at(&mut buffer, 0)
        });
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match tried {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(false),
        // A full disk is no reason not to start: the files that are there tell as well.
        Err(error) if error.kind() == io::ErrorKind::StorageFull => reads_direct(directory),
        Err(error) => Err(error),
    }
}

/// Whether a sector of some file of this directory can be read directly.
fn reads_direct(directory: &Path) -> io::Result<bool> {
    let mut sector = AlignedBuffer::new_zeroed(SECTOR_BYTES);
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if !metadata.is_file() || metadata.len() < SECTOR_BYTES as u64 {
            continue;
        }
        let mut options = OpenOptions::new();
        let opened = options
            .read(true)
            .custom_flags(sys::O_DIRECT)
            .open(entry.path());
        return match opened.and_then(|file| file.read_exact_at(&mut sector, 0)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(false),
            Err(error) => Err(error),
        };
    }
    Ok(false)
}

impl Device for FileDevice {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DeviceFile>> {
        self.open_path(&self.path_of(name)?, name, mode)
    }

    fn temporary(&self) -> io::Result<Arc<dyn DeviceFile>> {
        let folder = self.path.join(TEMPORARY_FOLDER);
        let number = self.temporaries.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(number.to_string());
        let open = || self.open_path(&path, TEMPORARY_FOLDER, OpenMode::CreateNew);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_directory(&folder)?;
                open()?
            }
            other => other?,
        };
        fs::remove_file(&path)?;
        Ok(file)
    }

    fn remove_temporary(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.path.join(TEMPORARY_FOLDER)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            // Names that are not UTF-8 cannot be ours.
            if let Ok(name) = entry.file_name().into_string()
                && name != LOCK_FILE_NAME
                && check_name(&name).is_ok()
                && entry.file_type()?.is_file()
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path_of(from)?, self.path_of(to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path_of(name)?)
    }

    fn sync_directory(&self) -> io::Result<()> {
        timed_sync(&self.counters, || File::open(&self.path)?.sync_all())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(sys::file_system(&self.path)?.free_bytes)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    fn profile(&self) -> DeviceProfile {
        self.profile.lock().clone()
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn is_cached(&self) -> bool {
        self.cached
    }

    fn describe(&self) -> String {
        self.description.clone()
    }
}

fn timed_sync(counters: &DeviceCounters, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let started = Instant::now();
    let ticket = counters.begin();
    let result = sync();
    counters.end(ticket);
    match result {
        Ok(()) => counters.synced(started.elapsed()),
        Err(_) => counters.error(),
    }
    result
}

/// The descriptors of an open file. Asynchronous reads hold on to them until they are over.
pub(crate) struct OpenFile {
    name: String,
    buffered: File,
    direct: Option<File>,
    mapping: Mapping,
}

impl OpenFile {
    #[cfg(test)]
    pub(crate) fn buffered(name: &str, file: File) -> OpenFile {
        OpenFile {
            name: name.to_owned(),
            buffered: file,
            direct: None,
            mapping: Mapping::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(self.buffered.metadata()?.len())
    }

    /// The descriptor for whole sectors.
    pub(crate) fn for_aligned(&self) -> &File {
        self.direct.as_ref().unwrap_or(&self.buffered)
    }

    fn for_bytes(&self, bytes: &[u8], offset: u64) -> &File {
        if is_aligned(bytes, offset) {
            self.for_aligned()
        } else {
            &self.buffered
        }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            let position = offset + filled as u64;
            let missing = &mut buffer[filled..];
            match self.for_bytes(missing, position).read_at(missing, position) {
                Ok(0) => return Err(past_the_end(&self.name, offset, buffer.len())),
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            let position = offset + written as u64;
            let rest = &bytes[written..];
            match self.for_bytes(rest, position).write_at(rest, position) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let len = self.len()?;
        if bytes <= len {
            return self.mapping.cut(bytes, || self.buffered.set_len(bytes));
        }
        match sys::allocate(&self.buffered, len, bytes - len) {
            Ok(true) => Ok(()),
            Ok(false) => self.buffered.set_len(bytes),
            Err(error) => {
                // A device that filled up half-way may have left a part; the caller needs
                // to hear of the first error, whatever becomes of the tidying.
                let _ = self.buffered.set_len(len);
                Err(error)
            }
        }
    }
}

struct FileOnDevice {
    file: Arc<OpenFile>,
    reader: Arc<Reader>,
    counters: Arc<DeviceCounters>,
}

impl FileOnDevice {
    fn counted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.is_err() {
            self.counters.error();
        }
        result
    }
}

impl DeviceFile for FileOnDevice {
    fn len(&self) -> io::Result<u64> {
        self.counted(self.file.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.counted(self.file.set_len(bytes))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.counters.read_started();
        let started = Instant::now();
        let ticket = self.counters.begin();
        let result = self.file.read_at(buffer, offset);
        self.counters.end(ticket);
        let bytes = result.is_ok().then_some(buffer.len());
        self.counters.read_finished(bytes, started.elapsed());
        result
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let ticket = self.counters.begin();
        let result = self.file.write_at(bytes, offset);
        self.counters.end(ticket);
        if result.is_ok() {
            self.counters.wrote(bytes.len());
        }
        self.counted(result)
    }

    fn sync_data(&self) -> io::Result<()> {
        // One descriptor is enough: both are of one file.
        timed_sync(&self.counters, || self.file.buffered.sync_data())
    }

    fn punch_hole(&self, offset: u64, bytes: u64) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.counted(sys::punch_hole(&self.file.buffered, offset, bytes).map(|_| ()))
    }

    fn look(
        &self,
        offset: u64,
        bytes: usize,
        see: &mut dyn FnMut(&[u8]) -> usize,
    ) -> io::Result<()> {
        let file = &self.file;
        let looked = file.mapping.look(&file.buffered, (offset, bytes), see);
        match self.counted(looked)? {
            true => Ok(()),
            false => Err(past_the_end(&file.name, offset, bytes)),
        }
    }

    fn submit_reads(&self, requests: Vec<ReadRequest>) {
        let mut jobs = Vec::with_capacity(requests.len());
        for request in requests {
            let offset = request.offset;
            let job = ReadJob::new(Arc::clone(&self.file), Arc::clone(&self.counters), request);
            if offset.is_multiple_of(SECTOR_BYTES as u64) {
                jobs.push(job);
            } else {
                job.complete(Err(not_at_a_sector(self.file.name(), offset)));
            }
        }
        match &*self.reader {
            Reader::Uring(reader) => {
                if let Err(jobs) = drive::take(jobs) {
                    reader.submit(jobs);
                }
            }
            Reader::Threads(reader) => reader.submit(jobs),
        }
    }
}

#[cfg(test)]
mod tests;
