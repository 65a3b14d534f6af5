//! Why the block store can't do what was asked.

use std::fmt;
use std::io;

/// Why the block store can't do what was asked.
#[derive(Debug)]
pub enum BlockStoreError {
    /// The device failed.
    Io {
        /// What was done.
        doing: &'static str,
        /// What the device said.
        source: io::Error,
    },
    /// There is no space left on the device.
    StorageFull,
    /// All block ids were used.
    OutOfIds,
    /// The table has no such block.
    UnknownBlock(u32),
    /// The file or the checkpoint's table is not what was written.
    Corrupt(&'static str),
    /// A sync failed before; what is on the device is not known.
    Failed,
    /// The tablespace is not there.
    Missing {
        /// Its number.
        number: u16,
        /// Why not.
        why: String,
    },
}

impl BlockStoreError {
    pub(super) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::StorageFull,
            _ => Self::Io { doing, source },
        }
    }
}

impl fmt::Display for BlockStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, source } => write!(f, "blocks: {doing}: {source}"),
            Self::StorageFull => f.write_str("no space left for blocks"),
            Self::OutOfIds => f.write_str("no block ids left"),
            Self::UnknownBlock(id) => write!(f, "there is no block {id}"),
            Self::Corrupt(what) => write!(f, "blocks are corrupt: {what}"),
            Self::Failed => f.write_str("blocks: a sync has failed before"),
            Self::Missing { number, why } => {
                write!(f, "the blocks of tablespace {number} are not there: {why}")
            }
        }
    }
}

impl std::error::Error for BlockStoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
