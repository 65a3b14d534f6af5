//! CREATE VIEW, whose query is kept as its text, and ALTER VIEW.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::depth;
use super::grant::Owned;
use super::life;
use super::own_grammar::{extent, slice};
use super::statement::{Ddl, Statement};
use super::tokens::Tokens;
use crate::error::{Result, SqlError};

/// CREATE VIEW and ALTER VIEW.
#[derive(Debug, Clone)]
pub enum ViewCommand {
    /// CREATE VIEW
    Create(CreateView),
    /// ALTER VIEW
    Alter {
        /// Its name.
        name: Vec<String>,
        /// A missing one is left alone.
        if_exists: bool,
        /// What is to change.
        change: AlterView,
    },
}

/// CREATE VIEW.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateView {
    /// OR REPLACE
    pub replace: bool,
    /// TEMPORARY
    pub temporary: bool,
    /// Its name.
    pub name: Vec<String>,
    /// The names of its first columns.
    pub columns: Vec<String>,
    /// The text of its query.
    pub query: Box<str>,
    /// Where the query begins, in characters before it.
    pub before: u32,
    /// How deep its tree is.
    pub depth: u32,
}

/// What ALTER VIEW changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterView {
    /// Its name.
    Rename(String),
    /// A column's name.
    RenameColumn(String, String),
    /// Where it is.
    Schema(String),
}

/// A CREATE of a view, behind CREATE; `None` if something else is made.
pub(super) fn create(tokens: &mut Tokens<'_>) -> Result<Option<Statement>> {
    let whole = Tokens::new(tokens.sql(), tokens.rest());
    let replace = tokens.keywords(&["or", "replace"]);
    let temporary = life::temporary(tokens);
    if tokens.are_keywords(&["materialized", "view"]) {
        return Err(SqlError::unsupported(
            "materialized views are not supported yet",
            "Use CREATE TABLE ... AS, and fill the table again when you need it.",
        ));
    }
    let recursive = tokens.are_keywords(&["recursive", "view"]) && tokens.keyword("recursive");
    if !tokens.keyword("view") {
        *tokens = whole;
        return Ok(None);
    }
    let name = tokens.qualified_name()?;
    let columns = match tokens.peek() {
        Some(Token::LParen) => tokens.identifier_list()?,
        _ if recursive => return Err(tokens.error()),
        _ => Vec::new(),
    };
    if tokens.keyword("with") {
        return Err(SqlError::unsupported(
            "options of views are not supported yet",
            "Leave the WITH clause out.",
        ));
    }
    tokens.expect_keyword("as")?;
    let query = tokens.rest();
    if has_check_option(query) {
        return Err(SqlError::unsupported(
            "WITH CHECK OPTION is not supported",
            "Leave WITH CHECK OPTION out, and give the table a CHECK.",
        ));
    }
    let sql = tokens.sql();
    let (start, text) = slice(sql, extent(query)).ok_or_else(|| tokens.error())?;
    let before = sql[..start].chars().count();
    let (query_text, before) = match recursive {
        true => of_recursive(&name, &columns, text, before),
        false => (text.to_owned(), before),
    };
    Ok(Some(Statement::Ddl(Ddl::View(ViewCommand::Create(
        CreateView {
            replace,
            temporary,
            name,
            columns,
            query: query_text.into(),
            before: u32::try_from(before).unwrap_or(0),
            depth: depth::shape(sql, query)?.depth,
        },
    )))))
}

/// The query of a recursive view, and what stands before it as far as places in the text tell.
fn of_recursive(name: &[String], columns: &[String], text: &str, before: usize) -> (String, usize) {
    let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    let name = name.last().map(quoted).unwrap_or_default();
    let columns: Vec<String> = columns.iter().map(quoted).collect();
    let columns = columns.join(", ");
    let head = format!("WITH RECURSIVE {name} ({columns}) AS (");
    let before = before.saturating_sub(head.chars().count());
    (
        format!("{head}{text}) SELECT {columns} FROM {name}"),
        before,
    )
}

/// Whether a query ends with WITH [LOCAL | CASCADED] CHECK OPTION.
fn has_check_option(query: &[TokenWithSpan]) -> bool {
    let ends = |words: &[&str]| {
        query.len() > words.len()
            && Tokens::new("", &query[query.len() - words.len()..]).are_keywords(words)
    };
    ends(&["with", "check", "option"])
        || ends(&["with", "local", "check", "option"])
        || ends(&["with", "cascaded", "check", "option"])
}

/// What follows ALTER VIEW.
pub(super) fn alter(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let if_exists = tokens.keywords(&["if", "exists"]);
    let name = tokens.qualified_name()?;
    let change = if tokens.keywords(&["rename", "to"]) {
        AlterView::Rename(tokens.identifier()?)
    } else if tokens.keyword("rename") {
        tokens.keyword("column");
        let old = tokens.identifier()?;
        tokens.expect_keyword("to")?;
        AlterView::RenameColumn(old, tokens.identifier()?)
    } else if tokens.keywords(&["set", "schema"]) {
        AlterView::Schema(tokens.identifier()?)
    } else if tokens.keywords(&["owner", "to"]) {
        let role = tokens.identifier()?;
        tokens.end()?;
        let owned = Owned::View(name);
        return Ok(Statement::Ddl(Ddl::Owner { owned, role }));
    } else if tokens.one_of(&["alter", "set", "reset"]).is_some() {
        return Err(SqlError::unsupported(
            "defaults and options of views are not supported",
            "Set the default of the table's column.",
        ));
    } else {
        return Err(tokens.error());
    };
    tokens.end()?;
    Ok(Statement::Ddl(Ddl::View(ViewCommand::Alter {
        name,
        if_exists,
        change,
    })))
}
