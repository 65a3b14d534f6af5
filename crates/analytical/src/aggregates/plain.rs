//! `count`, and the first value of a group.

use datafusion::arrow::array::ArrayRef;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::{serial, size};

use super::kind::{Kind, Saved};
use crate::form::{ColumnReader, Form};

/// The rows that came.
pub(super) struct Count;

impl Kind for Count {
    type State = i64;
    type Input = ();

    fn input(&self, _: &[ArrayRef]) -> Result<()> {
        Ok(())
    }

    fn start(&self) -> Result<i64> {
        Ok(0)
    }

    fn update(&self, state: &mut i64, (): &(), _: usize) -> Result<()> {
        *state += 1;
        Ok(())
    }

    fn save(&self, state: &i64, out: &mut Vec<u8>) -> Result<()> {
        out.extend(state.to_le_bytes());
        Ok(())
    }

    fn merge(&self, state: &mut i64, saved: &[u8]) -> Result<()> {
        *state += i64::from_le_bytes(Saved(saved).word()?);
        Ok(())
    }

    fn value(&self, state: &i64) -> Result<Datum> {
        Ok(Datum::Int8(*state))
    }
}

/// The value of the first row, be it NULL.
pub(super) struct First(pub u32);

impl Kind for First {
    type State = Option<Datum>;
    type Input = ColumnReader;
    const HOLDS: bool = true;

    fn input(&self, arrays: &[ArrayRef]) -> Result<ColumnReader> {
        let Some(array) = arrays.first() else {
            return Err(QueryError::internal("the first of nothing"));
        };
        ColumnReader::new(Form::of(self.0), ArrayRef::clone(array))
    }

    fn start(&self) -> Result<Option<Datum>> {
        Ok(None)
    }

    fn update(&self, state: &mut Option<Datum>, input: &ColumnReader, row: usize) -> Result<()> {
        if state.is_none() {
            *state = Some(input.get(row)?);
        }
        Ok(())
    }

    fn save(&self, state: &Option<Datum>, out: &mut Vec<u8>) -> Result<()> {
        match state {
            Some(value) => serial::write(value, out),
            None => Ok(()),
        }
    }

    fn merge(&self, state: &mut Option<Datum>, saved: &[u8]) -> Result<()> {
        if state.is_none() && !saved.is_empty() {
            *state = Some(serial::read(saved)?);
        }
        Ok(())
    }

    fn value(&self, state: &Option<Datum>) -> Result<Datum> {
        Ok(state.clone().unwrap_or_default())
    }

    fn bytes(&self, state: &Option<Datum>) -> usize {
        state.as_ref().map_or(0, size::beyond)
    }
}
