//! Averages of floats, and the measures of dispersion of all numbers.

use std::marker::PhantomData;

use datafusion::arrow::array::{ArrayRef, BinaryViewArray, PrimitiveArray};
use datafusion::arrow::datatypes::ArrowPrimitiveType;
use thermocline_query::datum::Datum;
use thermocline_query::error::Result;
use thermocline_query::types::float::FloatMoments;
use thermocline_query::types::numeric::{Dispersion, Moments};

use super::floats::Width;
use super::kind::{Kind, Saved, bytes_of, primitive};
use thermocline_query::serial;

/// The average of floats, or a dispersion.
pub(super) struct OfFloats<T> {
    dispersion: Option<Dispersion>,
    width: PhantomData<T>,
}

impl<T> OfFloats<T> {
    pub(super) const fn new(dispersion: Option<Dispersion>) -> Self {
        Self {
            dispersion,
            width: PhantomData,
        }
    }
}

impl<T: Width> Kind for OfFloats<T> {
    type State = FloatMoments;
    type Input = PrimitiveArray<T>;

    fn input(&self, arrays: &[ArrayRef]) -> Result<PrimitiveArray<T>> {
        primitive(arrays, 0)
    }

    fn start(&self) -> Result<FloatMoments> {
        Ok(FloatMoments::default())
    }

    #[inline]
    fn update(
        &self,
        state: &mut FloatMoments,
        input: &PrimitiveArray<T>,
        row: usize,
    ) -> Result<()> {
        state.add(T::wide(input.value(row)))
    }

    fn save(&self, state: &FloatMoments, out: &mut Vec<u8>) -> Result<()> {
        out.extend(state.parts().iter().flat_map(|part| part.to_le_bytes()));
        Ok(())
    }

    fn merge(&self, state: &mut FloatMoments, saved: &[u8]) -> Result<()> {
        let mut saved = Saved(saved);
        let mut parts = [0.0; 3];
        for part in &mut parts {
            *part = f64::from_le_bytes(saved.word()?);
        }
        state.merge(&FloatMoments::of_parts(parts))
    }

    fn value(&self, state: &FloatMoments) -> Result<Datum> {
        let found = match self.dispersion {
            Some(dispersion) => state.dispersion(dispersion),
            None => state.average(),
        };
        Ok(found.map_or(Datum::Null, Datum::Float8))
    }
}

/// Exact numbers of a form.
pub(super) trait Exact: Send + Sync + 'static {
    type Input;
    fn input(arrays: &[ArrayRef]) -> Result<Self::Input>;
    fn add(input: &Self::Input, row: usize, moments: &mut Moments) -> Result<()>;
}

/// Integers of a width.
pub(super) struct Whole<T>(PhantomData<T>);

impl<T> Exact for Whole<T>
where
    T: ArrowPrimitiveType + Send + Sync,
    T::Native: Into<i64>,
{
    type Input = PrimitiveArray<T>;

    fn input(arrays: &[ArrayRef]) -> Result<PrimitiveArray<T>> {
        primitive(arrays, 0)
    }

    #[inline]
    fn add(input: &PrimitiveArray<T>, row: usize, moments: &mut Moments) -> Result<()> {
        moments.add_integer(input.value(row).into());
        Ok(())
    }
}

/// `numeric`
pub(super) struct Decimal;

impl Exact for Decimal {
    type Input = BinaryViewArray;

    fn input(arrays: &[ArrayRef]) -> Result<BinaryViewArray> {
        bytes_of(arrays, 0)
    }

    #[inline]
    fn add(input: &BinaryViewArray, row: usize, moments: &mut Moments) -> Result<()> {
        moments.add(&serial::read_numeric(input.value(row))?);
        Ok(())
    }
}

/// A dispersion of exact numbers.
pub(super) struct OfExact<E> {
    dispersion: Dispersion,
    numbers: PhantomData<E>,
}

impl<E> OfExact<E> {
    pub(super) const fn new(dispersion: Dispersion) -> Self {
        Self {
            dispersion,
            numbers: PhantomData,
        }
    }
}

impl<E: Exact> Kind for OfExact<E> {
    type State = Moments;
    type Input = E::Input;
    const HOLDS: bool = true;

    fn input(&self, arrays: &[ArrayRef]) -> Result<E::Input> {
        E::input(arrays)
    }

    fn start(&self) -> Result<Moments> {
        Ok(Moments::new(true))
    }

    #[inline]
    fn update(&self, state: &mut Moments, input: &E::Input, row: usize) -> Result<()> {
        E::add(input, row, state)
    }

    fn save(&self, state: &Moments, out: &mut Vec<u8>) -> Result<()> {
        out.extend(state.to_bytes());
        Ok(())
    }

    fn merge(&self, state: &mut Moments, saved: &[u8]) -> Result<()> {
        state.merge(&Moments::of_bytes(saved)?);
        Ok(())
    }

    fn value(&self, state: &Moments) -> Result<Datum> {
        let found = state.dispersion(self.dispersion)?;
        Ok(found.map_or(Datum::Null, Datum::Numeric))
    }

    fn bytes(&self, state: &Moments) -> usize {
        state.bytes()
    }
}
