//! The changes that a DDL statement may make. SQL's DDL is translated to these
//! above; `Database::ddl` carries them out inside a transaction.

use crate::authority::Authority;
use crate::catalog::{Catalog, IndexDef, SequenceDef, TableDef};
use crate::error::{Error, Result};

/// One change of the catalog.
#[derive(Debug, Clone)]
pub enum Change {
    /// Makes a schema.
    CreateSchema(String),
    /// Drops an empty schema (2BP01 otherwise).
    DropSchema(String),
    /// Makes a table; object ids come from `Database::allocate_oid`.
    CreateTable(TableDef),
    /// Drops a table and the sequences that its columns own.
    DropTable(u32),
    /// Empties tables at once by giving them new storage.
    Truncate {
        /// Object ids.
        tables: Vec<u32>,
        /// Owned sequences start again.
        restart_identity: bool,
    },
    /// Replaces a table's definition: new columns at the end, names, defaults,
    /// checks, options. Indexes keep their columns; their names may change.
    AlterTable(TableDef),
    /// Builds an index over what is there; duplicates are a unique violation.
    CreateIndex {
        /// The table's object id.
        table: u32,
        /// The index; a primary key becomes the first one.
        index: IndexDef,
    },
    /// Drops an index.
    DropIndex {
        /// The table's object id.
        table: u32,
        /// The index's object id.
        index: u32,
    },
    /// Makes a sequence.
    CreateSequence(SequenceDef),
    /// Replaces a sequence's definition; its value stays.
    AlterSequence(SequenceDef),
    /// Drops a sequence.
    DropSequence(u32),
    /// Replaces the roles and rights. Those of objects that are dropped go by themselves.
    Authorize(Box<Authority>),
}

/// Takes an empty schema out of a catalog.
pub(crate) fn drop_schema(catalog: &mut Catalog, name: &str) -> Result<()> {
    if catalog.schema(name).is_none() {
        return Err(Error::catalog(
            "3F000",
            format!("schema \"{name}\" does not exist"),
        ));
    }
    let used = catalog.tables.values().any(|t| t.def.schema == name)
        || catalog.sequences.values().any(|s| s.schema == name);
    if used {
        return Err(Error::catalog(
            "2BP01",
            format!("cannot drop schema {name} because other objects depend on it"),
        ));
    }
    catalog.schemas.retain(|s| s.name != name);
    Ok(())
}
