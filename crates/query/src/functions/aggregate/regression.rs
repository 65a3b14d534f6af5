//! Aggregates of pairs: `corr`, `covar_…`, `regr_…`.

use super::super::{Aggregate, AggregateState};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;

/// Count, sums, and sums of squared differences and products, by the algorithm of Youngs and Cramer.
#[derive(Clone, Copy, Default)]
struct Pairs {
    count: f64,
    x: f64,
    xx: f64,
    y: f64,
    yy: f64,
    xy: f64,
}

impl Pairs {
    fn add(&mut self, y: f64, x: f64) -> Result<()> {
        let before = *self;
        self.count += 1.0;
        self.x += x;
        self.y += y;
        if before.count > 0.0 {
            let dx = x * self.count - self.x;
            let dy = y * self.count - self.y;
            let scale = 1.0 / (self.count * before.count);
            self.xx += dx * dx * scale;
            self.yy += dy * dy * scale;
            self.xy += dx * dy * scale;
            let x_infinite = self.x.is_infinite() || self.xx.is_infinite();
            let y_infinite = self.y.is_infinite() || self.yy.is_infinite();
            if x_infinite || y_infinite || self.xy.is_infinite() {
                // Only finite numbers overflow; infinite ones give NaN.
                let x_was_finite = !before.x.is_infinite() && !x.is_infinite();
                let y_was_finite = !before.y.is_infinite() && !y.is_infinite();
                if (x_infinite && x_was_finite)
                    || (y_infinite && y_was_finite)
                    || (self.xy.is_infinite() && x_was_finite && y_was_finite)
                {
                    return Err(super::float_overflow());
                }
                for sum in [&mut self.xx, &mut self.yy, &mut self.xy] {
                    if sum.is_infinite() {
                        *sum = f64::NAN;
                    }
                }
            }
        } else {
            if !x.is_finite() {
                self.xx = f64::NAN;
                self.xy = f64::NAN;
            }
            if !y.is_finite() {
                self.yy = f64::NAN;
                self.xy = f64::NAN;
            }
        }
        Ok(())
    }
}

impl Pairs {
    /// Adds what others have taken, as PostgreSQL's parallel workers do it.
    fn merge(&mut self, other: &Self) -> Result<()> {
        if other.count == 0.0 {
            return Ok(());
        }
        if self.count == 0.0 {
            *self = *other;
            return Ok(());
        }
        let finite = |sum: f64, a: f64, b: f64| {
            if sum.is_infinite() && !a.is_infinite() && !b.is_infinite() {
                return Err(super::float_overflow());
            }
            Ok(sum)
        };
        let count = self.count + other.count;
        let dx = self.x / self.count - other.x / other.count;
        let dy = self.y / self.count - other.y / other.count;
        let both = self.count * other.count;
        let xx = self.xx + other.xx + both * dx * dx / count;
        let yy = self.yy + other.yy + both * dy * dy / count;
        let xy = self.xy + other.xy + both * dx * dy / count;
        *self = Self {
            count,
            x: finite(self.x + other.x, self.x, other.x)?,
            xx: finite(xx, self.xx, other.xx)?,
            y: finite(self.y + other.y, self.y, other.y)?,
            yy: finite(yy, self.yy, other.yy)?,
            xy: finite(xy, self.xy, other.xy)?,
        };
        Ok(())
    }
}

/// The state and what it is asked for.
struct State {
    pairs: Pairs,
    finish: fn(&Pairs) -> Option<f64>,
}

impl AggregateState for State {
    fn update(&mut self, _: &Call<'_>, arguments: &[Datum]) -> Result<()> {
        self.pairs
            .add(arguments[0].as_float8(), arguments[1].as_float8())
    }

    fn value(&self, _: &Call<'_>) -> Result<Datum> {
        if self.pairs.count < 1.0 {
            return Ok(Datum::Null);
        }
        Ok((self.finish)(&self.pairs).map_or(Datum::Null, Datum::Float8))
    }

    fn save(&self) -> Option<Vec<Datum>> {
        let p = &self.pairs;
        let parts = [p.count, p.x, p.xx, p.y, p.yy, p.xy];
        Some(parts.map(Datum::Float8).to_vec())
    }

    fn merge(&mut self, _: &Call<'_>, saved: &[Datum]) -> Result<()> {
        let part = |place: usize| saved[place].as_float8();
        self.pairs.merge(&Pairs {
            count: part(0),
            x: part(1),
            xx: part(2),
            y: part(3),
            yy: part(4),
            xy: part(5),
        })
    }
}

fn state(finish: fn(&Pairs) -> Option<f64>) -> Box<dyn AggregateState> {
    Box::new(State {
        pairs: Pairs::default(),
        finish,
    })
}

macro_rules! aggregates {
    ($($(#[$doc:meta])* $name:ident = $finish:expr;)*) => {
        $(
            $(#[$doc])*
            pub(super) static $name: Aggregate = Aggregate::normal(|_| state($finish));
        )*
    };
}

aggregates! {
    /// `regr_sxx`
    SXX = |p| Some(p.xx);
    /// `regr_syy`
    SYY = |p| Some(p.yy);
    /// `regr_sxy`
    SXY = |p| Some(p.xy);
    /// `regr_avgx`
    AVGX = |p| Some(p.x / p.count);
    /// `regr_avgy`
    AVGY = |p| Some(p.y / p.count);
    /// `covar_pop`
    COVAR_POP = |p| Some(p.xy / p.count);
    /// `covar_samp`
    COVAR_SAMP = |p| (p.count >= 2.0).then(|| p.xy / (p.count - 1.0));
    /// `corr`
    CORR = |p| (p.xx != 0.0 && p.yy != 0.0).then(|| p.xy / (p.xx * p.yy).sqrt());
    /// `regr_r2`
    R2 = |p| match (p.xx == 0.0, p.yy == 0.0) {
        (true, _) => None,
        (_, true) => Some(1.0),
        _ => Some((p.xy * p.xy) / (p.xx * p.yy)),
    };
    /// `regr_slope`
    SLOPE = |p| (p.xx != 0.0).then(|| p.xy / p.xx);
    /// `regr_intercept`
    INTERCEPT = |p| (p.xx != 0.0).then(|| (p.y - p.x * p.xy / p.xx) / p.count);
}
