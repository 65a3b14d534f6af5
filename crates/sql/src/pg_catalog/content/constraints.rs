//! Indexes and constraints.

use thermocline_engine::catalog::{IndexDef, KeyOrder, Table};
use thermocline_engine::{ReferenceAction, TypeKind};

use super::Filler;
use super::partitions::inherited;
use crate::ddl::columns_of;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::functions::{index_expressions, index_predicate};
use crate::pg_catalog::oids::{check_oid, domain_check_oid, index_constraint_oid};
use crate::pg_catalog::pg_type::type_row;
use crate::pg_catalog::relations::Relation;
use crate::pg_catalog::session::SystemSession;

/// Column numbers, from 1.
fn numbers(columns: &[usize]) -> Datum {
    Datum::array(columns.iter().map(|&column| Datum::Int(column as i64 + 1)))
}

/// The columns that a check reads; NULL where it reads none, as in PostgreSQL.
fn numbers_of_check(expression: &str, table: &Table) -> Datum {
    match columns_of(expression, table) {
        Ok(columns) if !columns.is_empty() => numbers(&columns),
        _ => Datum::Null,
    }
}

fn zeros(count: usize) -> Datum {
    Datum::array(std::iter::repeat_n(Datum::Int(0), count))
}

/// The order of the parts of an index's key: 1 for DESC, and 2 for NULLS FIRST.
fn options(index: &IndexDef, width: usize) -> Datum {
    let order = index.order.iter().copied();
    let order = order
        .chain(std::iter::repeat(KeyOrder::DEFAULT))
        .take(width);
    Datum::array(order.map(
        |KeyOrder {
             descending,
             nulls_first,
         }| { Datum::Int(i64::from(descending) | i64::from(nulls_first) << 1) },
    ))
}

/// The numbers of an index's columns: 0 for an expression.
fn index_numbers(table: &Table, index: &IndexDef) -> Datum {
    let all = table.key_of(index).iter().chain(&index.include);
    Datum::array(all.map(|&column| match table.columns[column].hidden {
        Some(_) => Datum::Int(0),
        None => Datum::Int(column as i64 + 1),
    }))
}

fn collations(table: &Table, index: &IndexDef) -> Datum {
    Datum::array(table.key_of(index).iter().map(|&column| {
        let oid = table.columns[column].data_type.oid();
        Datum::oid(type_row(oid).map_or(0, |row| row.collation))
    }))
}

pub(super) fn indexes(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "indexrelid",
            "indrelid",
            "indnatts",
            "indnkeyatts",
            "indisunique",
            "indisprimary",
            "indimmediate",
            "indisvalid",
            "indisready",
            "indislive",
            "indkey",
            "indcollation",
            "indclass",
            "indoption",
            "indexprs",
            "indpred",
            "indnullsnotdistinct",
        ],
    );
    let mut rows = Vec::new();
    for table in session.catalog.tables.values() {
        for index in &table.indexes {
            let width = table.key_of(index).len();
            let shown = |text: Option<String>| text.map_or(Datum::Null, Datum::text);
            rows.push(filler.row([
                Datum::oid(index.oid),
                Datum::oid(table.oid),
                Datum::Int((width + index.include.len()) as i64),
                Datum::Int(width as i64),
                Datum::Bool(index.unique),
                Datum::Bool(index.primary),
                Datum::Bool(true),
                Datum::Bool(true),
                Datum::Bool(true),
                Datum::Bool(true),
                index_numbers(table, index),
                collations(table, index),
                zeros(width),
                options(index, width),
                shown(index_expressions(session, table, index)),
                shown(index_predicate(session, table, index)),
                Datum::Bool(index.nulls_equal),
            ]));
        }
    }
    rows
}

