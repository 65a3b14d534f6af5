//! Domains as the standard's views show them.

use thermocline_engine::user_type::DomainDef;
use thermocline_engine::{TypeDef, TypeKind};
use thermocline_query::types::domain::base_of;

use super::Filler;
use super::information_schema::{Declared, bounds, database, yes_or_no};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::pg_type::PgType;
use crate::pg_catalog::relations::Relation;
use crate::pg_catalog::session::SystemSession;

fn all(session: &SystemSession) -> impl Iterator<Item = (&TypeDef, &DomainDef)> {
    let types = session.catalog.types.values();
    types.filter_map(|def| match &def.kind {
        TypeKind::Domain(domain) => Some((&**def, domain)),
        TypeKind::Enum(_) | TypeKind::Composite(_) => None,
    })
}

pub(super) fn domains(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "domain_catalog",
            "domain_schema",
            "domain_name",
            "data_type",
            "character_maximum_length",
            "character_octet_length",
            "numeric_precision",
            "numeric_precision_radix",
            "numeric_scale",
            "datetime_precision",
            "domain_default",
            "udt_catalog",
            "udt_schema",
            "udt_name",
            "dtd_identifier",
        ],
    );
    let rows = all(session).map(|(def, domain)| {
        let (oid, typmod) = base_of(domain.below, domain.modifier);
        let of = PgType { oid, typmod };
        let [length, octets, precision, radix, scale, digits] = bounds(of);
        let declared = Declared::of(of, session);
        filler.row([
            database(session),
            Datum::text(&def.schema),
            Datum::text(&def.name),
            Datum::text(declared.data_type),
            length,
            octets,
            precision,
            radix,
            scale,
            digits,
            domain.default.as_ref().map_or(Datum::Null, Datum::text),
            database(session),
            Datum::text(declared.schema),
            Datum::text(declared.name),
            Datum::text("1"),
        ])
    });
    rows.collect()
}

pub(super) fn constraints(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "domain_catalog",
            "domain_schema",
            "domain_name",
            "is_deferrable",
            "initially_deferred",
        ],
    );
    let rows = all(session).flat_map(|(def, domain)| {
        let filler = &filler;
        domain.checks.iter().map(move |check| {
            filler.row([
                database(session),
                Datum::text(&def.schema),
                Datum::text(&check.name),
                database(session),
                Datum::text(&def.schema),
                Datum::text(&def.name),
                yes_or_no(false),
                yes_or_no(false),
            ])
        })
    });
    rows.collect()
}

pub(super) fn columns(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "domain_catalog",
            "domain_schema",
            "domain_name",
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
        ],
    );
    let tables = session.catalog.tables.values();
    let tables = tables.filter(|table| !session.is_others(&table.schema));
    let rows = tables.flat_map(|table| {
        let filler = &filler;
        table.live_columns().filter_map(move |(_, column)| {
            let def = session.catalog.types.get(&column.domain?)?;
            Some(filler.row([
                database(session),
                Datum::text(&def.schema),
                Datum::text(&def.name),
                database(session),
                Datum::text(&table.schema),
                Datum::text(&table.name),
                Datum::text(&column.name),
            ]))
        })
    });
    rows.collect()
}
