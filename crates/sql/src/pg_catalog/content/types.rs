//! Types: the built-in ones, those that users made and the row types of tables.

use thermocline_engine::TypeKind;
use thermocline_engine::authority::Object;
use thermocline_query::types;
use thermocline_query::types::domain::base;
use thermocline_query::types::user::Class;

use super::Filler;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::functions::shown;
use crate::pg_catalog::io_functions::{self, IoOfType};
use crate::pg_catalog::oids::{self, row_type_oid};
use crate::pg_catalog::pg_type::{TYPES, TypeRow, type_row};
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
            "typnotnull",
            "typbasetype",
            "typdefault",
            "typdefaultbin",
            "typinput",
            "typoutput",
            "typreceive",
            "typsend",
        ],
    );
    let built_in = TYPES.iter().map(|row| {
        filler.row(with_io(
            [
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
                Datum::Bool(false),
                Datum::Int(0),
                Datum::Null,
                Datum::Null,
            ],
            io_functions::of_type(row.oid),
        ))
    });
    let rows = session.catalog.tables.values().map(|table| {
        filler.row(with_io(
            [
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
                Datum::Bool(false),
                Datum::Int(0),
                Datum::Null,
                Datum::Null,
            ],
            io_functions::ROW,
        ))
    });
    let made = session.catalog.types.values().flat_map(|def| {
        let schema = || {
            session
                .schema_oid(&def.schema)
                .map_or(Datum::Int(0), Datum::oid)
        };
        let owner = Datum::oid(session.catalog.authority.owner(&Object::Type(def.oid)));
        let domain = match &def.kind {
            TypeKind::Domain(domain) => Some(domain),
            TypeKind::Enum(_) | TypeKind::Composite(_) => None,
        };
        let default = domain.and_then(|domain| domain.default.as_ref());
        let default = default.map_or(Datum::Null, |text| Datum::text(shown(session, text)));
        let form = Form::of(&def.kind, def.oid);
        let itself = filler.row(with_io(
            [
                Datum::oid(def.oid),
                Datum::text(&def.name),
                schema(),
                owner.clone(),
                Datum::Int(form.length),
                Datum::Bool(form.by_value),
                Datum::text(form.kind),
                Datum::text(form.category),
                Datum::Bool(false),
                Datum::Bool(true),
                Datum::text(","),
                Datum::oid(match def.kind {
                    TypeKind::Composite(_) => oids::of_composite(def),
                    TypeKind::Enum(_) | TypeKind::Domain(_) => 0,
                }),
                Datum::Int(0),
                Datum::oid(def.array()),
                Datum::text(form.alignment),
                Datum::text(form.storage),
                Datum::Int(domain.map_or(-1, |domain| domain.modifier.into())),
                Datum::oid(form.collation),
                Datum::Bool(domain.is_some_and(|domain| domain.not_null)),
                Datum::oid(domain.map_or(0, |domain| domain.below)),
                default.clone(),
                default,
            ],
            io_functions::of_users(def),
        ));
        let arrays = filler.row(with_io(
            [
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
                Datum::Bool(false),
                Datum::Int(0),
                Datum::Null,
                Datum::Null,
            ],
            io_functions::ARRAY,
        ));
        [itself, arrays]
    });
    built_in.chain(rows).chain(made).collect()
}

/// The columns of a type, and behind them the functions that read and write its values.
fn with_io(columns: [Datum; 22], io: IoOfType) -> [Datum; 26] {
    let mut columns = columns.into_iter().chain(io.map(Datum::oid));
    std::array::from_fn(|_| columns.next().unwrap_or(Datum::Null))
}

/// How values of a user's type lie in PostgreSQL.
pub(super) struct Form {
    pub(super) length: i64,
    pub(super) by_value: bool,
    kind: &'static str,
    category: &'static str,
    pub(super) alignment: &'static str,
    pub(super) storage: &'static str,
    pub(super) collation: u32,
}

impl Form {
    /// Of arrays of users' types, and of what was dropped.
    pub(super) const UNKNOWN: Self = Self {
        length: -1,
        by_value: false,
        kind: "b",
        category: "A",
        alignment: "i",
        storage: "x",
        collation: 0,
    };

    /// Of a type that nobody made.
    pub(super) fn built_in(row: &TypeRow) -> Self {
        Self {
            length: row.length.into(),
            by_value: row.by_value,
            kind: row.kind,
            category: row.category,
            alignment: row.alignment,
            storage: row.storage,
            collation: row.collation,
        }
    }

    pub(super) fn of(kind: &TypeKind, oid: u32) -> Self {
        const ENUM: Form = Form {
            length: 4,
            by_value: true,
            kind: "e",
            category: "E",
            alignment: "i",
            storage: "p",
            collation: 0,
        };
        const COMPOSITE: Form = Form {
            length: -1,
            by_value: false,
            kind: "c",
            category: "C",
            alignment: "d",
            storage: "x",
            collation: 0,
        };
        match kind {
            TypeKind::Enum(_) => ENUM,
            TypeKind::Composite(_) => COMPOSITE,
            TypeKind::Domain(_) => {
                let below = base(oid);
                let of_class = match Class::of(below) {
                    Some(Class::Enum) => ENUM,
                    _ => COMPOSITE,
                };
                let category = match types::category(below) {
                    b'A' => "A",
                    _ => of_class.category,
                };
                let found = type_row(below).map_or(
                    Self {
                        category,
                        ..of_class
                    },
                    Self::built_in,
                );
                Self { kind: "d", ..found }
            }
        }
    }
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
            TypeKind::Composite(_) | TypeKind::Domain(_) => &[],
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
