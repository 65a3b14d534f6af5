//! CREATE TABLE, ALTER TABLE and TRUNCATE. Types and expressions are kept as their
//! texts, which mean the same wherever they are read.

use pg_raw_parse::Node;
use pg_raw_parse::list::NodeList;
use pg_raw_parse::nodes::{
    AlterTableCmd, AlterTableStmt, AlterTableType, ColumnDef, CreateStmt, ObjectType,
    OnCommitAction, TableLikeClause, TableLikeOption, TruncateStmt,
};
use thermocline_engine::catalog::Residence;
use thermocline_query::parse::written;

use super::constraint::{
    ColumnConstraint, TableConstraint, UsingIndex, column_constraint, defers, table_constraint,
    using_index,
};
use super::partition::{BoundedBy, Detach, PartitionBy};
use super::residence::RESIDENCE;
use super::sequence::SequenceOptions;
use super::statement::{Ddl, Life, OnCommit, Statement};
use super::trigger::Which;
use super::{node, partition, sequence};
use crate::error::{Result, SqlError};

/// CREATE TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTable {
    /// How long it lives.
    pub life: Life,
    /// Its name.
    pub name: Vec<String>,
    /// An existing one is left alone.
    pub if_not_exists: bool,
    /// Its columns, in order.
    pub columns: Vec<Columns>,
    /// Constraints that stand beside the columns.
    pub constraints: Vec<TableConstraint>,
    /// WITH: names and values.
    pub options: Vec<(String, String)>,
    /// USING method
    pub access_method: Option<String>,
    /// TABLESPACE
    pub tablespace: Option<String>,
    /// PARTITION BY
    pub partition_by: Option<PartitionBy>,
    /// PARTITION OF
    pub partition_of: Option<BoundedBy>,
}

/// What gives a table columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Columns {
    /// One is defined.
    One(Column),
    /// LIKE
    Like(Like),
    /// One of the partitioned table has more said of it: its name, and what.
    Of(String, Vec<ColumnConstraint>),
}

/// LIKE: the columns of another table or view, and what is included of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Like {
    /// Its name.
    pub name: Vec<String>,
    /// CHECK constraints.
    pub constraints: bool,
    /// Defaults.
    pub defaults: bool,
    /// What generated columns are computed by.
    pub generated: bool,
    /// Identity columns.
    pub identity: bool,
    /// PRIMARY KEY, UNIQUE and indexes.
    pub indexes: bool,
}

/// A column's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The text of its type.
    pub type_text: String,
    /// What is said of it, in order.
    pub constraints: Vec<ColumnConstraint>,
}

/// ALTER TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterTable {
    /// Its name.
    pub name: Vec<String>,
    /// A missing one is left alone.
    pub if_exists: bool,
    /// ONLY: its partitions are left alone.
    pub only: bool,
    /// It is to be a materialized view.
    pub materialized: bool,
    /// What is done, in order.
    pub operations: Vec<AlterOperation>,
}

