//! `has_table_privilege` and the like: what a role may do, by the rules of
//! [`crate::privilege`].

use thermocline_engine::authority::{Authority, Object, PUBLIC, Privileges};
use thermocline_query::functions;
use thermocline_query::types::is_built_in;

use super::signatures;
use crate::error::{Result, SqlError};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::oids;
use crate::pg_catalog::relations::RELATIONS;
use crate::pg_catalog::session::{HIDDEN, Names, SystemSession};
use crate::privilege::no_role;

/// PostgreSQL's number of the language `sql`.
const SQL_LANGUAGE_OID: u32 = 14;
/// Functions that only superusers may call.
const SUPERUSERS_FUNCTIONS: [&str; 2] = ["pg_reload_conf", "pg_stat_statements_reset"];

/// What a role has on an object, and what of it, it may grant to others.
#[derive(Clone, Copy)]
struct Held {
    has: Privileges,
    may_grant: Privileges,
}

impl Held {
    /// As it was granted.
    fn on(authority: &Authority, role: u32, object: &Object) -> Held {
        Held {
            has: authority.privileges(role, object),
            may_grant: authority.grantable(role, object),
        }
    }

    /// All that there is for a superuser, `others` for everybody else.
    fn by_default(is_superuser: bool, all: Privileges, others: Privileges) -> Self {
        Self {
            has: if is_superuser { all } else { others },
            may_grant: if is_superuser { all } else { Privileges::NONE },
        }
    }
}

/// `function(object, privilege)` or `function(role, object, privilege)`; a column's name is
/// between object and privilege.
pub(super) fn has(function: &str, session: &SystemSession, values: &[Datum]) -> Result<Datum> {
    let arguments = if function == "has_column_privilege" {
        3
    } else {
        2
    };
    let (role, values) = match values.split_first() {
        Some((role, rest)) if rest.len() == arguments => (role_of(session, role)?, rest),
        _ => (session.facts.actor.role(), values),
    };
    let (Some(object), Some(wanted)) = (
        values.first().filter(|object| !object.is_null()),
        values.last().and_then(Datum::as_text),
    ) else {
        return Ok(Datum::Null);
    };
    if function == "pg_has_role" {
        return has_role(session, role, role_of(session, object)?, wanted);
    }
    if function == "has_parameter_privilege" {
        return has_parameter(session, role, object, wanted);
    }
    let mut asked = Vec::new();
    for name in wanted.split(',') {
        let name = name.trim();
        let lower = name.to_lowercase();
        let (plain, granting) = match lower.strip_suffix(" with grant option") {
            Some(plain) => (plain.trim_end(), true),
            None => (&*lower, false),
        };
        let privilege = Privileges::named(plain).filter(|one| there_are(function).contains(*one));
        asked.push((privilege.ok_or_else(|| unrecognized(name))?, granting));
    }
    Ok(match held(function, session, role, object, values)? {
        Some(held) => Datum::Bool(asked.into_iter().any(|(privilege, granting)| {
            let there = if granting { held.may_grant } else { held.has };
            there.contains(privilege)
        })),
        None => Datum::Null,
    })
}

/// The privileges that there are on what a function asks of.
fn there_are(function: &str) -> Privileges {
    use Privileges as P;
    match function {
        "has_database_privilege" => P::CREATE | P::TEMPORARY | P::CONNECT,
        "has_schema_privilege" => P::CREATE | P::USAGE,
        "has_function_privilege" => P::EXECUTE,
        "has_tablespace_privilege" => P::CREATE,
        "has_sequence_privilege" => P::USAGE | P::SELECT | P::UPDATE,
        "has_column_privilege" | "has_any_column_privilege" => {
            P::SELECT | P::INSERT | P::UPDATE | P::REFERENCES
        }
        "has_table_privilege" => Object::Table(0).all_privileges(),
        _ => P::USAGE,
    }
}

