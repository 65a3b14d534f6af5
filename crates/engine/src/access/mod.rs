//! The locked partitions as a statement sees them.
//!
//! `Access` gives a statement's body rows with the visibility of its
//! transaction, and takes its changes. A tuple that is evicted is noted and
//! skipped: the run becomes a pre-pass, which collects the tuples that the
//! statement needs from the device (004 §3.3). Its changes are undone, and the
//! body runs again when the tuples are there.

mod commands;
mod counting;
mod kinds;
mod overwrite;
mod point;
mod read;
mod references;
pub(crate) mod retrieval;
mod row_lock;
mod taking;
mod undo;
mod write;

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thermocline_storage::arena::TuplePtr;

use crate::catalog::table_lock::{Gate, LockMode, Modes};
use crate::catalog::{Catalog, Table};
use crate::format::record::ChangeWriter;
use crate::ground::error::{Error, Result};
use crate::ground::row_id::RowId;
use crate::ground::txn_id::{Timestamp, TxnId};
use crate::memory::account::Account;
use crate::memory::fetched::Fetched;
use crate::parts::Parts;
use crate::parts::changes::{Grant, Need, Taken};
use crate::rows::fetch::Missing;
use crate::rows::partition::{PartitionGuard, PartitionState};
use crate::rows::row_state::TablePartition;
use crate::rows::versions::{Seen, StoredRow};
use crate::transaction::reads::{EVERYWHERE, ReadEntry, ReadWhat};
use crate::transaction::table_locks::Visit;
use crate::transaction::{Isolation, TxnState};

pub use crate::ground::scope::Scope;
pub(crate) use commands::RecordedRows;
pub use point::TryGet;
pub use read::EachRow;
pub(crate) use references::expected_partitions;
pub(crate) use undo::Undo;
pub use write::TUPLE_BYTES_MAX;
pub(crate) use write::check_size;

/// More evicted tuples than this in one run of a statement are an error; a
/// statement that needs so many belongs on a snapshot scan.
pub const MISSING_MAX: usize = 65_536;

/// Evicted tuples that the first pre-pass of a scan collects.
const PREPASS_ROWS: usize = 64;

/// What kind of run an `Access` is for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunKind {
    pub read_only: bool,
    /// How often the body has been run before.
    pub attempt: u32,
}

/// A direction of an ordered scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Smallest key first.
    Ascending,
    /// Largest key first.
    Descending,
}

