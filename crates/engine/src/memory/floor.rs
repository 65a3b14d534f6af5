//! The floor of hot rows: a share of the limit that what cannot leave memory may not take.
//!
//! Of each row its place and its index entries stay in memory when it is evicted. A table
//! that grows takes more and more of the limit by them. What is left for rows becomes so
//! little that every statement reads the device, for everybody, long before anything is full.
//! So directories, indexes and the catalog may grow up to the limit less the floor, less what
//! the program itself needs. The operator is warned before, and then whoever would make them
//! grow is refused, with the figures. Reads, deletes and updates go on.
//!
//! What the program needs is measured: the least, over some time, of what is resident
//! and neither arena nor counted here. What comes and goes (queries, buffers, code that ran
//! once) is no reason to refuse a row.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::ground::error::Error;

/// Hot rows keep one part in so many of the limit.
const FLOOR_SHARE: u64 = 6;
/// However much others take, so large a share may be directories and indexes: refusing
/// rows would not help.
const ALWAYS_SHARE: u64 = 8;
/// The least of the rest is that of this time, and of as much before.
const WINDOW: Duration = Duration::from_secs(10);
/// Percent of what directories and indexes may take at which the operator is warned.
const WARN_AT: [u64; 2] = [75, 90];

/// See the head of the file.
#[derive(Debug, Default)]
pub(crate) struct Floor {
    /// Directories, indexes and catalog at the last count.
    metadata: AtomicU64,
    /// The program's own memory.
    rest: AtomicU64,
    windows: Mutex<Windows>,
    refuses: AtomicBool,
    /// How many of the marks in [`WARN_AT`] have been passed.
    warned: AtomicUsize,
}

#[derive(Debug, Default)]
struct Windows {
    since: Option<Duration>,
    least: u64,
    least_before: u64,
}

impl Windows {
    /// The least of the last readings, this one included.
    fn least(&mut self, now: Duration, reading: u64) -> u64 {
        match self.since {
            None => {
                (self.since, self.least, self.least_before) = (Some(now), reading, reading);
            }
            Some(since) if now.saturating_sub(since) >= WINDOW => {
                self.least_before = std::mem::replace(&mut self.least, reading);
                self.since = Some(now);
            }
            Some(_) => self.least = self.least.min(reading),
        }
        self.least.min(self.least_before)
    }
}

/// What hot rows keep of a limit.
pub(crate) fn floor_bytes(limit: u64) -> u64 {
    limit / FLOOR_SHARE
}

impl Floor {
    /// What directories, indexes and catalog take, in bytes.
    pub fn metadata(&self) -> u64 {
        self.metadata.load(Ordering::Relaxed)
    }

    /// What they may take of the `lasting` bytes below the line where eviction begins.
    pub fn metadata_max(&self, limit: u64, lasting: u64) -> u64 {
        let taken = floor_bytes(limit) + self.rest.load(Ordering::Relaxed);
        lasting.saturating_sub(taken).max(limit / ALWAYS_SHARE)
    }

    /// A count of directories, indexes and catalog was taken, and so much was resident beside the
    /// arena. What to tell the operator, if anything.
    pub fn note(
        &self,
        now: Duration,
        metadata: u64,
        beside_arena: u64,
        (limit, lasting): (u64, u64),
    ) -> Option<String> {
        let rest = beside_arena.saturating_sub(metadata);
        let rest = self.windows.lock().least(now, rest);
        self.rest.store(rest, Ordering::Relaxed);
        self.metadata.store(metadata, Ordering::Relaxed);
        let most = self.metadata_max(limit, lasting);
        self.refuses.store(metadata >= most, Ordering::Relaxed);
        let passed = |percent: &&u64| metadata >= most / 100 * **percent;
        let marks = WARN_AT.iter().filter(passed).count() + usize::from(metadata >= most);
        let before = self.warned.swap(marks, Ordering::Relaxed);
        (marks > before).then(|| {
            let then = match metadata >= most {
                true => "new rows and indexes are refused (53200)",
                false => "new rows and indexes will be refused then (53200)",
            };
            format!(
                "memory: {}; {then}; raise memory_limit",
                self.figures(limit, lasting)
            )
        })
    }

