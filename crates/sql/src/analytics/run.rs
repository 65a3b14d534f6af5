//! Runs analysed queries. One that reads users' tables, or makes rows without end, has a turn
//! and hands out its rows as they come; the threads for that give way to short statements. One
//! over the system's relations alone is run at once, on a thread that drivers and tools wait
//! for; its result is made whole, on the account of analytical statements.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::session_state::SessionState;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use thermocline_analytical::evaluate::Context;
use thermocline_analytical::lower::{Tables, lower};
use thermocline_analytical::run;
use thermocline_engine::{Catalog, Database, ScanNotes, Snapshot, Table};
use thermocline_query::call::Environment;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result as QueryResult};
use thermocline_query::tree::Relation;
use thermocline_values::value::Value;

use super::batch::batch_bytes;
use super::feed::Feed;
use super::partitioned::PartitionedTable;
use super::row_stream::{Output, Turn};
use super::scan::SnapshotTable;
use super::scans::Scans;
use super::small::{self, Begun};
use super::threads::Threads;
use super::whole::WholeResult;
use super::{Analytics, RowStream, sql_error};
use crate::analysis::SessionFacts;
use crate::error::{Result, SqlError};
use crate::pg_catalog::{self, Ending, Room, SystemEnvironment};
use crate::privilege::Actor;
use crate::session::Admitted;
use crate::stack;
use crate::typed::TypedQuery;

