//! What the view of columns' use shows, and how a statement is counted there. Nothing is read for it from the device.

use std::sync::Arc;

use crate::catalog::Table;
use crate::parts::Parts;
pub use crate::rows::column_use::ColumnUse;

/// How a column of a column table is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnUseReport {
    /// The table's schema.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// Its object id.
    pub oid: u32,
    /// The column's name.
    pub column: String,
    /// Whether an index begins with the column.
    pub is_indexed: bool,
    /// What was counted since the database was opened.
    pub used: ColumnUse,
}

impl Parts {
    /// Counts a statement that reads a column table: the places of the columns that it has conditions on,
    /// and those of the others.
    pub fn count_column_use(&self, table: &Table, projected: &[usize], conditions: &[usize]) {
        let uses = self.fetcher().groups.uses(table.def.storage);
        uses.count_statement(projected, conditions);
    }

    /// The columns of all column tables, in order of schema, table and place.
    pub fn column_use_reports(&self) -> Vec<ColumnUseReport> {
        let catalog = self.catalog();
        let mut tables: Vec<&Arc<Table>> = catalog.tables.values().collect();
        tables.retain(|table| table.is_columns());
        tables.sort_by(|a, b| (&a.def.schema, &a.def.name).cmp(&(&b.def.schema, &b.def.name)));
        let mut reports = Vec::new();
        for table in tables {
            let uses = self.fetcher().groups.uses(table.def.storage);
            let begins = |place: usize| {
                let mut indexes = table.indexes.iter();
                indexes.any(|index| index.columns.first() == Some(&place))
            };
            let columns = table.def.columns.iter().enumerate();
            let shown = columns.filter(|(_, column)| column.is_seen());
            reports.extend(shown.map(|(place, column)| ColumnUseReport {
                schema: table.def.schema.clone(),
                table: table.def.name.clone(),
                oid: table.def.oid,
                column: column.name.clone(),
                is_indexed: begins(place),
                used: uses.of(place),
            }));
        }
        reports
    }
}
