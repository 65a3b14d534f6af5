//! What a join's first side has tells which rows of the other side can match: its keys are collected
//! on their way into the join, and a scan on the other side reads by them, if they are few.
//!
//! The first side of a hash join is there in full before the other is asked for a row. A scan that
//! waits for its keys so waits for nothing that waits for it.

use std::collections::HashSet;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::Array;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType as ArrowType, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::Stream;
use parking_lot::Mutex;
use thermocline_analytical::errors::external;
use thermocline_analytical::form::{ColumnReader, Form};
use thermocline_engine::catalog::IndexKind;
use thermocline_engine::{IndexKeys, Table};
use thermocline_query::datum::Datum;
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};
use tokio::sync::Notify;

use super::way::{constant_of, probes_by_key, rows_by_key};
use crate::plan::{Fit, fit};

/// Keys of one join at most.
const KEYS_MAX: u64 = 1 << 16;
/// What a key takes beside its bytes.
const KEY_BYTES: usize = 48;

/// What a column of an index equals.
enum Part {
    /// The key of the join of this number.
    Key(usize),
    Constant(Value),
}

/// See the head of this file.
pub(super) struct Learned {
    table: Arc<Table>,
    index: usize,
    /// The index's first columns.
    parts: Vec<Part>,
    keys_max: usize,
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Default)]
struct State {
    /// Streams that have not come to their end.
    open: usize,
    /// `None`: there are too many.
    points: Option<HashSet<Box<[u8]>>>,
    held: Option<MemoryReservation>,
}

impl Learned {
    /// For the index that a join's keys, which are these columns of a table, and columns that equal a
    /// constant lead into best. The table has about so many rows, in so many partitions. `None`: there
    /// is no such index.
    pub fn of(
        table: &Arc<Table>,
        keys: &[Option<usize>],
        equal: &[(usize, Value)],
        (rows, partitions): (u64, u16),
    ) -> Option<Self> {
        let part = |column: &usize| {
            if let Some(key) = keys.iter().position(|key| key.as_ref() == Some(column)) {
                return Some(Part::Key(key));
            }
            let (_, value) = equal.iter().find(|(of, _)| of == column)?;
            Some(Part::Constant(value.clone()))
        };
        let led = table.indexes.iter().enumerate().filter_map(|(index, def)| {
            let parts: Vec<Part> = def.columns.iter().map_while(part).collect();
            let is_whole = parts.len() == def.columns.len();
            let tells = parts.iter().any(|part| matches!(part, Part::Key(_)));
            let worth = (is_whole && def.unique, is_whole, parts.len());
            let serves = tells && (def.kind == IndexKind::BTree || is_whole);
            serves.then_some((worth, index, parts))
        });
        let ((_, is_whole, _), index, parts) = led.max_by_key(|(worth, ..)| *worth)?;
        // A whole key may tell the partition that its rows are in.
        let each = match is_whole && table.partition_of_index_key(index, &[]).is_some() {
            true => 1,
            false => u64::from(partitions),
        };
        let most = rows_by_key(table, rows).min(probes_by_key(rows) / each);
        Some(Self {
            table: Arc::clone(table),
            index,
            parts,
            keys_max: usize::try_from(most.min(KEYS_MAX)).unwrap_or(usize::MAX),
            state: Mutex::default(),
            ended: Notify::new(),
        })
    }

    /// The index's place in the table's definition.
    pub const fn index(&self) -> usize {
        self.index
    }

    /// So many streams are to come.
    fn begin(&self, streams: usize) {
        *self.state.lock() = State {
            open: streams,
            points: Some(HashSet::new()),
            held: None,
        };
    }

    /// A stream has ended; `whole`: at its end.
    fn end(&self, whole: bool) {
        let mut state = self.state.lock();
        state.open = state.open.saturating_sub(1);
        if !whole {
            state.give_up();
        }
        let all = state.open == 0;
        drop(state);
        if all {
            self.ended.notify_waiters();
        }
    }

    /// All keys, when they are there; `None`: there are too many.
    pub async fn keys(&self) -> Option<IndexKeys> {
        loop {
            let ended = self.ended.notified();
            let mut ended = std::pin::pin!(ended);
            ended.as_mut().enable();
            {
                let state = self.state.lock();
                if state.open == 0 {
                    let points = state.points.as_ref()?.iter().cloned().collect();
                    let columns = self.parts.len();
                    return Some(IndexKeys::points(&self.table, self.index, points, columns));
                }
            }
            ended.await;
        }
    }

    fn take(&self, batch: &RecordBatch, keys: &[Arc<dyn PhysicalExpr>]) -> Result<()> {
        if self.state.lock().points.is_none() {
            return Ok(());
        }
        let rows = batch.num_rows();
        let mut readers = Vec::with_capacity(self.parts.len());
        for (part, column) in self.parts.iter().zip(self.columns()) {
            readers.push(match part {
                Part::Key(key) => {
                    let values = keys[*key].evaluate(batch)?.into_array(rows)?;
                    let of = self.table.columns[*column].data_type;
                    let Some(form) = form_of(of, values.data_type()) else {
                        self.state.lock().give_up();
                        return Ok(());
                    };
                    Some(ColumnReader::new(form, values).map_err(external)?)
                }
                Part::Constant(_) => None,
            });
        }
        let mut points = Vec::with_capacity(rows.min(self.keys_max));
        let mut values = Vec::with_capacity(self.parts.len());
        for row in 0..rows {
            values.clear();
            for ((part, reader), column) in self.parts.iter().zip(&readers).zip(self.columns()) {
                let value = match (part, reader) {
                    (Part::Constant(value), _) => value.clone(),
                    (Part::Key(_), Some(reader)) => {
                        let value = reader.get(row).map_err(external)?;
                        // NULL is equal to nothing.
                        if matches!(value, Datum::Null) {
                            break;
                        }
                        let of = self.table.columns[*column].data_type;
                        let Some(value) = constant_of(&value, of) else {
                            // A key that cannot be told is not one that nothing has.
                            self.state.lock().give_up();
                            return Ok(());
                        };
                        value
                    }
                    (Part::Key(_), None) => break,
                };
                values.push(value);
            }
            if values.len() == self.parts.len()
                && let Some(point) = self.point(&values)
                && points.last() != Some(&point)
            {
                points.push(point);
            }
        }
        let mut state = self.state.lock();
        state.add(points, self.keys_max);
        Ok(())
    }

