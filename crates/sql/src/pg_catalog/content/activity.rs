//! `pg_stat_activity` and `pg_locks`: what each session does, what it waits for and for whom;
//! `pg_cursors` and `pg_prepared_statements`: what the session itself holds. Of others' sessions a role sees no more than in PostgreSQL.

use std::sync::Arc;

use thermocline_engine::WaitsFor;

use super::Filler;
use super::statistics::time;
use crate::analysis::{Activity, CursorFacts, StatementFacts};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::oids;
use crate::pg_catalog::relations::Relation;
use crate::pg_catalog::session::SystemSession;
use crate::session::mode_of;

const WITHOUT_PRIVILEGE: &str = "<insufficient privilege>";

fn count(number: u64) -> Datum {
    Datum::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// What PostgreSQL calls a wait: its kind and its name.
fn wait_event(activity: &Activity) -> Option<(&'static str, &'static str)> {
    match activity.waits_for {
        WaitsFor::Nothing if activity.state == "active" => None,
        WaitsFor::Nothing | WaitsFor::ClientRead => Some(("Client", "ClientRead")),
        WaitsFor::ClientWrite => Some(("Client", "ClientWrite")),
        WaitsFor::Transaction => Some(("Lock", "transactionid")),
        WaitsFor::Relation => Some(("Lock", "relation")),
        WaitsFor::Advisory => Some(("Lock", "advisory")),
        WaitsFor::Read => Some(("IO", "DataFileRead")),
        WaitsFor::Log => Some(("IO", "WALSync")),
        WaitsFor::Memory => Some(("IPC", "Memory")),
    }
}

pub(super) fn activity(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "datid",
            "datname",
            "pid",
            "leader_pid",
            "usesysid",
            "usename",
            "application_name",
            "client_addr",
            "client_port",
            "backend_start",
            "xact_start",
            "query_start",
            "state_change",
            "wait_event_type",
            "wait_event",
            "state",
            "backend_xid",
            "backend_xmin",
            "query_id",
            "query",
            "backend_type",
        ],
    );
    let row = |activity: &Activity| {
        let seen = |datum: Datum| match activity.is_visible {
            true => datum,
            false => Datum::Null,
        };
        let time_of = |us: Option<i64>| us.map_or(Datum::Null, time);
        let role = session.catalog.authority.role_by_name(&activity.user);
        let (address, port) = match activity.client {
            Some(Some(client)) => (
                Datum::text(client.ip().to_canonical().to_string()),
                Datum::Int(i64::from(client.port())),
            ),
            Some(None) => (Datum::Null, Datum::Int(-1)),
            None => (Datum::Null, Datum::Null),
        };
        let waits = wait_event(activity);
        let transaction = activity.transaction;
        let wait = |name: Option<&str>| seen(name.map_or(Datum::Null, Datum::text));
        filler.row([
            Datum::oid(oids::DATABASE),
            Datum::text(&session.facts.database),
            Datum::Int(i64::from(activity.process_id)),
            Datum::Null,
            role.map_or(Datum::Null, |role| Datum::oid(role.oid)),
            Datum::text(&activity.user),
            Datum::text(&activity.application),
            seen(address),
            seen(port),
            seen(time(activity.started_us)),
            seen(time_of(activity.transaction_us)),
            seen(time_of(Some(activity.statement_us).filter(|us| *us != 0))),
            seen(time(activity.changed_us)),
            wait(waits.map(|(kind, _)| kind)),
            wait(waits.map(|(_, name)| name)),
            seen(Datum::text(&activity.state)),
            match transaction {
                0 => Datum::Null,
                number => count(number),
            },
            Datum::Null,
            Datum::Null,
            match activity.is_visible {
                true => Datum::text(&activity.query),
                false => Datum::text(WITHOUT_PRIVILEGE),
            },
            seen(Datum::text("client backend")),
        ])
    };
    session.facts.activity().iter().map(row).collect()
}

/// `pg_cursors`: the session's own.
pub(super) fn cursors(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "name",
            "statement",
            "is_holdable",
            "is_binary",
            "is_scrollable",
            "creation_time",
        ],
    );
    let row = |cursor: &CursorFacts| {
        filler.row([
            Datum::text(&cursor.name),
            Datum::Text(Arc::clone(&cursor.text)),
            Datum::Bool(cursor.is_held),
            Datum::Bool(cursor.is_binary),
            Datum::Bool(cursor.goes_back),
            time(cursor.made_us),
        ])
    };
    session.facts.own.cursors.iter().map(row).collect()
}

