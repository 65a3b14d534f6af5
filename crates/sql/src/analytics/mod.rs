//! Statements that read much: a pure SELECT that the short path declines, and all that reads
//! the system's relations. They are analysed by `thermocline_query` and run by
//! `thermocline_analytical` over tables at one snapshot of the engine.
//!
//! | file | what lives there |
//! |---|---|
//! | `run` | from an analysed query to its rows |
//! | `scan`, `scans`, `batch` | tables as DataFusion reads them |
//! | `partitioned` | the scans of a partitioned table's partitions |
//! | `way`, `learned`, `by_keys` | rows that an index leads to, by constants and by the keys of joins |
//! | `asked`, `vectors` | of column tables: filters that the storage answers, columns without tuples |
//! | `feed`, `row_stream`, `whole` | results on their way out |
//! | `memory`, `spilling` | what operators take, and what they put aside |
//! | `threads`, `cooperation`, `deep` | where they run, that they give way, stack |
//! | `small` | statements that are probably small, and do not give way |
//! | `errors` | DataFusion's errors |
//!
//! A statement's memory is bounded (see [`memory`]); dropping its [`RowStream`]
//! cancels it. Faults of devices come back as the engine's errors.

mod asked;
mod batch;
mod by_keys;
mod cooperation;
mod deep;
mod errors;
mod feed;
mod learned;
mod memory;
mod partitioned;
mod ran;
mod row_stream;
mod run;
mod scan;
mod scans;
mod small;
mod spilling;
mod threads;
mod vectors;
mod way;
mod whole;
mod width;

use std::sync::Arc;

use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::prelude::SessionConfig;
use thermocline_analytical::run::session;
use thermocline_engine::Database;

pub(crate) use errors::sql_error;
pub use row_stream::RowStream;
pub use small::SmallStatements;

use crate::error::Result;
use by_keys::ByKeys;
use cooperation::GiveWay;
use deep::MakeRoom;
use memory::AnalyticalMemory;
use spilling::SpillFiles;
use threads::Threads;
use width::Widths;

/// Streams that a table is read by at most, whatever the number of cores.
const STREAMS_MAX: usize = 32;

/// A sort's reserve for merging what it has put aside: one part of the share in so many.
const MERGE_SHARE_DIVISOR: usize = 32;
/// What planning a statement takes.
const PLAN_BYTES: u64 = 512 << 10;
/// Batches of plans over the system's relations.
const SMALL_BATCH_ROWS: usize = 1024;
/// Batches of statements whose functions the session calls: a LIMIT ends it soon after its last row.
const CALLING_BATCH_ROWS: usize = 32;

/// The analytical side of a database.
pub struct Analytics {
    db: Arc<Database>,
    /// Of statements that have a turn.
    state: SessionState,
    /// Of statements that are run at once.
    at_once: SessionState,
    /// Of those whose functions the session calls meanwhile.
    calling: SessionState,
    memory: Arc<AnalyticalMemory>,
    widths: Widths,
    streams: usize,
    threads: Threads,
    /// Of statements that are probably small.
    small: Threads,
    small_statements: Arc<SmallStatements>,
    /// Drivers and tools wait for it.
    catalogs: Threads,
}

impl Analytics {
    /// The analytical side of `db`. `memory_limit` is the database's, in bytes.
    ///
    /// # Errors
    /// When DataFusion cannot be set up.
    pub fn new(db: Arc<Database>, memory_limit: u64) -> Result<Self> {
        let streams = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(STREAMS_MAX);
        let memory = Arc::new(AnalyticalMemory::new(memory_limit, Some(Arc::clone(&db))));
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::clone(&memory) as _)
            .with_disk_manager_builder(
                DiskManagerBuilder::default()
                    .with_temp_file_factory(Arc::new(SpillFiles(Arc::clone(db.spill())))),
            )
            .build_arc()
            .map_err(|error| sql_error(&error))?;
        let config = SessionConfig::new()
            .with_target_partitions(streams)
            .with_batch_size(batch::batch_rows(memory_limit))
            // What a sort keeps for merging its runs; there may be many sorts.
            .with_sort_spill_reservation_bytes(memory.limit_bytes() / MERGE_SHARE_DIVISOR);
        let small = SessionConfig::new()
            .with_target_partitions(1)
            .with_batch_size(SMALL_BATCH_ROWS);
        let last = || -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
            vec![Arc::new(ByKeys), Arc::new(GiveWay), Arc::new(MakeRoom)]
        };
        Ok(Self {
            db,
            state: session(config, Arc::clone(&runtime), last()),
            calling: session(
                small.clone().with_batch_size(CALLING_BATCH_ROWS),
                Arc::clone(&runtime),
                last(),
            ),
            at_once: session(small, runtime, last()),
            memory,
            widths: Widths::default(),
            streams,
            threads: Threads::new("analytical", streams, true),
            small: Threads::new("small-queries", streams, false),
            small_statements: Arc::default(),
            catalogs: Threads::new("catalogs", 1, false),
        })
    }

    /// Whether operators have most of what they may use.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.memory.used_bytes() > self.memory.limit_bytes() / 2
    }

    /// The bytes that analytical statements use, and may use.
    #[must_use]
    pub fn memory_bytes(&self) -> (usize, usize) {
        (self.memory.used_bytes(), self.memory.limit_bytes())
    }

    /// What became of statements that were taken for small.
    #[must_use]
    pub fn small_statements(&self) -> &SmallStatements {
        &self.small_statements
    }

    /// What a statement's plan and batches take: each stream reads for one and fills it, has one
    /// in a channel and one with an operator; one waits for the session.
    #[must_use]
    pub fn turn_bytes(&self) -> u64 {
        let batch = batch::batch_bytes(self.db.memory_limit()) as u64;
        PLAN_BYTES + (4 * self.streams as u64 + 3) * batch
    }
}
