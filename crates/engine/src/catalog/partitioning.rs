//! Declared partitions (PostgreSQL's `PARTITION BY`): a table whose rows lie in other tables, which
//! one by the values of its key columns. Here is what a definition says of that; which partition a
//! key belongs to is in `partition_map`. Who makes partitions is decided in `sql`.
//!
//! They are whole tables, and have nothing to do with the engine's own partitions, of which each
//! table has rows in all.

use serde::{Deserialize, Serialize};
use thermocline_values::value::Value;

/// How the key decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionStrategy {
    /// Intervals of keys.
    Range,
    /// Lists of values.
    List,
    /// Remainders of a hash.
    Hash,
}

impl PartitionStrategy {
    /// Its name in statements.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Range => "RANGE",
            Self::List => "LIST",
            Self::Hash => "HASH",
        }
    }
}

/// That a table's rows lie in partitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionedBy {
    /// How the key decides.
    pub strategy: PartitionStrategy,
    /// The columns of the key.
    pub columns: Vec<usize>,
    /// The partitions, in the order of their making.
    pub partitions: Vec<PartitionDef>,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionDef {
    /// The object id of its table.
    pub table: u32,
    /// Which keys are its own.
    pub bound: PartitionBound,
    /// Its indexes that an index of the partitioned table stands for: object ids of that one and of
    /// its own.
    pub indexes: Vec<(u32, u32)>,
}

/// Which keys a partition has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PartitionBound {
    /// From one key to before another.
    Range {
        /// The first key.
        from: Vec<RangeEnd>,
        /// The key behind the last.
        to: Vec<RangeEnd>,
    },
    /// These values.
    List(Vec<Value>),
    /// The hashes that leave this remainder.
    Hash {
        /// What hashes are divided by.
        modulus: u32,
        /// What is left then.
        remainder: u32,
    },
    /// All that no other has.
    Default,
}

/// A column of the end of a range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RangeEnd {
    /// MINVALUE
    Least,
    /// MAXVALUE
    Greatest,
    /// A value.
    Value(Value),
}
