//! The views of the SQL standard that people and tools read.

use thermocline_engine::authority::Object;
use thermocline_engine::catalog::{Identity, Table};
use thermocline_engine::{CHECK_OPTION, SequenceDef, TypeDef, TypeKind, ViewDef};
use thermocline_query::types::domain::base_of;
use thermocline_query::types::ids;
use thermocline_values::types::DataType;

use super::{Filler, domains, generated, privileges, triggers};
use crate::ddl::{columns_of, is_operation};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::functions::default_shown;
use crate::pg_catalog::functions::{action_name, view_definition};
use crate::pg_catalog::pg_type::{PgType, format_type, type_row};
use crate::pg_catalog::relations::{RELATIONS, Relation};
use crate::pg_catalog::session::SystemSession;
use crate::temporary::is_temporary;

pub(super) fn rows(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    match relation.name {
        "information_schema_catalog_name" => {
            vec![Filler::new(relation, &["catalog_name"]).row([database(session)])]
        }
        "schemata" => schemata(relation, session),
        "tables" => tables(relation, session),
        "views" => views(relation, session),
        "columns" => columns(relation, session),
        "domains" => domains::domains(relation, session),
        "domain_constraints" => domains::constraints(relation, session),
        "column_column_usage" => generated::column_usage(relation, session),
        "column_domain_usage" => domains::columns(relation, session),
        "table_constraints" => table_constraints(relation, session),
        "key_column_usage" => key_columns(relation, session),
        "constraint_column_usage" => constraint_columns(relation, session),
        "referential_constraints" => referential_constraints(relation, session),
        "check_constraints" => check_constraints(relation, session),
        "sequences" => sequences(relation, session),
        "triggers" => triggers::of_standard(relation, session),
        "triggered_update_columns" => triggers::columns(relation, session),
        "table_privileges" => privileges::of_tables(relation, session, true),
        "role_table_grants" => privileges::of_tables(relation, session, false),
        "column_privileges" => privileges::of_columns(relation, session, true),
        "role_column_grants" => privileges::of_columns(relation, session, false),
        "usage_privileges" => privileges::of_usage(relation, session, true),
        "role_usage_grants" => privileges::of_usage(relation, session, false),
        _ => Vec::new(),
    }
}

pub(super) fn database(session: &SystemSession) -> Datum {
    Datum::text(&session.facts.database)
}

pub(super) fn yes_or_no(yes: bool) -> Datum {
    Datum::text(if yes { "YES" } else { "NO" })
}

fn schemata(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["catalog_name", "schema_name", "schema_owner"]);
    let names = session
        .catalog
        .schemas
        .iter()
        .map(|schema| schema.name.as_str())
        .chain(["pg_catalog", "information_schema"]);
    names
        .map(|name| {
            filler.row([
                database(session),
                Datum::text(name),
                match session.catalog.schema(name) {
                    Some(schema) => session.owner(&Object::Schema(schema.oid)).1,
                    None => session.owner(&Object::Database).1,
                },
            ])
        })
        .collect()
}

fn tables(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "table_catalog",
            "table_schema",
            "table_name",
            "table_type",
            "is_insertable_into",
            "is_typed",
        ],
    );
    let row = |schema: &str, name: &str, kind: &str, ours: bool| {
        filler.row([
            database(session),
            Datum::text(schema),
            Datum::text(name),
            Datum::text(kind),
            yes_or_no(ours),
            yes_or_no(false),
        ])
    };
    let ours = session
        .catalog
        .tables
        .values()
        .filter(|table| !session.is_others(&table.schema) && !table.is_materialized())
        .map(|table| {
            let kind = match is_temporary(&table.schema) {
                true => "LOCAL TEMPORARY",
                false => "BASE TABLE",
            };
            row(&table.schema, &table.name, kind, true)
        });
    let views = session.catalog.views.values();
    let views = views.filter(|view| !session.is_others(&view.schema));
    let views = views.map(|view| {
        let takes_changes = takes_changes(session, view);
        row(&view.schema, &view.name, "VIEW", takes_changes)
    });
    let system = RELATIONS.iter().map(|system| {
        let kind = if system.kind == "r" {
            "BASE TABLE"
        } else {
            "VIEW"
        };
        row(system.schema, system.name, kind, false)
    });
    ours.chain(views).chain(system).collect()
}