/// `None` for what is not there: of a number nothing is known then, a name is an error.
fn held(
    function: &str,
    session: &SystemSession,
    role: u32,
    object: &Datum,
    values: &[Datum],
) -> Result<Option<Held>> {
    let authority = &session.catalog.authority;
    let is_superuser = authority.is_superuser(role);
    let of = |object: &Object| Held::on(authority, role, object);
    let (name, oid) = (object.as_text(), object.as_oid().unwrap_or(0));
    Ok(Some(match function {
        "has_database_privilege" => {
            let is_here = match name {
                Some(name) => name == session.facts.database,
                None => oid == oids::DATABASE,
            };
            match (is_here, name) {
                (false, Some(name)) => return Err(no("3D000", "database", name)),
                (false, None) => return Ok(None),
                (true, _) => {}
            }
            of(&Object::Database)
        }
        "has_schema_privilege" => {
            let oid = match name {
                Some(name) => session
                    .schema_by_name(name)
                    .ok_or_else(|| no("3F000", "schema", name))?,
                None => oid,
            };
            if session.schema_name(oid).is_none() {
                return Ok(None);
            }
            let all = Privileges::USAGE | Privileges::CREATE;
            if session.catalog.schemas.iter().any(|def| def.oid == oid) {
                of(&Object::Schema(oid))
            } else {
                // The system's own: to be used by all.
                Held::by_default(is_superuser, all, Privileges::USAGE)
            }
        }
        "has_function_privilege" => {
            let number = match name {
                None => Some(oid),
                Some(name) => signatures::number(session, name, name.contains('('))
                    .ok()
                    .flatten(),
            };
            let own = number.filter(|oid| session.catalog.functions.contains_key(oid));
            if let Some(own) = own {
                return Ok(Some(of(&Object::Function(own))));
            }
            let built_in = || functions::by_oid(oid).map(|function| function.name);
            let Some(name) = name.or_else(built_in) else {
                return Ok(None);
            };
            let plain = name.split('(').next().unwrap_or(name).trim();
            let plain = plain.rsplit('.').next().unwrap_or(plain).to_lowercase();
            if session.db.procedures().get(&plain).is_some() {
                of(&Object::Procedure(plain))
            } else if SUPERUSERS_FUNCTIONS.contains(&&*plain) {
                Held::by_default(is_superuser, Privileges::EXECUTE, Privileges::NONE)
            } else if super::is_known(&plain) {
                Held::by_default(is_superuser, Privileges::EXECUTE, Privileges::EXECUTE)
            } else {
                return Err(SqlError::new(
                    "42883",
                    format!("function \"{name}\" does not exist"),
                ));
            }
        }
        "has_type_privilege" => {
            match name {
                Some(name) if session.type_by_name(name).is_none() => {
                    return Err(no("42704", "type", name));
                }
                None if !is_built_in(oid) && session.type_name(oid).is_none() => return Ok(None),
                _ => {}
            }
            Held::by_default(is_superuser, Privileges::USAGE, Privileges::USAGE)
        }
        "has_tablespace_privilege" => {
            let known = |name: &str| {
                matches!(name, "pg_default" | "pg_global")
                    || session.catalog.tablespace_by_name(name).is_some()
            };
            if let Some(name) = name.filter(|name| !known(name)) {
                return Err(no("42704", "tablespace", name));
            }
            Held::by_default(is_superuser, Privileges::CREATE, Privileges::NONE)
        }
        "has_language_privilege" => {
            let trusted = match name {
                Some("sql") => true,
                Some("c" | "internal") => false,
                Some(name) => return Err(no("42704", "language", name)),
                None => oid == SQL_LANGUAGE_OID,
            };
            let others = if trusted {
                Privileges::USAGE
            } else {
                Privileges::NONE
            };
            Held::by_default(is_superuser, Privileges::USAGE, others)
        }
        _ => return held_on_relation(function, session, role, object, values),
    }))
}

/// [`held`] on a table, a view or a sequence.
fn held_on_relation(
    function: &str,
    session: &SystemSession,
    role: u32,
    object: &Datum,
    values: &[Datum],
) -> Result<Option<Held>> {
    let authority = &session.catalog.authority;
    let of = |object: &Object| Held::on(authority, role, object);
    let oid = match object.as_text() {
        Some(name) => session
            .relation_by_name(name)
            .ok_or_else(|| SqlError::undefined_table(name))?,
        None => object.as_oid().unwrap_or(0),
    };
    let Some((_, name)) = session.relation(oid) else {
        return Ok(None);
    };
    let is_sequence = session.catalog.sequences.contains_key(&oid);
    if function == "has_sequence_privilege" && !is_sequence {
        return Err(SqlError::new(
            "42809",
            format!("\"{name}\" is not a sequence"),
        ));
    }
    if is_sequence {
        return Ok(Some(of(&Object::Sequence(oid))));
    }
    let table = session.catalog.table(oid);
    if function != "has_column_privilege" {
        let held = match (table, session.catalog.views.contains_key(&oid)) {
            (None, false) => of_system(session, role, name),
            _ => of(&Object::Table(oid)),
        };
        let some = table.filter(|_| function == "has_any_column_privilege");
        return Ok(Some(Held {
            has: some.map_or(held.has, |_| authority.some_column_privileges(role, oid)),
            ..held
        }));
    }
    let Some(table) = table else {
        let view = session.catalog.views.get(&oid);
        let columns: Vec<&str> = match (view, RELATIONS.iter().find(|system| system.oid == oid)) {
            (Some(view), _) => view.columns.iter().map(|column| &*column.name).collect(),
            (None, Some(system)) => system.columns.iter().map(|column| column.name).collect(),
            (None, None) => Vec::new(),
        };
        let named = |wanted: &str| columns.iter().position(|column| *column == wanted);
        let place = place_of(name, values.get(1), named)?;
        let held = match view {
            Some(_) => of(&Object::Table(oid)),
            None => of_system(session, role, name),
        };
        return Ok((place < columns.len()).then_some(held));
    };
    let column = place_of(name, values.get(1), |wanted| table.column_named(wanted))?;
    if table.live_columns().all(|(place, _)| place != column) {
        return Ok(None);
    }
    let whole = of(&Object::Table(oid));
    let rights = authority.rights(&Object::Table(oid));
    let own = rights.and_then(|rights| rights.columns.get(&column));
    let mine = authority.roles_of(role, true);
    let may_grant = own
        .into_iter()
        .flatten()
        .filter(|grant| mine.contains(&grant.grantee))
        .fold(whole.may_grant, |sum, grant| sum | grant.grantable);
    Ok(Some(Held {
        has: authority.column_privileges(role, oid, column),
        may_grant,
    }))
}

