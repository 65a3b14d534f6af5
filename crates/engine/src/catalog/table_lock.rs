//! Locks of tables: PostgreSQL's eight modes, its table of conflicts, and one gate a table.
//!
//! A gate stays with its table whatever DDL makes of it. It knows who holds which modes and
//! who waits for one, in order: nobody passes one who waits for what he wants to take, unless
//! that one waits for him. So a strong lock gets its turn, however many weak ones come.
//!
//! A statement of its own that changes or reads rows holds its partitions and
//! nothing else. It looks at one word, [`Gate::is_closed_to`], under a partition's lock. Who is
//! granted a strong mode takes and gives back each partition once after that
//! (`Database::lock_table`): whoever had looked before is done then.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::ground::txn_id::{Timestamp, TxnId};
use crate::ground::wait::Event;

/// What a definition locks beside tables, so that no two change it at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LockedObject {
    /// A name that a relation of a schema is to have.
    Name(String, String),
    /// A schema, by name: whoever puts something into it shares it.
    Schema(String),
    /// A sequence.
    Sequence(u32),
    /// A view; whoever makes one that reads it shares it.
    View(u32),
    /// The functions of a schema that have this name.
    Function(String, String),
    /// A type; whoever makes something of it shares it.
    Type(u32),
    /// A table to which indexes are added: whose rows others may read meanwhile.
    Indexes(u32),
    /// A tablespace; whoever puts a table there shares it.
    Tablespace(u32),
    /// The name that a tablespace is to have.
    TablespaceName(String),
    /// Roles and rights.
    Authority,
}

/// How much a lock of a table keeps others from, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// Who reads.
    AccessShare,
    /// Who locks rows.
    RowShare,
    /// Who changes rows.
    RowExclusive,
    /// Maintenance: one at a time.
    ShareUpdateExclusive,
    /// Rows stay as they are.
    Share,
    /// They stay, and nobody else wants the same.
    ShareRowExclusive,
    /// Others may only read.
    Exclusive,
    /// Nobody else does anything.
    AccessExclusive,
}

/// A set of modes.
pub(crate) type Modes = u16;

impl LockMode {
    /// All, the weakest first.
    pub const ALL: [Self; 8] = [
        Self::AccessShare,
        Self::RowShare,
        Self::RowExclusive,
        Self::ShareUpdateExclusive,
        Self::Share,
        Self::ShareRowExclusive,
        Self::Exclusive,
        Self::AccessExclusive,
    ];

    pub(crate) const fn bit(self) -> Modes {
        1 << self as u16
    }

    /// The modes that nobody else may hold beside this one.
    pub(crate) const fn conflicts(self) -> Modes {
        use LockMode as M;
        const AE: Modes = M::AccessExclusive.bit();
        const E: Modes = AE | M::Exclusive.bit();
        const CHANGING: Modes = E | M::ShareRowExclusive.bit() | M::Share.bit();
        match self {
            M::AccessShare => AE,
            M::RowShare => E,
            M::RowExclusive => CHANGING,
            M::ShareUpdateExclusive => CHANGING | M::ShareUpdateExclusive.bit(),
            M::Share => {
                E | M::ShareRowExclusive.bit()
                    | M::ShareUpdateExclusive.bit()
                    | M::RowExclusive.bit()
            }
            M::ShareRowExclusive => {
                CHANGING | M::ShareUpdateExclusive.bit() | M::RowExclusive.bit()
            }
            M::Exclusive => {
                CHANGING | M::ShareUpdateExclusive.bit() | M::RowExclusive.bit() | M::RowShare.bit()
            }
            M::AccessExclusive => 0xff,
        }
    }

    /// Whether two transactions may not hold these at the same time.
    #[must_use]
    pub const fn conflicts_with(self, other: Self) -> bool {
        self.conflicts() & other.bit() != 0
    }

    /// Whether it keeps out statements that look at the gate's word and hold nothing.
    pub(crate) const fn is_strong(self) -> bool {
        self as u16 >= Self::Share as u16
    }

    /// As `pg_locks` names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccessShare => "AccessShareLock",
            Self::RowShare => "RowShareLock",
            Self::RowExclusive => "RowExclusiveLock",
            Self::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
            Self::Share => "ShareLock",
            Self::ShareRowExclusive => "ShareRowExclusiveLock",
            Self::Exclusive => "ExclusiveLock",
            Self::AccessExclusive => "AccessExclusiveLock",
        }
    }

    /// The modes of a set.
    pub(crate) fn of(modes: Modes) -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(move |mode| modes & mode.bit() != 0)
    }
}