/// The locks that a run holds, in order of partition.
pub(crate) enum Guards<'a> {
    One(PartitionGuard<'a>),
    Many(Vec<PartitionGuard<'a>>),
}

impl<'a> Guards<'a> {
    fn len(&self) -> usize {
        match self {
            Guards::One(_) => 1,
            Guards::Many(guards) => guards.len(),
        }
    }

    /// Nothing is half done in them, though this thread panics.
    fn excuse_panics(&mut self) {
        match self {
            Guards::One(guard) => guard.excuse_panics(),
            Guards::Many(guards) => guards.iter_mut().for_each(PartitionGuard::excuse_panics),
        }
    }

    /// Uses of rows that these partitions have counted.
    pub fn uses(&self) -> u64 {
        match self {
            Guards::One(guard) => guard.uses,
            Guards::Many(guards) => guards.iter().map(|guard| guard.uses).sum(),
        }
    }

    /// The position of a partition among the guards.
    #[inline]
    fn position(&self, partition: u16) -> Result<usize> {
        let found = match self {
            Guards::One(guard) => (guard.id == partition).then_some(0),
            Guards::Many(guards) => match guards.get(partition as usize) {
                Some(guard) if guard.id == partition => Some(partition as usize),
                _ => guards.binary_search_by_key(&partition, |g| g.id).ok(),
            },
        };
        found.ok_or_else(|| {
            Error::Internal(format!(
                "partition {partition} is not in the statement's scope"
            ))
        })
    }

    #[inline]
    pub fn at(&self, position: usize) -> &PartitionState {
        match self {
            Guards::One(guard) => guard,
            Guards::Many(guards) => &guards[position],
        }
    }

    #[inline]
    pub fn at_mut(&mut self, position: usize) -> &mut PartitionState {
        match self {
            Guards::One(guard) => guard,
            Guards::Many(guards) => &mut guards[position],
        }
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut PartitionState> {
        let slice = match self {
            Guards::One(guard) => std::slice::from_mut(guard),
            Guards::Many(guards) => guards.as_mut_slice(),
        };
        slice.iter_mut().map(|guard| &mut **guard)
    }
}

/// Why a run has to stop and be tried again.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// Another transaction holds a row.
    Held(TxnId),
    /// Others hold a table, or wait for it.
    Closed(Arc<Gate>, LockMode),
    /// A row to be written changed after the transaction's snapshot, or a table was emptied.
    Stale,
    /// There is no room for what it changes.
    Memory(Need),
}

/// Where the next scratch begins to number runs.
static NUMBERS: AtomicU64 = AtomicU64::new(1 << 63);
/// How many numbers a scratch has before another's begin.
const NUMBERS_A_SCRATCH: u64 = 1 << 40;

/// Vectors that are used again from run to run, by one thread.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The number of the last run: no two runs on a partition that follow each other have the
    /// same. 0: none yet.
    number: u64,
    missing: Vec<Missing>,
    undo: Undo,
    changes: ChangeWriter,
    /// What the run has changed that is no row in place: the guard's position, the storage.
    kinds: Vec<(usize, u32)>,
    rows: Vec<u32>,
    found: Vec<RowId>,
    hashes: Vec<u64>,
    key: Vec<u8>,
    keys: (Vec<u8>, Vec<u8>),
    removed: Vec<u8>,
}

impl Scratch {
    #[inline]
    fn next_number(&mut self) -> u64 {
        if self.number == 0 {
            self.number = NUMBERS.fetch_add(NUMBERS_A_SCRATCH, Ordering::Relaxed);
        }
        self.number += 1;
        self.number
    }
}

/// The locked partitions, seen by one transaction.
pub struct Access<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) guards: Guards<'a>,
    pub(crate) txn: Option<&'a mut TxnState>,
    /// None: the latest committed state.
    pub(crate) snapshot: Option<Timestamp>,
    fetched: &'a Fetched,
    /// What it has read while it held its partitions.
    now: Option<Box<Fetched>>,
    /// What it took last from where it lies, by its address: to look at a row and then to change
    /// it is one use.
    seen_last: Option<(u64, Arc<[u8]>)>,
    scratch: Box<Scratch>,
    pub(crate) obstacle: Option<Obstacle>,
    /// Without a transaction: the tables that it was let in to when it waited.
    pub(crate) visit: Option<&'a Visit>,
    /// The last table that the transaction was found to have locked, and how.
    entered: (u32, Modes),
    track_reads: bool,
    read_only: bool,
    /// A row is being changed: it may be half done.
    changing: bool,
    /// The body has not been run before: uses of tuples count.
    first_run: bool,
    /// The transaction's number, which no two have that follow each other.
    number: u64,
    /// An ordered or whole scan stops its pre-pass after this many evicted
    /// tuples: with a LIMIT it may need no more. Doubles from run to run.
    prepass_rows: usize,
    /// Logged in place of the changes.
    command: Option<Arc<[u8]>>,
    /// A definition, and a catalog, by which rows are changed that is not the one in force.
    defined_by: Option<Arc<Table>>,
    applied: Option<Arc<Catalog>>,
    /// The transaction that it commits: whose rows are its own, and whose locks hold.
    owner: Option<TxnId>,
    /// At recovery: the numbers that inserted rows take.
    recorded: Option<RecordedRows>,
    /// What it has taken beside the tables and of memory for rows ([`crate::parts::changes`]).
    taken: Taken,
    /// Whom it asks for more.
    grant: Option<&'a mut Grant>,
    account: Option<&'a Account>,
    /// Bytes of the evicted tuples that it has met.
    missing_bytes: u64,
}

