//! The statistics views: statements, transactions, tuples. Counters that this
//! database does not keep are 0.

use thermocline_values::value::Value;

use super::Filler;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::oids;
use crate::pg_catalog::relations::Relation;
use crate::pg_catalog::session::SystemSession;

pub(super) fn time(us: i64) -> Datum {
    Datum::Scalar(Value::TimestampTz(us))
}

/// Statements by role; times are in milliseconds. Who may not see another's gets neither text nor
/// number.
pub(super) fn statements(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "userid",
            "dbid",
            "toplevel",
            "queryid",
            "query",
            "calls",
            "total_exec_time",
            "min_exec_time",
            "max_exec_time",
            "mean_exec_time",
            "stddev_exec_time",
            "rows",
            "shared_blks_hit",
            "shared_blks_read",
        ],
    );
    let Some(sessions) = &session.facts.sessions else {
        return Vec::new();
    };
    let count = |number: u64| Datum::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let milliseconds = |ns: f64| Datum::Float(ns / 1e6);
    let entries = sessions.merged_statements().entries();
    entries
        .iter()
        .map(|entry| {
            let counts = &entry.counts;
            let (query_id, text) = match session.facts.actor.may_read_statements(entry.user) {
                true => (Datum::Int(entry.query_id), Datum::text(&*entry.text)),
                false => (Datum::Null, Datum::text("<insufficient privilege>")),
            };
            filler.row([
                Datum::oid(entry.user),
                Datum::oid(oids::DATABASE),
                Datum::Bool(true),
                query_id,
                text,
                count(counts.calls),
                milliseconds(counts.total_ns as f64),
                milliseconds(counts.min_ns as f64),
                milliseconds(counts.max_ns as f64),
                milliseconds(counts.mean_ns()),
                milliseconds(counts.deviation_ns()),
                count(counts.rows),
                count(counts.hot),
                count(counts.cold),
            ])
        })
        .collect()
}

/// How often statements had to leave, and since when all is counted.
pub(super) fn statements_info(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["dealloc", "stats_reset"]);
    let sessions = session.facts.sessions.iter();
    sessions
        .map(|sessions| {
            let (left, since_us) = sessions.merged_statements().info();
            filler.row([Datum::Int(left as i64), time(since_us)])
        })
        .collect()
}

pub(super) fn database(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "datid",
            "datname",
            "numbackends",
            "xact_commit",
            "xact_rollback",
            "blks_read",
        ],
    );
    let (committed, rolled_back) = session.facts.transactions;
    vec![filler.row([
        Datum::oid(oids::DATABASE),
        Datum::text(&session.facts.database),
        Datum::Int(session.facts.activity().len() as i64),
        Datum::Int(committed as i64),
        Datum::Int(rolled_back as i64),
        Datum::Int(session.db.counters().misses as i64),
    ])]
}

pub(super) fn background_writer(relation: &Relation) -> Vec<Vec<Datum>> {
    vec![Filler::new(relation, &[]).row([])]
}

pub(super) fn archiver(relation: &Relation) -> Vec<Vec<Datum>> {
    vec![Filler::new(relation, &[]).row([])]
}

pub(super) fn conflicts(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["datid", "datname"]);
    vec![filler.row([
        Datum::oid(oids::DATABASE),
        Datum::text(&session.facts.database),
    ])]
}

pub(super) fn tables(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["relid", "schemaname", "relname", "n_live_tup"]);
    session
        .table_reports()
        .iter()
        .map(|report| {
            filler.row([
                Datum::oid(report.oid),
                Datum::text(&report.schema),
                Datum::text(&report.name),
                Datum::Int((report.hot + report.cold) as i64),
            ])
        })
        .collect()
}

pub(super) fn indexes(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "relid",
            "indexrelid",
            "schemaname",
            "relname",
            "indexrelname",
        ],
    );
    let mut rows = Vec::new();
    for table in session.catalog.tables.values() {
        for index in &table.indexes {
            rows.push(filler.row([
                Datum::oid(table.oid),
                Datum::oid(index.oid),
                Datum::text(&table.schema),
                Datum::text(&table.name),
                Datum::text(&index.name),
            ]));
        }
    }
    rows
}

pub(super) fn table_io(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["relid", "schemaname", "relname"]);
    session
        .catalog
        .tables
        .values()
        .map(|table| {
            filler.row([
                Datum::oid(table.oid),
                Datum::text(&table.schema),
                Datum::text(&table.name),
            ])
        })
        .collect()
}
