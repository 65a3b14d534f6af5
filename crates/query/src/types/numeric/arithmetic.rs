//! The operations of `numeric`, with what they give for infinities and for what is not a number.

use std::sync::Arc;

use super::var::Var;
use super::{Numeric, SCALE_MAX, WEIGHT_MAX, math, small};
use crate::error::{QueryError, Result};

impl Numeric {
    /// The sum.
    ///
    /// # Errors
    /// 22003 beyond the greatest number.
    pub fn add(&self, other: &Self) -> Result<Self> {
        if let (Some(a), Some(b)) = (self.to_parts(), other.to_parts())
            && let Some((a, b, scale)) = small::align(a, b)
            && let Some(n) = a.checked_add(b)
            && n != i128::MIN
        {
            return Ok(Self::small(n, scale));
        }
        match (self.var(), other.var()) {
            (Some(a), Some(b)) => Self::finish(a.add(&b)),
            _ => Ok(match (self, other) {
                (Self::NaN, _) | (_, Self::NaN) => Self::NaN,
                (Self::Infinity, Self::NegativeInfinity)
                | (Self::NegativeInfinity, Self::Infinity) => Self::NaN,
                (Self::Infinity, _) | (_, Self::Infinity) => Self::Infinity,
                _ => Self::NegativeInfinity,
            }),
        }
    }

    /// The difference.
    ///
    /// # Errors
    /// 22003 beyond the greatest number.
    pub fn sub(&self, other: &Self) -> Result<Self> {
        self.add(&other.negate())
    }

    /// The product.
    ///
    /// # Errors
    /// 22003 beyond the greatest number.
    pub fn mul(&self, other: &Self) -> Result<Self> {
        if let (Some((a, first)), Some((b, second))) = (self.to_parts(), other.to_parts())
            && i32::from(first) + i32::from(second) <= SCALE_MAX
            && let Some(n) = small::multiply(a, b)
        {
            return Ok(Self::small(n, first + second));
        }
        match (self.var(), other.var()) {
            (Some(a), Some(b)) => {
                let product = a.mul(&b);
                let scale = product.scale.min(SCALE_MAX);
                Self::finish(product.round(scale))
            }
            _ if self.is_nan() || other.is_nan() => Ok(Self::NaN),
            _ => Ok(match self.sign() * other.sign() {
                0 => Self::NaN,
                1 => Self::Infinity,
                _ => Self::NegativeInfinity,
            }),
        }
    }

    /// What a division gives where one of both is no finite number.
    fn divide_special(&self, other: &Self) -> Result<Self> {
        if self.is_nan() || other.is_nan() {
            return Ok(Self::NaN);
        }
        if !self.is_infinite() {
            return Ok(Self::ZERO);
        }
        if other.is_infinite() {
            return Ok(Self::NaN);
        }
        match self.sign() * other.sign() {
            0 => Err(QueryError::division_by_zero()),
            1 => Ok(Self::Infinity),
            _ => Ok(Self::NegativeInfinity),
        }
    }

    /// The quotient, with at least 16 digits.
    ///
    /// # Errors
    /// 22012, 22003.
    pub fn div(&self, other: &Self) -> Result<Self> {
        if let (Some(a), Some(b)) = (self.to_parts(), other.to_parts())
            && let Some((n, scale)) = small::divide(a, b)
        {
            return Ok(Self::small(n, scale));
        }
        match (self.var(), other.var()) {
            (Some(a), Some(b)) => {
                let scale = a.quotient_scale(&b);
                Self::finish(a.div(&b, scale, true)?)
            }
            _ => self.divide_special(other),
        }
    }

    /// The quotient, cut off to a whole number.
    ///
    /// # Errors
    /// 22012, 22003.
    pub fn div_trunc(&self, other: &Self) -> Result<Self> {
        match (self.var(), other.var()) {
            (Some(a), Some(b)) => Self::finish(a.div(&b, 0, false)?),
            _ => self.divide_special(other),
        }
    }

    /// What is left of a division to a whole number.
    ///
    /// # Errors
    /// 22012, 22003.
    pub fn rem(&self, other: &Self) -> Result<Self> {
        if let (Some(a), Some(b)) = (self.to_parts(), other.to_parts())
            && let Some((a, b, scale)) = small::align(a, b)
            && b != 0
        {
            return Ok(Self::small(a.wrapping_rem(b), scale));
        }
        match (self.var(), other.var()) {
            (Some(a), Some(b)) => Self::finish(a.rem(&b)?),
            _ if self.is_nan() || other.is_nan() => Ok(Self::NaN),
            _ if self.is_infinite() && other.sign() == 0 => Err(QueryError::division_by_zero()),
            _ if self.is_infinite() => Ok(Self::NaN),
            _ => Ok(self.clone()),
        }
    }

    /// With the other sign.
    #[must_use]
    pub fn negate(&self) -> Self {
        match self {
            Self::NaN => Self::NaN,
            Self::Infinity => Self::NegativeInfinity,
            Self::NegativeInfinity => Self::Infinity,
            Self::Small { unscaled, scale } => Self::small(-unscaled.get(), *scale),
            Self::Large(var) => Self::Large(Arc::new(Var::clone(var).negate())),
        }
    }