/// `pg_prepared_statements`: the session's own. There is no other plan than the generic one, and
/// nobody counts its uses.
pub(super) fn statements(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "name",
            "statement",
            "prepare_time",
            "parameter_types",
            "from_sql",
        ],
    );
    let row = |statement: &StatementFacts| {
        filler.row([
            Datum::text(&statement.name),
            Datum::Text(Arc::clone(&statement.text)),
            time(statement.made_us),
            Datum::array(statement.parameters.iter().map(|oid| Datum::oid(*oid))),
            Datum::Bool(statement.from_sql),
        ])
    };
    session.facts.own.statements.iter().map(row).collect()
}

/// What a lock is of.
enum Locked {
    Table(u32),
    Transaction(u64),
}

/// Tables that transactions use or want, and transactions: each locks its own number, and who
/// waits for a row of another's waits for that.
pub(super) fn locks(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "locktype",
            "database",
            "relation",
            "page",
            "tuple",
            "transactionid",
            "classid",
            "objid",
            "objsubid",
            "virtualtransaction",
            "pid",
            "mode",
            "granted",
        ],
    );
    let waits = session.db.lock_waits();
    let sessions = session.facts.activity();
    // A statement without a transaction is known while it waits.
    let process_of = |transaction: u64| -> Option<i64> {
        let of_wait = waits.iter().find(|wait| wait.transaction == transaction);
        let of_session = sessions
            .iter()
            .find(|activity| activity.transaction == transaction);
        match (of_session, of_wait) {
            (Some(activity), _) => Some(i64::from(activity.process_id)),
            (None, Some(wait)) => i64::try_from(wait.session).ok(),
            (None, None) => None,
        }
    };
    let row = |locked: Locked, owner: u64, mode: &str, granted: bool| {
        let process_id = process_of(owner);
        let (kind, database, table, transaction) = match locked {
            Locked::Table(table) => (
                "relation",
                Datum::oid(oids::DATABASE),
                Datum::oid(table),
                Datum::Null,
            ),
            Locked::Transaction(number) => {
                ("transactionid", Datum::Null, Datum::Null, count(number))
            }
        };
        filler.row([
            Datum::text(kind),
            database,
            table,
            Datum::Null,
            Datum::Null,
            transaction,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::text(format!("{}/{owner}", process_id.unwrap_or(0))),
            process_id.map_or(Datum::Null, Datum::Int),
            Datum::text(mode),
            Datum::Bool(granted),
        ])
    };
    let mut rows = Vec::new();
    for activity in sessions.iter().filter(|activity| activity.transaction != 0) {
        let own = Locked::Transaction(activity.transaction);
        rows.push(row(own, activity.transaction, "ExclusiveLock", true));
    }
    for lock in session.db.table_locks() {
        let table = Locked::Table(lock.table);
        rows.push(row(table, lock.transaction, lock.mode.name(), lock.granted));
    }
    for wait in waits.iter().filter(|wait| wait.table.is_none()) {
        for holder in &wait.holders {
            let holder = Locked::Transaction(*holder);
            rows.push(row(holder, wait.transaction, "ShareLock", false));
        }
    }
    let advisory = session.facts.sessions.iter();
    for (process_id, lock, granted) in advisory.flat_map(|of| of.advisory_locks()) {
        let key = lock.key;
        rows.push(filler.row([
            Datum::text("advisory"),
            Datum::oid(oids::DATABASE),
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::oid(key.class),
            Datum::oid(key.object),
            Datum::Int(if key.is_pair { 2 } else { 1 }),
            Datum::text(format!("{process_id}/0")),
            Datum::Int(i64::from(process_id)),
            Datum::text(mode_of(lock.shared)),
            Datum::Bool(granted),
        ]));
    }
    rows
}

/// The sessions that keep this one from going on.
pub(crate) fn blockers(session: &SystemSession, process_id: i64) -> Vec<i64> {
    let waits = session.db.lock_waits();
    let is_his = |of: u64| u64::try_from(process_id).is_ok_and(|session| session == of);
    let mut holders: Vec<u64> = waits
        .iter()
        .filter(|wait| is_his(wait.session))
        .flat_map(|wait| wait.holders.iter().copied())
        .collect();
    holders.sort_unstable();
    holders.dedup();
    let sessions = session.facts.activity();
    let of_transactions = sessions
        .iter()
        .filter(|activity| holders.contains(&activity.transaction))
        .map(|activity| i64::from(activity.process_id));
    // Who stands in line before it may have no transaction.
    let in_line = waits
        .iter()
        .filter(|wait| holders.contains(&wait.transaction))
        .filter_map(|wait| i64::try_from(wait.session).ok());
    let own = i32::try_from(process_id).unwrap_or(0);
    let advisory = session.facts.sessions.iter();
    let advisory = advisory
        .flat_map(|of| of.advisory_blockers(own))
        .map(i64::from);
    let mut blockers: Vec<i64> = of_transactions.chain(in_line).chain(advisory).collect();
    blockers.sort_unstable();
    blockers.dedup();
    blockers
}
