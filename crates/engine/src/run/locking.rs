//! Waiting for others: for a table's lock, and for the end of a transaction that has a row.
//!
//! Each wait ends with what it waits for, with `lock_timeout`, with the statement's deadline
//! or cancel, or with 40P01 where it would close a circle ([`crate::transaction::waits`]). A transaction keeps its table locks to its end, or until it is
//! rolled back to a savepoint before them. A statement without a transaction that has to
//! wait is a [`Visit`] until it is over.

use std::sync::Arc;

use crate::catalog::Table;
use crate::catalog::table_lock::{Gate, LockMode, LockedObject};
use crate::catalog::view::ViewRead;
use crate::ground::error::{Error, Result};
use crate::ground::txn_id::TxnId;
use crate::ground::wait::WaitsFor;
use crate::parts::Parts;
use crate::run::interactive::Transaction;
use crate::run::savepoint::Savepoint;
use crate::transaction::table_locks::{TAKEN_BYTES, TableLocks, Visit};
use crate::transaction::waits::{Awaited, LockWait};
use crate::transaction::{RunOptions, TxnState};

/// A lock of a table that somebody holds or waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableLock {
    /// The transaction's number ([`Transaction::id`]), or that of a statement without one.
    pub transaction: u64,
    /// The table's object id.
    pub table: u32,
    /// How it is locked.
    pub mode: LockMode,
    /// Held; otherwise waited for.
    pub granted: bool,
}

/// Gates that nobody holds are looked for when there are so many.
const OBJECTS_KEPT: usize = 64;

/// A place in a gate's line; who drops it before he was granted the lock has left.
struct Place<'g> {
    gate: &'g Gate,
    owner: TxnId,
    mode: LockMode,
    granted: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.granted {
            self.gate.give_up(self.owner, self.mode);
        }
    }
}

impl Parts {
    /// Locks a table until the transaction ends or is rolled back to a savepoint before.
    /// The definition may have changed when it returns.
    ///
    /// # Errors
    /// 55P03 if it is not to `wait` and has to, or after the lock timeout; 57014, 40P01.
    pub async fn lock_table(
        &self,
        txn: &mut Transaction,
        options: &RunOptions,
        table: &Table,
        mode: LockMode,
        wait: bool,
    ) -> Result<()> {
        self.check_open()?;
        let state = txn.state_mut()?;
        if wait {
            return self.lock_for(state, options, &table.gate, mode).await;
        }
        if state.locks.has(&table.gate, mode) {
            return Ok(());
        }
        if !state.locks.try_take(&table.gate, mode) {
            return Err(Error::LockNotAvailable(table.def.name.clone()));
        }
        self.see_others_out(&table.gate, mode);
        self.charge_lock(state)
    }

    /// Locks a table as a definition of it does, until the transaction ends or is rolled back
    /// to a savepoint before. What is made of a definition is made of the one that is in
    /// force when it returns.
    ///
    /// # Errors
    /// 55P03, 57014 or 40P01 while it waits.
    pub async fn lock_to_define(
        &self,
        txn: &mut Transaction,
        options: &RunOptions,
        table: &Table,
        mode: LockMode,
    ) -> Result<()> {
        let state = txn.state_mut()?;
        // Who has the table alone does not wait for those who wait for it.
        let alone = [
            LockMode::ShareRowExclusive,
            LockMode::Exclusive,
            LockMode::AccessExclusive,
        ];
        let is_alone = alone.iter().any(|mode| state.locks.has(&table.gate, *mode));
        if mode == LockMode::Share && !is_alone {
            // Others may read it meanwhile, and not add indexes of theirs.
            let indexes = LockedObject::Indexes(table.def.oid);
            self.lock_object(state, options, indexes, LockMode::Exclusive)
                .await?;
        }
        self.lock_for(state, options, &table.gate, mode).await
    }

    /// [`Parts::lock_table`], waiting.
    pub(crate) async fn lock_for(
        &self,
        state: &mut TxnState,
        options: &RunOptions,
        gate: &Arc<Gate>,
        mode: LockMode,
    ) -> Result<()> {
        if state.locks.has(gate, mode) {
            return Ok(());
        }
        self.take(&mut state.locks, options, gate, mode).await?;
        self.charge_lock(state)
    }

    /// Keeps the tables that a view reads from being dropped while it is made.
    pub(crate) async fn lock_what_is_read(
        &self,
        txn: &mut Transaction,
        options: &RunOptions,
        reads: &[ViewRead],
    ) -> Result<()> {
        for read in reads {
            let shared = self.catalog().table(read.oid).cloned();
            if let Some(shared) = shared {
                let (state, mode) = (txn.state_mut()?, LockMode::AccessShare);
                self.lock_for(state, options, &shared.gate, mode).await?;
            }
        }
        Ok(())
    }

    /// Locks something that is no table, for a definition.
    pub(crate) async fn lock_object(
        &self,
        state: &mut TxnState,
        options: &RunOptions,
        object: LockedObject,
        mode: LockMode,
    ) -> Result<()> {
        let gate = {
            let mut objects = self.objects().lock();
            if objects.len() >= OBJECTS_KEPT {
                objects.retain(|_, gate| Arc::strong_count(gate) > 1);
            }
            objects.entry(object).or_default().clone()
        };
        self.lock_for(state, options, &gate, mode).await
    }

