//! The engine: partitions that run transactions serially, a catalog, one log,
//! blocks of cold tuples, checkpoints and recovery. [`Database`] is its face.
//!
//! Each folder is a room. A room imports only rooms above it in this list, which is kept by
//! `crates/thermocline/tests/tidy.rs`:
//!
//! | room | what lives there |
//! |---|---|
//! | `ground` | errors, numbers, scopes, waiting, counters, temporary files, whom a simulator or an operator hears |
//! | `policy` | what the papers vary, as values, for a server and for a table; which rows leave memory next |
//! | `memory` | the limit; what clients cause, charged before it is taken; the floor of hot rows; rows that were read |
//! | `catalog` | definitions, their drafts and changes, rights, comments, locks of tables, sequences, what reads a storage's rows |
//! | `format` | log records, calls in the log, the manifest, image files |
//! | `rows` | partitions; the seam for kinds of tables; a row's life, the only writer of its word; indexes, versions, reading what has left |
//! | `transaction` | what an interactive transaction carries, its reads and locks, open snapshots, who waits for whom |
//! | `parts` | what all rooms below share, and charging and appending with it; settings, what checkpoints and backups left |
//! | `cold` | anti-caching: eviction, cooling, compaction, reading for a statement |
//! | `access` | the locked partitions as a statement sees and changes them; undoing; what a commit asks of kinds |
//! | `run` | running a statement: locks, pre-pass, restart; interactive transactions, savepoints, commit, validation, snapshots |
//! | `define` | DDL, and what it makes of rows that are there |
//! | `keep` | checkpoints |
//! | `procedure` | transactions written in Rust |
//! | `database` | the face: opening's other end, threads, steps for a simulator, reports, warming, verifying |
//! | `restart` | opening: manifest, images, the log's tail, partition by partition |
//! | `backup` | generations of a backup, the log's archive, restoring to a point in time |
//! | `check` | a directory verified while no database is open on it |
//!
//! No SQL here, no wire protocol, no async runtime.

pub mod access;
pub mod backup;
pub mod catalog;
pub mod check;
mod cold;
mod database;
mod define;
mod format;
mod ground;
mod keep;
mod memory;
mod parts;
mod policy;
mod procedure;
mod restart;
mod rows;
mod run;
mod transaction;

pub use access::{Access, Direction, TUPLE_BYTES_MAX, TryGet};
pub use catalog::ddl::Change;
pub use catalog::function::{FunctionArgument, FunctionDef, FunctionLanguage, FunctionVolatility};
pub use catalog::partition_map::{BoundConflict, PartitionMap};
pub use catalog::partitioning::{
    PartitionBound, PartitionDef, PartitionStrategy, PartitionedBy, RangeEnd,
};
pub use catalog::table_lock::LockMode;
pub use catalog::trigger::{TriggerDef, TriggerEvent};
pub use catalog::user_type::{AttributeDef, TypeDef, TypeKind};
pub use catalog::view::{
    CHECK_OPTION, DEFINITION_BYTES_MAX, MaterializedDef, SECURITY_INVOKER, ViewColumn, ViewDef,
    ViewFunction, ViewRead, ViewType, is_yes,
};
pub use catalog::{
    Catalog, CheckDef, ColumnDef, ForeignKeyDef, Hidden, Identity, IndexDef, IndexKind, LostLayout,
    ReferenceAction, SchemaDef, SequenceDef, Table, TableDef,
};
pub use catalog::{authority, comment, ddl, function, user_type};
pub use database::column_report::ColumnReport;
pub use database::column_use_report::{ColumnUse, ColumnUseReport};
pub use database::config::Config;
pub use database::report::{
    CheckpointReport, DeviceReport, MemoryReport, PolicyReport, TableBlocks, TableReport,
};
#[doc(hidden)]
pub use database::steps;
pub use database::tablespace_report::TablespaceReport;
pub use database::verify::Verified;
pub use database::warm_up::WarmUpReport;
pub use database::{Database, Room};
pub use ground::alone::Alone;
pub use ground::counters::CountersReading;
pub use ground::error::{Error, Result, SessionEnd};
pub use ground::listener::{RecoveryListener, RecoveryPart, RecoveryProgress};
pub use ground::row_id::RowId;
pub use ground::scope::Scope;
pub use ground::spill;
pub use ground::start::RecoveryReport;
pub use ground::wait::{Cancel, Event, WaitNote, WaitsFor, give_way};
pub use memory::account::{
    Account, CLIENTS_SHARE_DIVISOR, Charge, ChargeKind, ClientPool, ClientPoolReport, Reclaim,
    WAIT_MAX,
};
pub use parts::Parts;
pub use parts::settings::{MEMORY_LIMIT_MIN, PARTITIONS_MAX, Settings};
#[doc(hidden)]
pub use policy::identification;
pub use policy::table_policy;
pub use policy::{
    BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, ColdAccess, Compaction, Compression, Identification, Merge,
    MergeUnit, Policy, ReadUnit, Retrieval, Share, Timing,
};
pub use procedure::{Call, PROCEDURE_NAME_BYTES_MAX, Procedure, Procedures, Reach, Row};
pub use rows::group_scan::{GroupRows, ScanSink};
pub use rows::row_group::GroupCounts;
pub use rows::row_state::PolicyCounts;
pub use run::index_keys::{IndexKeys, KeyInterval};
pub use run::interactive::Transaction;
pub use run::key_scan::KeyScan;
pub use run::locking::TableLock;
pub use run::savepoint::Savepoint;
pub use run::scan_notes::ScanNotes;
pub use run::sequences::Given;
pub use run::snapshot::{Entry, Snapshot, SnapshotScan, Tuples};
pub use thermocline_device::{OutsideFile, block_on};
pub use transaction::expected::{HeldExpectations, Referring, RemovedKey};
/// Tablespaces: what they are, and what their options may be.
pub mod tablespace {
    pub use crate::catalog::tablespace::{MEASURED, Measured, TablespaceDef, TablespaceOptions};
    pub use crate::define::tablespaces::check_option;
}
pub use transaction::waits::LockWait;
pub use transaction::{Isolation, ReadCounts, RunOptions};
