//! Savepoints: points of an interactive transaction that it can be taken back to.
//!
//! Making one copies nothing, however much the transaction has done. It raises the
//! transaction's *level*: rows inserted from then on are of that level; of rows in the overlay
//! the journal keeps what they were before the level changed them first. What DDL has made of
//! the catalog is a draft of its own, of which a savepoint keeps the lengths. All of it
//! is charged to the transaction's share of memory. Locks that were taken since go with a
//! rollback, of rows and of tables.

use std::sync::Arc;

use thermocline_device::Mutation;

use crate::access::Access;
use crate::catalog::draft::{Draft, DraftMark};
use crate::catalog::{Catalog, IndexDef, Table};
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::ground::scope::Scope;
use crate::ground::wait::give_way;
use crate::parts::Parts;
use crate::run::interactive::Transaction;
use crate::transaction::expected::ExpectedMark;
use crate::transaction::{Overlaid, RunOptions, TxnState};

/// Bytes that a savepoint is charged with, for itself and for what rows inserted after it
/// cannot share with those before.
const SAVEPOINT_BYTES: usize = 256;
/// Rows taken back at a time.
const ROWS_AT_ONCE: usize = 1000;

/// A point that a transaction can be rolled back to, while no earlier one was.
#[derive(Debug, Clone)]
pub struct Savepoint {
    level: u32,
    journal: usize,
    bytes: usize,
    /// Table locks taken before.
    pub(crate) locks: usize,
    /// Rows locked before.
    locked: usize,
    draft: Option<DraftMark>,
    expected: ExpectedMark,
}

impl TxnState {
    /// Has what was inserted up to now be changed in the overlay: it may be wanted as it is.
    pub fn raise_level(&mut self) -> Result<()> {
        self.level = self.level.checked_add(1).ok_or_else(|| {
            Error::TooLarge("a transaction makes at most 4294967295 savepoints".into())
        })?;
        Ok(())
    }

    /// Notes what the overlay has of a row that is about to change, if a savepoint may want
    /// it back. Whether it was noted.
    pub fn note_overlaid(&mut self, key: (u32, RowId), before: Option<&Overlaid>) -> bool {
        let is_wanted = self.level > 0 && before.is_none_or(|before| before.level != self.level);
        if is_wanted {
            self.journal.push((key, before.cloned()));
        }
        is_wanted
    }

    /// Puts the overlay of a row back as it was.
    pub fn restore_overlaid(&mut self, key: (u32, RowId), before: Option<Overlaid>) {
        match before {
            Some(before) => {
                self.overlay.insert(key, before);
            }
            None => {
                self.overlay.remove(&key);
            }
        }
    }

    /// Drops what it knows of the rows of storages that are gone.
    fn forget_storages(&mut self, gone: &[u32]) {
        self.inserted.retain(|key, _| !gone.contains(&key.1));
        self.reads.forget_storages(gone);
        self.overlay.retain(|key, _| !gone.contains(&key.0));
    }
}

impl Transaction {
    /// A point to roll back to; `bytes` more are charged for what the caller keeps with it.
    ///
    /// # Errors
    /// 53200 when the transaction's share of memory is used up.
    pub fn savepoint(&mut self, bytes: usize) -> Result<Savepoint> {
        let db = self.db.clone();
        let state = self.state_mut()?;
        state.keep(&db, SAVEPOINT_BYTES + bytes)?;
        let savepoint = Savepoint {
            level: state.level,
            journal: state.journal.len(),
            bytes: state.bytes,
            locks: state.locks.len(),
            locked: state.locked.len(),
            draft: state.draft.as_ref().map(Draft::mark),
            expected: state.expected.savepoint(),
        };
        state.raise_level()?;
        Ok(savepoint)
    }

    /// No savepoint is left to roll back to: nothing is kept for one any more.
    pub fn forget_savepoints(&mut self) {
        if let Some(state) = &mut self.state {
            state.journal = Vec::new();
            state.expected.forget_savepoints();
        }
    }

