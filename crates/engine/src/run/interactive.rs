//! An interactive transaction as whoever runs it has it. What it carries with it until it commits
//! is in `transaction`, how it ends in `commit`.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::catalog::Catalog;
use crate::ground::error::Error;
use crate::parts::Parts;
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

    pub(crate) fn state_mut(&mut self) -> Result<&mut TxnState, Error> {
        self.state
            .as_deref_mut()
            .ok_or_else(|| Error::Internal("the transaction has ended".into()))
    }
}
