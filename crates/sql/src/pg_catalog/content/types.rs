//! Types: the built-in ones, those that users made and the row types of tables.

use thermocline_engine::TypeKind;
use thermocline_engine::authority::Object;

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
    let made = session.catalog.types.values().flat_map(|def| {
        let schema = || {
            session
                .schema_oid(&def.schema)
                .map_or(Datum::Int(0), Datum::oid)
        };
        let owner = Datum::oid(session.catalog.authority.owner(&Object::Type(def.oid)));
        let is_enum = matches!(def.kind, TypeKind::Enum(_));
        let itself = filler.row([
            Datum::oid(def.oid),
            Datum::text(&def.name),
            schema(),
            owner.clone(),
            Datum::Int(if is_enum { 4 } else { -1 }),
            Datum::Bool(is_enum),
            Datum::text(if is_enum { "e" } else { "c" }),
            Datum::text(if is_enum { "E" } else { "C" }),
            Datum::Bool(false),
            Datum::Bool(true),
            Datum::text(","),
            Datum::oid(if is_enum { 0 } else { oids::of_composite(def) }),
            Datum::Int(0),
            Datum::oid(def.array()),
            Datum::text(if is_enum { "i" } else { "d" }),
            Datum::text(if is_enum { "p" } else { "x" }),
            Datum::Int(-1),
            Datum::Int(0),
        ]);
        let arrays = filler.row([
            Datum::oid(def.array()),
            Datum::text(format!("_{}", def.name)),
            schema(),
            owner,
            Datum::Int(-1),
            Datum::Bool(false),
            Datum::text("b"),
            Datum::text("A"),
            Datum::Bool(false),
            Datum::Bool(true),
            Datum::text(","),
            Datum::Int(0),
            Datum::oid(def.oid),
            Datum::Int(0),
            Datum::text("i"),
            Datum::text("x"),
            Datum::Int(-1),
            Datum::Int(0),
        ]);
        [itself, arrays]
    });
    built_in.chain(rows).chain(made).collect()
}

/// The labels of enums. Their numbers are those of their places among all.
pub(super) fn labels(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &["oid", "enumtypid", "enumsortorder", "enumlabel"],
    );
    let all = session.catalog.types.values().flat_map(|def| {
        let labels = match &def.kind {
            TypeKind::Enum(labels) => labels.as_slice(),
            TypeKind::Composite(_) => &[],
        };
        labels
            .iter()
            .enumerate()
            .map(|(at, (_, label))| (def.oid, at, label))
    });
    let rows = all.enumerate().map(|(number, (oid, at, label))| {
        filler.row([
            Datum::oid(oids::LABELS | number as u32),
            Datum::oid(oid),
            Datum::Int(at as i64 + 1),
            Datum::text(label),
        ])
    });
    rows.collect()
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
