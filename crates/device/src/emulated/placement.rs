//! Where files lie on an emulated device, which only its head cares about: extents of a
//! megabyte, given out in the order in which files grow, and given back when a file is gone.

use std::sync::Arc;

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
}

impl Placement {
    pub fn new(space: &Arc<Mutex<Space>>) -> Placement {
        Placement {
            space: Arc::clone(space),
            extents: Mutex::default(),
        }
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
