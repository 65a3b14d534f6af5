//! Groups: rows that agree in their keys by PostgreSQL's equality become one, with the first
//! row's values and the aggregates' results. For what DataFusion does not group: several sets of
//! keys, and aggregates that need their rows in one place. Where memory is short, groups and their
//! rows wait on disk (`group_files`) and are grouped afterwards, part by part.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{TryFutureExt, TryStreamExt, stream};
use thermocline_query::tree::Expr;
use thermocline_query::types::ids;

use super::group_files::{Files, Part};
use super::group_table::Table;
use super::states::Aggregation;
use super::{Operator, only_input};
use crate::evaluate::{Context, columns_of};

/// What is grouped, and by what.
#[derive(Clone)]
pub struct Group {
    /// Columns that go through as they are, and by whose very bytes rows are told apart.
    pub domain: Vec<(usize, u32)>,
    /// The grouping expressions and the columns that they become.
    pub keys: Vec<(usize, Expr)>,
    /// The sets of keys.
    pub sets: Vec<Vec<usize>>,
    /// `GROUPING`: the columns, and the keys that are asked for.
    pub groupings: Vec<(usize, Vec<usize>)>,
    /// The aggregates.
    pub aggregates: Vec<Aggregation>,
    /// A column that is NULL in rows that stand for no row, only for their domain.
    pub present: Option<usize>,
    /// The types of the input's columns that are used.
    pub inputs: Vec<(usize, u32)>,
    /// What evaluates.
    pub context: Context,
}

impl Group {
    /// The columns that are used.
    #[must_use]
    pub fn used(&self) -> Vec<usize> {
        let keys = self.keys.iter().map(|(_, expr)| expr);
        let aggregated = self.aggregates.iter().flat_map(Aggregation::exprs);
        let mut used = columns_of(keys.chain(aggregated));
        used.extend(self.domain.iter().map(|(id, _)| *id));
        used.extend(self.present);
        used.sort_unstable();
        used.dedup();
        used
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "domain={:?}, keys={:?}, sets={:?}, aggregates={}",
            self.domain,
            self.keys.iter().map(|(id, _)| id).collect::<Vec<_>>(),
            self.sets,
            self.aggregates.len()
        )
    }
}

/// Groups that come out, one table after the other.
struct Emitting {
    table: Table,
    at: usize,
    /// Parts that wait on disk, and how often their rows were parted.
    waiting: Vec<(usize, Part)>,
    schema: SchemaRef,
    task: Arc<TaskContext>,
}

impl Emitting {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let rows_max = self.task.session_config().batch_size();
            if let Some((batch, at)) = self.table.batch(&self.schema, self.at, rows_max)? {
                self.at = at;
                return Ok(Some(batch));
            }
            let level = self.table.level() + 1;
            let parts = self.table.finish()?;
            self.waiting
                .extend(parts.into_iter().map(|part| (level, part)));
            let Some((level, part)) = self.waiting.pop() else {
                return Ok(None);
            };
            self.at = 0;
            self.table.begin(level);
            if let Some(mut groups) = part.groups(self.table.files())? {
                while let Some(batch) = groups.try_next().await? {
                    self.table.restore(&batch)?;
                }
            }
            if let Some(mut rows) = part.rows(self.table.files())? {
                while let Some(batch) = rows.try_next().await? {
                    self.table.take(&batch, true)?;
                }
            }
        }
    }
}

#[async_trait]
impl Operator for Group {
    fn name(&self) -> &'static str {
        "Group"
    }

    fn added(&self) -> Vec<(usize, u32)> {
        let keys = self.keys.iter().map(|(id, expr)| (*id, expr.oid));
        let groupings = self.groupings.iter().map(|(id, _)| (*id, ids::INT4));
        let aggregates = self.aggregates.iter().map(|of| (of.id, of.result));
        let all = self.domain.iter().copied().chain(keys);
        all.chain(groupings).chain(aggregates).collect()
    }

    fn passes(&self) -> bool {
        false
    }

    fn needs(&self) -> Vec<usize> {
        self.used()
    }

    fn execute(
        &self,
        inputs: &[Arc<dyn ExecutionPlan>],
        schema: SchemaRef,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = only_input(inputs)?;
        let files = Files::new(&context, &input.schema(), &self.inputs)?;
        let mut input = input.execute(0, Arc::clone(&context))?;
        let mut table = Table::new(self.clone(), files, &context)?;
        let of = Arc::clone(&schema);
        let batches = async move {
            while let Some(batch) = input.try_next().await? {
                table.take(&batch, false)?;
            }
            drop(input);
            let emitting = Emitting {
                table,
                at: 0,
                waiting: Vec::new(),
                schema: of,
                task: context,
            };
            Ok::<_, DataFusionError>(stream::try_unfold(emitting, |mut emitting| async move {
                Ok(emitting.next().await?.map(|batch| (batch, emitting)))
            }))
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            batches.try_flatten_stream(),
        )))
    }
}
