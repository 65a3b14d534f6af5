//! Errors about values: what PostgreSQL says of input it cannot read, of a
//! number too large for its type, of a text too long for its column.
//! The words and the SQLSTATE are PostgreSQL's, since clients act on the code
//! and people search for the words. No fault of a device is reported here.

use std::fmt;

use crate::types::DataType;

/// A value that cannot be read, converted or computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueError {
    /// The five characters of the SQL standard's error code.
    pub sqlstate: &'static str,
    /// The message, in PostgreSQL's words.
    pub message: String,
    /// What PostgreSQL says besides, as the column's bounds.
    pub detail: Option<Box<str>>,
}

/// The SQLSTATE of what a numeric's small form does not hold.
pub(crate) const NUMERIC_OVERFLOW: &str = "22003";

impl ValueError {
    /// An error with this code and message.
    #[must_use]
    #[cold]
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self {
            sqlstate,
            message: message.into(),
            detail: None,
        }
    }

    /// The same, with what is said besides.
    #[must_use]
    #[cold]
    pub fn with_detail(self, detail: impl Into<Box<str>>) -> Self {
        Self {
            detail: Some(detail.into()),
            ..self
        }
    }

    /// 22P02: the text is not a value of the type.
    #[must_use]
    #[cold]
    pub fn syntax(type_name: &str, text: &str) -> Self {
        Self::new(
            "22P02",
            format!("invalid input syntax for type {type_name}: \"{text}\""),
        )
    }

    /// 22003: the text is a number, but too large for the type.
    #[must_use]
    #[cold]
    pub fn text_out_of_range(type_name: &str, text: &str) -> Self {
        Self::new(
            "22003",
            format!("value \"{text}\" is out of range for type {type_name}"),
        )
    }

    /// 22003: a computed value does not fit the type.
    #[must_use]
    #[cold]
    pub fn out_of_range(type_name: &str) -> Self {
        Self::new("22003", format!("{type_name} out of range"))
    }

    /// 22003: more digits than a numeric holds.
    #[must_use]
    #[cold]
    pub fn numeric_overflow() -> Self {
        Self::new(NUMERIC_OVERFLOW, "value overflows numeric format")
    }

    /// 22012: division by zero.
    #[must_use]
    #[cold]
    pub fn division_by_zero() -> Self {
        Self::new("22012", "division by zero")
    }

    /// 22001: the text is longer than its column allows.
    #[must_use]
    #[cold]
    pub fn too_long(data_type: &DataType) -> Self {
        Self::new("22001", format!("value too long for type {data_type}"))
    }

    /// 42846: there is no such conversion.
    #[must_use]
    #[cold]
    pub fn no_cast(from: &DataType, to: &DataType) -> Self {
        Self::new(
            "42846",
            format!(
                "cannot cast type {} to {}",
                from.base_name(),
                to.base_name()
            ),
        )
    }

    /// 22P03: the bytes of a binary parameter are not a value of the type.
    #[must_use]
    #[cold]
    pub fn binary(type_name: &str) -> Self {
        Self::new(
            "22P03",
            format!("incorrect binary data format for type {type_name}"),
        )
    }

    /// 42883: no operator or function for these types.
    #[must_use]
    #[cold]
    pub fn no_operator(signature: &str) -> Self {
        Self::new("42883", format!("operator does not exist: {signature}"))
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.sqlstate)
    }
}

impl std::error::Error for ValueError {}
