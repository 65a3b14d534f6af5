//! `numeric`: decimal numbers of any length. What fits a machine's word of 128
//! bits is computed there, the rest limb by limb (`limbs.rs`, `var.rs`);
//! `arithmetic.rs` has the operations, and `math.rs` the functions whose results are rounded.

mod arithmetic;
mod limbs;
mod math;
mod moments;
mod small;
mod text;
mod var;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub use self::moments::{Dispersion, Moments};
use self::small::POWERS;
pub use self::small::Unscaled;
pub use self::text::{Parsed, parse_prefix};
pub use self::var::Var;
use super::{Type, ids};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

/// The most digits after the point.
pub const SCALE_MAX: i32 = 16_383;
/// The weight of the greatest digit.
const WEIGHT_MAX: i32 = 131_071;
/// The modifier is above this.
const MODIFIER_BASE: i32 = 4;

/// A decimal number.
#[derive(Clone, Debug)]
pub enum Numeric {
    /// Not a number
    NaN,
    /// Beyond all
    Infinity,
    /// Before all
    NegativeInfinity,
    /// `unscaled` / 10^`scale`
    Small {
        /// All digits, as a whole number.
        unscaled: Unscaled,
        /// How many digits stand after the point when it is shown.
        scale: u16,
    },
    /// A number whose digits are too many for the form above.
    Large(Arc<Var>),
}

/// 22003 of a number with too many digits.
#[cold]
#[must_use]
pub fn overflow() -> QueryError {
    QueryError::new("22003", "value overflows numeric format")
}

/// A whole number, if `var` is one and fits.
fn to_i128(var: &Var) -> Option<i128> {
    if var.decimal_weight() > 40 {
        return None;
    }
    let whole = var.clone().round(0);
    let n = i128::try_from(limbs::to_u128(&whole.limbs)?).ok()?;
    Some(if whole.negative { -n } else { n })
}

impl Numeric {
    /// Zero, without digits after the point.
    pub const ZERO: Self = Self::small(0, 0);
    /// One.
    pub const ONE: Self = Self::small(1, 0);

    const fn small(unscaled: i128, scale: u16) -> Self {
        Self::Small {
            unscaled: Unscaled::new(unscaled),
            scale,
        }
    }

    /// The number `unscaled` / 10^`scale`; a scale beyond the greatest is cut to it.
    #[must_use]
    pub fn from_parts(unscaled: i128, scale: u16) -> Self {
        if unscaled == i128::MIN || i32::from(scale) > SCALE_MAX {
            let var =
                Var::from_i128(unscaled, i32::from(scale)).round(i32::from(scale).min(SCALE_MAX));
            return Self::finish(var).unwrap_or(Self::NaN);
        }
        Self::small(unscaled, scale)
    }

    /// The number as `(unscaled, scale)`, if it is finite and fits.
    #[must_use]
    #[inline]
    pub fn to_parts(&self) -> Option<(i128, u16)> {
        match self {
            Self::Small { unscaled, scale } => Some((unscaled.get(), *scale)),
            _ => None,
        }
    }

    /// Of a whole number.
    #[must_use]
    #[inline]
    pub fn from_i64(n: i64) -> Self {
        Self::small(i128::from(n), 0)
    }

    /// Of a whole number.
    #[must_use]
    pub fn from_i128(n: i128) -> Self {
        Self::from_parts(n, 0)
    }

    /// The result of a computation, if it has not too many digits.
    fn finish(var: Var) -> Result<Self> {
        let var = if var.scale < 0 {
            if var.decimal_weight() > WEIGHT_MAX {
                return Err(overflow());
            }
            var.shown()
        } else {
            var
        };
        if var.scale > SCALE_MAX || var.decimal_weight() > WEIGHT_MAX {
            return Err(overflow());
        }
        if let Some(n) = limbs::to_u128(&var.limbs).and_then(|n| i128::try_from(n).ok()) {
            let n = if var.negative { -n } else { n };
            return Ok(Self::small(n, var.scale as u16));
        }
        Ok(Self::Large(Arc::new(var)))
    }

