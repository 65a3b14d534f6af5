//! Decimal numbers of any length as the functions compute with them: whole
//! number and scale. Scales of results are PostgreSQL's, which counts digits
//! in fours.

use std::cmp::Ordering;

use super::limbs;
use crate::error::{QueryError, Result};

/// A finite number: `limbs` / 10^`scale`.
#[derive(Clone, Debug, Default)]
pub struct Var {
    pub(super) negative: bool,
    pub(super) limbs: Vec<u32>,
    /// Digits after the point. Below zero only within a computation.
    pub(super) scale: i32,
}

impl Var {
    pub(super) fn new(negative: bool, limbs: Vec<u32>, scale: i32) -> Self {
        Self {
            negative: negative && !limbs.is_empty(),
            limbs,
            scale,
        }
    }

    pub(super) fn from_i128(n: i128, scale: i32) -> Self {
        Self::new(n < 0, limbs::from_u128(n.unsigned_abs()), scale)
    }

    pub(super) fn zero(scale: i32) -> Self {
        Self::new(false, Vec::new(), scale)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    pub(super) fn sign(&self) -> i32 {
        match (self.is_zero(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    pub(super) fn abs(mut self) -> Self {
        self.negative = false;
        self
    }

    pub(super) fn negate(mut self) -> Self {
        self.negative = !self.negative && !self.is_zero();
        self
    }

    /// The power of ten of its first digit.
    pub(super) fn decimal_weight(&self) -> i32 {
        if self.is_zero() {
            return 0;
        }
        i32::try_from(limbs::digits(&self.limbs)).unwrap_or(i32::MAX) - 1 - self.scale
    }

    /// The power of ten thousand of its first digit in base ten thousand.
    pub(super) fn weight(&self) -> i32 {
        if self.is_zero() {
            return 0;
        }
        self.decimal_weight().div_euclid(4)
    }

    /// Its first `count` digits in base ten thousand, as one number, and how many
    /// there are without zeros at the end.
    pub(super) fn head(&self, count: i32) -> (u128, i32) {
        if self.is_zero() {
            return (0, 0);
        }
        // The power of ten of the last digit that is taken.
        let last = (self.weight() - count + 1) * 4;
        let drop = last + self.scale;
        let head = if drop >= 0 {
            limbs::shift_right(&self.limbs, drop as usize)
        } else {
            limbs::shift_left(&self.limbs, drop.unsigned_abs() as usize)
        };
        let zeros = i32::try_from(limbs::trailing_zeros(&self.limbs)).unwrap_or(i32::MAX);
        let lowest = (zeros - self.scale).div_euclid(4);
        (
            limbs::to_u128(&head).unwrap_or(0),
            self.weight() - lowest + 1,
        )
    }

    /// Whether nothing but zeros stands after the point.
    pub(super) fn is_integral(&self) -> bool {
        self.is_zero()
            || i32::try_from(limbs::trailing_zeros(&self.limbs)).unwrap_or(i32::MAX) >= self.scale
    }

    /// Whether it is whole and odd.
    pub(super) fn is_odd(&self) -> bool {
        self.is_integral()
            && self.scale >= 0
            && limbs::digit(&self.limbs, self.scale as usize) % 2 == 1
    }

    /// The least scale that shows all of it.
    pub(super) fn least_scale(&self) -> i32 {
        let zeros = i32::try_from(limbs::trailing_zeros(&self.limbs)).unwrap_or(i32::MAX);
        if self.is_zero() {
            return 0;
        }
        (self.scale - zeros).max(0)
    }

    fn rescale(self, scale: i32, rounded: bool) -> Self {
        let limbs = match self.scale.cmp(&scale) {
            Ordering::Equal => return self,
            Ordering::Less => limbs::shift_left(&self.limbs, (scale - self.scale) as usize),
            Ordering::Greater => {
                let places = (self.scale - scale) as usize;
                if rounded {
                    limbs::round_right(&self.limbs, places)
                } else {
                    limbs::shift_right(&self.limbs, places)
                }
            }
        };
        Self::new(self.negative, limbs, scale)
    }

    /// With this many digits after the point; a half goes away from zero.
    pub(super) fn round(self, scale: i32) -> Self {
        self.rescale(scale, true)
    }

    /// With this many digits after the point; what is more is cut off.
    pub(super) fn truncate(self, scale: i32) -> Self {
        self.rescale(scale, false)
    }

    /// With a scale of zero at least.
    pub(super) fn shown(self) -> Self {
        if self.scale < 0 { self.round(0) } else { self }
    }

    pub(super) fn floor(self) -> Self {
        if self.negative && !self.is_integral() {
            self.truncate(0).sub(&Self::from_i128(1, 0))
        } else {
            self.truncate(0)
        }
    }

    pub(super) fn ceil(self) -> Self {
        self.negate().floor().negate()
    }

    /// The limbs at a scale that is not less than its own.
    fn aligned(&self, scale: i32) -> std::borrow::Cow<'_, [u32]> {
        if self.scale == scale {
            std::borrow::Cow::Borrowed(&self.limbs)
        } else {
            let places = (scale - self.scale).max(0) as usize;
            std::borrow::Cow::Owned(limbs::shift_left(&self.limbs, places))
        }
    }

    pub(super) fn compare_abs(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        self.decimal_weight()
            .cmp(&other.decimal_weight())
            .then_with(|| {
                let scale = self.scale.max(other.scale);
                limbs::compare(&self.aligned(scale), &other.aligned(scale))
            })
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        match self.sign().cmp(&other.sign()) {
            Ordering::Equal if self.negative => other.compare_abs(self),
            Ordering::Equal => self.compare_abs(other),
            order => order,
        }
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        self.add_signed(other, other.negative)
    }

    pub(super) fn sub(&self, other: &Self) -> Self {
        self.add_signed(other, !other.negative)
    }

    fn add_signed(&self, other: &Self, negative: bool) -> Self {
        let scale = self.scale.max(other.scale);
        let (a, b) = (self.aligned(scale), other.aligned(scale));
        if self.negative == negative {
            return Self::new(negative, limbs::add(&a, &b), scale);
        }
        match limbs::compare(&a, &b) {
            Ordering::Less => Self::new(negative, limbs::subtract(&b, &a), scale),
            _ => Self::new(self.negative, limbs::subtract(&a, &b), scale),
        }
    }

    /// The product, exactly.
    pub(super) fn mul(&self, other: &Self) -> Self {
        Self::new(
            self.negative != other.negative,
            limbs::multiply(&self.limbs, &other.limbs),
            self.scale + other.scale,
        )
    }

    /// The product at a scale.
    pub(super) fn mul_to(&self, other: &Self, scale: i32) -> Self {
        self.mul(other).round(scale)
    }

    /// The quotient at a scale, rounded or cut off.
    pub(super) fn div(&self, other: &Self, scale: i32, rounded: bool) -> Result<Self> {
        if other.is_zero() {
            return Err(QueryError::division_by_zero());
        }
        let guard = i32::from(rounded);
        let shift = scale + guard + other.scale - self.scale;
        let (dividend, divisor);
        let (a, b): (&[u32], &[u32]) = if shift >= 0 {
            dividend = limbs::shift_left(&self.limbs, shift as usize);
            (&dividend, &other.limbs)
        } else {
            divisor = limbs::shift_left(&other.limbs, shift.unsigned_abs() as usize);
            (&self.limbs, &divisor)
        };
        let quotient = limbs::divide(a, b).0;
        let negative = self.negative != other.negative;
        Ok(Self::new(negative, quotient, scale + guard).rescale(scale, rounded))
    }

    /// The quotient by a small number, rounded to a scale.
    pub(super) fn div_small(self, divisor: u32, scale: i32) -> Self {
        let mut quotient = self.truncate(scale + 1);
        limbs::divide_small(&mut quotient.limbs, divisor.max(1));
        quotient.round(scale)
    }

    /// What is left of a division to a whole number; the sign is the dividend's.
    pub(super) fn rem(&self, other: &Self) -> Result<Self> {
        if other.is_zero() {
            return Err(QueryError::division_by_zero());
        }
        let scale = self.scale.max(other.scale);
        let rest = limbs::divide(&self.aligned(scale), &other.aligned(scale)).1;
        Ok(Self::new(self.negative, rest, scale))
    }

    /// The square root at a scale, which may be below zero.
    pub(super) fn sqrt(&self, scale: i32) -> Result<Self> {
        if self.is_zero() {
            return Ok(Self::zero(scale));
        }
        if self.negative {
            return Err(QueryError::new(
                "2201F",
                "cannot take square root of a negative number",
            ));
        }
        // One digit more, and one even shift.
        let wanted = scale + 1;
        let shift = 2 * wanted - self.scale;
        let radicand = if shift >= 0 {
            limbs::shift_left(&self.limbs, shift as usize)
        } else {
            limbs::shift_right(&self.limbs, shift.unsigned_abs() as usize)
        };
        Ok(Self::new(false, limbs::square_root(&radicand), wanted).round(scale))
    }

    /// The scale of a quotient.
    pub(super) fn quotient_scale(&self, other: &Self) -> i32 {
        let (first, second) = (self.head(1).0, other.head(1).0);
        let mut weight = self.weight() - other.weight();
        if first <= second {
            weight -= 1;
        }
        quotient_scale(weight, self.scale, other.scale)
    }

    /// As a double; beyond its range an infinity.
    pub(super) fn to_f64(&self) -> f64 {
        let mut text = String::new();
        // The first digits decide; what follows only matters as whether there is anything.
        let digits = limbs::to_digits(&self.limbs);
        text.extend(self.negative.then_some('-'));
        let taken = digits.len().min(800);
        text.extend(digits[..taken].iter().map(|digit| char::from(*digit)));
        if digits[taken..].iter().any(|digit| *digit != b'0') {
            text.push('1');
        } else {
            text.push('0');
        }
        let dropped = i64::try_from(digits.len() - taken).unwrap_or(0) - 1;
        text.push_str(&format!("e{}", dropped - i64::from(self.scale)));
        text.parse().unwrap_or(f64::NAN)
    }
}

/// The scale of a quotient whose first digit in base ten thousand has this weight.
pub(super) fn quotient_scale(weight: i32, a: i32, b: i32) -> i32 {
    (16 - weight * 4).max(a).max(b).clamp(0, 1000)
}
