//! The figures of *Anti-Caching: A New Approach to Database Management System Architecture*
//! (004, PVLDB 2013), one file each.

pub(super) mod block_size;
pub(super) mod chain;
pub(super) mod costs;
pub(super) mod index_costs;
pub(super) mod merge_strategies;
pub(super) mod over_time;
pub(super) mod tpcc;
pub(super) mod tuple_size;
pub(super) mod ycsb;

use super::data::Measure;
use super::figure::{Point, Series};
use super::outcome::OPS;
use super::scale::{Scale, skew};
use super::setting::{Choices, Medium, What};
use crate::ycsb_core::Mix;

/// The axis of most of them.
const SKEW: &str = "Zipf's exponent";
const OURS: &str = "ours";

/// The papers' disk with a policy, by skew.
fn by_skew(scale: &Scale, name: &str, mix: Mix, times: u64, choices: &Choices) -> Series {
    let points = scale.skews.iter().map(|zipf| {
        let on = scale.database(Medium::Hdd, scale.ycsb(mix, times, *zipf), choices.clone());
        Point::new(skew(*zipf), What::Database(Box::new(on)), OPS)
    });
    Series::new(name, points.collect())
}

/// How well a straight line fits: 1 is exactly.
fn fit(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let xy = sum(&|point| (point.0 - x) * (point.1 - y));
    let xx = sum(&|point| (point.0 - x).powi(2));
    let yy = sum(&|point| (point.1 - y).powi(2));
    if xx == 0.0 || yy == 0.0 {
        return 0.0;
    }
    xy * xy / (xx * yy)
}

/// The number that a place on an axis begins with.
fn number(x: &str) -> f64 {
    let digits = x.split(' ').next().unwrap_or_default();
    digits.parse().unwrap_or(f64::NAN)
}

/// A series as points of a plane.
fn plane(line: &[(&str, Measure)]) -> Vec<(f64, f64)> {
    line.iter().map(|(x, one)| (number(x), one.mean)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_and_a_parabola_less() {
        let line: Vec<(f64, f64)> = (1..6)
            .map(|x| (f64::from(x), 3.0 * f64::from(x) + 1.0))
            .collect();
        assert!(fit(&line) > 0.9999);
        let other: Vec<(f64, f64)> = (1..9)
            .map(|x| (f64::from(x), f64::from(x).powi(3)))
            .collect();
        assert!(fit(&other) < 0.95);
        assert_eq!(number("512 KB"), 512.0);
        assert_eq!(number("1.5"), 1.5);
    }
}
