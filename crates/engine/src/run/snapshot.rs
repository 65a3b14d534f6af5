//! Snapshots for statements that read much: all rows of a table as they were
//! at one moment, partition by partition, in bounded memory, without holding a
//! partition for long.
//!
//! Rows in memory are given out under the partition's lock, a turn at a time.
//! Evicted ones are planned there and read after it, in the order of their
//! blocks and in large reads where they lie close together.
//!
//! What open snapshots need is kept in memory, and has a share of it: beyond that the
//! oldest snapshot ends, and whoever reads by it is told so (72000).

use std::pin::Pin;
use std::sync::Arc;

use thermocline_storage::columns::ColumnTest;
use thermocline_storage::row_directory::ColdAddress;

use crate::catalog::table_lock::LockMode;
use crate::catalog::{Catalog, Table};
use crate::ground::error::Result;
use crate::ground::row_id::RowId;
use crate::ground::scope::Scope;
use crate::ground::txn_id::{Timestamp, TxnId};
use crate::ground::wait::give_way;
use crate::parts::Parts;
use crate::rows::fetch::{PlannedRead, Span, plan};
use crate::rows::group_scan::{GroupScan, RunsTaken, ScanSink};
use crate::rows::partition::PartitionState;
use crate::rows::row_group::GroupCounts;
use crate::rows::versions::{Seen, StoredRow};
use crate::run::interactive::Transaction;
use crate::transaction::reads::{EVERYWHERE, ReadEntry, ReadWhat};
use crate::transaction::table_locks::Visit;
use crate::transaction::{Isolation, RunOptions};

/// Row numbers passed in one turn.
const TURN_ROWS: u32 = 2048;
/// ... of a column table, of whose rows in groups nothing is copied.
const TURN_ROWS_OF_COLUMNS: u32 = 1 << 16;
/// Row numbers after which whoever waits for the partition gets it.
const ROWS_UNDER_LOCK: u32 = 128;
/// Bytes of rows that are given out at a time: one part of the memory limit in so many, ...
const CHUNK_DIVISOR: u64 = 1024;
/// ... between these.
const CHUNK_BYTES_MIN: u64 = 32 << 10;
const CHUNK_BYTES_MAX: u64 = 2 << 20;

/// A moment of the database, held open until the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Snapshot {
    inner: Arc<Held>,
}

#[derive(Debug)]
pub(super) struct Held {
    db: Arc<Parts>,
    timestamp: Timestamp,
    catalog: Arc<Catalog>,
    own: Option<OwnChanges>,
    /// The tables that it has locked, where no transaction has.
    entry: Entry,
}

/// Tables that a statement without a transaction has locked to read them.
#[derive(Debug, Default)]
pub struct Entry(Visit);

/// What the transaction that the snapshot belongs to has changed itself.
#[derive(Debug)]
struct OwnChanges {
    id: TxnId,
    overlay: Overlay,
}

/// Rows as a transaction has made them; `None`: deleted.
pub(super) type Overlay = hashbrown::HashMap<(u32, RowId), Option<Arc<[u8]>>>;

impl Held {
    /// Whether a table's rows stay where they are while this is read by.
    fn has_locked(&self, table: &Table) -> bool {
        let mode = LockMode::AccessShare;
        let own = self.own.as_ref();
        self.entry.0.has(&table.gate, mode)
            || own.is_some_and(|own| table.gate.is_held(own.id, mode))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.db.transactions().close_snapshot(self.timestamp);
    }
}

impl Parts {
    /// Locks tables, so that they can be read by a snapshot that is opened after it.
    ///
    /// # Errors
    /// A table's definition is another by now; 55P03, 57014 while it waits.
    pub async fn enter(&self, options: &RunOptions, tables: &[Arc<Table>]) -> Result<Entry> {
        let mut visit = Visit::default();
        for table in tables {
            let mode = LockMode::AccessShare;
            self.visit(&mut visit, options, &table.gate, mode).await?;
            check_in_force(table)?;
        }
        Ok(Entry(visit))
    }

    /// The latest committed state, for one who does not mind that DDL ends his scans.
    pub fn snapshot(self: &Arc<Self>) -> Snapshot {
        self.snapshot_of(Entry::default())
    }

    /// The latest committed state of tables that were locked.
    pub fn snapshot_of(self: &Arc<Self>, entry: Entry) -> Snapshot {
        // The catalog first: a DDL between the two makes the scan fail, not
        // return rows of another shape.
        let catalog = self.catalog();
        Snapshot {
            inner: Arc::new(Held {
                timestamp: self.transactions().open_snapshot(),
                catalog,
                own: None,
                entry,
                db: self.clone(),
            }),
        }
    }
}

