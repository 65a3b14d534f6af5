//! What an expression needs from outside: a row, the parameters, the
//! transaction's time, and the session for what only it knows.

use std::sync::Arc;

use thermocline_engine::{Catalog, Table};
use thermocline_query::call::Asked;
use thermocline_query::datum::Datum as QueryDatum;
use thermocline_values::value::{Value, ValueRef};

use crate::error::{Result, SqlError};
use crate::styles::Styles;

/// A row whose columns an expression reads.
pub trait RowAccess {
    /// The value of the column at this position.
    fn column(&self, column: usize) -> ValueRef<'_>;
}

/// The row of an expression that reads none.
#[derive(Clone, Copy, Debug)]
pub struct NoRow;

impl RowAccess for NoRow {
    fn column(&self, _: usize) -> ValueRef<'_> {
        ValueRef::Null
    }
}

impl RowAccess for [Value] {
    #[inline]
    fn column(&self, column: usize) -> ValueRef<'_> {
        self[column].as_ref()
    }
}

impl RowAccess for Vec<Value> {
    #[inline]
    fn column(&self, column: usize) -> ValueRef<'_> {
        self[column].as_ref()
    }
}

/// What the session answers: functions whose value depends on the connection
/// (`version`, `current_user`, `current_setting`, …) and sequences, whose last
/// value it remembers for `currval` and `lastval`.
pub trait SessionInfo: Send + Sync {
    /// Calls the function `name`, one of those of `pg_proc` that the session answers, with
    /// arguments of its types (NULLs included).
    ///
    /// # Errors
    /// As the function in PostgreSQL.
    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value>;

    /// The next value of the sequence with this object id.
    ///
    /// # Errors
    /// 2200H when the sequence is at its end, 55000 and others as the engine's.
    fn next_value(&self, sequence: u32) -> Result<i64>;

    /// Has names and numbers from now on mean what they mean in this catalog: a definition's own,
    /// in the midst of it.
    fn see(&self, catalog: &Arc<Catalog>) {
        let _ = catalog;
    }

    /// Whether the statement is to go on; asked by what takes long.
    ///
    /// # Errors
    /// 57014 and others.
    fn check_interrupted(&self) -> Result<()> {
        Ok(())
    }

    /// Sleeps so many seconds.
    ///
    /// # Errors
    /// The wait itself: the statement is run again after it.
    fn sleep(&self, seconds: f64) -> Result<()> {
        let _ = seconds;
        Err(SqlError::unsupported(
            "pg_sleep is not supported without a session",
            "Call it in a statement of a session.",
        ))
    }

    /// Calls a function that only the session runs.
    ///
    /// # Errors
    /// The wait for it: the statement is run again after it.
    fn called(&self, asked: &Asked<'_>) -> Result<QueryDatum> {
        let _ = asked;
        Err(SqlError::unsupported(
            "functions of PL/pgSQL are not supported without a session",
            "Call them in a statement of a session.",
        ))
    }

    /// Asks for room for a large value, before an expression makes it.
    ///
    /// # Errors
    /// 53200 where the session has no room for it.
    fn room_for_value(&self, bytes: u64) -> Result<()> {
        let _ = bytes;
        Ok(())
    }
}

/// A session that answers nothing: for expressions evaluated where there is
/// none, and for constants while a statement is bound.
#[derive(Clone, Copy, Debug)]
pub struct NoSession;

impl SessionInfo for NoSession {
    fn call(&self, name: &str, _: &[Value]) -> Result<Value> {
        Err(SqlError::unsupported(
            format!("function {name} is not supported without a session"),
            "Call it in a statement of a session.",
        ))
    }

    fn next_value(&self, _: u32) -> Result<i64> {
        Err(SqlError::unsupported(
            "sequences are not supported without a session",
            "Call it in a statement of a session.",
        ))
    }
}

/// What one execution gives to its expressions.
#[derive(Clone, Copy)]
pub struct EvalContext<'a> {
    /// The values of `$1`, `$2`, … in the types the statement gave them.
    pub parameters: &'a [Value],
    /// When the transaction began, in microseconds since 2000-01-01 UTC.
    pub now_us: i64,
    /// The session.
    pub session: &'a dyn SessionInfo,
    /// How its dates, times and numbers look, and what its clocks show.
    pub styles: &'a Styles,
    /// In a join: the row of the tables before.
    pub(crate) outer: Option<&'a JoinedRow<'a>>,
}

/// A row of a join so far: a tuple of the table that came last, and the row before it.
#[derive(Clone, Copy)]
pub(crate) struct JoinedRow<'a> {
    pub(crate) before: Option<&'a JoinedRow<'a>>,
    pub(crate) table: &'a Table,
    /// Where the table's columns begin.
    pub(crate) begin: usize,
    /// None: an outer join has found no row. All its columns are NULL.
    pub(crate) tuple: Option<&'a [u8]>,
}

impl<'a> JoinedRow<'a> {
    /// A column of any of its tables.
    #[inline]
    pub(crate) fn value(&self, column: usize) -> ValueRef<'a> {
        match (column.checked_sub(self.begin), self.before) {
            (Some(own), _) => match self.tuple {
                Some(tuple) => self.table.value(tuple, own),
                None => ValueRef::Null,
            },
            (None, Some(before)) => before.value(column),
            (None, None) => ValueRef::Null,
        }
    }
}

impl RowAccess for JoinedRow<'_> {
    #[inline]
    fn column(&self, column: usize) -> ValueRef<'_> {
        self.value(column)
    }
}

impl<'a> EvalContext<'a> {
    /// Of a statement's own expressions, which have no parameters.
    pub(crate) const fn without_parameters(
        now_us: i64,
        session: &'a dyn SessionInfo,
        styles: &'a Styles,
    ) -> Self {
        EvalContext {
            parameters: &[],
            now_us,
            session,
            styles,
            outer: None,
        }
    }
}

impl EvalContext<'_> {
    /// No parameters, no session, time zero: for constants.
    #[must_use]
    pub fn none() -> EvalContext<'static> {
        EvalContext {
            parameters: &[],
            now_us: 0,
            session: &NoSession,
            styles: Styles::plain(),
            outer: None,
        }
    }
}
