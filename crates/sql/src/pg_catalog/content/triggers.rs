//! Triggers, in PostgreSQL's catalog and in the standard's views.

use std::sync::Arc;

use thermocline_engine::{Table, TriggerDef, TriggerEvent};
use thermocline_values::value::Value;

use super::Filler;
use super::information_schema::database;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::functions::{trigger_action, trigger_condition};
use crate::pg_catalog::relations::Relation;
use crate::pg_catalog::session::SystemSession;

/// All triggers with their tables.
fn all(session: &SystemSession) -> impl Iterator<Item = (&Arc<Table>, &TriggerDef)> {
    let tables = session.catalog.tables.values();
    tables.flat_map(|table| table.triggers.iter().map(move |trigger| (table, trigger)))
}

/// PostgreSQL's bits of what a trigger is.
fn bits(trigger: &TriggerDef) -> i64 {
    let events = trigger.events.iter().map(|event| match event {
        TriggerEvent::Insert => 1 << 2,
        TriggerEvent::Delete => 1 << 3,
        TriggerEvent::Update => 1 << 4,
        TriggerEvent::Truncate => 1 << 5,
    });
    i64::from(trigger.row) | i64::from(trigger.before) << 1 | events.sum::<i64>()
}

/// `pg_trigger`
pub(super) fn triggers(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "oid",
            "tgrelid",
            "tgname",
            "tgfoid",
            "tgtype",
            "tgenabled",
            "tgnargs",
            "tgattr",
            "tgargs",
            "tgqual",
        ],
    );
    let rows = all(session).map(|(table, trigger)| {
        let mut arguments = Vec::new();
        for argument in &trigger.arguments {
            arguments.extend_from_slice(argument.as_bytes());
            arguments.push(0);
        }
        let columns = trigger.columns.iter();
        filler.row([
            Datum::oid(trigger.oid),
            Datum::oid(table.oid),
            Datum::text(&trigger.name),
            Datum::oid(trigger.function),
            Datum::Int(bits(trigger)),
            Datum::text(if trigger.disabled { "D" } else { "O" }),
            Datum::Int(trigger.arguments.len() as i64),
            Datum::array(columns.map(|column| Datum::Int(*column as i64 + 1))),
            Datum::Scalar(Value::Bytea(arguments)),
            match &trigger.condition {
                Some(condition) => Datum::text(condition),
                None => Datum::Null,
            },
        ])
    });
    rows.collect()
}

/// Those that the standard knows, each with its place among those called at the same time.
pub(super) fn of_standard(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "trigger_catalog",
            "trigger_schema",
            "trigger_name",
            "event_manipulation",
            "event_object_catalog",
            "event_object_schema",
            "event_object_table",
            "action_order",
            "action_condition",
            "action_statement",
            "action_orientation",
            "action_timing",
        ],
    );
    let mut rows = Vec::new();
    for (table, trigger) in all(session).filter(|(table, _)| !session.is_others(&table.schema)) {
        let events = trigger.events.iter();
        for event in events.filter(|event| **event != TriggerEvent::Truncate) {
            let before = table
                .triggers
                .iter()
                .take_while(|other| other.oid != trigger.oid);
            let together = before.filter(|other| {
                (other.row, other.before) == (trigger.row, trigger.before)
                    && other.events.contains(event)
            });
            let condition = trigger.condition.as_deref();
            let condition = condition.map(|text| trigger_condition(session, text));
            rows.push(filler.row([
                database(session),
                Datum::text(&table.schema),
                Datum::text(&trigger.name),
                Datum::text(event.name()),
                database(session),
                Datum::text(&table.schema),
                Datum::text(&table.name),
                Datum::Int(together.count() as i64 + 1),
                condition.map_or(Datum::Null, Datum::text),
                Datum::text(trigger_action(session, trigger)),
                Datum::text(if trigger.row { "ROW" } else { "STATEMENT" }),
                Datum::text(if trigger.before { "BEFORE" } else { "AFTER" }),
            ]));
        }
    }
    rows
}

/// The columns that triggers name.
pub(super) fn columns(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "trigger_catalog",
            "trigger_schema",
            "trigger_name",
            "event_object_catalog",
            "event_object_schema",
            "event_object_table",
            "event_object_column",
        ],
    );
    let seen = all(session).filter(|(table, _)| !session.is_others(&table.schema));
    let rows = seen.flat_map(|(table, trigger)| {
        let filler = &filler;
        trigger.columns.iter().map(move |column| {
            filler.row([
                database(session),
                Datum::text(&table.schema),
                Datum::text(&trigger.name),
                database(session),
                Datum::text(&table.schema),
                Datum::text(&table.name),
                Datum::text(&table.columns[*column].name),
            ])
        })
    });
    rows.collect()
}