/// All that these modes keep others from.
fn conflicts_of(modes: Modes) -> Modes {
    LockMode::of(modes).fold(0, |all, mode| all | mode.conflicts())
}

/// Of the modes that are taken by a look, those that somebody's lock or wait keeps others
/// from. In a cache line that is written when that changes and never else.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Closed(AtomicU32);

/// The modes that statements of their own take by a look.
const LOOKED_AT: Modes =
    LockMode::AccessShare.bit() | LockMode::RowShare.bit() | LockMode::RowExclusive.bit();

/// What stands before a table. See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// The table's object id; 0: of something else.
    pub table: u32,
    closed: Closed,
    /// When the table's rows were last thrown away by a commit: TRUNCATE and the like.
    emptied: AtomicU64,
    queue: Mutex<Queue>,
    /// A lock was granted to one who waits.
    pub changed: Event,
}

/// Who waits for what, in order.
pub(crate) type Line = VecDeque<(TxnId, LockMode)>;

#[derive(Debug, Default)]
struct Queue {
    held: Vec<(TxnId, Modes)>,
    waiting: Line,
}

impl Queue {
    fn held_by(&self, owner: TxnId) -> Modes {
        let held = self.held.iter().find(|(other, _)| *other == owner);
        held.map_or(0, |(_, modes)| *modes)
    }

    fn in_the_way<'q>(&'q self, owner: TxnId, mode: LockMode) -> impl Iterator<Item = TxnId> + 'q {
        self.held
            .iter()
            .filter(move |(other, modes)| *other != owner && modes & mode.conflicts() != 0)
            .map(|(other, _)| *other)
    }

    /// Where one who wants a mode stands: before the first that waits for what he holds.
    fn place(&self, owner: TxnId) -> usize {
        let held = self.held_by(owner);
        let waits_for_him =
            |(other, mode): &(TxnId, LockMode)| *other != owner && mode.conflicts() & held != 0;
        let place = self.waiting.iter().position(waits_for_him);
        place.unwrap_or(self.waiting.len())
    }

    fn ahead(&self, place: usize, mode: LockMode) -> impl Iterator<Item = TxnId> + '_ {
        let ahead = self.waiting.iter().take(place);
        ahead
            .filter(move |(_, other)| other.conflicts_with(mode))
            .map(|(other, _)| *other)
    }

    fn may_take(&self, owner: TxnId, mode: LockMode, place: usize) -> bool {
        self.in_the_way(owner, mode).next().is_none()
            && self.ahead(place, mode).all(|other| other == owner)
    }

    fn hold(&mut self, owner: TxnId, mode: LockMode) {
        match self.held.iter_mut().find(|(other, _)| *other == owner) {
            Some((_, modes)) => *modes |= mode.bit(),
            None => self.held.push((owner, mode.bit())),
        }
    }

    fn release(&mut self, owner: TxnId, mode: LockMode) {
        if let Some(at) = self.held.iter().position(|(other, _)| *other == owner) {
            self.held[at].1 &= !mode.bit();
            if self.held[at].1 == 0 {
                self.held.swap_remove(at);
            }
        }
    }

    /// Grants what can be, in order. Whether anything was.
    fn grant(&mut self) -> bool {
        let mut granted = false;
        let mut place = 0;
        while let Some(&(owner, mode)) = self.waiting.get(place) {
            if self.may_take(owner, mode, place) {
                self.waiting.remove(place);
                self.hold(owner, mode);
                granted = true;
            } else {
                place += 1;
            }
        }
        granted
    }

    fn closed(&self) -> Modes {
        let held = self.held.iter().fold(0, |all, (_, modes)| all | modes);
        let wanted = self
            .waiting
            .iter()
            .fold(0, |all, (_, mode)| all | mode.bit());
        conflicts_of(held | wanted) & LOOKED_AT
    }
}

impl Gate {
    /// The gate of a table that nobody knows yet.
    pub fn of(table: u32) -> Self {
        Gate {
            table,
            ..Gate::default()
        }
    }

