//! `variance`, `stddev` and their kin, and the average of floats, which keeps the same.

use super::super::{Aggregate, AggregateState};
use super::sum::integer;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::float::FloatMoments;
use crate::types::numeric::{Dispersion, Moments};

/// What floats are asked for.
#[derive(Clone, Copy)]
enum Wanted {
    Average,
    Dispersion(Dispersion),
}

/// Floats, and what is asked of them.
struct Floats {
    moments: FloatMoments,
    wanted: Wanted,
}

impl Floats {
    fn state(wanted: Wanted) -> Box<dyn AggregateState> {
        Box::new(Self {
            moments: FloatMoments::default(),
            wanted,
        })
    }
}

impl AggregateState for Floats {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        self.moments.add(match &arguments[0] {
            Datum::Float4(value) => f64::from(*value),
            other => other.as_float8(),
        })
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        let found = match self.wanted {
            Wanted::Average => self.moments.average(),
            Wanted::Dispersion(dispersion) => self.moments.dispersion(dispersion),
        };
        Ok(found.map_or(Datum::Null, Datum::Float8))
    }

    fn save(&self) -> Option<Vec<Datum>> {
        Some(self.moments.parts().map(Datum::Float8).to_vec())
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        let part = |place: usize| saved[place].as_float8();
        let other = FloatMoments::of_parts([part(0), part(1), part(2)]);
        self.moments.merge(&other)
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

    fn save(&self) -> Option<Vec<Datum>> {
        Some(vec![Datum::bytes(self.moments.to_bytes())])
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        self.moments.merge(&Moments::of_bytes(saved[0].as_bytes())?);
        Ok(())
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
