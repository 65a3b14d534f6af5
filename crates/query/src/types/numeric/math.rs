//! Exponential function, logarithms and powers, to the digits that PostgreSQL
//! gives them.

use std::cmp::Ordering;

use super::var::Var;
use crate::error::{QueryError, Result};

#[allow(clippy::approx_constant, reason = "these are PostgreSQL's digits")]
const LOG10_E: f64 = 0.434_294_481_903_252;
#[allow(clippy::approx_constant, reason = "these are PostgreSQL's digits")]
const LOG10_2: f64 = 0.301_029_995_663_981;
/// Digits of any result at least.
const SIGNIFICANT: i32 = 16;
const SCALE_MAX: i32 = 1000;

fn overflow() -> QueryError {
    super::overflow()
}

fn one() -> Var {
    Var::from_i128(1, 0)
}

/// The scale for a result whose first digit has this weight.
fn scale_for(weight: i32, least: i32) -> i32 {
    (SIGNIFICANT - weight).max(least).clamp(0, SCALE_MAX)
}

/// The square root with its own scale.
pub(super) fn sqrt(x: &Var) -> Result<Var> {
    let weight = (x.weight() + 1) * 4 / 2 - 1;
    x.sqrt(scale_for(weight, x.scale))
}

/// e^x with its own scale.
pub(super) fn exp(x: &Var) -> Result<Var> {
    let weight = (x.to_f64() * LOG10_E).clamp(-2000.0, 2000.0);
    exp_to(x, scale_for(weight as i32, x.scale))
}

fn exp_to(x: &Var, scale: i32) -> Result<Var> {
    let mut estimate = x.to_f64();
    if estimate.abs() >= 6000.0 {
        if estimate > 0.0 {
            return Err(overflow());
        }
        return Ok(Var::zero(scale));
    }
    let weight = (estimate * LOG10_E) as i32;
    // Halved until the series converges fast.
    let mut halvings = 0;
    while estimate.abs() > 0.01 {
        halvings += 1;
        estimate /= 2.0;
    }
    let mut x = x.clone();
    if halvings > 0 {
        let at = x.scale + halvings;
        x = x.div_small(1 << halvings, at);
    }
    let digits = (1 + weight + scale + (f64::from(halvings) * LOG10_2) as i32).max(0) + 8;
    let at = digits - 1;
    let mut sum = one().add(&x);
    let mut term = x.mul_to(&x, at).div_small(2, at);
    let mut divisor = 2;
    while !term.is_zero() {
        sum = sum.add(&term);
        divisor += 1;
        term = term.mul_to(&x, at).div_small(divisor, at);
    }
    for _ in 0..halvings {
        let at = (digits - sum.weight() * 8).max(0);
        sum = sum.mul_to(&sum, at);
    }
    Ok(sum.round(scale))
}

/// The weight of the first digit of the natural logarithm, about.
fn ln_weight(x: &Var) -> i32 {
    if x.sign() <= 0 {
        return 0;
    }
    if x.compare(&Var::from_i128(9, 1)) != Ordering::Less
        && x.compare(&Var::from_i128(11, 1)) != Ordering::Greater
    {
        return x.sub(&one()).decimal_weight();
    }
    let (_, count) = x.head(1);
    let taken = count.min(2);
    let (head, _) = x.head(taken);
    let weight = (x.weight() - taken + 1) * 4;
    let estimate = (head as f64).ln() + f64::from(weight) * std::f64::consts::LN_10;
    estimate.abs().log10() as i32
}

/// The natural logarithm with its own scale.
pub(super) fn ln(x: &Var) -> Result<Var> {
    ln_to(x, scale_for(ln_weight(x), x.scale))
}

fn ln_to(x: &Var, scale: i32) -> Result<Var> {
    match x.sign() {
        0 => return Err(QueryError::new("2201E", "cannot take logarithm of zero")),
        -1 => {
            return Err(QueryError::new(
                "2201E",
                "cannot take logarithm of a negative number",
            ));
        }
        _ => {}
    }
    let mut x = x.clone();
    let mut factor = Var::from_i128(2, 0);
    let two = Var::from_i128(2, 0);
    let mut roots = 0;
    let (low, high) = (Var::from_i128(9, 1), Var::from_i128(11, 1));
    while x.compare(&low) != Ordering::Greater || x.compare(&high) != Ordering::Less {
        x = x.sqrt(scale - x.weight() * 4 / 2 + 8)?;
        factor = factor.mul(&two);
        roots += 1;
    }
    let at = scale + (f64::from(roots + 1) * LOG10_2) as i32 + 8;
    let mut sum = x.sub(&one()).div(&x.add(&one()), at, true)?;
    let mut power = sum.clone();
    let square = sum.mul_to(&sum, at);
    let mut divisor = 1;
    loop {
        divisor += 2;
        power = power.mul_to(&square, at);
        let term = power.clone().div_small(divisor, at);
        if term.is_zero() {
            break;
        }
        sum = sum.add(&term);
        if term.weight() < sum.weight() - at * 2 / 4 {
            break;
        }
    }
    Ok(sum.mul_to(&factor, scale))
}

