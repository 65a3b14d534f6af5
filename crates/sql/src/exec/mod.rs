//! Execution of short plans, on tuples in place, through [`Access`]: no Arrow,
//! no queue, one future that waits only where the engine waits.
//!
//! The engine may run a body several times (a pre-pass that met evicted
//! tuples, a wait for a row): everything a body writes is rewound when it
//! begins, and what must happen once (sequences, `gen_random_uuid()` of an
//! INSERT) happens before it. An error leaves the output as it was.

mod aggregate;
mod bulk;
mod delete;
mod insert;
mod join;
mod locking;
mod lookup;
pub(crate) mod one_by_one;
mod overwrite;
mod pace;
pub(crate) mod partitions;
mod reference;
mod row;
mod select;
mod sink;
mod touched;
mod update;

pub use insert::insert_rows;
pub(crate) use lookup::{Keys, Lookup};
pub(crate) use row::{TupleRow, of_no_domain};
pub(crate) use sink::Window;
pub use touched::Touched;

use std::sync::Arc;

use thermocline_engine::{Access, Database, Error, RunOptions, Scope, Transaction};
use thermocline_values::value::Value;
use thermocline_values::value_error::ValueError;

use crate::error::{Result, SqlError};
use crate::expr::SessionInfo;
use crate::one_row;
use crate::output::RowWriter;
use crate::plan::ShortPlan;
use crate::styles::Styles;

/// What a statement is executed with.
pub struct ExecContext<'a> {
    /// The database.
    pub db: &'a Arc<Database>,
    /// The interactive transaction it is part of; none means autocommit.
    pub txn: Option<&'a mut Transaction>,
    /// Time limits, cancelling, durability.
    pub options: &'a RunOptions,
    /// When the transaction began, in microseconds since 2000-01-01 UTC.
    pub now_us: i64,
    /// The session, for what only it knows.
    pub session: &'a dyn SessionInfo,
    /// How its dates, times and numbers look.
    pub styles: &'a Styles,
    /// A SELECT that takes long here may be run elsewhere instead.
    pub may_leave: bool,
}

impl ExecContext<'_> {
    /// The same, in this transaction if there is one, or in its own.
    fn within<'b>(&'b mut self, txn: Option<&'b mut Transaction>) -> ExecContext<'b> {
        ExecContext {
            db: self.db,
            txn: txn.or(self.txn.as_deref_mut()),
            options: self.options,
            now_us: self.now_us,
            session: self.session,
            styles: self.styles,
            may_leave: self.may_leave,
        }
    }
}

/// Executes a plan. `parameters` are of the types in
/// [`crate::bind::Bound::parameters`]. Returns the rows affected, or returned
/// by a SELECT.
///
/// # Errors
/// As PostgreSQL; `rows` is then as it was before.
pub async fn execute(
    plan: &ShortPlan,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<u64> {
    let mark = rows.mark();
    let result = match plan {
        ShortPlan::Select(select) => select::select(select, context, parameters, rows).await,
        ShortPlan::OneRow(one_row) => one_row::execute(one_row, context, parameters, rows),
        ShortPlan::Insert(insert) => insert::insert(insert, context, parameters, rows).await,
        ShortPlan::Update(update) => update::update(update, context, parameters, rows).await,
        ShortPlan::Delete(delete) => delete::delete(delete, context, parameters, rows).await,
        ShortPlan::Each(each) => partitions::each(each, context, parameters, rows).await,
        ShortPlan::ByQuery(_)
        | ShortPlan::Merge(_)
        | ShortPlan::CurrentOf(_)
        | ShortPlan::LockingRead(_)
        | ShortPlan::Computed(_)
        | ShortPlan::After(_) => Err(SqlError::internal(
            "a statement with a query or a cursor within is the session's to run",
        )),
    };
    if result.is_err() {
        rows.rewind(mark);
    }
    result
}

/// Why a body stops: an error of the engine, which it may handle by running
/// the body again, or one of the statement.
pub(crate) enum Stop {
    Engine(Error),
    Statement(Box<SqlError>),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<SqlError> for Stop {
    #[cold]
    fn from(error: SqlError) -> Self {
        Self::Statement(Box::new(error))
    }
}

/// Runs a body as one statement or as a part of a transaction.
pub(crate) async fn run<R>(
    db: &Arc<Database>,
    txn: Option<&mut Transaction>,
    options: &RunOptions,
    scope: Scope,
    mut body: impl FnMut(&mut Access<'_>) -> std::result::Result<R, Stop>,
) -> Result<R> {
    let mut failure: Option<Box<SqlError>> = None;
    let wrapped = |access: &mut Access<'_>| {
        failure = None;
        body(access).map_err(|stop| match stop {
            Stop::Engine(error) => error,
            Stop::Statement(error) => {
                let shown = ValueError::new(error.sqlstate, error.message.clone());
                failure = Some(error);
                Error::Value(shown)
            }
        })
    };
    let result = match txn {
        Some(txn) => db.in_transaction(txn, options, scope, wrapped).await,
        None => db.one_shot(options, scope, wrapped).await,
    };
    result.map_err(|error| match (error, failure) {
        (Error::Value(_), Some(failure)) => *failure,
        (error, _) => SqlError::from(error),
    })
}
