//! Joins of the short path: nested loops in which an index leads to the rows of each table.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{ColumnsUsed, Path, Source};
use crate::expr::Expr;

/// A table whose rows are looked up for each row of the tables before it.
#[derive(Clone, Debug)]
pub struct JoinStep {
    /// How they are found. Keys and conditions read the row before as [`Expr::Outer`].
    pub source: Source,
    /// Where the table's columns begin in the joined row.
    pub begin: usize,
    /// What the rows that are found do to the row before.
    pub kind: StepKind,
    /// What the row must satisfy after a LEFT JOIN.
    pub after: Option<Expr>,
    /// What statistics of columns count.
    pub used: ColumnsUsed,
}

/// What the rows of a table do to the row to which they belong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// Each is joined to it.
    Inner,
    /// LEFT JOIN: likewise, and without any it stays, with NULLs.
    Left,
    /// `EXISTS`, `IN`: with any it stays as it is.
    Semi,
    /// `NOT EXISTS`: without any it stays as it is.
    Anti,
}

/// How often in a row a join has gone over too many rows and left. One that has twice leaves at
/// once, and tries again now and then: until it leaves it keeps all partitions from others.
#[derive(Debug, Default)]
pub struct Departures(AtomicU32);

impl Departures {
    const TRIED: u32 = 2;
    const TRIES_AGAIN: u32 = 64;

    /// Whether it is better not to try.
    pub(crate) fn leaves_at_once(&self) -> bool {
        let left = self.0.load(Ordering::Relaxed);
        if left < Self::TRIED {
            return false;
        }
        let tries = left.is_multiple_of(Self::TRIES_AGAIN);
        self.0
            .store(left.wrapping_add(1).max(Self::TRIED), Ordering::Relaxed);
        !tries
    }

    /// It has left after a try, or was short.
    pub(crate) fn tried(&self, has_left: bool) {
        match has_left {
            true => self.0.fetch_add(1, Ordering::Relaxed),
            false => self.0.swap(0, Ordering::Relaxed),
        };
    }
}

/// How well the way to a table's rows bounds them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Bounded {
    /// Not at all.
    Not,
    /// By a range.
    Range,
    /// By some columns of a key.
    Prefix,
    /// By a key of which there may be many.
    Key,
    /// By a key of which there is one.
    UniqueKey,
}

impl Bounded {
    /// How well this way does.
    pub(crate) fn by(source: &Source) -> Self {
        match &source.path {
            Path::Scan => Self::Not,
            Path::Row(_) => Self::UniqueKey,
            Path::Probe(probe) if probe.is_unique(&source.table) => Self::UniqueKey,
            Path::Probe(probe) if probe.is_exact(&source.table) => Self::Key,
            Path::Probe(probe) if !probe.keys.is_empty() => Self::Prefix,
            Path::Probe(probe) if probe.is_bounded() => Self::Range,
            Path::Probe(_) => Self::Not,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_left_twice_leaves_at_once_and_tries_now_and_then() {
        let departures = Departures::default();
        assert!(!departures.leaves_at_once());
        departures.tried(true);
        assert!(!departures.leaves_at_once());
        departures.tried(true);
        let tries = (0..640).filter(|_| !departures.leaves_at_once()).count();
        assert_eq!(tries, 10);
        departures.tried(false);
        assert!(!departures.leaves_at_once());
    }
}
