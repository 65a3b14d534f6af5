//! `sum` and `avg`.

use super::super::{Aggregate, AggregateState};
use super::span;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::interval::Interval;
use crate::types::numeric::{Moments, Numeric};

/// A sum of integers, which no count of rows overflows.
struct Integers {
    sum: i128,
    count: i64,
    finish: fn(i128, i64) -> Result<Datum>,
}

impl Integers {
    fn state(finish: fn(i128, i64) -> Result<Datum>) -> Box<dyn AggregateState> {
        Box::new(Self {
            sum: 0,
            count: 0,
            finish,
        })
    }
}

/// An integer of any width.
#[inline]
pub(super) fn integer(value: &Datum) -> i64 {
    match value {
        Datum::Int4(value) => i64::from(*value),
        Datum::Int2(value) => i64::from(*value),
        other => other.as_int8(),
    }
}

impl AggregateState for Integers {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        self.sum += i128::from(integer(&arguments[0]));
        self.count += 1;
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        (self.finish)(self.sum, self.count)
    }

    fn save(&self) -> Option<Vec<Datum>> {
        let sum = Datum::bytes(self.sum.to_le_bytes());
        Some(vec![sum, Datum::Int8(self.count)])
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        let sum = saved[0].as_bytes().try_into();
        let sum = sum.map_err(|_| QueryError::internal("a sum of another length"))?;
        self.sum += i128::from_le_bytes(sum);
        self.count += saved[1].as_int8();
        Ok(())
    }
}

/// The sum of small integers, as `int8`, which wraps as PostgreSQL's does.
pub(super) static SUM_INT: Aggregate = Aggregate::normal(|_| {
    Integers::state(
        #[allow(clippy::cast_possible_truncation, reason = "it wraps")]
        |sum, _| Ok(Datum::Int8(sum as i64)),
    )
});

/// The sum of `int8`, as `numeric`.
pub(super) static SUM_INT8: Aggregate =
    Aggregate::normal(|_| Integers::state(|sum, _| Ok(Datum::Numeric(Numeric::from_i128(sum)))));

/// The average of integers, as `numeric`.
pub(super) static AVG_INT: Aggregate = Aggregate::normal(|_| {
    Integers::state(|sum, count| {
        let average = Numeric::from_i128(sum).div(&Numeric::from_i64(count))?;
        Ok(Datum::Numeric(average))
    })
});

/// A sum of `float4`.
#[derive(Default)]
struct Float4(Option<f32>);

impl AggregateState for Float4 {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        let value = arguments[0].as_float4();
        self.0 = Some(match self.0 {
            None => value,
            Some(before) => {
                let sum = before + value;
                if sum.is_infinite() && !before.is_infinite() && !value.is_infinite() {
                    return Err(super::float_overflow());
                }
                sum
            }
        });
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        Ok(self.0.map_or(Datum::Null, Datum::Float4))
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(vec![self.0.map_or(Datum::Null, Datum::Float4)])
    }

    fn merge(&mut self, call: &Call<'_>, saved: &[Datum]) -> Result<()> {
        if saved[0].is_null() {
            return Ok(());
        }
        self.update(call, saved)
    }
}

/// A sum of `float8`.
#[derive(Default)]
struct Float8(Option<f64>);

impl AggregateState for Float8 {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        let value = arguments[0].as_float8();
        self.0 = Some(match self.0 {
            None => value,
            Some(before) => {
                let sum = before + value;
                if sum.is_infinite() && !before.is_infinite() && !value.is_infinite() {
                    return Err(super::float_overflow());
                }
                sum
            }
        });
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        Ok(self.0.map_or(Datum::Null, Datum::Float8))
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(vec![self.0.map_or(Datum::Null, Datum::Float8)])
    }

    fn merge(&mut self, call: &Call<'_>, saved: &[Datum]) -> Result<()> {
        if saved[0].is_null() {
            return Ok(());
        }
        self.update(call, saved)
    }
}

/// The sum of `float4`.
pub(super) static SUM_FLOAT4: Aggregate = Aggregate::normal(|_| Box::<Float4>::default());
/// The sum of `float8`.
pub(super) static SUM_FLOAT8: Aggregate = Aggregate::normal(|_| Box::<Float8>::default());

/// A sum of `numeric`.
struct Numerics {
    moments: Moments,
    average: bool,
}

impl AggregateState for Numerics {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        self.moments.add(arguments[0].as_numeric());
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        let found = if self.average {
            self.moments.average()?
        } else {
            self.moments.total()?
        };
        Ok(found.map_or(Datum::Null, Datum::Numeric))
    }

    fn bytes(&self) -> usize {
        self.moments.bytes()
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(vec![Datum::bytes(self.moments.to_bytes())])
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        self.moments.merge(&Moments::of_bytes(saved[0].as_bytes())?);
        Ok(())
    }
}

/// The sum of `numeric`.
pub(super) static SUM_NUMERIC: Aggregate = Aggregate::normal(|_| {
    Box::new(Numerics {
        moments: Moments::new(false),
        average: false,
    })
});
/// The average of `numeric`.
pub(super) static AVG_NUMERIC: Aggregate = Aggregate::normal(|_| {
    Box::new(Numerics {
        moments: Moments::new(false),
        average: true,
    })
});

/// A sum of `interval`.
#[derive(Default)]
struct Intervals {
    sum: Interval,
    count: i64,
    average: bool,
}

impl AggregateState for Intervals {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        self.sum = span::add(self.sum, arguments[0].as_interval())?;
        self.count += 1;
        Ok(())
    }

    #[allow(clippy::cast_precision_loss, reason = "as PostgreSQL does")]
    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        Ok(Datum::Interval(if self.average {
            span::divide(self.sum, self.count as f64)?
        } else {
            self.sum
        }))
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(vec![Datum::Interval(self.sum), Datum::Int8(self.count)])
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        self.sum = span::add(self.sum, saved[0].as_interval())?;
        self.count += saved[1].as_int8();
        Ok(())
    }
}

/// The sum of `interval`.
pub(super) static SUM_INTERVAL: Aggregate = Aggregate::normal(|_| Box::<Intervals>::default());
/// The average of `interval`.
pub(super) static AVG_INTERVAL: Aggregate = Aggregate::normal(|_| {
    Box::new(Intervals {
        average: true,
        ..Intervals::default()
    })
});
