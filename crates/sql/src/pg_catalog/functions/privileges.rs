//! `has_table_privilege` and the like: what a role may do, by the rules of
//! [`crate::privilege`].

use thermocline_engine::Table;
use thermocline_engine::authority::{Object, PUBLIC, Privileges};

use super::signatures;
use crate::error::{Result, SqlError};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::oids;
use crate::pg_catalog::session::{Names, SystemSession};
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
    let held = held(function, session, role, object, values)?;
    for name in wanted.split(',') {
        let name = name.trim().to_lowercase();
        let (plain, granting) = match name.strip_suffix(" with grant option") {
            Some(plain) => (plain.trim_end(), true),
            None => (&*name, false),
        };
        let privilege = Privileges::named(plain).ok_or_else(|| unrecognized(&name))?;
        let there = if granting { held.may_grant } else { held.has };
        if there.contains(privilege) {
            return Ok(Datum::Bool(true));
        }
    }
    Ok(Datum::Bool(false))
}

fn held(
    function: &str,
    session: &SystemSession,
    role: u32,
    object: &Datum,
    values: &[Datum],
) -> Result<Held> {
    let authority = &session.catalog.authority;
    let is_superuser = authority.is_superuser(role);
    let of = |object: &Object| Held {
        has: authority.privileges(role, object),
        may_grant: authority.grantable(role, object),
    };
    let (name, oid) = (object.as_text(), object.as_oid().unwrap_or(0));
    Ok(match function {
        "has_database_privilege" => {
            let is_here = match name {
                Some(name) => name == session.facts.database,
                None => oid == oids::DATABASE,
            };
            if let (false, Some(name)) = (is_here, name) {
                return Err(no("3D000", "database", name));
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
                return Ok(of(&Object::Function(own)));
            }
            let Some(name) = name else {
                // Functions have no numbers here but those of procedures' names.
                return Ok(Held::by_default(
                    is_superuser,
                    Privileges::EXECUTE,
                    Privileges::EXECUTE,
                ));
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
            if let Some(name) = name
                && session.type_by_name(name).is_none()
            {
                return Err(no("42704", "type", name));
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
        _ => {
            let oid = match name {
                Some(name) => session
                    .relation_by_name(name)
                    .ok_or_else(|| SqlError::undefined_table(name))?,
                None => oid,
            };
            if session.catalog.sequences.contains_key(&oid) {
                return Ok(of(&Object::Sequence(oid)));
            }
            if session.catalog.views.contains_key(&oid) {
                return Ok(of(&Object::Table(oid)));
            }
            let Some(table) = session.catalog.table(oid) else {
                let all = Object::Table(oid).all_privileges();
                return Ok(Held::by_default(is_superuser, all, Privileges::SELECT));
            };
            let whole = of(&Object::Table(oid));
            match function {
                "has_any_column_privilege" => Held {
                    has: authority.some_column_privileges(role, oid),
                    ..whole
                },
                "has_column_privilege" => {
                    let column = column_of(table, values.get(1))?;
                    let rights = authority.rights(&Object::Table(oid));
                    let own = rights.and_then(|rights| rights.columns.get(&column));
                    let mine = authority.roles_of(role, true);
                    let may_grant = own
                        .into_iter()
                        .flatten()
                        .filter(|grant| mine.contains(&grant.grantee))
                        .fold(whole.may_grant, |sum, grant| sum | grant.grantable);
                    Held {
                        has: authority.column_privileges(role, oid, column),
                        may_grant,
                    }
                }
                _ => whole,
            }
        }
    })
}

fn column_of(table: &Table, column: Option<&Datum>) -> Result<usize> {
    if let Some(name) = column.and_then(Datum::as_text) {
        let found = table.column_named(name);
        return found.ok_or_else(|| SqlError::undefined_column(name));
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
