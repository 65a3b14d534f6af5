//! CREATE TABLE: sqlparser's statement, after TEMPORARY, UNLOGGED, the access method, ON COMMIT
//! and the options of identity columns were taken out of the tokens; it knows some of them not
//! at all and the last only in one order.

use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::sequence::{self, SequenceOptions};
use super::statement::{CreateTable, Ddl, Life, Statement};
use super::tokens::Tokens;
use super::{life, parse_ast};
use crate::error::Result;

/// Parses a CREATE TABLE from all its tokens.
pub(super) fn create_table(sql: &str, tokens: &[TokenWithSpan]) -> Result<Statement> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut identities = Vec::new();
    let mut access_method = None;
    let mut of_life = Life::default();
    let mut depth = 0usize;
    let mut cursor = Tokens::new(sql, tokens);
    let mut before = 0usize;
    while let Some(token) = cursor.peek() {
        let at = tokens.len() - cursor.rest().len();
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Word(_) if before == 1 && cursor.keyword("unlogged") => {
                before += 1;
                continue;
            }
            Token::Word(_) if before == 1 && life::temporary(&mut cursor) => {
                of_life.temporary = true;
                before += 1;
                continue;
            }
            Token::Word(_) if depth == 0 && cursor.are_keywords(&["on", "commit"]) => {
                of_life.on_commit = life::on_commit(&mut cursor)?;
                continue;
            }
            Token::Word(_) if depth == 0 && cursor.keyword("using") => {
                access_method = Some(cursor.identifier()?);
                continue;
            }
            Token::Word(_) if depth == 1 && cursor.are_keywords(&["as", "identity"]) => {
                kept.extend_from_slice(&tokens[at..at + 2]);
                cursor.advance();
                cursor.advance();
                before += 2;
                identities.push(identity(sql, &mut cursor)?);
                continue;
            }
            _ => {}
        }
        kept.push(tokens[at].clone());
        cursor.advance();
        before += 1;
    }
    Ok(match parse_ast(sql, kept)?.0 {
        ast::Statement::CreateTable(statement) => {
            Statement::Ddl(Ddl::CreateTable(Box::new(CreateTable {
                statement,
                life: of_life,
                access_method,
                identities,
            })))
        }
        other => Statement::Ddl(Ddl::Parsed(Box::new(other))),
    })
}

/// The options in parentheses behind AS IDENTITY, if there are any.
fn identity(sql: &str, cursor: &mut Tokens<'_>) -> Result<SequenceOptions> {
    if !cursor.token(&Token::LParen) {
        return Ok(SequenceOptions::default());
    }
    sequence::options(&mut Tokens::new(sql, cursor.until_closing()?))
}
