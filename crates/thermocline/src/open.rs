//! A directory becomes a database: it is made if it is absent, locked for this
//! process, recovered; and closed again.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thermocline_device::{
    Device, DirectoryLock, FileDevice, IoEngine, Lies, how_it_lies, lock_directory, make_directory,
    make_private_directory, resolve_directory,
};
use thermocline_engine::{
    Config, Database, Error, Identification, Merge, Policy, Procedure, Procedures,
    RecoveryListener, RunOptions, block_on,
};
use thermocline_sql::{Engine, SqlError};
use thermocline_storage::log::is_segment;
use thermocline_values::value::Value;

use crate::connection::Connection;

/// What SQL's code takes in memory when it is set up; measured: 17 MB.
const SQL_BYTES: u64 = 20 << 20;

/// Bytes kept on the device for making room, unless it is said otherwise: for a segment of
/// the log, and a checkpoint's files.
pub const DISK_RESERVE_BYTES: u64 = 96 << 20;

/// How long a start may take to apply the log, unless it is said otherwise.
pub const RECOVERY_TARGET: Duration = Duration::from_secs(1);

/// How to open a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// The process's resident memory stays below this, in bytes.
    pub memory_limit: u64,
    /// Partitions of a new database, a power of two; 0 chooses eight for each core.
    pub partitions: u16,
    /// How the device is read.
    pub io: IoEngine,
    /// Where closed segments of the log are kept for recovery to a point in
    /// time; made if it is absent. None: nowhere.
    pub archive_directory: Option<PathBuf>,
    /// Below which directories `BACKUP TO` may write; made if they are absent.
    /// None: `BACKUP TO` is refused.
    pub backup_directories: Vec<PathBuf>,
    /// Bytes of the device that are kept for making room when it is full; 0: none.
    pub disk_reserve_bytes: u64,
    /// Bytes that temporary files may take together; None: as many as there is
    /// room for.
    pub temp_file_limit: Option<u64>,
    /// Bytes that pages of warm columns may take; None: a thirty-second of the memory limit.
    pub warm_buffer: Option<u64>,
    /// How long a start may take to apply the log: checkpoints begin early enough, as far as
    /// their share of the device allows.
    pub recovery_target: Duration,
    /// How cold tuples are found; None: as suits the device.
    pub identification: Option<Identification>,
    /// What becomes of a tuple that was fetched; None: as suits the device.
    pub merge: Option<Merge>,
    /// Is told how far opening it has come, if that takes more than a second.
    pub progress: Option<RecoveryListener>,
    /// Procedures that can be called. Those declared deterministic have to be
    /// here: the log may hold their calls.
    pub procedures: Procedures,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_limit: 1 << 30,
            partitions: 0,
            io: IoEngine::Auto,
            archive_directory: None,
            backup_directories: Vec::new(),
            disk_reserve_bytes: DISK_RESERVE_BYTES,
            temp_file_limit: None,
            warm_buffer: None,
            recovery_target: RECOVERY_TARGET,
            identification: None,
            merge: None,
            progress: None,
            procedures: Procedures::new(),
        }
    }
}

/// Why a directory could not be opened; one line each.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has it open.
    InUse(PathBuf),
    /// It cannot be made, read or written.
    Directory(PathBuf, io::Error),
    /// What is in it cannot be opened.
    Database(PathBuf, Error),
    /// SQL over it cannot be set up.
    Sql(SqlError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => {
                write!(f, "{} is in use by another process", path.display())
            }
            Self::Directory(path, error) => {
                write!(f, "cannot use directory {}: {error}", path.display())
            }
            Self::Database(path, error) => {
                write!(f, "cannot open the database in {}: {error}", path.display())
            }
            Self::Sql(error) => write!(f, "cannot set up SQL: {error}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::InUse(_) => None,
            Self::Directory(_, error) => Some(error),
            Self::Database(_, error) => Some(error),
            Self::Sql(error) => Some(error),
        }
    }
}

/// Refuses a directory that is another one, or lies in it: what is written there would be taken
/// for what that one holds.
fn keep_apart(directory: &Path, other: &Path, what: &str) -> Result<(), OpenError> {
    let lies = resolve_directory(directory)
        .and_then(|one| Ok(how_it_lies(&one, &resolve_directory(other)?)))
        .map_err(|error| OpenError::Directory(directory.to_path_buf(), error))?;
    let why = match lies {
        Lies::Apart | Lies::Around => return Ok(()),
        Lies::There => format!("it is {what}"),
        Lies::Inside => format!("it lies in {what}"),
    };
    let error = io::Error::new(io::ErrorKind::InvalidInput, why);
    Err(OpenError::Directory(directory.to_path_buf(), error))
}

