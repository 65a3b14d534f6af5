//! Arithmetic of numbers whose digits fit a word of 128 bits. Where a result
//! does not, `None` sends the caller to the long form.

use std::cmp::Ordering;

use super::var::quotient_scale;

/// A word of 128 bits that takes no more alignment than 64 need, so that a number stays small.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed(8))]
pub struct Unscaled(i128);

impl Unscaled {
    pub(super) const fn new(n: i128) -> Self {
        Self(n)
    }

    /// The number.
    #[must_use]
    #[inline]
    pub const fn get(self) -> i128 {
        self.0
    }
}

/// The powers of ten that fit.
pub(super) const POWERS: [i128; 39] = {
    let mut powers = [1; 39];
    let mut at = 1;
    while at < 39 {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

type Parts = (i128, u16);

/// Both at the greater of their scales.
#[inline]
pub(super) fn align(a: Parts, b: Parts) -> Option<(i128, i128, u16)> {
    match a.1.cmp(&b.1) {
        Ordering::Equal => Some((a.0, b.0, a.1)),
        Ordering::Less => Some((raise(a.0, b.1 - a.1)?, b.0, b.1)),
        Ordering::Greater => Some((a.0, raise(b.0, a.1 - b.1)?, a.1)),
    }
}

#[inline]
fn raise(n: i128, places: u16) -> Option<i128> {
    if n == 0 {
        return Some(0);
    }
    n.checked_mul(*POWERS.get(usize::from(places))?)
}

#[inline]
pub(super) fn compare(a: Parts, b: Parts) -> Option<Ordering> {
    let (a, b, _) = align(a, b)?;
    Some(a.cmp(&b))
}

#[inline]
pub(super) fn multiply(a: i128, b: i128) -> Option<i128> {
    if let (Ok(a), Ok(b)) = (i64::try_from(a), i64::try_from(b)) {
        return Some(i128::from(a) * i128::from(b));
    }
    a.checked_mul(b).filter(|n| *n != i128::MIN)
}

/// Without the last digits, rounded; a half goes away from zero.
#[inline]
pub(super) fn round(n: i128, places: u32) -> i128 {
    if places == 0 {
        return n;
    }
    let Some(power) = POWERS.get(places as usize) else {
        return 0;
    };
    let power = *power;
    let (quotient, rest) = (n / power, n % power);
    // The greatest power of ten is less than half of the greatest number.
    if rest.abs() >= power - rest.abs() {
        quotient + n.signum()
    } else {
        quotient
    }
}

/// Weight and value of the first digit in base ten thousand.
fn head((n, scale): Parts) -> (i32, u32) {
    let size = n.unsigned_abs();
    if size == 0 {
        return (0, 0);
    }
    let digits = size.ilog10() as i32 + 1;
    let weight = digits - 1 - i32::from(scale);
    let taken = weight.rem_euclid(4) + 1;
    let first = if digits >= taken {
        size / POWERS[(digits - taken) as usize].unsigned_abs()
    } else {
        size * POWERS[(taken - digits) as usize].unsigned_abs()
    };
    (weight.div_euclid(4), first as u32)
}

/// The quotient with PostgreSQL's scale.
pub(super) fn divide(a: Parts, b: Parts) -> Option<Parts> {
    if b.0 == 0 {
        return None;
    }
    let ((first_weight, first), (second_weight, second)) = (head(a), head(b));
    let mut weight = first_weight - second_weight;
    if first <= second {
        weight -= 1;
    }
    let scale = quotient_scale(weight, i32::from(a.1), i32::from(b.1));
    let shift = scale + i32::from(b.1) - i32::from(a.1);
    let dividend = raise(a.0, u16::try_from(shift).ok()?)?;
    let scale = u16::try_from(scale).ok()?;
    if let (Ok(dividend), Ok(divisor)) = (i64::try_from(dividend), i64::try_from(b.0)) {
        let quotient = i128::from(dividend) / i128::from(divisor);
        let rest = i128::from(dividend) % i128::from(divisor);
        return Some((away(quotient, rest, dividend.into(), divisor.into()), scale));
    }
    let (quotient, rest) = (dividend.checked_div(b.0)?, dividend.checked_rem(b.0)?);
    Some((away(quotient, rest, dividend, b.0), scale))
}

/// The quotient rounded by what was left; a half goes away from zero.
#[inline]
fn away(quotient: i128, rest: i128, dividend: i128, divisor: i128) -> i128 {
    let (rest, size) = (rest.unsigned_abs(), divisor.unsigned_abs());
    if rest >= size - rest {
        let up = if (dividend < 0) == (divisor < 0) {
            1
        } else {
            -1
        };
        quotient + up
    } else {
        quotient
    }
}

/// The text form, without an allocation where it is short.
pub(super) fn with_text<T>(n: i128, scale: u16, f: impl FnOnce(&str) -> T) -> T {
    let scale = usize::from(scale);
    let mut buffer = [b'0'; 96];
    if scale > 48 {
        let digits = n.unsigned_abs().to_string();
        let sign = if n < 0 { "-" } else { "" };
        let text = match digits.len().checked_sub(scale) {
            Some(whole) if whole > 0 => {
                format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
            }
            _ => format!("{sign}0.{digits:0>scale$}"),
        };
        return f(&text);
    }
    let mut at = buffer.len();
    let mut written = 0;
    let mut put = |byte: u8| {
        at -= 1;
        buffer[at] = byte;
    };
    let mut size = n.unsigned_abs();
    // Nineteen digits at a time are divided in a shorter word.
    loop {
        let last = size <= u128::from(u64::MAX);
        let mut part = if last {
            size as u64
        } else {
            (size % 10_000_000_000_000_000_000) as u64
        };
        size = if last {
            0
        } else {
            size / 10_000_000_000_000_000_000
        };
        let mut count = 0;
        while part > 0 || (last && written <= scale) || (!last && count < 19) {
            if written == scale && scale > 0 {
                put(b'.');
            }
            put(b'0' + (part % 10) as u8);
            part /= 10;
            written += 1;
            count += 1;
        }
        if last {
            break;
        }
    }
    if n < 0 {
        put(b'-');
    }
    f(std::str::from_utf8(&buffer[at..]).unwrap_or_default())
}
