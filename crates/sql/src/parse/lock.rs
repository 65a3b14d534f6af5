//! LOCK TABLE.

use sqlparser::tokenizer::Token;
use thermocline_engine::LockMode;

use super::statement::{LockTables, Statement};
use super::tokens::Tokens;
use crate::error::{Result, SqlError};

/// After LOCK: the strongest mode, unless it says another.
pub(super) fn lock(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let mut tables = Vec::new();
    tokens.keyword("table");
    loop {
        tokens.keyword("only");
        tables.push(tokens.qualified_name()?);
        tokens.token(&Token::Mul);
        if !tokens.token(&Token::Comma) {
            break;
        }
    }
    let mut mode = LockMode::AccessExclusive;
    if tokens.keyword("in") {
        let mut words = Vec::new();
        while !tokens.keyword("mode") {
            words.push(tokens.identifier()?);
        }
        mode = match words.join(" ").as_str() {
            "access share" => LockMode::AccessShare,
            "row share" => LockMode::RowShare,
            "row exclusive" => LockMode::RowExclusive,
            "share update exclusive" => LockMode::ShareUpdateExclusive,
            "share" => LockMode::Share,
            "share row exclusive" => LockMode::ShareRowExclusive,
            "exclusive" => LockMode::Exclusive,
            "access exclusive" => LockMode::AccessExclusive,
            other => {
                return Err(SqlError::syntax(format!(
                    "syntax error at or near \"{other}\""
                )));
            }
        };
    }
    let nowait = tokens.keyword("nowait");
    Ok(Statement::Lock(LockTables {
        tables,
        mode,
        nowait,
    }))
}
