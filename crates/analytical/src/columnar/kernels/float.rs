//! Arithmetic of floating numbers. Overflows and underflows, which are errors, are given up.

use thermocline_query::operators::Operator;
use thermocline_query::types::ids;

use super::{Arguments, Kernel};
use crate::columnar::vector::Data;

const ADD: u8 = 0;
const SUBTRACT: u8 = 1;
const MULTIPLY: u8 = 2;
const DIVIDE: u8 = 3;

/// The kernel of an operator of floating numbers.
pub fn of(operator: &Operator) -> Option<Kernel> {
    let is_float = |oid| matches!(oid, ids::FLOAT4 | ids::FLOAT8);
    if !is_float(operator.right) {
        return None;
    }
    if operator.left == 0 {
        return (operator.name == "-").then_some(negated as Kernel);
    }
    if !is_float(operator.left) {
        return None;
    }
    let single = operator.result == ids::FLOAT4;
    Some(match (operator.name, single) {
        ("+", false) => double::<ADD>,
        ("-", false) => double::<SUBTRACT>,
        ("*", false) => double::<MULTIPLY>,
        ("/", false) => double::<DIVIDE>,
        ("+", true) => single_width::<ADD>,
        ("-", true) => single_width::<SUBTRACT>,
        ("*", true) => single_width::<MULTIPLY>,
        ("/", true) => single_width::<DIVIDE>,
        _ => return None,
    })
}

macro_rules! operation {
    ($name:ident $float:ty) => {
        #[inline]
        fn $name<const SIGN: u8>(a: $float, b: $float) -> Option<$float> {
            let n = match SIGN {
                ADD => a + b,
                SUBTRACT => a - b,
                MULTIPLY => a * b,
                _ => a / b,
            };
            let usual = match SIGN {
                ADD | SUBTRACT => n.is_finite(),
                MULTIPLY => n.is_finite() && (n != 0.0 || a == 0.0 || b == 0.0),
                _ => b != 0.0 && n.is_finite() && (n != 0.0 || a == 0.0),
            };
            usual.then_some(n)
        }
    };
}

operation!(of_doubles f64);
operation!(of_singles f32);

fn double<'a, const SIGN: u8>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let (left, right) = (arguments.floats(0)?, arguments.floats(1)?);
    let numbers = arguments.map2(left, right, of_doubles::<SIGN>)?;
    Some(Data::Float(numbers.into()))
}

fn single_width<'a, const SIGN: u8>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let (left, right) = (arguments.floats(0)?, arguments.floats(1)?);
    let numbers = arguments.map2(left, right, |a, b| {
        of_singles::<SIGN>(a as f32, b as f32).map(f64::from)
    })?;
    Some(Data::Float(numbers.into()))
}

fn negated<'a>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let numbers = arguments.map(arguments.floats(0)?, |n| Some(-n))?;
    Some(Data::Float(numbers.into()))
}
