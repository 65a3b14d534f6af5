//! Ordered sets: `mode`, `percentile_disc`, `percentile_cont`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::super::{Aggregate, AggregateKind, AggregateState, SortKey};
use super::span;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::size;
use crate::types::{self, array::Array, ids};

/// The value that comes most often. Equal values come one after the other.
struct Mode {
    oid: u32,
    /// The first of the most frequent ones.
    mode: Datum,
    mode_count: u64,
    /// The first of the latest ones, and how many came.
    latest: Datum,
    latest_count: u64,
    latest_is_mode: bool,
}

impl AggregateState for Mode {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        let value = &arguments[0];
        let again = !self.latest.is_null()
            && types::compare(self.oid, value, &self.latest)? == Ordering::Equal;
        if again {
            self.latest_count += 1;
        } else {
            self.latest = value.clone();
            self.latest_count = 1;
            self.latest_is_mode = false;
        }
        if self.latest_count > self.mode_count {
            if !self.latest_is_mode {
                self.mode = self.latest.clone();
                self.latest_is_mode = true;
            }
            self.mode_count = self.latest_count;
        }
        Ok(())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        Ok(self.mode.clone())
    }

    fn bytes(&self) -> usize {
        size::beyond(&self.mode) + size::beyond(&self.latest)
    }
}

/// `mode`
pub(super) static MODE: Aggregate = Aggregate {
    kind: AggregateKind::OrderedSet { direct: 0 },
    new: |call| {
        Box::new(Mode {
            oid: call.arguments.first().copied().unwrap_or(0),
            mode: Datum::Null,
            mode_count: 0,
            latest: Datum::Null,
            latest_count: 0,
            latest_is_mode: false,
        })
    },
};

/// How a percentile comes from the values around it.
type Between = fn(&Datum, &Datum, f64) -> Result<Datum>;

/// The values in order.
struct Percentile {
    values: Vec<Datum>,
    held: usize,
    direct: Datum,
    /// Between two values; `None` gives one of them.
    between: Option<Between>,
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the percentile is from 0 to 1"
)]
impl Percentile {
    fn at(&self, percentile: f64) -> Result<Datum> {
        if !(0.0..=1.0).contains(&percentile) {
            return Err(QueryError::new(
                "22003",
                format!(
                    "percentile value {} is not between 0 and 1",
                    shortest(percentile)
                ),
            ));
        }
        let Some(last) = self.values.len().checked_sub(1) else {
            return Ok(Datum::Null);
        };
        let Some(between) = self.between else {
            let number = (percentile * self.values.len() as f64).ceil() as usize;
            return Ok(self.values[number.clamp(1, last + 1) - 1].clone());
        };
        let place = percentile * last as f64;
        let (first, second) = (place.floor() as usize, place.ceil() as usize);
        let (first, second) = (first.min(last), second.min(last));
        if first == second {
            return Ok(self.values[first].clone());
        }
        between(
            &self.values[first],
            &self.values[second],
            place - first as f64,
        )
    }
}

impl AggregateState for Percentile {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        self.held += size::beyond(&arguments[0]);
        self.values.push(arguments[0].clone());
        Ok(())
    }

    fn finish(&mut self, _: &Call<'_>, direct: &[Datum], _: &[SortKey]) -> Result<()> {
        self.direct = direct.first().cloned().unwrap_or_default();
        Ok(())
    }

    fn value(&self, call: &Call<'_>) -> Result<Datum> {
        match &self.direct {
            Datum::Null => Ok(Datum::Null),
            Datum::Array(percentiles) => {
                if self.values.is_empty() {
                    return Ok(Datum::Null);
                }
                call.room(size_of_val(percentiles.elements.as_slice()))?;
                let elements = percentiles.elements.iter().map(|percentile| {
                    if percentile.is_null() {
                        return Ok(Datum::Null);
                    }
                    self.at(percentile.as_float8())
                });
                Ok(Datum::Array(Arc::new(Array {
                    element: call.arguments.get(1).copied().unwrap_or(ids::FLOAT8),
                    dimensions: percentiles.dimensions.clone(),
                    elements: elements.collect::<Result<_>>()?,
                })))
            }
            percentile => self.at(percentile.as_float8()),
        }
    }

    fn bytes(&self) -> usize {
        self.held + self.values.capacity() * size_of::<Datum>()
    }
}

/// As C's `%g` shows it.
fn shortest(value: f64) -> String {
    const DIGITS: i32 = 6;
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..DIGITS).contains(&exponent) {
        let places = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        return without_zeros(&format!("{value:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(digits), exponent.abs())
}

fn state(between: Option<Between>) -> Box<dyn AggregateState> {
    Box::new(Percentile {
        values: Vec::new(),
        held: 0,
        direct: Datum::Null,
        between,
    })
}

fn between_floats(low: &Datum, high: &Datum, part: f64) -> Result<Datum> {
    let (low, high) = (low.as_float8(), high.as_float8());
    Ok(Datum::Float8(low + part * (high - low)))
}

fn between_intervals(low: &Datum, high: &Datum, part: f64) -> Result<Datum> {
    let (low, high) = (low.as_interval(), high.as_interval());
    let way = span::multiply(span::subtract(high, low)?, part)?;
    span::add(way, low).map(Datum::Interval)
}

/// `percentile_disc`, of one percentile and of several.
pub(super) static DISCRETE: Aggregate = Aggregate {
    kind: AggregateKind::OrderedSet { direct: 1 },
    new: |_| state(None),
};
/// `percentile_cont` of floats.
pub(super) static CONTINUOUS_FLOAT8: Aggregate = Aggregate {
    kind: AggregateKind::OrderedSet { direct: 1 },
    new: |_| state(Some(between_floats)),
};
/// `percentile_cont` of intervals.
pub(super) static CONTINUOUS_INTERVAL: Aggregate = Aggregate {
    kind: AggregateKind::OrderedSet { direct: 1 },
    new: |_| state(Some(between_intervals)),
};

#[cfg(test)]
mod tests {
    use super::shortest;

    #[test]
    fn numbers_are_shown_shortly() {
        assert_eq!(shortest(1.5), "1.5");
        assert_eq!(shortest(-0.1), "-0.1");
        assert_eq!(shortest(1e300), "1e+300");
        assert_eq!(shortest(1_234_567.0), "1.23457e+06");
        assert_eq!(shortest(-0.000_01), "-1e-05");
        assert_eq!(shortest(100.0), "100");
    }
}
