//! The database: partitions, catalog, log, blocks, and the threads that keep
//! them in order. Statements are run in `run`, commits made in `commit`, DDL in
//! `definition`; opening is in `restart`.

pub(crate) mod background;
pub(crate) mod calls;
mod column_loading;
pub(crate) mod column_report;
pub(crate) mod column_use_report;
pub(crate) mod config;
mod evict_now;
pub(crate) mod report;
#[doc(hidden)]
pub mod steps;
pub mod tablespace_report;
pub(crate) mod verify;
pub(crate) mod warm_up;
pub(crate) mod warming;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::database::warm_up::WarmUp;
use crate::format::manifest::is_file_name;
use crate::ground::counters::CountersReading;
use crate::ground::error::{Result, log_failed};
use crate::ground::start::RecoveryReport;
use crate::parts::Parts;
use crate::parts::checkpoint_state::Purpose;
use crate::procedure::Procedures;
use crate::run::interactive::Transaction;
use crate::transaction::Isolation;

/// A database in a directory of a device: its parts, and what only it sees of them.
pub struct Database {
    parts: Arc<Parts>,
    procedures: Procedures,
    warm_up: WarmUp,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A database can be taken for its parts: whoever needs no more takes these.
impl Deref for Database {
    type Target = Arc<Parts>;

    #[inline]
    fn deref(&self) -> &Arc<Parts> {
        &self.parts
    }
}

/// See [`Database::make_room`].
#[derive(Debug)]
pub struct Room {
    db: Arc<Parts>,
    bytes: u64,
    runs_code: bool,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.db.memory().no_longer_expect(self.bytes);
        if self.runs_code {
            self.db.memory().leave_code();
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("device", &self.device().describe())
            .field("partitions", &self.all_partitions().len())
            .finish_non_exhaustive()
    }
}

impl Database {
    pub(crate) fn from_parts(parts: Parts, procedures: Procedures) -> Self {
        Database {
            parts: Arc::new(parts),
            procedures,
            warm_up: WarmUp::default(),
            threads: Mutex::default(),
        }
    }

    /// How far what was warm has come back since.
    pub(crate) fn warm_up(&self) -> &WarmUp {
        &self.warm_up
    }

    /// The procedures that can be called.
    pub fn procedures(&self) -> &Procedures {
        &self.procedures
    }

    /// Threads that a stop waits for.
    pub(crate) fn keep_threads(&self, threads: Vec<JoinHandle<()>>) {
        self.threads.lock().extend(threads);
    }

    /// The engine's counters.
    pub fn counters(&self) -> CountersReading {
        self.count().read()
    }

    /// Whether a file of this name in a data directory is the database's own.
    pub fn is_file_name(name: &str) -> bool {
        is_file_name(name)
    }

    /// What opening the database took.
    pub fn recovery_report(&self) -> RecoveryReport {
        RecoveryReport {
            partitions_there: self.partitions_there(),
            ..self.start().report()
        }
    }

    /// Changes `memory_limit`; the evictor brings the process below it.
    pub fn set_memory_limit(&self, bytes: u64) {
        self.memory()
            .set_limit(bytes.max(crate::parts::settings::MEMORY_LIMIT_MIN));
        self.poke_evictor();
    }

    /// Reserves memory for an analytical statement, drawn on `memory_limit`;
    /// false when the share of such statements is used up.
    pub fn try_reserve_memory(&self, bytes: u64) -> bool {
        let reserved = self.memory().try_reserve(bytes);
        if reserved && self.memory().is_full() {
            self.poke_evictor();
        }
        reserved
    }

    /// Gives reserved memory back.
    pub fn release_memory(&self, bytes: u64) {
        self.memory().release(bytes);
    }

    /// Starts an interactive transaction.
    pub fn begin(self: &Arc<Self>, isolation: Isolation, read_only: bool) -> Transaction {
        Transaction::begin(self.parts.clone(), isolation, read_only)
    }

    /// Makes room for memory that somebody else will take at once, and that no
    /// reading could announce; it counts as taken until the [`Room`] is dropped.
    ///
    /// # Errors
    /// Memory is full, and the device that rows would leave to is, too (53100), or
    /// has failed (58030).
    pub async fn make_room(self: &Arc<Self>, bytes: u64) -> Result<Room> {
        self.memory().expect(bytes);
        let room = Room {
            db: self.parts.clone(),
            bytes,
            runs_code: false,
        };
        self.wait_for_room().await?;
        Ok(room)
    }

    /// Says that a statement begins that runs much of the program's code: there is room for it
    /// until the [`Room`] is dropped. While memory is short all of it leaves soon after the last
    /// such statement.
    ///
    /// # Errors
    /// As [`Database::make_room`].
    pub async fn run_code(self: &Arc<Self>) -> Result<Room> {
        let brings = self.memory().enter_code();
        let room = Room {
            db: self.parts.clone(),
            bytes: 0,
            runs_code: true,
        };
        if brings {
            self.wait_for_room().await?;
        }
        Ok(room)
    }

    /// For who runs much of the program's code, one part after the other, between the parts:
    /// while memory is short they are not all in memory.
    pub fn look_at_code(&self) {
        self.memory().look_at_code();
    }

    /// A clean stop: no new statements, a last checkpoint (not while partitions come), everything flushed.
    /// Leaving this out loses nothing; the next start replays more of the log.
    pub fn close(&self) -> Result<()> {
        if !self.close_to_statements() {
            return Ok(());
        }
        let result = match self.arrivals().are_complete() {
            true => self.run_checkpoint(Purpose::Close),
            // The last one stays, and the log from there on.
            false => self
                .log()
                .wait_durable_blocking(self.log().appended_lsn())
                .map_err(log_failed),
        };
        self.arrivals().close();
        self.stop();
        self.pulse().beat();
        self.poke_evictor();
        self.checkpoint_state().poke();
        self.log().shut_down();
        let threads = std::mem::take(&mut *self.threads.lock());
        threads.iter().for_each(|thread| thread.thread().unpark());
        for thread in threads {
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
        result
    }
}
