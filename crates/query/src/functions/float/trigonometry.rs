//! Angles in radians and in degrees, and hyperbolic functions. Those in degrees are exact where
//! the angle is one of 0, 30, 45, 60 and 90.

use std::f64::consts::LN_2;
use std::sync::LazyLock;

use super::arithmetic::underflow;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};

const DEGREE: f64 = 0.017_453_292_519_943_295;

#[cold]
fn out_of_range() -> QueryError {
    QueryError::new("22003", "input is out of range")
}

/// Functions of one number, which is refused outside of some bounds; what is not a number stays.
macro_rules! functions {
    ($($name:ident $bounds:ident $function:expr;)*) => {
        $(
            pub(super) fn $name(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
                let n = a[0].as_float8();
                if n.is_nan() {
                    return Ok(Datum::Float8(f64::NAN));
                }
                if !$bounds(n) {
                    return Err(out_of_range());
                }
                let function: fn(f64) -> f64 = $function;
                Ok(Datum::Float8(function(n)))
            }
        )*
    };
}

fn any(_: f64) -> bool {
    true
}

fn finite(n: f64) -> bool {
    n.is_finite()
}

fn unit(n: f64) -> bool {
    (-1.0..=1.0).contains(&n)
}

fn from_one(n: f64) -> bool {
    n >= 1.0
}

functions! {
    dacos unit f64::acos;
    dasin unit f64::asin;
    datan any f64::atan;
    dcos finite f64::cos;
    dsin finite f64::sin;
    dtan finite f64::tan;
    dcot finite |n| 1.0 / n.tan();
    dsinh any f64::sinh;
    dtanh any f64::tanh;
    dasinh any asinh;
    dacosh from_one acosh;
    datanh unit atanh;
    dacosd unit |n| if n >= 0.0 { acosd(n) } else { 90.0 + asind(-n) };
    dasind unit |n| if n >= 0.0 { asind(n) } else { -asind(-n) };
    datand any |n| (n.atan() / EXACT.atan_one) * 45.0;
    dsind finite |n| {
        let (angle, sign) = quadrant(n, true, false);
        sign * sind(angle)
    };
    dcosd finite |n| {
        let (angle, sign) = quadrant(n, false, true);
        sign * cosd(angle)
    };
    dtand finite |n| {
        let (angle, sign) = quadrant(n, true, true);
        without_sign(sign * ((sind(angle) / cosd(angle)) / EXACT.tan_45))
    };
    dcotd finite |n| {
        let (angle, sign) = quadrant(n, true, true);
        without_sign(sign * ((cosd(angle) / sind(angle)) / EXACT.cot_45))
    };
}

pub(super) fn dcosh(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let n = a[0].as_float8().cosh();
    if n == 0.0 {
        return Err(underflow());
    }
    Ok(Datum::Float8(n))
}

pub(super) fn datan2(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float8(a[0].as_float8().atan2(a[1].as_float8())))
}

pub(super) fn datan2d(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let angle = a[0].as_float8().atan2(a[1].as_float8());
    Ok(Datum::Float8((angle / EXACT.atan_one) * 45.0))
}

/// What results are divided by so that some are exact.
struct Exact {
    sin_30: f64,
    one_less_cos_60: f64,
    asin_half: f64,
    acos_half: f64,
    atan_one: f64,
    tan_45: f64,
    cot_45: f64,
}

static EXACT: LazyLock<Exact> = LazyLock::new(|| {
    // Computed by the same functions as at run time, not by the compiler.
    let opaque = std::hint::black_box::<f64>;
    let mut exact = Exact {
        sin_30: (opaque(30.0) * DEGREE).sin(),
        one_less_cos_60: 1.0 - (opaque(60.0) * DEGREE).cos(),
        asin_half: opaque(0.5).asin(),
        acos_half: opaque(0.5).acos(),
        atan_one: opaque(1.0).atan(),
        tan_45: 1.0,
        cot_45: 1.0,
    };
    let sin = cos_below_60(&exact, 90.0 - opaque(45.0));
    let cos = cos_below_60(&exact, opaque(45.0));
    exact.tan_45 = sin / cos;
    exact.cot_45 = cos / sin;
    exact
});

/// An angle as one of the first quadrant, and the sign of the function there: whether it is odd,
/// and whether it has another sign in the second quadrant.
fn quadrant(angle: f64, odd: bool, turns: bool) -> (f64, f64) {
    let (mut angle, mut sign) = (angle % 360.0, 1.0);
    if angle < 0.0 {
        angle = -angle;
        sign = if odd { -sign } else { sign };
    }
    if angle > 180.0 {
        angle = 360.0 - angle;
        sign = if odd { -sign } else { sign };
    }
    if angle > 90.0 {
        angle = 180.0 - angle;
        sign = if turns { -sign } else { sign };
    }
    (angle, sign)
}

fn without_sign(n: f64) -> f64 {
    if n == 0.0 { 0.0 } else { n }
}

fn sin_below_30(exact: &Exact, angle: f64) -> f64 {
    ((angle * DEGREE).sin() / exact.sin_30) / 2.0
}

fn cos_below_60(exact: &Exact, angle: f64) -> f64 {
    1.0 - ((1.0 - (angle * DEGREE).cos()) / exact.one_less_cos_60) / 2.0
}

fn sind(angle: f64) -> f64 {
    if angle <= 30.0 {
        sin_below_30(&EXACT, angle)
    } else {
        cos_below_60(&EXACT, 90.0 - angle)
    }
}

fn cosd(angle: f64) -> f64 {
    if angle <= 60.0 {
        cos_below_60(&EXACT, angle)
    } else {
        sin_below_30(&EXACT, 90.0 - angle)
    }
}

fn asind(n: f64) -> f64 {
    if n <= 0.5 {
        (n.asin() / EXACT.asin_half) * 30.0
    } else {
        90.0 - (n.acos() / EXACT.acos_half) * 60.0
    }
}

fn acosd(n: f64) -> f64 {
    if n <= 0.5 {
        90.0 - (n.asin() / EXACT.asin_half) * 30.0
    } else {
        (n.acos() / EXACT.acos_half) * 60.0
    }
}

/// As the C library's, whose last digit the standard library's does not always have.
fn asinh(n: f64) -> f64 {
    let size = n.abs();
    if size < 2f64.powi(-28) || !size.is_finite() {
        return n;
    }
    let result = if size > 2f64.powi(28) {
        size.ln() + LN_2
    } else if size > 2.0 {
        (2.0 * size + 1.0 / ((n * n + 1.0).sqrt() + size)).ln()
    } else {
        let square = n * n;
        (size + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
    };
    result.copysign(n)
}

fn acosh(n: f64) -> f64 {
    if n.is_infinite() {
        n
    } else if n > 2f64.powi(28) {
        n.ln() + LN_2
    } else if n > 2.0 {
        (2.0 * n - 1.0 / (n + (n * n - 1.0).sqrt())).ln()
    } else {
        let rest = n - 1.0;
        (rest + (2.0 * rest + rest * rest).sqrt()).ln_1p()
    }
}

fn atanh(n: f64) -> f64 {
    let size = n.abs();
    let result = if size == 1.0 {
        f64::INFINITY
    } else if size < 2f64.powi(-28) {
        return n;
    } else if size < 0.5 {
        let double = size + size;
        0.5 * (double + double * size / (1.0 - size)).ln_1p()
    } else {
        0.5 * ((size + size) / (1.0 - size)).ln_1p()
    };
    result.copysign(n)
}
