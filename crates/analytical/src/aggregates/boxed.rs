//! Any aggregate whose states become one, by `query`'s own states.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use thermocline_query::call::Call;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::functions::AggregateState;

use super::kind::Kind;
use crate::evaluate::Context;
use crate::form::{ColumnReader, Form};
use crate::operators::states::What;
use thermocline_query::serial;

/// What a state on the heap takes, about.
const STATE_BYTES: usize = 64;

/// An aggregate, and how it is called.
pub(super) struct Boxed {
    pub what: What,
    pub types: Arc<[u32]>,
    pub result: u32,
    /// The types of the arguments that rows have.
    pub arguments: Vec<u32>,
    pub context: Context,
}

impl Boxed {
    fn call(&self) -> Call<'_> {
        Call::new(self.context.environment.as_ref(), &self.types, self.result)
    }

    /// Whether its states become one, in any order.
    pub(super) fn is_mergeable(&self) -> bool {
        self.start()
            .is_ok_and(|state| state.save().is_some() && !state.keeps_order())
    }
}

impl Kind for Boxed {
    type State = Box<dyn AggregateState>;
    type Input = Vec<ColumnReader>;
    const HOLDS: bool = true;

    fn input(&self, arrays: &[ArrayRef]) -> Result<Vec<ColumnReader>> {
        let readers = self.arguments.iter().zip(arrays);
        readers
            .map(|(oid, array)| ColumnReader::new(Form::of(*oid), Arc::clone(array)))
            .collect()
    }

    fn start(&self) -> Result<Self::State> {
        self.what.state(&self.call())
    }

    fn update(&self, state: &mut Self::State, input: &Vec<ColumnReader>, row: usize) -> Result<()> {
        let call = self.call();
        match input.as_slice() {
            [one] => state.update(&call, &[one.get(row)?]),
            [one, other] => state.update(&call, &[one.get(row)?, other.get(row)?]),
            many => {
                let values = many.iter().map(|reader| reader.get(row));
                state.update(&call, &values.collect::<Result<Vec<_>>>()?)
            }
        }
    }

    fn save(&self, state: &Self::State, out: &mut Vec<u8>) -> Result<()> {
        let saved = state
            .save()
            .ok_or_else(|| QueryError::internal("a state that is not saved"))?;
        serial::write_all(&saved, out)
    }

    fn merge(&self, state: &mut Self::State, saved: &[u8]) -> Result<()> {
        state.merge(&self.call(), &serial::read_all(saved)?)
    }

    fn value(&self, state: &Self::State) -> Result<Datum> {
        state.value(&self.call())
    }

    fn bytes(&self, state: &Self::State) -> usize {
        STATE_BYTES + state.bytes()
    }
}
