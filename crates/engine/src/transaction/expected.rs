//! What foreign keys make an interactive transaction expect of others' rows, to be looked at
//! again when it commits: no lock keeps them so.
//!
//! A row that refers to another expects that one; a key that went expects that nobody refers to
//! it. Both are looked at when their statement ends, and by the commit, under the locks of the
//! partitions concerned. Whoever takes a key away holds the partitions of those who may refer to
//! it when it commits, and counts the removal there. So who refers to a key, and holds its own
//! partition, need not look again unless a removal was counted since it looked. Commits of rows
//! that refer are counted likewise, for those who take keys away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::catalog::{ForeignKeyDef, Table};
use crate::ground::row_id::RowId;

/// Rows referred to that are known one by one; of more only the counts are.
const SEEN_MAX: usize = 50_000;

/// When an expectation has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// When the statement ends, and when the transaction does.
    Statement,
    /// When the transaction ends: a deferred constraint's.
    Commit,
}

/// How the rows are found that refer to a key: by an index that begins with the referring
/// columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referring {
    /// The index's object id.
    pub index: u32,
    /// The key in it, or what its keys begin with.
    pub key: Box<[u8]>,
    /// It is the whole key.
    pub whole: bool,
}

/// What is expected.
#[derive(Debug, Clone)]
pub(crate) enum Expected {
    /// There is a row with the key that a row refers to, while that one does.
    Parent {
        /// The row that refers to it: the table's and the storage's numbers, ...
        table: u32,
        storage: u32,
        row: RowId,
        /// ... and what it has in the referring columns.
        reference: Box<[u8]>,
        /// The constraint's object id.
        constraint: u32,
        /// The key in the index referred to.
        key: Box<[u8]>,
    },
    /// No row refers to a key that went, unless a row has it again.
    NoChild {
        /// The table referred to, and the tuple that had the key.
        parent: u32,
        old: Arc<[u8]>,
        /// The table that may refer to it, and the constraint's object id.
        table: u32,
        constraint: u32,
        referring: Referring,
    },
}

/// An expectation and what is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Expectation {
    pub what: Expected,
    pub due: Due,
    /// It has been found to hold.
    pub seen: bool,
    /// It was due at the commit when it was noted.
    pub put_off: bool,
}

impl Expectation {
    /// What it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let kept = match &self.what {
            Expected::Parent { reference, key, .. } => reference.len() + key.len(),
            Expected::NoChild { old, referring, .. } => old.len() + referring.key.len(),
        };
        2 * size_of::<Self>() + kept + 32
    }
}

/// A row of a table that foreign keys refer to has gone, or has another key.
#[derive(Debug, Clone)]
pub struct RemovedKey {
    /// The table's object id.
    pub table: u32,
    /// The tuple that had the key.
    pub old: Arc<[u8]>,
    /// What it was changed to; None: it was deleted.
    pub new: Option<Arc<[u8]>>,
}

/// Where a count of a table's was before something was looked at that is counted there: keys that
/// were removed from one that is referred to, or commits of rows that refer.
#[derive(Debug)]
struct Counted {
    count: Arc<AtomicU64>,
    before: u64,
    of_removals: bool,
}

impl Counted {
    fn has_moved(&self) -> bool {
        self.count.load(Ordering::SeqCst) != self.before
    }
}

/// All that a transaction expects, in the order in which it came.
#[derive(Debug, Default)]
pub(crate) struct Expectations {
    entries: Vec<Expectation>,
    counted: Vec<Counted>,
    /// What has been seen is not known one by one any more.
    coarse: bool,
    /// Those before have been seen, or are not due when a statement ends.
    checked: usize,
    /// Those before are of a statement around, which looks at them itself.
    held: usize,
    /// Keys that went, and for which nothing has been done yet.
    removed: Vec<RemovedKey>,
    /// What SET CONSTRAINTS has said, the last word behind: of one constraint, or of all, and
    /// whether its checks are put off.
    said: Vec<(Option<u32>, bool)>,
    /// How much of that a savepoint may bring back.
    kept: usize,
}

/// What a statement has not looked at yet while another runs within it.
#[derive(Debug, Default)]
pub struct HeldExpectations {
    before: usize,
    checked: usize,
    removed: Vec<RemovedKey>,
}

/// A point to go back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpectedMark {
    entries: usize,
    removed: usize,
    said: usize,
}

impl Expectations {
    pub fn mark(&self) -> ExpectedMark {
        ExpectedMark {
            entries: self.entries.len(),
            removed: self.removed.len(),
            said: self.said.len(),
        }
    }

    /// The same, for a savepoint.
    pub fn savepoint(&mut self) -> ExpectedMark {
        self.kept = self.said.len();
        self.mark()
    }

