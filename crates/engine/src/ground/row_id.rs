//! The stable name of a row: its partition and its place in the partition's
//! row directory. Indexes lead to it; eviction never changes it.

use std::fmt;

/// A row of a table: partition and row number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(u64);

impl RowId {
    /// Names row `row` of partition `partition`.
    #[inline]
    pub fn new(partition: u16, row: u32) -> Self {
        RowId((u64::from(partition) << 32) | u64::from(row))
    }

    /// The row of this number, as [`RowId::number`] gives it.
    #[inline]
    pub fn numbered(number: u64) -> Self {
        RowId(number)
    }

    /// The row's number among those of all partitions.
    #[inline]
    pub fn number(self) -> u64 {
        self.0
    }

    /// The partition.
    #[inline]
    pub fn partition(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// The row's number in its partition's directory.
    #[inline]
    pub fn row(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.partition(), self.row())
    }
}
