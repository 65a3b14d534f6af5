//! Expressions that are kept, as they are shown: what they name has its schema only where the
//! name alone does not lead there, and a constant that is a default says its type, as PostgreSQL
//! writes it.

use thermocline_engine::FunctionDef;
use thermocline_engine::catalog::Table;
use thermocline_query::types::{format_type, ids};

use super::quote_ident;
use crate::analysis::functions_named;
use crate::bind::takes_next_of;
use crate::ddl::{Named, Place, places, places_in_condition, replaced};
use crate::error::Result;
use crate::parse::scan::{Token, Tokens};
use crate::pg_catalog::session::{Names, SystemSession};

/// An expression of the catalog.
pub(crate) fn shown(session: &SystemSession, text: &str) -> String {
    with_names(session, text, places(text))
}

/// The condition of a domain.
pub(crate) fn condition_shown(session: &SystemSession, text: &str) -> String {
    with_names(session, text, places_in_condition(text))
}

fn with_names(session: &SystemSession, text: &str, places: Result<Vec<Place>>) -> String {
    // What cannot be read is shown as it is.
    let places = places.unwrap_or_default();
    replaced(text, &places, |named| match named {
        Named::Value => Some("VALUE".to_owned()),
        Named::Short(name) => Some((*name).to_owned()),
        Named::Type(schema, name) => {
            let oid = session.user_type(schema.as_deref(), name)?;
            session.type_name(oid)
        }
        Named::Function(schema, name, _) => {
            let (catalog, path) = (&session.catalog, &session.facts.search_path);
            let def = functions_named(catalog, path, schema.as_deref(), name).next()?;
            Some(function_name(session, def))
        }
        Named::Relation(name, cast) => {
            let oid = session.relation_by_name(name)?;
            let name = session.relation_name(oid)?.replace('\'', "''");
            let cast = if *cast { "" } else { "::regclass" };
            Some(format!("'{name}'{cast}"))
        }
    })
}

/// A function's name, with its schema where the name alone does not lead there.
pub(crate) fn function_name(session: &SystemSession, def: &FunctionDef) -> String {
    let path = &session.facts.search_path;
    let mut named = functions_named(&session.catalog, path, None, &def.name);
    let name = quote_ident(&def.name);
    match named.next().is_some_and(|first| first.schema == def.schema) {
        true => name,
        false => format!("{}.{name}", quote_ident(&def.schema)),
    }
}

/// The default of a column, which it has by itself.
pub(crate) fn default_shown(
    session: &SystemSession,
    table: &Table,
    position: usize,
) -> Option<String> {
    let column = table.columns.get(position)?;
    let text = column.default.as_ref()?;
    let next = takes_next_of(column).and_then(|sequence| session.relation_name(sequence));
    if let Some(name) = next {
        let name = name.replace('\'', "''");
        return Some(format!("nextval('{name}'::regclass)"));
    }
    let mut tokens = Tokens::new(text);
    let alone = matches!(
        (tokens.next(), tokens.next()),
        (Some(Token::Constant(_)), None)
    );
    if !alone || !text.starts_with('\'') {
        return Some(shown(session, text));
    }
    let oid = column.data_type.oid();
    let inner = &text[1..text.len() - 1];
    let is_plain = !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_digit());
    let has_point = inner.contains('.') && inner.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let of_type = match oid {
        ids::BOOL => match inner {
            "true" | "t" | "yes" | "on" | "1" => return Some("true".to_owned()),
            "false" | "f" | "no" | "off" | "0" => return Some("false".to_owned()),
            _ => "boolean".to_owned(),
        },
        ids::INT4 if is_plain => return Some(inner.to_owned()),
        ids::NUMERIC if has_point => return Some(inner.to_owned()),
        ids::BPCHAR => "bpchar".to_owned(),
        _ => match session.type_name(oid) {
            Some(users) => users,
            None => format_type(oid, -1),
        },
    };
    Some(format!("{text}::{of_type}"))
}
