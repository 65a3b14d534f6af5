//! Random inputs as the specifications of TPC and TATP have them.

use rand::RngExt;
use rand::rngs::StdRng;

/// Letters and digits of random texts.
const ALPHANUMERIC: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A non-uniform random number from `x` to `y` (TPC-C 2.1.6): `((rand(0, a) | rand(x, y)) + c)`
/// modulo the numbers from `x` to `y`.
pub fn nurand(random: &mut StdRng, a: i64, x: i64, y: i64, c: i64) -> i64 {
    let wide = random.random_range(0..=a) | random.random_range(x..=y);
    (wide + c) % (y - x + 1) + x
}

/// Letters and digits, from `min` to `max` of them.
pub fn alphanumeric(random: &mut StdRng, min: usize, max: usize) -> String {
    let length = random.random_range(min..=max);
    let one = |_| ALPHANUMERIC[random.random_range(0..ALPHANUMERIC.len())] as char;
    (0..length).map(one).collect()
}

/// Digits, so many.
pub fn digits(random: &mut StdRng, length: usize) -> String {
    let one = |_| char::from(b'0' + random.random_range(0..10u8));
    (0..length).map(one).collect()
}

/// How often each of `x..=y` comes in all equally likely choices of [`nurand`], and of how many.
#[cfg(test)]
pub fn nurand_law(a: i64, x: i64, y: i64, c: i64) -> (Vec<u64>, u64) {
    let mut counts = vec![0; (y - x + 1) as usize];
    for low in 0..=a {
        for high in x..=y {
            counts[(((low | high) + c) % (y - x + 1)) as usize] += 1;
        }
    }
    (counts, ((a + 1) * (y - x + 1)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// Chi-square against the law itself, counted out over all choices; the seed is fixed.
    #[test]
    fn non_uniform_numbers_follow_their_law() {
        const DRAWS: u64 = 1_000_000;
        for (a, x, y, c) in [(255, 0, 999, 123), (63, 1, 300, 7), (1023, 1, 3000, 259)] {
            let (law, choices) = nurand_law(a, x, y, c);
            let mut random = StdRng::seed_from_u64(3);
            let mut counts = vec![0u64; law.len()];
            for _ in 0..DRAWS {
                counts[(nurand(&mut random, a, x, y, c) - x) as usize] += 1;
            }
            let (mut chi_square, mut degrees) = (0.0, -1.0);
            for (count, weight) in counts.iter().zip(&law) {
                if *weight == 0 {
                    assert_eq!(*count, 0, "a number that cannot come");
                    continue;
                }
                let expected = DRAWS as f64 * *weight as f64 / choices as f64;
                chi_square += (*count as f64 - expected).powi(2) / expected;
                degrees += 1.0;
            }
            // Five standard deviations above the mean of the chi-square distribution.
            let bound = degrees + 5.0 * f64::sqrt(2.0 * degrees);
            assert!(chi_square < bound, "{a} {x} {y}: {chi_square} of {bound}");
        }
    }

    #[test]
    fn uniform_numbers_would_not_pass_for_non_uniform_ones() {
        let (law, choices) = nurand_law(255, 0, 999, 0);
        let even = choices / law.len() as u64;
        assert!(law.iter().any(|weight| *weight > 3 * even));
        assert!(law.iter().any(|weight| *weight < even / 3));
    }
}