    fn columns(&self) -> &[usize] {
        &self.table.indexes[self.index].columns
    }

    /// The key of these values; `None`: the columns have no such value.
    fn point(&self, values: &[Value]) -> Option<Box<[u8]>> {
        let fitted = values.iter().zip(self.columns()).map(|(value, column)| {
            match fit(value.as_ref(), self.table.columns[*column].data_type) {
                Fit::Exact(value) => Some(value),
                _ => None,
            }
        });
        let fitted: Vec<ValueRef<'_>> = fitted.collect::<Option<_>>()?;
        let mut key = Vec::with_capacity(16 * fitted.len());
        self.table.encode_index_key(self.index, &fitted, &mut key);
        Some(key.into())
    }
}

/// In which form keys of a column come, if they are its values: whole numbers may be wider.
fn form_of(of: DataType, arrow: &ArrowType) -> Option<Form> {
    let form = Form::of(of.oid());
    match arrow {
        ArrowType::Int16 if of.is_integer() => Some(Form::Int2),
        ArrowType::Int32 if of.is_integer() => Some(Form::Int4),
        ArrowType::Int64 if of.is_integer() => Some(Form::Int8),
        arrow => (form != Form::Opaque && form.arrow() == *arrow).then_some(form),
    }
}

impl State {
    fn give_up(&mut self) {
        self.points = None;
        self.held = None;
    }

    fn add(&mut self, new: Vec<Box<[u8]>>, most: usize) {
        let Some(points) = &mut self.points else {
            return;
        };
        let mut bytes = 0;
        for point in new {
            let length = point.len();
            if points.insert(point) {
                bytes += KEY_BYTES + length;
            }
        }
        let has_room = self
            .held
            .as_ref()
            .is_some_and(|held| held.try_grow(bytes).is_ok());
        if points.len() > most || !has_room {
            self.give_up();
        }
    }
}

/// Passes on a join's first side, and tells the keys that are in it.
pub(super) struct LearnExec {
    input: Arc<dyn ExecutionPlan>,
    /// The join's keys on this side.
    keys: Vec<Arc<dyn PhysicalExpr>>,
    learned: Vec<Arc<Learned>>,
}

impl LearnExec {
    /// See there.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        keys: Vec<Arc<dyn PhysicalExpr>>,
        learned: Vec<Arc<Learned>>,
    ) -> Self {
        let learn = Self {
            input,
            keys,
            learned,
        };
        learn.begin();
        learn
    }

    fn begin(&self) {
        let streams = self.input.output_partitioning().partition_count();
        for learned in &self.learned {
            learned.begin(streams);
        }
    }

    fn over(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self {
            input,
            keys: self.keys.clone(),
            learned: self.learned.clone(),
        }
    }
}

impl fmt::Debug for LearnExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as(DisplayFormatType::Default, f)
    }
}

impl DisplayAs for LearnExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LearnKeys: of")?;
        for learned in &self.learned {
            write!(f, " {}", learned.table.indexes[learned.index].name)?;
        }
        Ok(())
    }
}

impl ExecutionPlan for LearnExec {
    fn name(&self) -> &'static str {
        "LearnKeys"
    }

    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for key in &self.keys {
            if f(key)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) => Ok(Arc::new(self.over(input))),
            None => Err(DataFusionError::Internal("no child".to_owned())),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    /// The scan that waits has the same [`Learned`]: it is emptied, not made anew.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        self.begin();
        Ok(Arc::new(self.over(Arc::clone(&self.input))))
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        for learned in &self.learned {
            let held = || MemoryConsumer::new("keys of a join").register(context.memory_pool());
            learned.state.lock().held.get_or_insert_with(held);
        }
        Ok(Box::pin(LearnStream {
            input,
            keys: self.keys.clone(),
            learned: self.learned.clone(),
            has_ended: false,
        }))
    }
}

struct LearnStream {
    input: SendableRecordBatchStream,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    learned: Vec<Arc<Learned>>,
    has_ended: bool,
}

impl LearnStream {
    fn end(&mut self, whole: bool) {
        if !std::mem::replace(&mut self.has_ended, true) {
            for learned in &self.learned {
                learned.end(whole);
            }
        }
    }
}

impl Stream for LearnStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.input.as_mut().poll_next(context);
        match &polled {
            Poll::Ready(Some(Ok(batch))) => {
                for learned in &self.learned {
                    if let Err(error) = learned.take(batch, &self.keys) {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
            Poll::Ready(None) => self.end(true),
            _ => {}
        }
        polled
    }
}

impl RecordBatchStream for LearnStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

/// Who waits for keys does not wait for those of a stream that is gone.
impl Drop for LearnStream {
    fn drop(&mut self) {
        self.end(false);
    }
}