    /// Keeps roles and rights from being changed by others until the transaction ends. What
    /// [`Change::Authorize`](crate::Change::Authorize) puts in their place is made of what they
    /// are then.
    ///
    /// # Errors
    /// 55P03, 57014 or 40P01 while it waits.
    pub async fn lock_authority(&self, txn: &mut Transaction, options: &RunOptions) -> Result<()> {
        let (state, object) = (txn.state_mut()?, LockedObject::Authority);
        self.lock_object(state, options, object, LockMode::Exclusive)
            .await
    }

    /// Keeps others from making anything of a type until the transaction ends.
    ///
    /// # Errors
    /// As [`Parts::lock_authority`].
    pub async fn lock_type(
        &self,
        txn: &mut Transaction,
        options: &RunOptions,
        oid: u32,
    ) -> Result<()> {
        let (state, object) = (txn.state_mut()?, LockedObject::Type(oid));
        self.lock_object(state, options, object, LockMode::AccessExclusive)
            .await
    }

    pub(crate) fn charge_lock(&self, state: &mut TxnState) -> Result<()> {
        state.keep(self, TAKEN_BYTES * 2)
    }

    /// Lets a statement without a transaction in to a table.
    pub(crate) async fn visit(
        &self,
        visit: &mut Visit,
        options: &RunOptions,
        gate: &Arc<Gate>,
        mode: LockMode,
    ) -> Result<()> {
        let locks = visit.locks(|| self.transactions().number());
        match locks.has(gate, mode) {
            true => Ok(()),
            false => self.take(locks, options, gate, mode).await,
        }
    }

    async fn take(
        &self,
        locks: &mut TableLocks,
        options: &RunOptions,
        gate: &Arc<Gate>,
        mode: LockMode,
    ) -> Result<()> {
        let owner = locks.owner();
        if !gate.line_up(owner, mode) {
            let mut place = Place {
                gate,
                owner,
                mode,
                granted: false,
            };
            let awaited = Awaited::Table(gate.clone(), mode);
            let _waiting = self
                .transactions()
                .waits
                .begin(owner, options.session, awaited)?;
            let until = options.lock_timeout.map(|time| self.clock().now() + time);
            let _note = options.cancel.note_wait(WaitsFor::Relation);
            loop {
                let changed = gate.changed.listen();
                if gate.is_held(owner, mode) {
                    break;
                }
                self.or_interrupted(options, until, changed).await?;
            }
            place.granted = true;
        }
        locks.push(gate, mode);
        self.see_others_out(gate, mode);
        Ok(())
    }

    /// Waits until the statements are over that had looked at a table's gate before a strong
    /// lock was granted: they hold a partition from that look on.
    fn see_others_out(&self, gate: &Gate, mode: LockMode) {
        if mode.is_strong() && gate.table != 0 {
            for partition in self.all_partitions() {
                drop(partition.lock_any());
            }
        }
    }

    /// Waits until the transaction that has what `owner` wants has ended.
    pub(crate) async fn wait_for_holder(
        &self,
        owner: TxnId,
        options: &RunOptions,
        holder: TxnId,
    ) -> Result<()> {
        let awaited = Awaited::Transaction(holder);
        let _waiting = self
            .transactions()
            .waits
            .begin(owner, options.session, awaited)?;
        self.wait_for_end(options, holder).await
    }

    /// As [`Parts::wait_for_holder`], for a statement without a transaction.
    pub(crate) async fn visit_holder(
        &self,
        visit: &mut Visit,
        options: &RunOptions,
        holder: TxnId,
    ) -> Result<()> {
        visit.leave();
        let owner = visit.locks(|| self.transactions().number()).owner();
        self.wait_for_holder(owner, options, holder).await
    }

    /// Gives back the table locks that were taken after a savepoint. Not those of changed
    /// tables into which rows were inserted: though the rows are taken back, the log has them
    /// until the transaction ends.
    pub(crate) fn give_back_locks(&self, state: &mut TxnState, to: &Savepoint) {
        let catalog = self.catalog();
        let is_inserted_into = |table: u32| {
            let storage = catalog.table(table).map(|table| table.def.storage);
            state.inserted.keys().any(|key| Some(key.1) == storage)
        };
        state.locks.give_back(to.locks, |table, mode| {
            mode == LockMode::RowExclusive && is_inserted_into(table)
        });
    }

    /// Who waits for whom at this moment.
    pub fn lock_waits(&self) -> Vec<LockWait> {
        self.transactions().waits.shown()
    }

    /// The locks of tables that are held or waited for at this moment.
    pub fn table_locks(&self) -> Vec<TableLock> {
        let mut locks = Vec::new();
        for table in self.catalog().tables.values() {
            let (held, waiting) = table.gate.shown();
            let lock = |owner: TxnId, mode, granted| TableLock {
                transaction: owner.0,
                table: table.def.oid,
                mode,
                granted,
            };
            for (owner, modes) in held {
                locks.extend(LockMode::of(modes).map(|mode| lock(owner, mode, true)));
            }
            locks.extend(
                waiting
                    .iter()
                    .map(|(owner, mode)| lock(*owner, *mode, false)),
            );
        }
        locks
    }
}

impl Transaction {
    /// Its number, as views and errors name it; 0 once it has ended.
    pub fn id(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.id.0)
    }
}
