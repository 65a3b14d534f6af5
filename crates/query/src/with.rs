//! WITH: queries and changes of rows that have a name in a statement.

use std::sync::Arc;

use crate::change::Change;
use crate::tree::{Column, Query};

/// A query of a WITH.
#[derive(Clone, Debug)]
pub struct CommonTable {
    /// Its name.
    pub name: Arc<str>,
    /// Its query. A recursive one is a UNION whose right side refers to it.
    pub query: Query,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Whether it refers to itself.
    pub recursive: bool,
    /// How often it is referred to.
    pub references: usize,
    /// `MATERIALIZED`, `NOT MATERIALIZED`
    pub materialized: Option<bool>,
    /// The change of rows that stands in the place of a query; `columns` are what it gives back.
    /// It has the queries before it in its own WITH.
    pub change: Option<Box<Change>>,
    /// How often changes of the same list refer to it.
    pub by_changes: usize,
}

impl CommonTable {
    /// A query that nobody refers to yet.
    #[must_use]
    pub fn new(name: Arc<str>, query: Query, columns: Vec<Column>) -> Self {
        Self {
            name,
            query,
            columns,
            recursive: false,
            references: 0,
            materialized: None,
            change: None,
            by_changes: 0,
        }
    }
}
