//! Rows that are in memory already: system relations, and the rows of VALUES that are constants.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;
use thermocline_query::datum::Datum;

use super::{Operator, batch_of};
use crate::errors::external;
use crate::form::{BATCH_BYTES_MAX, ColumnBuilder, Form};

/// Rows, and which of their columns come out.
pub struct Rows {
    /// The rows.
    pub rows: Arc<Vec<Vec<Datum>>>,
    /// For each column: its number, its type, its place in a row.
    pub columns: Vec<(usize, u32, usize)>,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows={}", self.rows.len())
    }
}

/// Makes a batch of rows until there are enough of them; the answer says where the next begins.
fn batch(
    rows: &[Vec<Datum>],
    columns: &[(usize, u32, usize)],
    schema: &SchemaRef,
    from: usize,
    rows_max: usize,
) -> Result<(RecordBatch, usize)> {
    let mut builders: Vec<ColumnBuilder> = columns
        .iter()
        .map(|(_, oid, _)| ColumnBuilder::new(Form::of(*oid), 0))
        .collect();
    let (mut at, mut bytes) = (from, 0);
    while at < rows.len() && at - from < rows_max && bytes < BATCH_BYTES_MAX {
        for (builder, (_, _, place)) in builders.iter_mut().zip(columns) {
            let value = rows[at].get(*place).unwrap_or(&Datum::Null);
            bytes += builder.push(value).map_err(external)?;
        }
        at += 1;
    }
    let arrays = builders.iter_mut().map(ColumnBuilder::finish).collect();
    Ok((batch_of(schema, arrays, at - from)?, at))
}

#[async_trait]
impl Operator for Rows {
    fn name(&self) -> &'static str {
        "Rows"
    }

    fn added(&self) -> Vec<(usize, u32)> {
        self.columns
            .iter()
            .map(|(id, oid, _)| (*id, *oid))
            .collect()
    }

    fn passes(&self) -> bool {
        false
    }

    fn needs(&self) -> Vec<usize> {
        Vec::new()
    }

    fn execute(
        &self,
        _: &[Arc<dyn ExecutionPlan>],
        schema: SchemaRef,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (rows, columns) = (Arc::clone(&self.rows), self.columns.clone());
        let rows_max = context.session_config().batch_size();
        let of = Arc::clone(&schema);
        let batches = stream::try_unfold(0, move |from| {
            let made = if from < rows.len() {
                batch(&rows, &columns, &of, from, rows_max).map(Some)
            } else {
                Ok(None)
            };
            std::future::ready(made)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
