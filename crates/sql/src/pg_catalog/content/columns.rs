//! Columns and their defaults.

use thermocline_engine::catalog::{Identity, IndexKind, Residence};
use thermocline_engine::{ColumnDef, TypeKind};

use thermocline_query::types::domain::base;
use thermocline_query::types::ids;

use super::Filler;
use super::types::Form;
use crate::ddl::index_column_names;
use crate::parse::residence::RESIDENCE;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::functions::default_shown;
use crate::pg_catalog::oids::{default_oid, of_composite};
use crate::pg_catalog::pg_type::{PgType, type_row};
use crate::pg_catalog::relations::{RELATIONS, Relation};
use crate::pg_catalog::session::SystemSession;

struct Attribute<'a> {
    relation: u32,
    name: &'a str,
    number: i64,
    data_type: PgType,
    not_null: bool,
    has_default: bool,
    identity: &'static str,
    generated: bool,
    dropped: bool,
    residence: Residence,
}

/// Dimensions of the type, as far as a column declares them.
fn dimensions(data_type: PgType) -> i64 {
    i64::from(data_type.element().is_some() && !matches!(data_type.oid, 22 | 30))
}

pub(super) fn attributes(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "attrelid",
            "attname",
            "atttypid",
            "attstattarget",
            "attlen",
            "attnum",
            "attndims",
            "attcacheoff",
            "atttypmod",
            "attbyval",
            "attalign",
            "attstorage",
            "attcompression",
            "attnotnull",
            "atthasdef",
            "attidentity",
            "attgenerated",
            "attisdropped",
            "attislocal",
            "attinhcount",
            "attcollation",
            "attacl",
            "attoptions",
        ],
    );
    let is_partition = |oid: u32| {
        let table = session.catalog.table(oid);
        table.is_some_and(|table| table.partition_of.is_some())
    };
    let row = |attribute: &Attribute<'_>| {
        let known = type_row(base(attribute.data_type.oid));
        let form = match session.catalog.types.get(&attribute.data_type.oid) {
            Some(def) => Form::of(&def.kind, def.oid),
            None => known.map_or(Form::UNKNOWN, Form::built_in),
        };
        filler.row([
            Datum::oid(attribute.relation),
            Datum::text(attribute.name),
            Datum::oid(match attribute.dropped {
                true => 0,
                false => attribute.data_type.oid,
            }),
            Datum::Int(-1),
            Datum::Int(form.length),
            Datum::Int(attribute.number),
            Datum::Int(dimensions(attribute.data_type)),
            Datum::Int(-1),
            Datum::Int(i64::from(attribute.data_type.typmod)),
            Datum::Bool(form.by_value),
            Datum::text(form.alignment),
            Datum::text(form.storage),
            Datum::text(""),
            Datum::Bool(attribute.not_null),
            Datum::Bool(attribute.has_default),
            Datum::text(attribute.identity),
            Datum::text(if attribute.generated { "s" } else { "" }),
            Datum::Bool(attribute.dropped),
            Datum::Bool(!is_partition(attribute.relation)),
            Datum::Int(i64::from(is_partition(attribute.relation))),
            Datum::oid(form.collation),
            usize::try_from(attribute.number - 1).map_or(Datum::Null, |column| {
                session.column_acl(attribute.relation, column)
            }),
            match attribute.residence {
                Residence::ByUse => Datum::Null,
                said => Datum::array([Datum::text(format!("{RESIDENCE}={}", said.name()))]),
            },
        ])
    };
    let mut rows = Vec::new();
    for table in session.catalog.tables.values() {
        for (number, column) in (1..).zip(&table.columns) {
            rows.push(row(&Attribute {
                relation: table.oid,
                name: &column.name,
                number,
                data_type: PgType::of_column(column),
                not_null: column.not_null,
                has_default: has_default(column),
                identity: match column.identity {
                    Some(Identity::Always) => "a",
                    Some(Identity::ByDefault) => "d",
                    None => "",
                },
                generated: column.generated && column.is_seen(),
                dropped: !column.is_seen(),
                residence: column.residence,
            }));
        }
        for index in &table.indexes {
            let places = table.key_of(index).iter().chain(&index.include);
            let places: Vec<usize> = places.copied().collect();
            let names = index_column_names(table, &places);
            for (number, (&column, name)) in (1..).zip(places.iter().zip(&names)) {
                let column = &table.columns[column];
                rows.push(row(&Attribute {
                    relation: index.oid,
                    name,
                    number,
                    data_type: match index.kind {
                        IndexKind::BTree => PgType::of_column(column),
                        // As there, where the codes of keys are kept.
                        IndexKind::Hash => PgType::of(ids::INT4),
                    },
                    not_null: false,
                    has_default: false,
                    identity: "",
                    generated: false,
                    dropped: false,
                    residence: Residence::ByUse,
                }));
            }
        }
    }
    for def in session.catalog.types.values() {
        let TypeKind::Composite(attributes) = &def.kind else {
            continue;
        };
        for (number, attribute) in (1..).zip(attributes) {
            rows.push(row(&Attribute {
                relation: of_composite(def),
                name: &attribute.name,
                number,
                data_type: PgType {
                    oid: attribute.type_oid,
                    typmod: attribute.modifier,
                },
                not_null: false,
                has_default: false,
                identity: "",
                generated: false,
                dropped: attribute.dropped,
                residence: Residence::ByUse,
            }));
        }
    }
    for view in session.catalog.views.values() {
        for (number, column) in (1..).zip(&view.columns) {
            rows.push(row(&Attribute {
                relation: view.oid,
                name: &column.name,
                number,
                data_type: PgType {
                    oid: column.type_oid,
                    typmod: column.modifier,
                },
                not_null: false,
                has_default: false,
                identity: "",
                generated: false,
                dropped: false,
                residence: Residence::ByUse,
            }));
        }
    }
    for sequence in session.catalog.sequences.values() {
        let columns = [
            ("last_value", PgType::INT8),
            ("log_cnt", PgType::INT8),
            ("is_called", PgType::BOOL),
        ];
        for (number, (name, data_type)) in (1..).zip(columns) {
            rows.push(row(&Attribute {
                relation: sequence.oid,
                name,
                number,
                data_type,
                not_null: true,
                has_default: false,
                identity: "",
                generated: false,
                dropped: false,
                residence: Residence::ByUse,
            }));
        }
    }
    for system in RELATIONS.iter() {
        for (number, column) in (1..).zip(&system.columns) {
            rows.push(row(&Attribute {
                relation: system.oid,
                name: column.name,
                number,
                data_type: column.data_type,
                not_null: false,
                has_default: false,
                identity: "",
                generated: false,
                dropped: false,
                residence: Residence::ByUse,
            }));
        }
    }
    rows
}

pub(super) fn defaults(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["oid", "adrelid", "adnum", "adbin"]);
    let mut rows = Vec::new();
    for table in session.catalog.tables.values() {
        for (at, column) in table.columns.iter().enumerate() {
            if has_default(column) {
                rows.push(filler.row([
                    Datum::oid(default_oid(table, at)),
                    Datum::oid(table.oid),
                    Datum::Int(at as i64 + 1),
                    default_shown(session, table, at).map_or(Datum::Null, Datum::text),
                ]));
            }
        }
    }
    rows
}

/// Whether a column shows that it has a default.
fn has_default(column: &ColumnDef) -> bool {
    column.is_seen() && column.default.is_some() && column.identity.is_none()
}
