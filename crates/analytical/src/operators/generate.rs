//! Functions that give rows: for each row of the input, the rows of the functions side by side;
//! the shorter ones are filled up with NULL. Also VALUES over columns, and repeated rows.

use std::fmt;
use std::sync::Arc;
use thermocline_query::types::domain::base;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{TryStreamExt, stream};
use thermocline_query::call::Call;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result as QueryResult};
use thermocline_query::functions::Body;
use thermocline_query::tree::{Expr, ExprKind};
use thermocline_query::types::ids;
use thermocline_query::types::user::Class;

use super::{Operator, batch_of, only_input};
use crate::errors::external;
use crate::evaluate::{BatchRows, Context, RowValues};
use crate::form::{BATCH_BYTES_MAX, ColumnBuilder, Form};

/// One source of rows.
#[derive(Clone)]
pub enum Source {
    /// A call of a function that gives rows, or any other expression, which gives one; its columns.
    Call(Expr, Vec<(usize, u32)>),
    /// Rows of expressions.
    Values(Vec<Vec<Expr>>, Vec<(usize, u32)>),
    /// As many rows as the value of a column says; without columns.
    Repeat(usize),
}

/// What is generated.
#[derive(Clone)]
pub struct Generate {
    /// The sources, side by side.
    pub sources: Vec<Source>,
    /// The column that numbers the rows.
    pub ordinality: Option<usize>,
    /// The columns that the sources use, with their types.
    pub inputs: Vec<(usize, u32)>,
    /// What evaluates.
    pub context: Context,
}

impl fmt::Debug for Generate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "columns={:?}", self.added())
    }
}

/// Rows that are being given.
enum Running {
    /// All are here.
    Rows(std::vec::IntoIter<Vec<Datum>>),
    /// Values, or records that become columns; whether a record of one column does, too.
    Items(std::vec::IntoIter<Datum>, usize, bool),
    /// Whole numbers from one to another: the next, the last, the step, and whether of 4 bytes.
    Numbers(Option<i64>, i64, i64, bool),
    /// So many rows without columns.
    Empty(i64),
}

impl Running {
    fn next(&mut self) -> Option<Vec<Datum>> {
        match self {
            Self::Rows(rows) => rows.next(),
            Self::Items(items, columns, spreads) => {
                let item = items.next()?;
                Some(match (item, *columns) {
                    (Datum::Record(record), columns) if columns != 1 || *spreads => {
                        record.values.clone()
                    }
                    (item, 1) => vec![item],
                    (_, columns) => vec![Datum::Null; columns],
                })
            }
            Self::Numbers(next, last, step, short) => {
                let number = (*next)?;
                if (*step > 0 && number > *last) || (*step < 0 && number < *last) {
                    *next = None;
                    return None;
                }
                *next = number.checked_add(*step);
                Some(vec![match (*short, i32::try_from(number)) {
                    (true, Ok(number)) => Datum::Int4(number),
                    _ => Datum::Int8(number),
                }])
            }
            Self::Empty(rows) => {
                *rows = rows.checked_sub(1).filter(|rows| *rows >= 0)?;
                Some(Vec::new())
            }
        }
    }
}

impl Source {
    fn columns(&self) -> &[(usize, u32)] {
        match self {
            Self::Call(_, columns) | Self::Values(_, columns) => columns,
            Self::Repeat(_) => &[],
        }
    }

    fn start(&self, context: &Context, row: &dyn RowValues) -> QueryResult<Running> {
        let evaluate = |expr: &Expr| context.evaluator.evaluate(expr, row);
        let (expr, columns) = match self {
            Self::Values(rows, _) => {
                let rows = rows.iter().map(|row| row.iter().map(evaluate).collect());
                let rows = rows.collect::<QueryResult<Vec<Vec<Datum>>>>()?;
                return Ok(Running::Rows(rows.into_iter()));
            }
            Self::Repeat(column) => {
                return Ok(match row.column(*column)? {
                    Datum::Int8(rows) => Running::Empty(rows),
                    _ => Running::Empty(0),
                });
            }
            Self::Call(expr, columns) => (expr, columns),
        };
        // A composite type of one column is a row all the same, unless rows are wanted.
        let is_row = |oid: u32| Class::of(base(oid)) == Some(Class::Composite);
        let spreads = is_row(expr.oid)
            && !matches!(columns.as_slice(), [(_, oid)] if base(*oid) == base(expr.oid));
        let columns = columns.len();
        let one = |value: Datum| Ok(Running::Items(vec![value].into_iter(), columns, spreads));
        let ExprKind::Call(call) = &expr.kind else {
            return one(evaluate(expr)?);
        };
        if !call.function.returns_set() {
            return one(evaluate(expr)?);
        }
        let arguments = call.arguments.iter().map(evaluate);
        let arguments = arguments.collect::<QueryResult<Vec<_>>>()?;
        if call.function.strict && arguments.iter().any(Datum::is_null) {
            return Ok(Running::Empty(0));
        }
        // Numbers come one by one: there may be very many.
        if call.function.name == "generate_series" {
            let whole = |value: &Datum| match value {
                Datum::Int4(value) => Some(i64::from(*value)),
                Datum::Int8(value) => Some(*value),
                _ => None,
            };
            let numbers: Option<Vec<i64>> = arguments.iter().map(whole).collect();
            if let Some([first, last, step @ ..]) = numbers.as_deref() {
                let step = step.first().copied().unwrap_or(1);
                if step == 0 {
                    return Err(QueryError::invalid_parameter("step size cannot equal zero"));
                }
                return Ok(Running::Numbers(
                    Some(*first),
                    *last,
                    step,
                    expr.oid == ids::INT4,
                ));
            }
        }
        let of = Call::new(context.environment.as_ref(), &call.types, expr.oid);
        match &call.function.body {
            Body::Set(body) => {
                let items = body(&of, &arguments)?.into_iter();
                Ok(Running::Items(items, columns, spreads))
            }
            Body::ServerSet => {
                let answer = context.environment.call(call.function.name, &arguments)?;
                let items = match answer {
                    Datum::Array(array) => array.elements.clone(),
                    Datum::Null => Vec::new(),
                    other => vec![other],
                };
                Ok(Running::Items(items.into_iter(), columns, spreads))
            }
            _ => Err(QueryError::internal("not a function of rows")),
        }
    }
}

