//! INSERT … SELECT whose query is more than one over a table: its rows come from where indexes
//! lead, or from the analytical side in batches, and are stored as those of a COPY are. All of it
//! is one transaction; the query does not see what is stored.

use crate::typed::held;
use std::sync::Arc;

use thermocline_engine::give_way;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::Session;
use super::analytical::AnalyticalRows;
use crate::error::Result;
use crate::exec::{self, Touched};
use crate::output::{OutputColumn, RowWriter};
use crate::plan::{InsertTarget, ReadQuery};

/// Rows stored at a time.
const BATCH_ROWS: usize = 1000;

impl Session {
    /// Runs the query and stores its rows.
    pub(super) async fn insert_select(
        &mut self,
        target: &Arc<InsertTarget>,
        query: &ReadQuery,
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<u64> {
        let own = self.begin_own();
        let db = Arc::clone(&self.engine.db);
        let catalog = self.transaction.catalog(&db);
        let typed = &query.typed;
        let columns = typed.output_columns();
        let held = |column: &OutputColumn| held_type(column.type_oid, column.type_modifier);
        let types: Vec<DataType> = columns.iter().map(held).collect();
        let used = parameters
            .get(..typed.parameters.len())
            .unwrap_or(parameters);
        let found = match &query.short {
            Some(plan) => self.looked_up(plan, used).await?,
            None => None,
        };
        let stored = match found {
            Some(found) => {
                let mut touched = Touched::of(target, found.len(), &self.options());
                let mut stored = 0;
                for batch in found.chunks(target.rows_at_once(BATCH_ROWS)) {
                    give_way().await;
                    let given = (&types[..], batch);
                    let stores = self.store_found(given, target, &mut touched, parameters, rows);
                    stored += stores.await?;
                }
                stored
            }
            None => {
                let mut stream = self.start_analytical(typed, &catalog, used).await?;
                self.store_stream(&mut stream, target, &types, parameters, rows)
                    .await?
            }
        };
        if own {
            self.end_implicit().await?;
        }
        Ok(stored)
    }

    /// Stores the rows of a query of these types; how many there were.
    pub(super) async fn store_stream(
        &mut self,
        stream: &mut AnalyticalRows,
        target: &InsertTarget,
        types: &[DataType],
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<u64> {
        let options = self.options();
        let mut touched = Touched::of(target, usize::MAX, &options);
        let rows_max = target.rows_at_once(BATCH_ROWS);
        let mut stored = 0;
        loop {
            let batch = self.next_values(stream, rows_max, &options).await?;
            if batch.is_empty() {
                break;
            }
            let given = (types, &batch[..]);
            let stores = self.store_found(given, target, &mut touched, parameters, rows);
            stored += stores.await?;
        }
        Ok(stored)
    }

    /// Stores some rows, of these types.
    pub(super) async fn store_found(
        &mut self,
        given: (&[DataType], &[Vec<Value>]),
        target: &InsertTarget,
        touched: &mut Touched,
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<u64> {
        let (options, styles) = (self.options(), self.context.styles());
        let start = rows.mark();
        self.context.begin_waits();
        loop {
            let mut exec = self.execution(&options, &styles, false);
            let stores = exec::insert_rows(target, given, touched, &mut exec, parameters, rows);
            match stores.await {
                Ok(stored) => return Ok(stored),
                Err(error) => self.wait_of(&error, &options).await?,
            }
            rows.rewind(start);
        }
    }
}

/// The type of a column's values as they are stored: texts of types that tables don't hold.
fn held_type(oid: u32, modifier: i32) -> DataType {
    held(oid, modifier).unwrap_or(DataType::Text)
}
