//! What can go wrong in the engine, each with the SQLSTATE that a PostgreSQL
//! client acts on. Binding and value errors of SQL are made above; here are
//! those that only the engine can find out.

use std::fmt;
use std::io;
use std::sync::Arc;

use thermocline_storage::block_store::BlockStoreError;
use thermocline_storage::log::LogFailed;
use thermocline_values::value_error::ValueError;

/// Why a session has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// Somebody who may wants it to: `pg_terminate_backend`, a stop of the server (57P01).
    Administrator,
    /// Its client is gone (08006).
    ClientLost,
}

/// The engine's result.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the engine.
#[derive(Debug, Clone)]
pub enum Error {
    /// A unique index already holds the key (23505).
    UniqueViolation {
        /// The schema of the table.
        schema: Box<str>,
        /// The table's name.
        table: String,
        /// The index that holds the key.
        constraint: String,
        /// PostgreSQL's detail line, e.g. `Key (a)=(1) already exists.`
        detail: String,
        /// Both rows are there already: an index over them cannot be built.
        building: bool,
    },
    /// A row refers to no row, or one that is referred to would go (23503).
    ForeignKeyViolation {
        /// The schema of the referring table.
        schema: Box<str>,
        /// The referring table's name.
        table: Box<str>,
        /// The constraint's name.
        constraint: Box<str>,
        /// The name of the table referred to, where its change is refused.
        referenced: Option<Box<str>>,
        /// PostgreSQL's detail line, e.g. `Key (a)=(1) is not present in table "p".`
        detail: Box<str>,
    },
    /// The transaction read or wrote something that another one changed
    /// (40001); run it again.
    Serialization(&'static str),
    /// Two transactions wait for each other; this one gives way (40P01).
    Deadlock,
    /// `lock_timeout` passed while waiting for a row or table (55P03).
    LockTimeout,
    /// The table of this name is locked, and it was not to be waited for (55P03).
    LockNotAvailable(String),
    /// The client asked for it (57014).
    Cancelled,
    /// Its session has to end (57P01, 08006).
    SessionEnds(SessionEnd),
    /// `statement_timeout` passed (57014).
    Timeout,
    /// The device has no room (53100).
    DiskFull(String),
    /// The transaction needs more memory than its share of `memory_limit`
    /// (53200).
    OutOfMemory(String),
    /// A session may not hold more of what clients cause (53200).
    ShareUsed {
        /// What it asked for, by kind.
        what: &'static str,
        /// How much it asked for, holds and may hold.
        detail: String,
    },
    /// A tuple, key or statement exceeds a limit (54000).
    TooLarge(String),
    /// A snapshot had to be given up because what it needs no longer fits in
    /// memory (72000).
    SnapshotTooOld,
    /// The table was changed by a DDL since the statement was bound (0A000);
    /// bind it again.
    StalePlan,
    /// A write in a read-only transaction (25006).
    ReadOnly,
    /// The catalog does not allow it; SQLSTATE and message as PostgreSQL's.
    Catalog {
        /// The SQLSTATE.
        sqlstate: &'static str,
        /// The message.
        message: String,
    },
    /// It is not allowed, or not possible as things are; what to do is known.
    Refused {
        /// The SQLSTATE.
        sqlstate: &'static str,
        /// The message.
        message: String,
        /// What the user can do about it.
        hint: &'static str,
    },
    /// A procedure raised it, or was called or written in a way that does not
    /// work.
    Raised {
        /// The SQLSTATE.
        sqlstate: &'static str,
        /// The message.
        message: String,
    },
    /// A value error found while keys or tuples were made.
    Value(ValueError),
    /// Stored bytes fail their checksum or contradict each other (XX001).
    Corrupt(String),
    /// A device operation failed (58030).
    Io(Arc<io::Error>, String),
    /// The log could not be made durable; the database has stopped taking
    /// writes and must be restarted (58030).
    LogFailed(String),
    /// The database is closing (57P01).
    ShuttingDown,
    /// A broken invariant; please report it (XX000).
    Internal(String),
}

impl Error {
    /// A file of the database could not be read: one that is not there, or that ends too
    /// early, is damage; anything else is the device's.
    pub(crate) fn reading(error: io::Error, file: &str) -> Error {
        match error.kind() {
            io::ErrorKind::NotFound => Error::Corrupt(format!("{file}: it is missing")),
            io::ErrorKind::UnexpectedEof => Error::Corrupt(format!("{file}: it ends too early")),
            _ => Error::io(error, format!("reading {file}")),
        }
    }

