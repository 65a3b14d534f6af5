//! Named places at which the program kills itself, as an outside `kill -9` would. So a
//! crash can be had at the worst moments and not only at random ones.
//!
//! Compiled in with the cargo feature `stop-points` only; without it each call is nothing.
//! `THERMOCLINE_STOP_AT=name` stops at the first time that the place is reached,
//! `THERMOCLINE_STOP_AT=name:n` at the n-th. `scripts/kill9.sh` goes through all of them.
//! What a kill can't show is a loss of power: that is what [`crate::SimulatedDevice`] is for.

/// A place where the program can be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPoint {
    /// A part of a log group is written.
    LogMidGroup,
    /// A log group is written and not synced.
    LogBeforeSync,
    /// A log group is durable, and nobody was told.
    LogBeforeAcknowledge,
    /// The header of the next log segment is durable; the segment has no name yet.
    LogRotate,
    /// The next log segment has its name; the directory is not synced.
    LogRotated,
    /// A log segment was given up, others that could be are left.
    LogTruncate,
    /// Half of a block is written.
    MidBlock,
    /// A block is written; no directory word leads to it yet.
    BlockFooter,
    /// A partition's cut is taken, its image not written.
    CheckpointCut,
    /// All images and the Block Table are written, the manifest not.
    CheckpointTable,
    /// The new manifest is durable under its temporary name.
    ManifestBeforeRename,
    /// The new manifest is renamed; the directory is not synced.
    ManifestAfterRename,
    /// The new manifest is durable; what it makes useless is still there.
    CheckpointBeforeTruncate,
    /// Compaction's copy is written, no word leads to it.
    CompactionCopied,
    /// A part of the words leads to compaction's copy.
    CompactionSwing,
    /// Recovery has read the manifest.
    RecoveryManifest,
    /// Recovery has put a partition's image in place.
    RecoveryImages,
    /// Recovery has applied what a record of the log says of a partition.
    RecoveryReplay,
    /// Recovery has applied a partition's share of the log; rows that did not commit are still
    /// there.
    RecoverySettle,
    /// Recovery has read the log, and nobody was answered.
    RecoveryDone,
    /// A partition is there and others are not: statements are answered.
    RecoveryPartition,
}

/// A place where a statement can be made to panic: `THERMOCLINE_PANIC_AT=name` or `name:n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanicPoint {
    /// A statement is about to change a row, and may have changed others; under the lock of
    /// its partition.
    Statement,
    /// A row is in the heap, and not in all indexes.
    Change,
}

#[cfg(feature = "stop-points")]
pub use compiled::{check_stop_point, panic_at, stop_amid, stop_at};

/// Panics here if that was asked for.
#[cfg(not(feature = "stop-points"))]
#[inline(always)]
pub fn panic_at(_point: PanicPoint) {}

/// Stops here if that was asked for.
#[cfg(not(feature = "stop-points"))]
#[inline(always)]
pub fn stop_at(_point: StopPoint) {}

/// Stops here if that was asked for, after doing a part of what comes next.
#[cfg(not(feature = "stop-points"))]
#[inline(always)]
pub fn stop_amid(_point: StopPoint, _part: impl FnOnce()) {}

#[cfg(feature = "stop-points")]
mod compiled {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{PanicPoint, StopPoint};
    use crate::sys;

    const PANIC_VARIABLE: &str = "THERMOCLINE_PANIC_AT";
    const PANICS: [(&str, PanicPoint); 2] = [
        ("statement", PanicPoint::Statement),
        ("change", PanicPoint::Change),
    ];
    static WANTED_PANIC: LazyLock<Option<(PanicPoint, u64)>> = LazyLock::new(|| {
        let text = std::env::var(PANIC_VARIABLE).ok()?;
        let (name, nth) = text.split_once(':').unwrap_or((&text, "1"));
        let point = PANICS.iter().find(|(known, _)| *known == name)?;
        Some((point.1, nth.parse().ok()?))
    });
    static PANIC_REACHED: AtomicU64 = AtomicU64::new(0);

