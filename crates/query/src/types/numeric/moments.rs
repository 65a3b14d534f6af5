//! What sums, averages and variances of many numbers keep: exact sums, without
//! an allocation while they are small.

use super::small::align;
use super::{Numeric, Var};
use crate::error::{QueryError, Result};

/// A growing sum.
#[derive(Clone, Debug, Default)]
struct Sum {
    /// The part that fits, and its scale.
    small: i128,
    scale: u16,
    /// The rest; to be added.
    large: Option<Var>,
}

impl Sum {
    #[inline]
    fn add_small(&mut self, unscaled: i128, scale: u16) {
        if scale == self.scale
            && let Some(sum) = self.small.checked_add(unscaled)
        {
            self.small = sum;
            return;
        }
        self.add_slowly(unscaled, scale);
    }

    fn add_slowly(&mut self, unscaled: i128, scale: u16) {
        if let Some((sum, more, scale)) = align((self.small, self.scale), (unscaled, scale))
            && let Some(sum) = sum.checked_add(more)
        {
            self.small = sum;
            self.scale = scale;
            return;
        }
        let small = Var::from_i128(self.small, i32::from(self.scale));
        self.add_large(&small);
        self.small = unscaled;
        self.scale = scale;
    }

    fn add_large(&mut self, value: &Var) {
        self.large = Some(match &self.large {
            None => value.clone(),
            Some(large) => large.add(value),
        });
    }

    /// The sum, at the largest scale that came.
    fn total(&self) -> Var {
        let small = Var::from_i128(self.small, i32::from(self.scale));
        match &self.large {
            None => small,
            Some(large) => large.add(&small),
        }
    }

    fn bytes(&self) -> usize {
        self.large.as_ref().map_or(0, Var::bytes)
    }
}

impl Var {
    /// The bytes beyond its own size.
    fn bytes(&self) -> usize {
        self.limbs.capacity() * size_of::<u32>()
    }
}

impl Numeric {
    /// The bytes that it holds beyond its own size.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::Large(var) => size_of::<Var>() + 2 * size_of::<usize>() + var.bytes(),
            _ => 0,
        }
    }
}

/// Which of the measures of dispersion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dispersion {
    /// Of a sample, not of the population.
    pub sample: bool,
    /// The root of it.
    pub deviation: bool,
}

/// Count, sum and sum of squares of numbers.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    /// The finite ones.
    count: i64,
    nans: i64,
    infinities: i64,
    negative_infinities: i64,
    sum: Sum,
    squares: Option<Sum>,
}

/// Bytes of saved moments, from the front.
struct Saved<'a>(&'a [u8]);

impl Saved<'_> {
    fn word<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((word, rest)) = self.0.split_first_chunk() else {
            return Err(QueryError::internal("bytes that are no moments"));
        };
        self.0 = rest;
        Ok(*word)
    }

    fn count(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.word()?))
    }

    fn sum(&mut self) -> Result<Sum> {
        let small = i128::from_le_bytes(self.word()?);
        let scale = u16::from_le_bytes(self.word()?);
        let sign = u8::from_le_bytes(self.word()?);
        let mut large = None;
        if sign > 0 {
            let scale = i32::from_le_bytes(self.word()?);
            let length = u32::from_le_bytes(self.word()?);
            let limbs = (0..length).map(|_| Ok(u32::from_le_bytes(self.word()?)));
            let limbs = limbs.collect::<Result<_>>()?;
            large = Some(Var::new(sign == 2, limbs, scale));
        }
        Ok(Sum {
            small,
            scale,
            large,
        })
    }
}

impl Sum {
    fn merge(&mut self, other: &Self) {
        self.add_small(other.small, other.scale);
        if let Some(large) = &other.large {
            self.add_large(large);
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.small.to_le_bytes());
        out.extend(self.scale.to_le_bytes());
        let Some(large) = &self.large else {
            out.push(0);
            return;
        };
        out.push(if large.negative { 2 } else { 1 });
        out.extend(large.scale.to_le_bytes());
        out.extend((large.limbs.len() as u32).to_le_bytes());
        large
            .limbs
            .iter()
            .for_each(|limb| out.extend(limb.to_le_bytes()));
    }
}

