//! Who waits for whom.
//!
//! Kept is what each waits for; whom that is, a table's gate is asked when somebody wants to
//! know, so it is told as it is then. Whoever begins to wait last sees the whole circle: who
//! waits for a table is in its line before. A circle that goes through a place in a line, and
//! not through a lock that is held, is none: there the later goes before the earlier.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::catalog::table_lock::{Gate, LockMode};
use crate::ground::error::Error;
use crate::ground::txn_id::TxnId;

/// Somebody who waits for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockWait {
    /// The transaction's number, or that of a statement without one.
    pub transaction: u64,
    /// Whose it is, as [`RunOptions::session`](crate::RunOptions::session) said.
    pub session: u64,
    /// The transactions it waits for: those that have what it wants, and those that stand in
    /// line for it before.
    pub holders: Vec<u64>,
    /// The table, if it waits for one.
    pub table: Option<(u32, LockMode)>,
}

/// What somebody waits for.
#[derive(Debug, Clone)]
pub(crate) enum Awaited {
    /// The end of a transaction.
    Transaction(TxnId),
    /// A mode of the lock of a table, or of something else that is being defined.
    Table(Arc<Gate>, LockMode),
}

#[derive(Debug)]
struct Wait {
    session: u64,
    awaited: Awaited,
}

impl Wait {
    /// The transactions that `waiter` waits for.
    fn blockers(&self, waiter: TxnId) -> Vec<TxnId> {
        match &self.awaited {
            Awaited::Transaction(holder) => vec![*holder],
            Awaited::Table(gate, mode) => gate.blockers(waiter, *mode),
        }
    }
}

/// Places that are changed for one who begins to wait.
const REORDERS_MAX: u32 = 8;

type Known = BTreeMap<TxnId, Wait>;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<Known>);

/// Somebody waits, until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    waits: &'a Waits,
    waiter: TxnId,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.waits.0.lock().remove(&self.waiter);
    }
}

impl Waits {
    /// Notes what `waiter` waits for, while what is returned is kept; Deadlock if that closes
    /// a circle.
    pub fn begin(
        &self,
        waiter: TxnId,
        session: u64,
        awaited: Awaited,
    ) -> Result<Waiting<'_>, Error> {
        let mut known = self.0.lock();
        known.insert(waiter, Wait { session, awaited });
        let mut left = REORDERS_MAX;
        while let Some(circle) = circle(&known, waiter) {
            if left == 0 || !reorder(&known, &circle) {
                known.remove(&waiter);
                return Err(Error::Deadlock);
            }
            left -= 1;
        }
        drop(known);
        Ok(Waiting {
            waits: self,
            waiter,
        })
    }

    /// All of it.
    pub fn shown(&self) -> Vec<LockWait> {
        let known = self.0.lock();
        let shown = known.iter().map(|(waiter, wait)| LockWait {
            transaction: waiter.0,
            session: wait.session,
            holders: wait.blockers(*waiter).iter().map(|id| id.0).collect(),
            table: match &wait.awaited {
                Awaited::Table(gate, mode) if gate.table != 0 => Some((gate.table, *mode)),
                _ => None,
            },
        });
        shown.collect()
    }
}

/// A circle in which somebody waits for himself, each before the one that he waits for.
fn circle(known: &Known, from: TxnId) -> Option<Vec<TxnId>> {
    let mut came_from: BTreeMap<TxnId, TxnId> = BTreeMap::new();
    let mut next = vec![from];
    while let Some(at) = next.pop() {
        let blockers = known.get(&at).map(|wait| wait.blockers(at));
        for blocker in blockers.into_iter().flatten() {
            if blocker == from {
                let mut path = vec![at];
                while let Some(before) = path.last().and_then(|last| came_from.get(last)) {
                    path.push(*before);
                }
                path.reverse();
                return Some(path);
            }
            came_from.entry(blocker).or_insert_with(|| {
                next.push(blocker);
                at
            });
        }
    }
    None
}

/// Opens a circle by letting somebody go before one who only stands before him in a line.
/// Whether there was such a place.
fn reorder(known: &Known, circle: &[TxnId]) -> bool {
    for (place, waiter) in circle.iter().enumerate() {
        let ahead = circle[(place + 1) % circle.len()];
        let Some(Awaited::Table(gate, mode)) = known.get(waiter).map(|wait| &wait.awaited) else {
            continue;
        };
        let Some(line) = gate.let_pass(*waiter, *mode, ahead) else {
            continue;
        };
        // Whoever he has passed waits for him now.
        if self::circle(known, *waiter).is_none() {
            gate.grant_waiting();
            return true;
        }
        gate.put_back(*waiter, &line);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TxnId = TxnId(1);
    const B: TxnId = TxnId(2);
    const C: TxnId = TxnId(3);

    #[test]
    fn a_circle_is_a_deadlock_for_the_last_to_wait() {
        let waits = Waits::default();
        let wait_for = |waiter, holder| waits.begin(waiter, 7, Awaited::Transaction(holder));
        let _first = wait_for(A, B).expect("no circle");
        let second = wait_for(B, C).expect("no circle");
        assert!(matches!(wait_for(C, A), Err(Error::Deadlock)));
        let shown = waits.shown();
        assert_eq!(shown.len(), 2, "who gave way waits no more");
        assert_eq!((shown[1].transaction, &shown[1].holders[..]), (2, &[3][..]));
        drop(second);
        assert!(wait_for(C, A).is_ok());
    }

    #[test]
    fn who_only_stands_in_line_before_others_is_passed() {
        let waits = Waits::default();
        let gate = Arc::<Gate>::default();
        let table = |mode| Awaited::Table(gate.clone(), mode);
        assert!(gate.try_take(A, LockMode::AccessShare));
        assert!(!gate.line_up(B, LockMode::AccessExclusive));
        let exclusive = waits.begin(B, 0, table(LockMode::AccessExclusive));
        let _exclusive = exclusive.expect("no circle");
        assert!(!gate.line_up(C, LockMode::AccessShare));
        let share = waits.begin(C, 0, table(LockMode::AccessShare));
        let share = share.expect("no circle");
        // A waits for C, C stands behind B, B waits for what A holds.
        let _a = waits
            .begin(A, 0, Awaited::Transaction(C))
            .expect("C passes B");
        assert!(gate.is_held(C, LockMode::AccessShare));
        drop(share);
        assert_eq!(waits.shown()[1].holders, [1, 3]);
    }

    #[test]
    fn locks_that_are_held_close_a_circle() {
        let waits = Waits::default();
        let gates = [Arc::<Gate>::default(), Arc::<Gate>::default()];
        assert!(gates[0].try_take(A, LockMode::Share));
        assert!(gates[1].try_take(B, LockMode::Share));
        let table = |gate: usize| Awaited::Table(gates[gate].clone(), LockMode::Exclusive);
        assert!(!gates[1].line_up(A, LockMode::Exclusive));
        let _a = waits.begin(A, 0, table(1)).expect("no circle");
        assert!(!gates[0].line_up(B, LockMode::Exclusive));
        assert!(matches!(waits.begin(B, 0, table(0)), Err(Error::Deadlock)));
    }
}
