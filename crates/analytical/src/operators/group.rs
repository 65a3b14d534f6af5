//! Groups: rows that agree in their keys by PostgreSQL's equality become one, with the first
//! row's values and the aggregates' results. Also DISTINCT, set operations and what subqueries
//! are counted by. In memory, on the statement's account.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{TryFutureExt, TryStreamExt, stream};
use thermocline_query::datum::Datum;
use thermocline_query::error::Result as QueryResult;
use thermocline_query::tree::Expr;
use thermocline_query::types::ids;

use super::states::{Aggregation, Running, datum_bytes};
use super::{Operator, batch_of, only_input};
use crate::errors::external;
use crate::evaluate::{BatchRows, Context, RowValues, as_column, columns_of};
use crate::form::{BATCH_BYTES_MAX, ColumnBuilder, Form};
use crate::serial;
use crate::sort_key::{self, Direction};

/// Bytes of a group beside what it holds.
const GROUP_BYTES: usize = 160;

/// What is grouped, and by what.
#[derive(Clone)]
pub struct Group {
    /// Columns that go through as they are, and by whose very bytes rows are told apart.
    pub domain: Vec<(usize, u32)>,
    /// The grouping expressions and the columns that they become.
    pub keys: Vec<(usize, Expr)>,
    /// The sets of keys.
    pub sets: Vec<Vec<usize>>,
    /// `GROUPING`: the columns, and the keys that are asked for.
    pub groupings: Vec<(usize, Vec<usize>)>,
    /// The aggregates.
    pub aggregates: Vec<Aggregation>,
    /// A column that is NULL in rows that stand for no row, only for their domain.
    pub present: Option<usize>,
    /// The types of the input's columns that are used.
    pub inputs: Vec<(usize, u32)>,
    /// What evaluates.
    pub context: Context,
}

impl Group {
    /// The columns that are used.
    #[must_use]
    pub fn used(&self) -> Vec<usize> {
        let keys = self.keys.iter().map(|(_, expr)| expr);
        let aggregated = self.aggregates.iter().flat_map(Aggregation::exprs);
        let mut used = columns_of(keys.chain(aggregated));
        used.extend(self.domain.iter().map(|(id, _)| *id));
        used.extend(self.present);
        used.sort_unstable();
        used.dedup();
        used
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "domain={:?}, keys={:?}, sets={:?}, aggregates={}",
            self.domain,
            self.keys.iter().map(|(id, _)| id).collect::<Vec<_>>(),
            self.sets,
            self.aggregates.len()
        )
    }
}

struct OneGroup {
    set: usize,
    values: Vec<Datum>,
    running: Vec<Running>,
    bytes: usize,
}

/// A row as a group shows it: keys that are not in its set are NULL.
struct Shown<'a> {
    row: &'a dyn RowValues,
    keys: &'a [(usize, Expr)],
    set: &'a [usize],
}

impl RowValues for Shown<'_> {
    fn column(&self, id: usize) -> QueryResult<Datum> {
        let mut keys = self.keys.iter();
        match keys.position(|(_, expr)| as_column(expr) == Some(id)) {
            Some(key) if !self.set.contains(&key) => Ok(Datum::Null),
            _ => self.row.column(id),
        }
    }
}

struct Groups {
    of: Group,
    places: Vec<HashMap<Box<[u8]>, usize>>,
    groups: Vec<OneGroup>,
    reservation: MemoryReservation,
}

impl Groups {
    fn group(
        &mut self,
        set: usize,
        key: &[u8],
        values: impl FnOnce() -> Vec<Datum>,
    ) -> QueryResult<(usize, usize)> {
        if let Some(place) = self.places[set].get(key) {
            return Ok((*place, 0));
        }
        let values = values();
        let running = self.of.aggregates.iter();
        let running = running.map(|of| Running::new(of, &self.of.context));
        let running = running.collect::<QueryResult<Vec<_>>>()?;
        let bytes = GROUP_BYTES
            + key.len()
            + values.iter().map(datum_bytes).sum::<usize>()
            + running.len() * 128;
        self.groups.push(OneGroup {
            set,
            values,
            running,
            bytes: 0,
        });
        let place = self.groups.len() - 1;
        self.places[set].insert(key.into(), place);
        Ok((place, bytes))
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = BatchRows::new(batch, &self.of.inputs).map_err(external)?;
        let mut grown = 0;
        let mut key = Vec::new();
        for at in 0..batch.num_rows() {
            if at % 1024 == 0 {
                self.of
                    .context
                    .environment
                    .check_interrupted()
                    .map_err(external)?;
            }
            grown += self.row(&rows.row(at), &mut key).map_err(external)?;
        }
        self.reservation.try_grow(grown)
    }

