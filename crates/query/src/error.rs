//! What analysis and evaluation fail with, in PostgreSQL's words and codes.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// The result of everything in this crate.
pub type Result<T, E = QueryError> = std::result::Result<T, E>;

/// An error as a client sees it. Boxed, so that a result is no larger for what it seldom is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueryError(Box<Fields>);

/// The fields of a [`QueryError`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fields {
    /// The five characters of the error code.
    pub sqlstate: &'static str,
    /// The message, one line.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where in the statement, in bytes from 0.
    pub location: Option<u32>,
    /// The column that a name should have meant, of 42703.
    pub missing_column: Option<String>,
}

impl Deref for QueryError {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.0
    }
}

impl DerefMut for QueryError {
    fn deref_mut(&mut self) -> &mut Fields {
        &mut self.0
    }
}

impl QueryError {
    /// An error with this code and message.
    #[cold]
    #[must_use]
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Fields {
            sqlstate,
            message: message.into(),
            ..Fields::default()
        }))
    }

    /// 0A000: SQL that this database does not do. The message names what, `instead` says what to
    /// do in its place.
    #[cold]
    #[must_use]
    pub fn unsupported(message: impl Into<String>, instead: impl Into<String>) -> Self {
        Self::new("0A000", message).with_hint(instead)
    }

    /// XX000: this database contradicted itself.
    #[cold]
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new("XX000", message)
    }

    /// 42703: a name that means no column; `shown` is the name as it was written.
    #[cold]
    #[must_use]
    pub fn undefined_column(column: &str, shown: &str) -> Self {
        let mut error = Self::new("42703", format!("column {shown} does not exist"));
        error.missing_column = Some(column.to_owned());
        error
    }

    /// 22P02: a text that is no value of the type.
    #[cold]
    #[must_use]
    pub fn invalid_text(type_name: &str, text: &str) -> Self {
        Self::new(
            "22P02",
            format!("invalid input syntax for type {type_name}: \"{text}\""),
        )
    }

    /// 22003: a number beyond its type.
    #[cold]
    #[must_use]
    pub fn out_of_range(type_name: &str) -> Self {
        Self::new("22003", format!("{type_name} out of range"))
    }

    /// 22023: an argument that the function does not take.
    #[cold]
    #[must_use]
    pub fn invalid_parameter(message: impl Into<String>) -> Self {
        Self::new("22023", message)
    }

    /// 22012.
    #[cold]
    #[must_use]
    pub fn division_by_zero() -> Self {
        Self::new("22012", "division by zero")
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

    /// With its place in the statement, if it has none yet: a byte of the text, negative for none.
    #[must_use]
    pub fn at(mut self, location: i32) -> Self {
        if self.location.is_none() {
            self.location = u32::try_from(location).ok();
        }
        self
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.sqlstate)
    }
}

impl std::error::Error for QueryError {}
