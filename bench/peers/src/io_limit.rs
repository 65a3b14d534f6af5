//! A device held to so many reads a second, by the kernel's block I/O controller.
//!
//! Where a virtual machine's host serves a disk from its own memory, the disk is now
//! slow and now as fast as memory, and a run measures the host. Held to what the disk
//! itself can do, each system has the same device, in each of its turns. Only reads
//! are held; one that reads ahead or in larger pieces pays by requests, not by bytes.
//! And only while it is measured: to find out what is hot takes millions of accesses,
//! which a slow device would make minutes of.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thermocline_bench::Result;

use crate::cgroup::enter;

const CONTROLLER: &str = "/sys/fs/cgroup/blkio";
const LIMIT_FILE: &str = "blkio.throttle.read_iops_device";

/// A group that this process and those that it starts are in. Dropping it takes the
/// limit and the group away.
#[derive(Debug)]
pub struct IoLimit {
    group: PathBuf,
    held: Switch,
    free: Switch,
}

impl IoLimit {
    /// Puts this process into a new group for the device of `directory`; nothing is
    /// held until [`IoLimit::hold`].
    ///
    /// # Errors
    /// There is no block I/O controller of version 1, or this user may not use it.
    pub fn new(directory: &Path, reads_per_second: u64) -> Result<Self> {
        let group = Path::new(CONTROLLER).join(format!("thermocline-peers-{}", std::process::id()));
        let device = disk(directory)?;
        let switch = |reads| Switch {
            file: group.join(LIMIT_FILE),
            text: format!("{device} {reads}"),
        };
        let limit = IoLimit {
            held: switch(reads_per_second),
            free: switch(0),
            group,
        };
        let why = |error| format!("reads can't be held back ({CONTROLLER}: {error})");
        fs::create_dir(&limit.group).map_err(why)?;
        enter(&limit.group).map_err(why)?;
        limit.free.set().map_err(why)?;
        Ok(limit)
    }

    /// Holds reads back from here on, or lets them go.
    pub fn hold(&self, held: bool) -> Result<()> {
        let switch = if held { &self.held } else { &self.free };
        Ok(switch.set()?)
    }

    /// What a run writes to hold them back itself, when it has warmed up.
    pub fn switch(&self) -> &Switch {
        &self.held
    }
}

/// Holds reads back or lets them go, from any process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Switch {
    file: PathBuf,
    text: String,
}

impl Switch {
    /// From here on.
    pub fn set(&self) -> io::Result<()> {
        fs::write(&self.file, &self.text)
    }
}

impl Drop for IoLimit {
    fn drop(&mut self) {
        // There is nobody to tell; an empty group without a limit harms nobody.
        let _ = self.free.set();
        let _ = enter(Path::new(CONTROLLER));
        let _ = fs::remove_dir(&self.group);
    }
}

/// The disk that a directory is on, as `major:minor`: limits are a whole disk's, not
/// a partition's.
fn disk(directory: &Path) -> Result<String> {
    let number = fs::metadata(directory)?.dev();
    let device = format!(
        "{}:{}",
        rustix::fs::major(number),
        rustix::fs::minor(number)
    );
    let entry = Path::new("/sys/dev/block").join(&device);
    if !entry.join("partition").exists() {
        return Ok(device);
    }
    let disk = entry.canonicalize()?.join("../dev");
    Ok(fs::read_to_string(disk)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    use thermocline_device::{AlignedBuffer, Device, FileDevice, IoEngine, OpenMode};

    #[test]
    fn reads_are_held_back_and_let_go() {
        let directory = tempfile::tempdir().expect("a directory");
        // Without root or the controller there is nothing to test.
        let Ok(limit) = IoLimit::new(directory.path(), 20) else {
            eprintln!("skipped: no block I/O controller of version 1 that this user may use");
            return;
        };
        let device = FileDevice::open(directory.path(), IoEngine::Auto).expect("a device");
        let file = device.open("reads", OpenMode::Create).expect("a file");
        let mut sector = AlignedBuffer::new_zeroed(4096);
        for offset in (0..64 * 4096).step_by(4096) {
            file.write_at(&sector, offset).expect("written");
        }
        file.sync_data().expect("synced");
        let mut time = |held: bool| {
            match held {
                true => limit.switch().set().expect("set"),
                false => limit.hold(false).expect("set"),
            }
            let begin = Instant::now();
            for offset in (0..40 * 4096).step_by(4096) {
                file.read_at(&mut sector, offset).expect("read");
            }
            begin.elapsed()
        };
        let held = time(true);
        // Memory file systems have no device that could be held.
        assert!(
            !device.is_direct() || held > Duration::from_secs(1),
            "{held:?}"
        );
        assert!(time(false) < Duration::from_secs(1));
        let group = limit.group.clone();
        drop(limit);
        assert!(!group.exists());
    }
}
