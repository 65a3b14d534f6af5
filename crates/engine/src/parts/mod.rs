//! What the parts of a database share: where it is kept, time, chance and policy, the partitions,
//! the log and the blocks, memory and its accounts, the catalog, counters, and how one waits.
//! Eviction, compaction, checkpoints, retrieval and the access to rows take this, and know no
//! [`Database`](crate::database::Database), which is above them.
//!
//! What is here locks for itself. A partition's lock is taken before any lock here but
//! [`Parts::storages`]', which is never held while one is taken.

pub(crate) mod append;
pub(crate) mod backup_state;
pub(crate) mod changes;
pub(crate) mod charging;
pub(crate) mod checkpoint_state;
pub(crate) mod reserve;
pub(crate) mod settings;
pub(crate) mod tablespaces;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::{Condvar, Mutex, RwLock};
use thermocline_device::{Clock, Device};
use thermocline_storage::arena::Arena;
use thermocline_storage::block_store::{BlockStore, HOME};
use thermocline_storage::log::{Log, LogFailed};

use crate::catalog::sequence::Sequence;
use crate::catalog::storages::Storages;
use crate::catalog::storages::TablesByStorage;
use crate::catalog::table_lock::{Gate, LockedObject};
use crate::catalog::{Catalog, FIRST_USER_OID, Table};
use crate::ground::counters::Counters;
use crate::ground::error::{Error, Result, log_failed};
use crate::ground::moment::Moment;
use crate::ground::pulse::Pulse;
use crate::ground::spill::Spill;
use crate::ground::start::Start;
use crate::ground::wait::Event;
use crate::memory::{Memory, columns_floor, warm_room};
use crate::parts::backup_state::BackupState;
use crate::parts::checkpoint_state::CheckpointState;
use crate::parts::reserve::Reserve;
use crate::parts::settings::Settings;
use crate::parts::tablespaces::Tablespaces;
use crate::policy::Policy;
use crate::rows::arrivals::Arrivals;
use crate::rows::fetch::Fetcher;
use crate::rows::partition::{Partition, PartitionState};
use crate::rows::versions::HeldBytes;
use crate::transaction::Transactions;

/// Versions that are dropped in one turn under a partition's lock.
const DROPPED_A_TURN: usize = 4096;

/// Before-images may take one part in so many of the memory limit, and less, but not less than
/// the other, where directories and indexes leave little.
const VERSIONS_SHARE: u64 = 4;
const VERSIONS_SHARE_MIN: u64 = 32;
/// Problems of background tasks that are kept for the operator.
const PROBLEMS_KEPT: usize = 100;

/// See the module's head.
pub struct Parts {
    device: Arc<dyn Device>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    /// What the server is set to; a table may say otherwise ([`Parts::policy_of`]).
    policy: Policy,
    tablespaces: Tablespaces,
    database_id: u128,
    arena: Arc<Arena>,
    memory: Memory,
    partitions: Vec<Partition>,
    arrivals: Arc<Arrivals>,
    catalog: RwLock<Arc<Catalog>>,
    /// Which table owns a storage, drafts included. Never held while a
    /// partition's lock is taken; see [`Parts::storages`].
    storages: Arc<Storages>,
    sequences: RwLock<HashMap<u32, Arc<Sequence>>>,
    /// Where the last definition's commit ends in the log whose maker waits for it: a number is
    /// not told before the sequence is there for good.
    sequences_made: AtomicU64,
    next_oid: AtomicU32,
    next_storage: AtomicU32,
    /// Where the next row without a partition key goes.
    next_spread: AtomicUsize,
    log: Arc<Log>,
    blocks: BlockStore,
    fetcher: Fetcher,
    transactions: Transactions,
    /// Before-images for open snapshots.
    versions_held: Arc<HeldBytes>,
    /// What of the catalog is being changed, beside tables.
    objects: Mutex<HashMap<LockedObject, Arc<Gate>>>,
    counters: Counters,
    /// Happens every few milliseconds while somebody waits with a time limit.
    tick: Event,
    /// Whether anybody does anything.
    pulse: Pulse,
    checkpoint: CheckpointState,
    backups: BackupState,
    spill: Arc<Spill>,
    reserve: Reserve,
    /// The last start.
    start: Start,
    /// Background tasks are to end.
    stopping: AtomicBool,
    /// No statement begins any more.
    closed: AtomicBool,
    evictor_signal: (Mutex<bool>, Condvar),
    problems: Mutex<Vec<String>>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("device", &self.device.describe())
            .field("partitions", &self.partitions.len())
            .finish_non_exhaustive()
    }
}

