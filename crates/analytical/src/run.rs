//! Runs plans: DataFusion's session without its SQL, and rows of datums as they come.

use std::sync::Arc;

use datafusion::config::ConfigNonZeroUsize;
use datafusion::error::Result as DfResult;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::OptimizerRule;
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::eliminate_filter::EliminateFilter;
use datafusion::optimizer::eliminate_limit::EliminateLimit;
use datafusion::optimizer::eliminate_outer_join::EliminateOuterJoin;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::optimize_unions::OptimizeUnions;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::push_down_limit::PushDownLimit;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::SessionConfig;
use futures::{Stream, StreamExt, TryStreamExt};
use thermocline_query::call::Environment;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};

use crate::ending;
use crate::errors::query_error;
use crate::form::{ColumnReader, Form};
use crate::join_order::JoinOrder;
use crate::lower::Lowered;
use crate::nulls_equal::Unseen;
use crate::operators::Planner;
use crate::projections_down::{ProjectionsDown, REPLACED};

#[derive(Debug)]
struct WithOperators;

#[async_trait::async_trait]
impl QueryPlanner for WithOperators {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn datafusion::catalog::Session,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Planner)])
            .create_physical_plan(plan, session)
            .await
    }
}

/// The rules that plans are bettered by. Those that compute constants, share expressions of
/// branches or undo subqueries are left out: errors would come where PostgreSQL has none.
fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    vec![
        Arc::new(OptimizeUnions::new()),
        Arc::new(Unseen(ExtractEquijoinPredicate::new())),
        Arc::new(EliminateFilter::new()),
        Arc::new(Unseen(EliminateCrossJoin::new())),
        Arc::new(EliminateLimit::new()),
        Arc::new(EliminateOuterJoin::new()),
        Arc::new(PushDownLimit::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(JoinOrder),
        Arc::new(OptimizeProjections::new()),
    ]
}

/// A session for lowered plans, made once for all statements: the memory, the files, the
/// number of streams and what is done to execution plans last are the caller's.
#[must_use]
pub fn session(
    config: SessionConfig,
    runtime: Arc<RuntimeEnv>,
    last: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> SessionState {
    let mut physical = PhysicalOptimizer::new().rules;
    for rule in physical.iter_mut().filter(|rule| rule.name() == REPLACED) {
        *rule = Arc::new(ProjectionsDown);
    }
    physical.extend(last);
    let mut config = config.with_information_schema(false);
    let options = config.options_mut();
    options.execution.skip_physical_aggregate_schema_check = true;
    // What a repartition puts aside goes into a file a batch. Where several writers share files
    // that stay open, its reader waits at the first of them for a batch that is in the second:
    // if the readers of all partitions do, the writers wait for them, and so for ever.
    if let Ok(less_than_a_batch) = ConfigNonZeroUsize::try_new(1) {
        options.execution.max_spill_file_size_bytes = less_than_a_batch;
    }
    // No scan here takes what a join learns of its keys, and NULL would not be among it.
    options.optimizer.enable_join_dynamic_filter_pushdown = false;
    // Rows that come in an order stay in it.
    options.optimizer.enable_round_robin_repartition = false;
    SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_analyzer_rules(Vec::new())
        .with_optimizer_rules(rules())
        .with_physical_optimizer_rules(physical)
        .with_query_planner(Arc::new(WithOperators))
        .build()
}

/// The execution plan of a lowered query. `look` is called now and then.
///
/// # Errors
/// Not implemented for what DataFusion does not plan.
pub async fn physical(
    state: &SessionState,
    lowered: &Lowered,
    look: &(dyn Fn() + Send + Sync),
) -> DfResult<Arc<dyn ExecutionPlan>> {
    planned(state, lowered.plan.clone(), &lowered.environment, look).await
}

/// The execution plan of a statement's plan, or of a part of it.
pub(crate) async fn planned(
    state: &SessionState,
    plan: LogicalPlan,
    environment: &Arc<dyn Environment>,
    look: &(dyn Fn() + Send + Sync),
) -> DfResult<Arc<dyn ExecutionPlan>> {
    let plan = state.optimizer().optimize(plan, state, |_, _| look())?;
    let plan = ending::asked(plan, environment)?;
    let planner = Arc::clone(state.query_planner());
    planner.create_physical_plan(&plan, state).await
}

/// A result, row by row.
pub struct Rows {
    batches: SendableRecordBatchStream,
    types: Vec<u32>,
}

/// Begins to run a plan. Dropping the result ends it.
///
/// # Errors
/// As its operators'.
pub fn run(
    plan: Arc<dyn ExecutionPlan>,
    types: Vec<u32>,
    context: Arc<TaskContext>,
) -> Result<Rows> {
    let batches = execute_stream(plan, context).map_err(|error| query_error(&error))?;
    Ok(Rows { batches, types })
}

impl Rows {
    /// The next rows; `None` after the last ones.
    ///
    /// # Errors
    /// As PostgreSQL's of the statement.
    pub async fn next(&mut self) -> Result<Option<Vec<Vec<Datum>>>> {
        loop {
            let batch = self.batches.try_next().await;
            let Some(batch) = batch.map_err(|error| query_error(&error))? else {
                return Ok(None);
            };
            if batch.num_rows() == 0 {
                continue;
            }
            if batch.num_columns() != self.types.len() {
                return Err(QueryError::internal("a result of other columns"));
            }
            let readers = self.types.iter().zip(batch.columns());
            let readers =
                readers.map(|(oid, array)| ColumnReader::new(Form::of(*oid), Arc::clone(array)));
            let readers = readers.collect::<Result<Vec<_>>>()?;
            let row = |row: usize| readers.iter().map(|reader| reader.get(row)).collect();
            return (0..batch.num_rows())
                .map(row)
                .collect::<Result<_>>()
                .map(Some);
        }
    }

    /// As a stream of batches of rows.
    pub fn into_stream(self) -> impl Stream<Item = Result<Vec<Vec<Datum>>>> + Send {
        futures::stream::try_unfold(self, |mut rows| async move {
            Ok(rows.next().await?.map(|batch| (batch, rows)))
        })
        .boxed()
    }
}
