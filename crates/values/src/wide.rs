//! Unsigned integers of 256 bits, as far as numeric division needs
//! them in between. Exact; nothing here allocates or fails.

/// An unsigned integer of 256 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Wide {
    high: u128,
    low: u128,
}

impl Wide {
    /// The full product of two integers of 128 bits.
    pub(crate) fn product(a: u128, b: u128) -> Self {
        if let Some(low) = a.checked_mul(b) {
            return Self { high: 0, low };
        }
        const MASK: u128 = u64::MAX as u128;
        let (a_high, a_low) = (a >> 64, a & MASK);
        let (b_high, b_low) = (b >> 64, b & MASK);
        let low = a_low * b_low;
        let middle = a_high * b_low + (low >> 64);
        let middle_low = a_low * b_high + (middle & MASK);
        Self {
            high: a_high * b_high + (middle >> 64) + (middle_low >> 64),
            low: (middle_low << 64) | (low & MASK),
        }
    }

    /// Quotient and remainder, or `None` when 128 bits do not hold the
    /// quotient. The divisor is not zero.
    pub(crate) fn divide(self, divisor: u128) -> Option<(u128, u128)> {
        if self.high == 0 {
            return Some((self.low / divisor, self.low % divisor));
        }
        if self.high >= divisor {
            return None;
        }
        if divisor <= u128::from(u64::MAX) {
            let upper = (self.high << 64) | (self.low >> 64);
            let lower = ((upper % divisor) << 64) | (self.low & u128::from(u64::MAX));
            return Some((
                ((upper / divisor) << 64) | (lower / divisor),
                lower % divisor,
            ));
        }
        // Schoolbook division bit by bit: rare enough not to need better.
        let (mut quotient, mut remainder) = (0u128, self.high);
        for bit in (0..128).rev() {
            let carry = remainder >> 127 == 1;
            remainder = (remainder << 1) | ((self.low >> bit) & 1);
            if carry || remainder >= divisor {
                remainder = remainder.wrapping_sub(divisor);
                quotient |= 1 << bit;
            }
        }
        Some((quotient, remainder))
    }

    /// The quotient rounded to the nearest integer, halves up, or `None` when
    /// 128 bits do not hold it.
    pub(crate) fn divide_rounded(self, divisor: u128) -> Option<u128> {
        let (quotient, remainder) = self.divide(divisor)?;
        if remainder >= divisor - remainder {
            quotient.checked_add(1)
        } else {
            Some(quotient)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn division_undoes_multiplication(a: u128, b in 1u128.., rest: u128) {
            let rest = rest % b;
            let mut product = Wide::product(a, b);
            let (low, carry) = product.low.overflowing_add(rest);
            product.low = low;
            product.high += u128::from(carry);
            prop_assert_eq!(product.divide(b), Some((a, rest)));
        }

        #[test]
        fn division_by_small_divisors(a: u128, b in 1u64..) {
            let b = u128::from(b);
            prop_assert_eq!(Wide::product(a, b).divide(b), Some((a, 0)));
        }
    }

    #[test]
    fn a_quotient_beyond_128_bits_is_none() {
        assert_eq!(Wide::product(u128::MAX, u128::MAX).divide(2), None);
        assert_eq!(Wide::product(7, 1).divide_rounded(2), Some(4));
        assert_eq!(Wide::product(5, 1).divide_rounded(4), Some(1));
    }
}
