//! Plans: what a bound statement does, with its access path chosen. A plan
//! is run without names and texts; it keeps some for EXPLAIN. It is shared by all executions of a prepared
//! statement and stays valid as long as the catalog version it was bound for.

mod by_key;
mod choose;
mod effect;
mod explain;
mod fires;
mod fit;
mod join;
mod merge;
mod partitions;
mod reason;
mod reference;
mod select;
mod used;

pub(crate) use by_key::{locking, row_numbered, source_by_key};
pub(crate) use choose::{OrderKey, choose, conjunction, plain_keys};
pub(crate) use effect::{replaces, unique_within_partition, whole_key};
pub(crate) use fit::{Fit, fit, fits};
pub(crate) use join::Bounded;
pub use join::{Departures, JoinStep, StepKind};
pub use merge::MergePlan;
pub use partitions::{EachPlan, Partitions, PartitionsBelow, Routes};
pub use reason::Reason;
pub use reference::Reference;
pub(crate) use reference::{ReferredTo, referring_index, takes_keys};
pub use select::{LockMode, LockedRows, RowLock, SelectPlan, SortKey};
pub use used::ColumnsUsed;

use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_values::types::DataType;

use crate::expr::Expr;
use crate::output::{ColumnType, OutputColumn};
use crate::temporary::is_temporary;
use crate::typed::TypedQuery;

/// How a statement is run.
#[derive(Clone, Debug)]
pub enum Plan {
    /// On tuples in place, by [`crate::exec::execute`].
    Short(ShortPlan),
    /// A pure SELECT that the short path declines, by the analytical side.
    Analytical {
        /// Why it was declined.
        reason: Reason,
        /// The query.
        typed: Arc<TypedQuery>,
    },
}

impl Plan {
    /// The query, where it was analysed by PostgreSQL's rules.
    pub(crate) fn typed(&self) -> Option<&Arc<TypedQuery>> {
        match self {
            Self::Short(ShortPlan::OneRow(typed)) | Self::Analytical { typed, .. } => Some(typed),
            Self::Short(_) => None,
        }
    }
}

/// A statement of the short path.
#[derive(Clone, Debug)]
pub enum ShortPlan {
    /// SELECT from one table or from none.
    Select(Arc<SelectPlan>),
    /// A query that reads no table.
    OneRow(Arc<TypedQuery>),
    /// INSERT.
    Insert(Arc<InsertPlan>),
    /// UPDATE.
    Update(Arc<UpdatePlan>),
    /// DELETE.
    Delete(Arc<DeletePlan>),
    /// UPDATE or DELETE of rows that a query finds: for the session, which runs it.
    ByQuery(Arc<ByQuery>),
    /// MERGE: for the session likewise.
    Merge(Arc<MergePlan>),
    /// UPDATE or DELETE of the row that a cursor stands on: for the session likewise.
    CurrentOf(Arc<CurrentOf>),
    /// SELECT of rows that a query finds and locks: for the session likewise.
    LockingRead(Arc<LockingRead>),
    /// SELECT whose columns have calls of functions that the session runs: for the session likewise.
    Computed(Arc<Computed>),
    /// A statement behind others: for the session likewise.
    After(Arc<After>),
    /// A statement over a partitioned table, as one over each of its partitions.
    Each(Arc<EachPlan>),
}

impl ShortPlan {
    /// Whether it is a query that locks nothing.
    pub(crate) fn only_reads(&self) -> bool {
        match self {
            Self::Select(select) => select.lock.is_none(),
            Self::OneRow(_) => true,
            Self::Each(each) => each.plans.iter().flatten().all(Self::only_reads),
            _ => false,
        }
    }

