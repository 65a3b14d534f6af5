//! What a parsed statement is. A query or a change of rows stays its text and PostgreSQL's tree of
//! it; everything else has its own small type.

use std::borrow::Cow;
use std::fmt;

use parking_lot::Mutex;
use thermocline_engine::LockMode;
use thermocline_engine::tablespace::TablespaceDef;
use thermocline_query::parse::Parsed;
use thermocline_values::types::DataType;

use super::copy::{Copy, CopySource};
use super::domain::DomainCommand;
use super::function::FunctionCommand;
use super::grant::{DefaultPrivileges, GrantCommand, Owned, OwnedBy};
use super::index::CreateIndex;
use super::materialized::{CreateMaterialized, Refresh};
use super::residence::ResidenceCommand;
use super::role::RoleCommand;
use super::schema::{CreateSchema, SetSchema};
use super::sequence::SequenceOptions;
use super::table::{AlterTable, CreateTable, Truncate};
use super::table_as::TableAs;
use super::tablespace::TablespaceCommand;
use super::trigger::TriggerCommand;
use super::user_type::TypeCommand;
use super::view::ViewCommand;

/// A query or a change of rows: its text, and its tree until that is planned.
#[derive(Debug, Clone)]
pub struct Query {
    text: Box<str>,
    tree: Tree,
    changes: bool,
}

/// A tree for whoever asks first.
#[derive(Default)]
struct Tree(Mutex<Option<Parsed>>);

impl Clone for Tree {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").finish_non_exhaustive()
    }
}

impl Query {
    pub(super) fn new(text: &str, changes: bool) -> Self {
        Self {
            text: Box::from(text),
            tree: Tree::default(),
            changes,
        }
    }

    /// Keeps the tree of the whole statement's text for whoever plans the query.
    pub(super) fn keep_tree(&mut self, tree: Parsed) {
        *self.tree.0.get_mut() = Some(tree);
    }

    /// The tree of the whole statement's text, the first time.
    pub(crate) fn take_tree(&self) -> Option<Parsed> {
        self.tree.0.lock().take()
    }

