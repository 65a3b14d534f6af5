//! What is known of a row of operations: how long they took, and how much that varied.

use std::time::Duration;

/// Times of operations of one sort, in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// How many were measured.
    pub count: u64,
    /// Their mean.
    pub mean_us: f64,
    /// Half of them took no longer.
    pub median_us: f64,
    /// 99 of 100 took no longer.
    pub p99_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Standard deviation.
    pub deviation_us: f64,
}

impl Times {
    /// All figures of these times; zeros if there are none.
    pub(super) fn of(mut times: Vec<Duration>) -> Times {
        times.sort_unstable();
        let us = |time: &Duration| time.as_nanos() as f64 / 1e3;
        let count = times.len();
        let at = |place: usize| {
            times
                .get(place.min(count.saturating_sub(1)))
                .map_or(0.0, us)
        };
        let of_all = count.max(1) as f64;
        let mean_us = times.iter().map(us).sum::<f64>() / of_all;
        let squares = times.iter().map(|time| (us(time) - mean_us).powi(2));
        Times {
            count: count as u64,
            mean_us,
            median_us: at(count / 2),
            p99_us: at(count * 99 / 100),
            max_us: at(count),
            deviation_us: (squares.sum::<f64>() / of_all).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_times() {
        let times = Times::of((1..=100).map(Duration::from_micros).collect());
        assert_eq!((times.count, times.mean_us), (100, 50.5));
        assert_eq!(
            (times.median_us, times.p99_us, times.max_us),
            (51.0, 100.0, 100.0)
        );
        assert!((times.deviation_us - 28.866).abs() < 0.01);
        assert_eq!(Times::of(Vec::new()), Times::default());
    }
}
