//! The groups that are in memory.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::HashMap;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result as QueryResult};
use thermocline_query::tree::Expr;
use thermocline_query::types::ids;

use super::batch_of;
use super::group::Group;
use super::group_files::{Files, PARTS, Part, Record, Writing, part_of, records, sets_of};
use super::states::{Running, list};
use crate::errors::external;
use crate::evaluate::{BatchRows, RowValues, as_column};
use crate::form::{BATCH_BYTES_MAX, ColumnBuilder, Form};
use crate::sort_key::{self, Direction};
use thermocline_query::{serial, size};

/// Bytes of a group beside what it holds.
const GROUP_BYTES: usize = 160;
/// Bytes of an aggregate of a group beside what it holds.
const RUNNING_BYTES: usize = 128;
/// Memory is asked for in pieces of this size, where there is as much.
const PIECE_BYTES: usize = 64 << 10;
/// Rows are not parted more often.
const LEVEL_MAX: usize = 8;

struct OneGroup {
    set: usize,
    values: Vec<Datum>,
    running: Vec<Running>,
    /// All that it takes.
    bytes: usize,
    /// What its aggregates held when they were last asked.
    held: usize,
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

/// The groups that are in memory, and the parts that are not.
pub(super) struct Table {
    of: Arc<Group>,
    files: Files,
    /// How often the rows were parted already.
    level: usize,
    places: HashMap<Box<[u8]>, usize>,
    /// In the order in which they came; those that wait on disk are gone.
    groups: Vec<Option<OneGroup>>,
    parts: Vec<Option<Writing>>,
    is_parted: bool,
    used: usize,
    reservation: MemoryReservation,
    /// Used again and again, for each row.
    values: Vec<Datum>,
    key: Vec<u8>,
    arguments: Vec<Datum>,
}

impl Table {
    pub(super) fn new(of: Group, files: Files, task: &TaskContext) -> Result<Self> {
        let consumer = MemoryConsumer::new("groups").with_can_spill(files.are_there());
        let mut table = Self {
            of: Arc::new(of),
            files,
            level: 0,
            places: HashMap::default(),
            groups: Vec::new(),
            parts: Vec::new(),
            is_parted: false,
            used: 0,
            reservation: consumer.register(task.memory_pool()),
            values: Vec::new(),
            key: Vec::new(),
            arguments: Vec::new(),
        };
        table.begin(0);
        table.without_rows()?;
        Ok(table)
    }

    pub(super) const fn level(&self) -> usize {
        self.level
    }

    pub(super) const fn files(&self) -> &Files {
        &self.files
    }

    /// Begins anew, with rows that were parted so often.
    pub(super) fn begin(&mut self, level: usize) {
        self.level = level;
        self.places = HashMap::default();
        self.groups = Vec::new();
        self.parts = (0..PARTS).map(|_| None).collect();
        self.is_parted = false;
        self.used = 0;
        self.reservation.free();
    }

    /// Groups that are there without any row.
    fn without_rows(&mut self) -> Result<()> {
        if !self.of.domain.is_empty() {
            return Ok(());
        }
        for set in 0..self.of.sets.len() {
            if self.of.sets[set].is_empty() {
                self.key.clear();
                self.key.extend((set as u32).to_le_bytes());
                self.values.clear();
                self.values.resize(self.of.keys.len(), Datum::Null);
                self.insert(set)?;
            }
        }
        Ok(())
    }

    /// Takes the rows of a batch; those that waited on disk for one of their sets only.
    pub(super) fn take(&mut self, batch: &RecordBatch, waited: bool) -> Result<()> {
        let of = Arc::clone(&self.of);
        let rows = BatchRows::new(batch, &of.inputs).map_err(external)?;
        let sets = match waited {
            true => sets_of(batch)?,
            false => Vec::new(),
        };
        for at in 0..batch.num_rows() {
            if at % 1024 == 0 {
                let environment = &of.context.environment;
                environment.check_interrupted().map_err(external)?;
            }
            let row = rows.row(at);
            let counts = self.read(&of, &row).map_err(external)?;
            let of_row = match sets.get(at) {
                Some(set) => *set..*set + 1,
                None => 0..of.sets.len(),
            };
            for set in of_row {
                if counts || of.sets[set].is_empty() {
                    self.row(&of, at, &row, set, counts)?;
                }
            }
        }
        if self.is_parted {
            for part in self.parts.iter_mut().flatten() {
                part.flush(&self.files, batch)?;
            }
        }
        Ok(())
    }

    /// Reads the row's domain and keys; whether it is a row, not only one that stands for its
    /// domain.
    fn read(&mut self, of: &Group, row: &dyn RowValues) -> QueryResult<bool> {
        self.values.clear();
        for (id, _) in &of.domain {
            self.values.push(row.column(*id)?);
        }
        for (_, expr) in &of.keys {
            self.values.push(of.context.evaluator.evaluate(expr, row)?);
        }
        match of.present {
            Some(present) => Ok(!row.column(present)?.is_null()),
            None => Ok(true),
        }
    }

