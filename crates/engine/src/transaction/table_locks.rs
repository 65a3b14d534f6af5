//! Which locks of tables somebody has: a transaction, or a statement without one that had to wait.
//! How they are waited for is in `locking`; what a lock is, in `table_lock`.

use std::sync::Arc;

use crate::catalog::table_lock::{Gate, LockMode};
use crate::ground::txn_id::TxnId;

/// The table locks of a transaction, in the order in which they were taken. They go with it.
#[derive(Debug)]
pub(crate) struct TableLocks {
    owner: TxnId,
    taken: Vec<Taken>,
}

#[derive(Debug)]
struct Taken {
    gate: Arc<Gate>,
    mode: LockMode,
}

/// What a lock takes here.
pub(crate) const TAKEN_BYTES: usize = size_of::<Taken>();

impl TableLocks {
    pub fn of(owner: TxnId) -> Self {
        TableLocks {
            owner,
            taken: Vec::new(),
        }
    }

    /// Whose they are.
    pub fn owner(&self) -> TxnId {
        self.owner
    }

    /// How many were taken.
    pub fn len(&self) -> usize {
        self.taken.len()
    }

    /// Whether this mode of the table was taken.
    #[inline]
    pub fn has(&self, gate: &Arc<Gate>, mode: LockMode) -> bool {
        let mut newest_first = self.taken.iter().rev();
        newest_first.any(|taken| taken.mode == mode && Arc::ptr_eq(&taken.gate, gate))
    }

    /// Takes a mode that it has not, if that needs no waiting.
    pub fn try_take(&mut self, gate: &Arc<Gate>, mode: LockMode) -> bool {
        let taken = gate.try_take(self.owner, mode);
        if taken {
            self.push(gate, mode);
        }
        taken
    }

    pub fn push(&mut self, gate: &Arc<Gate>, mode: LockMode) {
        let gate = gate.clone();
        self.taken.push(Taken { gate, mode });
    }

    /// Gives back what was taken after the first `kept`, but not what `stays`.
    pub fn give_back(&mut self, kept: usize, stays: impl Fn(u32, LockMode) -> bool) {
        let (owner, mut place) = (self.owner, 0);
        self.taken.retain(|taken| {
            place += 1;
            let stays = place <= kept || stays(taken.gate.table, taken.mode);
            if !stays {
                taken.gate.release(owner, taken.mode);
            }
            stays
        });
    }
}

impl Drop for TableLocks {
    fn drop(&mut self) {
        self.give_back(0, |_, _| false);
    }
}

/// A statement without a transaction that has to wait. It has a number from then on, and the
/// locks that it was given, until it is over.
#[derive(Debug, Default)]
pub(crate) struct Visit(Option<TableLocks>);

impl Visit {
    /// Its locks, and its number, which is made when it first has to wait.
    pub fn locks(&mut self, number: impl FnOnce() -> TxnId) -> &mut TableLocks {
        self.0.get_or_insert_with(|| TableLocks::of(number()))
    }

    /// Gives back what it was given: it is about to wait for something else. So nobody
    /// waits for it who has what it wants.
    pub fn leave(&mut self) {
        if let Some(locks) = &mut self.0 {
            locks.give_back(0, |_, _| false);
        }
    }

    /// Whether it was let in to a table.
    pub fn has(&self, gate: &Arc<Gate>, mode: LockMode) -> bool {
        self.0.as_ref().is_some_and(|locks| locks.has(gate, mode))
    }
}