/// The text of a view is its owner's to read.
fn views(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "table_catalog",
            "table_schema",
            "table_name",
            "view_definition",
            "check_option",
            "is_updatable",
            "is_insertable_into",
            "is_trigger_updatable",
            "is_trigger_deletable",
            "is_trigger_insertable_into",
        ],
    );
    let views = session.catalog.views.values();
    views
        .filter(|view| !session.is_others(&view.schema))
        .map(|view| {
            let owns = session.facts.actor.owns(&Object::Table(view.oid));
            let takes_changes = takes_changes(session, view);
            filler.row([
                database(session),
                Datum::text(&view.schema),
                Datum::text(&view.name),
                match owns {
                    true => Datum::text(view_definition(session, view)),
                    false => Datum::Null,
                },
                Datum::text(match view.option(CHECK_OPTION) {
                    None => "NONE".to_owned(),
                    Some(option) => option.to_uppercase(),
                }),
                yes_or_no(takes_changes),
                yes_or_no(takes_changes),
                yes_or_no(false),
                yes_or_no(false),
                yes_or_no(false),
            ])
        })
        .collect()
}

/// Whether rows of a view can be changed as those of its table.
fn takes_changes(session: &SystemSession, view: &ViewDef) -> bool {
    let mut reads = view.reads.iter();
    view.obstacle.is_none() && reads.all(|read| session.catalog.table(read.oid).is_some())
}

struct Column<'a> {
    schema: &'a str,
    table: &'a str,
    name: &'a str,
    number: i64,
    default: Option<String>,
    generation: Option<String>,
    nullable: bool,
    data_type: PgType,
    identity: Option<Identity>,
    updatable: bool,
}

