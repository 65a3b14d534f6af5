//! LOAD and UNLOAD (002 §2.1): columns of a column table come into memory, stay on the device behind a
//! buffer of pages, or leave memory. What is said of a column holds until it is said otherwise, over a
//! restart, too.
//!
//! Not in a transaction block: what has come or gone is not taken back with it.

use std::sync::Arc;

use thermocline_engine::authority::Object;
use thermocline_engine::catalog::{Residence, Table};

use super::{Client, Session};
use crate::ddl::{columns_of_residence, find_relation};
use crate::error::{Result, SqlError};
use crate::parse::residence::ResidenceCommand;
use crate::parse::statement::Ddl;
use crate::parse::table::{AlterOperation, AlterTable};

impl Session {
    pub(super) async fn residence(
        &mut self,
        command: &ResidenceCommand,
        client: &mut Client,
    ) -> Result<&'static str> {
        let tag = command.tag();
        self.need_by_itself(tag)?;
        let table = self.table_to_load(&command.table)?;
        let actor = self.context.actor()?;
        if !actor.owns(&Object::Table(table.oid)) {
            let message = format!("must be owner of table {}", table.name);
            return Err(SqlError::new("42501", message));
        }
        let columns = columns_of_residence(&table, command.columns.as_deref())?;
        let db = Arc::clone(&self.engine.db);
        if command.to == Residence::Hot {
            db.check_columns_fit(&self.options(), &table, &columns)
                .await?;
        }
        let name = vec![table.schema.clone(), table.name.clone()];
        let is_there = |column: &usize| table.def.columns[*column].residence == command.to;
        if !columns.iter().all(is_there) {
            let alter = AlterTable {
                materialized: false,
                name: name.clone(),
                only: false,
                if_exists: false,
                operations: vec![AlterOperation::Residence {
                    columns: command.columns.clone(),
                    to: Some(command.to),
                }],
            };
            self.define(&Ddl::AlterTable(alter), client).await?;
        }
        // As it is now: what is read goes by what was just said.
        let table = self.table_to_load(&name)?;
        let options = self.options();
        db.unload_columns(&options, &table, &columns).await?;
        if command.to == Residence::Hot {
            db.load_columns(&options, &table, &columns).await?;
        }
        Ok(tag)
    }

    fn table_to_load(&self, name: &[String]) -> Result<Arc<Table>> {
        let catalog = self.transaction.catalog(&self.engine.db);
        let search_path = self.context.settings(|settings| settings.search_path());
        let found = find_relation(&catalog, &search_path, name);
        let table = found.and_then(|(schema, name)| catalog.table_by_name(&schema, &name).cloned());
        table.ok_or_else(|| SqlError::undefined_table(&name.join(".")))
    }
}