/// How a statement comes to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Through an index or a scan: this makes the tuple warmer.
    First,
    /// By the row's number, which it has from the former.
    Again,
}

/// Where a visible tuple's bytes are.
#[derive(Debug, Clone)]
pub(crate) enum Image {
    /// No such row, for this transaction.
    Gone,
    /// Evicted and not fetched yet; noted.
    Evicted,
    /// In the heap.
    Hot(TuplePtr),
    /// Beside the table: overlay, before-image or fetched.
    Beside(Arc<[u8]>),
}

impl<'a> Access<'a> {
    pub(crate) fn new(
        parts: &'a Parts,
        guards: Guards<'a>,
        txn: Option<&'a mut TxnState>,
        fetched: &'a Fetched,
        mut scratch: Box<Scratch>,
        run: RunKind,
    ) -> Self {
        let snapshot = txn.as_ref().and_then(|t| t.snapshot);
        let track_reads = txn
            .as_ref()
            .is_some_and(|t| t.isolation == Isolation::Serializable && !t.read_only);
        let read_only = run.read_only || txn.as_ref().is_some_and(|t| t.read_only);
        let number = match &txn {
            None => scratch.next_number(),
            // The others begin far from there.
            Some(txn) => txn.id.0,
        };
        Access {
            parts,
            guards,
            txn,
            snapshot,
            fetched,
            now: None,
            seen_last: None,
            scratch,
            obstacle: None,
            visit: None,
            entered: (0, 0),
            track_reads,
            read_only,
            changing: false,
            first_run: run.attempt == 0,
            number,
            prepass_rows: PREPASS_ROWS << run.attempt.min(10),
            command: None,
            defined_by: None,
            applied: None,
            owner: None,
            recorded: None,
            taken: Taken::UNBOUNDED,
            grant: None,
            account: None,
            missing_bytes: 0,
        }
    }

    /// Whether a scan's pre-pass has met enough for this run.
    #[inline]
    fn prepass_full(&self) -> bool {
        self.scratch.missing.len() >= self.prepass_rows
    }

    /// Runs the body of a statement. If it panics, what it has changed is taken back before the
    /// locks go; if that was amid a change of a row, the process stops.
    pub(crate) fn run<R>(&mut self, body: &mut impl FnMut(&mut Self) -> R) -> R {
        struct Running<'r, 'a>(&'r mut Access<'a>);
        impl Drop for Running<'_, '_> {
            fn drop(&mut self) {
                if !self.0.changing {
                    self.0.undo();
                    self.0.guards.excuse_panics();
                }
            }
        }
        let running = Running(self);
        let result = body(running.0);
        // It did not panic.
        std::mem::forget(running);
        result
    }

