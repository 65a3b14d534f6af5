//! CHECK constraints of tables: made, and validated later where they are NOT VALID.

use std::sync::Arc;

use thermocline_engine::ddl::Change;
use thermocline_engine::{CheckDef, Table, TableDef};

use super::create_table::has_constraint;
use super::{Definition, mentioned, names};
use crate::bind;
use crate::error::Result;

/// A CHECK; `column` is where it stood.
pub(super) struct CheckConstraint {
    pub(super) name: Option<String>,
    pub(super) column: Option<String>,
    /// Its text.
    pub(super) expression: String,
    /// Not NOT VALID.
    pub(super) validated: bool,
}

impl Definition<'_> {
    /// Adds a CHECK to a table. The rows that are there satisfy it, unless it is NOT VALID.
    pub(super) async fn add_check(&mut self, oid: u32, check: CheckConstraint) -> Result<()> {
        let table = self.current(oid)?;
        let mut named = named_check(&table.def, check)?;
        named.expression = self.of_table(&named.expression, &table.def)?;
        let condition = self.kept(&table.schema, |context| {
            bind::bind_check(&named.expression, &table, context)
        })?;
        if named.validated {
            self.verify_check(&table, &named.name, &condition).await?;
        }
        let mut def = table.def.clone();
        def.checks.push(named);
        self.apply(Change::AlterTable(def)).await
    }

    /// VALIDATE CONSTRAINT of a CHECK, by its place: 23514 unless all rows satisfy it.
    pub(super) async fn validate_check(&mut self, table: &Arc<Table>, at: usize) -> Result<()> {
        let mut def = table.def.clone();
        let check = &mut def.checks[at];
        if check.validated {
            return Ok(());
        }
        let condition = self.kept(&table.schema, |context| {
            bind::bind_check(&check.expression, table, context)
        })?;
        self.verify_check(table, &check.name, &condition).await?;
        check.validated = true;
        self.apply(Change::AlterTable(def)).await
    }
}

/// A CHECK with the name it was given or that PostgreSQL would give it.
pub(super) fn named_check(def: &TableDef, check: CheckConstraint) -> Result<CheckDef> {
    let taken = |name: &str| def.has_constraint(name);
    let name = match check.name {
        Some(name) if taken(&name) => return Err(has_constraint(def, &name)),
        Some(name) => name,
        None => {
            let column = match check.column {
                Some(column) => column,
                None => only_column(&check.expression, def)?.unwrap_or_default(),
            };
            names::choose(&def.name, &column, "check", taken)
        }
    };
    Ok(CheckDef {
        name,
        expression: check.expression,
        validated: check.validated,
    })
}

/// The column that an expression reads, if it is one.
fn only_column(expression: &str, def: &TableDef) -> Result<Option<String>> {
    Ok(match mentioned::columns(expression, def)?.as_slice() {
        [column] => Some(def.columns[*column].name.clone()),
        _ => None,
    })
}
