//! A word of the row directory: what is known of a row in eight bytes.

use crate::arena::TuplePtr;
use crate::columns::COLUMNS_EXTENT;

const TAG_SHIFT: u32 = 62;
const TAG_FREE: u64 = 0;
const TAG_HOT: u64 = 1;
const TAG_COLD: u64 = 2;
const ASIDE: u64 = 1 << 61;
const UNCOMMITTED: u64 = 1 << 60;
pub(super) const TEMPERATURE_SHIFT: u32 = 57;
const TEMPERATURE_MASK: u64 = 7 << TEMPERATURE_SHIFT;
const POINTER_MASK: u64 = (1 << TuplePtr::BITS) - 1;
pub(super) const FINGERPRINT_SHIFT: u32 = 52;
const FINGERPRINT_MASK: u8 = 31;
const ADDRESS_MASK: u64 = (1 << FINGERPRINT_SHIFT) - 1;

/// Where a tuple's copy is on a device. As a word it fits 52 bits and is never
/// zero, because block ids start at 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ColdAddress {
    /// The block's id; never used twice.
    pub block: u32,
    /// Offset of the record in the block, in 16-byte units; in a block of columns the row's
    /// position.
    pub slot: u16,
    /// How many 4 KiB sectors the record touches; [`ColdAddress::EXTENT_LONG`]
    /// says to read the record's header first, [`COLUMNS_EXTENT`] that it is a block of columns.
    pub extent: u8,
}

impl ColdAddress {
    /// The extent of records that touch this many sectors or more.
    pub const EXTENT_LONG: u8 = 15;

    /// Whether it is a position in a block of columns.
    #[inline]
    pub fn is_in_columns(self) -> bool {
        self.extent == COLUMNS_EXTENT
    }

    /// As a word: the block in the high bits, then slot, then extent.
    pub fn to_word(self) -> u64 {
        assert!(self.block != 0, "block ids start at 1");
        assert!(self.extent <= Self::EXTENT_LONG, "extent out of range");
        u64::from(self.block) << 20 | u64::from(self.slot) << 4 | u64::from(self.extent)
    }

    /// From a word; `None` where there is no address (block 0).
    pub fn from_word(word: u64) -> Option<Self> {
        let block = (word >> 20) as u32;
        (block != 0).then_some(Self {
            block,
            slot: (word >> 4) as u16,
            extent: (word & 15) as u8,
        })
    }
}

/// What the directory knows of a row.
///
/// Bits from the top: tag 2, aside 1, uncommitted 1, temperature 3. Hot: 17
/// unused, pointer 40. Cold: fingerprint 5, block 32, slot 16, extent 4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word(pub u64);

/// A word known to be hot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotWord(u64);

/// A word known to be cold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColdWord(u64);

impl Word {
    /// A word for a tuple in the heap, of temperature 0.
    #[inline]
    pub fn hot(pointer: TuplePtr) -> Self {
        assert!(pointer.0 <= POINTER_MASK, "tuple address beyond 2^40");
        Self(TAG_HOT << TAG_SHIFT | pointer.0)
    }

    /// A word for a tuple on a device, of temperature 0. `fingerprint` is of the
    /// key's hash; its low 5 bits are kept.
    #[inline]
    pub fn cold(address: ColdAddress, fingerprint: u8) -> Self {
        let fingerprint = u64::from(fingerprint & FINGERPRINT_MASK) << FINGERPRINT_SHIFT;
        Self(TAG_COLD << TAG_SHIFT | fingerprint | address.to_word())
    }

    /// How warm the tuple is, 0 to [`crate::temperature::MAX`].
    #[inline]
    pub fn temperature(self) -> u8 {
        ((self.0 & TEMPERATURE_MASK) >> TEMPERATURE_SHIFT) as u8
    }

    /// The same word with another temperature (its low three bits).
    #[inline]
    #[must_use]
    pub fn with_temperature(self, temperature: u8) -> Self {
        let bits = u64::from(temperature) << TEMPERATURE_SHIFT & TEMPERATURE_MASK;
        Self(self.0 & !TEMPERATURE_MASK | bits)
    }

    pub(super) fn free(next: Option<u32>) -> Self {
        Self(TAG_FREE << TAG_SHIFT | next.map_or(0, |row| u64::from(row) + 1))
    }

    pub(super) fn next_free(self) -> Option<u32> {
        (self.0 as u32).checked_sub(1)
    }

    /// Whether no row has this word.
    #[inline]
    pub fn is_free(self) -> bool {
        self.0 >> TAG_SHIFT == TAG_FREE
    }

    /// Whether the tuple is in the heap.
    #[inline]
    pub fn is_hot(self) -> bool {
        self.0 >> TAG_SHIFT == TAG_HOT
    }

    /// Whether the tuple is only on a device.
    #[inline]
    pub fn is_cold(self) -> bool {
        self.0 >> TAG_SHIFT == TAG_COLD
    }

    /// The hot view.
    #[inline]
    pub fn as_hot(self) -> Option<HotWord> {
        self.is_hot().then_some(HotWord(self.0))
    }

