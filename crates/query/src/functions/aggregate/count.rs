//! `count` and `regr_count`.

use super::super::{Aggregate, AggregateState};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;

/// The rows that came.
#[derive(Default)]
struct Count(i64);

impl AggregateState for Count {
    fn update(&mut self, _: &Call<'_>, _: &[Datum]) -> Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        Ok(Datum::Int8(self.0))
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(vec![Datum::Int8(self.0)])
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        self.0 += saved[0].as_int8();
        Ok(())
    }
}

/// The rows that came.
pub(super) static COUNT: Aggregate = Aggregate::normal(|_| Box::<Count>::default());
