//! Exact decimal numbers: SQL's `numeric`, in the form that nearly all have: up to 38 digits.
//!
//! A number is a mantissa and a scale; the scale is kept as written, so that
//! `1.50` prints as `1.50`, while comparison and hashing see the value only.
//! Results have the scale PostgreSQL gives them. What 38 digits do not hold is told with 22003
//! here and computed by another floor (`arithmetic`, `cast`). `long` has the form of such
//! numbers, of NaN and of the infinities in tables and keys.

pub mod long;
#[cfg(test)]
mod tests;
mod text;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Neg;

use crate::types::NUMERIC_DIGITS_MAX;
use crate::value_error::ValueError;
use crate::wide::Wide;

/// The powers of ten that 128 bits hold with a sign.
pub(crate) const POWERS_OF_TEN: [i128; 39] = {
    let mut powers = [1i128; 39];
    let mut exponent = 1;
    while exponent < 39 {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// Mantissas are below this in magnitude.
const MANTISSA_LIMIT: i128 = POWERS_OF_TEN[NUMERIC_DIGITS_MAX as usize];

/// The fewest significant digits of a quotient or root, as in PostgreSQL.
const SIGNIFICANT_DIGITS_MIN: i32 = 16;

/// PostgreSQL computes in base 10 000: its digits hold four of ours.
const DIGITS_PER_GROUP: i32 = 4;

/// A decimal number: `mantissa / 10^scale`, with at most 38 digits and a scale
/// of at most 38. Packed so that a value stays at 32 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(8))]
pub struct Numeric {
    mantissa: i128,
    scale: u8,
}

fn power_of_ten(exponent: u8) -> i128 {
    POWERS_OF_TEN[usize::from(exponent)]
}

/// The number of decimal digits of a magnitude; 0 has none.
fn digit_count(magnitude: u128) -> i32 {
    magnitude.checked_ilog10().map_or(0, |log| log as i32 + 1)
}

/// Divides by a power of ten, halves away from zero.
fn divide_rounded(mantissa: i128, exponent: u8) -> i128 {
    if exponent == 0 {
        return mantissa;
    }
    let tenfold = mantissa / power_of_ten(exponent - 1);
    (tenfold + tenfold.signum() * 5) / 10
}

#[allow(
    clippy::should_implement_trait,
    reason = "arithmetic can fail, so it has the operators' names and not their traits"
)]
impl Numeric {
    /// Zero with scale 0.
    pub const ZERO: Self = Self {
        mantissa: 0,
        scale: 0,
    };

    /// `mantissa / 10^scale`.
    ///
    /// # Errors
    /// 22003 when the mantissa has more than 38 digits or the scale exceeds 38.
    pub fn new(mantissa: i128, scale: u8) -> Result<Self, ValueError> {
        Self::checked(mantissa, scale).ok_or_else(ValueError::numeric_overflow)
    }

    /// As [`Numeric::new`], for callers with their own errors.
    #[inline]
    pub fn checked(mantissa: i128, scale: u8) -> Option<Self> {
        (mantissa.unsigned_abs() < MANTISSA_LIMIT.unsigned_abs() && scale <= NUMERIC_DIGITS_MAX)
            .then_some(Self { mantissa, scale })
    }

    /// The number without its decimal point.
    #[must_use]
    pub const fn mantissa(self) -> i128 {
        self.mantissa
    }

    /// The digits after the decimal point.
    #[must_use]
    pub const fn scale(self) -> u8 {
        self.scale
    }

    /// Whether the value is zero, of whatever scale.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// The value at exactly this scale, rounded half away from zero, or `None`
    /// when 38 digits do not hold it.
    #[must_use]
    pub fn rescale(self, scale: u8) -> Option<Self> {
        if scale <= self.scale {
            return Self::checked(divide_rounded(self.mantissa, self.scale - scale), scale);
        }
        if scale > NUMERIC_DIGITS_MAX {
            return None;
        }
        let mantissa = self
            .mantissa
            .checked_mul(power_of_ten(scale - self.scale))?;
        Self::checked(mantissa, scale)
    }

    /// SQL's `round(n, digits)`: half away from zero; negative digits round
    /// before the point.
    ///
    /// # Errors
    /// 22003 when rounding up leaves more than 38 digits.
    pub fn round(self, digits: i32) -> Result<Self, ValueError> {
        self.reduce(digits, divide_rounded)
    }

    /// SQL's `trunc(n, digits)`: towards zero.
    ///
    /// # Errors
    /// 22003 when the padded result has more than 38 digits.
    pub fn trunc(self, digits: i32) -> Result<Self, ValueError> {
        self.reduce(digits, |mantissa, exponent| {
            mantissa / power_of_ten(exponent)
        })
    }