    fn row(
        &mut self,
        of: &Group,
        at: usize,
        row: &dyn RowValues,
        set: usize,
        counts: bool,
    ) -> Result<()> {
        self.keyed(of, set).map_err(external)?;
        let mut place = self.places.get(self.key.as_slice()).copied();
        if place.is_none() {
            if self.waits(at, set) {
                return Ok(());
            }
            self.insert(set)?;
            // There may have been no room but by writing just its part.
            if self.waits(at, set) {
                return Ok(());
            }
            place = self.places.get(self.key.as_slice()).copied();
        }
        let group = place.and_then(|place| self.groups.get_mut(place)?.as_mut());
        let Some(group) = group.filter(|_| counts) else {
            return Ok(());
        };
        let shown = Shown {
            row,
            keys: &of.keys,
            set: &of.sets[set],
        };
        let mut held = 0;
        for (of_group, running) in of.aggregates.iter().zip(&mut group.running) {
            running
                .update(of_group, &of.context, row, &shown, &mut self.arguments)
                .map_err(external)?;
            held += running.bytes();
        }
        if held > group.held {
            let grown = held - group.held;
            group.held = held;
            group.bytes += grown;
            self.room(grown)?;
        }
        Ok(())
    }

    /// The key of the row at hand in a set.
    fn keyed(&mut self, of: &Group, set: usize) -> QueryResult<()> {
        let (domain, keys) = self.values.split_at(of.domain.len());
        self.key.clear();
        self.key.extend((set as u32).to_le_bytes());
        for value in domain {
            serial::write(value, &mut self.key)?;
        }
        for place in &of.sets[set] {
            let (_, expr) = &of.keys[*place];
            let direction = Direction::default();
            sort_key::directed(expr.oid, &keys[*place], direction, &mut self.key)?;
        }
        Ok(())
    }

    /// Whether the key at hand is of a part that is on disk; then its row goes there, too.
    fn waits(&mut self, at: usize, set: usize) -> bool {
        if !self.is_parted {
            return false;
        }
        match &mut self.parts[part_of(&self.key, self.level)] {
            Some(part) => {
                part.wait(at, set);
                true
            }
            None => false,
        }
    }

    /// A group of the key and the values at hand.
    fn insert(&mut self, set: usize) -> Result<()> {
        let of = Arc::clone(&self.of);
        let running = of.aggregates.iter();
        let running = running.map(|aggregate| Running::new(aggregate, &of.context));
        let running = running.collect::<QueryResult<Vec<_>>>().map_err(external)?;
        self.add(self.key.clone(), set, self.values.clone(), running)
    }

    fn add(
        &mut self,
        key: Vec<u8>,
        set: usize,
        values: Vec<Datum>,
        running: Vec<Running>,
    ) -> Result<()> {
        let held = running.iter().map(Running::bytes).sum::<usize>();
        let bytes =
            GROUP_BYTES + key.len() + size::values(&values) + running.len() * RUNNING_BYTES + held;
        self.places.insert(key.into(), self.groups.len());
        self.groups.push(Some(OneGroup {
            set,
            values,
            running,
            bytes,
            held,
        }));
        self.room(bytes)
    }

    /// Takes memory. Where there is none, parts go to disk.
    fn room(&mut self, bytes: usize) -> Result<()> {
        self.used += bytes;
        loop {
            let wanted = self.used.saturating_sub(self.reservation.size());
            if wanted == 0 || self.reservation.try_grow(wanted.max(PIECE_BYTES)).is_ok() {
                return Ok(());
            }
            match self.reservation.try_grow(wanted) {
                Ok(()) => return Ok(()),
                Err(error) => self.part_to_disk(error)?,
            }
        }
    }

    /// Writes the part that takes the most memory.
    fn part_to_disk(&mut self, error: DataFusionError) -> Result<()> {
        if !self.files.are_there() || self.level >= LEVEL_MAX || self.places.len() <= 1 {
            return Err(error);
        }
        let mut sizes = [0; PARTS];
        for (key, place) in &self.places {
            let group = self.groups.get(*place).and_then(Option::as_ref);
            sizes[part_of(key, self.level)] += group.map_or(0, |group| group.bytes);
        }
        let largest = sizes.iter().enumerate().max_by_key(|(_, size)| **size);
        let Some((part, size)) = largest.filter(|(_, size)| **size > 0) else {
            return Err(error);
        };
        let mut leaving = Vec::new();
        self.places.retain(|key, place| {
            let stays = part_of(key, self.level) != part;
            if !stays {
                leaving.push((*place, key.to_vec()));
            }
            stays
        });
        leaving.sort_unstable();
        let (of, all) = (&self.of, &mut self.groups);
        let groups = leaving.into_iter().filter_map(|(place, key)| {
            let group = all.get_mut(place)?.take()?;
            Some(saved(of, key, &group))
        });
        let mut writing = self.files.begin()?;
        writing.groups(&self.files, groups)?;
        self.parts[part] = Some(writing);
        self.is_parted = true;
        self.used = self.used.saturating_sub(*size);
        Ok(())
    }

