//! Operators of our own, and what DataFusion wants of each: one logical node and one execution
//! plan hold any of them.

mod compact;
pub mod frames;
pub mod generate;
pub mod group;
mod group_files;
mod group_table;
pub mod order;
pub mod recursion;
pub mod rows;
pub mod shared;
pub mod states;
pub mod window;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DFSchemaRef, Statistics};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, OrderingRequirements, Partitioning, PhysicalExpr,
    PhysicalSortExpr,
};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan,
    InputDistributionRequirements, PlanProperties, ReplaceChildrenOptions, StatisticsArgs,
};

use crate::evaluate::name_of;
use crate::form::Form;

/// What an operator does. Its columns are known by their names.
#[async_trait]
pub trait Operator: Send + Sync + fmt::Debug {
    /// Its name in plans.
    fn name(&self) -> &'static str;

    /// The columns that it adds: numbers and types.
    fn added(&self) -> Vec<(usize, u32)>;

    /// Whether its input's columns come out, too, before those added.
    fn passes(&self) -> bool;

    /// The columns of the input that it needs itself.
    fn needs(&self) -> Vec<usize>;

    /// The columns that the input must be sorted by: keys, from the least.
    fn sorted_by(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Whether rows come out in the order in which they come in.
    fn keeps_order(&self) -> bool {
        false
    }

    /// About how many rows it gives, where that can be told before.
    fn rows(&self) -> Option<usize> {
        None
    }

    /// Plans what an operator without inputs is made of.
    ///
    /// # Errors
    /// As planning's.
    async fn prepare(&self, _: &dyn datafusion::catalog::Session) -> Result<()> {
        Ok(())
    }

    /// Runs. `schema` is that of the rows it gives.
    ///
    /// # Errors
    /// As its expressions'.
    fn execute(
        &self,
        inputs: &[Arc<dyn ExecutionPlan>],
        schema: SchemaRef,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream>;
}

/// An operator within a logical plan.
#[derive(Clone)]
pub struct Node {
    operator: Arc<dyn Operator>,
    inputs: Vec<LogicalPlan>,
    schema: DFSchemaRef,
    number: u64,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The plan of an operator over its inputs.
///
/// # Errors
/// When the inputs' columns have not different names.
pub fn plan(operator: Arc<dyn Operator>, inputs: Vec<LogicalPlan>) -> Result<LogicalPlan> {
    let schema = schema_of(operator.as_ref(), &inputs)?;
    let number = NUMBER.fetch_add(1, Memory::Relaxed);
    Ok(LogicalPlan::Extension(Extension {
        node: Arc::new(Node {
            operator,
            inputs,
            schema,
            number,
        }),
    }))
}

/// The field of a plan's column.
#[must_use]
pub fn field(id: usize, oid: u32) -> Field {
    Field::new(name_of(id), Form::of(oid).arrow(), true)
}

fn schema_of(operator: &dyn Operator, inputs: &[LogicalPlan]) -> Result<DFSchemaRef> {
    let mut fields = Vec::new();
    if operator.passes() {
        for input in inputs {
            fields.extend(
                input
                    .schema()
                    .iter()
                    .map(|(_, field)| (None, Arc::clone(field))),
            );
        }
    }
    let added = operator.added();
    fields.extend(
        added
            .iter()
            .map(|(id, oid)| (None, Arc::new(field(*id, *oid)))),
    );
    let schema = DFSchema::new_with_metadata(fields, std::collections::HashMap::new())?;
    Ok(Arc::new(schema))
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        UserDefinedLogicalNodeCore::fmt_for_explain(self, f)
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number && self.inputs == other.inputs
    }
}

impl Eq for Node {}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.number.partial_cmp(&other.number)
    }
}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
        self.inputs.hash(state);
    }
}

