//! From text to statements. The text of a simple Query is cut at its
//! semicolons; what PostgreSQL's clients send and sqlparser does not know, or
//! reads differently, is parsed by hand; the rest is sqlparser's, and queries that it refuses are
//! PostgreSQL's own grammar's. Positions of
//! errors count in the whole text. Nesting is limited ([`depth`]), and what nests is walked with
//! the stack for it, so that no client can exhaust a thread's.

use sqlparser::ast;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};

mod call;
mod comment;
pub(crate) mod copy;
mod create_table;
pub(crate) mod depth;
mod dialect;
mod footprint;
pub(crate) mod grant;
mod life;
mod lock;
mod own_grammar;
pub(crate) mod role;
pub(crate) mod secret;
pub(crate) mod sequence;
pub mod statement;
mod system;
pub(crate) mod table_as;
mod time_zone;
pub(crate) mod tokens;
mod utility;
pub(crate) mod view;

#[cfg(test)]
mod tests;

use dialect::PgDialect;
pub(crate) use footprint::footprint;
pub use statement::{Query, Statement};
use tokens::{Tokens, tokenize};

/// The longest statement text, in bytes.
pub const STATEMENT_BYTES_MAX: usize = 64 << 20;

/// Parses all statements of `sql`; none for blanks and comments.
///
/// # Errors
/// 42601 and what the single statements give; 54000 and 54001 beyond a limit.
pub fn parse(sql: &str) -> Result<Vec<Statement>> {
    parse_measured(sql).map(|(statements, _)| statements)
}

/// Parses all statements of `sql`, and says how deep they are at their most.
pub(crate) fn parse_measured(sql: &str) -> Result<(Vec<Statement>, u32)> {
    if sql.len() > STATEMENT_BYTES_MAX {
        return Err(SqlError::new("54000", "statement is too long"));
    }
    let mut statements = Vec::new();
    let mut deepest = 0;
    let mut tokens = Vec::new();
    let mut add = |tokens: &mut Vec<TokenWithSpan>| -> Result<()> {
        if !tokens.is_empty() {
            let (statement, depth) = parse_one(sql, std::mem::take(tokens))?;
            statements.push(statement);
            deepest = deepest.max(depth);
        }
        Ok(())
    };
    for token in tokenize(sql)? {
        if token.token == Token::SemiColon {
            add(&mut tokens)?;
        } else {
            tokens.push(token);
        }
    }
    add(&mut tokens)?;
    Ok((statements, deepest))
}

/// Parses an expression that the catalog keeps as text; and says how deep it is.
///
/// # Errors
/// 42601, 54001.
pub(crate) fn expression(text: &str) -> Result<(ast::Expr, u32)> {
    parsed(text, tokenize(text)?, |parser| parser.parse_expr())
}

/// Parses one statement from its tokens.
fn parse_one(sql: &str, tokens: Vec<TokenWithSpan>) -> Result<(Statement, u32)> {
    let mut cursor = Tokens::new(sql, &tokens);
    match utility::parse(&mut cursor)? {
        Some(statement) => Ok((statement, depth::shape(sql, &tokens)?.depth)),
        None if own_grammar::is_query(&tokens) => {
            let extent = own_grammar::extent(&tokens);
            match parse_ast(sql, tokens) {
                Ok((statement, depth)) if table_as::selects_into(&statement) => {
                    crate::stack::with_room(depth, || drop(statement));
                    Ok((table_as::select_into(sql, extent)?, depth))
                }
                Ok((statement, depth)) => Ok((classify(statement), depth)),
                Err(error) if error.sqlstate == "42601" => {
                    let (query, depth) = own_grammar::query(sql, extent)?;
                    Ok((Statement::Query(query), depth))
                }
                Err(error) => Err(error),
            }
        }
        None => {
            let (statement, depth) = parse_ast(sql, tokens)?;
            Ok((classify(statement), depth))
        }
    }
}

/// Parses one statement with sqlparser; nothing may follow it.
fn parse_ast(sql: &str, mut tokens: Vec<TokenWithSpan>) -> Result<(ast::Statement, u32)> {
    crate::bind::rewrite(&mut tokens);
    let ((statement, next), depth) = parsed(sql, tokens, |parser| {
        let statement = parser.parse_statement()?;
        Ok((statement, parser.peek_token()))
    })?;
    if next.token == Token::EOF {
        return Ok((statement, depth));
    }
    crate::stack::with_room(depth, || drop(statement));
    let position = crate::error::position_of(sql, next.span.start.line, next.span.start.column);
    Err(
        SqlError::syntax(format!("syntax error at or near \"{}\"", next.token))
            .with_position(position),
    )
}

/// Has sqlparser parse `tokens` in this way, with the stack for them; and says how deep they are.
pub(crate) fn parsed<T>(
    sql: &str,
    tokens: Vec<TokenWithSpan>,
    parse: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<(T, u32)> {
    let shape = depth::shape(sql, &tokens)?;
    let tokens = shape.balance(tokens);
    let parsed = crate::stack::with_room(shape.depth, || {
        let dialect = PgDialect::for_tokens(tokens.len());
        let mut parser = Parser::new(&dialect)
            .with_recursion_limit(2 * shape.depth as usize + 64)
            .with_tokens_with_locations(tokens);
        parse(&mut parser)
    });
    match parsed {
        Ok(parsed) => Ok((parsed, shape.depth)),
        Err(error) => Err(SqlError::from_parser(&error, sql)),
    }
}

fn classify(statement: ast::Statement) -> Statement {
    match statement {
        ast::Statement::Query(_)
        | ast::Statement::Insert(_)
        | ast::Statement::Update(_)
        | ast::Statement::Delete(_)
        | ast::Statement::Merge(_) => Statement::Query(Query::Tree(Box::new(statement))),
        _ => Statement::Ddl(statement::Ddl::Parsed(Box::new(statement))),
    }
}
