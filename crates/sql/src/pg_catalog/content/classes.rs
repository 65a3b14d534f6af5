//! Schemas, relations, sequences.

use thermocline_engine::authority::Object;
use thermocline_engine::catalog::{AccessMethod, IndexKind};
use thermocline_engine::{Table, TypeKind};

use super::Filler;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::functions::{index_definition, view_definition};
use crate::pg_catalog::oids::{self, row_type_oid};
use crate::pg_catalog::relations::{RELATIONS, Relation};
use crate::pg_catalog::session::SystemSession;
use crate::pg_catalog::written_bound;
use crate::temporary::is_temporary;

/// Bytes of a page, in which `relpages` counts.
const PAGE_BYTES: u64 = 8192;

pub(super) fn namespaces(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["oid", "nspname", "nspowner", "nspacl"]);
    let row = |oid: u32, name: &str| {
        let object = Object::Schema(oid);
        filler.row([
            Datum::oid(oid),
            Datum::text(name),
            session.owner(&object).0,
            session.schema_acl(oid),
        ])
    };
    let mut rows = vec![
        row(oids::PG_CATALOG, "pg_catalog"),
        row(oids::INFORMATION_SCHEMA, "information_schema"),
    ];
    rows.extend(
        session
            .catalog
            .schemas
            .iter()
            .map(|schema| row(schema.oid, &schema.name)),
    );
    rows
}

/// `WITH (…)` as it is shown; NULL without options.
fn reloptions<'a>(options: impl Iterator<Item = (&'a String, &'a String)>) -> Datum {
    let texts = options.map(|(name, value)| Datum::text(format!("{name}={value}")));
    let texts: Vec<Datum> = texts.collect();
    match texts.is_empty() {
        true => Datum::Null,
        false => Datum::array(texts),
    }
}

