//! One process a directory: an exclusive `flock` on the file `LOCK` in it.
//!
//! The kernel lets the lock go when the process ends, however it ends; so a `LOCK` file
//! that is left behind locks nobody out. Assumes a local file system.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::directory::{FILE_MODE, make_directory};

/// The file that carries the lock; it is no data, and `Device::list` leaves it out.
pub const LOCK_FILE_NAME: &str = "LOCK";

/// Holds a directory until dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

/// Locks a directory for this process, making the directory if it is absent.
///
/// `WouldBlock` when another holder has it; the message says which process.
pub fn lock_directory(path: &Path) -> io::Result<DirectoryLock> {
    make_directory(path)?;
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .open(path.join(LOCK_FILE_NAME))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // The number is a courtesy; the refusal stands without it.
            let _ = file.read_to_string(&mut holder);
            return Err(io::Error::new(
                io::ErrorKind::WouldBlock,
                format!(
                    "{} is in use by another process ({})",
                    path.display(),
                    holder.trim()
                ),
            ));
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())?;
    Ok(DirectoryLock { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_refused_until_the_first_lets_go() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let first = lock_directory(&path).unwrap();
        let refused = lock_directory(&path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        let process = std::process::id().to_string();
        assert!(refused.to_string().contains(&process), "{refused}");
        drop(first);
        lock_directory(&path).unwrap();
    }
}
