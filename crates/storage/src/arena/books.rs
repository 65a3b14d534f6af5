//! What the arena knows of each unit: the state of the span that begins there, and the span's
//! neighbours in the free list of its order.
//!
//! Of a large region most units are never handed out. So the books lie in mappings of their own:
//! an allocator would clear them where it has had the memory before.

use thermocline_device::{AlignedBuffer, SECTOR_BYTES};

const LINKS_BYTES: usize = 2 * size_of::<u32>();

pub(super) struct Books {
    /// A byte a unit; 0 where no span begins.
    state: AlignedBuffer,
    /// By unit: the one before and the one after, plus one; 0 is none.
    links: AlignedBuffer,
}

impl Books {
    pub(super) fn new(units: usize) -> Books {
        let mapped = |bytes: usize| AlignedBuffer::new_zeroed(bytes.next_multiple_of(SECTOR_BYTES));
        Books {
            state: mapped(units),
            links: mapped(units * LINKS_BYTES),
        }
    }

    pub(super) fn state(&self, unit: u32) -> u8 {
        self.state[unit as usize]
    }

    pub(super) fn set_state(&mut self, unit: u32, state: u8) {
        self.state[unit as usize] = state;
    }

    pub(super) fn links(&self, unit: u32) -> [u32; 2] {
        let (links, _) = self.links.as_chunks::<LINKS_BYTES>();
        let [a, b, c, d, e, f, g, h] = links[unit as usize];
        [
            u32::from_ne_bytes([a, b, c, d]),
            u32::from_ne_bytes([e, f, g, h]),
        ]
    }

    pub(super) fn set_links(&mut self, unit: u32, [before, after]: [u32; 2]) {
        let (links, _) = self.links.as_chunks_mut::<LINKS_BYTES>();
        let (first, second) = links[unit as usize].split_at_mut(size_of::<u32>());
        first.copy_from_slice(&before.to_ne_bytes());
        second.copy_from_slice(&after.to_ne_bytes());
    }
}
