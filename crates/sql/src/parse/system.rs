//! ALTER SYSTEM SET and RESET.

use sqlparser::tokenizer::Token;

use super::statement::{AlterSystem, Statement};
use super::tokens::Tokens;
use crate::error::Result;

/// Parses what follows ALTER SYSTEM.
pub(super) fn alter_system(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let alter = if tokens.keyword("reset") {
        let name = match tokens.keyword("all") {
            true => None,
            false => Some(setting_name(tokens)?),
        };
        AlterSystem { name, value: None }
    } else {
        tokens.expect_keyword("set")?;
        let name = Some(setting_name(tokens)?);
        if !tokens.token(&Token::Eq) {
            tokens.expect_keyword("to")?;
        }
        let value = match tokens.keyword("default") {
            true => None,
            false => Some(super::utility::value(tokens)?),
        };
        AlterSystem { name, value }
    };
    tokens.end()?;
    Ok(Statement::AlterSystem(alter))
}

fn setting_name(tokens: &mut Tokens<'_>) -> Result<String> {
    Ok(tokens.qualified_name()?.join(".").to_lowercase())
}
