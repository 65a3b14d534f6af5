//! Roots, powers, logarithms, rounding, and random numbers.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};

use super::arithmetic::{double, overflow, underflow};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::float::{Random, write_general};

/// Functions that can't fail.
macro_rules! plain {
    ($($name:ident $function:expr;)*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                let function: fn(f64) -> f64 = $function;
                Ok(Datum::Float8(function(a[0].as_float8())))
            }
        )*
    };
}

plain! {
    dround f64::round_ties_even;
    dceil f64::ceil;
    dfloor f64::floor;
    dtrunc |n| if n >= 0.0 { n.floor() } else { -(-n).floor() };
    dsign |n| if n > 0.0 { 1.0 } else if n < 0.0 { -1.0 } else { 0.0 };
}

/// The result of a function of `from`, which neither grows beyond all nor vanishes by itself.
fn bounded(n: f64, from: f64, root: f64) -> Result<Datum> {
    if n.is_infinite() && !from.is_infinite() {
        return Err(overflow());
    }
    if n == 0.0 && from != root {
        return Err(underflow());
    }
    Ok(Datum::Float8(n))
}

pub(super) fn dsqrt(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let n = a[0].as_float8();
    if n < 0.0 {
        return Err(QueryError::new(
            "2201F",
            "cannot take square root of a negative number",
        ));
    }
    bounded(n.sqrt(), n, 0.0)
}

pub(super) fn dcbrt(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let n = a[0].as_float8();
    bounded(cube_root(n), n, 0.0)
}

/// As the GNU C library's, whose last digit others do not always have.
fn cube_root(n: f64) -> f64 {
    const ROOT: f64 = 1.259_921_049_894_873_2;
    const SQUARE: f64 = 1.587_401_051_968_199_5;
    const FACTORS: [f64; 5] = [1.0 / SQUARE, 1.0 / ROOT, 1.0, ROOT, SQUARE];
    let size = n.abs();
    if size == 0.0 || !size.is_finite() {
        return n;
    }
    // The number as a mantissa from a half to one, and a power of two.
    let (normal, shift) = if size < f64::MIN_POSITIVE {
        (size * 2f64.powi(54), 54)
    } else {
        (size, 0)
    };
    let exponent = (normal.to_bits() >> 52) as i32 - 1022;
    let x = f64::from_bits(normal.to_bits() & ((1 << 52) - 1) | 1022 << 52);
    let exponent = exponent - shift;
    let series = 1.508_191_937_815_849
        - (2.114_994_941_673_713
            - (2.446_931_225_635_344_4
                - (1.834_692_774_836_130_8
                    - (0.784_932_344_976_639_2 - 0.145_263_899_385_486_37 * x) * x)
                    * x)
                * x)
            * x;
    let guess = 0.354_895_765_043_919_84 + series * x;
    let cube = guess * guess * guess;
    let factor = FACTORS[(2 + exponent % 3) as usize];
    let root = guess * (cube + 2.0 * x) / (2.0 * cube + x) * factor;
    (root * 2f64.powi(exponent / 3)).copysign(n)
}

pub(super) fn dexp(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let n = a[0].as_float8();
    if n.is_nan() {
        return Ok(Datum::Float8(n));
    }
    if n.is_infinite() {
        return Ok(Datum::Float8(if n > 0.0 { n } else { 0.0 }));
    }
    let result = n.exp();
    if result.is_infinite() {
        return Err(overflow());
    }
    if result == 0.0 {
        return Err(underflow());
    }
    Ok(Datum::Float8(result))
}

fn logarithm(n: f64, function: fn(f64) -> f64) -> Result<Datum> {
    if n == 0.0 {
        return Err(QueryError::new("2201E", "cannot take logarithm of zero"));
    }
    if n < 0.0 {
        return Err(QueryError::new(
            "2201E",
            "cannot take logarithm of a negative number",
        ));
    }
    bounded(function(n), n, 1.0)
}

pub(super) fn dlog1(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    logarithm(a[0].as_float8(), f64::ln)
}

pub(super) fn dlog10(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    logarithm(a[0].as_float8(), f64::log10)
}

