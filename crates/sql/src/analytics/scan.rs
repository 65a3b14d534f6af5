//! Tables as DataFusion sees them: read-only, at one snapshot. A provider
//! implements no insert, update or delete, so that no plan can write.
//!
//! The engine's partitions are dealt out to as many streams as there are
//! cores; a stream reads its partitions one after the other, chunk by chunk,
//! and hands on a batch whenever one is full. Evicted tuples are read by the
//! snapshot in batches; dropping the stream ends the reading.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions, SendableRecordBatchStream, StatisticsArgs,
};
use futures::stream;
use thermocline_engine::catalog::Table;
use thermocline_engine::{Snapshot, SnapshotScan};

use super::batch::{BatchBuilder, batch_bytes, table_schema};
use crate::error::SqlError;
use crate::privilege::denied;

/// A table at a snapshot.
pub(crate) struct SnapshotTable {
    table: Arc<Table>,
    /// Columns that the statement's role must not read.
    hidden: Vec<usize>,
    snapshot: Option<Snapshot>,
    partitions: u16,
    streams: usize,
    rows: u64,
    schema: SchemaRef,
}

impl SnapshotTable {
    /// `table` as `snapshot` sees it, read by up to `streams` streams; `rows`
    /// is an estimate. Without a snapshot it can be described, not read; a scan
    /// of a `hidden` column is refused.
    pub(crate) fn new(
        table: Arc<Table>,
        hidden: Vec<usize>,
        snapshot: Option<Snapshot>,
        partitions: u16,
        streams: usize,
        rows: u64,
    ) -> Self {
        Self {
            schema: table_schema(&table),
            table,
            hidden,
            snapshot,
            partitions,
            streams,
            rows,
        }
    }

    fn estimate(&self, schema: &SchemaRef) -> Statistics {
        let mut statistics = Statistics::new_unknown(schema);
        statistics.num_rows = Precision::Inexact(usize::try_from(self.rows).unwrap_or(usize::MAX));
        statistics
    }
}

impl fmt::Debug for SnapshotTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SnapshotTable({}.{})",
            self.table.schema, self.table.name
        )
    }
}

impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.estimate(&self.schema))
    }

    fn scan<'life0, 'life1, 'life2, 'life3, 'async_trait>(
        &'life0 self,
        _state: &'life1 dyn Session,
        projection: Option<&'life2 Vec<usize>>,
        _filters: &'life3 [Expr],
        limit: Option<usize>,
    ) -> Pin<Box<dyn Future<Output = Result<Arc<dyn ExecutionPlan>>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        'life3: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            let columns: Arc<[usize]> = match projection {
                Some(columns) => columns.as_slice().into(),
                None => (0..self.schema.fields().len()).collect(),
            };
            if columns.iter().any(|column| self.hidden.contains(column)) {
                let refused = denied("table", &self.table.name);
                return Err(DataFusionError::External(Box::new(refused)));
            }
            let schema: SchemaRef = Arc::new(self.schema.project(&columns)?);
            let streams = self.streams.clamp(1, usize::from(self.partitions.max(1)));
            let properties = PlanProperties::new(
                EquivalenceProperties::new(Arc::clone(&schema)),
                Partitioning::UnknownPartitioning(streams),
                EmissionType::Incremental,
                Boundedness::Bounded,
            );
            Ok(Arc::new(SnapshotScanExec {
                statistics: Arc::new(self.estimate(&schema)),
                table: Arc::clone(&self.table),
                snapshot: self.snapshot.clone().ok_or_else(|| {
                    DataFusionError::Internal("a scan without a snapshot".to_owned())
                })?,
                partitions: self.partitions,
                streams,
                columns,
                limit,
                properties: Arc::new(properties),
            }) as Arc<dyn ExecutionPlan>)
        })
    }
}

/// Reads the projected columns of all rows that the snapshot sees.
struct SnapshotScanExec {
    table: Arc<Table>,
    snapshot: Snapshot,
    partitions: u16,
    streams: usize,
    columns: Arc<[usize]>,
    /// Each stream may stop after this many rows.
    limit: Option<usize>,
    statistics: Arc<Statistics>,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for SnapshotScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as(DisplayFormatType::Default, f)
    }
}

impl DisplayAs for SnapshotScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SnapshotScan: {}.{}", self.table.schema, self.table.name)?;
        let names: Vec<&str> = self
            .columns
            .iter()
            .map(|&column| match self.table.columns.get(column) {
                Some(def) => def.name.as_str(),
                None => "row number",
            })
            .collect();
        write!(
            f,
            ", columns=[{}], streams={}",
            names.join(", "),
            self.streams
        )?;
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for SnapshotScanExec {
    fn name(&self) -> &str {
        "SnapshotScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() {
            Ok(self)
        } else {
            internal_err!("a scan has no children")
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() {
            Ok(self)
        } else {
            internal_err!("a scan has no children")
        }
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        if args.partition().is_none() {
            return Ok(Arc::clone(&self.statistics));
        }
        let mut share = self.statistics.as_ref().clone();
        share.num_rows = share.num_rows.map(|rows| rows / self.streams);
        Ok(Arc::new(share))
    }

    fn execute(
        &self,
        partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = Arc::clone(self.properties.eq_properties.schema());
        let reader = Reader {
            remaining: (0..self.partitions)
                .rev()
                .filter(|number| usize::from(*number) % self.streams == partition)
                .collect(),
            scan: None,
            builder: BatchBuilder::new(
                &self.table,
                &self.columns,
                Arc::clone(&schema),
                batch_bytes(self.snapshot.database().memory_limit()),
            ),
            table: Arc::clone(&self.table),
            columns: Arc::clone(&self.columns),
            snapshot: self.snapshot.clone(),
            rows_left: self.limit.unwrap_or(usize::MAX),
        };
        let batches = stream::try_unfold(reader, |mut reader| async move {
            let batch = reader.next_batch().await?;
            Ok(batch.map(|batch| (batch, reader)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

struct Reader {
    table: Arc<Table>,
    columns: Arc<[usize]>,
    snapshot: Snapshot,
    /// Partitions still to be read, the next one last.
    remaining: Vec<u16>,
    scan: Option<SnapshotScan>,
    builder: BatchBuilder,
    rows_left: usize,
}

impl Reader {
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.rows_left == 0 {
            return Ok(None);
        }
        // A query takes memory batch by batch, faster than rows can leave.
        let room = self.snapshot.database().wait_for_room().await;
        room.map_err(external)?;
        while !self.builder.is_full() {
            let scan = match &mut self.scan {
                Some(scan) => scan,
                None => match self.remaining.pop() {
                    Some(partition) => {
                        let scan =
                            self.snapshot
                                .scan_columns(&self.table, partition, &self.columns);
                        self.scan.insert(scan)
                    }
                    None => break,
                },
            };
            let (table, builder) = (&self.table, &mut self.builder);
            let more = scan
                .next_chunk(|row, tuple| builder.push(table, row, tuple))
                .await
                .map_err(external)?;
            if !more {
                self.scan = None;
            }
        }
        if self.builder.is_empty() {
            return Ok(None);
        }
        let mut batch = self.builder.finish()?;
        if batch.num_rows() > self.rows_left {
            batch = batch.slice(0, self.rows_left);
        }
        self.rows_left -= batch.num_rows();
        Ok(Some(batch))
    }
}

fn external(error: thermocline_engine::Error) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::from(error)))
}