    /// Whether what would make directories, indexes or catalog grow is refused.
    #[inline]
    pub fn refuses(&self) -> bool {
        self.refuses.load(Ordering::Relaxed)
    }

    /// Whether so many bytes of index have no place.
    pub fn refuses_index(&self, bytes: u64, limit: u64, lasting: u64) -> bool {
        self.metadata() + bytes > self.metadata_max(limit, lasting)
    }

    fn figures(&self, limit: u64, lasting: u64) -> Figures {
        Figures {
            metadata: self.metadata(),
            most: self.metadata_max(limit, lasting),
            limit,
            rest: self.rest.load(Ordering::Relaxed),
        }
    }

    /// What someone is told who would make them grow by more than there is.
    pub fn refusal(&self, what: &str, limit: u64, lasting: u64) -> Error {
        Error::Refused {
            sqlstate: "53200",
            message: format!("out of memory for {what}: {}", self.figures(limit, lasting)),
            hint: "Raise memory_limit, or drop indexes or tables that are not needed. Evicted \
                   rows keep their place and their index entries in memory.",
        }
    }
}

struct Figures {
    metadata: u64,
    most: u64,
    limit: u64,
    rest: u64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "row directories, indexes and catalog take {:.1} MB of the {:.1} MB that they may \
             take (memory_limit is {:.0} MB, of which {:.1} MB are kept for hot rows and the \
             program needs {:.1} MB)",
            mb(self.metadata),
            mb(self.most),
            mb(self.limit),
            mb(floor_bytes(self.limit)),
            mb(self.rest),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const LIMITS: (u64, u64) = (120 * MIB, 116 * MIB);

    fn note(floor: &Floor, second: u64, metadata: u64, rest: u64) -> Option<String> {
        let beside = (metadata + rest) * MIB;
        floor.note(Duration::from_secs(second), metadata * MIB, beside, LIMITS)
    }

    #[test]
    fn the_operator_is_warned_before_rows_are_refused() {
        let floor = Floor::default();
        assert_eq!(note(&floor, 0, 10, 16), None);
        // 116 less the floor of 20 and 16 of the program are 80.
        assert!(
            note(&floor, 1, 61, 16)
                .expect("at three quarters")
                .contains("61.0 MB of the 80.0")
        );
        assert_eq!(note(&floor, 1, 62, 16), None, "once");
        assert!(note(&floor, 1, 73, 16).is_some() && !floor.refuses());
        assert!(note(&floor, 1, 80, 16).is_some() && floor.refuses());
        let error = floor.refusal("a row", LIMITS.0, LIMITS.1);
        assert_eq!(error.sqlstate(), "53200");
        assert!(error.hint().expect("there is one").contains("memory_limit"));
        assert_eq!(note(&floor, 1, 70, 16), None);
        assert!(!floor.refuses(), "there is room again");
        assert!(floor.refuses_index(11 * MIB, LIMITS.0, LIMITS.1));
        assert!(!floor.refuses_index(9 * MIB, LIMITS.0, LIMITS.1));
    }

    #[test]
    fn what_comes_and_goes_is_no_reason_to_refuse_a_row() {
        let floor = Floor::default();
        note(&floor, 0, 50, 16);
        note(&floor, 5, 50, 60);
        note(&floor, 15, 50, 60);
        assert!(!floor.refuses(), "it was less a while ago");
        note(&floor, 24, 50, 60);
        note(&floor, 26, 50, 60);
        assert!(floor.refuses(), "it stays");
        note(&floor, 27, 50, 16);
        assert!(!floor.refuses());
    }

    #[test]
    fn refusing_rows_is_no_answer_to_what_others_take() {
        let floor = Floor::default();
        note(&floor, 0, 1, 400);
        assert!(!floor.refuses());
        note(&floor, 0, 16, 400);
        assert!(floor.refuses());
    }
}
