//! What the kernel says of the disk under a directory: whether it turns, whether it is zoned,
//! whether it is memory. In a virtual machine it often says what is not so.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::sys;

/// What the kernel says; `None` where it does not say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelWord {
    /// The disk's name, e.g. `sda`.
    pub disk: Option<String>,
    /// It turns.
    pub rotational: Option<bool>,
    /// `none`, `host-aware` or `host-managed`. A shingled disk that hides it says `none`.
    pub zoned: Option<String>,
    /// It is memory that can be mapped and used in place.
    pub byte_addressable: bool,
    /// The file system lies in memory.
    pub in_memory: bool,
}

impl KernelWord {
    /// Of the disk under this directory.
    pub(super) fn of(directory: &Path) -> KernelWord {
        let in_memory = sys::file_system(directory).is_ok_and(|found| found.in_memory);
        let device = fs::metadata(directory).map_or(0, |found| found.dev());
        let numbers = format!("{}:{}", libc::major(device), libc::minor(device));
        KernelWord {
            in_memory,
            ..of_disk(&Path::new("/sys/dev/block").join(numbers))
        }
    }
}

/// Reads a disk's folder below `/sys`, or that of one of its partitions.
fn of_disk(link: &Path) -> KernelWord {
    let Ok(folder) = link.canonicalize() else {
        return KernelWord::default();
    };
    let disk: Option<PathBuf> = [Some(folder.as_path()), folder.parent()]
        .into_iter()
        .flatten()
        .find(|folder| folder.join("queue").is_dir())
        .map(Path::to_path_buf);
    let Some(disk) = disk else {
        return KernelWord::default();
    };
    let said = |name: &str| {
        let text = fs::read_to_string(disk.join("queue").join(name)).ok()?;
        Some(text.trim().to_owned())
    };
    let name = disk.file_name().map(|name| name.to_string_lossy());
    KernelWord {
        disk: name.map(|name| name.into_owned()),
        rotational: said("rotational").map(|text| text == "1"),
        zoned: said("zoned"),
        byte_addressable: said("dax").is_some_and(|text| text == "1"),
        in_memory: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partitions_disk_is_asked_and_what_is_not_there_is_not_known() {
        let root = tempfile::tempdir().unwrap();
        let disk = root.path().join("sda");
        let partition = disk.join("sda1");
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::create_dir_all(&partition).unwrap();
        fs::write(disk.join("queue/rotational"), "1\n").unwrap();
        fs::write(disk.join("queue/zoned"), "host-aware\n").unwrap();
        let word = of_disk(&partition);
        assert_eq!(word, of_disk(&disk));
        assert_eq!(word.disk.as_deref(), Some("sda"));
        assert_eq!(word.rotational, Some(true));
        assert_eq!(word.zoned.as_deref(), Some("host-aware"));
        assert!(!word.byte_addressable);
        assert_eq!(of_disk(Path::new("/absent")), KernelWord::default());
        let _ = KernelWord::of(root.path());
    }
}
