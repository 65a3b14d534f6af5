//! Rows that several parts of a plan read and that are computed once: queries of a WITH, and the
//! outer side of a correlated subquery. They are computed as far as some part asks for them, and
//! whoever asks first computes; they stay in memory, on the statement's account.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as PollContext, Poll, Wake, Waker};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, StatisticsArgs, StatisticsContext, execute_stream};
use futures::{StreamExt, ready, stream};
use parking_lot::Mutex;
use thermocline_query::call::Environment;

use super::Operator;
use super::compact::compacted;
use crate::run;

/// Counts how often a part of a plan has begun anew: the rounds of a recursion.
pub type Generation = Arc<AtomicU64>;

/// The rows as far as they are computed.
struct Buffer {
    /// `None` once it has ended.
    stream: Option<SendableRecordBatchStream>,
    batches: Vec<RecordBatch>,
    failed: Option<Arc<DataFusionError>>,
    reservation: MemoryReservation,
}

/// A computation, and all that wait for it.
struct Computation {
    buffer: Mutex<Buffer>,
    waiting: Waiting,
}

#[derive(Clone, Default)]
struct Waiting(Arc<Mutex<Vec<Waker>>>);

impl Waiting {
    fn wake(&self) {
        let wakers = std::mem::take(&mut *self.0.lock());
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        Self::wake(&self);
    }
}

impl Computation {
    /// The batch of a place. Whoever comes first computes it.
    fn poll(&self, at: usize, context: &mut PollContext<'_>) -> Poll<Option<Result<RecordBatch>>> {
        self.waiting.0.lock().push(context.waker().clone());
        let Some(mut buffer) = self.buffer.try_lock() else {
            // Who holds it wakes us when it lets go.
            return Poll::Pending;
        };
        let answer = buffer.poll(at, &self.waiting);
        drop(buffer);
        if answer.is_ready() {
            self.waiting.wake();
        }
        answer
    }
}

impl Buffer {
    fn poll(&mut self, at: usize, waiting: &Waiting) -> Poll<Option<Result<RecordBatch>>> {
        let waker = Waker::from(Arc::new(waiting.clone()));
        let mut context = PollContext::from_waker(&waker);
        loop {
            if let Some(batch) = self.batches.get(at) {
                return Poll::Ready(Some(Ok(batch.clone())));
            }
            if let Some(error) = &self.failed {
                let error = DataFusionError::Shared(Arc::clone(error));
                return Poll::Ready(Some(Err(error)));
            }
            let Some(stream) = &mut self.stream else {
                return Poll::Ready(None);
            };
            match ready!(stream.poll_next_unpin(&mut context)) {
                None => self.stream = None,
                Some(batch) => {
                    if let Err(error) = batch.and_then(|batch| self.keep(batch)) {
                        self.failed = Some(Arc::new(error));
                        self.stream = None;
                    }
                }
            }
        }
    }

    fn keep(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() > 0 {
            let batch = compacted(&batch)?;
            self.reservation.try_grow(batch.get_array_memory_size())?;
            self.batches.push(batch);
        }
        Ok(())
    }
}

/// What is computed once.
pub struct Shared {
    columns: Vec<(usize, u32)>,
    plan: Mutex<Option<LogicalPlan>>,
    physical: Mutex<Option<Arc<dyn ExecutionPlan>>>,
    /// About how many rows there will be, when it is planned.
    rows: Mutex<Option<usize>>,
    generation: Generation,
    environment: Arc<dyn Environment>,
    computed: Mutex<Option<(u64, Arc<Computation>)>>,
}

impl Shared {
    /// The rows of `plan`, which has these columns.
    #[must_use]
    pub fn new(
        plan: LogicalPlan,
        columns: Vec<(usize, u32)>,
        generation: Generation,
        environment: Arc<dyn Environment>,
    ) -> Self {
        Self {
            columns,
            plan: Mutex::new(Some(plan)),
            physical: Mutex::new(None),
            rows: Mutex::new(None),
            generation,
            environment,
            computed: Mutex::new(None),
        }
    }

    fn computation(&self, context: &Arc<TaskContext>) -> Result<Arc<Computation>> {
        let generation = self.generation.load(Ordering::Acquire);
        let mut computed = self.computed.lock();
        if let Some((of, computation)) = &*computed
            && *of == generation
        {
            return Ok(Arc::clone(computation));
        }
        let mut physical = self.physical.lock();
        let plan = physical
            .clone()
            .ok_or_else(|| DataFusionError::Internal("a shared plan is not planned".to_owned()))?;
        let plan = if computed.is_some() {
            reset_plan_states(plan)?
        } else {
            plan
        };
        *physical = Some(Arc::clone(&plan));
        let reservation = MemoryConsumer::new("rows read twice").register(context.memory_pool());
        let computation = Arc::new(Computation {
            buffer: Mutex::new(Buffer {
                stream: Some(execute_stream(plan, Arc::clone(context))?),
                batches: Vec::new(),
                failed: None,
                reservation,
            }),
            waiting: Waiting::default(),
        });
        *computed = Some((generation, Arc::clone(&computation)));
        Ok(computation)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.plan.lock() {
            Some(plan) => write!(f, "of\n{}", plan.display_indent()),
            None => f.write_str("computed once"),
        }
    }
}

#[async_trait]
impl Operator for Shared {
    fn name(&self) -> &'static str {
        "Shared"
    }

    fn added(&self) -> Vec<(usize, u32)> {
        self.columns.clone()
    }

    fn passes(&self) -> bool {
        false
    }

    fn needs(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Those of its plan: who joins it must know whether it is the smaller side.
    fn rows(&self) -> Option<usize> {
        *self.rows.lock()
    }

    async fn prepare(&self, session: &dyn datafusion::catalog::Session) -> Result<()> {
        let plan = self.plan.lock().take();
        if let Some(plan) = plan {
            let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
                return internal_err!("a session of another kind");
            };
            let physical = run::planned(state, plan, &self.environment, &|| ()).await?;
            let statistics =
                StatisticsContext::new().compute(physical.as_ref(), &StatisticsArgs::new())?;
            *self.rows.lock() = statistics.num_rows.get_value().copied();
            *self.physical.lock() = Some(physical);
        }
        Ok(())
    }

    fn execute(
        &self,
        _: &[Arc<dyn ExecutionPlan>],
        schema: SchemaRef,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let computation = self.computation(&context)?;
        let of = Arc::clone(&schema);
        let mut at = 0;
        let batches = stream::poll_fn(move |context| {
            let batch = ready!(computation.poll(at, context));
            at += 1;
            // Rows come under this place's schema.
            Poll::Ready(batch.map(|batch| {
                let batch = batch?;
                super::batch_of(&of, batch.columns().to_vec(), batch.num_rows())
            }))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
