//! A changed catalog that only its transaction sees.
//!
//! Several transactions may change the catalog at the same time, each other objects: what it
//! changes it has locked. What others commit meanwhile each sees with its own changes on top
//! ([`Draft::catalog`]), and so its commit replaces nothing of theirs.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::catalog::objects_by_number::{Objects, changes};
use crate::catalog::sequence::Restarted;
use crate::catalog::{Catalog, Table, comment};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Draft {
    view: Mutex<View>,
    /// Storages that this transaction made; dropped with it.
    pub made: Vec<u32>,
    /// Storages that are dropped when it commits.
    pub dropped: Vec<u32>,
    /// Tables that it changes, as others see them.
    pub held: Vec<Arc<Table>>,
    /// Indexes to take out at commit: storage, index object id.
    pub dropped_indexes: Vec<(u32, u32)>,
    /// Indexes built; taken out again at rollback.
    pub made_indexes: Vec<(u32, u32)>,
    /// Sequences that this transaction made.
    pub made_sequences: Vec<u32>,
    /// Sequences that begin again at commit.
    pub restarted: Vec<Restarted>,
}

/// The committed catalog that it knows, and what it has made of that.
#[derive(Debug, Clone)]
struct View {
    base: Arc<Catalog>,
    own: Arc<Catalog>,
    /// Roles or rights are its own; it has locked them.
    authorizes: bool,
}

/// How far a draft of the catalog had come.
#[derive(Debug, Clone)]
pub(crate) struct DraftMark {
    view: View,
    pub made: usize,
    pub dropped: usize,
    pub held: usize,
    pub dropped_indexes: usize,
    pub made_indexes: usize,
    pub made_sequences: usize,
    pub restarted: usize,
}

impl View {
    /// With what others have committed since.
    fn catch_up(&mut self, committed: &Arc<Catalog>) {
        if Arc::ptr_eq(&self.base, committed) {
            return;
        }
        self.own = match Arc::ptr_eq(&self.own, &self.base) {
            true => committed.clone(),
            false => Arc::new(self.merged(committed)),
        };
        self.base = committed.clone();
    }

    /// What was changed here, put into the catalog of others.
    fn merged(&self, theirs: &Catalog) -> Catalog {
        let (own, base) = (&self.own, &self.base);
        let mut merged = theirs.clone();
        merge(&mut merged.tables, &own.tables, &base.tables);
        merge(&mut merged.sequences, &own.sequences, &base.sequences);
        merge(&mut merged.views, &own.views, &base.views);
        merge(&mut merged.types, &own.types, &base.types);
        merge(&mut merged.functions, &own.functions, &base.functions);
        let made = own
            .schemas
            .iter()
            .filter(|schema| !base.schemas.contains(schema));
        merged.schemas.extend(made.cloned());
        merged
            .schemas
            .retain(|schema| own.schemas.contains(schema) || !base.schemas.contains(schema));
        if self.authorizes {
            merged.authority = own.authority.clone();
        }
        merged.authority = crate::catalog::authority_of(&merged);
        merged.comments = comment::merged(&own.comments, &base.comments, &theirs.comments);
        merged.comments = crate::catalog::comments_of(&merged);
        merged.version = theirs.version.max(own.version) + 1;
        merged.index_names(theirs);
        merged
    }
}

impl Draft {
    /// Nothing is changed yet.
    pub fn of(committed: Arc<Catalog>) -> Self {
        Draft {
            view: Mutex::new(View {
                base: committed.clone(),
                own: committed,
                authorizes: false,
            }),
            made: Vec::new(),
            dropped: Vec::new(),
            held: Vec::new(),
            dropped_indexes: Vec::new(),
            made_indexes: Vec::new(),
            made_sequences: Vec::new(),
            restarted: Vec::new(),
        }
    }

    /// The catalog as the transaction sees it: what is committed, with its changes.
    pub fn catalog(&self, committed: &Arc<Catalog>) -> Arc<Catalog> {
        let mut view = self.view.lock();
        view.catch_up(committed);
        view.own.clone()
    }

    /// Puts a changed catalog in the place of the one that [`Draft::catalog`] gave.
    pub fn put(&mut self, catalog: Catalog, authorizes: bool) {
        let view = self.view.get_mut();
        view.own = Arc::new(catalog);
        view.authorizes |= authorizes;
    }

    /// Whether it is as others see it.
    pub fn is_unchanged(&self) -> bool {
        let view = self.view.lock();
        Arc::ptr_eq(&view.own, &view.base) && self.restarted.is_empty()
    }

    /// Where it is.
    pub fn mark(&self) -> DraftMark {
        DraftMark {
            view: self.view.lock().clone(),
            made: self.made.len(),
            dropped: self.dropped.len(),
            held: self.held.len(),
            dropped_indexes: self.dropped_indexes.len(),
            made_indexes: self.made_indexes.len(),
            made_sequences: self.made_sequences.len(),
            restarted: self.restarted.len(),
        }
    }

    /// Takes the catalog and what goes at the commit back to where they were. The rest, which
    /// the engine has to undo, stays.
    pub fn back_to(&mut self, mark: &DraftMark) {
        *self.view.get_mut() = mark.view.clone();
        self.dropped.truncate(mark.dropped);
        self.dropped_indexes.truncate(mark.dropped_indexes);
        self.held.truncate(mark.held);
    }
}

impl DraftMark {
    /// The catalog as the transaction saw it then, with what others have committed since.
    pub fn catalog(&self, committed: &Arc<Catalog>) -> Arc<Catalog> {
        let mut view = self.view.clone();
        view.catch_up(committed);
        view.own
    }
}

/// Puts what was made, changed and dropped between `base` and `own` into others' objects.
fn merge<T: PartialEq>(theirs: &mut Objects<T>, own: &Objects<T>, base: &Objects<T>) {
    for (oid, _, after) in changes(base, own) {
        match after {
            Some(object) => theirs.insert(oid, Arc::clone(object)),
            None => theirs.remove(&oid),
        };
    }
}