/// A definition that DDL has replaced is of no use.
fn check_in_force(table: &Table) -> Result<()> {
    match table.retired.load(std::sync::atomic::Ordering::Relaxed) {
        true => Err(crate::ground::error::Error::StalePlan),
        false => Ok(()),
    }
}

impl Transaction {
    /// Locks tables, to read them by snapshots.
    ///
    /// # Errors
    /// As [`Database::enter`]; 40001 where the rows that the transaction sees were thrown away.
    pub async fn enter(&mut self, options: &RunOptions, tables: &[Arc<Table>]) -> Result<()> {
        let db = self.db.clone();
        let state = self.state_mut()?;
        for table in tables {
            db.lock_for(state, options, &table.gate, LockMode::AccessShare)
                .await?;
            check_in_force(table)?;
            if state
                .snapshot
                .is_some_and(|snapshot| table.gate.is_emptied_after(snapshot))
            {
                db.refresh(options, state).await?;
            }
        }
        Ok(())
    }

    /// What a statement of this transaction sees, its own changes included.
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        let db = self.db.clone();
        let state = self.state_mut()?;
        let timestamp = match state.snapshot {
            Some(timestamp) => {
                db.transactions().check_snapshot(timestamp)?;
                db.transactions().share_snapshot(timestamp);
                timestamp
            }
            None => {
                let timestamp = db.transactions().open_snapshot();
                if state.isolation != Isolation::ReadCommitted {
                    db.transactions().share_snapshot(timestamp);
                    state.snapshot = Some(timestamp);
                }
                timestamp
            }
        };
        self.snapshot_at(timestamp)
    }

    /// A transaction of REPEATABLE READ that has read nothing yet sees from now on what is committed
    /// by now.
    pub fn see_from_now(&mut self) -> Result<()> {
        let db = self.db.clone();
        let state = self.state_mut()?;
        if state.isolation == Isolation::RepeatableRead && state.snapshot.is_none() {
            let timestamp = db.transactions().open_snapshot();
            state.snapshot = Some(timestamp);
        }
        Ok(())
    }

    /// What is committed by now, whatever the transaction sees, and its own changes. A definition
    /// goes by it: an index has entries for rows that its maker's snapshot is too old for.
    pub fn snapshot_of_now(&mut self) -> Result<Snapshot> {
        let timestamp = self.db.transactions().open_snapshot();
        self.snapshot_at(timestamp)
    }

    /// With an open timestamp, which it closes.
    fn snapshot_at(&mut self, timestamp: Timestamp) -> Result<Snapshot> {
        let db = self.db.clone();
        let catalog = self.catalog();
        let state = self.state_mut()?;
        let overlay = state
            .overlay
            .iter()
            .map(|(key, overlaid)| (*key, overlaid.new.clone()))
            .collect();
        Ok(Snapshot {
            inner: Arc::new(Held {
                timestamp,
                catalog,
                own: Some(OwnChanges {
                    id: state.id,
                    overlay,
                }),
                entry: Entry::default(),
                db,
            }),
        })
    }

    /// Notes that a statement read all of a table through a snapshot, so that
    /// a serializable commit validates it.
    pub fn note_table_read(&mut self, table: &Table) -> Result<()> {
        let state = self.state_mut()?;
        if state.isolation == Isolation::Serializable
            && !state.read_only
            && !state.sees_draft_of(table.def.storage)
        {
            state.reads.note(ReadEntry {
                storage: table.def.storage,
                partition: EVERYWHERE,
                table: table.def.oid,
                what: ReadWhat::Table,
            });
        }
        Ok(())
    }
}

impl Snapshot {
    /// The catalog of the moment.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.catalog.clone()
    }

    /// What it is of.
    pub fn database(&self) -> &Arc<Parts> {
        &self.inner.db
    }

    pub(super) fn held(&self) -> &Held {
        &self.inner
    }

    /// Whether rows of a table may be read: it is not too old, and the table is what it was.
    pub(super) fn check(&self, table: &Table) -> Result<()> {
        let held = &self.inner;
        held.db.transactions().check_snapshot(held.timestamp)?;
        match held.has_locked(table) {
            true => Ok(()),
            false => check_in_force(table),
        }
    }

    /// Waits until a partition is there, after a start. Whoever has a timeout drops this while it waits.
    pub(super) async fn wait_for(&self, partition: u16) -> Result<()> {
        let db = &self.inner.db;
        if db.arrivals().are_complete() {
            return Ok(());
        }
        db.there(&RunOptions::default(), &Scope::One(partition))
            .await
    }

    /// All rows of a table in one partition.
    pub fn scan(&self, table: &Arc<Table>, partition: u16) -> SnapshotScan {
        SnapshotScan {
            snapshot: self.clone(),
            table: table.clone(),
            partition,
            next: 0,
            groups: GroupScan::new(None, Arc::default(), self.chunk_bytes()),
        }
    }

    /// Bytes of rows that a scan gives out at a time.
    pub(super) fn chunk_bytes(&self) -> u64 {
        let most = self.inner.db.memory().limit() / CHUNK_DIVISOR;
        most.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
    }

    /// As [`Self::scan`], for whoever looks at these columns only. In a column table the others
    /// are not read, and may be NULL in the tuples. Rows that have not what is asked may be left out.
    pub fn scan_columns(
        &self,
        table: &Arc<Table>,
        partition: u16,
        columns: &[usize],
        asked: &Arc<[ColumnTest]>,
    ) -> SnapshotScan {
        SnapshotScan {
            groups: GroupScan::new(Some(columns), asked.clone(), self.chunk_bytes()),
            ..self.scan(table, partition)
        }
    }
}