pub(super) fn constraints(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "oid",
            "conname",
            "connamespace",
            "contype",
            "convalidated",
            "conrelid",
            "conindid",
            "confupdtype",
            "confdeltype",
            "confmatchtype",
            "conislocal",
            "connoinherit",
            "conkey",
            "conbin",
            "contypid",
        ],
    );
    let mut rows = foreign_keys(relation, session);
    let foreign = rows.len();
    for table in session.catalog.tables.values() {
        let schema = session.schema_oid(&table.schema).unwrap_or(0);
        for index in table.indexes.iter().filter(|index| index.constraint) {
            rows.push(filler.row([
                Datum::oid(index_constraint_oid(index)),
                Datum::text(&index.name),
                Datum::oid(schema),
                Datum::text(if index.primary { "p" } else { "u" }),
                Datum::Bool(true),
                Datum::oid(table.oid),
                Datum::oid(index.oid),
                Datum::text(" "),
                Datum::text(" "),
                Datum::text(" "),
                Datum::Bool(true),
                Datum::Bool(true),
                numbers(&index.columns),
                Datum::Null,
                Datum::Int(0),
            ]));
        }
        for (number, check) in table.checks.iter().enumerate() {
            rows.push(filler.row([
                Datum::oid(check_oid(table, number)),
                Datum::text(&check.name),
                Datum::oid(schema),
                Datum::text("c"),
                Datum::Bool(check.validated),
                Datum::oid(table.oid),
                Datum::Int(0),
                Datum::text(" "),
                Datum::text(" "),
                Datum::text(" "),
                Datum::Bool(true),
                Datum::Bool(false),
                numbers_of_check(&check.expression, table),
                Datum::text(&check.expression),
                Datum::Int(0),
            ]));
        }
    }
    for def in session.catalog.types.values() {
        let TypeKind::Domain(domain) = &def.kind else {
            continue;
        };
        let schema = session.schema_oid(&def.schema).unwrap_or(0);
        for (number, check) in domain.checks.iter().enumerate() {
            rows.push(filler.row([
                Datum::oid(domain_check_oid(def.oid, number)),
                Datum::text(&check.name),
                Datum::oid(schema),
                Datum::text("c"),
                Datum::Bool(check.valid),
                Datum::Int(0),
                Datum::Int(0),
                Datum::text(" "),
                Datum::text(" "),
                Datum::text(" "),
                Datum::Bool(true),
                Datum::Bool(false),
                Datum::Null,
                Datum::text(&check.expression),
                Datum::oid(def.oid),
            ]));
        }
    }
    note_inherited(relation, session, (&mut rows, foreign));
    rows
}

/// Says of constraints of partitions that their tables have them, too. The first rows are those of
/// foreign keys.
fn note_inherited(
    relation: &Relation,
    session: &SystemSession,
    (rows, foreign): (&mut [Vec<Datum>], usize),
) {
    let place = |column: &str| relation.column(column).unwrap_or(0);
    let (of, oid) = (place("conrelid"), place("oid"));
    let (local, count, alone, parent) = (
        place("conislocal"),
        place("coninhcount"),
        place("connoinherit"),
        place("conparentid"),
    );
    for (at, row) in rows.iter_mut().enumerate() {
        let table = row[of].as_oid().and_then(|oid| session.catalog.table(oid));
        let Some(table) = table else { continue };
        if at < foreign && (table.partitioned.is_some() || table.partition_of.is_some()) {
            row[alone] = Datum::Bool(false);
        }
        let own = row[oid].as_oid().unwrap_or(0);
        if let Some(above) = inherited(&session.catalog, table, own) {
            row[local] = Datum::Bool(false);
            row[count] = Datum::Int(1);
            row[alone] = Datum::Bool(false);
            row[parent] = Datum::oid(above);
        }
    }
}

fn foreign_keys(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "oid",
            "conname",
            "connamespace",
            "contype",
            "condeferrable",
            "condeferred",
            "convalidated",
            "conrelid",
            "conindid",
            "confrelid",
            "confupdtype",
            "confdeltype",
            "confmatchtype",
            "conislocal",
            "connoinherit",
            "conkey",
            "confkey",
            "confdelsetcols",
        ],
    );
    let mut rows = Vec::new();
    for table in session.catalog.tables.values() {
        let schema = session.schema_oid(&table.schema).unwrap_or(0);
        for key in &table.foreign_keys {
            let parent = session.catalog.table(key.table);
            let index = parent.and_then(|parent| {
                let index = parent.unique_over(&key.referenced)?;
                Some(parent.indexes[index].oid)
            });
            let set = (!key.set_columns.is_empty()).then(|| numbers(&key.set_columns));
            rows.push(filler.row([
                Datum::oid(key.oid),
                Datum::text(&key.name),
                Datum::oid(schema),
                Datum::text("f"),
                Datum::Bool(key.deferrable),
                Datum::Bool(key.deferred),
                Datum::Bool(key.validated),
                Datum::oid(table.oid),
                Datum::oid(index.unwrap_or(0)),
                Datum::oid(key.table),
                Datum::text(letter(key.on_update)),
                Datum::text(letter(key.on_delete)),
                Datum::text(if key.match_full { "f" } else { "s" }),
                Datum::Bool(true),
                Datum::Bool(true),
                numbers(&key.columns),
                numbers(&key.referenced),
                set.unwrap_or_default(),
            ]));
        }
    }
    rows
}

/// PostgreSQL's letters for actions.
const fn letter(action: ReferenceAction) -> &'static str {
    match action {
        ReferenceAction::NoAction => "a",
        ReferenceAction::Restrict => "r",
        ReferenceAction::Cascade => "c",
        ReferenceAction::SetNull => "n",
        ReferenceAction::SetDefault => "d",
    }
}
