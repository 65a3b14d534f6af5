//! CREATE TABLE AS and SELECT INTO: a table of a query's rows. The query is kept as its text.

use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::life;
use super::own_grammar::{extent, slice};
use super::statement::{Life, Statement};
use super::tokens::{Tokens, tokenize};
use crate::error::{Result, SqlError};

/// CREATE TABLE AS or SELECT INTO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableAs {
    /// How long it lives.
    pub life: Life,
    /// The table's name.
    pub name: Vec<String>,
    /// The names of its first columns.
    pub columns: Vec<String>,
    /// An existing one is left alone.
    pub if_not_exists: bool,
    /// The text of the query.
    pub query: Box<str>,
    /// Where the query begins, in characters before it.
    pub before: u32,
    /// Its rows are stored.
    pub with_data: bool,
}

/// CREATE TABLE AS from all its tokens; `None` if the table is another.
pub(super) fn create(sql: &str, all: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let mut tokens = Tokens::new(sql, all);
    tokens.keyword("create");
    let temporary = life::temporary(&mut tokens);
    tokens.keyword("unlogged");
    tokens.keyword("table");
    let if_not_exists = tokens.keywords(&["if", "not", "exists"]);
    let Ok(name) = tokens.qualified_name() else {
        return Ok(None);
    };
    let columns = match tokens.peek() {
        // Definitions of columns are no names alone.
        Some(Token::LParen) => match tokens.identifier_list() {
            Ok(columns) => columns,
            Err(_) => return Ok(None),
        },
        _ => Vec::new(),
    };
    let on_commit = life::on_commit(&mut tokens)?;
    if !tokens.keyword("as") {
        return Ok(None);
    }
    if tokens.is_keyword("execute") {
        return Err(SqlError::unsupported(
            "CREATE TABLE AS EXECUTE is not supported",
            "Write the query itself behind AS.",
        ));
    }
    let rest = tokens.rest();
    let ends = |words: &[&str]| {
        rest.len() > words.len()
            && Tokens::new(sql, &rest[rest.len() - words.len()..]).are_keywords(words)
    };
    let (with_data, cut) = if ends(&["with", "no", "data"]) {
        (false, 3)
    } else if ends(&["with", "data"]) {
        (true, 2)
    } else {
        (true, 0)
    };
    let query = &rest[..rest.len() - cut];
    let (start, text) = slice(sql, extent(query)).ok_or_else(|| tokens.error())?;
    Ok(Some(Statement::TableAs(TableAs {
        life: Life {
            temporary,
            on_commit,
        },
        name,
        columns,
        if_not_exists,
        query: text.into(),
        before: characters(&sql[..start]),
        with_data,
    })))
}

/// The SELECT INTO between these places of a text.
pub(super) fn select_into(sql: &str, place: Option<(Location, Location)>) -> Result<Statement> {
    let missing = || SqlError::syntax("a statement without its text");
    let (start, text) = slice(sql, place).ok_or_else(missing)?;
    let all = tokenize(text)?;
    let mut depth = 0usize;
    let at = all.iter().position(|token| {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Word(word) => {
                return depth == 0
                    && word.quote_style.is_none()
                    && word.value.eq_ignore_ascii_case("into");
            }
            _ => {}
        }
        false
    });
    let at = at.ok_or_else(missing)?;
    let mut tokens = Tokens::new(text, &all[at + 1..]);
    let temporary = life::temporary(&mut tokens);
    tokens.keyword("unlogged");
    tokens.keyword("table");
    let name = tokens.qualified_name()?;
    let behind = all.len() - tokens.rest().len();
    let (from, into) = slice(text, extent(&all[at..behind])).ok_or_else(missing)?;
    // Blanks in its place: whatever follows stays where it is.
    let mut query = text[..from].to_owned();
    query.extend(std::iter::repeat_n(' ', into.chars().count()));
    query.push_str(&text[from + into.len()..]);
    Ok(Statement::TableAs(TableAs {
        life: Life {
            temporary,
            on_commit: None,
        },
        name,
        columns: Vec::new(),
        if_not_exists: false,
        query: query.into(),
        before: characters(&sql[..start]),
        with_data: true,
    }))
}

fn characters(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(0)
}
