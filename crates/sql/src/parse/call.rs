//! CALL name(argument, …).

use sqlparser::ast::Expr;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::parsed;
use super::statement::{Call, Statement};
use super::tokens::Tokens;
use crate::error::Result;

/// Parses what follows CALL.
pub(super) fn call(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let name = tokens.qualified_name()?;
    tokens.expect(&Token::LParen)?;
    let inner = tokens.until_closing()?.to_vec();
    tokens.end()?;
    let arguments: Vec<Expr> = if inner.is_empty() {
        Vec::new()
    } else {
        let (arguments, _) = parsed(tokens.sql(), inner, |parser| {
            let arguments = parser.parse_comma_separated(Parser::parse_expr)?;
            parser.expect_token(&Token::EOF)?;
            Ok(arguments)
        })?;
        arguments
    };
    Ok(Statement::Call(Call { name, arguments }))
}
