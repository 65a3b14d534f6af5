//! What the objects of a catalog are to each other: which of them are there, what is of which type,
//! what is locked for which.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use thermocline_values::types::DataType;

use super::definitions::TableDef;
use super::{Catalog, Table};
use crate::catalog::authority::{Authority, Object};
use crate::catalog::comment::{CommentOn, Comments};
use crate::catalog::function::FunctionDef;
use crate::catalog::objects_by_number::retain;
use crate::catalog::table_lock::LockedObject;
use crate::catalog::user_type::{TypeDef, TypeKind};
use crate::ground::error::{Error, Result};

impl Catalog {
    /// The functions of this name in a schema.
    pub fn functions_named(
        &self,
        schema: &str,
        name: &str,
    ) -> impl Iterator<Item = &Arc<FunctionDef>> {
        let all = self.functions.values();
        all.filter(move |def| def.name == name && def.schema == schema)
    }
}

impl Catalog {
    /// Tells all types.
    pub fn tell_types(&self) {
        self.types.values().for_each(|def| def.tell());
    }

    /// The type of this name.
    pub fn type_by_name(&self, schema: &str, name: &str) -> Option<&Arc<TypeDef>> {
        let mut types = self.types.values();
        types.find(|def| def.name == name && def.schema == schema)
    }

    /// The type that a number is of, as itself or as that of its arrays.
    pub fn type_of(&self, oid: u32) -> Option<&Arc<TypeDef>> {
        let of_arrays = || self.types.get(&oid.wrapping_sub(1));
        self.types.get(&oid).or_else(of_arrays)
    }
}

/// The numbers of the types of a table's columns that are not built into the storage.
pub(crate) fn types_of<'a>(catalog: &'a Catalog, def: &'a TableDef) -> impl Iterator<Item = u32> {
    let columns = def.live_columns().map(|(_, column)| column);
    columns.flat_map(|column| {
        let stored = match column.data_type {
            DataType::Other { oid, .. } => catalog.type_of(oid).map(|def| def.oid),
            _ => None,
        };
        stored.into_iter().chain(column.domain)
    })
}

/// The users' types that a type is made of.
pub(crate) fn types_within<'a>(
    catalog: &'a Catalog,
    def: &'a TypeDef,
) -> impl Iterator<Item = u32> {
    let below = match &def.kind {
        TypeKind::Domain(domain) => Some(domain.below),
        TypeKind::Enum(_) | TypeKind::Composite(_) => None,
    };
    let attributes = def.attributes().map(|attribute| attribute.type_oid);
    let all = attributes.chain(below);
    all.filter_map(|oid| Some(catalog.type_of(oid)?.oid))
}

/// 2BP01 where a column is of the type that is to be dropped.
pub(crate) fn is_of_none(catalog: &Catalog, oid: u32) -> Result<()> {
    let has = |def: &TableDef| types_of(catalog, def).any(|of| of == oid);
    let mut tables = catalog.tables.values();
    let table = tables.find(|table| has(&table.def));
    let of_view = |oid: u32| catalog.type_of(oid).map(|def| def.oid);
    let mut views = catalog.all_views();
    let view = views.find(|view| {
        let mut columns = view.columns.iter();
        columns.any(|column| of_view(column.type_oid) == Some(oid))
            || view.types.iter().any(|named| named.oid == oid)
    });
    let mut types = catalog.types.values();
    let composite = types.find(|def| types_within(catalog, def).any(|of| of == oid));
    let user = table.map(|table| &table.def.name);
    let user = user.or(composite.map(|def| &def.name));
    let mut functions = catalog.functions.values();
    let array = catalog.types.get(&oid).map_or(oid, |def| def.array());
    let function = functions.find(|def| def.names_type(oid) || def.names_type(array));
    let user = user.or(function.map(|def| &def.name));
    match user.or(view.map(|view| &view.name)) {
        None => Ok(()),
        Some(name) => Err(Error::catalog(
            "2BP01",
            format!("cannot drop the type because {name} depends on it"),
        )),
    }
}

/// The catalog's own, without the rights of what is not in the catalog any more.
pub(crate) fn authority_of(catalog: &Catalog) -> Arc<Authority> {
    let mut authority = Arc::clone(&catalog.authority);
    let gone = |object: &Object| !exists(object, catalog);
    let schemas = authority.defaults.keys().filter_map(|of| of.schema);
    let mut schemas = schemas.map(Object::Schema);
    if schemas.any(|schema| gone(&schema)) || authority.objects().any(|(object, _)| gone(object)) {
        let kept = Arc::make_mut(&mut authority);
        kept.keep_objects(|object| !gone(object));
    }
    authority
}

