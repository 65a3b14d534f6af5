//! Functions over windows. Rows come sorted by partition, then by the window's order; a partition
//! is held in memory, on the statement's account, while its rows are computed.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{TryStreamExt, stream};
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result as QueryResult};
use thermocline_query::tree::{Exclusion, Expr};

use super::compact::{batch_bytes, joined};
use super::frames::{Edge, Frame, Peers};
use super::states::{Aggregation, Running};
use super::{Operator, batch_of, only_input};
use crate::errors::external;
use crate::evaluate::{BatchRow, BatchRows, Context, RowValues, name_of};
use crate::form::{BATCH_BYTES_MAX, ColumnBuilder, Form};

/// What is computed for each row.
#[derive(Clone)]
pub enum Function {
    /// A window function of this name, with its arguments.
    Ranking(&'static str, Vec<Expr>),
    /// An aggregate over the frame.
    Aggregate(Box<Aggregation>),
}

/// Functions over one window.
#[derive(Clone)]
pub struct Window {
    /// The column that tells partitions apart.
    pub partition: usize,
    /// The column that orders a partition's rows.
    pub order: usize,
    /// The functions: the column that each gives, its type.
    pub functions: Vec<(usize, u32, Function)>,
    /// The frame.
    pub frame: Frame,
    /// The columns that expressions use, with their types.
    pub inputs: Vec<(usize, u32)>,
    /// What evaluates.
    pub context: Context,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "partition=c{}, order=c{}", self.partition, self.order)
    }
}

struct Partition<'a> {
    of: &'a Window,
    rows: &'a [BatchRow<'a>],
    peers: Peers,
    frames: Option<Vec<(usize, usize)>>,
}

