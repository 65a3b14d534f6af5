//! Why a statement is not bound: it is wrong (an error the client gets), or
//! the short path does not run it (a pure SELECT then goes elsewhere).

use sqlparser::tokenizer::Span;
use thermocline_storage::value_error::ValueError;

use crate::error::{SqlError, position_of};

/// The result of binding a part of a statement.
pub(crate) type Bindable<T> = std::result::Result<T, Refusal>;

/// Why a part of a statement could not be bound.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The statement is wrong.
    Error(Box<SqlError>),
    /// The short path does not run it.
    Declined {
        /// Why, for EXPLAIN.
        reason: String,
        /// What is said when there is no other path.
        error: Box<SqlError>,
    },
}

impl Refusal {
    /// Declines with 0A000 as the error.
    #[cold]
    pub(crate) fn declined(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        let error = SqlError::unsupported(format!("{reason} is not supported here"));
        Self::Declined {
            reason,
            error: Box::new(error),
        }
    }

    /// Declines with an error of its own for statements without another path.
    #[cold]
    pub(crate) fn declined_with(reason: impl Into<String>, error: SqlError) -> Self {
        Self::Declined {
            reason: reason.into(),
            error: Box::new(error),
        }
    }

    /// With the place in the statement, if it has none yet.
    #[cold]
    pub(crate) fn at(mut self, sql: &str, span: Span) -> Self {
        let (Self::Error(error) | Self::Declined { error, .. }) = &mut self;
        if error.position.is_none() && !sql.is_empty() {
            error.position = position_of(sql, span.start.line, span.start.column);
        }
        self
    }
}

impl From<SqlError> for Refusal {
    #[cold]
    fn from(error: SqlError) -> Self {
        Self::Error(Box::new(error))
    }
}

impl From<ValueError> for Refusal {
    #[cold]
    fn from(error: ValueError) -> Self {
        SqlError::from(error).into()
    }
}
