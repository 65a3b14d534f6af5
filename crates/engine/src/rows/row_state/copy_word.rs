//! What a hot tuple's header says of its copy on a device. Only the transitions write it.

use std::sync::atomic::{AtomicU64, Ordering};

use thermocline_storage::row_directory::ColdAddress;

/// What the header of a hot tuple says of its copy on a device: nothing if there is none, the
/// copy's address, or that one is being made. A change of the tuple overwrites it, and the copy
/// is then not the tuple's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyWord(pub(super) u64);

impl CopyWord {
    /// There is no copy.
    pub const NONE: CopyWord = CopyWord(0);
    /// The highest bit: one is being made. Below it the number of the copying and the slot.
    const UNDER_WAY: u64 = 1 << 63;
    const SLOT_BITS: u32 = 16;

    /// Where the copy is, if there is one.
    #[inline]
    pub fn address(self) -> Option<ColdAddress> {
        (!self.is_under_way())
            .then(|| ColdAddress::from_word(self.0))
            .flatten()
    }

    /// Whether one is being made.
    #[inline]
    pub(super) fn is_under_way(self) -> bool {
        self.0 & Self::UNDER_WAY != 0
    }
}

/// A copying of tuples into one block, like no other: the evictor and the checkpointer copy at
/// the same time. A tuple that the one copied and that was changed may be copied by the other
/// since: then it is not the first one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Copying(u64);

impl Copying {
    /// The next one.
    pub fn begin() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Copying(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// What a tuple's header says while it is copied.
    pub(super) fn mark(self, slot: u16) -> CopyWord {
        CopyWord(CopyWord::UNDER_WAY | self.0 << CopyWord::SLOT_BITS | u64::from(slot))
    }
}