    /// Panics here if that was asked for.
    pub fn panic_at(point: PanicPoint) {
        if let Some((wanted, nth)) = *WANTED_PANIC
            && wanted == point
            && PANIC_REACHED.fetch_add(1, Ordering::Relaxed) + 1 == nth
        {
            panic!("asked for at {point:?}");
        }
    }

    const VARIABLE: &str = "THERMOCLINE_STOP_AT";

    const NAMES: [(&str, StopPoint); 21] = [
        ("log-mid-group", StopPoint::LogMidGroup),
        ("log-before-sync", StopPoint::LogBeforeSync),
        ("log-before-acknowledge", StopPoint::LogBeforeAcknowledge),
        ("log-rotate", StopPoint::LogRotate),
        ("log-rotated", StopPoint::LogRotated),
        ("log-truncate", StopPoint::LogTruncate),
        ("mid-block", StopPoint::MidBlock),
        ("block-footer", StopPoint::BlockFooter),
        ("checkpoint-cut", StopPoint::CheckpointCut),
        ("checkpoint-table", StopPoint::CheckpointTable),
        ("manifest-before-rename", StopPoint::ManifestBeforeRename),
        ("manifest-after-rename", StopPoint::ManifestAfterRename),
        (
            "checkpoint-before-truncate",
            StopPoint::CheckpointBeforeTruncate,
        ),
        ("compaction-copied", StopPoint::CompactionCopied),
        ("compaction-swing", StopPoint::CompactionSwing),
        ("recovery-manifest", StopPoint::RecoveryManifest),
        ("recovery-images", StopPoint::RecoveryImages),
        ("recovery-replay", StopPoint::RecoveryReplay),
        ("recovery-settle", StopPoint::RecoverySettle),
        ("recovery-done", StopPoint::RecoveryDone),
        ("recovery-partition", StopPoint::RecoveryPartition),
    ];

    type Wanted = Result<Option<(StopPoint, u64)>, String>;

    static WANTED: LazyLock<Wanted> =
        LazyLock::new(|| std::env::var(VARIABLE).map_or(Ok(None), |text| parse(&text).map(Some)));
    /// How often the wanted place is still to be passed, the stop included.
    static REACHED: AtomicU64 = AtomicU64::new(0);

    pub(super) fn parse(text: &str) -> Result<(StopPoint, u64), String> {
        let (name, nth) = text.split_once(':').unwrap_or((text, "1"));
        let point = NAMES.iter().find(|(known, _)| *known == name);
        match (point, nth.parse()) {
            (Some((_, point)), Ok(nth)) if nth > 0 => Ok((*point, nth)),
            _ => {
                let names = NAMES.map(|(known, _)| known).join(", ");
                Err(format!(
                    "{VARIABLE} is \"{text}\"; it must be name or name:n, with a name of: {names}"
                ))
            }
        }
    }

    /// What is wrong with the environment's wish, if something is.
    pub fn check_stop_point() -> Result<(), String> {
        WANTED.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// Stops here if that was asked for.
    pub fn stop_at(point: StopPoint) {
        stop_amid(point, || {});
    }

    /// Stops here if that was asked for, after doing a part of what comes next.
    pub fn stop_amid(point: StopPoint, part: impl FnOnce()) {
        if let Ok(Some((wanted, nth))) = &*WANTED
            && *wanted == point
            && REACHED.fetch_add(1, Ordering::Relaxed) + 1 == *nth
        {
            part();
            sys::kill_this_process();
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn each_point_has_one_name_and_nothing_else_is_one() {
            for (number, (name, point)) in NAMES.iter().enumerate() {
                assert_eq!(*point as usize, number, "{name}");
                assert_eq!(parse(name), Ok((*point, 1)));
                assert_eq!(parse(&format!("{name}:7")), Ok((*point, 7)));
            }
            for wrong in ["", "mid", "mid-block:", "mid-block:0", "mid-block:x"] {
                assert!(parse(wrong).unwrap_err().contains("block-footer"));
            }
        }
    }
}