fn columns(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
            "ordinal_position",
            "column_default",
            "is_nullable",
            "data_type",
            "character_maximum_length",
            "character_octet_length",
            "numeric_precision",
            "numeric_precision_radix",
            "numeric_scale",
            "datetime_precision",
            "domain_catalog",
            "domain_schema",
            "domain_name",
            "udt_catalog",
            "udt_schema",
            "udt_name",
            "dtd_identifier",
            "is_self_referencing",
            "is_identity",
            "identity_generation",
            "identity_cycle",
            "is_generated",
            "generation_expression",
            "is_updatable",
        ],
    );
    let row = |column: &Column<'_>| {
        let of = PgType {
            oid: base_of(column.data_type.oid, -1).0,
            typmod: base_of(column.data_type.oid, column.data_type.typmod).1,
        };
        let [length, octets, precision, radix, scale, time_precision] = bounds(of);
        let domain = session.catalog.types.get(&column.data_type.oid);
        let domain = domain.filter(|def| matches!(def.kind, TypeKind::Domain(_)));
        let of_domain =
            |part: &dyn Fn(&TypeDef) -> Datum| domain.map_or(Datum::Null, |def| part(def));
        let kind = Declared::of(of, session);
        filler.row([
            database(session),
            Datum::text(column.schema),
            Datum::text(column.table),
            Datum::text(column.name),
            Datum::Int(column.number),
            column.default.as_ref().map_or(Datum::Null, Datum::text),
            yes_or_no(column.nullable),
            Datum::text(kind.data_type),
            length,
            octets,
            precision,
            radix,
            scale,
            time_precision,
            of_domain(&|_| database(session)),
            of_domain(&|def| Datum::text(&def.schema)),
            of_domain(&|def| Datum::text(&def.name)),
            database(session),
            Datum::text(kind.schema),
            Datum::text(kind.name),
            Datum::text(column.number.to_string()),
            yes_or_no(false),
            yes_or_no(column.identity.is_some()),
            match column.identity {
                Some(Identity::Always) => Datum::text("ALWAYS"),
                Some(Identity::ByDefault) => Datum::text("BY DEFAULT"),
                None => Datum::Null,
            },
            yes_or_no(false),
            Datum::text(match column.generation {
                Some(_) => "ALWAYS",
                None => "NEVER",
            }),
            column.generation.as_ref().map_or(Datum::Null, Datum::text),
            yes_or_no(column.updatable),
        ])
    };
    let mut rows = Vec::new();
    let tables = session.catalog.tables.values();
    let shown = tables.filter(|table| !session.is_others(&table.schema));
    for table in shown.filter(|table| !table.is_materialized()) {
        for (place, column) in table.live_columns() {
            let shown = default_shown(session, table, place);
            let shown = shown.filter(|_| column.identity.is_none());
            let shown = shown.map(|text| match is_operation(&text) {
                true => format!("({text})"),
                false => text,
            });
            let (default, generation) = match column.generated {
                true => (None, shown),
                false => (shown, None),
            };
            rows.push(row(&Column {
                schema: &table.schema,
                table: &table.name,
                name: &column.name,
                number: place as i64 + 1,
                default,
                generation,
                nullable: !column.not_null,
                data_type: PgType::of_column(column),
                identity: column.identity,
                updatable: true,
            }));
        }
    }
    let views = session.catalog.views.values();
    for view in views.filter(|view| !session.is_others(&view.schema)) {
        for (number, column) in (1..).zip(&view.columns) {
            rows.push(row(&Column {
                schema: &view.schema,
                table: &view.name,
                name: &column.name,
                number,
                default: None,
                generation: None,
                nullable: true,
                data_type: PgType {
                    oid: column.type_oid,
                    typmod: column.modifier,
                },
                identity: None,
                updatable: false,
            }));
        }
    }
    for system in RELATIONS.iter() {
        for (number, column) in (1..).zip(&system.columns) {
            rows.push(row(&Column {
                schema: system.schema,
                table: system.name,
                name: column.name,
                number,
                default: None,
                generation: None,
                nullable: true,
                data_type: column.data_type,
                identity: None,
                updatable: false,
            }));
        }
    }
    rows
}

/// What a type's modifier says: length, octets, precision, its radix, scale, digits of seconds.
pub(super) fn bounds(of: PgType) -> [Datum; 6] {
    let scalar = DataType::from_oid(of.oid, of.typmod);
    let length = match scalar {
        Some(DataType::Varchar(length) | DataType::Char(length)) if length > 0 => {
            Some(i64::from(length))
        }
        _ => None,
    };
    let octets = match scalar {
        Some(data_type) if data_type.is_text() => Some(length.map_or(1 << 30, |length| length * 4)),
        _ => None,
    };
    let (precision, radix, scale) = match scalar {
        Some(DataType::SmallInt) => (Some(16), Some(2), Some(0)),
        Some(DataType::Integer) => (Some(32), Some(2), Some(0)),
        Some(DataType::BigInt) => (Some(64), Some(2), Some(0)),
        Some(DataType::Real) => (Some(24), Some(2), None),
        Some(DataType::Double) => (Some(53), Some(2), None),
        Some(DataType::Numeric { precision, scale }) if precision > 0 => {
            (Some(i64::from(precision)), Some(10), Some(i64::from(scale)))
        }
        Some(DataType::Numeric { .. }) => (None, Some(10), None),
        _ => (None, None, None),
    };
    let time_precision = match scalar {
        Some(DataType::Date) => Some(0),
        Some(DataType::TimestampTo(digits) | DataType::TimestampTzTo(digits)) => {
            Some(i64::from(digits))
        }
        Some(DataType::Other {
            oid: ids::TIME | ids::TIMETZ,
            modifier,
        }) => Some(if modifier < 0 { 6 } else { i64::from(modifier) }),
        // A precision is the lower half of an interval's modifier; the upper are its fields.
        Some(DataType::Other {
            oid: ids::INTERVAL,
            modifier,
        }) => Some(match modifier & 0xffff {
            0xffff => 6,
            digits => i64::from(digits),
        }),
        Some(data_type) if data_type.is_timestamp() => Some(6),
        _ => None,
    };
    [length, octets, precision, radix, scale, time_precision].map(Datum::from)
}

