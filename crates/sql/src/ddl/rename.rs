//! ALTER TABLE … RENAME: of a table, a column, a constraint.

use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_engine::ddl::Change;

use super::create_table::{not_systems, position};
use super::{Definition, exists, mentioned, names};
use crate::error::{Result, SqlError};

impl Definition<'_> {
    pub(super) async fn rename_table(&mut self, table: &Arc<Table>, name: &str) -> Result<()> {
        let name = names::truncated(name);
        if self.catalog().relation_exists(&table.schema, &name) {
            return Err(exists(&name));
        }
        let mut def = table.def.clone();
        def.name = name;
        self.apply(Change::AlterTable(def)).await
    }

    pub(super) async fn rename_column(
        &mut self,
        table: &Arc<Table>,
        old: &str,
        new: &str,
    ) -> Result<()> {
        let mut def = table.def.clone();
        let column = position(&def, old)?;
        let new = names::truncated(new);
        not_systems(&new)?;
        if def.column_named(&new).is_some() {
            return Err(SqlError::new(
                "42701",
                format!(
                    "column \"{new}\" of relation \"{}\" already exists",
                    def.name
                ),
            ));
        }
        for check in &mut def.checks {
            check.expression = mentioned::renamed(&check.expression, old, &new)?;
        }
        for generated in def.columns.iter_mut().filter(|column| column.generated) {
            let hidden = generated.hidden.iter_mut().map(|hidden| &mut hidden.text);
            for text in generated.default.iter_mut().chain(hidden) {
                *text = mentioned::renamed(text, old, &new)?;
            }
        }
        for condition in def
            .triggers
            .iter_mut()
            .filter_map(|of| of.condition.as_mut())
        {
            *condition = mentioned::renamed(condition, old, &new)?;
        }
        if let Some(key) = def.options.get_mut("partition_key") {
            let renamed: Vec<&str> = key
                .split(',')
                .map(|column| {
                    if column.trim() == old {
                        new.as_str()
                    } else {
                        column
                    }
                })
                .collect();
            *key = renamed.join(",");
        }
        def.columns[column].name = new;
        self.apply(Change::AlterTable(def)).await
    }

    pub(super) async fn rename_constraint(
        &mut self,
        table: &Arc<Table>,
        old: &str,
        new: &str,
    ) -> Result<()> {
        let mut def = table.def.clone();
        let new = names::truncated(new);
        if let Some(check) = def.checks.iter_mut().find(|check| check.name == old) {
            check.name = new;
        } else if let Some(key) = def.foreign_keys.iter_mut().find(|key| key.name == old) {
            key.name = new;
        } else if let Some(index) = def
            .indexes
            .iter_mut()
            .find(|index| index.constraint && index.name == old)
        {
            if self.catalog().relation_exists(&table.schema, &new) {
                return Err(exists(&new));
            }
            index.name = new;
        } else {
            return Err(SqlError::new(
                "42704",
                format!(
                    "constraint \"{old}\" for table \"{}\" does not exist",
                    table.name
                ),
            ));
        }
        self.apply(Change::AlterTable(def)).await
    }
}
