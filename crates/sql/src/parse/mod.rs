//! From text to statements. The text of a simple Query is cut at its semicolons, and PostgreSQL's
//! own grammar (`thermocline_query::parse`) reads each statement; what its tree says becomes one of
//! our small types. The commands that PostgreSQL has not, BACKUP and LOAD of columns, are read by their tokens
//! ([`scan`]). Positions of errors count in the whole text. Nesting is limited ([`depth`]), and what
//! nests is walked with the stack for it, so that no client can exhaust a thread's.

use thermocline_query::parse::Parsed;

use crate::error::{Result, SqlError};
use crate::typed::positioned;

mod backup;
mod comment;
pub(crate) mod constraint;
pub(crate) mod copy;
mod cursor;
pub(crate) mod depth;
pub(crate) mod domain;
mod drop;
mod execute;
mod explain;
mod extension;
mod footprint;
pub(crate) mod function;
pub(crate) mod grant;
pub(crate) mod index;
mod lock;
mod maintenance;
pub(crate) mod materialized;
mod node;
mod own;
mod part;
pub mod partition;
mod query;
mod read;
mod refused;
pub mod residence;
pub(crate) mod role;
pub(crate) mod scan;
pub mod schema;
pub(crate) mod secret;
pub(crate) mod sequence;
mod setting;
pub mod statement;
pub(crate) mod table;
pub(crate) mod table_as;
pub mod tablespace;
mod transaction;
pub mod trigger;
pub(crate) mod user_type;
pub(crate) mod view;

#[cfg(test)]
mod tests;

pub(crate) use depth::depth_of;
pub(crate) use footprint::footprint;
pub use statement::{Query, Statement};

use scan::{Token, Tokens};

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
    let mut texts = Vec::new();
    let mut begin = None;
    let mut block = Block::default();
    let mut tokens = Tokens::new(sql);
    while let Some(token) = tokens.next() {
        let is_held = block.holds(token);
        let is_end = token.is_symbol(";") && !is_held;
        let from = tokens.at() - token.text().len();
        match begin {
            None if !is_end => begin = Some(from),
            Some(begun) if is_end => {
                texts.push((begun, from));
                begin = None;
            }
            _ => {}
        }
    }
    texts.extend(begin.map(|from| (from, sql.len())));
    if texts.len() <= 1 {
        texts.fill((0, sql.len()));
    }
    let mut parts = Vec::with_capacity(texts.len());
    let (mut at, mut before) = (0, 0);
    for (from, to) in texts {
        before += characters(&sql[at..from]);
        at = from;
        let text = &sql[from..to];
        let (statement, depth) = parse_alone(text).map_err(|error| error.moved(before))?;
        parts.push(Part {
            text,
            before,
            statement,
            depth,
        });
    }
    Ok(parts)
}

/// Whether tokens stand in `BEGIN ATOMIC … END`, the body of a function: semicolons end its
/// statements, and not the statement around it.
#[derive(Default)]
struct Block {
    /// `BEGIN ATOMIC` and each CASE in it, without their END.
    open: u32,
    is_behind_begin: bool,
}

impl Block {
    /// Takes the next token, and says whether it stands in a block.
    fn holds(&mut self, token: Token<'_>) -> bool {
        let begins = std::mem::replace(&mut self.is_behind_begin, token.is_word("begin"));
        if self.open == 0 {
            self.open = u32::from(begins && token.is_word("atomic"));
        } else if token.is_word("case") {
            self.open += 1;
        } else if token.is_word("end") {
            self.open -= 1;
        }
        self.open > 0
    }
}

/// Parses the one statement of a text, and says how deep it is.
fn parse_alone(text: &str) -> Result<(Statement, u32)> {
    let depth = depth_of(text)?;
    let mut tokens = Tokens::new(text);
    let statement = match tokens.next() {
        Some(first) if first.is_word("backup") => backup::backup(text)?,
        Some(first) if residence::is_residence(first, tokens.next()) => residence::residence(text)?,
        _ => {
            let text = &*part::with_own_options(text);
            let parsed = grammar(text)?;
            crate::stack::with_room(depth, || read::statement(parsed, text))?
        }
    };
    Ok((statement, depth))
}

/// The tree of a text by PostgreSQL's grammar.
fn grammar(text: &str) -> Result<Parsed> {
    thermocline_query::parse::parse(text).map_err(|error| positioned(error, text))
}

fn characters(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(0)
}

/// The place of a byte of a text, in characters from 1.
fn place_of(text: &str, byte: usize) -> u32 {
    characters(text.get(..byte).unwrap_or_default()) + 1
}

/// The place of a node, if it is known.
fn place(text: &str, location: i32) -> Option<u32> {
    let byte = usize::try_from(location).ok()?;
    Some(place_of(text, byte))
}

/// `word` in lower case, if it is short enough for the buffer.
fn lower_case<'a, const N: usize>(word: &str, buffer: &'a mut [u8; N]) -> Option<&'a str> {
    let target = buffer.get_mut(..word.len())?;
    target.copy_from_slice(word.as_bytes());
    target.make_ascii_lowercase();
    std::str::from_utf8(target).ok()
}
