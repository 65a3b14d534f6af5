//! RENAME VALUE of an enum, where tables keep the label in texts: these would mean nothing then.

use thermocline_engine::{ColumnDef, Table, TypeDef};
use thermocline_values::types::DataType;

use super::Definition;
use crate::error::{Result, SqlError};

impl Definition<'_> {
    /// 0A000 where a default, a check or an index of a table with columns of the type has the label.
    pub(super) fn label_is_kept_by_none(&self, def: &TypeDef, label: &str) -> Result<()> {
        let written = format!("'{}'", label.replace('\'', "''"));
        let catalog = self.catalog();
        for table in catalog.tables.values() {
            let is_of = |column: &ColumnDef| match column.data_type {
                DataType::Other { oid, .. } => oid == def.oid || oid == def.array(),
                _ => false,
            };
            if !table.columns.iter().any(is_of) {
                continue;
            }
            if let Some(what) = keeper(table, &written) {
                let message = format!(
                    "cannot rename label \"{label}\" because {what} of table \"{}\" has it",
                    table.name
                );
                let hint = "Drop that, rename the label, and make it again.";
                return Err(SqlError::unsupported(message, hint));
            }
        }
        Ok(())
    }
}

/// What of a table has this constant in its text.
fn keeper(table: &Table, written: &str) -> Option<String> {
    let has = |text: &String| text.contains(written);
    if let Some(check) = table.checks.iter().find(|check| has(&check.expression)) {
        return Some(format!("the check \"{}\"", check.name));
    }
    let mut columns = table.columns.iter();
    let at = columns.position(|column| column.default.as_ref().is_some_and(has))?;
    let mut indexes = table.indexes.iter();
    Some(match indexes.find(|index| index.columns.contains(&at)) {
        Some(index) if !table.columns[at].is_seen() => format!("the index \"{}\"", index.name),
        _ => format!("the column \"{}\"", table.columns[at].name),
    })
}
