//! Tablespaces: their definitions, and which one a table has.

use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_engine::ddl::Change;

use super::Definition;
use crate::error::{Result, SqlError};
use crate::parse::statement::TablespaceChange;
use crate::privilege::denied;
use crate::session::missing_tablespace;

/// The option of a table that names its tablespace.
pub(super) const OPTION: &str = "cold_tablespace";

impl Definition<'_> {
    pub(super) async fn tablespace_change(
        &mut self,
        change: &TablespaceChange,
    ) -> Result<&'static str> {
        match change {
            TablespaceChange::Create(def) => {
                self.apply(Change::CreateTablespace(def.clone())).await?;
                Ok("CREATE TABLESPACE")
            }
            TablespaceChange::Alter(def) => {
                self.apply(Change::AlterTablespace(def.clone())).await?;
                Ok("ALTER TABLESPACE")
            }
            TablespaceChange::Drop(def) => {
                self.apply(Change::DropTablespace(def.oid)).await?;
                // With its definition locked: no table gets there any more.
                self.db.vacate_tablespace(def).await?;
                Ok("DROP TABLESPACE")
            }
        }
    }

    /// The object id of the tablespace that a table names, 0 for the data directory.
    pub(super) fn tablespace_named(&self, name: &str) -> Result<u32> {
        match name {
            "" | "pg_default" => Ok(0),
            "pg_global" => Err(SqlError::new(
                "22023",
                "only shared relations can be placed in pg_global tablespace",
            )),
            name => {
                let catalog = self.catalog();
                let def = catalog.tablespace_by_name(name);
                let def = def.ok_or_else(|| missing_tablespace(name))?;
                match self.actor()?.is_superuser() {
                    true => Ok(def.oid),
                    false => Err(denied("tablespace", name)),
                }
            }
        }
    }

    /// The object id of the tablespace of a new table that says none. One that the setting names and that is
    /// not there, or not to be had, is as if it named none.
    pub(super) fn tablespace_by_default(&self) -> u32 {
        self.tablespace
            .and_then(|name| self.tablespace_named(name).ok())
            .unwrap_or(0)
    }

    /// SET TABLESPACE: its blocks are moved while it is used.
    pub(super) async fn set_tablespace(&mut self, table: &Arc<Table>, name: &str) -> Result<()> {
        let mut def = table.def.clone();
        def.tablespace = self.tablespace_named(name)?;
        self.apply(Change::AlterTable(def)).await
    }
}
