//! What each change of the catalog needs, checked where all of them pass.

use std::sync::Arc;

use thermocline_engine::authority::{Object, Privileges};
use thermocline_engine::comment::CommentOn;
use thermocline_engine::ddl::Change;
use thermocline_engine::{Catalog, Table};

use crate::error::Result;
use crate::privilege::{Actor, denied, not_owner};
use crate::session::DATABASE_NAME;

/// 42501 unless the actor may make this change. Roles and rights are checked by their own
/// commands.
pub(super) fn check(change: &Change, actor: &Actor, catalog: &Catalog) -> Result<()> {
    if actor.is_superuser() {
        return Ok(());
    }
    let create = Privileges::CREATE | Privileges::USAGE;
    match change {
        Change::CreateSchema(_) => {
            let may = actor
                .authority()
                .privileges(actor.role(), &Object::Database)
                .contains(Privileges::CREATE);
            match may {
                true => Ok(()),
                false => Err(denied("database", DATABASE_NAME)),
            }
        }
        Change::DropSchema(name) => match owns_schema(actor, catalog, name) {
            true => Ok(()),
            false => Err(not_owner("schema", name)),
        },
        Change::CreateTable(def) => actor.need_schema(catalog, &def.schema, create),
        Change::CreateView(def) => actor.need_schema(catalog, &def.schema, create),
        Change::ReplaceView(def) => {
            owns_view(actor, catalog, def.oid, false)?;
            let old = catalog.views.get(&def.oid);
            match old.is_some_and(|old| old.schema != def.schema || old.name != def.name) {
                true => actor.need_schema(catalog, &def.schema, create),
                false => Ok(()),
            }
        }
        Change::DropView(oid) => owns_view(actor, catalog, *oid, true),
        Change::CreateSequence(def) => actor.need_schema(catalog, &def.schema, create),
        Change::DropTable(oid) => owns_table(actor, catalog, *oid, true),
        Change::Truncate { tables, .. } => {
            for oid in tables {
                if let Some(table) = catalog.table(*oid) {
                    actor.need_table(catalog, table, Privileges::TRUNCATE)?;
                }
            }
            Ok(())
        }
        Change::AlterTable(def) => {
            owns_table(actor, catalog, def.oid, false)?;
            let moved = catalog
                .table(def.oid)
                .is_some_and(|table| table.schema != def.schema || table.name != def.name);
            match moved {
                true => actor.need_schema(catalog, &def.schema, create),
                false => Ok(()),
            }
        }
        Change::CreateTrigger { table, .. } => match catalog.table(*table) {
            Some(table) => actor.need_table(catalog, table, Privileges::TRIGGER),
            None => Ok(()),
        },
        Change::CreateIndex { table, .. } | Change::DropIndex { table, .. } => {
            owns_table(actor, catalog, *table, false)
        }
        Change::AlterSequence(def) => owns_sequence(actor, catalog, def.oid),
        Change::DropSequence(oid) | Change::RestartSequence { oid, .. } => {
            owns_sequence(actor, catalog, *oid)
        }
        Change::CreateType(def) => actor.need_schema(catalog, &def.schema, create),
        Change::AlterType(def) => {
            owns_type(actor, catalog, def.oid, false)?;
            let old = catalog.types.get(&def.oid);
            match old.is_some_and(|old| old.schema != def.schema || old.name != def.name) {
                true => actor.need_schema(catalog, &def.schema, create),
                false => Ok(()),
            }
        }
        Change::DropType(oid) => owns_type(actor, catalog, *oid, true),
        Change::CreateFunction(def) => actor.need_schema(catalog, &def.schema, create),
        Change::ReplaceFunction(def) => {
            owns_function(actor, catalog, def.oid, false)?;
            let old = catalog.functions.get(&def.oid);
            match old.is_some_and(|old| old.schema != def.schema) {
                true => actor.need_schema(catalog, &def.schema, create),
                false => Ok(()),
            }
        }
        Change::DropFunction(oid) => owns_function(actor, catalog, *oid, true),
        Change::Comment { on, .. } => may_comment(on, actor, catalog),
        // Whose commands ask for a superuser themselves, and are named by them.
        Change::CreateTablespace(def) | Change::AlterTablespace(def) => {
            Err(denied("tablespace", &def.name))
        }
        Change::DropTablespace(_) => Err(denied("tablespace", "")),
        Change::Authorize(_) => Ok(()),
    }
}

