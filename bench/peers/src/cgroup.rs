//! A memory cgroup for one run (v1 or v2), so that the page cache counts, too.
//!
//! Making one needs root. What the kernel kept for the run (its page cache above
//! all) is given up when the group ends: it would pass to the parent and be memory
//! beyond the limit for the run that follows.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A group. Dropping it removes it.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Cgroup {
    /// A new group with this limit.
    ///
    /// # Errors
    /// There is no memory controller, or this user may not use it.
    pub fn new(limit_bytes: u64) -> io::Result<Self> {
        let name = format!("thermocline-peers-{}", std::process::id());
        let one = Path::new("/sys/fs/cgroup/memory");
        if one.join("memory.limit_in_bytes").exists() {
            let group = Cgroup::make(one.join(name), Version::One)?;
            group.write("memory.limit_in_bytes", &limit_bytes.to_string())?;
            return Ok(group);
        }
        let root = Path::new("/sys/fs/cgroup");
        // Delegation is the system's business: already done, or not allowed.
        let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
        let group = Cgroup::make(root.join(name), Version::Two)?;
        group.write("memory.max", &limit_bytes.to_string())?;
        // Without swap accounting there is no such file.
        let _ = group.write("memory.swap.max", "0");
        Ok(group)
    }

    fn make(path: PathBuf, version: Version) -> io::Result<Self> {
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(Cgroup { path, version }),
        }
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.path.join(file), text)
    }

    /// Where a process enters.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many processes the kernel has killed in it.
    pub fn kills(&self) -> u64 {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
        let count = |line: &str| line.strip_prefix("oom_kill ")?.trim().parse().ok();
        text.lines().find_map(count).unwrap_or(0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A group that can't be emptied or removed yet is one that the next
        // run finds and uses; there is nobody to tell.
        let _ = match self.version {
            Version::One => self.write("memory.force_empty", "0"),
            Version::Two => self.write("memory.reclaim", "100G"),
        };
        for _ in 0..20 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Moves this process into a group.
pub fn enter(path: &Path) -> io::Result<()> {
    fs::write(path.join("cgroup.procs"), std::process::id().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_there_until_it_is_dropped() {
        // Without root there is none, and nothing to test.
        let Ok(group) = Cgroup::new(64 << 20) else {
            return;
        };
        let path = group.path().to_owned();
        assert!(path.exists());
        assert_eq!(group.kills(), 0);
        drop(group);
        assert!(!path.exists());
    }
}