    /// Whether the statement leaves all rows and sequences as they are. The
    /// session refuses the others in a read-only transaction.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Select(select) => select.lock.is_none() && !select.calls_sequences(),
            Self::OneRow(_) | Self::Computed(_) => true,
            Self::LockingRead(read) => read.locks.is_empty(),
            Self::Each(each) => each.reads && each.plans.iter().flatten().all(Self::is_read_only),
            Self::After(after) => {
                let mut before = after.before.iter();
                before.all(|before| before.plan.is_read_only()) && after.plan.is_read_only()
            }
            Self::Insert(_)
            | Self::Update(_)
            | Self::Delete(_)
            | Self::ByQuery(_)
            | Self::Merge(_)
            | Self::CurrentOf(_) => false,
        }
    }

    /// Whether all that it changes is a temporary table, which a read-only transaction may do.
    #[must_use]
    pub fn changes_temporary(&self) -> bool {
        match self {
            Self::After(after) => {
                let mut plans = after.before.iter().map(|before| &before.plan);
                let harmless = |plan: &Self| plan.is_read_only() || plan.changes_temporary();
                plans.all(harmless) && harmless(&after.plan)
            }
            _ => self
                .changed_table()
                .is_some_and(|table| is_temporary(&table.schema)),
        }
    }

    /// The table whose rows it inserts, changes or deletes, itself and not before.
    #[must_use]
    pub fn changed_table(&self) -> Option<&Arc<Table>> {
        match self {
            Self::Insert(insert) => Some(&insert.target.table),
            Self::Update(update) => Some(&update.source.table),
            Self::Delete(delete) => Some(&delete.source.table),
            Self::ByQuery(plan) => plan.change.changed_table(),
            Self::Merge(plan) => Some(&plan.table),
            Self::CurrentOf(plan) => Some(&plan.table),
            Self::After(after) => after.plan.changed_table(),
            Self::Each(each) => (!each.reads).then(|| each.partitions.table()),
            Self::Select(_) | Self::OneRow(_) | Self::Computed(_) | Self::LockingRead(_) => None,
        }
    }

    /// Whether it may take away keys that foreign keys refer to.
    #[must_use]
    pub fn takes_keys(&self) -> bool {
        let assigned =
            |table: &Table, assignments: &[(usize, Expr)], generated: &[(usize, Expr)]| {
                takes_keys(table, |column| {
                    let mut changed = assignments.iter().chain(generated);
                    changed.any(|(to, _)| to == column)
                })
            };
        match self {
            Self::Insert(insert) => {
                let target = &insert.target;
                let conflict = target.conflict.as_ref();
                let update = conflict.and_then(|conflict| conflict.update.as_ref());
                update.is_some_and(|update| {
                    !update.replaces
                        && assigned(&target.table, &update.assignments, &update.generated)
                })
            }
            Self::Update(update) => {
                assigned(&update.source.table, &update.assignments, &update.generated)
            }
            Self::Delete(delete) => delete.source.table.is_referenced(),
            Self::ByQuery(plan) => plan.change.takes_keys(),
            Self::Merge(plan) => plan.actions.iter().flatten().any(Self::takes_keys),
            Self::CurrentOf(plan) => plan.change.takes_keys(),
            Self::After(after) => {
                let mut before = after.before.iter();
                after.plan.takes_keys() || before.any(|before| before.plan.takes_keys())
            }
            Self::Each(each) => each.plans.iter().flatten().any(Self::takes_keys),
            Self::Select(_) | Self::OneRow(_) | Self::Computed(_) | Self::LockingRead(_) => false,
        }
    }

    /// The query whose rows an INSERT stores, when the short path cannot run
    /// it: its rows are for [`crate::exec::insert_rows`].
    #[must_use]
    pub fn analytical_source(&self) -> Option<(&Arc<InsertTarget>, &ReadQuery)> {
        match self {
            Self::Insert(insert) => match &insert.source {
                InsertSource::Analytical(query) => Some((&insert.target, query)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The plan behind those that run before it, if there are any. Its statement has so many
    /// parameters of its own.
    #[must_use]
    pub(crate) fn behind(self, before: Vec<Before>, own_parameters: usize) -> Self {
        match before.is_empty() {
            true => self,
            false => Self::After(Arc::new(After {
                before,
                plan: self,
                own_parameters,
            })),
        }
    }
}

/// One value of an output row.
#[derive(Clone, Debug)]
pub struct OutputExpr {
    /// What is evaluated.
    pub expr: Expr,
    /// The type it is written in.
    pub column_type: ColumnType,
}

/// Rows of one table: how they are found and which of them count.
#[derive(Clone, Debug)]
pub struct Source {
    /// The table.
    pub table: Arc<Table>,
    /// How candidates are found.
    pub path: Path,
    /// What candidates must satisfy besides.
    pub filter: Option<Expr>,
    /// All that rows must satisfy, for when they are not found by the path.
    pub condition: Option<Expr>,
    /// The values of the partition key columns, where equalities give them:
    /// then only these partitions are touched.
    pub partition: Option<Vec<KeyChoice>>,
}

/// The way to the rows.
#[derive(Clone, Debug)]
pub enum Path {
    /// All rows.
    Scan,
    /// Through an index.
    Probe(Probe),
    /// One row, by its number ([`thermocline_engine::RowId`]); of a table without a primary key.
    Row(Expr),
}

/// A look into an index: leading columns equal to given values, then
/// possibly a range on the next one.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Which index of the table.
    pub index: usize,
    /// The leading columns' values.
    pub keys: Vec<KeyChoice>,
    /// Where the next column begins.
    pub lower: Option<KeyBound>,
    /// Where the next column ends.
    pub upper: Option<KeyBound>,
    /// From the last key to the first.
    pub backward: bool,
}

impl Probe {
    /// Whether every column of the index is given: a look-up, not a range.
    #[must_use]
    pub fn is_exact(&self, table: &Table) -> bool {
        self.keys.len() == table.indexes[self.index].columns.len()
    }

    /// Whether at most one row comes back for each combination of keys.
    #[must_use]
    pub fn is_unique(&self, table: &Table) -> bool {
        self.is_exact(table) && table.indexes[self.index].unique
    }

    /// Whether the rows are bounded at both ends.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        !self.keys.is_empty() || (self.lower.is_some() && self.upper.is_some())
    }
}

impl Source {
    /// Whether an index bounds the rows at both ends.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        match &self.path {
            Path::Scan => false,
            Path::Probe(probe) => probe.is_bounded(),
            Path::Row(_) => true,
        }
    }

    /// Whether there is one row at most.
    pub(crate) fn is_one_row(&self) -> bool {
        match &self.path {
            Path::Scan => false,
            Path::Probe(probe) => {
                probe.is_unique(&self.table) && probe.keys.iter().all(|choice| choice.len() == 1)
            }
            Path::Row(_) => true,
        }
    }
}