impl UserDefinedLogicalNodeCore for Node {
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.inputs.iter().collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.operator.name(), self.operator)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        Ok(Self {
            schema: schema_of(self.operator.as_ref(), &inputs)?,
            operator: Arc::clone(&self.operator),
            inputs,
            number: self.number,
        })
    }

    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let mut needed: Vec<String> = self.operator.needs().into_iter().map(name_of).collect();
        if self.operator.passes() {
            let names = output.iter().filter_map(|at| self.schema.fields().get(*at));
            needed.extend(names.map(|field| field.name().clone()));
        }
        let of_input = |input: &LogicalPlan| {
            let fields = input.schema().fields().iter().enumerate();
            fields
                .filter(|(_, field)| needed.contains(field.name()))
                .map(|(at, _)| at)
                .collect()
        };
        Some(self.inputs.iter().map(of_input).collect())
    }
}

/// Makes execution plans of [`Node`]s.
#[derive(Debug)]
pub struct Planner;

#[async_trait]
impl datafusion::physical_planner::ExtensionPlanner for Planner {
    async fn plan_extension(
        &self,
        _: &dyn datafusion::physical_planner::PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn datafusion::catalog::Session,
        _: &datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<Node>() else {
            return Ok(None);
        };
        node.operator.prepare(session).await?;
        let exec = OperatorExec::new(Arc::clone(&node.operator), inputs.to_vec())?;
        Ok(Some(Arc::new(exec)))
    }
}

/// An operator within an execution plan.
struct OperatorExec {
    operator: Arc<dyn Operator>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    order: Vec<Option<OrderingRequirements>>,
    properties: Arc<PlanProperties>,
}

impl OperatorExec {
    fn new(operator: Arc<dyn Operator>, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        let mut fields = Vec::new();
        if operator.passes() {
            for input in &inputs {
                fields.extend(input.schema().fields().iter().cloned());
            }
        }
        let added = operator.added();
        fields.extend(added.iter().map(|(id, oid)| Arc::new(field(*id, *oid))));
        let schema = Arc::new(Schema::new(fields));
        let mut order = Vec::with_capacity(inputs.len());
        for input in &inputs {
            let mut keys = Vec::new();
            for id in operator.sorted_by() {
                let column = Column::new_with_schema(&name_of(id), &input.schema())?;
                keys.push(PhysicalSortExpr::new(
                    Arc::new(column),
                    SortOptions {
                        descending: false,
                        nulls_first: true,
                    },
                ));
            }
            order.push(LexOrdering::new(keys).map(OrderingRequirements::from));
        }
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Self {
            operator,
            inputs,
            order,
            properties: Arc::new(properties),
        })
    }
}

impl fmt::Debug for OperatorExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operator.fmt(f)
    }
}

impl DisplayAs for OperatorExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.operator.name(), self.operator)
    }
}

impl ExecutionPlan for OperatorExec {
    fn name(&self) -> &'static str {
        self.operator.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition; self.inputs.len()])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.order.clone()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.operator.keeps_order(); self.inputs.len()]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(Arc::clone(&self.operator), children)?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        if let Some(rows) = self.operator.rows() {
            statistics.num_rows = Precision::Inexact(rows);
        }
        Ok(Arc::new(statistics))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return Err(DataFusionError::Internal(
                "an operator of one partition".to_owned(),
            ));
        }
        let stream = self
            .operator
            .execute(&self.inputs, self.schema(), context)?;
        let stream = RecordBatchStreamAdapter::new(self.schema(), stream);
        Ok(Box::pin(cooperative(stream)))
    }
}

/// A batch of columns; of none, with so many rows.
///
/// # Errors
/// When the columns are not of the schema.
pub fn batch_of(
    schema: &SchemaRef,
    columns: Vec<datafusion::arrow::array::ArrayRef>,
    rows: usize,
) -> Result<RecordBatch> {
    let options = datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}

/// The input of an operator that has one.
fn only_input(inputs: &[Arc<dyn ExecutionPlan>]) -> Result<&Arc<dyn ExecutionPlan>> {
    let input = inputs.first();
    input.ok_or_else(|| DataFusionError::Internal("no input".to_owned()))
}
