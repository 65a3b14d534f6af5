//! PostgreSQL's system catalogs: `pg_catalog`, `information_schema` and our own
//! views, made from the engine's catalog when a query asks.
//!
//! A query is analysed by `thermocline_query`, once for all its runs, and run by
//! `thermocline_analytical` over the relations in memory. Nothing here writes.

mod content;
mod convert;
mod datum;
mod ending;
mod environment;
mod functions;
mod io_functions;
mod oids;
mod pg_type;
mod relations;
mod session;
pub(crate) mod written_bound;

use std::sync::Arc;

use thermocline_query::analyze::Stored;
use thermocline_query::datum::Datum as Typed;
use thermocline_query::error::QueryError;
use thermocline_query::tree::Column;

pub(crate) use datum::Datum;
#[cfg(feature = "analytics")]
pub(crate) use ending::Ending;
#[cfg(feature = "analytics")]
pub(crate) use environment::Room;
pub(crate) use environment::SystemEnvironment;
pub(crate) use functions::{is_answered, quote_ident};
pub(crate) use oids::{DEFAULT_TABLESPACE, row_type_oid};
pub(crate) use relations::Relation;
pub(crate) use session::SystemSession;

use relations::relation_by_oid;

/// Whether there is a relation of this name; without a schema in any that is searched by itself.
pub(crate) fn is_relation(schema: Option<&str>, name: &str) -> bool {
    match schema {
        Some(schema) => relations::relation(schema, name).is_some(),
        None => ["pg_catalog", "information_schema"]
            .iter()
            .any(|schema| relations::relation(schema, name).is_some()),
    }
}

/// A relation as the analyzer knows it, by name.
pub(crate) fn stored(schema: Option<&str>, name: &str, search_path: &[String]) -> Option<Stored> {
    let relation = find_relation(schema, name, search_path)?;
    let columns = relation.columns.iter().enumerate();
    let columns = columns.map(|(at, column)| Column {
        name: Arc::from(column.name),
        oid: column.data_type.oid,
        modifier: column.data_type.typmod,
        origin: i16::try_from(at + 1)
            .ok()
            .map(|number| (relation.oid, number)),
    });
    Some(Stored {
        oid: relation.oid,
        schema: Arc::from(relation.schema),
        columns: columns.collect(),
        primary_key: Vec::new(),
        row_type: 0,
        view: None,
        reader: None,
        is_partitioned: false,
    })
}

/// The rows of the relation of this number, if it is one of the system's.
pub(crate) fn rows(
    oid: u32,
    environment: &SystemEnvironment,
) -> Option<Result<Vec<Vec<Typed>>, QueryError>> {
    relation_by_oid(oid).map(|relation| content(relation, environment))
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