    /// Takes groups that waited on disk.
    pub(super) fn restore(&mut self, batch: &RecordBatch) -> Result<()> {
        let of = Arc::clone(&self.of);
        let mut late: Vec<Vec<Record>> = (0..PARTS).map(|_| Vec::new()).collect();
        for record in records(batch) {
            let (key, saved) = record?;
            let part = part_of(&key, self.level);
            if self.parts[part].is_some() {
                late[part].push((key, saved));
                continue;
            }
            let (set, values, running) = restored(&of, saved).map_err(external)?;
            self.add(key, set, values, running)?;
        }
        for (part, late) in self.parts.iter_mut().zip(late) {
            if let Some(part) = part {
                part.groups(&self.files, late.into_iter().map(Ok))?;
            }
        }
        Ok(())
    }

    /// The groups from `from` on, as many as a batch has; the answer says where the next begin.
    pub(super) fn batch(
        &mut self,
        schema: &SchemaRef,
        from: usize,
        rows_max: usize,
    ) -> Result<Option<(RecordBatch, usize)>> {
        self.places = HashMap::default();
        let of = Arc::clone(&self.of);
        let oids = of.domain.iter().map(|(_, oid)| *oid);
        let oids = oids.chain(of.keys.iter().map(|(_, expr)| expr.oid));
        let oids = oids.chain(of.groupings.iter().map(|_| ids::INT4));
        let oids = oids.chain(of.aggregates.iter().map(|of| of.result));
        let mut builders: Vec<ColumnBuilder> = oids
            .map(|oid| ColumnBuilder::new(Form::of(oid), 0))
            .collect();
        let (mut at, mut bytes, mut rows) = (from, 0, 0);
        while at < self.groups.len() && rows < rows_max && bytes < BATCH_BYTES_MAX {
            if let Some(group) = self.groups[at].take() {
                bytes += push(&of, group, &mut builders).map_err(external)?;
                rows += 1;
            }
            at += 1;
        }
        if rows == 0 {
            return Ok(None);
        }
        let arrays = builders.iter_mut().map(ColumnBuilder::finish).collect();
        Ok(Some((batch_of(schema, arrays, rows)?, at)))
    }

    /// The parts that wait on disk.
    pub(super) fn finish(&mut self) -> Result<Vec<Part>> {
        let parts = std::mem::take(&mut self.parts).into_iter().flatten();
        parts.map(Writing::finish).collect()
    }
}

/// Appends a group's row; the answer is how many bytes it takes.
fn push(of: &Group, mut group: OneGroup, builders: &mut [ColumnBuilder]) -> QueryResult<usize> {
    let set = &of.sets[group.set];
    let mut builders = builders.iter_mut();
    let mut push = |value: &Datum| match builders.next() {
        Some(builder) => builder.push(value),
        None => Ok(0),
    };
    let mut bytes = 0;
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
        bytes += push(&running.value(aggregate, &of.context)?)?;
    }
    Ok(bytes)
}

/// A group as it waits.
fn saved(of: &Group, key: Vec<u8>, group: &OneGroup) -> Result<Record> {
    let mut saved = vec![Datum::Int8(group.set as i64), list(group.values.clone())];
    for (aggregate, running) in of.aggregates.iter().zip(&group.running) {
        let running = running.save(aggregate).ok_or_else(|| {
            DataFusionError::ResourcesExhausted("an aggregate is not written to disk".to_owned())
        })?;
        saved.push(list(running));
    }
    Ok((key, saved))
}

/// What [`saved`] gave.
fn restored(of: &Group, saved: Vec<Datum>) -> QueryResult<(usize, Vec<Datum>, Vec<Running>)> {
    let mut saved = saved.into_iter();
    let (Some(Datum::Int8(set)), Some(Datum::Array(values))) = (saved.next(), saved.next()) else {
        return Err(QueryError::internal("a group without its values"));
    };
    let mut running = Vec::with_capacity(of.aggregates.len());
    for (aggregate, saved) in of.aggregates.iter().zip(saved) {
        let saved = &saved.as_array().elements;
        running.push(Running::restore(aggregate, &of.context, saved)?);
    }
    let set = usize::try_from(set).map_err(|_| QueryError::internal("a set without a number"))?;
    Ok((set, values.elements.clone(), running))
}