/// See [`Snapshot::scan`].
#[derive(Debug)]
pub struct SnapshotScan {
    snapshot: Snapshot,
    table: Arc<Table>,
    partition: u16,
    next: u32,
    /// The row groups of a column table.
    groups: GroupScan,
}

/// Whoever wants nothing but tuples.
pub struct Tuples<F>(F);

impl<F: FnMut(RowId, &[u8])> Tuples<F> {
    /// Calls `each` with every row.
    pub fn to(each: F) -> Self {
        Self(each)
    }
}

impl<F: FnMut(RowId, &[u8])> ScanSink for Tuples<F> {
    fn tuple(&mut self, row: RowId, tuple: &[u8]) {
        (self.0)(row, tuple);
    }
}

impl Held {
    /// Whether all rows of a partition are for it what they are in their tables.
    fn sees_all_current(&self, state: &PartitionState) -> bool {
        let unchanged = self.own.as_ref().is_none_or(|own| own.overlay.is_empty());
        unchanged && state.versions.is_empty()
    }

    pub(super) fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// Whether it is of this transaction.
    pub(super) fn is_of(&self, transaction: TxnId) -> bool {
        self.own.as_ref().is_some_and(|own| own.id == transaction)
    }

    /// The rows that its own transaction has changed or deleted, if it has one.
    pub(super) fn own_changes(&self) -> Option<&Overlay> {
        self.own.as_ref().map(|own| &own.overlay)
    }

    /// Whether its own transaction has changed or deleted a row.
    pub(super) fn has_changed(&self, storage: u32, row: RowId) -> bool {
        let own = self.own.as_ref();
        own.is_some_and(|own| own.overlay.contains_key(&(storage, row)))
    }

    /// Whether a row that is not committed is its own transaction's.
    pub(super) fn has_inserted(&self, state: &PartitionState, row: StoredRow) -> bool {
        self.own.is_some() && state.owner_of(row).is_some_and(|owner| self.is_of(owner))
    }

    /// What a row is beside its table: its transaction's own image, or that before a later commit.
    pub(super) fn beside<'s>(
        &'s self,
        state: &'s PartitionState,
        storage: u32,
        row: RowId,
    ) -> Seen<'s> {
        if let Some(own) = &self.own
            && !own.overlay.is_empty()
            && let Some(new) = own.overlay.get(&(storage, row))
        {
            return match new {
                Some(new) => Seen::Before(new),
                None => Seen::Absent,
            };
        }
        match state.versions.is_empty() {
            true => Seen::Current,
            false => state.versions.seen((storage, row.row()), self.timestamp),
        }
    }
}

impl Parts {
    /// The bytes of the block that a long record lies in, which is read to its end; 0 of others.
    pub(super) fn block_bytes_of_long(&self, address: ColdAddress) -> u64 {
        let is_long = address.extent == ColdAddress::EXTENT_LONG;
        let info = is_long.then(|| self.blocks().info(address.block)).flatten();
        info.map_or(0, |info| info.device_bytes)
    }
}