/// An open database in this process.
pub struct Embedded {
    engine: Arc<Engine>,
    database: Arc<Database>,
    device: Arc<FileDevice>,
    _archive_lock: Option<DirectoryLock>,
    // Last: the directory is free when nothing uses it any more.
    _lock: DirectoryLock,
}

impl Embedded {
    /// Opens the database in `path`, making it if there is none. Returns when it serves: a
    /// statement that needs a partition that is not there yet waits for it
    /// ([`wait_for_partitions`](thermocline_engine::Parts::wait_for_partitions) waits for all).
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let lock = lock_directory(path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => OpenError::InUse(path.to_path_buf()),
            _ => OpenError::Directory(path.to_path_buf(), error),
        })?;
        make_private_directory(path, Database::is_file_name)
            .map_err(|error| OpenError::Directory(path.to_path_buf(), error))?;
        let device = FileDevice::open(path, options.io)
            .map_err(|error| OpenError::Directory(path.to_path_buf(), error))?;
        let device = Arc::new(device);
        let mut config = Config::new(Arc::clone(&device) as Arc<dyn Device>)
            .memory_limit(options.memory_limit)
            .partitions(options.partitions);
        config.disk_reserve_bytes = options.disk_reserve_bytes;
        config.temp_file_limit = options.temp_file_limit;
        config.warm_buffer = options.warm_buffer;
        config.recovery_target = options.recovery_target;
        config.backup_directories = options.backup_directories.clone();
        let mut archive_lock = None;
        if let Some(archive) = &options.archive_directory {
            let failed = |error| OpenError::Directory(archive.clone(), error);
            keep_apart(archive, path, "the data directory")?;
            archive_lock = Some(lock_directory(archive).map_err(failed)?);
            make_private_directory(archive, is_segment).map_err(failed)?;
            let device = FileDevice::open(archive, IoEngine::Threads).map_err(failed)?;
            config.archive = Some(Arc::new(device));
        }
        for directory in &options.backup_directories {
            keep_apart(directory, path, "the data directory")?;
            if let Some(archive) = &options.archive_directory {
                keep_apart(directory, archive, "the archive directory")?;
            }
            make_directory(directory)
                .map_err(|error| OpenError::Directory(directory.clone(), error))?;
        }
        let suited = Policy::for_device(&device.profile());
        config.policy = Some(Policy {
            identification: options.identification.unwrap_or(suited.identification),
            merge: options.merge.unwrap_or(suited.merge),
            ..suited
        });
        config.progress = options.progress.clone();
        config.procedures = options.procedures.clone();
        let database = Database::open(config)
            .map_err(|error| OpenError::Database(path.to_path_buf(), error))?;
        // Applying the log may have filled memory. Without room it starts all the same.
        let _room = block_on(database.make_room(SQL_BYTES));
        Ok(Self {
            engine: Engine::new(Arc::clone(&database)).map_err(OpenError::Sql)?,
            database,
            device,
            _archive_lock: archive_lock,
            _lock: lock,
        })
    }

    /// A new connection: a session with its own transaction and settings.
    ///
    /// # Errors
    /// The session cannot be made, or there are no threads left.
    pub fn connect(&self) -> Result<Connection, SqlError> {
        Connection::new(Arc::clone(&self.engine))
    }

    /// Makes a procedure callable, from here and by `CALL`.
    ///
    /// # Errors
    /// 42723 if one of this name is there. One declared deterministic has to be
    /// in [`Options::procedures`] when the directory is opened next.
    pub fn register_procedure(&self, procedure: Procedure) -> Result<(), Error> {
        self.database.register_procedure(procedure)
    }

    /// Calls a procedure: one transaction, durable when this returns.
    ///
    /// # Errors
    /// 42883 for a procedure that does not exist, what its body returned, and
    /// what any statement may fail with; nothing of the call is kept then.
    pub fn call(&self, name: &str, arguments: &[Value]) -> Result<Vec<Value>, Error> {
        block_on(self.database.call(&RunOptions::new(), name, arguments))
    }

    /// The engine below SQL.
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// SQL over the engine, as a server needs it.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The device under the directory.
    #[must_use]
    pub fn device(&self) -> &FileDevice {
        &self.device
    }

    /// Closes the database, as dropping it does, and says how that went: what is in memory goes to the device, so that the
    /// next start has nothing to recover. Without it nothing acknowledged is
    /// lost either.
    ///
    /// # Errors
    /// The device failed.
    pub fn close(self) -> Result<(), Error> {
        self.database.close()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // Who wants to know calls `close`; nothing acknowledged is lost.
        let _ = self.database.close();
    }
}
