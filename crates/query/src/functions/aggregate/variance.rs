//! `variance`, `stddev` and their kin, and the average of floats, which keeps the same.

use super::super::{Aggregate, AggregateState};
use super::sum::integer;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::numeric::{Dispersion, Moments};

/// What floats are asked for.
#[derive(Clone, Copy)]
enum Wanted {
    Average,
    Dispersion(Dispersion),
}

/// Count, sum and sum of squared differences, by the algorithm of Youngs and Cramer.
struct Floats {
    count: f64,
    sum: f64,
    squares: f64,
    wanted: Wanted,
}

impl Floats {
    fn state(wanted: Wanted) -> Box<dyn AggregateState> {
        Box::new(Self {
            count: 0.0,
            sum: 0.0,
            squares: 0.0,
            wanted,
        })
    }
}

impl AggregateState for Floats {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        let value = match &arguments[0] {
            Datum::Float4(value) => f64::from(*value),
            other => other.as_float8(),
        };
        let (before, sum_before) = (self.count, self.sum);
        self.count += 1.0;
        self.sum += value;
        if before > 0.0 {
            let difference = value * self.count - self.sum;
            self.squares += difference * difference / (self.count * before);
            if self.sum.is_infinite() || self.squares.is_infinite() {
                if !sum_before.is_infinite() && !value.is_infinite() {
                    return Err(super::float_overflow());
                }
                self.squares = f64::NAN;
            }
        } else if !value.is_finite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        if self.count == 0.0 {
            return Ok(Datum::Null);
        }
        Ok(match self.wanted {
            Wanted::Average => Datum::Float8(self.sum / self.count),
            Wanted::Dispersion(dispersion) => {
                let divisor = if dispersion.sample {
                    self.count - 1.0
                } else {
                    self.count
                };
                if divisor == 0.0 {
                    return Ok(Datum::Null);
                }
                let variance = self.squares / divisor;
                Datum::Float8(if dispersion.deviation {
                    variance.sqrt()
                } else {
                    variance
                })
            }
        })
    }
}

/// The dispersion of integers and of `numeric`.
struct Exact {
    moments: Moments,
    dispersion: Dispersion,
}

impl AggregateState for Exact {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        match &arguments[0] {
            Datum::Numeric(value) => self.moments.add(value),
            other => self.moments.add_integer(integer(other)),
        }
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        let found = self.moments.dispersion(self.dispersion)?;
        Ok(found.map_or(Datum::Null, Datum::Numeric))
    }

    fn bytes(&self) -> usize {
        self.moments.bytes()
    }
}

const fn of(sample: bool, deviation: bool) -> Dispersion {
    Dispersion { sample, deviation }
}

fn exact(dispersion: Dispersion) -> Box<dyn AggregateState> {
    Box::new(Exact {
        moments: Moments::new(true),
        dispersion,
    })
}

/// `avg` of floats.
pub(super) static AVG_FLOAT: Aggregate = Aggregate::normal(|_| Floats::state(Wanted::Average));
/// `var_pop` of floats.
pub(super) static VAR_POP_FLOAT: Aggregate =
    Aggregate::normal(|_| Floats::state(Wanted::Dispersion(of(false, false))));
/// `var_samp` and `variance` of floats.
pub(super) static VAR_SAMP_FLOAT: Aggregate =
    Aggregate::normal(|_| Floats::state(Wanted::Dispersion(of(true, false))));
/// `stddev_pop` of floats.
pub(super) static STDDEV_POP_FLOAT: Aggregate =
    Aggregate::normal(|_| Floats::state(Wanted::Dispersion(of(false, true))));
/// `stddev_samp` and `stddev` of floats.
pub(super) static STDDEV_SAMP_FLOAT: Aggregate =
    Aggregate::normal(|_| Floats::state(Wanted::Dispersion(of(true, true))));

/// `var_pop` of integers and `numeric`.
pub(super) static VAR_POP: Aggregate = Aggregate::normal(|_| exact(of(false, false)));
/// `var_samp` and `variance` of integers and `numeric`.
pub(super) static VAR_SAMP: Aggregate = Aggregate::normal(|_| exact(of(true, false)));
/// `stddev_pop` of integers and `numeric`.
pub(super) static STDDEV_POP: Aggregate = Aggregate::normal(|_| exact(of(false, true)));
/// `stddev_samp` and `stddev` of integers and `numeric`.
pub(super) static STDDEV_SAMP: Aggregate = Aggregate::normal(|_| exact(of(true, true)));
