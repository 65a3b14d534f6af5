//! CREATE VIEW, whose query is kept as its text, and ALTER VIEW.

use pg_raw_parse::nodes::{ViewCheckOption, ViewStmt};

use super::depth::depth_of;
use super::scan::Tokens;
use super::statement::{Ddl, Statement};
use super::{characters, node, part};
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
}

pub(super) fn create(statement: &ViewStmt, text: &str) -> Result<Statement> {
    if !statement.options().is_empty() {
        return Err(SqlError::unsupported(
            "options of views are not supported",
            "Leave the WITH clause out.",
        ));
    }
    if statement.with_check_option != ViewCheckOption::NO_CHECK_OPTION {
        return Err(SqlError::unsupported(
            "WITH CHECK OPTION is not supported",
            "Put the condition into a CHECK of the table.",
        ));
    }
    let missing = || SqlError::internal("a view without its query");
    let (start, query) = part::behind(text, "as").ok_or_else(missing)?;
    let before = characters(&text[..start]);
    let name = node::relation(statement.view());
    let columns = node::strings(statement.aliases());
    let begin = Tokens::new(text).take_while(|token| !token.is_word("view"));
    let (query_text, before) = match begin.into_iter().any(|token| token.is_word("recursive")) {
        true => of_recursive(&name, &columns, query, before),
        false => (query.to_owned(), before),
    };
    Ok(Statement::Ddl(Ddl::View(ViewCommand::Create(CreateView {
        replace: statement.replace,
        temporary: node::is_temporary(statement.view()),
        name,
        columns,
        depth: depth_of(&query_text)?,
        query: query_text.into(),
        before,
    }))))
}

/// The query of a recursive view, and what stands before it as far as places in the text tell.
fn of_recursive(name: &[String], columns: &[String], text: &str, before: u32) -> (String, u32) {
    let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    let name = name.last().map(quoted).unwrap_or_default();
    let columns: Vec<String> = columns.iter().map(quoted).collect();
    let columns = columns.join(", ");
    let head = format!("WITH RECURSIVE {name} ({columns}) AS (");
    let before = before.saturating_sub(characters(&head));
    (
        format!("{head}{text}) SELECT {columns} FROM {name}"),
        before,
    )
}