    /// Whether it is no change of data, though it may lock rows.
    #[must_use]
    pub fn is_query(&self) -> bool {
        !self.changes
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One statement.
#[derive(Debug, Clone)]
pub enum Statement {
    /// SELECT, VALUES, INSERT, UPDATE, DELETE.
    Query(Query),
    /// DO: the text of its body.
    Do(Box<str>),
    /// EXPLAIN of a statement.
    Explain(Explain),
    /// BEGIN or START TRANSACTION.
    Begin {
        /// Isolation level and access mode.
        modes: Modes,
        /// Written START TRANSACTION, which the command tag repeats.
        start: bool,
    },
    /// COMMIT or END.
    Commit {
        /// AND CHAIN: a new transaction follows at once.
        chain: bool,
    },
    /// ROLLBACK or ABORT.
    Rollback {
        /// AND CHAIN: a new transaction follows at once.
        chain: bool,
    },
    /// SAVEPOINT name
    Savepoint(String),
    /// RELEASE [SAVEPOINT] name
    Release(String),
    /// ROLLBACK TO [SAVEPOINT] name
    RollbackTo(String),
    /// SET TRANSACTION
    SetTransaction(Modes),
    /// SET SESSION CHARACTERISTICS AS TRANSACTION
    SetSessionCharacteristics(Modes),
    /// SET CONSTRAINTS
    SetConstraints {
        /// Their names; none for all.
        names: Option<Vec<Vec<String>>>,
        /// DEFERRED
        deferred: bool,
    },
    /// SET [LOCAL] name = value
    Set(Set),
    /// RESET name
    Reset(String),
    /// RESET ALL
    ResetAll,
    /// SHOW name
    Show(String),
    /// SHOW ALL
    ShowAll,
    /// ALTER SYSTEM SET or RESET
    AlterSystem(AlterSystem),
    /// DISCARD ALL, PLANS, SEQUENCES or TEMP
    Discard(&'static str),
    /// PREPARE name (types) AS statement
    Prepare {
        /// Its name.
        name: String,
        /// The texts of the declared types of its parameters.
        types: Vec<String>,
        /// The statement.
        statement: Box<Statement>,
    },
    /// EXECUTE name (arguments)
    Execute {
        /// Its name.
        name: String,
        /// The arguments.
        arguments: Vec<Argument>,
    },
    /// CALL name(arguments)
    Call(Call),
    /// DEALLOCATE name, or all
    Deallocate(Option<String>),
    /// DECLARE name CURSOR FOR query
    Declare(Declare),
    /// FETCH or MOVE
    Fetch(Fetch),
    /// CLOSE name, or all
    CloseCursor(Option<String>),
    /// COPY
    Copy(Copy),
    /// LOCK TABLE
    Lock(LockTables),
    /// CREATE, ALTER, DROP TABLESPACE
    Tablespace(TablespaceCommand),
    /// LISTEN channel
    Listen(String),
    /// UNLISTEN channel, or all
    Unlisten(Option<String>),
    /// NOTIFY
    Notify {
        /// The channel.
        channel: String,
        /// What is told, may be empty.
        payload: String,
    },
    /// VACUUM, ANALYZE, COMMENT and others:
    /// accepted, they change nothing here.
    Accepted(Accepted),
    /// CHECKPOINT
    Checkpoint,
    /// BACKUP TO directory
    Backup {
        /// A directory of the server's machine.
        directory: String,
        /// Kilobytes a second.
        max_rate: Option<u64>,
    },
    /// LOAD and UNLOAD of columns
    Residence(ResidenceCommand),
    /// CREATE TABLE AS and SELECT INTO.
    TableAs(TableAs),
    /// A change of the catalog.
    Ddl(Ddl),
}

/// EXPLAIN's options and its statement.
#[derive(Debug, Clone)]
pub struct Explain {
    /// Run it and count.
    pub analyze: bool,
    /// As JSON instead of text.
    pub json: bool,
    /// The statement.
    pub statement: Box<Statement>,
}

/// CALL.
#[derive(Debug, Clone)]
pub struct Call {
    /// The procedure, perhaps with its schema.
    pub name: Vec<String>,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// The names of the last of them, as far as they have any.
    pub names: Vec<String>,
}

/// An argument of EXECUTE or CALL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// `$n`
    Parameter(usize),
    /// A string constant, which has no type of its own.
    Text(String),
    /// The text of any other expression.
    Expression(String),
}

/// SET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// The setting's name, lower case.
    pub name: String,
    /// The values, as text; `None` for DEFAULT.
    pub value: Option<Vec<String>>,
    /// Until the end of the transaction.
    pub local: bool,
}

/// ALTER SYSTEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterSystem {
    /// The setting, lower case; `None` for all of them.
    pub name: Option<String>,
    /// Its value; `None` for what it is without ALTER SYSTEM.
    pub value: Option<String>,
}

/// A transaction's modes; what is not named stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Modes {
    /// ISOLATION LEVEL
    pub isolation: Option<IsolationLevel>,
    /// READ ONLY or READ WRITE
    pub read_only: Option<bool>,
    /// DEFERRABLE or NOT DEFERRABLE: shown, and without effect, since no snapshot can fail.
    pub deferrable: Option<bool>,
}

/// The four levels that SQL names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationLevel {
    /// READ UNCOMMITTED, which is READ COMMITTED here as in PostgreSQL.
    ReadUncommitted,
    /// READ COMMITTED
    ReadCommitted,
    /// REPEATABLE READ
    RepeatableRead,
    /// SERIALIZABLE
    Serializable,
}

impl IsolationLevel {
    /// As SHOW writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "read uncommitted",
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }

    /// The level of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::ReadUncommitted,
            Self::ReadCommitted,
            Self::RepeatableRead,
            Self::Serializable,
        ]
        .into_iter()
        .find(|level| level.name().eq_ignore_ascii_case(name.trim()))
    }
}

/// DECLARE … CURSOR.
#[derive(Debug, Clone)]
pub struct Declare {
    /// Its name.
    pub name: String,
    /// WITH HOLD: it outlives its transaction.
    pub hold: bool,
    /// Rows come in binary.
    pub binary: bool,
    /// SCROLL or NO SCROLL, if either is said.
    pub scroll: Option<bool>,
    /// The query.
    pub query: Query,
}

/// FETCH or MOVE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// The cursor.
    pub cursor: String,
    /// Which rows.
    pub direction: Direction,
    /// MOVE: the rows are skipped.
    pub skip: bool,
}

