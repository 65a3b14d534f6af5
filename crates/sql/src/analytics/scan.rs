//! Tables as DataFusion sees them: read-only, at one snapshot. A provider
//! implements no insert, update or delete, so that no plan can write.
//!
//! The engine's partitions are dealt out to as many streams as there are
//! cores. A stream reads its partitions one after the other, chunk by chunk,
//! and hands on a batch whenever one is full. Evicted tuples are read by the
//! snapshot in batches; dropping the stream ends the reading. Where no column is wanted, the rows are
//! counted and not read.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions, SendableRecordBatchStream, StatisticsArgs,
};
use futures::stream;
use thermocline_engine::catalog::Table;
use thermocline_engine::{GroupRows, IndexKeys, KeyScan, RowId, ScanSink, Snapshot, SnapshotScan};
use thermocline_storage::columns::ColumnTest;

use super::CALLING_BATCH_ROWS;
use super::asked::ScanFilter;
use super::batch::{BatchBuilder, batch_bytes, table_schema};
use super::learned::Learned;
use super::scans::Scans;
use super::vectors;
use super::way::{self, Way, rows_by_key};
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
    scans: Arc<Scans>,
    schema: SchemaRef,
}

impl SnapshotTable {
    /// `table` as `snapshot` sees it, read by up to `streams` streams; `rows`
    /// is an estimate; `scans` is the statement's. Without a snapshot it can be described, not read; a scan
    /// of a `hidden` column is refused.
    pub(crate) fn new(
        table: Arc<Table>,
        hidden: Vec<usize>,
        snapshot: Option<Snapshot>,
        partitions: u16,
        streams: usize,
        rows: u64,
        scans: Arc<Scans>,
    ) -> Self {
        Self {
            schema: table_schema(&table),
            table,
            hidden,
            snapshot,
            partitions,
            streams,
            rows,
            scans,
        }
    }

    /// The same under the schema of the table that it is a partition of: what that one has NULLs in
    /// has them here, too.
    pub(super) fn under(self, schema: SchemaRef) -> Self {
        Self { schema, ..self }
    }

    /// About how many rows it has.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether a scan hears of a filter. A column table's hears of conditions that it cannot be asked,
    /// too, and counts the columns in them.
    pub(super) fn hears(&self, filter: &Expr) -> bool {
        self.table.is_columns() || way::may_bound(&self.table, filter)
    }

    fn estimate(&self, schema: &SchemaRef, rows: u64) -> Statistics {
        let mut statistics = Statistics::new_unknown(schema);
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        statistics.num_rows = Precision::Inexact(rows);
        // A column that is a key by itself has as many values as there are rows.
        for index in self.table.indexes.iter().filter(|index| index.unique) {
            if let [column] = index.columns.as_slice()
                && let Some(column) = self.table.columns.get(*column)
                && let Ok(at) = schema.index_of(&column.name)
            {
                let known = usize::try_from(self.rows).unwrap_or(usize::MAX);
                statistics.column_statistics[at].distinct_count = Precision::Inexact(known);
            }
        }
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
        Some(self.estimate(&self.schema, self.rows))
    }

    /// What a scan is asked is asked again above it: it may give out others.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let hears = |filter: &&Expr| match self.hears(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(hears).collect())
    }

    fn scan<'life0, 'life1, 'life2, 'life3, 'async_trait>(
        &'life0 self,
        _state: &'life1 dyn Session,
        projection: Option<&'life2 Vec<usize>>,
        filters: &'life3 [Expr],
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
                let refused = denied(self.table.kind(), &self.table.name);
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
            let filter = match self.table.is_columns() {
                true => ScanFilter::of(&self.table, filters),
                false => ScanFilter::default(),
            };
            let snapshot = self.snapshot.clone();
            let snapshot = snapshot
                .ok_or_else(|| DataFusionError::Internal("a scan without a snapshot".to_owned()))?;
            let way = Way::of(&self.table, filters, &snapshot, self.rows).await;
            let way = way.map_err(external)?;
            let rows = way.rows().unwrap_or(self.rows);
            Ok(Arc::new(SnapshotScanExec {
                asked: filter.tests.into(),
                shown: filter.shown,
                conditions: conditions_in(&self.table, filters).into(),
                scans: Arc::clone(&self.scans),
                statistics: Arc::new(self.estimate(&schema, rows)),
                table: Arc::clone(&self.table),
                rows: self.rows,
                way: Arc::new(way),
                snapshot,
                partitions: self.partitions,
                streams,
                columns,
                limit,
                properties: Arc::new(properties),
                metrics: ExecutionPlanMetricsSet::new(),
            }) as Arc<dyn ExecutionPlan>)
        })
    }
}

/// Rows of a batch that are only counted.
const COUNTED_ROWS: u64 = 1 << 16;