impl Moments {
    /// Of numbers of which only the sum is known.
    #[must_use]
    pub fn of_sum(unscaled: i128, scale: u16, count: i64) -> Self {
        Self {
            count,
            sum: Sum {
                small: unscaled,
                scale,
                large: None,
            },
            ..Self::default()
        }
    }

    /// Adds what others have taken; both have squares or none.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.nans += other.nans;
        self.infinities += other.infinities;
        self.negative_infinities += other.negative_infinities;
        self.sum.merge(&other.sum);
        if let (Some(squares), Some(more)) = (&mut self.squares, &other.squares) {
            squares.merge(more);
        }
    }

    /// All of it, for [`Self::of_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(72);
        for count in [
            self.count,
            self.nans,
            self.infinities,
            self.negative_infinities,
        ] {
            out.extend(count.to_le_bytes());
        }
        self.sum.write(&mut out);
        out.push(u8::from(self.squares.is_some()));
        if let Some(squares) = &self.squares {
            squares.write(&mut out);
        }
        out
    }

    /// What [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// XX000 for other bytes.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self> {
        let mut saved = Saved(bytes);
        Ok(Self {
            count: saved.count()?,
            nans: saved.count()?,
            infinities: saved.count()?,
            negative_infinities: saved.count()?,
            sum: saved.sum()?,
            squares: match saved.word()? {
                [0] => None,
                _ => Some(saved.sum()?),
            },
        })
    }

    /// Nothing yet. Dispersions need the squares.
    #[must_use]
    pub fn new(squares: bool) -> Self {
        Self {
            squares: squares.then(Sum::default),
            ..Self::default()
        }
    }

    /// Adds a number.
    pub fn add(&mut self, value: &Numeric) {
        match value {
            Numeric::NaN => self.nans += 1,
            Numeric::Infinity => self.infinities += 1,
            Numeric::NegativeInfinity => self.negative_infinities += 1,
            Numeric::Small { unscaled, scale } => {
                self.count += 1;
                let unscaled = unscaled.get();
                self.sum.add_small(unscaled, *scale);
                if let Some(squares) = &mut self.squares {
                    match unscaled.checked_mul(unscaled) {
                        Some(square) => squares.add_small(square, *scale * 2),
                        None => {
                            let var = Var::from_i128(unscaled, i32::from(*scale));
                            squares.add_large(&var.mul(&var));
                        }
                    }
                }
            }
            Numeric::Large(var) => {
                self.count += 1;
                self.sum.add_large(var);
                if let Some(squares) = &mut self.squares {
                    squares.add_large(&var.mul(var));
                }
            }
        }
    }

    /// Adds an integer.
    #[inline]
    pub fn add_integer(&mut self, value: i64) {
        let value = i128::from(value);
        self.count += 1;
        self.sum.add_small(value, 0);
        if let Some(squares) = &mut self.squares {
            squares.add_small(value * value, 0);
        }
    }

    /// What NaN and the infinities make of a sum.
    const fn special(&self) -> Option<Numeric> {
        let (infinite, negative) = (self.infinities > 0, self.negative_infinities > 0);
        match (self.nans > 0, infinite, negative) {
            (true, ..) | (_, true, true) => Some(Numeric::NaN),
            (_, true, false) => Some(Numeric::Infinity),
            (_, false, true) => Some(Numeric::NegativeInfinity),
            (false, false, false) => None,
        }
    }

    const fn all(&self) -> i64 {
        self.count + self.nans + self.infinities + self.negative_infinities
    }

    /// The sum, if there is anything.
    ///
    /// # Errors
    /// 22003 beyond the greatest number.
    pub fn total(&self) -> Result<Option<Numeric>> {
        if self.all() == 0 {
            return Ok(None);
        }
        match self.special() {
            Some(special) => Ok(Some(special)),
            None => Numeric::finish(self.sum.total()).map(Some),
        }
    }

    /// The average, if there is anything.
    ///
    /// # Errors
    /// 22003 beyond the greatest number.
    pub fn average(&self) -> Result<Option<Numeric>> {
        match self.total()? {
            Some(total) if self.special().is_none() => {
                total.div(&Numeric::from_i64(self.count)).map(Some)
            }
            other => Ok(other),
        }
    }

    /// Variance or deviation, if there is enough for it.
    ///
    /// # Errors
    /// 22003 beyond the greatest number.
    pub fn dispersion(&self, dispersion: Dispersion) -> Result<Option<Numeric>> {
        let all = self.all();
        if all == 0 || (dispersion.sample && all == 1) {
            return Ok(None);
        }
        let Some(squares) = &self.squares else {
            return Ok(None);
        };
        if self.special().is_some() {
            return Ok(Some(Numeric::NaN));
        }
        // n * sum of squares - square of the sum
        let whole = |n: i64| Var::from_i128(i128::from(n), 0);
        let (sum, count) = (self.sum.total(), whole(self.count));
        let difference = squares.total().mul(&count).sub(&sum.mul(&sum));
        if difference.sign() <= 0 {
            return Ok(Some(Numeric::ZERO));
        }
        let others = self.count - i64::from(dispersion.sample);
        let divisor = count.mul(&whole(others));
        let scale = difference.quotient_scale(&divisor);
        let mut result = difference.div(&divisor, scale, true)?;
        if dispersion.deviation {
            result = result.sqrt(scale)?;
        }
        Numeric::finish(result).map(Some)
    }

    /// The bytes beyond its own size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.sum.bytes() + self.squares.as_ref().map_or(0, Sum::bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Numeric {
        Numeric::parse(text).expect("a number")
    }

    #[test]
    fn a_sum_keeps_the_largest_scale() {
        let mut moments = Moments::new(false);
        let large = i128::MAX.to_string();
        for text in [&*large, "1e-30", &large, "5", "-0.25"] {
            moments.add(&number(text));
        }
        let total = moments.total().expect("a sum").expect("a sum");
        assert_eq!(
            total.to_string(),
            "340282366920938463463374607431768211458.750000000000000000000000000001"
        );
    }

    #[test]
    fn dispersions_are_rounded_once() {
        let mut moments = Moments::new(true);
        for value in [1, 2, 3, 4] {
            moments.add_integer(value);
        }
        let shown = |sample, deviation| {
            let wanted = Dispersion { sample, deviation };
            let found = moments.dispersion(wanted).expect("a number");
            found.expect("a number").to_string()
        };
        assert_eq!(shown(false, false), "1.2500000000000000");
        assert_eq!(shown(true, true), "1.2909944487358056");
    }

    #[test]
    fn parts_become_the_whole() {
        let texts = ["1.5", "-1e40", "0.003", "NaN", "1e-300", "Infinity", "12"];
        for used in 0..texts.len() {
            let (mut whole, mut parts) = (Moments::new(true), Moments::new(true));
            for text in &texts[..used] {
                whole.add(&number(text));
                let mut part = Moments::new(true);
                part.add(&number(text));
                let part = Moments::of_bytes(&part.to_bytes()).expect("moments");
                parts.merge(&part);
            }
            let shown = |moments: &Moments| {
                let dispersion = moments.dispersion(Dispersion {
                    sample: true,
                    deviation: true,
                });
                let found = [moments.total(), moments.average(), dispersion];
                found.map(|found| format!("{:?}", found.expect("a number").map(|n| n.to_string())))
            };
            assert_eq!(shown(&whole), shown(&parts));
        }
    }
}
