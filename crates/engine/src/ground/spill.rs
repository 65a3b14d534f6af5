//! Temporary data on the device: what a statement or a session would otherwise keep in memory.
//!
//! A [`SpillFile`] has no name (`Device::temporary`): its space is free when it is dropped, and
//! after a crash at the latest. Records are appended and read back, in order or from the
//! position that their appending gave, while more are appended. Memory is a buffer a file and
//! one a reader. Nothing here is synced: nobody needs it after this process.
//!
//! Guarantees: a record is read as it was written, or the error names the damage (each has a
//! checksum over its bytes and its position). All files together stay within `temp_file_limit`
//! (53400), and leave room on the device for the log and the blocks (53100). A file that failed
//! to be written refuses everything after that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use thermocline_device::{AlignedBuffer, Device, DeviceFile, KeptSpace, SECTOR_BYTES};

use crate::ground::error::{Error, Result};

/// Bytes that are written at a time, and that a file being written has in memory.
pub const SPILL_BUFFER_BYTES: usize = 64 << 10;
/// The largest record.
pub const SPILL_RECORD_BYTES_MAX: usize = 1 << 30;
/// What temporary files leave on the device for commits and evictions.
const LEFT_FREE_BYTES: u64 = 16 << 20;
/// Length and checksum.
const HEADER_BYTES: usize = 8;
const SECTOR: u64 = SECTOR_BYTES as u64;

/// Where temporary files are made, and what they take together.
pub struct Spill {
    device: Arc<dyn Device>,
    /// What the files leave free.
    kept: Arc<KeptSpace>,
    limit: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
    files_made: AtomicU64,
    bytes_written: AtomicU64,
    bytes_read: AtomicU64,
}

/// What temporary files take and took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpillReport {
    /// Files now.
    pub files: u64,
    /// Their bytes on the device.
    pub bytes: u64,
    /// Files that were made since the start.
    pub files_made: u64,
    /// Bytes written since the start.
    pub bytes_written: u64,
    /// Bytes read since the start.
    pub bytes_read: u64,
}

impl Spill {
    /// Temporary files on a device, of at most `limit` bytes (None: no limit). What an earlier
    /// process has left is removed.
    ///
    /// # Errors
    /// The device fails.
    pub fn new(
        device: Arc<dyn Device>,
        kept: Arc<KeptSpace>,
        limit: Option<u64>,
    ) -> Result<Arc<Self>> {
        device
            .remove_temporary()
            .map_err(|e| Error::io(e, "removing old temporary files"))?;
        Ok(Arc::new(Spill {
            device,
            kept,
            limit: AtomicU64::new(limit.unwrap_or(u64::MAX)),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            files_made: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
        }))
    }

    /// A new file.
    ///
    /// # Errors
    /// The device fails.
    pub fn create(self: &Arc<Self>) -> Result<SpillFile> {
        let file = self.device.temporary();
        let file = file.map_err(|e| Error::io(e, "making a temporary file"))?;
        self.files.fetch_add(1, Relaxed);
        self.files_made.fetch_add(1, Relaxed);
        Ok(SpillFile {
            spill: self.clone(),
            file,
            buffer: AlignedBuffer::new_zeroed(SPILL_BUFFER_BYTES),
            written: 0,
            end: 0,
            start: 0,
            charged: 0,
            records: 0,
            sealed: false,
            failed: None,
        })
    }

    /// `temp_file_limit`, in bytes; `u64::MAX` is none.
    pub fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    /// What temporary files take and took.
    pub fn report(&self) -> SpillReport {
        SpillReport {
            files: self.files.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            files_made: self.files_made.load(Relaxed),
            bytes_written: self.bytes_written.load(Relaxed),
            bytes_read: self.bytes_read.load(Relaxed),
        }
    }

    /// Counts bytes that a file is about to take.
    fn charge(&self, bytes: u64) -> Result<()> {
        let limit = self.limit();
        let within = |all: u64| all.checked_add(bytes).filter(|all| *all <= limit);
        if self.bytes.fetch_update(Relaxed, Relaxed, within).is_err() {
            return Err(Error::Refused {
                sqlstate: "53400",
                message: format!(
                    "temporary file size exceeds temp_file_limit ({}kB)",
                    limit >> 10
                ),
                hint: "Raise temp_file_limit, or ask for less at a time.",
            });
        }
        let free = self.device.free_bytes();
        let full = match free {
            Ok(free)
                if free >= bytes.saturating_add(LEFT_FREE_BYTES) && self.kept.leaves(bytes) =>
            {
                return Ok(());
            }
            Ok(_) => Error::DiskFull("temporary data must leave room for the log".into()),
            Err(error) => Error::io(error, "asking for the free space of the device"),
        };
        self.bytes.fetch_sub(bytes, Relaxed);
        Err(full)
    }
}

