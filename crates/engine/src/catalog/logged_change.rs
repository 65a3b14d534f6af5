//! What a definition's commit has changed in the catalog, as it is logged.
//!
//! A record of the log has the objects that a commit has made or changed, and the numbers of
//! those that it has dropped. So its length is that of the change, not that of the catalog, and a
//! restart does as much for it. Commits of definitions hold all partitions, so that their records
//! are in the order in which they came into force.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::authority::AuthorityChange;
use super::comment::CommentOn;
use super::function::FunctionDef;
use super::objects_by_number::{Objects, apply_entries, changed_entries, changes};
use super::tablespace::TablespaceDef;
use super::user_type::TypeDef;
use super::view::ViewDef;
use super::{Catalog, SchemaDef, SequenceDef, Table, TableDef};
use crate::ground::error::{Error, Result};

/// Of one kind of objects, those that were made or changed, and the numbers of those that are
/// gone.
#[derive(Debug, Serialize, Deserialize)]
struct Kind<D> {
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    put: Vec<D>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<u32>,
}

impl<D> Default for Kind<D> {
    fn default() -> Self {
        Kind {
            put: Vec::new(),
            gone: Vec::new(),
        }
    }
}

impl<D: Clone> Kind<D> {
    fn between<T: PartialEq>(old: &Objects<T>, new: &Objects<T>, def: impl Fn(&T) -> &D) -> Self {
        let mut kind = Self::default();
        for (oid, _, after) in changes(old, new) {
            match after {
                Some(object) => kind.put.push(def(object).clone()),
                None => kind.gone.push(oid),
            }
        }
        kind
    }

    fn apply<T>(self, to: &mut Objects<T>, of: impl Fn(D) -> (u32, Arc<T>)) {
        for oid in self.gone {
            to.remove(&oid);
        }
        for def in self.put {
            let (oid, object) = of(def);
            to.insert(oid, object);
        }
    }
}

/// What a commit has changed in a catalog, as it is logged.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CatalogChange {
    /// The version of the catalog that was changed. It is the first, by which a record is told
    /// from one of a whole catalog.
    since: u64,
    /// That of the changed one.
    version: u64,
    /// As in a whole catalog's image.
    pub next_oid: u32,
    pub next_storage: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarted: Vec<u32>,
    /// All schemas, where any has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schemas: Option<Vec<SchemaDef>>,
    #[serde(default)]
    tables: Kind<TableDef>,
    #[serde(default)]
    sequences: Kind<SequenceDef>,
    #[serde(default)]
    views: Kind<ViewDef>,
    #[serde(default)]
    types: Kind<TypeDef>,
    #[serde(default)]
    functions: Kind<FunctionDef>,
    #[serde(default)]
    tablespaces: Kind<TablespaceDef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    authority: Option<AuthorityChange>,
    /// Comments that were made or changed; without a text, those that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    comments: Vec<(CommentOn, Option<String>)>,
}

/// How a record of a change begins, and one of a whole catalog does not.
pub(crate) const CHANGE_BEGINS: &[u8] = b"{\"since\":";

impl CatalogChange {
    /// What makes `old` to `new`.
    pub fn between(old: &Catalog, new: &Catalog) -> Self {
        let authority = (!Arc::ptr_eq(&old.authority, &new.authority))
            .then(|| AuthorityChange::between(&old.authority, &new.authority));
        CatalogChange {
            since: old.version,
            version: new.version,
            next_oid: 0,
            next_storage: 0,
            restarted: Vec::new(),
            schemas: (old.schemas != new.schemas).then(|| new.schemas.clone()),
            tables: Kind::between(&old.tables, &new.tables, |table| &table.def),
            sequences: Kind::between(&old.sequences, &new.sequences, |def| def),
            views: Kind::between(&old.views, &new.views, |def| def),
            types: Kind::between(&old.types, &new.types, |def| def),
            functions: Kind::between(&old.functions, &new.functions, |def| def),
            tablespaces: Kind::between(&old.tablespaces, &new.tablespaces, |def| def),
            authority,
            comments: match Arc::ptr_eq(&old.comments, &new.comments) {
                true => Vec::new(),
                false => changed_entries(&old.comments, &new.comments),
            },
        }
    }

    /// Checks what was read; `place` is where.
    pub fn check(&self, place: &str) -> Result<()> {
        let (mut tables, mut sequences) = (self.tables.put.iter(), self.sequences.put.iter());
        tables.try_for_each(|table| table.check(place))?;
        sequences.try_for_each(|sequence| sequence.check(place))
    }

    /// The tables that were made or changed.
    pub fn tables(&self) -> &[TableDef] {
        &self.tables.put
    }

    /// The catalog that it makes of `old`, in as many partitions.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where `old` is not the catalog that was changed.
    pub fn apply(self, old: &Catalog, partitions: u16) -> Result<Catalog> {
        if old.version != self.since {
            return Err(Error::Corrupt(format!(
                "catalog in the log: it changes version {}, and version {} comes before it",
                self.since, old.version
            )));
        }
        let mut new = old.clone();
        new.version = self.version;
        if let Some(schemas) = self.schemas {
            new.schemas = schemas;
        }
        self.tables.apply(&mut new.tables, |def| {
            (def.oid, Arc::new(Table::new(def, partitions)))
        });
        (self.sequences).apply(&mut new.sequences, |def| (def.oid, Arc::new(def)));
        (self.views).apply(&mut new.views, |def| (def.oid, Arc::new(def)));
        (self.types).apply(&mut new.types, |def| (def.oid, Arc::new(def)));
        (self.functions).apply(&mut new.functions, |def| (def.oid, Arc::new(def)));
        (self.tablespaces).apply(&mut new.tablespaces, |def| (def.oid, Arc::new(def)));
        if let Some(change) = self.authority {
            change.apply(Arc::make_mut(&mut new.authority));
        }
        if !self.comments.is_empty() {
            apply_entries(Arc::make_mut(&mut new.comments), self.comments);
        }
        new.index_names(old);
        Ok(new)
    }
}

#[cfg(test)]
mod tests;
