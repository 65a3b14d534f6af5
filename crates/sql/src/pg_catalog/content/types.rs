//! Types: the built-in ones and the row types of tables.

use super::Filler;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::oids::{self, row_type_oid};
use crate::pg_catalog::pg_type::TYPES;
use crate::pg_catalog::relations::Relation;
use crate::pg_catalog::session::SystemSession;

pub(super) fn types(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "oid",
            "typname",
            "typnamespace",
            "typowner",
            "typlen",
            "typbyval",
            "typtype",
            "typcategory",
            "typispreferred",
            "typisdefined",
            "typdelim",
            "typrelid",
            "typelem",
            "typarray",
            "typalign",
            "typstorage",
            "typtypmod",
            "typcollation",
        ],
    );
    let built_in = TYPES.iter().map(|row| {
        filler.row([
            Datum::oid(row.oid),
            Datum::text(row.name),
            Datum::oid(oids::PG_CATALOG),
            Datum::oid(oids::OWNER),
            Datum::Int(i64::from(row.length)),
            Datum::Bool(row.by_value),
            Datum::text(row.kind),
            Datum::text(row.category),
            Datum::Bool(row.preferred),
            Datum::Bool(true),
            Datum::text(row.delimiter),
            Datum::Int(0),
            Datum::oid(row.element),
            Datum::oid(row.array),
            Datum::text(row.alignment),
            Datum::text(row.storage),
            Datum::Int(-1),
            Datum::oid(row.collation),
        ])
    });
    let rows = session.catalog.tables.values().map(|table| {
        filler.row([
            Datum::oid(row_type_oid(table.oid)),
            Datum::text(&table.name),
            session
                .schema_oid(&table.schema)
                .map_or(Datum::Int(0), Datum::oid),
            Datum::oid(oids::OWNER),
            Datum::Int(-1),
            Datum::Bool(false),
            Datum::text("c"),
            Datum::text("C"),
            Datum::Bool(false),
            Datum::Bool(true),
            Datum::text(","),
            Datum::oid(table.oid),
            Datum::Int(0),
            Datum::Int(0),
            Datum::text("d"),
            Datum::text("x"),
            Datum::Int(-1),
            Datum::Int(0),
        ])
    });
    built_in.chain(rows).collect()
}

pub(super) fn ranges(relation: &Relation) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["rngtypid", "rngsubtype"]);
    // int4range, numrange, tsrange, tstzrange, daterange, int8range.
    [
        (3904, 23),
        (3906, 1700),
        (3908, 1114),
        (3910, 1184),
        (3912, 1082),
        (3926, 20),
    ]
    .into_iter()
    .map(|(range, of)| filler.row([Datum::oid(range), Datum::oid(of)]))
    .collect()
}
