//! The values of a figure, by panel, series and place on the axis: what claims are checked on
//! and drawings are made of.

use std::collections::BTreeMap;

use super::figure::Panel;
use super::outcome::{Moment, OPS, OPS_ERROR, Outcome};
use super::setting::What;

/// A mean, and how far it may be off: by the trials, or by the seconds of a single one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measure {
    pub mean: f64,
    pub margin: f64,
}

impl Measure {
    /// Whether it is more than `factor` times the other, by more than both may be off.
    pub fn exceeds(&self, factor: f64, other: &Measure) -> bool {
        self.mean - self.margin > factor * (other.mean + other.margin)
    }

    /// Whether it is at least `factor` times the other, as far as can be told.
    pub fn reaches(&self, factor: f64, other: &Measure) -> bool {
        self.mean + self.margin >= factor * (other.mean - other.margin)
    }

    /// How many times the other it is.
    pub fn over(&self, other: &Measure) -> f64 {
        self.mean / other.mean
    }
}

/// A point of a series.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    pub measure: Measure,
    /// One for each trial.
    pub trials: Vec<f64>,
    /// Where it is the best of several: which.
    pub chosen: Option<String>,
    /// Means of all that was counted.
    pub counters: BTreeMap<String, f64>,
}

/// The values of a figure.
#[derive(Debug, Clone, Default)]
pub(super) struct Data {
    values: BTreeMap<(String, String), Vec<(String, Value)>>,
    moments: BTreeMap<(String, String), Vec<Moment>>,
}

/// Of values: their mean, and the standard error of it. `alone` is that of a single one.
fn measure(values: &[f64], alone: f64) -> Measure {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let margin = match values.len() {
        0 | 1 => alone,
        _ => {
            let squares = values.iter().map(|value| (value - mean).powi(2));
            (squares.sum::<f64>() / (count - 1.0) / count).sqrt()
        }
    };
    Measure { mean, margin }
}

fn value_of(outcomes: &[&Outcome], name: &str) -> Option<Value> {
    let trials: Vec<f64> = outcomes
        .iter()
        .filter_map(|outcome| outcome.values.get(name).copied())
        .collect();
    if trials.is_empty() {
        return None;
    }
    let alone = match name {
        OPS => outcomes[0].values.get(OPS_ERROR).copied(),
        _ => None,
    };
    let mut counters = BTreeMap::new();
    for key in outcomes[0].values.keys() {
        let found = outcomes
            .iter()
            .filter_map(|outcome| outcome.values.get(key));
        let found: Vec<f64> = found.copied().collect();
        counters.insert(key.clone(), measure(&found, 0.0).mean);
    }
    Some(Value {
        measure: measure(&trials, alone.unwrap_or(0.0)),
        trials,
        chosen: None,
        counters,
    })
}

