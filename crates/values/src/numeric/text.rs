//! Numerics as text and in PostgreSQL's binary format (base 10 000 digits).
//! Guarantees that what is printed reads back as the same value and scale.
//! Malformed input of either kind is an error, never a panic.

use std::fmt;

use super::{DIGITS_PER_GROUP, MANTISSA_LIMIT, Numeric, power_of_ten};
use crate::types::NUMERIC_DIGITS_MAX;
use crate::value_error::ValueError;

/// Room for 38 digits, padded at both ends to whole groups of four.
const DIGITS_BUFFER: usize = 48;

/// Exponents beyond this cannot matter: every digit falls off one end.
const EXPONENT_MAX: i32 = 1_000_000;

/// Collects decimal digits into a mantissa, rounding what is past its scale.
struct Digits {
    mantissa: i128,
    /// The most digits after the point that are kept; the next one rounds.
    scale_max: i32,
    rounded: bool,
}

impl Digits {
    /// Takes the digit for 10^-position; `None` when 38 digits are exceeded.
    fn push(&mut self, digit: u8, position: i32) -> Option<()> {
        if position > self.scale_max {
            if !self.rounded {
                self.rounded = true;
                self.mantissa += i128::from(digit >= 5 && position == self.scale_max + 1);
            }
            return Some(());
        }
        self.mantissa = self
            .mantissa
            .checked_mul(10)?
            .checked_add(i128::from(digit))
            .filter(|mantissa| *mantissa < MANTISSA_LIMIT)?;
        Some(())
    }
}

/// The parts of a decimal literal.
struct Literal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i32,
}

/// Splits `[+-]digits[.digits][e[+-]digits]`; `None` if it is anything else.
fn split_literal(text: &str) -> Option<Literal<'_>> {
    let bytes = text.as_bytes();
    let (negative, bytes) = match bytes.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, bytes),
    };
    let digits_end = |bytes: &[u8]| bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    let (whole, bytes) = bytes.split_at(digits_end(bytes));
    let (fraction, bytes) = match bytes.split_first() {
        Some((b'.', rest)) => rest.split_at(digits_end(rest)),
        _ => (&[][..], bytes),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let exponent = match bytes.split_first() {
        None => 0,
        Some((b'e' | b'E', rest)) => {
            let (sign, digits) = match rest.split_first()? {
                (b'-', digits) => (-1, digits),
                (b'+', digits) => (1, digits),
                _ => (1, rest),
            };
            if digits.is_empty() || digits_end(digits) != digits.len() {
                return None;
            }
            let magnitude = digits.iter().fold(0i32, |sum, digit| {
                (sum * 10 + i32::from(digit - b'0')).min(EXPONENT_MAX)
            });
            sign * magnitude
        }
        Some(_) => return None,
    };
    Some(Literal {
        negative,
        whole,
        fraction,
        exponent,
    })
}

