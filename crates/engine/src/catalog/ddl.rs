//! The changes that a DDL statement may make. SQL's DDL is translated to these
//! above; `Database::ddl` carries them out inside a transaction.

use std::sync::Arc;

use crate::catalog::authority::Authority;
use crate::catalog::comment::CommentOn;
use crate::catalog::function::FunctionDef;
use crate::catalog::tablespace::TablespaceDef;
use crate::catalog::trigger::TriggerDef;
use crate::catalog::user_type::TypeDef;
use crate::catalog::view::ViewDef;
use crate::catalog::{Catalog, IndexDef, SequenceDef, Table, TableDef};
use crate::ground::error::{Error, Result};

/// Makes the tuple of a row that is written anew: the definition that the row had and its tuple,
/// the one that it gets, and where the new tuple goes.
pub type NewTuple<'a> = dyn Fn(&Table, &[u8], &Table, &mut Vec<u8>) -> Result<()> + Sync + 'a;

/// One change of the catalog.
#[derive(Debug, Clone)]
pub enum Change {
    /// Makes a schema.
    CreateSchema(String),
    /// Drops an empty schema (2BP01 otherwise).
    DropSchema(String),
    /// Makes a table; object ids come from `Database::allocate_oid`.
    CreateTable(TableDef),
    /// Drops a table that no view reads, and the sequences that its columns own.
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
    /// Makes a trigger, or replaces the one of its name.
    CreateTrigger {
        /// The table's object id.
        table: u32,
        /// The trigger.
        trigger: TriggerDef,
    },
    /// Makes a sequence.
    CreateSequence(SequenceDef),
    /// Replaces a sequence's definition; its value stays.
    AlterSequence(SequenceDef),
    /// Has a sequence begin again at a value.
    RestartSequence {
        /// Its number.
        oid: u32,
        /// The next value.
        value: i64,
    },
    /// Drops a sequence.
    DropSequence(u32),
    /// Makes a view.
    CreateView(ViewDef),
    /// Replaces a view's definition: its query, more columns at the end, names.
    ReplaceView(ViewDef),
    /// Drops a view that no other reads.
    DropView(u32),
    /// Makes a type.
    CreateType(TypeDef),
    /// Replaces a type's definition: names, more labels, labels' names.
    AlterType(TypeDef),
    /// Drops a type that no column is of.
    DropType(u32),
    /// Makes a function.
    CreateFunction(FunctionDef),
    /// Replaces a function's definition; its name, arguments and result stay.
    ReplaceFunction(FunctionDef),
    /// Drops a function.
    DropFunction(u32),
    /// Defines a tablespace, whose place is there ([`Parts::make_tablespace`](crate::Parts::make_tablespace)).
    CreateTablespace(TablespaceDef),
    /// Replaces a tablespace's definition: its name, its options.
    AlterTablespace(TablespaceDef),
    /// Drops a tablespace that no table has.
    DropTablespace(u32),
    /// Puts a comment on an object, in the place of the one it has; None: it has none then.
    Comment {
        /// The object.
        on: CommentOn,
        /// The comment.
        text: Option<String>,
    },
    /// Replaces the roles and rights. Those of objects that are dropped go by themselves.
    Authorize(Box<Authority>),
}

impl Change {
    /// What of it takes memory for good, as messages call it.
    pub(crate) fn what_grows(&self) -> Option<&'static str> {
        match self {
            Self::CreateTable(_) | Self::CreateIndex { .. } => Some("a new table or index"),
            Self::CreateView(_) | Self::ReplaceView(_) => Some("a new view"),
            Self::CreateFunction(_) | Self::ReplaceFunction(_) => Some("a new function"),
            Self::CreateType(_) => Some("a new type"),
            Self::CreateTrigger { .. } => Some("a new trigger"),
            _ => None,
        }
    }
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
        || catalog.sequences.values().any(|s| s.schema == name)
        || catalog.views.values().any(|v| v.schema == name)
        || catalog.types.values().any(|t| t.schema == name)
        || catalog.functions.values().any(|f| f.schema == name);
    if used {
        return Err(Error::catalog(
            "2BP01",
            format!("cannot drop schema {name} because other objects depend on it"),
        ));
    }
    catalog.schemas.retain(|s| s.name != name);
    Ok(())
}

