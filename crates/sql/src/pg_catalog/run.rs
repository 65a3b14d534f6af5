//! Runs analysed queries over the catalogs: their relations in memory, their plans on a thread
//! of their own. A result is made whole, charged to the memory of analytical statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::catalog::TableProvider;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionConfig;
use thermocline_analytical::evaluate::Context;
use thermocline_analytical::lower::{Lowered, Tables, lower};
use thermocline_analytical::run;
use thermocline_engine::{Catalog, Database};
use thermocline_query::call::Environment;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result as QueryResult};
use thermocline_query::tree::Column;
use thermocline_storage::value::Value;

use super::environment::SystemEnvironment;
use super::relations::relation_by_oid;
use super::rows::CatalogRows;
use crate::analytics::{RowStream, SessionFacts, Threads, sql_error};
use crate::error::Result;
use crate::typed::TypedQuery;

/// Batches of plans over catalogs.
const BATCH_ROWS: usize = 1024;

/// See the head of this file.
pub(crate) struct CatalogRuns {
    db: Arc<Database>,
    state: SessionState,
    /// Drivers and tools wait for it.
    threads: Threads,
}

/// The relations of the system.
struct InMemory(Arc<SystemEnvironment>);

impl Tables for InMemory {
    fn table(&self, _: u32, _: &[Column]) -> QueryResult<Arc<dyn TableProvider>> {
        Err(QueryError::internal("a catalog query reads a stored table"))
    }

    fn rows(&self, oid: u32) -> Option<QueryResult<Vec<Vec<Datum>>>> {
        relation_by_oid(oid).map(|relation| super::content(relation, &self.0))
    }
}

/// Has the query end when nobody waits for it any more.
struct Waiting(Option<Arc<AtomicBool>>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(ended) = &self.0 {
            ended.store(true, Ordering::Relaxed);
        }
    }
}

impl CatalogRuns {
    pub(crate) fn new(db: &Arc<Database>, runtime: Arc<RuntimeEnv>) -> Self {
        let config = SessionConfig::new()
            .with_target_partitions(1)
            .with_batch_size(BATCH_ROWS);
        Self {
            db: Arc::clone(db),
            state: run::session(config, runtime),
            threads: Threads::new("catalogs", 1, false),
        }
    }

    /// The result of a query with these parameters.
    ///
    /// # Errors
    /// As PostgreSQL's.
    pub(crate) async fn execute(
        &self,
        typed: &Arc<TypedQuery>,
        catalog: &Arc<Catalog>,
        parameters: &[Value],
        facts: &SessionFacts,
    ) -> Result<RowStream> {
        let environment = SystemEnvironment::new(catalog, &self.db, facts.clone());
        let environment = Arc::new(environment);
        let arguments = typed.arguments(parameters, &*environment)?;
        let mut waiting = Waiting(Some(environment.ended()));
        let (state, db) = (self.state.clone(), Arc::clone(&self.db));
        let (query, ours) = (Arc::clone(typed), Arc::clone(&environment));
        let pool = &state.runtime_env().memory_pool;
        let mut held = MemoryConsumer::new("catalog rows").register(pool);
        let work = async move {
            let lowered = plan_of(&query, &ours, arguments)?;
            db.look_at_code();
            let plan = run::physical(&state, &lowered).await?;
            db.look_at_code();
            let context = Arc::new(TaskContext::from(&state));
            let mut batches = run::run(plan, lowered.types, context)?;
            let mut rows = Vec::new();
            while let Some(batch) = batches.next().await? {
                hold(&mut held, &batch)?;
                rows.extend(batch);
            }
            Ok::<_, QueryError>((rows, held))
        };
        let done = self.threads.spawn(work)?.outcome().await?;
        let (rows, held) = done.map_err(|error| environment.awaited.told(error))?;
        waiting.0 = None;
        let columns = typed.query.columns();
        let types = columns.iter().map(|column| (column.oid, column.modifier));
        let rows = CatalogRows::new(rows, types.collect(), environment, held);
        Ok(RowStream::of_catalog(typed.output_columns(), rows))
    }

    /// The plan of a query, one line a row.
    ///
    /// # Errors
    /// As [`Self::execute`].
    pub(crate) async fn explain(
        &self,
        typed: &Arc<TypedQuery>,
        catalog: &Arc<Catalog>,
        facts: &SessionFacts,
    ) -> Result<Vec<String>> {
        let environment = SystemEnvironment::new(catalog, &self.db, facts.clone());
        let arguments = vec![Datum::Null; typed.parameters.len()];
        let lowered = plan_of(typed, &Arc::new(environment), arguments)?;
        let plan = run::physical(&self.state, &lowered).await?;
        let text = displayable(plan.as_ref()).indent(false).to_string();
        Ok(text.lines().map(str::to_owned).collect())
    }
}

fn plan_of(
    typed: &TypedQuery,
    environment: &Arc<SystemEnvironment>,
    arguments: Vec<Datum>,
) -> QueryResult<Lowered> {
    let tables = InMemory(Arc::clone(environment));
    let surroundings: Arc<dyn Environment> = Arc::clone(environment) as _;
    let context = Context::new(surroundings, arguments.into());
    lower(&typed.query, &tables, &context)
}

/// Charges rows of a result.
fn hold(held: &mut MemoryReservation, rows: &[Vec<Datum>]) -> QueryResult<()> {
    let of_row = |row: &Vec<Datum>| {
        let values = row.iter().map(|value| match value {
            Datum::Text(text) => text.len(),
            Datum::Bytea(bytes) => bytes.len(),
            _ => 0,
        });
        size_of::<Vec<Datum>>() + row.len() * size_of::<Datum>() + values.sum::<usize>()
    };
    let bytes = rows.iter().map(of_row).sum();
    held.try_grow(bytes)
        .map_err(|error| QueryError::from(sql_error(error)))
}
