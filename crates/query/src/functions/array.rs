//! Functions and operators of arrays: what they are made of and how they
//! compare. The files of `array/` search in them and change them.

mod change;
mod search;

use std::fmt::Write as _;

use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::{array, ids};
use change::{
    array_append, array_cat, array_fill, array_fill_with_lower_bounds, array_prepend, array_remove,
    array_replace, trim_array,
};
use search::{
    array_position, array_position_start, array_positions, arraycontained, arraycontains,
    arrayoverlap, width_bucket_array,
};

/// The functions of this file.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(378, "array_append", &[ids::ANYCOMPATIBLEARRAY, ids::ANYCOMPATIBLE], ids::ANYCOMPATIBLEARRAY, array_append).called_on_null(),
    Function::row(383, "array_cat", &[ids::ANYCOMPATIBLEARRAY, ids::ANYCOMPATIBLEARRAY], ids::ANYCOMPATIBLEARRAY, array_cat).called_on_null(),
    Function::row(747, "array_dims", &[ids::ANYARRAY], ids::TEXT, array_dims),
    Function::row(744, "array_eq", &[ids::ANYARRAY, ids::ANYARRAY], ids::BOOL, array_eq),
    Function::row(1193, "array_fill", &[ids::ANYELEMENT, ids::INT4_ARRAY], ids::ANYARRAY, array_fill).called_on_null(),
    Function::row(1286, "array_fill", &[ids::ANYELEMENT, ids::INT4_ARRAY, ids::INT4_ARRAY], ids::ANYARRAY, array_fill_with_lower_bounds).called_on_null(),
    Function::row(396, "array_ge", &[ids::ANYARRAY, ids::ANYARRAY], ids::BOOL, array_ge),
    Function::row(392, "array_gt", &[ids::ANYARRAY, ids::ANYARRAY], ids::BOOL, array_gt),
    Function::row(515, "array_larger", &[ids::ANYARRAY, ids::ANYARRAY], ids::ANYARRAY, array_larger),
    Function::row(393, "array_le", &[ids::ANYARRAY, ids::ANYARRAY], ids::BOOL, array_le),
    Function::row(2176, "array_length", &[ids::ANYARRAY, ids::INT4], ids::INT4, array_length),
    Function::row(2091, "array_lower", &[ids::ANYARRAY, ids::INT4], ids::INT4, array_lower),
    Function::row(391, "array_lt", &[ids::ANYARRAY, ids::ANYARRAY], ids::BOOL, array_lt),
    Function::row(748, "array_ndims", &[ids::ANYARRAY], ids::INT4, array_ndims),
    Function::row(390, "array_ne", &[ids::ANYARRAY, ids::ANYARRAY], ids::BOOL, array_ne),
    Function::row(3277, "array_position", &[ids::ANYCOMPATIBLEARRAY, ids::ANYCOMPATIBLE], ids::INT4, array_position).called_on_null(),
    Function::row(3278, "array_position", &[ids::ANYCOMPATIBLEARRAY, ids::ANYCOMPATIBLE, ids::INT4], ids::INT4, array_position_start).called_on_null(),
    Function::row(3279, "array_positions", &[ids::ANYCOMPATIBLEARRAY, ids::ANYCOMPATIBLE], ids::INT4_ARRAY, array_positions).called_on_null(),
    Function::row(379, "array_prepend", &[ids::ANYCOMPATIBLE, ids::ANYCOMPATIBLEARRAY], ids::ANYCOMPATIBLEARRAY, array_prepend).called_on_null(),
    Function::row(3167, "array_remove", &[ids::ANYCOMPATIBLEARRAY, ids::ANYCOMPATIBLE], ids::ANYCOMPATIBLEARRAY, array_remove).called_on_null(),
    Function::row(3168, "array_replace", &[ids::ANYCOMPATIBLEARRAY, ids::ANYCOMPATIBLE, ids::ANYCOMPATIBLE], ids::ANYCOMPATIBLEARRAY, array_replace).called_on_null(),
    Function::row(516, "array_smaller", &[ids::ANYARRAY, ids::ANYARRAY], ids::ANYARRAY, array_smaller),
    Function::row(2092, "array_upper", &[ids::ANYARRAY, ids::INT4], ids::INT4, array_upper),
    Function::row(2749, "arraycontained", &[ids::ANYARRAY, ids::ANYARRAY], ids::BOOL, arraycontained),
    Function::row(2748, "arraycontains", &[ids::ANYARRAY, ids::ANYARRAY], ids::BOOL, arraycontains),
    Function::row(2747, "arrayoverlap", &[ids::ANYARRAY, ids::ANYARRAY], ids::BOOL, arrayoverlap),
    Function::row(382, "btarraycmp", &[ids::ANYARRAY, ids::ANYARRAY], ids::INT4, btarraycmp),
    Function::row(3179, "cardinality", &[ids::ANYARRAY], ids::INT4, array_cardinality),
    Function::row(3218, "width_bucket", &[ids::ANYCOMPATIBLE, ids::ANYCOMPATIBLEARRAY], ids::INT4, width_bucket_array),
    Function::row(6172, "trim_array", &[ids::ANYARRAY, ids::INT4], ids::ANYARRAY, trim_array),
];