pub(super) fn dpow(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (x, y) = (a[0].as_float8(), a[1].as_float8());
    if x.is_nan() || y.is_nan() {
        let one = if x.is_nan() { y == 0.0 } else { x == 1.0 };
        return Ok(Datum::Float8(if one { 1.0 } else { f64::NAN }));
    }
    if x == 0.0 && y < 0.0 {
        return Err(QueryError::new(
            "2201F",
            "zero raised to a negative power is undefined",
        ));
    }
    if x < 0.0 && y.floor() != y {
        return Err(QueryError::new(
            "2201F",
            "a negative number raised to a non-integer power yields a complex result",
        ));
    }
    let size = x.abs();
    if y.is_infinite() {
        return Ok(Datum::Float8(if size == 1.0 {
            1.0
        } else if (y > 0.0) == (size > 1.0) {
            f64::INFINITY
        } else {
            0.0
        }));
    }
    if x.is_infinite() {
        let odd = (y / 2.0).floor() != y / 2.0;
        return Ok(Datum::Float8(match (x > 0.0, y) {
            (_, 0.0) => 1.0,
            (true, y) if y > 0.0 => x,
            (true, _) => 0.0,
            (false, y) if y > 0.0 => {
                if odd {
                    x
                } else {
                    -x
                }
            }
            (false, _) => {
                if odd {
                    -0.0
                } else {
                    0.0
                }
            }
        }));
    }
    let result = x.powf(y);
    if result.is_infinite() {
        return Err(overflow());
    }
    if result == 0.0 && x != 0.0 {
        return Err(underflow());
    }
    Ok(Datum::Float8(result))
}

fn bucket_error(message: &str) -> QueryError {
    QueryError::new("2201G", message)
}

pub(super) fn width_bucket_float8(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (operand, first, second) = (a[0].as_float8(), a[1].as_float8(), a[2].as_float8());
    let count = a[3].as_int4();
    if count <= 0 {
        return Err(bucket_error("count must be greater than zero"));
    }
    if operand.is_nan() || first.is_nan() || second.is_nan() {
        return Err(bucket_error(
            "operand, lower bound, and upper bound cannot be NaN",
        ));
    }
    if first.is_infinite() || second.is_infinite() {
        return Err(bucket_error("lower and upper bounds must be finite"));
    }
    if first == second {
        return Err(bucket_error("lower bound cannot equal upper bound"));
    }
    let (before, after) = if first < second {
        (operand < first, operand >= second)
    } else {
        (operand > first, operand <= second)
    };
    if before {
        return Ok(Datum::Int4(0));
    }
    if after {
        return match count.checked_add(1) {
            Some(bucket) => Ok(Datum::Int4(bucket)),
            None => Err(QueryError::out_of_range("integer")),
        };
    }
    let count = f64::from(count);
    let bucket = if first < second {
        count * (operand - first) / (second - first)
    } else {
        count * (first - operand) / (first - second)
    };
    // What is no number of the type becomes its least, as the processor has it.
    let bucket = bucket + 1.0;
    Ok(Datum::Int4(if bucket < 2_147_483_648.0 {
        bucket as i32
    } else {
        i32::MIN
    }))
}

const DEGREE: f64 = 0.017_453_292_519_943_295;

pub(super) fn degrees(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    double::divide(a[0].as_float8(), DEGREE).map(Datum::Float8)
}

pub(super) fn radians(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    double::multiply(a[0].as_float8(), DEGREE).map(Datum::Float8)
}

pub(super) fn dpi(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float8(std::f64::consts::PI))
}

thread_local! {
    /// Random numbers where no session keeps a generator.
    static GENERATOR: RefCell<Random> =
        RefCell::new(Random::new(RandomState::new().hash_one("random")));
}

/// Asks the session's generator; without one, `None`.
fn of_session(call: &Call<'_>, name: &str, a: &[Datum]) -> Result<Option<Datum>> {
    match call.environment.call(name, a) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.sqlstate == "0A000" => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn drandom(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    if let Some(value) = of_session(call, "random", a)? {
        return Ok(value);
    }
    Ok(Datum::Float8(GENERATOR.with_borrow_mut(Random::next_f64)))
}

pub(super) fn setseed(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let seed = a[0].as_float8();
    if !(-1.0..=1.0).contains(&seed) {
        let mut shown = String::new();
        match seed {
            n if n.is_nan() => shown.push_str("NaN"),
            n if n.is_infinite() => shown.push_str(if n > 0.0 { "Infinity" } else { "-Infinity" }),
            n => write_general(n, 6, &mut shown),
        }
        return Err(QueryError::invalid_parameter(format!(
            "setseed parameter {shown} is out of allowed range [-1,1]"
        )));
    }
    if let Some(value) = of_session(call, "setseed", a)? {
        return Ok(value);
    }
    GENERATOR.replace(Random::from_seed(seed));
    Ok(Datum::text(""))
}
