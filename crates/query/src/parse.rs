//! The text of statements to PostgreSQL's syntax trees, by PostgreSQL's own
//! grammar (libpg_query). Its memory is the tree's; it ends nesting by itself.

mod position;
pub mod written;

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

/// The grammar's errors that are none of syntax, by a part of their messages: the library does not
/// tell their codes.
const CODES: [(&str, &str); 7] = [
    ("memory exhausted", "54001"),
    ("is reserved", "42939"),
    ("cannot be used as a role name", "42939"),
    ("precision for type float", "22023"),
    ("column number must be in range", "22023"),
    ("unrecognized JSON encoding", "22023"),
    ("unrecognized partitioning strategy", "22023"),
];
/// Those of what is not there.
const MISSING: [&str; 9] = [
    "not supported",
    "no longer supported",
    "only supported",
    "not implemented",
    "not yet implemented",
    "constraints cannot be",
    "cannot include schema elements",
    "current database cannot be changed",
    "aggregates cannot have",
];

/// The grammar's error of this message.
#[cold]
fn refused(message: String) -> QueryError {
    // The message of a syntax error has a part of the statement in it.
    if message.starts_with("syntax error") {
        return QueryError::new("42601", message);
    }
    if MISSING.iter().any(|part| message.contains(part)) {
        return QueryError::unsupported(message, "Leave the clause out.");
    }
    let code = CODES.iter().find(|(part, _)| message.contains(part));
    QueryError::new(code.map_or("42601", |(_, code)| *code), message)
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
            let mut error = refused(message);
            error.location = position::of_error(text);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_are_none_of_syntax_have_their_codes() {
        for (text, sqlstate) in [
            ("select 1 from", "42601"),
            (
                "select \"is reserved\" \"is reserved\" from a b \"is reserved\"",
                "42601",
            ),
            ("create role public", "42939"),
            ("create role none", "42939"),
            ("create role current_user", "42939"),
            ("select 1::float(0)", "22023"),
            ("select 1::float(54)", "22023"),
            ("create assertion a check (true)", "0A000"),
            ("create table t (a int check (a > 0) deferrable)", "42601"),
            ("create table t (a int, check (a > 0) deferrable)", "0A000"),
        ] {
            match parse(text) {
                Ok(_) => assert!(text.contains("a > 0) deferrable"), "{text}"),
                Err(error) => assert_eq!(error.sqlstate, sqlstate, "{text}: {}", error.message),
            }
        }
    }
}