pub(super) fn classes(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "oid",
            "relname",
            "relnamespace",
            "reltype",
            "relowner",
            "relam",
            "relpages",
            "reltuples",
            "relhasindex",
            "relpersistence",
            "relkind",
            "relnatts",
            "relchecks",
            "relispopulated",
            "relreplident",
            "relfilenode",
            "reloptions",
            "relacl",
            "relhasrules",
        ],
    );
    let schema = |name: &str| session.schema_oid(name).map_or(Datum::Int(0), Datum::oid);
    let persistence = |schema: &str| Datum::text(if is_temporary(schema) { "t" } else { "p" });
    let mut rows = Vec::new();
    for table in session.catalog.tables.values() {
        let report = session.table_report(table.oid).unwrap_or_default();
        let bytes = report.hot_bytes + report.block_bytes;
        let mut row = filler.row([
            Datum::oid(table.oid),
            Datum::text(&table.name),
            schema(&table.schema),
            Datum::oid(row_type_oid(table.oid)),
            session.owner(&Object::Table(table.oid)).0,
            Datum::oid(match table.access_method {
                _ if table.partitioned.is_some() => 0,
                AccessMethod::Memory => oids::HEAP,
                AccessMethod::Columns => oids::COLUMNS,
            }),
            Datum::Int(bytes.div_ceil(PAGE_BYTES) as i64),
            Datum::Float((report.hot + report.cold) as f64),
            Datum::Bool(!table.indexes.is_empty()),
            persistence(&table.schema),
            Datum::text(match table.partitioned {
                Some(_) => "p",
                None if table.is_materialized() => "m",
                None => "r",
            }),
            Datum::Int(table.columns.len() as i64),
            Datum::Int(table.checks.len() as i64),
            Datum::Bool(table.is_populated()),
            Datum::text("d"),
            Datum::oid(table.storage),
            reloptions(table.options.iter()),
            session.acl(&Object::Table(table.oid)),
            Datum::Bool(table.is_materialized()),
        ]);
        if let Some(place) = relation.column("relhastriggers") {
            row[place] = Datum::Bool(has_triggers(table));
        }
        if let Some(place) = relation.column("reltablespace") {
            row[place] = Datum::oid(table.tablespace);
        }
        note_partition(relation, session, table, &mut row);
        let links = written_bound::linked_indexes(&session.catalog, table);
        rows.push(row);
        for index in &table.indexes {
            let method = match index.kind {
                IndexKind::BTree => oids::BTREE,
                IndexKind::Hash => oids::HASH,
            };
            let mut row = filler.row([
                Datum::oid(index.oid),
                Datum::text(&index.name),
                schema(&table.schema),
                Datum::Int(0),
                session.owner(&Object::Table(table.oid)).0,
                Datum::oid(method),
                Datum::Int(0),
                Datum::Float((report.hot + report.cold) as f64),
                Datum::Bool(false),
                persistence(&table.schema),
                Datum::text(if table.partitioned.is_some() {
                    "I"
                } else {
                    "i"
                }),
                Datum::Int((table.key_of(index).len() + index.include.len()) as i64),
                Datum::Int(0),
                Datum::Bool(true),
                Datum::text("n"),
                Datum::oid(index.oid),
                Datum::Null,
                Datum::Null,
                Datum::Bool(false),
            ]);
            if let Some(place) = relation.column("relispartition") {
                row[place] = Datum::Bool(links.contains(&index.oid));
            }
            rows.push(row);
        }
    }
    for sequence in session.catalog.sequences.values() {
        rows.push(filler.row([
            Datum::oid(sequence.oid),
            Datum::text(&sequence.name),
            schema(&sequence.schema),
            Datum::Int(0),
            session.owner(&Object::Sequence(sequence.oid)).0,
            Datum::Int(0),
            Datum::Int(1),
            Datum::Float(1.0),
            Datum::Bool(false),
            persistence(&sequence.schema),
            Datum::text("S"),
            Datum::Int(3),
            Datum::Int(0),
            Datum::Bool(true),
            Datum::text("n"),
            Datum::oid(sequence.oid),
            Datum::Null,
            session.acl(&Object::Sequence(sequence.oid)),
            Datum::Bool(false),
        ]));
    }
    for view in session.catalog.views.values() {
        rows.push(filler.row([
            Datum::oid(view.oid),
            Datum::text(&view.name),
            schema(&view.schema),
            Datum::Int(0),
            session.owner(&Object::Table(view.oid)).0,
            Datum::Int(0),
            Datum::Int(0),
            Datum::Float(-1.0),
            Datum::Bool(false),
            persistence(&view.schema),
            Datum::text("v"),
            Datum::Int(view.columns.len() as i64),
            Datum::Int(0),
            Datum::Bool(true),
            Datum::text("n"),
            Datum::Int(0),
            reloptions(view.options.iter().map(|(name, value)| (name, value))),
            session.acl(&Object::Table(view.oid)),
            Datum::Bool(true),
        ]));
    }
    let types = session.catalog.types.values();
    for def in types.filter(|def| matches!(def.kind, TypeKind::Composite(_))) {
        rows.push(filler.row([
            Datum::oid(oids::of_composite(def)),
            Datum::text(&def.name),
            schema(&def.schema),
            Datum::oid(def.oid),
            session.owner(&Object::Type(def.oid)).0,
            Datum::Int(0),
            Datum::Int(0),
            Datum::Float(-1.0),
            Datum::Bool(false),
            persistence(&def.schema),
            Datum::text("c"),
            Datum::Int(def.attributes().count() as i64),
            Datum::Int(0),
            Datum::Bool(true),
            Datum::text("n"),
            Datum::Int(0),
            Datum::Null,
            Datum::Null,
            Datum::Bool(false),
        ]));
    }
    for system in RELATIONS.iter() {
        let table = system.kind == "r";
        rows.push(filler.row([
            Datum::oid(system.oid),
            Datum::text(system.name),
            schema(system.schema),
            Datum::Int(0),
            Datum::oid(oids::OWNER),
            Datum::oid(if table { oids::HEAP } else { 0 }),
            Datum::Int(0),
            Datum::Float(0.0),
            Datum::Bool(false),
            Datum::text("p"),
            Datum::text(system.kind),
            Datum::Int(system.columns.len() as i64),
            Datum::Int(0),
            Datum::Bool(true),
            Datum::text("n"),
            Datum::oid(if table { system.oid } else { 0 }),
            Datum::Null,
            Datum::Null,
            Datum::Bool(false),
        ]));
    }
    rows
}

/// Says of a table's row what it is to others: a partition, or what has some.
fn note_partition(relation: &Relation, session: &SystemSession, table: &Table, row: &mut [Datum]) {
    let mut note = |column: &str, value: Datum| {
        if let Some(place) = relation.column(column) {
            row[place] = value;
        }
    };
    if let Some(by) = &table.partitioned {
        note("relhassubclass", Datum::Bool(!by.partitions.is_empty()));
    }
    if table.partition_of.is_some() {
        note("relispartition", Datum::Bool(true));
        let bound = written_bound::of_table(&session.catalog, table).map(Datum::text);
        note("relpartbound", bound.unwrap_or_default());
    }
}

