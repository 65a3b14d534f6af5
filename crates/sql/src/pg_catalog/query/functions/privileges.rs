//! `has_table_privilege` and the like: what a role may do, by the rules of
//! [`crate::privilege`].

use thermocline_engine::authority::{Object, Privileges};

use super::Function;
use crate::error::{Result, SqlError};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::query::run::Run;
use crate::privilege::no_role;

/// `function(object, privilege)` or `function(role, object, privilege)`; a column's name is
/// between object and privilege.
pub(super) fn has(function: Function, run: &Run<'_>, values: &[Datum]) -> Result<Datum> {
    let session = run.session();
    let authority = &session.catalog.authority;
    let arguments = if function == Function::HasColumnPrivilege {
        3
    } else {
        2
    };
    let (role, values) = match values.split_first() {
        Some((role, rest)) if rest.len() == arguments => (role_of(run, role)?, rest),
        _ => (session.facts.actor.role(), values),
    };
    let (Some(object), Some(wanted)) = (
        values.first().filter(|object| **object != Datum::Null),
        values.last().and_then(Datum::as_text),
    ) else {
        return Ok(Datum::Null);
    };
    let relation = || -> Result<u32> {
        match (object.as_text(), object.as_oid()) {
            (Some(name), _) => run
                .names()
                .relation_by_name(name)
                .ok_or_else(|| SqlError::undefined_table(name)),
            (None, oid) => Ok(oid.unwrap_or(0)),
        }
    };
    let has = match function {
        Function::HasRole => {
            let group = role_of(run, object)?;
            return Ok(Datum::Bool(authority.has_privileges_of(role, group)));
        }
        Function::HasDatabasePrivilege => authority.privileges(role, &Object::Database),
        Function::HasSchemaPrivilege => {
            let oid = match (object.as_text(), object.as_oid()) {
                (Some(name), _) => run.names().schema_by_name(name).ok_or_else(|| {
                    SqlError::new("3F000", format!("schema \"{name}\" does not exist"))
                })?,
                (None, oid) => oid.unwrap_or(0),
            };
            if !session.catalog.schemas.iter().any(|def| def.oid == oid) {
                // The system's own: to be used by all, changed by none.
                Privileges::USAGE
            } else {
                authority.privileges(role, &Object::Schema(oid))
            }
        }
        _ => {
            let oid = relation()?;
            if session.catalog.sequences.contains_key(&oid) {
                authority.privileges(role, &Object::Sequence(oid))
            } else if let Some(table) = session.catalog.table(oid) {
                match function {
                    Function::HasAnyColumnPrivilege => authority.some_column_privileges(role, oid),
                    Function::HasColumnPrivilege => {
                        let column = values.get(1);
                        let by_name = column.and_then(Datum::as_text).map(|name| {
                            let found = table.columns.iter().position(|def| def.name == name);
                            found.ok_or_else(|| SqlError::undefined_column(name))
                        });
                        let number = column.and_then(Datum::as_int).unwrap_or(0);
                        let column = match by_name {
                            Some(found) => found?,
                            None => usize::try_from(number - 1).unwrap_or(usize::MAX),
                        };
                        authority.column_privileges(role, oid, column)
                    }
                    _ => authority.privileges(role, &Object::Table(oid)),
                }
            } else {
                Privileges::SELECT
            }
        }
    };
    for name in wanted.split(',') {
        let name = name.trim().to_lowercase();
        let name = name.strip_suffix(" with grant option").unwrap_or(&name);
        let privilege = Privileges::named(name).ok_or_else(|| {
            SqlError::new("22023", format!("unrecognized privilege type: \"{name}\""))
        })?;
        if has.contains(privilege) {
            return Ok(Datum::Bool(true));
        }
    }
    Ok(Datum::Bool(false))
}

fn role_of(run: &Run<'_>, role: &Datum) -> Result<u32> {
    match (role.as_text(), role.as_oid()) {
        (Some(name), _) => {
            let found = run.session().catalog.authority.role_by_name(name);
            found.map(|role| role.oid).ok_or_else(|| no_role(name))
        }
        (None, oid) => Ok(oid.unwrap_or(0)),
    }
}
