//! Statements that read much: a pure SELECT that the short path declines is
//! planned and run by DataFusion over read-only tables at one snapshot of the
//! engine. Queries of the system catalogs, and SELECTs without a table, are
//! answered by [`crate::pg_catalog`] instead, which knows PostgreSQL's catalog
//! types.
//!
//! Assumes that the binder has proved the statement to be a pure SELECT. A
//! statement's memory is bounded (see [`memory`]); dropping its [`RowStream`]
//! cancels it. Faults of devices come back as the engine's errors.

mod batch;
mod call_name;
mod column_name;
mod context;
mod cooperation;
mod deep;
mod ending;
mod errors;
mod extent;
mod feed;
mod functions;
mod growing;
mod memory;
mod operators;
mod params;
mod passing;
mod prepare;
mod rewrite;
mod row_stream;
mod rows;
mod scan;
mod spilling;
mod threads;
mod types;

use std::net::SocketAddr;
use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::catalog::TableProvider;
use datafusion::execution::TaskContext;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::SessionConfig;
use datafusion::sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use sqlparser::ast::{ObjectName, Query, Statement};
use thermocline_engine::authority::Privileges;
use thermocline_engine::{Catalog, Charge, Database, Room, Snapshot, WaitsFor};
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

pub(crate) use batch::catalog_batch;
pub(crate) use errors::sql_error;
pub use row_stream::{RowStream, SettingChange};
pub(crate) use types::field_of as catalog_field;

use crate::error::{Result, SqlError};
use crate::output::OutputColumn;
use crate::parse::tokens::fold_parts;
use crate::pg_catalog::{self, CatalogRuns};
use crate::privilege::Actor;
use crate::session::Sessions;
use crate::typed::TypedQuery;
use context::StatementContext;
use ending::End;
use memory::AnalyticalMemory;
use row_stream::Turn;
use scan::SnapshotTable;
use spilling::SpillFiles;
pub(crate) use threads::Threads;

/// Streams that a table is read by at most, whatever the number of cores.
const STREAMS_MAX: usize = 32;

/// What a statement may know of its session; an owned copy, since a result is
/// streamed while the session goes on.
#[derive(Debug, Clone, Default)]
pub struct SessionFacts {
    /// Who the statement is run as.
    pub actor: Actor,
    /// Who the session is of.
    pub session_user: String,
    /// The database's name.
    pub database: String,
    /// The schemas that unqualified names are looked up in, in order.
    pub search_path: Vec<String>,
    /// The number in BackendKeyData.
    pub process_id: i32,
    /// The transaction's start, in microseconds since 2000-01-01 UTC.
    pub now_us: i64,
    /// All settings: name, value, description.
    pub settings: Arc<Vec<(String, String, String)>>,
    /// The sessions there are.
    pub activity: Arc<Vec<Activity>>,
    /// Transactions committed and rolled back since the start.
    pub transactions: (u64, u64),
    /// What statements took, of all sessions.
    pub(crate) sessions: Option<Arc<Sessions>>,
}

/// A session, as `pg_stat_activity` shows it.
#[derive(Debug, Clone)]
pub struct Activity {
    /// The number in BackendKeyData.
    pub process_id: i32,
    /// The user's name.
    pub user: String,
    /// `application_name`.
    pub application: String,
    /// `active`, `idle`, `idle in transaction`, `idle in transaction (aborted)`.
    pub state: String,
    /// The statement that runs or ran last.
    pub query: String,
    /// Whether the statement's role may see more than its user and application.
    pub is_visible: bool,
    /// Where its client is: `Some(None)` over a Unix socket.
    pub client: Option<Option<SocketAddr>>,
    /// The session's start, in microseconds since 2000-01-01 UTC.
    pub started_us: i64,
    /// The transaction's start, if there is one.
    pub transaction_us: Option<i64>,
    /// The statement's start; 0 before the first.
    pub statement_us: i64,
    /// When the state last changed.
    pub changed_us: i64,
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// The number of its transaction; 0 if it has none.
    pub transaction: u64,
    /// What it holds, in bytes, in the order of [`thermocline_engine::ChargeKind::ALL`].
    pub holds: Vec<u64>,
}

