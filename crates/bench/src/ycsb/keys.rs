//! Which row is next: a rank by Zipf's law, and the key that has this rank.
//!
//! Ranks are drawn exactly, by rejection (`rand_distr::Zipf`), for any exponent
//! from 0 up; YCSB's own generator is an approximation that needs an exponent
//! below 1. The key of a rank is given by a permutation of all keys, so that hot
//! rows lie anywhere and not at the beginning of the table.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Zipf};

use crate::Result;

const ROUNDS: u32 = 4;

/// A permutation of `0..rows`: a Feistel network over the next even number of
/// bits, applied again while the result lies outside (cycle walking).
#[derive(Debug, Clone, Copy)]
pub struct Scatter {
    rows: u64,
    half_bits: u32,
}

impl Scatter {
    /// The permutation of `0..rows`; always the same one for the same `rows`.
    pub fn new(rows: u64) -> Self {
        assert!(rows > 0, "a permutation of nothing");
        let bits = u64::BITS - (rows - 1).leading_zeros();
        Scatter {
            rows,
            half_bits: bits.div_ceil(2).max(1),
        }
    }

    /// Where `rank` goes.
    #[inline]
    pub fn key(&self, rank: u64) -> u64 {
        assert!(rank < self.rows, "a rank beyond the rows");
        let mut value = rank;
        loop {
            value = self.network(value);
            if value < self.rows {
                return value;
            }
        }
    }

    #[inline]
    fn network(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..ROUNDS {
            let mixed = mix(right, round) & mask;
            (left, right) = (right, left ^ mixed);
        }
        (left << self.half_bits) | right
    }
}

/// A round's function: splitmix64's finaliser.
#[inline]
fn mix(value: u64, round: u32) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15u64.wrapping_mul(u64::from(round) + 1));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Draws keys.
#[derive(Debug)]
pub struct KeyChooser {
    zipf: Zipf<f64>,
    scatter: Scatter,
    random: StdRng,
}

impl KeyChooser {
    /// Draws among `rows` keys with this exponent.
    pub fn new(rows: u64, exponent: f64, seed: u64) -> Result<Self> {
        Ok(KeyChooser {
            zipf: Zipf::new(rows as f64, exponent)?,
            scatter: Scatter::new(rows),
            random: StdRng::seed_from_u64(seed),
        })
    }

    /// The next rank, from 0: the hottest.
    #[inline]
    pub fn rank(&mut self) -> u64 {
        let rank = self.zipf.sample(&mut self.random) as u64;
        // Rounding may lead past either end.
        rank.clamp(1, self.scatter.rows) - 1
    }

    /// The next key.
    #[inline]
    pub fn key(&mut self) -> u64 {
        let rank = self.rank();
        self.scatter.key(rank)
    }

    /// The source of chance, for other choices of the same client.
    pub fn random(&mut self) -> &mut StdRng {
        &mut self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_rank() {
        for rows in [1, 2, 3, 5, 64, 1000, 4097, 65_536] {
            let scatter = Scatter::new(rows);
            let mut seen = vec![false; rows as usize];
            for rank in 0..rows {
                let key = scatter.key(rank) as usize;
                assert!(!seen[key], "rows {rows}: key {key} twice");
                seen[key] = true;
            }
        }
    }

    #[test]
    fn hot_ranks_are_scattered_over_all_keys() {
        let rows = 1_000_000;
        let scatter = Scatter::new(rows);
        let mut tenths = [0; 10];
        for rank in 0..1000 {
            tenths[(scatter.key(rank) * 10 / rows) as usize] += 1;
        }
        assert!(
            tenths.iter().all(|count| (60..140).contains(count)),
            "{tenths:?}"
        );
    }

    /// Chi-square against the law itself, with 63 degrees of freedom: the
    /// value is above 120 once in about 20 000 tries, and the seeds are fixed.
    #[test]
    fn ranks_follow_zipfs_law_for_any_exponent() {
        const ROWS: usize = 64;
        const DRAWS: usize = 200_000;
        for exponent in [0.0, 0.5, 0.99, 1.0, 1.2, 2.0] {
            let mut chooser = KeyChooser::new(ROWS as u64, exponent, 7).expect("valid");
            let mut counts = [0u32; ROWS];
            for _ in 0..DRAWS {
                counts[chooser.rank() as usize] += 1;
            }
            let weight = |rank: usize| 1.0 / ((rank + 1) as f64).powf(exponent);
            let sum: f64 = (0..ROWS).map(weight).sum();
            let chi_square: f64 = (0..ROWS)
                .map(|rank| {
                    let expected = DRAWS as f64 * weight(rank) / sum;
                    (f64::from(counts[rank]) - expected).powi(2) / expected
                })
                .sum();
            assert!(chi_square < 120.0, "exponent {exponent}: {chi_square}");
        }
    }

    #[test]
    fn one_row_is_always_chosen() {
        let mut chooser = KeyChooser::new(1, 1.0, 1).expect("valid");
        assert!((0..100).all(|_| chooser.key() == 0));
    }
}