    /// There is no savepoint any more.
    pub fn forget_savepoints(&mut self) {
        self.kept = 0;
    }

    /// Forgets what came since.
    pub fn forget_since(&mut self, mark: ExpectedMark) {
        self.entries.truncate(mark.entries);
        self.checked = self.checked.min(self.entries.len());
        self.held = self.held.min(self.entries.len());
        self.removed.truncate(mark.removed);
        if self.said.len() > mark.said {
            self.said.truncate(mark.said);
            // What was looked at because of it may have been found among what is taken back, too.
            for entry in self.entries.iter_mut().filter(|entry| entry.put_off) {
                entry.due = Due::Commit;
                entry.seen = false;
            }
        }
        self.kept = self.kept.min(mark.said);
    }

    /// Notes how often the keys of a table have been removed, before one of its rows is
    /// looked for.
    pub fn count_removals(&mut self, table: &Table) {
        self.count(&table.removals, true);
    }

    /// Notes how often rows of a table that refer to others have been committed, before some are
    /// looked for.
    pub fn count_referrals(&mut self, table: &Table) {
        self.count(&table.referrals, false);
    }

    fn count(&mut self, count: &Arc<AtomicU64>, of_removals: bool) {
        if !self
            .counted
            .iter()
            .any(|counted| Arc::ptr_eq(&counted.count, count))
        {
            self.counted.push(Counted {
                count: count.clone(),
                before: count.load(Ordering::SeqCst),
                of_removals,
            });
        }
    }

    /// Whether one of these counts of a table's has moved since it was noted.
    pub fn has_moved(&self, count: &Arc<AtomicU64>) -> bool {
        let mut counted = self.counted.iter();
        let counted = counted.find(|counted| Arc::ptr_eq(&counted.count, count));
        counted.is_none_or(Counted::has_moved)
    }

    /// Whether what is not known one by one may not be so any more.
    pub fn is_in_doubt(&self) -> bool {
        let moved = |counted: &Counted| counted.of_removals && counted.has_moved();
        self.coarse && self.counted.iter().any(moved)
    }

    pub fn push(&mut self, entry: Expectation) {
        if entry.seen && matches!(entry.what, Expected::Parent { .. }) {
            if self.coarse {
                return;
            }
            if self.entries.len() >= SEEN_MAX {
                let is_parent = |entry: &Expectation| matches!(entry.what, Expected::Parent { .. });
                let stays = |entry: &Expectation| !entry.seen || entry.put_off || !is_parent(entry);
                let around = self.entries[..self.held].iter();
                self.held = around.filter(|entry| stays(entry)).count();
                self.entries.retain(stays);
                self.coarse = true;
                self.checked = 0;
                return;
            }
        }
        self.entries.push(entry);
    }

    pub fn push_removed(&mut self, removed: RemovedKey) {
        self.removed.push(removed);
    }

    /// Leaves what has not been looked at to the statement at hand: one within it begins.
    pub fn hold(&mut self) -> HeldExpectations {
        let held = HeldExpectations {
            before: self.held,
            checked: self.checked,
            removed: std::mem::take(&mut self.removed),
        };
        self.held = self.entries.len();
        held
    }

    /// The statement within is over.
    pub fn resume(&mut self, held: HeldExpectations) {
        self.held = held.before.min(self.entries.len());
        self.checked = match self.coarse {
            // Their places are others.
            true => 0,
            false => held.checked.min(self.entries.len()),
        };
        let since = std::mem::replace(&mut self.removed, held.removed);
        self.removed.extend(since);
    }

    /// Those that a statement may look at.
    pub fn own_entries_mut(&mut self) -> &mut [Expectation] {
        let held = self.held.min(self.entries.len());
        &mut self.entries[held..]
    }

    pub fn entries(&self) -> &[Expectation] {
        &self.entries
    }

    pub fn take_removed(&mut self) -> Vec<RemovedKey> {
        std::mem::take(&mut self.removed)
    }

    pub fn any_removed(&self) -> bool {
        !self.removed.is_empty()
    }

    /// Whether something has to hold when a statement ends and has not been found to.
    pub fn any_unseen(&mut self) -> bool {
        let unseen = |entry: &Expectation| !entry.seen && entry.due == Due::Statement;
        let from = self.checked.max(self.held);
        let found = self.entries[from..].iter().position(unseen);
        self.checked = found.map_or(self.entries.len(), |found| from + found);
        found.is_some()
    }

    /// Whether something about a table's rows has not been looked at yet.
    pub fn is_pending_on(&self, of: u32) -> bool {
        self.entries.iter().any(|entry| {
            let (Expected::Parent { table, .. } | Expected::NoChild { table, .. }) = &entry.what;
            *table == of && !entry.seen
        })
    }

