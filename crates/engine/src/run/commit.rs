//! Committing and rolling back interactive transactions.
//!
//! The commit takes the locks of all partitions that were read or written,
//! checks that what was read is unchanged since the snapshot (SERIALIZABLE),
//! and applies the overlay in place. It makes inserted rows visible and appends
//! one log record, all before the locks go. So commits are serial, and the
//! order of the log is theirs.

use std::sync::atomic::Ordering;

use thermocline_device::Mutation;
use thermocline_storage::log::Lsn;

use crate::access::{Access, RunKind, Scratch, expected_partitions};
use crate::format::record::{RecordKind, commit_head, only_deletes, record_head};
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::ground::scope::Scope;
use crate::ground::txn_id::Timestamp;
use crate::ground::wait::give_way;
use crate::memory::fetched::Fetched;
use crate::parts::Parts;
use crate::rows::partition::PartitionState;
use crate::rows::versions::InsertedRange;
use crate::run::interactive::Transaction;
use crate::transaction::{Isolation, Overlaid, RunOptions, TxnState};

/// What a commit may hold and bring into memory without asking, in bytes.
const COMMIT_FREE_BYTES: u64 = 256 << 10;

impl Parts {
    /// Commits. An error means that nothing of the transaction happened.
    pub async fn commit(&self, mut txn: Transaction, options: &RunOptions) -> Result<()> {
        let Some(mut state) = txn.state.take() else {
            return Err(Error::Internal("the transaction has ended".into()));
        };
        self.discard_unchanged(&mut state);
        if state.expected.any_removed() {
            self.roll_back(state).await;
            let message = "keys have gone, and nobody has looked for rows that refer to them";
            return Err(Error::Internal(message.into()));
        }
        let mut fetched = Fetched::new();
        let mut room = None;
        let committed = loop {
            // It may have noted reads of partitions that it did not come to.
            if !self.arrivals().are_complete()
                && let Err(error) = self.there(options, &self.commit_scope(&state)).await
            {
                break Err(error);
            }
            // Images and record are charged and not made yet, and rows may come into memory.
            let bytes = state.bytes as u64;
            if room.is_none() && bytes > COMMIT_FREE_BYTES {
                match self.room_to_change(options, bytes).await {
                    Ok(made) => room = Some(made),
                    Err(error) => break Err(error),
                }
            }
            match self.try_commit(&mut state, &fetched, options.synchronous_commit) {
                Ok(Committing::Done(lsn)) => break Ok(lsn),
                Ok(Committing::Again) => {}
                Ok(Committing::Evicted(reads, pin)) => {
                    // What it changed is within its own limit.
                    let fetch = self.fetcher().fetch(&reads, &mut fetched, u64::MAX);
                    if let Err(error) = fetch.await {
                        break Err(error);
                    }
                    drop(pin);
                }
                Err(error) => break Err(error),
            }
        };
        match committed {
            Ok(lsn) => {
                drop(room);
                let charge = state.charge.take();
                self.release(&mut state);
                self.make_durable(options, lsn).await?;
                self.see_out(charge.map_or(0, |charge| charge.bytes()))
                    .await;
                Ok(())
            }
            Err(error) => {
                drop(room);
                self.roll_back(state).await;
                Err(error)
            }
        }
    }

    /// Rolls back.
    pub async fn rollback(&self, mut txn: Transaction) {
        if let Some(state) = txn.state.take() {
            self.roll_back(state).await;
        }
    }

