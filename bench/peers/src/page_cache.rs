//! Files out of the page cache, and the room that is left for more of them.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{Advice, fadvise, statvfs};

/// Writes the files below a directory out, and has the kernel forget them, so
/// that a run begins with what it reads itself.
pub fn forget(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            forget(&entry.path())?;
        } else {
            forget_file(&entry.path())?;
        }
    }
    Ok(())
}

/// The same for one file.
pub fn forget_file(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}

/// Bytes that can still be written below a directory.
pub fn free_bytes(directory: &Path) -> io::Result<u64> {
    let found = statvfs(directory)?;
    Ok(found.f_bavail * found.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_when_they_are_forgotten() {
        let directory = tempfile::tempdir().expect("a directory");
        let below = directory.path().join("below");
        fs::create_dir(&below).expect("a directory");
        fs::write(below.join("file"), [7; 10_000]).expect("written");
        forget(directory.path()).expect("forgotten");
        assert_eq!(fs::read(below.join("file")).expect("there"), [7; 10_000]);
        assert!(free_bytes(directory.path()).expect("known") > 0);
    }
}
