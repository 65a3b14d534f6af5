//! What there is one of in a server: the database, the role, settings, access
//! methods, languages, collations.

use super::Filler;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::oids;
use crate::pg_catalog::relations::Relation;
use crate::pg_catalog::session::SystemSession;

pub(super) fn access_methods(relation: &Relation) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["oid", "amname", "amtype"]);
    [
        (oids::HEAP, "memory", "t"),
        (oids::BTREE, "btree", "i"),
        (oids::HASH, "hash", "i"),
    ]
    .into_iter()
    .map(|(oid, name, kind)| filler.row([Datum::oid(oid), Datum::text(name), Datum::text(kind)]))
    .collect()
}

pub(super) fn databases(relation: &Relation, session: &SystemSession<'_>) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "oid",
            "datname",
            "datdba",
            "encoding",
            "datlocprovider",
            "datallowconn",
            "datconnlimit",
            "dattablespace",
            "datcollate",
            "datctype",
        ],
    );
    vec![filler.row([
        Datum::oid(oids::DATABASE),
        Datum::text(&session.facts.database),
        Datum::oid(oids::OWNER),
        Datum::Int(6),
        Datum::text("c"),
        Datum::Bool(true),
        Datum::Int(-1),
        Datum::oid(oids::DEFAULT_TABLESPACE),
        Datum::text("C"),
        Datum::text("C"),
    ])]
}

pub(super) fn roles(relation: &Relation, session: &SystemSession<'_>) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "oid",
            "rolname",
            "rolsuper",
            "rolinherit",
            "rolcreaterole",
            "rolcreatedb",
            "rolcanlogin",
            "rolreplication",
            "rolconnlimit",
            "rolbypassrls",
        ],
    );
    vec![filler.row([
        Datum::oid(oids::OWNER),
        Datum::text(&session.facts.user),
        Datum::Bool(true),
        Datum::Bool(true),
        Datum::Bool(true),
        Datum::Bool(true),
        Datum::Bool(true),
        Datum::Bool(false),
        Datum::Int(-1),
        Datum::Bool(true),
    ])]
}

pub(super) fn users(relation: &Relation, session: &SystemSession<'_>) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &["usename", "usesysid", "usecreatedb", "usesuper"],
    );
    vec![filler.row([
        Datum::text(&session.facts.user),
        Datum::oid(oids::OWNER),
        Datum::Bool(true),
        Datum::Bool(true),
    ])]
}

pub(super) fn languages(relation: &Relation) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &["oid", "lanname", "lanowner", "lanispl", "lanpltrusted"],
    );
    [(12, "internal", false), (13, "c", false), (14, "sql", true)]
        .into_iter()
        .map(|(oid, name, trusted)| {
            filler.row([
                Datum::oid(oid),
                Datum::text(name),
                Datum::oid(oids::OWNER),
                Datum::Bool(false),
                Datum::Bool(trusted),
            ])
        })
        .collect()
}

pub(super) fn collations(relation: &Relation) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "oid",
            "collname",
            "collnamespace",
            "collowner",
            "collprovider",
            "collisdeterministic",
            "collencoding",
            "collcollate",
            "collctype",
        ],
    );
    [
        (oids::DEFAULT_COLLATION, "default", "d", None),
        (950, "C", "c", Some("C")),
        (951, "POSIX", "c", Some("POSIX")),
    ]
    .into_iter()
    .map(|(oid, name, provider, locale)| {
        let locale = locale.map_or(Datum::Null, Datum::text);
        filler.row([
            Datum::oid(oid),
            Datum::text(name),
            Datum::oid(oids::PG_CATALOG),
            Datum::oid(oids::OWNER),
            Datum::text(provider),
            Datum::Bool(true),
            Datum::Int(-1),
            locale.clone(),
            locale,
        ])
    })
    .collect()
}

pub(super) fn tablespaces(relation: &Relation) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["oid", "spcname", "spcowner"]);
    [
        (oids::DEFAULT_TABLESPACE, "pg_default"),
        (1664, "pg_global"),
    ]
    .into_iter()
    .map(|(oid, name)| filler.row([Datum::oid(oid), Datum::text(name), Datum::oid(oids::OWNER)]))
    .collect()
}

pub(super) fn settings(relation: &Relation, session: &SystemSession<'_>) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "name",
            "setting",
            "category",
            "short_desc",
            "context",
            "vartype",
            "source",
        ],
    );
    session
        .facts
        .settings
        .iter()
        .map(|(name, value, description)| {
            filler.row([
                Datum::text(name),
                Datum::text(value),
                Datum::text("Thermocline"),
                Datum::text(description),
                Datum::text("user"),
                Datum::text(match value.as_str() {
                    "on" | "off" => "bool",
                    number if number.parse::<i64>().is_ok() => "integer",
                    _ => "string",
                }),
                Datum::text("session"),
            ])
        })
        .collect()
}

pub(super) fn time_zones(relation: &Relation) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["name", "abbrev", "utc_offset"]);
    vec![filler.row([
        Datum::text("UTC"),
        Datum::text("UTC"),
        Datum::text("00:00:00"),
    ])]
}
