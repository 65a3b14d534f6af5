//! What backups ask of the rest of the database while they run: that files stay, and what of the
//! log is in the archive.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// What backups ask of the rest of the database.
#[derive(Debug, Default)]
pub(crate) struct BackupState {
    pub running: Mutex<()>,
    /// How many want no checkpoint file and no log to be removed.
    pub holding: AtomicU64,
    /// The log up to here is in the archive.
    pub archived: AtomicU64,
    /// After a failure the archive rests until then.
    pub archive_again: Mutex<Duration>,
}

impl BackupState {
    /// Whether files of old checkpoints, and the log before them, must stay.
    pub fn holds_files(&self) -> bool {
        self.holding.load(Ordering::SeqCst) > 0
    }
}