    fn try_commit(
        &self,
        txn: &mut TxnState,
        fetched: &Fetched,
        synchronous: bool,
    ) -> Result<Committing> {
        self.check_open()?;
        let writes = !txn.overlay.is_empty() || txn.logged || txn.draft.is_some();
        if !writes {
            return Ok(Committing::Done(Lsn::default()));
        }
        let validate = txn.isolation == Isolation::Serializable;
        txn.reads.order();
        let mut guards = self.lock(&self.commit_scope(txn))?;
        if validate
            && !Mutation::NotValidated.is_made()
            && let Some(snapshot) = txn.snapshot
        {
            self.validate(&mut guards, txn, snapshot)?;
        }
        // From here the overlay is applied as a one-shot's changes are. A
        // row that an index key moves away from must be in memory for that.
        // What it changed and then emptied or dropped itself is gone.
        let dropped = txn.draft.as_ref().map_or(&[][..], |draft| &draft.dropped);
        let there = |(key, _): &(&(u32, RowId), &Overlaid)| !dropped.contains(&key.0);
        let mut overlay: Vec<_> = txn.overlay.iter().filter(there).collect();
        // In the same order whenever it is run, as everything that a seed repeats.
        overlay.sort_unstable_by_key(|(key, _)| **key);
        let catalog = match &txn.draft {
            Some(draft) => draft.catalog(&self.catalog()),
            None => self.catalog(),
        };
        let run = RunKind::default();
        let mut access = Access::new(self, guards, None, fetched, Box::default(), run);
        let mut applied = access.apply_overlay(&catalog, txn.id, &overlay);
        if applied.is_ok() && !access.evicted() && !Mutation::NotExpected.is_made() {
            access.commits_for(txn.id);
            match access.verify_at_commit(&catalog, &txn.expected) {
                Ok(true) => {}
                Ok(false) => {
                    access.undo();
                    return Ok(Committing::Again);
                }
                Err(error) => applied = Err(error),
            }
        }
        if access.evicted() {
            let missing = access.missing().iter().map(|m| (m.row, m.address));
            let planned = crate::rows::fetch::plan(self.blocks(), missing);
            access.undo();
            let (reads, pin) = planned?;
            return Ok(Committing::Evicted(reads, pin));
        }
        if let Err(error) = applied {
            let taken = access.obstacle.take().is_some();
            access.undo();
            // Another transaction, not committed yet, has a unique key that a row of
            // this one was changed to, or changes a row that refers to a key which goes: they
            // cannot both commit, and it came first.
            return Err(if taken {
                Error::Serialization("a concurrent change of a key")
            } else {
                error
            });
        }
        self.count_referrals(txn);
        match self.finish_commit(txn, &mut access, synchronous) {
            Ok(lsn) => Ok(Committing::Done(lsn)),
            Err(error) => {
                access.undo();
                Err(error)
            }
        }
    }