    /// The finite number in its long form.
    fn var(&self) -> Option<Cow<'_, Var>> {
        match self {
            Self::Small { unscaled, scale } => Some(Cow::Owned(Var::from_i128(
                unscaled.get(),
                i32::from(*scale),
            ))),
            Self::Large(var) => Some(Cow::Borrowed(var)),
            _ => None,
        }
    }

    /// A computation over a finite number.
    fn map(&self, f: impl FnOnce(Var) -> Result<Var>) -> Result<Self> {
        match self.var() {
            Some(var) => Self::finish(f(var.into_owned())?),
            None => Ok(self.clone()),
        }
    }

    /// Whether it is not a number.
    #[must_use]
    #[inline]
    pub const fn is_nan(&self) -> bool {
        matches!(self, Self::NaN)
    }

    /// Whether it is one of the infinities.
    #[must_use]
    #[inline]
    pub const fn is_infinite(&self) -> bool {
        matches!(self, Self::Infinity | Self::NegativeInfinity)
    }

    /// Whether it is a number with digits.
    #[must_use]
    #[inline]
    pub const fn is_finite(&self) -> bool {
        matches!(self, Self::Small { .. } | Self::Large(_))
    }

    /// Whether it is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.is_finite() && self.sign() == 0
    }

    /// -1, 0 or 1; 0 for what is not a number.
    #[must_use]
    pub fn sign(&self) -> i32 {
        match self {
            Self::NaN => 0,
            Self::Infinity => 1,
            Self::NegativeInfinity => -1,
            Self::Small { unscaled, .. } => unscaled.get().signum() as i32,
            Self::Large(var) => var.sign(),
        }
    }

    /// Digits after the point; 0 where there are none.
    #[must_use]
    pub fn scale(&self) -> u16 {
        match self {
            Self::Small { scale, .. } => *scale,
            Self::Large(var) => var.scale as u16,
            _ => 0,
        }
    }

    /// The least scale that shows all of it.
    #[must_use]
    pub fn min_scale(&self) -> u16 {
        match self {
            Self::Small { unscaled, scale } => {
                let (mut n, mut scale) = (unscaled.get(), *scale);
                if n == 0 {
                    return 0;
                }
                while scale > 0 && n % 10 == 0 {
                    n /= 10;
                    scale -= 1;
                }
                scale
            }
            Self::Large(var) => var.least_scale() as u16,
            _ => 0,
        }
    }

    /// Without zeros at the end of what stands after the point.
    #[must_use]
    pub fn trim_scale(&self) -> Self {
        let least = self.min_scale();
        if least == self.scale() {
            return self.clone();
        }
        self.map(|var| Ok(var.truncate(i32::from(least))))
            .unwrap_or(Self::NaN)
    }

    /// The one form of all that are equal to it, for hashing: equal numbers have equal digits
    /// and scale here.
    #[must_use]
    pub fn canonical(&self) -> Self {
        self.trim_scale()
    }

    /// Whether nothing but zeros stands after the point; so it is for the infinities.
    #[must_use]
    pub fn is_integral(&self) -> bool {
        match self {
            Self::NaN => false,
            Self::Infinity | Self::NegativeInfinity => true,
            _ => self.min_scale() == 0,
        }
    }

    /// Rounded to a whole number, if it is finite and fits.
    #[must_use]
    pub fn to_i128(&self) -> Option<i128> {
        match self {
            Self::Small { unscaled, scale } => {
                Some(small::round(unscaled.get(), u32::from(*scale)))
            }
            Self::Large(var) => to_i128(var),
            _ => None,
        }
    }

    /// Rounded to a whole number, if it is finite and fits.
    #[must_use]
    pub fn to_i64(&self) -> Option<i64> {
        self.to_i128().and_then(|n| i64::try_from(n).ok())
    }

    /// The nearest double; an infinity beyond their range.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        const EXACT: i128 = 1 << 53;
        match self {
            Self::NaN => f64::NAN,
            Self::Infinity => f64::INFINITY,
            Self::NegativeInfinity => f64::NEG_INFINITY,
            Self::Small { unscaled, scale }
                if (-EXACT..=EXACT).contains(&unscaled.get()) && *scale <= 22 =>
            {
                // Both are exact, so one division rounds once.
                unscaled.get() as f64 / POWERS[usize::from(*scale)] as f64
            }
            _ => self.var().map_or(f64::NAN, |var| var.to_f64()),
        }
    }

    /// The nearest single; an infinity beyond their range.
    #[must_use]
    pub fn to_f32(&self) -> f32 {
        match self {
            Self::NaN => f32::NAN,
            Self::Infinity => f32::INFINITY,
            Self::NegativeInfinity => f32::NEG_INFINITY,
            _ => self.to_string().parse().unwrap_or(f32::NAN),
        }
    }

    /// Of a double, with 15 digits as PostgreSQL casts it.
    #[must_use]
    pub fn from_f64(n: f64) -> Self {
        Self::from_float(n, 14)
    }

    /// Of a single, with 6 digits as PostgreSQL casts it.
    #[must_use]
    pub fn from_f32(n: f32) -> Self {
        Self::from_float(f64::from(n), 5)
    }

    fn from_float(n: f64, digits: usize) -> Self {
        if n.is_nan() {
            return Self::NaN;
        }
        if n.is_infinite() {
            return if n > 0.0 {
                Self::Infinity
            } else {
                Self::NegativeInfinity
            };
        }
        let text = format!("{n:.digits$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        Self::parse(&format!("{mantissa}e{exponent}")).unwrap_or(Self::NaN)
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// 22P02, 22003.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_with(text, -1)
    }

    /// Reads the text form and fits it to a modifier.
    ///
    /// # Errors
    /// 22P02, 22003.
    pub fn parse_with(text: &str, modifier: i32) -> Result<Self> {
        let bytes = text.as_bytes();
        let start = bytes.iter().take_while(|byte| is_space(**byte)).count();
        let invalid = || QueryError::invalid_text("numeric", text);
        let (parsed, end) = parse_prefix(bytes, start).map_err(|error| match error {
            text::Failure::Invalid => invalid(),
            text::Failure::Overflow => overflow(),
        })?;
        if !bytes[end..].iter().all(|byte| is_space(*byte)) {
            return Err(invalid());
        }
        match parsed {
            Parsed::Special(value) => value.fit(modifier),
            Parsed::Finite(var) => Self::finish(fit(var, modifier)?),
        }
    }

    /// Fits the value to a modifier: rounds, and refuses what has too many digits.
    ///
    /// # Errors
    /// 22003.
    pub fn fit(&self, modifier: i32) -> Result<Self> {
        if modifier < MODIFIER_BASE || self.is_nan() {
            return Ok(self.clone());
        }
        let (precision, scale) = modifier_parts(modifier);
        if self.is_infinite() {
            return Err(
                QueryError::new("22003", "numeric field overflow").with_detail(format!(
                    "A field with precision {precision}, scale {scale} cannot hold an infinite value."
                )),
            );
        }
        if let (Some((n, own)), 0..=38) = (self.to_parts(), precision)
            && scale >= i32::from(own)
            && scale <= 38
            && let Some(n) = n.checked_mul(POWERS[(scale - i32::from(own)) as usize])
            && n.unsigned_abs() < POWERS[precision as usize].unsigned_abs()
        {
            return Ok(Self::small(n, scale as u16));
        }
        self.map(|var| fit(var, modifier))
    }

    /// In scientific notation with this many digits after the point: `1.23e+04`.
    ///
    /// # Errors
    /// None that input could reach.
    pub fn to_scientific(&self, scale: i32) -> Result<String> {
        let Some(var) = self.var() else {
            return Ok(self.to_string());
        };
        let scale = scale.max(0);
        let exponent = var.decimal_weight();
        let mut shifted = var.into_owned();
        // A number divided by a power of ten only has another scale.
        shifted.scale += exponent;
        let shown = text::show(&shifted.round(scale));
        let sign = if exponent < 0 { '-' } else { '+' };
        Ok(format!("{shown}e{sign}{:02}", exponent.unsigned_abs()))
    }
}

