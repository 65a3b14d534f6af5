//! Analysis of queries against the catalog: users' tables and the system's relations.

use std::cell::RefCell;
use std::sync::Arc;

use pg_raw_parse::Node;
use thermocline_engine::authority::Privileges;
use thermocline_engine::catalog::Table;
use thermocline_engine::{Catalog, Database};
use thermocline_query::analyze::{self, Stored, analyze};
use thermocline_query::error::Result as QueryResult;
use thermocline_query::functions::Body;
use thermocline_query::tree::{Column, Expr, ExprKind, Query};

use super::SessionFacts;
use crate::error::{Result, SqlError};
use crate::pg_catalog::{self, SystemEnvironment};
use crate::typed::{TypedQuery, positioned};

/// A query, analysed.
///
/// # Errors
/// As PostgreSQL's analysis; 0A000 for what is not done.
pub(crate) fn bind(
    statement: Node<'_>,
    text: &str,
    declared: &[u32],
    catalog: &Arc<Catalog>,
    db: &Arc<Database>,
    facts: SessionFacts,
) -> Result<TypedQuery> {
    let environment = SystemEnvironment::new(catalog, db, facts, None);
    let relations = Relations {
        environment: &environment,
        tables: RefCell::default(),
    };
    let analyzed = analyze(statement, &relations, &environment, declared)
        .map_err(|error| positioned(error, text))?;
    if let Some(name) = unanswered(&analyzed.query) {
        return Err(SqlError::unsupported(format!(
            "function {name} is not supported here"
        )));
    }
    Ok(TypedQuery::of(analyzed).over(relations.tables.into_inner()))
}

/// A function that a query calls and that nobody answers.
fn unanswered(query: &Query) -> Option<&'static str> {
    fn of_expr(expr: &Expr, found: &mut Option<&'static str>) {
        expr.any(&mut |expr| {
            match &expr.kind {
                ExprKind::Call(call)
                    if matches!(call.function.body, Body::Server | Body::ServerSet)
                        && !pg_catalog::is_answered(call.function.name) =>
                {
                    *found = Some(call.function.name);
                }
                ExprKind::Subquery(subquery) => *found = found.or(unanswered(&subquery.query)),
                _ => {}
            }
            found.is_some()
        });
    }
    let mut found = None;
    query.exprs(&mut |expr| of_expr(expr, &mut found));
    found
}

/// The relations as the analyzer asks for them.
struct Relations<'a> {
    environment: &'a SystemEnvironment,
    /// The users' tables among those that it asked for.
    tables: RefCell<Vec<Arc<Table>>>,
}

impl Relations<'_> {
    /// A user's table by name; `pg_catalog` is searched before.
    fn table(&self, schema: Option<&str>, name: &str) -> Option<&Arc<Table>> {
        let session = self.environment.session();
        let catalog = &session.catalog;
        match schema {
            Some(schema) => catalog.table_by_name(schema, name),
            None if pg_catalog::is_relation(Some("pg_catalog"), name) => None,
            None => {
                let mut path = session.facts.search_path.iter();
                path.find_map(|schema| catalog.table_by_name(schema, name))
            }
        }
    }
}

impl analyze::Catalog for Relations<'_> {
    fn relation(&self, schema: Option<&str>, name: &str) -> QueryResult<Option<Stored>> {
        let session = self.environment.session();
        let Some(table) = self.table(schema, name) else {
            let search_path = &session.facts.search_path;
            return Ok(pg_catalog::stored(schema, name, search_path));
        };
        let actor = &session.facts.actor;
        actor.need_some_column(&session.catalog, table, Privileges::SELECT)?;
        let mut tables = self.tables.borrow_mut();
        if !tables.iter().any(|other| other.oid == table.oid) {
            tables.push(Arc::clone(table));
        }
        let columns = table.columns.iter().enumerate();
        let columns = columns.map(|(at, column)| Column {
            name: Arc::from(column.name.as_str()),
            oid: column.data_type.oid(),
            modifier: column.data_type.typmod(),
            origin: i16::try_from(at + 1).ok().map(|number| (table.oid, number)),
        });
        let primary = table.indexes.iter().find(|index| index.primary);
        Ok(Some(Stored {
            oid: table.oid,
            schema: Arc::from(table.schema.as_str()),
            columns: columns.collect(),
            primary_key: primary.map_or_else(Vec::new, |index| index.columns.clone()),
            row_type: 0,
        }))
    }

    fn user_type(&self, schema: Option<&str>, name: &str) -> Option<u32> {
        self.environment.session().user_type(schema, name)
    }
}
