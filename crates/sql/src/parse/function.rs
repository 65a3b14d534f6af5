//! CREATE and DROP FUNCTION: kept as their texts, which PostgreSQL's grammar has read once. What
//! the types in them mean is known when they are carried out.

use thermocline_query::parse::parse;

use super::own_grammar::{extent, slice};
use super::statement::{Ddl, Statement};
use super::tokens::Tokens;
use crate::error::Result;
use crate::typed::positioned;

/// A command about functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionCommand {
    /// CREATE [OR REPLACE] FUNCTION or PROCEDURE: its text.
    Create(Box<str>),
    /// DROP FUNCTION: its text.
    Drop(Box<str>),
}

/// Whether these tokens begin a CREATE of a function.
pub(super) fn is_create(tokens: &Tokens<'_>) -> bool {
    const BEGINNINGS: [&[&str]; 4] = [
        &["create", "function"],
        &["create", "or", "replace", "function"],
        &["create", "procedure"],
        &["create", "or", "replace", "procedure"],
    ];
    BEGINNINGS.iter().any(|words| tokens.are_keywords(words))
}

/// The command that all of these tokens are.
pub(super) fn command(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let creates = is_create(tokens);
    let (sql, all) = (tokens.sql(), tokens.rest());
    let (start, text) = slice(sql, extent(all)).ok_or_else(|| tokens.error())?;
    parse(text).map_err(|error| {
        let mut error = positioned(error, text);
        let before = u32::try_from(sql[..start].chars().count()).unwrap_or(0);
        error.position = error.position.map(|position| position + before);
        error
    })?;
    let command = match creates {
        true => FunctionCommand::Create(text.into()),
        false => FunctionCommand::Drop(text.into()),
    };
    Ok(Statement::Ddl(Ddl::Function(command)))
}