/// What C's `isspace` takes.
pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NaN => f.write_str("NaN"),
            Self::Infinity => f.write_str("Infinity"),
            Self::NegativeInfinity => f.write_str("-Infinity"),
            Self::Small { unscaled, scale } => {
                small::with_text(unscaled.get(), *scale, |text| f.write_str(text))
            }
            Self::Large(var) => f.write_str(&text::show(var)),
        }
    }
}

impl Ord for Numeric {
    /// PostgreSQL's order: what is not a number equals itself and is greater than all.
    fn cmp(&self, other: &Self) -> Ordering {
        const fn rank(n: &Numeric) -> u8 {
            match n {
                Numeric::NegativeInfinity => 0,
                Numeric::Small { .. } | Numeric::Large(_) => 1,
                Numeric::Infinity => 2,
                Numeric::NaN => 3,
            }
        }
        if let (Some(a), Some(b)) = (self.to_parts(), other.to_parts())
            && let Some(order) = small::compare(a, b)
        {
            return order;
        }
        match (self.var(), other.var()) {
            (Some(a), Some(b)) => a.compare(&b),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self.canonical() {
            Self::Small { unscaled, scale } => {
                state.write_i128(unscaled.get());
                state.write_u16(scale);
            }
            Self::Large(var) => {
                var.limbs.hash(state);
                state.write_i32(var.scale);
            }
            _ => {}
        }
    }
}

/// Precision and scale of a modifier.
#[must_use]
pub const fn modifier_parts(modifier: i32) -> (i32, i32) {
    let modifier = modifier.wrapping_sub(MODIFIER_BASE);
    (
        (modifier >> 16) & 0xffff,
        ((modifier & 0x7ff) ^ 1024) - 1024,
    )
}

fn fit(var: Var, modifier: i32) -> Result<Var> {
    if modifier < MODIFIER_BASE {
        return Ok(var);
    }
    let (precision, scale) = modifier_parts(modifier);
    let most = precision - scale;
    // What is far too long is refused before it is made longer.
    let weight = var.decimal_weight();
    let rounded = if weight > WEIGHT_MAX {
        var
    } else {
        var.round(scale).shown()
    };
    if !rounded.is_zero() && rounded.decimal_weight() + 1 > most {
        let (power, shown) = if most == 0 { ("", 1) } else { ("10^", most) };
        return Err(QueryError::new("22003", "numeric field overflow").with_detail(format!(
            "A field with precision {precision}, scale {scale} must round to an absolute value less than {power}{shown}."
        )));
    }
    Ok(rounded)
}

fn input(_: &Call<'_>, text: &str, modifier: i32) -> Result<Datum> {
    Numeric::parse_with(text, modifier).map(Datum::Numeric)
}

fn output(_: &Call<'_>, value: &Datum, out: &mut String) -> Result<()> {
    match value.as_numeric() {
        Numeric::Small { unscaled, scale } => {
            small::with_text(unscaled.get(), *scale, |text| out.push_str(text));
        }
        other => out.push_str(&other.to_string()),
    }
    Ok(())
}

fn receive(_: &Call<'_>, bytes: &[u8], modifier: i32) -> Result<Datum> {
    text::receive(bytes, modifier).map(Datum::Numeric)
}

fn send(_: &Call<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    text::send(value.as_numeric(), out);
    Ok(())
}

pub(super) fn compare(a: &Datum, b: &Datum) -> Ordering {
    a.as_numeric().cmp(b.as_numeric())
}

fn modifier_in(given: &[i32]) -> Result<i32> {
    let (precision, scale) = match given {
        [precision] => (*precision, 0),
        [precision, scale] => (*precision, *scale),
        _ => {
            return Err(QueryError::invalid_parameter(
                "invalid NUMERIC type modifier",
            ));
        }
    };
    if !(1..=1000).contains(&precision) {
        return Err(QueryError::invalid_parameter(format!(
            "NUMERIC precision {precision} must be between 1 and 1000"
        )));
    }
    if !(-1000..=1000).contains(&scale) {
        return Err(QueryError::invalid_parameter(format!(
            "NUMERIC scale {scale} must be between -1000 and 1000"
        )));
    }
    Ok(((precision << 16) | (scale & 0x7ff)) + MODIFIER_BASE)
}

fn modifier_out(modifier: i32) -> String {
    if modifier < MODIFIER_BASE {
        return String::new();
    }
    let (precision, scale) = modifier_parts(modifier);
    format!("({precision},{scale})")
}

fn fit_value(_: &Call<'_>, value: &Datum, modifier: i32, _: bool) -> Result<Datum> {
    value.as_numeric().fit(modifier).map(Datum::Numeric)
}

/// The types of this file.
pub const TYPES: &[Type] = &[Type {
    category: b'N',
    array: ids::NUMERIC_ARRAY,
    input,
    output,
    receive,
    send,
    compare: Some(compare),
    modifier_in: Some(modifier_in),
    modifier_out: Some(modifier_out),
    fit: Some(fit_value),
    ..Type::new(ids::NUMERIC, "numeric", "numeric")
}];

#[cfg(test)]
mod tests {
    use super::*;

    fn n(text: &str) -> Numeric {
        Numeric::parse(text).unwrap()
    }

    #[test]
    fn a_number_stays_small() {
        assert!(size_of::<Numeric>() <= 24);
        assert!(size_of::<Datum>() <= 32);
    }

    #[test]
    fn numbers_keep_their_scale() {
        for (text, shown) in [
            ("1.50", "1.50"),
            ("-0.00", "0.00"),
            ("1e5", "100000"),
            ("1.5e-3", "0.0015"),
            (
                " -12345678901234567890123456789012345678901234567890.5 ",
                "-12345678901234567890123456789012345678901234567890.5",
            ),
        ] {
            assert_eq!(n(text).to_string(), shown);
        }
        assert_eq!(
            n("1").div(&n("3")).unwrap().to_string(),
            "0.33333333333333333333"
        );
        assert_eq!(n("1.10").mul(&n("2.5")).unwrap().to_string(), "2.750");
        assert_eq!(n("1.0"), n("1"));
        assert_eq!(n("2").sqrt().unwrap().to_string(), "1.414213562373095");
        assert_eq!(n("15.5").round(-1).unwrap().to_string(), "20");
    }
}
