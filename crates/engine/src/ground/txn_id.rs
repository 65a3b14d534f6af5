//! The number of a transaction, by which rows, locks and the log know it.

/// A transaction's number; never used twice in the life of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TxnId(pub u64);

/// A commit's place in the order of commits.
pub type Timestamp = u64;