/// The rows that FETCH gives, from where the cursor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The next rows, so many or all.
    Forward(Option<u64>),
    /// The rows before, the nearest first.
    Backward(Option<u64>),
    /// One row, by its number from 1; negative ones count from the last.
    Absolute(i64),
    /// One row, so many further or back.
    Relative(i64),
}

/// LOCK TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockTables {
    /// The tables.
    pub tables: Vec<Vec<String>>,
    /// How.
    pub mode: LockMode,
    /// An error in place of a wait.
    pub nowait: bool,
}

/// A command that is accepted and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Its command tag.
    pub tag: &'static str,
    /// What to tell the client about it.
    pub notice: Option<Cow<'static, str>>,
    /// What it names, which must exist.
    pub named: Vec<Named>,
    /// 25001 inside a transaction block (VACUUM).
    pub outside_transaction: bool,
}

/// A relation that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub relation: Vec<String>,
    /// Columns of it; empty for all.
    pub columns: Vec<String>,
}

/// What a command about a tablespace does with its definition.
#[derive(Debug, Clone)]
pub enum TablespaceChange {
    /// Makes it.
    Create(TablespaceDef),
    /// Replaces it.
    Alter(TablespaceDef),
    /// Drops it.
    Drop(TablespaceDef),
}

/// A change of the catalog.
#[derive(Debug, Clone)]
pub enum Ddl {
    /// A change of the definition of a tablespace, whose place is seen to.
    Tablespace(TablespaceChange),
    /// CREATE TABLE
    CreateTable(Box<CreateTable>),
    /// CREATE SEQUENCE
    CreateSequence(CreateSequence),
    /// ALTER SEQUENCE
    AlterSequence {
        /// Its name.
        name: Vec<String>,
        /// A missing one is left alone.
        if_exists: bool,
        /// What is to change.
        change: AlterSequence,
    },
    /// CREATE, ALTER and DROP ROLE, and memberships.
    Role(RoleCommand),
    /// GRANT and REVOKE of privileges.
    Grant(GrantCommand),
    /// ALTER DEFAULT PRIVILEGES
    DefaultPrivileges(DefaultPrivileges),
    /// ALTER … OWNER TO
    Owner {
        /// What.
        owned: Owned,
        /// Its new owner.
        role: String,
    },
    /// REASSIGN OWNED and DROP OWNED
    OwnedBy(OwnedBy),
    /// CREATE and ALTER VIEW.
    View(ViewCommand),
    /// CREATE, ALTER and DROP TYPE.
    Type(TypeCommand),
    /// CREATE, ALTER and DROP DOMAIN.
    Domain(DomainCommand),
    /// CREATE and DROP FUNCTION.
    Function(FunctionCommand),
    /// CREATE, DROP and ALTER TRIGGER.
    Trigger(TriggerCommand),
    /// COMMENT ON
    Comment(Comment),
    /// A table whose columns' types are known.
    TableOf(TableOf),
    /// CREATE MATERIALIZED VIEW
    Materialized(Box<CreateMaterialized>),
    /// REFRESH MATERIALIZED VIEW
    Refresh(Refresh),
    /// ALTER TABLE
    AlterTable(AlterTable),
    /// CREATE INDEX
    CreateIndex(Box<CreateIndex>),
    /// ALTER INDEX … RENAME TO
    RenameIndex {
        /// Its name.
        name: Vec<String>,
        /// A missing one is left alone.
        if_exists: bool,
        /// Its new name.
        to: String,
    },
    /// ALTER INDEX … ATTACH PARTITION
    AttachIndex {
        /// Its name.
        name: Vec<String>,
        /// The index of a partition.
        partition: Vec<String>,
    },
    /// TRUNCATE
    Truncate(Truncate),
    /// CREATE SCHEMA
    CreateSchema(CreateSchema),
    /// ALTER … SET SCHEMA
    SetSchema(SetSchema),
    /// DROP of tables, views, indexes, sequences, schemas.
    Drop(Drop),
}

/// DROP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drop {
    /// What.
    pub kind: Dropped,
    /// Their names.
    pub names: Vec<Vec<String>>,
    /// Missing ones are left alone.
    pub if_exists: bool,
    /// What is made of them goes, too.
    pub cascade: bool,
}

/// A kind of what is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// A table.
    Table,
    /// A view.
    View,
    /// A materialized view.
    Materialized,
    /// An index.
    Index,
    /// A sequence.
    Sequence,
    /// A schema.
    Schema,
    /// A database, of which there is no other.
    Database,
    /// Something of which there is none: it cannot be created.
    None(Missing),
}

