//! A device whose cold rows lie on another: the file of blocks is emulated, log and images are
//! not, as in the papers, where the device that is varied holds what was evicted and no more.
//!
//! Guarantees what the device below guarantees. Its counters are those of the blocks.

use std::io;
use std::path::Path;
use std::sync::Arc;

use thermocline_device::{
    Device, DeviceCounters, DeviceFile, DeviceProfile, EmulatedDevice, OpenMode,
};

/// The file of blocks of a database.
pub(super) const BLOCKS: &str = "blocks";

pub(super) struct ColdDevice {
    below: Arc<dyn Device>,
    cold: Arc<EmulatedDevice>,
}

impl ColdDevice {
    /// `cold` emulates over `below`.
    pub fn new(below: Arc<dyn Device>, cold: Arc<EmulatedDevice>) -> Self {
        ColdDevice { below, cold }
    }

    fn of(&self, name: &str) -> &dyn Device {
        match name {
            BLOCKS => &*self.cold,
            _ => &*self.below,
        }
    }
}

impl Device for ColdDevice {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DeviceFile>> {
        self.of(name).open(name, mode)
    }

    fn temporary(&self) -> io::Result<Arc<dyn DeviceFile>> {
        self.below.temporary()
    }

    fn remove_temporary(&self) -> io::Result<()> {
        self.below.remove_temporary()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.below.list()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.of(from).rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.of(name).remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.below.sync_directory()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.below.free_bytes()
    }

    fn counters(&self) -> &DeviceCounters {
        self.cold.counters()
    }

    fn profile(&self) -> DeviceProfile {
        self.cold.profile()
    }

    fn path(&self) -> Option<&Path> {
        self.below.path()
    }

    fn describe(&self) -> String {
        format!("blocks on {}", self.cold.describe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thermocline_device::{DeviceKind, EmulatedProfile, MemoryDevice};

    #[test]
    fn blocks_are_emulated_and_nothing_else() {
        let below: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let profile = EmulatedProfile::of(DeviceKind::Hdd).expect("a profile");
        let cold = EmulatedDevice::new(below.clone(), profile).expect("memory is fast enough");
        let device = ColdDevice::new(below, Arc::new(cold));
        let write = |name| {
            let file = device.open(name, OpenMode::Create).expect("it is made");
            file.write_at(&[1; 4096], 0).expect("it is written");
        };
        write("log-1");
        assert_eq!(device.counters().snapshot().writes, 0);
        write(BLOCKS);
        assert_eq!(device.counters().snapshot().writes, 1);
        assert_eq!(device.list().expect("names"), [BLOCKS, "log-1"]);
    }
}