fn array_dims(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let array = arguments[0].as_array();
    if array.dimensions.is_empty() {
        return Ok(Datum::Null);
    }
    let mut out = String::new();
    for (length, lower) in &array.dimensions {
        // Writing to a string can't fail.
        let _ = write!(out, "[{lower}:{}]", upper((*length, *lower)));
    }
    Ok(Datum::text(out))
}

fn array_ndims(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(match arguments[0].as_array().dimensions.len() {
        0 => Datum::Null,
        count => Datum::Int4(i32::try_from(count).unwrap_or(i32::MAX)),
    })
}

/// The upper bound of a dimension.
const fn upper((length, lower): (i32, i32)) -> i32 {
    length.wrapping_add(lower).wrapping_sub(1)
}

/// The dimension that an argument asks for, from 1.
pub(super) fn dimension(array: &Datum, number: &Datum) -> Option<(i32, i32)> {
    let place = usize::try_from(number.as_int4()).ok()?.checked_sub(1)?;
    array.as_array().dimensions.get(place).copied()
}

fn array_lower(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(match dimension(&arguments[0], &arguments[1]) {
        Some((_, lower)) => Datum::Int4(lower),
        None => Datum::Null,
    })
}

fn array_upper(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(match dimension(&arguments[0], &arguments[1]) {
        Some(dimension) => Datum::Int4(upper(dimension)),
        None => Datum::Null,
    })
}

fn array_length(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    Ok(match dimension(&arguments[0], &arguments[1]) {
        Some((length, _)) => Datum::Int4(length),
        None => Datum::Null,
    })
}

fn array_cardinality(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let count = arguments[0].as_array().elements.len();
    Ok(Datum::Int4(i32::try_from(count).unwrap_or(i32::MAX)))
}

fn array_eq(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    array::equal(&arguments[0], &arguments[1]).map(Datum::Bool)
}

fn array_ne(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    array::equal(&arguments[0], &arguments[1]).map(|equal| Datum::Bool(!equal))
}

fn array_lt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    array::order(&arguments[0], &arguments[1]).map(|order| Datum::Bool(order.is_lt()))
}

fn array_le(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    array::order(&arguments[0], &arguments[1]).map(|order| Datum::Bool(order.is_le()))
}

fn array_gt(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    array::order(&arguments[0], &arguments[1]).map(|order| Datum::Bool(order.is_gt()))
}

fn array_ge(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    array::order(&arguments[0], &arguments[1]).map(|order| Datum::Bool(order.is_ge()))
}

fn btarraycmp(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    array::order(&arguments[0], &arguments[1]).map(|order| Datum::Int4(order as i32))
}

fn array_larger(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let order = array::order(&arguments[0], &arguments[1])?;
    Ok(arguments[usize::from(!order.is_gt())].clone())
}

fn array_smaller(_: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let order = array::order(&arguments[0], &arguments[1])?;
    Ok(arguments[usize::from(!order.is_lt())].clone())
}