/// 2BP01 where a view reads the relation that is to be dropped.
pub(crate) fn is_read_by_none(catalog: &Catalog, oid: u32) -> Result<()> {
    match catalog.views_over(oid).next() {
        None => Ok(()),
        Some(view) => Err(Error::catalog(
            "2BP01",
            format!(
                "cannot drop the relation because view {} depends on it",
                view.name
            ),
        )),
    }
}

/// Puts a view into a catalog, new or in the place of the one of its number.
pub(crate) fn put_view(catalog: &mut Catalog, def: ViewDef) -> Result<()> {
    let old = catalog.views.remove(&def.oid);
    let stays = old.is_some_and(|old| old.schema == def.schema && old.name == def.name);
    if !stays {
        free_row_name(catalog, &def.schema, &def.name)?;
        has_schema(catalog, &def.schema)?;
    }
    catalog.views.insert(def.oid, Arc::new(def));
    Ok(())
}

/// Puts a type into a catalog, new or in the place of the one of its number.
pub(crate) fn put_type(catalog: &mut Catalog, def: Arc<TypeDef>) -> Result<()> {
    let old = catalog.types.remove(&def.oid);
    let stays = old.is_some_and(|old| old.schema == def.schema && old.name == def.name);
    if !stays {
        has_schema(catalog, &def.schema)?;
        if catalog.type_by_name(&def.schema, &def.name).is_some() {
            let message = format!("type \"{}\" already exists", def.name);
            return Err(Error::catalog("42710", message));
        }
    }
    catalog.types.insert(def.oid, def);
    Ok(())
}

/// 3F000 unless there is such a schema.
pub(crate) fn has_schema(catalog: &Catalog, schema: &str) -> Result<()> {
    match catalog.schema(schema) {
        Some(_) => Ok(()),
        None => Err(Error::catalog(
            "3F000",
            format!("schema \"{schema}\" does not exist"),
        )),
    }
}

/// 42P07 if a relation has the name.
pub(crate) fn free_name(catalog: &Catalog, schema: &str, name: &str) -> Result<()> {
    match catalog.relation_exists(schema, name) {
        true => Err(name_taken(name)),
        false => Ok(()),
    }
}

/// 42P07 or 42710 unless a table or view may have the name: its rows' type has it, too.
pub(crate) fn free_row_name(catalog: &Catalog, schema: &str, name: &str) -> Result<()> {
    free_name(catalog, schema, name)?;
    match catalog.type_by_name(schema, name) {
        Some(_) => Err(Error::catalog(
            "42710",
            format!("type \"{name}\" already exists"),
        )),
        None => Ok(()),
    }
}

/// 42P07 or 42710 unless the names that a table and its indexes take anew are free.
pub(crate) fn is_free_for(catalog: &Catalog, new: &TableDef, old: &TableDef) -> Result<()> {
    let moves = new.schema != old.schema;
    if moves {
        has_schema(catalog, &new.schema)?;
    }
    if moves || new.name != old.name {
        free_row_name(catalog, &new.schema, &new.name)?;
    }
    let had = |name: &str| !moves && old.indexes.iter().any(|index| index.name == name);
    let names = new.indexes.iter().map(|index| index.name.as_str());
    for name in names.filter(|name| !had(name)) {
        free_name(catalog, &new.schema, name)?;
    }
    Ok(())
}

/// Puts a sequence into a catalog, in the place of the one of its number.
pub(crate) fn put_sequence(catalog: &mut Catalog, def: SequenceDef) -> Result<()> {
    let old = catalog.sequences.get(&def.oid);
    let stays = old.is_some_and(|old| old.schema == def.schema && old.name == def.name);
    if !stays {
        free_name(catalog, &def.schema, &def.name)?;
        has_schema(catalog, &def.schema)?;
    }
    catalog.sequences.insert(def.oid, Arc::new(def));
    Ok(())
}

/// 42P07
pub(crate) fn name_taken(name: &str) -> Error {
    Error::catalog("42P07", format!("relation \"{name}\" already exists"))
}

/// Puts a tablespace into a catalog, new or in the place of the one of its number.
pub(crate) fn put_tablespace(catalog: &mut Catalog, def: TablespaceDef) -> Result<()> {
    catalog.tablespaces.remove(&def.oid);
    if catalog.tablespace_by_name(&def.name).is_some() {
        let message = format!("tablespace \"{}\" already exists", def.name);
        return Err(Error::catalog("42710", message));
    }
    catalog.tablespaces.insert(def.oid, Arc::new(def));
    Ok(())
}

