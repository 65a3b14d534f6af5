//! PostgreSQL's system catalogs: `pg_catalog`, `information_schema` and our own
//! views, made from the engine's catalog when a query asks.
//!
//! A query that reads only catalog relations, or no relation at all, is
//! answered by the executor in [`query`] with PostgreSQL's types. One that
//! joins catalogs with users' tables goes to DataFusion, which sees the catalog
//! relations as tables in memory. Nothing here writes.

mod content;
mod datum;
mod oids;
mod pg_type;
mod provider;
mod query;
mod relations;
mod rows;
mod session;

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use sqlparser::ast::{ObjectName, Query, TableFactor, Visit, Visitor};
use thermocline_engine::{Catalog, Database};
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

pub(crate) use datum::Datum;
pub(crate) use query::FUNCTION_NAMES;
pub(crate) use relations::Relation;
pub(crate) use rows::CatalogRows;
pub(crate) use session::SystemSession;

use crate::analytics::{RowStream, SessionFacts, folded};
use crate::error::Result;
use crate::output::OutputColumn;
use pg_type::PgType;
use query::{Binder, QueryPlan, Run, find_relation};

/// The system catalogs of a database.
pub(crate) struct SystemCatalog {
    db: Arc<Database>,
}

impl SystemCatalog {
    pub(crate) fn new(db: Arc<Database>) -> Self {
        Self { db }
    }

    /// Whether the executor here answers `query`: it reads no user's table and
    /// makes no long series, and all its shapes are known.
    pub(crate) fn answers(&self, query: &Query, catalog: &Catalog, facts: &SessionFacts) -> bool {
        let mut reads = Reads {
            catalog,
            facts,
            ctes: Vec::new(),
            tables: 0,
            relations: 0,
            series: false,
        };
        let _ = query.visit(&mut reads);
        if reads.tables > 0 || (reads.series && reads.relations == 0) {
            return false;
        }
        // What the executor does not do may still be DataFusion's to do.
        let session = SystemSession::new(catalog, &self.db, facts);
        match Binder::new(&session, Vec::new()).query(query) {
            Ok(_) => true,
            Err(error) => error.sqlstate != "0A000",
        }
    }

    fn bind(
        query: &Query,
        session: &SystemSession<'_>,
        declared: &[Option<DataType>],
    ) -> Result<(QueryPlan, Vec<DataType>)> {
        let given = declared
            .iter()
            .map(|data_type| data_type.as_ref().map(PgType::of_column))
            .collect();
        let mut binder = Binder::new(session, given);
        let plan = binder.query(query)?;
        let parameters = binder
            .parameters()
            .iter()
            .enumerate()
            .map(|(at, known)| match declared.get(at) {
                Some(Some(declared)) => *declared,
                _ => known.map_or(DataType::Text, rows::parameter_type),
            })
            .collect();
        Ok((plan, parameters))
    }

    pub(crate) fn describe(
        &self,
        query: &Query,
        catalog: &Arc<Catalog>,
        declared: &[Option<DataType>],
        facts: &SessionFacts,
    ) -> Result<(Vec<DataType>, Vec<OutputColumn>)> {
        let session = SystemSession::new(catalog, &self.db, facts);
        let (plan, parameters) = Self::bind(query, &session, declared)?;
        Ok((parameters, rows::output_columns(&plan)))
    }

    pub(crate) fn execute(
        &self,
        query: &Query,
        catalog: &Arc<Catalog>,
        declared: &[Option<DataType>],
        parameters: &[Value],
        facts: &SessionFacts,
    ) -> Result<RowStream> {
        let session = SystemSession::new(catalog, &self.db, facts);
        let (plan, types) = Self::bind(query, &session, declared)?;
        let run = Run::new(&session, rows::parameter_values(&types, parameters)?);
        let found = run.query(&plan, None)?;
        let columns = rows::output_columns(&plan);
        let rows = CatalogRows::new(&plan, found, &run);
        Ok(RowStream::of_catalog(columns, rows))
    }

    /// A catalog relation as a table in memory.
    pub(crate) fn provider(
        &self,
        schema: Option<&str>,
        name: &str,
        catalog: &Catalog,
        facts: &SessionFacts,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(relation) = find_relation(schema, name, &facts.search_path) else {
            return Ok(None);
        };
        let session = SystemSession::new(catalog, &self.db, facts);
        provider::provider(&relation, &session).map(Some)
    }
}

/// What a query reads.
struct Reads<'a> {
    catalog: &'a Catalog,
    facts: &'a SessionFacts,
    ctes: Vec<String>,
    /// Users' tables, and names that are nothing here.
    tables: usize,
    /// Catalog relations.
    relations: usize,
    /// `generate_series` in FROM.
    series: bool,
}

impl Reads<'_> {
    fn relation(&mut self, name: &ObjectName) {
        let parts: Vec<String> = name
            .0
            .iter()
            .filter_map(|part| part.as_ident().map(folded))
            .collect();
        let (schema, table) = match parts.as_slice() {
            [table] if self.ctes.contains(table) => return,
            [table] => (None, table),
            [schema, table] | [_, schema, table] => (Some(schema.as_str()), table),
            _ => return,
        };
        let users = match schema {
            Some(schema) => self.catalog.table_by_name(schema, table).is_some(),
            None => {
                relations::relation("pg_catalog", table).is_none()
                    && self
                        .facts
                        .search_path
                        .iter()
                        .any(|schema| self.catalog.table_by_name(schema, table).is_some())
            }
        };
        if !users && find_relation(schema, table, &self.facts.search_path).is_some() {
            self.relations += 1;
        } else {
            self.tables += 1;
        }
    }
}

impl Visitor for Reads<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let Some(with) = &query.with {
            self.ctes
                .extend(with.cte_tables.iter().map(|cte| folded(&cte.alias.name)));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table {
                name, args: None, ..
            } => self.relation(name),
            TableFactor::Table { name, .. } | TableFactor::Function { name, .. } => {
                let name = crate::analytics::last_part(name);
                self.series |= name.as_deref() == Some("generate_series");
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
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
