//! Where columns of a column table are kept (002 §2.1): what LOAD, UNLOAD and ALTER COLUMN change of a table's
//! definition. What comes into memory then, and what leaves, is the session's (`session::residence`).

use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_engine::catalog::Residence;
use thermocline_engine::ddl::Change;

use super::Definition;
use super::alter_table::column_named;
use crate::error::{Result, SqlError};
use crate::parse::residence::RESIDENCE;

impl Definition<'_> {
    pub(super) async fn set_residence(
        &mut self,
        table: &Arc<Table>,
        columns: Option<&[String]>,
        to: Option<Residence>,
    ) -> Result<()> {
        let to = to.ok_or_else(|| {
            let message = format!("invalid value for option \"{RESIDENCE}\"");
            SqlError::new("22023", message).with_hint("It may be hot, warm or 'by use'.")
        })?;
        let columns = columns_of(table, columns)?;
        let mut def = table.def.clone();
        for column in columns {
            def.columns[column].residence = to;
        }
        match def == table.def {
            true => Ok(()),
            false => self.apply(Change::AlterTable(def)).await,
        }
    }
}

/// The places of these columns of a column table; of all, where none is named.
///
/// # Errors
/// 42809 where it is a table of rows, 42703 where it has no such column.
pub(crate) fn columns_of(table: &Table, names: Option<&[String]>) -> Result<Vec<usize>> {
    if !table.is_columns() {
        let name = &table.name;
        let message = format!("\"{name}\" is not a column table");
        let hint = format!(
            "ALTER TABLE {name} SET ACCESS METHOD columns makes one of it. Rows of others come into memory when they are used."
        );
        return Err(SqlError::new("42809", message).with_hint(hint));
    }
    match names {
        Some(names) => names.iter().map(|name| column_named(table, name)).collect(),
        None => {
            let all = table.def.columns.iter().enumerate();
            let there = all.filter(|(_, column)| !column.dropped);
            Ok(there.map(|(place, _)| place).collect())
        }
    }
}