/// What ALTER TABLE does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterOperation {
    /// SET ACCESS METHOD; without a name the default.
    AccessMethod(Option<String>),
    /// SET TABLESPACE
    Tablespace(String),
    /// ADD COLUMN
    AddColumn {
        /// The column.
        column: Column,
        /// One that is there is left alone.
        if_not_exists: bool,
    },
    /// DROP COLUMN
    DropColumn {
        /// Its name.
        name: String,
        /// A missing one is left alone.
        if_exists: bool,
        /// What is made of it goes, too.
        cascade: bool,
    },
    /// ADD CONSTRAINT
    AddConstraint(TableConstraint),
    /// ADD PRIMARY KEY or UNIQUE … USING INDEX
    AddUsingIndex(UsingIndex),
    /// DROP CONSTRAINT
    DropConstraint {
        /// Its name.
        name: String,
        /// A missing one is left alone.
        if_exists: bool,
        /// Foreign keys that need it go, too.
        cascade: bool,
    },
    /// VALIDATE CONSTRAINT
    ValidateConstraint(String),
    /// ALTER CONSTRAINT
    AlterConstraint {
        /// Its name.
        name: String,
        /// DEFERRABLE
        deferrable: bool,
        /// INITIALLY DEFERRED
        deferred: bool,
    },
    /// ALTER COLUMN SET DEFAULT and DROP DEFAULT
    Default {
        /// The column.
        column: String,
        /// The text of its default.
        default: Option<String>,
    },
    /// ALTER COLUMN ADD GENERATED … AS IDENTITY
    AddIdentity {
        /// The column.
        column: String,
        /// ALWAYS
        always: bool,
        /// Its sequence.
        options: SequenceOptions,
    },
    /// ALTER COLUMN SET GENERATED, and options of its sequence
    SetIdentity {
        /// The column.
        column: String,
        /// What changes of it and of its sequence.
        options: SequenceOptions,
    },
    /// ALTER COLUMN DROP IDENTITY
    DropIdentity {
        /// The column.
        column: String,
        /// One that is none is left alone.
        if_exists: bool,
    },
    /// ALTER COLUMN DROP EXPRESSION
    DropExpression {
        /// The column.
        column: String,
        /// One that is not generated is left alone.
        if_exists: bool,
    },
    /// ALTER COLUMN SET NOT NULL and DROP NOT NULL
    NotNull {
        /// The column.
        column: String,
        /// SET
        not_null: bool,
    },
    /// ALTER COLUMN TYPE
    Type {
        /// The column.
        column: String,
        /// The text of its new type.
        type_text: String,
        /// USING, as its text.
        using: Option<String>,
    },
    /// RENAME TO
    Rename(String),
    /// RENAME COLUMN
    RenameColumn {
        /// The column,
        from: String,
        /// and what it is called now.
        to: String,
    },
    /// RENAME CONSTRAINT
    RenameConstraint {
        /// The constraint,
        from: String,
        /// and what it is called now.
        to: String,
    },
    /// OWNER TO
    Owner(String),
    /// ENABLE and DISABLE TRIGGER
    Triggers {
        /// Which.
        which: Which,
        /// ENABLE
        enabled: bool,
    },
    /// SET (…)
    SetOptions(Vec<(String, String)>),
    /// RESET (…)
    ResetOptions(Vec<String>),
    /// Where columns are kept: LOAD, UNLOAD, ALTER COLUMN SET (residence = …).
    Residence {
        /// Their names; None: all.
        columns: Option<Vec<String>>,
        /// What is said of them; None: what it may not be.
        to: Option<Residence>,
    },
    /// ATTACH PARTITION
    AttachPartition(BoundedBy),
    /// DETACH PARTITION
    DetachPartition(Detach),
    /// What says how PostgreSQL stores and samples, which changes nothing here.
    Accepted {
        /// The column that it is for, by its name.
        column: Option<String>,
    },
}

/// TRUNCATE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncate {
    /// The tables.
    pub tables: Vec<Vec<String>>,
    /// Those with ONLY.
    pub only: Vec<Vec<String>>,
    /// RESTART IDENTITY
    pub restart_identity: bool,
    /// Tables that refer to them are emptied, too.
    pub cascade: bool,
}

#[cold]
fn refused(message: &str, hint: &'static str) -> SqlError {
    SqlError::unsupported(message.to_owned(), hint)
}

/// ON COMMIT.
pub(super) const fn on_commit(action: OnCommitAction::Type) -> Option<OnCommit> {
    match action {
        OnCommitAction::ONCOMMIT_PRESERVE_ROWS => Some(OnCommit::PreserveRows),
        OnCommitAction::ONCOMMIT_DELETE_ROWS => Some(OnCommit::DeleteRows),
        OnCommitAction::ONCOMMIT_DROP => Some(OnCommit::Drop),
        _ => None,
    }
}