    /// When what a constraint expects has to hold.
    pub fn due(&self, def: &ForeignKeyDef) -> Due {
        let mut said = self.said.iter().rev();
        let said = said.find(|(of, _)| of.is_none_or(|constraint| constraint == def.oid));
        let said = said.map(|(_, deferred)| *deferred);
        match def.deferrable && said.unwrap_or(def.deferred) {
            true => Due::Commit,
            false => Due::Statement,
        }
    }

    /// SET CONSTRAINTS, of these or of all. What was put off and is not any more is looked at
    /// when the next statement ends.
    pub fn set_constraints(&mut self, constraints: Option<&[u32]>, deferred: bool) {
        // What no savepoint brings back is overruled for good.
        let since = self.said.split_off(self.kept.min(self.said.len()));
        match constraints {
            None => self.said.push((None, deferred)),
            Some(named) => {
                let stays =
                    |(of, _): &(Option<u32>, bool)| of.is_none_or(|of| !named.contains(&of));
                self.said.extend(since.into_iter().filter(stays));
                let named = named.iter().map(|constraint| (Some(*constraint), deferred));
                self.said.extend(named);
            }
        }
        if deferred {
            return;
        }
        self.checked = 0;
        for entry in &mut self.entries {
            let (Expected::Parent { constraint, .. } | Expected::NoChild { constraint, .. }) =
                &entry.what;
            if constraints.is_none_or(|named| named.contains(constraint)) {
                entry.due = Due::Statement;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(number: u32, seen: bool) -> Expectation {
        Expectation {
            what: Expected::Parent {
                table: 1,
                storage: 1,
                row: RowId::new(0, number),
                reference: [].into(),
                constraint: 7,
                key: [].into(),
            },
            due: Due::Statement,
            seen,
            put_off: false,
        }
    }

    #[test]
    fn what_constraints_are_set_to_is_taken_back() {
        let mut expected = Expectations::default();
        let put_off = Expectation {
            due: Due::Commit,
            put_off: true,
            ..parent(0, false)
        };
        expected.push(put_off);
        expected.set_constraints(Some(&[7]), true);
        expected.set_constraints(None, true);
        assert_eq!(expected.said, [(None, true)]);
        let mark = expected.savepoint();
        expected.set_constraints(Some(&[7, 8]), false);
        expected.set_constraints(Some(&[7]), false);
        assert_eq!(
            expected.said,
            [(None, true), (Some(8), false), (Some(7), false)]
        );
        assert!(expected.any_unseen());
        expected.own_entries_mut()[0].seen = true;
        expected.forget_since(mark);
        assert_eq!(expected.said, [(None, true)]);
        let entry = &expected.entries()[0];
        assert!(entry.due == Due::Commit && !entry.seen);
        expected.forget_savepoints();
        expected.set_constraints(None, false);
        assert_eq!(expected.said, [(None, false)]);
    }

    #[test]
    fn many_that_were_seen_are_known_by_count_and_the_others_stay() {
        let removals = Arc::new(AtomicU64::new(3));
        let mut expected = Expectations::default();
        expected.count(&removals, true);
        expected.push(parent(0, false));
        for number in 0..=SEEN_MAX as u32 {
            expected.push(parent(number, true));
        }
        assert_eq!(expected.entries().len(), 1);
        assert!(expected.any_unseen() && !expected.is_in_doubt());
        removals.fetch_add(1, Ordering::SeqCst);
        assert!(expected.is_in_doubt() && expected.has_moved(&removals));
    }

    #[test]
    fn a_statement_within_another_leaves_what_is_the_others() {
        let removed = |table| RemovedKey {
            table,
            old: [].into(),
            new: None,
        };
        let mut expected = Expectations::default();
        expected.push(parent(0, false));
        expected.push_removed(removed(1));
        let held = expected.hold();
        assert!(!expected.any_unseen() && !expected.any_removed());
        expected.push(parent(1, false));
        expected.push_removed(removed(2));
        assert!(expected.any_unseen());
        assert_eq!(expected.own_entries_mut().len(), 1);
        expected.own_entries_mut()[0].seen = true;
        assert!(!expected.any_unseen());
        expected.resume(held);
        assert!(expected.any_unseen());
        let tables: Vec<u32> = expected
            .take_removed()
            .iter()
            .map(|one| one.table)
            .collect();
        assert_eq!(tables, [1, 2]);
    }

    #[test]
    fn what_came_since_a_mark_is_forgotten() {
        let mut expected = Expectations::default();
        expected.push(parent(0, true));
        let mark = expected.mark();
        expected.push(parent(1, false));
        expected.push_removed(RemovedKey {
            table: 1,
            old: [].into(),
            new: None,
        });
        expected.forget_since(mark);
        assert!(!expected.any_unseen() && !expected.any_removed());
        assert_eq!(expected.entries().len(), 1);
    }
}
