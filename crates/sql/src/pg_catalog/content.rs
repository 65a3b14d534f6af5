//! The rows of the catalog relations, made from the engine's catalog and
//! counters when a query asks. A relation that is not here is empty: it exists
//! with PostgreSQL's columns and nothing of its kind is in this database.

mod activity;
mod classes;
mod columns;
mod comments;
mod constraints;
mod dependencies;
mod domains;
mod functions;
mod generated;
mod information_schema;
mod partitions;
mod privileges;
mod server;
mod statistics;
mod triggers;
mod types;

pub(crate) use activity::blockers;
pub(crate) use comments::description;

use super::datum::Datum;
use super::relations::Relation;
use super::session::SystemSession;
use crate::error::Result;

/// Makes rows of a relation by column names. What a row does not name is 0,
/// false or NULL, by the column's type.
pub(super) struct Filler {
    places: Vec<Option<usize>>,
    template: Vec<Datum>,
}

impl Filler {
    /// For rows that give these columns.
    pub(super) fn new(relation: &Relation, columns: &[&str]) -> Self {
        let places: Vec<Option<usize>> = columns.iter().map(|name| relation.column(name)).collect();
        debug_assert!(
            places.iter().all(Option::is_some),
            "{}: {columns:?}",
            relation.name
        );
        let template = relation
            .columns
            .iter()
            .map(|column| match column.data_type.oid {
                16 => Datum::Bool(false),
                20 | 21 | 23 | 24 | 26 | 28 => Datum::Int(0),
                700 | 701 => Datum::Float(0.0),
                18 | 19 => Datum::text(""),
                _ => Datum::Null,
            })
            .collect();
        Self { places, template }
    }

    /// A row.
    pub(super) fn row<const N: usize>(&self, values: [Datum; N]) -> Vec<Datum> {
        debug_assert_eq!(N, self.places.len());
        let mut row = self.template.clone();
        for (place, value) in self.places.iter().zip(values) {
            if let Some(slot) = place.and_then(|place| row.get_mut(place)) {
                *slot = value;
            }
        }
        row
    }
}

/// The rows of a relation.
pub(super) fn rows(relation: &Relation, session: &SystemSession) -> Result<Vec<Vec<Datum>>> {
    if relation.schema == "information_schema" {
        return Ok(information_schema::rows(relation, session));
    }
    if relation.name == "thermocline_columns" {
        return crate::system_views::columns(&session.db);
    }
    if relation.name.starts_with("thermocline_") {
        return Ok(crate::system_views::rows(relation, session));
    }
    Ok(match relation.name {
        "pg_namespace" => classes::namespaces(relation, session),
        "pg_class" => classes::classes(relation, session),
        "pg_sequence" => classes::sequences(relation, session),
        "pg_sequences" => classes::sequence_view(relation, session),
        "pg_views" => classes::views(relation, session),
        "pg_matviews" => classes::materialized_views(relation, session),
        "pg_tables" => classes::tables(relation, session),
        "pg_indexes" => classes::indexes(relation, session),
        "pg_attribute" => columns::attributes(relation, session),
        "pg_attrdef" => columns::defaults(relation, session),
        "pg_depend" => dependencies::dependencies(relation, session),
        "pg_rewrite" => dependencies::rules(relation, session),
        "pg_description" => comments::descriptions(relation, session),
        "pg_shdescription" => comments::shared(relation, session),
        "pg_inherits" => partitions::inherits(relation, session),
        "pg_partitioned_table" => partitions::partitioned(relation, session),
        "pg_index" => constraints::indexes(relation, session),
        "pg_constraint" => constraints::constraints(relation, session),
        "pg_trigger" => triggers::triggers(relation, session),
        "pg_type" => types::types(relation, session),
        "pg_proc" => functions::functions(relation, session),
        "pg_range" => types::ranges(relation),
        "pg_enum" => types::labels(relation, session),
        "pg_am" => server::access_methods(relation),
        "pg_database" => server::databases(relation, session),
        "pg_roles" | "pg_authid" => server::roles(relation, session),
        "pg_db_role_setting" => server::session_settings(relation, session),
        "pg_default_acl" => server::default_privileges(relation, session),
        "pg_auth_members" => server::memberships(relation, session),
        "pg_user" | "pg_shadow" => server::users(relation, session),
        "pg_extension" => server::extensions(relation),
        "pg_available_extensions" => server::available_extensions(relation),
        "pg_language" => server::languages(relation),
        "pg_collation" => server::collations(relation),
        "pg_tablespace" => server::tablespaces(relation, session),
        "pg_settings" => server::settings(relation, session),
        "pg_stat_statements" => statistics::statements(relation, session),
        "pg_stat_statements_info" => statistics::statements_info(relation, session),
        "pg_stat_activity" => activity::activity(relation, session),
        "pg_cursors" => activity::cursors(relation, session),
        "pg_prepared_statements" => activity::statements(relation, session),
        "pg_locks" => activity::locks(relation, session),
        "pg_stat_database" => statistics::database(relation, session),
        "pg_stat_bgwriter" => statistics::background_writer(relation),
        "pg_stat_archiver" => statistics::archiver(relation),
        "pg_stat_database_conflicts" => statistics::conflicts(relation, session),
        "pg_stat_user_tables" | "pg_stat_all_tables" => statistics::tables(relation, session),
        "pg_stat_user_indexes"
        | "pg_stat_all_indexes"
        | "pg_statio_user_indexes"
        | "pg_statio_all_indexes" => statistics::indexes(relation, session),
        "pg_statio_user_tables" | "pg_statio_all_tables" => statistics::table_io(relation, session),
        "pg_timezone_names" => server::time_zones(relation, session),
        _ => Vec::new(),
    })
}