    /// Whether the tuple is only on a device, in a block of columns.
    #[inline]
    pub fn is_in_columns(self) -> bool {
        self.as_cold()
            .is_some_and(|cold| cold.address().is_in_columns())
    }

    /// The cold view.
    #[inline]
    pub fn as_cold(self) -> Option<ColdWord> {
        self.is_cold().then_some(ColdWord(self.0))
    }

    /// Whether the partition's side tables know more (a row lock, versions).
    #[inline]
    pub fn is_aside(self) -> bool {
        self.0 & ASIDE != 0
    }

    /// Whether the transaction that wrote this row has not committed.
    #[inline]
    pub fn is_uncommitted(self) -> bool {
        self.0 & UNCOMMITTED != 0
    }

    /// The same word with `aside` as given.
    #[inline]
    #[must_use]
    pub fn with_aside(self, aside: bool) -> Self {
        Self(self.0 & !ASIDE | if aside { ASIDE } else { 0 })
    }

    /// The same word with `uncommitted` as given.
    #[inline]
    #[must_use]
    pub fn with_uncommitted(self, uncommitted: bool) -> Self {
        Self(self.0 & !UNCOMMITTED | if uncommitted { UNCOMMITTED } else { 0 })
    }
}

impl HotWord {
    /// Where the tuple is.
    #[inline]
    pub fn pointer(self) -> TuplePtr {
        TuplePtr(self.0 & POINTER_MASK)
    }

    /// The word of the same row after the tuple moved in the heap.
    #[inline]
    pub fn with_pointer(self, pointer: TuplePtr) -> Word {
        assert!(pointer.0 <= POINTER_MASK, "tuple address beyond 2^40");
        Word(self.0 & !POINTER_MASK | pointer.0)
    }

    /// The word itself.
    #[inline]
    pub fn word(self) -> Word {
        Word(self.0)
    }
}

impl ColdWord {
    /// Where the record is.
    #[inline]
    pub fn address(self) -> ColdAddress {
        let word = self.0 & ADDRESS_MASK;
        ColdAddress {
            block: (word >> 20) as u32,
            slot: (word >> 4) as u16,
            extent: (word & 15) as u8,
        }
    }

    /// 5 bits of the key's hash.
    #[inline]
    pub fn fingerprint(self) -> u8 {
        (self.0 >> FINGERPRINT_SHIFT) as u8 & FINGERPRINT_MASK
    }

    /// Whether a key with this fingerprint may be the tuple's.
    #[inline]
    pub fn may_be(self, fingerprint: u8) -> bool {
        self.fingerprint() == fingerprint & FINGERPRINT_MASK
    }

    /// The word of the same row after compaction moved the record.
    #[inline]
    pub fn with_address(self, address: ColdAddress) -> Word {
        Word(self.0 & !ADDRESS_MASK | address.to_word())
    }

    /// The word itself.
    #[inline]
    pub fn word(self) -> Word {
        Word(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address() -> impl Strategy<Value = ColdAddress> {
        (1u32.., any::<u16>(), 0u8..=15).prop_map(|(block, slot, extent)| ColdAddress {
            block,
            slot,
            extent,
        })
    }

    proptest! {
        #[test]
        fn words_keep_every_field(
            address in address(), other in address(), pointer in 0u64..1 << 40,
            moved in 0u64..1 << 40, fingerprint in 0u8..32, temperature in 0u8..8,
            aside in any::<bool>(), uncommitted in any::<bool>(),
        ) {
            let cold = Word::cold(address, fingerprint).with_aside(aside).with_uncommitted(uncommitted);
            let cold = cold.with_temperature(temperature);
            prop_assert_eq!(cold.temperature(), temperature);
            let view = cold.as_cold().unwrap();
            prop_assert_eq!((view.address(), view.fingerprint()), (address, fingerprint));
            prop_assert_eq!((cold.is_aside(), cold.is_uncommitted()), (aside, uncommitted));
            prop_assert!(cold.as_hot().is_none() && !cold.is_free());
            let compacted = view.with_address(other);
            prop_assert_eq!(compacted.as_cold().unwrap().address(), other);
            prop_assert_eq!(compacted.as_cold().unwrap().fingerprint(), fingerprint);
            prop_assert_eq!(compacted.is_aside(), aside);
            prop_assert_eq!(compacted.temperature(), temperature);
            prop_assert_eq!(ColdAddress::from_word(address.to_word()), Some(address));

            let hot = Word::hot(TuplePtr(pointer)).with_uncommitted(uncommitted).with_aside(aside);
            let hot = hot.with_temperature(temperature);
            let hot = hot.as_hot().unwrap().with_pointer(TuplePtr(moved));
            let view = hot.as_hot().unwrap();
            prop_assert_eq!((view.pointer(), hot.temperature()), (TuplePtr(moved), temperature));
            prop_assert_eq!((hot.is_aside(), hot.is_uncommitted()), (aside, uncommitted));
            prop_assert!(hot.as_cold().is_none() && !hot.is_free());
        }
    }
}