    /// Memory is full, and so is the device that rows would leave to.
    pub(crate) fn cannot_grow() -> Error {
        Error::DiskFull("memory is full, and evicted rows can't be written".into())
    }

    /// The five-character SQLSTATE.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Error::UniqueViolation { .. } => "23505",
            Error::ForeignKeyViolation { .. } => "23503",
            Error::Serialization(_) => "40001",
            Error::Deadlock => "40P01",
            Error::LockTimeout | Error::LockNotAvailable(_) => "55P03",
            Error::Cancelled | Error::Timeout => "57014",
            Error::SessionEnds(SessionEnd::ClientLost) => "08006",
            Error::DiskFull(_) => "53100",
            Error::OutOfMemory(_) | Error::ShareUsed { .. } => "53200",
            Error::TooLarge(_) => "54000",
            Error::SnapshotTooOld => "72000",
            Error::StalePlan => "0A000",
            Error::ReadOnly => "25006",
            Error::Catalog { sqlstate, .. }
            | Error::Refused { sqlstate, .. }
            | Error::Raised { sqlstate, .. } => sqlstate,
            Error::Value(error) => error.sqlstate,
            Error::Corrupt(_) => "XX001",
            Error::Io(..) | Error::LogFailed(_) => "58030",
            Error::ShuttingDown | Error::SessionEnds(SessionEnd::Administrator) => "57P01",
            Error::Internal(_) => "XX000",
        }
    }

    /// PostgreSQL's DETAIL line, where there is one.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Error::UniqueViolation { detail, .. } | Error::ShareUsed { detail, .. } => Some(detail),
            Error::ForeignKeyViolation { detail, .. } => Some(detail),
            _ => None,
        }
    }

    /// What the user can do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Error::Serialization(_) | Error::Deadlock => {
                Some("The transaction might succeed if retried.")
            }
            Error::Refused { hint, .. } => Some(hint),
            Error::DiskFull(_) => Some(
                "Free space on the device; writes resume by themselves. DELETE, TRUNCATE and DROP work meanwhile.",
            ),
            Error::OutOfMemory(_) => Some("Split the transaction, or raise memory_limit."),
            Error::ShareUsed { .. } => Some(
                "Send less at a time, close cursors and prepared statements that are not used, or raise memory_limit: a quarter of it serves what clients cause.",
            ),
            Error::StalePlan => Some("Prepare the statement again."),
            Error::SnapshotTooOld => Some("Use shorter transactions, or raise memory_limit."),
            Error::LogFailed(_) => {
                Some("Check the device, then restart; everything acknowledged is in the log.")
            }
            Error::Corrupt(_) => {
                Some("Find all damage with \"thermocline check\"; restore from a backup.")
            }
            _ => None,
        }
    }

    /// The violated constraint's name.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Error::UniqueViolation { constraint, .. } => Some(constraint),
            Error::ForeignKeyViolation { constraint, .. } => Some(constraint),
            _ => None,
        }
    }

    /// The table concerned.
    pub fn table(&self) -> Option<&str> {
        match self {
            Error::UniqueViolation { table, .. } => Some(table),
            Error::ForeignKeyViolation { table, .. } => Some(table),
            _ => None,
        }
    }

    /// The schema of the table concerned.
    pub fn schema(&self) -> Option<&str> {
        match self {
            Error::UniqueViolation { schema, .. } | Error::ForeignKeyViolation { schema, .. } => {
                Some(schema)
            }
            _ => None,
        }
    }

    /// A catalog error with PostgreSQL's SQLSTATE and words.
    pub fn catalog(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Error::Catalog {
            sqlstate,
            message: message.into(),
        }
    }

    /// An error of a procedure: rolls its call back and goes to the caller.
    pub fn raised(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Error::Raised {
            sqlstate,
            message: message.into(),
        }
    }

    /// A failed device operation; `what` names the file and the operation.
    pub fn io(error: io::Error, what: impl Into<String>) -> Self {
        let what = what.into();
        match error.kind() {
            io::ErrorKind::StorageFull => Error::DiskFull(what),
            _ => Error::Io(Arc::new(error), what),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UniqueViolation {
                constraint,
                building: true,
                ..
            } => write!(f, "could not create unique index \"{constraint}\""),
            Error::UniqueViolation { constraint, .. } => write!(
                f,
                "duplicate key value violates unique constraint \"{constraint}\""
            ),
            Error::ForeignKeyViolation {
                table,
                constraint,
                referenced: None,
                ..
            } => write!(
                f,
                "insert or update on table \"{table}\" violates foreign key constraint \"{constraint}\""
            ),
            Error::ForeignKeyViolation {
                table,
                constraint,
                referenced: Some(referenced),
                ..
            } => write!(
                f,
                "update or delete on table \"{referenced}\" violates foreign key constraint \"{constraint}\" on table \"{table}\""
            ),
            Error::Serialization(why) => {
                write!(f, "could not serialize access due to {why}")
            }
            Error::Deadlock => f.write_str("deadlock detected"),
            Error::LockTimeout => f.write_str("canceling statement due to lock timeout"),
            Error::LockNotAvailable(table) => {
                write!(f, "could not obtain lock on relation \"{table}\"")
            }
            Error::Cancelled => f.write_str("canceling statement due to user request"),
            Error::Timeout => f.write_str("canceling statement due to statement timeout"),
            Error::SessionEnds(SessionEnd::Administrator) => {
                f.write_str("terminating connection due to administrator command")
            }
            Error::SessionEnds(SessionEnd::ClientLost) => f.write_str("connection to client lost"),
            Error::DiskFull(what) => write!(f, "no space left on the device: {what}"),
            Error::OutOfMemory(what) => write!(f, "out of memory: {what}"),
            Error::ShareUsed { what, .. } => {
                write!(f, "out of memory for what clients cause ({what})")
            }
            Error::TooLarge(what) => f.write_str(what),
            Error::SnapshotTooOld => f.write_str("snapshot too old"),
            Error::StalePlan => f.write_str("the table was changed since the statement was bound"),
            Error::ReadOnly => f.write_str("cannot execute a write in a read-only transaction"),
            Error::Catalog { message, .. }
            | Error::Refused { message, .. }
            | Error::Raised { message, .. } => f.write_str(message),
            Error::Value(error) => f.write_str(&error.message),
            Error::Corrupt(what) => write!(f, "data corrupted: {what}"),
            Error::Io(error, what) => write!(f, "{what}: {error}"),
            Error::LogFailed(why) => write!(
                f,
                "the log could not be made durable ({why}); the database has stopped taking writes"
            ),
            Error::ShuttingDown => f.write_str("the database system is shutting down"),
            Error::Internal(what) => write!(f, "internal error: {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<ValueError> for Error {
    fn from(error: ValueError) -> Self {
        Error::Value(error)
    }
}

/// What statements are told of an error of the blocks.
pub(crate) fn store_failed(error: BlockStoreError) -> Error {
    match error {
        BlockStoreError::StorageFull => Error::DiskFull("blocks".into()),
        // For statements it is the same: nothing can leave memory.
        BlockStoreError::OutOfIds => Error::DiskFull("blocks: all their ids are used".into()),
        BlockStoreError::Missing { .. } => Error::Io(
            std::io::Error::new(std::io::ErrorKind::NotFound, error.to_string()).into(),
            "a tablespace".into(),
        ),
        BlockStoreError::Io { doing, source } => Error::io(source, format!("blocks: {doing}")),
        other => Error::Corrupt(other.to_string()),
    }
}

/// What statements are told of an error of the log.
pub(crate) fn log_failed(error: LogFailed) -> Error {
    match error {
        LogFailed::StorageFull => Error::DiskFull("the log".into()),
        LogFailed::TooLarge => Error::TooLarge("the transaction's log record is too large".into()),
        LogFailed::Failed(why) => Error::LogFailed(why.to_string()),
    }
}

/// What went wrong with the log, as an error of the engine.
pub(crate) fn log_broken(error: thermocline_storage::log::LogError) -> Error {
    use thermocline_storage::log::LogError;
    match error {
        LogError::Io { doing, source } => Error::io(source, doing),
        other => Error::Corrupt(other.to_string()),
    }
}
