//! Which columns generated columns are computed by, as the standard's view shows it.

use super::Filler;
use super::information_schema::database;
use crate::ddl::columns_of;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::relations::Relation;
use crate::pg_catalog::session::SystemSession;

pub(super) fn column_usage(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
            "dependent_column",
        ],
    );
    let mut rows = Vec::new();
    let tables = session.catalog.tables.values();
    for table in tables.filter(|table| !session.is_others(&table.schema)) {
        for (_, dependent) in table.live_columns() {
            let Some(text) = dependent.generation() else {
                continue;
            };
            // What cannot be read is of no column.
            for column in columns_of(text, table).unwrap_or_default() {
                rows.push(filler.row([
                    database(session),
                    Datum::text(&table.schema),
                    Datum::text(&table.name),
                    Datum::text(&table.columns[column].name),
                    Datum::text(&dependent.name),
                ]));
            }
        }
    }
    rows
}
