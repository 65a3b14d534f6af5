//! Sums and averages of `numeric`: in a word of 128 bits as long as they fit.

use datafusion::arrow::array::{ArrayRef, BinaryViewArray};
use thermocline_query::datum::Datum;
use thermocline_query::error::Result;
use thermocline_query::types::numeric::{Moments, Numeric};

use super::kind::{Kind, Saved, bytes_of};
use crate::numeric_view::read_short_numeric_view;
use thermocline_query::serial;

/// A sum or an average.
pub(super) struct Numerics {
    pub average: bool,
}

/// The sum, its scale and the count; the long form of all where that does not do.
#[derive(Default)]
pub(super) struct Sum {
    sum: i128,
    count: i64,
    scale: u16,
    long: Option<Box<Moments>>,
}

/// More places after the point.
#[inline]
fn raised(n: i128, places: u16) -> Option<i128> {
    if n == 0 {
        return Some(0);
    }
    n.checked_mul(10_i128.checked_pow(u32::from(places))?)
}

impl Sum {
    #[inline]
    fn add(&mut self, unscaled: i128, scale: u16, count: i64) {
        if self.long.is_none()
            && scale == self.scale
            && let Some(sum) = self.sum.checked_add(unscaled)
        {
            self.sum = sum;
            self.count += count;
            return;
        }
        self.add_slowly(unscaled, scale, count);
    }

    /// The sum's scale is the greatest that came.
    fn add_slowly(&mut self, unscaled: i128, scale: u16, count: i64) {
        if self.long.is_none() {
            let to = scale.max(self.scale);
            let sides = raised(self.sum, to - self.scale).zip(raised(unscaled, to - scale));
            if let Some(sum) = sides.and_then(|(sum, more)| sum.checked_add(more)) {
                self.sum = sum;
                self.scale = to;
                self.count += count;
                return;
            }
        }
        let more = Moments::of_sum(unscaled, scale, count);
        self.long().merge(&more);
    }

    fn long(&mut self) -> &mut Moments {
        let (sum, scale, count) = (self.sum, self.scale, self.count);
        self.long
            .get_or_insert_with(|| Box::new(Moments::of_sum(sum, scale, count)))
    }
}

impl Kind for Numerics {
    type State = Sum;
    type Input = BinaryViewArray;
    const HOLDS: bool = true;

    fn input(&self, arrays: &[ArrayRef]) -> Result<BinaryViewArray> {
        bytes_of(arrays, 0)
    }

    fn start(&self) -> Result<Sum> {
        Ok(Sum::default())
    }

    #[inline]
    fn update(&self, state: &mut Sum, input: &BinaryViewArray, row: usize) -> Result<()> {
        match read_short_numeric_view(input.views()[row]) {
            Some((unscaled, scale)) => state.add(i128::from(unscaled), scale, 1),
            None => state.long().add(&serial::read_numeric(input.value(row))?),
        }
        Ok(())
    }

    fn save(&self, state: &Sum, out: &mut Vec<u8>) -> Result<()> {
        match &state.long {
            None => {
                out.push(0);
                out.extend(state.sum.to_le_bytes());
                out.extend(state.scale.to_le_bytes());
                out.extend(state.count.to_le_bytes());
            }
            Some(long) => {
                out.push(1);
                out.extend(long.to_bytes());
            }
        }
        Ok(())
    }

    fn merge(&self, state: &mut Sum, saved: &[u8]) -> Result<()> {
        let mut saved = Saved(saved);
        if saved.word()? != [0] {
            state.long().merge(&Moments::of_bytes(saved.0)?);
            return Ok(());
        }
        let sum = i128::from_le_bytes(saved.word()?);
        let scale = u16::from_le_bytes(saved.word()?);
        state.add(sum, scale, i64::from_le_bytes(saved.word()?));
        Ok(())
    }

    fn value(&self, state: &Sum) -> Result<Datum> {
        let found = match &state.long {
            Some(long) if self.average => long.average()?,
            Some(long) => long.total()?,
            None if state.count == 0 => None,
            None => {
                let sum = Numeric::from_parts(state.sum, state.scale);
                Some(match self.average {
                    true => sum.div(&Numeric::from_i64(state.count))?,
                    false => sum,
                })
            }
        };
        Ok(found.map_or(Datum::Null, Datum::Numeric))
    }

    fn bytes(&self, state: &Sum) -> usize {
        let long = state.long.as_ref();
        long.map_or(0, |long| size_of::<Moments>() + long.bytes())
    }
}
