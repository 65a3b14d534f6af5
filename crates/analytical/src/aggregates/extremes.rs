//! `min` and `max` of what Arrow does not order as PostgreSQL does.

use std::cmp::Ordering;
use std::marker::PhantomData;

use datafusion::arrow::array::{ArrayRef, BinaryViewArray, PrimitiveArray};
use thermocline_query::datum::Datum;
use thermocline_query::error::Result;
use thermocline_query::types::float;
use thermocline_query::types::numeric::Numeric;

use super::floats::Width;
use super::kind::{Kind, Saved, bytes_of, primitive};
use thermocline_query::serial;

/// Which value stays.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Least,
    Greatest,
}

impl Side {
    /// Whether a value stays before a new one, which it compares with so. Of equal ones the last
    /// is the value, as in PostgreSQL.
    fn stays(self, order: Ordering) -> bool {
        match self {
            Self::Least => order == Ordering::Less,
            Self::Greatest => order == Ordering::Greater,
        }
    }
}

/// Of floats.
pub(super) struct OfFloats<T>(Side, PhantomData<T>);

impl<T> OfFloats<T> {
    pub(super) const fn new(side: Side) -> Self {
        Self(side, PhantomData)
    }
}

impl<T: Width> OfFloats<T> {
    #[inline]
    fn take(&self, state: &mut Option<T::Native>, value: T::Native) {
        let stays = state.is_some_and(|old| {
            let order = float::compare_f64(T::wide(old), T::wide(value));
            self.0.stays(order)
        });
        if !stays {
            *state = Some(value);
        }
    }
}

impl<T: Width> Kind for OfFloats<T> {
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
        self.take(state, input.value(row));
        Ok(())
    }

    fn save(&self, state: &Option<T::Native>, out: &mut Vec<u8>) -> Result<()> {
        if let Some(value) = state {
            out.extend(T::wide(*value).to_le_bytes());
        }
        Ok(())
    }

    fn merge(&self, state: &mut Option<T::Native>, saved: &[u8]) -> Result<()> {
        if !saved.is_empty() {
            let value = f64::from_le_bytes(Saved(saved).word()?);
            self.take(state, T::narrow(value));
        }
        Ok(())
    }

    fn value(&self, state: &Option<T::Native>) -> Result<Datum> {
        Ok(state.map_or(Datum::Null, T::datum))
    }
}

/// Of `numeric`.
pub(super) struct OfNumerics(pub Side);

impl OfNumerics {
    #[inline]
    fn take(&self, state: &mut Option<Numeric>, bytes: &[u8]) -> Result<()> {
        let value = serial::read_numeric(bytes)?;
        let old = state.as_ref();
        if !old.is_some_and(|old| self.0.stays(old.cmp(&value))) {
            *state = Some(value);
        }
        Ok(())
    }
}

impl Kind for OfNumerics {
    type State = Option<Numeric>;
    type Input = BinaryViewArray;
    const HOLDS: bool = true;

    fn input(&self, arrays: &[ArrayRef]) -> Result<BinaryViewArray> {
        bytes_of(arrays, 0)
    }

    fn start(&self) -> Result<Option<Numeric>> {
        Ok(None)
    }

    #[inline]
    fn update(
        &self,
        state: &mut Option<Numeric>,
        input: &BinaryViewArray,
        row: usize,
    ) -> Result<()> {
        self.take(state, input.value(row))
    }

    fn save(&self, state: &Option<Numeric>, out: &mut Vec<u8>) -> Result<()> {
        match state {
            Some(value) => serial::write(&Datum::Numeric(value.clone()), out),
            None => Ok(()),
        }
    }

    fn merge(&self, state: &mut Option<Numeric>, saved: &[u8]) -> Result<()> {
        if saved.is_empty() {
            return Ok(());
        }
        self.take(state, saved)
    }

    fn value(&self, state: &Option<Numeric>) -> Result<Datum> {
        Ok(state.clone().map_or(Datum::Null, Datum::Numeric))
    }

    fn bytes(&self, state: &Option<Numeric>) -> usize {
        state.as_ref().map_or(0, Numeric::held_bytes)
    }
}

/// Of `bpchar`: blanks at the end do not count, and of equal ones the first stays.
pub(super) struct OfPadded(pub Side);

impl OfPadded {
    fn take(&self, state: &mut Option<Box<str>>, new: &str) {
        let stays = state.as_deref().is_some_and(|old| {
            let order = old.trim_end_matches(' ').cmp(new.trim_end_matches(' '));
            order == Ordering::Equal || self.0.stays(order)
        });
        if !stays {
            *state = Some(new.into());
        }
    }
}

impl Kind for OfPadded {
    type State = Option<Box<str>>;
    type Input = BinaryViewArray;
    const HOLDS: bool = true;

    fn input(&self, arrays: &[ArrayRef]) -> Result<BinaryViewArray> {
        bytes_of(arrays, 0)
    }

    fn start(&self) -> Result<Option<Box<str>>> {
        Ok(None)
    }

    fn update(
        &self,
        state: &mut Option<Box<str>>,
        input: &BinaryViewArray,
        row: usize,
    ) -> Result<()> {
        self.take(state, serial::text(input.value(row))?);
        Ok(())
    }

    fn save(&self, state: &Option<Box<str>>, out: &mut Vec<u8>) -> Result<()> {
        match state {
            Some(text) => serial::write(&Datum::text(text.as_ref()), out),
            None => Ok(()),
        }
    }

    fn merge(&self, state: &mut Option<Box<str>>, saved: &[u8]) -> Result<()> {
        if !saved.is_empty() {
            self.take(state, serial::text(saved)?);
        }
        Ok(())
    }

    fn value(&self, state: &Option<Box<str>>) -> Result<Datum> {
        Ok(state.as_deref().map_or(Datum::Null, Datum::text))
    }

    fn bytes(&self, state: &Option<Box<str>>) -> usize {
        state.as_ref().map_or(0, |text| text.len())
    }
}
