//! What an emulated device knows of a file, whatever its handles: where it lies, and whether
//! the device below has synced it.
//!
//! Where it lies only the head cares about: extents of a megabyte, given out in the order in
//! which files grow, and given back when a file is gone.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use parking_lot::Mutex;

const EXTENT_BYTES: u64 = 1 << 20;

/// The extents of a device.
#[derive(Debug, Default)]
pub(super) struct Space {
    free: Vec<u64>,
    next: u64,
}

/// Where one file lies.
#[derive(Debug)]
pub(super) struct Placement {
    space: Arc<Mutex<Space>>,
    extents: Mutex<Vec<u64>>,
    /// Something was changed since the last sync below began.
    dirty: AtomicBool,
    /// A sync below failed, so none may succeed any more.
    broken: AtomicBool,
}

impl Placement {
    pub fn new(space: &Arc<Mutex<Space>>) -> Placement {
        Placement {
            space: Arc::clone(space),
            extents: Mutex::default(),
            // What was written by others is not known.
            dirty: AtomicBool::new(true),
            broken: AtomicBool::new(false),
        }
    }

    /// A change below is over.
    pub fn changed(&self) {
        self.dirty.store(true, SeqCst);
    }

    /// Lets the device below sync, if there is something to be synced. What changes meanwhile
    /// is left for the next sync.
    pub fn sync(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if self.broken.load(SeqCst) {
            return Err(io::Error::other("an earlier sync of this file failed"));
        }
        if !self.dirty.swap(false, SeqCst) {
            return Ok(());
        }
        let result = sync();
        if result.is_err() {
            self.broken.store(true, SeqCst);
        }
        result
    }

    /// The place on the device of an offset in the file.
    pub fn place(&self, offset: u64) -> u64 {
        let index = (offset / EXTENT_BYTES) as usize;
        let mut extents = self.extents.lock();
        if extents.len() <= index {
            let mut space = self.space.lock();
            while extents.len() <= index {
                let extent = space.take();
                extents.push(extent);
            }
        }
        extents[index] * EXTENT_BYTES + offset % EXTENT_BYTES
    }
}

impl Space {
    fn take(&mut self) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        let mut extents = std::mem::take(self.extents.get_mut());
        // The first goes out first again.
        extents.reverse();
        self.space.lock().free.extend(extents);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_is_done_once_and_one_that_failed_is_not_repeated() {
        let placement = Placement::new(&Arc::default());
        let syncs = std::cell::Cell::new(0);
        let count = || {
            syncs.set(syncs.get() + 1);
            Ok(())
        };
        placement.sync(count).unwrap();
        placement.sync(count).unwrap();
        assert_eq!(syncs.get(), 1);
        placement.changed();
        placement.sync(count).unwrap();
        assert_eq!(syncs.get(), 2);
        placement.changed();
        assert!(placement.sync(|| Err(io::ErrorKind::Other.into())).is_err());
        assert!(placement.sync(count).is_err());
        assert_eq!(syncs.get(), 2);
    }

    #[test]
    fn a_file_that_grows_alone_lies_in_one_piece_and_gives_its_place_back() {
        let space = Arc::default();
        let one = Placement::new(&space);
        assert_eq!(one.place(3 * EXTENT_BYTES + 5), 3 * EXTENT_BYTES + 5);
        let two = Placement::new(&space);
        assert_eq!(two.place(0), 4 * EXTENT_BYTES);
        assert_eq!(one.place(4 * EXTENT_BYTES), 5 * EXTENT_BYTES);
        drop(one);
        assert_eq!(two.place(EXTENT_BYTES), 0);
    }
}