/// The values one column may have: one for `=`, several for IN.
pub type KeyChoice = Vec<KeyPart>;

/// A value for a column of a key.
#[derive(Clone, Debug)]
pub struct KeyPart {
    /// What gives it; reads no row.
    pub expr: Expr,
    /// Its type, which need not be the column's.
    pub data_type: DataType,
}

/// An end of a range.
#[derive(Clone, Debug)]
pub struct KeyBound {
    /// The value.
    pub part: KeyPart,
    /// Whether the value itself belongs to the range.
    pub inclusive: bool,
}

/// Aggregation in memory. Its result row is the group's keys, then the calls'
/// results; the expressions above it read that row.
#[derive(Clone, Debug)]
pub struct AggregatePlan {
    /// GROUP BY; empty for one group of all rows.
    pub groups: Vec<Expr>,
    /// The aggregate functions.
    pub calls: Vec<AggregateCall>,
    /// HAVING.
    pub having: Option<Expr>,
    /// The path gives rows in the order of a lone `min` or `max`: the first
    /// row decides.
    pub first_row_decides: bool,
}

/// A call of an aggregate function.
#[derive(Clone, PartialEq, Debug)]
pub struct AggregateCall {
    /// Which.
    pub function: AggregateFunction,
    /// Of what; `None` for `count(*)`.
    pub argument: Option<Expr>,
    /// The argument's type.
    pub argument_type: DataType,
    /// `FILTER (WHERE …)`.
    pub filter: Option<Expr>,
}

/// The aggregate functions of the short path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AggregateFunction {
    /// `count(*)`, `count(x)`
    Count,
    /// `sum(x)`
    Sum,
    /// `avg(x)`
    Average,
    /// `min(x)`
    Minimum,
    /// `max(x)`
    Maximum,
    /// `bool_and(x)`, `every(x)`
    BoolAnd,
    /// `bool_or(x)`
    BoolOr,
}

/// A query whose rows a change takes.
#[derive(Clone, Debug)]
pub struct ReadQuery {
    /// The query, for the analytical path.
    pub typed: Arc<TypedQuery>,
    /// Why it is asked there.
    pub reason: Reason,
    /// Its plan where indexes lead to its rows. They are looked up first, as long as they are few.
    pub short: Option<ShortPlan>,
}

/// UPDATE or DELETE of rows that a query finds.
#[derive(Clone, Debug)]
pub struct ByQuery {
    /// It gives the key's columns, then values that the row itself does not give.
    pub query: ReadQuery,
    /// The key's columns are so many of the query's.
    pub key_columns: usize,
    /// The types in which the query's columns are wanted, and the table's columns.
    pub targets: Vec<(DataType, String)>,
    /// What is done with a row; its parameters behind the statement's own are what was found.
    pub change: ShortPlan,
    /// How a row is locked.
    pub lock: ShortPlan,
    /// The statement's own parameters.
    pub own_parameters: usize,
}

