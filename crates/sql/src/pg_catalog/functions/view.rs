//! The text of a view's query. It is kept as it was written, and names in it mean what they
//! meant then. Where they would mean something else to who reads it now, what is meant is
//! written in their place.

use thermocline_engine::catalog::FIRST_USER_OID;
use thermocline_engine::{ViewDef, ViewFunction, ViewRead};

use super::quote_ident;
use super::shown::function_name;
use crate::ddl::{Named, places_in_query};
use crate::pg_catalog::session::{Names, SystemSession};

/// The query of a view, with a semicolon.
pub(crate) fn view_definition(session: &SystemSession, view: &ViewDef) -> String {
    let mut text = view.query.clone();
    let mut edits = Vec::new();
    for read in view.reads.iter().filter(|read| read.oid >= FIRST_USER_OID) {
        for (at, aliased) in &read.places {
            if let Some(meant) = meant(session, read, *aliased) {
                edits.push((*at as usize, meant));
            }
        }
    }
    if !view.types.is_empty() || !view.functions.is_empty() {
        edits.extend(names_meant(session, view));
    }
    // From the last one on, so that places before stay.
    edits.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (at, meant) in edits {
        if let Some(length) = text.get(at..).map(name_length) {
            text.replace_range(at..at + length, &meant);
        }
    }
    let renamed = view
        .columns
        .iter()
        .any(|column| column.name != column.written);
    match renamed {
        false => format!(" {text};"),
        true => {
            let names = view.columns.iter().map(|column| quote_ident(&column.name));
            let names = names.collect::<Vec<_>>().join(", ");
            format!(" SELECT {names} FROM ({text}) v({names});")
        }
    }
}

/// The names of types and functions that have to be others now, with their places.
fn names_meant(session: &SystemSession, view: &ViewDef) -> Vec<(usize, String)> {
    let places = places_in_query(&view.query).unwrap_or_default();
    let meant = places.into_iter().filter_map(|place| {
        let meant = match place.named {
            Named::Type(schema, name) => {
                let mut types = view.types.iter();
                let named = types.find(|of| of.written_schema == schema && of.written == name)?;
                session.type_name(named.oid)?
            }
            Named::Function(schema, name, _) => {
                let mut functions = view.functions.iter();
                let is_it = |of: &&ViewFunction| of.written_schema == schema && of.written == name;
                let def = session.catalog.functions.get(&functions.find(is_it)?.oid)?;
                function_name(session, def)
            }
            Named::Relation(..) | Named::Value | Named::Short(_) => return None,
        };
        (view.query.get(place.from..place.to) != Some(&meant)).then_some((place.from, meant))
    });
    meant.collect()
}

/// What has to stand for a name now, if it is not the name.
fn meant(session: &SystemSession, read: &ViewRead, aliased: bool) -> Option<String> {
    let (schema, name) = session.relation(read.oid)?;
    // The names that the columns have now and had then, of those that there are.
    let columns: Vec<(&str, Option<&str>)> = {
        let then = read.columns.iter().map(|name| Some(name.as_str()));
        let then = then.chain(std::iter::repeat(None));
        match session.catalog.table(read.oid) {
            Some(table) => {
                let all = table.columns.iter().zip(then);
                let live = all.filter(|(column, _)| column.is_seen());
                live.map(|(column, then)| (column.name.as_str(), then))
                    .collect()
            }
            None => {
                let view = session.catalog.views.get(&read.oid)?;
                let all = view.columns.iter().zip(then);
                all.map(|(column, then)| (column.name.as_str(), then))
                    .collect()
            }
        }
    };
    let same_columns = columns.iter().all(|(now, then)| *then == Some(*now));
    let same_name = match &read.written_schema {
        Some(written) => written == schema && read.written == name,
        None => read.written == name && session.is_visible(read.oid) == Some(true),
    };
    if same_name && same_columns {
        return None;
    }
    let now = match session.is_visible(read.oid) {
        Some(true) => quote_ident(name),
        _ => format!("{}.{}", quote_ident(schema), quote_ident(name)),
    };
    let mut meant = now;
    if !same_columns {
        let pairs = columns.iter().filter_map(|(now, then)| match then {
            Some(then) if now == then => Some(quote_ident(now)),
            Some(then) => Some(format!("{} AS {}", quote_ident(now), quote_ident(then))),
            None => None,
        });
        let pairs = pairs.collect::<Vec<_>>().join(", ");
        meant = format!("(SELECT {pairs} FROM {meant})");
    }
    if !aliased && (!same_columns || read.written != name) {
        meant = format!("{meant} {}", quote_ident(&read.written));
    }
    Some(meant)
}

/// The bytes of a name, with its schema, at the beginning of a text.
fn name_length(text: &str) -> usize {
    let mut length = part_length(text);
    loop {
        let rest = &text[length..];
        let dot = rest.trim_start();
        let Some(after) = dot.strip_prefix('.') else {
            return length;
        };
        let next = after.trim_start();
        length = text.len() - next.len() + part_length(next);
    }
}

fn part_length(text: &str) -> usize {
    match text.strip_prefix('"') {
        None => {
            let end = |c: char| !(c.is_alphanumeric() || c == '_' || c == '$');
            text.find(end).unwrap_or(text.len())
        }
        Some(quoted) => {
            let mut doubled = false;
            let end = quoted.char_indices().find(|(at, c)| {
                let closes = *c == '"' && !doubled && !quoted[at + 1..].starts_with('"');
                doubled = *c == '"' && !doubled && !closes;
                closes
            });
            end.map_or(text.len(), |(at, _)| at + 2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_where_they_do() {
        assert_eq!(name_length("t1, u"), 2);
        assert_eq!(name_length("s . t)"), 5);
        assert_eq!(name_length("\"a\"\"b\".\"c d\" x"), 12);
        assert_eq!(name_length("\"a\"\"\" x"), 5);
        assert_eq!(name_length("é"), 2);
    }
}
