//! Decimal numbers of at most 38 digits.

use std::cmp::Ordering;

use thermocline_query::error::Result;
use thermocline_query::functions::Function;
use thermocline_query::operators::Operator;
use thermocline_query::types::ids;
use thermocline_query::types::numeric::{Numeric, SCALE_MAX};

use super::{Arguments, Kernel, Side};
use crate::columnar::vector::{Data, Decimals, Scales};

/// A number: its digits, and how many of them stand after the point.
pub type Parts = (i128, u16);

/// The powers of ten that fit.
const POWERS: [i128; 39] = {
    let mut powers = [1; 39];
    let mut at = 1;
    while at < 39 {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// The kernel of an operator of numbers.
pub fn of(operator: &Operator) -> Option<Kernel> {
    Some(match (operator.left, operator.name, operator.right) {
        (ids::NUMERIC, "+", ids::NUMERIC) => sum::<false>,
        (ids::NUMERIC, "-", ids::NUMERIC) => sum::<true>,
        (ids::NUMERIC, "*", ids::NUMERIC) => product,
        (ids::NUMERIC, "/", ids::NUMERIC) => quotient,
        (ids::NUMERIC, "%", ids::NUMERIC) => rest,
        (0, "-", ids::NUMERIC) => negated,
        _ => return None,
    })
}

/// The kernel of another function of numbers.
pub fn of_function(function: &Function) -> Option<Kernel> {
    Some(match (function.name, function.arguments) {
        ("round", [ids::NUMERIC, ids::INT4]) => rounded,
        ("round", [ids::NUMERIC]) => rounded_whole,
        ("trunc", [ids::NUMERIC, ids::INT4]) => cut,
        ("abs", [ids::NUMERIC]) => size,
        ("floor", [ids::NUMERIC]) => floor,
        ("ceil" | "ceiling", [ids::NUMERIC]) => ceiling,
        _ => return None,
    })
}

/// A number with more digits after the point.
#[inline]
pub fn raised(n: i128, places: u16) -> Option<i128> {
    let power = POWERS.get(usize::from(places));
    match power {
        Some(power) => match (i64::try_from(n), i64::try_from(*power)) {
            (Ok(n), Ok(power)) => Some(i128::from(n) * i128::from(power)),
            _ => n.checked_mul(*power),
        },
        None => (n == 0).then_some(0),
    }
}

/// Two numbers at the greater of their scales.
#[inline]
fn aligned(a: Parts, b: Parts) -> Option<(i128, i128, u16)> {
    Some(match a.1.cmp(&b.1) {
        Ordering::Equal => (a.0, b.0, a.1),
        Ordering::Less => (raised(a.0, b.1 - a.1)?, b.0, b.1),
        Ordering::Greater => (a.0, raised(b.0, a.1 - b.1)?, a.1),
    })
}

/// The order of two numbers, where they can be brought to one scale.
#[inline]
pub fn order(a: Parts, b: Parts) -> Option<Ordering> {
    let (a, b, _) = aligned(a, b)?;
    Some(a.cmp(&b))
}

/// Something of each row's two numbers.
pub fn map2<R: Default>(
    arguments: &Arguments<'_, '_>,
    f: impl Fn((Parts, Parts)) -> Option<R>,
) -> Option<Vec<R>> {
    let ((_, left), (_, right)) = (arguments.numerics(0)?, arguments.numerics(1)?);
    let [of_left, of_right] = arguments.vectors else {
        return None;
    };
    (0..arguments.count)
        .map(|row| {
            let (a, b) = (left.get(of_left.place(row)), right.get(of_right.place(row)));
            match f((a, b)) {
                None if !arguments.is_valid(row) => Some(R::default()),
                value => value,
            }
        })
        .collect()
}

/// Numbers of a scale each.
pub fn collected<'a>(parts: Vec<Parts>) -> Data<'a> {
    let (digits, scales): (Vec<i128>, Vec<u16>) = parts.into_iter().unzip();
    Data::Numeric(Decimals {
        digits: digits.into(),
        scales: Scales::of(scales),
    })
}

/// Numbers of one scale.
pub fn at<'a>(digits: Vec<i128>, scale: u16) -> Data<'a> {
    Data::Numeric(Decimals {
        digits: digits.into(),
        scales: Scales::All(scale),
    })
}

#[inline]
fn add<const MINUS: bool>(a: i128, b: i128) -> Option<i128> {
    let n = if MINUS {
        a.checked_sub(b)
    } else {
        a.checked_add(b)
    };
    n.filter(|n| *n != i128::MIN)
}

fn sum<'a, const MINUS: bool>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let ((left, of_left), (right, of_right)) = (arguments.numerics(0)?, arguments.numerics(1)?);
    if let (Scales::All(a), Scales::All(b)) = (&of_left.scales, &of_right.scales) {
        let scale = *a.max(b);
        let (up, up_too) = (scale - a, scale - b);
        // A constant is brought to the column's scale once.
        let (left, up) = match left {
            Side::One(n) => (Side::One(raised(n, up)?), 0),
            many => (many, up),
        };
        let (right, up_too) = match right {
            Side::One(n) => (Side::One(raised(n, up_too)?), 0),
            many => (many, up_too),
        };
        let digits = match (up, up_too) {
            (0, 0) => arguments.map2(left, right, add::<MINUS>)?,
            _ => arguments.map2(left, right, |a, b| {
                add::<MINUS>(raised(a, up)?, raised(b, up_too)?)
            })?,
        };
        return Some(at(digits, scale));
    }
    let parts = map2(arguments, |(a, b)| {
        let (a, b, scale) = aligned(a, b)?;
        Some((add::<MINUS>(a, b)?, scale))
    })?;
    Some(collected(parts))
}

#[inline]
fn times(a: i128, b: i128) -> Option<i128> {
    if let (Ok(a), Ok(b)) = (i64::try_from(a), i64::try_from(b)) {
        return Some(i128::from(a) * i128::from(b));
    }
    a.checked_mul(b).filter(|n| *n != i128::MIN)
}

/// The scale of a product, where PostgreSQL does not round it.
fn scale_of_product(a: u16, b: u16) -> Option<u16> {
    let scale = a.checked_add(b)?;
    (i32::from(scale) <= SCALE_MAX).then_some(scale)
}

fn product<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let ((left, of_left), (right, of_right)) = (arguments.numerics(0)?, arguments.numerics(1)?);
    if let (Scales::All(a), Scales::All(b)) = (&of_left.scales, &of_right.scales) {
        let scale = scale_of_product(*a, *b)?;
        return Some(at(arguments.map2(left, right, times)?, scale));
    }
    let parts = map2(arguments, |((a, scale), (b, other))| {
        Some((times(a, b)?, scale_of_product(scale, other)?))
    })?;
    Some(collected(parts))
}