/// UPDATE or DELETE WHERE CURRENT OF.
#[derive(Clone, Debug)]
pub struct CurrentOf {
    /// The cursor's name.
    pub cursor: Arc<str>,
    /// The table.
    pub table: Arc<Table>,
    /// What is done with the row, whose number is the parameter behind the statement's own.
    pub change: ShortPlan,
    /// The statement's own parameters.
    pub own_parameters: usize,
}

/// How rows of one table are locked that a query finds.
#[derive(Clone, Debug)]
pub struct KeyLock {
    /// The types of the key's columns.
    pub key: Vec<DataType>,
    /// How a row is locked whose key is the parameters behind the statement's own; it gives a
    /// row, or none for a row to be skipped.
    pub plan: ShortPlan,
}

/// SELECT of rows that a query finds, and that are locked.
#[derive(Clone, Debug)]
pub struct LockingRead {
    /// It gives the statement's columns, then the keys of the rows to lock.
    pub query: ReadQuery,
    /// What is locked.
    pub locks: Vec<KeyLock>,
    /// How many locked rows are wanted, where the query does not say it.
    pub limit: Option<Expr>,
    /// How many of them are left out.
    pub offset: Option<Expr>,
    /// Locks may be waited for: the query has to be at its end before.
    pub waits: bool,
    /// The statement's own parameters.
    pub own_parameters: usize,
}

impl LockingRead {
    /// How many columns the keys of the rows to lock have together.
    pub(crate) fn key_columns(&self) -> usize {
        self.locks.iter().map(|lock| lock.key.len()).sum()
    }
}

/// SELECT whose columns are computed over the rows of a query, which is run first.
#[derive(Clone, Debug)]
pub struct Computed {
    /// What gives the rows.
    pub(crate) rows: ShortPlan,
    /// Their columns.
    pub(crate) given: Arc<[OutputColumn]>,
    /// What is computed over them: its columns are those of the rows.
    pub(crate) targets: Vec<thermocline_query::tree::Expr>,
    /// The statement's columns.
    pub(crate) columns: Vec<OutputColumn>,
    /// The numbers of the parameters' types.
    pub(crate) parameters: Vec<u32>,
}

/// A statement that runs before another one's query, which reads what it gives.
#[derive(Clone, Debug)]
pub struct Before {
    /// The statement.
    pub plan: ShortPlan,
    /// How its columns go in.
    pub columns: Vec<BeforeColumn>,
    /// It is a value: several rows are an error.
    pub one_row: bool,
}

/// How a column of a statement's rows goes into another statement: as an array of its values.
#[derive(Clone, Copy, Debug)]
pub enum BeforeColumn {
    /// As they are.
    Typed(DataType),
    /// As texts: there are no arrays of them.
    Text(DataType),
}

/// A statement behind others, whose rows are its parameters behind its own.
#[derive(Clone, Debug)]
pub struct After {
    /// They run first, in this order.
    pub before: Vec<Before>,
    /// The statement.
    pub plan: ShortPlan,
    /// Its own parameters.
    pub own_parameters: usize,
}

/// A condition on the rows that are stored: a CHECK constraint, or what a view shows.
#[derive(Clone, Debug)]
pub struct Check {
    /// The constraint's name, or the view's; empty for a domain's NOT NULL.
    pub name: String,
    /// What must not be false.
    pub condition: Expr,
    /// What it is of.
    pub of: CheckOf,
}

impl CheckOf {
    /// Whether it is the bounds of a partition.
    pub(crate) const fn is_bound(&self) -> bool {
        matches!(self, Self::Partition(..))
    }

    /// The domain that it is of; empty for others.
    pub(crate) fn domain(&self) -> &str {
        match self {
            Self::Domain(domain) => domain,
            Self::Table | Self::View | Self::Partition(..) => "",
        }
    }
}

/// What a condition on rows is of.
#[derive(Clone, Debug)]
pub enum CheckOf {
    /// The table.
    Table,
    /// The domain of a column, as messages name it.
    Domain(String),
    /// A view WITH CHECK OPTION that the rows come through: its condition must be true, and is not
    /// where it is NULL.
    View,
    /// The bounds of a partition: the table that it is of, and its position there. They stand
    /// beside the condition.
    Partition(Arc<Table>, usize),
}

