//! What averages and dispersions of floats keep.

use crate::error::{QueryError, Result};
use crate::types::numeric::Dispersion;

/// Count, sum and sum of squared differences, by the algorithm of Youngs and Cramer.
#[derive(Clone, Copy, Default, Debug)]
pub struct FloatMoments {
    count: f64,
    sum: f64,
    squares: f64,
}

#[cold]
fn overflow() -> QueryError {
    QueryError::new("22003", "value out of range: overflow")
}

impl FloatMoments {
    /// Adds a number.
    ///
    /// # Errors
    /// 22003 where finite numbers become infinite.
    #[inline]
    pub fn add(&mut self, value: f64) -> Result<()> {
        let (before, sum_before) = (self.count, self.sum);
        self.count += 1.0;
        self.sum += value;
        if before > 0.0 {
            let difference = value * self.count - self.sum;
            self.squares += difference * difference / (self.count * before);
            if self.sum.is_infinite() || self.squares.is_infinite() {
                if !sum_before.is_infinite() && !value.is_infinite() {
                    return Err(overflow());
                }
                self.squares = f64::NAN;
            }
        } else if !value.is_finite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }

    /// Adds what others have taken, as PostgreSQL's parallel workers do it.
    ///
    /// # Errors
    /// 22003 where finite numbers become infinite.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if other.count == 0.0 {
            return Ok(());
        }
        if self.count == 0.0 {
            *self = *other;
            return Ok(());
        }
        let count = self.count + other.count;
        let sum = self.sum + other.sum;
        if sum.is_infinite() && !self.sum.is_infinite() && !other.sum.is_infinite() {
            return Err(overflow());
        }
        let difference = self.sum / self.count - other.sum / other.count;
        let squares = self.squares
            + other.squares
            + self.count * other.count * difference * difference / count;
        if squares.is_infinite() && !self.squares.is_infinite() && !other.squares.is_infinite() {
            return Err(overflow());
        }
        *self = Self {
            count,
            sum,
            squares,
        };
        Ok(())
    }

    /// The average, if there is anything.
    #[must_use]
    pub fn average(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// Variance or deviation, if there is enough for it.
    #[must_use]
    pub fn dispersion(&self, of: Dispersion) -> Option<f64> {
        let divisor = if of.sample {
            self.count - 1.0
        } else {
            self.count
        };
        if divisor <= 0.0 {
            return None;
        }
        let variance = self.squares / divisor;
        Some(if of.deviation {
            variance.sqrt()
        } else {
            variance
        })
    }

    /// All of it.
    #[must_use]
    pub const fn parts(&self) -> [f64; 3] {
        [self.count, self.sum, self.squares]
    }

    /// Of its [`Self::parts`].
    #[must_use]
    pub const fn of_parts([count, sum, squares]: [f64; 3]) -> Self {
        Self {
            count,
            sum,
            squares,
        }
    }
}
