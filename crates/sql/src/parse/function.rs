//! CREATE, ALTER and DROP FUNCTION: kept as their texts, which PostgreSQL's grammar has read once. What
//! the types in them mean is known when they are carried out.

use pg_raw_parse::nodes::DoStmt;

use super::statement::{Ddl, Statement};
use crate::error::{Result, SqlError};

/// A command about functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionCommand {
    /// CREATE [OR REPLACE] FUNCTION or PROCEDURE: its text.
    Create(Box<str>),
    /// DROP FUNCTION: its text.
    Drop(Box<str>),
    /// ALTER FUNCTION of attributes: its text.
    Alter(Box<str>),
}

/// DO: its body. The language is PL/pgSQL.
pub(super) fn anonymous(statement: &DoStmt) -> Result<Statement> {
    let mut body = None;
    for option in statement.args().iter() {
        let value = option.arg().as_str().unwrap_or_default();
        match option.defname() {
            Some("as") => body = Some(value),
            Some("language") if value != "plpgsql" => {
                return Err(SqlError::unsupported(
                    format!("DO in language {value} is not supported"),
                    "Write it in PL/pgSQL.",
                ));
            }
            _ => {}
        }
    }
    match body {
        Some(body) => Ok(Statement::Do(body.into())),
        None => Err(SqlError::syntax("no inline code specified")),
    }
}

pub(super) fn create(text: &str) -> Statement {
    Statement::Ddl(Ddl::Function(FunctionCommand::Create(text.trim().into())))
}

pub(super) fn alter(text: &str) -> Statement {
    Statement::Ddl(Ddl::Function(FunctionCommand::Alter(text.trim().into())))
}

pub(super) fn drop(text: &str) -> Statement {
    Statement::Ddl(Ddl::Function(FunctionCommand::Drop(text.trim().into())))
}