    /// Counts the commit where rows refer to others by foreign keys: under the locks of their
    /// partitions.
    fn count_referrals(&self, txn: &TxnState) {
        let inserted = txn.inserted.keys().map(|key| key.1);
        let changed = txn.overlay.keys().map(|key| key.0);
        let storages = self.tables_by_storage();
        let mut last = None;
        for storage in inserted.chain(changed) {
            if last.replace(storage) != Some(storage)
                && let Some(table) = storages.get(&storage)
                && !table.def.foreign_keys.is_empty()
            {
                table.referrals.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// The partitions that a transaction has read or written; all, if it defines or moves what
    /// others may have.
    fn commit_scope(&self, txn: &TxnState) -> Scope {
        if txn.draft.is_some() || self.moves_unique_key(txn) {
            return Scope::All;
        }
        let Some(expected) = expected_partitions(&self.catalog(), &txn.expected) else {
            return Scope::All;
        };
        let mut partitions: Vec<u16> = txn.inserted.keys().map(|k| k.0).collect();
        partitions.extend(expected);
        partitions.extend(txn.overlay.keys().map(|k| k.1.partition()));
        match txn.isolation {
            Isolation::Serializable => self.read_scope(txn, partitions),
            _ => Scope::Many(partitions),
        }
    }

    /// Whether a row has a new key in a unique index that reaches over partitions.
    fn moves_unique_key(&self, txn: &TxnState) -> bool {
        let mut moved = txn.overlay.values().filter(|overlaid| overlaid.moved);
        let mut known = None;
        moved.any(|overlaid| {
            if known != Some(overlaid.table) {
                known = Some(overlaid.table);
                let catalog = self.catalog();
                let table = catalog.table(overlaid.table);
                return table.is_none_or(|table| table.insert_needs_all_partitions());
            }
            false
        })
    }

    fn finish_commit(
        &self,
        txn: &mut TxnState,
        access: &mut Access<'_>,
        synchronous: bool,
    ) -> Result<Lsn> {
        let number = if txn.logged { txn.id.0 } else { 0 };
        let catalog = match &txn.draft {
            Some(draft) => {
                self.log_restarts(&draft.restarted)?;
                self.encode_catalog(draft)?
            }
            None => Vec::new(),
        };
        access.prepare_kinds()?;
        let lsn = {
            let changes = access.changes();
            let (head, draft) = (commit_head(number, changes), txn.draft.as_ref());
            self.append_changes(&head, changes, &catalog, || {
                only_deletes(changes) && draft.is_none_or(Self::takes_away)
            })?
        };
        // Nothing below can fail: the record is in the log.
        access.tell_kinds(lsn);
        if let Some(snapshot) = txn.snapshot.take() {
            self.transactions().close_snapshot(snapshot);
        }
        let (timestamp, snapshots_open) = self.transactions().commit_timestamp();
        access.finish_overlay(timestamp, snapshots_open);
        for ((partition, storage), _) in std::mem::take(&mut txn.inserted) {
            for state in access.guards.iter_mut() {
                if state.id == partition {
                    make_visible(state, txn, storage, timestamp, snapshots_open);
                }
            }
        }
        // Rows that were locked and not changed may lie elsewhere; they follow.
        let owner = txn.id;
        txn.locked.retain(|(partition, row)| {
            let mut guards = access.guards.iter_mut();
            let home = guards.find(|state| state.id == *partition);
            home.map(|state| state.unlock_row(*row, owner)).is_none()
        });
        if synchronous {
            for state in access.guards.iter_mut() {
                state.last_commit = lsn;
            }
        }
        if let Some(draft) = txn.draft.take() {
            if snapshots_open {
                for state in access.guards.iter_mut() {
                    note_made(state, &draft.made, timestamp);
                }
            }
            if synchronous {
                self.sequences_made().store(lsn, Ordering::Release);
            }
            let beside = self.install(draft, &mut access.guards, timestamp);
            return Ok(beside.map_or(lsn, |beside| beside.max(lsn)));
        }
        Ok(lsn)
    }

    /// Takes back an open transaction's inserted rows, and frees what it holds.
    async fn roll_back(&self, mut state: Box<TxnState>) {
        let inserted: Vec<_> = state.inserted.keys().copied().collect();
        for (partition, storage) in inserted {
            if !state.sees_draft_of(storage) {
                let removed = self
                    .remove_uncommitted(partition, storage, state.id, 0)
                    .await;
                if let Err(error) = removed {
                    // Its rows are still there, and their keys taken: it has not
                    // ended for those who wait for it, and is tried again.
                    self.report(&format!("rolling back: {error}"));
                    self.transactions().unfinished.lock().push(*state);
                    return;
                }
            }
        }
        self.abandon(&mut state);
    }

    /// Tries again to roll back what a device error has kept from it. What cannot be
    /// read any more the next start meets, too, and names.
    pub(crate) async fn finish_rollbacks(&self) {
        let unfinished = std::mem::take(&mut *self.transactions().unfinished.lock());
        for state in unfinished {
            self.roll_back(Box::new(state)).await;
        }
    }

    /// The part of a rollback that needs no device.
    pub(crate) fn abandon(&self, state: &mut TxnState) {
        if state.logged
            && let Err(error) =
                self.append_commit(&[&record_head(RecordKind::Abort, state.id.0)], || true)
        {
            self.report(&format!("rolling back: {error}"));
        }
        if let Some(draft) = state.draft.take() {
            self.discard(draft);
        }
        self.release(state);
    }

    /// Lets go of the rows that were locked after the first `kept`. Nothing of them is changed any
    /// more. Who waits for one tries again.
    pub(crate) fn unlock_rows(&self, state: &mut TxnState, kept: usize) {
        if state.locked.len() <= kept {
            return;
        }
        for (partition, row) in state.locked.drain(kept..) {
            let mut guard = self.all_partitions()[partition as usize].lock();
            guard.unlock_row(row, state.id);
        }
        self.transactions().give_back();
    }

    /// Lets go of everything that others wait for.
    fn release(&self, state: &mut TxnState) {
        for (partition, row) in std::mem::take(&mut state.locked) {
            let mut guard = self.all_partitions()[partition as usize].lock();
            guard.unlock_row(row, state.id);
        }
        if let Some(snapshot) = state.snapshot.take() {
            self.transactions().close_snapshot(snapshot);
        }
        state.locks.give_back(0, |_, _| false);
        state.overlay.clear();
        state.journal.clear();
        state.charge = None;
        self.transactions().end(state.id);
    }

    /// Removes rows that a transaction inserted and did not commit, from row
    /// `from` on.
    pub(crate) async fn remove_uncommitted(
        &self,
        partition: u16,
        storage: u32,
        owner: crate::ground::txn_id::TxnId,
        from: u32,
    ) -> Result<()> {
        const ROWS_AT_ONCE: usize = 1000;
        let Some(table) = self.storages().read().get(&storage).cloned() else {
            return Ok(());
        };
        let mut fetched = Fetched::new();
        loop {
            let mut rows: Vec<RowId> = {
                let state = self.all_partitions()[partition as usize].lock();
                let ranges = state.uncommitted_of(owner).into_iter();
                let own = ranges.filter(|(first, _)| first.0 == storage);
                own.flat_map(|(first, last)| first.1..=last)
                    .filter(|row| *row >= from)
                    .take(ROWS_AT_ONCE)
                    .map(|row| RowId::new(partition, row))
                    .collect()
            };
            if rows.is_empty() {
                return Ok(());
            }
            let is_part = rows.len() == ROWS_AT_ONCE;
            while !rows.is_empty() {
                // A block of its own: the lock must not be held while reading.
                let (reads, _pin) = {
                    let guards = self.lock(&Scope::One(partition))?;
                    let scratch = Box::<Scratch>::default();
                    let mut access =
                        Access::new(self, guards, None, &fetched, scratch, RunKind::default());
                    access.go_by(&table);
                    // Those that are there go for good, whatever becomes of the others.
                    let removed = access.remove_rows(&table, &mut rows);
                    access.finish_overlay(0, false);
                    removed?;
                    let missing = access.missing().iter().map(|m| (m.row, m.address));
                    crate::rows::fetch::plan(self.blocks(), missing)?
                };
                fetched = Fetched::new();
                self.fetcher().fetch(&reads, &mut fetched, u64::MAX).await?;
            }
            if is_part {
                give_way().await;
            }
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            // A client that went away: rolled back on this thread.
            thermocline_device::block_on(self.db.clone().roll_back(state));
        }
    }
}

/// How far a commit got.
enum Committing {
    Done(Lsn),
    /// More partitions have to be held.
    Again,
    Evicted(
        Vec<crate::rows::fetch::PlannedRead>,
        thermocline_storage::block_store::BlockPin,
    ),
}

/// Makes the rows that `txn` inserted into a storage of this partition visible.
fn make_visible(
    state: &mut PartitionState,
    txn: &TxnState,
    storage: u32,
    timestamp: Timestamp,
    snapshots_open: bool,
) {
    for (first, last) in state.uncommitted_of(txn.id) {
        if first.0 != storage {
            continue;
        }
        state.uncommitted.remove(&first);
        if let Some(rows) = state.tables.rows_mut(storage) {
            for row in first.1..=last {
                rows.commit_insert(row);
            }
        }
        // Those of a storage that the transaction made are noted with the storage.
        let with_storage = txn.sees_draft_of(storage) && !Mutation::MadeNotedTwice.is_made();
        if snapshots_open && !with_storage {
            state.versions.push_inserted(InsertedRange {
                committed: timestamp,
                storage,
                first: first.1,
                last,
            });
        }
    }
}

/// Notes the rows in storages that the transaction made as inserted by its commit. They have no
/// mark, but for those inserted after a savepoint.
fn note_made(state: &mut PartitionState, made: &[u32], committed: Timestamp) {
    for storage in made {
        let Some(rows) = state.tables.rows(*storage) else {
            continue;
        };
        let appended = rows.directory().appended();
        // A free number is given to somebody else's row next.
        let is_there =
            |row: &u32| rows.live() == u64::from(appended) || !rows.directory().get(*row).is_free();
        let mut numbers = 0..appended;
        while let Some(first) = numbers.find(is_there) {
            let last = numbers.find(|row| !is_there(row)).unwrap_or(appended) - 1;
            state.versions.push_inserted(InsertedRange {
                committed,
                storage: *storage,
                first,
                last,
            });
        }
    }
}
