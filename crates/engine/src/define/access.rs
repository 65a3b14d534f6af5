//! Who may say that evicted rows are used where they lie, by the byte: a table or a tablespace
//! whose device is memory. On a disk each use would hold the partition while the disk is read.

use std::sync::Arc;

use crate::catalog::ddl::Change;
use crate::catalog::tablespace::TablespaceDef;
use crate::catalog::{Catalog, TableDef};
use crate::ground::error::{Error, Result};
use crate::parts::Parts;
use crate::policy::table_policy::TablePolicy;
use crate::run::interactive::Transaction;

impl Parts {
    /// Refuses access by the byte where a change would have it on a device that is no memory.
    /// What says so already is left alone, so that it can be changed otherwise.
    ///
    /// # Errors
    /// 22023.
    pub(super) fn check_access(&self, txn: &mut Transaction, change: &Change) -> Result<()> {
        match change {
            Change::CreateTable(def) | Change::AlterTable(def) => {
                if !says_byte(def) {
                    return Ok(());
                }
                let catalog = self.draft(txn)?.catalog(&self.catalog());
                let is_as_before =
                    |old: &TableDef| says_byte(old) && old.tablespace == def.tablespace;
                let old = catalog.table(def.oid);
                match old.is_some_and(|old| is_as_before(&old.def)) {
                    true => Ok(()),
                    false => self.check_table(&catalog, def),
                }
            }
            Change::CreateTablespace(def) | Change::AlterTablespace(def) => {
                let catalog = self.draft(txn)?.catalog(&self.catalog());
                self.check_tablespace(&catalog, def)
            }
            _ => Ok(()),
        }
    }

    fn check_table(&self, catalog: &Catalog, def: &TableDef) -> Result<()> {
        let space = catalog.tablespaces.get(&def.tablespace);
        match self.tablespaces().is_on_memory(space.map(Arc::as_ref)) {
            true => Ok(()),
            false => Err(refused(format!(
                "table \"{}\" cannot have access = byte: the device of its evicted rows is no memory",
                def.name
            ))),
        }
    }

    fn check_tablespace(&self, catalog: &Catalog, def: &TablespaceDef) -> Result<()> {
        if self.tablespaces().is_on_memory(Some(def)) {
            return Ok(());
        }
        let old = catalog.tablespaces.get(&def.oid).map(Arc::as_ref);
        let was_memory = old.is_some_and(|old| self.tablespaces().is_on_memory(Some(old)));
        let says = |def: &TablespaceDef| TablePolicy::of_options(&def.options).says_byte();
        if says(def) && (was_memory || !old.is_some_and(says)) {
            return Err(refused(format!(
                "tablespace \"{}\" cannot have access = byte: its device is no memory",
                def.name
            )));
        }
        let has = |table: &&TableDef| table.tablespace == def.oid && says_byte(table);
        match catalog.tables.values().map(|table| &table.def).find(has) {
            Some(table) if was_memory => Err(refused(format!(
                "the device of tablespace \"{}\" must be memory, since table \"{}\" has access = byte",
                def.name, table.name
            ))),
            _ => Ok(()),
        }
    }
}

fn says_byte(def: &TableDef) -> bool {
    TablePolicy::of_options(&def.options).says_byte()
}

fn refused(message: String) -> Error {
    Error::Refused {
        sqlstate: "22023",
        message,
        hint: "Say access = block, or take a tablespace with device = nvram or device = dram.",
    }
}