/// By the type's own operation.
fn exactly<'a>(
    arguments: &Arguments<'_, 'a>,
    f: impl Fn(&Numeric, &Numeric) -> Result<Numeric>,
) -> Option<Data<'a>> {
    let parts = map2(arguments, |((a, scale), (b, other))| {
        let (a, b) = (Numeric::from_parts(a, scale), Numeric::from_parts(b, other));
        f(&a, &b).ok()?.to_parts()
    })?;
    Some(collected(parts))
}

fn quotient<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    exactly(arguments, |a, b| {
        if b.is_zero() {
            return Ok(Numeric::NaN);
        }
        a.div(b)
    })
}

fn rest<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    exactly(arguments, |a, b| {
        if b.is_zero() {
            return Ok(Numeric::NaN);
        }
        a.rem(b)
    })
}

/// Numbers that are computed from one each.
pub fn map1<'a>(
    arguments: &Arguments<'_, 'a>,
    f: impl Fn(Parts) -> Option<Parts>,
) -> Option<Data<'a>> {
    let (_, of) = arguments.numerics(0)?;
    let vector = arguments.vectors.first()?;
    let parts = (0..arguments.count).map(|row| match f(of.get(vector.place(row))) {
        None if !arguments.is_valid(row) => Some((0, 0)),
        value => value,
    });
    Some(collected(parts.collect::<Option<_>>()?))
}

fn negated<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    map1(arguments, |(n, scale)| Some((-n, scale)))
}

fn size<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    map1(arguments, |(n, scale)| Some((n.abs(), scale)))
}

/// By the type's own function of a number and a count of digits.
fn to_places<'a>(
    arguments: &Arguments<'_, 'a>,
    f: impl Fn(&Numeric, i32) -> Result<Numeric>,
) -> Option<Data<'a>> {
    let Side::One(places) = arguments.ints(1)? else {
        return None;
    };
    let places = i32::try_from(places).ok()?;
    map1(arguments, |(n, scale)| {
        f(&Numeric::from_parts(n, scale), places).ok()?.to_parts()
    })
}

fn rounded<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    to_places(arguments, Numeric::round)
}

fn cut<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    to_places(arguments, Numeric::trunc)
}

/// By the type's own function.
fn unary<'a>(
    arguments: &Arguments<'_, 'a>,
    f: impl Fn(&Numeric) -> Result<Numeric>,
) -> Option<Data<'a>> {
    map1(arguments, |(n, scale)| {
        f(&Numeric::from_parts(n, scale)).ok()?.to_parts()
    })
}

fn rounded_whole<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    unary(arguments, |n| n.round(0))
}

fn floor<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    unary(arguments, Numeric::floor)
}

fn ceiling<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    unary(arguments, Numeric::ceil)
}