/// Takes a tablespace out of a catalog.
pub(crate) fn drop_tablespace(catalog: &mut Catalog, oid: u32) -> Result<()> {
    let mut tables = catalog.tables.values();
    let used = tables.find(|table| table.def.tablespace == oid);
    if let (Some(table), Some(def)) = (used, catalog.tablespaces.get(&oid)) {
        return Err(Error::Refused {
            sqlstate: "55000",
            message: format!(
                "tablespace \"{}\" is not empty: table \"{}\" belongs there",
                def.name, table.def.name
            ),
            hint: "Move its tables first: ALTER TABLE ... SET TABLESPACE pg_default.",
        });
    }
    catalog.tablespaces.remove(&oid);
    Ok(())
}

/// 42704 unless there is a tablespace of this number, or it is 0.
pub(crate) fn has_tablespace(catalog: &Catalog, oid: u32) -> Result<()> {
    match oid == 0 || catalog.tablespaces.contains_key(&oid) {
        true => Ok(()),
        false => Err(Error::catalog(
            "42704",
            format!("tablespace with OID {oid} does not exist"),
        )),
    }
}

/// Takes a function out of a catalog, 2BP01 where a trigger calls it.
pub(crate) fn drop_function(catalog: &mut Catalog, oid: u32) -> Result<()> {
    let mut triggers = catalog.tables.values().flat_map(|table| &table.triggers);
    if let Some(trigger) = triggers.find(|trigger| trigger.function == oid) {
        let message = format!(
            "cannot drop the function because trigger {} depends on it",
            trigger.name
        );
        return Err(Error::catalog("2BP01", message));
    }
    catalog.functions.remove(&oid);
    Ok(())
}

/// A table's definition with a trigger, new or in the place of the one of its name.
pub(crate) fn with_trigger(table: &TableDef, trigger: TriggerDef) -> TableDef {
    let mut def = table.clone();
    def.triggers.retain(|other| other.name != trigger.name);
    def.triggers.push(trigger);
    def.triggers.sort_by(|one, other| one.name.cmp(&other.name));
    def
}

/// Puts a function into a catalog, new or in the place of the one of its number.
pub(crate) fn put_function(catalog: &mut Catalog, def: FunctionDef) -> Result<()> {
    catalog.functions.remove(&def.oid);
    has_schema(catalog, &def.schema)?;
    let mut functions = catalog.functions.values();
    if functions.any(|other| other.is_called_as(&def)) {
        let message = format!(
            "function \"{}\" already exists with same argument types",
            def.name
        );
        return Err(Error::catalog("42723", message));
    }
    catalog.functions.insert(def.oid, Arc::new(def));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::function::{FunctionArgument, FunctionVolatility};

    fn named(oid: u32, name: &str, types: &[u32]) -> FunctionDef {
        let argument = |type_oid: &u32| FunctionArgument {
            name: None,
            type_oid: *type_oid,
            default: None,
        };
        FunctionDef {
            oid,
            schema: "public".into(),
            name: name.into(),
            arguments: types.iter().map(argument).collect(),
            result: 23,
            returns_set: false,
            columns: Vec::new(),
            strict: false,
            variadic: false,
            volatility: FunctionVolatility::Volatile,
            body: "select 1".into(),
            language: Default::default(),
            out: None,
            procedure: None,
            definer: false,
            settings: Vec::new(),
        }
    }

    #[test]
    fn functions_of_one_name_differ_in_their_arguments() {
        let mut catalog = Catalog::empty();
        put_function(&mut catalog, named(20_000, "f", &[23])).unwrap();
        put_function(&mut catalog, named(20_001, "f", &[25])).unwrap();
        let error = put_function(&mut catalog, named(20_002, "f", &[23])).unwrap_err();
        assert_eq!(error.sqlstate(), "42723");
        // In its own place.
        put_function(&mut catalog, named(20_000, "f", &[23])).unwrap();
        assert_eq!(catalog.functions_named("public", "f").count(), 2);
        assert_eq!(catalog.functions_named("public", "g").count(), 0);
    }

    #[test]
    fn a_catalog_keeps_functions() {
        let mut catalog = Catalog::empty();
        put_function(&mut catalog, named(20_000, "f", &[23, 25])).unwrap();
        let image = catalog.image(30_000, 1);
        let text = serde_json::to_string(&image).unwrap();
        let read: crate::catalog::CatalogImage = serde_json::from_str(&text).unwrap();
        let again = Catalog::from_image(&read, 4, &catalog);
        assert_eq!(again.functions, catalog.functions);
    }
}