/// Has the query end when nobody waits for it any more.
pub(super) struct End(Arc<Ending>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A query with all it is run with.
#[derive(Clone)]
pub(super) struct Statement {
    typed: Arc<TypedQuery>,
    environment: Arc<SystemEnvironment>,
    arguments: Arc<[Datum]>,
    snapshot: Option<Snapshot>,
    streams: usize,
    scans: Arc<Scans>,
}

impl Tables for Statement {
    fn table(&self, oid: u32, relation: &Relation) -> QueryResult<Arc<dyn TableProvider>> {
        let session = self.environment.session();
        let (db, catalog) = (&session.db, &session.catalog);
        let table = catalog.table(oid);
        let table = table.ok_or_else(|| QueryError::internal("a table that is not there"))?;
        let hidden = match relation.reader {
            Some(reader) => Actor::numbered(reader, catalog)?.hidden_columns(table),
            None => session.facts.actor.hidden_columns(table),
        };
        let scanned = |table: &Arc<Table>| {
            SnapshotTable::new(
                Arc::clone(table),
                hidden.clone(),
                self.snapshot.clone(),
                db.partitions(),
                self.streams,
                db.row_estimate(table),
                Arc::clone(&self.scans),
            )
        };
        Ok(match table.partitioned {
            None => Arc::new(scanned(table)),
            Some(_) => {
                let leaf = |table: &Arc<Table>, schema: &SchemaRef| {
                    scanned(table).under(Arc::clone(schema))
                };
                Arc::new(PartitionedTable::new(catalog, table, &leaf))
            }
        })
    }

    fn rows(&self, oid: u32) -> Option<QueryResult<Vec<Vec<Datum>>>> {
        pg_catalog::rows(oid, &self.environment)
    }
}

impl Statement {
    async fn physical(
        self,
        state: SessionState,
        db: Arc<Database>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let surroundings: Arc<dyn Environment> = Arc::clone(&self.environment) as _;
        let context = Context::new(surroundings, Arc::clone(&self.arguments));
        let told = |error: QueryError| self.environment.awaited.told(error);
        let lowered = lower(&self.typed.query, &self, &context).map_err(told)?;
        let look = || db.look_at_code();
        look();
        let plan = run::physical(&state, &lowered, &look).await;
        let plan = plan.map_err(|error| self.told(sql_error(&error)))?;
        look();
        self.scans.runs(&plan);
        Ok(plan)
    }

    /// Its rows are read as they are asked for, and the transaction may go on meanwhile: all
    /// that they may come from counts as read at once.
    fn reads_all(&self) {
        for table in &self.typed.tables {
            self.scans.reads(table, None);
        }
    }

    fn told(&self, error: SqlError) -> SqlError {
        self.environment.awaited.told(error)
    }
}

/// What values are made of: the memory of all analytical statements.
struct OfPool(MemoryReservation);

impl Room for OfPool {
    fn grow(&self, bytes: usize) -> Result<(), QueryError> {
        let grown = self.0.try_grow(bytes);
        grown.map_err(|error| QueryError::from(sql_error(&error)))
    }
}

impl Analytics {
    fn statement(
        &self,
        typed: &Arc<TypedQuery>,
        catalog: &Arc<Catalog>,
        facts: &SessionFacts,
        (snapshot, notes): (Option<Snapshot>, Option<Arc<ScanNotes>>),
    ) -> Statement {
        let pool = &self.state.runtime_env().memory_pool;
        let room = Box::new(OfPool(MemoryConsumer::new("values").register(pool)));
        let environment = SystemEnvironment::new(catalog, &self.db, facts.clone(), Some(room));
        Statement {
            scans: Arc::new(Scans::new(environment.ending(), notes, facts.explains)),
            typed: Arc::clone(typed),
            environment: Arc::new(environment),
            arguments: Arc::new([]),
            snapshot,
            streams: match typed.calls {
                true => 1,
                false => self.streams,
            },
        }
    }

    /// Runs a query with these parameters. `admitted` has the charge that
    /// [`Self::turn_bytes`] asked for, where it needs one.
    ///
    /// # Errors
    /// As PostgreSQL; errors of the execution may come from the stream.
    pub(crate) async fn execute(
        &self,
        typed: &Arc<TypedQuery>,
        catalog: &Arc<Catalog>,
        parameters: &[Value],
        facts: &SessionFacts,
        admitted: Option<Admitted>,
    ) -> Result<RowStream> {
        let room = self.db.run_code().await?;
        let (sees, turn) = match admitted {
            Some(Admitted {
                snapshot,
                charge,
                notes,
            }) => {
                let turn = Turn::new(Arc::clone(&self.db), charge, room);
                ((Some(snapshot), notes), Some(turn))
            }
            None => ((None, None), None),
        };
        let mut statement = self.statement(typed, catalog, facts, sees);
        let arguments = typed.arguments(parameters, &*statement.environment)?;
        statement.arguments = arguments.into();
        let end = End(statement.environment.ending());
        match turn {
            Some(turn) => self.stream(statement, turn, end).await,
            None => self.whole(statement, end).await,
        }
    }

    async fn stream(&self, statement: Statement, turn: Turn, end: End) -> Result<RowStream> {
        let output = Output::new(&statement.typed, &statement.environment);
        let columns = statement.typed.output_columns();
        let depth = statement.typed.depth;
        let scans = Arc::clone(&statement.scans);
        let calls = statement.typed.calls;
        // Its thread waits for what it calls, and nobody else is to wait with it.
        let own = calls.then(|| Threads::new("calls", 1, false));
        let threads = own.as_ref().unwrap_or(&self.threads);
        let tables = &statement.typed.tables;
        let state = match calls {
            true => self.calling.clone(),
            false => self.widths.fitted(&self.db, tables, &self.state),
        };
        let context = Arc::new(TaskContext::from(&state));
        let begun = match small::may_be(&statement.typed) {
            true => self.begin(&statement, &state, &context).await?,
            false => Begun::TooLarge,
        };
        let feed = match begun {
            Begun::Whole(batches) => Feed::made(batches, end),
            Begun::Planned(plan) => {
                statement.reads_all();
                Feed::begin(threads, plan, context, end)?
            }
            Begun::TooLarge => {
                statement.reads_all();
                let work = statement.physical(state, Arc::clone(&self.db));
                let task = stack::with_room(depth, || threads.spawn(work));
                let plan = task?.outcome().await??;
                Feed::begin(threads, plan, context, end)?
            }
        };
        let feed = feed.with_own(own);
        Ok(RowStream::of_batches(columns, output, feed, (turn, scans)))
    }

    /// Plans a statement that may be small, and runs it if it is.
    async fn begin(
        &self,
        statement: &Statement,
        state: &SessionState,
        context: &Arc<TaskContext>,
    ) -> Result<Begun> {
        let statement = statement.clone();
        let planned = statement
            .clone()
            .physical(state.clone(), Arc::clone(&self.db));
        let (context, counts) = (Arc::clone(context), Arc::clone(&self.small_statements));
        let bytes_max = batch_bytes(self.db.memory_limit());
        let work = async move {
            let plan = planned.await?;
            let told = |error| statement.told(sql_error(&error));
            if !small::is_small(&plan).map_err(told)? {
                return Ok(Begun::Planned(plan));
            }
            let ending = statement.environment.ending();
            let ran = small::run(plan, context, &ending, bytes_max, &counts).await;
            ran.map_err(told)
        };
        let mut task = self.small.spawn(work)?;
        task.outcome().await?
    }

    async fn whole(&self, statement: Statement, end: End) -> Result<RowStream> {
        let scans = Arc::clone(&statement.scans);
        let (typed, environment) = (
            Arc::clone(&statement.typed),
            Arc::clone(&statement.environment),
        );
        let state = self.at_once.clone();
        let pool = &state.runtime_env().memory_pool;
        let mut held = MemoryConsumer::new("catalog rows").register(pool);
        let db = Arc::clone(&self.db);
        let work = async move {
            let context = Arc::new(TaskContext::from(&state));
            let plan = statement.clone().physical(state, db).await?;
            let types = statement.typed.query.columns();
            let types = types.iter().map(|column| column.oid).collect();
            let told = |error: QueryError| statement.told(error.into());
            let mut batches = run::run(plan, types, context).map_err(told)?;
            let mut rows = Vec::new();
            while let Some(batch) = batches.next().await.map_err(told)? {
                hold(&mut held, &batch)?;
                rows.extend(batch);
            }
            Ok::<_, SqlError>((rows, held))
        };
        let task = stack::with_room(typed.depth, || self.catalogs.spawn(work));
        let (rows, held) = task?.outcome().await??;
        let output = Output::new(&typed, &environment);
        let rows = WholeResult::new(rows, output, environment.take_changes(), (held, end));
        Ok(RowStream::of_whole(typed.output_columns(), rows, scans))
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
        let _room = self.db.run_code().await?;
        let snapshot = typed.needs_turn().then(|| self.db.snapshot());
        let mut statement = self.statement(typed, catalog, facts, (snapshot, None));
        statement.arguments = vec![Datum::Null; typed.parameters.len()].into();
        let (state, threads) = match typed.needs_turn() {
            true => (&self.state, &self.threads),
            false => (&self.at_once, &self.catalogs),
        };
        let work = statement.physical(state.clone(), Arc::clone(&self.db));
        let task = stack::with_room(typed.depth, || threads.spawn(work));
        let plan = task?.outcome().await??;
        let text = displayable(plan.as_ref()).indent(false).to_string();
        Ok(text.lines().map(str::to_owned).collect())
    }
}

/// Charges rows of a result.
fn hold(held: &mut MemoryReservation, rows: &[Vec<Datum>]) -> Result<()> {
    let of_row = |row: &Vec<Datum>| {
        let values = row.iter().map(|value| match value {
            Datum::Text(text) => text.len(),
            Datum::Bytea(bytes) => bytes.len(),
            _ => 0,
        });
        size_of::<Vec<Datum>>() + row.len() * size_of::<Datum>() + values.sum::<usize>()
    };
    let bytes = rows.iter().map(of_row).sum();
    held.try_grow(bytes).map_err(|error| sql_error(&error))
}
