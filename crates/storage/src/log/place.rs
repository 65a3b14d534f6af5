//! Where a flush group goes in the segment being written: in sectors of its own, or with
//! others in a sector that is written again.
//!
//! Guarantees: no write touches the only sector that holds an acknowledged record. A sector
//! with groups in it is written again beside itself, and from there back.
//! Assumes: a group is synced before the next is placed, and `wrote` is told of it.

use std::sync::Arc;

use thermocline_device::{AlignedBuffer, DeviceFile, Mutation, SECTOR_BYTES};

use super::segment::{place_behind, round_to_sectors};

const SECTOR: u64 = SECTOR_BYTES as u64;

/// The segment being written.
pub(super) struct Current {
    pub name: String,
    pub file: Arc<dyn DeviceFile>,
    /// Where the next group goes that needs sectors of its own.
    pub offset: u64,
    pub bytes: u64,
    /// How much of it was written once, from its start.
    pub filled_bytes: u64,
    pub shared: SharedSector,
}

/// The last sector, as long as small groups are added to it: each goes out with all that
/// stand there already, by turns into two sectors. What was acknowledged lies untouched in
/// one of them while the other one is written.
pub(super) struct SharedSector {
    pub bytes: AlignedBuffer,
    /// How much of it is taken; all, if nothing can be added.
    used: u64,
    /// The first of the two sectors, and whether the second was written last.
    first: u64,
    in_second: bool,
}

impl SharedSector {
    /// None: no group can be added.
    pub fn closed() -> Self {
        Self {
            bytes: AlignedBuffer::new_zeroed(SECTOR_BYTES),
            used: SECTOR,
            first: SECTOR,
            in_second: false,
        }
    }
}

/// Where a group goes.
pub(super) struct Place {
    pub offset: u64,
    /// In the shared sector, behind what is there; otherwise in sectors of its own.
    pub is_beside: bool,
}

impl Current {
    /// Whether some of what is left of it was never written.
    pub fn is_unfilled(&self) -> bool {
        self.offset.max(self.filled_bytes) < self.bytes
    }

    /// Finds the place of a group, and puts it into the shared sector if it goes there; None:
    /// the segment has no room.
    pub fn place(&mut self, group: &[u8]) -> Option<Place> {
        let bytes = round_to_sectors(group.len() as u64);
        let shared = &mut self.shared;
        let from = place_behind(shared.used) as usize;
        let is_beside = from + group.len() <= SECTOR_BYTES;
        let offset = if !is_beside {
            self.offset
        } else if shared.in_second || Mutation::LogSectorInPlace.is_made() {
            shared.first
        } else {
            shared.first + SECTOR
        };
        if offset + bytes > self.bytes {
            return None;
        }
        if is_beside {
            shared.bytes[from..from + group.len()].copy_from_slice(group);
        }
        Some(Place { offset, is_beside })
    }

    /// Notes that a group was written at its place, and synced.
    pub fn wrote(&mut self, place: &Place, group: &[u8]) {
        let bytes = group.len() as u64;
        let shared = &mut self.shared;
        if place.is_beside {
            shared.used = place_behind(shared.used) + bytes;
            shared.in_second = place.offset != shared.first;
        } else if bytes <= SECTOR {
            shared.bytes[..group.len()].copy_from_slice(group);
            shared.bytes[group.len()..].fill(0);
            shared.used = bytes;
            shared.first = place.offset;
            shared.in_second = false;
        } else {
            shared.used = SECTOR;
        }
        // The second sector is free again while the first has all that it has.
        self.offset = place.offset + round_to_sectors(bytes);
        self.filled_bytes = self.filled_bytes.max(self.offset);
    }
}