pub(super) fn create(statement: &CreateStmt, text: &str) -> Result<Statement> {
    let of = statement.partbound().map(|bound| {
        let parent = statement.inh_relations().iter().next();
        partition::bounded(parent.map(node::name).unwrap_or_default(), bound, text)
    });
    let of = of.transpose()?;
    if of.is_none() && !statement.inh_relations().is_empty() {
        return Err(refused(
            "table inheritance is not supported",
            "Use a table with the columns of both.",
        ));
    }
    if statement.of_typename().is_some() {
        return Err(refused(
            "CREATE TABLE OF is not supported",
            "Name the columns.",
        ));
    }
    let mut created = CreateTable {
        life: Life {
            temporary: node::is_temporary(statement.relation()),
            on_commit: on_commit(statement.oncommit),
        },
        name: node::relation(statement.relation()),
        if_not_exists: statement.if_not_exists,
        columns: Vec::new(),
        constraints: Vec::new(),
        options: options(statement.options()),
        access_method: statement.access_method().map(str::to_owned),
        tablespace: statement.tablespacename().map(str::to_owned),
        partition_by: (statement.partspec())
            .map(|by| partition::by(by, text))
            .transpose()?,
        partition_of: of,
    };
    for element in statement.table_elts().iter() {
        match element {
            Node::ColumnDef(def) => created.columns.push(match def.type_name() {
                Some(_) => Columns::One(column(def, text)?),
                None => Columns::Of(
                    def.colname().unwrap_or_default().to_owned(),
                    column_constraints(def, text)?,
                ),
            }),
            Node::TableLikeClause(clause) => created.columns.push(Columns::Like(like(clause))),
            Node::Constraint(constraint) => {
                created.constraints.push(table_constraint(constraint)?);
            }
            _ => return Err(SqlError::internal("a table of something else")),
        }
    }
    Ok(Statement::Ddl(Ddl::CreateTable(Box::new(created))))
}

fn like(clause: &TableLikeClause) -> Like {
    use TableLikeOption as Option;
    let includes = |option: TableLikeOption::Type| clause.options & option != 0;
    Like {
        name: node::relation(clause.relation()),
        constraints: includes(Option::CREATE_TABLE_LIKE_CONSTRAINTS),
        defaults: includes(Option::CREATE_TABLE_LIKE_DEFAULTS),
        generated: includes(Option::CREATE_TABLE_LIKE_GENERATED),
        identity: includes(Option::CREATE_TABLE_LIKE_IDENTITY),
        indexes: includes(Option::CREATE_TABLE_LIKE_INDEXES),
    }
}

/// The names and values of WITH; an option without a value is true.
pub(super) fn options(list: &NodeList) -> Vec<(String, String)> {
    let options = list.iter().filter_map(|option| match option {
        Node::DefElem(option) => Some((
            node::option_name(option).to_owned(),
            node::option_text(option).unwrap_or_else(|| "true".to_owned()),
        )),
        _ => None,
    });
    options.collect()
}

fn column(def: &ColumnDef, text: &str) -> Result<Column> {
    node::collation(def.coll_clause())?;
    if def.compression().is_some() || def.storage_name().is_some() {
        return Err(refused(
            "STORAGE and COMPRESSION of a column are not supported",
            "Leave the clause out.",
        ));
    }
    Ok(Column {
        name: def.colname().unwrap_or_default().to_owned(),
        type_text: node::type_text(def.type_name())?,
        constraints: column_constraints(def, text)?,
    })
}

fn column_constraints(def: &ColumnDef, text: &str) -> Result<Vec<ColumnConstraint>> {
    let mut constraints = Vec::new();
    for constraint in def.constraints().iter() {
        if let Node::Constraint(constraint) = constraint
            && !defers(constraint, constraints.last_mut())
        {
            constraints.extend(column_constraint(constraint, text)?);
        }
    }
    Ok(constraints)
}

pub(super) fn alter(statement: &AlterTableStmt, text: &str) -> Result<Statement> {
    let operations = statement.cmds().iter().filter_map(|change| match change {
        Node::AlterTableCmd(change) => Some(operation(change, text)),
        _ => None,
    });
    let altered = Statement::Ddl(Ddl::AlterTable(AlterTable {
        name: node::relation(statement.relation()),
        if_exists: statement.missing_ok,
        only: statement.relation().is_some_and(|relation| !relation.inh),
        materialized: false,
        operations: operations.collect::<Result<_>>()?,
    }));
    Ok(match statement.objtype {
        ObjectType::OBJECT_MATVIEW => materialized(altered),
        _ => altered,
    })
}