    /// Whether one who holds nothing may not pass in this mode, which is a weak one.
    #[inline]
    pub fn is_closed_to(&self, mode: LockMode) -> bool {
        debug_assert!(mode.bit() & LOOKED_AT != 0);
        self.closed.0.load(Ordering::Relaxed) & u32::from(mode.bit()) != 0
    }

    /// When the table was last emptied by a commit, if that was after `snapshot`.
    #[inline]
    pub fn is_emptied_after(&self, snapshot: Timestamp) -> bool {
        self.emptied.load(Ordering::Relaxed) > snapshot
    }

    /// A commit throws the table's rows away. Under the locks of all partitions.
    pub fn emptied_at(&self, committed: Timestamp) {
        self.emptied.store(committed, Ordering::Relaxed);
    }

    /// Takes a mode if that needs no waiting.
    pub fn try_take(&self, owner: TxnId, mode: LockMode) -> bool {
        let mut queue = self.queue.lock();
        let place = queue.place(owner);
        let may = queue.may_take(owner, mode, place);
        if may {
            queue.hold(owner, mode);
            self.close(&queue);
        }
        may
    }

    /// Stands in line for a mode; whether it was granted at once.
    pub fn line_up(&self, owner: TxnId, mode: LockMode) -> bool {
        let mut queue = self.queue.lock();
        let place = queue.place(owner);
        let may = queue.may_take(owner, mode, place);
        match may {
            true => queue.hold(owner, mode),
            false => queue.waiting.insert(place, (owner, mode)),
        }
        self.close(&queue);
        may
    }

    /// Whether he holds the mode by now.
    pub fn is_held(&self, owner: TxnId, mode: LockMode) -> bool {
        self.queue.lock().held_by(owner) & mode.bit() != 0
    }

    /// Whether anybody holds a strong mode.
    pub fn is_held_strongly(&self) -> bool {
        let queue = self.queue.lock();
        let held = queue.held.iter().fold(0, |all, (_, modes)| all | modes);
        LockMode::of(held).any(LockMode::is_strong)
    }

    /// Leaves the line; who was granted the mode before he could leave gives it back.
    pub fn give_up(&self, owner: TxnId, mode: LockMode) {
        self.change(|queue| {
            let place = queue.waiting.iter().position(|w| *w == (owner, mode));
            match place {
                Some(place) => drop(queue.waiting.remove(place)),
                None => queue.release(owner, mode),
            }
        });
    }

    /// Gives a mode back.
    pub fn release(&self, owner: TxnId, mode: LockMode) {
        self.change(|queue| queue.release(owner, mode));
    }

    fn change(&self, change: impl FnOnce(&mut Queue)) {
        let granted = {
            let mut queue = self.queue.lock();
            change(&mut queue);
            let granted = queue.grant();
            self.close(&queue);
            granted
        };
        if granted {
            self.changed.notify();
        }
    }

    fn close(&self, queue: &Queue) {
        let closed = u32::from(queue.closed());
        if self.closed.0.load(Ordering::Relaxed) != closed {
            self.closed.0.store(closed, Ordering::Relaxed);
        }
    }

    /// Has one who waits go before another who only waits, too. The line as it was; None: the
    /// other holds what is in the way, or is not before him.
    pub fn let_pass(&self, owner: TxnId, mode: LockMode, ahead: TxnId) -> Option<Line> {
        let mut queue = self.queue.lock();
        let holds = queue.in_the_way(owner, mode).any(|other| other == ahead);
        let place_of =
            |queue: &Queue, who: TxnId| queue.waiting.iter().position(|(other, _)| *other == who);
        let (place, before) = (place_of(&queue, owner)?, place_of(&queue, ahead)?);
        if holds || before > place {
            return None;
        }
        let line = queue.waiting.clone();
        queue.waiting.remove(place);
        queue.waiting.insert(before, (owner, mode));
        Some(line)
    }

    /// Takes back [`Gate::let_pass`]: he goes behind those who are left of whoever stood before
    /// him in the line.
    pub fn put_back(&self, owner: TxnId, line: &Line) {
        let mut queue = self.queue.lock();
        let Some(place) = queue.waiting.iter().position(|(other, _)| *other == owner) else {
            return;
        };
        let Some(own) = queue.waiting.remove(place) else {
            return;
        };
        let before: Line = line
            .iter()
            .take_while(|(other, _)| *other != owner)
            .copied()
            .collect();
        let last = queue
            .waiting
            .iter()
            .rposition(|other| before.contains(other));
        queue.waiting.insert(last.map_or(0, |last| last + 1), own);
    }

