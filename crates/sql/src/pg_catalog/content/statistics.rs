//! The statistics views: sessions, transactions, tuples. Counters that this
//! database does not keep are 0.

use thermocline_storage::value::Value;

use super::Filler;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::oids;
use crate::pg_catalog::relations::Relation;
use crate::pg_catalog::session::SystemSession;

fn time(us: i64) -> Datum {
    Datum::Scalar(Value::TimestampTz(us))
}

pub(super) fn activity(relation: &Relation, session: &SystemSession<'_>) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "datid",
            "datname",
            "pid",
            "usesysid",
            "usename",
            "application_name",
            "backend_start",
            "state",
            "query",
            "backend_type",
        ],
    );
    session
        .facts
        .activity
        .iter()
        .map(|activity| {
            filler.row([
                Datum::oid(oids::DATABASE),
                Datum::text(&session.facts.database),
                Datum::Int(i64::from(activity.process_id)),
                Datum::oid(oids::OWNER),
                Datum::text(&activity.user),
                Datum::text(&activity.application),
                time(activity.started_us),
                Datum::text(&activity.state),
                Datum::text(&activity.query),
                Datum::text("client backend"),
            ])
        })
        .collect()
}

pub(super) fn database(relation: &Relation, session: &SystemSession<'_>) -> Vec<Vec<Datum>> {
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
        Datum::Int(session.facts.activity.len() as i64),
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

pub(super) fn conflicts(relation: &Relation, session: &SystemSession<'_>) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["datid", "datname"]);
    vec![filler.row([
        Datum::oid(oids::DATABASE),
        Datum::text(&session.facts.database),
    ])]
}

pub(super) fn tables(relation: &Relation, session: &SystemSession<'_>) -> Vec<Vec<Datum>> {
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

pub(super) fn indexes(relation: &Relation, session: &SystemSession<'_>) -> Vec<Vec<Datum>> {
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

pub(super) fn table_io(relation: &Relation, session: &SystemSession<'_>) -> Vec<Vec<Datum>> {
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
