//! The engine: partitions that run transactions serially, a catalog, one log,
//! blocks of cold tuples, checkpoints and recovery. [`Database`] is its face.
//!
//! | module | what lives there |
//! |---|---|
//! | `database`, `parts`, `config` | the database; what its parts share, below it; what it is opened with |
//! | `partition`, `kind`, `row_state`, `index` | rows and indexes behind one lock; the seam for kinds of tables; what a row goes through, the only writer of its word |
//! | `run`, `batch`, `scope`, `access` | running a statement: locks, pre-pass, restart; what it sees and changes |
//! | `procedure` | transactions written in Rust, called by name; command logging |
//! | `account`, `charging`, `changes`, `changes_share`, `byte_parts` | what clients cause: a pool, an account a session, charged before it is taken; what changes hold until they are committed |
//! | `transaction`, `txn_id`, `savepoint`, `commit`, `reads`, `validation`, `versions`, `snapshot` | interactive transactions, what they read and whether it is still so, before-images, scans at one moment |
//! | `table_lock`, `locking`, `waits` | locks of tables; waiting for others, and who waits for whom |
//! | `identification`, `evict`, `cooling`, `fetch`, `fetched`, `fetching`, `compaction`, `memory`, `floor`, `policy` | anti-caching: which rows leave, eviction, retrieval, holes, the limit, the choices |
//! | `record`, `checkpoint`, `capture`, `image`, `manifest`, `recovery`, `arrivals`, `warming` | what is logged, what is kept, how it comes back, who waits for it |
//! | `spill`, `reserve` | temporary data on the device; space that is kept for making room |
//! | `check` | a directory verified while no database is open on it |
//! | `backup` | generations of a backup, the log's archive, restoring to a point in time |
//! | `catalog`, `view`, `ddl`, `definition`, `draft`, `index_build`, `sequence`, `storages` | definitions and their changes; what reads a storage's rows |
//! | `authority` | roles, owners, privileges |
//! | `background`, `pulse`, `steps`, `moment`, `counters`, `report`, `wait` | threads, when they rest, what a simulator drives instead, figures, waiting |
//! | `verify` | everything that must agree, checked |
//!
//! No SQL here, no wire protocol, no async runtime.

pub mod access;
mod account;
mod append;
mod arrivals;
pub mod authority;
mod background;
pub mod backup;
mod backup_state;
mod batch;
mod byte_parts;
mod calls;
mod capture;
pub mod catalog;
mod changes;
mod changes_share;
mod charging;
pub mod check;
mod checkpoint;
mod checkpoint_state;
mod command;
pub mod comment;
mod commit;
mod compaction;
mod config;
mod cooling;
mod counters;
mod database;
pub mod ddl;
mod definition;
mod draft;
mod error;
mod evict;
mod fetch;
mod fetched;
mod fetching;
mod floor;
pub mod function;
#[doc(hidden)]
pub mod identification;
mod image;
mod index;
mod index_build;
mod interactive;
mod kind;
mod listener;
mod locking;
mod manifest;
mod memory;
mod moment;
mod pace;
mod partition;
mod parts;
mod policy;
mod procedure;
mod pulse;
mod reads;
mod record;
mod recovery;
mod report;
mod reserve;
mod rewrite;
mod row_id;
mod row_state;
mod run;
mod savepoint;
mod scope;
mod sequence;
mod sequences;
mod settings;
mod snapshot;
pub mod spill;
mod start;
#[doc(hidden)]
pub mod steps;
mod storages;
mod table_lock;
mod table_locks;
mod transaction;
mod txn_id;
pub mod user_type;
mod validation;
mod verify;
mod versions;
mod view;
mod wait;
mod waits;
mod warm_up;
mod warming;

pub use access::{Access, Direction, TUPLE_BYTES_MAX, TryGet};
pub use account::{
    Account, CLIENTS_SHARE_DIVISOR, Charge, ChargeKind, ClientPool, ClientPoolReport, Reclaim,
    WAIT_MAX,
};
pub use catalog::{
    Catalog, CheckDef, ColumnDef, Identity, IndexDef, IndexKind, LostLayout, SchemaDef,
    SequenceDef, Table, TableDef,
};
pub use config::Config;
pub use counters::CountersReading;
pub use database::{Database, Room};
pub use ddl::Change;
pub use error::{Error, Result, SessionEnd};
pub use function::{FunctionArgument, FunctionDef, FunctionVolatility};
pub use interactive::Transaction;
pub use listener::{RecoveryListener, RecoveryPart, RecoveryProgress};
pub use locking::TableLock;
pub use parts::Parts;
pub use policy::{Identification, Merge, Policy, Retrieval};
pub use procedure::{Call, PROCEDURE_NAME_BYTES_MAX, Procedure, Procedures, Reach, Row};
pub use report::{CheckpointReport, DeviceReport, MemoryReport, TableBlocks, TableReport};
pub use row_id::RowId;
pub use savepoint::Savepoint;
pub use scope::Scope;
pub use sequences::Given;
pub use settings::{MEMORY_LIMIT_MIN, PARTITIONS_MAX, Settings};
pub use snapshot::{Entry, Snapshot, SnapshotScan};
pub use start::RecoveryReport;
pub use table_lock::LockMode;
pub use thermocline_device::block_on;
pub use transaction::{Isolation, ReadCounts, RunOptions};
pub use user_type::{AttributeDef, TypeDef, TypeKind};
pub use verify::Verified;
pub use view::{DEFINITION_BYTES_MAX, ViewColumn, ViewDef, ViewRead, ViewType};
pub use wait::{Cancel, Event, WaitNote, WaitsFor, give_way};
pub use waits::LockWait;
pub use warm_up::WarmUpReport;
