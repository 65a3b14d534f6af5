//! VACUUM: of a column table the delta is merged into the main. There is nothing else to vacuum:
//! before-images and holes go by themselves.

use std::sync::Arc;

use thermocline_engine::authority::Object;
use thermocline_engine::catalog::Table;

use super::{Client, Session};
use crate::ddl;
use crate::error::{Result, SqlError};
use crate::parse::statement::Named;

impl Session {
    /// Merges the column tables of these names; where none is named, all that the role owns.
    pub(super) async fn merge_deltas(
        &mut self,
        names: &[Named],
        client: &mut Client,
    ) -> Result<()> {
        let db = Arc::clone(&self.engine.db);
        let catalog = self.transaction.catalog(&db);
        let search_path = self.context.settings(|settings| settings.search_path());
        let actor = self.context.actor()?;
        let of_name = |name: &Named| {
            let (schema, relation) = ddl::find_relation(&catalog, &search_path, &name.relation)?;
            catalog.table_by_name(&schema, &relation).cloned()
        };
        let mut tables: Vec<Arc<Table>> = match names.is_empty() {
            true => catalog.tables.values().cloned().collect(),
            false => {
                let named = names.iter().filter_map(of_name);
                named.flat_map(|table| catalog.leaves_of(&table)).collect()
            }
        };
        tables.retain(|table| table.is_columns());
        let options = self.options();
        for table in tables {
            if actor.owns(&Object::Table(table.oid)) {
                db.merge_delta(&options, &table).await?;
            } else if !names.is_empty() {
                let what = format!(
                    "permission denied to vacuum \"{}\", skipping it",
                    table.name
                );
                self.notify(client, "WARNING", &SqlError::new("01000", what));
            }
        }
        Ok(())
    }
}