impl std::fmt::Debug for Spill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.report().fmt(f)
    }
}

/// A temporary file: records, one after the other.
pub struct SpillFile {
    spill: Arc<Spill>,
    file: Arc<dyn DeviceFile>,
    /// What comes after `written`; empty once it is sealed.
    buffer: AlignedBuffer,
    /// On the device up to here; whole buffers, until it is sealed.
    written: u64,
    /// Where the next record begins.
    end: u64,
    /// The space before this sector was given back.
    start: u64,
    /// Bytes counted for it.
    charged: u64,
    records: u64,
    sealed: bool,
    failed: Option<Error>,
}

impl SpillFile {
    /// Appends a record. Its position, for [`SpillReader::at`].
    ///
    /// # Errors
    /// 54000 for a record that is too large, 53400 beyond `temp_file_limit`, 53100 on a full
    /// device, the device's errors; nothing can be appended after any but the first.
    pub fn append(&mut self, record: &[u8]) -> Result<u64> {
        if record.len() > SPILL_RECORD_BYTES_MAX {
            return Err(Error::TooLarge(format!(
                "a temporary record of {} bytes is larger than {SPILL_RECORD_BYTES_MAX}",
                record.len()
            )));
        }
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.sealed {
            return Err(Error::Internal("a sealed temporary file grows".into()));
        }
        let position = self.end;
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&(record.len() as u32).to_le_bytes());
        header[4..].copy_from_slice(&checksum(position, record).to_le_bytes());
        let pushed = self.push(&header).and_then(|()| self.push(record));
        if let Err(error) = pushed {
            self.failed = Some(error.clone());
            return Err(error);
        }
        self.records += 1;
        Ok(position)
    }

    fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let filled = (self.end - self.written) as usize;
            let piece = bytes.len().min(SPILL_BUFFER_BYTES - filled);
            self.buffer[filled..filled + piece].copy_from_slice(&bytes[..piece]);
            bytes = &bytes[piece..];
            self.end += piece as u64;
            if filled + piece == SPILL_BUFFER_BYTES {
                self.write(SPILL_BUFFER_BYTES)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: usize) -> Result<()> {
        self.spill.charge(bytes as u64)?;
        self.charged += bytes as u64;
        let written = self.file.write_at(&self.buffer[..bytes], self.written);
        written.map_err(|e| Error::io(e, "writing a temporary file"))?;
        self.spill.bytes_written.fetch_add(bytes as u64, Relaxed);
        self.written += bytes as u64;
        Ok(())
    }

    /// Writes what is in memory and gives the buffer back; nothing is appended after it.
    ///
    /// # Errors
    /// As [`SpillFile::append`].
    pub fn seal(&mut self) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.sealed {
            return Ok(());
        }
        let filled = (self.end - self.written) as usize;
        if filled > 0 {
            self.buffer[filled..].fill(0);
            if let Err(error) = self.write(filled.next_multiple_of(SECTOR_BYTES)) {
                self.failed = Some(error.clone());
                return Err(error);
            }
        }
        self.written = self.end;
        self.buffer = AlignedBuffer::new_zeroed(0);
        self.sealed = true;
        Ok(())
    }

    /// Gives back space before a record, for the most part; what is there is not to be read any more.
    ///
    /// # Errors
    /// The device fails.
    pub fn forget_before(&mut self, position: u64) -> Result<()> {
        let end = position.min(self.written) / SECTOR * SECTOR;
        // Not for a few sectors: each hole costs the file system something.
        if end < self.start + SPILL_BUFFER_BYTES as u64 {
            return Ok(());
        }
        let bytes = end - self.start;
        self.file
            .punch_hole(self.start, bytes)
            .map_err(|e| Error::io(e, "shortening a temporary file"))?;
        self.start = end;
        self.charged -= bytes;
        self.spill.bytes.fetch_sub(bytes, Relaxed);
        Ok(())
    }

    /// Bytes of all records, with their headers.
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// Records that were appended.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Fills `bytes` with what lies at `offset`, of which all is there; through the window where
    /// it is on the device.
    fn read(&self, window: &mut Window, mut bytes: &mut [u8], mut offset: u64) -> Result<()> {
        if offset < self.start || offset + bytes.len() as u64 > self.end {
            return Err(Error::Corrupt(format!(
                "a temporary file has no {} bytes at {offset}",
                bytes.len()
            )));
        }
        while !bytes.is_empty() {
            let piece = if offset >= self.written {
                let from = &self.buffer[(offset - self.written) as usize..];
                let piece = bytes.len();
                bytes.copy_from_slice(&from[..piece]);
                piece
            } else {
                let from = self.at(window, offset)?;
                let piece = bytes.len().min(from.len());
                bytes[..piece].copy_from_slice(&from[..piece]);
                piece
            };
            bytes = &mut bytes[piece..];
            offset += piece as u64;
        }
        Ok(())
    }

    /// Written bytes from `offset` on, as many as the window has; at least one.
    fn at<'w>(&self, window: &'w mut Window, offset: u64) -> Result<&'w [u8]> {
        let there = window.start..window.start + window.filled as u64;
        if !there.contains(&offset) {
            let start = offset / SECTOR * SECTOR;
            let rest = (self.written - start).next_multiple_of(SECTOR);
            let bytes = rest.min(window.buffer.len() as u64) as usize;
            window.filled = 0;
            self.file
                .read_at(&mut window.buffer[..bytes], start)
                .map_err(|e| Error::io(e, "reading a temporary file"))?;
            self.spill.bytes_read.fetch_add(bytes as u64, Relaxed);
            window.start = start;
            window.filled = (bytes as u64).min(self.written - start) as usize;
        }
        Ok(&window.buffer[(offset - window.start) as usize..window.filled])
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.spill.files.fetch_sub(1, Relaxed);
        self.spill.bytes.fetch_sub(self.charged, Relaxed);
    }
}