impl Data {
    /// The values of these panels, as far as there are results. `outcomes` gives the trials of
    /// a setting.
    pub fn of<'a>(panels: &[Panel], outcomes: impl Fn(&What) -> Vec<&'a Outcome>) -> Self {
        let mut data = Data::default();
        for panel in panels {
            for series in &panel.series {
                let key = (panel.title.clone(), series.name.clone());
                for point in &series.points {
                    let mut best: Option<Value> = None;
                    for what in &point.of {
                        let of_what = outcomes(what);
                        let Some(mut value) = value_of(&of_what, point.value) else {
                            continue;
                        };
                        if point.of.len() > 1 {
                            value.chosen = Some(what.to_string());
                        }
                        if let Some(first) = of_what.first() {
                            data.moments.insert(key.clone(), first.moments.clone());
                        }
                        let mean = |value: &Value| value.measure.mean;
                        if best.as_ref().is_none_or(|best| mean(best) < mean(&value)) {
                            best = Some(value);
                        }
                    }
                    if let Some(value) = best {
                        data.put(&key.0, &key.1, &point.x, value);
                    }
                }
            }
        }
        data
    }

    pub fn put(&mut self, panel: &str, series: &str, x: &str, value: Value) {
        let key = (panel.to_owned(), series.to_owned());
        self.values
            .entry(key)
            .or_default()
            .push((x.to_owned(), value));
    }

    pub fn value(&self, panel: &str, series: &str, x: &str) -> Option<&Value> {
        let line = self.values.get(&(panel.to_owned(), series.to_owned()))?;
        line.iter().find(|(at, _)| at == x).map(|(_, value)| value)
    }

    pub fn at(&self, panel: &str, series: &str, x: &str) -> Option<Measure> {
        self.value(panel, series, x).map(|value| value.measure)
    }

    /// A counter of a point.
    pub fn counter(&self, panel: &str, series: &str, x: &str, name: &str) -> Option<f64> {
        self.value(panel, series, x)?.counters.get(name).copied()
    }

    /// A series in the order of its axis; None: it has no points.
    pub fn line(&self, panel: &str, series: &str) -> Option<Vec<(&str, Measure)>> {
        let line = self.values.get(&(panel.to_owned(), series.to_owned()))?;
        let line = line.iter().map(|(x, value)| (x.as_str(), value.measure));
        Some(line.collect())
    }

    /// The point of a series that is largest.
    pub fn best(&self, panel: &str, series: &str) -> Option<(&str, Measure)> {
        let line = self.line(panel, series)?.into_iter();
        line.max_by(|a, b| a.1.mean.total_cmp(&b.1.mean))
    }

    /// The seconds of a series of one run.
    pub fn moments(&self, panel: &str, series: &str) -> Option<&[Moment]> {
        let found = self.moments.get(&(panel.to_owned(), series.to_owned()))?;
        Some(found.as_slice())
    }
}

/// Data made up for tests of claims.
#[cfg(test)]
pub(super) mod made_up {
    use super::*;

    impl Data {
        /// A series with these points.
        pub fn with(mut self, panel: &str, series: &str, points: &[(&str, f64)]) -> Self {
            for (x, value) in points {
                let value = Value {
                    measure: Measure {
                        mean: *value,
                        margin: 0.0,
                    },
                    trials: vec![*value],
                    chosen: None,
                    counters: BTreeMap::new(),
                };
                self.put(panel, series, x, value);
            }
            self
        }

        /// A counter at a point that is there.
        pub fn counting(mut self, panel: &str, series: &str, x: &str, name: &str, n: f64) -> Self {
            let line = self.values.get_mut(&(panel.to_owned(), series.to_owned()));
            let point = line.and_then(|line| line.iter_mut().find(|(at, _)| at == x));
            let (_, value) = point.expect("the point is there");
            value.counters.insert(name.into(), n);
            self
        }

        /// The seconds of a series.
        pub fn lasting(mut self, panel: &str, series: &str, ops: &[f64]) -> Self {
            let moment = |(at, ops_per_s): (usize, &f64)| Moment {
                end_s: at as f64 + 1.0,
                ops_per_s: *ops_per_s,
                blocks: 1,
            };
            let moments = ops.iter().enumerate().map(moment).collect();
            self.moments.insert((panel.into(), series.into()), moments);
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_within_the_margin_does_not_exceed_and_does_reach() {
        let measure = |mean, margin| Measure { mean, margin };
        let (low, high) = (measure(100.0, 3.0), measure(104.0, 3.0));
        assert!(!high.exceeds(1.0, &low) && low.reaches(1.0, &high));
        let higher = measure(107.0, 0.5);
        assert!(higher.exceeds(1.0, &low) && !low.reaches(1.0, &higher));
        assert!(measure(202.0, 0.0).exceeds(2.0, &measure(100.0, 0.0)));
    }

    #[test]
    fn trials_have_a_mean_and_its_error() {
        let of_three = measure(&[9.0, 10.0, 11.0], 5.0);
        assert_eq!(of_three.mean, 10.0);
        assert!((of_three.margin - 1.0 / 3f64.sqrt()).abs() < 1e-9);
        assert_eq!(measure(&[7.0], 5.0).margin, 5.0);
    }
}
