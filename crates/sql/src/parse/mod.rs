//! From text to statements. The text of a simple Query is cut at its
//! semicolons; what PostgreSQL's clients send and sqlparser does not know, or
//! reads differently, is parsed by hand; the rest is sqlparser's. Positions of
//! errors count in the whole text. Nesting is limited, so that no client can
//! exhaust a thread's stack.

use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};

mod call;
pub(crate) mod copy;
mod create_table;
mod dialect;
mod footprint;
pub(crate) mod grant;
pub(crate) mod role;
pub(crate) mod secret;
pub(crate) mod sequence;
pub mod statement;
mod system;
pub(crate) mod tokens;
mod utility;

#[cfg(test)]
mod tests;

pub(crate) use footprint::footprint;
pub use statement::Statement;
use tokens::{Tokens, parser, tokenize};

/// The most operators in one chain (`a + b + c …`); each is a level of the
/// tree, and of the stack of whoever walks it.
const CHAIN_LENGTH_MAX: u32 = 1000;

/// The longest statement text, in bytes.
pub const STATEMENT_BYTES_MAX: usize = 64 << 20;

/// Parses all statements of `sql`; none for blanks and comments.
///
/// # Errors
/// 42601 and what the single statements give; 54000 beyond a limit.
pub fn parse(sql: &str) -> Result<Vec<Statement>> {
    if sql.len() > STATEMENT_BYTES_MAX {
        return Err(SqlError::new("54000", "statement is too long"));
    }
    let mut statements = Vec::new();
    let mut tokens = Vec::new();
    for token in tokenize(sql)? {
        if token.token != Token::SemiColon {
            tokens.push(token);
        } else if !tokens.is_empty() {
            statements.push(parse_one(sql, std::mem::take(&mut tokens))?);
        }
    }
    if !tokens.is_empty() {
        statements.push(parse_one(sql, tokens)?);
    }
    Ok(statements)
}

/// Parses one statement from its tokens.
fn parse_one(sql: &str, tokens: Vec<TokenWithSpan>) -> Result<Statement> {
    let mut cursor = Tokens::new(sql, &tokens);
    match utility::parse(&mut cursor)? {
        Some(statement) => Ok(statement),
        None => {
            check_chains(sql, &tokens)?;
            let statement = parse_ast(sql, tokens)?;
            Ok(classify(statement))
        }
    }
}

/// Parses one statement with sqlparser; nothing may follow it.
fn parse_ast(sql: &str, mut tokens: Vec<TokenWithSpan>) -> Result<ast::Statement> {
    crate::bind::rewrite(&mut tokens);
    let mut parser = parser(tokens);
    let statement = parser
        .parse_statement()
        .map_err(|error| SqlError::from_parser(&error, sql))?;
    let next = parser.peek_token();
    if next.token == Token::EOF {
        return Ok(statement);
    }
    let position = crate::error::position_of(sql, next.span.start.line, next.span.start.column);
    Err(
        SqlError::syntax(format!("syntax error at or near \"{}\"", next.token))
            .with_position(position),
    )
}

fn classify(statement: ast::Statement) -> Statement {
    match statement {
        ast::Statement::Query(_)
        | ast::Statement::Insert(_)
        | ast::Statement::Update(_)
        | ast::Statement::Delete(_)
        | ast::Statement::Merge(_) => Statement::Query(Box::new(statement)),
        _ => Statement::Ddl(statement::Ddl::Parsed(Box::new(statement))),
    }
}

/// Refuses chains of operators that would be too deep a tree.
fn check_chains(sql: &str, tokens: &[TokenWithSpan]) -> Result<()> {
    let mut chains = vec![0u32];
    for token in tokens {
        let operator = match &token.token {
            Token::LParen | Token::LBracket => {
                chains.push(0);
                continue;
            }
            Token::RParen | Token::RBracket => {
                if chains.len() > 1 {
                    chains.pop();
                }
                continue;
            }
            Token::Comma => {
                if let Some(chain) = chains.last_mut() {
                    *chain = 0;
                }
                continue;
            }
            Token::Word(word) => {
                word.quote_style.is_none()
                    && ["and", "or", "union", "intersect", "except", "join", "not"]
                        .iter()
                        .any(|name| word.value.eq_ignore_ascii_case(name))
            }
            Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::Mod
            | Token::StringConcat
            | Token::DoubleColon
            | Token::Caret
            | Token::Tilde => true,
            _ => false,
        };
        if operator {
            let Some(chain) = chains.last_mut() else {
                continue;
            };
            *chain += 1;
            if *chain > CHAIN_LENGTH_MAX {
                let start = token.span.start;
                return Err(SqlError::new("54001", "statement is too complex")
                    .with_detail(format!(
                        "More than {CHAIN_LENGTH_MAX} operators follow each other without parentheses."
                    ))
                    .with_position(crate::error::position_of(sql, start.line, start.column)));
            }
        }
    }
    Ok(())
}
