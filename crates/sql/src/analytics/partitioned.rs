//! Partitioned tables as DataFusion sees them: the scans of the partitions that a statement's filters
//! leave, one after the other. So a statement over many partitions reads as few of them at a time as
//! one over a single table.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions, SendableRecordBatchStream, StatisticsArgs,
};
use futures::{StreamExt, stream};
use thermocline_engine::Catalog;
use thermocline_engine::catalog::Table;

use super::batch::table_schema;
use super::scan::SnapshotTable;
use super::way;
use crate::exec::partitions::having;
use crate::expr::EvalContext;

/// So many values of lists are kept by the scans of all partitions; with more, none looks for them in
/// its indexes.
const LISTED_MAX: usize = 1 << 16;

/// A partition: its table's scans, or its own partitions.
enum Below {
    Leaf(Box<SnapshotTable>),
    Partitioned(Box<PartitionedTable>),
}

/// A partitioned table at a snapshot.
pub(super) struct PartitionedTable {
    table: Arc<Table>,
    schema: SchemaRef,
    /// By the positions of its partitions.
    below: Vec<Below>,
}

impl PartitionedTable {
    /// `leaf` makes the scans of a partition without partitions, under this schema.
    pub(super) fn new(
        catalog: &Catalog,
        table: &Arc<Table>,
        leaf: &dyn Fn(&Arc<Table>, &SchemaRef) -> SnapshotTable,
    ) -> Self {
        Self::within(catalog, table, &table_schema(table), leaf)
    }

    fn within(
        catalog: &Catalog,
        table: &Arc<Table>,
        schema: &SchemaRef,
        leaf: &dyn Fn(&Arc<Table>, &SchemaRef) -> SnapshotTable,
    ) -> Self {
        let by = table.partitioned.iter().flat_map(|by| &by.partitions);
        let below = by.filter_map(|partition| catalog.table(partition.table));
        let below = below.map(|table| match table.partitioned {
            None => Below::Leaf(Box::new(leaf(table, schema))),
            Some(_) => {
                let deeper = Self::within(catalog, table, schema, leaf);
                Below::Partitioned(Box::new(deeper))
            }
        });
        Self {
            table: Arc::clone(table),
            schema: Arc::clone(schema),
            below: below.collect(),
        }
    }

    /// Calls `each` with the scans of the partitions that filters leave.
    fn left<'t>(&'t self, filters: &[Expr], each: &mut dyn FnMut(&'t SnapshotTable)) {
        let Some((map, key_table)) = &self.table.partition_map else {
            return;
        };
        let mut positions = Vec::new();
        let (all, asked) = (self.below.len(), way::source_in(key_table, filters));
        let left =
            asked.map(|asked| having(map, &asked, &EvalContext::none(), all, &mut positions));
        if !matches!(left, Some(Ok(()))) {
            positions.clear();
            positions.extend(0..all);
        }
        for position in positions {
            match self.below.get(position) {
                Some(Below::Leaf(table)) => each(table),
                Some(Below::Partitioned(deeper)) => deeper.left(filters, each),
                None => {}
            }
        }
    }

    fn hears(&self, filter: &Expr) -> bool {
        let of_key = |map| way::may_bound(map, filter);
        self.table
            .partition_map
            .as_ref()
            .is_some_and(|(_, key_table)| of_key(key_table))
            || self.below.iter().any(|below| match below {
                Below::Leaf(table) => table.hears(filter),
                Below::Partitioned(deeper) => deeper.hears(filter),
            })
    }
}

impl fmt::Debug for PartitionedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "PartitionedTable({}.{})",
            self.table.schema, self.table.name
        )
    }
}

impl TableProvider for PartitionedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        let mut rows = 0_u64;
        self.left(&[], &mut |table| rows = rows.saturating_add(table.rows()));
        let mut statistics = Statistics::new_unknown(&self.schema);
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        statistics.num_rows = Precision::Inexact(rows);
        Some(statistics)
    }

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
        state: &'life1 dyn Session,
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
            let mut left = Vec::new();
            self.left(filters, &mut |table| left.push(table));
            // What all of them keep of long lists would be much.
            let values = left.len().saturating_mul(way::listed(&self.table, filters));
            let filters = if values > LISTED_MAX { &[] } else { filters };
            let mut scans = Vec::with_capacity(left.len());
            for table in left {
                scans.push(table.scan(state, projection, filters, limit).await?);
            }
            Ok(match scans.len() {
                0 => {
                    let columns = projection.map(|columns| self.schema.project(columns));
                    let schema = columns.transpose()?.map(Arc::new);
                    Arc::new(EmptyExec::new(schema.unwrap_or_else(|| self.schema())))
                }
                1 => scans.swap_remove(0),
                _ => Arc::new(PartitionsExec::new(scans)),
            })
        })
    }
}

/// Scans of several tables, of which each stream reads its part one after the other.
#[derive(Debug)]
pub(super) struct PartitionsExec {
    scans: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

impl PartitionsExec {
    fn new(scans: Vec<Arc<dyn ExecutionPlan>>) -> Self {
        let streams = scans.iter().map(streams_of).max();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(scans[0].schema()),
            Partitioning::UnknownPartitioning(streams.unwrap_or(1)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            scans,
            properties: Arc::new(properties),
        }
    }

    fn over(scans: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match scans.is_empty() {
            true => internal_err!("partitions without scans"),
            false => Ok(Arc::new(Self::new(scans))),
        }
    }
}

fn streams_of(scan: &Arc<dyn ExecutionPlan>) -> usize {
    scan.properties().output_partitioning().partition_count()
}

impl DisplayAs for PartitionsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartitionsExec: {} partitions", self.scans.len())
    }
}

impl ExecutionPlan for PartitionsExec {
    fn name(&self) -> &str {
        "PartitionsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.scans.iter().collect()
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
        Self::over(children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Self::over(children)
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut all = Statistics::new_unknown(&self.schema());
        let rows = inputs.iter().map(|input| input.num_rows);
        all.num_rows = rows
            .reduce(|one, other| one.add(&other))
            .unwrap_or(Precision::Absent);
        Ok(Arc::new(all))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let scans = self
            .scans
            .iter()
            .filter(|scan| partition < streams_of(scan));
        let scans: Vec<Arc<dyn ExecutionPlan>> = scans.cloned().collect();
        let batches = stream::iter(scans).flat_map(move |scan| {
            match scan.execute(partition, Arc::clone(&context)) {
                Ok(batches) => batches,
                Err(error) => {
                    let schema = scan.schema();
                    let failed = stream::once(std::future::ready(Err(error)));
                    Box::pin(RecordBatchStreamAdapter::new(schema, failed)) as _
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            batches,
        )))
    }
}