/// A sort's reserve for merging what it has put aside: one part of the share in so many.
const MERGE_SHARE_DIVISOR: usize = 32;
/// What planning a statement takes.
const PLAN_BYTES: u64 = 512 << 10;

/// The analytical side of a database.
pub struct Analytics {
    db: Arc<Database>,
    state: SessionState,
    memory: Arc<AnalyticalMemory>,
    streams: usize,
    threads: Threads,
    catalogs: CatalogRuns,
}

struct Planned {
    plan: LogicalPlan,
    parameters: Vec<DataType>,
}

impl Analytics {
    /// The analytical side of `db`. `memory_limit` is the database's, in bytes.
    ///
    /// # Errors
    /// When DataFusion cannot be set up.
    pub fn new(db: Arc<Database>, memory_limit: u64) -> Result<Self> {
        let streams = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(STREAMS_MAX);
        let memory = Arc::new(AnalyticalMemory::new(memory_limit, Some(Arc::clone(&db))));
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::clone(&memory) as _)
            .with_disk_manager_builder(
                DiskManagerBuilder::default()
                    .with_temp_file_factory(Arc::new(SpillFiles(Arc::clone(db.spill())))),
            )
            .build_arc()
            .map_err(sql_error)?;
        let catalogs = CatalogRuns::new(&db, Arc::clone(&runtime));
        let mut config = SessionConfig::new()
            .with_target_partitions(streams)
            .with_batch_size(batch::batch_rows(memory_limit))
            // What a sort keeps for merging its runs; there may be many sorts.
            .with_sort_spill_reservation_bytes(memory.limit_bytes() / MERGE_SHARE_DIVISOR)
            .with_information_schema(false);
        // Fields of one column carry different metadata in the branches of a
        // UNION: the place they come from. The check would refuse that.
        config
            .options_mut()
            .execution
            .skip_physical_aggregate_schema_check = true;
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .build();
        Ok(Self {
            db,
            state,
            memory,
            streams,
            threads: Threads::new("analytical", streams, true),
            catalogs,
        })
    }

    /// The names of the functions that DataFusion has.
    pub(crate) fn function_names(&self) -> impl Iterator<Item = &String> {
        let scalar = self.state.scalar_functions().keys();
        scalar
            .chain(self.state.aggregate_functions().keys())
            .chain(self.state.window_functions().keys())
            .chain(self.state.table_functions().keys())
    }

    /// Whether operators have most of what they may use.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.memory.used_bytes() > self.memory.limit_bytes() / 2
    }

    /// The bytes that analytical statements use, and may use.
    #[must_use]
    pub fn memory_bytes(&self) -> (usize, usize) {
        (self.memory.used_bytes(), self.memory.limit_bytes())
    }

    /// Room for the code of planner and operators, which a query brings into memory if none
    /// has run lately, faster than the evictor could answer. Held while the query runs.
    async fn room_for_code(&self) -> Result<Room> {
        Ok(self.db.run_code().await?)
    }

    /// What a statement's plan and batches take: each stream reads for one and fills it, has one
    /// in a channel and one with an operator; one waits for the session.
    #[must_use]
    pub fn turn_bytes(&self) -> u64 {
        let batch = batch::batch_bytes(self.db.memory_limit()) as u64;
        PLAN_BYTES + (4 * self.streams as u64 + 3) * batch
    }

    /// The types of a query's parameters and its columns. `declared` are the
    /// types that the client gave.
    ///
    /// # Errors
    /// As PostgreSQL for names and types that do not fit.
    pub async fn describe(
        self: &Arc<Self>,
        statement: &Statement,
        catalog: &Arc<Catalog>,
        declared: &[Option<DataType>],
        facts: &SessionFacts,
    ) -> Result<(Vec<DataType>, Vec<OutputColumn>)> {
        let query = query_of(statement)?;
        let _room = self.room_for_code().await?;
        let planned = self.planned(query, catalog, None, declared, facts).await?;
        let columns = output_columns(&planned.plan);
        Ok((planned.parameters, columns))
    }

    /// Runs a query with these parameters; `declared` as for [`Self::describe`]. `turn` has
    /// the snapshot it sees and the charge that [`Self::turn_bytes`] asked for.
    ///
    /// # Errors
    /// As PostgreSQL; errors of the execution come from the stream.
    pub async fn execute(
        self: &Arc<Self>,
        statement: &Statement,
        catalog: &Arc<Catalog>,
        declared: &[Option<DataType>],
        parameters: &[Value],
        facts: &SessionFacts,
        turn: (Snapshot, Charge),
    ) -> Result<RowStream> {
        let query = query_of(statement)?;
        let (snapshot, charge) = turn;
        let room = self.room_for_code().await?;
        let turn = Turn::new(Arc::clone(&self.db), charge, room);
        let planned = self.planned(query, catalog, Some(snapshot), declared, facts);
        let planned = planned.await?;
        let columns = output_columns(&planned.plan);
        let values = params::parameter_values(&planned.parameters, parameters)?;
        let plan = planned.plan.with_param_values(values).map_err(sql_error)?;
        let end = End::default();
        let physical = self.physical(plan, Some(&end)).await?;
        let context = Arc::new(TaskContext::from(&self.state));
        let feed = feed::begin(&self.threads, physical, context, end)?;
        Ok(RowStream::of_batches(columns, feed, turn))
    }

    /// Runs a query that was analysed already and reads no stored table.
    ///
    /// # Errors
    /// As PostgreSQL.
    pub(crate) async fn execute_typed(
        &self,
        typed: &Arc<TypedQuery>,
        catalog: &Arc<Catalog>,
        parameters: &[Value],
        facts: &SessionFacts,
    ) -> Result<RowStream> {
        let _room = self.room_for_code().await?;
        self.catalogs
            .execute(typed, catalog, parameters, facts)
            .await
    }

    /// The plan of such a query, one line a row.
    ///
    /// # Errors
    /// As [`Self::execute_typed`].
    pub(crate) async fn explain_typed(
        &self,
        typed: &Arc<TypedQuery>,
        catalog: &Arc<Catalog>,
        facts: &SessionFacts,
    ) -> Result<Vec<String>> {
        let _room = self.room_for_code().await?;
        self.catalogs.explain(typed, catalog, facts).await
    }

    /// The plan of a query, one line a row.
    ///
    /// # Errors
    /// As [`Self::describe`].
    pub async fn explain(
        self: &Arc<Self>,
        statement: &Statement,
        catalog: &Arc<Catalog>,
        declared: &[Option<DataType>],
        facts: &SessionFacts,
    ) -> Result<Vec<String>> {
        let query = query_of(statement)?;
        let _room = self.room_for_code().await?;
        let snapshot = self.db.snapshot();
        let planned = self.planned(query, catalog, Some(snapshot), declared, facts);
        let physical = self.physical(planned.await?.plan, None).await?;
        let text = displayable(physical.as_ref()).indent(false).to_string();
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn table(
        &self,
        catalog: &Arc<Catalog>,
        snapshot: Option<&Snapshot>,
        facts: &SessionFacts,
        schema: Option<&str>,
        name: &str,
    ) -> Result<Arc<dyn TableProvider>> {
        let found = match schema {
            Some(schema) => catalog.table_by_name(schema, name),
            None => facts
                .search_path
                .iter()
                .find_map(|schema| catalog.table_by_name(schema, name)),
        };
        if let Some(table) = found {
            let actor = &facts.actor;
            actor.need_some_column(catalog, table, Privileges::SELECT)?;
            return Ok(Arc::new(SnapshotTable::new(
                Arc::clone(table),
                actor.hidden_columns(table),
                snapshot.cloned(),
                self.db.partitions(),
                self.streams,
                self.db.row_estimate(table),
            )));
        }
        if let Some(provider) = pg_catalog::provider(&self.db, schema, name, catalog, facts)? {
            return Ok(provider);
        }
        Err(match schema {
            Some(schema) => SqlError::undefined_table(&format!("{schema}.{name}")),
            None => SqlError::undefined_table(name),
        })
    }

    /// Plans a query, on the threads for that.
    async fn planned(
        self: &Arc<Self>,
        query: &Query,
        catalog: &Arc<Catalog>,
        snapshot: Option<Snapshot>,
        declared: &[Option<DataType>],
        facts: &SessionFacts,
    ) -> Result<Planned> {
        let (analytics, query, catalog) = (Arc::clone(self), query.clone(), Arc::clone(catalog));
        let (declared, facts) = (declared.to_vec(), facts.clone());
        let work = async move { analytics.plan(query, &catalog, snapshot, &declared, &facts) };
        self.threads.spawn(work)?.outcome().await?
    }

    /// The operators of a plan, which end with `end`.
    async fn physical(
        self: &Arc<Self>,
        plan: LogicalPlan,
        end: Option<&End>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let analytics = Arc::clone(self);
        let ask = end.map(End::asked);
        let work = async move {
            let state = &analytics.state;
            let look = || analytics.db.look_at_code();
            let plan =
                state
                    .analyzer()
                    .execute_and_check(plan, state.config_options(), |_, _| look())?;
            let mut plan = state.optimizer().optimize(plan, state, |_, _| look())?;
            if let Some(ask) = ask {
                plan = ask(plan)?;
            }
            look();
            let planner = Arc::clone(state.query_planner());
            let physical = planner.create_physical_plan(&plan, state).await?;
            look();
            deep::roomy(cooperation::cooperative(physical)?)
        };
        self.threads
            .spawn(work)?
            .outcome()
            .await?
            .map_err(sql_error)
    }

    fn plan(
        &self,
        mut query: Query,
        catalog: &Arc<Catalog>,
        snapshot: Option<Snapshot>,
        declared: &[Option<DataType>],
        facts: &SessionFacts,
    ) -> Result<Planned> {
        extent::check(&query, &|name| columns_of(name, catalog, facts))?;
        prepare::prepare(&mut query);
        let lookup = |schema: Option<&str>, name: &str| {
            self.table(catalog, snapshot.as_ref(), facts, schema, name)
        };
        let context = StatementContext::new(&self.state, facts, &lookup);
        let plan_with = |types: Vec<Option<FieldRef>>| {
            let options = ParserOptions::new().with_parse_float_as_decimal(true);
            let planner = SqlToRel::new_with_options(&context, options);
            let mut planner_context = PlannerContext::new().with_prepare_param_data_types(types);
            planner
                .sql_statement_to_plan_with_context(
                    Statement::Query(Box::new(query.clone())),
                    &mut planner_context,
                )
                .and_then(rewrite::rewrite_plan)
                .map_err(sql_error)
        };
        let field = |data_type: &DataType| Arc::new(types::field_of("", data_type));
        let given = declared
            .iter()
            .map(|declared| declared.as_ref().map(field))
            .collect();
        let mut plan = plan_with(given)?;
        let found = plan.get_parameter_fields().map_err(sql_error)?;
        let parameters = params::parameter_types(declared, &found)?;
        self.db.look_at_code();
        let settled = parameters.len() == declared.len() && declared.iter().all(Option::is_some);
        if !settled && !parameters.is_empty() {
            plan = plan_with(
                parameters
                    .iter()
                    .map(|data_type| Some(field(data_type)))
                    .collect(),
            )?;
        }
        let plan = self
            .state
            .analyzer()
            .execute_and_check(plan, self.state.config_options(), |_, _| {
                self.db.look_at_code();
            })
            .map_err(sql_error)?;
        Ok(Planned { plan, parameters })
    }
}

/// How many columns a table has; 1 for what is none.
fn columns_of(name: &ObjectName, catalog: &Catalog, facts: &SessionFacts) -> usize {
    let found = match fold_parts(name).as_slice() {
        [table] => facts
            .search_path
            .iter()
            .find_map(|schema| catalog.table_by_name(schema, table)),
        [.., schema, table] => catalog.table_by_name(schema, table),
        [] => None,
    };
    found.map_or(1, |table| table.columns.len())
}

fn query_of(statement: &Statement) -> Result<&Query> {
    match statement {
        Statement::Query(query) => Ok(query),
        _ => Err(SqlError::unsupported("only queries are analytical")),
    }
}

fn output_columns(plan: &LogicalPlan) -> Vec<OutputColumn> {
    plan.schema()
        .fields()
        .iter()
        .map(|field| types::output_column(field))
        .collect()
}