    /// Takes back what was done since the savepoint, definitions and locks included. After
    /// an error it can be tried again.
    pub async fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        let db = self.db.clone();
        let state = self.state_mut()?;
        while state.journal.len() > savepoint.journal
            && let Some((key, before)) = state.journal.pop()
        {
            state.restore_overlaid(key, before);
        }
        state.bytes = state.bytes.min(savepoint.bytes);
        state.settle();
        // What was inserted since is changed in place again: it goes.
        state.level = savepoint.level + 1;
        let kept = savepoint.draft.as_ref().map_or(0, |mark| mark.made);
        let draft = state.draft.as_ref();
        let gone: Vec<u32> = draft.map_or(Vec::new(), |draft| draft.made[kept..].to_vec());
        let inserted: Vec<(u16, u32)> = state.inserted.keys().copied().collect();
        for (partition, storage) in inserted {
            if !gone.contains(&storage) {
                let table = db.writer_to(self.state_mut()?, savepoint, storage);
                if let Some(table) = table {
                    self.take_back(&table, partition, savepoint.level).await?;
                }
            }
        }
        let state = self.state_mut()?;
        // The keys of rows that went here were nobody's.
        state.expected.forget_since(savepoint.expected);
        state.forget_storages(&gone);
        if !Mutation::DefinitionsKept.is_made() {
            db.take_back_definitions(state, savepoint.draft.as_ref())?;
        }
        db.give_back_locks(state, savepoint);
        db.unlock_rows(state, savepoint.locked);
        Ok(())
    }

    /// Deletes what was inserted into a table's partition after a savepoint.
    async fn take_back(&mut self, table: &Arc<Table>, partition: u16, level: u32) -> Result<()> {
        let db = self.db.clone();
        let id = self.state_mut()?.id;
        let rows = {
            let guard = db.all_partitions()[usize::from(partition)].lock();
            guard.uncommitted_after(id, table.def.storage, level)
        };
        let options = RunOptions::default();
        let mut left = &rows[..];
        while !left.is_empty() {
            let rows = &left[..left.len().min(ROWS_AT_ONCE)];
            // Rows that nobody else has seen need no snapshot, and that of the
            // transaction may have been ended.
            let snapshot = self.state_mut()?.snapshot.take();
            let body = |access: &mut Access<'_>| {
                access.go_by(table);
                let mut done = 0;
                while let Some(row) = rows.get(done).filter(|_| !access.is_large()) {
                    access.delete(table, RowId::new(partition, *row))?;
                    done += 1;
                }
                Ok(done)
            };
            let removed = db.in_transaction(self, &options, Scope::One(partition), body);
            let removed = removed.await;
            let state = self.state_mut()?;
            if let Some(taken) = std::mem::replace(&mut state.snapshot, snapshot) {
                db.transactions().close_snapshot(taken);
            }
            left = &left[removed?..];
            if !left.is_empty() {
                give_way().await;
            }
        }
        Ok(())
    }
}

impl Parts {
    /// The definition by which a transaction wrote to a storage since a savepoint. It names all
    /// indexes that a row of then may be in: those that there are now, and those that the
    /// transaction has dropped since.
    fn writer_to(&self, state: &TxnState, to: &Savepoint, storage: u32) -> Option<Arc<Table>> {
        let committed = self.catalog();
        let of = |catalog: &Catalog| {
            let mut tables = catalog.tables.values();
            tables.find(|table| table.def.storage == storage).cloned()
        };
        let marked = to.draft.as_ref().map(|mark| mark.catalog(&committed));
        let then = of(marked.as_ref().unwrap_or(&committed));
        let now = state.draft.as_ref();
        let now = now.and_then(|draft| of(&draft.catalog(&committed)));
        let read = self.storages().read().get(&storage).cloned();
        let table = now.or_else(|| read.clone())?;
        let mut def = table.def.clone();
        for other in [then, read].into_iter().flatten() {
            let missing = |index: &&IndexDef| def.indexes.iter().all(|i| i.oid != index.oid);
            let missing: Vec<IndexDef> =
                other.def.indexes.iter().filter(missing).cloned().collect();
            def.indexes.extend(missing);
        }
        if def.indexes.len() == table.def.indexes.len() {
            return Some(table);
        }
        Some(Arc::new(table.redefined(def)))
    }

    /// The definition by which others read the rows of a drafted table that are not committed.
    pub(crate) fn reader_of(&self, table: &Arc<Table>, own: bool) -> Arc<Table> {
        // Of others' tables the columns only: whatever else is new is nobody else's before
        // the commit.
        match self.catalog().table(table.def.oid) {
            Some(committed) if !own && committed.def.storage == table.def.storage => {
                let mut def = committed.def.clone();
                def.columns.clone_from(&table.def.columns);
                def.lost.clone_from(&table.def.lost);
                Arc::new(table.redefined(def))
            }
            _ => table.clone(),
        }
    }

    /// Takes a draft back to where it was at a savepoint. The rows that were inserted since
    /// are gone, or in storages that go here.
    fn take_back_definitions(&self, state: &mut TxnState, mark: Option<&DraftMark>) -> Result<()> {
        let Some(mark) = mark else {
            if let Some(draft) = state.draft.take() {
                self.discard(draft);
            }
            return Ok(());
        };
        let committed = self.catalog();
        let mut readers = Vec::new();
        if let Some(draft) = &state.draft {
            let (then, now) = (mark.catalog(&committed), draft.catalog(&committed));
            let changed = then.tables.iter().filter(|(oid, table)| {
                let now = now.table(**oid);
                now.is_none_or(|now| !Arc::ptr_eq(now, table))
            });
            let own = |table: &Table| draft.made[..mark.made].contains(&table.def.storage);
            readers.extend(changed.map(|(_, table)| self.reader_of(table, own(table))));
        }
        // The log says by what definition the rows that follow are to be read.
        for reader in readers {
            self.announce(state, reader)?;
        }
        let Some(draft) = &mut state.draft else {
            return Ok(());
        };
        let made = draft.made.split_off(mark.made);
        let made_indexes = draft.made_indexes.split_off(mark.made_indexes);
        let made_sequences = draft.made_sequences.split_off(mark.made_sequences);
        self.drop_made(&made, &made_indexes);
        self.drop_sequences(&made_sequences);
        self.take_restarts_back(&draft.restarted.split_off(mark.restarted));
        draft.back_to(mark);
        Ok(())
    }
}