/// A type as the standard has it.
pub(super) struct Declared {
    pub(super) data_type: String,
    pub(super) schema: String,
    pub(super) name: String,
}

impl Declared {
    pub(super) fn of(of: PgType, session: &SystemSession) -> Self {
        let array = of.element().is_some();
        let made = session.catalog.type_of(of.oid);
        let built_in = || type_row(of.oid).map_or("", |row| row.name).to_owned();
        Self {
            data_type: match made {
                _ if array => "ARRAY".to_owned(),
                Some(_) => "USER-DEFINED".to_owned(),
                None => format_type(of.oid, None),
            },
            schema: made.map_or("pg_catalog", |def| &def.schema).to_owned(),
            name: match made {
                Some(def) if array => format!("_{}", def.name),
                Some(def) => def.name.clone(),
                None => built_in(),
            },
        }
    }
}

fn table_constraints(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "table_catalog",
            "table_schema",
            "table_name",
            "constraint_type",
            "is_deferrable",
            "initially_deferred",
            "enforced",
            "nulls_distinct",
        ],
    );
    let mut rows = Vec::new();
    let tables = session.catalog.tables.values();
    for table in tables.filter(|table| !session.is_others(&table.schema)) {
        let row = |name: &str, kind: &str, (deferrable, deferred), nulls: Datum| {
            filler.row([
                database(session),
                Datum::text(&table.schema),
                Datum::text(name),
                database(session),
                Datum::text(&table.schema),
                Datum::text(&table.name),
                Datum::text(kind),
                yes_or_no(deferrable),
                yes_or_no(deferred),
                yes_or_no(true),
                nulls,
            ])
        };
        for index in table.indexes.iter().filter(|index| index.constraint) {
            let (kind, nulls) = match index.primary {
                true => ("PRIMARY KEY", Datum::Null),
                false => ("UNIQUE", yes_or_no(!index.nulls_equal)),
            };
            rows.push(row(&index.name, kind, (false, false), nulls));
        }
        let checks = table.checks.iter();
        rows.extend(checks.map(|check| row(&check.name, "CHECK", (false, false), Datum::Null)));
        let keys = table.foreign_keys.iter();
        rows.extend(keys.map(|key| {
            let when = (key.deferrable, key.deferred);
            row(&key.name, "FOREIGN KEY", when, Datum::Null)
        }));
    }
    rows
}

fn key_columns(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
            "ordinal_position",
            "position_in_unique_constraint",
        ],
    );
    let mut rows = Vec::new();
    let tables = session.catalog.tables.values();
    for table in tables.filter(|table| !session.is_others(&table.schema)) {
        let mut add = |name: &str, columns: &[usize], within: &dyn Fn(usize) -> Datum| {
            for (number, &column) in columns.iter().enumerate() {
                rows.push(filler.row([
                    database(session),
                    Datum::text(&table.schema),
                    Datum::text(name),
                    database(session),
                    Datum::text(&table.schema),
                    Datum::text(&table.name),
                    Datum::text(&table.columns[column].name),
                    Datum::Int(number as i64 + 1),
                    within(number),
                ]));
            }
        };
        for index in table.indexes.iter().filter(|index| index.constraint) {
            add(&index.name, &index.columns, &|_| Datum::Null);
        }
        for key in &table.foreign_keys {
            let parent = session.catalog.table(key.table);
            let index = parent.and_then(|parent| {
                let index = parent.unique_over(&key.referenced)?;
                Some(&parent.indexes[index].columns)
            });
            add(&key.name, &key.columns, &|number| {
                let place = index.and_then(|columns| {
                    let column = key.referenced[number];
                    columns.iter().position(|of| *of == column)
                });
                place.map_or(Datum::Null, |place| Datum::Int(place as i64 + 1))
            });
        }
    }
    rows
}

