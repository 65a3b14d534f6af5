//! Materialized views: tables whose rows are what a query gave when it ran last.
//!
//! The query is kept as a view keeps its own: its text, and what the names in it meant. All else
//! is the table's: names, columns, rows, indexes, options.

use std::sync::Arc;

use super::definitions::TableDef;
use super::view::ViewDef;
use super::{Catalog, Table};

impl TableDef {
    /// A materialized view's query as that of a view of the same number, under the names that
    /// the table has now.
    pub(crate) fn as_view(&self) -> Option<ViewDef> {
        let def = self.materialized.as_deref()?;
        let mut columns = def.columns.clone();
        for (column, (_, named)) in columns.iter_mut().zip(self.live_columns()) {
            column.name.clone_from(&named.name);
        }
        Some(ViewDef {
            oid: self.oid,
            schema: self.schema.clone(),
            name: self.name.clone(),
            columns,
            query: def.query.clone(),
            reads: def.reads.clone(),
            obstacle: None,
            depth: def.depth,
            types: def.types.clone(),
            functions: def.functions.clone(),
            options: Vec::new(),
        })
    }

    /// What messages call it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.is_materialized() {
            true => "materialized view",
            false => "table",
        }
    }

    /// Whether it is a materialized view.
    #[must_use]
    pub fn is_materialized(&self) -> bool {
        self.materialized.is_some()
    }

    /// Whether its rows may be read: it is a table, or its query has run.
    #[must_use]
    pub fn is_populated(&self) -> bool {
        let mut def = self.materialized.iter();
        def.all(|def| def.populated)
    }
}

impl Table {
    /// The query of a materialized view, as a view of the same number.
    #[must_use]
    pub fn view(&self) -> Option<&Arc<ViewDef>> {
        self.view.as_ref()
    }
}

impl Catalog {
    /// The view or the materialized view of this number.
    pub fn view_of(&self, oid: u32) -> Option<&Arc<ViewDef>> {
        let materialized = || self.tables.get(&oid)?.view();
        self.views.get(&oid).or_else(materialized)
    }

    /// All views, and all materialized ones.
    pub fn all_views(&self) -> impl Iterator<Item = &Arc<ViewDef>> {
        let materialized = self.tables.values().filter_map(|table| table.view());
        self.views.values().chain(materialized)
    }

    /// The views whose queries name the relation of this number, in the order of their numbers.
    pub fn views_over(&self, oid: u32) -> impl Iterator<Item = &Arc<ViewDef>> {
        let mut over: Vec<_> = self.all_views().filter(|view| view.reads(oid)).collect();
        over.sort_by_key(|view| view.oid);
        over.into_iter()
    }
}