impl Partition<'_> {
    fn evaluate(&self, expr: &Expr, row: usize) -> QueryResult<Datum> {
        self.of.context.evaluator.evaluate(expr, &self.rows[row])
    }

    fn frames(&mut self) -> QueryResult<&[(usize, usize)]> {
        if self.frames.is_none() {
            let rows: Vec<&dyn RowValues> = self.rows.iter().map(|row| row as _).collect();
            let bounds = self.of.frame.bounds(&self.of.context, &rows, &self.peers)?;
            self.frames = Some(bounds);
        }
        Ok(self.frames.as_deref().unwrap_or(&[]))
    }

    /// Whether a row of the frame is left out of that of `current`.
    fn is_excluded(&self, current: usize, row: usize) -> bool {
        let same = || self.peers.group[current] == self.peers.group[row];
        match self.of.frame.exclusion {
            Exclusion::None => false,
            Exclusion::Current => current == row,
            Exclusion::Group => same(),
            Exclusion::Ties => current != row && same(),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "as PostgreSQL")]
    fn ranking(
        &mut self,
        name: &str,
        arguments: &[Expr],
        builder: &mut ColumnBuilder,
    ) -> QueryResult<()> {
        let rows = self.rows.len();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        if matches!(name, "first_value" | "last_value" | "nth_value") {
            return self.of_frame(name, arguments, builder);
        }
        let mut tiles = None;
        for row in 0..rows {
            let (start, end) = self.peers.of(row);
            let value = match name {
                "row_number" => Datum::Int8(number(row + 1)),
                "rank" => Datum::Int8(number(start + 1)),
                "dense_rank" => Datum::Int8(number(self.peers.group[row] + 1)),
                "percent_rank" if rows <= 1 => Datum::Float8(0.0),
                "percent_rank" => Datum::Float8(start as f64 / (rows - 1) as f64),
                "cume_dist" => Datum::Float8(end as f64 / rows as f64),
                "ntile" => {
                    if tiles.is_none() {
                        tiles = Some(match arguments.first() {
                            Some(expr) => self.evaluate(expr, 0)?,
                            None => Datum::Null,
                        });
                    }
                    ntile(tiles.as_ref().unwrap_or(&Datum::Null), row, rows)?
                }
                "lag" | "lead" => self.neighbour(name == "lead", arguments, row)?,
                _ => {
                    return Err(QueryError::unsupported(
                        format!("window function {name} is not supported"),
                        "Compute the value with an aggregate in a subquery.",
                    ));
                }
            };
            builder.push(&value)?;
        }
        Ok(())
    }

    fn neighbour(&self, ahead: bool, arguments: &[Expr], row: usize) -> QueryResult<Datum> {
        let Some(value) = arguments.first() else {
            return Ok(Datum::Null);
        };
        let offset = match arguments.get(1) {
            Some(expr) => match self.evaluate(expr, row)? {
                Datum::Int4(offset) => i64::from(offset),
                _ => return Ok(Datum::Null),
            },
            None => 1,
        };
        let offset = if ahead { offset } else { -offset };
        let place = i64::try_from(row)
            .ok()
            .and_then(|row| row.checked_add(offset));
        match place.and_then(|place| usize::try_from(place).ok()) {
            Some(place) if place < self.rows.len() => self.evaluate(value, place),
            _ => match arguments.get(2) {
                Some(default) => self.evaluate(default, row),
                None => Ok(Datum::Null),
            },
        }
    }

    fn of_frame(
        &mut self,
        name: &str,
        arguments: &[Expr],
        builder: &mut ColumnBuilder,
    ) -> QueryResult<()> {
        let Some(value) = arguments.first() else {
            return Err(QueryError::internal("a function without its argument"));
        };
        self.frames()?;
        for row in 0..self.rows.len() {
            let (start, end) = self.frames.as_ref().map_or((0, 0), |frames| frames[row]);
            let mut inside = (start..end).filter(|other| !self.is_excluded(row, *other));
            let found = match name {
                "first_value" => inside.next(),
                "last_value" => inside.next_back(),
                _ => {
                    let nth = match arguments.get(1) {
                        Some(expr) => self.evaluate(expr, row)?,
                        None => Datum::Null,
                    };
                    match nth {
                        Datum::Int4(nth) if nth <= 0 => {
                            return Err(QueryError::new(
                                "22016",
                                "argument of nth_value must be greater than zero",
                            ));
                        }
                        Datum::Int4(nth) => {
                            inside.nth(usize::try_from(nth - 1).unwrap_or(usize::MAX))
                        }
                        _ => None,
                    }
                }
            };
            let value = match found {
                Some(found) => self.evaluate(value, found)?,
                None => Datum::Null,
            };
            builder.push(&value)?;
        }
        Ok(())
    }

    fn aggregate(&mut self, of: &Aggregation, builder: &mut ColumnBuilder) -> QueryResult<()> {
        let context = &self.of.context;
        self.frames()?;
        let grows = matches!(self.of.frame.start, Edge::Unbounded)
            && self.of.frame.exclusion == Exclusion::None;
        let mut running = Running::new(of, context)?;
        let mut taken = (0, 0);
        let mut value: Option<Datum> = None;
        let mut arguments = Vec::new();
        for row in 0..self.rows.len() {
            context.environment.check_interrupted()?;
            let frame = self.frames.as_ref().map_or((0, 0), |frames| frames[row]);
            let excludes = self.of.frame.exclusion != Exclusion::None;
            let onward = !excludes && frame.0 == taken.0 && frame.1 >= taken.1;
            if !(grows || onward) || frame.1 < taken.1 {
                running = Running::new(of, context)?;
                taken = (frame.0, frame.0);
                value = None;
            }
            if frame.1 > taken.1 {
                value = None;
            }
            for other in taken.1..frame.1 {
                if !self.is_excluded(row, other) {
                    let other = &self.rows[other];
                    running.update(of, context, other, other, &mut arguments)?;
                }
            }
            taken = (frame.0, frame.1.max(taken.1));
            let result = match value.take() {
                Some(value) => value,
                None => running.value(of, context)?,
            };
            builder.push(&result)?;
            value = Some(result);
        }
        Ok(())
    }
}

fn ntile(tiles: &Datum, row: usize, rows: usize) -> QueryResult<Datum> {
    let Datum::Int4(tiles) = tiles else {
        return Ok(Datum::Null);
    };
    let tiles = match usize::try_from(*tiles) {
        Ok(tiles) if tiles > 0 => tiles,
        _ => {
            return Err(QueryError::new(
                "22014",
                "argument of ntile must be greater than zero",
            ));
        }
    };
    let (size, larger) = (rows / tiles, rows % tiles);
    let boundary = larger * (size + 1);
    let tile = if row < boundary {
        row / (size + 1)
    } else {
        larger + (row - boundary) / size.max(1)
    };
    Ok(Datum::Int4(i32::try_from(tile + 1).unwrap_or(i32::MAX)))
}

struct State {
    of: Window,
    input: SendableRecordBatchStream,
    /// The partition being read.
    pending: Vec<RecordBatch>,
    key: Vec<u8>,
    /// What is computed, with its size, to be handed on in batches of moderate size.
    ready: VecDeque<(RecordBatch, usize)>,
    ready_rows: usize,
    ready_bytes: usize,
    ended: bool,
    reservation: MemoryReservation,
    rows_max: usize,
    schema: SchemaRef,
}

