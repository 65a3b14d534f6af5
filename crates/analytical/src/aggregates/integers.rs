//! Sums and averages of integers.

use std::marker::PhantomData;

use datafusion::arrow::array::{ArrayRef, PrimitiveArray};
use datafusion::arrow::datatypes::ArrowPrimitiveType;
use thermocline_query::datum::Datum;
use thermocline_query::error::Result;
use thermocline_query::types::numeric::Numeric;

use super::kind::{Kind, Saved, primitive};

/// What is asked of the sum.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// It, as `int8`, which wraps as PostgreSQL's does.
    Int8,
    /// It, as `numeric`.
    Numeric,
    /// The average.
    Average,
}

/// A sum of integers, which no count of rows overflows.
pub(super) struct Integers<T> {
    wanted: Wanted,
    width: PhantomData<T>,
}

impl<T> Integers<T> {
    pub(super) const fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            width: PhantomData,
        }
    }
}

/// The sum and the count of a group.
#[derive(Default)]
pub(super) struct Sum {
    sum: i128,
    count: i64,
}

impl<T> Kind for Integers<T>
where
    T: ArrowPrimitiveType + Send + Sync,
    T::Native: Into<i64>,
{
    type State = Sum;
    type Input = PrimitiveArray<T>;

    fn input(&self, arrays: &[ArrayRef]) -> Result<PrimitiveArray<T>> {
        primitive(arrays, 0)
    }

    fn start(&self) -> Result<Sum> {
        Ok(Sum::default())
    }

    #[inline]
    fn update(&self, state: &mut Sum, input: &PrimitiveArray<T>, row: usize) -> Result<()> {
        let value: i64 = input.value(row).into();
        state.sum += i128::from(value);
        state.count += 1;
        Ok(())
    }

    fn save(&self, state: &Sum, out: &mut Vec<u8>) -> Result<()> {
        out.extend(state.sum.to_le_bytes());
        out.extend(state.count.to_le_bytes());
        Ok(())
    }

    fn merge(&self, state: &mut Sum, saved: &[u8]) -> Result<()> {
        let mut saved = Saved(saved);
        state.sum += i128::from_le_bytes(saved.word()?);
        state.count += i64::from_le_bytes(saved.word()?);
        Ok(())
    }

    #[allow(clippy::cast_possible_truncation, reason = "it wraps")]
    fn value(&self, state: &Sum) -> Result<Datum> {
        if state.count == 0 {
            return Ok(Datum::Null);
        }
        Ok(match self.wanted {
            Wanted::Int8 => Datum::Int8(state.sum as i64),
            Wanted::Numeric => Datum::Numeric(Numeric::from_i128(state.sum)),
            Wanted::Average => {
                let count = Numeric::from_i64(state.count);
                Datum::Numeric(Numeric::from_i128(state.sum).div(&count)?)
            }
        })
    }
}