/// Where the generation stands.
struct State {
    of: Generate,
    input: SendableRecordBatchStream,
    batch: Option<(RecordBatch, BatchRows)>,
    /// The next row of the batch, and what its sources still give.
    row: usize,
    running: Option<(Vec<Running>, i64)>,
    rows_max: usize,
    schema: SchemaRef,
}

impl State {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.batch.is_none() {
                let Some(batch) = self.input.try_next().await? else {
                    return Ok(None);
                };
                let rows = BatchRows::new(&batch, &self.of.inputs).map_err(external)?;
                self.batch = Some((batch, rows));
                self.row = 0;
            }
            let made = self.fill()?;
            if made.num_rows() > 0 {
                return Ok(Some(made));
            }
        }
    }

    /// Makes rows of the batch at hand, at most a batch of them.
    fn fill(&mut self) -> Result<RecordBatch> {
        let Some((batch, rows)) = &self.batch else {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        };
        let added = self.of.added();
        let mut builders: Vec<ColumnBuilder> = added
            .iter()
            .map(|(_, oid)| ColumnBuilder::new(Form::of(*oid), 0))
            .collect();
        let mut origins: Vec<u64> = Vec::new();
        let mut bytes = 0;
        let environment = &self.of.context.environment;
        environment.check_interrupted().map_err(external)?;
        while origins.len() < self.rows_max && bytes < BATCH_BYTES_MAX {
            if self.row >= batch.num_rows() {
                break;
            }
            let row = rows.row(self.row);
            let (running, number) = match &mut self.running {
                Some(running) => running,
                None => {
                    let sources = self.of.sources.iter();
                    let running = sources.map(|source| source.start(&self.of.context, &row));
                    let running = running.collect::<QueryResult<Vec<_>>>().map_err(external)?;
                    self.running.insert((running, 0))
                }
            };
            let given: Vec<Option<Vec<Datum>>> = running.iter_mut().map(Running::next).collect();
            if given.iter().all(Option::is_none) {
                self.running = None;
                self.row += 1;
                continue;
            }
            *number += 1;
            let mut builders = builders.iter_mut();
            for (source, given) in self.of.sources.iter().zip(&given) {
                for place in 0..source.columns().len() {
                    let value = given.as_ref().and_then(|values| values.get(place));
                    if let Some(builder) = builders.next() {
                        bytes += builder
                            .push(value.unwrap_or(&Datum::Null))
                            .map_err(external)?;
                    }
                }
            }
            if let Some(builder) = builders.next() {
                builder.push(&Datum::Int8(*number)).map_err(external)?;
            }
            origins.push(self.row as u64);
        }
        let count = origins.len();
        let origins = UInt64Array::from(origins);
        let taken = batch
            .columns()
            .iter()
            .map(|column| take(column, &origins, None));
        let mut columns: Vec<ArrayRef> = taken.collect::<Result<_, _>>()?;
        columns.extend(builders.iter_mut().map(ColumnBuilder::finish));
        if self.row >= batch.num_rows() {
            self.batch = None;
        }
        batch_of(&self.schema, columns, count)
    }
}

#[async_trait]
impl Operator for Generate {
    fn name(&self) -> &'static str {
        "Generate"
    }

    fn added(&self) -> Vec<(usize, u32)> {
        let columns = self.sources.iter().flat_map(Source::columns).copied();
        columns
            .chain(self.ordinality.map(|id| (id, ids::INT8)))
            .collect()
    }

    fn passes(&self) -> bool {
        true
    }

    fn needs(&self) -> Vec<usize> {
        self.inputs.iter().map(|(id, _)| *id).collect()
    }

    fn keeps_order(&self) -> bool {
        true
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
            batch: None,
            row: 0,
            running: None,
            rows_max: context.session_config().batch_size(),
            schema: Arc::clone(&schema),
        };
        let batches = stream::try_unfold(state, |mut state| async move {
            Ok(state.next().await?.map(|batch| (batch, state)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
