//! The shortest digits that are read as the same number.

/// What both widths have.
pub(super) trait Float: Copy + Into<f64> + std::fmt::LowerExp {
    /// Decimal digits that any number keeps; from this exponent on the scientific form is written.
    const DIGITS: i32;
    /// Digits that are enough for every number.
    const ENOUGH: usize;

    /// The least mantissa of a number that is not one of the smallest.
    const LEAST_MANTISSA: u64;

    /// Size: mantissa and power of two.
    fn parts(self) -> (u64, i32);

    fn reads_as(self, text: &str) -> bool;
}

impl Float for f64 {
    const DIGITS: i32 = 15;
    const ENOUGH: usize = 17;
    const LEAST_MANTISSA: u64 = 1 << 52;

    fn parts(self) -> (u64, i32) {
        let bits = self.to_bits();
        let (mantissa, exponent) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32);
        match exponent {
            0 => (mantissa, -1074),
            _ => (mantissa | 1 << 52, exponent - 1075),
        }
    }

    fn reads_as(self, text: &str) -> bool {
        text.parse() == Ok(self)
    }
}

impl Float for f32 {
    const DIGITS: i32 = 6;
    const ENOUGH: usize = 9;
    const LEAST_MANTISSA: u64 = 1 << 23;

    fn parts(self) -> (u64, i32) {
        let bits = self.to_bits();
        let (mantissa, exponent) = (bits & ((1 << 23) - 1), (bits >> 23 & 0xff) as i32);
        match exponent {
            0 => (mantissa.into(), -149),
            _ => ((mantissa | 1 << 23).into(), exponent - 150),
        }
    }

    fn reads_as(self, text: &str) -> bool {
        text.parse() == Ok(self)
    }
}

/// Digits that are always nearer to the number than any others of their count; beyond them two can
/// be as near.
fn can_be_as_near<F: Float>(count: usize) -> bool {
    count >= F::ENOUGH - 2
}

/// Appends a finite number.
pub(super) fn write<F: Float>(n: F, out: &mut String) {
    let mut text = format!("{n:e}");
    let (mantissa, binary) = n.parts();
    if mantissa != 0
        && let Some((digits, power)) = decimal(&text)
    {
        let count = figures(&text).len();
        // A number with an even mantissa is also read from digits that lie in the middle between it
        // and the next. PostgreSQL takes none of these, and so more digits.
        if mantissa % 2 == 0 && is_halfway::<F>(mantissa, binary, digits, power) {
            for more in count..F::ENOUGH {
                let longer = format!("{n:.more$e}");
                let halfway = decimal(&longer).is_some_and(|(digits, power)| {
                    is_halfway::<F>(mantissa, binary, digits, power)
                });
                if n.reads_as(&longer) && !halfway {
                    text = longer;
                    break;
                }
            }
        } else if can_be_as_near::<F>(count)
            && digits % 2 == 1
            && (same(2 * digits - 1, power, 1, mantissa, binary)
                || same(2 * digits + 1, power, 1, mantissa, binary))
        {
            // Of two that are as near the even one is written.
            let even = format!("{n:.*e}", count - 1);
            if n.reads_as(&even) {
                text = even;
            }
        }
    }
    let exponent = text
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    out.extend(text.starts_with('-').then_some('-'));
    let shown = figures(&text);
    let shown = match shown.trim_end_matches('0') {
        "" => "0",
        shown => shown,
    };
    place(shown, exponent, F::DIGITS, out);
}

/// The digits of the mantissa.
fn figures(text: &str) -> String {
    let mantissa = text.split('e').next().unwrap_or_default();
    mantissa.chars().filter(char::is_ascii_digit).collect()
}

/// The size as a whole number and a power of ten.
fn decimal(text: &str) -> Option<(u64, i32)> {
    let digits = figures(text);
    let (_, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let count = i32::try_from(digits.len()).ok()?;
    Some((digits.parse().ok()?, exponent + 1 - count))
}

/// Whether `left` * 10^`power` / 2^`twos` is `right` * 2^`binary`.
fn same(left: u64, power: i32, twos: i32, right: u64, binary: i32) -> bool {
    if left == 0 || right == 0 {
        return left == right;
    }
    let (left_twos, right_twos) = (left.trailing_zeros() as i32, right.trailing_zeros() as i32);
    if left_twos + power - twos != right_twos + binary {
        return false;
    }
    let (left, right) = (
        u128::from(left >> left_twos),
        u128::from(right >> right_twos),
    );
    let fives = 5u128.checked_pow(power.unsigned_abs());
    let (left, right) = if power >= 0 {
        (fives.and_then(|fives| left.checked_mul(fives)), Some(right))
    } else {
        (Some(left), fives.and_then(|fives| right.checked_mul(fives)))
    };
    left.is_some() && left == right
}

/// Whether these digits lie exactly in the middle between a number and a neighbour.
fn is_halfway<F: Float>(mantissa: u64, binary: i32, digits: u64, power: i32) -> bool {
    // The next below a power of two is nearer.
    let below = if mantissa == F::LEAST_MANTISSA {
        (4 * mantissa - 1, binary - 2)
    } else {
        (2 * mantissa - 1, binary - 1)
    };
    same(digits, power, 0, 2 * mantissa + 1, binary - 1) || same(digits, power, 0, below.0, below.1)
}

/// Appends digits with their point: in the scientific form below 0.0001 and from this exponent on.
pub(super) fn place(figures: &str, exponent: i32, wide: i32, out: &mut String) {
    let count = figures.len() as i32;
    if exponent < -4 || exponent >= wide {
        let (first, rest) = figures.split_at(1.min(figures.len()));
        out.push_str(first);
        if !rest.is_empty() {
            out.push('.');
            out.push_str(rest);
        }
        out.push('e');
        out.push(if exponent < 0 { '-' } else { '+' });
        if exponent.abs() < 10 {
            out.push('0');
        }
        out.push_str(&exponent.abs().to_string());
    } else if exponent < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-1 - exponent) as usize));
        out.push_str(figures);
    } else if count <= exponent + 1 {
        out.push_str(figures);
        out.extend(std::iter::repeat_n('0', (exponent + 1 - count) as usize));
    } else {
        let (whole, rest) = figures.split_at(exponent as usize + 1);
        out.push_str(whole);
        out.push('.');
        out.push_str(rest);
    }
}