    fn row(&mut self, row: &dyn RowValues, key: &mut Vec<u8>) -> QueryResult<usize> {
        let evaluator = Arc::clone(&self.of.context.evaluator);
        let mut values = Vec::with_capacity(self.of.domain.len() + self.of.keys.len());
        for (id, _) in &self.of.domain {
            values.push(row.column(*id)?);
        }
        for (_, expr) in &self.of.keys {
            values.push(evaluator.evaluate(expr, row)?);
        }
        let domain = self.of.domain.len();
        let counts = match self.of.present {
            Some(present) => !row.column(present)?.is_null(),
            None => true,
        };
        let mut grown = 0;
        for set in 0..self.of.sets.len() {
            if !counts && !self.of.sets[set].is_empty() {
                continue;
            }
            key.clear();
            for value in &values[..domain] {
                serial::write(value, key)?;
            }
            for place in &self.of.sets[set] {
                let (_, expr) = &self.of.keys[*place];
                sort_key::directed(expr.oid, &values[domain + place], Direction::default(), key)?;
            }
            let (place, bytes) = self.group(set, key, || values.clone())?;
            grown += bytes;
            if counts {
                let shown = Shown {
                    row,
                    keys: &self.of.keys,
                    set: &self.of.sets[set],
                };
                let group = &mut self.groups[place];
                let mut held = 0;
                for (of, running) in self.of.aggregates.iter().zip(&mut group.running) {
                    running.update(of, &self.of.context, row, &shown)?;
                    held += running.bytes();
                }
                grown += held.saturating_sub(group.bytes);
                group.bytes = group.bytes.max(held);
            }
        }
        Ok(grown)
    }

    /// Groups that are there without any row.
    fn finish(&mut self) -> Result<()> {
        if !self.of.domain.is_empty() {
            return Ok(());
        }
        for set in 0..self.of.sets.len() {
            if self.of.sets[set].is_empty() {
                let nulls = vec![Datum::Null; self.of.keys.len()];
                self.group(set, &[], || nulls).map_err(external)?;
            }
        }
        Ok(())
    }

    fn batch(
        &mut self,
        schema: &SchemaRef,
        from: usize,
        rows_max: usize,
    ) -> Result<(RecordBatch, usize)> {
        let of = &self.of;
        let oids = of.domain.iter().map(|(_, oid)| *oid);
        let oids = oids.chain(of.keys.iter().map(|(_, expr)| expr.oid));
        let oids = oids.chain(of.groupings.iter().map(|_| ids::INT4));
        let oids = oids.chain(of.aggregates.iter().map(|of| of.result));
        let mut builders: Vec<ColumnBuilder> = oids
            .map(|oid| ColumnBuilder::new(Form::of(oid), 0))
            .collect();
        let (mut at, mut bytes) = (from, 0);
        while at < self.groups.len() && at - from < rows_max && bytes < BATCH_BYTES_MAX {
            let group = &mut self.groups[at];
            let set = &of.sets[group.set];
            let mut builders = builders.iter_mut();
            let mut push = |value: &Datum| match builders.next() {
                Some(builder) => builder.push(value).map_err(external),
                None => Ok(0),
            };
            for (place, value) in group.values.iter().enumerate() {
                let out = match place.checked_sub(of.domain.len()) {
                    Some(key) if !set.contains(&key) => &Datum::Null,
                    _ => value,
                };
                bytes += push(out)?;
            }
            for (_, asked) in &of.groupings {
                let bits = asked
                    .iter()
                    .fold(0, |bits, key| bits << 1 | i32::from(!set.contains(key)));
                push(&Datum::Int4(bits))?;
            }
            for (aggregate, running) in of.aggregates.iter().zip(&mut group.running) {
                let value = running.value(aggregate, &of.context).map_err(external)?;
                bytes += push(&value)?;
            }
            group.values = Vec::new();
            group.running = Vec::new();
            at += 1;
        }
        let arrays = builders.iter_mut().map(ColumnBuilder::finish).collect();
        Ok((batch_of(schema, arrays, at - from)?, at))
    }
}

#[async_trait]
impl Operator for Group {
    fn name(&self) -> &'static str {
        "Group"
    }

    fn added(&self) -> Vec<(usize, u32)> {
        let keys = self.keys.iter().map(|(id, expr)| (*id, expr.oid));
        let groupings = self.groupings.iter().map(|(id, _)| (*id, ids::INT4));
        let aggregates = self.aggregates.iter().map(|of| (of.id, of.result));
        let all = self.domain.iter().copied().chain(keys);
        all.chain(groupings).chain(aggregates).collect()
    }

    fn passes(&self) -> bool {
        false
    }

    fn needs(&self) -> Vec<usize> {
        self.used()
    }

    fn execute(
        &self,
        inputs: &[Arc<dyn ExecutionPlan>],
        schema: SchemaRef,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = only_input(inputs)?;
        let mut input = input.execute(0, Arc::clone(&context))?;
        let rows_max = context.session_config().batch_size();
        let groups = Groups {
            places: vec![HashMap::new(); self.sets.len()],
            of: self.clone(),
            groups: Vec::new(),
            reservation: MemoryConsumer::new("groups").register(context.memory_pool()),
        };
        let of = Arc::clone(&schema);
        let batches = async move {
            let mut groups = groups;
            while let Some(batch) = input.try_next().await? {
                groups.take(&batch)?;
            }
            drop(input);
            groups.finish()?;
            groups.places = Vec::new();
            Ok::<_, DataFusionError>(stream::try_unfold(
                (groups, 0),
                move |(mut groups, from)| {
                    let of = Arc::clone(&of);
                    async move {
                        if from >= groups.groups.len() {
                            return Ok(None);
                        }
                        let (batch, at) = groups.batch(&of, from, rows_max)?;
                        Ok(Some((batch, (groups, at))))
                    }
                },
            ))
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            batches.try_flatten_stream(),
        )))
    }
}
