//! An interactive transaction as whoever runs it has it. What it carries with it until it commits
//! is in `transaction`, how it ends in `commit`.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::catalog::{Catalog, ForeignKeyDef, Table};
use crate::ground::error::Error;
use crate::parts::Parts;
use crate::transaction::expected::{
    Due, Expectation, Expectations, Expected, HeldExpectations, Referring, RemovedKey,
};
use crate::transaction::reads::Reads;
use crate::transaction::table_locks::TableLocks;
use crate::transaction::{Isolation, TxnState};

/// An interactive transaction. Dropping it rolls it back.
#[derive(Debug)]
pub struct Transaction {
    pub(crate) db: Arc<Parts>,
    /// None once it has ended.
    pub(crate) state: Option<Box<TxnState>>,
}

impl Transaction {
    pub(crate) fn begin(db: Arc<Parts>, isolation: Isolation, read_only: bool) -> Self {
        let id = db.transactions().begin();
        Transaction {
            state: Some(Box::new(TxnState {
                id,
                isolation,
                read_only,
                snapshot: None,
                overlay: HashMap::new(),
                inserted: BTreeMap::new(),
                level: 0,
                journal: Vec::new(),
                locked: Vec::new(),
                reads: Reads::default(),
                expected: Expectations::default(),
                locks: TableLocks::of(id),
                draft: None,
                logged: false,
                bytes: 0,
                charge: None,
                account: None,
            })),
            db,
        }
    }

    /// The isolation level.
    pub fn isolation(&self) -> Isolation {
        self.state
            .as_ref()
            .map_or(Isolation::Serializable, |s| s.isolation)
    }

    /// Sets the isolation level; only before the first statement.
    pub fn set_isolation(&mut self, isolation: Isolation, read_only: bool) {
        if let Some(state) = &mut self.state {
            state.isolation = isolation;
            state.read_only = read_only;
        }
    }

    /// Whether a statement has run in it.
    pub fn has_run(&self) -> bool {
        self.state
            .as_ref()
            .is_some_and(|s| s.snapshot.is_some() || s.logged || !s.overlay.is_empty())
    }

    /// The catalog as this transaction sees it.
    pub fn catalog(&self) -> Arc<Catalog> {
        match self.state.as_ref().and_then(|s| s.draft.as_ref()) {
            Some(draft) => draft.catalog(&self.db.catalog()),
            None => self.db.catalog(),
        }
    }

    /// The keys that have gone since this was last asked and that foreign keys may refer to.
    pub fn take_removed_keys(&mut self) -> Vec<RemovedKey> {
        let state = self.state.as_mut();
        state.map_or(Vec::new(), |state| state.expected.take_removed())
    }

    /// Whether keys have gone for which nothing has been done, or something has to hold when
    /// the statement ends: see [`Parts::verify_expected`].
    pub fn has_unseen(&mut self) -> bool {
        let state = self.state.as_mut();
        state.is_some_and(|state| state.expected.any_removed() || state.expected.any_unseen())
    }

    /// Leaves what foreign keys ask for to the statement at hand: one within it begins, which
    /// looks at its own alone.
    pub fn hold_expected(&mut self) -> HeldExpectations {
        let state = self.state.as_mut();
        state.map_or_else(HeldExpectations::default, |state| state.expected.hold())
    }

    /// The statement within is over.
    pub fn resume_expected(&mut self, held: HeldExpectations) {
        if let Some(state) = self.state.as_mut() {
            state.expected.resume(held);
        }
    }

    pub(crate) fn any_unseen(&mut self) -> bool {
        let state = self.state.as_mut();
        state.is_some_and(|state| state.expected.any_unseen())
    }

    /// Expects that no row of `table` refers by a foreign key to the key that `old`, a tuple of
    /// `parent`, had. `at_once`: when the statement ends, though the constraint may be deferred.
    ///
    /// # Errors
    /// 53200 when the transaction's share of memory is used up.
    pub fn expect_no_child(
        &mut self,
        (parent, old): (&Table, &Arc<[u8]>),
        (table, foreign_key): (&Table, usize),
        referring: Referring,
        at_once: bool,
    ) -> Result<(), Error> {
        let db = self.db.clone();
        let state = self.state_mut()?;
        let def = &table.def.foreign_keys[foreign_key];
        let due = match at_once {
            true => Due::Statement,
            false => state.expected.due(def),
        };
        let expectation = Expectation {
            what: Expected::NoChild {
                parent: parent.def.oid,
                old: old.clone(),
                table: table.def.oid,
                constraint: def.oid,
                referring,
            },
            due,
            seen: false,
            put_off: due == Due::Commit,
        };
        state.keep(&db, expectation.bytes())?;
        state.expected.count_referrals(table);
        state.expected.push(expectation);
        Ok(())
    }

    /// Whether a foreign key of a table has to be looked at for rows that were changed: the table
    /// is not to be emptied or written anew then.
    pub fn is_pending_on(&self, table: u32) -> bool {
        let state = self.state.as_ref();
        state.is_some_and(|state| state.expected.is_pending_on(table))
    }

    /// Whether a foreign key's check is put off to the commit.
    pub fn is_deferred(&self, def: &ForeignKeyDef) -> bool {
        let state = self.state.as_ref();
        state.is_some_and(|state| state.expected.due(def) == Due::Commit)
    }

    /// SET CONSTRAINTS, all or those of these object ids. What is not put off any more is looked
    /// at when the next statement ends ([`Parts::verify_expected`]).
    pub fn set_constraints(&mut self, constraints: Option<&[u32]>, deferred: bool) {
        if let Some(state) = &mut self.state {
            state.expected.set_constraints(constraints, deferred);
        }
    }

    pub(crate) fn state_mut(&mut self) -> Result<&mut TxnState, Error> {
        self.state
            .as_deref_mut()
            .ok_or_else(|| Error::Internal("the transaction has ended".into()))
    }
}
