//! The states of all groups, as DataFusion feeds them.

use std::sync::Arc;

use datafusion::arrow::array::builder::BinaryViewBuilder;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use parking_lot::Mutex;
use thermocline_query::error::Result;

use super::function::Role;
use super::kind::{Kind, bytes_of};
use crate::errors::external;
use crate::evaluate::Context;
use crate::form::{ColumnBuilder, Form};

/// States, one a group.
pub struct Grouped<K: Kind> {
    kind: Arc<K>,
    role: Role,
    strict: bool,
    result: u32,
    context: Context,
    states: Vec<K::State>,
    /// What the states hold beyond their own size.
    held: usize,
}

/// The rows that are taken; `None` for all.
fn taken(values: &[ArrayRef], strict: bool, filter: Option<&BooleanArray>) -> Option<NullBuffer> {
    let mut taken = None;
    if strict {
        for array in values {
            taken = NullBuffer::union(taken.as_ref(), array.logical_nulls().as_ref());
        }
    }
    if let Some(filter) = filter {
        let holds = NullBuffer::new(filter.values().clone());
        taken = NullBuffer::union(taken.as_ref(), Some(&holds));
        taken = NullBuffer::union(taken.as_ref(), filter.nulls());
    }
    taken.filter(|taken| taken.null_count() > 0)
}

impl<K: Kind> Grouped<K> {
    /// Of no groups yet.
    pub fn new(kind: Arc<K>, role: Role, strict: bool, result: u32, context: Context) -> Self {
        Self {
            kind,
            role,
            strict,
            result,
            context,
            states: Vec::new(),
            held: 0,
        }
    }

    fn grow(&mut self, groups: usize) -> Result<()> {
        let more = groups.saturating_sub(self.states.len());
        self.states.reserve(more);
        for _ in 0..more {
            let state = self.kind.start()?;
            self.states.push(state);
        }
        Ok(())
    }

    fn change(
        &mut self,
        group: usize,
        change: impl FnOnce(&K, &mut K::State) -> Result<()>,
    ) -> Result<()> {
        let state = &mut self.states[group];
        if K::HOLDS {
            let before = self.kind.bytes(state);
            change(&self.kind, state)?;
            self.held = (self.held + self.kind.bytes(state)).saturating_sub(before);
            return Ok(());
        }
        change(&self.kind, state)
    }

    fn update(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
    ) -> Result<()> {
        let input = self.kind.input(values)?;
        match taken(values, self.strict, filter) {
            None => {
                for (row, group) in groups.iter().enumerate() {
                    self.change(*group, |kind, state| kind.update(state, &input, row))?;
                }
            }
            Some(taken) => {
                for row in taken.valid_indices() {
                    self.change(groups[row], |kind, state| kind.update(state, &input, row))?;
                }
            }
        }
        Ok(())
    }

    fn merge(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let saved = bytes_of(values, 0)?;
        for (row, group) in groups.iter().enumerate() {
            if saved.is_valid(row) {
                self.change(*group, |kind, state| kind.merge(state, saved.value(row)))?;
            }
        }
        Ok(())
    }

    fn emitted(&mut self, emit: EmitTo) -> Vec<K::State> {
        let states = emit.take_needed(&mut self.states);
        if K::HOLDS {
            let bytes: usize = states.iter().map(|state| self.kind.bytes(state)).sum();
            self.held = self.held.saturating_sub(bytes);
        }
        states
    }

    fn saved(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let states = self.emitted(emit);
        let mut column = BinaryViewBuilder::with_capacity(states.len());
        let mut out = Vec::new();
        for state in &states {
            out.clear();
            self.kind.save(state, &mut out)?;
            column.append_value(&out);
        }
        Ok(Arc::new(column.finish()))
    }

    fn values(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let states = self.emitted(emit);
        let mut column = ColumnBuilder::new(Form::of(self.result), states.len());
        for state in states {
            column.push(&self.kind.value(&state)?)?;
        }
        Ok(column.finish())
    }

