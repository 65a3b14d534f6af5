//! The text of statements to PostgreSQL's syntax trees, by PostgreSQL's own
//! grammar (libpg_query). Its memory is the tree's; it ends nesting by itself.

mod position;

use pg_raw_parse::{Error, Owned, StmtList};

use crate::error::{QueryError, Result};

/// Parsed statements.
pub struct Parsed {
    statements: Owned<StmtList>,
}

impl Parsed {
    /// The statements.
    #[must_use]
    pub fn statements(&self) -> &StmtList {
        &self.statements
    }
}

/// Parses all statements of a text.
///
/// # Errors
/// 42601 with the place, as PostgreSQL.
pub fn parse(text: &str) -> Result<Parsed> {
    match pg_raw_parse::parse(text) {
        Ok(parsed) => Ok(Parsed {
            statements: parsed.into_inner(),
        }),
        Err(Error::StatementContainedNul(_)) => Err(QueryError::new(
            "22021",
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        )),
        Err(error) => {
            let message = match &error {
                Error::Parse(error) => error.to_string(),
                other => other.to_string(),
            };
            let mut error = if message.starts_with("memory exhausted") {
                QueryError::new("54001", message)
            } else if message.contains("not supported") || message.contains("not implemented") {
                QueryError::unsupported(message, "Leave the clause out.")
            } else {
                QueryError::new("42601", message)
            };
            error.location = position::of_error(text);
            Err(error)
        }
    }
}
