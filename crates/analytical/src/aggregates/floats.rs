//! Sums of floats.

use std::marker::PhantomData;

use datafusion::arrow::array::{ArrayRef, PrimitiveArray};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, Float32Type, Float64Type};
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};

use super::kind::{Kind, Saved, primitive};

/// Floats of a width.
pub(super) trait Width: ArrowPrimitiveType + Send + Sync {
    fn datum(value: Self::Native) -> Datum;
    fn wide(value: Self::Native) -> f64;
    /// The sum in the type's own precision.
    fn sum(a: Self::Native, b: Self::Native) -> Self::Native;
    /// Of a number that was of this width.
    fn narrow(value: f64) -> Self::Native;
}

impl Width for Float32Type {
    fn datum(value: f32) -> Datum {
        Datum::Float4(value)
    }

    fn wide(value: f32) -> f64 {
        f64::from(value)
    }

    fn sum(a: f32, b: f32) -> f32 {
        a + b
    }

    #[allow(clippy::cast_possible_truncation, reason = "it was of this width")]
    fn narrow(value: f64) -> f32 {
        value as f32
    }
}

impl Width for Float64Type {
    fn datum(value: f64) -> Datum {
        Datum::Float8(value)
    }

    fn wide(value: f64) -> f64 {
        value
    }

    fn sum(a: f64, b: f64) -> f64 {
        a + b
    }

    fn narrow(value: f64) -> f64 {
        value
    }
}

/// A sum, which is of the floats' width.
pub(super) struct FloatSum<T>(PhantomData<T>);

impl<T> FloatSum<T> {
    pub(super) const fn new() -> Self {
        Self(PhantomData)
    }
}

fn add<T: Width>(state: &mut Option<T::Native>, value: T::Native) -> Result<()> {
    let Some(before) = *state else {
        *state = Some(value);
        return Ok(());
    };
    let sum = T::sum(before, value);
    let infinite = |value: T::Native| T::wide(value).is_infinite();
    if infinite(sum) && !infinite(before) && !infinite(value) {
        return Err(QueryError::new("22003", "value out of range: overflow"));
    }
    *state = Some(sum);
    Ok(())
}

impl<T: Width> Kind for FloatSum<T> {
    type State = Option<T::Native>;
    type Input = PrimitiveArray<T>;

    fn input(&self, arrays: &[ArrayRef]) -> Result<PrimitiveArray<T>> {
        primitive(arrays, 0)
    }

    fn start(&self) -> Result<Option<T::Native>> {
        Ok(None)
    }

    #[inline]
    fn update(
        &self,
        state: &mut Option<T::Native>,
        input: &PrimitiveArray<T>,
        row: usize,
    ) -> Result<()> {
        add::<T>(state, input.value(row))
    }

    fn save(&self, state: &Option<T::Native>, out: &mut Vec<u8>) -> Result<()> {
        if let Some(value) = state {
            out.extend(T::wide(*value).to_le_bytes());
        }
        Ok(())
    }

    fn merge(&self, state: &mut Option<T::Native>, saved: &[u8]) -> Result<()> {
        if saved.is_empty() {
            return Ok(());
        }
        let value = f64::from_le_bytes(Saved(saved).word()?);
        add::<T>(state, T::narrow(value))
    }

    fn value(&self, state: &Option<T::Native>) -> Result<Datum> {
        Ok(state.map_or(Datum::Null, T::datum))
    }
}
