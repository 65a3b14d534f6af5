//! The order of a subquery's rows, for what is above and looks at the order in which rows come
//! (`array_agg` over an ordered subquery). DataFusion forgets an order that nobody demands.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::Int64Array;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use thermocline_query::types::ids;

use super::{Operator, batch_of, only_input};

/// Rows in the order of a key.
pub struct Ordered {
    /// The key.
    pub key: usize,
}

impl fmt::Debug for Ordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by=c{}", self.key)
    }
}

#[async_trait]
impl Operator for Ordered {
    fn name(&self) -> &'static str {
        "Ordered"
    }

    fn added(&self) -> Vec<(usize, u32)> {
        Vec::new()
    }

    fn passes(&self) -> bool {
        true
    }

    fn needs(&self) -> Vec<usize> {
        vec![self.key]
    }

    fn sorted_by(&self) -> Vec<usize> {
        vec![self.key]
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn execute(
        &self,
        inputs: &[Arc<dyn ExecutionPlan>],
        _: SchemaRef,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = only_input(inputs)?;
        input.execute(0, context)
    }
}

/// Numbers rows, so that they are told apart.
pub struct Numbered {
    /// The column of the number.
    pub id: usize,
}

impl fmt::Debug for Numbered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.id)
    }
}

#[async_trait]
impl Operator for Numbered {
    fn name(&self) -> &'static str {
        "Numbered"
    }

    fn added(&self) -> Vec<(usize, u32)> {
        vec![(self.id, ids::INT8)]
    }

    fn passes(&self) -> bool {
        true
    }

    fn needs(&self) -> Vec<usize> {
        Vec::new()
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn execute(
        &self,
        inputs: &[Arc<dyn ExecutionPlan>],
        schema: SchemaRef,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = only_input(inputs)?;
        let of = Arc::clone(&schema);
        let mut next = 0_i64;
        let batches = input.execute(0, context)?.map(move |batch| {
            let batch = batch?;
            let rows = batch.num_rows();
            let first = next;
            next = next.saturating_add(i64::try_from(rows).unwrap_or(i64::MAX));
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(Int64Array::from_iter_values(first..next)));
            batch_of(&of, columns, rows)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
