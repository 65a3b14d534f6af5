//! The definitions of triggers, as PostgreSQL writes them.

use thermocline_engine::{TriggerDef, TriggerEvent};

use super::{definitions::parenthesised, quote_ident, shown};
use crate::pg_catalog::session::SystemSession;

/// `pg_get_triggerdef`
pub(super) fn trigger(session: &SystemSession, oid: u32, pretty: bool) -> Option<String> {
    let mut tables = session.catalog.tables.values();
    let (table, trigger) = tables.find_map(|table| {
        let trigger = table.triggers.iter().find(|trigger| trigger.oid == oid);
        trigger.map(|trigger| (table, trigger))
    })?;
    let events = trigger.events.iter().map(|event| match event {
        TriggerEvent::Update if !trigger.columns.is_empty() => {
            let columns = trigger.columns.iter();
            let named = columns.map(|column| quote_ident(&table.columns[*column].name));
            format!("UPDATE OF {}", named.collect::<Vec<_>>().join(", "))
        }
        event => event.name().to_owned(),
    });
    let events: Vec<String> = events.collect();
    let name = quote_ident(&table.name);
    let name = match pretty && session.is_visible(table.oid) == Some(true) {
        true => name,
        false => format!("{}.{name}", quote_ident(&table.schema)),
    };
    let condition = trigger
        .condition
        .as_deref()
        .map_or_else(String::new, |text| {
            let text = shown(session, text);
            match pretty {
                true => format!("WHEN ({text}) "),
                false => format!("WHEN ({}) ", parenthesised(&text)),
            }
        });
    Some(format!(
        "CREATE TRIGGER {} {} {} ON {name} FOR EACH {} {condition}{}",
        quote_ident(&trigger.name),
        if trigger.before { "BEFORE" } else { "AFTER" },
        events.join(" OR "),
        if trigger.row { "ROW" } else { "STATEMENT" },
        trigger_action(session, trigger),
    ))
}

/// What a trigger calls.
pub(crate) fn trigger_action(session: &SystemSession, trigger: &TriggerDef) -> String {
    let name = match session.catalog.functions.get(&trigger.function) {
        None => String::new(),
        Some(def) if session.is_visible_function(def.oid) => quote_ident(&def.name),
        Some(def) => format!("{}.{}", quote_ident(&def.schema), quote_ident(&def.name)),
    };
    let quoted = |text: &String| format!("'{}'", text.replace('\'', "''"));
    let arguments: Vec<String> = trigger.arguments.iter().map(quoted).collect();
    format!("EXECUTE FUNCTION {name}({})", arguments.join(", "))
}

/// A trigger's condition.
pub(crate) fn trigger_condition(session: &SystemSession, text: &str) -> String {
    parenthesised(&shown(session, text))
}
