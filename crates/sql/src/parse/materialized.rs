//! CREATE and REFRESH MATERIALIZED VIEW. The query is kept as its text.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{CreateTableAsStmt, IntoClause, RefreshMatViewStmt};

use super::depth::depth_of;
use super::statement::{Ddl, Statement};
use super::view::CreateView;
use super::{characters, node, part, table};
use crate::error::{Result, SqlError};

/// REFRESH MATERIALIZED VIEW.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refresh {
    /// Its name.
    pub name: Vec<String>,
    /// Only rows that differ are changed, beside who reads.
    pub concurrently: bool,
    /// The query runs. Otherwise the rows go.
    pub with_data: bool,
}

/// CREATE MATERIALIZED VIEW.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateMaterialized {
    /// Its names and its query, as a view has them.
    pub view: CreateView,
    /// An existing one is left alone.
    pub if_not_exists: bool,
    /// USING
    pub access_method: Option<String>,
    /// WITH: names and values.
    pub options: Vec<(String, String)>,
    /// TABLESPACE
    pub tablespace: Option<String>,
    /// The query runs at once.
    pub with_data: bool,
}

pub(super) fn create(statement: &CreateTableAsStmt, text: &str) -> Result<Statement> {
    let missing = || SqlError::internal("a materialized view without its query");
    let into = statement.into().ok_or_else(missing)?;
    if let Node::ExecuteStmt(_) = statement.query() {
        return Err(SqlError::unsupported(
            "a materialized view of EXECUTE is not supported",
            "Write the query itself.",
        ));
    }
    if node::is_unlogged(into.rel()) {
        let message = "materialized views cannot be unlogged";
        return Err(SqlError::unsupported(message, "Leave UNLOGGED out."));
    }
    let (start, query) = query_of(into, text).ok_or_else(missing)?;
    Ok(Statement::Ddl(Ddl::Materialized(Box::new(
        CreateMaterialized {
            view: CreateView {
                replace: false,
                temporary: false,
                name: node::relation(into.rel()),
                columns: node::strings(into.col_names()),
                depth: depth_of(query)?,
                query: query.into(),
                before: characters(&text[..start]),
                options: Vec::new(),
            },
            if_not_exists: statement.if_not_exists,
            access_method: into.access_method().map(str::to_owned),
            options: table::options(into.options()),
            tablespace: into.table_space_name().map(str::to_owned),
            with_data: !into.skip_data,
        },
    ))))
}

/// The query behind AS, without WITH [NO] DATA, and where it begins.
pub(super) fn query_of<'t>(into: &IntoClause, text: &'t str) -> Option<(usize, &'t str)> {
    let (start, query) = part::behind(text, "as")?;
    let without = match into.skip_data {
        true => part::without_end(query, &["with", "no", "data"]),
        false => part::without_end(query, &["with", "data"]),
    };
    Some((start, without.unwrap_or(query)))
}

pub(super) fn refresh(statement: &RefreshMatViewStmt) -> Result<Statement> {
    let (concurrently, with_data) = (statement.concurrent, !statement.skip_data);
    if concurrently && !with_data {
        let message = "CONCURRENTLY and WITH NO DATA options cannot be used together";
        return Err(SqlError::syntax(message));
    }
    Ok(Statement::Ddl(Ddl::Refresh(Refresh {
        name: node::relation(statement.relation()),
        concurrently,
        with_data,
    })))
}