/// Where and how an INSERT or a COPY FROM stores rows.
#[derive(Clone, Debug)]
pub struct InsertTarget {
    /// The table.
    pub table: Arc<Table>,
    /// The columns that the source gives, in its order.
    pub columns: Vec<usize>,
    /// The other columns and what they get; a column in neither list gets
    /// NULL.
    pub defaults: Vec<(usize, Expr)>,
    /// Generated columns, and what each is computed by, over the row that has all others.
    pub generated: Vec<(usize, Expr)>,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// ON CONFLICT.
    pub conflict: Option<ConflictPlan>,
    /// RETURNING.
    pub returning: Option<Vec<OutputExpr>>,
    /// Whether each unique index covers the partition key, so that a row's
    /// own partition is all that must be looked at.
    pub unique_within_partition: bool,
    /// What the rows refer to.
    pub references: Vec<Reference>,
    /// Where the rows of a partitioned table go.
    pub routes: Option<Arc<Routes>>,
}

/// INSERT.
#[derive(Clone, Debug)]
pub struct InsertPlan {
    /// Where the rows go.
    pub target: Arc<InsertTarget>,
    /// Where they come from.
    pub source: InsertSource,
}

/// The rows of an INSERT.
#[derive(Clone, Debug)]
pub enum InsertSource {
    /// VALUES, already of the columns' types.
    Values(Vec<Vec<Expr>>),
    /// A query of the short path and the types of its columns.
    Query(Arc<ShortPlan>, Vec<DataType>),
    /// A query that the caller runs.
    Analytical(ReadQuery),
}

/// ON CONFLICT.
#[derive(Clone, Debug)]
pub struct ConflictPlan {
    /// The unique indexes in which a conflict is handled; in all others it is
    /// an error.
    pub arbiters: Vec<usize>,
    /// They are all there are.
    pub of_any: bool,
    /// DO UPDATE; `None` is DO NOTHING.
    pub update: Option<ConflictUpdate>,
}

impl ConflictPlan {
    /// See [`ConflictUpdate::replaces`].
    #[must_use]
    pub fn replaces(&self) -> bool {
        self.update.as_ref().is_some_and(|update| update.replaces)
    }
}

/// ON CONFLICT DO UPDATE. Expressions read the existing row, then behind it
/// the row that was to be inserted (`EXCLUDED`).
#[derive(Clone, Debug)]
pub struct ConflictUpdate {
    /// Columns and their new values.
    pub assignments: Vec<(usize, Expr)>,
    /// Generated columns that read what is assigned, and what each is computed by, over the row
    /// as it is then.
    pub generated: Vec<(usize, Expr)>,
    /// WHERE.
    pub filter: Option<Expr>,
    /// Whether the row that was to be inserted takes the existing one's place as it is,
    /// and the engine may be able to do without that one.
    pub replaces: bool,
    /// Whether the changed row may refer to other rows, or be in another partition.
    pub refers: bool,
}

/// UPDATE.
#[derive(Clone, Debug)]
pub struct UpdatePlan {
    /// Which rows.
    pub source: Source,
    /// Columns and their new values.
    pub assignments: Vec<(usize, Expr)>,
    /// Generated columns that read what is assigned, and what each is computed by, over the row
    /// as it is then.
    pub generated: Vec<(usize, Expr)>,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// RETURNING.
    pub returning: Option<Vec<OutputExpr>>,
    /// Whether a new row may belong to, or clash with a row of, another
    /// partition than the old one's.
    pub leaves_partition: bool,
    /// The key's columns and their values, where they and the assignments are all of the
    /// new row, and the engine may be able to do without the old one.
    pub overwrites: Option<Vec<(usize, Expr)>>,
    /// What the new rows refer to, where that may be something else.
    pub references: Vec<Reference>,
    /// Of a partition whose rows may belong to another then: where those go. Only one row is changed at a time.
    pub moves: Option<Arc<InsertTarget>>,
}

/// DELETE.
#[derive(Clone, Debug)]
pub struct DeletePlan {
    /// Which rows.
    pub source: Source,
    /// RETURNING.
    pub returning: Option<Vec<OutputExpr>>,
    /// Whether one row is named by its whole key and nothing else of it is asked for, so
    /// that the engine may be able to do without the rest.
    pub by_key: bool,
}