    /// The state of each row alone.
    fn converted(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<ArrayRef> {
        let rows = values.first().map_or(0, |array| array.len());
        let input = self.kind.input(values)?;
        let taken = taken(values, self.strict, filter);
        let mut column = BinaryViewBuilder::with_capacity(rows);
        let mut out = Vec::new();
        for row in 0..rows {
            let mut state = self.kind.start()?;
            if taken.as_ref().is_none_or(|taken| taken.is_valid(row)) {
                self.kind.update(&mut state, &input, row)?;
            }
            out.clear();
            self.kind.save(&state, &mut out)?;
            column.append_value(&out);
        }
        Ok(Arc::new(column.finish()))
    }

    fn interrupted(&self) -> Result<()> {
        self.context.environment.check_interrupted()
    }
}

impl<K: Kind> GroupsAccumulator for Grouped<K> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> DfResult<()> {
        self.interrupted().map_err(external)?;
        self.grow(count).map_err(external)?;
        match self.role {
            Role::OfStates => self.merge(values, groups),
            _ => self.update(values, groups, filter),
        }
        .map_err(external)
    }

    fn evaluate(&mut self, emit: EmitTo) -> DfResult<ArrayRef> {
        match self.role {
            Role::ToStates => self.saved(emit),
            _ => self.values(emit),
        }
        .map_err(external)
    }

    fn state(&mut self, emit: EmitTo) -> DfResult<Vec<ArrayRef>> {
        Ok(vec![self.saved(emit).map_err(external)?])
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], count: usize) -> DfResult<()> {
        self.interrupted().map_err(external)?;
        self.grow(count).map_err(external)?;
        self.merge(values, groups).map_err(external)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> DfResult<Vec<ArrayRef>> {
        self.interrupted().map_err(external)?;
        let converted = match self.role {
            // It has no filter: that was asked where the states were made.
            Role::OfStates => values
                .first()
                .cloned()
                .map_or_else(|| self.converted(values, filter), Ok),
            _ => self.converted(values, filter),
        };
        Ok(vec![converted.map_err(external)?])
    }

    fn size(&self) -> usize {
        self.states.capacity() * size_of::<K::State>() + self.held
    }
}

/// One group of all rows.
pub(super) struct OneGroup {
    /// Never shared, though DataFusion might.
    groups: Mutex<Box<dyn GroupsAccumulator>>,
    places: Vec<usize>,
}

impl std::fmt::Debug for OneGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OneGroup")
    }
}

impl OneGroup {
    pub(super) const fn new(groups: Box<dyn GroupsAccumulator>) -> Self {
        Self {
            groups: Mutex::new(groups),
            places: Vec::new(),
        }
    }

    fn places(&mut self, values: &[ArrayRef]) {
        let rows = values.first().map_or(0, |array| array.len());
        self.places.clear();
        self.places.resize(rows, 0);
    }

    /// There is a group even of no rows.
    fn begun(&mut self) -> DfResult<()> {
        self.groups.get_mut().merge_batch(&[empty()], &[], 1)
    }
}

fn empty() -> ArrayRef {
    Arc::new(BinaryViewBuilder::new().finish())
}

impl Accumulator for OneGroup {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.places(values);
        self.groups
            .get_mut()
            .update_batch(values, &self.places, None, 1)
    }

    fn merge_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.places(values);
        self.groups.get_mut().merge_batch(values, &self.places, 1)
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        self.begun()?;
        ScalarValue::try_from_array(&self.groups.get_mut().evaluate(EmitTo::All)?, 0)
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        self.begun()?;
        let arrays = self.groups.get_mut().state(EmitTo::All)?;
        let value = |array: &ArrayRef| ScalarValue::try_from_array(array, 0);
        arrays.iter().map(value).collect()
    }

    fn size(&self) -> usize {
        self.groups.lock().size() + self.places.capacity() * size_of::<usize>()
    }
}