/// A kind of what is never there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// The command tag of its DROP.
    pub tag: &'static str,
    /// What it is called in messages.
    pub name: &'static str,
    /// It is a relation.
    pub is_relation: bool,
    /// It is of a table, whose name stands before its own.
    pub of_table: bool,
}

impl Dropped {
    /// The command tag.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Table => "DROP TABLE",
            Self::View => "DROP VIEW",
            Self::Materialized => "DROP MATERIALIZED VIEW",
            Self::Index => "DROP INDEX",
            Self::Sequence => "DROP SEQUENCE",
            Self::Schema => "DROP SCHEMA",
            Self::Database => "DROP DATABASE",
            Self::None(missing) => missing.tag,
        }
    }

    /// What it is called in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::View => "view",
            Self::Materialized => "materialized view",
            Self::Index => "index",
            Self::Sequence => "sequence",
            Self::Schema => "schema",
            Self::Database => "database",
            Self::None(missing) => missing.name,
        }
    }
}

/// COMMENT ON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// What it is on.
    pub object: CommentObject,
    /// The text; None takes the comment away.
    pub text: Option<String>,
}

/// What a comment is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommentObject {
    /// A table, view, index or sequence.
    Relation {
        /// `table` and so on.
        kind: &'static str,
        /// Its name.
        name: Vec<String>,
    },
    /// A column.
    Column {
        /// Its relation.
        relation: Vec<String>,
        /// Its name.
        column: String,
    },
    /// A constraint.
    Constraint {
        /// Its name.
        name: String,
        /// Its table.
        table: Vec<String>,
    },
    /// A schema.
    Schema(String),
    /// A role.
    Role(String),
    /// A database.
    Database(String),
    /// A type.
    Type(Vec<String>),
    /// A function or a procedure, or either: its kind, its name and types.
    Routine(char, super::grant::FunctionNamed),
    /// A trigger.
    Trigger {
        /// Its name.
        name: String,
        /// Its table.
        table: Vec<String>,
    },
}

/// CREATE SEQUENCE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateSequence {
    /// TEMPORARY
    pub temporary: bool,
    /// Its name.
    pub name: Vec<String>,
    /// An existing one is left alone.
    pub if_not_exists: bool,
    /// Its options.
    pub options: SequenceOptions,
}

/// A table of plain columns, as a query's are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOf {
    /// How long it lives.
    pub life: Life,
    /// Its name.
    pub name: Vec<String>,
    /// An existing one is left alone.
    pub if_not_exists: bool,
    /// Its columns.
    pub columns: Vec<ColumnOf>,
}

/// A column of a table of columns whose types are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnOf {
    /// Its name.
    pub name: String,
    /// What its values are held as.
    pub data_type: DataType,
    /// The domain that it is of.
    pub domain: Option<u32>,
}

/// How long a new table and its rows live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Life {
    /// TEMPORARY
    pub temporary: bool,
    /// ON COMMIT
    pub on_commit: Option<OnCommit>,
}

/// What a commit does with a temporary table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnCommit {
    /// Nothing.
    PreserveRows,
    /// It empties it.
    DeleteRows,
    /// It drops it.
    Drop,
}

/// What ALTER SEQUENCE changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterSequence {
    /// Its options.
    Options(SequenceOptions),
    /// Its name.
    Rename(String),
}

impl Statement {
    /// Whether its text must not be shown or logged: a password is in it.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self, Self::Ddl(Ddl::Role(command)) if command.is_secret())
    }

    /// The query that it is, or that is in it.
    pub(super) fn query_mut(&mut self) -> Option<&mut Query> {
        match self {
            Self::Query(query) => Some(query),
            Self::Explain(explain) => explain.statement.query_mut(),
            Self::Prepare { statement, .. } => statement.query_mut(),
            Self::Declare(declare) => Some(&mut declare.query),
            Self::Copy(Copy {
                source: CopySource::Query(query),
                ..
            }) => Some(query),
            _ => None,
        }
    }

    /// Whether a failed transaction lets it through.
    #[must_use]
    pub const fn ends_transaction(&self) -> bool {
        matches!(
            self,
            Self::Commit { .. } | Self::Rollback { .. } | Self::RollbackTo(_)
        )
    }
}