impl SnapshotScan {
    /// Calls `each` with the next rows (some thousands, or what a small part of the memory
    /// limit holds, but one); false at the end. `each` may run under the partition's lock: it must be
    /// short and must not call the database. Made once, for all whose rows are not many: see
    /// [`Self::next_rows`].
    pub fn next_chunk<'s>(
        &'s mut self,
        each: &'s mut (dyn FnMut(RowId, &[u8]) + Send),
    ) -> Pin<Box<dyn Future<Output = Result<bool>> + Send + 's>> {
        Box::pin(async move { self.next_rows(&mut Tuples(each)).await })
    }

    /// How many row groups it came to.
    #[must_use]
    pub fn group_counts(&self) -> GroupCounts {
        self.groups.counts
    }

    /// As [`Self::next_chunk`], made anew for each kind of sink; rows of row groups come as columns
    /// to those that take them.
    pub async fn next_rows(&mut self, sink: &mut impl ScanSink) -> Result<bool> {
        self.snapshot.inner.db.pulse().beat();
        let db = &self.snapshot.inner.db;
        give_way().await;
        if self.groups.has_more() {
            let groups = &db.fetcher().groups;
            self.groups.step(groups, &self.table, sink).await?;
            return Ok(true);
        }
        self.snapshot.wait_for(self.partition).await?;
        let (cold, more) = self.turn(sink)?;
        if let Some((reads, pin)) = cold {
            let db = &self.snapshot.inner.db;
            let each = &mut |read: &PlannedRead, tuple: &[u8]| sink.tuple(read.row, tuple);
            db.fetcher().read_in_order(&reads, each).await?;
            drop(pin);
        }
        Ok(more || self.groups.has_more())
    }

    #[expect(
        clippy::type_complexity,
        reason = "the plan and its pin belong together"
    )]
    fn turn(
        &mut self,
        sink: &mut impl ScanSink,
    ) -> Result<(
        Option<(Vec<PlannedRead>, thermocline_storage::block_store::BlockPin)>,
        bool,
    )> {
        let held = &self.snapshot.inner;
        let db = &held.db;
        let storage = self.table.def.storage;
        let mut cold: Vec<(RowId, ColdAddress)> = Vec::new();
        let most = self.snapshot.chunk_bytes();
        let (mut hot_bytes, mut given) = (0, 0);
        let mut cold_span = Span::default();
        let mut state = db.all_partitions()[self.partition as usize].lock();
        state.excuse_panics();
        self.snapshot.check(&self.table)?;
        let is_columns = self.table.is_columns();
        let turn_rows = if is_columns {
            TURN_ROWS_OF_COLUMNS
        } else {
            TURN_ROWS
        };
        let stop = self.next.saturating_add(turn_rows);
        let mut runs = RunsTaken::begin(db.blocks());
        let more = loop {
            let Some(rows) = state.tables.rows(storage) else {
                return Ok((None, false));
            };
            let end = rows.directory().appended();
            let pause = end.min(stop);
            // Nobody has another image of a row: runs of rows of columns are taken as they are.
            let all_current = is_columns && held.sees_all_current(&state);
            let mut looks = 0;
            while self.next < pause
                && looks < ROWS_UNDER_LOCK
                && hot_bytes + cold_span.bytes < most
                && given < TURN_ROWS
            {
                looks += 1;
                let number = self.next;
                if all_current && let Some((address, count)) = rows.directory().columns_from(number)
                {
                    let count = count.min(pause - number);
                    runs.push_run(number, address, count, db.blocks())?;
                    self.next += count;
                    continue;
                }
                self.next += 1;
                let row = RowId::new(self.partition, number);
                match held.beside(&state, storage, row) {
                    Seen::Current => {}
                    Seen::Absent => continue,
                    Seen::Before(image) => {
                        hot_bytes += image.len() as u64;
                        given += 1;
                        sink.tuple(row, image);
                        continue;
                    }
                }
                let word = rows.directory().get(number);
                if word.is_uncommitted() && !held.has_inserted(&state, (storage, number)) {
                    continue;
                }
                if let Some(hot) = word.as_hot() {
                    let tuple = rows.heap().payload(hot.pointer());
                    hot_bytes += tuple.len() as u64;
                    given += 1;
                    sink.tuple(row, tuple);
                } else if let Some(word) = word.as_cold() {
                    let address = word.address();
                    if address.is_in_columns() {
                        runs.push(number, address, db.blocks())?;
                        continue;
                    }
                    given += 1;
                    cold_span.add(address, db.block_bytes_of_long(address));
                    cold.push((row, address));
                }
            }
            let more = self.next < end;
            let is_full = hot_bytes + cold_span.bytes >= most || given >= TURN_ROWS;
            if !more || self.next >= stop || is_full {
                break more;
            }
            // Where evicted tuples lie is known as long as the lock is held.
            if cold.is_empty() {
                state.let_others();
                self.snapshot.check(&self.table)?;
            }
        };
        cold.sort_unstable_by_key(|(_, address)| (address.block, address.slot));
        let planned = (!cold.is_empty()).then(|| plan(db.blocks(), cold.into_iter()));
        let planned = planned.transpose()?;
        drop(state);
        self.groups.take(self.partition, runs);
        Ok((planned, more))
    }
}