/// Who owns an object may comment on it.
fn may_comment(on: &CommentOn, actor: &Actor, catalog: &Catalog) -> Result<()> {
    match on {
        CommentOn::Relation { oid, .. }
        | CommentOn::Constraint { table: oid, .. }
        | CommentOn::Trigger { table: oid, .. } => {
            let mut tables = catalog.tables.values();
            let has = |table: &&Arc<Table>| table.indexes.iter().any(|index| index.oid == *oid);
            let table = tables.find(has).map_or(*oid, |table| table.oid);
            owns_table(actor, catalog, table, false)?;
            owns_view(actor, catalog, *oid, false)?;
            owns_sequence(actor, catalog, *oid)
        }
        CommentOn::Schema(oid) => {
            let schema = catalog.schemas.iter().find(|schema| schema.oid == *oid);
            match schema.is_none_or(|schema| owns_schema(actor, catalog, &schema.name)) {
                true => Ok(()),
                false => Err(not_owner(
                    "schema",
                    schema.map_or("", |schema| &schema.name),
                )),
            }
        }
        CommentOn::Role(oid) => {
            let role = actor.authority().roles.get(oid);
            Err(denied("role", role.map_or("", |role| &role.name)))
        }
        CommentOn::Database => Err(not_owner("database", DATABASE_NAME)),
        CommentOn::Type(oid) => owns_type(actor, catalog, *oid, false),
        CommentOn::Function(oid) => owns_function(actor, catalog, *oid, false),
    }
}

fn owns_schema(actor: &Actor, catalog: &Catalog, name: &str) -> bool {
    catalog
        .schema(name)
        .is_some_and(|schema| actor.owns(&Object::Schema(schema.oid)))
}

/// To drop what is in it, a schema's owner is enough.
fn owns_table(actor: &Actor, catalog: &Catalog, oid: u32, to_drop: bool) -> Result<()> {
    let Some(table) = catalog.table(oid) else {
        return Ok(());
    };
    let owns =
        actor.owns(&Object::Table(oid)) || (to_drop && owns_schema(actor, catalog, &table.schema));
    match owns {
        true => Ok(()),
        false => Err(not_owner(table.kind(), &table.name)),
    }
}

fn owns_view(actor: &Actor, catalog: &Catalog, oid: u32, to_drop: bool) -> Result<()> {
    let Some(view) = catalog.views.get(&oid) else {
        return Ok(());
    };
    let owns =
        actor.owns(&Object::Table(oid)) || (to_drop && owns_schema(actor, catalog, &view.schema));
    match owns {
        true => Ok(()),
        false => Err(not_owner("view", &view.name)),
    }
}

fn owns_type(actor: &Actor, catalog: &Catalog, oid: u32, to_drop: bool) -> Result<()> {
    let Some(def) = catalog.types.get(&oid) else {
        return Ok(());
    };
    let owns =
        actor.owns(&Object::Type(oid)) || (to_drop && owns_schema(actor, catalog, &def.schema));
    match owns {
        true => Ok(()),
        false => Err(not_owner("type", &def.name)),
    }
}

fn owns_function(actor: &Actor, catalog: &Catalog, oid: u32, to_drop: bool) -> Result<()> {
    let Some(def) = catalog.functions.get(&oid) else {
        return Ok(());
    };
    let owns =
        actor.owns(&Object::Function(oid)) || (to_drop && owns_schema(actor, catalog, &def.schema));
    match owns {
        true => Ok(()),
        false => Err(not_owner("function", &def.name)),
    }
}

fn owns_sequence(actor: &Actor, catalog: &Catalog, oid: u32) -> Result<()> {
    let Some(sequence) = catalog.sequences.get(&oid) else {
        return Ok(());
    };
    let owns = actor.owns(&Object::Sequence(oid)) || owns_schema(actor, catalog, &sequence.schema);
    match owns {
        true => Ok(()),
        false => Err(not_owner("sequence", &sequence.name)),
    }
}

/// What a change makes, which belongs to who made it.
pub(super) enum Made {
    Object(Object),
    Schema(String),
}

impl Made {
    pub(super) fn object(self, catalog: &Catalog) -> Option<Object> {
        match self {
            Self::Object(object) => Some(object),
            Self::Schema(name) => catalog.schema(&name).map(|def| Object::Schema(def.oid)),
        }
    }
}

pub(super) fn made_by(change: &Change) -> Option<Made> {
    match change {
        Change::CreateTable(def) => Some(Made::Object(Object::Table(def.oid))),
        Change::CreateView(def) => Some(Made::Object(Object::Table(def.oid))),
        Change::CreateSequence(def) => Some(Made::Object(Object::Sequence(def.oid))),
        Change::CreateSchema(name) => Some(Made::Schema(name.clone())),
        Change::CreateType(def) => Some(Made::Object(Object::Type(def.oid))),
        Change::CreateFunction(def) => Some(Made::Object(Object::Function(def.oid))),
        _ => None,
    }
}
