//! Factorials, divisors and multiples.

use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::numeric::{Numeric, overflow};

pub(super) fn numeric_fac(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let n = a[0].as_int8();
    if n < 0 {
        return Err(QueryError::new(
            "22003",
            "factorial of a negative number is undefined",
        ));
    }
    if n > 32_177 {
        return Err(overflow());
    }
    // Factors are gathered while they fit a word.
    let (mut product, mut factor) = (Numeric::ONE, 1i128);
    for next in 2..=i128::from(n) {
        factor *= next;
        if factor > 1 << 100 {
            call.environment.check_interrupted()?;
            product = product.mul(&Numeric::from_i128(factor))?;
            factor = 1;
        }
    }
    product.mul(&Numeric::from_i128(factor)).map(Datum::Numeric)
}

/// The greatest common divisor of two finite numbers.
fn divisor(call: &Call<'_>, a: &Numeric, b: &Numeric) -> Result<Numeric> {
    let scale = i32::from(a.scale().max(b.scale()));
    let (mut a, mut b) = (a.abs(), b.abs());
    if a < b {
        std::mem::swap(&mut a, &mut b);
    }
    let mut steps = 0;
    while b.sign() != 0 {
        steps += 1;
        if steps % 64 == 0 {
            call.environment.check_interrupted()?;
        }
        let rest = a.rem(&b)?;
        (a, b) = (b, rest);
    }
    a.round(scale)
}

pub(super) fn numeric_gcd(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (x, y) = (a[0].as_numeric(), a[1].as_numeric());
    if !x.is_finite() || !y.is_finite() {
        return Ok(Datum::Numeric(Numeric::NaN));
    }
    divisor(call, x, y).map(Datum::Numeric)
}

pub(super) fn numeric_lcm(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (x, y) = (a[0].as_numeric(), a[1].as_numeric());
    if !x.is_finite() || !y.is_finite() {
        return Ok(Datum::Numeric(Numeric::NaN));
    }
    let scale = i32::from(x.scale().max(y.scale()));
    if x.is_zero() || y.is_zero() {
        return Numeric::ZERO.round(scale).map(Datum::Numeric);
    }
    let parts = x.div_trunc(&divisor(call, x, y)?)?;
    parts.mul(y)?.abs().round(scale).map(Datum::Numeric)
}