fn referential_constraints(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "unique_constraint_catalog",
            "unique_constraint_schema",
            "unique_constraint_name",
            "match_option",
            "update_rule",
            "delete_rule",
        ],
    );
    let mut rows = Vec::new();
    let tables = session.catalog.tables.values();
    for table in tables.filter(|table| !session.is_others(&table.schema)) {
        for key in &table.foreign_keys {
            let parent = session.catalog.table(key.table);
            let unique = parent.and_then(|parent| {
                let index = &parent.indexes[parent.unique_over(&key.referenced)?];
                index.constraint.then_some((&parent.schema, &index.name))
            });
            let text = |text: Option<&String>| text.map_or(Datum::Null, Datum::text);
            rows.push(filler.row([
                database(session),
                Datum::text(&table.schema),
                Datum::text(&key.name),
                unique.map_or(Datum::Null, |_| database(session)),
                text(unique.map(|unique| unique.0)),
                text(unique.map(|unique| unique.1)),
                Datum::text(if key.match_full { "FULL" } else { "NONE" }),
                Datum::text(action_name(key.on_update)),
                Datum::text(action_name(key.on_delete)),
            ]));
        }
    }
    rows
}

fn constraint_columns(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
        ],
    );
    let mut rows = Vec::new();
    let mut add = |table: &Table, column: usize, (schema, constraint): (&str, &str)| {
        rows.push(filler.row([
            database(session),
            Datum::text(&table.schema),
            Datum::text(&table.name),
            Datum::text(&table.columns[column].name),
            database(session),
            Datum::text(schema),
            Datum::text(constraint),
        ]));
    };
    for table in session.catalog.tables.values() {
        for index in table.indexes.iter().filter(|index| index.constraint) {
            for &column in &index.columns {
                add(table, column, (&table.schema, &index.name));
            }
        }
        for check in &table.checks {
            for column in columns_of(&check.expression, table).unwrap_or_default() {
                add(table, column, (&table.schema, &check.name));
            }
        }
        for key in &table.foreign_keys {
            let Some(parent) = session.catalog.table(key.table) else {
                continue;
            };
            for &column in &key.referenced {
                add(parent, column, (&table.schema, &key.name));
            }
        }
    }
    rows
}

fn check_constraints(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "check_clause",
        ],
    );
    let mut rows = Vec::new();
    for table in session.catalog.tables.values() {
        for check in &table.checks {
            rows.push(filler.row([
                database(session),
                Datum::text(&table.schema),
                Datum::text(&check.name),
                Datum::text(&check.expression),
            ]));
        }
    }
    rows
}

fn sequences(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "sequence_catalog",
            "sequence_schema",
            "sequence_name",
            "data_type",
            "numeric_precision",
            "numeric_precision_radix",
            "numeric_scale",
            "start_value",
            "minimum_value",
            "maximum_value",
            "increment",
            "cycle_option",
        ],
    );
    session
        .catalog
        .sequences
        .values()
        .filter(|sequence| !session.is_others(&sequence.schema))
        .filter(|sequence| !is_of_identity(session, sequence))
        .map(|sequence| {
            let [_, _, precision, radix, scale, _] = bounds(PgType {
                oid: sequence.data_type.oid(),
                typmod: -1,
            });
            filler.row([
                database(session),
                Datum::text(&sequence.schema),
                Datum::text(&sequence.name),
                Datum::text(sequence.data_type.base_name()),
                precision,
                radix,
                scale,
                Datum::text(sequence.start.to_string()),
                Datum::text(sequence.min.to_string()),
                Datum::text(sequence.max.to_string()),
                Datum::text(sequence.increment.to_string()),
                yes_or_no(sequence.cycle),
            ])
        })
        .collect()
}

/// Whether a sequence is a part of an identity column.
fn is_of_identity(session: &SystemSession, sequence: &SequenceDef) -> bool {
    let owner = sequence.owned_by.and_then(|(table, place)| {
        let table = session.catalog.table(table)?;
        table.columns.get(place)
    });
    owner.is_some_and(|column| column.identity.is_some())
}