    /// Grants what can be by now.
    pub fn grant_waiting(&self) {
        self.change(|_| {});
    }

    /// Whom one who waits for a mode waits for: who holds what is in its way, and who stands
    /// in line before him for it.
    pub fn blockers(&self, owner: TxnId, mode: LockMode) -> Vec<TxnId> {
        let queue = self.queue.lock();
        let place = queue
            .waiting
            .iter()
            .position(|waiting| *waiting == (owner, mode));
        let Some(place) = place else {
            return Vec::new();
        };
        let mut blockers: Vec<TxnId> = queue.in_the_way(owner, mode).collect();
        blockers.extend(queue.ahead(place, mode).filter(|other| *other != owner));
        blockers.sort_unstable();
        blockers.dedup();
        blockers
    }

    /// Who holds what, and who waits for what.
    pub fn shown(&self) -> (Vec<(TxnId, Modes)>, Line) {
        let queue = self.queue.lock();
        (queue.held.clone(), queue.waiting.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::LockMode as M;
    use super::*;

    const A: TxnId = TxnId(1);
    const B: TxnId = TxnId(2);
    const C: TxnId = TxnId(3);

    #[test]
    fn modes_conflict_as_in_postgresql() {
        // Table 13.2 of PostgreSQL's manual, a row a mode.
        let table = [
            ".......X", "......XX", "....XXXX", "...XXXXX", "..XX.XXX", "..XXXXXX", ".XXXXXXX",
            "XXXXXXXX",
        ];
        for (one, row) in M::ALL.into_iter().zip(table) {
            for (other, mark) in M::ALL.into_iter().zip(row.chars()) {
                assert_eq!(one.conflicts_with(other), mark == 'X', "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn who_waits_for_a_strong_lock_is_not_passed_by_weak_ones() {
        let gate = Gate::default();
        assert!(gate.try_take(A, M::AccessShare));
        assert!(!gate.line_up(B, M::AccessExclusive));
        assert!(gate.is_closed_to(M::AccessShare));
        assert!(!gate.try_take(C, M::AccessShare));
        assert!(!gate.line_up(C, M::AccessShare));
        assert_eq!(gate.blockers(B, M::AccessExclusive), [A]);
        assert_eq!(gate.blockers(C, M::AccessShare), [B]);
        gate.release(A, M::AccessShare);
        assert!(gate.is_held(B, M::AccessExclusive) && !gate.is_held(C, M::AccessShare));
        gate.release(B, M::AccessExclusive);
        assert!(gate.is_held(C, M::AccessShare) && !gate.is_closed_to(M::AccessShare));
    }

    #[test]
    fn who_holds_what_another_waits_for_goes_before_him() {
        let gate = Gate::default();
        assert!(gate.try_take(A, M::AccessShare));
        assert!(!gate.line_up(B, M::AccessExclusive));
        assert!(gate.try_take(A, M::RowExclusive), "B waits for A anyway");
        assert!(gate.try_take(A, M::AccessExclusive));
        gate.release(A, M::AccessExclusive);
        gate.release(A, M::RowExclusive);
        gate.release(A, M::AccessShare);
        assert!(gate.is_held(B, M::AccessExclusive));
    }

    #[test]
    fn who_gives_up_lets_those_behind_go_on() {
        let gate = Gate::default();
        assert!(gate.try_take(A, M::RowShare));
        assert!(!gate.line_up(B, M::Exclusive));
        assert!(!gate.line_up(C, M::RowExclusive));
        gate.give_up(B, M::Exclusive);
        assert!(gate.is_held(C, M::RowExclusive));
        assert!(!gate.is_closed_to(M::RowShare));
        let (held, waiting) = gate.shown();
        assert_eq!((held.len(), waiting.len()), (2, 0));
    }

    #[test]
    fn who_gives_up_when_he_was_granted_the_lock_already_keeps_nothing() {
        let gate = Gate::default();
        assert!(gate.try_take(A, M::Exclusive));
        assert!(!gate.line_up(B, M::AccessExclusive));
        gate.release(A, M::Exclusive);
        // Granted; a cancel comes before he has seen that.
        gate.give_up(B, M::AccessExclusive);
        assert!(!gate.is_closed_to(M::AccessShare));
        assert!(gate.try_take(C, M::AccessExclusive));
    }
}