fn keys_of(batch: &RecordBatch, id: usize) -> Result<&BinaryViewArray> {
    batch
        .column_by_name(&name_of(id))
        .and_then(|array| array.as_binary_view_opt())
        .ok_or_else(|| DataFusionError::Internal(format!("no key c{id}")))
}

impl State {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.ended || self.ready_rows >= self.rows_max || self.ready_bytes >= BATCH_BYTES_MAX
            {
                return self.handed_on();
            }
            match self.input.try_next().await? {
                Some(batch) => self.take(&batch)?,
                None => {
                    self.ended = true;
                    self.finish()?;
                }
            }
        }
    }

    /// What is ready, as one batch of moderate size: partitions may be as small as a row.
    fn handed_on(&mut self) -> Result<Option<RecordBatch>> {
        let (mut rows, mut bytes, mut count) = (0, 0, 0);
        for (batch, size) in &self.ready {
            let full = rows + batch.num_rows() > self.rows_max || bytes + size > BATCH_BYTES_MAX;
            if count > 0 && full {
                break;
            }
            rows += batch.num_rows();
            bytes += size;
            count += 1;
        }
        self.ready_rows -= rows;
        self.ready_bytes -= bytes;
        let taken: Vec<RecordBatch> = self.ready.drain(..count).map(|(batch, _)| batch).collect();
        joined(&taken)
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.reservation.try_grow(batch_bytes(batch))?;
        let keys = keys_of(batch, self.of.partition)?;
        let mut from = 0;
        for row in 0..keys.len() {
            let key = keys.value(row);
            if !self.pending.is_empty() || row > from {
                if key == self.key {
                    continue;
                }
                if row > from {
                    self.pending.push(batch.slice(from, row - from));
                }
                self.finish()?;
                from = row;
            }
            key.clone_into(&mut self.key);
        }
        self.pending
            .push(batch.slice(from, batch.num_rows() - from));
        Ok(())
    }

    /// Computes the partition that has been read.
    fn finish(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let schema = self.pending[0].schema();
        let batch = concat_batches(&schema, &self.pending)?;
        self.pending.clear();
        let all = BatchRows::new(&batch, &self.of.inputs).map_err(external)?;
        let rows: Vec<BatchRow<'_>> = (0..batch.num_rows()).map(|row| all.row(row)).collect();
        let order = keys_of(&batch, self.of.order)?;
        let mut partition = Partition {
            of: &self.of,
            rows: &rows,
            peers: Peers::new((0..order.len()).map(|row| order.value(row))),
            frames: None,
        };
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        for (_, oid, function) in &self.of.functions {
            let mut builder = ColumnBuilder::new(Form::of(*oid), rows.len());
            match function {
                Function::Ranking(name, arguments) => {
                    partition.ranking(name, arguments, &mut builder)
                }
                Function::Aggregate(of) => partition.aggregate(of, &mut builder),
            }
            .map_err(external)?;
            columns.push(builder.finish());
        }
        let whole = batch_of(&self.schema, columns, batch.num_rows())?;
        let mut from = 0;
        while from < whole.num_rows() {
            let rows = self.rows_max.min(whole.num_rows() - from);
            let part = whole.slice(from, rows);
            let bytes = batch_bytes(&part);
            self.ready_rows += rows;
            self.ready_bytes += bytes;
            self.ready.push_back((part, bytes));
            from += rows;
        }
        self.reservation.free();
        Ok(())
    }
}

#[async_trait]
impl Operator for Window {
    fn name(&self) -> &'static str {
        "Window"
    }

    fn added(&self) -> Vec<(usize, u32)> {
        self.functions
            .iter()
            .map(|(id, oid, _)| (*id, *oid))
            .collect()
    }

    fn passes(&self) -> bool {
        true
    }

    fn needs(&self) -> Vec<usize> {
        let mut needs: Vec<usize> = self.inputs.iter().map(|(id, _)| *id).collect();
        needs.extend([self.partition, self.order]);
        needs
    }

    fn sorted_by(&self) -> Vec<usize> {
        vec![self.partition, self.order]
    }

    fn execute(
        &self,
        inputs: &[Arc<dyn ExecutionPlan>],
        schema: SchemaRef,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = only_input(inputs)?;
        let state = State {
            of: self.clone(),
            input: input.execute(0, Arc::clone(&context))?,
            pending: Vec::new(),
            key: Vec::new(),
            ready: VecDeque::new(),
            ready_rows: 0,
            ready_bytes: 0,
            ended: false,
            reservation: MemoryConsumer::new("window").register(context.memory_pool()),
            rows_max: context.session_config().batch_size(),
            schema: Arc::clone(&schema),
        };
        let batches = stream::try_unfold(state, |mut state| async move {
            Ok(state.next().await?.map(|batch| (batch, state)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
