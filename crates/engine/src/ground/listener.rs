//! Who is told how far opening a database has come. Who tells it is `restart`.

use std::fmt;
use std::sync::Arc;

/// A part of opening a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryPart {
    /// The log's tail is read.
    Log,
    /// Partitions come, while statements are answered by those that are there.
    Partitions,
}

/// How far a part of opening a database has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryProgress {
    /// Which part.
    pub part: RecoveryPart,
    /// Bytes or partitions done.
    pub done: u64,
    /// Of so many.
    pub total: u64,
}

/// Is told how far opening a database has come, once a second for each part that
/// takes longer, and when all partitions are there; from any thread.
#[derive(Clone)]
pub struct RecoveryListener(Arc<dyn Fn(RecoveryProgress) + Send + Sync>);

impl RecoveryListener {
    /// Has `tell` called.
    pub fn new(tell: impl Fn(RecoveryProgress) + Send + Sync + 'static) -> Self {
        RecoveryListener(Arc::new(tell))
    }

    pub(crate) fn tell(&self, progress: RecoveryProgress) {
        (self.0)(progress);
    }
}

impl fmt::Debug for RecoveryListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryListener")
    }
}