/// A piece of a file in memory.
struct Window {
    buffer: AlignedBuffer,
    start: u64,
    filled: usize,
}

/// Reads the records of one file; what was appended meanwhile is seen.
pub struct SpillReader {
    window: Window,
    position: u64,
    record: Vec<u8>,
}

impl SpillReader {
    /// A reader that begins with the first record and reads `bytes` at a time: much where it
    /// goes on in order, a sector or two where it jumps. Its memory is that and one record.
    pub fn new(bytes: usize) -> Self {
        let bytes = bytes.clamp(SECTOR_BYTES, SPILL_RECORD_BYTES_MAX);
        SpillReader {
            window: Window {
                buffer: AlignedBuffer::new_zeroed(bytes.next_multiple_of(SECTOR_BYTES)),
                start: 0,
                filled: 0,
            },
            position: 0,
            record: Vec::new(),
        }
    }

    /// Goes on with the record at a position that [`SpillFile::append`] gave.
    pub fn at(&mut self, position: u64) -> &mut Self {
        self.position = position;
        self
    }

    /// Where the next record begins.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next record; None after the last.
    ///
    /// # Errors
    /// XX001 for a record that is not as it was written, the device's errors.
    pub fn next(&mut self, file: &SpillFile) -> Result<Option<&[u8]>> {
        if let Some(error) = &file.failed {
            return Err(error.clone());
        }
        if self.position >= file.end {
            return Ok(None);
        }
        let position = self.position;
        let mut header = [0; HEADER_BYTES];
        file.read(&mut self.window, &mut header, position)?;
        let [l0, l1, l2, l3, c0, c1, c2, c3] = header;
        let bytes = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let body = position + HEADER_BYTES as u64;
        let damaged = || Error::Corrupt(format!("a temporary file's record at byte {position}"));
        if body + bytes as u64 > file.end {
            return Err(damaged());
        }
        self.record.resize(bytes, 0);
        file.read(&mut self.window, &mut self.record, body)?;
        if checksum(position, &self.record) != u32::from_le_bytes([c0, c1, c2, c3]) {
            return Err(damaged());
        }
        self.position = body + bytes as u64;
        Ok(Some(&self.record))
    }
}

fn checksum(position: u64, record: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&position.to_le_bytes()), record)
}
