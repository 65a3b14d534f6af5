//! Arithmetic of whole numbers.

use thermocline_query::operators::Operator;
use thermocline_query::types::ids;

use super::{Arguments, Kernel};
use crate::columnar::vector::Data;

const ADD: u8 = 0;
const SUBTRACT: u8 = 1;
const MULTIPLY: u8 = 2;
const DIVIDE: u8 = 3;
const REST: u8 = 4;

/// Whether a type is a whole number.
const fn is_integer(oid: u32) -> bool {
    matches!(oid, ids::INT2 | ids::INT4 | ids::INT8)
}

/// The kernel of an operator of whole numbers.
pub fn of(operator: &Operator) -> Option<Kernel> {
    let Operator {
        left,
        right,
        result,
        ..
    } = operator;
    if !is_integer(*right) || !is_integer(*result) || !(*left == 0 || is_integer(*left)) {
        return None;
    }
    macro_rules! kernel {
        ($kernel:ident $($sign:ident)?) => {
            match *result {
                ids::INT2 => $kernel::<$($sign,)? 16>,
                ids::INT4 => $kernel::<$($sign,)? 32>,
                _ => $kernel::<$($sign,)? 64>,
            }
        };
    }
    Some(match (*left == 0, operator.name) {
        (true, "-") => kernel!(negated),
        (false, "+") => kernel!(binary ADD),
        (false, "-") => kernel!(binary SUBTRACT),
        (false, "*") => kernel!(binary MULTIPLY),
        (false, "/") => kernel!(binary DIVIDE),
        (false, "%") => kernel!(binary REST),
        _ => return None,
    })
}

/// The number, if it has no more bits than its type.
#[inline]
pub const fn within<const BITS: u32>(n: i64) -> Option<i64> {
    let fits = match BITS {
        16 => n as i16 as i64 == n,
        32 => n as i32 as i64 == n,
        _ => true,
    };
    if fits { Some(n) } else { None }
}

#[inline]
fn operation<const SIGN: u8, const BITS: u32>(a: i64, b: i64) -> Option<i64> {
    let n = match SIGN {
        ADD => a.checked_add(b),
        SUBTRACT => a.checked_sub(b),
        MULTIPLY => a.checked_mul(b),
        DIVIDE => a.checked_div(b),
        // What is left of the least number by -1 is nothing.
        _ if b == -1 => Some(0),
        _ => a.checked_rem(b),
    };
    within::<BITS>(n?)
}

fn binary<'a, const SIGN: u8, const BITS: u32>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let (left, right) = (arguments.ints(0)?, arguments.ints(1)?);
    let numbers = arguments.map2(left, right, operation::<SIGN, BITS>)?;
    Some(Data::Int(numbers.into()))
}

fn negated<'a, const BITS: u32>(arguments: &Arguments<'_, 'a>) -> Option<Data<'a>> {
    let numbers = arguments.map(arguments.ints(0)?, |n| within::<BITS>(n.checked_neg()?))?;
    Some(Data::Int(numbers.into()))
}