    /// Changes a row, in which nobody else's code takes part.
    #[inline]
    fn change<R>(&mut self, change: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.changing, true);
        let result = change(self);
        self.changing = before;
        result
    }

    /// Whether a row may be half changed.
    pub(crate) fn is_changing(&self) -> bool {
        self.changing
    }

    /// Whether something was evicted in this run; its result will be thrown
    /// away and the body run again.
    pub fn evicted(&self) -> bool {
        !self.scratch.missing.is_empty()
    }

    /// Whether one more evicted tuple may be noted.
    fn check_missing(&self) -> Result<()> {
        if self.scratch.missing.len() < MISSING_MAX {
            return Ok(());
        }
        Err(Error::TooLarge(format!(
            "the statement needs more than {MISSING_MAX} evicted rows at once"
        )))
    }

    pub(crate) fn missing(&self) -> &[Missing] {
        &self.scratch.missing
    }

    /// The visible image of a row; None if it is gone, invisible or evicted.
    pub fn tuple(&mut self, table: &Table, row: RowId) -> Result<Option<&[u8]>> {
        self.check(table)?;
        let position = self.guards.position(row.partition())?;
        self.note_read(table, row.partition(), || {
            let (first, last) = (row.row(), row.row());
            ReadWhat::Rows { first, last }
        });
        let image = self.resolve(position, table, row, Use::Again)?;
        match image {
            Image::Gone | Image::Evicted => Ok(None),
            Image::Hot(pointer) => Ok(self.hot_bytes(position, table, pointer)),
            Image::Beside(bytes) => {
                // Kept alive by the scratch until the next call.
                self.scratch.key.clear();
                self.scratch.key.extend_from_slice(&bytes);
                Ok(Some(&self.scratch.key))
            }
        }
    }

    /// The image that is stored now, whatever a snapshot sees.
    pub(crate) fn current(&mut self, table: &Table, row: RowId) -> Result<Option<&[u8]>> {
        let position = self.guards.position(row.partition())?;
        let Some(rows) = self.table_at(position, table) else {
            return Ok(None);
        };
        let word = rows.directory().get(row.row());
        match self.resolve_current(position, table, row, word)? {
            Image::Gone | Image::Evicted => Ok(None),
            Image::Hot(pointer) => Ok(self.hot_bytes(position, table, pointer)),
            Image::Beside(bytes) => {
                self.scratch.key.clear();
                self.scratch.key.extend_from_slice(&bytes);
                Ok(Some(&self.scratch.key))
            }
        }
    }

    /// Enters a table to read it, as [`Access::enter`].
    #[inline]
    pub(crate) fn check(&mut self, table: &Table) -> Result<()> {
        self.enter(table, LockMode::AccessShare)
    }

    /// Makes sure that a table may be used in a mode, which a transaction takes and keeps: a
    /// table that others hold, or whose definition is another by now, must not be.
    #[inline]
    pub(crate) fn enter(&mut self, table: &Table, mode: LockMode) -> Result<()> {
        if table.retired.load(Ordering::Relaxed) {
            return Err(Error::StalePlan);
        }
        if self.recorded.is_some() || self.owner.is_some() {
            // Who locks the table now was not there when a command ran that is run again; a
            // commit has the locks of its transaction.
            return Ok(());
        }
        if self.txn.is_some() {
            let (oid, modes) = self.entered;
            return match oid == table.def.oid && modes & mode.bit() != 0 {
                true => Ok(()),
                false => self.enter_for_good(table, mode),
            };
        }
        if table.gate.is_closed_to(mode) && self.visit.is_none_or(|v| !v.has(&table.gate, mode)) {
            return Err(self.blocked(Obstacle::Closed(table.gate.clone(), mode)));
        }
        Ok(())
    }

    fn enter_for_good(&mut self, table: &Table, mode: LockMode) -> Result<()> {
        let Some(txn) = self.txn.as_deref_mut() else {
            return Ok(());
        };
        if !txn.locks.has(&table.gate, mode) {
            if !txn.locks.try_take(&table.gate, mode) {
                return Err(self.blocked(Obstacle::Closed(table.gate.clone(), mode)));
            }
            self.parts.charge_lock(txn)?;
        }
        let emptied = self
            .snapshot
            .is_some_and(|snapshot| table.gate.is_emptied_after(snapshot));
        if emptied {
            // What the snapshot sees is not there any more.
            return Err(self.blocked(Obstacle::Stale));
        }
        self.entered = match self.entered {
            (oid, modes) if oid == table.def.oid => (oid, modes | mode.bit()),
            _ => (table.def.oid, mode.bit()),
        };
        Ok(())
    }

    pub(crate) fn blocked(&mut self, obstacle: Obstacle) -> Error {
        self.obstacle.get_or_insert(obstacle);
        Error::Internal("the statement waits".into())
    }

    /// `partition`: or [`EVERYWHERE`](crate::transaction::reads::EVERYWHERE).
    fn note_read(&mut self, table: &Table, partition: u16, what: impl FnOnce() -> ReadWhat) {
        if !self.track_reads {
            return;
        }
        let Some(txn) = self.txn.as_deref_mut() else {
            return;
        };
        if txn.sees_draft_of(table.def.storage) {
            return;
        }
        txn.reads.note(ReadEntry {
            storage: table.def.storage,
            partition,
            table: table.def.oid,
            what: what(),
        });
    }

    /// The partitions of the scope, as reads of all of them are noted.
    fn read_partitions(&self) -> impl Iterator<Item = u16> + use<> {
        let all = self.guards.len() == self.parts.all_partitions().len();
        let partitions: Vec<u16> = match all && self.track_reads {
            true => vec![EVERYWHERE],
            false if self.track_reads => {
                let positions = 0..self.guards.len();
                positions.map(|at| self.guards.at(at).id).collect()
            }
            false => Vec::new(),
        };
        partitions.into_iter()
    }

    #[inline]
    fn table_at(&self, position: usize, table: &Table) -> Option<&TablePartition> {
        self.guards.at(position).tables.rows(table.def.storage)
    }

    #[inline]
    fn hot_bytes(&self, position: usize, table: &Table, pointer: TuplePtr) -> Option<&[u8]> {
        Some(self.table_at(position, table)?.heap().payload(pointer))
    }

    /// Bytes of an image.
    fn image_bytes(&self, position: usize, table: &Table, image: &Image) -> usize {
        match image {
            Image::Gone | Image::Evicted => 0,
            Image::Hot(pointer) => self
                .hot_bytes(position, table, *pointer)
                .map_or(0, <[u8]>::len),
            Image::Beside(tuple) => tuple.len(),
        }
    }

    /// Finds the image of `row` that this transaction sees.
    fn resolve(&mut self, position: usize, table: &Table, row: RowId, usage: Use) -> Result<Image> {
        let storage = table.def.storage;
        if let Some(txn) = self.txn.as_deref()
            && !txn.overlay.is_empty()
            && let Some(overlaid) = txn.overlay.get(&(storage, row))
        {
            return Ok(match &overlaid.new {
                Some(bytes) => Image::Beside(bytes.clone()),
                None => Image::Gone,
            });
        }
        let (first_run, by) = (self.first_run, self.number);
        let state = self.guards.at_mut(position);
        let stored: StoredRow = (storage, row.row());
        if let Some(snapshot) = self.snapshot
            && !state.versions.is_empty()
        {
            match state.versions.seen(stored, snapshot) {
                Seen::Current => {}
                Seen::Before(bytes) => return Ok(Image::Beside(bytes.clone())),
                Seen::Absent => return Ok(Image::Gone),
            }
        }
        let Some(rows) = state.tables.rows_mut(storage) else {
            return Ok(Image::Gone);
        };
        let mut word = rows.directory().get(row.row());
        if usage == Use::First && first_run {
            state.uses += 1;
            if word.is_cold() {
                let comes_back = word.temperature() > 0 && !word.is_in_columns();
                state.returns += u32::from(comes_back);
                retrieval::note_asked_for(table, rows, row);
            }
            if word.is_hot() || word.is_cold() {
                word = rows.used(row.row(), word, by);
            }
        }
        if word.is_uncommitted() && !self.owns(position, stored) {
            return Ok(Image::Gone);
        }
        self.resolve_current(position, table, row, word)
    }

    /// Whether this transaction inserted the uncommitted row.
    fn owns(&self, position: usize, row: StoredRow) -> bool {
        let own = self.txn.as_deref().map(|txn| txn.id).or(self.owner);
        own.is_some() && self.guards.at(position).owner_of(row) == own
    }

    /// Whether it commits a transaction, whose changes it has applied.
    pub(crate) fn commits_for(&mut self, owner: TxnId) {
        self.owner = Some(owner);
    }
}

/// Whether `key` lies between the bounds.
pub(crate) fn in_bounds(key: &[u8], lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    let above = match lower {
        Bound::Included(bound) => key >= bound,
        Bound::Excluded(bound) => key > bound,
        Bound::Unbounded => true,
    };
    above
        && match upper {
            Bound::Included(bound) => key <= bound,
            Bound::Excluded(bound) => key < bound,
            Bound::Unbounded => true,
        }
}
