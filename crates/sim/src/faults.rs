//! What goes wrong with the device while the database runs, and which errors may follow.

use std::io;

use thermocline_device::{Fault, Operation};
use thermocline_engine::Error;

use crate::world::World;

/// Files of which the device may lose a write and say that it wrote it. Not the log's: a
/// group that is lost is the log's end.
const LIED_ABOUT: [&str; 3] = ["blocks", "checkpoint-", "manifest"];

/// Whether an error says where the damage is.
pub fn names_a_file(what: &str) -> bool {
    LIED_ABOUT.iter().any(|file| what.contains(file))
}

impl World {
    /// Judges an error that a client was told.
    pub fn check_error(&self, of: &str, error: &Error, interactive: bool) {
        let device = self.device.is_halted() || self.habits.faulty;
        let in_order = match error {
            Error::Serialization(_) | Error::Deadlock => interactive,
            Error::UniqueViolation { .. } => true,
            Error::LockTimeout | Error::Timeout | Error::StalePlan => true,
            Error::LockNotAvailable(_) => of == "a table lock",
            Error::Catalog { .. } => of.starts_with("a definition"),
            Error::Io(..) | Error::LogFailed(_) | Error::DiskFull(_) => device,
            Error::Corrupt(what) => self.habits.faulty && names_a_file(what),
            // More than its share of a very small limit.
            Error::OutOfMemory(_) => interactive || self.habits.outgrows,
            Error::SnapshotTooOld => interactive && self.habits.forgets,
            _ => false,
        };
        if !in_order {
            self.fail(format!("{of} failed: {error} ({})", error.sqlstate()));
        }
        self.errors.set(self.errors.get() + u64::from(device));
    }

    /// The device fails in one of its ways, and for one operation only; what is full is
    /// emptied again.
    pub fn strike(&self) {
        if self.habits.lies > 0 {
            return self.lie();
        }
        let failed = io::ErrorKind::Other;
        match self.below(12) {
            0..2 => self.device.fail_next(Operation::Read, failed),
            2..4 => self.device.inject("blocks", Fault::ShortRead),
            4..6 => {
                let sectors = 1 + self.below(3) as i64;
                self.device
                    .inject("blocks", Fault::MisdirectedRead { sectors });
            }
            6 => self.device.inject("blocks", Fault::ShortWrite),
            7 => self.device.fail_next(Operation::Write, failed),
            8 if self.percent(30) => self.device.fail_next(Operation::Sync, failed),
            9 => self.device.set_capacity_bytes(Some(0)),
            _ => self.device.set_capacity_bytes(None),
        }
    }

    /// The device says that it wrote what it did not write, or wrote elsewhere.
    fn lie(&self) {
        let Some(left) = self.lies.get().checked_sub(1) else {
            return;
        };
        self.lies.set(left);
        // Most writes are to blocks, and most of what is lost there is never read again.
        let file = match self.below(10) {
            0..6 => LIED_ABOUT[0],
            6..9 => LIED_ABOUT[1],
            _ => LIED_ABOUT[2],
        };
        let sectors = [-40, -8, -1, 1, 3, 16][self.below(6)];
        self.device.inject(
            file,
            match self.percent(50) {
                true => Fault::LostWrite,
                false => Fault::MisdirectedWrite { sectors },
            },
        );
    }
}