pub(super) fn sequences(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "seqrelid",
            "seqtypid",
            "seqstart",
            "seqincrement",
            "seqmax",
            "seqmin",
            "seqcache",
            "seqcycle",
        ],
    );
    session
        .catalog
        .sequences
        .values()
        .map(|sequence| {
            filler.row([
                Datum::oid(sequence.oid),
                Datum::oid(sequence.data_type.oid()),
                Datum::Int(sequence.start),
                Datum::Int(sequence.increment),
                Datum::Int(sequence.max),
                Datum::Int(sequence.min),
                Datum::Int(sequence.cache),
                Datum::Bool(sequence.cycle),
            ])
        })
        .collect()
}

pub(super) fn sequence_view(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "schemaname",
            "sequencename",
            "sequenceowner",
            "data_type",
            "start_value",
            "min_value",
            "max_value",
            "increment_by",
            "cycle",
            "cache_size",
            "last_value",
        ],
    );
    session
        .catalog
        .sequences
        .values()
        .filter(|sequence| !session.is_others(&sequence.schema))
        .map(|sequence| {
            filler.row([
                Datum::text(&sequence.schema),
                Datum::text(&sequence.name),
                session.owner(&Object::Sequence(sequence.oid)).1,
                Datum::oid(sequence.data_type.oid()),
                Datum::Int(sequence.start),
                Datum::Int(sequence.min),
                Datum::Int(sequence.max),
                Datum::Int(sequence.increment),
                Datum::Bool(sequence.cycle),
                Datum::Int(sequence.cache),
                match session.may_read_sequence(sequence.oid) {
                    true => session.sequence_last_value(sequence.oid).into(),
                    false => Datum::Null,
                },
            ])
        })
        .collect()
}

pub(super) fn tables(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "schemaname",
            "tablename",
            "tableowner",
            "hasindexes",
            "hastriggers",
            "tablespace",
        ],
    );
    let row = |schema: &str, name: &str, has: [bool; 2], object: &Object, tablespace: u32| {
        let tablespace = session.catalog.tablespaces.get(&tablespace);
        filler.row([
            Datum::text(schema),
            Datum::text(name),
            session.owner(object).1,
            Datum::Bool(has[0]),
            Datum::Bool(has[1]),
            tablespace.map_or(Datum::Null, |def| Datum::text(&def.name)),
        ])
    };
    let ours = session.catalog.tables.values();
    let ours = ours.filter(|table| !table.is_materialized()).map(|table| {
        let object = Object::Table(table.oid);
        row(
            &table.schema,
            &table.name,
            [!table.indexes.is_empty(), has_triggers(table)],
            &object,
            table.tablespace,
        )
    });
    let system = RELATIONS
        .iter()
        .filter(|system| system.kind == "r")
        .map(|system| {
            row(
                system.schema,
                system.name,
                [false, false],
                &Object::Table(system.oid),
                0,
            )
        });
    ours.chain(system).collect()
}

/// `pg_views`: those of users.
pub(super) fn views(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &["schemaname", "viewname", "viewowner", "definition"],
    );
    let views = session.catalog.views.values();
    views
        .map(|view| {
            filler.row([
                Datum::text(&view.schema),
                Datum::text(&view.name),
                session.owner(&Object::Table(view.oid)).1,
                Datum::text(view_definition(session, view)),
            ])
        })
        .collect()
}

/// `pg_matviews`
pub(super) fn materialized_views(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "schemaname",
            "matviewname",
            "matviewowner",
            "tablespace",
            "hasindexes",
            "ispopulated",
            "definition",
        ],
    );
    let tables = session.catalog.tables.values();
    let views = tables.filter_map(|table| Some((table, table.view()?)));
    let rows = views.map(|(table, view)| {
        let tablespace = session.catalog.tablespaces.get(&table.tablespace);
        filler.row([
            Datum::text(&table.schema),
            Datum::text(&table.name),
            session.owner(&Object::Table(table.oid)).1,
            tablespace.map_or(Datum::Null, |def| Datum::text(&def.name)),
            Datum::Bool(!table.indexes.is_empty()),
            Datum::Bool(table.is_populated()),
            Datum::text(view_definition(session, view)),
        ])
    });
    rows.collect()
}

pub(super) fn indexes(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &["schemaname", "tablename", "indexname", "indexdef"],
    );
    let mut rows = Vec::new();
    for table in session.catalog.tables.values() {
        for index in &table.indexes {
            let definition = index_definition(session, index.oid, 0);
            rows.push(filler.row([
                Datum::text(&table.schema),
                Datum::text(&table.name),
                Datum::text(&index.name),
                definition.map_or(Datum::Null, Datum::text),
            ]));
        }
    }
    rows
}

/// Whether a table has triggers. In PostgreSQL foreign keys are kept by some, and clients look for
/// them only there.
fn has_triggers(table: &thermocline_engine::Table) -> bool {
    !table.foreign_keys.is_empty() || table.is_referenced() || !table.triggers.is_empty()
}
