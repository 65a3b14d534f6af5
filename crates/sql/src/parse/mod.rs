//! From text to statements. The text of a simple Query is cut at its
//! semicolons. Queries and changes of rows are PostgreSQL's own grammar's; what else its clients
//! send and sqlparser does not know, or reads differently, is parsed by hand; the rest is
//! sqlparser's. Positions of errors count in the whole text. Nesting is limited ([`depth`]), and what nests is walked with
//! the stack for it, so that no client can exhaust a thread's.

use sqlparser::ast;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::error::{Result, SqlError};

mod call;
mod comment;
pub(crate) mod copy;
mod create_table;
pub(crate) mod depth;
mod dialect;
pub(crate) mod domain;
mod footprint;
pub(crate) mod function;
pub(crate) mod grant;
mod life;
mod lock;
mod own_grammar;
pub(crate) mod refused;
mod rewrite;
pub(crate) mod role;
pub(crate) mod secret;
pub(crate) mod sequence;
pub mod statement;
mod system;
pub(crate) mod table_as;
mod time_zone;
pub(crate) mod tokens;
pub(crate) mod user_type;
mod utility;
pub(crate) mod view;

#[cfg(test)]
mod tests;

use dialect::PgDialect;
pub(crate) use footprint::footprint;
use own_grammar::Read;
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
    let parts = parse_parts(sql)?;
    let deepest = parts.iter().map(|part| part.depth).max().unwrap_or(0);
    let statements = parts.into_iter().map(|part| part.statement);
    Ok((statements.collect(), deepest))
}

/// A statement of a text.
pub(crate) struct Part<'a> {
    /// Its own text: the whole one, if it is alone there.
    pub(crate) text: &'a str,
    /// How many characters of the whole text come before that.
    pub(crate) before: u32,
    pub(crate) statement: Statement,
    pub(crate) depth: u32,
}

/// Parses all statements of `sql`, each as a text of its own: what is done with one of many takes
/// time by its own length.
pub(crate) fn parse_parts(sql: &str) -> Result<Vec<Part<'_>>> {
    if sql.len() > STATEMENT_BYTES_MAX {
        return Err(SqlError::new("54000", "statement is too long"));
    }
    let mut tokens = tokenize(sql)?;
    let mut groups = tokens.split(|token| token.token == Token::SemiColon);
    let is_alone = groups.by_ref().filter(|group| !group.is_empty()).count() <= 1;
    if is_alone {
        tokens.retain(|token| token.token != Token::SemiColon);
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        let (statement, depth) = parse_alone(sql, tokens)?;
        return Ok(vec![Part {
            text: sql,
            before: 0,
            statement,
            depth,
        }]);
    }
    let mut parts = Vec::new();
    let mut place = Walk::new(sql);
    let mut begin = None;
    let mut ends = Vec::new();
    for token in &tokens {
        let is_end = token.token == Token::SemiColon;
        match begin {
            None if !is_end => begin = Some(place.to(token.span.start)),
            Some(from) if is_end => {
                ends.push((from, place.to(token.span.start).0));
                begin = None;
            }
            _ => {}
        }
    }
    ends.extend(begin.map(|from| (from, sql.len())));
    drop(tokens);
    for ((from, before), to) in ends {
        let text = &sql[from..to];
        let parsed = tokenize(text).and_then(|tokens| parse_alone(text, tokens));
        let (statement, depth) = parsed.map_err(|error| error.moved(before))?;
        parts.push(Part {
            text,
            before,
            statement,
            depth,
        });
    }
    Ok(parts)
}

/// A walk through a text, from place to place.
struct Walk<'a> {
    rest: std::iter::Peekable<std::str::CharIndices<'a>>,
    at: Location,
    characters: u32,
    bytes: usize,
}

impl<'a> Walk<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            rest: text.char_indices().peekable(),
            at: Location { line: 1, column: 1 },
            characters: 0,
            bytes: text.len(),
        }
    }

    /// The byte of a place, and how many characters come before it.
    fn to(&mut self, place: Location) -> (usize, u32) {
        let is_before = |at: Location| (at.line, at.column) < (place.line, place.column);
        while is_before(self.at)
            && let Some((_, character)) = self.rest.next()
        {
            self.characters += 1;
            self.at = match character {
                '\n' => Location {
                    line: self.at.line + 1,
                    column: 1,
                },
                _ => Location {
                    column: self.at.column + 1,
                    ..self.at
                },
            };
        }
        let byte = self.rest.peek().map_or(self.bytes, |(at, _)| *at);
        (byte, self.characters)
    }
}

/// Parses an expression that the catalog keeps as text; and says how deep it is.
///
/// # Errors
/// 42601, 54001.
pub(crate) fn expression(text: &str) -> Result<(ast::Expr, u32)> {
    parsed(text, tokenize(text)?, |parser| parser.parse_expr())
}

/// How deep an expression is that the catalog keeps as text.
///
/// # Errors
/// 42601, 54001.
pub(crate) fn depth_of(text: &str) -> Result<u32> {
    Ok(depth::shape(text, &tokenize(text)?)?.depth)
}

/// Parses the statement of a text from its tokens.
fn parse_alone(text: &str, tokens: Vec<TokenWithSpan>) -> Result<(Statement, u32)> {
    parse_one(text, tokens).map_err(|error| match error.sqlstate {
        "42601" => refused::told(error, text),
        _ => error,
    })
}

/// Parses one statement from its tokens.
fn parse_one(sql: &str, tokens: Vec<TokenWithSpan>) -> Result<(Statement, u32)> {
    let mut cursor = Tokens::new(sql, &tokens);
    match utility::parse(&mut cursor)? {
        Some(statement) => Ok((statement, depth::shape(sql, &tokens)?.depth)),
        None if own_grammar::is_query(&tokens) => {
            let depth = depth::shape(sql, &tokens)?.depth;
            let extent = own_grammar::extent(&tokens);
            // They may take as much as the tree.
            drop(tokens);
            let statement = match own_grammar::query(sql, extent)? {
                Read::Query(query) => Statement::Query(query),
                Read::Into => table_as::select_into(sql, extent)?,
            };
            Ok((statement, depth))
        }
        None => {
            let (statement, depth) = parse_ast(sql, tokens)?;
            let parsed = statement::Ddl::Parsed(Box::new(statement));
            Ok((Statement::Ddl(parsed), depth))
        }
    }
}

/// Parses one statement with sqlparser; nothing may follow it.
fn parse_ast(sql: &str, mut tokens: Vec<TokenWithSpan>) -> Result<(ast::Statement, u32)> {
    rewrite::rewrite(&mut tokens);
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