    /// Without its sign.
    #[must_use]
    pub fn abs(&self) -> Self {
        if self.sign() < 0 {
            self.negate()
        } else {
            self.clone()
        }
    }

    /// Rounded to a scale, which may be negative; a half goes away from zero.
    ///
    /// # Errors
    /// 22003 beyond the greatest number.
    pub fn round(&self, scale: i32) -> Result<Self> {
        if let Some((n, own)) = self.to_parts() {
            if scale == i32::from(own) {
                return Ok(self.clone());
            }
            if (0..i32::from(own)).contains(&scale) {
                let n = small::round(n, u32::from(own) - scale as u32);
                return Ok(Self::small(n, scale as u16));
            }
        }
        let scale = scale.clamp(-WEIGHT_MAX - 2, SCALE_MAX);
        self.map(|var| Ok(var.round(scale).shown()))
    }

    /// Cut off at a scale, which may be negative.
    ///
    /// # Errors
    /// 22003 beyond the greatest number.
    pub fn trunc(&self, scale: i32) -> Result<Self> {
        let scale = scale.clamp(-WEIGHT_MAX - 1, SCALE_MAX);
        self.map(|var| Ok(var.truncate(scale).shown()))
    }

    /// The greatest whole number that is not greater.
    ///
    /// # Errors
    /// 22003 beyond the greatest number.
    pub fn floor(&self) -> Result<Self> {
        self.map(|var| Ok(var.floor()))
    }

    /// The least whole number that is not less.
    ///
    /// # Errors
    /// 22003 beyond the greatest number.
    pub fn ceil(&self) -> Result<Self> {
        self.map(|var| Ok(var.ceil()))
    }

    /// The square root.
    ///
    /// # Errors
    /// 2201F of a negative number.
    pub fn sqrt(&self) -> Result<Self> {
        if matches!(self, Self::NegativeInfinity) {
            return Err(QueryError::new(
                "2201F",
                "cannot take square root of a negative number",
            ));
        }
        self.map(|var| math::sqrt(&var))
    }

    /// e^x
    ///
    /// # Errors
    /// 22003 beyond the greatest number.
    pub fn exp(&self) -> Result<Self> {
        if matches!(self, Self::NegativeInfinity) {
            return Ok(Self::ZERO);
        }
        self.map(|var| math::exp(&var))
    }

    /// The natural logarithm.
    ///
    /// # Errors
    /// 2201E of zero and negative numbers.
    pub fn ln(&self) -> Result<Self> {
        if matches!(self, Self::NegativeInfinity) {
            return Err(negative_logarithm());
        }
        self.map(|var| math::ln(&var))
    }

    /// The logarithm to this number as its base.
    ///
    /// # Errors
    /// 2201E of zero and negative numbers, 22012 to the base 1.
    pub fn log(&self, other: &Self) -> Result<Self> {
        match (self.var(), other.var()) {
            (Some(base), Some(x)) => Self::finish(math::log(&base, &x)?),
            _ if self.is_nan() || other.is_nan() => Ok(Self::NaN),
            _ if self.sign() < 0 || other.sign() < 0 => Err(negative_logarithm()),
            _ if self.sign() == 0 || other.sign() == 0 => {
                Err(QueryError::new("2201E", "cannot take logarithm of zero"))
            }
            _ => Ok(match (self.is_infinite(), other.is_infinite()) {
                (true, true) => Self::NaN,
                (true, false) => Self::ZERO,
                _ => Self::Infinity,
            }),
        }
    }

    /// This number to the power of another.
    ///
    /// # Errors
    /// 2201F, 22003.
    pub fn power(&self, exponent: &Self) -> Result<Self> {
        let (sign, exponent_sign) = (self.sign(), exponent.sign());
        let (base, power) = (self.var(), exponent.var());
        if self.is_nan() {
            let one = power.is_some_and(|power| power.is_zero());
            return Ok(if one { Self::ONE } else { Self::NaN });
        }
        let is_one = *self == Self::ONE;
        if exponent.is_nan() {
            return Ok(if is_one { Self::ONE } else { Self::NaN });
        }
        if sign == 0 && exponent_sign < 0 {
            return Err(QueryError::new(
                "2201F",
                "zero raised to a negative power is undefined",
            ));
        }
        if let (Some(base), Some(power)) = (base, power) {
            return Self::finish(math::power(&base, &power)?);
        }
        if sign < 0 && !exponent.is_integral() {
            return Err(math::complex());
        }
        if is_one || exponent_sign == 0 {
            return Ok(Self::ONE);
        }
        if sign == 0 {
            return Ok(Self::ZERO);
        }
        if exponent.is_infinite() {
            let size = self.abs();
            if size == Self::ONE {
                return Ok(Self::ONE);
            }
            return Ok(if (size > Self::ONE) == (exponent_sign > 0) {
                Self::Infinity
            } else {
                Self::ZERO
            });
        }
        if exponent_sign < 0 {
            return Ok(Self::ZERO);
        }
        let odd = exponent.var().is_some_and(|power| power.is_odd());
        Ok(if sign < 0 && odd {
            Self::NegativeInfinity
        } else {
            Self::Infinity
        })
    }
}

fn negative_logarithm() -> QueryError {
    QueryError::new("2201E", "cannot take logarithm of a negative number")
}