fn exists(object: &Object, catalog: &Catalog) -> bool {
    match object {
        Object::Table(oid) => catalog.tables.contains_key(oid) || catalog.views.contains_key(oid),
        Object::Sequence(oid) => catalog.sequences.contains_key(oid),
        Object::Schema(oid) => catalog.schemas.iter().any(|schema| schema.oid == *oid),
        Object::Type(oid) => catalog.types.contains_key(oid),
        Object::Function(oid) => catalog.functions.contains_key(oid),
        Object::Procedure(_) | Object::Database => true,
    }
}

/// What is locked for a comment.
pub(crate) enum Commented {
    /// A table.
    Table(u32),
    /// Something else, if it is there.
    Object(Option<LockedObject>),
}

impl CommentOn {
    /// What whoever comments locks.
    pub(crate) fn locked(&self, catalog: &Catalog) -> Commented {
        let oid = match self {
            Self::Relation { oid, .. }
            | Self::Constraint { table: oid, .. }
            | Self::Trigger { table: oid, .. } => *oid,
            Self::Schema(oid) => {
                let mut schemas = catalog.schemas.iter();
                let named = schemas.find(|schema| schema.oid == *oid);
                let named = named.map(|schema| LockedObject::Schema(schema.name.clone()));
                return Commented::Object(named);
            }
            Self::Type(oid) => return Commented::Object(Some(LockedObject::Type(*oid))),
            Self::Function(oid) => {
                let function = catalog.functions.get(oid);
                let named = function
                    .map(|def| LockedObject::Function(def.schema.clone(), def.name.clone()));
                return Commented::Object(named);
            }
            Self::Role(_) | Self::Database => {
                return Commented::Object(Some(LockedObject::Authority));
            }
        };
        let of_index = || {
            let mut all = catalog.tables.values();
            let has = |table: &&Arc<Table>| table.indexes.iter().any(|index| index.oid == oid);
            all.find(has).map(|table| table.oid)
        };
        match catalog.table(oid).map(|table| table.oid).or_else(of_index) {
            Some(table) => Commented::Table(table),
            None if catalog.views.contains_key(&oid) => {
                Commented::Object(Some(LockedObject::View(oid)))
            }
            None => Commented::Object(Some(LockedObject::Sequence(oid))),
        }
    }
}

/// The comments of a catalog without those of objects that it has not.
pub(crate) fn comments_of(catalog: &Catalog) -> Arc<Comments> {
    let mut comments = Arc::clone(&catalog.comments);
    let indexes: OnceCell<BTreeSet<u32>> = OnceCell::new();
    let is_index = |oid: &u32| {
        let all = catalog.tables.values().flat_map(|table| &table.indexes);
        let all = || all.map(|index| index.oid).collect();
        indexes.get_or_init(all).contains(oid)
    };
    if !comments
        .keys()
        .all(|on| is_commented(on, catalog, is_index))
    {
        let there = |on: &CommentOn, _: &String| is_commented(on, catalog, is_index);
        retain(Arc::make_mut(&mut comments), there);
    }
    comments
}

fn is_commented(on: &CommentOn, catalog: &Catalog, is_index: impl Fn(&u32) -> bool) -> bool {
    match on {
        CommentOn::Relation { oid, column } => {
            let table = catalog.tables.get(oid).map(|table| table.columns.len());
            let view = catalog.views.get(oid).map(|view| view.columns.len());
            match table.or(view) {
                Some(columns) => *column as usize <= columns,
                None => catalog.sequences.contains_key(oid) || is_index(oid),
            }
        }
        CommentOn::Constraint { table, name } => {
            let table = catalog.tables.get(table);
            table.is_some_and(|table| table.has_constraint(name))
        }
        CommentOn::Schema(oid) => catalog.schemas.iter().any(|schema| schema.oid == *oid),
        CommentOn::Role(oid) => catalog.authority.roles.contains_key(oid),
        CommentOn::Database => true,
        CommentOn::Type(oid) => catalog.types.contains_key(oid),
        CommentOn::Function(oid) => catalog.functions.contains_key(oid),
        CommentOn::Trigger { table, name } => {
            let table = catalog.tables.get(table);
            table.is_some_and(|table| table.triggers.iter().any(|of| of.name == *name))
        }
    }
}

impl Catalog {
    /// The tables without partitions among a table and those below it: where its rows lie.
    #[must_use]
    pub fn leaves_of(&self, table: &Arc<Table>) -> Vec<Arc<Table>> {
        let Some(by) = &table.partitioned else {
            return vec![Arc::clone(table)];
        };
        let below = by.partitions.iter();
        let below = below.filter_map(|partition| self.table(partition.table));
        below.flat_map(|table| self.leaves_of(table)).collect()
    }

    /// The tables that a table is a partition of, the nearest first.
    pub fn partition_ancestors(&self, table: &Table) -> impl Iterator<Item = &Arc<Table>> {
        let above = |table: &Table| table.partition_of.and_then(|oid| self.table(oid));
        std::iter::successors(above(table), move |table| above(table))
    }
}