/// Reads the projected columns of the rows that the snapshot sees: of all, or of those with some keys.
#[derive(Clone)]
pub(super) struct SnapshotScanExec {
    table: Arc<Table>,
    snapshot: Snapshot,
    /// About how many the table has.
    rows: u64,
    way: Arc<Way>,
    partitions: u16,
    streams: usize,
    columns: Arc<[usize]>,
    /// What rows of row groups are asked, and how that is shown.
    asked: Arc<[ColumnTest]>,
    shown: String,
    /// The columns that conditions are on, for statistics.
    conditions: Arc<[usize]>,
    scans: Arc<Scans>,
    /// Each stream may stop after this many rows.
    limit: Option<usize>,
    statistics: Arc<Statistics>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SnapshotScanExec {
    /// A scan that reads by what a join tells of its keys, which stand at these places among the
    /// columns; `None`: no index is over them.
    pub(super) fn told(&self, keys: &[Option<usize>]) -> Option<(Self, Arc<Learned>)> {
        if self.limit.is_some() || self.rows <= rows_by_key(&self.table, self.rows) {
            return None;
        }
        let column = |place: &Option<usize>| Some(*self.columns.get((*place)?)?);
        let keys: Vec<Option<usize>> = keys.iter().map(column).collect();
        let size = (self.rows, self.partitions);
        let learned = Learned::of(&self.table, &keys, &self.way.equal, size)?;
        let learned = Arc::new(learned);
        let told = Self {
            way: Arc::new(self.way.with(Some(Arc::clone(&learned)))),
            ..self.clone()
        };
        Some((told, learned))
    }

    /// About how many rows it reads, of those that no join tells of.
    pub(super) fn rows_to_read(&self) -> u64 {
        if self.way.learns() {
            return 0;
        }
        let rows = self.way.rows().unwrap_or(self.rows);
        let limit = self.limit.map(|limit| limit.saturating_mul(self.streams));
        limit.map_or(rows, |limit| rows.min(limit as u64))
    }

    /// Counts what the scan reads of each column.
    fn count_use(&self) {
        let given = self.columns.iter().copied();
        let given = given.filter(|column| !self.conditions.contains(column));
        let given: Vec<usize> = given.collect();
        let db = self.snapshot.database();
        db.count_column_use(&self.table, &given, &self.conditions);
    }
}

/// The columns of a column table that these filters are on.
fn conditions_in(table: &Table, filters: &[Expr]) -> Vec<usize> {
    if !table.is_columns() {
        return Vec::new();
    }
    let place = |name: &str| table.columns.iter().position(|column| column.name == name);
    let refs = filters.iter().flat_map(Expr::column_refs);
    let mut columns: Vec<usize> = refs.filter_map(|column| place(&column.name)).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
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
                Some(def) => def.shown(),
                None => "row number",
            })
            .collect();
        write!(
            f,
            ", columns=[{}], streams={}",
            names.join(", "),
            self.streams
        )?;
        if !self.shown.is_empty() {
            write!(f, ", asked=[{}]", self.shown)?;
        }
        for (index, source) in self.way.shown(&self.table) {
            write!(f, ", by {index} (keys of {source})")?;
        }
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

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let way = Arc::new(self.way.with(None));
        Ok(Arc::new(Self {
            way,
            ..self.as_ref().clone()
        }))
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

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        // Once a scan, and not once a stream.
        if partition == 0 && self.table.is_columns() {
            self.count_use();
        }
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
            rows: self.rows,
            way: Arc::clone(&self.way),
            keys: None,
            columns: Arc::clone(&self.columns),
            asked: Arc::clone(&self.asked),
            scans: Arc::clone(&self.scans),
            schema: Arc::clone(&schema),
            of_group: None,
            counted: 0,
            snapshot: self.snapshot.clone(),
            rows_left: self.limit.unwrap_or(usize::MAX),
            rows_max: match context.session_config().batch_size() {
                few @ ..=CALLING_BATCH_ROWS => few,
                _ => usize::MAX,
            },
            given: MetricBuilder::new(&self.metrics).output_rows(partition),
        };
        let batches = stream::try_unfold(reader, |mut reader| async move {
            let batch = reader.next_batch().await?;
            Ok(batch.map(|batch| (batch, reader)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// A partition that is being read.
enum Scan {
    Rows(SnapshotScan),
    Keys(KeyScan),
}

struct Reader {
    table: Arc<Table>,
    rows: u64,
    way: Arc<Way>,
    /// What it reads by, once that is known; `None` within: all rows.
    keys: Option<Option<Arc<IndexKeys>>>,
    columns: Arc<[usize]>,
    asked: Arc<[ColumnTest]>,
    scans: Arc<Scans>,
    schema: SchemaRef,
    /// A batch of rows of a row group, or what is left of a batch, to be handed on before all else.
    of_group: Option<RecordBatch>,
    /// Rows of a batch, where each of them may cost a call.
    rows_max: usize,
    /// Rows that were counted, and are still to be handed on.
    counted: u64,
    snapshot: Snapshot,
    /// Partitions still to be read, the next one last.
    remaining: Vec<u16>,
    scan: Option<Scan>,
    builder: BatchBuilder,
    rows_left: usize,
    /// Rows that it has given, for EXPLAIN ANALYZE.
    given: Count,
}

impl Reader {
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.rows_left == 0 {
            return Ok(None);
        }
        // A query takes memory batch by batch, faster than rows can leave.
        let room = self.snapshot.database().wait_for_room().await;
        room.map_err(external)?;
        let keys = match &self.keys {
            Some(keys) => keys.clone(),
            None => {
                let chosen = self
                    .way
                    .choose(&self.table, &self.snapshot, self.rows)
                    .await;
                let keys = self.keys.insert(chosen.map_err(external)?).clone();
                self.scans.reads(&self.table, keys.as_deref());
                keys
            }
        };
        while !self.builder.is_full() && self.of_group.is_none() {
            self.scans.go_on()?;
            let scan = match &mut self.scan {
                Some(scan) => scan,
                None => match self.remaining.pop() {
                    Some(partition) => match self.begin(partition, keys.as_ref()).await? {
                        Some(scan) => self.scan.insert(scan),
                        None => continue,
                    },
                    None => break,
                },
            };
            let mut sink = Sink {
                table: &self.table,
                columns: &self.columns,
                schema: &self.schema,
                builder: &mut self.builder,
                of_group: &mut self.of_group,
                error: None,
            };
            let more = match scan {
                Scan::Rows(scan) => scan.next_rows(&mut sink).await,
                Scan::Keys(scan) => {
                    let each = &mut |row, tuple: &[u8]| sink.tuple(row, tuple);
                    scan.next_rows(each).await
                }
            };
            if let Some(error) = sink.error {
                return Err(error);
            }
            if !more.map_err(external)? {
                if let Scan::Rows(scan) = scan {
                    self.scans.add(scan.group_counts());
                }
                self.scan = None;
            }
        }
        let mut batch = match self.of_group.take() {
            Some(batch) => batch,
            None if self.counted > 0 => self.counted_batch()?,
            None if self.builder.is_empty() => return Ok(None),
            None => self.builder.finish()?,
        };
        if let Some(left @ 1..) = batch.num_rows().checked_sub(self.rows_max) {
            self.of_group = Some(batch.slice(self.rows_max, left));
            batch = batch.slice(0, self.rows_max);
        }
        if batch.num_rows() > self.rows_left {
            batch = batch.slice(0, self.rows_left);
        }
        self.rows_left -= batch.num_rows();
        self.given.add(batch.num_rows());
        Ok(Some(batch))
    }

    /// Begins a partition; `None`: its rows are counted already.
    async fn begin(
        &mut self,
        partition: u16,
        keys: Option<&Arc<IndexKeys>>,
    ) -> Result<Option<Scan>> {
        if let Some(keys) = keys {
            let scan = self.snapshot.scan_keys(&self.table, partition, keys);
            return Ok(Some(Scan::Keys(scan)));
        }
        if self.columns.is_empty() && self.asked.is_empty() {
            let count = self.snapshot.count(&self.table, partition).await;
            if let Some(count) = count.map_err(external)? {
                self.counted += count;
                return Ok(None);
            }
        }
        let (columns, asked) = (&self.columns, &self.asked);
        let scan = self
            .snapshot
            .scan_columns(&self.table, partition, columns, asked);
        Ok(Some(Scan::Rows(scan)))
    }

    /// Rows without columns.
    fn counted_batch(&mut self) -> Result<RecordBatch> {
        let rows = self.counted.min(COUNTED_ROWS);
        self.counted -= rows;
        let options = RecordBatchOptions::new().with_row_count(usize::try_from(rows).ok());
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(
            schema,
            Vec::new(),
            &options,
        )?)
    }
}

/// Takes rows in memory one by one, and those of row groups as vectors where that can be.
struct Sink<'a> {
    table: &'a Table,
    columns: &'a [usize],
    schema: &'a SchemaRef,
    builder: &'a mut BatchBuilder,
    of_group: &'a mut Option<RecordBatch>,
    error: Option<DataFusionError>,
}

impl ScanSink for Sink<'_> {
    fn tuple(&mut self, row: RowId, tuple: &[u8]) {
        self.builder.push(self.table, row, tuple);
    }

    fn group(&mut self, rows: &GroupRows<'_>) -> thermocline_engine::Result<bool> {
        match vectors::batch(self.table, self.columns, self.schema, rows) {
            Ok(batch) => {
                let is_there = batch.is_some();
                *self.of_group = batch;
                Ok(is_there)
            }
            Err(error) => {
                self.error = Some(error);
                Ok(true)
            }
        }
    }
}

pub(super) fn external(error: thermocline_engine::Error) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::from(error)))
}
