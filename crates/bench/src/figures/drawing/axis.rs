//! From values to places along an upright axis, and the ticks between.

/// Ticks of an axis with equal steps, about.
const TICKS: f64 = 4.0;

/// An upright axis from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    /// One that has room for these values.
    pub fn of(values: impl Iterator<Item = f64> + Clone, log: bool) -> Self {
        let high = values.clone().fold(0.0, f64::max);
        if !log {
            let step = nice(high / TICKS);
            let high = (high / step).ceil() * step;
            return Axis {
                low: 0.0,
                high: if high > 0.0 { high } else { 1.0 },
                log,
            };
        }
        let positive = values.filter(|value| *value > 0.0);
        let low = positive.fold(f64::INFINITY, f64::min);
        if !low.is_finite() || high <= 0.0 {
            return Axis {
                low: 1.0,
                high: 10.0,
                log,
            };
        }
        let low = 10f64.powf(low.log10().floor());
        let high = 10f64.powf(high.log10().ceil()).max(10.0 * low);
        Axis { low, high, log }
    }

    /// The share of the axis, from below, at which a value lies.
    pub fn share(&self, value: f64) -> f64 {
        let share = match self.log {
            true => (value.max(self.low) / self.low).log10() / (self.high / self.low).log10(),
            false => (value - self.low) / (self.high - self.low),
        };
        share.clamp(0.0, 1.0)
    }

    /// Values that are shown beside it.
    pub fn ticks(&self) -> Vec<f64> {
        let mut ticks = Vec::new();
        if self.log {
            let mut tick = self.low;
            while tick <= self.high * 1.001 {
                ticks.push(tick);
                tick *= 10.0;
            }
            // Not more than there is room for.
            let every = ticks.len().div_ceil(7).max(1);
            return ticks.into_iter().step_by(every).collect();
        }
        let step = nice(self.high / TICKS);
        for number in 0.. {
            let tick = f64::from(number) * step;
            if tick > self.high * 1.001 {
                break;
            }
            ticks.push(tick);
        }
        ticks
    }
}

/// 1, 2 or 5 times a power of ten, not below the value.
pub(super) fn nice(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].into_iter();
    let mut steps = steps.map(|step| step * power);
    steps
        .find(|step| *step >= value * 0.999)
        .unwrap_or(10.0 * power)
}

/// A value beside an axis.
pub(super) fn shown(value: f64) -> String {
    let (value, unit) = match value.abs() {
        large if large >= 1e6 => (value / 1e6, " M"),
        large if large >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        large if large >= 10.0 || value == value.round() => 0,
        middle if middle >= 0.1 => 1,
        middle if middle >= 0.01 => 2,
        _ => 4,
    };
    format!("{value:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_room_for_its_values_and_round_ticks() {
        let axis = Axis::of([3.0, 870.0].into_iter(), false);
        assert_eq!(axis.ticks(), [0.0, 500.0, 1000.0]);
        assert!(axis.share(870.0) < 1.0 && axis.share(0.0) == 0.0);
        let axis = Axis::of([0.3, 870.0].into_iter(), true);
        let ticks: Vec<String> = axis.ticks().into_iter().map(shown).collect();
        assert_eq!(ticks, ["0.1", "1", "10", "100", "1000"]);
        assert!((axis.share(10.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn nothing_at_all_has_an_axis_too() {
        for log in [false, true] {
            let axis = Axis::of([].into_iter(), log);
            assert!(axis.ticks().len() >= 2);
            assert!(axis.share(0.0).is_finite());
        }
        assert_eq!(shown(120_000.0), "120 k");
        assert_eq!(shown(2_500_000.0), "2.5 M");
    }
}
