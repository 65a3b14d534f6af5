//! A file that a client names, anywhere on this machine: read once, from its start to its end.
//!
//! Guarantees: only regular files are read, so that no reader waits for a pipe that nobody
//! fills. The caller's thread reads; the system reads ahead of it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The most bytes of one read: so few that the reader's thread is soon free for others.
const CHUNK_BYTES: usize = 64 << 10;

/// See the head of this file.
pub struct OutsideFile {
    file: File,
}

impl OutsideFile {
    /// Opens the file.
    ///
    /// # Errors
    /// The system's; `IsADirectory`, and `InvalidInput` for other things than files.
    pub fn at(path: &Path) -> io::Result<Self> {
        // A pipe without a writer is opened at once by this, and refused below.
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        let kind = file.metadata()?.file_type();
        if kind.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !kind.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self { file })
    }

    /// The next bytes; none at the end.
    ///
    /// # Errors
    /// The system's.
    pub fn next_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let limit = CHUNK_BYTES as u64;
        Read::by_ref(&mut self.file)
            .take(limit)
            .read_to_end(&mut chunk)?;
        Ok((!chunk.is_empty()).then_some(chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_whole_and_nothing_else_is_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows");
        let bytes: Vec<u8> = (0..CHUNK_BYTES * 2 + 7).map(|n| n as u8).collect();
        std::fs::write(&path, &bytes).expect("writes");
        let mut file = OutsideFile::at(&path).expect("opens");
        let mut read = Vec::new();
        while let Some(chunk) = file.next_chunk().expect("reads") {
            assert!(chunk.len() <= CHUNK_BYTES);
            read.extend(chunk);
        }
        assert_eq!(read, bytes);
        let kind = |path: &Path| OutsideFile::at(path).err().map(|error| error.kind());
        assert_eq!(kind(folder.path()), Some(io::ErrorKind::IsADirectory));
        assert_eq!(
            kind(&folder.path().join("none")),
            Some(io::ErrorKind::NotFound)
        );
        assert_eq!(
            kind(Path::new("/dev/null")),
            Some(io::ErrorKind::InvalidInput)
        );
    }
}
