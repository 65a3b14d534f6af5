//! CREATE and ALTER EXTENSION: those that are built in are there, and no others.

use thermocline_query::functions::extension::{EXTENSIONS, Extension};

use super::maintenance::accepted;
use super::statement::{Accepted, Statement};
use crate::error::{Result, SqlError};

/// CREATE EXTENSION. Its schema and version are not looked at: what is built in has no other.
pub(super) fn create(name: &str, if_not_exists: bool) -> Result<Statement> {
    let Some(extension) = built_in(name) else {
        return Err(SqlError::unsupported(
            format!("extension \"{name}\" is not available"),
            "SELECT * FROM pg_available_extensions lists those that are built in.",
        ));
    };
    // Each database of PostgreSQL begins with this one, and with none of the others.
    if extension.name == "plpgsql" && !if_not_exists {
        let message = format!("extension \"{name}\" already exists");
        return Err(SqlError::new("42710", message));
    }
    Ok(Statement::Accepted(Accepted {
        notice: Some(match if_not_exists {
            true => format!("extension \"{name}\" already exists, skipping").into(),
            false => format!("extension \"{name}\" is built in").into(),
        }),
        ..accepted("CREATE EXTENSION")
    }))
}

/// ALTER EXTENSION … UPDATE, and COMMENT ON EXTENSION: nothing to do.
pub(super) fn unchanged(tag: &'static str, name: &str) -> Result<Statement> {
    match built_in(name) {
        Some(_) => Ok(Statement::Accepted(accepted(tag))),
        None => {
            let message = format!("extension \"{name}\" does not exist");
            Err(SqlError::new("42704", message))
        }
    }
}

/// 2BP01 for an extension that is built in.
pub(super) fn may_be_dropped(name: &str) -> Result<()> {
    match built_in(name) {
        None => Ok(()),
        Some(_) => {
            let message = format!(
                "cannot drop extension {name} because it is required by the database system"
            );
            Err(SqlError::new("2BP01", message))
        }
    }
}

fn built_in(name: &str) -> Option<&'static Extension> {
    EXTENSIONS.iter().find(|extension| extension.name == name)
}