/// ALTER TABLE with these operations.
pub(super) fn altered(
    name: Vec<String>,
    if_exists: bool,
    operations: Vec<AlterOperation>,
) -> Statement {
    Statement::Ddl(Ddl::AlterTable(AlterTable {
        name,
        if_exists,
        only: false,
        materialized: false,
        operations,
    }))
}

/// ALTER MATERIALIZED VIEW, as what ALTER TABLE would be.
pub(super) fn materialized(mut altered: Statement) -> Statement {
    if let Statement::Ddl(Ddl::AlterTable(alter)) = &mut altered {
        alter.materialized = true;
    }
    altered
}

fn operation(change: &AlterTableCmd, text: &str) -> Result<AlterOperation> {
    use AlterTableType as Type;
    let name = change.name().unwrap_or_default().to_owned();
    Ok(match (change.subtype, change.def()) {
        (Type::AT_AddColumn, Node::ColumnDef(def)) => AlterOperation::AddColumn {
            column: column(def, text)?,
            if_not_exists: change.missing_ok,
        },
        (Type::AT_DropColumn, _) => AlterOperation::DropColumn {
            name,
            if_exists: change.missing_ok,
            cascade: node::cascades(change.behavior),
        },
        (Type::AT_AddConstraint, Node::Constraint(constraint)) => match using_index(constraint)? {
            Some(using) => AlterOperation::AddUsingIndex(using),
            None => AlterOperation::AddConstraint(table_constraint(constraint)?),
        },
        (Type::AT_DropConstraint, _) => AlterOperation::DropConstraint {
            name,
            if_exists: change.missing_ok,
            cascade: node::cascades(change.behavior),
        },
        (Type::AT_AlterConstraint, Node::ATAlterConstraint(change)) => {
            AlterOperation::AlterConstraint {
                name: change.conname().unwrap_or_default().to_owned(),
                deferrable: change.deferrable,
                deferred: change.initdeferred,
            }
        }
        (Type::AT_ValidateConstraint, _) => AlterOperation::ValidateConstraint(name),
        (Type::AT_ColumnDefault, default) => AlterOperation::Default {
            column: name,
            default: match default {
                Node::None => None,
                default => Some(written::expression(default)?),
            },
        },
        (Type::AT_AddIdentity, Node::Constraint(constraint)) => AlterOperation::AddIdentity {
            column: name,
            always: constraint.generated_when as u8 == b'a',
            options: sequence::options(constraint.options(), text)?,
        },
        (Type::AT_SetIdentity, Node::NodeList(list)) => AlterOperation::SetIdentity {
            column: name,
            options: sequence::options(list, text)?,
        },
        (Type::AT_DropIdentity, _) => AlterOperation::DropIdentity {
            column: name,
            if_exists: change.missing_ok,
        },
        (Type::AT_DropExpression, _) => AlterOperation::DropExpression {
            column: name,
            if_exists: change.missing_ok,
        },
        (Type::AT_SetNotNull | Type::AT_DropNotNull, _) => AlterOperation::NotNull {
            column: name,
            not_null: change.subtype == Type::AT_SetNotNull,
        },
        (Type::AT_AlterColumnType, Node::ColumnDef(def)) => {
            node::collation(def.coll_clause())?;
            AlterOperation::Type {
                column: name,
                type_text: node::type_text(def.type_name())?,
                using: match def.raw_default() {
                    Node::None => None,
                    using => Some(written::expression(using)?),
                },
            }
        }
        (Type::AT_ChangeOwner, _) => {
            AlterOperation::Owner(change.newowner().map(node::role).unwrap_or_default())
        }
        (Type::AT_EnableTrig | Type::AT_DisableTrig, _) => AlterOperation::Triggers {
            which: Which::Named(name),
            enabled: change.subtype == Type::AT_EnableTrig,
        },
        (Type::AT_EnableTrigAll | Type::AT_EnableTrigUser, _) => AlterOperation::Triggers {
            which: Which::All,
            enabled: true,
        },
        (Type::AT_DisableTrigAll | Type::AT_DisableTrigUser, _) => AlterOperation::Triggers {
            which: Which::All,
            enabled: false,
        },
        (Type::AT_SetTableSpace, _) => {
            AlterOperation::Tablespace(change.name().unwrap_or_default().to_owned())
        }
        (Type::AT_SetAccessMethod, _) => {
            AlterOperation::AccessMethod(change.name().map(str::to_owned))
        }
        (Type::AT_SetRelOptions, Node::NodeList(list)) => AlterOperation::SetOptions(options(list)),
        (Type::AT_ResetRelOptions, Node::NodeList(list)) => {
            let names = options(list).into_iter().map(|(name, _)| name);
            AlterOperation::ResetOptions(names.collect())
        }
        (Type::AT_SetOptions | Type::AT_ResetOptions, Node::NodeList(list))
            if options(list).iter().any(|(name, _)| name == RESIDENCE) =>
        {
            let said = options(list)
                .into_iter()
                .find(|(name, _)| name == RESIDENCE);
            let said = said.map(|(_, text)| text).unwrap_or_default();
            AlterOperation::Residence {
                columns: Some(vec![name]),
                to: match change.subtype {
                    Type::AT_ResetOptions => Some(Residence::ByUse),
                    _ => Residence::read(&said),
                },
            }
        }
        (
            Type::AT_SetStatistics
            | Type::AT_SetOptions
            | Type::AT_ResetOptions
            | Type::AT_SetStorage
            | Type::AT_SetCompression,
            _,
        ) => AlterOperation::Accepted {
            column: change.name().map(str::to_owned),
        },
        (Type::AT_AttachPartition, Node::PartitionCmd(command)) => {
            AlterOperation::AttachPartition(partition::attached(command, text)?)
        }
        (
            Type::AT_DetachPartition | Type::AT_DetachPartitionFinalize,
            Node::PartitionCmd(command),
        ) => AlterOperation::DetachPartition(partition::detached(command)),
        (Type::AT_ClusterOn | Type::AT_DropCluster | Type::AT_ReplicaIdentity, _) => {
            AlterOperation::Accepted { column: None }
        }
        (other, _) => {
            let message = format!("ALTER TABLE ... {} is not supported", shown(other));
            return Err(SqlError::unsupported(
                message,
                "Columns, constraints, names, the owner and options of a table can be altered.",
            ));
        }
    })
}

