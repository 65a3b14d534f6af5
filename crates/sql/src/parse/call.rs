//! CALL name(argument, …).

use sqlparser::ast::Expr;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::statement::{Call, Statement};
use super::tokens::{Tokens, parser};
use crate::error::{Result, SqlError};

/// Parses what follows CALL.
pub(super) fn call(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let name = tokens.qualified_name()?;
    tokens.expect(&Token::LParen)?;
    let inner = tokens.until_closing()?.to_vec();
    tokens.end()?;
    let arguments: Vec<Expr> = if inner.is_empty() {
        Vec::new()
    } else {
        let mut inside = parser(inner);
        inside
            .parse_comma_separated(Parser::parse_expr)
            .and_then(|arguments| inside.expect_token(&Token::EOF).map(|_| arguments))
            .map_err(|error| SqlError::from_parser(&error, tokens.sql()))?
    };
    Ok(Statement::Call(Call { name, arguments }))
}