    fn reduce(self, digits: i32, divide: fn(i128, u8) -> i128) -> Result<Self, ValueError> {
        let scale = digits.clamp(0, i32::from(NUMERIC_DIGITS_MAX)) as u8;
        if scale >= self.scale && digits >= 0 {
            return Ok(self.widen(scale));
        }
        let drop = i32::from(self.scale).saturating_sub(digits);
        if drop > i32::from(NUMERIC_DIGITS_MAX) {
            return Ok(Self::ZERO);
        }
        let kept = divide(self.mantissa, drop as u8);
        let restored = kept.checked_mul(power_of_ten(drop as u8 - (self.scale - scale)));
        restored
            .and_then(|mantissa| Self::checked(mantissa, scale))
            .ok_or_else(ValueError::numeric_overflow)
    }

    /// The same value at this scale or the nearest smaller one that fits.
    fn widen(self, scale: u8) -> Self {
        let room = NUMERIC_DIGITS_MAX as i32 - digit_count(self.mantissa.unsigned_abs());
        let more = i32::from(scale.saturating_sub(self.scale)).min(room) as u8;
        Self {
            mantissa: self.mantissa * power_of_ten(more),
            scale: self.scale + more,
        }
    }

    /// The largest integer not above the value.
    ///
    /// # Errors
    /// Never for values that are within 38 digits; 22003 otherwise.
    pub fn floor(self) -> Result<Self, ValueError> {
        Self::new(self.mantissa.div_euclid(power_of_ten(self.scale)), 0)
    }