/// The logarithm to a base.
pub(super) fn log(base: &Var, x: &Var) -> Result<Var> {
    let (base_weight, x_weight) = (ln_weight(base), ln_weight(x));
    let weight = x_weight - base_weight;
    let scale = scale_for(weight, base.scale.max(x.scale));
    let base_scale = (scale + weight - base_weight + 8).max(0);
    let x_scale = (scale + weight - x_weight + 8).max(0);
    let ln_base = ln_to(base, base_scale)?;
    let ln_x = ln_to(x, x_scale)?;
    ln_x.div(&ln_base, scale, true)
}

/// A power.
pub(super) fn power(base: &Var, exponent: &Var) -> Result<Var> {
    if exponent.is_integral()
        && let Some(whole) = super::to_i128(exponent).and_then(|n| i32::try_from(n).ok())
    {
        let scale = SIGNIFICANT.max(base.scale).min(SCALE_MAX);
        return power_of_int(base, whole, scale);
    }
    if base.is_zero() {
        return Ok(Var::zero(SIGNIFICANT));
    }
    let mut negative = false;
    let mut base = base.clone();
    if base.negative {
        if !exponent.is_integral() {
            return Err(complex());
        }
        negative = exponent.is_odd();
        base = base.abs();
    }
    // A short computation first tells how long the result is.
    let weight = ln_weight(&base);
    let at = (8 - weight).max(0);
    let estimate = ln_to(&base, at)?.mul_to(exponent, at).to_f64();
    if estimate.abs() > 2000.0 * 3.01 {
        if estimate > 0.0 {
            return Err(overflow());
        }
        return Ok(Var::zero(SCALE_MAX));
    }
    let estimate = (estimate * LOG10_E) as i32;
    let scale = scale_for(estimate, base.scale.max(exponent.scale));
    let digits = (scale + estimate).max(0);
    let at = (digits - weight + 8).max(0);
    let result = exp_to(&ln_to(&base, at)?.mul_to(exponent, at), scale)?;
    Ok(if negative { result.negate() } else { result })
}

/// 2201F of a root of a negative number.
pub(super) fn complex() -> QueryError {
    QueryError::new(
        "2201F",
        "a negative number raised to a non-integer power yields a complex result",
    )
}

fn power_of_int(base: &Var, exponent: i32, scale: i32) -> Result<Var> {
    match exponent {
        0 => return Ok(one().round(scale)),
        1 => return Ok(base.clone().round(scale)),
        -1 => return one().div(base, scale, true),
        2 => return Ok(base.mul_to(base, scale)),
        _ => {}
    }
    if base.is_zero() {
        if exponent < 0 {
            return Err(QueryError::division_by_zero());
        }
        return Ok(Var::zero(scale));
    }
    // The weight of the result, about.
    let (_, count) = base.head(1);
    let taken = count.min(4);
    let (head, _) = base.head(taken);
    let weight = (base.weight() - taken + 1) * 4;
    let estimate = f64::from(exponent) * ((head as f64).log10() + f64::from(weight));
    if estimate > f64::from(3 * 32_767 * 4) {
        return Err(overflow());
    }
    if estimate + 1.0 < f64::from(-scale) || estimate + 1.0 < f64::from(-SCALE_MAX) {
        return Ok(Var::zero(scale));
    }
    let digits = 1 + scale + estimate as i32 + (f64::from(exponent).abs().ln() as i32) + 8;
    let mut bits = exponent.unsigned_abs();
    let mut negative = exponent < 0;
    let mut product = base.clone();
    let mut result = if bits & 1 == 1 { base.clone() } else { one() };
    loop {
        bits >>= 1;
        if bits == 0 {
            break;
        }
        let at = (digits - 2 * product.weight() * 4)
            .min(2 * product.scale)
            .max(0);
        product = product.mul_to(&product, at);
        if bits & 1 == 1 {
            let at = (digits - (product.weight() + result.weight()) * 4)
                .min(product.scale + result.scale)
                .max(0);
            result = product.mul_to(&result, at);
        }
        if product.weight() > 32_767 || result.weight() > 32_767 {
            if !negative {
                return Err(overflow());
            }
            result = Var::zero(0);
            negative = false;
            break;
        }
    }
    if negative {
        one().div(&result, scale, true)
    } else {
        Ok(result.round(scale))
    }
}