/// What a role may do with a relation of the system.
fn of_system(session: &SystemSession, role: u32, name: &str) -> Held {
    let others = match HIDDEN.contains(&name) {
        true => Privileges::NONE,
        false => Privileges::SELECT,
    };
    let is_superuser = session.catalog.authority.is_superuser(role);
    Held::by_default(is_superuser, Object::Table(0).all_privileges(), others)
}

/// The place of a column, which is told by its name or its number.
fn place_of(
    relation: &str,
    column: Option<&Datum>,
    named: impl Fn(&str) -> Option<usize>,
) -> Result<usize> {
    if let Some(name) = column.and_then(Datum::as_text) {
        return named(name).ok_or_else(|| {
            let message = format!("column \"{name}\" of relation \"{relation}\" does not exist");
            SqlError::new("42703", message)
        });
    }
    let number = column.and_then(Datum::as_int).unwrap_or(0);
    Ok(usize::try_from(number - 1).unwrap_or(usize::MAX))
}

/// MEMBER: by SET ROLE; USAGE: without it.
fn has_role(session: &SystemSession, role: u32, group: u32, wanted: &str) -> Result<Datum> {
    let authority = &session.catalog.authority;
    for name in wanted.split(',') {
        let name = name.trim().to_lowercase();
        let has = match &*name {
            "usage" => authority.has_privileges_of(role, group),
            "member" => authority.is_member(role, group),
            "usage with grant option"
            | "usage with admin option"
            | "member with grant option"
            | "member with admin option" => authority.administers(role, group),
            _ => return Err(unrecognized(&name)),
        };
        if has {
            return Ok(Datum::Bool(true));
        }
    }
    Ok(Datum::Bool(false))
}

/// Settings of superusers are granted to nobody.
fn has_parameter(session: &SystemSession, role: u32, name: &Datum, wanted: &str) -> Result<Datum> {
    let name = name.as_text().unwrap_or_default();
    if crate::settings::find(name).is_none() {
        return Err(SqlError::new(
            "42704",
            format!("unrecognized configuration parameter \"{name}\""),
        ));
    }
    for wanted in wanted.split(',') {
        let wanted = wanted.trim().to_lowercase();
        let plain = wanted.strip_suffix(" with grant option").unwrap_or(&wanted);
        if !matches!(plain, "set" | "alter system") {
            return Err(unrecognized(&wanted));
        }
    }
    let authority = &session.catalog.authority;
    Ok(Datum::Bool(authority.is_superuser(role)))
}

fn unrecognized(privilege: &str) -> SqlError {
    SqlError::new(
        "22023",
        format!("unrecognized privilege type: \"{privilege}\""),
    )
}

fn no(sqlstate: &'static str, kind: &str, name: &str) -> SqlError {
    SqlError::new(sqlstate, format!("{kind} \"{name}\" does not exist"))
}

/// A role by name or number; `public` is everybody.
fn role_of(session: &SystemSession, role: &Datum) -> Result<u32> {
    match (role.as_text(), role.as_oid()) {
        (Some("public"), _) => Ok(PUBLIC),
        (Some(name), _) => {
            let found = session.catalog.authority.role_by_name(name);
            found.map(|role| role.oid).ok_or_else(|| no_role(name))
        }
        (None, oid) => Ok(oid.unwrap_or(0)),
    }
}
