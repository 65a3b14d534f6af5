//! WITH RECURSIVE: the rows of the first query, then round by round the rows that the second one
//! makes of the round before, until a round makes none. Rows are handed on as they come, so that
//! a LIMIT outside ends it.

use std::collections::HashSet;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use async_trait::async_trait;
use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{TryStreamExt, stream};
use parking_lot::Mutex;

use super::compact::compacted;
use super::shared::Generation;
use super::{Operator, batch_of};
use crate::errors::external;
use crate::form::{ColumnReader, Form};
use crate::sort_key::{self, Direction};
use thermocline_query::serial;

/// The rows of the round before.
pub type Round = Arc<Mutex<Vec<RecordBatch>>>;

/// Rows that a round is taken to have.
const ROUND_ROWS: usize = 100;

/// Reads the round before.
pub struct Previous {
    /// The columns.
    pub columns: Vec<(usize, u32)>,
    /// The rows.
    pub round: Round,
}

impl fmt::Debug for Previous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("round before")
    }
}

#[async_trait]
impl Operator for Previous {
    fn name(&self) -> &'static str {
        "Previous"
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

    /// Taken for few: a join then goes from them to the table, and need not read all of it again.
    fn rows(&self) -> Option<usize> {
        Some(ROUND_ROWS)
    }

    fn execute(
        &self,
        _: &[Arc<dyn ExecutionPlan>],
        schema: SchemaRef,
        _: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let batches = self.round.lock().clone();
        let of = Arc::clone(&schema);
        let batches = batches
            .into_iter()
            .map(move |batch| batch_of(&of, batch.columns().to_vec(), batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            stream::iter(batches),
        )))
    }
}

/// The recursion. Its inputs are the first query and the one that goes on.
pub struct Recursion {
    /// The columns that it gives; both inputs have as many.
    pub columns: Vec<(usize, u32)>,
    /// Of those, the first so many are a domain: told apart by their bytes.
    pub domain: usize,
    /// Each different row once.
    pub distinct: bool,
    /// What the second query reads.
    pub round: Round,
    /// Counts the rounds.
    pub generation: Generation,
    /// The columns of the inputs, in the order of `columns`.
    pub inputs: [Vec<usize>; 2],
}

impl fmt::Debug for Recursion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "columns={:?}, distinct={}", self.columns, self.distinct)
    }
}

struct State {
    columns: Vec<(usize, u32)>,
    domain: usize,
    distinct: bool,
    round: Round,
    generation: Generation,
    inputs: [Vec<usize>; 2],
    plan: Arc<dyn ExecutionPlan>,
    stream: SendableRecordBatchStream,
    first: bool,
    made: Vec<RecordBatch>,
    seen: HashSet<Box<[u8]>>,
    reservation: MemoryReservation,
    /// What `made` and the round before take of the reservation.
    bytes: [usize; 2],
    schema: SchemaRef,
    context: Arc<TaskContext>,
}

impl State {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.stream.try_next().await? {
                let batch = self.keep(&batch)?;
                if batch.num_rows() > 0 {
                    let batch = compacted(&batch)?;
                    let bytes = batch.get_array_memory_size();
                    self.reservation.try_grow(bytes)?;
                    self.bytes[0] += bytes;
                    self.made.push(batch.clone());
                    return Ok(Some(batch));
                }
                continue;
            }
            if self.made.is_empty() {
                return Ok(None);
            }
            *self.round.lock() = std::mem::take(&mut self.made);
            self.reservation.shrink(self.bytes[1]);
            self.bytes = [0, self.bytes[0]];
            self.generation.fetch_add(1, Ordering::AcqRel);
            self.first = false;
            self.plan = reset_plan_states(Arc::clone(&self.plan))?;
            self.stream = self.plan.execute(0, Arc::clone(&self.context))?;
            // Each round's streams are new and would count anew how long they have run.
            let mut given = false;
            poll_fn(|context| {
                if std::mem::replace(&mut given, true) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
    }

    /// The batch's rows that are new, under the recursion's names.
    fn keep(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let inputs = &self.inputs[usize::from(!self.first)];
        let mut columns = Vec::with_capacity(inputs.len());
        for id in inputs {
            let name = crate::evaluate::name_of(*id);
            let column = batch.column_by_name(&name);
            columns.push(Arc::clone(column.ok_or_else(|| {
                DataFusionError::Internal(format!("no column {name}"))
            })?));
        }
        let batch = batch_of(&self.schema, columns, batch.num_rows())?;
        if !self.distinct {
            return Ok(batch);
        }
        let readers = self.columns.iter().zip(batch.columns());
        let readers = readers.map(|((_, oid), array)| {
            let reader = ColumnReader::new(Form::of(*oid), Arc::clone(array));
            reader.map(|reader| (*oid, reader))
        });
        let readers = readers.collect::<Result<Vec<_>, _>>().map_err(external)?;
        let mut new = Vec::with_capacity(batch.num_rows());
        let mut grown = 0;
        for row in 0..batch.num_rows() {
            let mut key = Vec::new();
            for (place, (oid, reader)) in readers.iter().enumerate() {
                let value = reader.get(row).map_err(external)?;
                match place < self.domain {
                    true => serial::write(&value, &mut key),
                    false => sort_key::directed(*oid, &value, Direction::default(), &mut key),
                }
                .map_err(external)?;
            }
            let bytes = key.len() + 48;
            let is_new = self.seen.insert(key.into());
            grown += if is_new { bytes } else { 0 };
            new.push(is_new);
        }
        self.reservation.try_grow(grown)?;
        Ok(filter_record_batch(&batch, &BooleanArray::from(new))?)
    }
}

#[async_trait]
impl Operator for Recursion {
    fn name(&self) -> &'static str {
        "Recursion"
    }

    fn added(&self) -> Vec<(usize, u32)> {
        self.columns.clone()
    }

    fn passes(&self) -> bool {
        false
    }

    fn needs(&self) -> Vec<usize> {
        self.inputs.iter().flatten().copied().collect()
    }

    fn execute(
        &self,
        inputs: &[Arc<dyn ExecutionPlan>],
        schema: SchemaRef,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let [first, next] = inputs else {
            return Err(DataFusionError::Internal("two inputs expected".to_owned()));
        };
        self.round.lock().clear();
        self.generation.fetch_add(1, Ordering::AcqRel);
        let state = State {
            columns: self.columns.clone(),
            domain: self.domain,
            distinct: self.distinct,
            round: Arc::clone(&self.round),
            generation: Arc::clone(&self.generation),
            inputs: self.inputs.clone(),
            plan: Arc::clone(next),
            stream: first.execute(0, Arc::clone(&context))?,
            first: true,
            made: Vec::new(),
            seen: HashSet::new(),
            reservation: MemoryConsumer::new("recursion").register(context.memory_pool()),
            bytes: [0, 0],
            schema: Arc::clone(&schema),
            context,
        };
        let batches = stream::try_unfold(state, |mut state| async move {
            Ok(state.next().await?.map(|batch| (batch, state)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