/// What an operation is called.
const fn shown(operation: AlterTableType::Type) -> &'static str {
    use AlterTableType as Type;
    match operation {
        Type::AT_SetExpression => "ALTER COLUMN ... SET EXPRESSION",
        Type::AT_AlterConstraint => "ALTER CONSTRAINT",
        Type::AT_ValidateConstraint => "VALIDATE CONSTRAINT",
        Type::AT_SetLogged => "SET LOGGED",
        Type::AT_SetUnLogged => "SET UNLOGGED",
        Type::AT_EnableAlwaysTrig => "ENABLE ALWAYS TRIGGER",
        Type::AT_EnableReplicaTrig => "ENABLE REPLICA TRIGGER",
        Type::AT_EnableRule | Type::AT_EnableAlwaysRule | Type::AT_EnableReplicaRule => {
            "ENABLE RULE"
        }
        Type::AT_DisableRule => "DISABLE RULE",
        Type::AT_AddInherit => "INHERIT",
        Type::AT_DropInherit => "NO INHERIT",
        Type::AT_AddOf => "OF",
        Type::AT_DropOf => "NOT OF",
        Type::AT_EnableRowSecurity
        | Type::AT_DisableRowSecurity
        | Type::AT_ForceRowSecurity
        | Type::AT_NoForceRowSecurity => "ROW LEVEL SECURITY",
        _ => "a change of this kind",
    }
}

pub(super) fn truncate(statement: &TruncateStmt) -> Statement {
    let relations = || statement.relations().iter();
    let is_only = |relation: &Node<'_>| matches!(relation, Node::RangeVar(range) if !range.inh);
    Statement::Ddl(Ddl::Truncate(Truncate {
        tables: relations().map(node::name).collect(),
        only: relations().filter(is_only).map(node::name).collect(),
        restart_identity: statement.restart_seqs,
        cascade: node::cascades(statement.behavior),
    }))
}