    /// The magnitude.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self {
            mantissa: self.mantissa.abs(),
            scale: self.scale,
        }
    }

    /// The sum, at the larger scale.
    ///
    /// # Errors
    /// 22003 when it has more than 38 digits.
    pub fn add(self, other: Self) -> Result<Self, ValueError> {
        let scale = self.scale.max(other.scale);
        let sum = match (self.rescale(scale), other.rescale(scale)) {
            (Some(a), Some(b)) => {
                let sum = a.mantissa.checked_add(b.mantissa);
                sum.and_then(|sum| Self::checked(sum, scale))
            }
            _ => None,
        };
        sum.ok_or_else(ValueError::numeric_overflow)
    }

    /// The difference, at the larger scale.
    ///
    /// # Errors
    /// 22003 when it has more than 38 digits.
    pub fn sub(self, other: Self) -> Result<Self, ValueError> {
        self.add(-other)
    }

    /// The product, at the sum of the scales.
    ///
    /// # Errors
    /// 22003 when it has more than 38 digits.
    pub fn mul(self, other: Self) -> Result<Self, ValueError> {
        let (a, b) = (self.mantissa, other.mantissa);
        a.checked_mul(b)
            .and_then(|product| Self::checked(product, self.scale + other.scale))
            .ok_or_else(ValueError::numeric_overflow)
    }

    fn signed(negative: bool, magnitude: u128, scale: u8) -> Option<Self> {
        let mantissa = i128::try_from(magnitude).ok()?;
        Self::checked(if negative { -mantissa } else { mantissa }, scale)
    }

    /// The quotient, at the scale PostgreSQL would choose.
    ///
    /// # Errors
    /// 22012 for a zero divisor; 22003 when it has more than 38 digits.
    pub fn div(self, other: Self) -> Result<Self, ValueError> {
        if other.is_zero() {
            return Err(ValueError::division_by_zero());
        }
        let (dividend, divisor) = (self.mantissa.unsigned_abs(), other.mantissa.unsigned_abs());
        let negative = (self.mantissa < 0) != (other.mantissa < 0);
        let scale = self.quotient_scale(other);
        let shift = scale + i32::from(other.scale) - i32::from(self.scale);
        let quotient = match usize::try_from(shift).ok() {
            // The first power alone may not do.
            Some(shift @ 0..=76) => {
                let (first, second) = (shift.min(38), shift.saturating_sub(38));
                dividend
                    .checked_mul(POWERS_OF_TEN[second].unsigned_abs())
                    .and_then(|dividend| {
                        Wide::product(dividend, POWERS_OF_TEN[first].unsigned_abs())
                            .divide_rounded(divisor)
                    })
            }
            _ => None,
        };
        quotient
            .and_then(|quotient| Self::signed(negative, quotient, u8::try_from(scale).ok()?))
            .ok_or_else(ValueError::numeric_overflow)
    }

    /// PostgreSQL's weight: the position of the first base-10000 digit.
    fn weight(self) -> i32 {
        match digit_count(self.mantissa.unsigned_abs()) {
            0 => 0,
            digits => (digits - i32::from(self.scale) - 1).div_euclid(DIGITS_PER_GROUP),
        }
    }

    /// The first base-10000 digit; 0 for zero.
    fn first_group(self) -> u128 {
        let magnitude = self.mantissa.unsigned_abs();
        let digits = digit_count(magnitude);
        if digits == 0 {
            return 0;
        }
        let before_point = digits - i32::from(self.scale);
        let kept = before_point - self.weight() * DIGITS_PER_GROUP;
        match digits - kept {
            drop @ 0.. => magnitude / POWERS_OF_TEN[drop as usize].unsigned_abs(),
            pad => magnitude * POWERS_OF_TEN[-pad as usize].unsigned_abs(),
        }
    }

    /// PostgreSQL's `select_div_scale`.
    fn quotient_scale(self, other: Self) -> i32 {
        let mut weight = self.weight() - other.weight();
        if self.first_group() <= other.first_group() {
            weight -= 1;
        }
        (SIGNIFICANT_DIGITS_MIN - weight * DIGITS_PER_GROUP)
            .max(i32::from(self.scale))
            .max(i32::from(other.scale))
            .max(0)
    }

    /// The remainder of truncating division; its sign is the dividend's.
    ///
    /// # Errors
    /// 22012 for a zero divisor.
    pub fn rem(self, other: Self) -> Result<Self, ValueError> {
        if other.is_zero() {
            return Err(ValueError::division_by_zero());
        }
        let (dividend, divisor) = (self.mantissa.unsigned_abs(), other.mantissa.unsigned_abs());
        let scale = self.scale.max(other.scale);
        let dividend_factor = power_of_ten(scale - self.scale).unsigned_abs();
        let divisor_factor = power_of_ten(scale - other.scale).unsigned_abs();
        let magnitude = match divisor.checked_mul(divisor_factor) {
            // (a * f) mod d = ((a mod d) * f) mod d, whose quotient fits.
            Some(divisor) => Wide::product(dividend % divisor, dividend_factor)
                .divide(divisor)
                .map(|(_, remainder)| remainder),
            // The divisor was scaled up beyond any dividend, which was not.
            None => Some(dividend),
        };
        magnitude
            .and_then(|magnitude| Self::signed(self.mantissa < 0, magnitude, scale))
            .ok_or_else(ValueError::numeric_overflow)
    }

    /// The value without trailing zeros after the point, so that equal values
    /// have equal parts.
    #[must_use]
    pub fn normal_form(self) -> Self {
        let (mut mantissa, mut scale) = (self.mantissa, self.scale);
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        Self { mantissa, scale }
    }

    /// The nearest integer, half away from zero, or `None` beyond 64 bits.
    #[must_use]
    pub fn to_i64(self) -> Option<i64> {
        i64::try_from(divide_rounded(self.mantissa, self.scale)).ok()
    }

    /// The nearest double.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        // Both parts exact in a double makes one correctly rounded division.
        if self.mantissa.unsigned_abs() <= 1 << 53 && self.scale <= 22 {
            return self.mantissa as f64 / power_of_ten(self.scale) as f64;
        }
        let mut digits = Vec::with_capacity(48);
        self.write_text(&mut digits);
        std::str::from_utf8(&digits)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(f64::NAN)
    }

    /// The decimal PostgreSQL makes of a double: 15 significant digits.
    ///
    /// # Errors
    /// 22003 for NaN, the infinities and what has more than 38 digits.
    pub fn from_f64(value: f64) -> Result<Self, ValueError> {
        Self::from_float_text(value, &format!("{value:.14e}"))
    }

    /// The decimal PostgreSQL makes of a real: 6 significant digits.
    ///
    /// # Errors
    /// As [`Numeric::from_f64`].
    pub fn from_f32(value: f32) -> Result<Self, ValueError> {
        Self::from_float_text(f64::from(value), &format!("{value:.5e}"))
    }

    fn from_float_text(value: f64, text: &str) -> Result<Self, ValueError> {
        if !value.is_finite() {
            return Err(ValueError::numeric_overflow());
        }
        // Zeros that %g would not print are cut.
        let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        Self::parse_scaled(&format!("{digits}e{exponent}"), None)
    }
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Self {
        Self {
            mantissa: i128::from(value),
            scale: 0,
        }
    }
}

impl Neg for Numeric {
    type Output = Self;

    fn neg(self) -> Self {
        Self {
            mantissa: -self.mantissa,
            scale: self.scale,
        }
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.mantissa, other.mantissa);
        if self.scale == other.scale {
            return a.cmp(&b);
        }
        if self.scale > other.scale {
            return other.cmp(self).reverse();
        }
        // A product that overflows exceeds every mantissa.
        match a.checked_mul(power_of_ten(other.scale - self.scale)) {
            Some(a) => a.cmp(&b),
            None => a.signum().cmp(&0),
        }
    }
}

impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let normal = self.normal_form();
        (normal.mantissa(), normal.scale()).hash(state);
    }
}
