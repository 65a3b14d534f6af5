//! Comments as PostgreSQL's catalogs show them, by the numbers of objects and of the catalogs
//! that those are in.

use thermocline_engine::authority::PUBLIC_SCHEMA_OID;
use thermocline_engine::comment::CommentOn;
use thermocline_query::functions::extension::EXTENSIONS;

use super::Filler;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::oids::{self, check_oid, index_constraint_oid};
use crate::pg_catalog::relations::{Relation, relation};
use crate::pg_catalog::session::SystemSession;

/// A comment: its object's number, the catalog's of its kind, the column, the text.
struct Shown<'a> {
    object: u32,
    catalog: &'static str,
    column: u32,
    text: &'a str,
}

/// Of the database's objects, or of those that all databases share.
fn shown(session: &SystemSession, shared: bool) -> impl Iterator<Item = Shown<'_>> {
    let ours = crate::system_views::comments().filter(move |_| !shared);
    let ours = ours.map(|(object, column, text)| Shown {
        object,
        catalog: "pg_class",
        column: column.into(),
        text,
    });
    let comments = session.catalog.comments.iter();
    let users = comments.filter_map(move |(on, text)| {
        let (object, catalog, column) = match on {
            CommentOn::Relation { oid, column } => (*oid, "pg_class", *column),
            CommentOn::Constraint { table, name } => {
                let table = session.catalog.table(*table)?;
                let mut indexes = table.indexes.iter();
                let index = indexes.find(|index| index.constraint && index.name == *name);
                let check = || table.checks.iter().position(|check| check.name == *name);
                let key = table.foreign_keys.iter().find(|key| key.name == *name);
                let oid = match (index, key) {
                    (Some(index), _) => index_constraint_oid(index),
                    (None, Some(key)) => key.oid,
                    (None, None) => check_oid(table, check()?),
                };
                (oid, "pg_constraint", 0)
            }
            CommentOn::Schema(oid) => (*oid, "pg_namespace", 0),
            CommentOn::Role(oid) => (*oid, "pg_authid", 0),
            CommentOn::Database => (oids::DATABASE, "pg_database", 0),
            CommentOn::Type(oid) => (*oid, "pg_type", 0),
            CommentOn::Function(oid) => (*oid, "pg_proc", 0),
            CommentOn::Trigger { table, name } => {
                let table = session.catalog.table(*table)?;
                let trigger = table.triggers.iter().find(|of| of.name == *name)?;
                (trigger.oid, "pg_trigger", 0)
            }
        };
        let is_shared = matches!(on, CommentOn::Role(_) | CommentOn::Database);
        (is_shared == shared).then_some(Shown {
            object,
            catalog,
            column,
            text,
        })
    });
    let on_public = CommentOn::Schema(PUBLIC_SCHEMA_OID);
    let standard = !shared && !session.catalog.comments.contains_key(&on_public);
    let standard = standard.then_some(Shown {
        object: PUBLIC_SCHEMA_OID,
        catalog: "pg_namespace",
        column: 0,
        text: "standard public schema",
    });
    let extensions = EXTENSIONS.iter().filter(move |_| !shared);
    let extensions = extensions.map(|extension| Shown {
        object: extension.oid,
        catalog: "pg_extension",
        column: 0,
        text: extension.comment,
    });
    ours.chain(users).chain(standard).chain(extensions)
}

fn class(catalog: &str) -> Datum {
    Datum::oid(relation("pg_catalog", catalog).map_or(0, |relation| relation.oid))
}

pub(super) fn descriptions(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["objoid", "classoid", "objsubid", "description"]);
    let row = |shown: Shown<'_>| {
        filler.row([
            Datum::oid(shown.object),
            class(shown.catalog),
            Datum::Int(shown.column.into()),
            Datum::text(shown.text),
        ])
    };
    shown(session, false).map(row).collect()
}

pub(super) fn shared(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["objoid", "classoid", "description"]);
    let row = |shown: Shown<'_>| {
        filler.row([
            Datum::oid(shown.object),
            class(shown.catalog),
            Datum::text(shown.text),
        ])
    };
    shown(session, true).map(row).collect()
}

/// `obj_description`, `col_description` and `shobj_description`.
pub(crate) fn description(function: &str, session: &SystemSession, values: &[Datum]) -> Datum {
    let Some(object) = values.first().and_then(Datum::as_oid) else {
        return Datum::Null;
    };
    let (column, catalog) = match (function, values.get(1)) {
        ("col_description", Some(column)) => match column.as_int() {
            Some(column) if column > 0 => (column, Some("pg_class")),
            _ => return Datum::Null,
        },
        (_, Some(catalog)) => match catalog.as_text() {
            Some(catalog) => (0, Some(catalog)),
            None => return Datum::Null,
        },
        (_, None) => (0, None),
    };
    let is_it = |shown: &Shown<'_>| {
        shown.object == object
            && i64::from(shown.column) == column
            && catalog.is_none_or(|catalog| shown.catalog == catalog)
    };
    let mut all = shown(session, function == "shobj_description");
    all.find(is_it)
        .map_or(Datum::Null, |shown| Datum::text(shown.text))
}
