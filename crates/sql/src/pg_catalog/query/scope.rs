//! Names in reach while a query is bound: the tables of each query, from the
//! inmost out, with the columns of each at its place in the row.

use std::collections::BTreeSet;

use super::plan::Column;
use crate::error::{Result, SqlError};

/// A table in FROM under its alias.
#[derive(Debug, Clone)]
pub(crate) struct ScopeTable {
    pub alias: String,
    /// The schema, for columns written schema.table.column.
    pub schema: Option<String>,
    pub columns: Vec<Column>,
    pub offset: usize,
    /// Columns that `USING` has merged into those of an earlier table.
    pub merged: Vec<String>,
}

/// The names of one query.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub tables: Vec<ScopeTable>,
    pub width: usize,
    /// Columns of this query's row that were looked at since it was emptied.
    pub used: BTreeSet<usize>,
}

impl Scope {
    /// The column `name`, of `table` if one is given.
    pub(crate) fn find(
        &self,
        schema: Option<&str>,
        table: Option<&str>,
        name: &str,
    ) -> Result<Option<(usize, Column)>> {
        let mut found = None;
        for candidate in &self.tables {
            if table.is_some_and(|table| table != candidate.alias)
                || (schema.is_some() && schema != candidate.schema.as_deref())
                || (table.is_none() && candidate.merged.iter().any(|merged| merged == name))
            {
                continue;
            }
            for (at, column) in candidate.columns.iter().enumerate() {
                if column.name != name {
                    continue;
                }
                if found.is_some() {
                    return Err(SqlError::new(
                        "42702",
                        format!("column reference \"{name}\" is ambiguous"),
                    ));
                }
                found = Some((candidate.offset + at, column.clone()));
            }
        }
        Ok(found)
    }

    pub(crate) fn table(&self, alias: &str) -> Option<&ScopeTable> {
        self.tables.iter().find(|table| table.alias == alias)
    }
}