/// Gives what the rooms above work with, to be used and not exchanged.
macro_rules! given {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        impl Parts {
            $($(#[$doc])* #[inline] pub(crate) fn $field(&self) -> &$type { &self.$field })*
        }
    };
}

given! {
    clock: Arc<dyn Clock>,
    settings: Settings,
    arena: Arc<Arena>,
    memory: Memory,
    arrivals: Arc<Arrivals>,
    storages: Arc<Storages>,
    sequences: RwLock<HashMap<u32, Arc<Sequence>>>,
    sequences_made: AtomicU64,
    log: Arc<Log>,
    blocks: BlockStore,
    tablespaces: Tablespaces,
    fetcher: Fetcher,
    transactions: Transactions,
    versions_held: Arc<HeldBytes>,
    objects: Mutex<HashMap<LockedObject, Arc<Gate>>>,
    tick: Event,
    pulse: Pulse,
    backups: BackupState,
    reserve: Reserve,
    start: Start,
}

/// What is opened before the parts are there.
pub(crate) struct Opened {
    pub database_id: u128,
    pub partitions: u16,
    /// `memory_limit`, in bytes.
    pub limit: u64,
    pub arena: Arc<Arena>,
    pub blocks: BlockStore,
    pub tablespaces: Tablespaces,
    pub log: Log,
    pub reserve: Reserve,
}

impl Parts {
    /// Nothing is in it yet: no definitions, no rows.
    ///
    /// # Errors
    /// The device's.
    pub(crate) fn new(settings: Settings, opened: Opened) -> Result<Parts> {
        let Opened {
            database_id,
            partitions,
            limit,
            arena,
            blocks,
            tablespaces,
            log,
            reserve,
        } = opened;
        let policies = tablespaces.book().clone();
        let arrivals = Arc::<Arrivals>::default();
        let storages = Arc::<Storages>::default();
        Ok(Parts {
            device: settings.device.clone(),
            clock: settings.clock.clone(),
            policy: policies.home().server,
            tablespaces,
            database_id,
            memory: Memory::new(limit, arena.clone(), settings.simulator.is_none()),
            partitions: (0..partitions)
                .map(|id| PartitionState::new(id, arena.clone(), policies.clone()))
                .map(|state| Partition::new(state, arrivals.clone()))
                .collect(),
            arena,
            arrivals,
            catalog: RwLock::new(Arc::new(Catalog::empty())),
            fetcher: Fetcher::new(
                blocks.volumes().clone(),
                storages.clone(),
                columns_floor(limit),
                warm_room(limit, settings.warm_buffer),
            ),
            storages,
            sequences: RwLock::default(),
            sequences_made: AtomicU64::new(0),
            next_oid: AtomicU32::new(FIRST_USER_OID),
            next_storage: AtomicU32::new(1),
            next_spread: AtomicUsize::new(0),
            log: Arc::new(log),
            blocks,
            transactions: Transactions::default(),
            versions_held: Arc::<HeldBytes>::default(),
            objects: Mutex::default(),
            counters: Counters::default(),
            tick: Event::default(),
            pulse: Pulse::default(),
            checkpoint: CheckpointState::default(),
            backups: BackupState::default(),
            spill: Spill::new(
                settings.device.clone(),
                reserve.kept().clone(),
                settings.temp_file_limit,
            )?,
            reserve,
            start: Start::default(),
            stopping: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            evictor_signal: (Mutex::new(false), Condvar::new()),
            problems: Mutex::default(),
            settings,
        })
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// The policy in force; a table may say otherwise ([`Parts::policy_of`]).
    #[inline]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The number of the tablespace that evicted rows of a table go to, in the Block Table.
    pub(crate) fn tablespace_of(&self, table: &Table) -> u16 {
        match table.def.tablespace {
            0 => HOME,
            oid => {
                let catalog = self.catalog();
                catalog.tablespaces.get(&oid).map_or(HOME, |def| def.number)
            }
        }
    }

    /// Where temporary files are made.
    pub fn spill(&self) -> &Arc<Spill> {
        &self.spill
    }

    /// The number that tells this database from all others: made by chance, shown to nobody
    /// who connects.
    pub fn database_id(&self) -> u128 {
        self.database_id
    }

    /// The partitions, each behind its lock, in their order.
    #[inline]
    pub(crate) fn all_partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// What the engine counts.
    #[inline]
    pub(crate) fn count(&self) -> &Counters {
        &self.counters
    }

    /// What the checkpoints have left, and when the next is due.
    pub(crate) fn checkpoint_state(&self) -> &CheckpointState {
        &self.checkpoint
    }

    /// Whether background tasks are to end.
    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Background tasks are to end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// No statement begins any more. Whether one could until now.
    pub(crate) fn close_to_statements(&self) -> bool {
        !self.closed.swap(true, Ordering::SeqCst)
    }

    /// The committed catalog, for who exchanges it: under the locks of all partitions.
    pub(crate) fn catalog_lock(&self) -> &RwLock<Arc<Catalog>> {
        &self.catalog
    }

    /// The committed catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.read().clone()
    }

    /// Which table owns a storage, as of now.
    pub(crate) fn tables_by_storage(&self) -> TablesByStorage {
        self.storages.read().clone()
    }

    /// The policy that is in force for a table.
    pub fn policy_of(&self, table: &Table) -> Policy {
        table.policy_over(&self.tablespaces.book().of(table.def.tablespace))
    }

    /// The time on the configured clock, as deadlines count it.
    pub fn now(&self) -> std::time::Duration {
        self.clock.now()
    }

    /// `memory_limit`, in bytes.
    pub fn memory_limit(&self) -> u64 {
        self.memory.limit()
    }

    /// How many partitions there are.
    pub fn partitions(&self) -> u16 {
        self.partitions.len() as u16
    }

    /// Where a simulator may have others do something.
    pub(crate) fn pause(&self, moment: Moment) {
        if let Some(simulator) = &self.settings.simulator {
            simulator.pause(moment);
        }
    }

    /// What a background task does in one turn: less in a simulation, whose tables
    /// are small.
    pub(crate) fn at_a_time(&self, usual: usize) -> usize {
        match self.settings.simulator {
            Some(_) => 1,
            None => usual,
        }
    }

    /// Keeps a problem of a background task for the operator.
    pub(crate) fn report(&self, problem: &str) {
        let mut problems = self.problems.lock();
        if problems.len() < PROBLEMS_KEPT {
            problems.push(problem.to_owned());
        }
    }

    /// Gives up a block that nothing refers to.
    pub(crate) fn give_up_block(&self, block: u32) {
        if self.blocks.free(block).is_ok() {
            Counters::add(&self.counters.blocks_freed, 1);
        }
    }

    /// A sync of the blocks that failed is not tried again: from then on no
    /// checkpoint can be made, and the log that has everything stops, too.
    pub(crate) fn stop_if_blocks_failed(&self) {
        if self.blocks.has_failed() {
            self.log.fail("the blocks could not be synced");
        }
    }

    /// Takes the problems of background tasks since the last call.
    pub fn take_problems(&self) -> Vec<String> {
        std::mem::take(&mut *self.problems.lock())
    }

    /// Waits until somebody wakes the evictor.
    pub(crate) fn wait_for_poke(&self, at_most: Duration) {
        let (poked, signal) = &self.evictor_signal;
        let mut poked = poked.lock();
        if !*poked {
            signal.wait_for(&mut poked, at_most);
        }
        *poked = false;
    }

    /// Wakes the evictor before its next look.
    pub(crate) fn poke_evictor(&self) {
        let (poked, signal) = &self.evictor_signal;
        let mut poked = poked.lock();
        if !*poked {
            *poked = true;
            signal.notify_one();
        }
    }

    /// Refuses what would take memory when none can become free.
    pub(crate) fn check_growth(&self) -> Result<()> {
        if !self.memory.cannot_grow() {
            return Ok(());
        }
        // A device that failed is no full one: the log says so.
        Err(match self.log.refusal() {
            Some(why) => log_failed(why),
            None => Error::cannot_grow(),
        })
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::ShuttingDown);
        }
        Ok(())
    }

    /// A new object id.
    pub fn allocate_oid(&self) -> u32 {
        loop {
            let oid = self.next_oid.fetch_add(1, Ordering::Relaxed);
            if oid < FIRST_USER_OID {
                // After the last come the first again.
                self.next_oid.fetch_max(FIRST_USER_OID, Ordering::Relaxed);
            } else if !self.catalog().uses_oid(oid) {
                return oid;
            }
        }
    }

    /// Goes on with this object id, unless those given out have come further: in half a turn
    /// that is what is ahead.
    pub(crate) fn allocate_oids_after(&self, next: u32) {
        let ahead = |now| (next.wrapping_sub(now) < 1 << 31).then_some(next);
        let _ = (self.next_oid).fetch_update(Ordering::Relaxed, Ordering::Relaxed, ahead);
    }

    /// The numbers that the next object and the next storage get, unless others are faster.
    pub(crate) fn next_numbers(&self) -> (u32, u32) {
        let next = |number: &AtomicU32| number.load(Ordering::Relaxed);
        (next(&self.next_oid), next(&self.next_storage))
    }

    /// A start: the next object gets this number.
    pub(crate) fn begin_oids_at(&self, oid: u32) {
        self.next_oid.store(oid, Ordering::Relaxed);
    }

    /// Goes on with this number of a storage, unless those given out have come further.
    pub(crate) fn allocate_storages_from(&self, next: u32) {
        self.next_storage.fetch_max(next, Ordering::Relaxed);
    }

    /// A number for the rows of a table that nothing in blocks, images and log has.
    ///
    /// # Errors
    /// 54000 when all are used.
    pub(crate) fn allocate_storage(&self) -> Result<u32> {
        let next = |storage: u32| storage.checked_add(1);
        let taken = (self.next_storage).fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        taken.map_err(|_| {
            Error::catalog(
                "54000",
                "too many tables were created and emptied in the data directory; restore a dump \
                 into a new data directory",
            )
        })
    }

    /// A partition for a row of a table without a partition key: each in turn.
    pub fn spread(&self) -> u16 {
        (self.next_spread.fetch_add(1, Ordering::Relaxed) % self.partitions.len()) as u16
    }

    /// Live tuples of a table, counted, and cheap. While partitions come after a start it is
    /// told from those that are there; nothing that has to be right goes by it then.
    pub fn row_estimate(&self, table: &Table) -> u64 {
        let live = |partition: &Partition| {
            let state = partition.lock_if_there()?;
            Some(state.tables.rows(table.def.storage).map_or(0, |t| t.live()))
        };
        let (mut there, mut rows) = (0, 0);
        for live in self.partitions.iter().filter_map(live) {
            there += 1;
            rows += live;
        }
        match self.partitions.len() as u64 {
            all if all == there => rows,
            // Nothing is known: better taken for large.
            _ if there == 0 => u64::from(u32::MAX),
            all => rows.saturating_mul(all) / there,
        }
    }

    /// Why the database takes no writes any more, if a part of the device failed
    /// that can't be tried again.
    pub fn stopped_because(&self) -> Option<String> {
        match self.log.refusal() {
            Some(why @ LogFailed::Failed(_)) => Some(log_failed(why).to_string()),
            _ => None,
        }
    }

    /// Drops before-images that no snapshot needs, in partitions that have not
    /// been written since, and those that commits have left.
    pub(crate) fn collect_versions(&self) {
        let horizon = self.transactions.horizon();
        for partition in &self.partitions {
            while partition
                .lock_any()
                .collect_versions(horizon, DROPPED_A_TURN)
            {}
        }
    }

    /// Ends the oldest snapshots while before-images take more than their share of
    /// memory: they would take all of it, and whoever changes rows must not fail for it.
    pub(crate) fn end_old_snapshots(&self) {
        while self.versions_held.get() > self.versions_limit() {
            if self.transactions.end_oldest_snapshot().is_none() {
                return;
            }
            Counters::add(&self.counters.snapshots_ended, 1);
            self.collect_versions();
        }
    }

    /// What before-images may take, in bytes.
    pub(crate) fn versions_limit(&self) -> u64 {
        let limit = self.memory.limit();
        // Where metadata leaves little, hot rows have most of it.
        let left = self.memory.beyond_metadata() / 2;
        let share = left.clamp(limit / VERSIONS_SHARE_MIN, limit / VERSIONS_SHARE);
        self.settings.versions_bytes_max.unwrap_or(share)
    }
}
