//! What a statement can fail with, in PostgreSQL's words and codes: clients
//! act on the SQLSTATE, people search for the message. Every error of a lower
//! floor ends here; nothing is swallowed on the way, the fields a lower floor
//! gave (detail, hint, constraint) are kept.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use thermocline_values::value_error::ValueError;

/// The result of everything in this crate.
pub type Result<T, E = SqlError> = std::result::Result<T, E>;

/// What to do about a command that is not there, where nothing better is known.
pub(crate) const SEE_SQL_PAGE: &str = "See docs/reference/sql.md for what is supported.";

/// An error as a client sees it. Boxed, so that a result is no larger for
/// what it seldom is; its fields are reached by dereferencing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SqlError(Box<ErrorFields>);

impl Deref for SqlError {
    type Target = ErrorFields;

    fn deref(&self) -> &ErrorFields {
        &self.0
    }
}

impl DerefMut for SqlError {
    fn deref_mut(&mut self) -> &mut ErrorFields {
        &mut self.0
    }
}

/// What a function of a statement waits for (`session/signal.rs`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// The end of the session with this number.
    SessionEnd(i32),
    /// So much time.
    Time(Duration),
    /// An advisory lock that others have.
    Advisory(crate::session::AdvisoryLock),
    /// What a function gives that only the session calls.
    Call,
}

/// The fields of an [`SqlError`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ErrorFields {
    /// The five characters of the error code.
    pub sqlstate: &'static str,
    /// The message, one line.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where in the statement, in characters from 1.
    pub position: Option<u32>,
    /// Where in the input of a COPY, or in a function: PostgreSQL's CONTEXT.
    pub context: Option<String>,
    /// The schema the error is about.
    pub schema: Option<String>,
    /// The table the error is about.
    pub table: Option<String>,
    /// The column the error is about.
    pub column: Option<String>,
    /// The constraint that was violated.
    pub constraint: Option<String>,
    /// The column that a name should have meant, of 42703 by the analysis.
    pub(crate) missing_column: Option<String>,
    /// A table was changed since the statement was bound: to be bound again.
    pub(crate) stale_plan: bool,
    /// No error: the statement is to be run again after this wait.
    pub(crate) wait: Option<Wait>,
    /// No error: the statement takes too long for where it runs, and is to be run elsewhere.
    pub(crate) takes_long: bool,
}

impl SqlError {
    /// An error with this code and message.
    #[cold]
    #[must_use]
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorFields {
            sqlstate,
            message: message.into(),
            ..ErrorFields::default()
        }))
    }

    /// No error: a statement is to be run where it may take its time.
    #[cold]
    pub(crate) fn takes_long() -> Self {
        let mut error = Self::new("XX000", "a statement that takes long was not run elsewhere");
        error.takes_long = true;
        error
    }

    /// 42601: the statement is not SQL.
    #[cold]
    #[must_use]
    pub fn syntax(message: impl Into<String>) -> Self {
        Self::new("42601", message)
    }

    /// 0A000: SQL that this database does not do. The message names what, `instead` says what to
    /// do in its place.
    #[cold]
    #[must_use]
    pub fn unsupported(message: impl Into<String>, instead: impl Into<String>) -> Self {
        Self::new("0A000", message).with_hint(instead)
    }

    /// 42P01: no such table.
    #[cold]
    #[must_use]
    pub fn undefined_table(name: &str) -> Self {
        Self::new("42P01", format!("relation \"{name}\" does not exist"))
    }

    /// 42703: no such column.
    #[cold]
    #[must_use]
    pub fn undefined_column(name: &str) -> Self {
        Self::new("42703", format!("column \"{name}\" does not exist"))
    }

    /// 08P01: a message that the protocol does not allow here.
    #[cold]
    #[must_use]
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new("08P01", message)
    }

    /// XX000: this database contradicted itself.
    #[cold]
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new("XX000", message)
    }

    /// 25P02: the transaction failed before.
    #[cold]
    #[must_use]
    pub fn transaction_failed() -> Self {
        Self::new(
            "25P02",
            "current transaction is aborted, commands ignored until end of transaction block",
        )
    }

    /// Not an error: see `session/signal.rs`.
    #[cold]
    pub(crate) fn waits(wait: Wait) -> Self {
        let mut waits = Self::internal("a statement that waits for a session or a time");
        waits.wait = Some(wait);
        waits
    }

    /// With more about it.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// With advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With the place in the statement, in characters from 1.
    #[must_use]
    pub fn with_position(mut self, position: Option<u32>) -> Self {
        self.position = self.position.or(position);
        self
    }

    /// With the place in a COPY's input.
    #[must_use]
    pub fn with_context(mut self, context: impl Into<String>) -> Self {
        self.context = Some(context.into());
        self
    }

    /// With the column it is about.
    #[must_use]
    pub fn with_column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }

    /// With the table it is about.
    #[must_use]
    pub fn with_table(mut self, schema: &str, table: &str) -> Self {
        self.schema = Some(schema.to_owned());
        self.table = Some(table.to_owned());
        self
    }

    /// With the constraint it is about.
    #[must_use]
    pub fn with_constraint(mut self, constraint: impl Into<String>) -> Self {
        self.constraint = Some(constraint.into());
        self
    }
}

impl SqlError {
    /// The same, of a text that stands behind so many characters of another.
    #[must_use]
    pub(crate) fn moved(mut self, before: u32) -> Self {
        self.position = self.position.map(|position| position + before);
        self
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.sqlstate)
    }
}

impl std::error::Error for SqlError {}

impl From<ValueError> for SqlError {
    #[cold]
    fn from(error: ValueError) -> Self {
        let told = Self::new(error.sqlstate, error.message);
        match error.detail {
            Some(detail) => told.with_detail(detail),
            None => told,
        }
    }
}

impl From<thermocline_engine::Error> for SqlError {
    #[cold]
    fn from(error: thermocline_engine::Error) -> Self {
        Self(Box::new(ErrorFields {
            sqlstate: error.sqlstate(),
            message: error.to_string(),
            detail: error.detail().map(str::to_owned),
            hint: error.hint().map(str::to_owned),
            schema: error.schema().map(str::to_owned),
            table: error.table().map(str::to_owned),
            constraint: error.constraint().map(str::to_owned),
            stale_plan: matches!(error, thermocline_engine::Error::StalePlan),
            ..ErrorFields::default()
        }))
    }
}
