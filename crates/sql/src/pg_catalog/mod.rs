//! PostgreSQL's system catalogs: `pg_catalog`, `information_schema` and our own
//! views, made from the engine's catalog when a query asks.
//!
//! A query that reads nothing else is analysed by `thermocline_query`, once for all its runs, and
//! run by `thermocline_analytical` over the relations in memory. One that joins catalogs with
//! users' tables sees the relations as tables of DataFusion. Nothing here writes.

mod content;
mod convert;
mod datum;
mod environment;
mod functions;
mod oids;
mod pg_type;
mod provider;
mod relations;
mod rows;
mod run;
mod session;

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use pg_raw_parse::Node;
use thermocline_engine::{Catalog, Database};
use thermocline_query::analyze::{self, Stored, analyze};
use thermocline_query::datum::Datum as Typed;
use thermocline_query::error::QueryError;
use thermocline_query::functions::Body;
use thermocline_query::tree::{Column, Expr, ExprKind, Query};

pub(crate) use datum::Datum;
pub(crate) use environment::SystemEnvironment;
pub(crate) use relations::Relation;
pub(crate) use rows::CatalogRows;
pub(crate) use run::CatalogRuns;
pub(crate) use session::SystemSession;

use crate::analytics::SessionFacts;
use crate::error::Result;
use crate::typed::{TypedQuery, positioned};

/// Whether there is a relation of this name; without a schema in any that is searched by itself.
pub(crate) fn is_relation(schema: Option<&str>, name: &str) -> bool {
    match schema {
        Some(schema) => relations::relation(schema, name).is_some(),
        None => ["pg_catalog", "information_schema"]
            .iter()
            .any(|schema| relations::relation(schema, name).is_some()),
    }
}

/// Analyses a query that reads nothing but catalog relations; `None` leaves what is not done
/// here to others.
pub(crate) fn bind(
    statement: Node<'_>,
    text: &str,
    declared: &[u32],
    catalog: &Arc<Catalog>,
    db: &Arc<Database>,
    facts: SessionFacts,
) -> Option<Result<TypedQuery>> {
    let environment = SystemEnvironment::new(catalog, db, facts);
    match analyze(statement, &Relations(&environment), &environment, declared) {
        Ok(analyzed) if !is_answered(&analyzed.query) => None,
        Ok(analyzed) => Some(Ok(TypedQuery::of(analyzed))),
        Err(error) if matches!(error.sqlstate, "0A000" | "42883") => None,
        Err(error) => Some(Err(positioned(error, text))),
    }
}

/// Whether all functions that a query calls are answered here.
fn is_answered(query: &Query) -> bool {
    let mut answered = true;
    query.exprs(&mut |expr| answered = answered && !expr.any(&mut asks_others));
    answered
}

/// Whether an expression is a call of a function that is not answered here, or a query with one.
fn asks_others(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Call(call) => {
            matches!(call.function.body, Body::Server | Body::ServerSet)
                && !functions::is_answered(call.function.name)
        }
        ExprKind::Subquery(subquery) => !is_answered(&subquery.query),
        _ => false,
    }
}

/// The relations as the analyzer asks for them.
struct Relations<'a>(&'a SystemEnvironment);

impl analyze::Catalog for Relations<'_> {
    fn relation(
        &self,
        schema: Option<&str>,
        name: &str,
    ) -> thermocline_query::error::Result<Option<Stored>> {
        let search_path = &self.0.session().facts.search_path;
        let Some(relation) = find_relation(schema, name, search_path) else {
            return Ok(None);
        };
        let columns = relation.columns.iter().enumerate();
        let columns = columns.map(|(at, column)| Column {
            name: Arc::from(column.name),
            oid: column.data_type.oid,
            modifier: column.data_type.typmod,
            origin: i16::try_from(at + 1)
                .ok()
                .map(|number| (relation.oid, number)),
        });
        Ok(Some(Stored {
            oid: relation.oid,
            schema: Arc::from(relation.schema),
            columns: columns.collect(),
            primary_key: Vec::new(),
            row_type: 0,
        }))
    }

    fn user_type(&self, schema: Option<&str>, name: &str) -> Option<u32> {
        use session::Names;
        let session = self.0.session();
        match schema {
            Some(schema) => session.type_by_name(&format!("{schema}.{name}")),
            None => session.type_by_name(name),
        }
    }
}

/// A catalog relation by name; `pg_catalog` is searched first.
fn find_relation(
    schema: Option<&str>,
    name: &str,
    search_path: &[String],
) -> Option<&'static Arc<Relation>> {
    match schema {
        Some(schema) => relations::relation(schema, name),
        None => relations::relation("pg_catalog", name).or_else(|| {
            search_path
                .iter()
                .find_map(|schema| relations::relation(schema, name))
        }),
    }
}

/// The rows of a relation.
fn content(
    relation: &Relation,
    environment: &SystemEnvironment,
) -> Result<Vec<Vec<Typed>>, QueryError> {
    let content = environment.session().content(relation)?;
    let row = |row: &Vec<Datum>| {
        let cells = row.iter().zip(&relation.columns);
        cells
            .map(|(value, column)| convert::typed(value, column.data_type.oid, environment))
            .collect()
    };
    content.iter().map(row).collect()
}

/// A catalog relation as a table in memory.
pub(crate) fn provider(
    db: &Arc<Database>,
    schema: Option<&str>,
    name: &str,
    catalog: &Arc<Catalog>,
    facts: &SessionFacts,
) -> Result<Option<Arc<dyn TableProvider>>> {
    let Some(relation) = find_relation(schema, name, &facts.search_path) else {
        return Ok(None);
    };
    let environment = SystemEnvironment::new(catalog, db, facts.clone());
    provider::provider(relation, &environment).map(Some)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_relation_has_unique_column_names() {
        for relation in relations::RELATIONS.iter() {
            let mut seen = HashSet::new();
            assert!(
                relation
                    .columns
                    .iter()
                    .all(|column| seen.insert(column.name)),
                "{}",
                relation.name
            );
        }
    }
}
