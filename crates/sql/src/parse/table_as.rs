//! CREATE TABLE AS and SELECT INTO: a table of a query's rows. The query is kept as its text.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{CreateTableAsStmt, IntoClause, ObjectType, SelectStmt};

use super::statement::{Argument, Life, Statement};
use super::table::on_commit;
use super::{characters, execute, materialized, node, part};
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
    /// EXECUTE in the query's place: the prepared statement, and its arguments.
    pub execute: Option<(String, Vec<Argument>)>,
    /// Its rows are stored.
    pub with_data: bool,
}

pub(super) fn create(statement: &CreateTableAsStmt, text: &str) -> Result<Statement> {
    if statement.objtype != ObjectType::OBJECT_TABLE {
        return materialized::create(statement, text);
    }
    let missing = || SqlError::internal("CREATE TABLE AS without its query");
    let into = statement.into().ok_or_else(missing)?;
    if into.access_method().is_some() || !into.options().is_empty() {
        return Err(SqlError::unsupported(
            "a method or options of CREATE TABLE AS are not supported",
            "Create the table first, then INSERT ... SELECT.",
        ));
    }
    let (start, query) = materialized::query_of(into, text).ok_or_else(missing)?;
    let execute = match statement.query() {
        Node::ExecuteStmt(execute) => Some(execute::named(execute)?),
        _ => None,
    };
    Ok(Statement::TableAs(TableAs {
        execute,
        if_not_exists: statement.if_not_exists,
        ..table_as(into, query, characters(&text[..start]))
    }))
}

fn table_as(into: &IntoClause, query: &str, before: u32) -> TableAs {
    TableAs {
        life: Life {
            temporary: node::is_temporary(into.rel()),
            on_commit: on_commit(into.on_commit),
        },
        name: node::relation(into.rel()),
        columns: node::strings(into.col_names()),
        if_not_exists: false,
        query: query.into(),
        before,
        execute: None,
        with_data: !into.skip_data,
    }
}

/// SELECT INTO. Its INTO is blanks in the query, so that whatever follows stays where it is.
pub(super) fn select_into(select: &SelectStmt, text: &str) -> Result<Statement> {
    let missing = || SqlError::internal("SELECT INTO without its table");
    let into = select.into_clause().ok_or_else(missing)?;
    let name = into.rel().map(|relation| relation.location);
    let name = name.and_then(|at| usize::try_from(at).ok());
    let name = name.ok_or_else(missing)?;
    let (from, to) = part::into_clause(text, name).ok_or_else(missing)?;
    let blanks = text[from..to].chars().count();
    let query = format!("{}{}{}", &text[..from], " ".repeat(blanks), &text[to..]);
    let is_end = |character: char| character == ';' || character.is_ascii_whitespace();
    let query = query.trim_end_matches(is_end);
    Ok(Statement::TableAs(table_as(into, query, 0)))
}
