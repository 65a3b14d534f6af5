//! INSERT … SELECT whose query the short path does not run: its rows come from
//! the analytical side, in batches, and are stored as those of a COPY are. All
//! of it is one transaction; the query does not see what is stored.

use std::sync::Arc;

use sqlparser::ast;
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use super::Session;
use super::analytical::AnalyticalQuery;
use super::lookup::Lookup;
use super::prepared::bind_query;
use super::transaction::Block;
use crate::error::Result;
use crate::exec::{self, ExecContext};
use crate::output::{ColumnType, RowWriter};
use crate::plan::InsertTarget;

/// Rows stored at a time.
const BATCH_ROWS: usize = 1000;

impl Session {
    /// Runs the query and stores its rows; `declared` are the numbers of the
    /// parameters' types.
    pub(super) async fn insert_select(
        &mut self,
        target: &Arc<InsertTarget>,
        query: &ast::Statement,
        declared: &[u32],
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<u64> {
        let own = self.transaction.block() == Block::None;
        if own {
            self.transaction.begin(Block::Implicit, &self.context);
        }
        let db = Arc::clone(&self.engine.db);
        let catalog = self.transaction.catalog(&db);
        let (search_path, role) = self
            .context
            .settings(|settings| (settings.search_path(), settings.role()));
        let lookup = Lookup {
            db: &db,
            catalog: Arc::clone(&catalog),
            context: &self.context,
        };
        // The query's own text is not at hand: it stands within the statement's.
        let text = query.to_string();
        let typed = lookup.typed((&text, 0), query, declared, &search_path, true);
        let planned = match typed {
            Some(bound) => lookup.planned(bound?, declared, search_path, role, true),
            None => {
                let mut planned =
                    bind_query(query, "", declared, &db, &catalog, &search_path, &role)?;
                let analytical = AnalyticalQuery {
                    engine: &self.engine,
                    context: &self.context,
                    statement: query,
                    typed: None,
                    catalog: &catalog,
                    declared,
                };
                analytical.describe(&mut planned).await?;
                planned
            }
        };
        let types: Vec<DataType> = planned
            .columns
            .iter()
            .flat_map(|columns| columns.iter())
            .map(|column| match column.data_type {
                ColumnType::Scalar(data_type) => data_type,
                ColumnType::Other(_) => DataType::Text,
            })
            .collect();
        let used = parameters
            .get(..planned.parameters.len())
            .unwrap_or(parameters);
        let mut stream = self
            .start_analytical(declared, query, &planned, used)
            .await?;
        let options = self.options();
        let mut stored = 0;
        loop {
            let next = stream.next_values(BATCH_ROWS);
            let batch = db.interruptible(&options, next).await??;
            if batch.is_empty() {
                break;
            }
            let now_us = self.context.transaction_us();
            let Self {
                transaction,
                context,
                ..
            } = self;
            let mut exec = ExecContext {
                db: &db,
                txn: transaction.of_block(&db),
                options: &options,
                now_us,
                session: &**context,
            };
            stored +=
                exec::insert_rows(target, &types, &batch, &mut exec, parameters, rows).await?;
        }
        if own {
            self.end_implicit().await?;
        }
        Ok(stored)
    }
}