impl Numeric {
    /// Reads a decimal literal, keeping its scale.
    ///
    /// # Errors
    /// 22P02 when it is not a number; 22003 beyond 38 digits, for NaN and the infinities.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        Self::parse_scaled(text, None)
    }

    /// Reads a decimal literal; with a scale the value is rounded to it (half
    /// away from zero) before its digits are counted.
    ///
    /// # Errors
    /// As [`Numeric::parse`].
    pub fn parse_scaled(text: &str, scale: Option<u8>) -> Result<Self, ValueError> {
        let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
        let Some(literal) = split_literal(trimmed) else {
            let word = trimmed.trim_start_matches(['+', '-']).to_ascii_lowercase();
            return Err(match word.as_str() {
                "nan" | "inf" | "infinity" => ValueError::numeric_overflow(),
                _ => ValueError::syntax("numeric", text),
            });
        };
        let scale_max = scale.map_or(i32::MAX - 1, i32::from);
        let mut digits = Digits {
            mantissa: 0,
            scale_max,
            rounded: false,
        };
        let whole = literal.whole.len() as i32;
        let shift = literal.exponent;
        let mut position = 1 - whole - shift;
        for digit in literal.whole.iter().chain(literal.fraction) {
            digits
                .push(digit - b'0', position)
                .ok_or_else(ValueError::numeric_overflow)?;
            position += 1;
        }
        // The exponent may leave the last digit before the point: pad zeros.
        if digits.mantissa != 0 {
            for position in position..=0 {
                digits
                    .push(0, position)
                    .ok_or_else(ValueError::numeric_overflow)?;
            }
        }
        let written_scale = (literal.fraction.len() as i32 - shift).max(0);
        let found = written_scale.min(scale_max);
        if found > i32::from(NUMERIC_DIGITS_MAX) {
            return Err(ValueError::numeric_overflow());
        }
        let mantissa = if literal.negative {
            -digits.mantissa
        } else {
            digits.mantissa
        };
        let number = Self::new(mantissa, found as u8)?;
        match scale {
            Some(scale) => number
                .rescale(scale)
                .ok_or_else(ValueError::numeric_overflow),
            None => Ok(number),
        }
    }

    /// The decimal digits, without sign, at the end of the buffer; at least
    /// one more than the scale, so that there is a digit before the point.
    fn digits(self, buffer: &mut [u8; DIGITS_BUFFER]) -> usize {
        const CHUNK: u128 = 10_000_000_000_000_000_000;
        let mut rest = self.mantissa.unsigned_abs();
        let mut start = DIGITS_BUFFER;
        while rest > 0 {
            // Dividing 64 bits at a time is several times quicker than 128.
            let mut chunk = (rest % CHUNK) as u64;
            rest /= CHUNK;
            let stop = if rest > 0 { start - 19 } else { 0 };
            while start > stop && (chunk > 0 || rest > 0) {
                start -= 1;
                buffer[start] = b'0' + (chunk % 10) as u8;
                chunk /= 10;
            }
        }
        let needed = DIGITS_BUFFER - 1 - usize::from(self.scale);
        while start > needed {
            start -= 1;
            buffer[start] = b'0';
        }
        start
    }

    /// Appends the number as PostgreSQL prints it.
    pub fn write_text(self, out: &mut Vec<u8>) {
        let mut buffer = [0u8; DIGITS_BUFFER];
        let start = self.digits(&mut buffer);
        if self.mantissa() < 0 {
            out.push(b'-');
        }
        let point = DIGITS_BUFFER - usize::from(self.scale);
        out.extend_from_slice(&buffer[start..point]);
        if self.scale > 0 {
            out.push(b'.');
            out.extend_from_slice(&buffer[point..]);
        }
    }

    /// Appends the number in PostgreSQL's binary format.
    pub fn write_binary(self, out: &mut Vec<u8>) {
        // Digits are laid out so that the point falls between two groups.
        let mut digits = [b'0'; DIGITS_BUFFER];
        let start = self.digits(&mut digits);
        let scale = usize::from(self.scale);
        let point = DIGITS_BUFFER - scale;
        let mut groups = [0u16; 24];
        let whole_groups = (point - start).div_ceil(4);
        let fraction_groups = scale.div_ceil(4);
        let digit_at = |index: usize| {
            digits
                .get(index)
                .map_or(0, |digit| u16::from(digit.wrapping_sub(b'0')))
        };
        for (group, slot) in groups
            .iter_mut()
            .take(whole_groups + fraction_groups)
            .enumerate()
        {
            for place in 0..4 {
                // Counted from four times whole_groups before the point.
                let index = (point + group * 4 + place).checked_sub(whole_groups * 4);
                let digit = match index {
                    Some(index) if index >= start => digit_at(index),
                    _ => 0,
                };
                *slot = *slot * 10 + digit;
            }
        }
        let used = &groups[..whole_groups + fraction_groups];
        let leading = used.iter().take_while(|group| **group == 0).count();
        let trailing = used[leading..]
            .iter()
            .rev()
            .take_while(|group| **group == 0)
            .count();
        let used = &used[leading..used.len() - trailing];
        let weight = if used.is_empty() {
            0
        } else {
            whole_groups as i16 - 1 - leading as i16
        };
        out.extend_from_slice(&(used.len() as i16).to_be_bytes());
        out.extend_from_slice(&weight.to_be_bytes());
        let sign: u16 = if self.mantissa() < 0 {
            SIGN_NEGATIVE
        } else {
            0
        };
        out.extend_from_slice(&sign.to_be_bytes());
        out.extend_from_slice(&u16::from(self.scale).to_be_bytes());
        for group in used {
            out.extend_from_slice(&group.to_be_bytes());
        }
    }

    /// Reads PostgreSQL's binary format.
    ///
    /// # Errors
    /// 22P03 for malformed bytes; 22003 beyond 38 digits, for NaN and the infinities.
    pub fn parse_binary(bytes: &[u8]) -> Result<Self, ValueError> {
        let malformed = || ValueError::binary("numeric");
        let mut words = bytes.chunks_exact(2).map(|pair| match pair {
            [high, low] => u16::from_be_bytes([*high, *low]),
            _ => 0,
        });
        let mut header = || words.next().ok_or_else(malformed);
        let (count, weight, sign, scale) = (header()?, header()?, header()?, header()?);
        if bytes.len() != 8 + usize::from(count) * 2 {
            return Err(malformed());
        }
        match sign {
            0 | SIGN_NEGATIVE => {}
            0xC000 | 0xD000 | 0xF000 => return Err(ValueError::numeric_overflow()),
            _ => return Err(malformed()),
        }
        let scale = u8::try_from(scale)
            .ok()
            .filter(|scale| *scale <= NUMERIC_DIGITS_MAX)
            .ok_or_else(ValueError::numeric_overflow)?;
        let mut mantissa = 0i128;
        // The power of ten of the group's last digit, relative to the scale.
        let mut exponent = i32::from(weight as i16) * DIGITS_PER_GROUP + i32::from(scale);
        for group in words {
            if group > 9999 {
                return Err(malformed());
            }
            let group = i128::from(group);
            let part = match u8::try_from(exponent) {
                Ok(up) if group == 0 || up > NUMERIC_DIGITS_MAX => (group == 0).then_some(0),
                Ok(up) => group.checked_mul(power_of_ten(up)),
                // Digits past the scale are cut, as PostgreSQL does.
                Err(_) if exponent > 0 => (group == 0).then_some(0),
                Err(_) if exponent > -DIGITS_PER_GROUP => {
                    Some(group / power_of_ten(exponent.unsigned_abs() as u8))
                }
                Err(_) => Some(0),
            };
            mantissa = part
                .and_then(|part| mantissa.checked_add(part))
                .ok_or_else(ValueError::numeric_overflow)?;
            exponent -= DIGITS_PER_GROUP;
        }
        Self::new(if sign == 0 { mantissa } else { -mantissa }, scale)
    }
}

/// The sign word of negative numbers.
const SIGN_NEGATIVE: u16 = 0x4000;

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::with_capacity(DIGITS_BUFFER);
        self.write_text(&mut out);
        match std::str::from_utf8(&out) {
            Ok(text) => f.pad(text),
            Err(_) => Err(fmt::Error),
        }
    }
}
