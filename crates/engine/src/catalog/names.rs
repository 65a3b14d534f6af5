//! The names of a catalog: of its tables, indexes, sequences and views, which share one space in
//! each schema.

use std::sync::Arc;

use imbl::OrdMap;

use super::objects_by_number::changes;
use super::view::deepest;
use super::{Catalog, IndexDef, SequenceDef, Table, TableDef, ViewDef};

/// What has a name, by schema and name.
pub(super) type Names = OrdMap<String, OrdMap<String, Named>>;

/// What has a name: its number; of an index that of its table before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Named {
    Table(u32),
    Index(u32, u32),
    Sequence(u32),
    View(u32),
}

/// The names of a table and its indexes: schema, name, what has it.
fn names_of_table(def: &TableDef) -> impl Iterator<Item = (String, String, Named)> {
    let index = |index: &IndexDef| (index.name.clone(), Named::Index(def.oid, index.oid));
    let table = (def.name.clone(), Named::Table(def.oid));
    let all = std::iter::once(table).chain(def.indexes.iter().map(index));
    all.map(|(name, named)| (def.schema.clone(), name, named))
}

impl Named {
    fn number(self) -> u32 {
        match self {
            Named::Table(oid) | Named::Index(_, oid) | Named::Sequence(oid) | Named::View(oid) => {
                oid
            }
        }
    }
}

impl Catalog {
    /// Has the names of its objects, and what else follows from them, where it has those of
    /// `old`.
    pub(crate) fn index_names(&mut self, old: &Catalog) {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        let schemas = self.schemas.iter().map(|schema| schema.oid);
        let roles = self.authority.roles.keys().copied();
        let tablespaces = self.tablespaces.keys().copied();
        let mut last = schemas.chain(roles).chain(tablespaces).max();
        let mut views = !self.views.ptr_eq(&old.views);
        for (_, before, after) in changes(&old.tables, &self.tables) {
            let triggers = after.into_iter().flat_map(|table| &table.def.triggers);
            last = last.max(triggers.map(|trigger| trigger.oid).max());
            let both = before.into_iter().chain(after);
            views |= both.into_iter().any(|table| table.view().is_some());
            gone.extend(
                before
                    .into_iter()
                    .flat_map(|table| names_of_table(&table.def)),
            );
            new.extend(
                after
                    .into_iter()
                    .flat_map(|table| names_of_table(&table.def)),
            );
        }
        let name = |def: &SequenceDef| {
            (
                def.schema.clone(),
                def.name.clone(),
                Named::Sequence(def.oid),
            )
        };
        for (_, before, after) in changes(&old.sequences, &self.sequences) {
            gone.extend(before.map(|def| name(def)));
            new.extend(after.map(|def| name(def)));
        }
        let name = |def: &ViewDef| (def.schema.clone(), def.name.clone(), Named::View(def.oid));
        for (_, before, after) in changes(&old.views, &self.views) {
            gone.extend(before.map(|def| name(def)));
            new.extend(after.map(|def| name(def)));
        }
        for (schema, name, _) in gone {
            if let Some(names) = self.names.get_mut(&schema) {
                names.remove(&name);
            }
        }
        for (schema, name, named) in new {
            last = last.max(Some(named.number()));
            self.names.entry(schema).or_default().insert(name, named);
        }
        let end = last.map_or(0, |last| u64::from(last) + 1);
        self.numbers_end = self.numbers_end.max(end);
        if views {
            let all: Vec<_> = self.all_views().collect();
            self.deepest_view = deepest(&self.views, &all);
        }
    }

    pub(super) fn named(&self, schema: &str, name: &str) -> Option<Named> {
        self.names.get(schema)?.get(name).copied()
    }

    /// The table of this name.
    pub fn table_by_name(&self, schema: &str, name: &str) -> Option<&Arc<Table>> {
        match self.named(schema, name)? {
            Named::Table(oid) => self.tables.get(&oid),
            _ => None,
        }
    }

    /// The sequence of this name.
    pub fn sequence_by_name(&self, schema: &str, name: &str) -> Option<&Arc<SequenceDef>> {
        match self.named(schema, name)? {
            Named::Sequence(oid) => self.sequences.get(&oid),
            _ => None,
        }
    }

    /// The view of this name.
    pub fn view_by_name(&self, schema: &str, name: &str) -> Option<&Arc<ViewDef>> {
        match self.named(schema, name)? {
            Named::View(oid) => self.views.get(&oid),
            _ => None,
        }
    }

    /// The index of this name: its table and its position there.
    pub fn index_by_name(&self, schema: &str, name: &str) -> Option<(&Arc<Table>, usize)> {
        match self.named(schema, name)? {
            Named::Index(table, oid) => {
                let table = self.tables.get(&table)?;
                let position = table.def.indexes.iter().position(|i| i.oid == oid)?;
                Some((table, position))
            }
            _ => None,
        }
    }

    /// Whether a table, index, sequence or view has this name.
    pub fn relation_exists(&self, schema: &str, name: &str) -> bool {
        self.named(schema, name).is_some()
    }
}
