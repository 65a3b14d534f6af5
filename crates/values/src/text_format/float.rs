//! Floats as text: the fewest digits that read back as the same float, laid out
//! as PostgreSQL does. Rust's digits and PostgreSQL's (Ryu's) differ in two
//! cases: PostgreSQL rejects digits that lie exactly half
//! way to the next float (1e23 is such), and takes the even one of two that are equally near.

use std::fmt::Arguments;
use std::io::Write;

use super::write_integer;

/// The smallest decimal exponent that is printed without `e`.
const EXPONENT_MIN: i32 = -4;
/// The first exponent of a double too large to be printed without `e`.
const DOUBLE_EXPONENT_END: i32 = 15;
/// As [`DOUBLE_EXPONENT_END`], for `real`.
const REAL_EXPONENT_END: i32 = 6;

/// From here on half way between two doubles there is an integer.
const DOUBLE_HALVES_BEGIN: f64 = (1u64 << 53) as f64;
/// As [`DOUBLE_HALVES_BEGIN`], for `real`.
const REAL_HALVES_BEGIN: f32 = (1u32 << 24) as f32;

/// Two equally near numbers of so many digits or more are possible ...
const DOUBLE_TIE_DIGITS: usize = 15;
/// ... when the double is a multiple of one over this: then its own digits are
/// few enough to be just one more.
const DOUBLE_TIE_UNITS: f64 = (1u64 << 18) as f64;
/// As [`DOUBLE_TIE_DIGITS`], for `real`.
const REAL_TIE_DIGITS: usize = 6;
/// As [`DOUBLE_TIE_UNITS`], for `real`.
const REAL_TIE_UNITS: f32 = (1u32 << 12) as f32;
/// Four times any number below this fits 128 bits; above there are no halves
/// with as few digits as a float has.
const HALVES_END: f64 = 1e37;
/// The most digits that a double needs.
const DIGITS_MAX: usize = 17;

/// The digits of a positive float in Rust's form `d.ddde±x`.
#[derive(Clone, Copy)]
struct Digits {
    bytes: [u8; 32],
    length: usize,
}

impl Digits {
    fn of(text: Arguments<'_>) -> Self {
        let mut digits = Self {
            bytes: [0; 32],
            length: 0,
        };
        let written = digits.write_fmt(text);
        assert!(written.is_ok(), "a float has at most 17 digits");
        digits
    }

    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// How many digits there are.
    fn count(&self) -> usize {
        let mantissa = self.as_str().split('e').next().unwrap_or_default();
        mantissa.bytes().filter(u8::is_ascii_digit).count()
    }

    /// The number, if it is an integer that 128 bits hold.
    fn integer(&self) -> Option<u128> {
        let (mantissa, exponent) = self.as_str().split_once('e')?;
        let (first, others) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = others
            .bytes()
            .fold(first.parse().ok()?, |sum: u128, digit| {
                sum * 10 + u128::from(digit - b'0')
            });
        let exponent = exponent.parse::<i32>().ok()? - others.len() as i32;
        10u128
            .checked_pow(u32::try_from(exponent).ok()?)?
            .checked_mul(digits)
    }
}

impl Write for Digits {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let end = self.length + text.len();
        let Some(slot) = self.bytes.get_mut(self.length..end) else {
            return Err(std::io::ErrorKind::StorageFull.into());
        };
        slot.copy_from_slice(text);
        self.length = end;
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The digits of a float as PostgreSQL chooses them. `exact` gives the
/// nearest number of so many digits, `reads_back` tells whether it is the float.
fn chosen_digits(
    [below, value, above]: [f64; 3],
    shortest: Digits,
    exact: impl Fn(usize) -> Digits,
    reads_back: impl Fn(&str) -> bool,
) -> Digits {
    let is_half_way = |digits: &Digits| {
        let between_integers = below.fract() == 0.0 && above.fract() == 0.0;
        if value >= HALVES_END || !between_integers {
            return false;
        }
        let Some(fourfold) = digits.integer().and_then(|integer| integer.checked_mul(4)) else {
            return false;
        };
        let (below, value, above) = (below as u128, value as u128, above as u128);
        fourfold == 2 * (below + value) || fourfold == 2 * (value + above)
    };
    for count in shortest.count()..=DIGITS_MAX {
        let digits = exact(count);
        if reads_back(digits.as_str()) && !is_half_way(&digits) {
            return digits;
        }
    }
    shortest
}

/// Appends a double.
pub(super) fn write_double(value: f64, out: &mut Vec<u8>) {
    let digits = || {
        let value = value.abs();
        let shortest = Digits::of(format_args!("{value:e}"));
        let can_tie =
            || shortest.count() >= DOUBLE_TIE_DIGITS && (value * DOUBLE_TIE_UNITS).fract() == 0.0;
        if value < DOUBLE_HALVES_BEGIN && !can_tie() {
            return shortest;
        }
        chosen_digits(
            [value.next_down(), value, value.next_up()],
            shortest,
            |count| Digits::of(format_args!("{value:.*e}", count - 1)),
            |text| text.parse() == Ok(value),
        )
    };
    write_float(value, digits, DOUBLE_EXPONENT_END, out);
}

/// Appends a real.
pub(super) fn write_real(value: f32, out: &mut Vec<u8>) {
    let digits = || {
        let value = value.abs();
        let shortest = Digits::of(format_args!("{value:e}"));
        let can_tie =
            || shortest.count() >= REAL_TIE_DIGITS && (value * REAL_TIE_UNITS).fract() == 0.0;
        if value < REAL_HALVES_BEGIN && !can_tie() {
            return shortest;
        }
        chosen_digits(
            [value.next_down(), value, value.next_up()].map(f64::from),
            shortest,
            |count| Digits::of(format_args!("{value:.*e}", count - 1)),
            |text| text.parse() == Ok(value),
        )
    };
    write_float(value.into(), digits, REAL_EXPONENT_END, out);
}

/// Lays the shortest digits out as PostgreSQL does.
fn write_float(value: f64, digits: impl FnOnce() -> Digits, exponent_end: i32, out: &mut Vec<u8>) {
    if value.is_nan() {
        return out.extend_from_slice(b"NaN");
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if value.is_infinite() {
        return out.extend_from_slice(b"Infinity");
    }
    if value == 0.0 {
        return out.push(b'0');
    }
    let digits = digits();
    let text = digits.bytes.get(..digits.length).unwrap_or_default();
    let at = text.iter().position(|byte| *byte == b'e');
    let (mantissa, exponent) = text.split_at(at.unwrap_or(text.len()));
    let exponent: i32 = std::str::from_utf8(exponent.get(1..).unwrap_or_default())
        .ok()
        .and_then(|exponent| exponent.parse().ok())
        .unwrap_or(0);
    let first = &mantissa[..1];
    let others = mantissa.get(2..).unwrap_or_default();
    if !(EXPONENT_MIN..exponent_end).contains(&exponent) {
        out.extend_from_slice(mantissa);
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        if exponent.abs() < 10 {
            out.push(b'0');
        }
        write_integer(exponent.abs().into(), out);
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(first);
        out.extend_from_slice(others);
    } else {
        let whole = exponent as usize;
        out.extend_from_slice(first);
        if others.len() > whole {
            out.extend_from_slice(&others[..whole]);
            out.push(b'.');
            out.extend_from_slice(&others[whole..]);
        } else {
            out.extend_from_slice(others);
            out.resize(out.len() + whole - others.len(), b'0');
        }
    }
}
